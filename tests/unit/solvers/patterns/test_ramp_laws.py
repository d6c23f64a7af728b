"""Ramps as the laws that are drawn, at given levels."""

from collections.abc import Callable

import numpy as np
import pytest

from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns import balanced, optimal, ramp_landing, ramp_laws
from deniable.solvers.patterns.ramp_laws import at_levels, keep_floor
from deniable.solvers.patterns.ramps import RampFit


@pytest.mark.parametrize(("k", "family"), [(12, PatternTable), (18, GatedSum)])
@pytest.mark.parametrize("floor", [None, 0.9])
def test_the_law_as_drawn_keeps_levels_caps_and_floor(
    k: int, family: type, floor: float | None
) -> None:
    random = np.random.default_rng(0)
    counts, levels = random.integers(2, 9, k), random.uniform(0.3, 1.5, k)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, floor)
    found = ramps.best(None)
    assert found is not None
    law, fit = found
    assert isinstance(law, family)
    kept = law.keep_probabilities()
    np.testing.assert_allclose(np.log(kept * (counts - 1) / (1 - kept)), levels, atol=1e-9)
    part = ramps.part(law, fit)
    assert (part.account.epsilon_given_rest <= 2.0 * levels).all()
    assert part.account.epsilon == pytest.approx(fit.w, abs=1e-9)
    assert keep_floor([law], floor)
    assert keep_floor([law], 0.9) == (floor is not None)


def test_beside_large_levels_a_floor_is_kept_under_caps_a_tenth_tighter() -> None:
    # Under the caps as they are the ramp is a vote, which no top moves: 12.33 with a third off.
    levels = [6.521, 5.288, 3.144, 2.128, 2.077, 0.946, 0.397, 0.298, 0.165, 0.013, 0.001]
    counts = np.full(len(levels), 5)
    asked = np.array(levels)
    ramps = at_levels(counts, asked, 2.0 * asked, 11.6, 0.5)
    found = ramps.best(None)
    assert found is not None
    law, fit = found
    assert ramps.floor_broken
    assert keep_floor([law], 0.5)
    ((high, low),) = law.record_level()
    assert np.log(high / low) <= fit.w + 1e-9
    assert fit.w < optimal.solve(counts.tolist(), levels).epsilon + 0.6


def test_a_ramp_that_is_no_better_than_what_is_known_is_left() -> None:
    random = np.random.default_rng(1)
    counts, levels = random.integers(2, 9, 18), random.uniform(0.3, 1.5, 18)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, None)
    found = ramps.best(None)
    assert found is not None
    least = found[1].w
    assert ramps.best(None, least - 1e-2) is None
    assert ramps.beaten
    assert ramps.best(None, least + 1e-2) is not None
    assert not ramps.beaten


def test_of_attributes_that_are_alike_only_the_tightest_cap_matters() -> None:
    # With caps that differ each attribute once had a slope of its own, on a coarse grid.
    counts, levels = np.full(24, 2), np.full(24, 0.3)
    tight, some = 1.3 * levels, np.where(np.arange(24) % 3 == 1, 1.9, 1.3) * levels
    same, uneven = (at_levels(counts, levels, caps, 2.3, None).best(None) for caps in (tight, some))
    assert same is not None
    assert uneven is not None
    assert uneven[0].record_level() == same[0].record_level()


def test_a_floor_that_the_drawn_law_misses_is_looked_for_higher_up() -> None:
    random = np.random.default_rng(1)
    counts, levels = random.integers(2, 9, 18), random.uniform(0.3, 1.5, 18)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, 0.95)
    ramps._margin = -0.02  # as if the search told ratios two hundredths too high
    found = ramps.best(None)
    assert found is not None
    assert ramps.broken == []
    assert keep_floor([found[0]], 0.95)


def drawn(k: int) -> tuple[IntArray, FloatArray]:
    """Categories and levels."""
    random = np.random.default_rng(0)
    return random.integers(2, 9, k), random.uniform(0.3, 1.5, k)


