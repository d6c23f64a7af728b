"""Published forms: which questions a person is asked is drawn, and released with the answers.

A form asks some of the attributes and answers by a pattern table on them; the others are not asked,
and nothing of them leaves the row. The form is drawn without looking at the record. A form may ask
so many of a class of attributes that are treated alike; which of them is then drawn for every row,
uniformly, and seen from what is filled. An answer may name a set of categories instead of one
(:mod:`deniable.laws.set_answers`); an attribute is then kept if its category is in the set.

The proofs are in docs/proofs/forms.md, sections 1 and 4.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product
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
from deniable.laws.set_answers import (
    CHANGED,
    HIT,
    KEPT,
    MISSED,
    PlainSetAnswers,
    SetAnswers,
    SetSampler,
)
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
class SetTable(PatternTable):
    """A pattern table of a form some of whose answers name sets: kept means that the category is in
    the set, and there are as many sets that hold it as s to a − s that do not.

    Args:
        breadths: s, how many categories each answer names, shape (k,).
    """

    breadths: tuple[int, ...] = ()

    def outputs(self, i: int) -> tuple[int, int]:
        breadth = self.breadths[i]
        return breadth, self.n_categories[i] - breadth

    def projected(self, subset: Sequence[int]) -> "SetTable":
        whole = super().projected(subset)
        return replace(whole, breadths=tuple(self.breadths[i] for i in subset))


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
        sets: of the attributes whose answers name sets, their places, ascending, and these sets;
            the table is then a :class:`SetTable`.

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
    sets: tuple[tuple[int, SetAnswers], ...] = ()

    @classmethod
    def of(
        cls,
        n_categories: tuple[int, ...],
        asked: tuple[int, ...],
        table: PatternTable,
        drawn: tuple[Draw, ...] = (),
        sets: tuple[tuple[int, SetAnswers], ...] = (),
    ) -> "Form":
        """Return a form some of whose answers may name sets, from a table of what is kept."""
        if sets:
            breadth = {place: each.breadth for place, each in sets}
            named = [*asked, *(i for draw in drawn for i in draw.members[: draw.asked])]
            breadths = tuple(breadth.get(i, 1) for i in named)
            table = SetTable(table.n_categories, table.bits, table.weights, breadths)
        return cls(n_categories, asked, table, drawn, sets)

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
        places = [i for i, _ in self.sets]
        if places != sorted(set(places)) or not set(places) <= set(named):
            raise InputError(
                "answers name sets of attributes that a form asks, each once, in order"
            )
        if any(sets.n_categories != self.n_categories[i] for i, sets in self.sets):
            raise InputError("the sets of a form's answers are of other categories")
        if isinstance(self.table, SetTable) != bool(self.sets) or (
            isinstance(self.table, SetTable) and self.table.breadths != self.breadths()
        ):
            raise InputError("a form's table is for answers of other breadths")
        if any(len({self.sets_of(i) for i in draw.members}) > 1 for draw in self.drawn):
            raise InputError("a form does not answer alike those that it draws from")
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

    def sets_of(self, place: int) -> SetAnswers | None:
        """Return the sets that answers to an attribute name; None if they name one category."""
        return self._sets.get(place)

    @cached_property
    def _sets(self) -> dict[int, SetAnswers]:
        return dict(self.sets)

    def breadths(self) -> tuple[int, ...]:
        """Return how many categories each answer names, by the places in the table."""
        named = [*self.asked]
        for draw in self.drawn:
            named += draw.members[: draw.asked]
        return tuple(1 if (sets := self.sets_of(i)) is None else sets.breadth for i in named)

    def shown(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return, for every set T of the attributes in ``subset``, shape (2,)·m, what of its
        deviations the answers show at certain hits: the product of :attr:`SetAnswers.told`."""
        values = np.ones(())
        for place in subset:
            sets = self.sets_of(place)
            values = np.multiply.outer(values, [1.0, 1.0 if sets is None else sets.told])
        return np.asarray(values)

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
        sets = tuple(each for each in self.sets if each[0] in within)
        if isinstance(table, SetTable) and not sets:
            table = PatternTable(table.n_categories, table.bits, table.weights)
        return Form(self.n_categories, tuple(ordered), table, sets=sets)

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
        """Return the mean over what is drawn of φ(T)², times what the answers show, for every set T
        of the attributes in ``subset``, shape (2,)·m."""
        values = np.zeros((2,) * len(subset))
        for asked, probability in self.variants(subset):
            values += probability * self.given(asked).eigenvalues(subset) ** 2
        return values * self.shown(subset)

    def sampler(self) -> "FormsSampler":
        """Prepare what draws as if everybody got this form."""
        return PublishedForms(self.n_categories, 0, (1,), (self,)).sampler()

    def digest(self) -> str:
        """Return the SHA-256 of the form's integers, in hexadecimal."""
        numbers = [*self.asked, self.table.bits, *self.table.weights]
        for draw in self.drawn:
            numbers += [draw.asked, *draw.members]
        for place, sets in self.sets:
            numbers += [place, *sets.numbers()]
        return hashlib.sha256(" ".join(f"{number:x}" for number in numbers).encode()).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        table = self.table.to_plain()
        return {
            "asked": list(self.asked),
            "bits": table["bits"],
            "weights": table["weights"],
            "digest": self.digest(),
            **({"drawn": [draw._asdict() for draw in self.drawn]} if self.drawn else {}),
            **({"sets": [place for place, _ in self.sets]} if self.sets else {}),
        }

    @classmethod
    def from_plain(
        cls,
        plain: Mapping[str, Any],
        n_categories: tuple[int, ...],
        sets: Mapping[int, SetAnswers] | None = None,
    ) -> "Form":
        """Rebuild a form.

        Args:
            plain: of the types of :class:`PlainForm`.
            n_categories: of all attributes of the block.
            sets: those that answers can name, by the places of the attributes.

        Raises:
            InputError: if the values do not describe a form.
        """
        asked = plain["asked"]
        drawn = tuple(Draw(tuple(one["members"]), one["asked"]) for one in plain.get("drawn", ()))
        named = [*asked, *(i for draw in drawn for i in draw.members)]
        if not named or not all(i < len(n_categories) for i in named):
            raise InputError("a form of the mechanism should list the attributes that it asks")
        sizes = [n_categories[i] for i in asked]
        for draw in drawn:
            sizes += [n_categories[i] for i in draw.members[: draw.asked]]
        table = PatternTable.from_plain(plain, tuple(sizes))
        broad = plain.get("sets", ())
        if missing := [place for place in broad if place not in (sets or {})]:
            raise InputError(f"the mechanism lists no sets of attribute {missing[0]}")
        named_sets = tuple((place, (sets or {})[place]) for place in broad)
        form = cls.of(n_categories, tuple(asked), table, drawn, named_sets)
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
    sets: list[Count] = []


