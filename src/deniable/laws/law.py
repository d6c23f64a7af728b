"""Interface of laws, in exact numbers.

A law is the randomization of one block of attributes, held as integers: the sampler draws from
them, :mod:`deniable.mechanism.privacy` takes logarithms of their ratios, the estimator divides by
the eigenvalues they give. No number is stored twice. No other module distinguishes laws by class:
all that it needs of a law is a method here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import NotComputedError, entropy_of_eigenvalues, response_entropy
from deniable.laws.patterns import rotate
from deniable.laws.plain import PlainLaw
from deniable.randomness import BitSource

Ratio = tuple[int, int]
"""A positive rational number as numerator and denominator, not reduced."""

Level = tuple[Ratio, ...] | float
"""A level ε of a law: exact ratios of probabilities, whose product's logarithm it is (so that a
product law need not multiply a thousand of them out), or an upper bound in nats."""

UNBOUNDED = math.inf
"""The level where some output is possible for one input and impossible for another."""

MOST_ENUMERATED = 20
"""The most attributes for which the patterns of a law are summed over one by one: 2^20 doubles are
8 MB."""


class LawSampler(ABC):
    """A law's tables, prepared once for drawing many records."""

    @abstractmethod
    def draws(self, law: Any) -> bool:
        """Whether the stored tables are those of a law of its family.

        They are compared with the law's own numbers or stated levels, not with tables made again.
        """

    @abstractmethod
    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, one array of shape (n,) per attribute."""

    def by_attribute(
        self,
        columns: Iterable[NDArray[Any]],
        count: int,  # noqa: ARG002  (samplers that draw before they are given a column need it)
        source: BitSource,
    ) -> Iterator[NDArray[Any]]:
        """Yield the randomized codes of one attribute after the other, shape (count,).

        Same draws as by :meth:`randomize`. Where a law allows it, a column is fetched when its turn
        has come, and of the rows only the state that later columns need is held.
        """
        yield from self.randomize(list(columns), source)


@contextmanager
def checked_arithmetic() -> Iterator[None]:
    """Raise InputError on overflow, division by 0 or NaN in the evaluation of a law.

    >>> with checked_arithmetic():
    ...     np.exp(np.array(1000.0))
    Traceback (most recent call last):
    deniable.errors.InputError: the numbers of the law are out of range: overflow ...
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError as error:
        raise InputError(f"the numbers of the law are out of range: {error}") from None


class Guesses(NamedTuple):
    """Success of guesses by an observer who knows a prior; see
    :class:`~deniable.laws.designed.DesignedChannel`."""

    before: Ratio
    """Success rate of the best guess without any answer."""
    after: Ratio
    """Success rate of the best guess from the released answer."""
    worst_posterior: Ratio
    """The largest probability of any value after any answer."""


class Law(ABC):
    """The randomization of one block of attributes. Frozen; equal if its integers are equal."""

    family: ClassVar[str]
    """The name under which records store it."""

    Plain: ClassVar[type[PlainLaw]]
    """The fields of its record, with their types and sizes; its tag is the family."""

    kept_as_it_is: ClassVar[bool] = False
    """Whether the attributes are released unchanged."""

    exact: ClassVar[bool] = True
    """Whether its levels are exact on every machine; bounds otherwise (:class:`BoundedLaw`)."""

    n_categories: tuple[int, ...]

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """Number of values that each released attribute can take, shape (k,)."""
        return self.n_categories

    @abstractmethod
    def record_level(self, subset: Sequence[int] | None = None) -> Level:
        """Return the level of the record: the largest ratio, over outputs and pairs of inputs, of
        an output's probability."""

    def attribute_levels(self) -> Sequence[Level]:
        """Return, per attribute, the level for an observer of that column alone, shape (k,)."""
        return [self.record_level((i,)) for i in range(len(self.n_categories))]

    def given_rest_levels(self) -> Sequence[Level]:
        """Return, per attribute, the level for an observer of the whole released record with
        knowledge of all other true values, shape (k,); by default the record's."""
        return [self.record_level()] * len(self.n_categories)

    def given_rest_floors(self) -> Sequence[float] | None:
        """Return lower bounds of :meth:`given_rest_levels`, shape (k,), in nats, 0 where none is
        known; None if those are exact."""
        return None

    def attribute_floors(self) -> Sequence[float] | None:
        """Return lower bounds of :meth:`attribute_levels`, shape (k,), in nats; None if those are
        exact."""
        return None

    @abstractmethod
    def keep_probabilities(self) -> NDArray[np.float64]:
        """Return the probability that an attribute is released unchanged, shape (k,)."""

    def record_entropy(self) -> float:
        """Return the entropy rate in bits of the response to whole records."""
        raise NotComputedError(f"no entropy is known of a law of the family '{self.family}'")

    def attribute_entropies(self) -> list[float | None]:
        """Return the entropy rate in bits of each attribute's own response, shape (k,); None where
        it has none."""
        return [None] * len(self.n_categories)

    def attribute_lambdas(self) -> list[float | None]:
        """Return λ of each attribute's own response, shape (k,); None where the response is not
        λI + (1 − λ)P*."""
        return [None] * len(self.n_categories)

    def guesses(
        self, guessed: Sequence[int] | None = None, known: Sequence[int] | None = None
    ) -> Guesses | None:
        """Return the success of guesses under the law's design prior; None if it has none.

        ``guessed``: the value to guess of every category, shape (a,); by default the category
        itself. ``known``: the value known beforehand of every category, shape (a,); by default
        none.
        """
        del guessed, known
        return None

    @abstractmethod
    def sampler(self) -> LawSampler:
        """Prepare the tables for drawing."""

    @abstractmethod
    def to_plain(self) -> dict[str, Any]:
        """Return the law's integers as plain values; readable by :meth:`from_plain`."""

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "Law":
        """Rebuild a law from plain values of the types of ``Plain``."""


