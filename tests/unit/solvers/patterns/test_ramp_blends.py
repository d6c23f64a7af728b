"""Blends of ramps keep levels, caps and floors as drawn, and cost less than one ramp."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns import balanced, ramp_blends
from deniable.solvers.patterns.ramp_blends import blended
from deniable.solvers.patterns.ramp_families import Shape
from deniable.solvers.patterns.ramp_laws import at_levels
from deniable.solvers.patterns.ramp_mixtures import Mixing
from deniable.solvers.patterns.ramps import Fit, RampSearch
from deniable.solvers.problem import checked_problem
from unit.laws.votes import whole_law as oracle

COUNTS = np.full(6, 5)
FLOOR = 0.9


def spread(seed: int, k: int = 6) -> FloatArray:
    """Levels beside one of which the others' pairs break a floor."""
    random = np.random.default_rng(seed)
    return np.asarray(np.exp(random.uniform(np.log(0.05), np.log(8.0), k)))


def test_the_law_as_drawn_keeps_everything_and_costs_less_than_one_ramp() -> None:
    levels = spread(2)
    caps, aimed, height = 2.0 * levels, levels - 4e-10, float(0.5 * levels.sum())
    part = blended(COUNTS, aimed, [caps], height, FLOOR).part
    assert part is not None
    assert isinstance(part.law, VoteBlend)
    assert {gate.gate for gate in part.law.parts} == {"ramp"}
    assert (part.account.attribute_epsilon <= levels).all()
    assert (part.account.attribute_epsilon_floor >= levels - 1e-9).all()
    assert (part.account.epsilon_given_rest <= caps).all()
    law = oracle.pattern_law(part.law)
    q = law.reshape((2,) * 6)
    kept = np.array([q.take(0, axis=i).sum() for i in range(6)])
    np.testing.assert_allclose(np.log(4.0 * kept / (1.0 - kept)), levels, atol=1e-9)
    single = [oracle.attenuation(COUNTS, law, (i,)) for i in range(6)]
    for i, j in itertools.combinations(range(6), 2):
        assert oracle.attenuation(COUNTS, law, (i, j)) >= FLOOR * single[i] * single[j]
    one = at_levels(COUNTS, aimed, caps, height, FLOOR).best(None)
    assert one is None or part.account.epsilon < one[1].w - 0.05
    # From a file it is the same law.
    assert VoteBlend.from_plain(part.law.to_plain(), part.law.n_categories) == part.law


@pytest.mark.slow
def test_the_default_beyond_tables_is_a_blend_where_the_floor_stands_in_the_way() -> None:
    levels = spread(6, 17).tolist()
    solution = balanced.solve([5] * 17, levels, [2.0 * level for level in levels], 0.5)
    assert solution.method == "ramp"
    assert solution.apart == ()
    assert isinstance(solution.parts[0].law, VoteBlend)
    assert solution.gap < 0.6


def test_a_ramp_that_keeps_the_floor_is_told_and_preferred() -> None:
    levels = np.linspace(0.5, 1.0, 17)
    blend = blended(np.full(17, 5), levels, [2.0 * levels], 6.0, 0.3)
    assert blend.part is not None
    assert blend.ramp is not None
    solution = balanced.solve([5] * 17, levels.tolist(), (2.0 * levels).tolist(), 0.3)
    assert isinstance(solution.parts[0].law, GatedSum)
    assert solution.epsilon <= blend.part.account.epsilon + 5e-4


def test_what_is_mixed_for_stricter_caps_is_mixed_for_looser_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = spread(2)
    caps = [times * levels for times in (6.0, 3.0, 2.0, 1.5, 1.1)]
    # Without ramps that meet the levels, some of which are left out, and prices: then it is exact.
    monkeypatch.setattr(ramp_blends.RampSearch, "best", lambda *_, **__: None)
    monkeypatch.setattr(ramp_blends, "_add_lacking", lambda *_: False)
    found = [blended(COUNTS, levels, caps[first:], 8.0, FLOOR).part for first in range(5)]
    costs = [part.account.epsilon for part in found if part is not None]
    assert len(costs) == 5
    assert all(loose <= strict + 1e-9 for loose, strict in itertools.pairwise(costs))
    assert costs[0] < costs[-1] - 0.1


def test_a_ramp_steeper_than_caps_beyond_its_height_is_mixed_as_it_is() -> None:
    levels = np.linspace(0.3, 2.0, 8)
    caps = 6.0 * levels
    blend = blended(np.full(8, 2), levels, [caps], 7.0, 0.5)
    assert blend.part is not None
    assert blend.ramp is not None
    assert (blend.ramp.ramp.slopes > caps).any()  # caps that are larger than what it falls by
    assert blend.part.account.epsilon < blend.ramp.w + 1e-3
    assert (blend.part.account.epsilon_given_rest <= caps).all()


