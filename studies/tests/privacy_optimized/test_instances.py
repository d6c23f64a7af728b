"""Instances of Figures 1 to 4, thresholds and trends, against brute force."""

import math

import numpy as np
import pytest

from deniable.solvers.patterns import heuristic, linear
from deniable_studies.privacy_optimized.instances import (
    NEARLY_ALL,
    Instance,
    scatter_about_trend,
    slope,
    solve_instance,
    third,
    threshold_above,
    threshold_below,
)


def test_an_instance_holds_the_solvers_numbers() -> None:
    generator = np.random.default_rng(1)
    for k in (3, 4, 5):
        counts = generator.integers(2, 7, k).tolist()
        levels = generator.uniform(1, 8, k).tolist()
        instance = solve_instance(counts, levels, linear_program=True)
        rough = heuristic.solve(counts, levels)
        assert instance.heuristic == pytest.approx(rough.epsilon, abs=1e-8)
        assert instance.achieved == pytest.approx(rough.achieved_epsilon.tolist(), abs=1e-8)
        assert instance.n_raised + instance.n_lowered == int(rough.changed.sum())
        assert instance.optimum_requested == pytest.approx(
            linear.solve(counts, levels).epsilon, abs=1e-7
        )
        assert instance.optimum_achieved == pytest.approx(
            linear.solve(counts, rough.achieved_epsilon.tolist()).epsilon, abs=1e-7
        )
        assert instance.linear_program == pytest.approx(instance.optimum_requested, abs=1e-7)
        assert instance.excess_achieved >= 1 - 1e-9
        assert instance.gap < 1e-7


def test_raised_and_lowered_levels_are_told_from_rounding() -> None:
    instance = Instance((2,) * 3, (1.0, 2.0, 3.0), (1.0 - 5e-10, 2.5, 2.9), 5, 4, 4.5, 0, None, 2)
    assert (instance.n_raised, instance.n_lowered, instance.kept) == (1, 1, False)
    assert (instance.sum_requested, instance.excess_requested) == (6, 1.25)


def test_a_threshold_is_the_smallest_place_above_which_nearly_all_are_good() -> None:
    generator = np.random.default_rng(2)
    for _ in range(200):
        n = int(generator.integers(1, 40))
        x = generator.integers(0, 12, n).astype(float)
        good = generator.random(n) < x / 12
        shares = {place: good[x >= place].mean() for place in x}
        fitting = [place for place, share in shares.items() if share >= NEARLY_ALL]
        assert threshold_above(x, good) == (min(fitting) if fitting else None)
        below = [place for place in x if good[x <= place].mean() >= NEARLY_ALL]
        assert threshold_below(x, good) == (max(below) if below else None)


def test_a_slope_and_its_error_are_those_of_least_squares() -> None:
    generator = np.random.default_rng(3)
    x = generator.random(50)
    y = 2 - 3 * x + generator.normal(0, 0.1, 50)
    value, error = slope(x, y)
    coefficients, covariance = np.polyfit(x, y, 1, cov=True)
    assert value == pytest.approx(coefficients[0])
    assert error == pytest.approx(math.sqrt(covariance[0, 0]))


def test_scatter_forgets_a_parabola_and_finds_the_noise() -> None:
    generator = np.random.default_rng(4)
    x = generator.random(5000)
    noise = generator.normal(0, 0.2, 5000)
    assert scatter_about_trend(x, 1 + x - 4 * x**2) == pytest.approx(0, abs=1e-12)
    assert scatter_about_trend(x, 1 + x - 4 * x**2 + noise) == pytest.approx(0.2, rel=0.05)


def test_thirds_are_the_smallest_and_the_largest_values() -> None:
    x = [5.0, 1.0, 3.0, 2.0, 9.0, 4.0, 7.0]
    assert sorted(x[i] for i in third(x, upper=False)) == [1.0, 2.0]
    assert sorted(x[i] for i in third(x, upper=True)) == [7.0, 9.0]