class PatternLaw(Law):
    """A law that draws which attributes change, and each changed one uniformly among the others.

    The pattern never depends on the record. The channel on any attributes is
    diagonal in the interaction components of a table, so its inverse is known in closed form.
    """

    @abstractmethod
    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return φ(T) for every set T of the attributes in ``subset``, shape (2,)·m.

        φ(T) = Σ_S q(S) ∏_{i∈T} h_i(S), h_i = 1 if attribute i is unchanged and −1/(a_i − 1) if
        it is changed; index 1 on axis j puts ``subset[j]`` into T.
        """

    def keep_probabilities(self) -> NDArray[np.float64]:
        # φ_i = (a_i p_i − 1)/(a_i − 1)
        return np.array(
            [
                (1 + (n - 1) * float(self.eigenvalues((i,))[1])) / n
                for i, n in enumerate(self.n_categories)
            ]
        )

    def attenuations(self) -> NDArray[np.float64]:
        """Return φ_i = (a_i p_i − 1)/(a_i − 1) of the single attributes, shape (k,)."""
        n = np.asarray(self.n_categories, dtype=np.float64)
        return (n * self.keep_probabilities() - 1) / (n - 1)

    def attribute_lambdas(self) -> list[float | None]:
        return [float(value) for value in self.attenuations()]

    def record_entropy(self) -> float:
        k = len(self.n_categories)
        if k > MOST_ENUMERATED:
            raise NotComputedError(
                f"the entropy of a law of the family '{self.family}' is summed over all patterns, "
                f"for up to {MOST_ENUMERATED} attributes, not for {k}"
            )
        return entropy_of_eigenvalues(self.eigenvalues(range(k)), self.n_categories)

    def attribute_entropies(self) -> list[float | None]:
        # Alone, every attribute is under k-ary response at its keep probability: the unchanged
        # output is e^ε times as likely as a changed one, or e^−ε if below chance.
        entropies: list[float | None] = []
        for n, level, kept_more in zip(
            self.n_categories, self.attribute_levels(), self.attenuations() >= 0, strict=True
        ):
            pair = (1.0, math.exp(-level)) if isinstance(level, float) else level[0]
            kept, changed = pair if kept_more else pair[::-1]
            entropies.append(response_entropy(n, kept, changed * (n - 1)))
        return entropies

    def pair_attenuation(self, first: int, second: int) -> float:
        """Return φ({first, second})."""
        return float(self.eigenvalues((first, second))[1, 1])

    def least_pair_ratio(self) -> float:
        """Return min over pairs of φ_ij/(φ_i φ_j); 1 of a single attribute.

        Independent responses have 1; 0 means that a table of two attributes cannot be estimated.
        """
        k, single = len(self.n_categories), self.attenuations()
        return min(
            (
                float(self.pair_attenuation(i, j) / (single[i] * single[j]))
                for i in range(k)
                for j in range(i)
            ),
            default=1.0,
        )

    def keeps_pair_floor(self, floor: float) -> bool:
        """Whether `least_pair_ratio` is at least this, found without all pairs if possible."""
        return self.least_pair_ratio() >= floor


class BoundedLaw(PatternLaw):
    """A pattern law whose levels are bounds, not exact ratios of integers.

    A law of a weighted sum of a thousand attributes has no ratio that fits into a reasonable
    integer. Its levels come from floating-point evaluation with error bounds: never below the truth
    *for the law as drawn*, and above it by parts in 10^12. Another machine's mathematics may differ
    in the last place, so records of such laws are compared to a part in 10^12 instead of exactly.
    """

    exact: ClassVar[bool] = False

    @abstractmethod
    def record_level(self, subset: Sequence[int] | None = None) -> float: ...

    @abstractmethod
    def attribute_levels(self) -> Sequence[float]: ...

    @abstractmethod
    def given_rest_levels(self) -> Sequence[float]: ...

    @abstractmethod
    def attribute_floors(self) -> Sequence[float]: ...


class ShiftSampler(LawSampler):
    """A sampler of a pattern law: draws a shift of each attribute, independent of the record."""

    def __init__(self, n_categories: Sequence[int]) -> None:
        self.n_categories = tuple(n_categories)

    @abstractmethod
    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        """Yield, attribute by attribute, one shift per row, shape (count,): 0 for unchanged,
        1 … a−1 for the other categories. Each is drawn on demand."""

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        return list(self.by_attribute(columns, len(columns[0]), source))

    def by_attribute(
        self, columns: Iterable[NDArray[Any]], count: int, source: BitSource
    ) -> Iterator[NDArray[Any]]:
        shifts = self.walk(count, source)
        for codes, shift, n in zip(columns, shifts, self.n_categories, strict=True):
            yield rotate(codes, shift, n)


def largest(ratios: Sequence[Ratio]) -> Ratio:
    """Return the largest of several ratios, compared exactly."""
    best = ratios[0]
    for ratio in ratios[1:]:
        if ratio[0] * best[1] > best[0] * ratio[1]:
            best = ratio
    return best


def at_least_one(ratio: Ratio) -> Ratio:
    """Return the ratio or its inverse, whichever is not below one."""
    return ratio if ratio[0] >= ratio[1] else (ratio[1], ratio[0])


def integers_from_plain(values: Sequence[str], name: str, length: int) -> tuple[int, ...]:
    """Read integers written as hexadecimal text."""
    _check_length(values, name, length)
    return tuple(int(value, 16) for value in values)


def floats_from_plain(values: Sequence[str], name: str, length: int) -> NDArray[np.float64]:
    """Read floating-point numbers written by ``float.hex``, exactly."""
    _check_length(values, name, length)
    try:
        return np.array([float.fromhex(value) for value in values], dtype=np.float64)
    except OverflowError:
        raise InputError(f"the mechanism's {name} hold a number beyond every double") from None


def _check_length(values: Sequence[str], name: str, length: int) -> None:
    if len(values) != length:
        raise InputError(f"the mechanism's {name} should be a list of {length} numbers")


def integer_weights(
    probabilities: NDArray[np.float64], bits: int | None = None, *, step: int = 64
) -> tuple[int, tuple[int, ...]]:
    """Turn probabilities in floating point, shape (n,), into integers that add up to 2^bits.

    Every weight keeps all 53 bits of its floating-point value, so likelihood ratios are preserved;
    the remainder of rounding, at most about n·2⁻⁵³ of the whole, is added to the likeliest outcome,
    where it changes least. Privacy is accounted from the integers only.

    ``probabilities``: not negative, at least one positive; normalised here.

    >>> bits, weights = integer_weights(np.array([0.75, 0.25]))
    >>> [weight / 2**bits for weight in weights]
    [0.75, 0.25]
    """
    fractions = np.asarray(probabilities, dtype=np.float64)
    fractions = fractions / fractions.sum()
    mantissas, exponents = np.frexp(fractions)
    if bits is None:
        bits = step * math.ceil((54 - int(exponents[fractions > 0].min())) / step)
    whole, places = np.ldexp(mantissas, 53).astype(np.int64), exponents.astype(np.int64) + bits - 53
    weights = [
        value << by if by >= 0 else value >> -by
        for value, by in zip(whole.tolist(), places.tolist(), strict=True)
    ]
    weights[int(np.argmax(fractions))] += (1 << bits) - sum(weights)
    return bits, tuple(weights)