def test_what_is_mixed_is_mixed_anew_for_larger_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ramp_blends, "_PRICED", 1)
    levels = spread(2)
    blend = blended(COUNTS, levels, [2.0 * levels], 8.0, FLOOR)
    assert blend.part is not None
    larger = 1.03 * levels
    more = blend.meeting(larger, 2.0 * larger)
    anew = blended(COUNTS, larger, [2.0 * larger], 8.0, FLOOR).part
    assert more is not None
    assert anew is not None
    above, below = more.law.attribute_bounds()
    np.testing.assert_allclose(above, larger, atol=1e-9)
    np.testing.assert_allclose(below, larger, atol=1e-9)
    assert more.law.keeps_pair_floor(FLOOR)
    assert (more.account.epsilon_given_rest <= 2.0 * larger).all()
    assert blend.part.account.epsilon < more.account.epsilon <= 1.02 * anew.account.epsilon
    # Its slopes are too steep for smaller caps.
    assert blend.meeting(0.9 * levels, 1.8 * levels) is None


def test_pricing_finds_what_the_first_mixture_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = spread(4)
    given = COUNTS, levels, [3.0 * levels, 2.0 * levels], float(0.5 * levels.sum()), FLOOR
    priced = blended(*given).part
    for rounds in ("_PRICED",):
        monkeypatch.setattr(ramp_blends, rounds, 0)
    first = blended(*given).part
    assert priced is not None
    assert first is not None
    assert priced.account.epsilon < first.account.epsilon - 0.01


def test_where_pricing_ends_higher_what_was_found_before_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ramp_blends, "_PRICED", 1)
    levels = spread(4)
    height = float(0.5 * levels.sum())
    stricter = blended(COUNTS, levels, [1.5 * levels], height, FLOOR).part
    assert stricter is not None
    worse, law = stricter.law, ramp_blends._Pool.law

    def worse_with_all(pool: ramp_blends._Pool, first: int | None = None) -> object:
        return worse if first is None else law(pool, first)

    monkeypatch.setattr(ramp_blends._Pool, "law", worse_with_all)
    part = blended(COUNTS, levels, [2.0 * levels], height, FLOOR).part
    assert part is not None
    assert part.account.epsilon < stricter.account.epsilon


def test_what_is_known_to_few_digits_is_left_out_where_a_mixture_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels, law, passing = spread(4), ramp_blends._Pool.law, ramp_blends._passing
    found: list[VoteBlend | None] = []

    def told(pool: ramp_blends._Pool, first: int | None = None, **how: bool) -> VoteBlend | None:
        if how:  # all but one may be used
            worst = max(pool._drawn, key=lambda one: pool._drawn[one][0].moments().relative_error)
            pool._inexact = {worst}
            left_out.extend(pool._drawn[worst])
        found.append(law(pool, first, **how))
        return found[-1]

    left_out: list[GatedSum] = []
    monkeypatch.setattr(ramp_blends._Pool, "law", told)
    monkeypatch.setattr(
        ramp_blends, "_passing", lambda law, *of: passing(law, *of) if left_out else None
    )
    given = COUNTS, levels, [2.0 * levels], float(0.5 * levels.sum()), FLOOR
    part = blended(*given).part
    first, second = found[:2]
    assert first is not None
    assert second is not None
    assert part is not None
    assert set(left_out) <= set(first.parts)
    assert set(left_out).isdisjoint(second.parts)
    assert part.account.epsilon == second.account.epsilon > first.account.epsilon


def asked(
    monkeypatch: pytest.MonkeyPatch, levels: FloatArray, *requests: tuple[Sequence[float], float]
) -> Iterator[tuple[list[tuple[float, float, float]], float]]:
    """Yield what prices were asked for, and the ε of the law, for multiples of the levels and
    floors: multiple, floor and ε of every mixture that was added to."""
    price, told = ramp_blends._Pool.price, list[tuple[float, float, float]]()

    def listening(pool: ramp_blends._Pool, steepest: FloatArray, *rest: Any) -> list[int]:
        found = price(pool, steepest, *rest)
        assert pool._floor is not None
        multiple = float((steepest / levels).max())
        told.append((round(multiple, 3), round(pool._floor, 3), pool.epsilon()))
        return found

    monkeypatch.setattr(ramp_blends._Pool, "price", listening)
    for name, few in (("_PRICED", 0.1), ("_STARTS", 3)):
        monkeypatch.setattr(ramp_blends, name, few)
    for multiples, floor in requests:
        told.clear()
        caps = [one * levels for one in multiples]
        part = blended(COUNTS, levels, caps, float(0.5 * levels.sum()), floor).part
        assert part is not None
        yield [*told], part.account.epsilon


def test_prices_are_asked_from_the_strictest_caps_on_and_for_the_same_in_every_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_CLOSE", "_CLOSE_OF_ONE"):
        monkeypatch.setattr(ramp_blends, name, -1.0)  # no stricter floor
    strict = [((1.7, 1.5, 1.25), FLOOR), ((1.3, 1.25, 1.1), FLOOR), ((1.2, 1.1), FLOOR)]
    found, costs = zip(
        *asked(monkeypatch, spread(4), ((2.0, 1.5, 1.25), FLOOR), *strict), strict=True
    )
    rungs = [[multiple for multiple, _, _ in one] for one in found]
    assert rungs == [[1.25, 1.5, 2.0], [1.25, 1.5], [1.25], [1.1]]
    monkeypatch.setattr(ramp_blends, "_MOST_STRICTLY", 5)  # of more not for 1.25 beside others
    requests = strict[:2]
    many, _ = zip(*asked(monkeypatch, spread(4), *requests), strict=True)
    assert [[multiple for multiple, _, _ in one] for one in many] == [[1.5], [1.25]]
    for one in found[1:3]:
        for (_, _, here), (_, _, there) in zip(one, found[0], strict=False):
            assert here == pytest.approx(there, abs=1e-9)  # nothing that is looser changes it
    assert all(loose <= strict + 1e-3 for loose, strict in itertools.pairwise(costs))


