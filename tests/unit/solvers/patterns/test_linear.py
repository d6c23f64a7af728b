"""The linear program: as printed, equal to other solvers, and every promise by brute force."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

import numpy as np
import pytest
from scipy import optimize

from deniable.errors import InputError
from deniable.proofs import certificate
from deniable.proofs.problem import SolverError
from deniable.solvers import highs
from deniable.solvers.patterns import closed_form, linear
from deniable.solvers.patterns.columns import ColumnSolution
from deniable.solvers.patterns.linear import LinearSolution
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.restricted import Restricted
from marked import slow_after, weekly_after
from unit.solvers.patterns.programs import least_excess

Instance = tuple[list[int], list[float]]


def table_3() -> tuple[np.ndarray, np.ndarray]:
    """A_ub and b_ub of three attributes as the supplement prints them.

    It prints ten entries of b_ub for twelve rows, seven zeros where there must be nine.
    """
    rows = """
        -1 1 0 0 0 0 0,  -1 0 1 0 0 0 0,  -1 0 0 1 0 0 0,  0 -1 0 0 1 0 0,
        0 -1 0 0 0 1 0,  0 0 -1 0 1 0 0,  0 0 -1 0 0 0 1,  0 0 0 -1 0 1 0,
        0 0 0 -1 0 0 1,  0 0 0 0 -1 0 0,  0 0 0 0 0 -1 0,  0 0 0 0 0 0 -1"""
    matrix = np.array([[float(x) for x in row.split()] for row in rows.split(",")])
    return matrix, np.array([0.0] * 9 + [-1.0] * 3)


def algorithms_1_and_2(counts: list[int], levels: list[float]) -> list[np.ndarray]:
    """A_ub, b_ub, A_eq and b_eq by the paper's pseudocode, line by line.

    Minimise x_∅ subject to A_ub x ≤ b_ub and A_eq x = b_eq in the paper's variables
    x_S = X_S/X_{all}, S ≠ all, ordered by the size of S and then lexicographically.
    """
    k = len(counts)
    comb = [list(itertools.combinations(range(1, k + 1), h)) for h in range(k + 1)]
    sets = [s for group in comb for s in group]
    t = [math.prod(counts[s - 1] - 1 for s in members) for members in sets]
    p = [sum(math.comb(k, i) for i in range(h + 1)) for h in range(k)]
    r, g = 0, 1
    a_ub = np.zeros((k * 2 ** (k - 1), 2**k - 1))
    for h in range(1, k + 1):
        a_ub[r, 0], a_ub[r, h] = -1, 1
        r += 1
    for h in range(1, k - 1):
        for i in range(math.comb(k, h)):
            for j in range(math.comb(k, h + 1)):
                if set(comb[h][i]) < set(comb[h + 1][j]):
                    a_ub[r, g], a_ub[r, p[h] + j] = -1, 1
                    r += 1
            g += 1
    for h in range(k):
        a_ub[r + h, p[k - 2] + h] = -1
    b_ub = np.zeros(k * 2 ** (k - 1))
    for h in range(1, k + 1):
        b_ub[k * 2 ** (k - 1) - h] = -1
    a_eq = np.zeros((k, 2**k - 1))
    for h in range(1, k + 1):
        a_eq[h - 1, 0] = 1
        c = 1
        for i in range(1, k):
            for j in range(math.comb(k, i)):
                if h in comb[i][j]:
                    a_eq[h - 1, c] = -(math.exp(levels[h - 1]) * t[c]) / (counts[h - 1] - 1)
                else:
                    a_eq[h - 1, c] = t[c]
                c += 1
    whole = math.prod(a - 1 for a in counts)
    b_eq = np.array([math.exp(e) * whole / (a - 1) for e, a in zip(levels, counts, strict=True)])
    return [a_ub, b_ub, a_eq, b_eq]


def test_the_pseudocode_gives_the_matrices_printed_in_the_supplement() -> None:
    (a1, a2, a3), (e1, e2, e3) = counts, levels = [3, 4, 6], [1.0, 0.5, 2.0]
    found = algorithms_1_and_2(counts, levels)
    a_ub, b_ub = table_3()
    np.testing.assert_array_equal(found[0], a_ub)
    np.testing.assert_array_equal(found[1], b_ub)
    x1, x2, x3 = math.exp(e1), math.exp(e2), math.exp(e3)
    transposed = [
        [1, 1, 1],
        [-x1, a1 - 1, a1 - 1],
        [a2 - 1, -x2, a2 - 1],
        [a3 - 1, a3 - 1, -x3],
        [-(a2 - 1) * x1, -(a1 - 1) * x2, (a1 - 1) * (a2 - 1)],
        [-(a3 - 1) * x1, (a1 - 1) * (a3 - 1), -(a1 - 1) * x3],
        [(a2 - 1) * (a3 - 1), -(a3 - 1) * x2, -(a2 - 1) * x3],
    ]
    np.testing.assert_allclose(found[2], np.transpose(transposed), rtol=1e-14)
    right = [(a2 - 1) * (a3 - 1) * x1, (a1 - 1) * (a3 - 1) * x2, (a1 - 1) * (a2 - 1) * x3]
    np.testing.assert_allclose(found[3], right, rtol=1e-14)


def outputs(counts: list[int]) -> np.ndarray:
    """t_S, shape (2,)*k."""
    table = np.ones(())
    for a in counts:
        table = np.multiply.outer(table, [1.0, a - 1.0])
    return table


def attenuation(law: np.ndarray, counts: list[int], attributes: tuple[int, ...]) -> float:
    signs = np.ones(())
    for i, a in enumerate(counts):
        signs = np.multiply.outer(signs, [1.0, -1.0 / (a - 1.0) if i in attributes else 1.0])
    return math.fsum((law * signs).ravel())


def check_promises(
    instance: Instance,
    solution: LinearSolution,
    caps: list[float | None] | None = None,
    floor: float | None = None,
) -> None:
    """Every promise of `solve`, from the table alone. Sums are exact, as numpy's drift by ulps."""
    counts, levels = instance
    law = solution.pattern_probability
    assert law.shape == (2,) * len(counts)
    assert math.fsum(law.ravel()) == pytest.approx(1.0, abs=1e-15)
    single = law / outputs(counts)
    span = (single.max() - single.min()) / single.min()
    assert solution.epsilon == pytest.approx(math.log1p(span), rel=1e-14, abs=1e-15)
    assert solution.epsilon_lower_bound <= solution.epsilon
    assert (solution.weights >= 0).all()
    for i, (a, level) in enumerate(zip(counts, levels, strict=True)):
        kept = math.fsum(law.take(0, i).ravel())
        changed = math.fsum(law.take(1, i).ravel())
        request = math.exp(level) / (math.exp(level) + a - 1)
        assert kept <= request * (1 + 5 * 2.0**-52)
        assert math.log(kept * (a - 1) / changed) == pytest.approx(level, rel=0, abs=1e-13)
        ratio = single.take(0, i) / single.take(1, i)
        assert ratio.min() >= 1 - 2e-14
        if caps is not None and caps[i] is not None:
            assert np.log(ratio).max() <= caps[i] + 1e-12
    if floor is not None:
        for i, j in itertools.combinations(range(len(counts)), 2):
            product = attenuation(law, counts, (i,)) * attenuation(law, counts, (j,))
            assert attenuation(law, counts, (i, j)) >= floor * product - 1e-14