class PlainPublishedForms(PlainLaw, tag="forms", omit_defaults=True):
    """The record of such a law."""

    column: Annotated[str, msgspec.Meta(min_length=1)]
    bits: Bits
    forms: list[PlainForm]
    sets: list[PlainSetAnswers] = msgspec.field(default_factory=list)


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

        Args:
            n_categories: shape (k,).
            shares: of the forms.
            tables: per form the places that it asks of everybody, and the probability of every
                pattern of changed answers, shape (2,)·m, index 0 for kept.
            column: see the class.
            drawn: per form what is drawn besides: of which places, and how many; nothing if not
                given. Their axes come after those of the places that are always asked.
            sets: per form what its answers name instead of one category, by the places of the
                attributes; nothing if not given.
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
            table = PatternTable.from_probabilities(of_table, probability)
            if kinds:
                table = _alike(table, len(asked), kinds)
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
        """NaN: an answer that was not asked for is neither kept nor changed."""
        return np.full(len(self.n_categories), np.nan)

    def information(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return I_T = Σ_c w_c φ_c(T)² for every set T of the attributes in ``subset``, shape
        (2,)·m: what a row tells of an interaction, 1 if it were released as it is."""
        information = np.zeros((2,) * len(subset))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            information += share * form.told(subset)
        return information

    def pair_information(self) -> NDArray[np.float64]:
        """Return I_T of every pair of attributes, shape (k, k), with those of single attributes on
        the diagonal."""
        k = len(self.n_categories)
        information = np.zeros((k, k))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            m = len(form.table.n_categories)
            place = 1 << np.arange(m)[::-1]
            values = form.table.eigenvalues(range(m)).ravel()[place[:, None] | place]
            s, n = np.array(form.breadths()), np.array(form.table.n_categories)
            shown = np.sqrt((n - s) / (s * (n - 1)))
            values *= np.where(np.eye(m) > 0, shown, np.outer(shown, shown))
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
                    information[np.ix_(members, others)] += (
                        share * both * values[axis, other_axis] ** 2
                    )
                    if members == others and len(members) > 1:
                        alone = count / len(members) * values[axis, axis] ** 2
                        information[members, members] += share * (
                            alone - both * values[axis, other_axis] ** 2
                        )
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
    """One array per attribute; the number of its released values stands for "not asked"."""
    form: NDArray[Any]
    """Which form each row was drawn under, from 0."""


_NOT_ASKED = 4
"""What is done to an answer, besides what is done to those asked for."""

_MOSTLY = 0.4
"""Share of people above which an attribute is worked out for all rows: less than half the work of a
row that is looked up."""

_MOSTLY_BINARY = 0.2
"""The same with two categories, of which the other one needs no drawing."""


class FormsSampler(LawSampler):
    """Draws, for every row, a form together with which of its answers change, and then, attribute
    by attribute, another category for all who are asked it, used where it changes.

    Of an attribute that most forms ask, all rows are worked through at a stretch, drawn for whether
    they are asked or not; of the others only the rows of the forms that ask it, which are sorted by
    form for that.
    """

    def __init__(self, law: PublishedForms) -> None:
        self.n_categories = law.n_categories
        self._n_outputs = law.n_outputs
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
        self._starts = np.cumsum(sizes)[:-1]
        self._done = np.full((len(law.n_categories), sum(sizes)), _NOT_ASKED, dtype=np.uint8)
        start = 0
        self._draws: list[tuple[int, int, tuple[tuple[int, Draw, int], ...]]] = []
        for number, (form, size) in enumerate(zip(law.forms, sizes, strict=True)):
            last = len(form.table.n_categories) - 1
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
        asking = [[*form.asked] for form in law.forms]
        self._asking = [
            [number for number, asked in enumerate(asking) if place in asked]
            for place in range(len(law.n_categories))
        ]
        self._mostly = [
            place not in law.sets
            and not any(place in draw.members for form in law.forms for draw in form.drawn)
            and law.probabilities[forms].sum() > (_MOSTLY_BINARY if n == 2 else _MOSTLY)
            for place, (n, forms) in enumerate(zip(law.n_categories, self._asking, strict=True))
        ]
        self._left = {
            n: ExactCategorical([1] * n)
            for _, _, draws in self._draws
            for _, draw, _ in draws
            for n in range(len(draw.members) - draw.asked + 1, len(draw.members) + 1)
        }
        uniform = {n: ExactCategorical([1] * (n - 1)) for n in set(law.n_categories)}
        self._others = [uniform[n] for n in law.n_categories]
        alike = {sets: SetSampler(sets) for sets in law.sets.values()}
        self._sets = {place: alike[sets] for place, sets in law.sets.items()}

    def draws(self, law: PublishedForms) -> bool:
        """Return whether the forms, their shares and their tables are the law's."""
        outcomes, done = [], []
        for number, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            whether = [(KEPT, CHANGED) if s == 1 else (HIT, MISSED) for s in form.breadths()]
            for changed, weight in zip(product(*whether), form.table.weights, strict=True):
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
                if form.drawn
            ]
            and self._asking
            == [
                [number for number, form in enumerate(law.forms) if place in form.asked]
                for place in range(len(law.n_categories))
            ]
            and self._sets.keys() == law.sets.keys()
            and all(self._sets[place].draws(sets) for place, sets in law.sets.items())
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
        order = np.argsort(form, kind="stable")
        by_form = outcome.take(order, mode="clip")
        ends = [0, *np.searchsorted(by_form, self._starts).tolist(), len(order)]
        rows_of = [order[start:end] for start, end in pairwise(ends)]
        outcomes_of = [by_form[start:end] for start, end in pairwise(ends)]
        among = self._among(rows_of, outcome, source)
        codes = []
        for place, (column, n, others) in enumerate(
            zip(columns, self.n_categories, self._others, strict=True)
        ):
            if self._mostly[place]:
                codes.append(self._of_all(place, column, outcome, source))
                continue
            rows, done = among[place] if among else (outcome[:0], self._done[place, :0])
            if asking := self._asking[place]:
                drawn = np.concatenate([outcomes_of[number] for number in asking])
                given = self._done[place].take(drawn, mode="clip")
                done = np.concatenate([given, done]) if among else given
                rows = np.concatenate([*(rows_of[number] for number in asking), rows])
            own = column.take(rows, mode="clip")
            kind = code_type(self._n_outputs[place])
            released = np.full(len(column), self._n_outputs[place], dtype=kind)
            if place in self._sets:
                released[rows] = self._sets[place].draw(own, done, source)
            else:
                released[rows] = self._other(own, done, n, others, source)
            codes.append(released)
        return Drawn(codes, form)

    def _of_all(
        self, place: int, column: NDArray[Any], outcome: NDArray[np.intp], source: BitSource
    ) -> NDArray[Any]:
        """Return an attribute's released codes, worked out for all rows."""
        n = self.n_categories[place]
        done = self._done[place].take(outcome, mode="clip")
        released = self._other(column, done, n, self._others[place], source)
        # A code is below n, the code of those who are not asked.
        np.maximum(released, (done >> 2) * released.dtype.type(n), out=released)
        return released

    @staticmethod
    def _other(
        codes: NDArray[Any],
        done: NDArray[np.uint8],
        n: int,
        others: ExactCategorical,
        source: BitSource,
    ) -> NDArray[Any]:
        """Return the codes, another category in place of those that are changed."""
        shift = others.draw(len(codes), source)
        shift += 1
        shift *= done & 1
        return rotate(codes, shift, n)

    def _among(
        self, rows_of: Sequence[NDArray[np.intp]], outcome: NDArray[np.intp], source: BitSource
    ) -> list[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
        """Return, per attribute, the rows that it was drawn for and whether its answer changes;
        nothing if no form draws."""
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
