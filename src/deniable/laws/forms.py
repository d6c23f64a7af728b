"""Published forms: the questions of a row are drawn, and released with the answers.

A form includes some of the attributes and answers by a pattern table on them; no value of the
others leaves the row. The form is drawn independently of the record. A form may include a number of
attributes of a class that is treated alike; these are then drawn uniformly for every row and seen
from the filled cells. An answer may name a set of categories instead of one
(:mod:`deniable.laws.set_answers`); the attribute counts as unchanged if its category is in the set.

The proofs are in docs/proofs/forms.md, sections 1 and 4.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product, repeat
from math import lcm
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.count_table import CountTable
from deniable.laws.form import Draw, Form
from deniable.laws.law import (
    Law,
    LawSampler,
    Ratio,
    integer_weights,
    integers_from_plain,
    largest,
)
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import code_type, rotate
from deniable.laws.plain import Bits, Count, HexInteger, PlainLaw
from deniable.laws.set_answers import (
    CHANGED,
    HIT,
    KEPT,
    MISSED,
    PlainSetAnswers,
    SetAnswers,
    SetSampler,
)
from deniable.randomness import BitSource, ExactCategorical, uniform_below

DEFAULT_COLUMN = "form"


class PlainDraw(msgspec.Struct, forbid_unknown_fields=True):
    """The record of a draw."""

    members: Annotated[list[Count], msgspec.Meta(min_length=2)]
    asked: Annotated[int, msgspec.Meta(gt=0)]


class PlainForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The record of a form: its share, its attributes, and its table of patterns: 2^m
    weights for m answers, or m + 1, by the number of changes."""

    share: HexInteger
    asked: list[Count]
    bits: Bits
    weights: list[HexInteger]
    digest: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    drawn: list[PlainDraw] = []
    sets: list[Count] = []


