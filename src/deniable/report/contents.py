"""Typed view of a release's record, for pages and codebooks."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

import msgspec

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.strict_json import Digest, Level, Rows

FORMAT = "deniable release"

_LISTED = 8
"""Most names listed of a group of attributes; of a larger group the first seven and the last."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the released rows, maybe without one: its path in the release's folder, number of
    rows and digest."""

    file: Annotated[str, msgspec.Meta(pattern=r"^data/part-[0-9]{5,9}\.[a-z.]{1,20}$(?!\n)")]
    rows: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    sha256: Digest


class ReleasedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The released rows: one file, or several parts in a folder."""

    file: Annotated[str, msgspec.Meta(pattern=r"^data(\.[a-z.]{1,20})?$(?!\n)")]
    sha256: Digest
    rows: Rows
    columns: tuple[str, ...]
    row_order: Literal["shuffled", "kept"]
    randomness: Literal["operating system", "seeded"]
    parts: tuple[Part, ...] = ()
    beside: dict[
        Literal["data.bim", "data.fam", "data.sav", "data.dta", "data.parquet", "data.csv"], Digest
    ] = {}


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rows of one person together; ε in nats."""

    column: str
    most_rows: Rows
    epsilon: Level


class Levels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Levels in nats, of the record and of each attribute."""

    epsilon: Level
    attributes: dict[str, Level]


class Instead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns with another statement than ε, treated ex post or by a matrix with a prior, and their
    ε against an observer who knows the frequencies."""

    columns: list[str]
    if_frequencies_known: Levels | None


class ShownInstead(Instead, frozen=True):
    """The same with its sentence."""

    statement: str


class Population(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of the release in its population, and ε in nats of a person in all releases."""

    release: Rows
    epsilon: Level