def instances(seed: int, n: int, most: int = 6) -> list[Instance]:
    generator = np.random.default_rng(seed)
    found: list[Instance] = []
    for _ in range(n):
        k = int(generator.integers(1, most + 1))
        counts = generator.integers(2, int(generator.choice([3, 6, 40, 3000])), k)
        style = int(generator.integers(6))
        if style == 0:
            levels = 10.0 ** generator.uniform(-6.0, -2.0, k)
        elif style == 1:
            levels = np.exp(generator.uniform(math.log(0.05), math.log(6.0), k))
        elif style == 2:
            levels = generator.uniform(5.0, 20.0, k)
        elif style == 3:
            counts[:] = counts[0]
            levels = np.full(k, generator.uniform(0.1, 3.0))
        elif style == 4:
            levels = generator.choice([0.5, 1.0], k)
        else:
            levels = 10.0 ** generator.uniform(-4.0, 1.2, k)
        found.append((counts.tolist(), levels.tolist()))
    return found


@pytest.mark.parametrize("count", weekly_after(1, [60, 500]))
def test_every_promise_holds_and_the_bound_meets_it(count: int) -> None:
    for instance in instances(1, count):
        solution = linear.solve(*instance)
        check_promises(instance, solution)
        bound = solution.epsilon_lower_bound
        assert bound == pytest.approx(solution.epsilon, rel=1e-6, abs=1e-15)
        proved = certificate.weighted_bound(*instance, solution.weights.tolist())
        assert proved == pytest.approx(bound, rel=1e-6, abs=1e-15)


