"""What a certificate proves, in exact arithmetic, and that a false one is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.solvers.matrices.frontier_certificate import (
    Certificate,
    certify,
    proven_bound,
    verify,
)
from deniable.solvers.matrices.frontier_rows import (
    Limits,
    average_limits,
    extreme_rows,
    local_limits,
)
from unit.solvers.matrices.priors import (
    NORMAL_TEN,
    SKEWED,
    error_by_definition,
    random_mechanism,
)
from unit.solvers.matrices.test_frontier_rows import shrunk_into

LIMITS = [
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.3, 0.75),
    local_limits(SKEWED, 0.7),
]


def exact_bound(limits: Limits, Z: np.ndarray, multipliers: np.ndarray) -> Fraction:
    """The bound in rational arithmetic, for the rows and the prior as stored."""
    n = limits.n_categories
    p = [Fraction(float(value)) for value in limits.prior]
    total = sum(p)
    p = [value / total for value in p]
    z = [[Fraction(float(value)) for value in row] for row in Z]
    price = [Fraction(float(value)) for value in multipliers]
    most = Fraction(0)
    for row in extreme_rows(limits):
        q = [Fraction(float(value)) for value in row]
        image = [sum(z[x][j] * q[x] for x in range(n)) for j in range(n)]
        cost = sum(q) if limits.epsilon is not None else max(q)
        value = sum(v * v for v in image) / sum(q)
        value -= sum(a * b for a, b in zip(price, q, strict=True))
        most = max(most, value / cost)
    along = [sum(z[x][j] * p[x] for x in range(n)) for j in range(n)]
    bottom = sum(a * b for a, b in zip(price, p, strict=True))
    bottom += most * Fraction(limits.budget) - sum(v * v for v in along)
    top = sum(z[x][x] * p[x] for x in range(n))
    top -= sum(p[x] * z[x][j] * p[j] for x in range(n) for j in range(n))
    return top * top / bottom


def plausible(limits: Limits, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Z and λ that prove something: read off a mechanism within the limits, then disturbed."""
    p = limits.prior
    matrix = shrunk_into(random_mechanism(generator, len(p), len(p) + 2), limits)
    joint = matrix * p
    total = joint.sum(axis=1)
    good = total > 0
    K = (joint[good].T / total[good]) @ joint[good]
    Z = np.linalg.solve(K + 1e-6 * np.diag(p), np.diag(p)) - p
    Z += 0.01 * generator.normal(size=Z.shape)
    return Z, 0.3 * np.diag(Z) ** 2 * generator.uniform(0.5, 1.5)


@pytest.mark.parametrize("limits", LIMITS)
def test_the_bound_is_rounded_down_and_by_very_little(limits: Limits) -> None:
    generator = np.random.default_rng(1)
    for _ in range(25):
        Z, multipliers = plausible(limits, generator)
        exact = exact_bound(limits, Z, multipliers)
        proven = Fraction(proven_bound(limits, Z, multipliers))
        assert 0 < proven <= exact
        assert proven > exact * Fraction(999_999_999, 1_000_000_000)


@pytest.mark.parametrize("limits", LIMITS)
def test_whatever_the_directions_no_mechanism_is_below_what_they_prove(limits: Limits) -> None:
    generator = np.random.default_rng(2)
    proofs = []
    for _ in range(150):
        Z, multipliers = plausible(limits, generator)
        proofs.append(proven_bound(limits, Z, multipliers))
        wild = generator.normal(size=(4, 4)), generator.normal(size=4)
        proofs.append(proven_bound(limits, *wild))
    best = max(proofs)
    assert best > 0
    for _ in range(400):
        matrix = random_mechanism(generator, 4, int(generator.integers(4, 12)))
        assert error_by_definition(shrunk_into(matrix, limits), SKEWED) >= best


def test_the_identity_and_no_limit_prove_what_a_sample_has_anyway() -> None:
    limits = average_limits(SKEWED, 0.0)
    # K = D: Z = 1, ‖q‖²/(1·q) ≤ max q, which λ = 0 and m = 1 price exactly.
    proven = proven_bound(limits, np.eye(4), np.zeros(4))
    assert proven == pytest.approx(1 - SKEWED @ SKEWED, rel=1e-12)


def honest() -> Certificate:
    limits = average_limits(NORMAL_TEN, 0.5)
    return certify(limits, np.eye(10) - NORMAL_TEN, np.zeros(10))


def test_an_honest_certificate_is_accepted() -> None:
    certificate = honest()
    assert verify(certificate) >= certificate.claim
    assert certificate.record_mse == pytest.approx(certificate.claim / 10)


@pytest.mark.parametrize("share", [1e-9, 1e-6, 0.1])
def test_a_certificate_that_claims_a_little_more_is_refused(share: float) -> None:
    certificate = honest()
    with pytest.raises(InputError, match="proves only"):
        verify(replace(certificate, claim=certificate.claim * (1 + share)))


def test_a_certificate_for_looser_limits_is_refused() -> None:
    certificate = honest()
    looser = average_limits(NORMAL_TEN, 0.5 - 1e-6)
    with pytest.raises(InputError, match="proves only"):
        verify(replace(certificate, limits=looser))


def test_a_certificate_of_the_wrong_shape_or_with_nan_is_refused() -> None:
    limits = LIMITS[0]
    with pytest.raises(InputError, match="4 x 4"):
        proven_bound(limits, np.eye(3), np.zeros(4))
    with pytest.raises(InputError, match="4 multipliers"):
        proven_bound(limits, np.eye(4), np.zeros(3))
    with pytest.raises(InputError, match="finite"):
        proven_bound(limits, np.full((4, 4), np.nan), np.zeros(4))
    with pytest.raises(InputError, match="proves only"):
        verify(Certificate(limits, np.eye(4), np.zeros(4), float("nan")))
    assert proven_bound(limits, np.zeros((4, 4)), np.zeros(4)) == 0.0
