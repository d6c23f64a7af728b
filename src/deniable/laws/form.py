"""One form: its attributes, and the randomization of their answers.

See :mod:`deniable.laws.forms`, and docs/proofs/forms.md, sections 1 and 4.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.count_table import CountTable
from deniable.laws.law import LawSampler, PatternLaw, Ratio
from deniable.laws.pattern_table import PatternTable
from deniable.laws.set_answers import SetAnswers

_NOTHING: Ratio = (1, 1)


class Draw(NamedTuple):
    """A number of attributes drawn from a group."""

    members: tuple[int, ...]
    """Their places in the block, ascending; all with as many categories."""
    asked: int
    """Number of them that are drawn, fewer than there are."""


def _in_table(asked: Sequence[int], drawn: Sequence[Draw]) -> list[int]:
    """Return an attribute for every place in a form's table: the fixed ones, and the first members
    of each draw, which represent all."""
    return [*asked, *(i for draw in drawn for i in draw.members[: draw.asked])]


@dataclass(frozen=True)
class SetTable(PatternTable):
    """A pattern table of a form some of whose answers name sets: an attribute counts as unchanged
    if its category is in the set; s to a − s sets contain it or do not.

    ``breadths``: s, the number of categories that each answer names, shape (k,).
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
    """The randomization of rows that have one form.

    As a pattern law it answers attributes outside the form uniformly at random.

    ``n_categories``: of all attributes of the block, shape (k,). ``asked``: places in the block of
    the attributes that the form always includes, ascending. ``sets``: places of the attributes
    whose answers name sets, ascending, with these sets; the table is then a :class:`SetTable`.

    >>> table = PatternTable.from_probabilities((2,), np.array([0.75, 0.25]))
    >>> form = Form((3, 2), (1,), table)
    >>> form.attribute_levels()[0], form.eigenvalues((0, 1)).tolist()
    (((1, 1),), [[1.0, 0.5], [0.0, 0.0]])
    """

    family: ClassVar[str] = "form"

    n_categories: tuple[int, ...]
    asked: tuple[int, ...]
    table: PatternTable | CountTable
    drawn: tuple[Draw, ...] = ()
    sets: tuple[tuple[int, SetAnswers], ...] = ()

    @classmethod
    def of(
        cls,
        n_categories: tuple[int, ...],
        asked: tuple[int, ...],
        table: PatternTable | CountTable,
        drawn: tuple[Draw, ...] = (),
        sets: tuple[tuple[int, SetAnswers], ...] = (),
    ) -> "Form":
        """Return a form some of whose answers may name sets, from a table of patterns."""
        if sets and isinstance(table, PatternTable):
            breadth = {place: each.breadth for place, each in sets}
            breadths = tuple(breadth.get(i, 1) for i in _in_table(asked, drawn))
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
            raise InputError("a form needs the attributes that it includes, each once, in order")
        if any(not 0 < draw.asked < len(draw.members) for draw in self.drawn):
            raise InputError("a form draws at least one, and not all, attributes of each draw")
        sizes = [self.n_categories[i] for i in _in_table(self.asked, self.drawn)]
        if self.table.n_categories != tuple(sizes) or any(
            len({self.n_categories[i] for i in draw.members}) > 1 for draw in self.drawn
        ):
            raise InputError("a form's table is for attributes with other categories")
        places = [i for i, _ in self.sets]
        if places != sorted(set(places)) or not set(places) <= set(named):
            raise InputError(
                "sets of answers need attributes that the form includes, each once, in order"
            )
        if any(sets.n_categories != self.n_categories[i] for i, sets in self.sets):
            raise InputError("the sets of a form's answers are of other categories")
        if isinstance(self.table, SetTable) != bool(self.sets) or (
            isinstance(self.table, SetTable) and self.table.breadths != self.breadths()
        ):
            raise InputError("a form's table is for answers of other breadths")
        if any(len({self.sets_of(i) for i in draw.members}) > 1 for draw in self.drawn):
            raise InputError("a form does not answer alike those that it draws from")
        if isinstance(self.table, CountTable):
            if self.sets or len(self.drawn) + bool(self.asked) != 1:
                raise InputError("a table by the number of changed answers is for one draw alone")
            return
        weights = np.array(self.table.weights, dtype=object).reshape((2,) * len(sizes))
        for start, draw in self.starts():
            for axis in range(start, start + draw.asked - 1):
                if not np.array_equal(weights, np.swapaxes(weights, axis, axis + 1)):
                    raise InputError("a form's table does not treat alike those that are drawn")

    @property
    def counted(self) -> Draw | None:
        """The draw of a form with a table by the number of changed answers."""
        if isinstance(self.table, PatternTable):
            return None
        return self.drawn[0] if self.drawn else Draw(self.asked, len(self.asked))

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
        """Number of categories that each answer names, by the places in the table."""
        sets = map(self.sets_of, _in_table(self.asked, self.drawn))
        return tuple(1 if each is None else each.breadth for each in sets)

    def shown(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return, for every set T of the attributes in ``subset``, shape (2,)·m, the information
        of their answers at certain hits: products of :attr:`SetAnswers.information`."""
        values = np.ones(())
        for place in subset:
            sets = self.sets_of(place)
            values = np.multiply.outer(values, [1.0, 1.0 if sets is None else sets.information])
        return np.asarray(values)

    def asked_of(self, places: Sequence[int]) -> list[int]:
        """Return the places in the table of those of some attributes that the form includes, of
        each draw as many as possible."""
        within = [self.asked.index(i) for i in places if i in self.asked]
        for start, draw in self.starts():
            most = min(draw.asked, sum(i in draw.members for i in places))
            within += range(start, start + most)
        return within

    def variants(self, places: Sequence[int]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield subsets of some attributes that the form may include, with their probabilities."""
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
        """Return the form where, of some attributes, exactly these are included; the form itself
        if it draws none."""
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

    def information(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return the mean over the draws of φ(T)², times the sets' information, for every set T
        of the attributes in ``subset``, shape (2,)·m."""
        values = np.zeros((2,) * len(subset))
        for asked, probability in self.variants(subset):
            values += probability * self.given(asked).eigenvalues(subset) ** 2
        return values * self.shown(subset)

    def sampler(self) -> LawSampler:
        """Raise: rows are drawn under all forms together."""
        raise TypeError("rows are drawn under all forms together")

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
            **(
                {"drawn": [{"members": list(m), "asked": n} for m, n in self.drawn]}
                if self.drawn
                else {}
            ),
            **({"sets": [place for place, _ in self.sets]} if self.sets else {}),
        }

    @classmethod
    def from_plain(
        cls,
        plain: Mapping[str, Any],
        n_categories: tuple[int, ...],
        sets: Mapping[int, SetAnswers] | None = None,
    ) -> "Form":
        """Rebuild a form."""
        asked = plain["asked"]
        drawn = tuple(Draw(tuple(one["members"]), one["asked"]) for one in plain.get("drawn", ()))
        named = [*asked, *(i for draw in drawn for i in draw.members)]
        if not named or not all(i < len(n_categories) for i in named):
            raise InputError("a form of the mechanism should list the attributes that it includes")
        sizes = [n_categories[i] for i in _in_table(asked, drawn)]
        by_count = 1 < len(sizes) == len(plain["weights"]) - 1
        kind = CountTable if by_count else PatternTable
        table = kind.from_plain(plain, tuple(sizes))
        broad = plain.get("sets", ())
        if missing := [place for place in broad if place not in (sets or {})]:
            raise InputError(f"the mechanism lists no sets of attribute {missing[0]}")
        named_sets = tuple((place, (sets or {})[place]) for place in broad)
        form = cls.of(n_categories, tuple(asked), table, drawn, named_sets)
        if plain["digest"] != form.digest():
            raise InputError("the mechanism has been altered: a form's digest is not its table's")
        return form
