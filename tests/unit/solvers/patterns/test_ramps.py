"""Ramps meet levels, caps, floors and totals, and the search finds the best top."""

import math
from unittest import mock

import numpy as np
import pytest

from deniable.solvers.patterns import optimal
from deniable.solvers.patterns.certificate import weighted_bound
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_response import GridRamps, OrbitRamps
from deniable.solvers.patterns.ramps import AtLevels, AtTotal, Fit, RampFit, RampSearch
from deniable.solvers.problem import Problem, checked_problem


def request(seed: int, k: int) -> tuple[Problem, OrbitRamps, float]:
    random = np.random.default_rng(seed)
    levels = random.uniform(0.3, 1.5, k).tolist()
    problem = checked_problem(random.integers(2, 7, k).tolist(), levels)
    return problem, OrbitRamps(orbits(problem)), optimal.solve(problem.counts, levels).epsilon


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_a_fit_meets_the_levels_and_the_steepest_slope_its_share_of_the_cap(share: float) -> None:
    problem, sums, least = request(1, 7)
    caps = 2.0 * problem.attribute_epsilon
    fit = RampFit(sums, AtLevels(problem, caps), 1e-12)
    found = fit.at(1.5 * problem.attribute_epsilon, least + 0.3, 1.3, share)
    assert found is not None
    level = sums.response(found.ramp, problem.change_probability).level
    np.testing.assert_allclose(level, problem.attribute_epsilon, rtol=1e-11)
    assert (found.ramp.slopes / caps).max() == pytest.approx(share, rel=2e-3)
    assert least < found.w < problem.attribute_epsilon.sum()
    # How the height moves with the top, by a difference.
    near = fit.at(found.ramp.slopes, found.w, 1.3 + 1e-6, share)
    assert near is not None
    assert (near.w - found.w) / 1e-6 == pytest.approx(found.by_top, abs=1e-3)


def test_the_search_ends_at_a_top_that_no_other_top_beats() -> None:
    problem, sums, least = request(2, 8)
    target = AtLevels(problem, 2.0 * problem.attribute_epsilon)
    best = RampSearch(sums, target, least + 0.3, 1e-12).best(1.0)
    assert best is not None
    fit = RampFit(sums, target, 1e-12)
    for top in np.linspace(0.5, 2.0, 7) * best.ramp.top:
        other = fit.at(best.ramp.slopes, best.w, float(top), 1.0)
        assert other is None or other.w >= best.w * (1 - 2e-3)


def test_a_total_and_its_levels_are_two_ways_to_the_same_ramp() -> None:
    problem, sums, _ = request(1, 8)
    ratios = problem.attribute_epsilon
    total = AtTotal(problem.n_categories, ratios, np.full(8, np.inf), 2.0, np.full(8, np.inf), 3.0)
    spent = RampSearch(sums, total, 0.0, 1e-12).best(1.0)
    assert spent is not None
    levels = math.exp(spent.w) * ratios
    at_levels = AtLevels(checked_problem(problem.counts, levels), 2.0 * levels)
    again = RampFit(sums, at_levels, 1e-12).at(spent.ramp.slopes, 3.0, spent.ramp.top, 1.0)
    assert again is not None
    assert again.w == pytest.approx(3.0, abs=1e-9)


def test_a_largest_level_binds_within_a_total() -> None:
    problem, sums, _ = request(1, 6)
    most = np.where(np.arange(6) == 0, 0.3, np.inf)
    ratios, no_limits = problem.attribute_epsilon, np.full(6, np.inf)
    total = AtTotal(problem.n_categories, ratios, most, 2.0, no_limits, 3.0)
    spent = RampSearch(sums, total, 0.0, 1e-12).best(1.0)
    assert spent is not None
    level = sums.response(spent.ramp, spent.asked.problem.change_probability).level
    assert level[0] == pytest.approx(0.3, abs=1e-10)


@pytest.mark.parametrize("floor", [0.7, 0.9])
def test_moving_the_top_up_keeps_a_floor_on_pairs(floor: float) -> None:
    problem, sums, least = request(3, 7)
    search = RampSearch(sums, AtLevels(problem, 2 * problem.attribute_epsilon), least + 0.3, 1e-12)
    best = search.best(1.0)
    assert best is not None
    assert search.least_ratio(best) < floor
    kept = search.keeping(floor, best)
    assert kept is not None
    assert floor <= search.least_ratio(kept) < floor + 0.05
    assert kept.ramp.top > best.ramp.top
    assert kept.w > best.w


