"""How strongly a mechanism randomizes, in bits: the entropy accounting of bistochastic privacy.

Source: Ruiz, "λ-randomization", section 2.2 (entropy rate, Definition 1) and Theorem 2. A response
matrix has one distribution of answers per category; its entropy rate is the average of their
entropies over categories that are equally likely, which for a bistochastic matrix is its stationary
law. The strength is the entropy rate over the most it could be, log₂ of the number of categories.

It measures uncertainty on average. It bounds nothing about any one person: ε does that.
"""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import (
    Identity,
    JointLaw,
    Law,
    MatrixChannel,
    PatternLaw,
    PatternTable,
    ProductLaw,
    SingleChangeMixture,
)
from deniable.laws.bistochastic import is_bistochastic
from deniable.laws.patterns import n_records
from deniable.laws.transforms import kernel_of
from deniable.mechanism.mechanism import Mechanism

_MOST_ENUMERATED = 20
"""Attributes up to which the patterns of a law of no known shape are gone through."""


@dataclass(frozen=True)
class Strength:
    """The entropy account of a mechanism.

    Args:
        entropy: entropy rate of the whole record's response in bits, over the protected attributes;
            None if one of their matrices is not bistochastic, or the law has no tractable entropy.
        most_entropy: the most it could be, Σ log₂ r in bits.
        attribute_entropy: per attribute, of the response that someone sees who looks at that column
            alone, in bits; 0 where it is released as it is; shape (k,).
        attribute_strength: the β of bistochastic privacy per attribute, shape (k,).
        attenuation: λ per attribute, shape (k,); None under a matrix that is not λI + (1 − λ)P*.
    """

    entropy: float | None
    most_entropy: float
    attribute_entropy: tuple[float | None, ...]
    attribute_strength: tuple[float | None, ...]
    attenuation: tuple[float | None, ...]

    @property
    def strength(self) -> float | None:
        """Joint strength: Σ H/Σ log₂ r for a product (Theorem 2)."""
        return None if self.entropy is None else self.entropy / self.most_entropy

    def satisfies(self, strength: float) -> bool:
        """Return whether every protected attribute and the record reach this β (Definition 1)."""
        reached = [*self.attribute_strength, self.strength]
        return all(value is not None and value >= strength for value in reached)


def mechanism_strength(mechanism: Mechanism) -> Strength:
    """Return the entropy account of a mechanism; blocks are independent, so entropies add."""
    k = len(mechanism.schema.attributes)
    entropies: list[float | None] = [None] * k
    attenuations: list[float | None] = [None] * k
    record: float | None = 0.0
    most = 0.0
    for block in mechanism.blocks:
        singles = zip(
            block.attributes,
            attribute_entropies(block.law),
            single_attenuations(block.law),
            strict=True,
        )
        for position, entropy, attenuation in singles:
            entropies[position], attenuations[position] = entropy, attenuation
        if isinstance(block.law, Identity):
            continue
        part = record_entropy(block.law)
        record = None if record is None or part is None else record + part
        most += sum(math.log2(n) for n in block.law.n_categories)
    return Strength(
        record,
        most,
        tuple(entropies),
        tuple(
            None if entropy is None else entropy / math.log2(n)
            for entropy, n in zip(entropies, mechanism.schema.n_categories, strict=True)
        ),
        tuple(attenuations),
    )


def entropy_rate(matrix: NDArray[np.float64]) -> float:
    """Return the average entropy in bits of what is answered to each category.

    Args:
        matrix: ``matrix[y, x]`` = Pr[output y | input x], shape (m, r).

    Raises:
        InputError: if an entry is negative or a column does not add up to 1 within 1e-9.
    """
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("a response matrix needs finite entries that are not negative")
    sums = values.sum(axis=0)
    if np.any(np.abs(sums - 1) > 1e-9):
        column = int(np.argmax(np.abs(sums - 1)))
        raise InputError(f"column {column + 1} of the response matrix does not add up to 1")
    return float(_bits(values).sum() / values.shape[1])