class Guarantee(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Guarantee: ε in nats of a row and of a person, and its exceptions."""

    epsilon: Level
    person: Person | None
    unprotected: list[str]
    instead: Sequence[Instead] = ()
    drafted: list[str] = []


class ShownGuarantee(Guarantee, frozen=True, kw_only=True):
    """The same with its sentences."""

    sentence: str
    instead: Sequence[ShownInstead] = ()


class PairAttenuation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """φ({a, b}) of two attributes."""

    attributes: tuple[str, str]
    attenuation: float


class Attenuation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """φ of single attributes and of pairs, for estimates without this software."""

    single: dict[str, float | None]
    pairs: list[PairAttenuation] | None


class ExpectedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Standard error of one share of an attribute, as a fraction of 1."""

    attribute: str
    standard_error: float


class BestGuessStatement(msgspec.Struct, frozen=True):
    """How often the best guess from an answer is right, and the most that an answer can make anyone
    sure, if the prior of a response matrix is true."""

    before: float
    success: float
    worst_posterior: float
    prior_steps: int | None = None


class AttributeStatement(msgspec.Struct, frozen=True):
    """Protection of an attribute: levels in nats, None if unbounded; under forms the share of
    people asked."""

    name: str
    categories: int
    epsilon: float | None
    epsilon_given_rest: float | None
    keep_probability: float | None
    attenuation: float | None
    strength: float | None
    parts: list[str] = []
    best_guess: BestGuessStatement | None = None
    asked: float | None = None
    epsilon_given_rest_at_most: bool = False


class BlockStatement(msgspec.Struct, frozen=True):
    """The attributes that are randomized together, and the law's plain values."""

    attributes: list[str]
    law: dict[str, Any]


class Form(msgspec.Struct, frozen=True):
    """One form: its share of people and its attributes."""

    share: float
    asked: tuple[str, ...]


class Sets(msgspec.Struct, frozen=True):
    """Sets of categories in the answers to an attribute: per list the steps, the distances of the
    other categories from the one in the cell."""

    attribute: str
    lists: tuple[tuple[int, ...], ...]


class Forms(msgspec.Struct, frozen=True):
    """The forms of a release, in the order of their numbers, and the column with the number; and
    the sets that answers name."""

    column: str
    forms: tuple[Form, ...]
    sets: tuple[Sets, ...]


class Accuracy(msgspec.Struct, frozen=True):
    """Lower bound of the relative errors of other laws, for shares and for pairs by weight."""

    pairs: float
    at_least: float
    all_patterns: bool


class MechanismStatement(msgspec.Struct, frozen=True):
    """The mechanism's own record."""

    method: str
    epsilon: float | None
    epsilon_lower_bound: float | None
    strength: float | None
    attributes: list[AttributeStatement]
    schema: dict[str, Any]
    blocks: list[BlockStatement]
    changed_levels: list[str] = []
    accuracy: Accuracy | None = None


class Saving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many times as many rows independent randomization would need; medians."""

    marginals: float
    pairs: float | None


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Benefit of the law over independent responses at the same ε."""

    saving: Saving | None


class Expected(msgspec.Struct, frozen=True):
    """Mean variance of a share, and of a cell of two attributes, for one row; None where something
    cannot be estimated."""

    shares: float | None
    pairs: float | None


class Limit(msgspec.Struct, frozen=True):
    """The least mean variance of shares that any mechanism of this ε has, and how many times that
    this one has."""

    shares: float
    times: float | None


class Outlook(msgspec.Struct, frozen=True):
    """Information of one row, and its limit; no limit without ε."""

    expected: Expected
    limit: Limit | None


class Stratum(msgspec.Struct, frozen=True):
    """One stratum of an ex-post release, and its mechanism."""

    stratum: str
    rows: int
    mechanism: MechanismStatement


class Strata(msgspec.Struct, frozen=True):
    """The strata that the values of a kept column form."""

    column: str
    mechanisms: list[Stratum]


class ExPost(msgspec.Struct, frozen=True):
    """Ex-post treatment of the whole table."""

    numeric: list[str]
    strata: Strata | None


class Method(Protocol):
    """Texts of the method in the record, passed by the caller."""

    @property
    def description(self) -> str:
        """How the law was found; empty to show the method's name."""

    @property
    def remark(self) -> str:
        """A sentence under the table of attributes; empty for none."""


class _Unknown:
    description = remark = ""


UNKNOWN: Method = _Unknown()

_MATRICES = frozenset({"matrix", "designed matrix"})
"""The families of laws that are response matrices."""


class Contents(msgspec.Struct, frozen=True, dict=True):
    """Record of a release, as shown on pages."""

    software: str
    title: str
    release: ReleasedFile
    guarantee: ShownGuarantee
    attenuation: Attenuation
    expected_error: list[ExpectedError]
    command: str
    small_print: list[str]
    mechanism: MechanismStatement
    comparison: Comparison | None = None
    expost: ExPost | None = None
    population: Population | None = None
    readable: dict[str, Any] | None = None
    outlook: Outlook | None = None

    @cached_property
    def schema(self) -> Schema:
        """Schema that the mechanism was made for."""
        return Schema.from_plain(self.mechanism.schema)

    def protected(self) -> Iterator[AttributeStatement]:
        """Yield the attributes for which something is promised, in the schema's order."""
        unprotected = set(self.guarantee.unprotected)
        return (a for a in self.mechanism.attributes if a.name not in unprotected)

    def kept(self) -> list[str]:
        """Return the columns released unchanged."""
        keep = set(self.schema.keep)
        return [name for name in self.guarantee.unprotected if name in keep]

    def agreed(self) -> list[str]:
        """Return the columns that compared records agree on: those kept, and contracted numbers."""
        return [*self.kept(), *([] if self.expost is None else self.expost.numeric)]

    def randomized(self) -> list[str]:
        """Return the randomized attributes, with or without a guarantee."""
        keep = set(self.schema.keep)
        return [a.name for a in self.mechanism.attributes if a.name not in keep]

    def kept_attributes(self) -> list[str]:
        """Return those of the kept columns that the schema declares."""
        declared = {a.name for a in self.mechanism.attributes}
        return [name for name in self.kept() if name in declared]

    def unbounded(self) -> list[str]:
        """Return the randomized attributes without any guarantee."""
        known = {*self.kept(), *(n for one in self.guarantee.instead for n in one.columns)}
        return [name for name in self.guarantee.unprotected if name not in known]

    def guessable(self) -> list[str]:
        """Return the randomized attributes without ε that have a statement under a prior."""
        randomized = set(self.randomized())
        return [
            name
            for one in self.guarantee.instead
            if one.if_frequencies_known is None
            for name in one.columns
            if name in randomized
        ]

    def by_matrix(self) -> list[str]:
        """Return the attributes that are randomized by a response matrix, in the blocks' order."""
        return [
            name
            for block in self.mechanism.blocks
            if block.law.get("family") in _MATRICES
            for name in block.attributes
        ]

    def answers(self) -> dict[str, str]:
        """Return the texts of the answers, by attribute, where they are not the categories: under
        a response matrix with more of them, or with texts of their own."""
        attributes = {a.name: a for a in self.schema.attributes}
        return {
            name: ", ".join(own)
            if (own := attributes[name].answers)
            else f"answer 1 to answer {len(rows)}"
            for block in self.mechanism.blocks
            for name in block.attributes
            if isinstance(rows := block.law.get("weights"), list)
            and block.law.get("family") in _MATRICES
            and (attributes[name].answers or len(rows) != attributes[name].n_categories)
        }

    def forms(self) -> "Forms | None":
        """Return the forms that rows have, if they have one each."""
        for block in self.mechanism.blocks:
            if block.law.get("family") == "forms":
                total = 1 << int(block.law["bits"])
                sets = tuple(
                    Sets(block.attributes[place], tuple(map(_steps, listed["lists"])))
                    for listed in block.law.get("sets", ())
                    for place in listed["attributes"]
                )
                sizes = {each.attribute: len(each.lists[0]) for each in sets}
                forms = tuple(
                    Form(
                        int(form["share"], 16) / total,
                        _asked(form, block.attributes, sizes),
                    )
                    for form in block.law["forms"]
                )
                return Forms(str(block.law["column"]), forms, sets)
        return None

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the stated readability of each attribute."""
        found = (self.readable or {}).get("attributes", [])
        return {one["attributes"][0]: one for one in found}

    def randomized_together(self) -> bool:
        """Whether some attributes have a joint law that is not a product of independent ones."""
        return any(
            len(block.attributes) > 1 and block.law.get("family") not in ("product", "identity")
            for block in self.mechanism.blocks
        )


def _steps(listed: str) -> tuple[int, ...]:
    """Return the steps of a list, which is stored as the sum of 2^step."""
    number = int(listed, 16)
    return tuple(step for step in range(number.bit_length()) if number >> step & 1)


def _asked(
    form: Mapping[str, Any], names: Sequence[str], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the attributes of a form, with the size of their sets."""
    broad = set(form.get("sets", ()))
    asked = [
        names[place] + (f" (a set of {sizes[names[place]]})" if place in broad else "")
        for place in form["asked"]
    ]
    for one in form.get("drawn", ()):
        first = one["members"][0]
        size = f", a set of {sizes[names[first]]} each" if first in broad else ""
        asked.append(_drawn(one, names) + size)
    return tuple(asked)


def _drawn(draw: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the drawn attributes of a form, as one entry of its list."""
    members = [names[place] for place in draw["members"]]
    if len(members) > _LISTED:
        members = [*members[: _LISTED - 1], "…", members[-1]]
    return f"{draw['asked']} of ({', '.join(members)})"


def read_contents(record: Mapping[str, Any]) -> Contents:
    """Read a release's record, given as plain values."""
    if record.get("format") != FORMAT:
        raise InputError("this is not the record of a release written by deniable")
    try:
        if "mechanism" not in record:
            record = {**record, "mechanism": _summary(record)}
        return msgspec.convert(record, Contents)
    except msgspec.ValidationError as error:
        raise InputError(f"the record of the release cannot be shown: {error}") from None


def _summary(record: Mapping[str, Any]) -> MechanismStatement:
    """Return the guarantee of all strata: the largest levels, and other numbers where all agree."""
    parts = msgspec.convert(record.get("expost"), ExPost).strata
    if parts is None or not parts.mechanisms:
        raise InputError("the record of the release has neither a mechanism nor strata")
    mechanisms = [part.mechanism for part in parts.mechanisms]
    first = mechanisms[0]
    rows = zip(*(m.attributes for m in mechanisms), strict=True)
    return msgspec.structs.replace(
        first,
        epsilon=largest([m.epsilon for m in mechanisms]),
        epsilon_lower_bound=None,
        strength=_common([m.strength for m in mechanisms]),
        attributes=[_worst(strata) for strata in rows],
        blocks=[],
    )


def _worst(strata: Sequence[AttributeStatement]) -> AttributeStatement:
    return msgspec.structs.replace(
        strata[0],
        epsilon=largest([a.epsilon for a in strata]),
        epsilon_given_rest=largest([a.epsilon_given_rest for a in strata]),
        epsilon_given_rest_at_most=any(a.epsilon_given_rest_at_most for a in strata),
        keep_probability=_common([a.keep_probability for a in strata]),
        attenuation=_common([a.attenuation for a in strata]),
        strength=_common([a.strength for a in strata]),
        best_guess=strata[0].best_guess if len({a.best_guess for a in strata}) == 1 else None,
    )


def largest(levels: Sequence[float | None]) -> float | None:
    """Return the largest level; None, for no bound, if one of them has none."""
    bounded = [level for level in levels if level is not None]
    return max(bounded) if len(bounded) == len(levels) else None


def _common(values: Sequence[float | None]) -> float | None:
    return values[0] if all(value == values[0] for value in values) else None
