"""The scaled recursion against Algorithm 3 as printed, in exact rational arithmetic."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.solvers.patterns import closed_form, heuristic


def exact_exp(level: float) -> Fraction:
    """e^level to 60 digits, as a rational number."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(level).exp())


def base_case(a: list[int], e: list[Fraction]) -> list[Fraction]:
    """(x_0, x_1, x_2): the feasible candidate of the closed form with the smallest x_0.

    The four candidates are x_1 = 1, x_2 = 1, x_1 = x_0, x_2 = x_0 in the two level equations.
    """
    m, n = a
    e1, e2 = e
    found = []
    x2 = (n * e1 - (m - 1) * (e2 - 1)) / (e2 + n - 1)
    found.append((e1 + (n - 1) * (e1 - x2), Fraction(1), x2))
    x1 = (m * e2 - (n - 1) * (e1 - 1)) / (e1 + m - 1)
    found.append((e2 + (m - 1) * (e2 - x1), x1, Fraction(1)))
    bottom = -(e1 - 1) * e2 + m * (n - 1)
    if bottom > 0:
        x0 = (n - 1) * (e1 + m - 1) * e2 / bottom
        found.append((x0, x0, (m * (n - 1) * e1 + (m - 1) * (e1 - 1) * e2) / bottom))
    bottom = -e1 * (e2 - 1) + (m - 1) * n
    if bottom > 0:
        x0 = (m - 1) * e1 * (e2 + n - 1) / bottom
        found.append((x0, ((m - 1) * n * e2 + (n - 1) * e1 * (e2 - 1)) / bottom, x0))
    return list(min(x for x in found if x[0] >= x[1] >= 1 and x[0] >= x[2] >= 1))


def algorithm_3(
    counts: list[int], levels: list[float]
) -> tuple[list[Fraction], list[Fraction], list[bool]]:
    """Algorithm 3 line by line: (x_{k,0..k}, achieved e^{ε}, which attributes fell back)."""
    e = [exact_exp(level) for level in levels]
    x = base_case(counts[:2], e[:2])
    fell_back = [False, False]
    for i in range(3, len(counts) + 1):
        a, e_i = counts[i - 1], e[i - 1]
        previous = x[0]
        x = [previous] + [a * value - a + 1 for value in x[1:]]
        big_a = sum((counts[h - 1] - 1) * x[h] for h in range(1, i))
        product = math.prod(counts[: i - 1])
        big_b = product - sum(counts[: i - 1]) + i - 2
        big_c = product - 1
        # Subtract the second equation from the first: x_ii (a − 1 + e) = a x_{i−1,0} + A + B − e C.
        x_ii = (a * previous + big_a + big_b - e_i * big_c) / (a - 1 + e_i)
        x_i0 = a * previous - (a - 1) * x_ii
        fallback = x_i0 < 1 or x_ii < 1 or any(x_i0 < value for value in [*x[1:], x_ii])
        if fallback:
            x_i0, x_ii = a * previous - a + 1, Fraction(1)
            e[i - 1] = (x_i0 + big_a + big_b) / (x_ii + big_c)
        fell_back.append(fallback)
        x = [x_i0, *x[1:], x_ii]
    return x, e, fell_back


def log_ratio(ratio: Fraction) -> float:
    """ln of a rational number above 1, without losing the digits of ratio − 1."""
    return math.log1p(float(ratio - 1)) if ratio < 2**900 else math.log(ratio)


def random_instances(seed: int, n: int) -> list[tuple[list[int], list[float]]]:
    generator = np.random.default_rng(seed)
    instances = []
    for _ in range(n):
        k = int(generator.integers(2, 13))
        top = int(generator.choice([3, 6, 60, 5000]))
        counts = generator.integers(2, top, k).tolist()
        style = generator.integers(4)
        if style == 0:
            levels = generator.uniform(1.0, 8.0, k)
        elif style == 1:
            levels = np.sort(generator.uniform(1.0, 8.0, k))[::-1]
        elif style == 2:
            levels = 10.0 ** generator.uniform(-7.0, 0.5, k)
        else:
            levels = 1.0 + generator.uniform(0.0, 1e-3, k)
        instances.append((counts, levels.tolist()))
    return instances


def test_it_is_algorithm_3_as_printed_including_every_fallback() -> None:
    fallbacks = 0
    for counts, levels in random_instances(1, 150):
        x, achieved, fell_back = algorithm_3(counts, levels)
        solution = heuristic.solve(counts, levels)
        assert solution.changed.tolist() == fell_back, (counts, levels)
        fallbacks += sum(fell_back)
        product = math.prod(counts)
        # The denominator of cases III and IV amplifies a rounding by up to m + n.
        tolerance = 1e-15 * (40 + sum(counts[:2]))
        u0 = float((x[0] - 1) / product)
        assert solution.keep_excess == pytest.approx(u0, rel=tolerance, abs=0)
        for got, value in zip(solution.change_excess, x[1:], strict=True):
            assert got == pytest.approx(float((value - 1) / product), rel=0, abs=tolerance * u0)
        for got, ratio in zip(solution.achieved_epsilon, achieved, strict=True):
            assert got == pytest.approx(log_ratio(ratio), rel=tolerance, abs=0)
        assert solution.epsilon == pytest.approx(log_ratio(x[0]), rel=tolerance, abs=0)
    assert fallbacks > 125


