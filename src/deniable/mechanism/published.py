"""The channel of published forms on some attributes, and its unbiased inverse.

A released value is a pair: the form, and the answers to its attributes. Forms with equal
eigenvalues on these attributes are counted together, and a form that draws its attributes counts as
several: one for each subset of these attributes that it can include. The inverse multiplies the
component T of form c's counts by φ_c(T)/I_T, I_T = Σ f_c φ_c(T)², f_c the fraction of the rows that
have form c (docs/proofs/forms.md, Theorem 2; sets of categories as answers: section 4).

With the fractions of the observed rows the estimate is unbiased given the number of rows of each
form. Before there are rows the forms' shares take their place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.forms import PublishedForms
from deniable.laws.set_answers import SetAnswers
from deniable.mechanism.channel import Axes, Channel, refuse_lost
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

Variant = tuple[int, tuple[int, ...]]
"""A form, and the attributes that it includes, by their places in its block."""


@dataclass(frozen=True)
class _Group:
    """Forms that are counted together, and their effect on the attributes.

    ``asked``: the included axes; those not under forms always are. ``sets``: the sets that answers
    name, by axis.
    """

    channel: Channel
    asked: tuple[bool, ...]
    sets: dict[int, SetAnswers]

    @property
    def forward(self) -> TableMap:
        """The channel if all axes were included."""
        return self.channel.pattern_forward

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answers; axes that are not included have length 1."""
        return tuple(
            (self.sets[axis].n_answers if axis in self.sets else n) if inside else 1
            for axis, (n, inside) in enumerate(zip(self.channel.n_outputs, self.asked, strict=True))
        )

    @property
    def information(self) -> NDArray[np.float64]:
        """φ² times the sets' information of each component, over the pattern axes."""
        shown = np.ones(())
        for axis in self.forward.pattern_axes:
            of_sets = self.sets[axis].information if axis in self.sets else 1.0
            shown = np.multiply.outer(shown, [1.0, of_sets])
        return np.asarray(self.forward.eigenvalues**2 * shown)

    @cached_property
    def to_answers(self) -> TableMap:
        """From the true table to the answers."""
        return self.answered(self.forward, from_answers=False)

    def answered(self, of: TableMap, *, from_answers: bool) -> TableMap:
        """Return a map from or to the answers: along axes that are not included it spreads evenly,
        or sums."""
        at = tuple(slice(None) if self.asked[axis] else 0 for axis in of.pattern_axes)
        elsewhere = {
            axis: np.full((n, 1), 1.0 / n) if from_answers else np.ones((1, n))
            for axis, (n, inside) in enumerate(zip(of.n_categories, self.asked, strict=True))
            if not inside
        }
        return TableMap(
            of.n_categories,
            tuple(axis for axis in of.pattern_axes if self.asked[axis]),
            np.asarray(of.eigenvalues[at]),
            {**of.matrices, **elsewhere},
            of.joint,
            self.sets,
            from_answers,
            weighted=not from_answers,
        )


