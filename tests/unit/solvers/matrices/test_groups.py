"""Groups of like shares, and certificates carried over to the true shares, against every set."""

from itertools import combinations

import numpy as np
import pytest

from deniable.solvers.matrices import groups
from deniable.solvers.matrices.certificate import (
    Limits,
    average_limits,
    extreme_rows,
    local_limits,
)

ALIKE = np.outer([0.2, 0.12, 0.1, 0.06, 0.02], [1.0, 1.1]).ravel() / 1.05


@pytest.mark.parametrize("limits", [average_limits(ALIKE, 0.5), local_limits(ALIKE, 2.0)])
def test_at_the_true_shares_every_excess_is_what_it_was(limits: Limits) -> None:
    alike = groups.alike(limits, groups.of_like_shares(limits, 5))
    generator = np.random.default_rng(3)
    # Z with Zᵀp = 0, as those of a solution.
    Z = generator.normal(size=(10, 10))
    Z -= np.outer(np.ones(10), alike.prior @ Z)
    multipliers = generator.uniform(0.5, 1.0, 10)

    def forms(at: Limits, Z: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        sets = (extreme_rows(alike) / (alike.prior if at.epsilon is not None else 1.0)) > 0.0
        if at.epsilon is not None:
            ratio = extreme_rows(alike) / alike.prior
            sets = ratio > 0.999 * ratio.max(axis=1, keepdims=True)
        rows = sets.astype(float)
        if at.epsilon is not None:
            rows = (1.0 + np.expm1(at.epsilon) * rows) * at.prior
        return ((rows @ Z) ** 2).sum(axis=1) - rows.sum(axis=1) * (rows @ multipliers)

    # What the square lacks to be positive semidefinite is small beside a small change of shares.
    true = groups.at_true_shares(limits, alike.prior, Z, multipliers)
    before, after = forms(alike, Z, multipliers), forms(limits, *true)
    assert np.abs(after - before).max() <= 1e-8 * np.abs(before).max()


def forms(limits: Limits, Z: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """‖Zᵀq‖² − (1·q)(λ·q) of the rows p∘(1 + (e^ε − 1) 1_B) of every set B."""
    ratio = extreme_rows(limits) / limits.prior
    named = ratio > 0.999 * ratio.max(axis=1, keepdims=True)
    assert limits.epsilon is not None
    rows = (1.0 + np.expm1(limits.epsilon) * named) * limits.prior
    return np.asarray(((rows @ Z) ** 2).sum(axis=1) - rows.sum(axis=1) * (rows @ multipliers))


@pytest.mark.parametrize("level", [0.5, 3.0, 6.0])
def test_at_larger_shares_no_set_has_more_and_the_numerator_is_larger(level: float) -> None:
    limits = local_limits(ALIKE, level)
    divided = groups.with_least_share(limits, 5)
    lower = groups.lowered(limits, divided).prior
    assert lower.sum() < 0.97
    generator = np.random.default_rng(4)
    gain = np.expm1(level)
    # Q = Y Yᵀ with Q 1 = 0, as that of a solution, and multipliers that are not negative.
    Y = generator.normal(size=(10, 10))
    Y = (Y - Y.mean(axis=0)) @ (Y - Y.mean(axis=0)).T
    level_of = generator.uniform(0.0, 1.0, 10)
    Z, multipliers = groups.at_larger_shares(limits, lower, Y / lower[:, None], level_of / lower)
    named = extreme_rows(limits) / limits.prior
    named = named > 0.999 * named.max(axis=1, keepdims=True)
    before = gain**2 * ((named @ Y) ** 2).sum(axis=1)
    before -= (level_of.sum() + gain * named @ level_of) * (1.0 + gain * named @ lower)
    after = forms(limits, Z, multipliers)
    size = np.abs(before).max()
    assert (after <= before + 1e-10 * size).all()
    # A set of one category has what it had, but for what makes Q 1 = 0.
    more = (ALIKE - lower) * (level_of + level_of.sum() / gain)
    single = named.sum(axis=1) == 1
    lost = gain**2 * (named @ more) ** 2 / more.sum()
    assert np.abs(after - before + lost)[single].max() < 1e-10 * size
    assert np.trace(limits.prior[:, None] * Z) > np.trace(Y)
    assert (limits.prior[:, None] * Z).sum(axis=0) == pytest.approx(np.zeros(10), abs=1e-6)


def test_at_shares_that_are_as_they_were_nothing_changes() -> None:
    limits = local_limits(ALIKE, 2.0)
    Y = np.eye(10) - 0.1
    Z, multipliers = groups.at_larger_shares(limits, ALIKE, Y / ALIKE[:, None], np.ones(10))
    assert pytest.approx(Y / ALIKE[:, None]) == Z
    assert multipliers == pytest.approx(np.ones(10))


def test_groups_are_the_best_cuts_of_the_order_of_shares() -> None:
    prior = np.array([0.5, 0.2, 0.19, 0.1, 0.01])
    found = groups.of_like_shares(average_limits(prior, 0.2), 4)

    def loss(cuts: tuple[int, ...]) -> float:
        parts = np.split(np.sort(prior)[::-1], cuts)
        return float(sum(((p - p.mean()) ** 2).sum() / p.mean() for p in parts))

    best = min(combinations(range(1, 5), 3), key=loss)
    sizes = [len(part) for part in np.split(np.arange(5), best)]
    assert [len(group) for group in found] == sizes


def test_groups_for_their_least_shares_are_the_best_cuts_too() -> None:
    prior = np.array([0.19, 0.5, 0.01, 0.2, 0.1])
    found = groups.with_least_share(local_limits(prior, 3.0), 3)

    def loss(cuts: tuple[int, ...]) -> float:
        parts = np.split(np.sort(prior)[::-1], cuts)
        return float(sum(((p - p.min()) / (1 + np.expm1(3.0) * p)).sum() for p in parts))

    best = min(combinations(range(1, 5), 2), key=loss)
    sizes = [len(part) for part in np.split(np.arange(5), best)]
    assert [len(group) for group in found] == sizes
    assert [group.tolist() for group in groups.with_least_share(local_limits(prior, 3.0), 9)] == [
        [1],
        [3],
        [0],
        [4],
        [2],
    ]
