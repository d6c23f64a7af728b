"""Laws of one score beyond the sizes of brute force, their rounding and their draws."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws import score
from deniable.laws.score import ScoreSampler, ScoreTable
from deniable.mechanism import privacy
from deniable.randomness import SeededRandomness
from laws import brute_force as oracle
from laws import strategies
from marked import slow_after
from unit.scripted import ScriptedBits


def ramp(sizes: list[int], costs: list[int], epsilon: float, fall: float) -> np.ndarray:
    """Densities that fall along the scores and stay at e^−ε from a part of all on."""
    top = sum(costs)
    return np.exp(-epsilon * np.minimum(np.arange(top + 1) / (fall * top), 1.0))


MANY = {
    "thirty different": (list(range(2, 32)), list(range(1, 31))),
    "a hundred of twenty": ([2 + i % 20 for i in range(100)], [3 + i % 20 for i in range(100)]),
    "five hundred alike": ([4] * 500, [1] * 500),
}


@pytest.mark.parametrize("name", slow_after(1, MANY))
def test_levels_of_many_attributes_are_those_of_a_product_law_where_the_density_is_one(
    name: str,
) -> None:
    # A density e^(−slope s) is independent responses of slope c_i: every answer is known.
    sizes, costs = MANY[name]
    slope = 1 / 64
    densities = np.exp(-slope * np.arange(sum(costs) + 1))
    law = ScoreTable.from_densities(sizes, costs, densities)
    level = np.array([slope * cost for cost in costs])
    kept = np.exp(level)
    attenuation = (kept - 1) / (kept + np.array(sizes) - 1)
    assert privacy.record_epsilon(law) == pytest.approx(level.sum(), rel=1e-12)
    assert privacy.attribute_epsilon(law) == pytest.approx(level, rel=1e-12)
    assert privacy.epsilon_given_rest(law) == pytest.approx(level, rel=1e-12)
    assert privacy.record_epsilon(law, [0, 5, 9]) == pytest.approx(level[[0, 5, 9]].sum())
    assert law.attenuations() == pytest.approx(attenuation, rel=1e-12)
    pairs = np.outer(attenuation, attenuation)
    np.fill_diagonal(pairs, attenuation)
    expected = np.where(np.isnan(law.pair_eigenvalues()), np.nan, pairs)
    np.testing.assert_allclose(law.pair_eigenvalues(), expected, rtol=1e-10)
    assert law.least_pair_ratio() == pytest.approx(1.0, rel=1e-10)
    triple = law.eigenvalues((7, 2, 4))[1, 1, 1]
    assert triple == pytest.approx(attenuation[[7, 2, 4]].prod(), abs=1e-14)


@given(strategies.sizes().flatmap(strategies.score_tables))
def test_entropy_is_that_of_all_outputs(law: ScoreTable) -> None:
    chances = [float(p) for p in oracle.channel_of_law(law)[(0,) * len(law.costs)].values()]
    assert law.record_entropy() == pytest.approx(
        -sum(p * math.log2(p) for p in chances if p), rel=1e-11, abs=1e-11
    )


@given(
    st.lists(st.tuples(st.integers(2, 9), st.integers(1, 5)), min_size=1, max_size=6),
    st.floats(0.0, 12.0),
    st.floats(0.0, 3.0),
    st.integers(0, 1 << 32),
)
def test_rounded_densities_exceed_no_wanted_level_and_lose_little(
    attributes: list[tuple[int, int]], epsilon: float, cap: float, seed: int
) -> None:
    sizes, costs = zip(*attributes, strict=True)
    densities = np.exp(np.random.default_rng(seed).uniform(0, 8, sum(costs) + 1))
    free = ScoreTable.from_densities(sizes, costs, densities)
    law = ScoreTable.from_densities(sizes, costs, densities, epsilon, [cap] * len(sizes))
    assert privacy.record_epsilon(law) <= epsilon
    assert max(privacy.epsilon_given_rest(law)) <= cap
    # All logarithms shrink by one factor, no further than the tightest level asks for.
    factor = min(
        [1.0, epsilon / privacy.record_epsilon(free)]
        + [cap / level for level in privacy.epsilon_given_rest(free)]
    )
    expected = factor * privacy.record_epsilon(free)
    assert privacy.record_epsilon(law) == pytest.approx(expected, rel=1e-11, abs=1e-15)


def by_score(law: ScoreTable) -> ScoreSampler:
    return ScoreSampler(law)


def exactly(sampler: ScoreSampler) -> dict[tuple[int, ...], Fraction]:
    """The probability of every pattern that a sampler draws, from the weights that it draws by."""
    kinds = sampler._kinds
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for total in range(len(sampler._later[0])):
        chance = sampler._score.probability(total)
        paths: list[tuple[tuple[int, ...], int, Fraction]] = [((), total, chance)] if chance else []
        for t in range(len(kinds) - 1):
            following: list[tuple[tuple[int, ...], int, Fraction]] = []
            for counts, left, mass in paths:
                weights = sampler._weights(t, left)
                for changes, weight in enumerate(weights):
                    if weight:
                        more = mass * Fraction(weight, sum(weights))
                        rest = left - kinds[t].cost * changes
                        following.append(((*counts, changes), rest, more))
            paths = following
        for counts, left, mass in paths:
            last, over = divmod(left, kinds[-1].cost)
            assert over == 0
            for pattern in product((0, 1), repeat=len(sampler.n_categories)):
                inside = [sum(pattern[i] for i in kind.members) for kind in kinds]
                if inside == [*counts, last]:
                    ways = prod(
                        math.comb(len(kind.members), c)
                        for kind, c in zip(kinds, inside, strict=True)
                    )
                    found[pattern] += mass / ways
    return dict(found)


@given(strategies.sizes().flatmap(strategies.score_tables))
def test_by_score_and_kinds_every_pattern_has_its_exact_probability(law: ScoreTable) -> None:
    q = oracle.pattern_probabilities(law)
    assert exactly(by_score(law)) == {pattern: chance for pattern, chance in q.items() if chance}
    total = sum(law.pattern_weights())
    assert [Fraction(weight, total) for weight in law.pattern_weights()] == list(q.values())


def test_every_first_word_leads_where_u_lies() -> None:
    # Two attributes alike and a third: (score) (changes of the two) (which of them).
    law = ScoreTable((2, 2, 3), (1, 1, 1), (5, 3, 2, 9))
    sampler = by_score(law)
    weights = sampler._weights(0, 2)  # both of the two, or one and the third
    assert weights == [0, 4, 1]
    words = np.arange(1 << 16)
    # Of all prefixes with score 2, the boundary at 4/5 leaves one open: it is read further.
    edge = (4 << 16) // 5
    at = (5 + 12, 5 + 12 + 10, sum(law.outcomes()))
    inside = ((at[0] + at[1]) << 15) // at[2]
    for more, changes in (((4 << 64) // 5, 2), (0, 1)):
        source = ScriptedBits(
            (np.uint16, [inside] * len(words)),
            (np.uint16, words),
            (np.uint64, [(more + 1) << 16 & (1 << 64) - 1 if changes == 2 else 0]),
            (np.uint16, [0] * len(words)),
            (np.uint16, [0] * len(words)),
        )
        shifts = list(sampler.walk(len(words), source))
        assert source.used_up
        of_two = (shifts[0] != 0).astype(int) + (shifts[1] != 0)
        assert np.array_equal(np.flatnonzero(of_two == 2), words[words >= edge + (changes == 1)])
        assert np.array_equal(shifts[2] != 0, of_two == 1)


def test_those_that_change_among_attributes_alike_are_drawn_one_after_the_other() -> None:
    # Of three attributes alike one changes: the first with 1/3, then the second with 1/2.
    for first, more, second, expected in (
        (43690, [(1 << 64) - 1], None, (1, 0, 0)),  # 2/3 of 2^16 is 43690 and 2/3
        (43690, [0], 32767, (0, 0, 1)),
        (43691, [], None, (1, 0, 0)),
        (43689, [], 32768, (0, 1, 0)),
    ):
        law = ScoreTable((2, 2, 2), (1, 1, 1), (1, 1 << 90, 1, 1))
        requests = [(np.uint16, [1 << 15]), (np.uint16, [first]), *((np.uint64, [w]) for w in more)]
        requests.append((np.uint16, [0 if second is None else second]))
        source = ScriptedBits(*requests)
        shifts = list(by_score(law).walk(1, source))
        assert tuple(int(shift[0] != 0) for shift in shifts) == expected
        assert source.used_up


THIRD = 0x5555_5555_5555


@pytest.mark.parametrize(
    ("words", "drawn"),
    [
        ([(THIRD - 1) << 16 | 0xFFFF], 0),
        ([(THIRD + 1) << 16], 1),
        ([THIRD << 16, (1 << 64) // 3 - 1], 0),
        ([THIRD << 16, (1 << 64) // 3 + 1], 1),
        ([THIRD << 16 | 0xFFFF, (1 << 64) // 3, 0], 0),
        ([THIRD << 16, (1 << 64) // 3, (1 << 64) - 1], 1),
    ],
)
def test_what_a_prefix_leaves_open_is_settled_by_words_as_they_are_needed(
    words: list[int], drawn: int
) -> None:
    source = ScriptedBits(*((np.uint64, [word]) for word in words))
    assert score._settled([1, 1, 1], 21845, source) == drawn  # a third of 2^16 is 21845 and a third
    assert source.used_up


@pytest.mark.parametrize("over", [1e-9, 1e-5, 0.009])
def test_a_level_that_is_barely_exceeded_is_brought_below(over: float) -> None:
    costs, densities = (2, 1, 3), np.exp(-np.array([0, 1, 1, 2, 3, 3, 5]) / 2)
    free = ScoreTable.from_densities((2, 3, 4), costs, densities)
    epsilon = privacy.record_epsilon(free) / (1 + over)
    law = ScoreTable.from_densities((2, 3, 4), costs, densities, epsilon)
    assert epsilon * (1 - 1e-11) < privacy.record_epsilon(law) <= epsilon
    caps = np.array(privacy.epsilon_given_rest(free)) / [1, 1, 1 + over]
    law = ScoreTable.from_densities((2, 3, 4), costs, densities, given_rest=caps)
    assert np.all(np.array(privacy.epsilon_given_rest(law)) <= caps)


@pytest.mark.parametrize("name", MANY)
def test_many_attributes_are_drawn_as_often_as_stated(name: str) -> None:
    sizes, costs = MANY[name]
    law = ScoreTable.from_densities(sizes, costs, ramp(sizes, costs, 5.0, 0.6))
    n = 4000
    sampler = law.sampler()
    assert isinstance(sampler, ScoreSampler)
    shifts = list(sampler.walk(n, SeededRandomness(3)))
    kept = np.array([np.mean(shift == 0) for shift in shifts])
    expected = law.keep_probabilities()
    error = np.sqrt(expected * (1 - expected) / n)
    assert np.all(np.abs(kept - expected) < 5 * error)
    scores = sum(cost * (shift != 0) for cost, shift in zip(costs, shifts, strict=True))
    exact = np.array([w / law.total for w in law.outcomes()])
    mean = exact @ np.arange(len(exact))
    spread = math.sqrt(exact @ (np.arange(len(exact)) - mean) ** 2)
    assert abs(scores.mean() - mean) < 5 * spread / math.sqrt(n)
    assert scores.std() == pytest.approx(spread, rel=0.1)


def test_a_table_that_changed_in_memory_is_noticed() -> None:
    law = ScoreTable((2, 2, 3, 4), (1, 1, 2, 5), tuple(range(10, 0, -1)))
    assert by_score(law).draws(law)
    assert not by_score(law).draws(
        ScoreTable(law.n_categories, law.costs, (11, *law.densities[1:]))
    )
    assert not by_score(law).draws(ScoreTable((2, 2, 3, 3), law.costs, law.densities))

    def spoil_floor(sampler: ScoreSampler) -> None:
        sampler._floors[1][0, 3] += 1

    def spoil_outputs(sampler: ScoreSampler) -> None:
        sampler._later[1][2] += 1

    def spoil_other(sampler: ScoreSampler) -> None:
        table = sampler._others[4]._table
        assert table is not None
        table[17] ^= 1

    for spoil in (spoil_floor, spoil_outputs, spoil_other):
        sampler = by_score(law)
        spoil(sampler)
        assert not sampler.draws(law)


@pytest.mark.parametrize(
    ("n", "costs", "densities", "message"),
    [
        ((), (), (1,), "a cost of 1"),
        ((2, 2), (1,), (1, 1), "a cost of 1"),
        ((2, 1), (1, 1), (1, 1, 1), "two categories"),
        ((2, 2), (1, 0), (1, 1), "a cost of 1"),
        ((2, 2), (1, 1), (1, 1), "one density per score"),
        ((2, 2), (1, 3), (1, 1, 1, 1, 1), "0 where no output"),
        ((2, 2), (1, 1), (1, 0, 1), "positive densities"),
        ((2, 2), (1, 1), (1, -1, 1), "positive densities"),
        ((2,), (1 << 16,), (1,), "too large"),
        ((2,) * 5000, (4,) * 5000, (1,), "too large"),
    ],
)
def test_what_is_no_score_table_is_refused(
    n: tuple[int, ...], costs: tuple[int, ...], densities: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ScoreTable(n, costs, densities)


def test_densities_that_are_no_numbers_or_too_far_apart_are_refused() -> None:
    with pytest.raises(InputError, match="positive density"):
        ScoreTable.from_densities((2, 2), (1, 1), [1.0, 0.0, 1.0])
    with pytest.raises(InputError, match="by over 640 nats"):
        ScoreTable.from_densities((2, 2), (1, 1), [1e300, 1.0, 1.0])
