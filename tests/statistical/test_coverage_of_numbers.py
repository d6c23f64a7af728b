"""Intervals of numbers hold: of distribution functions, deviations and correlations.

The rows of the population are drawn anew each time, rounded and randomized: released counts are
multinomial, with the exact law of a row.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from deniable.estimate.correlation import Correlation
from deniable.estimate.distribution import Distribution
from deniable.estimate.ordered import Deviation
from deniable.estimate.tabulate import Counts
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from statistical.budget import BUDGET
from statistical.coverage import LEVEL
from unit.dense import dense_channel

RELEASES, N, POINTS = 300, 20_000, 9
AT = (2.0, 3.5, 5.0, 7.5, 9.0)
XS = (np.arange(2_000) + 0.5) / 200
SCHEMA = Schema((Attribute("x", range=(0, 10), grid=POINTS), Attribute("sex", ("f", "m"))))
MECHANISM = Mechanism.of(ProductLaw.from_levels((POINTS, 2), (2.5, 2.0)), SCHEMA)


def people() -> np.ndarray:
    """Shares of numbers by sex, shape (numbers, 2)."""
    of_sex = np.exp(-((XS[:, None] - [4.0, 5.5]) ** 2) / 5)
    return np.asarray(of_sex / of_sex.sum())


@cache
def releases() -> list[Counts]:
    hats = np.maximum(0.0, 1 - np.abs(XS[:, None] * (POINTS - 1) / 10 - np.arange(POINTS)))
    chances = dense_channel(MECHANISM, SCHEMA.names) @ (hats.T @ people()).ravel()
    drawn = np.random.default_rng().multinomial(N, chances, RELEASES)
    return [Counts.of(MECHANISM, one.reshape(POINTS, 2)) for one in drawn]


def of_x(counts: Counts) -> Counts:
    return Counts.of(MECHANISM, counts.parts[0][1].margin([0]))


def too_few(held: np.ndarray, level: float, share: float) -> bool:
    """Whether in some column so few intervals hold that their level is below the stated one."""
    return bool((binom.cdf(held.sum(axis=0), len(held), level) < share / held.shape[1]).any())


@pytest.mark.weekly
def test_bands_and_limits_of_a_distribution_hold() -> None:
    """The band to two points, for the bias of smoothing; without the error of the law it fails."""
    share = BUDGET.spend("coverage: distribution functions") / 3
    truth = np.array([people()[value >= XS].sum() for value in AT])
    tables = [
        Distribution("x", at=AT, target="population").answer(of_x(counts))[0].table()
        for counts in releases()
    ]
    low, high, lowest, highest, estimate = (
        np.array([[row[key] for row in table] for table in tables])
        for key in ("low", "high", "lowest", "highest", "estimate")
    )
    assert not too_few((low <= truth) & (truth <= high), LEVEL - 0.02, share)
    assert not too_few((lowest <= truth) & (truth <= highest), LEVEL, share)
    sampling = 1.96 * np.sqrt(truth * (1 - truth) / N)
    assert too_few(np.abs(estimate - truth) <= sampling, LEVEL - 0.02, share)


@pytest.mark.weekly
def test_deviations_and_correlations_hold() -> None:
    """As wide as any numbers need; the deviation of the points would not hold."""
    share = BUDGET.spend("coverage: deviations and correlations of numbers") / 2
    shares = people()
    mean, of_male = XS @ shares.sum(axis=1), shares.sum(axis=0)[1]
    variance = (XS - mean) ** 2 @ shares.sum(axis=1)
    covariance = (XS - mean) @ shares[:, 1]
    truth = [variance**0.5, covariance / np.sqrt(variance * of_male * (1 - of_male))]
    held = []
    for counts in releases():
        (one,) = Deviation("x", target="population").answer(of_x(counts))
        (other,) = Correlation("x,sex", target="population").answer(counts)
        held.append([one.low <= truth[0] <= one.high, other.low <= truth[1] <= other.high])  # type: ignore[operator]
    assert not too_few(np.array(held), LEVEL, share)
