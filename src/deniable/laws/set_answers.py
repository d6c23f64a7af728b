"""Broad answers: an answer that names a set of categories instead of one.

A set is a *list* of steps and a first category u: it contains the categories at these steps after u
in the schema's cyclic order. The list is drawn by public weights, independently of the record; the
first category by whether the set must contain the true one. Averaged over lists and first
categories, all pairs of categories are together in a set equally often (docs/proofs/forms.md,
section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import integers_from_plain
from deniable.laws.patterns import code_type, rotate
from deniable.laws.plain import Bits, Count, HexInteger
from deniable.randomness import BitSource, ExactCategorical

IMBALANCE = 1e-12
"""Relative tolerance of the weight of two categories' common sets against the mean."""


class PlainSetAnswers(msgspec.Struct, forbid_unknown_fields=True):
    """The record of sets: each list as the sum of 2^step over its steps."""

    attributes: Annotated[list[Count], msgspec.Meta(min_length=1)]
    breadth: Annotated[int, msgspec.Meta(gt=1)]
    bits: Bits
    weights: list[HexInteger]
    lists: list[HexInteger]


@dataclass(frozen=True)
class SetAnswers:
    """The sets that the answers to a question can name.

    Answers are numbered list by list, and in a list by the first category: answer
    ``list * n_categories + first``.

    ``weights``: list c is drawn with probability ``weights[c] / 2**bits``. ``lists``: the steps of
    each list, ascending, from 0 to a − 1, s of them.

    >>> sets = SetAnswers(7, 3, 1, (2,), ((0, 1, 3),))
    >>> sets.members(5), sets.n_answers, round(sets.information, 4)
    ((5, 6, 1), 7, 0.2222)
    """

    n_categories: int
    breadth: int
    bits: int
    weights: tuple[int, ...]
    lists: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        a, s = self.n_categories, self.breadth
        if not 1 < s < a:
            raise InputError("a set of categories holds more than one of them, and not all")
        if not self.lists or len(self.lists) != len(self.weights):
            raise InputError("there must be a list of steps, and a weight for each")
        if min(self.weights) <= 0 or sum(self.weights) != 1 << self.bits:
            raise InputError("the weights of lists of steps must be positive and add up to 2^bits")
        for steps in self.lists:
            if list(steps) != sorted(set(steps)) or len(steps) != s or not 0 <= steps[0] <= a - s:
                raise InputError("a list of steps needs as many as a set has categories")
            if steps[-1] >= a:
                raise InputError("a step must be less than the number of categories")
        if self.imbalance() > IMBALANCE:
            raise InputError("the sets hold some pairs of categories more often than others")

    def imbalance(self) -> float:
        """Return the largest deviation from the mean weight of two categories' common sets, as a
        part of it; compared as integers."""
        a, s = self.n_categories, self.breadth
        together = np.zeros(a, dtype=object)
        for weight, steps in zip(self.weights, self.lists, strict=True):
            inside = np.zeros(a)
            inside[list(steps)] = 1
            spectrum = np.fft.rfft(inside)
            common = np.rint(np.fft.irfft(np.abs(spectrum) ** 2, a)).astype(np.int64)
            together += weight * common.astype(object)
        mean = (s * (s - 1)) << self.bits
        return float(max(abs(int(each) * (a - 1) - mean) for each in together[1:]) / mean)

    @property
    def n_answers(self) -> int:
        """Number of sets."""
        return len(self.lists) * self.n_categories

    @property
    def information(self) -> float:
        """(a − s)/(s (a − 1)): the sets' information on a category, at certain hits."""
        a, s = self.n_categories, self.breadth
        return (a - s) / (s * (a - 1))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Probability of each list, shape (lists,)."""
        return np.array([weight / (1 << self.bits) for weight in self.weights])

    def members(self, answer: int) -> tuple[int, ...]:
        """Return the categories in a set."""
        which, first = divmod(answer, self.n_categories)
        return tuple((first + step) % self.n_categories for step in self.lists[which])

    def holds(self) -> NDArray[np.bool_]:
        """Return whether each answer's set contains each category, shape (n_answers, a)."""
        inside = np.zeros((self.n_answers, self.n_categories), dtype=bool)
        first = np.arange(self.n_categories)[:, None]
        for which, steps in enumerate(self.lists):
            rows = which * self.n_categories + first
            inside[rows, (first + np.array(steps)) % self.n_categories] = True
        return inside

    @cached_property
    def _spectra(self) -> NDArray[np.complex128]:
        inside = np.zeros((len(self.lists), self.n_categories))
        for row, steps in zip(inside, self.lists, strict=True):
            row[list(steps)] = 1 / self.breadth
        return np.asarray(np.fft.rfft(inside, axis=1))

    def spread(
        self, values: NDArray[np.float64], axis: int, *, weighted: bool
    ) -> NDArray[np.float64]:
        """Return a table of categories from one of answers, each spread evenly over its set.

        ``values``: a table with answers along an axis.
        """
        moved = np.moveaxis(values, axis, -1)
        lists = moved.reshape(*moved.shape[:-1], len(self.lists), self.n_categories)
        spectra = self._spectra * self.shares[:, None] if weighted else self._spectra
        image = (np.fft.rfft(lists, axis=-1) * spectra).sum(axis=-2)
        return np.moveaxis(np.fft.irfft(image, self.n_categories, axis=-1), -1, axis)

    def gathered(
        self, values: NDArray[np.float64], axis: int, *, weighted: bool
    ) -> NDArray[np.float64]:
        """Return the transposed map: for each answer the mean over its set.

        ``values``: a table with categories along an axis.
        """
        moved = np.moveaxis(values, axis, -1)
        spectra = self._spectra * self.shares[:, None] if weighted else self._spectra
        image = np.fft.rfft(moved, axis=-1)[..., None, :] * np.conj(spectra)
        lists = np.fft.irfft(image, self.n_categories, axis=-1)
        return np.moveaxis(lists.reshape(*moved.shape[:-1], self.n_answers), -1, axis)

    def numbers(self) -> list[int]:
        """Return the sets as integers, each list as the sum of 2^step over its steps."""
        return [self.breadth, self.bits, *self.weights, *(_number(steps) for steps in self.lists)]

    def to_plain(self, attributes: list[int]) -> dict[str, Any]:
        """Return plain values; readable by :meth:`from_plain`."""
        return {
            "attributes": attributes,
            "breadth": self.breadth,
            "bits": self.bits,
            "weights": [f"{weight:x}" for weight in self.weights],
            "lists": [f"{_number(steps):x}" for steps in self.lists],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: int) -> "SetAnswers":
        """Rebuild them from plain values of the types of :class:`PlainSetAnswers`."""
        length = len(plain["lists"])
        numbers = integers_from_plain(plain["lists"], "lists of steps", length)
        lists = tuple(
            tuple(step for step in range(n_categories) if number >> step & 1) for number in numbers
        )
        if any(number >> n_categories for number in numbers):
            raise InputError("a step must be less than the number of categories")
        weights = integers_from_plain(plain["weights"], "weights of lists", length)
        return cls(n_categories, plain["breadth"], plain["bits"], weights, lists)


