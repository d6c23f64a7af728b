"""Laws from the ties of a basis: every level met to the last digits, ties exact."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from deniable.solvers.patterns import closed_form
from deniable.solvers.patterns.levels import Ties, _binomials, keep_masses, solve_levels
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.problem import checked_problem


def free_ties(n: int, component: list[int]) -> Ties:
    return Ties(np.array(component), np.ones(n), np.zeros(n))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 8.0])
def test_two_attributes_whose_ties_are_those_of_the_closed_form_give_its_law(scale: float) -> None:
    # Orbits: both kept, the second changed, the first changed, both changed.
    ties = {"I": [1, 2, 0, 0], "II": [1, 0, 2, 0], "III": [1, 2, 1, 0], "IV": [1, 1, 2, 0]}
    seen = set()
    for counts, ratio in itertools.product([(2, 2), (3, 9), (9, 3), (7, 8)], [0.2, 1.0, 4.0]):
        levels = [scale, scale * ratio]
        expected = closed_form.solve(counts, levels)
        seen.add(expected.case)
        grouped = orbits(checked_problem(counts, levels), [0, 1])
        solution = solve_levels(grouped, free_ties(4, ties[expected.case]))
        assert solution is not None
        np.testing.assert_allclose(
            solution.excess, expected.pattern_excess.ravel(), rtol=1e-11, atol=2e-14
        )
        kept, changed = keep_masses(grouped, solution.excess)
        assert (kept <= changed * (1 + 4 * 2.0**-52)).all()
        assert (kept >= changed * (1 - 1e-13)).all()
    assert len(seen) >= 2


def test_no_level_is_exceeded_by_as_much_as_a_rounding() -> None:
    random = np.random.default_rng(1)
    ties = {"I": [1, 2, 0, 0], "II": [1, 0, 2, 0], "III": [1, 2, 1, 0], "IV": [1, 1, 2, 0]}
    for _ in range(200):
        counts, levels = random.integers(2, 30, 2).tolist(), random.uniform(0.1, 5.0, 2).tolist()
        grouped = orbits(checked_problem(counts, levels), [0, 1])
        case = closed_form.solve(counts, levels).case
        solution = solve_levels(grouped, free_ties(4, ties[case]))
        assert solution is not None
        kept, changed = keep_masses(grouped, solution.excess)
        assert ((kept - changed) / changed).max() <= 2e-16


def test_ties_with_a_factor_hold_exactly_inside_a_component() -> None:
    # The second attribute's cap binds everywhere: it answers independently of the first.
    first, second = 1.0, 0.7
    grouped = orbits(checked_problem([3, 4], [first, second]), [0, 1])
    gain = np.array([math.exp(second), 1.0, math.exp(second), 1.0])
    ties = Ties(np.array([1, 1, 0, 0]), gain, np.expm1([second, 0.0, second, 0.0]))
    # One free level less than equations: only the first attribute's equation is kept.
    exact = np.array([True, False])
    solution = solve_levels(grouped, ties, exact=exact)
    assert solution is not None
    density = 1.0 + solution.excess
    np.testing.assert_allclose(density, np.exp([first + second, first, second, 0.0]), rtol=1e-14)
    assert solution.weights[1] == 0.0


def test_a_further_row_is_met_as_well() -> None:
    grouped = orbits(checked_problem([3, 4], [1.0, 0.7]), [0, 1])
    # The pair's attenuation is the product of its singles: the product law.
    a = np.array([3.0, 4.0])
    phi = a * grouped.groups.keep_excess / (a - 1)
    row = grouped.pair_attenuation(0, 1) - phi[0] * phi[1]
    solution = solve_levels(grouped, free_ties(4, [1, 2, 3, 0]), [row])
    assert solution is not None
    np.testing.assert_allclose(1 + solution.excess, np.exp([1.7, 1.0, 0.7, 0.0]), rtol=1e-12)
    assert len(solution.balance_weights) == 1


def test_too_few_or_dependent_components_give_no_law() -> None:
    grouped = orbits(checked_problem([3, 4], [1.0, 0.7]), [0, 1])
    assert solve_levels(grouped, free_ties(4, [1, 1, 1, 0])) is None
    alike = orbits(checked_problem([3, 3], [1.0, 1.0]), [0, 1])
    row = alike.drift[0] - alike.drift[1]
    assert solve_levels(alike, free_ties(4, [1, 2, 3, 0]), [row]) is None


@pytest.mark.parametrize("p", [1e-200, 1e-17, 0.3, 0.9999])
def test_binomial_laws_are_right_to_their_last_digits(p: float) -> None:
    laws = _binomials(9, p)
    with localcontext() as context:
        context.prec = 60
        exact_p = Decimal(p)
        for c, j in itertools.product(range(10), repeat=2):
            exact = math.comb(c, j) * exact_p**j * (1 - exact_p) ** (c - j) if j <= c else 0
            assert float(exact) == pytest.approx(laws[c, j], rel=1e-14, abs=1e-300)
