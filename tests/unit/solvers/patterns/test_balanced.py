"""Caps and floors hold in the enumerated law; the ramp against the capped linear program."""

import functools
import itertools
import math

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.product import ProductLaw
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.mixture import VoteMixture
from deniable.solvers.patterns import balanced, linear, optimal, ramps
from unit.laws.votes import whole_law as oracle


def request(seed: int, k: int) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    return random.integers(2, 9, k).tolist(), random.uniform(0.3, 1.5, k).tolist()


@functools.cache
def _optimum(counts: tuple[int, ...], levels: tuple[float, ...]) -> optimal.OptimalSolution:
    return search_optimum(counts, levels)


search_optimum = optimal.solve


@pytest.fixture(autouse=True)
def _each_optimum_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        optimal, "solve", lambda counts, levels: _optimum(tuple(counts), tuple(levels))
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
def test_the_ramp_is_close_to_the_capped_linear_program(seed: int, factor: float) -> None:
    counts, levels = request(seed, 4 + seed % 3)
    caps = [factor * level for level in levels]
    solution = balanced.solve(counts, levels, caps, None)
    (part,) = solution.parts
    assert isinstance(part.law, GatedSum | VoteMixture)
    assert np.all(oracle.given_rest(counts, oracle.pattern_law(part.law)) <= caps)
    assert np.all(part.account.attribute_epsilon <= levels)
    assert np.all(part.account.attribute_epsilon >= np.array(levels) - 1e-9)
    optimum = linear.solve(counts, levels, given_rest_cap=caps).epsilon
    assert optimum - 1e-6 <= solution.epsilon <= 1.02 * optimum
    # Each is measured at the levels that its own law delivers.
    assert solution.lower_bound - 1e-8 <= solution.optimum.epsilon <= solution.epsilon + 1e-8
    assert solution.cost == solution.epsilon - solution.optimum.epsilon


@pytest.mark.parametrize("seed", range(3))
def test_the_pair_floor_holds_for_every_pair(seed: int) -> None:
    counts, levels = request(seed, 5)
    (part,) = balanced.solve(counts, levels, [3 * level for level in levels], 0.5).parts
    assert isinstance(part.law, GatedSum | VoteMixture)
    q = oracle.pattern_law(part.law)
    single = [oracle.attenuation(counts, q, (i,)) for i in range(5)]
    for i, j in itertools.combinations(range(5), 2):
        assert oracle.attenuation(counts, q, (i, j)) >= 0.5 * single[i] * single[j]


@pytest.mark.slow
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
def test_identical_attributes_cost_what_they_did(
    k: int, level: float, factor: float, expected: float
) -> None:
    solution = balanced.solve([5] * k, [level] * k, [factor * level] * k, None)
    assert solution.epsilon == pytest.approx(expected, abs=0.015)


def test_a_looser_cap_never_costs_more() -> None:
    counts, levels = request(3, 30)
    levels_of = [
        balanced.solve(counts, levels, [f * level for level in levels], 0.5).epsilon
        for f in (1.25, 1.5, 2.0, 3.0)
    ]
    assert levels_of == sorted(levels_of, reverse=True)


def test_caps_equal_to_the_levels_make_attributes_independent() -> None:
    counts, levels = request(2, 6)
    caps = [level if i < 2 else 2 * level for i, level in enumerate(levels)]
    solution = balanced.solve(counts, levels, caps, None)
    first, rest = sorted(solution.parts, key=lambda part: part.attributes)
    assert first.attributes == (0, 1)
    assert isinstance(first.law, ProductLaw)
    assert rest.attributes == (2, 3, 4, 5)
    everything = balanced.solve(counts, levels, levels, None)
    assert everything.method == "independent"
    assert everything.epsilon == pytest.approx(math.fsum(levels), rel=1e-15)