def test_two_attributes_have_the_closed_forms_level() -> None:
    generator = np.random.default_rng(2)
    for _ in range(60):
        counts = generator.integers(2, int(generator.choice([4, 30, 2000])), 2).tolist()
        levels = generator.uniform(0.02, 8.0, 2).tolist()
        expected = closed_form.solve(counts, levels).epsilon
        assert linear.solve(counts, levels).epsilon == pytest.approx(expected, rel=1e-11)


def printed_optimum(instance: Instance) -> float:
    """x_∅ of the program as printed, by another route into HiGHS."""
    matrices = algorithms_1_and_2(*instance)
    cost = np.eye(1, matrices[2].shape[1])[0]
    answer = optimize.linprog(cost, *matrices, bounds=(None, None))
    assert answer.status == 0
    return math.log(answer.x[0])


def test_it_solves_the_program_as_printed() -> None:
    generator = np.random.default_rng(3)
    for _ in range(15):
        k = int(generator.integers(2, 7))
        counts = generator.integers(2, 6, k).tolist()
        levels = generator.uniform(0.3, 3.0, k).tolist()
        expected = printed_optimum((counts, levels))
        assert linear.solve(counts, levels).epsilon == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("factor", "floor"), slow_after(2, [(1.2, None), (2.0, None), (None, 0.5), (1.5, 1.0)])
)
def test_caps_and_floors_give_the_optimum_of_the_program_with_their_rows_added(
    factor: float | None, floor: float | None
) -> None:
    generator = np.random.default_rng(4)
    for _ in range(10):
        k = int(generator.integers(2, 6))
        counts = generator.integers(2, 6, k).tolist()
        levels = generator.uniform(0.3, 2.0, k).tolist()
        caps = None if factor is None else [factor * level for level in levels]
        expected = math.log1p(least_excess(counts, levels, caps, floor))
        solution = linear.solve(counts, levels, given_rest_cap=caps, pair_floor=floor)
        assert solution.epsilon == pytest.approx(expected, rel=1e-6)
        assert solution.epsilon_lower_bound == pytest.approx(solution.epsilon, rel=2e-7)


@pytest.mark.parametrize(
    ("factor", "floor"),
    slow_after(2, [(1.1, None), (2.0, None), (2.0, 0.5), (None, 0.5), (None, 1.0)]),
)
def test_every_promise_holds_with_caps_and_floors(
    factor: float | None, floor: float | None
) -> None:
    for instance in instances(5, 12, most=5):
        caps = None if factor is None else [factor * level for level in instance[1]]
        solution = linear.solve(*instance, given_rest_cap=caps, pair_floor=floor)
        check_promises(instance, solution, caps, floor)
        free = linear.solve(*instance).epsilon
        assert solution.epsilon >= free * (1 - 1e-6) - 1e-15  # what is free is proved to 1e-6


