"""The two-attribute closed form against the formulas of the paper in exact arithmetic."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.solvers.patterns import closed_form

LEVELS = st.one_of(st.just(0.0), st.floats(1e-8, 6.0), st.floats(1e-3, 25.0))
COUNTS = st.one_of(st.integers(2, 6), st.integers(2, 3000))


def exact_exp(level: float) -> Fraction:
    """e^level to 60 digits, as a rational number."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(level).exp())


def as_printed(counts: tuple[int, int], levels: tuple[float, float]) -> tuple[str, list[Fraction]]:
    """The paper's four cases, transcribed: the case and (x_0, x_1, x_2)."""
    m, n = counts
    e1, e2 = (exact_exp(level) for level in levels)
    if e1 * e2 >= (m - 1) * (n - 1):
        if n * (e1 - 1) >= m * (e2 - 1):
            x0 = (n * e1 * e2 + (m - 1) * (n - 1) * (e2 - 1)) / (e2 + n - 1)
            return "I", [x0, Fraction(1), (n * e1 - (m - 1) * (e2 - 1)) / (e2 + n - 1)]
        x0 = (m * e1 * e2 + (m - 1) * (n - 1) * (e1 - 1)) / (e1 + m - 1)
        return "II", [x0, (m * e2 - (n - 1) * (e1 - 1)) / (e1 + m - 1), Fraction(1)]
    if (n - m) * e1 * e2 - m * (n - 1) * e1 + (m - 1) * n * e2 >= 0:
        bottom = -(e1 - 1) * e2 + m * (n - 1)
        x0 = (n - 1) * (e1 + m - 1) * e2 / bottom
        return "III", [x0, x0, (m * (n - 1) * e1 + (m - 1) * (e1 - 1) * e2) / bottom]
    bottom = -e1 * (e2 - 1) + (m - 1) * n
    x0 = (m - 1) * e1 * (e2 + n - 1) / bottom
    return "IV", [x0, ((m - 1) * n * e2 + (n - 1) * e1 * (e2 - 1)) / bottom, x0]


@given(st.tuples(COUNTS, COUNTS), st.tuples(LEVELS, LEVELS))
def test_the_excess_over_one_is_the_papers_to_full_relative_accuracy(
    counts: tuple[int, int], levels: tuple[float, float]
) -> None:
    case, (x0, x1, x2) = as_printed(counts, levels)
    solution = closed_form.solve(counts, levels)
    got = solution.pattern_excess
    # Conditioning: moving ε by a rounding moves x by at most a factor of about m + n near the
    # border between cases III and I, where the denominator is small compared with its terms.
    tolerance = 1e-15 * (20 + sum(counts))
    assert got[0, 0] == pytest.approx(float(x0 - 1), rel=tolerance, abs=0)
    scale = float(x0 - 1)
    if solution.case == case:
        assert got[1, 0] == pytest.approx(float(x1 - 1), rel=tolerance, abs=tolerance * scale)
        assert got[0, 1] == pytest.approx(float(x2 - 1), rel=tolerance, abs=tolerance * scale)
    else:  # only where both cases give the same x_0, up to rounding
        e1, e2 = (exact_exp(level) for level in levels)
        border = abs(e1 * e2 / ((counts[0] - 1) * (counts[1] - 1)) - 1)
        tie = abs(float(x1 - x2)) <= tolerance * scale
        assert border < tolerance or tie
    assert solution.epsilon == pytest.approx(math.log1p(float(x0 - 1)), rel=tolerance)


@given(st.tuples(COUNTS, COUNTS), st.tuples(LEVELS, LEVELS))
def test_the_law_keeps_each_level_and_is_monotone(
    counts: tuple[int, int], levels: tuple[float, float]
) -> None:
    m, n = counts
    x = closed_form.solve(counts, levels).pattern_density
    assert x[1, 1] == 1.0
    assert x[0, 0] >= x[1, 0] >= 1.0
    assert x[0, 0] >= x[0, 1] >= 1.0
    first = math.log((x[0, 0] + (n - 1) * x[0, 1]) / (x[1, 0] + (n - 1)))
    second = math.log((x[0, 0] + (m - 1) * x[1, 0]) / (x[0, 1] + (m - 1)))
    assert (first, second) == pytest.approx(levels, rel=1e-13, abs=1e-14 * (10 + sum(counts)))


def test_all_four_cases_occur_and_swapping_attributes_swaps_the_law() -> None:
    seen = {}
    for counts, levels in [
        ((3, 4), (2.0, 1.0)),
        ((3, 4), (1.0, 2.0)),
        ((9, 9), (0.5, 1.0)),
        ((9, 9), (1.0, 0.5)),
    ]:
        forward = closed_form.solve(counts, levels)
        backward = closed_form.solve(counts[::-1], levels[::-1])
        np.testing.assert_array_equal(forward.pattern_excess, backward.pattern_excess.T)
        seen[forward.case] = backward.case
    assert seen == {"I": "II", "II": "I", "III": "IV", "IV": "III"}


def test_identical_attributes_get_identical_densities() -> None:
    for counts, level in [(7, 0.3), (4, 2.0), (2, 1.0), (50, 1e-6)]:
        x = closed_form.solve((counts, counts), (level, level)).pattern_excess
        assert x[0, 1] == pytest.approx(x[1, 0], rel=1e-14)


@pytest.mark.parametrize("levels", [(300.0, 299.0), (600.0, 1.0), (600.0, 600.0), (1.0, 300.0)])
def test_very_large_levels_stay_finite(levels: tuple[float, float]) -> None:
    solution = closed_form.solve((5, 1000), levels)
    assert np.isfinite(solution.pattern_excess).all()
    assert max(levels) <= solution.epsilon <= sum(levels)


def test_a_level_of_zero_costs_nothing() -> None:
    solution = closed_form.solve((4, 6), (0.0, 1.25))
    assert solution.epsilon == pytest.approx(1.25, rel=1e-15)
    assert closed_form.solve((4, 6), (0.0, 0.0)).epsilon == 0.0


@pytest.mark.parametrize(
    ("counts", "levels", "sentence"),
    [
        ((3, 3, 3), (1.0, 1.0, 1.0), "two attributes, not 3"),
        ((3,), (1.0,), "two attributes, not 1"),
        ((3, 1), (1.0, 1.0), r"n_categories\[1\]"),
        ((3, 2.5), (1.0, 1.0), r"n_categories\[1\]"),
        ((3, 3), (1.0, -1e-9), r"attribute_epsilon\[1\]"),
        ((3, 3), (math.nan, 1.0), r"attribute_epsilon\[0\]"),
        ((3, 3), (1.0, math.inf), r"attribute_epsilon\[1\]"),
        ((3, 3), (1.0, 601.0), "between 0 and 600"),
        ((3, 3), (1.0,), "1 levels were given for 2 attributes"),
        ((), (), "at least one attribute"),
        (("three", 3), (1.0, 1.0), "flat list of numbers"),
        (((3, 3), (3, 3)), ((1.0, 1.0), (1.0, 1.0)), "flat list of numbers"),
    ],
)
def test_a_bad_request_is_refused_with_one_sentence(
    counts: tuple[int, ...], levels: tuple[float, ...], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        closed_form.solve(counts, levels)
