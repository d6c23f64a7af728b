"""Statements of Ruiz, "λ-randomization", on cost, accuracy, inverses and covariances."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from deniable.api import birkhoff
from deniable.design.design import design
from deniable.laws.patterns import FloatArray
from deniable.mechanism.channel import Channel
from deniable.schema import Schema
from deniable_studies.study import Judged

N_CATEGORIES = 5
LAMBDA = 0.5
"""λ of every attribute where cost and accuracy are measured."""

MOST_GROWTH = 10.0
"""Largest factor of the time of one attribute more: twice that of the number of cells."""

MOST_LOSS = 2.0
"""Largest factor by which the loss of accuracy may grow from one attribute to the most."""


def uniform(n: int = N_CATEGORIES) -> FloatArray:
    """Return P*, shape (n, n)."""
    return np.full((n, n), 1 / n)


def matrix(value: float, n: int = N_CATEGORIES) -> FloatArray:
    """Return P = λI + (1 − λ)P*, equation (6)."""
    return value * np.eye(n) + (1 - value) * uniform(n)


def kronecker(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the Kronecker product."""
    return reduce(lambda whole, factor: np.asarray(np.kron(whole, factor)), factors)


def expansion(lambdas: Sequence[float]) -> FloatArray:
    """Return equation (8): a sum of 2^m Kronecker products of full size.

    Each factor is (I − P*)/λ or P*, so the terms of three attributes fall into four groups.
    """
    inverse = np.zeros((N_CATEGORIES ** len(lambdas),) * 2)
    for deviates in product((False, True), repeat=len(lambdas)):
        factors = [
            (np.eye(N_CATEGORIES) - uniform()) / value if deviation else uniform()
            for deviation, value in zip(deviates, lambdas, strict=True)
        ]
        inverse += kronecker(factors)
    return inverse


@dataclass(frozen=True)
class Cost:
    """Least processor seconds of one way to the estimate of a joint table of m attributes."""

    way: str
    n_attributes: int
    seconds: float


def costs(*, quick: bool) -> list[Cost]:
    """Time (8) as printed, elimination of the full matrix, and Property 1 along each axis."""
    most, axes = (4, 7) if quick else (5, 9)
    found = []
    generator = np.random.default_rng(0)
    with threadpool_limits(1):
        for m in range(2, most + 1):
            shares = generator.dirichlet(np.ones(N_CATEGORIES**m))
            lambdas = [LAMBDA] * m
            full = kronecker([matrix(value) for value in lambdas])
            ways = {
                "equation (8)": partial(_by_expansion, lambdas, shares),
                "elimination": partial(np.linalg.solve, full, shares),
            }
            found += [Cost(way, m, _least(work)) for way, work in ways.items()]
        for m in range(2, axes + 1):
            table = generator.dirichlet(np.ones(N_CATEGORIES**m)).reshape((N_CATEGORIES,) * m)
            found.append(Cost("axes", m, _least(partial(_channel(m).inverse.apply, table))))
    return found


def _by_expansion(lambdas: Sequence[float], shares: FloatArray) -> FloatArray:
    return np.asarray(expansion(lambdas) @ shares)


def _channel(m: int) -> Channel:
    schema = Schema.anonymous([N_CATEGORIES] * m)
    request = dict.fromkeys(schema.names, LAMBDA)
    return Channel(design(schema, method="lambda", attenuation=request).mechanism, schema.names)


def _least(work: Callable[[], object], runs: int = 3) -> float:
    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(runs))


@dataclass(frozen=True)
class Statements:
    """Numbers for the statements; the last five over ``n_cases`` random cases each.

    Args:
        losses: factor by which randomization at λ = 0.5 multiplies the standard error of a cell of
            the joint table of one to six attributes, uniform truth.
        property_1: largest entry of P P⁻¹ − I over the largest of the printed inverse.
        covariance, expected: largest difference from equation (9) of data multiplied by matrices,
            relative to Σ|x̃||ỹ|/n, and of randomized answers, in expectation.
        rebuilt: largest difference of a matrix and its decomposition (Corollary 1).
        identity: least weight of the identity over the smallest diagonal entry.
    """

    costs: Sequence[Cost]
    losses: Sequence[float]
    property_1: float
    covariance: float
    expected: float
    rebuilt: float
    identity: float
    n_cases: int

    def growth(self, way: str) -> float:
        """Return by what factor the last attribute multiplies the time."""
        before, after = [cost.seconds for cost in self.costs if cost.way == way][-2:]
        return after / before

    def times(self, way: str) -> dict[int, float]:
        """Return the seconds by number of attributes."""
        return {cost.n_attributes: cost.seconds for cost in self.costs if cost.way == way}


