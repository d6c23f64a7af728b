"""Ramps as laws in exact numbers: tables of patterns, and gated sums that meet their levels."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns import optimal
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_landing import _DrawnRamps, gated_sum_of, table_of
from deniable.solvers.patterns.ramp_response import GridRamps, OrbitRamps, Ramp, Response
from deniable.solvers.patterns.ramps import AtLevels, RampSearch
from deniable.solvers.problem import checked_problem


def test_a_table_has_the_ramps_levels_caps_and_height() -> None:
    levels = np.array([1.0, 0.6, 1.0, 0.8, 1.3])
    problem = checked_problem([3, 2, 3, 5, 4], levels)
    grouped = orbits(problem)
    sums = OrbitRamps(grouped)
    first = np.unique(grouped.group_of, return_index=True)[1]
    groups = checked_problem(problem.counts[first], levels[first])
    search = RampSearch(sums, AtLevels(groups, 2.0 * levels[first]), 2.9, 1e-12)
    fit = search.best(1.0)
    assert fit is not None
    density = sums.density(fit.ramp, groups.change_probability)
    law = table_of((3, 2, 3, 5, 4), grouped, density)
    kept = law.keep_probabilities()
    got = np.log(kept * (problem.n_categories - 1) / (1 - kept))
    np.testing.assert_allclose(got, levels, rtol=1e-10)
    ((high, low),) = law.record_level()
    assert np.log(high / low) <= fit.ramp.height * (1 + 1e-12)
    slopes = fit.ramp.slopes[grouped.group_of]
    for ((more, less),), slope in zip(law.given_rest_levels(), slopes, strict=True):
        assert np.log(more / less) <= slope * (1 + 1e-12)


@pytest.mark.parametrize("alike", [False, True])
def test_a_gated_sum_meets_every_level_without_an_own_response(alike: bool) -> None:
    random = np.random.default_rng(0)
    k = 18
    counts = [4] * k if alike else random.integers(2, 9, k).tolist()
    levels = np.full(k, 0.8) if alike else random.uniform(0.3, 1.5, k)
    problem = checked_problem(counts, levels)
    target = AtLevels(problem, 2.0 * levels)
    start = optimal.solve(counts, levels.tolist()).epsilon if alike else 5.5
    fit = RampSearch(GridRamps(problem.n_categories), target, start + 0.3, 1e-7).best(1.0)
    assert fit is not None
    landed = gated_sum_of(target, fit, 2e-10, alike=alike)
    assert landed is not None
    law, settled = landed
    np.testing.assert_allclose(law.moments().levels(law.counts), levels, atol=2e-10)
    assert (law.retention == 1.0).all()
    assert (law.account.epsilon_given_rest <= 2.0 * levels).all()
    assert law.account.epsilon == pytest.approx(settled.w, abs=1e-9)
    assert (law.weights == 1).all() == alike


def test_dither_takes_no_slope_above_its_cap() -> None:
    # Five categories, 38 attributes, 3x: the dither of the steepest slope was 3e-6 of its cap.
    levels = np.random.default_rng(39).uniform(0.3, 3, 38)
    problem = checked_problem([5] * 38, levels)
    target = AtLevels(problem, 3.0 * levels)
    fit = RampSearch(GridRamps(problem.n_categories), target, 20.3, 1e-7).best(1.0)
    assert fit is not None
    landed = gated_sum_of(target, fit, 2e-10, alike=False)
    assert landed is not None
    assert (landed[0].account.epsilon_given_rest <= 3.0 * levels).all()


def test_a_ramp_that_ends_where_nothing_is_changed_does_so_with_all_dither_up() -> None:
    # With the end at the mean of the dither the steps swung around the levels at 2e-5.
    random = np.random.default_rng(20)
    levels = random.uniform(8, 20, 18)
    problem = checked_problem([10_000] + [5] * 17, levels)
    target = AtLevels(problem, 3.0 * levels)
    fit = RampSearch(GridRamps(problem.n_categories), target, 90.0, 1e-7, 1e-5).best(1.0)
    assert fit is not None
    assert fit.ends_unchanged
    landed = gated_sum_of(target, fit, 2e-10, alike=False)
    assert landed is not None
    law, settled = landed
    np.testing.assert_allclose(law.moments().levels(law.counts), levels, atol=2e-10)
    assert law.start + law.width == law.weights.sum() + np.count_nonzero(law.dither)
    assert law.account.epsilon == pytest.approx(settled.w, abs=1e-3)
    assert law.weights.sum() < 600_000


@pytest.mark.parametrize("changed", ["slopes", "height", "top", "change"])
def test_derivatives_explain_the_last_move(changed: str) -> None:
    random = np.random.default_rng(4)
    counts, levels = random.integers(2, 9, 18), random.uniform(0.3, 1.5, 18)
    problem = checked_problem(counts.tolist(), levels)
    sums = _DrawnRamps(problem.n_categories, 700, False)
    change, slopes = problem.change_probability, 1.5 * levels
    ramp = Ramp(slopes, 1.2, 6.0)
    first = sums.response(ramp, change)
    step = 0.01 * random.uniform(-1.0, 1.0, 18)
    other = {
        "slopes": replace(ramp, slopes=slopes * np.exp(step)),
        "height": replace(ramp, height=6.01),
        "top": replace(ramp, top=1.21),
        "change": ramp,
    }[changed]
    moved = change * (1.0 + step) if changed == "change" else change
    second = sums.response(other, moved)
    told = (
        second.by_slope @ np.log(other.slopes / slopes)
        + second.by_height * (other.height - ramp.height)
        + second.by_top * (other.top - ramp.top - float(other.slopes @ (moved - change)))
    )
    np.testing.assert_allclose(told, second.level - first.level, atol=1e-12)


def test_a_ramp_beside_many_levels_lands_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # Thirty attributes at 1 to 10 nats: with the search's own derivatives it took 53 steps.
    levels = np.random.default_rng(0).uniform(1.0, 10.0, 30)
    problem = checked_problem([5] * 30, levels)
    target = AtLevels(problem, 2.0 * levels)
    fit = RampSearch(GridRamps(problem.n_categories), target, 47.5, 1e-7, 1e-5).best(1.0)
    assert fit is not None
    steps, response = [0], _DrawnRamps.response

    def counted(self: _DrawnRamps, ramp: Ramp, change: FloatArray) -> Response:
        steps[0] += 1
        return response(self, ramp, change)

    monkeypatch.setattr(_DrawnRamps, "response", counted)
    assert gated_sum_of(target, fit, 2e-10, alike=False) is not None
    assert steps[0] <= 30
