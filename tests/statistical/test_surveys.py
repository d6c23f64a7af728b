"""In a sample of clusters the F test keeps its level, and intervals of shares cover.

Respondents of a cluster often have the same values; answers are randomized one by one, with fresh
randomness, by the production sampler.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.estimate.chi_square import chi_square
from deniable.estimate.independence import independence
from deniable.estimate.shares import Shares
from deniable.estimate.survey import ClusterCells
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from statistical.budget import BUDGET

SAMPLES, CLUSTERS, SIZE = 600, 60, 20
ALIKE = 0.8
"""Probability that a respondent has the value of the cluster."""
FIRST, SECOND = np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.2])
MECHANISM = Mechanism.of(ProductLaw.from_levels((2, 3), (3.0, 3.0)))


def drawn(random: np.random.Generator, shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    each = random.choice(len(shares), (SAMPLES, CLUSTERS, SIZE), p=shares)
    of_cluster = random.choice(len(shares), (SAMPLES, CLUSTERS, 1), p=shares)
    alike = random.random(each.shape) < ALIKE
    return np.where(alike, of_cluster, each).astype(np.uint8).ravel()


def samples() -> list[Counts]:
    random = np.random.default_rng()
    codes = Randomizer(MECHANISM, SystemRandomness()).randomize(
        [drawn(random, FIRST), drawn(random, SECOND)]
    )
    cells = (codes[0].astype(np.int64) * 3 + codes[1]).reshape(SAMPLES, -1)
    cluster = np.repeat(np.arange(CLUSTERS), SIZE)
    found = []
    for own in cells:
        pairs = ClusterCells(cluster, own, np.ones(own.size)).merged()
        table = np.bincount(own, minlength=6).reshape(2, 3).astype(float)
        counted = Tabulation(table, None, own.size, pairs)
        strata = np.zeros(CLUSTERS, dtype=np.int64)
        found.append(Counts(((MECHANISM, counted),), cluster_strata=strata))
    return found


def alarms(hits: int, nominal: float, slack: float, share: float) -> bool:
    low, high = max(nominal - slack, 0.0), min(nominal + slack, 1.0)
    tails = binom.cdf(hits, SAMPLES, low), binom.sf(hits - 1, SAMPLES, high)
    return bool(min(tails) < share / 2)


@pytest.mark.weekly
def test_the_f_test_keeps_its_level_and_one_of_independent_rows_would_not() -> None:
    share = BUDGET.spend("surveys: F test", 3e-9) / 3
    counts = samples()
    p_values = np.array([independence(each, ("a1", "a2")).p_value for each in counts])
    for level in (0.05, 0.2):
        hits = int((p_values < level).sum())
        assert not alarms(hits, level, 0.03, share), f"{hits / SAMPLES} at {level}"
    channel = Channel(MECHANISM, ("a1", "a2"))
    naive = [
        chi_square(each.parts[0][1].counts, channel.forward, channel.inverse).p_value
        for each in counts
    ]
    assert alarms(int((np.array(naive) < 0.05).sum()), 0.05, 0.03, share)


@pytest.mark.weekly
def test_intervals_of_shares_cover_and_those_of_independent_rows_would_not() -> None:
    share = BUDGET.spend("surveys: shares", 2e-9) / 2
    counts = samples()
    query = Shares("a1,a2", target="population")
    truth = np.outer(FIRST, SECOND)[0, 0]

    def covered(each: Counts) -> bool:
        low, high = query.answer(each)[0].confidence_interval()
        return bool(low[0, 0] <= truth <= high[0, 0])

    hits = sum(map(covered, counts))
    assert not alarms(hits, 0.95, 0.03, share), f"{hits / SAMPLES}"
    naive = sum(covered(Counts(each.parts)) for each in counts)
    assert alarms(naive, 0.95, 0.03, share), f"{naive / SAMPLES}"