class PlainPublishedForms(PlainLaw, tag="forms", omit_defaults=True):
    """The record of the law."""

    column: Annotated[str, msgspec.Meta(min_length=1)]
    bits: Bits
    forms: list[PlainForm]
    sets: list[PlainSetAnswers] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class PublishedForms(Law):
    """A form is drawn with its share, independently of the record; its number is released.

    ``n_categories``: shape (k,). ``shares``: form c is drawn with probability ``shares[c] /
    2**bits``. ``column``: the column of the release that holds the number of a row's form, from 1.

    >>> def asks(place, keep):
    ...     table = PatternTable.from_probabilities((2,), np.array([keep, 1 - keep]))
    ...     return Form((2, 2), (place,), table)
    >>> law = PublishedForms((2, 2), 1, (1, 1), (asks(0, 0.75), asks(1, 0.875)))
    >>> law.record_level() == ((7 << 61, 1 << 61),), law.information((0,)).tolist()
    (True, [1.0, 0.125])
    """

    family: ClassVar[str] = "forms"
    Plain = PlainPublishedForms

    n_categories: tuple[int, ...]
    bits: int
    shares: tuple[int, ...]
    forms: tuple[Form, ...]
    column: str = DEFAULT_COLUMN

    def __post_init__(self) -> None:
        if not self.forms or len(self.forms) != len(self.shares):
            raise InputError("there must be a form, and a share for each")
        if min(self.shares) <= 0 or sum(self.shares) != 1 << self.bits:
            raise InputError("the shares of the forms must be positive and add up to 2^bits")
        if not all(form.asked or form.drawn for form in self.forms):
            raise InputError("a form includes at least one attribute")
        if any(form.n_categories != self.n_categories for form in self.forms):
            raise InputError("the forms are for other attributes than the mechanism")
        if len({sets for form in self.forms for sets in form.sets}) > len(self.sets):
            raise InputError("all forms name the sets of an attribute by the same lists")

    @cached_property
    def sets(self) -> dict[int, SetAnswers]:
        """The sets that answers can name, by the places of the attributes."""
        listed = {place: sets for form in self.forms for place, sets in form.sets}
        return {place: listed[place] for place in sorted(listed)}

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """How many values each released attribute can take, shape (k,): its categories, and after
        them the sets that its answers can name."""
        return tuple(
            n + (self.sets[i].n_answers if i in self.sets else 0)
            for i, n in enumerate(self.n_categories)
        )

    @classmethod
    def from_probabilities(
        cls,
        n_categories: Sequence[int],
        shares: Sequence[float],
        tables: Sequence[tuple[Sequence[int], NDArray[np.float64]]],
        column: str = DEFAULT_COLUMN,
        drawn: Sequence[Sequence[tuple[Sequence[int], int]]] | None = None,
        sets: Sequence[Mapping[int, SetAnswers]] | None = None,
    ) -> "PublishedForms":
        """Turn forms in floating point into integers.

        ``n_categories``: shape (k,). ``tables``: per form the places that it always includes, and
        the probability of every pattern of answers, shape (2,)·m, index 1 for changed; or the
        density of answers by the number of changes, shape (m + 1,), m > 1. ``drawn``: per form the
        draws, as members and number; by default none. Their axes follow those of the places that
        are always included.
        """
        sizes = tuple(int(n) for n in n_categories)
        bits, weights = integer_weights(np.asarray(shares, dtype=np.float64))
        forms = []
        for (asked, probability), draws, broad in zip(
            tables, drawn or [()] * len(tables), sets or [{}] * len(tables), strict=True
        ):
            kinds = tuple(Draw(tuple(members), count) for members, count in draws)
            of_table = [sizes[i] for i in asked]
            for draw in kinds:
                of_table += [sizes[draw.members[0]]] * draw.asked
            table: PatternTable | CountTable
            if probability.ndim < len(of_table):
                table = CountTable.of_counts(of_table, probability.tolist())
            else:
                table = PatternTable.from_probabilities(of_table, probability)
                table = _alike(table, len(asked), kinds) if kinds else table
            forms.append(Form.of(sizes, tuple(asked), table, kinds, tuple(sorted(broad.items()))))
        return cls(sizes, bits, weights, tuple(forms), column)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The shares of the forms as numbers, shape (forms,)."""
        return np.array([share / (1 << self.bits) for share in self.shares])

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        # The form is seen, so the least favourable one counts.
        return (largest([form.record_level(subset)[0] for form in self.forms]),)

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        levels = [form.given_rest_levels() for form in self.forms]
        return [(largest([level[0] for level in of]),) for of in zip(*levels, strict=True)]

    def keep_probabilities(self) -> NDArray[np.float64]:
        """NaN: an answer outside the form is neither unchanged nor changed."""
        return np.full(len(self.n_categories), np.nan)

    def information(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return I_T = Σ_c w_c φ_c(T)² for every set T of the attributes in ``subset``, shape
        (2,)·m: the information of a row on an interaction, 1 if it is released unchanged."""
        information = np.zeros((2,) * len(subset))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            information += share * form.information(subset)
        return information

    def pair_information(self) -> NDArray[np.float64]:
        """Return I_T of every pair of attributes, shape (k, k), with those of single attributes on
        the diagonal."""
        k = len(self.n_categories)
        information = np.zeros((k, k))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            values = form.table.pair_eigenvalues()
            m = len(values)
            s, n = np.array(form.breadths()), np.array(form.table.n_categories)
            shown = np.sqrt((n - s) / (s * (n - 1)))
            values *= np.where(np.eye(m) > 0, shown, np.outer(shown, shown))
            told, m = share * values**2, len(form.asked)
            information[np.ix_(form.asked, form.asked)] += told[:m, :m]
            for start, draw in form.starts():
                members, part = draw.members, draw.asked / len(draw.members)
                information[np.ix_(form.asked, members)] += part * told[:m, [start]]
                information[np.ix_(members, form.asked)] += part * told[[start], :m]
                for other_start, other in form.starts():
                    both = part * other.asked / len(other.members)
                    if other == draw:
                        both = part * (draw.asked - 1) / (len(members) - 1)
                        other_start += draw.asked > 1
                    of_pair = both * told[start, other_start]
                    information[np.ix_(members, other.members)] += of_pair
                    if other == draw:
                        information[members, members] += part * told[start, start] - of_pair
        return information

    def sampler(self) -> "FormsSampler":
        return FormsSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "column": self.column,
            "bits": self.bits,
            "forms": [
                {"share": f"{share:x}", **form.to_plain()}
                for share, form in zip(self.shares, self.forms, strict=True)
            ],
            **({"sets": self._plain_sets()} if self.sets else {}),
        }

    def _plain_sets(self) -> list[dict[str, Any]]:
        alike: dict[SetAnswers, list[int]] = {}
        for place, sets in self.sets.items():
            alike.setdefault(sets, []).append(place)
        return [sets.to_plain(places) for sets, places in alike.items()]

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "PublishedForms":
        listed = plain["forms"]
        sets: dict[int, SetAnswers] = {}
        for one in plain.get("sets", ()):
            places = one["attributes"]
            fresh = {place for place in places if place < len(n_categories)} - sets.keys()
            if len(fresh) < len(places):
                raise InputError("the mechanism lists sets of no attribute, or twice of one")
            if len({n_categories[place] for place in places}) != 1:
                raise InputError("the mechanism's sets are of attributes with other categories")
            sets |= dict.fromkeys(places, SetAnswers.from_plain(one, n_categories[places[0]]))
        shares = [one["share"] for one in listed]
        return cls(
            n_categories,
            plain["bits"],
            integers_from_plain(shares, "shares", len(listed)),
            tuple(Form.from_plain(one, n_categories, sets) for one in listed),
            plain["column"],
        )


