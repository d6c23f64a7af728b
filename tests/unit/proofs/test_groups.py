"""Groups of like shares, and certificates carried over to the true shares, against every set."""

import numpy as np
import pytest

from deniable.proofs import groups
from deniable.proofs.rows import MOST_KINDS, Limits, average_limits, certify, local_limits, n_kinds
from deniable.solvers.matrices import frontier
from unit.solvers.matrices.priors import extreme_rows

ALIKE = np.outer([0.2, 0.12, 0.1, 0.06, 0.02], [1.0, 1.1]).ravel() / 1.05
PAIRS = np.arange(10) // 2


@pytest.mark.parametrize("limits", [average_limits(ALIKE, 0.5), local_limits(ALIKE, 2.0)])
def test_at_the_true_shares_every_excess_is_what_it_was(limits: Limits) -> None:
    alike = groups.alike(limits, groups.of_like_shares(limits, 5))
    generator = np.random.default_rng(3)
    # Z with Zᵀp = 0, as those of a solution.
    Z = generator.normal(size=(10, 10))
    Z -= np.outer(np.ones(10), alike.prior @ Z)
    multipliers = generator.uniform(0.5, 1.0, 10)

    def forms(at: Limits, Z: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        ratio = extreme_rows(alike) / (alike.prior if at.epsilon is not None else 1.0)
        rows = (ratio > 0.999 * ratio.max(axis=1, keepdims=True)).astype(float)
        if at.epsilon is not None:
            rows = (1.0 + np.expm1(at.epsilon) * rows) * at.prior
        return ((rows @ Z) ** 2).sum(axis=1) - rows.sum(axis=1) * (rows @ multipliers)

    # What the square lacks to be positive semidefinite is small beside a small change of shares.
    true = groups.at_true_shares(limits, alike.prior, Z, multipliers)
    before, after = forms(alike, Z, multipliers), forms(limits, *true)
    assert np.abs(after - before).max() <= 1e-8 * np.abs(before).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        local_limits(ALIKE, 0.5),
        average_limits(ALIKE, 0.5, 0.45),
        average_limits(ALIKE, 0.5),
        local_limits(ALIKE, 2.0),
    ],
)
def test_a_certificate_in_groups_proves_nearly_the_least_error_and_no_more(limits: Limits) -> None:
    exact = frontier.solve(limits).certificate.claim
    solved = frontier.solve(groups.alike(limits, PAIRS)).certificate
    args = solved.directions, solved.multipliers
    true = groups.at_true_shares(limits, solved.limits.prior, *args)
    proof = certify(limits, *true, PAIRS)
    assert 0.999 * exact < proof.claim <= exact * (1 + 1e-8)


def test_neighbours_that_are_least_unlike_are_merged_until_few_groups_are_left() -> None:
    limits = average_limits([0.01, 0.19, 0.5, 0.1, 0.2], 0.2)
    found = [groups.of_like_shares(limits, most).tolist() for most in (5, 4, 3, 2)]
    assert found == [[4, 2, 0, 3, 1], [3, 1, 0, 2, 1], [2, 1, 0, 1, 1], [1, 1, 0, 1, 1]]


def test_more_categories_than_kinds_can_be_counted_are_grouped_without_a_warning() -> None:
    limits = average_limits(np.full(1100, 1 / 1100), 0.5, 0.3)
    found = groups.of_like_shares(limits, 10)
    assert 2 <= len(np.bincount(found)) < 10
    assert n_kinds(limits, np.bincount(found)) <= MOST_KINDS


@pytest.mark.parametrize("delta", [None, 0.15])
def test_groups_have_no_more_kinds_of_rows_than_can_be_compared(delta: float | None) -> None:
    prior = np.logspace(0, -2, 100) / np.logspace(0, -2, 100).sum()
    limits = average_limits(prior, 0.5, delta)
    found = groups.of_like_shares(limits, 10)
    assert 2 < len(np.bincount(found)) < 10
    assert n_kinds(limits, np.bincount(found)) <= MOST_KINDS
    # In the order of shares, which is that of the categories.
    assert (np.diff(found) >= 0).all()