def test_prices_are_asked_for_stricter_floors_too_that_cost_about_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = [((2.0,), floor) for floor in (0.0, 0.7, 1.0)]
    monkeypatch.setattr(ramp_blends, "_CLOSE_OF_ONE", math.inf)
    found, costs = zip(*asked(monkeypatch, spread(4), *requests), strict=True)
    floors = [sorted({floor for _, floor, _ in one}) for one in found]
    assert floors == [[0.5, 0.9, 1.0], [0.9, 1.0], [1.0]]
    for one in found[:2]:
        np.testing.assert_allclose(one[-1:], found[2], atol=1e-9)
    assert all(loose <= strict + 1e-9 for loose, strict in itertools.pairwise(costs))
    monkeypatch.setattr(ramp_blends, "_CLOSE_OF_ONE", -1.0)
    found, _ = zip(*asked(monkeypatch, spread(4), *requests[:2]), strict=True)
    assert [sorted({floor for _, floor, _ in one}) for one in found] == [[0.5], [0.9]]
    monkeypatch.setattr(ramp_blends, "_CLOSE_OF_ONE", math.inf)
    monkeypatch.setattr(ramp_blends, "_MOST_STRICTLY", 5)  # of more it is done for one
    found, _ = zip(*asked(monkeypatch, spread(4), requests[1]), strict=True)
    assert [floor for _, floor, _ in found[0]] == [0.9]


def test_of_uneven_caps_the_best_ramp_under_the_tightest_is_told() -> None:
    levels = np.linspace(0.5, 1.0, 17)
    uneven = 1.5 * levels
    uneven[::2] *= 2.0
    given = np.full(17, 5), levels
    told = blended(*given, [uneven, 1.5 * levels], 6.0, 0.3)
    same = blended(*given, [1.5 * levels], 6.0, 0.3)
    assert told.evenly is not None
    assert same.best is not None
    assert same.evenly is None
    assert told.evenly.w == same.best.w


def test_caps_that_are_uneven_by_what_is_aimed_below_faint_levels_have_no_ramp_of_their_own() -> (
    None
):
    # Of a level of 1e-6 that is a thousandth.
    levels = np.array([1e-6, 1.0, 0.5, 0.7])
    aimed = levels - np.minimum(4e-10, 1e-3 * levels)
    found = blended(np.array([2, 3, 4, 5]), aimed, [1.1 * levels], 1.5, None)
    assert found.evenly is None


def test_without_a_ramp_steep_ones_are_mixed_and_what_misses_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = spread(2)
    given = COUNTS, levels, [2.0 * levels], float(0.5 * levels.sum()), FLOOR
    monkeypatch.setattr(ramp_blends.RampSearch, "best", lambda *_, **__: None)
    for rounds in ("_PRICED",):
        monkeypatch.setattr(ramp_blends, rounds, 0)
    blend = blended(*given)
    assert blend.part is not None
    assert blend.best is None
    assert blend.ramp is None
    for name, value in (("AIM", -1e-6), ("keep_floor", lambda *_: False), ("_ROUNDS", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(ramp_blends, name, value)
            assert blended(*given).part is None
    monkeypatch.setattr(Mixing, "shares", lambda *_: None)
    assert blended(*given).part is None


def test_where_no_mixture_passes_the_ramps_that_were_found_are_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels, looked_for = np.linspace(0.5, 1.0, 17), []
    best = ramp_blends.RampSearch.best

    def counted(search: RampSearch, *args: Any, **kwargs: Any) -> Fit | None:
        looked_for.append(search)
        return best(search, *args, **kwargs)

    monkeypatch.setattr(ramp_blends.RampSearch, "best", counted)
    monkeypatch.setattr(ramp_blends._Pool, "law", lambda *_: None)
    solution = balanced.solve([5] * 17, levels.tolist(), (1.2 * levels).tolist(), 0.3)
    assert solution.method == "ramp"
    assert isinstance(solution.parts[0].law, GatedSum)
    assert len(looked_for) == 2  # under the caps, and once under stricter ones


def test_a_ramp_that_hardly_falls_is_not_mixed() -> None:
    levels = spread(2)
    pool = ramp_blends._Pool(checked_problem(COUNTS.tolist(), levels.tolist()), 8.0, FLOOR)
    falls = [Shape(3.0, 1e-3), Shape(3.0, 0.1)]
    (place,) = pool.add(levels, falls)
    assert pool._held[place].ramp.height == 0.1
