"""Published forms: which questions a person is asked is drawn, and released with the answers.

A form asks some of the attributes and answers by a pattern table on them; the others are not asked,
and nothing of them leaves the row. The form is drawn without looking at the record. A form may ask
so many of a class of attributes that are treated alike; which of them is then drawn for every row,
uniformly, and seen from what is filled.

The proofs are in docs/proofs/forms.md, section 1.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import comb, lcm, prod
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import (
    Law,
    LawSampler,
    PatternLaw,
    Ratio,
    integer_weights,
    integers_from_plain,
    largest,
)
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import code_type, rotate
from deniable.laws.plain import Bits, Count, HexInteger, PlainLaw
from deniable.randomness import BitSource, ExactCategorical

_NOTHING: Ratio = (1, 1)

DEFAULT_COLUMN = "form"


class Draw(NamedTuple):
    """So many of some attributes."""

    members: tuple[int, ...]
    """Their places in the block, ascending; all with as many categories."""
    asked: int
    """How many of them are asked, fewer than there are."""


@dataclass(frozen=True)
class Form(PatternLaw):
    """What is done to the record of someone who gets one form.

    As a pattern law it answers at random, whatever the record, where it does not ask.

    Args:
        n_categories: of all attributes of the block, shape (k,).
        asked: places in the block of those that it asks of everybody, ascending.
        table: how what is asked is randomized: first those, then those drawn, which it treats
            alike.
        drawn: attributes of which some are asked, drawn for every row; none twice.

    Raises:
        InputError: if the places are not in order, something is asked twice, or the table is for
            others or does not treat alike what is drawn.

    >>> table = PatternTable.from_probabilities((2,), np.array([0.75, 0.25]))
    >>> form = Form((3, 2), (1,), table)
    >>> form.attribute_levels()[0], form.eigenvalues((0, 1)).tolist()
    (((1, 1),), [[1.0, 0.5], [0.0, 0.0]])
    """

    family: ClassVar[str] = "form"

    n_categories: tuple[int, ...]
    asked: tuple[int, ...]
    table: PatternTable
    drawn: tuple[Draw, ...] = ()

    def __post_init__(self) -> None:
        everyone = list(range(len(self.n_categories)))
        named = [*self.asked, *(i for draw in self.drawn for i in draw.members)]
        in_order = all(
            list(places) == sorted(set(places))
            for places in (self.asked, *(draw.members for draw in self.drawn))
        )
        if not in_order or len(set(named)) < len(named) or not set(named) <= set(everyone):
            raise InputError("a form needs the attributes that it asks, each once, in their order")
        if any(not 0 < draw.asked < len(draw.members) for draw in self.drawn):
            raise InputError("a form asks at least one, and not all, of those that it draws from")
        sizes = [self.n_categories[i] for i in self.asked]
        for draw in self.drawn:
            sizes += [self.n_categories[draw.members[0]]] * draw.asked
        if self.table.n_categories != tuple(sizes) or any(
            len({self.n_categories[i] for i in draw.members}) > 1 for draw in self.drawn
        ):
            raise InputError("a form's table is for attributes with other categories")
        weights = np.array(self.table.weights, dtype=object).reshape((2,) * len(sizes))
        for start, draw in self.starts():
            for axis in range(start, start + draw.asked - 1):
                if not np.array_equal(weights, np.swapaxes(weights, axis, axis + 1)):
                    raise InputError("a form's table does not treat alike those that are drawn")

    def starts(self) -> Iterator[tuple[int, Draw]]:
        """Yield the draws with the places in the table where they start."""
        start = len(self.asked)
        for draw in self.drawn:
            yield start, draw
            start += draw.asked

    def asked_of(self, places: Sequence[int]) -> list[int]:
        """Return the places in the table of those of some attributes that are asked, of those drawn
        as many as can be."""
        within = [self.asked.index(i) for i in places if i in self.asked]
        for start, draw in self.starts():
            most = min(draw.asked, sum(i in draw.members for i in places))
            within += range(start, start + most)
        return within

    def variants(self, places: Sequence[int]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield which of some attributes are asked, in their order, and the probability of it."""
        fixed = [i for i in places if i in self.asked]
        options: list[list[tuple[tuple[int, ...], float]]] = []
        for draw in self.drawn:
            inside = [i for i in places if i in draw.members]
            rest, ways = len(draw.members) - len(inside), comb(len(draw.members), draw.asked)
            options.append(
                [
                    (chosen, comb(rest, draw.asked - n) / ways)
                    for n in range(min(len(inside), draw.asked) + 1)
                    for chosen in combinations(inside, n)
                    if draw.asked - n <= rest
                ]
            )
        for choice in product(*options):
            chosen = {*fixed, *(i for part, _ in choice for i in part)}
            yield tuple(i for i in places if i in chosen), prod(p for _, p in choice)

    def given(self, asked: Sequence[int]) -> "Form":
        """Return what is done where these attributes, of those that somebody looks at, are asked;
        the form itself if it draws nothing."""
        if not self.drawn:
            return self
        ordered = sorted(asked)
        within = {i: self.asked.index(i) for i in ordered if i in self.asked}
        for start, draw in self.starts():
            within |= zip(
                (i for i in ordered if i in draw.members),
                range(start, start + draw.asked),
                strict=False,
            )
        table = self.table.projected([within[i] for i in ordered])
        return Form(self.n_categories, tuple(ordered), table)

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        within = self.asked_of(range(len(self.n_categories)) if subset is None else subset)
        return self.table.record_level(within) if within else (_NOTHING,)

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        levels = self.table.given_rest_levels()
        asked = dict(zip(self.asked, levels, strict=False))
        for start, draw in self.starts():
            asked |= dict.fromkeys(draw.members, levels[start])
        return [asked.get(i, (_NOTHING,)) for i in range(len(self.n_categories))]

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        values = np.zeros((2,) * len(subset))
        for asked, probability in self.variants(subset):
            at = tuple(slice(None) if i in asked else 0 for i in subset)
            form = self.given(asked)
            places = [form.asked.index(i) for i in asked]
            values[at] += probability * form.table.eigenvalues(places)
        return values

    def told(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return the mean of φ(T)² over what is drawn, for every set T of the attributes in
        ``subset``, shape (2,)·m."""
        values = np.zeros((2,) * len(subset))
        for asked, probability in self.variants(subset):
            values += probability * self.given(asked).eigenvalues(subset) ** 2
        return values

    def sampler(self) -> "FormsSampler":
        """Prepare what draws as if everybody got this form."""
        return PublishedForms(self.n_categories, 0, (1,), (self,)).sampler()

    def digest(self) -> str:
        """Return the SHA-256 of the form's integers, in hexadecimal."""
        numbers = [*self.asked, self.table.bits, *self.table.weights]
        for draw in self.drawn:
            numbers += [draw.asked, *draw.members]
        return hashlib.sha256(" ".join(f"{number:x}" for number in numbers).encode()).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        table = self.table.to_plain()
        return {
            "asked": list(self.asked),
            "bits": table["bits"],
            "weights": table["weights"],
            "digest": self.digest(),
            **({"drawn": [draw._asdict() for draw in self.drawn]} if self.drawn else {}),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "Form":
        asked = plain["asked"]
        drawn = tuple(Draw(tuple(one["members"]), one["asked"]) for one in plain.get("drawn", ()))
        named = [*asked, *(i for draw in drawn for i in draw.members)]
        if not named or not all(i < len(n_categories) for i in named):
            raise InputError("a form of the mechanism should list the attributes that it asks")
        sizes = [n_categories[i] for i in asked]
        for draw in drawn:
            sizes += [n_categories[i] for i in draw.members[: draw.asked]]
        table = PatternTable.from_plain(plain, tuple(sizes))
        form = cls(n_categories, tuple(asked), table, drawn)
        if plain["digest"] != form.digest():
            raise InputError("the mechanism has been altered: a form's digest is not its table's")
        return form


class PlainDraw(msgspec.Struct, forbid_unknown_fields=True):
    """The record of a draw."""

    members: Annotated[list[Count], msgspec.Meta(min_length=2)]
    asked: Annotated[int, msgspec.Meta(gt=0)]


class PlainForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The record of a form: how often it is drawn, what it asks, and its table of patterns."""

    share: HexInteger
    asked: list[Count]
    bits: Bits
    weights: list[HexInteger]
    digest: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    drawn: list[PlainDraw] = []


class PlainPublishedForms(PlainLaw, tag="forms"):
    """The record of such a law."""

    column: Annotated[str, msgspec.Meta(min_length=1)]
    bits: Bits
    forms: list[PlainForm]


@dataclass(frozen=True)
class PublishedForms(Law):
    """A form is drawn with its share, whatever the record; its number is released.

    Args:
        n_categories: shape (k,).
        bits: width of the shares.
        shares: form c is drawn with probability ``shares[c] / 2**bits``.
        forms: what each form asks and does.
        column: the column of the release that holds the number of a row's form, from 1.

    Raises:
        InputError: if there is not one share for each form, a share is not positive, or they do not
            add up to 2^bits.

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
            raise InputError("a form asks at least one attribute")
        if any(form.n_categories != self.n_categories for form in self.forms):
            raise InputError("the forms are for other attributes than the mechanism")

    @classmethod
    def from_probabilities(
        cls,
        n_categories: Sequence[int],
        shares: Sequence[float],
        tables: Sequence[tuple[Sequence[int], NDArray[np.float64]]],
        column: str = DEFAULT_COLUMN,
        drawn: Sequence[Sequence[tuple[Sequence[int], int]]] | None = None,
    ) -> "PublishedForms":
        """Turn forms in floating point into integers.

        Args:
            n_categories: shape (k,).
            shares: of the forms.
            tables: per form the places that it asks of everybody, and the probability of every
                pattern of changed answers, shape (2,)·m, index 0 for kept.
            column: see the class.
            drawn: per form what is drawn besides: of which places, and how many; nothing if not
                given. Their axes come after those of the places that are always asked.
        """
        sizes = tuple(int(n) for n in n_categories)
        bits, weights = integer_weights(np.asarray(shares, dtype=np.float64))
        forms = []
        for (asked, probability), draws in zip(tables, drawn or [()] * len(tables), strict=True):
            kinds = tuple(Draw(tuple(members), count) for members, count in draws)
            of_table = [sizes[i] for i in asked]
            for draw in kinds:
                of_table += [sizes[draw.members[0]]] * draw.asked
            table = PatternTable.from_probabilities(of_table, probability)
            if kinds:
                table = _alike(table, len(asked), kinds)
            forms.append(Form(sizes, tuple(asked), table, kinds))
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
        """NaN: an answer that was not asked for is neither kept nor changed."""
        return np.full(len(self.n_categories), np.nan)

    def information(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return I_T = Σ_c w_c φ_c(T)² for every set T of the attributes in ``subset``, shape
        (2,)·m: what a row tells of an interaction, 1 if it were released as it is."""
        told = np.zeros((2,) * len(subset))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            told += share * form.told(subset)
        return told

    def pair_information(self) -> NDArray[np.float64]:
        """Return I_T of every pair of attributes, shape (k, k), with those of single attributes on
        the diagonal."""
        k = len(self.n_categories)
        told = np.zeros((k, k))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            m = len(form.table.n_categories)
            place = 1 << np.arange(m)[::-1]
            values = form.table.eigenvalues(range(m)).ravel()[place[:, None] | place]
            # What is drawn from as one kind each: its places, how many are asked, and an axis.
            kinds: list[tuple[tuple[int, ...], int, int]]
            kinds = [((i,), 1, axis) for axis, i in enumerate(form.asked)]
            kinds += [(draw.members, draw.asked, start) for start, draw in form.starts()]
            for members, count, axis in kinds:
                for others, other_count, other_axis in kinds:
                    both = count * other_count / (len(members) * len(others))
                    if members == others and len(members) > 1:
                        both *= (count - 1) / count * len(members) / (len(members) - 1)
                        other_axis = axis + (count > 1)
                    told[np.ix_(members, others)] += share * both * values[axis, other_axis] ** 2
                    if members == others and len(members) > 1:
                        alone = count / len(members) * values[axis, axis] ** 2
                        told[members, members] += share * (
                            alone - both * values[axis, other_axis] ** 2
                        )
        return told

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
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "PublishedForms":
        listed = plain["forms"]
        shares = [one["share"] for one in listed]
        return cls(
            n_categories,
            plain["bits"],
            integers_from_plain(shares, "shares", len(listed)),
            tuple(Form.from_plain(one, n_categories) for one in listed),
            plain["column"],
        )


def _alike(table: PatternTable, start: int, draws: Sequence[Draw]) -> PatternTable:
    """Return a table that treats exactly alike what it nearly does; what is left over goes to the
    likelier of all kept and all changed."""
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
    """Rows as they are released under forms."""

    codes: list[NDArray[Any]]
    """One array per attribute; the number of its categories stands for "not asked"."""
    form: NDArray[Any]
    """Which form each row was drawn under, from 0."""


_KEPT, _CHANGED, _NOT_ASKED = range(3)


class FormsSampler(LawSampler):
    """Draws, for every row, a form together with which of its answers change, and then, attribute
    by attribute, another category for all who are asked it, used where it changes."""

    def __init__(self, law: PublishedForms) -> None:
        self.n_categories = law.n_categories
        widest = max(form.table.bits for form in law.forms)
        self._outcome = ExactCategorical(
            [
                share * weight << widest - form.table.bits
                for share, form in zip(law.shares, law.forms, strict=True)
                for weight in form.table.weights
            ]
        )
        sizes = [len(form.table.weights) for form in law.forms]
        self._form = np.repeat(np.arange(len(sizes), dtype=code_type(len(sizes))), sizes)
        self._done = np.full((len(law.n_categories), sum(sizes)), _NOT_ASKED, dtype=np.uint8)
        start = 0
        self._draws: list[tuple[int, int, tuple[tuple[int, Draw], ...]]] = []
        for number, (form, size) in enumerate(zip(law.forms, sizes, strict=True)):
            last = len(form.table.n_categories) - 1
            for axis, place in enumerate(form.asked):
                self._done[place, start : start + size] = np.arange(size) >> last - axis & 1
            if form.drawn:
                bits = tuple((last - axis, draw) for axis, draw in form.starts())
                self._draws.append((number, start, bits))
            start += size
        self._always = (self._done != _NOT_ASKED).any(axis=1)
        self._left = {
            n: ExactCategorical([1] * n)
            for _, _, draws in self._draws
            for _, draw in draws
            for n in range(len(draw.members) - draw.asked + 1, len(draw.members) + 1)
        }
        uniform = {n: ExactCategorical([1] * (n - 1)) for n in set(law.n_categories)}
        self._others = [uniform[n] for n in law.n_categories]

    def draws(self, law: PublishedForms) -> bool:
        """Return whether the forms, their shares and their tables are the law's."""
        outcomes, done = [], []
        for number, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            for changed, weight in zip(
                product((_KEPT, _CHANGED), repeat=len(form.table.n_categories)),
                form.table.weights,
                strict=True,
            ):
                outcomes.append((number, Fraction(share * weight, 1 << form.table.bits)))
                answers = dict(zip(form.asked, changed, strict=False))
                done.append([answers.get(i, _NOT_ASKED) for i in range(len(law.n_categories))])
        common = lcm(*(chance.denominator for _, chance in outcomes))
        return (
            self._form.tolist() == [number for number, _ in outcomes]
            and [(number, [draw for _, draw in draws]) for number, _, draws in self._draws]
            == [(number, [*form.drawn]) for number, form in enumerate(law.forms) if form.drawn]
            and all(left.draws_by([1] * n) for n, left in self._left.items())
            and self._done.T.tolist() == done
            and self._outcome.draws_by([int(chance * common) for _, chance in outcomes])
            and all(
                others.draws_by([1] * (n - 1))
                for others, n in zip(self._others, law.n_categories, strict=True)
            )
        )

    def draw(self, columns: Sequence[NDArray[Any]], source: BitSource) -> Drawn:
        """Return the randomized codes and the forms of the rows."""
        outcome = self._outcome.draw(len(columns[0]), source).astype(np.intp)
        form = self._form.take(outcome, mode="clip")
        among = self._among(form, outcome, source)
        codes = []
        for place, (column, n, others) in enumerate(
            zip(columns, self.n_categories, self._others, strict=True)
        ):
            rows, changed = among[place] if among else (outcome[:0], self._done[place, :0])
            if self._always[place]:
                of_row = self._done[place].take(outcome, mode="clip")
                always = np.flatnonzero(of_row != _NOT_ASKED)
                changed = np.concatenate([of_row.take(always, mode="clip"), changed])
                rows = np.concatenate([always, rows])
            shift = others.draw(len(rows), source)
            shift += 1
            shift *= changed
            released = np.full(len(column), n, dtype=code_type(n))
            released[rows] = rotate(column.take(rows, mode="clip"), shift, n)
            codes.append(released)
        return Drawn(codes, form)

    def _among(
        self, form: NDArray[Any], outcome: NDArray[np.intp], source: BitSource
    ) -> list[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
        """Return, per attribute, the rows that it was drawn for and whether its answer changes;
        nothing if no form draws."""
        rows: list[NDArray[np.intp]] = []
        places: list[NDArray[np.intp]] = []
        changed: list[NDArray[np.uint8]] = []
        for number, start, draws in self._draws:
            own = np.flatnonzero(form == number)
            for bit, draw in draws:
                chosen = self._chosen(len(own), draw, source)
                for slot in range(draw.asked):
                    rows.append(own)
                    places.append(chosen[:, slot])
                    changed.append((outcome[own] - start >> bit - slot & 1).astype(np.uint8))
        if not rows:
            return []
        row, place = np.concatenate(rows), np.concatenate(places)
        change = np.concatenate(changed)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=len(self.n_categories)))[:-1]
        return list(zip(np.split(row[order], ends), np.split(change[order], ends), strict=True))

    def _chosen(self, count: int, draw: Draw, source: BitSource) -> NDArray[np.intp]:
        """Return which of the members are asked, shape (count, asked): every set as likely."""
        chosen = np.empty((count, 0), dtype=np.intp)
        for taken in range(draw.asked):
            # The r-th of those that are left: it moves up past each taken one at or below it.
            place = self._left[len(draw.members) - taken].draw(count, source).astype(np.intp)
            for other in np.sort(chosen, axis=1).T:
                place += place >= other
            chosen = np.column_stack([chosen, place])
        return np.asarray(np.array(draw.members)[chosen])

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, and the forms of the rows as one array more."""
        drawn = self.draw(columns, source)
        return [*drawn.codes, drawn.form]
