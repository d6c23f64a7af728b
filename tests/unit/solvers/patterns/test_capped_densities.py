"""Densities under caps against brute force over pairs of patterns, and another solver."""

import numpy as np
import pytest
from scipy.optimize import linprog

from deniable.solvers.patterns.capped_densities import CappedDensities


def uniform_law(n: tuple[int, ...]) -> np.ndarray:
    law = np.ones(1)
    for a in n:
        law = np.outer(law, [1 / a, 1 - 1 / a]).ravel()
    return law


def distance(s: int, t: int, caps: np.ndarray, epsilon: float) -> float:
    """How far apart ln f may be at two patterns."""
    m = len(caps)
    differs = [caps[i] for i in range(m) if (s ^ t) >> (m - 1 - i) & 1]
    return min(epsilon, float(sum(differs)))


N, EPSILON, CAPS = (2, 3, 5), 2.5, np.array([0.7, 2.5, 1.1])
DISTANCES = np.array([[distance(s, t, CAPS, EPSILON) for t in range(8)] for s in range(8)])


def test_slopes_are_the_largest_below_and_the_least_above() -> None:
    random = np.random.default_rng(4)
    votes = np.where(random.random((6, 8)) < 0.5, np.exp(EPSILON), 1.0)
    votes[:, 0], votes[:, 1] = np.exp(EPSILON), 1.0
    densities = CappedDensities(uniform_law(N), EPSILON, CAPS)
    below = np.array([(f * np.exp(DISTANCES)).min(axis=1) for f in votes])
    above = np.array([(f * np.exp(-DISTANCES)).max(axis=1) for f in votes])
    for found, expected in (
        (densities.sloped(votes), below),
        (densities.sloped(votes, wide=True), above),
    ):
        expected = expected / expected.min(axis=1, keepdims=True)
        assert found == pytest.approx(expected)


def test_the_best_density_is_that_of_another_solver_and_keeps_the_caps() -> None:
    random = np.random.default_rng(7)
    uniform = uniform_law(N)
    densities = CappedDensities(uniform, EPSILON, CAPS)
    pairs = [(s, t) for s in range(8) for t in range(8) if s != t]
    rows = np.zeros((len(pairs), 8))
    for row, (s, t) in zip(rows, pairs, strict=True):
        row[s], row[t] = 1.0, -np.exp(DISTANCES[s, t])
    for _ in range(5):
        score = random.normal(size=8)
        found = densities.best(score)
        assert found is not None
        assert (np.log(found)[:, None] - np.log(found) <= DISTANCES + 1e-9).all()
        other = linprog(-uniform * score, rows, np.zeros(len(pairs)), uniform[None], [1.0])
        mean = float((uniform * found * score).sum() / (uniform * found).sum())
        assert mean == pytest.approx(-other.fun)


def test_what_a_score_does_not_depend_on_the_density_does_not_either() -> None:
    densities = CappedDensities(uniform_law(N), EPSILON, CAPS)
    table = np.broadcast_to(np.array([3.0, -1.0])[None, :, None], (2, 2, 2))
    found = densities.best(table.ravel())
    assert found is not None
    shaped = found.reshape(2, 2, 2)
    assert np.array_equal(shaped[0], shaped[1])
    assert np.array_equal(shaped[:, :, 0], shaped[:, :, 1])
    assert shaped[0, 0, 0] == pytest.approx(np.exp(EPSILON))