def test_one_level_far_above_the_others_decides_the_height_by_itself() -> None:
    # Whatever the others do, a change of the first loses everything: its slope rests above b.
    levels = [14.0, 0.5, 0.8, 1.1, 0.4, 0.9, 1.0]
    problem = checked_problem([3] * 7, levels)
    sums = OrbitRamps(orbits(problem))
    least = optimal.solve([3] * 7, levels).epsilon
    caps = 2.0 * problem.attribute_epsilon
    best = RampSearch(sums, AtLevels(problem, caps), least + 0.3, 1e-12).best(1.0)
    assert best is not None
    assert least < best.w < least + 1.0
    level = sums.response(best.ramp, problem.change_probability).level
    np.testing.assert_allclose(level, levels, rtol=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_ramp_that_ends_where_nothing_is_changed_keeps_every_floor(share: float) -> None:
    problem, sums, least = request(3, 7)
    caps = 2.0 * problem.attribute_epsilon
    fit = RampFit(sums, AtLevels(problem, caps), 1e-12)
    found = fit.at(1.02 * problem.attribute_epsilon, least + 0.5, None, share)
    assert found is not None
    level = sums.response(found.ramp, problem.change_probability).level
    np.testing.assert_allclose(level, problem.attribute_epsilon, rtol=1e-11)
    assert found.ramp.top == pytest.approx(found.ramp.slopes @ problem.change_probability)
    ratios = sums.pair_ratios(found.ramp, problem.change_probability)
    assert ratios.min() > 1.0
    assert least < found.w < problem.attribute_epsilon.sum()


@pytest.mark.parametrize("floor", [0.7, 0.9])
def test_a_ramp_above_its_floor_is_followed_down_to_it_and_one_below_up(floor: float) -> None:
    problem, sums, least = request(3, 7)
    search = RampSearch(sums, AtLevels(problem, 2 * problem.attribute_epsilon), least + 0.3, 1e-12)
    best = search.best(1.0)
    assert best is not None
    kept = search.keeping(floor, best)
    assert kept is not None
    above = next(search.raised(kept))
    assert search.least_ratio(above) > floor + 0.01
    for start in (above, best):
        followed = search.still_keeping(floor, start)
        assert followed is not None
        assert floor <= search.least_ratio(followed) < floor + 0.02
        assert followed.w == pytest.approx(kept.w, abs=2e-2)


def test_a_floor_that_no_top_of_a_vote_answers_to_is_kept_without_a_plateau() -> None:
    # Without caps nothing lies where the top of the best ramp is.
    levels = [6.5, 5.3, 3.1, 2.1, 0.9, 0.3]
    problem = checked_problem([5] * 6, levels)
    sums = OrbitRamps(orbits(problem))
    search = RampSearch(sums, AtLevels(problem, np.full(6, np.inf)), 10.0, 1e-12)
    best = search.best(1.0)
    assert best is not None
    kept = search.keeping(1.0, best)
    assert kept is not None
    assert search.least_ratio(kept) >= 1.0
    assert best.w < kept.w < sum(levels)


def test_a_total_that_pays_for_the_largest_levels_ends_at_these() -> None:
    problem, sums, _ = request(1, 6)
    most, no_limits = 0.8 * problem.attribute_epsilon, np.full(6, np.inf)
    ratios, height = problem.attribute_epsilon, 0.9 * float(most.sum())
    total = AtTotal(problem.n_categories, ratios, most, 1.05, no_limits, height)
    best = RampSearch(sums, total, 0.0, 1e-12).best(1.0)
    assert best is not None
    level = sums.response(best.ramp, best.asked.problem.change_probability).level
    np.testing.assert_allclose(level, most, rtol=3e-5)  # where the top is not moved any more
    assert (level <= most).all()
    assert (best.ramp.slopes <= 1.05 * most).all()


def test_a_ramp_without_a_plateau_that_was_found_on_the_way_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, sums, least = request(2, 7)
    caps = 1.1 * problem.attribute_epsilon
    search = RampSearch(sums, AtLevels(problem, caps), least + 0.3, 1e-12)
    for name in ("_starts", "_ending_unchanged"):  # as where levels are far apart
        monkeypatch.setattr(search, name, lambda *_: iter(()))
    best = search.best(1.0)
    assert best is not None
    assert search.least_ratio(best) < 1.0
    monkeypatch.setattr(search, "_moved", lambda *_: None)
    kept = search.keeping(1.0, best)
    assert kept is not None
    assert kept.ends_unchanged


def test_where_no_top_keeps_a_floor_the_ramp_without_a_plateau_does() -> None:
    problem, sums, least = request(2, 7)
    search = RampSearch(sums, AtLevels(problem, 2 * problem.attribute_epsilon), least + 0.3, 1e-12)
    best = search.best(1.0)
    assert best is not None
    kept = search.keeping(1.0, best)
    assert kept is not None
    assert search.least_ratio(kept) >= 1.0
    assert best.w < kept.w < problem.attribute_epsilon.sum()


@pytest.mark.parametrize(("seed", "multiple"), [(0, 2.0), (1, 3.0), (2, 1.25)])
def test_levels_of_8_to_20_nats_are_reached_from_the_product_law(
    seed: int, multiple: float
) -> None:
    # Every other start stalls: at such levels the height hardly answers to the slopes.
    random = np.random.default_rng(seed)
    levels = random.uniform(8, 20, 14)
    problem = checked_problem(random.integers(2, 9, 14).tolist(), levels)
    search = RampSearch(
        GridRamps(problem.n_categories), AtLevels(problem, multiple * levels), 90.0, 1e-7, 1e-5
    )
    best = search.best(1.0)
    assert best is not None
    # If nothing at all is changed at e^E, and everything else is at 1, E is at least about this.
    nothing = float(np.log(problem.n_categories).sum() + levels.max())
    assert best.w < nothing + 0.05
    assert best.w >= weighted_bound(problem.counts.tolist(), levels.tolist(), levels.tolist())
    assert (best.ramp.slopes <= multiple * levels).all()


def test_a_total_starts_from_independent_responses_that_spend_it() -> None:
    ratios, at_most = np.array([1.0, 2.0, 3.0]), np.array([math.inf, 1.0, math.inf])
    total = AtTotal(np.full(3, 4.0), ratios, at_most, 2.0, np.full(3, np.inf), 5.0)
    w = total.independent(np.array([2.0, 1.0, 1.0]))
    assert (np.minimum(math.exp(w) * ratios, at_most) @ [2.0, 1.0, 1.0]) == pytest.approx(5.0)


def test_a_step_to_a_height_below_0_comes_to_nothing() -> None:
    problem, sums, _ = request(1, 5)
    fit = RampFit(sums, AtLevels(problem, 2.0 * problem.attribute_epsilon), 1e-12)
    assert fit.at(problem.attribute_epsilon, -0.1, 0.05, 1.0) is None


def test_a_slope_above_the_bottom_is_put_back_beside_it_and_the_law_stays_the_same() -> None:
    problem = checked_problem([3] * 7, [9.0, 0.5, 0.8, 1.1, 0.4, 0.9, 1.0])
    sums, change = OrbitRamps(orbits(problem)), problem.change_probability
    fit = RampFit(sums, AtLevels(problem, np.full(7, np.inf)), 1e-12)
    right = fit.at(1.5 * problem.attribute_epsilon, 11.0, 1.5, None, veto=False)
    assert right is not None
    bottom = right.ramp.slopes @ change - right.ramp.top + right.ramp.height
    assert right.ramp.slopes[0] >= bottom
    # The same law with a first slope three times as large, and the top where that puts it.
    steep = right.ramp.slopes * np.where(np.arange(7) == 0, 3.0, 1.0)
    top = right.ramp.top + float((steep - right.ramp.slopes) @ change)
    again = fit.at(steep, 11.0, top, None, veto=False)
    assert again is not None
    np.testing.assert_allclose(again.ramp.slopes, right.ramp.slopes, rtol=1e-9)
    assert again.ramp.top == pytest.approx(right.ramp.top, abs=1e-9)


def test_the_search_ends_where_a_second_slope_reaches_its_cap() -> None:
    # It once ended as much as a hundredth above that top, and of E.
    counts = [3, 42, 5, 8, 29, 7, 12, 2, 23, 11, 6, 25, 5, 9, 3]
    levels = [0.044, 0.007, 0.012, 1.15, 0.014, 0.095, 10.014, 8.371, 0.905, 0.161]
    problem = checked_problem(counts, [*levels, 0.013, 0.005, 9.047, 0.127, 0.003])
    caps = 1.2 * problem.attribute_epsilon
    target = AtLevels(problem, caps)
    best = RampSearch(GridRamps(problem.n_categories), target, 14.0, 1e-7, 1e-5).best(1.0)
    assert best is not None
    used = np.sort(best.ramp.slopes / caps)
    assert used[-2] > 0.999
    assert best.w < 13.93


@pytest.mark.parametrize(
    ("levels", "categories", "multiple", "height"),
    [
        # The best top is next to one below which no ramp was found: it ended 0.01 above.
        ([0.3, 0.46, 0.61, 0.77, 0.93, 1.09, 1.24, 1.4, 20.0], 2, 1.5, 21.2),
        # One is where w has a bend, beyond which it rises slowly: it ended 0.01 above.
        (np.geomspace(0.05, 10.0, 10).tolist(), 2, 1.25, 12.0),
    ],
)
def test_no_top_next_to_where_the_search_ends_is_better(
    levels: list[float], categories: int, multiple: float, height: float
) -> None:
    problem = checked_problem([categories] * len(levels), levels)
    target = AtLevels(problem, multiple * problem.attribute_epsilon)
    sums = GridRamps(problem.n_categories)
    best = RampSearch(sums, target, height, 1e-7, 1e-5).best(1.0)
    assert best is not None
    fit = RampFit(sums, target, 1e-7, stalled=1e-5)
    for part in (*np.linspace(0.95, 0.999, 9), *np.linspace(1.001, 1.05, 9)):
        top = float(part) * best.ramp.top
        other = fit.at(best.ramp.slopes, best.w, top, 1.0)
        assert other is None or other.w > best.w - 1e-3


def test_from_the_product_law_caps_a_tenth_above_the_levels_are_reached() -> None:
    # The product law was taken for a ramp that nearly reaches them.
    levels = [2.884, 2.867, 1.671, 1.915, 1.11, 1.777, 1.145, 1.655, 1.156, 0.781]
    problem = checked_problem([5] * 15, [*levels, 2.872, 2.838, 0.362, 1.047, 2.859])
    target = AtLevels(problem, 1.1 * problem.attribute_epsilon)
    best = RampSearch(GridRamps(problem.n_categories), target, 12.0, 1e-7, 1e-5).best(1.0)
    assert best is not None
    assert best.w < 14.36


@pytest.mark.parametrize(("useful", "fits"), [(math.inf, 30), (22.0, 3)])
def test_from_the_product_law_one_goes_once_and_not_on_where_no_ramp_is_of_use(
    useful: float, fits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside a level of 20 ramps without a plateau end at 28.5 nats.
    random = np.random.default_rng(1)
    levels = np.append(random.uniform(0.2, 0.8, 20), 20.0)
    problem = checked_problem(random.integers(2, 50, 21).tolist(), levels.tolist())
    tried = mock.Mock(side_effect=RampFit.at)
    monkeypatch.setattr(RampFit, "at", lambda *given, **more: tried(*given, **more))
    target = AtLevels(problem, 1.5 * levels, useful)
    search = RampSearch(GridRamps(problem.n_categories), target, 22.0, 1e-7, 1e-5)
    found = search._from_independent(1.0)
    assert (found is None) == (useful < 28.0)
    first = tried.call_count
    assert first <= fits
    assert search._from_independent(1.0) is found
    assert tried.call_count == first


def test_where_a_long_step_up_leads_nowhere_a_shorter_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, sums, least = request(2, 7)
    search = RampSearch(sums, AtLevels(problem, 2 * problem.attribute_epsilon), least + 0.3, 1e-12)
    best = search.best(1.0)
    assert best is not None
    whole = list(search.raised(best, 1.4))
    moved = search._moved
    long = 1.3 * best.ramp.top + 0.02  # as beside a bend

    def near(fit: Fit, top: float) -> Fit | None:
        return None if fit is best and top > long else moved(fit, top)

    monkeypatch.setattr(search, "_moved", near)
    found = list(search.raised(best, 1.4))
    assert found[0].ramp.top == pytest.approx(math.sqrt(1.4) * best.ramp.top + 0.02)
    assert len(found) >= len(whole)


def test_where_nothing_changes_there_is_no_ramp_below_which_the_mass_is() -> None:
    levels = np.array([60.0, 55.0, 50.0])
    problem = checked_problem([2, 3, 4], levels.tolist())
    search = RampSearch(
        GridRamps(problem.n_categories), AtLevels(problem, 2.0 * levels), 90.0, 1e-7, 1e-5
    )
    assert all(found is None for found in search._at_the_bottom(1.0))