def test_a_looser_cap_never_costs_more_and_none_costs_least() -> None:
    counts, levels = [3, 4, 5, 2, 6], [1.0, 0.7, 1.5, 0.4, 1.2]
    found = []
    for factor in (1.0, 1.05, 1.25, 1.5, 2.0, 3.0, 100.0):
        caps = [factor * level for level in levels]
        found.append(linear.solve(counts, levels, given_rest_cap=caps).epsilon)
    assert found[0] == pytest.approx(sum(levels), rel=1e-14)
    assert all(later <= earlier + 1e-10 for earlier, later in itertools.pairwise(found))
    assert found[-1] == linear.solve(counts, levels).epsilon


def test_some_attributes_may_have_a_cap_and_others_none() -> None:
    instance = [3, 4, 5, 2], [1.0, 0.7, 1.5, 0.4]
    caps = [1.0, None, 2.0, None]
    solution = linear.solve(*instance, given_rest_cap=caps)
    check_promises(instance, solution, caps)
    # A cap at the attribute's own level makes it independent of the others.
    law = solution.pattern_probability
    rest = law.sum(axis=0)
    keep = math.e / (math.e + 2)
    np.testing.assert_allclose(law, np.multiply.outer([keep, 1 - keep], rest), rtol=1e-13)


def test_levels_of_zero_are_uniform_and_cost_nothing() -> None:
    solution = linear.solve([3, 4, 5], [0.0, 1.0, 0.0])
    assert solution.epsilon == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(solution.pattern_probability.sum(axis=(1, 2)), [1 / 3, 2 / 3])
    nothing = linear.solve([3, 4], [0.0, 0.0])
    assert nothing.epsilon == nothing.epsilon_lower_bound == 0.0


def test_sixteen_attributes_of_four_kinds_are_solved_through_their_orbits() -> None:
    counts, levels = [2, 3, 4, 5] * 4, [0.2, 0.4, 0.6, 0.8] * 4
    solution = linear.solve(counts, levels)
    check_promises((counts, levels), solution)
    assert solution.epsilon_lower_bound == pytest.approx(solution.epsilon, rel=1e-11)


def test_ten_different_attributes_are_solved_to_the_same_accuracy() -> None:
    generator = np.random.default_rng(7)
    counts = generator.integers(2, 6, 10).tolist()
    levels = generator.uniform(1.0, 10.0, 10).tolist()
    solution = linear.solve(counts, levels)
    check_promises((counts, levels), solution)
    assert solution.epsilon_lower_bound == pytest.approx(solution.epsilon, rel=1e-11)


@pytest.mark.parametrize(
    ("caps", "floor", "sentence"),
    [
        ([0.9, 2.0], None, r"given_rest_cap\[0\]: a cap of 0.9 nats is below"),
        ([2.0], None, "1 were given for 2 attributes"),
        ([math.nan, 2.0], None, r"given_rest_cap\[0\]"),
        (None, math.inf, "pair_floor: it must be a finite number"),
        (None, 1e6, "pair_floor: no law has every pair's attenuation at least"),
        ([1.0, 1.0], 1.5, "pair_floor: no law has every pair's attenuation at least 1.5"),
    ],
)
def test_a_request_that_no_law_can_meet_is_refused(
    caps: list[float | None] | None, floor: float | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        linear.solve([3, 3], [1.0, 1.0], given_rest_cap=caps, pair_floor=floor)


def test_too_many_attributes_are_refused_with_the_alternative_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="at most 20 attributes, not 21; use the heuristic"):
        linear.solve([3] * 21, [1.0] * 21)
    # k different attributes have k 2^(k−1) pairs of comparable orbits.
    assert 13 * 2**12 <= linear.MAX_EDGES < 15 * 2**14
    monkeypatch.setattr(linear, "MAX_EDGES", 8 * 2**7 - 1)
    levels = np.linspace(0.5, 1.0, 8).tolist()
    with pytest.raises(InputError, match=r"8 different attributes need 1024 rows.*omit them"):
        linear.solve([3] * 8, levels, given_rest_cap=[2 * level for level in levels])


