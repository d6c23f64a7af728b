"""What laws of votes promise, against the exact law as drawn."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.laws.votes.accounts import account, subset_epsilon
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.independent import IndependentResponses
from deniable.laws.votes.mixture import VoteMixture
from unit.laws.votes import whole_law as oracle
from unit.laws.votes.test_sampling import Drawn, drawn_by_sums, drawn_by_table, drawn_by_votes

Law = GatedSum | VoteBlend | VoteMixture


def as_drawn(law: Law) -> Drawn:
    """Pr of every pattern with retention, exactly, from the samplers' tables."""
    if isinstance(law, GatedSum):
        drawn = drawn_by_sums(law, 1 << 28)
    else:
        drawn = drawn_by_votes(law) if isinstance(law, VoteBlend) else drawn_by_table(law)
    for i, (a, kept) in enumerate(zip(law.n_categories, law.retention, strict=True)):
        keep, r = Fraction(float(kept)), Fraction(1, int(a))
        after: Drawn = {}
        for row, mass in drawn.items():
            for changed, share in ((0, r), (1, 1 - r)):
                to = (*row[:i], changed, *row[i + 1 :])
                after[to] = after.get(to, Fraction(0)) + (1 - keep) * share * mass
            after[row] = after.get(row, Fraction(0)) + keep * mass
        drawn = after
    return drawn


def log(ratio: Fraction) -> float:
    excess = ratio - 1
    return math.log1p(float(excess)) if abs(excess) < 1 else math.log(ratio)


LAWS = [oracle.random_sum(seed, 5) for seed in range(24)]
LAWS_AND_MIXTURES: list[Law] = [
    *LAWS,
    *(oracle.random_mixture(seed, 5) for seed in range(24)),
    *(oracle.random_blend(seed, 5) for seed in range(24)),
]


@pytest.mark.parametrize("law", LAWS_AND_MIXTURES, ids=range(72))
def test_no_promise_is_below_the_exact_law_as_drawn_and_none_far_above(law: Law) -> None:
    k, a = law.n_attributes, law.n_categories.tolist()
    drawn, promised = as_drawn(law), account(law)
    each = {
        row: mass / math.prod(n - 1 for n, changed in zip(a, row, strict=True) if changed)
        for row, mass in drawn.items()
    }
    whole = log(max(each.values()) / min(each.values()))
    assert promised.epsilon >= whole * (1 - 1e-15)
    for i in range(k):
        keep = sum(mass for row, mass in drawn.items() if not row[i])
        exact = log(keep * (a[i] - 1) / (1 - keep))
        slack = 1e-15 * (1 + abs(exact))
        assert promised.attribute_epsilon[i] >= exact - slack
        assert promised.attribute_epsilon[i] <= exact + 1e-12
        assert promised.attribute_epsilon_floor[i] <= exact + slack
        assert promised.attribute_epsilon_floor[i] >= exact - 1e-12
        steps = [
            abs(log(each[row] / each[(*row[:i], 1, *row[i + 1 :])])) for row in each if not row[i]
        ]
        assert promised.epsilon_given_rest[i] >= max(steps) * (1 - 1e-15)
    for size in range(1, k + 1):
        for subset in itertools.combinations(range(k), size):
            seen: dict[tuple[int, ...], Fraction] = {}
            for row, mass in drawn.items():
                key = tuple(row[i] for i in subset)
                seen[key] = seen.get(key, Fraction(0)) + mass
            values = [
                mass
                / math.prod(a[i] - 1 for i, changed in zip(subset, key, strict=True) if changed)
                for key, mass in seen.items()
            ]
            exact = log(max(values) / min(values))
            bound = subset_epsilon(law, subset)
            assert bound >= exact * (1 - 1e-15)
            assert bound <= exact + 1e-11
    assert subset_epsilon(law, ()) == 0.0


def test_a_larger_set_of_columns_never_reveals_less() -> None:
    law = oracle.random_sum(8, 6)
    k = law.n_attributes
    levels = [subset_epsilon(law, range(m)) for m in range(k + 1)]
    assert levels == sorted(levels)
    assert levels[-1] <= account(law).epsilon


def test_independent_responses_add_up() -> None:
    levels = np.array([0.5, 1.0, 0.25])
    promised = account(IndependentResponses(np.array([3, 4, 2]), levels))
    assert 1.75 <= promised.epsilon <= 1.75 * (1 + 1e-15)
    np.testing.assert_array_equal(promised.attribute_epsilon, levels)
    np.testing.assert_array_equal(promised.epsilon_given_rest, levels)
    assert np.all(promised.attribute_epsilon_floor < levels)
