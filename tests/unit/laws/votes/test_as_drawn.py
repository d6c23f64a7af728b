"""What the tables of a sampler of votes promise, against what the law states."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from deniable.laws.votes import as_drawn
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.choices import Choice
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sampling import SumSampler
from deniable.laws.votes.vote_law import LARGEST_HEIGHT, LARGEST_NORMAL, VoteLaw
from marked import slow_after
from unit.laws.votes import whole_law as oracle

RANDOM = [oracle.random_sum, oracle.random_blend]


@pytest.mark.parametrize("random", RANDOM)
@pytest.mark.parametrize("seed", range(6))
def test_the_tables_of_a_law_keep_what_it_states(
    random: Callable[[int, int], VoteLaw], seed: int
) -> None:
    for most in (4, 9):
        law = random(seed, most)
        assert law.sampler().draws(law)


@pytest.mark.parametrize("random", RANDOM)
@pytest.mark.parametrize("seed", range(3))
def test_sums_over_the_tables_are_those_of_the_enumerated_law(
    random: Callable[[int, int], VoteLaw], seed: int
) -> None:
    law = random(seed, 6)
    before = replace(law, retention=np.ones(law.n_attributes))
    drawn = law.sampler()._patterns
    q = oracle.pattern_law(before)
    np.testing.assert_allclose(np.array(drawn.exact_patterns(), dtype=float), q, rtol=1e-11)
    kept, changed = drawn.fates()
    table = oracle.patterns(law.n_attributes)
    np.testing.assert_allclose(kept, q @ (1 - table), rtol=1e-11)
    np.testing.assert_allclose(changed, q @ table, rtol=1e-11)
    f = oracle.pattern_law(law) / oracle.uniform_law(law.n_categories)
    most, least = drawn.ends(law.retention)
    assert most / least == pytest.approx(f.max() / f.min(), rel=1e-10)


@pytest.mark.parametrize("random", RANDOM)
@pytest.mark.parametrize("k", [3, 9])
def test_tables_of_a_bolder_law_are_noticed(random: Callable[[int, int], VoteLaw], k: int) -> None:
    some = (random(seed, k) for seed in range(200))
    law = next(law for law in some if law.n_attributes == k and law.ideal_epsilon < 5)
    bolder = law.at_height(law.ideal_epsilon * (1 + 1e-9))
    assert law.sampler().draws(law)
    assert not bolder.sampler().draws(law)
    bolder = law.at_height(law.ideal_epsilon * 1.5)
    assert not law.sampler().draws(bolder)  # its attributes are told less often than stated


@pytest.mark.parametrize("k", [2, 8])
def test_a_gate_that_drawing_ends_one_state_early_is_noticed(k: int) -> None:
    """The fault behind the crafted law: the sampler thought that the vote was won a unit early."""
    arrays = ((3,) * k, np.ones(k, dtype=np.int64), np.zeros(k))
    law, faulty = (GatedSum(*arrays, "vote", 1.0, 1.0, 2.0, np.ones(k)) for _ in range(2))
    assert law.rise == (1, 2)
    faulty.__dict__["rise"] = (1, 1)
    assert law.sampler().draws(law)
    assert not faulty.sampler().draws(law)


def test_a_word_that_is_not_its_probability_is_noticed() -> None:
    law = oracle.random_sum(3, 4)
    for choice in ("_change", "_dither"):
        sampler = law.sampler()
        stage = next(stage for stage in sampler._patterns._built() if any(stage._dithered))
        getattr(stage, choice)._first[0] ^= np.uint16(1)
        assert not sampler.draws(law)
    never = np.array([0.0]), np.array([1.0])
    assert not Choice(*never, None).draws_by(*never)


def test_a_replacement_that_is_not_the_laws_is_noticed() -> None:
    law = next(law for law in map(oracle.random_sum, range(20)) if np.any(law.retention < 1))
    other = replace(law, retention=np.where(law.retention < 1, law.retention * 0.999, 1.0))
    assert not other.sampler().draws(law)
    assert not replace(law, retention=np.ones(law.n_attributes)).sampler().draws(law)


def test_tables_that_are_made_again_say_the_same_as_tables_that_are_kept() -> None:
    law = oracle.random_sum(5, 9)
    kept, again = SumSampler([law]), SumSampler([law], memory=0)
    assert kept.ends(law.retention) == again.ends(law.retention)
    np.testing.assert_array_equal(kept.fates(), again.fates())
    assert kept.exact_patterns() == again.exact_patterns()


def test_levels_are_compared_to_sixty_digits() -> None:
    third = Fraction(1, 3)
    law = GatedSum(
        (2,), np.array([1]), np.zeros(1), "vote", 0.0, 1.0, float(np.log(2.0)), np.ones(1)
    )
    assert as_drawn.kept_exactly([2 * third, third], law)
    assert not as_drawn.kept_exactly([2 * third + Fraction(1, 10**12), third], law)
    tilted = Fraction(1, 10**12)
    assert not as_drawn.kept_exactly([2 * third + tilted, third - tilted], law)


@pytest.mark.parametrize("k", [3, 7])
def test_tables_are_compared_where_a_probability_is_no_normal_number(k: int) -> None:
    weights, ones = np.arange(1, k + 1), np.ones(k)
    high = GatedSum((3,) * k, weights, np.full(k, 0.25), "vote", k, 1.0, LARGEST_HEIGHT, ones)
    low = high.at_height(LARGEST_HEIGHT * (1 - 1e-11))
    for bold, meek in ((high, low), (VoteBlend((law,), ones[:1], ones) for law in (high, low))):
        sampler = bold.sampler()
        assert sampler.draws(bold)
        assert not sampler.draws(meek)
    q = high.sampler()._patterns.exact_patterns()
    f = [mass / 2 ** int(i).bit_count() for i, mass in enumerate(q)]
    logs = [Decimal(n).ln(Context(prec=40)) for n in (max(f) / min(f)).as_integer_ratio()]
    assert 0 <= Decimal(high.record_level()) - (logs[0] - logs[1]) < 1e-9


def test_a_level_beyond_doubles_is_that_of_the_record() -> None:
    law = GatedSum((5,), np.ones(1, dtype=int), np.zeros(1), "vote", 0, 1, 1000.0, np.ones(1))
    assert law.attribute_levels() == [law.record_level()]
    assert law.attribute_floors() == [0.0]
    assert law.sampler().draws(law)


HEIGHTS = [1e-300, 1e-9, 1.0, 40.0, 300.0, 599.0, LARGEST_NORMAL, 900.0, LARGEST_HEIGHT]


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["vote", "ramp"])
def test_up_to_the_largest_height_stated_levels_are_not_below_the_exact_ones(gate: str) -> None:
    """Compared in fractions, from the tables that are drawn from (``as_drawn.kept_exactly``)."""
    for height in HEIGHTS if gate == "vote" else HEIGHTS[:-2]:
        for n_categories in ((255,), (2, 100, 3)):
            k = len(n_categories)
            for start, width, dither in ((0.0, 1.0, 0.0), (1.3, 1.0, 2.0**-60), (0.5, 2.5, 0.5)):
                law = GatedSum(
                    n_categories,
                    np.arange(2, k + 2),
                    np.full(k, dither),
                    gate,  # type: ignore[arg-type]
                    start,
                    width,
                    height,
                    np.ones(k),
                )
                assert law.sampler().draws(law), (height, n_categories, start)
                blend = VoteBlend((law,), np.ones(1), np.ones(k)) if gate == "vote" else law
                assert blend.sampler().draws(blend)


@pytest.mark.parametrize("height", slow_after(1, [150.0, 300.0, LARGEST_NORMAL]))
def test_states_that_are_dropped_are_not_missed_where_an_attribute_is_changed(
    height: float,
) -> None:
    """Of an attribute changed once in e^100 draws, hardly anything may lie above a common limit."""
    laws: list[VoteLaw] = [replace(oracle.random_sum(s), height=height) for s in (28, 72)]
    # The heavy attribute is changed where nearly all others are kept.
    weights = np.append(300, np.ones(300, dtype=np.int64))
    low = GatedSum((8,) * 301, weights, np.zeros(301), "vote", 250.0, 1.0, 20.0, np.ones(301))
    low.moments()
    laws.append(low.at_height(height))
    for law in laws:
        assert law.sampler().draws(law)
        above, below = law.attribute_bounds()
        assert float((above - below).max()) < 2e-11
