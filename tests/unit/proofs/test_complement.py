"""Costs of changes: the cuts, whole numbers, and the sums against enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import SumLaw, changed_sum, saddle_tilt, tilted_sum
from deniable.proofs import certificate
from deniable.proofs import complement as module
from deniable.proofs.certificate import weighted_bound
from deniable.proofs.complement import ROUNDED_TO, of_whole, rounded
from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns import linear
from deniable.solvers.patterns.votes_dual import default_resolution
from unit.laws.votes import whole_law as oracle


def a_vote(
    seed: int, k: int, levels: tuple[float, float], categories: int, heaviest: float
) -> tuple[Problem, FloatArray]:
    """Levels even in the logarithm, and weights far apart."""
    random = np.random.default_rng(seed)
    asked = np.exp(random.uniform(*np.log(levels), k))
    problem = checked_problem(random.integers(2, categories, k), asked)
    weights = asked * random.uniform(0.5, 2.0, k)
    weights[random.integers(k)] *= heaviest
    return problem, weights


@st.composite
def votes(draw: st.DrawFn, fewest: int, most: int) -> tuple[Problem, FloatArray]:
    """Levels from a thousandth to 12 nats."""
    return a_vote(
        draw(st.integers(0, 2**32)),
        draw(st.integers(fewest, most)),
        draw(st.sampled_from([(0.2, 2.0), (1.0, 10.0), (1e-3, 12.0)])),
        draw(st.sampled_from([4, 60])),
        draw(st.sampled_from([1.0, 30.0, 1e9])),
    )


def positive_part(problem: Problem, weights: FloatArray) -> float:
    """E_μ[z_+], over all patterns."""
    changed = oracle.patterns(problem.n_attributes)
    z = float(weights @ problem.change_probability) - changed @ weights
    return float(oracle.uniform_law(problem.counts.tolist()) @ np.maximum(z, 0.0))


@given(votes(2, 12), st.sampled_from([30.0, 1e3, 1e4]), st.integers(-1, 2))
def test_the_mean_is_unchanged_by_cutting_costs_at_the_budget(
    vote: tuple[Problem, FloatArray], total: float, above: int
) -> None:
    problem, weights = vote
    weights = np.rint(weights * (total / weights.sum()))
    # One cost is the largest whole number up to the budget, or a little beside it.
    spent = weights * problem.change_probability
    at = int(np.argmax(problem.keep_probability))
    rest = float(spent.sum() - spent[at])
    weights[at] = max(math.floor(rest / float(problem.keep_probability[at])) + above, 1)
    whole, keep = weights.astype(np.int64), problem.uniform_keep
    most = int(whole.sum())
    law = SumLaw(changed_sum(keep, whole, np.zeros(len(whole)), 0.0, most), ceiling=most)
    budget = float(weights @ problem.change_probability)
    uncut = math.log(float(law.dot(np.maximum(budget - law.support, 0.0), law.mass)))
    assert of_whole(problem, weights).log_positive_part() == pytest.approx(uncut, abs=1e-12)
    assert math.log(positive_part(problem, weights)) == pytest.approx(uncut, abs=1e-12)


@given(votes(2, 10), st.sampled_from([0.5, 30.0, 1e4]))
def test_cutting_weights_that_win_alone_leaves_the_vote_and_takes_a_known_part_of_the_mean(
    vote: tuple[Problem, FloatArray], share: float
) -> None:
    problem, weights = vote
    hardly_kept = int(np.argmin(problem.keep_probability))
    weights[hardly_kept] = share * weights.sum()
    weights = np.rint(weights * (1e5 / weights.sum()))
    form = of_whole(problem, weights)
    changed = oracle.patterns(problem.n_attributes)
    z = float(weights @ problem.change_probability) - changed @ weights
    left = form.budget - changed @ form.costs
    clear = np.abs(z) > 1e-7
    assert ((left > 0) == (z > 0))[clear].all()
    mean = float(oracle.uniform_law(problem.counts.tolist()) @ np.maximum(left, 0.0))
    assert mean + form.more == pytest.approx(positive_part(problem, weights), rel=1e-9)
    assert math.exp(form.log_positive_part()) == pytest.approx(mean + form.more, rel=1e-9)


@pytest.mark.parametrize("level", [30.0, 40.0, 120.0])
def test_weights_that_win_alone_leave_a_budget_however_rarely_they_change(level: float) -> None:
    problem = checked_problem([2, 3, 5], [level, 8.0, 1.0])
    alone = np.array([np.rint(1e6 / problem.change_probability[0]), 0.0, 0.0])
    form = of_whole(problem, alone)
    assert 0.0 < form.budget <= 1.0 + 1e-8  # θ is 10^6, rounded up
    assert form.costs.tolist() == [form.ceiling + 1, 0, 0]
    assert form.more == pytest.approx(1e6 * 0.5, rel=1e-5)
    assert form.tilt == 0.0


@given(votes(2, 12))
def test_sums_of_whole_costs_equal_enumeration(vote: tuple[Problem, FloatArray]) -> None:
    problem, weights = vote
    weights = np.rint(weights * (3000.0 / float(weights @ problem.change_probability)))
    form = of_whole(problem, weights)
    exact = math.log(positive_part(problem, weights))
    assert form.log_positive_part() == pytest.approx(exact, abs=1e-12)


@given(votes(2, 8), st.sampled_from([50.0, 3000.0]))
def test_expectations_are_those_of_the_changed(
    vote: tuple[Problem, FloatArray], total: float
) -> None:
    problem, weights = vote
    k = problem.n_attributes
    form = of_whole(problem, np.rint(weights * (total / weights.sum())))
    law = SumLaw(form.steps, ceiling=form.ceiling)
    got = law.expectations((form.budget - law.support) * form.weigh(law.support))
    changed = oracle.patterns(k)
    left = np.maximum(form.budget - changed @ form.costs, 0.0)
    mean = oracle.uniform_law(problem.counts.tolist()) * left
    scale = math.exp(form.log_factor)
    np.testing.assert_allclose(got.changed[0] * scale, mean @ changed, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(got.total[0] * scale, mean.sum(), rtol=1e-9)


def test_weights_are_rounded_on_a_scale_that_one_which_wins_alone_does_not_set() -> None:
    problem = checked_problem([10_000, 3, 3], [1.0, 0.5, 0.5])
    weights = rounded(problem, np.array([1e9, 0.8, 0.5]))
    assert weights[1:].tolist() == np.rint(weights[1:]).tolist()
    assert weights[1] / weights[2] == pytest.approx(1.6, rel=1e-4)
    assert of_whole(problem, weights).budget == pytest.approx(ROUNDED_TO, rel=1e-4)


def test_whole_and_alike_weights_are_not_rounded() -> None:
    problem = checked_problem([4, 3, 3], [1.0, 0.5, 0.5])
    assert rounded(problem, np.array([5.0, 0.0, 7.0])).tolist() == [5.0, 0.0, 7.0]
    assert rounded(problem, np.full(3, 0.37)).tolist() == [1.0, 1.0, 1.0]
    assert rounded(problem, np.array([5e9, 1.0, 7e9])).max() < 1e7


def by_kept_sums(problem: Problem, weights: FloatArray) -> float:
    """The bound as it was before there were costs: a dithered sum of the kept attributes' weights,
    on a grid made for the standard deviation of z."""
    deviation = np.sqrt(problem.keep_probability * problem.change_probability)
    unit = default_resolution(problem.n_attributes) / float(np.linalg.norm(weights * deviation))
    grid = np.minimum(weights * unit, 2.0**27 / problem.n_attributes)
    n = np.floor(grid).astype(np.int64)
    threshold = float(grid @ problem.keep_probability)
    tilt = saddle_tilt(problem.uniform_keep, grid, threshold)
    steps = tilted_sum(problem.uniform_keep, n, grid - n, tilt)
    law = SumLaw(steps, math.floor(threshold))
    excess = np.maximum(law.support - threshold, 0.0)
    mean = float(np.exp(-tilt * (law.support - threshold)) * excess @ law.mass)
    log_mean = math.log(mean) + steps.log_scale - tilt * threshold
    return float(np.logaddexp(0.0, math.log(float(grid @ problem.keep_excess)) - log_mean))


@pytest.mark.slow
@given(votes(21, 45))
def test_the_bound_is_below_that_of_kept_sums_by_roundings_at_most(
    vote: tuple[Problem, FloatArray],
) -> None:
    problem, weights = vote
    bound = weighted_bound(problem.counts.tolist(), problem.attribute_epsilon.tolist(), weights)
    assert bound >= by_kept_sums(problem, weights) * (1 - 1e-5)


@settings(max_examples=6)
@given(votes(1, 4), st.data())
def test_the_bound_by_costs_is_at_most_the_optimum_and_attains_it(
    vote: tuple[Problem, FloatArray], data: st.DataObject
) -> None:
    # Up to twelve attributes of four kinds, which the program takes together.
    kinds, weights = vote
    kind = st.integers(0, kinds.n_attributes - 1)
    at = data.draw(st.lists(kind, min_size=2, max_size=12))
    counts = np.minimum(kinds.counts[at], 3).tolist()
    levels, weights = kinds.attribute_epsilon[at].tolist(), weights[at]
    problem = checked_problem(counts, levels)
    program = linear.solve(counts, levels)
    most = program.epsilon * (1 + 1e-9) + 1e-12
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(certificate, "MAX_ENUMERATED", 0)
        changed.setattr(module, "MOST_WHOLE", 2.1e6)
        assert certificate.weighted_bound(counts, levels, weights) <= most
        # Of the program's own λ, in whole numbers: what is lost are their roundings.
        best = program.weights
        best = np.rint(best * (2e6 / float(best @ problem.change_probability)))
        bound = certificate.weighted_bound(counts, levels, best)
    assert program.epsilon * (1 - 1e-6) - 1e-6 <= bound <= most


def giant(categories: int = 3) -> tuple[Problem, FloatArray]:
    """One level of 20 nats beside 23 ordinary ones; its weight as large as its change is rare."""
    levels = np.append(np.random.default_rng(0).uniform(0.2, 1.5, 23), 20.0)
    problem = checked_problem([categories] * 24, levels.tolist())
    weights = levels.copy()
    others = float(weights[:-1] @ problem.change_probability[:-1])
    weights[-1] = 0.5 * others / float(problem.change_probability[-1])
    return problem, weights


def test_beside_a_level_of_twenty_nats_the_bound_is_nats_above_that_of_kept_sums() -> None:
    problem, weights = giant()
    bound = weighted_bound(problem.counts.tolist(), problem.attribute_epsilon.tolist(), weights)
    assert bound > by_kept_sums(problem, weights) + 3.0
    form = of_whole(problem, rounded(problem, weights))
    assert form.costs[-1] == form.ceiling + 1
    assert form.costs[:-1].min() > 50


def test_where_every_change_loses_only_the_unchanged_record_counts() -> None:
    problem = checked_problem([2, 3, 9], [9.0, 9.5, 8.7])
    form = of_whole(problem, rounded(problem, np.array([1.0, 1.1, 0.9])))
    assert form.tilt == 0.0
    expected = math.log(form.budget / 54.0)
    assert form.log_positive_part() == pytest.approx(expected, abs=1e-12)


def test_attributes_that_are_all_alike_and_cost_more_than_the_budget_lose() -> None:
    problem = checked_problem([4] * 21, [12.0] * 21)
    form = of_whole(problem, np.ones(21))
    assert (form.costs == 1).all()
    assert form.budget < 1.0
    expected = math.log(form.budget) - 21 * math.log(4)
    assert form.log_positive_part() == pytest.approx(expected, abs=1e-10)


def test_attributes_that_are_all_alike_are_counted() -> None:
    problem = checked_problem([4] * 3000, [0.2] * 3000)
    form = of_whole(problem, rounded(problem, np.full(3000, 0.7)))
    assert form.budget == pytest.approx(3000 * problem.change_probability[0])
    assert (form.costs == 1).all()
    assert math.isfinite(form.log_positive_part())
