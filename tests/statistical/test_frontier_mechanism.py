"""The mechanism that attains the bound, drawn and estimated from as a release would be.

Tables are drawn from the design's prior, answered by the stored mechanism with bits from the
operating system, and estimated with the stored matrix's inverse. Their mean squared error is a
mean of quadratic forms in errors of known covariance; bounds on its deviation are those of weighted
chi-squares (Laurent and Massart 2000, Lemma 1).
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.laws import DesignedChannel
from deniable.laws.patterns import FloatArray
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.proofs.rows import Limits, average_limits, local_limits
from deniable.randomness import SystemRandomness
from deniable.solvers.matrices import frontier
from deniable.solvers.matrices.response import left_inverse
from statistical.budget import BUDGET

PRIOR = np.array([0.6, 0.25, 0.1, 0.05])
TABLES, RECORDS = 8_000, 500
POINTS = {
    "average": average_limits(PRIOR, 0.3),
    "average, worst posterior 0.8": average_limits(PRIOR, 0.3, 0.8),
    "local": local_limits(PRIOR, 1.0),
}
SHARES = {name: BUDGET.spend(f"frontier mechanism, {name}") for name in POINTS}


def error_covariance(matrix: FloatArray, inverse: FloatArray) -> FloatArray:
    """Of N^½ times the error of the estimated shares, the truth drawn from the prior."""
    occurrence = matrix @ PRIOR
    return np.asarray((inverse * occurrence) @ inverse.T - np.outer(PRIOR, PRIOR))


def error_limits(covariance: FloatArray, share: float) -> tuple[float, float]:
    """Between them N·MSE lies but for this share of all runs."""
    a = np.linalg.eigvalsh(covariance)
    x = math.log(2 / share)
    middle = TABLES * a.sum()
    spread = 2 * math.sqrt(TABLES * (a @ a) * x)
    low, high = middle - spread, middle + spread + 2 * float(a.max()) * x
    return low / TABLES / len(a), high / TABLES / len(a)


@pytest.mark.parametrize("name", POINTS)
def test_a_stored_mechanism_reaches_the_error_and_the_guesses_that_were_promised(
    name: str,
) -> None:
    limits: Limits = POINTS[name]
    point = frontier.solve(limits)
    made = DesignedChannel.for_prior(point.matrix, PRIOR.tolist())
    law = DesignedChannel.from_plain(json.loads(json.dumps(made.to_plain())), (4,))
    source = SystemRandomness()
    seed = [int(word) for word in source.bits(np.uint64, 4)]
    truth = np.random.default_rng(seed).choice(4, size=TABLES * RECORDS, p=PRIOR)
    mechanism = Mechanism.of(law)
    (answers,) = Randomizer(mechanism, source).randomize([truth.astype(np.uint8)])

    m = len(point.matrix)
    table = np.repeat(np.arange(TABLES), RECORDS)
    counts = np.bincount(table * m + answers, minlength=TABLES * m).reshape(TABLES, m)
    errors = counts / RECORDS @ law.left_inverse().T - PRIOR
    found = RECORDS * float((errors**2).sum(axis=1).mean()) / len(PRIOR)
    share = SHARES[name] / 2
    low, high = error_limits(error_covariance(point.matrix, law.left_inverse()), share)
    assert low < point.record_mse < high
    assert low < found < high

    # Hoeffding's inequality for the share of right guesses.
    guesses = (point.matrix * PRIOR).argmax(axis=1)[answers]
    margin = math.sqrt(math.log(2 / share) / (2 * len(truth)))
    assert abs(float((guesses == truth).mean()) - float(Fraction(*law.guesses().after))) < margin


def test_an_estimate_that_is_not_the_best_one_would_be_noticed() -> None:
    point = frontier.solve(POINTS["average, worst posterior 0.8"])
    best = error_covariance(point.matrix, left_inverse(point.matrix, point.limits.prior))
    other = error_covariance(point.matrix, left_inverse(point.matrix, np.full(4, 0.25)))
    share = SHARES["average, worst posterior 0.8"] / 2
    assert error_limits(other, share)[0] > error_limits(best, share)[1]