def test_without_caps_and_floor_it_is_the_optimum() -> None:
    counts, levels = request(4, 6)
    solution = balanced.solve(counts, levels, None, None)
    assert solution.method == "optimal"
    assert solution.cost == 0.0
    some = balanced.solve(counts, levels, [None, 50.0, None, None, None, None], None)
    assert some.method == "optimal"


@pytest.mark.parametrize(
    ("caps", "floor", "sentence"),
    [
        ([2.0, 0.4], None, r"caps\[1\]: a cap of 0.4 nats is below"),
        ([2.0], None, "1 were given for 2 attributes"),
        (None, 1.5, "pair_floor: at most 1"),
        (None, math.nan, "pair_floor: at most 1"),
    ],
)
def test_an_impossible_request_is_refused(
    caps: list[float] | None, floor: float | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        balanced.solve([3, 3], [1.0, 0.5], caps, floor)


def recorded_fractions(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The fractions of the caps that are searched from here on."""
    fractions: list[float] = []
    search = ramps.RampFit.at

    def recorded(self: ramps.RampFit, fraction: float) -> GatedSum | None:
        fractions.append(fraction)
        return search(self, fraction)

    monkeypatch.setattr(ramps.RampFit, "at", recorded)
    return fractions


# No law caps an attribute below its own level: looking there cost minutes.
NEAR_THEIR_CAPS = [3] * 6 + [1000] * 2, [1.4] * 6 + [0.04] * 2


def test_no_fraction_of_the_caps_below_the_levels_themselves_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, levels = NEAR_THEIR_CAPS
    # Ramps that are found at once and never keep the floor: the search goes as low as it will.
    ramp = object()
    monkeypatch.setattr(ramps.RampFit, "at", lambda *_: ramp)
    fractions = recorded_fractions(monkeypatch)
    monkeypatch.setattr(balanced, "_landed", lambda *_: ramp)
    monkeypatch.setattr(balanced, "keep_floor", lambda *_: False)
    solution = balanced.solve(counts, levels, [2 * level for level in levels], 1.0)
    assert solution.method == "floor"
    assert 0.5 < min(fractions) < 0.51
    assert len(fractions) <= 11


@pytest.mark.slow
def test_nor_where_ramps_are_really_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, levels = NEAR_THEIR_CAPS
    fractions = recorded_fractions(monkeypatch)
    solution = balanced.solve(counts, levels, [2 * level for level in levels], 1.0)
    assert min(fractions) > 0.5
    assert len(fractions) <= 11
    assert solution.epsilon <= math.fsum(levels) * (1 + 1e-12)


@functools.cache
def place_of_seven() -> balanced.RampPlace:
    counts, levels = request(3, 7)
    place = balanced.solve(counts, levels, [2.0 * level for level in levels], 0.5).place
    assert place is not None
    return place


@pytest.mark.parametrize("factor", [0.97, 1.05])
def test_near_levels_that_are_solved_a_ramp_is_found_that_costs_hardly_more(factor: float) -> None:
    counts, levels = request(3, 7)
    moved = [factor * level for level in levels]
    caps = [2.0 * level for level in moved]
    best = balanced.solve(counts, moved, caps, 0.5).epsilon
    for search, most in ((False, 2e-3), (True, 2e-5)):
        near = balanced.solve_near(counts, moved, caps, 0.5, place_of_seven(), search=search)
        assert near is not None
        (part,), _ = near
        assert part.attributes == tuple(range(7))
        over = part.account.attribute_epsilon - moved
        assert over.max() <= 0
        assert over.min() >= -1e-9
        assert np.all(part.account.epsilon_given_rest <= caps)
        assert balanced.keep_floor([part.law], 0.5)
        assert abs(part.account.epsilon / best - 1) <= most


def test_a_place_of_other_attributes_is_no_start() -> None:
    counts, levels = request(3, 7)
    caps = [levels[0], *(2.0 * level for level in levels[1:])]  # the first has no room left
    assert balanced.solve_near(counts, levels, caps, 0.5, place_of_seven()) is None
