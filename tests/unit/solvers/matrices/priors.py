"""Priors and mechanisms that the tests of response matrices share."""

import math

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.proofs.rows import Limits, average_limits, local_limits, row_kinds, rows_of

Array = NDArray[np.float64]

NORMAL_TEN = np.array([0.01, 0.03, 0.08, 0.16, 0.22, 0.22, 0.16, 0.08, 0.03, 0.01])
SKEWED = np.array([0.4, 0.3, 0.2, 0.1])
UNIFORM_FIVE = np.full(5, 0.2)


def random_mechanism(generator: np.random.Generator, n: int, m: int) -> Array:
    """A random response matrix, shape (m, n), often with zeros and often nearly deterministic."""
    concentration = float(10.0 ** generator.uniform(-1.5, 0.7))
    matrix = generator.dirichlet(np.full(m, concentration), size=n).T
    if generator.random() < 0.5:
        lean = float(generator.random())
        truth = np.zeros((m, n))
        truth[np.arange(n) % m, np.arange(n)] = 1.0
        matrix = lean * truth + (1.0 - lean) * matrix
    if generator.random() < 0.3:
        matrix = np.where(matrix < 0.5 / m, 0.0, matrix)
    return np.asarray(matrix / matrix.sum(axis=0))


@st.composite
def any_limits(draw: st.DrawFn, fewest: int) -> Limits:
    """Limits of every kind on up to seven categories."""
    n = draw(st.integers(fewest, 7))
    prior = np.exp(np.random.default_rng(draw(st.integers(0, 10**6))).uniform(-4.0, 0.0, n))
    prior /= prior.sum()
    share, room = draw(st.floats(0.0, 0.97)), 1 - prior.max()
    kind = draw(st.sampled_from(("average", "worst", "local")))
    if kind == "local":
        return local_limits(prior, 0.1 + 5.0 * share)
    if kind == "average":
        return average_limits(prior, share * room)
    return average_limits(prior, share * room, prior.max() + draw(st.floats(0.05, 1.0)) * room)


def extreme_rows(limits: Limits) -> Array:
    """Every extreme allowed row, each of cost 1, shape (number of rows, n)."""
    return rows_of(limits, row_kinds(limits, np.ones(limits.n_categories, dtype=np.intp)).sums)


def within(matrix: Array, limits: Limits, margin: float = 1e-12) -> bool:
    """Whether a mechanism keeps the limits, from the definitions and nothing else."""
    joint = matrix * limits.prior
    if limits.epsilon is not None:
        top, bottom = matrix.max(axis=1), matrix.min(axis=1)
        return bool((top <= np.exp(limits.epsilon) * bottom * (1 + margin) + 1e-300).all())
    if limits.success is not None and joint.max(axis=1).sum() > limits.success + margin:
        return False
    if limits.most_posterior is not None:
        total = joint.sum(axis=1)
        return bool((joint.max(axis=1) <= limits.most_posterior * total * (1 + margin)).all())
    return True


def error_by_definition(matrix: Array, prior: Array) -> float:
    """n·N·MSE of the best linear unbiased estimate: tr(D K⁻¹ D) − s, output by output."""
    n = len(prior)
    K = np.zeros((n, n))
    for row in matrix:
        joint = row * prior
        if joint.sum() > 0:
            K += np.outer(joint, joint) / joint.sum()
    if np.linalg.matrix_rank(K, tol=1e-13) < n:
        return float("inf")
    D = np.diag(prior)
    return float(np.trace(D @ np.linalg.inv(K) @ D) - prior @ prior)


def subset_selection_record_mse(n_categories: int, epsilon: float, subset_size: int) -> float:
    """N·MSE of subset selection at a uniform prior, in closed form.

    (n − 1)² (k e^ε + n − k)²/(n² k (n − k)(e^ε − 1)²). At a uniform prior the best k attains the
    least MSE of any ε-LDP mechanism (docs/proofs/frontier.md).
    """
    n, k = n_categories, subset_size
    ratio = (k + (n - k) * math.exp(-epsilon)) / -math.expm1(-epsilon)
    return (n - 1) ** 2 * ratio**2 / (n**2 * k * (n - k))