@pytest.mark.parametrize("family", [PatternTable, GatedSum])
@pytest.mark.parametrize(("least", "looks"), [(0.89, 3), (0.2, 1)])
def test_a_floor_that_no_law_as_drawn_is_proved_to_keep_is_not_claimed(
    monkeypatch: pytest.MonkeyPatch, family: type, least: float, looks: int
) -> None:
    counts, levels = drawn(8 if family is PatternTable else 18)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, 0.9)
    looked_at = list[float]()

    def never(_: object, floor: float) -> bool:
        looked_at.append(floor)
        return False

    # Where it is far below, error bounds are too wide, and more room above the floor is of no use.
    monkeypatch.setattr(family, "least_pair_ratio", lambda _: least)
    monkeypatch.setattr(family, "keeps_pair_floor", never)
    assert ramps.best(None) is None
    assert len(looked_at) == looks
    assert ramps.floor_broken
    assert ramps.kept < float(levels.sum())


@pytest.mark.parametrize("k", [8, 18])
def test_a_ramp_that_cannot_be_drawn_is_none(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    counts, levels = drawn(k)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, None)
    fit = ramps.searched(None, placed=False)
    assert fit is not None
    found = ramps.drawn(fit)
    assert found is not None
    assert found[1].w == pytest.approx(fit.w, abs=2e-3)
    monkeypatch.setattr(RampFit, "at", lambda *_, **__: None)
    assert ramps.drawn(fit) is None


@pytest.mark.parametrize(
    "other", [lambda levels: (1.001 * levels, 2.0 * levels), lambda levels: (levels, 3.0 * levels)]
)
def test_a_law_as_drawn_that_exceeds_a_level_or_a_cap_is_refused(
    monkeypatch: pytest.MonkeyPatch, other: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
) -> None:
    counts, levels = drawn(18)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, None)
    right = ramps.best(None)
    wrong = at_levels(counts, *other(levels), 6.0, None).best(None)
    assert right is not None
    assert wrong is not None
    monkeypatch.setattr(ramp_laws, "gated_sum_of", lambda *_, **__: (wrong[0], right[1]))
    assert ramps.drawn(right[1]) is None


def test_a_ramp_beside_another_has_its_top_and_is_placed_anew_if_asked() -> None:
    counts, levels = drawn(18)
    near = at_levels(counts, levels, 2.0 * levels, 6.0, None).searched(None, placed=False)
    assert near is not None
    ramps = at_levels(counts, 1.1 * levels, 2.2 * levels, 6.0, None)
    beside, placed = (ramps.searched(near, placed) for placed in (True, False))
    assert beside is not None
    assert placed is not None
    assert beside.ramp.top == near.ramp.top
    assert placed.w <= beside.w


def test_where_a_law_misses_the_floor_by_far_more_than_the_search_tells_there_is_none() -> None:
    random = np.random.default_rng(1)
    counts, levels = random.integers(2, 9, 8), random.uniform(0.3, 1.5, 8)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, 1.0)
    ramps._margin = -0.5  # as if it told ratios by a half too high
    assert ramps.best(None) is None


@pytest.mark.parametrize(("dithered", "kept"), [(-2e-3, True), (-5e-2, False)])
def test_a_cap_that_dither_exceeds_a_little_is_kept_by_less_steep_slopes(
    dithered: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a thousand attributes dither took 4e-4 more than the caps, and no law was left.
    monkeypatch.setattr(ramp_landing, "_DITHERED", dithered)
    random = np.random.default_rng(3)
    counts, levels = random.integers(2, 9, 40), random.uniform(0.3, 1.5, 40)
    found = at_levels(counts, levels, 1.25 * levels, 9.0, None).best(None)
    assert (found is not None) == kept
    if found is not None:
        multiples = found[0].account.epsilon_given_rest / levels
        assert 1.24 < multiples.max() <= 1.25


@pytest.mark.slow
def test_a_thousand_attributes_with_levels_of_some_nats_have_a_common_law() -> None:
    random = np.random.default_rng(1)
    counts, levels = random.integers(2, 50, 1000), random.uniform(0.3, 3.0, 1000)
    solution = balanced.solve(counts.tolist(), levels.tolist(), (2.0 * levels).tolist(), 0.5)
    assert solution.method == "ramp"
    assert solution.epsilon <= 1.01 * solution.optimum.epsilon