def _bits(
    probabilities: NDArray[np.float64], complements: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    # −p log₂ p; for p near 1 through ln(1 − (1 − p)).
    p = np.asarray(probabilities, dtype=np.float64)
    rest = 1 - p if complements is None else complements
    positive = np.where(p > 0, p, 1.0)
    logs = np.where(positive > 0.5, np.log1p(-np.where(p > 0.5, rest, 0.0)), np.log(positive))
    return np.asarray(-p * logs / math.log(2))


def response_entropy(n_categories: int, keep_weight: int, change_weight: int) -> float:
    """Return the entropy in bits of "kept, or else uniform among the rest".

    Args:
        n_categories: how many values there are, however many.
        keep_weight, change_weight: weights of the two, of any width; also where the truth is told
            less often than by chance.
    """
    total = keep_weight + change_weight
    entropy = 0.0
    for weight, rest, ways in (
        (keep_weight, change_weight, 1),
        (change_weight, keep_weight, n_categories - 1),
    ):
        if not weight:
            continue
        # Integers of any size divide, and have logarithms, without being made floats first.
        near_one = 2 * weight > total
        log = math.log1p(-rest / total) / math.log(2) if near_one else _log2_quotient(weight, total)
        entropy += weight / total * (math.log2(ways) - log)
    return entropy


def _log2_quotient(numerator: int, denominator: int) -> float:
    return math.log2(numerator) - math.log2(denominator)


@singledispatch
def record_entropy(law: Law) -> float | None:
    """Return the entropy rate in bits of a block's response to whole records.

    For a pattern law it is −Σ_S q(S) log₂ X_S = H(q) + Σ_S q(S) log₂ t_S: the entropy of which
    attributes change, plus that of the values they change to. None if the law is not bistochastic,
    or has more patterns than can be gone through and no method of its own here.
    """
    if not isinstance(law, PatternLaw) or len(law.n_categories) > _MOST_ENUMERATED:
        return None
    # Law by law, X from the eigenvalues; rounding may leave a tiny X just below 0.
    kernel = kernel_of(law.eigenvalues(range(len(law.n_categories))), law.n_categories)
    return _pattern_entropy(np.maximum(kernel, 0.0) * _outputs(law.n_categories), law.n_categories)


@record_entropy.register
def _(law: ProductLaw) -> float | None:
    total = 1 << law.bits
    return math.fsum(
        response_entropy(n, weight, total - weight)
        for n, weight in zip(law.n_categories, law.keep_weights, strict=True)
    )


@record_entropy.register
def _(law: JointLaw) -> float | None:
    changed = (1 << law.bits) - law.keep_weight
    return response_entropy(n_records(law.n_categories), law.keep_weight, changed)


@record_entropy.register
def _(law: PatternTable) -> float | None:
    total, shape = 1 << law.bits, (2,) * len(law.n_categories)
    q = np.array([weight / total for weight in law.weights]).reshape(shape)
    rest = np.array([(total - weight) / total for weight in law.weights]).reshape(shape)
    return _pattern_entropy(q, law.n_categories, rest)


@record_entropy.register
def _(law: SingleChangeMixture) -> float | None:
    # One output has probability uniform/N where two or more attributes differ, and that plus
    # "unchanged" or change_j/(a_j − 1) where none or only j does. In logarithms: N is ∏ a_i.
    total = 1 << law.bits
    sizes = np.asarray(law.n_categories, dtype=np.float64)
    log_records = float(np.log2(sizes).sum())
    base = _log2_quotient(law.uniform_weight, total) - log_records
    pieces = np.array([weight / total for weight in (law.unchanged_weight, *law.change_weights)])
    ways = np.concatenate([[1.0], sizes - 1])
    with np.errstate(divide="ignore"):
        logs = np.logaddexp2(base, np.log2(pieces) - np.log2(ways))
    mass = ways * np.exp2(logs)
    few = math.prod(law.n_categories) - int(ways.sum()) if log_records < 50 else None
    several = (1.0 if few is None else few * 2**-log_records) * law.uniform_weight / total
    # The likeliest of these may be near 1; its logarithm then comes from the others' mass.
    top = int(np.argmax(mass))
    if ways[top] == 1 and mass[top] > 0.5:
        logs[top] = math.log1p(-(math.fsum(np.delete(mass, top)) + several)) / math.log(2)
    return math.fsum(-mass * logs) - several * base


@record_entropy.register
def _(law: MatrixChannel) -> float | None:
    return entropy_rate(law.matrix()) if is_bistochastic(law) else None


@record_entropy.register
def _(law: Identity) -> float | None:  # noqa: ARG001  (there is nothing in it to read)
    return 0.0


def _pattern_entropy(
    q: NDArray[np.float64],
    n_categories: tuple[int, ...],
    complements: NDArray[np.float64] | None = None,
) -> float:
    values = _bits(q, complements).sum()
    for axis, n in enumerate(n_categories):
        values += float(np.take(q, 1, axis=axis).sum()) * math.log2(n - 1)
    return float(values)


def _outputs(n_categories: tuple[int, ...]) -> NDArray[np.float64]:
    counts = np.ones(())
    for n in n_categories:
        counts = np.multiply.outer(counts, np.array([1.0, n - 1.0]))
    return np.asarray(counts)


def attribute_entropies(law: Law) -> list[float | None]:
    """Return the entropy rate in bits of each attribute's own response, shape (k,).

    Alone, every attribute of a pattern law is under k-ary response at its keep probability. None
    for a matrix that is not bistochastic.
    """
    if not isinstance(law, PatternLaw):
        return [record_entropy(law)] * len(law.n_categories)
    entropies: list[float | None] = []
    for n, ratio, kept_more in zip(
        law.n_categories, law.attribute_ratios(), law.attenuations() >= 0, strict=True
    ):
        if ratio is None:
            entropies.append(0.0)
            continue
        # One kept output to one changed output is as ratio, or the inverse if rarer than chance.
        kept, changed = ratio if kept_more else (ratio[1], ratio[0])
        entropies.append(response_entropy(n, kept, changed * (n - 1)))
    return entropies


def single_attenuations(law: Law) -> list[float | None]:
    """Return λ of each attribute's own response, shape (k,); None where it is not of that class.

    A response matrix is, if its off-diagonal integers are equal to within 1e-9 of one.
    """
    if isinstance(law, PatternLaw):
        return [float(value) for value in law.attenuations()]
    if not isinstance(law, MatrixChannel) or not is_bistochastic(law):
        return [None] * len(law.n_categories)
    matrix = law.matrix()
    n = len(matrix)
    keep = float(np.trace(matrix)) / n
    attenuation = (n * keep - 1) / (n - 1)
    expected = attenuation * np.eye(n) + (1 - attenuation) / n
    return [attenuation if np.all(np.abs(matrix - expected) <= 1e-9) else None]
