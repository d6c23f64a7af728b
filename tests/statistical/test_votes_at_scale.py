"""Laws of votes with many attributes, and an adversary who knows all the rest.

A million records of sixty attributes against the law's own keep probabilities and pair
attenuations; and two people who differ in one attribute only, told apart by someone who knows
everything else, never more often than ``epsilon_given_rest`` allows.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from deniable.design.design import design
from deniable.laws.patterns import other_outputs
from deniable.laws.transforms import kernel_of
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.schema import Schema
from statistical.budget import BUDGET
from statistical.counting import expectation

RECORDS = 1_000_000
SIZES = [2 + i % 7 for i in range(60)]
LEVELS = [0.4 + 0.01 * i for i in range(60)]
PAIRS = [(0, 1), (0, 59), (10, 11), (29, 30), (58, 59)]


def released(mechanism, columns):
    return Randomizer(mechanism, SystemRandomness()).randomize(columns)


def pair_patterns(law, pair):
    """Return the exact probability that neither, the second, the first, both change."""
    sizes = [law.n_categories[i] for i in pair]
    kernel = kernel_of(law.eigenvalues(pair), sizes)
    return (kernel * other_outputs(sizes).astype(float)).ravel()


@pytest.mark.weekly  # a million records; the default run draws from hundreds of attributes
@pytest.mark.parametrize("method", ["optimal", "balanced"])
def test_a_million_records_of_sixty_attributes_follow_their_law(method):
    mechanism = design(Schema.anonymous(SIZES), attribute_epsilon=LEVELS, method=method).mechanism
    law = mechanism.blocks[0].law
    zeros = [np.zeros(RECORDS, dtype=np.uint8)] * len(SIZES)
    changed = [column != 0 for column in released(mechanism, zeros)]
    kept = expectation(
        RECORDS, law.keep_probabilities(), BUDGET.spend(f"keep probabilities, {method}")
    )
    counts = np.array([RECORDS - np.count_nonzero(column) for column in changed])
    assert not kept.alarms(counts).size
    pairs = expectation(
        RECORDS,
        np.concatenate([pair_patterns(law, pair) for pair in PAIRS]),
        BUDGET.spend(f"pairs, {method}"),
    )
    patterns = np.concatenate(
        [np.bincount(2 * changed[i] + changed[j], minlength=4) for i, j in PAIRS]
    )
    assert not pairs.alarms(patterns).size
    # The same check sees two attributes exchanged: "only the first" for "only the second".
    exchanged = pairs.probability.reshape(-1, 4)[:, [0, 2, 1, 3]].ravel()
    assert pairs.miss_probability(exchanged) < BUDGET.spend(f"pairs exchanged, {method}")
    assert pairs.alarms(patterns.reshape(-1, 4)[:, [0, 2, 1, 3]].ravel()).size


def told_apart(counts, others, level, false_alarm):
    """Return whether an output betrays a ratio above e^level: given their sum, the first of two
    counts is binomial with at most the chance e^level/(1 + e^level)."""
    total = counts + others
    chance = 1 / (1 + math.exp(-level))
    surprise = np.minimum(binom.sf(counts - 1, total, chance), binom.sf(others - 1, total, chance))
    return bool(np.any(surprise < false_alarm / (2 * len(counts))))


@pytest.mark.parametrize("method", ["optimal", "balanced"])
@pytest.mark.parametrize("attribute", [0, 1, 2])
def test_someone_who_knows_the_rest_learns_no_more_than_stated(method, attribute):
    sizes, levels = (2, 3, 2), (1.0, 0.7, 1.4)
    mechanism = design(Schema.anonymous(sizes), attribute_epsilon=levels, method=method).mechanism
    n = 400_000
    seen = []
    for value in (0, 1):
        columns = [np.zeros(n, dtype=np.uint8) for _ in sizes]
        columns[attribute][:] = value
        outputs = np.ravel_multi_index(released(mechanism, columns), sizes)
        seen.append(np.bincount(outputs, minlength=12))
    stated = mechanism.epsilon_given_rest[attribute]
    allowed = BUDGET.spend(f"adversary who knows the rest, {method}, {attribute}")
    assert not told_apart(*seen, stated, allowed)
    # A statement a tenth of a nat too low would be found out.
    assert told_apart(*seen, stated - 0.1, allowed)