def measure_statements(
    generator: np.random.Generator, *, quick: bool, timed: Sequence[Cost] | None = None
) -> Statements:
    """Compute everything; random cases come from the generator, costs are timed unless given."""
    n_cases = 20 if quick else 200
    inverse, covariance, expected, rebuilt, identity = [], [], [], [], []
    for _ in range(n_cases):
        n, (first, second) = int(generator.integers(2, 51)), generator.uniform(0.01, 1, 2).tolist()
        printed = (np.eye(n) - uniform(n)) / first + uniform(n)
        off = np.abs(matrix(first, n) @ printed - np.eye(n)).max() / np.abs(printed).max()
        inverse.append(float(off))
        covariance.append(_equation_9(generator, n, first, second))
        expected.append(_covariance_of_answers(generator, first, second))
        positive = bistochastic(generator)
        mixture = birkhoff(positive)
        weights = np.array(mixture.rebuild(), dtype=np.float64) / mixture.total
        rebuilt.append(float(np.abs(weights - positive).max()))
        share = mixture.identity_weight / mixture.total
        identity.append(share / float(positive.diagonal().min()))
    # Variances of a cell are sums over the interactions of 1/φ² or, for a sample, of 1; uniform
    # truth, and λ for each attribute of an interaction: ∏ (1 + (r − 1)/λ²) − 1 over ∏ r − 1.
    randomized = 1 + (N_CATEGORIES - 1) / LAMBDA**2
    losses = [math.sqrt((randomized**m - 1) / (N_CATEGORIES**m - 1)) for m in range(1, 7)]
    return Statements(
        costs(quick=quick) if timed is None else timed,
        losses,
        max(inverse),
        max(covariance),
        max(expected),
        max(rebuilt),
        min(identity),
        n_cases,
    )


def _equation_9(generator: np.random.Generator, n: int, first: float, second: float) -> float:
    """Return how far (9) is from x̃ᵀAᵀBỹ/n for centred data of n people."""
    x, y = generator.normal(size=(2, n))
    x, y = x - x.mean(), y - y.mean()
    randomized = (matrix(first, n) @ x) @ (matrix(second, n) @ y)
    both = first * second
    printed = x @ (both * np.eye(n) + (1 - both) * uniform(n)) @ y
    return float(abs(randomized - printed) / (np.abs(x) @ np.abs(y)))


def _covariance_of_answers(generator: np.random.Generator, first: float, second: float) -> float:
    """Return how far the covariance of two randomized answers with scores is from λ₁λ₂ times it."""
    joint = generator.dirichlet(np.ones(N_CATEGORIES**2)).reshape((N_CATEGORIES,) * 2)
    answers = matrix(first) @ joint @ matrix(second)
    u, v = generator.normal(size=(2, N_CATEGORIES))

    def covariance(table: FloatArray) -> float:
        return float(u @ table @ v - (u @ table.sum(axis=1)) * (table.sum(axis=0) @ v))

    return abs(covariance(answers) - first * second * covariance(joint)) / float(
        np.abs(u).max() * np.abs(v).max()
    )


def bistochastic(generator: np.random.Generator) -> NDArray[np.float64]:
    """Return a random bistochastic matrix with entries above 0: P* and ten permutations, mixed."""
    weights = generator.dirichlet(np.ones(11))
    mixed = weights[0] * uniform()
    for weight in weights[1:]:
        mixed = mixed + weight * np.eye(N_CATEGORIES)[generator.permutation(N_CATEGORIES)]
    return np.asarray(mixed)


# Judges.


def cost_as_printed(found: Statements) -> Judged:
    """Judge the cost of equation (8)."""
    printed, eliminated = found.times("equation (8)"), found.times("elimination")
    growth = found.growth("equation (8)")
    most = max(printed)
    return Judged(
        f"from {most - 1} to {most} attributes its time is multiplied by {growth:.0f}; there "
        f"(8) takes {printed[most]:.2g} s, elimination {eliminated[most]:.2g} s; faster than "
        "elimination at "
        f"{sum(printed[m] < eliminated[m] for m in printed)} of {len(printed)} sizes",
        growth <= MOST_GROWTH,
        all(printed[m] < eliminated[m] for m in printed),
    )


def cost_along_axes(found: Statements, difference: float) -> Judged:
    """Judge the cost of Property 1 along each axis; `difference` is that from elimination."""
    times, growth = found.times("axes"), found.growth("axes")
    most = max(times)
    return Judged(
        f"{times[most]:.2g} s for {N_CATEGORIES**most:,} cells of {most} attributes; the last one "
        f"multiplies the time by {growth:.1f}; at three attributes {difference:.1e} from "
        "elimination",
        growth <= MOST_GROWTH and difference <= 1e-12,
    )


def accuracy(found: Statements) -> Judged:
    """Judge the loss of accuracy with the number of attributes."""
    text = ", ".join(f"{loss:.1f}" for loss in found.losses)
    return Judged(
        f"{text} times the error without randomization, one to {len(found.losses)} attributes",
        found.losses[-1] <= MOST_LOSS * found.losses[0],
    )


def property_1(found: Statements) -> Judged:
    """Judge the printed inverse of one matrix."""
    return Judged(
        f"they differ by {found.property_1:.1e} at most in {found.n_cases} cases",
        found.property_1 <= 1e-12,
    )


def equation_9(found: Statements) -> Judged:
    """Judge the covariance after randomization."""
    return Judged(
        f"differences of {found.covariance:.1e} at most for data, {found.expected:.1e} for "
        f"randomized answers, in {found.n_cases} cases",
        found.covariance <= 1e-12 and found.expected <= 1e-12,
        found.covariance <= 1e-12 or found.expected <= 1e-12,
    )


def corollary_1(found: Statements) -> Judged:
    """Judge the decomposition with the identity."""
    return Judged(
        f"rebuilt to {found.rebuilt:.1e}, with a weight of the identity of at least "
        f"{found.identity:.6f} of the smallest diagonal entry, in {found.n_cases} cases",
        found.rebuilt <= 1e-12 and found.identity >= 1 - 1e-9,
        found.rebuilt <= 1e-12 and found.identity > 0,
    )
