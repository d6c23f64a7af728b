"""Caps and floors hold in the enumerated law; the answer is near the capped linear program's."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray
from deniable.laws.product import ProductLaw
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.vote_law import VoteLaw
from deniable.proofs.problem import SolverError
from deniable.solvers.patterns import balanced, linear, optimal
from marked import slow_after
from unit.laws.votes import whole_law as oracle
from unit.solvers.patterns.requests import request


def law_of(part: optimal.Part) -> FloatArray:
    """The probability of every pattern, shape (2^k,)."""
    if isinstance(part.law, PatternTable):
        return np.array([weight / 2**part.law.bits for weight in part.law.weights])
    assert isinstance(part.law, VoteLaw)
    return oracle.pattern_law(part.law)


@pytest.mark.parametrize(
    ("seed", "factor", "floor"),  # seed 0 for four attributes, seed 2 for six
    [
        (0, 1.5, None),
        (2, 2.0, None),
        pytest.param(0, 3.0, 0.5, marks=pytest.mark.slow),
        pytest.param(2, 2.0, 0.9, marks=pytest.mark.slow),
    ],
)
def test_a_ramp_or_a_mixture_is_close_to_the_capped_linear_program(
    seed: int, factor: float, floor: float | None
) -> None:
    counts, levels = request(seed, 4 + seed)
    caps = [factor * level for level in levels]
    solution = balanced.solve(counts, levels, caps, floor, exact=0)
    (part,) = solution.parts
    q = law_of(part)
    assert np.all(oracle.given_rest(counts, q) <= caps)
    assert np.all(part.account.attribute_epsilon <= levels)
    assert np.all(part.account.attribute_epsilon >= np.array(levels) - 1e-9)
    single = [oracle.attenuation(counts, q, (i,)) for i in range(len(counts))]
    for i, j in itertools.combinations(range(len(counts)), 2):
        pair = oracle.attenuation(counts, q, (i, j))
        assert floor is None or pair >= floor * single[i] * single[j]
    optimum = linear.solve(counts, levels, given_rest_cap=caps, pair_floor=floor).epsilon
    assert optimum - 1e-6 <= solution.epsilon <= (1.02 if floor is None else 1.04) * optimum
    # Each is measured at the levels that its own law delivers.
    assert solution.lower_bound - 1e-8 <= solution.optimum.epsilon <= solution.epsilon + 1e-8
    assert solution.cost == solution.epsilon - solution.optimum.epsilon


@pytest.mark.weekly
def test_a_hundred_and_twenty_attributes_are_capped_for_a_few_per_cent() -> None:
    counts, levels = request(1, 120)
    caps = [2 * level for level in levels]
    solution = balanced.solve(counts, levels, caps, 0.5)
    (part,) = solution.parts
    assert isinstance(part.law, GatedSum)
    assert np.all(part.account.epsilon_given_rest <= caps)
    assert np.all(part.account.attribute_epsilon <= levels)
    assert np.all(part.account.attribute_epsilon >= np.array(levels) - 1e-9)
    assert 0 < solution.cost < 0.05 * solution.optimum.epsilon
    assert part.law.least_pair_ratio() >= 0.5


@pytest.mark.parametrize(
    ("k", "level", "factor", "expected"),
    [(8, 1.0, 1.1, 4.71), (8, 1.0, 1.5, 3.80), (8, 1.0, 2.0, 3.50), (100, 0.617, 2.0, 8.32)],
)
def test_identical_attributes_cost_what_a_search_over_counts_says(
    k: int, level: float, factor: float, expected: float
) -> None:
    solution = balanced.solve([5] * k, [level] * k, [factor * level] * k, None)
    assert solution.epsilon == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize(
    ("k", "family"), slow_after(2, [(14, PatternTable), (20, GatedSum), (17, GatedSum)])
)
def test_up_to_sixteen_attributes_the_law_is_a_table_and_its_sampler_draws_from_it(
    k: int, family: type
) -> None:
    counts, levels = request(1, k) if k < 20 else ([3] * k, [0.4] * k)
    (part,) = balanced.solve(counts, levels, [2 * level for level in levels], 0.5).parts
    assert isinstance(part.law, family)
    assert part.law.sampler().draws(part.law)
    if isinstance(part.law, PatternTable):
        weights = list(part.law.weights)
        weights[7], weights[11] = weights[7] + 1, weights[11] - 1
        other = PatternTable(part.law.n_categories, part.law.bits, tuple(weights))
        assert not part.law.sampler().draws(other)


@pytest.mark.slow
def test_a_looser_cap_and_a_lower_floor_cost_less() -> None:
    counts, levels = request(3, 12)

    def cost(factor: float, floor: float) -> float:
        caps = [factor * level for level in levels]
        return balanced.solve(counts, levels, caps, floor).epsilon

    by_cap = [cost(factor, 0.5) for factor in (1.25, 1.5, 2.0, 3.0)]
    by_floor = [cost(2.0, floor) for floor in (1.0, 0.9)] + by_cap[2:3]
    assert by_cap == sorted(by_cap, reverse=True)
    assert by_floor == sorted(by_floor, reverse=True)


def test_caps_equal_to_the_levels_make_attributes_independent() -> None:
    counts, levels = request(2, 6)
    caps = [level if i < 2 else 2 * level for i, level in enumerate(levels)]
    solution = balanced.solve(counts, levels, caps, None)
    first, rest = sorted(solution.parts, key=lambda part: part.attributes)
    assert first.attributes == solution.apart == (0, 1)
    assert isinstance(first.law, ProductLaw)
    assert rest.attributes == (2, 3, 4, 5)
    everything = balanced.solve(counts, levels, levels, None)
    assert everything.method == "independent"
    assert everything.epsilon == pytest.approx(math.fsum(levels), rel=1e-15)
    one = balanced.solve(counts, levels, [2 * levels[0], *levels[1:]], None)
    assert one.method == "independent"  # beside independent responses one has nothing to gain


@pytest.mark.parametrize("times", [1.01, 1.1])
def test_caps_just_above_the_levels_leave_room_for_a_common_law(times: float) -> None:
    counts, levels = request(3, 7)
    caps = [times * level for level in levels]
    program = balanced.solve(counts, levels, caps, None)
    ramp = balanced.solve(counts, levels, caps, None, exact=0)
    assert (program.method, ramp.method) == ("program", "ramp")
    assert program.epsilon < ramp.epsilon < 1.01 * program.epsilon < math.fsum(levels)


def test_a_cap_half_as_loose_as_the_others_leaves_its_attribute_in_the_common_law() -> None:
    counts, levels = request(3, 7)
    caps = [1.5 * levels[0], *(3.0 * level for level in levels[1:])]
    solution = balanced.solve(counts, levels, caps, None, exact=0)
    (part,) = solution.parts
    assert (solution.method, solution.apart) == ("ramp", ())
    assert (part.account.epsilon_given_rest <= caps).all()
    alone = balanced.solve(counts, levels, [levels[0], *caps[1:]], None, exact=0)
    assert alone.apart == (0,)
    assert solution.epsilon < alone.epsilon


def test_levels_that_differ_by_a_rounding_are_alike() -> None:
    level = [0.5 * (1 + 1e-14 * i) for i in range(18)]
    solution = balanced.solve([4] * 18, level, [1.0] * 18, 0.5)
    (part,) = solution.parts
    assert isinstance(part.law, GatedSum)
    assert (part.law.weights == 1).all()
    assert (part.account.attribute_epsilon <= level).all()


def fails(*_: Any, **__: Any) -> None:
    raise SolverError("no progress")


def test_where_the_program_fails_a_ramp_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [3] * 6, [0.6] * 6, [1.2] * 6, 0.5
    right = balanced.solve(*asked)
    monkeypatch.setattr(linear, "drawn", fails)
    solution = balanced.solve(*asked)
    assert (right.method, solution.method) == ("program", "ramp")
    assert right.epsilon <= solution.epsilon < 1.02 * right.epsilon


def test_where_no_common_law_is_found_everyone_answers_independently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(balanced.CommonLaw, "best", lambda *_: None)
    monkeypatch.setattr(balanced.CommonLaw, "law", lambda *_: None)
    counts, levels = request(3, 7)
    solution = balanced.solve(counts, levels, [2 * level for level in levels], 0.5, exact=0)
    assert solution.method == "independent"
    assert solution.epsilon == pytest.approx(math.fsum(levels), rel=1e-15)


def test_an_optimum_that_was_not_found_is_replaced_by_a_balanced_law_below_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = [1.0] * 6
    problem = optimal.positive_levels([5] * 6, levels)
    right = optimal.solve([5] * 6, levels)
    fewer = optimal.solve([5] * 4, levels[:4]).parts  # breaks the caps
    missed = replace(right, parts=(*fewer, optimal.independent(problem, [4, 5])))
    monkeypatch.setattr(optimal, "solve", lambda *_, **__: missed)
    solution = balanced.solve([5] * 6, levels, [2.0] * 6, 0.5)
    assert missed.epsilon > 4.0
    assert solution.optimum.epsilon == solution.epsilon < 3.0
    assert solution.cost == 0.0
    assert solution.lower_bound <= right.epsilon + 1e-9
    assert solution.gap == pytest.approx(solution.epsilon - right.epsilon, abs=1e-6)


def test_without_caps_and_floor_it_is_the_optimum() -> None:
    counts, levels = request(4, 6)
    solution = balanced.solve(counts, levels, None, None)
    assert solution.method == "optimal"
    assert solution.epsilon == optimal.solve(counts, levels).epsilon
    assert solution.cost == 0.0


def giant(k: int) -> tuple[list[int], list[float]]:
    """One level of 20 nats among ordinary ones."""
    levels = np.random.default_rng(k).uniform(0.3, 3.0, k).tolist()
    return [5] * k, [20.0, *levels[1:]]


def many_categories(k: int) -> tuple[list[int], list[float]]:
    """One attribute of 10,000 categories among ordinary ones."""
    return [10_000, *[4] * (k - 1)], np.random.default_rng(k).uniform(0.3, 3.0, k).tolist()


def wide(k: int) -> tuple[list[int], list[float]]:
    """Levels of 1 to 10 nats."""
    random = np.random.default_rng(k)
    return random.integers(2, 51, k).tolist(), random.uniform(1.0, 10.0, k).tolist()


@pytest.mark.parametrize(
    ("counts", "levels"), slow_after(1, [wide(12), many_categories(18), giant(16), wide(20)])
)
def test_rare_requests_too_have_a_common_law_near_the_optimum(
    counts: list[int], levels: list[float]
) -> None:
    solution = balanced.solve(counts, levels, [2 * level for level in levels], 0.5)
    assert solution.method == "ramp"
    assert solution.cost < 0.6


@pytest.mark.parametrize(
    ("caps", "floor", "message"),
    [
        ([0.5, 2.0, 2.0], 0.5, "below the attribute's own level"),
        ([2.0, 2.0], 0.5, "give one per attribute"),
        ([2.0, 2.0, 2.0], 1.1, "at most 1"),
    ],
)
def test_requests_that_nothing_can_meet_are_refused(
    caps: list[float], floor: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        balanced.solve([3, 4, 5], [1.0, 1.0, 1.0], caps, floor)


@pytest.mark.weekly
def test_a_floor_that_is_recorded_holds_for_all_2080_pairs_of_65_attributes() -> None:
    # Of the attributes of extreme and middle weights alone it held: 152 pairs were below.
    random = np.random.default_rng(0)
    counts = np.rint(np.exp(random.uniform(math.log(2), math.log(50), 65))).astype(int).tolist()
    levels = random.uniform(0.3, 3.0, 65)
    solution = balanced.solve(counts, levels.tolist(), (2.0 * levels).tolist(), 0.95)
    (part,) = solution.parts
    assert isinstance(part.law, VoteLaw)
    floors = part.law.pair_ratio_floors[np.triu_indices(65, 1)]
    assert len(floors) == 2080
    assert part.law.least_pair_ratio() == pytest.approx(floors.min(), abs=1e-12)
    assert part.law.least_pair_ratio() >= 0.95
    assert solution.epsilon < 1.1 * solution.optimum.epsilon
