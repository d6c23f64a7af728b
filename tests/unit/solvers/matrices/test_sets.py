"""Rows by search and their weights, against the program over all rows."""

import numpy as np
import pytest
from scipy.optimize import nnls

from deniable.solvers.matrices import certificate, frontier, relaxed, sets
from deniable.solvers.matrices.certificate import (
    Limits,
    average_limits,
    extreme_rows,
    local_limits,
    shape_of_rows,
)
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED

SEVEN = NORMAL_TEN[1:8] / NORMAL_TEN[1:8].sum()
EVERY_KIND = [
    average_limits(SEVEN, 0.5),
    average_limits(SEVEN, 0.5, 0.75),
    average_limits(SKEWED, 0.3, 0.5),
    local_limits(SEVEN, 1.0),
]


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_the_search_comes_near_the_least_error(limits: Limits) -> None:
    least = frontier.solve(limits)
    found, proof = sets.mechanism(limits, relaxed.bound(limits), 6, 1e-6)
    assert found is not None
    assert found.error == pytest.approx(least.record_mse * limits.n_categories, rel=1e-4)
    assert proof.claim <= least.certificate.claim * (1 + 1e-7)
    assert proof.claim > least.certificate.claim * (1 - 1e-4)


def test_where_the_relaxed_rows_lose_the_weights_prove_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = np.array([0.36, 0.2, 0.16, 0.12, 0.08, 0.05, 0.03])
    limits = average_limits(shares, 0.5, 0.5)
    exact = frontier.solve(limits).certificate.claim
    monkeypatch.setattr(certificate, "MAX_EXACT_CATEGORIES", 3)
    before = relaxed.bound(limits)
    found, proof = sets.mechanism(limits, before, 8, 1e-7)
    assert found is not None
    assert before.claim < 0.999 * exact
    assert exact * (1 - 1e-5) < proof.claim <= exact * (1 + 1e-7)


def test_rows_that_the_search_lacks_leave_a_bound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = average_limits(SKEWED, 0.3)
    monkeypatch.setattr(sets, "_first", lambda *_: np.eye(4))
    monkeypatch.setattr(sets, "_priced", lambda *_: [np.eye(4)])
    before = relaxed.bound(limits)
    assert sets.mechanism(limits, before, 4, 1e-6) == (None, before)


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_all_rows_are_weighed_to_the_least_error_and_the_sums_hold(limits: Limits) -> None:
    rows = extreme_rows(limits, inside=True)
    found = sets._weigh(limits, rows, 1e-8)
    assert found is not None
    least = frontier.solve(limits).certificate.claim
    assert found.error == pytest.approx(least, rel=1e-6)
    assert np.allclose(found.weights @ rows, limits.prior, rtol=1e-7)
    assert limits.success is None or found.weights.sum() <= limits.success * (1 + 1e-9)


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_every_row_searched_is_an_extreme_one(limits: Limits) -> None:
    generator = np.random.default_rng(0)
    bound = relaxed.bound(limits)
    first = sets._first(limits, generator)
    dual = bound.directions, bound.multipliers
    listed = extreme_rows(limits, inside=True)
    for row in np.concatenate([first, sets._search(limits, *dual, first, generator)]):
        assert np.abs(listed - row).max(axis=1).min() < 1e-12


def test_the_search_finds_the_row_of_largest_excess() -> None:
    limits = average_limits(NORMAL_TEN, 0.5)
    generator = np.random.default_rng(1)
    for _ in range(10):
        Z, multipliers = generator.normal(size=(10, 10)), generator.normal(size=10)
        rows = extreme_rows(limits)
        excess = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers
        found = sets._search(limits, Z, multipliers, rows[:5], generator)
        best = ((found @ Z) ** 2).sum(axis=1) / found.sum(axis=1) - found @ multipliers
        assert best[0] == pytest.approx(excess.max(), rel=1e-9)


@pytest.mark.parametrize("delta", [0.42, 0.45, 0.6, 0.8])
def test_pieces_of_the_prior_are_extreme_rows_and_make_a_mechanism(delta: float) -> None:
    generator = np.random.default_rng(4)
    for privacy in (0.1, 0.5):
        limits = average_limits(SKEWED, privacy, delta)
        pieces = sets._pieces(limits, generator)
        listed = extreme_rows(limits)
        assert all(np.abs(listed - row).max(axis=1).min() < 1e-9 for row in pieces)
        sums = np.vstack([pieces.T, np.ones(len(pieces))])
        wanted = np.append(limits.prior, limits.budget)
        slack = np.append(np.zeros(4), 1.0)[:, None]
        assert nnls(np.hstack([sums, slack]), wanted)[1] < 1e-6


def test_rows_that_make_no_mechanism_have_no_weights() -> None:
    limits = average_limits(SKEWED, 0.3)
    assert sets._weigh(limits, np.eye(4), 1e-6) is None


def test_sizes_are_filled_to_what_is_allowed() -> None:
    limits = average_limits(NORMAL_TEN, 0.5, 0.4)
    assert shape_of_rows(limits)[0] == 3
    generator = np.random.default_rng(2)
    filled = sets._filled(np.eye(10, dtype=bool), 3, 10, generator)
    assert (filled.sum(axis=1) == 3).all()
    assert (filled & np.eye(10, dtype=bool)).any(axis=1).all()