def _number(steps: tuple[int, ...]) -> int:
    return sum(1 << step for step in steps)


KEPT, CHANGED, HIT, MISSED = range(4)
"""Outcomes of an answer: a category is unchanged or changed, a set contains the category or not."""


class SetSampler:
    """Draws answers by their outcome: for a category another one, for a set a list and one of its
    steps, or of the other steps, which determines the set's first category."""

    def __init__(self, sets: SetAnswers) -> None:
        self._n = n = sets.n_categories
        weights, starts, shifts = _answers_of(sets)
        self._place = ExactCategorical(weights)
        self._start = np.array(starts, dtype=code_type(n + sets.n_answers))
        self._shift = np.array(shifts, dtype=code_type(n))

    def draws(self, sets: SetAnswers) -> bool:
        """Whether the tables are those of the sets."""
        weights, starts, shifts = _answers_of(sets)
        return (
            self._n == sets.n_categories
            and self._place.draws_by(weights)
            and self._start.tolist() == starts
            and self._shift.tolist() == shifts
        )

    def draw(self, codes: NDArray[Any], done: NDArray[np.uint8], source: BitSource) -> NDArray[Any]:
        """Return released codes, shape (n,)."""
        place = self._place.draw(len(codes), source, done)
        first = rotate(codes, self._shift.take(place, mode="clip"), self._n)
        return np.asarray(self._start.take(place, mode="clip") + first)


def _answers_of(sets: SetAnswers) -> tuple[list[int], list[int], list[int]]:
    """Return weights of answers, released codes that they start from, and how far from a category
    theirs is: a quarter of the weights for each thing that can be done."""
    n = sets.n_categories
    quarters: list[list[tuple[int, int, int]]] = [[(1, 0, 0)], [(1, 0, i) for i in range(1, n)]]
    for hits in (True, False):
        entries = []
        for which, (weight, steps) in enumerate(zip(sets.weights, sets.lists, strict=True)):
            inside = set(steps)
            entries += [
                (weight, n * (1 + which), -step % n)
                for step in range(n)
                if (step in inside) == hits
            ]
        quarters.append(entries)
    totals = [sum(weight for weight, _, _ in entries) for entries in quarters]
    common = lcm(*totals)
    drawn = [
        (weight * (common // total), start, shift)
        for entries, total in zip(quarters, totals, strict=True)
        for weight, start, shift in entries
    ]
    weights, starts, shifts = zip(*drawn, strict=True)
    return list(weights), list(starts), list(shifts)
