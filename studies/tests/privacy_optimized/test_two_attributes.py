"""Equations (10) and (11), and the trends read off them."""

import math

import numpy as np
import pytest

from deniable.solvers.patterns import closed_form, linear
from deniable_studies.privacy_optimized.two_attributes import (
    BIG,
    SMALL,
    compare_with_linear_program,
    equation_10,
    equation_11,
    level_steps,
    mean_rise,
    optimal_level,
    ratio_to_sum,
    size_steps,
    trend,
)


def test_the_printed_equations_are_the_optimum_in_their_cases_and_not_in_the_other() -> None:
    assert compare_with_linear_program(np.random.default_rng(0), 60).worst < 1e-10
    optimum = linear.solve([5, 5], [0.5, 0.4]).epsilon
    assert closed_form.solve([5, 5], [0.5, 0.4]).case == "IV"
    assert equation_11(5, 5, 0.4, 0.5) == pytest.approx(optimum, rel=1e-10)
    assert equation_10(5, 5, 0.5, 0.4) > optimum + 0.1


def test_where_the_cases_meet_nothing_is_gained() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        m, n = generator.integers(3, 12, 2).tolist()
        total = math.log((m - 1) * (n - 1))
        first = generator.uniform(0.1, 0.9) * total
        found = linear.solve([m, n], [first, total - first])
        assert found.epsilon == pytest.approx(total, rel=1e-9)


def test_equation_11_falls_with_either_number_of_categories() -> None:
    generator = np.random.default_rng(2)
    compared = 0
    while compared < 200:
        m, n = generator.integers(3, 15, 2).tolist()
        first, second = generator.uniform(0.05, 3, 2).tolist()
        if closed_form.solve([m, n], [first, second]).case != "III":
            continue
        compared += 1
        here = equation_11(m, n, first, second)
        assert equation_11(m + 1, n, first, second) < here
        assert equation_11(m, n + 1, first, second) < here


def test_a_trend_counts_only_steps_that_stay_within_the_cases() -> None:
    steps = level_steps(5, 5, both=True, levels=(0.5, 1.0, 1.5, 2.0))
    within = [
        (start, end)
        for start, end in steps
        if ratio_to_sum(start)[1] in BIG and ratio_to_sum(end)[1] in BIG
    ]
    found = trend(steps, ratio_to_sum, BIG)
    assert 0 < found.n_steps == len(within) < len(steps)
    falls = [ratio_to_sum(end)[0] < ratio_to_sum(start)[0] for start, end in within]
    assert found.falls == sum(falls) / len(falls)
    assert found.falls + found.rises == pytest.approx(1)


def test_two_attributes_at_a_level_of_3_never_reach_the_small_cases() -> None:
    assert trend(size_steps(3.0, both=True), optimal_level, SMALL).n_steps == 0
    assert trend(size_steps(1.0, both=True), optimal_level, SMALL).falls == 1


def test_the_mean_rise_is_of_nats_and_refuses_levels_outside_its_cases() -> None:
    one = equation_10(3, 3, 4, 4) - equation_10(2, 2, 4, 4)
    assert mean_rise(4.0, 3) == pytest.approx(one)
    with pytest.raises(ValueError, match="too small"):
        mean_rise(1.0, 8)
