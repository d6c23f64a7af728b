"""Leverage of liars: the largest change of an estimate by a few rows that are made up.

A row with the released value y adds ℓ_v(y)/n to the estimate of a cell v, ℓ = Lᵀe_v. Against a row
without information, which adds 1/N to each of N cells, a liar can add max_y ℓ_v(y) − 1/N; the
range of what liars can add is max_y ℓ_v(y) − min_y ℓ_v(y). Of one attribute of a categories under
one pattern law these are (1 − 1/a)/φ and 1/φ.

Under forms ℓ is the form's. If forms are *assigned*, leverage is the mean over forms; if
respondents *choose* them, that of the worst form.

Under every mechanism, with forms or without, the range of an assigned liar is at least
(e^ε + 1)/(e^ε − 1) for every unbiased linear estimate of a share: within a form
E[ℓ | x] − E[ℓ | x′] is at most the range of ℓ times the total variation of the outputs of x and x′,
which is at most (e^ε − 1)/(e^ε + 1), and its mean over forms is 1 for an x in the cell and an x′
outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod, tanh
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import CellTable, target_text, where_text
from deniable.estimate.inference import Inference
from deniable.estimate.query import Query
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import PublishedChannel
from deniable.numerals import count_text, number_text

LIARS = 0.01
"""Fraction of rows from liars for which leverage is stated."""

UNSEEN = (
    "Neither this nor the test of agreement of forms detects liars: answers that some population "
    "could give are not distinguishable."
)


@dataclass(frozen=True)
class Moves:
    """How far one row can move n times the estimate of every cell; arrays broadcast to the
    table."""

    up: Floats
    span: Floats
    up_chosen: Floats
    span_chosen: Floats


def moves(channel: Channel | PublishedChannel) -> Moves:
    """Return how far one row can move the table of some attributes."""
    even = 1.0 / prod(channel.n_categories)
    if isinstance(channel, PublishedChannel):
        ranges, rows = channel.inverse.row_ranges(), channel.rows
        maps = channel.inverse.parts
    else:
        ranges, rows, maps = [channel.inverse.row_range()], (1.0,), (channel.inverse,)
    ends = []
    for (low, high), one in zip(ranges, maps, strict=True):
        moved = {*one.pattern_axes, *(i for axis in one.matrices for i in one.axes_of(axis))}
        if len(moved) < len(channel.n_categories):
            # On an axis that is released unchanged, a row with another value contributes 0.
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        ends.append((low, high))
    lows, highs = ([end[side] for end in ends] for side in (0, 1))
    low = np.asarray(sum(f * each for f, each in zip(rows, lows, strict=True)))
    high = np.asarray(sum(f * each for f, each in zip(rows, highs, strict=True)))
    # A form that no row has cannot be chosen.
    had = [i for i, fraction in enumerate(rows) if fraction > 0]
    least = np.minimum.reduce([np.broadcast_to(lows[i], low.shape) for i in had])
    most = np.maximum.reduce([np.broadcast_to(highs[i], high.shape) for i in had])
    return Moves(high - even, high - low, most - even, most - least)


@dataclass(frozen=True)
class LeverageOfLiars(CellTable):
    """By how much one in a hundred liars can move each share of a table.

    ``attributes``: names, in the order of the table's axes. ``estimate, standard_error``: the
    shares, shape of the table. ``moves``: how far one row can move n times each share, shape of the
    table.
    """

    attributes: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    n_records: int
    target: Target
    estimate: Floats
    standard_error: Floats
    moves: Moves
    forms: bool
    floor: float
    group: tuple[tuple[str, str], ...] = ()

    def _numbers(self, level: float) -> Mapping[str, NDArray[Any] | None]:  # noqa: ARG002
        columns = {"moved": self.moves.up, "range": self.moves.span}
        if self.forms:
            columns |= {
                "moved_chosen": self.moves.up_chosen,
                "range_chosen": self.moves.span_chosen,
            }
        return {"estimate": self.estimate, "standard_error": self.standard_error} | {
            name: LIARS * np.broadcast_to(moves, self.estimate.shape)
            for name, moves in columns.items()
        }

    def caption(self, level: float = 0.95) -> str:  # noqa: ARG002 - as of every answer
        """Return a caption."""
        return (
            f"Shares of {', '.join(self.attributes)}{where_text(self.group)}, and how far one "
            f"liar in a hundred can move them: {count_text(self.n_records, 'row')}, of "
            f"{target_text(self.target)}"
        )

    def remarks(self) -> list[str]:
        """Return remarks on the table, one sentence each."""
        least = (
            f"A range is at least {number_text(100 * LIARS * self.floor, 3)} % under every "
            f"mechanism with this "
            "ε of the record."
        )
        if self.forms:
            least += (
                " The first two columns hold if forms are assigned; a liar who can choose a form "
                "moves shares by the last two."
            )
        return [least, UNSEEN]

    def to_plain(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "attributes": list(self.attributes),
            "group": dict(self.group),
            "n": self.n_records,
            "target": self.target,
            "liars": LIARS,
            "least_range": LIARS * self.floor,
            "shares": self.table(level),
        }


@dataclass(frozen=True, kw_only=True)
class Leverage(Query[LeverageOfLiars]):
    """How far can liars move the shares of a table?

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.

    Raises:
        InputError: if weights are given, or a group is formed by a randomized attribute; from
            :meth:`answer`, if the randomization has wiped out a component of the table.
    """

    takes_weights: ClassVar[bool] = False

    target: Target = "table"

    def answer(self, counts: Counts) -> list[LeverageOfLiars]:
        """Return the leverage in one group of rows."""
        if by := self.subgroups(counts.schema):
            raise InputError(
                f"leverage is not computed within subgroups of '{by[0]}', an attribute; name "
                "it among the attributes of the table"
            )
        of = tuple(self.of)
        inference = Inference(counts, of, self.target)
        shape = inference.values.shape
        parts = [(fraction, moves(part.channel)) for fraction, part in inference.parts]
        summed = [
            np.asarray(sum(w * np.broadcast_to(getattr(of, name), shape) for w, of in parts))
            for name in ("up", "span", "up_chosen", "span_chosen")
        ]
        epsilon = max(part.channel.mechanism.epsilon for _, part in inference.parts)
        found = LeverageOfLiars(
            of,
            tuple(variable.attribute.categories for variable in inference.channel.variables),
            counts.n_records,
            self.target,
            inference.values,
            inference.standard_error,
            Moves(*summed),
            isinstance(inference.channel, PublishedChannel),
            1 / tanh(epsilon / 2) if epsilon > 0 else inf,
            counts.group,
        )
        return [found]
