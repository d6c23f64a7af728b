"""One attribute under a response matrix, and unchanged attributes."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import NotComputedError, entropy_rate
from deniable.laws.law import (
    UNBOUNDED,
    Law,
    LawSampler,
    Level,
    PatternLaw,
    integer_weights,
    integers_from_plain,
    largest,
)
from deniable.laws.patterns import code_type
from deniable.laws.plain import Bits, HexInteger, PlainLaw
from deniable.randomness import BitSource, smallest_unsigned


class ResponseLaw(Law):
    """One attribute answered through a matrix."""

    @abstractmethod
    def matrix(self) -> NDArray[np.float64]:
        """Return the response matrix M with M[y, x] = Pr[y | x], shape (m, a)."""

    @abstractmethod
    def left_inverse(self) -> NDArray[np.float64]:
        """Return L with L·M = 1, shape (a, m)."""


class PlainMatrix(PlainLaw, tag="matrix"):
    """The record of the law."""

    bits: Bits
    weights: list[list[HexInteger]]


@dataclass(frozen=True)
class MatrixChannel(ResponseLaw):
    """One attribute with any response matrix: Warner, UP, FRAPP, a bistochastic matrix (Ruiz), a
    matrix found by search (Huang and Du); also with more outputs than categories.

    ``weights``: input x gives output y with probability ``weights[y][x] / 2**bits``; shape (m, a).

    >>> law = MatrixChannel((2,), 2, ((3, 1), (1, 3)))
    >>> law.matrix().tolist(), law.left_inverse().round(6).tolist(), law.record_level()
    ([[0.75, 0.25], [0.25, 0.75]], [[1.5, -0.5], [-0.5, 1.5]], ((3, 1),))
    """

    family: ClassVar[str] = "matrix"
    Plain: ClassVar[type[PlainLaw]] = PlainMatrix

    n_categories: tuple[int, ...]
    bits: int
    weights: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.n_categories) != 1:
            raise InputError("a response matrix is the law of one attribute")
        (n,) = self.n_categories
        if any(len(row) != n for row in self.weights):
            raise InputError(f"every row of the response matrix needs {n} entries")
        if any(weight < 0 for row in self.weights for weight in row):
            raise InputError("a response matrix has no negative entries")
        for x in range(n):
            if sum(row[x] for row in self.weights) != 1 << self.bits:
                raise InputError(f"column {x + 1} of the response matrix does not add up to 1")
        if (rank := np.linalg.matrix_rank(self.matrix())) < n:
            raise InputError(
                f"the response matrix is singular (rank {rank}, below its {n} categories): "
                "different tables give the same answers, so none can be estimated from them"
            )

    @classmethod
    def from_probabilities(cls, matrix: NDArray[np.float64]) -> "MatrixChannel":
        """Turn a column-stochastic matrix in floating point, shape (m, a), into integers.

        Entries keep their 53 bits; the remainder is added to a column's largest entry.
        """
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or not np.all(np.isfinite(matrix)) or np.any(matrix < 0):
            raise InputError("a response matrix needs finite entries that are not negative")
        sums = matrix.sum(axis=0)
        if np.any(np.abs(sums - 1) > 1e-9):
            column = int(np.argmax(np.abs(sums - 1)))
            raise InputError(
                f"column {column + 1} of the response matrix adds up to {sums[column]:.12g}, not 1"
            )
        matrix = matrix / sums
        bits, _ = integer_weights(matrix.ravel())
        columns = [integer_weights(column, bits)[1] for column in matrix.T]
        return cls((matrix.shape[1],), bits, tuple(zip(*columns, strict=True)))

    @classmethod
    def from_fractions(cls, matrix: Sequence[Sequence[Fraction]]) -> "MatrixChannel":
        """Turn a column-stochastic matrix of fractions, shape (m, a), into integers.

        Exact if all denominators are powers of two; otherwise every entry keeps 64 bits, and the
        remainder is added to a column's largest entry.
        """
        columns = list(zip(*matrix, strict=True))
        entries = [entry for column in columns for entry in column if entry]
        places = [entry.denominator.bit_length() - 1 for entry in entries]
        bits = max(1, *places)
        if any(entry.denominator != 1 << n for entry, n in zip(entries, places, strict=True)):
            small = max(
                n + 1 - e.numerator.bit_length() for e, n in zip(entries, places, strict=True)
            )
            bits = 64 * math.ceil((65 + small) / 64)
        rounded = []
        for column in columns:
            weights = [math.floor(entry * (1 << bits)) for entry in column]
            weights[column.index(max(column))] += (1 << bits) - sum(weights)
            rounded.append(weights)
        return cls((len(columns),), bits, tuple(zip(*rounded, strict=True)))

    @property
    def n_outputs(self) -> tuple[int, ...]:
        return (len(self.weights),)

    def matrix(self) -> NDArray[np.float64]:
        """Return the response matrix M with M[y, x] = Pr[y | x], shape (m, a)."""
        total = 1 << self.bits
        return np.array([[weight / total for weight in row] for row in self.weights])

    def left_inverse(self) -> NDArray[np.float64]:
        """Return L with L·M = 1, shape (a, m): unbiased for any truth.

        Square matrices have one inverse. With more outputs than categories it is the one of least
        variance at a uniform truth, L = J⁻¹ Mᵀ diag(1/r), J = Mᵀ diag(1/r) M, r = M·1/a.
        """
        matrix = self.matrix()
        if matrix.shape[0] == matrix.shape[1]:
            return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        occurrence = matrix.mean(axis=1)
        occurrence[occurrence == 0] = 1.0  # an output of probability 0 has weight 0 anyway
        weighted = matrix.T / occurrence
        return np.asarray(np.linalg.solve(weighted @ matrix, weighted), dtype=np.float64)

    def record_level(self, subset: Sequence[int] | None = None) -> Level:
        if subset is not None and not list(subset):
            return ()
        possible = [row for row in self.weights if any(row)]
        if any(weight == 0 for row in possible for weight in row):
            return UNBOUNDED
        return (largest([(max(row), min(row)) for row in possible]),)

    @property
    def is_bistochastic(self) -> bool:
        """Whether the matrix is square and its rows, too, add up to 1 (within 1e-9)."""
        total = 1 << self.bits
        square = len(self.weights) == self.n_categories[0]
        return square and all(abs(sum(row) - total) <= 1e-9 * total for row in self.weights)

    def record_entropy(self) -> float:
        if not self.is_bistochastic:
            raise NotComputedError("a response matrix has a strength only if it is bistochastic")
        return entropy_rate(self.matrix())

    def attribute_entropies(self) -> list[float | None]:
        return [self.record_entropy() if self.is_bistochastic else None]

    def attribute_lambdas(self) -> list[float | None]:
        """Return λ if the off-diagonal integers are equal to within 1e-9 of one, shape (1,)."""
        if not self.is_bistochastic:
            return [None]
        matrix = self.matrix()
        n = len(matrix)
        keep = float(np.trace(matrix)) / n
        attenuation = (n * keep - 1) / (n - 1)
        expected = attenuation * np.eye(n) + (1 - attenuation) / n
        return [attenuation if np.all(np.abs(matrix - expected) <= 1e-9) else None]

    def keep_probabilities(self) -> NDArray[np.float64]:
        """Return the average over categories of the probability of answering with the truth.

        Only where the outputs are the categories; NaN if there are more outputs.
        """
        matrix = self.matrix()
        if matrix.shape[0] != matrix.shape[1]:
            return np.array([np.nan])
        return np.array([np.trace(matrix) / len(matrix)])

    def sampler(self) -> "MatrixSampler":
        return MatrixSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "bits": self.bits,
            "weights": [[f"{weight:x}" for weight in row] for row in self.weights],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "MatrixChannel":
        rows = plain["weights"]
        if len(n_categories) != 1 or not rows:
            raise InputError("a response matrix is a list of rows, for one attribute")
        weights = tuple(integers_from_plain(row, "matrix row", n_categories[0]) for row in rows)
        return cls(n_categories, plain["bits"], weights)


_TABLE_BITS = 12
"""First bits of U that are looked up: with 100 outputs they decide 98 of 100 draws."""

_TABLE_ENTRIES = 1 << 20
"""Largest number of entries of that table, over all categories."""


class MatrixSampler(LawSampler):
    """Draws an output by a table of the first bits of U, or by bisection in the boundaries of the
    true category's column where they do not decide."""

    def __init__(self, law: MatrixChannel) -> None:
        m = len(law.weights)
        self._steps = max(1, (m - 1).bit_length())
        self._width = 1 << self._steps
        self._bits = law.bits
        self._dtype = smallest_unsigned(max(m - 1, 1))
        # Row x holds the inner boundaries Pr[output <= y | x], as exact integers over 2^bits and
        # as their first 64 bits. Outputs past the last possible one have no boundary; they are
        # padded with 2^bits, which no U reaches.
        self._exact: list[list[int]] = []
        for x in range(law.n_categories[0]):
            cumulative, total = [], 0
            for row in law.weights[:-1]:
                total += row[x]
                cumulative.append(total)
            self._exact.append(cumulative + [1 << law.bits] * (self._width - m + 1))
        top = np.iinfo(np.uint64).max
        self._boundary = np.array(
            [[min((c << 64) >> law.bits, int(top)) for c in row] for row in self._exact],
            dtype=np.uint64,
        ).ravel()
        most = (_TABLE_ENTRIES // law.n_categories[0]).bit_length() - 1
        self._prefix = max(0, min(_TABLE_BITS, most))
        self._undecided = m
        low, high = self._words()
        self._table = np.empty((law.n_categories[0], len(low)), dtype=smallest_unsigned(m))
        for row, inner in zip(self._table, self._boundary.reshape(-1, self._width), strict=True):
            inner = inner[: m - 1]
            below = np.searchsorted(inner, low, side="left")
            row[:] = np.where(below == np.searchsorted(inner, high, side="right"), below, m)

    def _words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the least and the largest 64 bits with each prefix."""
        if not self._prefix:
            return np.zeros(1, dtype=np.uint64), np.full(1, np.iinfo(np.uint64).max)
        low = np.arange(1 << self._prefix, dtype=np.uint64) << np.uint64(64 - self._prefix)
        return low, low + np.uint64((1 << (64 - self._prefix)) - 1)

    def draws(self, law: MatrixChannel) -> bool:
        """Whether the boundaries are the law's, exactly and in their first 64 bits, and the table
        has the outputs between them."""
        m, top = len(law.weights), (1 << 64) - 1
        stored = self._boundary.reshape(-1, self._width).tolist()
        low, high = self._words()
        for row, inner in zip(self._table, self._boundary.reshape(-1, self._width), strict=True):
            place = np.flatnonzero(row != self._undecided)
            output = row[place].astype(np.intp)
            after = (output == 0) | (inner[np.maximum(output, 1) - 1] < low[place])
            before = (output == m - 1) | (inner[np.minimum(output, m - 2)] > high[place])
            if np.any(output >= m) or not np.all(after & before):
                return False
        return len(self._exact) == len(stored) == law.n_categories[0] and all(
            exact[: m - 1] == [*accumulate(column)][:-1]
            and set(exact[m - 1 :]) == {1 << law.bits}
            and first == [min((edge << 64) >> law.bits, top) for edge in exact]
            for exact, first, column in zip(
                self._exact, stored, zip(*law.weights, strict=True), strict=True
            )
        )

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the outputs for one column of codes, shape (n,)."""
        (codes,) = columns
        value = source.bits(np.uint64, len(codes))
        if not self._prefix:
            return [self._bisected(codes, value, source).astype(self._dtype)]
        place = codes.astype(np.intp) << self._prefix
        place += (value >> np.uint64(64 - self._prefix)).astype(np.intp)
        output = self._table.take(place)
        rows = np.flatnonzero(output == self._undecided)
        output[rows] = self._bisected(codes[rows], value[rows], source)
        return [output.astype(self._dtype, copy=False)]

    def _bisected(
        self, codes: NDArray[Any], value: NDArray[np.uint64], source: BitSource
    ) -> NDArray[np.intp]:
        """Return the outputs for the first 64 bits of U, shape (n,)."""
        base = codes.astype(np.intp) * self._width
        output = np.zeros(len(codes), dtype=np.intp)
        touching = np.zeros(len(codes), dtype=bool)
        for step in reversed(range(self._steps)):
            # boundary[j] separates output j from j + 1; move right if it is at or below U.
            candidate = output + (1 << step)
            boundary = self._boundary[base + candidate - 1]
            touching |= boundary == value
            output = np.where(boundary <= value, candidate, output)
        for row in np.flatnonzero(touching):
            output[row] = self._decide(self._exact[int(codes[row])], int(value[row]), source)
        return output

    def _decide(self, boundaries: list[int], value: int, source: BitSource) -> int:
        # The first 64 bits equal those of a boundary: draw further bits until they differ.
        bits = 64
        while True:
            least = sum(1 for c in boundaries if c << bits <= value << self._bits)
            most = sum(1 for c in boundaries if c << bits < (value + 1) << self._bits)
            if least == most:
                return least
            value = (value << 64) | int(source.bits(np.uint64, 1)[0])
            bits += 64


class PlainIdentity(PlainLaw, tag="identity"):
    """The record of the law."""


@dataclass(frozen=True)
class Identity(PatternLaw):
    """Unchanged attributes: ε is unbounded.

    >>> Identity((2, 3)).keep_probabilities().tolist(), Identity((2, 3)).record_level()
    ([1.0, 1.0], inf)
    """

    family: ClassVar[str] = "identity"
    Plain = PlainIdentity
    kept_as_it_is: ClassVar[bool] = True

    n_categories: tuple[int, ...]

    def record_level(self, subset: Sequence[int] | None = None) -> Level:
        return () if subset is not None and not list(subset) else UNBOUNDED

    def record_entropy(self) -> float:
        return 0.0

    def attribute_entropies(self) -> list[float | None]:
        return [0.0] * len(self.n_categories)

    def keep_probabilities(self) -> NDArray[np.float64]:
        return np.ones(len(self.n_categories))

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        return np.ones((2,) * len(subset))

    def sampler(self) -> "IdentitySampler":
        return IdentitySampler(self.n_categories)

    def to_plain(self) -> dict[str, Any]:
        return {"family": self.family}

    @classmethod
    def from_plain(
        cls,
        plain: Mapping[str, Any],  # noqa: ARG003  (an identity has no numbers to read)
        n_categories: tuple[int, ...],
    ) -> "Identity":
        return cls(n_categories)


class IdentitySampler(LawSampler):
    """Returns the codes unchanged."""

    def draws(self, law: Identity) -> bool:
        """Whether the number of columns is the law's."""
        return len(self._types) == len(law.n_categories)

    def __init__(self, n_categories: Sequence[int]) -> None:
        self._types = [code_type(n) for n in n_categories]

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the codes unchanged."""
        return list(self.by_attribute(columns, len(columns[0]), source))

    def by_attribute(
        self,
        columns: Iterable[NDArray[Any]],
        count: int,  # noqa: ARG002
        source: BitSource,  # noqa: ARG002  (no bits are drawn)
    ) -> Iterator[NDArray[Any]]:
        """Yield the codes unchanged, attribute by attribute, shape (count,)."""
        for codes, kind in zip(columns, self._types, strict=True):
            yield codes.astype(kind, copy=False)
