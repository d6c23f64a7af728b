"""Mixtures of ramps meet levels, caps and floors together, and cost less than one ramp."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.laws.pattern_table import PatternTable
from deniable.solvers import highs
from deniable.solvers.patterns import linear, ramp_mixtures
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_laws import at_levels, keep_floor, mixture
from deniable.solvers.patterns.ramp_mixtures import Mixture, mixed
from deniable.solvers.patterns.ramp_response import OrbitRamps
from deniable.solvers.problem import Problem, checked_problem
from unit.laws.votes import whole_law as oracle

RUNGS = (2.0, 1.5, 1.25)


def request(seed: int, k: int) -> Problem:
    random = np.random.default_rng(seed)
    return checked_problem(random.integers(2, 9, k).tolist(), random.uniform(0.3, 3, k).tolist())


def best(problem: Problem, floor: float | None, rungs: tuple[float, ...] = RUNGS) -> Mixture:
    level = problem.attribute_epsilon
    caps = [rung * level for rung in rungs]
    found = mixed(OrbitRamps(orbits(problem)), caps, 0.6 * float(level.sum()), floor, None)
    assert found is not None
    return found


@pytest.mark.parametrize("floor", [None, 0.5, 1.0])
def test_the_law_as_drawn_keeps_levels_caps_and_floor(floor: float | None) -> None:
    problem = request(0, 6)
    counts, level = problem.counts.tolist(), problem.attribute_epsilon
    caps = [rung * level for rung in RUNGS]
    found = mixture(problem.counts, level - 4e-10, caps, 0.6 * float(level.sum()), floor, None)
    assert found is not None
    part, fit = found.part, found.fit
    assert isinstance(part.law, PatternTable)
    q = np.array([weight / 2**part.law.bits for weight in part.law.weights])
    kept = part.law.keep_probabilities()
    drawn = np.log(kept * (problem.n_categories - 1) / (1 - kept))
    assert (drawn <= level).all()
    assert (drawn >= level - 1e-9).all()
    assert (oracle.given_rest(counts, q) <= 2.0 * level).all()
    ((high, low),) = part.law.record_level()
    assert math.log(high / low) == pytest.approx(part.account.epsilon, abs=1e-9)
    if floor is not None:
        single = [oracle.attenuation(counts, q, (i,)) for i in range(6)]
        for i, j in itertools.combinations(range(6), 2):
            assert oracle.attenuation(counts, q, (i, j)) >= floor * single[i] * single[j]
    # One ramp costs more, or as much; no law under these caps costs less.
    one = at_levels(problem.counts, level - 4e-10, caps[0], part.account.epsilon, floor)
    alone = one.best(None)
    assert fit is not None
    assert alone is None or part.account.epsilon <= alone[1].w + 2e-3
    optimum = linear.solve(counts, level, given_rest_cap=caps[0], pair_floor=floor).epsilon
    assert optimum - 1e-6 <= part.account.epsilon <= 1.05 * optimum


def test_what_is_asked_for_less_never_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ramp_mixtures, "_MOST_ROUNDS", 0)
    problem = request(1, 7)
    by_floor = [best(problem, floor).epsilon for floor in (None, 0.3, 0.6, 0.9, 1.0)]
    assert by_floor == sorted(by_floor)
    by_caps = [best(problem, 0.6, RUNGS[place:]).epsilon for place in (2, 1, 0)]
    assert by_caps == sorted(by_caps, reverse=True)


def test_attributes_that_are_alike_are_mixed_alike_and_cost_what_they_do_one_by_one() -> None:
    few = checked_problem([3] * 4 + [5] * 2, [0.8] * 4 + [1.5] * 2)
    grouped = OrbitRamps(orbits(few))
    level = grouped.orbits.groups.attribute_epsilon
    together = mixed(grouped, [2.0 * level], 3.0, 0.9, None)
    apart = mixed(OrbitRamps(orbits(few, range(6))), [2.0 * few.attribute_epsilon], 3.0, 0.9, None)
    assert together is not None
    assert apart is not None
    # One of several that are alike can be left out only where they are looked at one by one.
    assert together.epsilon == pytest.approx(apart.epsilon, rel=5e-3)


def test_what_is_mixed_is_mixed_anew_for_larger_levels() -> None:
    counts, level = np.array([10_000, 5, 4, 4, 3]), np.array([1.5, 0.9, 0.7, 0.7, 0.6])
    found = mixture(counts, level, [2.0 * level], 2.0, 0.9, None)
    assert found is not None
    again = found.meeting(level, 2.0 * level)
    assert again is not None
    assert again.account.epsilon == pytest.approx(found.part.account.epsilon, abs=1e-9)
    larger = 1.03 * level
    more = found.meeting(larger, 2.0 * larger)
    assert more is not None
    assert isinstance(more.law, PatternTable)
    kept = more.law.keep_probabilities()
    np.testing.assert_allclose(np.log(kept * (counts - 1) / (1 - kept)), larger, atol=1e-9)
    assert more.law.least_pair_ratio() >= 0.9
    q = np.array([weight / 2**more.law.bits for weight in more.law.weights])
    assert (oracle.given_rest(counts.tolist(), q) <= 2.0 * larger).all()
    anew = mixture(counts, larger, [2.0 * larger], 2.0, 0.9, None)
    assert anew is not None
    assert anew.part.account.epsilon - 1e-9 <= more.account.epsilon
    assert more.account.epsilon <= 1.08 * anew.part.account.epsilon
    # Of smaller caps it knows nothing, nor of two that were alike and are no more.
    assert found.meeting(0.9 * level, 1.8 * level) is None
    assert found.meeting(level * [1.0, 1.0, 1.0, 1.01, 1.0], 2.0 * larger) is None


def test_where_no_ramp_is_found_steep_ones_are_mixed_with_the_product_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = request(3, 6)
    right = best(problem, 0.5).epsilon
    monkeypatch.setattr(ramp_mixtures.RampSearch, "best", lambda *_, **__: None)
    found = best(problem, 0.5)
    assert found.fit is None
    assert right - 1e-9 <= found.epsilon < problem.attribute_epsilon.sum()


def test_a_program_that_is_not_solved_or_a_level_that_is_missed_gives_no_mixture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ramp_mixtures, "_MOST_ROUNDS", 4)
    problem = request(4, 5)
    level = problem.attribute_epsilon
    sums, caps = OrbitRamps(orbits(problem)), [2.0 * level]
    given = problem.counts, level, caps, 3.0, 0.5, None
    assert mixture(*given) is not None
    with monkeypatch.context() as patch:
        patch.setattr(ramp_mixtures, "_EXACT", 0.0)
        assert mixed(sums, caps, 3.0, 0.5, None) is None
        assert mixture(*given) is None
    with monkeypatch.context() as patch:
        patch.setattr("deniable.solvers.patterns.ramp_laws.keep_floor", lambda *_: False)
        assert mixture(*given) is None
    run = highs.run

    def failing(program: highs.Program, **_: Any) -> highs.Answer:
        answer = run(program)
        return highs.Answer("failed", *[getattr(answer, f) for f in FIELDS])

    monkeypatch.setattr(highs, "run", failing)
    assert mixed(sums, caps, 3.0, 0.5, None) is None


FIELDS = ("x", "multipliers", "basic", "at_upper", "row_basic")


def test_ramps_that_differ_little_are_not_told_apart_by_rounding() -> None:
    # Twelve attributes in five groups: ramps that meet the levels have the same columns up to
    # rounding, along which a correction of 1e-15 once moved shares by a tenth.
    counts = [2, 5, 7, 16, 41] * 2 + [2, 5]
    levels = ([0.6436, 0.8885, 0.9994, 1.1954, 1.5406] * 3)[:12]
    problem = checked_problem(counts, levels)
    sums = OrbitRamps(orbits(problem))
    level = sums.orbits.groups.attribute_epsilon
    found = mixed(sums, [2.0 * level], 3.8, 0.5, None)
    assert found is not None
    assert found.epsilon < 4.0001  # what one ramp that keeps the floor costs


@pytest.mark.parametrize("alike", [False, True])
def test_where_the_floor_costs_much_prices_tell_what_else_to_mix(
    monkeypatch: pytest.MonkeyPatch, alike: bool
) -> None:
    # An attribute of many categories is hardly ever kept, and its pairs break the floor.
    counts, levels = [10_000, 43, 3, 8, 8], [1.75, 1.19, 2.43, 1.66, 1.66 if alike else 1.39]
    problem = checked_problem(counts, levels)
    level = problem.attribute_epsilon
    given = problem.counts, level - 4e-10, [2.0 * level], 4.0, 0.9, None
    with monkeypatch.context() as patch:
        patch.setattr(ramp_mixtures, "_MOST_ROUNDS", 0)
        before = mixture(*given)
    found = mixture(*given)
    assert before is not None
    assert found is not None
    law = found.part.law
    assert isinstance(law, PatternTable)
    assert found.part.account.epsilon < before.part.account.epsilon - 0.02
    q = np.array([weight / 2**law.bits for weight in law.weights])
    assert (oracle.given_rest(counts, q) <= 2.0 * level).all()
    kept = law.keep_probabilities()
    delivered = np.log(kept * (problem.n_categories - 1) / (1 - kept))
    np.testing.assert_allclose(delivered, level, atol=1e-9)
    optimum = linear.solve(counts, levels, given_rest_cap=2.0 * level, pair_floor=0.9).epsilon
    assert optimum - 1e-6 <= found.part.account.epsilon <= 1.1 * optimum
    assert keep_floor([law], 0.9)


def test_where_the_floor_costs_less_prices_are_asked_fewer_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    level = np.random.default_rng(0).uniform(0.3, 3.0, 11)
    problem = checked_problem([2] * 11, level.tolist())
    asked = best(problem, 0.5).epsilon
    monkeypatch.setattr(ramp_mixtures, "_CHEAP", 1.0)
    assert asked < best(problem, 0.5).epsilon - 5e-3


def test_searches_start_from_other_ramps_than_those_of_the_program() -> None:
    # From the program's alone each round ended at one ramp, and nothing was gained: 1.106 times.
    counts = [2] * 3 + [5] * 3 + [16] * 3
    level = np.log1p(0.1 * np.sqrt(counts))
    found = mixture(np.array(counts), level, [2.0 * level, 1.5 * level], 0.8, 0.9, None)
    optimum = linear.solve(counts, level.tolist(), given_rest_cap=2.0 * level, pair_floor=0.9)
    assert found is not None
    assert optimum.epsilon <= found.part.account.epsilon <= 1.08 * optimum.epsilon


def test_a_program_that_fails_after_more_was_mixed_leaves_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = checked_problem([10_000, 43, 3, 5], [1.75, 1.19, 2.43, 1.52])
    monkeypatch.setattr(ramp_mixtures, "_DEAR", 1e-9)
    shares, asked = ramp_mixtures.Mixing.shares, list[int]()

    def failing(self: ramp_mixtures.Mixing, *given: Any) -> object:
        asked.append(len(self._ends))
        return shares(self, *given) if len(asked) == 1 else None

    monkeypatch.setattr(ramp_mixtures.Mixing, "shares", failing)
    assert best(problem, 0.9).epsilon < problem.attribute_epsilon.sum()
    assert len(asked) > 1


def test_a_program_that_is_said_to_be_unbounded_is_solved_with_shares_of_at_most_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, run, bounded = request(0, 6), highs.run, list[bool]()
    right = best(problem, 0.5).epsilon

    def unbounded(program: highs.Program, **_: Any) -> highs.Answer:
        bounded.append(bool((program.upper < highs.INFINITY).all()))
        answer = run(program)
        return answer if bounded[-1] else replace(answer, status="failed")

    monkeypatch.setattr(ramp_mixtures.highs, "run", unbounded)
    assert best(problem, 0.5).epsilon == pytest.approx(right, abs=1e-3)
    assert any(bounded)


def test_a_record_beyond_what_a_law_can_have_is_no_overflow() -> None:
    pool = ramp_mixtures.Mixing(request(0, 2), np.array([0]), np.array([1]), 977.6)
    pool.add(-1e-4, 0.99, np.array([0.4, 0.4]), np.array([0.1]))
    assert math.isfinite(pool.scale)
