"""What given directions prove, against the program over all rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.solvers.matrices import certificate, frontier, pricing, relaxed
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    average_limits,
    extreme_rows,
    local_limits,
    most_excess,
    verify,
)
from unit.solvers.matrices.priors import SKEWED, any_limits

SEVEN = np.array([0.36, 0.2, 0.16, 0.12, 0.08, 0.05, 0.03])
EVERY_KIND = [
    average_limits(SEVEN, 0.5),
    average_limits(SEVEN, 0.3, 0.75),
    average_limits(SEVEN, 0.5, 0.5),
    average_limits(SEVEN, 0.5, 0.45),
    average_limits(np.full(7, 1 / 7), 0.5, 0.23),
    local_limits(SEVEN, 0.5),
    local_limits(SEVEN, 2.0),
]


@pytest.fixture
def beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat few categories as many, of which no set of more than two is listed."""
    monkeypatch.setattr(certificate, "MAX_EXACT_CATEGORIES", 3)
    monkeypatch.setattr(certificate, "_MAX_SETS", 0)


@pytest.mark.parametrize("limits", EVERY_KIND)
@pytest.mark.usefixtures("beyond")
def test_the_directions_of_the_optimum_prove_it(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as listed:
        listed.setattr(certificate, "MAX_EXACT_CATEGORIES", 16)
        listed.setattr(frontier, "MAX_EXACT_CATEGORIES", 16)
        exact = frontier.solve(limits).certificate
    nothing = Certificate(limits, exact.directions, exact.multipliers, 0.0)
    found = pricing.Pricing(limits).prove(nothing)
    assert exact.claim * (1 - 1e-5) < found.claim <= exact.claim * (1 + 1e-7)
    assert verify(found) >= found.claim


@settings(max_examples=8, deadline=None)
@given(limits=any_limits(4))
def test_no_proof_is_above_the_least_error(limits: Limits) -> None:
    exact = frontier.solve(limits).certificate.claim
    with pytest.MonkeyPatch.context() as few:
        few.setattr(certificate, "MAX_EXACT_CATEGORIES", 3)
        few.setattr(certificate, "_MAX_SETS", 0)
        given_ = relaxed.bound(limits)
        found = pricing.Pricing(limits).prove(given_)
        assert given_.claim <= found.claim <= exact * (1 + 1e-7)


@settings(max_examples=40, deadline=None)
@given(limits=any_limits(4), seed=st.integers(0, 10**6))
def test_no_excess_of_any_row_is_above_its_bound_in_exact_arithmetic(
    limits: Limits, seed: int
) -> None:
    """Whatever Z, λ, splits and squares are."""
    n, generator = limits.n_categories, np.random.default_rng(seed)
    Z, multipliers = generator.normal(size=(n, n)), generator.normal(size=n)
    splits, squares = generator.normal(size=(n, n)), 0.3 * generator.normal(size=(2, n + 1))
    with pytest.MonkeyPatch.context() as few:
        few.setattr(certificate, "_MAX_SETS", 0)
        few.setattr(certificate, "_MAX_PARTS", seed % 2 * 4_000_000)
        bounded = most_excess(limits, Z, multipliers, splits, squares)
    rows = extreme_rows(limits)
    excess = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers
    q = [Fraction(value) for value in rows[int(np.argmax(excess))]]
    image = [sum(Fraction(Z[x, y]) * q[x] for x in range(n)) for y in range(n)]
    largest = sum(value**2 for value in image) / sum(q)
    largest -= sum(Fraction(multipliers[x]) * q[x] for x in range(n))
    assert Fraction(bounded) >= largest - Fraction(1, 10**12)


@pytest.mark.parametrize(
    "limits",
    [average_limits(SEVEN, 0.5, 0.75), average_limits(SEVEN, 0.5, 0.45), local_limits(SEVEN, 1.0)],
)
def test_the_listed_rows_of_largest_excess_are_found(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_MAX_SETS", 0)
    generator = np.random.default_rng(5)
    Z, multipliers = generator.normal(size=(7, 7)), generator.normal(size=7)
    rows, values = pricing.Pricing(limits).largest(Z, multipliers, 0.1, 5)
    excess = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers - 0.1
    assert np.allclose(excess, values, rtol=1e-9)
    every = extreme_rows(limits)
    ratio = every / limits.prior if limits.epsilon is not None else every
    some = every[(ratio > 0.999 * ratio.max(axis=1, keepdims=True)).sum(axis=1) <= 2]
    all_of_them = ((some @ Z) ** 2).sum(axis=1) / some.sum(axis=1) - some @ multipliers - 0.1
    assert values[0] == pytest.approx(all_of_them.max(), rel=1e-9)


ALIKE = np.outer([0.24, 0.2, 0.06], [1.0, 1.02]).ravel() / 1.01


@pytest.mark.parametrize(
    "limits",
    [average_limits(ALIKE, 0.5, 0.75), average_limits(ALIKE, 0.5, 0.4), local_limits(ALIKE, 1.0)],
)
@pytest.mark.usefixtures("beyond")
def test_groups_prove_what_their_categories_do(limits: Limits) -> None:
    divided = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])]
    flat = ALIKE.reshape(3, 2).mean(axis=1).repeat(2)
    alike = replace(limits, prior=flat / flat.sum())
    merged = relaxed.bound(alike, divided)
    whole = pricing.Pricing(alike).prove(merged)
    assert pricing.Pricing(alike, divided).prove(merged).claim == pytest.approx(
        whole.claim, rel=1e-6
    )
    unlike = relaxed.bound(limits, divided)
    found = pricing.Pricing(limits, divided).prove(unlike)
    assert verify(found) >= found.claim >= unlike.claim
    assert found.claim == pytest.approx(whole.claim, rel=0.02)


def test_a_program_that_cannot_be_solved_leaves_the_proof_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = average_limits(SKEWED, 0.3)
    before = relaxed.bound(limits)
    monkeypatch.setattr(pricing.Pricing, "_solve", lambda *_: None)
    assert pricing.Pricing(limits).prove(before) is before