def test_the_achieved_levels_are_those_of_the_whole_table_of_patterns() -> None:
    for counts, levels in random_instances(2, 150):
        if len(counts) > 8 or max(counts) > 100:
            continue
        solution = heuristic.solve(counts, levels)
        k = len(counts)
        uniform = np.ones(())
        for a in counts:
            uniform = np.multiply.outer(uniform, [1 / a, 1 - 1 / a])
        law = uniform.copy()
        law[(0,) * k] += solution.keep_excess
        for j, u in enumerate(solution.change_excess):
            law[tuple(int(i == j) for i in range(k))] += (counts[j] - 1) * u
        density = law / uniform
        assert math.log(density.max() / density.min()) == pytest.approx(solution.epsilon, rel=1e-9)
        assert density[(0,) * k] == pytest.approx(density.max(), rel=1e-14)
        for i, a in enumerate(counts):
            keep = law.sum(axis=tuple(j for j in range(k) if j != i))
            level = math.log(keep[0] * (a - 1) / keep[1])
            assert level == pytest.approx(solution.achieved_epsilon[i], rel=1e-12, abs=1e-13)
            if not solution.changed[i]:
                assert solution.achieved_epsilon[i] == levels[i]


def test_two_attributes_are_the_closed_form_and_one_is_plain_randomized_response() -> None:
    generator = np.random.default_rng(3)
    for _ in range(300):
        counts = generator.integers(2, 40, 2)
        levels = generator.uniform(0.01, 6.0, 2)
        expected = closed_form.solve(counts.tolist(), levels.tolist())
        solution = heuristic.solve(counts.tolist(), levels.tolist())
        assert solution.epsilon == pytest.approx(expected.epsilon, rel=1e-14)
        got = solution.change_excess * counts.prod()
        np.testing.assert_allclose(
            got, [expected.pattern_excess[1, 0], expected.pattern_excess[0, 1]]
        )
    for level in (1e-6, 1.0, 20.0):
        single = heuristic.solve([7], [level])
        assert single.epsilon == pytest.approx(level, rel=1e-14)
        assert single.change_excess.tolist() == [0.0]
        assert not single.changed.any()


def test_tiny_levels_keep_twelve_digits() -> None:
    counts, levels = [3, 5, 2, 4, 3], [3e-6, 1e-6, 2e-6, 1.5e-6, 2.5e-6]
    x, achieved, _ = algorithm_3(counts, levels)
    solution = heuristic.solve(counts, levels)
    assert solution.epsilon == pytest.approx(log_ratio(x[0]), rel=1e-14)
    expected = [log_ratio(ratio) for ratio in achieved]
    np.testing.assert_allclose(solution.achieved_epsilon, expected, rtol=1e-14)


def test_many_attributes_stay_finite_and_exact_where_kept() -> None:
    k = 200_000
    generator = np.random.default_rng(4)
    counts = generator.integers(2, 6, k)
    levels = np.sort(generator.uniform(1.0, 10.0, k))[::-1]
    solution = heuristic.solve(counts.tolist(), levels.tolist())
    assert math.isfinite(solution.epsilon)
    assert np.isfinite(solution.achieved_epsilon).all()
    kept = ~solution.changed
    np.testing.assert_array_equal(solution.achieved_epsilon[kept], levels[kept])
    assert kept.sum() > 10
    assert solution.keep_excess >= solution.change_excess.max() >= 0
    # W = u_0 + Σ (a_j − 1) u_j is conserved, and in case I it is g_1: nothing leaked on the way.
    total = solution.keep_excess + math.fsum(((counts - 1) * solution.change_excess).tolist())
    first = np.expm1(levels[:2]) / counts[:2]
    assert total == pytest.approx(first.max(), rel=1e-14)


def test_the_order_of_the_attributes_matters() -> None:
    descending = heuristic.solve([5, 5, 5], [5.0, 3.0, 2.9])
    ascending = heuristic.solve([5, 5, 5], [2.9, 3.0, 5.0])
    assert not descending.changed.any()
    assert ascending.changed.tolist() == [False, False, True]
    assert descending.epsilon != pytest.approx(ascending.epsilon)


def test_a_fallback_may_raise_a_level_above_the_request() -> None:
    solution = heuristic.solve([2, 2, 5, 5], [1.0, 1.0, 0.01, 0.01])
    raised = solution.achieved_epsilon > np.array([1.0, 1.0, 0.01, 0.01])
    assert (solution.changed & raised).any()


def test_levels_of_zero_and_products_beyond_doubles_are_handled() -> None:
    assert heuristic.solve([3, 4, 5], [0.0, 0.0, 0.0]).epsilon == 0.0
    many = heuristic.solve([10_000] * 200, [1e-300] * 200)
    assert math.isfinite(many.epsilon)
    assert many.epsilon > 0.0


def test_a_bad_request_is_refused() -> None:
    with pytest.raises(InputError, match=r"n_categories\[2\]"):
        heuristic.solve([3, 3, 1], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="2 levels were given for 3 attributes"):
        heuristic.solve([3, 3, 3], [1.0, 1.0])
