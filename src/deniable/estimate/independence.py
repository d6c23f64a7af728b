"""Whether two attributes of a randomized table are independent, and how strongly they go together.

The test is that of :mod:`deniable.estimate.chi_square`, the strength that of
:mod:`deniable.estimate.association`. Both are about the population that the rows were drawn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.association import Association, association
from deniable.estimate.chi_square import (
    ChiSquare,
    chi_square,
    randomized_together,
    released_chi_square,
)
from deniable.estimate.shares import UNCERTAIN_ERRORS, normal_quantile
from deniable.estimate.tabulate import Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.table_map import TableMap

MOST_CELLS = 4096
"""Pairs with more cells are refused: V holds a square matrix of that size."""

FEW_EXPECTED = 5.0
"""Below this expected count in some cell the χ² limit is a rough guide (the usual rule)."""


@dataclass(frozen=True)
class IndependenceTest:
    """Whether two attributes are independent in the population, and how strongly they go together.

    Args:
        attributes: their names.
        n_records: rows behind it.
        test: X², degrees of freedom and p-value, corrected for the randomization.
        released: the same of the released table as it stands; where ``together`` is true it may
            reject independence though it holds. None for parts of a merged attribute under a
            response matrix, which need not give a value of each.
        together: whether the two are randomized together.
        cramers_v: None if it cannot be estimated.
        without_v: why not; empty otherwise.
        group: columns released as they are and the values that the rows were selected by.
    """

    attributes: tuple[str, str]
    n_records: int
    test: ChiSquare
    released: ChiSquare | None
    together: bool
    cramers_v: Association | None
    without_v: str
    group: tuple[tuple[str, str], ...] = ()

    @property
    def p_value(self) -> float:
        """Probability of so large a corrected X² if the attributes are independent."""
        return self.test.p_value

    @property
    def few_expected(self) -> bool:
        """Whether some released cell expects fewer than five rows: the p-value is then rough."""
        return self.test.least_expected < FEW_EXPECTED

    def to_plain(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values for strict JSON.

        Raises:
            InputError: if the level is not between 0 and 1.
        """
        quantile = normal_quantile(level)
        strength = self.cramers_v
        low, high = (None, None) if strength is None else strength.interval(quantile)
        return {
            "attributes": list(self.attributes),
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "statistic": self.test.statistic,
            "degrees_of_freedom": self.test.degrees_of_freedom,
            "p_value": self.test.p_value,
            "least_expected": self.test.least_expected,
            "level": level,
            "cramers_v": None if strength is None else strength.value,
            "cramers_v_low": low,
            "cramers_v_high": high,
            "squared_v": None if strength is None else strength.square,
            "squared_v_standard_error": None if strength is None else strength.standard_error,
            "without_v": self.without_v or None,
            "randomized_together": self.together,
            "released": None
            if self.released is None
            else {
                "statistic": self.released.statistic,
                "degrees_of_freedom": self.released.degrees_of_freedom,
                "p_value": self.released.p_value,
            },
        }


def independence(
    tabulation: Tabulation,
    mechanism: Mechanism,
    of: Sequence[str],
    *,
    kept_values: Sequence[str] = (),
    group: Sequence[tuple[str, str]] = (),
) -> IndependenceTest:
    """Test whether two attributes are independent, from counts of released pairs.

    Args:
        tabulation: the released records counted by the two; unweighted.
        mechanism: what randomized them.
        of: two attributes; the second may be a kept column that the schema does not declare.
        kept_values: the values of that column, in the order of the counts.
        group: if only the rows with certain values of kept columns were counted, which.

    Raises:
        InputError: if the attributes are not two, the counts are weighted or have another shape,
            there are over 4,096 cells, all rows show one value of an attribute, or the
            randomization has wiped out what is asked for.
    """
    if len(of) != 2:
        raise InputError("independence is of two attributes; name both of them, as in a,b")
    if tabulation.squares is not None:
        raise InputError("the test of independence takes no weights; count every row once")
    first, second = of
    channel = Channel(mechanism, (first,) if kept_values else (first, second))
    channel.check(tabulation.n_effective)
    shape = channel.n_outputs
    labels = [variable.attribute.categories for variable in channel.variables]
    if kept_values:
        shape = (*shape, len(kept_values))
        labels.append(tuple(kept_values))
    counts = tabulation.counts
    if counts.shape != shape:
        raise InputError(
            f"the counts have shape {counts.shape}, but the released values of {first}, {second} "
            f"make a table of shape {shape}"
        )
    if counts.size > MOST_CELLS:
        raise InputError(
            f"'{first}' and '{second}' make a table of {counts.size} cells, more than "
            f"{MOST_CELLS}; merge categories"
        )
    _refuse_one_value(counts, (first, second))
    for axis in range(2):
        if _as_it_is(channel.inverse, axis):
            seen = np.flatnonzero(counts.sum(axis=1 - axis))
            counts = counts.take(seen, axis=axis)
            labels[axis] = tuple(labels[axis][i] for i in seen)
    sizes = tuple(map(len, labels))
    inverse = replace(channel.inverse, n_categories=sizes)
    forward = replace(channel.forward, n_categories=sizes) if channel.complete else None
    found = chi_square(counts, forward, inverse)
    strength, reason = _strength(counts, inverse, (first, second), labels)
    return IndependenceTest(
        attributes=(first, second),
        n_records=tabulation.n_records,
        test=found,
        released=None if channel.shared_matrices else released_chi_square(counts),
        together=forward is None or randomized_together(forward),
        cramers_v=strength,
        without_v=reason,
        group=tuple(group),
    )


def _as_it_is(channel: TableMap, axis: int) -> bool:
    shared = any(axis in joint.axes for joint in channel.joint.values())
    return not (shared or axis in channel.pattern_axes or axis in channel.matrices)


def _refuse_one_value(counts: NDArray[np.float64], names: Sequence[str]) -> None:
    for axis, name in enumerate(names):
        seen = np.count_nonzero(counts.sum(axis=1 - axis))
        if seen < 2 and (counts.shape[axis] > 1 or counts.size == 1):
            raise InputError(
                f"all rows show the same value of '{name}', so there is nothing to test"
            )


def _strength(
    counts: NDArray[np.float64],
    inverse: TableMap,
    names: Sequence[str],
    labels: Sequence[Sequence[str]],
) -> tuple[Association | None, str]:
    n = float(counts.sum())
    frequencies = counts / n
    table = inverse.apply(frequencies)
    for axis, name in enumerate(names):
        if _as_it_is(inverse, axis):
            continue  # its shares are positive, and no cell is larger than they are
        shares = table.sum(axis=1 - axis)
        for category, share in enumerate(shares):
            weights = np.zeros(table.shape)
            np.moveaxis(weights, axis, 0)[category] = 1.0
            influence = inverse.transposed().apply(weights)
            error = sqrt(float((frequencies * (influence - share) ** 2).sum()) / n)
            if share <= UNCERTAIN_ERRORS * error:
                return None, (
                    f"the share of '{labels[axis][category]}' in '{name}' is not clearly above "
                    "zero, and V divides by it"
                )
    return association(frequencies, inverse, n), ""
