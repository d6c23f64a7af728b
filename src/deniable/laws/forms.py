"""Published forms: which questions a person is asked is drawn, and released with the answers.

A form asks some of the attributes and answers by a pattern table on them; the others are not asked,
and nothing of them leaves the row. The form is drawn without looking at the record.

The proofs are in docs/proofs/forms.md, section 1.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import lcm
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import (
    Law,
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


@dataclass(frozen=True)
class Form(PatternLaw):
    """What is done to the record of someone who gets one form.

    As a pattern law it answers at random, whatever the record, where it does not ask.

    Args:
        n_categories: of all attributes of the block, shape (k,).
        asked: places in the block of those that it asks, ascending, shape (m,).
        table: how these are randomized.

    Raises:
        InputError: if nothing is asked, the places are not in order, or the table is for others.

    >>> table = PatternTable.from_probabilities((2,), np.array([0.75, 0.25]))
    >>> form = Form((3, 2), (1,), table)
    >>> form.attribute_levels()[0], form.eigenvalues((0, 1)).tolist()
    (((1, 1),), [[1.0, 0.5], [0.0, 0.0]])
    """

    family: ClassVar[str] = "form"

    n_categories: tuple[int, ...]
    asked: tuple[int, ...]
    table: PatternTable

    def __post_init__(self) -> None:
        ordered = list(self.asked) == sorted(set(self.asked))
        if not self.asked or not ordered or not 0 <= self.asked[0] <= self.asked[-1] < self._k:
            raise InputError("a form needs the attributes that it asks, each once, in their order")
        if self.table.n_categories != tuple(self.n_categories[i] for i in self.asked):
            raise InputError("a form's table is for attributes with other categories")

    @property
    def _k(self) -> int:
        return len(self.n_categories)

    def asked_of(self, places: Sequence[int]) -> list[int]:
        """Return the places in the table of those of some attributes that are asked."""
        return [self.asked.index(i) for i in places if i in self.asked]

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        within = self.asked_of(range(self._k) if subset is None else subset)
        return self.table.record_level(within) if within else (_NOTHING,)

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        asked = dict(zip(self.asked, self.table.given_rest_levels(), strict=True))
        return [asked.get(i, (_NOTHING,)) for i in range(self._k)]

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        inside = [i in self.asked for i in subset]
        values = np.zeros((2,) * len(inside))
        values[tuple(slice(None) if asked else 0 for asked in inside)] = self.table.eigenvalues(
            self.asked_of(subset)
        )
        return values

    def sampler(self) -> "FormsSampler":
        """Prepare what draws as if everybody got this form."""
        return PublishedForms(self.n_categories, 0, (1,), (self,)).sampler()

    def digest(self) -> str:
        """Return the SHA-256 of the form's integers, in hexadecimal."""
        numbers = [*self.asked, self.table.bits, *self.table.weights]
        return hashlib.sha256(" ".join(f"{number:x}" for number in numbers).encode()).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        table = self.table.to_plain()
        return {
            "asked": list(self.asked),
            "bits": table["bits"],
            "weights": table["weights"],
            "digest": self.digest(),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "Form":
        asked = plain["asked"]
        if not all(i < len(n_categories) for i in asked):
            raise InputError("a form of the mechanism should list the attributes that it asks")
        table = PatternTable.from_plain(plain, tuple(n_categories[i] for i in asked))
        form = cls(n_categories, tuple(asked), table)
        if plain["digest"] != form.digest():
            raise InputError("the mechanism has been altered: a form's digest is not its table's")
        return form


class PlainForm(msgspec.Struct, forbid_unknown_fields=True):
    """The record of a form: how often it is drawn, what it asks, and its table of patterns."""

    share: HexInteger
    asked: list[Count]
    bits: Bits
    weights: list[HexInteger]
    digest: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]


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
        if any(form.n_categories != self.n_categories for form in self.forms):
            raise InputError("the forms are for other attributes than the mechanism")

    @classmethod
    def from_probabilities(
        cls,
        n_categories: Sequence[int],
        shares: Sequence[float],
        tables: Sequence[tuple[Sequence[int], NDArray[np.float64]]],
        column: str = DEFAULT_COLUMN,
    ) -> "PublishedForms":
        """Turn forms in floating point into integers.

        Args:
            n_categories: shape (k,).
            shares: of the forms.
            tables: per form the places that it asks, and the probability of every pattern of
                changed ones among them, shape (2,)·m, index 0 for kept.
            column: see the class.
        """
        sizes = tuple(int(n) for n in n_categories)
        bits, weights = integer_weights(np.asarray(shares, dtype=np.float64))
        forms = tuple(
            Form(
                sizes,
                tuple(asked),
                PatternTable.from_probabilities([sizes[i] for i in asked], probability),
            )
            for asked, probability in tables
        )
        return cls(sizes, bits, weights, forms, column)

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
            told += share * form.eigenvalues(subset) ** 2
        return told

    def pair_information(self) -> NDArray[np.float64]:
        """Return I_T of every pair of attributes, shape (k, k), with those of single attributes on
        the diagonal."""
        k = len(self.n_categories)
        told = np.zeros((k, k))
        for share, form in zip(self.probabilities, self.forms, strict=True):
            m = len(form.asked)
            place = 1 << np.arange(m)[::-1]
            values = form.table.eigenvalues(range(m)).ravel()[place[:, None] | place]
            told[np.ix_(form.asked, form.asked)] += share * values**2
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


class Drawn(NamedTuple):
    """Rows as they are released under forms."""

    codes: list[NDArray[Any]]
    """One array per attribute; the number of its categories stands for "not asked"."""
    form: NDArray[Any]
    """Which form each row was drawn under, from 0."""


_KEPT, _CHANGED, _NOT_ASKED = range(3)


class FormsSampler:
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
        for form, size in zip(law.forms, sizes, strict=True):
            for bit, place in enumerate(reversed(form.asked)):
                self._done[place, start : start + size] = np.arange(size) >> bit & 1
            start += size
        uniform = {n: ExactCategorical([1] * (n - 1)) for n in set(law.n_categories)}
        self._others = [uniform[n] for n in law.n_categories]

    def draws(self, law: PublishedForms) -> bool:
        """Return whether the forms, their shares and their tables are the law's."""
        outcomes, done = [], []
        for number, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            for changed, weight in zip(
                product((_KEPT, _CHANGED), repeat=len(form.asked)), form.table.weights, strict=True
            ):
                outcomes.append((number, Fraction(share * weight, 1 << form.table.bits)))
                answers = dict(zip(form.asked, changed, strict=True))
                done.append([answers.get(i, _NOT_ASKED) for i in range(len(law.n_categories))])
        common = lcm(*(chance.denominator for _, chance in outcomes))
        return (
            self._form.tolist() == [number for number, _ in outcomes]
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
        codes = []
        for column, n, others, done in zip(
            columns, self.n_categories, self._others, self._done, strict=True
        ):
            of_row = done.take(outcome, mode="clip")
            rows = np.flatnonzero(of_row != _NOT_ASKED)
            shift = others.draw(len(rows), source)
            shift += 1
            shift *= of_row.take(rows, mode="clip")
            released = np.full(len(column), n, dtype=code_type(n))
            released[rows] = rotate(column.take(rows, mode="clip"), shift, n)
            codes.append(released)
        return Drawn(codes, self._form.take(outcome, mode="clip"))

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, and the forms of the rows as one array more."""
        drawn = self.draw(columns, source)
        return [*drawn.codes, drawn.form]