def _alike(table: PatternTable, start: int, draws: Sequence[Draw]) -> PatternTable:
    """Return an exactly symmetric table from a nearly symmetric one; the remainder is added to the
    likelier of all unchanged and all changed."""
    m = len(table.n_categories)
    patterns = np.arange(1 << m)[:, None] >> np.arange(m)[::-1] & 1
    for draw in draws:
        patterns[:, start : start + draw.asked].sort(axis=1)
        start += draw.asked
    standing = patterns @ (1 << np.arange(m)[::-1])
    weights = [table.weights[int(one)] for one in standing]
    weights[0 if weights[0] >= weights[-1] else -1] += (1 << table.bits) - sum(weights)
    return PatternTable(table.n_categories, table.bits, tuple(weights))


class Drawn(NamedTuple):
    """Released rows under forms."""

    codes: list[NDArray[Any]]
    """One array per attribute; the number of its released values means "not in the form"."""
    form: NDArray[Any]
    """Which form each row was drawn under, from 0."""


_NOT_ASKED = 4
"""Outcome of an answer outside the form, in addition to those of :mod:`set_answers`."""

_SORT = 3.5
_LOOK_UP, _BY_CELL, _BY_BINARY_CELL = 0.3, 5.3, 3.8
_ALL, _ALL_BINARY = 2.4, 0.9
_FIND, _BY_CHANGE = 2.1, 4.0
"""Nanoseconds per row, as measured: to sort the rows by form; to look up those with an attribute,
and per such row; to draw for all rows; to find the changed rows, and per such row. The faster way
is taken: 0.6 of the time for Adult's columns at ε = 4, 0.2 for three attributes."""


