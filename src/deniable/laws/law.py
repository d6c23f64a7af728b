"""The questions that every law answers, exactly.

A law is the randomization of one block of attributes, held as integers: the sampler draws from
them, :mod:`deniable.mechanism.privacy` takes logarithms of their ratios, the estimator divides by
the eigenvalues they give. Nothing is stated twice.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import rotate
from deniable.randomness import BitSource

Ratio = tuple[int, int]
"""A positive rational number as numerator and denominator, not reduced."""

UNBOUNDED = None
"""The answer where some output is possible for one input and impossible for another."""


class Sampler(Protocol):
    """Tables prepared once for drawing many records."""

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, one array of shape (n,) per attribute."""
        ...


class Law(ABC):
    """The randomization of one block of attributes. Frozen; equal if its integers are equal."""

    family: ClassVar[str]
    """The name under which records store it."""

    n_categories: tuple[int, ...]

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """How many values each released attribute can take, shape (k,)."""
        return self.n_categories

    @abstractmethod
    def record_ratio(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...] | None:
        """Return the largest ratio, over outputs and pairs of inputs, of an output's probability.

        Args:
            subset: positions in the block of the only columns that are seen; None for all.

        Returns:
            Factors whose product is the ratio (so that a product law need not multiply a thousand
            of them out), or None if it is unbounded.
        """

    @abstractmethod
    def attribute_ratios(self) -> list[Ratio | None]:
        """Return, per attribute, the ratio for someone who sees that column alone, shape (k,)."""

    @abstractmethod
    def given_rest_ratios(self) -> list[Ratio | None]:
        """Return, per attribute, the ratio for someone who sees the whole released record and
        knows all the other true values, shape (k,)."""

    @abstractmethod
    def keep_probabilities(self) -> NDArray[np.float64]:
        """Return the probability that an attribute is released unchanged, shape (k,)."""

    @abstractmethod
    def sampler(self) -> Sampler:
        """Prepare the tables for drawing."""

    @abstractmethod
    def to_plain(self) -> dict[str, Any]:
        """Return the law's integers as plain values; readable by :meth:`from_plain`."""

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "Law":
        """Rebuild a law from plain values.

        Raises:
            InputError: if they do not describe a law of this family.
        """


class PatternLaw(Law):
    """A law that draws which attributes change, and each changed one uniformly among the others.

    Whether an attribute changes never depends on the record. The channel on any attributes is
    diagonal in the interaction components of a table, so its inverse is known in closed form.
    """

    @abstractmethod
    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return φ(T) for every set T of the attributes in ``subset``, shape (2,)·m.

        φ(T) = Σ_S q(S) ∏_{i∈T} h_i(S), h_i = 1 if attribute i is kept and −1/(a_i − 1) if it is
        changed; index 1 on axis j puts ``subset[j]`` into T.
        """

    def attenuations(self) -> NDArray[np.float64]:
        """Return φ_i = (a_i p_i − 1)/(a_i − 1) of the single attributes, shape (k,)."""
        n = np.asarray(self.n_categories, dtype=np.float64)
        return (n * self.keep_probabilities() - 1) / (n - 1)

    def least_pair_ratio(self) -> float:
        """Return min over pairs of φ_ij/(φ_i φ_j); 1 of a single attribute.

        Independent responses have 1; 0 means that a table of two attributes cannot be estimated.
        """
        k, single = len(self.n_categories), self.attenuations()
        return min(
            (
                float(self.eigenvalues((i, j))[1, 1] / (single[i] * single[j]))
                for i in range(k)
                for j in range(i)
            ),
            default=1.0,
        )


class BoundedLaw(PatternLaw):
    """A pattern law whose promises are bounds, not exact ratios of integers.

    A law of a weighted sum of a thousand attributes has no ratio that fits into a reasonable
    integer. Its numbers come from floating-point evaluation with error bounds: what it says in nats
    is never below the truth *for the law as drawn*, and above it by parts in 10^12 or so. Another
    machine's mathematics may differ in the last place, so records of such laws are compared to a
    part in 10^12 instead of exactly.

    The ratios asked of every law are these bounds, exponentiated and rounded up.
    """

    @abstractmethod
    def record_epsilon_bound(self, subset: Sequence[int] | None = None) -> float:
        """Return an upper bound of the record's level in nats.

        Args:
            subset: positions in the block of the only columns that are seen; None for all.
        """

    @abstractmethod
    def attribute_epsilon_bounds(self) -> tuple[float, ...]:
        """Return upper bounds against someone who sees one column alone, shape (k,), in nats."""

    @abstractmethod
    def attribute_epsilon_floors(self) -> tuple[float, ...]:
        """Return lower bounds of the same levels, shape (k,), in nats: what is surely delivered."""

    @abstractmethod
    def given_rest_bounds(self) -> tuple[float, ...]:
        """Return upper bounds against someone who sees the whole released record and knows all the
        other true values, shape (k,), in nats."""

    def record_ratio(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        return (_ratio_above(self.record_epsilon_bound(subset)),)

    def attribute_ratios(self) -> list[Ratio | None]:
        return [_ratio_above(bound) for bound in self.attribute_epsilon_bounds()]

    def given_rest_ratios(self) -> list[Ratio | None]:
        return [_ratio_above(bound) for bound in self.given_rest_bounds()]


def _ratio_above(epsilon: float) -> Ratio:
    if epsilon == 0.0:  # no columns at all
        return (1, 1)
    # decimal's exp is rounded to the nearest, so one unit more makes it a bound; its logarithm is
    # above ε by less than a part in 10^50.
    with localcontext(Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        return context.next_plus(Decimal(epsilon).exp()).as_integer_ratio()


class ShiftSampler(ABC):
    """A sampler of a pattern law: draws how far each attribute moves, whatever the record is."""

    def __init__(self, n_categories: Sequence[int]) -> None:
        self.n_categories = tuple(n_categories)

    @abstractmethod
    def shifts(self, count: int, source: BitSource) -> list[NDArray[Any]]:
        """Return one shift per record and attribute: 0 keeps, 1 … a−1 are the other categories."""

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes, one array of shape (n,) per attribute."""
        shifts = self.shifts(len(columns[0]), source)
        return [
            rotate(codes, shift, n)
            for codes, shift, n in zip(columns, shifts, self.n_categories, strict=True)
        ]