@dataclass(frozen=True)
class PublishedChannel(Axes):
    """The effect of forms on the joint table of some attributes, and its unbiased inverse.

    It has the interface of :class:`~deniable.mechanism.channel.Channel`; released tables are flat
    vectors, form after form.

    ``fractions``: of the rows (or of their weight) with each group of forms, shape (groups,);
    by default the forms' shares.
    """

    fractions: tuple[float, ...] | None = None
    grouping: tuple[tuple["Variant", ...], ...] | None = None

    @cached_property
    def law(self) -> PublishedForms:
        """The forms."""
        assert self.mechanism.forms is not None
        return self.mechanism.forms

    @cached_property
    def groups(self) -> tuple[tuple["Variant", ...], ...]:
        """The forms, with their included attributes, in groups that are counted together."""
        if self.grouping is not None:
            return self.grouping
        alike: dict[tuple[tuple[int, ...], bytes, tuple[bool, ...]], list[Variant]] = {}
        for number, form in enumerate(self.law.forms):
            for asked, _ in form.variants(self._places):
                inside = form.asked_of(asked)
                eigenvalues = form.table.eigenvalues(inside).tobytes() if inside else b""
                broad = tuple(form.sets_of(place) is not None for place in asked)
                alike.setdefault((asked, eigenvalues, broad), []).append((number, asked))
        return tuple(map(tuple, alike.values()))

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """Places in the forms' block of the attributes that the axes belong to."""
        named = set(self.positions)
        return tuple(
            place for place, i in enumerate(self.mechanism.positions_under_forms) if i in named
        )

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        within = {i: place for place, i in enumerate(self.mechanism.positions_under_forms)}
        made = []
        for (form, asked), *_ in self.groups:
            inside = tuple(i not in within or within[i] in asked for i in self.positions)
            named = {
                axis: self.law.forms[form].sets_of(within[i])
                for axis, i in enumerate(self.positions)
                if inside[axis] and i in within
            }
            sets = {axis: each for axis, each in named.items() if each is not None}
            channel = Channel(self.mechanism.under(form, asked), self.attributes)
            made.append(_Group(channel, inside, sets))
        return tuple(made)

    @property
    def all_under_forms(self) -> bool:
        """Whether every axis is an attribute under forms."""
        return set(self.positions) <= set(self.mechanism.positions_under_forms)

    def completed(self) -> "PublishedChannel":
        """Return the channel with further axes behind, for the parts that are missing."""
        attributes = self._with_missing_parts()
        return PublishedChannel(self.mechanism, attributes, self.rows, self.groups)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of the answers of each group; axes that are not included have length 1."""
        return tuple(group.shape for group in self._groups)

    @cached_property
    def n_outputs(self) -> tuple[int, ...]:
        """Shape of a table of released values: flat."""
        return (sum(map(prod, self.shapes)),)

    @cached_property
    def rows(self) -> tuple[float, ...]:
        """f_c: the fraction of the rows in each group."""
        if self.fractions is not None:
            return self.fractions
        chances = {
            (number, asked): share * probability
            for number, (share, form) in enumerate(
                zip(self.law.probabilities, self.law.forms, strict=True)
            )
            for asked, probability in form.variants(self._places)
        }
        return tuple(float(sum(chances[each] for each in group)) for group in self.groups)

    def of_rows(self, counts: NDArray[np.float64]) -> "PublishedChannel":
        """Return the channel with the fractions of counted rows, shape :attr:`n_outputs`."""
        forward = self.forward
        weights = np.array([float(piece.sum()) for piece in forward.pieces(counts)])
        fractions = tuple((weights / weights.sum()).tolist())
        made = PublishedChannel(self.mechanism, self.attributes, fractions, self.groups)
        vars(made)["_groups"] = self._groups  # independent of the fractions
        return made

    def of_every_form(self) -> "PublishedChannel":
        """Return the channel whose released values distinguish all forms, also those with equal
        eigenvalues."""
        groups = tuple(
            ((number, asked),)
            for number, form in enumerate(self.law.forms)
            for asked, _ in form.variants(self._places)
        )
        return PublishedChannel(self.mechanism, self.attributes, grouping=groups)

    @cached_property
    def _information(self) -> NDArray[np.float64]:
        """I_T over the pattern axes, shape (2,)·(their number)."""
        groups = zip(self.rows, self._groups, strict=True)
        return np.asarray(sum(fraction * group.information for fraction, group in groups))

    @cached_property
    def forward(self) -> StackedMap:
        """M: the true table to the expected released vector. Columns sum to 1."""
        parts = tuple(group.to_answers for group in self._groups)
        return StackedMap(parts, self.shapes, self.rows, gathers=False)

    @cached_property
    def inverse(self) -> StackedMap:
        """L with L·M = 1, from released vectors of frequencies to tables.

        Not defined where some I_T is zero; call :meth:`check` first.
        """
        factors = (g.forward.eigenvalues / self._information for g in self._groups)
        parts = tuple(
            group.answered(group.channel.undoing(factor), from_answers=True)
            for group, factor in zip(self._groups, factors, strict=True)
        )
        return StackedMap(parts, self.shapes, (1.0,) * len(parts), gathers=True)

    @cached_property
    def means(self) -> tuple[TableMap, ...]:
        """K_c M_c: from the true table to the mean contribution of a row of each group; their mean
        by the fractions is 1."""
        return tuple(
            left.after(right)
            for left, right in zip(self.inverse.parts, self.forward.parts, strict=True)
        )

    @cached_property
    def moments(self) -> tuple[TableMap, ...]:
        """(K_c∘K_c) M_c: the mean square of a row's contribution to a cell, by group."""
        return tuple(
            left.squared().after(right)
            for left, right in zip(self.inverse.parts, self.forward.parts, strict=True)
        )

    def released_codes(self, codes: Mapping[int, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the place of each row in the released vector, shape (n,), from released codes.

        ``codes``: of the attributes at :attr:`positions`, by position; and the rows' forms, from 0,
        under the number of the schema's attributes.
        """
        form = codes[len(self.mechanism.schema.attributes)]
        groups = self._group_of(form, codes)
        cells = np.zeros(len(form), dtype=np.int64)
        answers = self._groups[0].channel.released_codes(
            {i: np.minimum(codes[i], self._most(i) - 1) for i in set(self.positions)}
        )
        for axis, (column, position) in enumerate(zip(answers, self.positions, strict=True)):
            lengths = np.array([shape[axis] for shape in self.shapes])[groups]
            filled = codes[position] < self._most(position)
            if any(axis in group.sets for group in self._groups):
                # Codes of sets follow those of the categories.
                n = self.n_categories[axis]
                broad = np.array([axis in group.sets for group in self._groups])[groups]
                if (wrong := filled & (broad != (column >= n))).any():
                    raise WrongFormError(int(np.argmax(wrong)), self.attributes[axis])
                column = np.where(broad, column.astype(np.int64) - n, column)
            cells *= lengths
            cells += np.where(filled, column, 0)
        starts = np.concatenate([[0], np.cumsum([prod(shape) for shape in self.shapes])])
        return [starts[groups] + cells]

    def _group_of(self, form: NDArray[Any], codes: Mapping[int, NDArray[Any]]) -> NDArray[np.int64]:
        """Return the group of each row, from its form and its filled cells."""
        bits = {place: bit for bit, place in enumerate(self._places)}
        table = np.full((len(self.law.forms), 1 << len(bits)), -1, dtype=np.int64)
        for number, group in enumerate(self.groups):
            for of, asked in group:
                filled = {i for i in asked if i in bits}
                table[of, sum(1 << bits[i] for i in filled)] = number
        seen = np.zeros(len(form), dtype=np.int64)
        for place, bit in bits.items():
            position = self.mechanism.positions_under_forms[place]
            seen |= (codes[position] < self._most(position)).astype(np.int64) << bit
        groups = np.asarray(table[form, seen])
        if (groups < 0).any():
            row = int(np.argmax(groups < 0))
            raise WrongFormError(row, self._wrong(int(form[row]), int(seen[row])))
        return groups

    def _wrong(self, form: int, seen: int) -> str:
        """Return the name of an attribute that contradicts the form: filled or empty wrongly."""
        of = self.law.forms[form]
        may = {*of.asked, *(i for draw in of.drawn for i in draw.members)}
        named = dict(zip(self.positions, self.attributes, strict=True))
        filled = [i for bit, i in enumerate(self._places) if seen >> bit & 1]
        wrong = [i for i in filled if i not in may]
        wrong += [i for i in self._places if i in of.asked and i not in filled]
        return named[self.mechanism.positions_under_forms[(wrong or filled)[0]]]

    def _most(self, position: int) -> int:
        return self.mechanism.n_outputs[position]

    def margin(self, n_by: int) -> "PublishedChannel":
        """Return the channel of the last ``n_by`` attributes, with the same groups and rows."""
        return PublishedChannel(self.mechanism, self.attributes[-n_by:], self.rows, self.groups)

    def regrouped(
        self, counts: NDArray[np.float64], other: "PublishedChannel"
    ) -> NDArray[np.float64]:
        """Return counts of released values as counts of the channel of the last attributes,
        whose groups are unions of this one's."""
        first = len(self.attributes) - len(other.attributes)
        summed = np.zeros(other.n_outputs)
        targets = list(other.forward.pieces(summed))
        holder = {one: place for place, group in enumerate(other.groups) for one in group}
        for group, piece in zip(self.groups, self.forward.pieces(counts), strict=True):
            form, asked = group[0]
            fewer = form, tuple(i for i in asked if i in other._places)
            target = targets[holder[group[0] if group[0] in holder else fewer]]
            target += piece.sum(axis=tuple(range(first))).reshape(target.shape)
        return summed

    @cached_property
    def attenuation(self) -> NDArray[np.float64]:
        """√I_T for every set T of the attributes, shape (2,)·m; on axes with a response matrix as
        in a channel."""
        return self._left_of(self._groups[0].forward.pattern_axes, np.sqrt(self._information))

    def check(self, n_records: float) -> None:
        """Raise if no form includes a component, or its information is too small."""
        never = np.argwhere(self.attenuation == 0)
        if len(never):
            sizes = never.sum(axis=1)
            members = never[int(np.argmin(sizes))]
            names = [n for n, inside in zip(self.attributes, members, strict=True) if inside]
            listed = ", ".join(f"'{name}'" for name in names)
            drawn = PublishedChannel(self.mechanism, tuple(names)).attenuation.all()
            if drawn and len(names) > 1:
                raise InputError(f"no row of this release includes {listed} together")
            raise InputError(
                f"no form includes {listed} together, so their association cannot be estimated; "
                "use tables of fewer attributes, or release with a larger importance of pairs"
                if len(names) > 1
                else f"no row of this release includes {listed}"
            )
        refuse_lost(self.attributes, self.attenuation, n_records)


class WrongFormError(Exception):
    """A row whose filled cells contradict its form.

    ``row``: its place, from 0.
    """

    def __init__(self, row: int, name: str) -> None:
        super().__init__(row, name)
        self.row = row
        self.name = name


class _Same:
    """A mechanism that is equal to itself only, and hashed by identity."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.mechanism is other.mechanism

    def __hash__(self) -> int:
        return id(self.mechanism)


@lru_cache(maxsize=64)
def _channel(same: _Same, attributes: tuple[str, ...]) -> Channel | PublishedChannel:
    # Many tables use one channel: its maps and their powers are computed once.
    mechanism = same.mechanism
    if mechanism.forms is None:
        return Channel(mechanism, attributes)
    plain = Channel(mechanism.under(0), attributes)
    if not {*plain.positions} & {*mechanism.positions_under_forms}:
        return plain  # none of them is under forms
    return PublishedChannel(mechanism, attributes)


def channel_of(
    mechanism: Mechanism, attributes: Sequence[str], counts: NDArray[np.float64] | None = None
) -> "Channel | PublishedChannel":
    """Return the channel on some attributes.

    ``attributes``: names, in the order of the table's axes.
    """
    channel = _channel(_Same(mechanism), tuple(attributes))
    if not isinstance(channel, PublishedChannel) or counts is None:
        return channel
    return channel.of_rows(counts) if counts.shape == channel.n_outputs else channel
