"""SNPs as Yamamoto and Shibuya (section V-B) simulate them, released and tested.

A SNP's attribute holds an allele and the disease status: four categories. Randomized with keep
probability p, and otherwise any of the other three, it is on the 2 × 2 table a joint law: every
interaction is multiplied by the same φ = (4p − 1)/3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.estimate.association import association
from deniable.estimate.chi_square import chi_square
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.table_map import TableMap
from deniable.randomness import SeededRandomness
from deniable.schema import Schema

N_PEOPLE = 1000
N_COPIES = 2 * N_PEOPLE
"""Every person has two copies of each allele, and every copy is a record."""

N_CATEGORIES = 4
LEVELS = (3.0, 5.0)
"""Between which the levels that the heuristic is given are drawn, in nats; from the authors'
notebook, the paper gives no numbers."""


def simulate(generator: np.random.Generator, n_snps: int) -> NDArray[np.int64]:
    """Return counts (allele, status) of SNPs by the paper's binomials, shape (n_snps, 2, 2).

    A = Bin(2N, 1/3), B = Bin(2N − A, 1/3), C = Bin(2N − A − B, 2/5), D the rest.
    """
    a = generator.binomial(N_COPIES, 1 / 3, n_snps)
    b = generator.binomial(N_COPIES - a, 1 / 3)
    c = generator.binomial(N_COPIES - a - b, 2 / 5)
    return np.stack([a, b, c, N_COPIES - a - b - c], axis=1).reshape(n_snps, 2, 2)


def statistic(tables: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return χ² of 2 × 2 tables as the paper writes it, shape (n_snps,)."""
    (a, b), (c, d) = np.moveaxis(tables.astype(np.float64), 0, 2)
    n = a + b + c + d
    below = (a + b) * (c + d) * (a + c) * (b + d)
    return np.asarray(n * (a * d - b * c) ** 2 / below)


@dataclass(frozen=True)
class Laws:
    """Mechanisms for k SNPs that spend the same total.

    Args:
        total: ε of a record under the heuristic, in nats: what the others may spend.
        mechanisms: by method, ``kronecker``, ``heuristic`` and ``optimal``.
        gap: how far ε of the optimum can be above the least possible for its levels, in nats.
    """

    total: float
    mechanisms: dict[str, Mechanism]
    gap: float


def laws(asked: Sequence[float]) -> Laws:
    """Return the three methods at the total that the heuristic comes to.

    The heuristic is asked for levels and achieves others. Kronecker divides its total in their
    ratio, as the authors do; the optimum divides it evenly.

    Args:
        asked: level per SNP in nats, shape (k,).
    """
    schema = Schema.anonymous([N_CATEGORIES] * len(asked))
    heuristic = design(
        schema, attribute_epsilon=list(asked), method="heuristic", allow_changed_levels=True
    )
    achieved = np.array(heuristic.mechanism.attribute_epsilon, dtype=np.float64)
    total = heuristic.epsilon
    shared = achieved * total / achieved.sum()
    kronecker = design(schema, attribute_epsilon=shared.tolist(), method="kronecker")
    optimum = design(schema, epsilon=total, method="optimal")
    mechanisms = {
        "kronecker": kronecker.mechanism,
        "heuristic": heuristic.mechanism,
        "optimal": optimum.mechanism,
    }
    return Laws(total, mechanisms, optimum.gap or 0.0)


def records_of(
    tables: NDArray[np.int64], generator: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Return a column per SNP with its table's copies in random order: SNPs are independent."""
    codes = np.arange(N_CATEGORIES, dtype=np.uint8)
    return [generator.permutation(np.repeat(codes, table.ravel())) for table in tables]


def release(
    mechanism: Mechanism, records: Sequence[NDArray[np.uint8]], seed: int
) -> NDArray[np.int64]:
    """Randomize records, one column per SNP, and count them; shape (n_snps, 2, 2)."""
    released = Randomizer(mechanism, SeededRandomness(seed)).randomize(list(records))
    counts = [np.bincount(codes, minlength=N_CATEGORIES) for codes in released]
    return np.stack(counts).reshape(-1, 2, 2).astype(np.int64)


def channel_of(keep_probability: float) -> tuple[TableMap, TableMap]:
    """Return M and its inverse on the 2 × 2 table of a SNP."""
    left = (N_CATEGORIES * keep_probability - 1) / (N_CATEGORIES - 1)
    forward = TableMap((2, 2), (0, 1), np.array([[1.0, left], [left, left]]), {})
    return forward, replace(forward, eigenvalues=1 / forward.eigenvalues)


@dataclass(frozen=True)
class Tested:
    """What the released tables say.

    Args:
        naive: the paper's χ² of the released counts, shape (n_snps,).
        corrected: an estimate of χ² of the true table: n times the estimate of Φ² of the
            population, plus the one degree of freedom that sampling adds.
        p_value: of the corrected test.
    """

    naive: NDArray[np.float64]
    corrected: NDArray[np.float64]
    p_value: NDArray[np.float64]


def examine(released: NDArray[np.int64], keep_probability: Sequence[float]) -> Tested:
    """Return the statistics of released tables, SNP by SNP."""
    corrected, p_values = [], []
    for table, keep in zip(released.astype(np.float64), keep_probability, strict=True):
        forward, inverse = channel_of(keep)
        n = float(table.sum())
        corrected.append(n * association(table / n, inverse, n).square + 1.0)
        p_values.append(chi_square(table, forward, inverse).p_value)
    return Tested(statistic(released), np.array(corrected), np.array(p_values))