def next_above(value: float) -> float:
    """Return the next double: what a bound computed in floats is rounded up to."""
    return math.nextafter(value, math.inf)


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


def integers_from_plain(values: Any, what: str, length: int) -> tuple[int, ...]:
    """Read integers written as hexadecimal text.

    Raises:
        InputError: if there are not ``length`` of them, or one is not such a text.
    """
    if not isinstance(values, list) or len(values) != length:
        raise InputError(f"the mechanism's {what} should be a list of {length} numbers")
    try:
        return tuple(int(value, 16) for value in values)
    except (TypeError, ValueError):
        raise InputError(f"the mechanism's {what} hold something that is not hexadecimal") from None


def floats_from_plain(values: Any, what: str, length: int) -> NDArray[np.float64]:
    """Read floating-point numbers written by ``float.hex``, exactly.

    Raises:
        InputError: if there are not ``length`` of them, or one is not such a text.
    """
    if not isinstance(values, list) or len(values) != length:
        raise InputError(f"the mechanism's {what} should be a list of {length} numbers")
    try:
        return np.array([float.fromhex(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the mechanism's {what} hold something that is not hexadecimal") from None


def bits_from_plain(plain: Mapping[str, Any]) -> int:
    """Read the common width of a law's weights.

    Raises:
        InputError: if it is missing or not a sensible number of bits.
    """
    bits = plain.get("bits")
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 1 << 24:
        raise InputError("the mechanism's 'bits' should be a whole number of bits")
    return bits


def integer_weights(
    probabilities: NDArray[np.float64], bits: int | None = None
) -> tuple[int, tuple[int, ...]]:
    """Turn probabilities in floating point, shape (n,), into integers that add up to 2^bits.

    Every weight keeps all 53 bits of its floating-point value, whatever its size, so likelihood
    ratios stay what they were; what the rounding of their sum leaves over, at most about n·2⁻⁵³ of
    the whole, goes to the likeliest outcome, where it changes least. Privacy is accounted from the
    integers, never from what they were made of.

    Args:
        probabilities: not negative, at least one positive; normalised here.
        bits: the width, or None for the smallest multiple of 64 at which nothing is lost.

    Returns:
        The width and the weights.
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    shares = shares / shares.sum()
    mantissas, exponents = np.frexp(shares)
    if bits is None:
        bits = 64 * math.ceil((54 - int(exponents[shares > 0].min())) / 64)
    whole = np.ldexp(mantissas, 53)
    weights = [
        _shifted(int(mantissa), int(exponent) + bits - 53)
        for mantissa, exponent in zip(whole, exponents, strict=True)
    ]
    weights[int(np.argmax(shares))] += (1 << bits) - sum(weights)
    return bits, tuple(weights)


def _shifted(value: int, places: int) -> int:
    return value << places if places >= 0 else value >> -places