def no_votes(*_: object) -> NoReturn:
    raise SolverError("for this test")


def test_a_solver_that_fails_is_reported_with_the_alternative_and_never_returns_a_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stalled(program: highs.Program, method: highs.Method = "simplex") -> highs.Answer:
        return replace(run(program, method), status="failed")

    run = highs.run
    monkeypatch.setattr(highs, "run", stalled)
    monkeypatch.setattr(linear, "solve_columns", no_votes)
    with pytest.raises(SolverError, match="use the heuristic or Kronecker"):
        linear.solve([3, 4, 5], [1.0, 0.5, 2.0])


def test_a_law_that_is_not_optimal_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    # The product law keeps every level, so that only the bound can tell.
    def product(grouped: Orbits, guess: float) -> ColumnSolution:
        kept = grouped.size - grouped.changed
        excess = np.expm1(kept @ grouped.groups.attribute_epsilon)
        return ColumnSolution(excess, grouped.groups.attribute_epsilon, guess, math.inf)

    monkeypatch.setattr(linear, "solve_columns", product)
    failed = Restricted("failed", None, np.zeros(3), -math.inf)
    monkeypatch.setattr(linear, "solve_restricted", lambda *_, **__: failed)
    with pytest.raises(SolverError):
        linear.solve([3, 4, 5], [1.0, 0.5, 2.0])


def test_the_program_with_all_rows_agrees_with_the_one_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = instances(8, 20, most=5)
    expected = [linear.solve(*instance).epsilon for instance in found]
    monkeypatch.setattr(linear, "solve_columns", no_votes)
    for instance, epsilon in zip(found, expected, strict=True):
        solution = linear.solve(*instance)
        check_promises(instance, solution)
        assert solution.epsilon == pytest.approx(epsilon, rel=1e-6, abs=1e-15)


@pytest.mark.weekly
def test_nine_attributes_of_up_to_ten_thousand_categories_keep_caps_and_floor() -> None:
    # HiGHS's own scaling on top of ours left its bases singular here.
    counts = [4, 1000, 10_000, 10_000, 3, 1000, 1000, 2, 4]
    levels = [0.7521, 0.5367, 0.2388, 0.6995, 0.1825, 5.7201, 0.4722, 0.3298, 0.3444]
    caps = [2 * level for level in levels]
    found = linear.solve(counts, levels, given_rest_cap=caps, pair_floor=0.5)
    assert found.epsilon - found.epsilon_lower_bound <= linear.MAX_GAP * found.epsilon
    assert found.epsilon < 6.43


@pytest.mark.parametrize("floor", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_floor_on_pairs_is_kept_by_the_integers_that_are_drawn_from(
    seed: int, floor: float
) -> None:
    """Of levels near 0 a rounding of 10^−16 is a part of φ_i φ_j that counts."""
    rng = np.random.default_rng(seed)
    k = 4 + seed
    levels = np.exp(rng.uniform(math.log(1e-6), 0.0, k))
    counts = rng.integers(2, 6, k).tolist()
    law, solution = linear.drawn(
        counts, levels.tolist(), given_rest_cap=(2.0 * levels).tolist(), pair_floor=floor
    )
    assert solution.epsilon - solution.epsilon_lower_bound <= linear.MAX_GAP * solution.epsilon
    total = sum(law.weights)
    phi: dict[tuple[int, ...], Fraction] = {}
    for places in itertools.chain(
        itertools.combinations(range(k), 1), itertools.combinations(range(k), 2)
    ):
        phi[places] = sum(
            (
                Fraction(weight, total)
                * math.prod(Fraction(-1, counts[i] - 1) if pattern[i] else 1 for i in places)
                for pattern, weight in zip(
                    itertools.product((0, 1), repeat=k), law.weights, strict=True
                )
            ),
            Fraction(0),
        )
    for i, j in itertools.combinations(range(k), 2):
        assert phi[i, j] >= Fraction(floor) * phi[i,] * phi[j,]