class FormsSampler(LawSampler):
    """Draws for every row a form together with the changes of its answers, and then, attribute
    by attribute, another category for all rows with that attribute, used where it changes.

    Attributes that many forms include are computed for all rows at a stretch, others only for the
    rows whose form includes them, which requires sorting the rows by form.
    """

    def __init__(self, law: PublishedForms) -> None:
        self.n_categories = law.n_categories
        self._n_outputs = law.n_outputs
        widest = max(form.table.bits for form in law.forms)
        self._outcome = ExactCategorical(
            [
                share * weight << widest - form.table.bits
                for share, form in zip(law.shares, law.forms, strict=True)
                for weight in form.table.outcomes()
            ]
        )
        sizes = [len(form.table.weights) for form in law.forms]
        self._form = np.repeat(np.arange(len(sizes), dtype=code_type(len(sizes))), sizes)
        self._starts = np.cumsum(sizes)[:-1]
        self._done = np.full((len(law.n_categories), sum(sizes)), _NOT_ASKED, dtype=np.uint8)
        start = 0
        self._draws: list[tuple[int, int, tuple[tuple[int, Draw, int], ...]]] = []
        self._counted: list[tuple[int, int, Draw]] = []
        for number, (form, size) in enumerate(zip(law.forms, sizes, strict=True)):
            last = len(form.table.n_categories) - 1
            if form.counted:
                self._counted.append((number, start, form.counted))
                start += size
                continue
            for axis, place in enumerate(form.asked):
                kept = KEPT if form.sets_of(place) is None else HIT
                self._done[place, start : start + size] = kept + (
                    np.arange(size) >> last - axis & 1
                )
            if form.drawn:
                bits = tuple(
                    (last - axis, draw, KEPT if form.sets_of(draw.members[0]) is None else HIT)
                    for axis, draw in form.starts()
                )
                self._draws.append((number, start, bits))
            start += size
        asking = [() if form.counted else form.asked for form in law.forms]
        self._asking = [
            [number for number, asked in enumerate(asking) if place in asked]
            for place in range(len(law.n_categories))
        ]
        self._for_all = self._ways(law)
        alike = {sets: SetSampler(sets) for sets in law.sets.values()}
        self._sets = {place: alike[sets] for place, sets in law.sets.items()}

    def _ways(self, law: PublishedForms) -> dict[int, bool]:
        """Return the attributes that are computed for all rows, and whether with a draw for each;
        for the others the rows that include them are looked up."""
        elsewhere = {*law.sets}
        for form in law.forms:
            elsewhere |= {i for draw in (*form.drawn, form.counted) if draw for i in draw.members}
        chance = np.array(
            [
                share * (weight / (1 << form.table.bits))
                for share, form in zip(law.probabilities, law.forms, strict=True)
                for weight in form.table.outcomes()
            ]
        )
        ways, extra = {}, {}
        for place, (n, done) in enumerate(zip(law.n_categories, self._done, strict=True)):
            asked = _BY_BINARY_CELL if n == 2 else _BY_CELL
            looked_up = _LOOK_UP + asked * chance[done != _NOT_ASKED].sum()
            drawn = _ALL_BINARY if n == 2 else _ALL
            found = _FIND + _BY_CHANGE * chance[done == CHANGED].sum()
            if place not in elsewhere:
                ways[place] = bool(drawn <= found)
                extra[place] = min(drawn, found) - looked_up
        if not elsewhere and sum(extra.values()) < _SORT:
            return ways
        return {place: way for place, way in ways.items() if extra[place] < 0}

    def draws(self, law: PublishedForms) -> bool:
        """Whether the forms, their shares and their tables are the law's."""
        outcomes, done = [], []
        for number, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            whether = [(KEPT, CHANGED) if s == 1 else (HIT, MISSED) for s in form.breadths()]
            patterns: Iterable[tuple[int, ...]] = product(*whether)
            if form.counted:
                patterns = repeat((), len(form.table.weights))
            for changed, weight in zip(patterns, form.table.outcomes(), strict=True):
                outcomes.append((number, Fraction(share * weight, 1 << form.table.bits)))
                answers = dict(zip(form.asked, changed, strict=False))
                done.append([answers.get(i, _NOT_ASKED) for i in range(len(law.n_categories))])
        common = lcm(*(chance.denominator for _, chance in outcomes))
        return (
            self._form.tolist() == [number for number, _ in outcomes]
            and [
                (number, [(draw, kept == HIT) for _, draw, kept in draws])
                for number, _, draws in self._draws
            ]
            == [
                (number, [(draw, draw.members[0] in dict(form.sets)) for draw in form.drawn])
                for number, form in enumerate(law.forms)
                if form.drawn and not form.counted
            ]
            and self._counted
            == [
                (number, [of for of, _ in outcomes].index(number), form.counted)
                for number, form in enumerate(law.forms)
                if form.counted
            ]
            and self._asking
            == [
                [
                    number
                    for number, form in enumerate(law.forms)
                    if place in form.asked and not form.counted
                ]
                for place in range(len(law.n_categories))
            ]
            and self._sets.keys() == law.sets.keys()
            and all(self._sets[place].draws(sets) for place, sets in law.sets.items())
            and self._done.T.tolist() == done
            and self._outcome.draws_by([int(chance * common) for _, chance in outcomes])
        )

    def draw(self, columns: Sequence[NDArray[Any]], source: BitSource) -> Drawn:
        """Return the randomized codes and the forms of the rows."""
        outcome = self._outcome.draw(len(columns[0]), source).astype(np.intp)
        form = self._form.take(outcome, mode="clip")
        if len(self._for_all) == len(columns):
            codes = [self._of_all(i, column, outcome, source) for i, column in enumerate(columns)]
            return Drawn(codes, form)
        order = np.argsort(form, kind="stable")
        by_form = outcome.take(order, mode="clip")
        ends = [0, *np.searchsorted(by_form, self._starts).tolist(), len(order)]
        rows_of = [order[start:end] for start, end in pairwise(ends)]
        outcomes_of = [by_form[start:end] for start, end in pairwise(ends)]
        among = self._among(rows_of, outcome, source)
        walks = [
            _Walk(rows_of[number], outcomes_of[number] - start, draw)
            for number, start, draw in self._counted
        ]
        codes = []
        for place, (column, n) in enumerate(zip(columns, self.n_categories, strict=True)):
            if place in self._for_all:
                codes.append(self._of_all(place, column, outcome, source))
                continue
            answers = [among[place]] if among else []
            if asking := self._asking[place]:
                drawn = np.concatenate([outcomes_of[number] for number in asking])
                given = np.concatenate([rows_of[number] for number in asking])
                answers.append((given, self._done[place].take(drawn, mode="clip")))
            answers += [walk.step(source) for walk in walks if place in walk.members]
            if len(answers) == 1:
                rows, done = answers[0]
            else:
                rows = np.concatenate([order[:0], *(of for of, _ in answers)])
                done = np.concatenate([self._done[place, :0], *(how for _, how in answers)])
            own = column.take(rows, mode="clip")
            kind = code_type(self._n_outputs[place])
            released = np.full(len(column), self._n_outputs[place], dtype=kind)
            if place in self._sets:
                released[rows] = self._sets[place].draw(own, done, source)
            else:
                released[rows] = _moved(own, done, n, source)
            codes.append(released)
        return Drawn(codes, form)

    def _of_all(
        self, place: int, column: NDArray[Any], outcome: NDArray[np.intp], source: BitSource
    ) -> NDArray[Any]:
        """Return an attribute's released codes, computed for all rows."""
        n = self.n_categories[place]
        done = self._done[place].take(outcome, mode="clip")
        if self._for_all[place]:
            released = _moved(column, done, n, source)
        else:
            released = column.astype(code_type(n))
            rows = np.flatnonzero(done == CHANGED)
            own = column.take(rows, mode="clip")
            released[rows] = _moved(own, np.ones(len(rows), np.uint8), n, source)
        # A code is below n, the code of rows without the attribute.
        np.maximum(released, (done >> 2) * released.dtype.type(n), out=released)
        return released

    def _among(
        self, rows_of: Sequence[NDArray[np.intp]], outcome: NDArray[np.intp], source: BitSource
    ) -> list[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
        """Return, per attribute, the rows that drew it and whether its answer changes; empty if no
        form draws."""
        rows: list[NDArray[np.intp]] = []
        places: list[NDArray[np.intp]] = []
        changed: list[NDArray[np.uint8]] = []
        for number, start, draws in self._draws:
            own = rows_of[number]
            for bit, draw, kept in draws:
                chosen = self._chosen(len(own), draw, source)
                for slot in range(draw.asked):
                    rows.append(own)
                    places.append(chosen[:, slot])
                    changed.append(
                        (kept + (outcome[own] - start >> bit - slot & 1)).astype(np.uint8)
                    )
        if not rows:
            return []
        row, place = np.concatenate(rows), np.concatenate(places)
        change = np.concatenate(changed)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=len(self.n_categories)))[:-1]
        return list(zip(np.split(row[order], ends), np.split(change[order], ends), strict=True))

    def _chosen(self, count: int, draw: Draw, source: BitSource) -> NDArray[np.intp]:
        """Return the drawn members, shape (count, asked): all sets are equally likely."""
        chosen = np.empty((count, 0), dtype=np.intp)
        for taken in range(draw.asked):
            # The r-th of the remaining ones: it moves up past each taken one at or below it.
            place = uniform_below(len(draw.members) - taken, count, source).astype(np.intp)
            for other in np.sort(chosen, axis=1).T:
                place += place >= other
            chosen = np.column_stack([chosen, place])
        return np.asarray(np.array(draw.members)[chosen])

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, and the forms of the rows as one array more."""
        drawn = self.draw(columns, source)
        return [*drawn.codes, drawn.form]


def _moved(codes: NDArray[Any], done: NDArray[np.uint8], n: int, source: BitSource) -> NDArray[Any]:
    """Return codes of n categories, with the changed ones replaced by another category."""
    shift = uniform_below(n - 1, len(codes), source)
    shift += 1
    shift *= done & 1
    return rotate(codes, shift, n)


class _Walk:
    """Passes through the attributes of a form's draw, given the number of changed answers: every
    choice of the included ones and of the changed ones is equally likely.

    ``changed``: number of changed answers of each row, shape (n,).
    """

    def __init__(self, rows: NDArray[np.intp], changed: NDArray[np.intp], draw: Draw) -> None:
        self.members = frozenset(draw.members)
        self._rows, self._left = rows, len(draw.members)
        self._all = draw.asked == len(draw.members)
        self._changed = changed.astype(np.uint16)
        self._asked = np.full(len(rows), draw.asked, dtype=np.uint16)

    def step(self, source: BitSource) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        """Return the rows that include the next attribute, and whether it is changed."""
        place = uniform_below(self._left, len(self._rows), source)
        self._left -= 1
        changed = place < self._changed
        self._changed -= changed
        if self._all:
            return self._rows, changed.view(np.uint8)
        asked = place < self._asked
        self._asked -= asked
        chosen = np.flatnonzero(asked)
        return self._rows[chosen], changed[chosen].view(np.uint8)
