"""Votes with a logistic gate by Fourier inversion, against the sum over all patterns."""

import math

import numpy as np
import pytest

from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns.fourier import logistic_vote, usual_tilt
from unit.laws.votes import whole_law as oracle


@pytest.mark.parametrize("wins", [1.0, 3e3])  # whenever the first attribute is kept
@pytest.mark.parametrize("seed", range(6))
def test_a_logistic_vote_is_what_the_sum_over_all_patterns_gives(seed: int, wins: float) -> None:
    random = np.random.default_rng(seed)
    k = 3 + seed
    counts, levels = random.integers(2, 9, k), random.uniform(0.3, 4.0, k)
    if wins > 1.0:
        counts[0], levels[0] = 10_000, 0.7
    problem = checked_problem(counts.tolist(), levels.tolist())
    weights = problem.attribute_epsilon * random.uniform(0.5, 2.0, k)
    softness = (0.3, 0.1, 0.02)[seed % 3] / usual_tilt(problem, weights)
    weights[0] *= wins
    scale = float(weights @ problem.keep_excess)
    weights, softness = weights / scale, softness / scale
    vote = logistic_vote(problem, weights, softness)
    assert vote.resolved
    centred = problem.change_probability - oracle.patterns(k)
    mu = oracle.uniform_law(problem.counts.tolist())
    z = centred @ weights
    smooth = float(mu @ (softness * np.logaddexp(0.0, z / softness)))
    gate = 1.0 / (1.0 + np.exp(-z / softness))
    bend = gate * (1.0 - gate) / softness
    assert vote.objective == pytest.approx(math.log(smooth), abs=1e-9)
    np.testing.assert_allclose(vote.value, (mu * gate) @ centred / smooth, rtol=1e-7, atol=1e-10)
    curvature = (centred * (mu * bend)[:, None]).T @ centred / smooth
    np.testing.assert_allclose(vote.curvature, curvature, rtol=1e-6, atol=1e-8)
    alone = logistic_vote(problem, weights, softness, pairs=False)
    np.testing.assert_allclose(alone.value, vote.value, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(alone.diagonal, np.diag(curvature), rtol=1e-6, atol=1e-8)
    assert alone.curvature.size == 0


def test_a_gate_too_steep_for_the_frequencies_is_said_to_be_unresolved() -> None:
    problem = checked_problem([2, 3, 4], [1.0, 1.5, 0.7])
    weights = problem.attribute_epsilon / float(problem.attribute_epsilon @ problem.keep_excess)
    softness = 1e-5 / usual_tilt(problem, weights)
    assert not logistic_vote(problem, weights, softness).resolved


def test_where_every_change_loses_a_tilt_is_found_all_the_same() -> None:
    problem = checked_problem([2, 3, 9], [9.0, 9.5, 8.7])
    weights = np.ones(3) / float(problem.keep_excess.sum())
    tilt = usual_tilt(problem, weights)
    assert tilt > 0
    assert math.isfinite(logistic_vote(problem, weights, 0.5 / tilt).objective)
