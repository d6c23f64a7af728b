"""Rows that are listed, and what certificates say of those that are not, against all rows."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.solvers.matrices import certificate
from deniable.solvers.matrices.certificate import (
    Limits,
    average_limits,
    extreme_rows,
    local_limits,
    most_excess,
    shape_of_rows,
)
from deniable.solvers.matrices.listed import Listed
from unit.solvers.matrices.priors import any_limits

SEVEN = np.array([0.36, 0.2, 0.16, 0.12, 0.08, 0.05, 0.03])


@settings(max_examples=40, deadline=None)
@given(limits=any_limits(4), seed=st.integers(0, 10**6))
def test_no_excess_of_any_row_is_above_its_bound_in_exact_arithmetic(
    limits: Limits, seed: int
) -> None:
    """Whatever Z, λ, splits and squares are."""
    n, generator = limits.n_categories, np.random.default_rng(seed)
    Z, multipliers = generator.normal(size=(n, n)), generator.normal(size=n)
    splits, squares = generator.normal(size=(n, n)), 0.3 * generator.normal(size=(2, n + 1))
    part_splits = generator.normal(size=(n, n)) if seed % 3 else None
    outside = generator.normal(size=n)
    with pytest.MonkeyPatch.context() as few:
        few.setattr(certificate, "_MAX_SETS", 0)
        bounded = most_excess(limits, Z, multipliers, splits, squares, part_splits, outside)
    rows = extreme_rows(limits)
    excess = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers
    q = [Fraction(value) for value in rows[int(np.argmax(excess))]]
    image = [sum(Fraction(Z[x, y]) * q[x] for x in range(n)) for y in range(n)]
    largest = sum(value**2 for value in image) / sum(q)
    largest -= sum(Fraction(multipliers[x]) * q[x] for x in range(n))
    assert Fraction(bounded) >= largest - Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(5))
def test_a_worst_posterior_that_is_rounded_up_from_a_fifth_is_a_fifth(seed: int) -> None:
    """And the rows 1_S + φ 1_x that it allows, φ just below 1, have no excess above the bound."""
    n, generator = 7, np.random.default_rng(seed)
    limits = average_limits(np.full(n, 1 / n), 0.8, 0.2)
    assert shape_of_rows(limits) == (5, 0.0)
    part = 1 / Fraction(0.2) - 4
    assert 0 < 1 - part < Fraction(1, 10**15)
    Z, multipliers = generator.normal(size=(n, n)), generator.random(n)
    bounded = most_excess(limits, Z, multipliers)
    largest = Fraction(0)
    for members in permutations(range(n), 5):
        if list(members[:4]) == sorted(members[:4]):
            q = dict(zip(members, [Fraction(1)] * 4 + [part], strict=True))
            image = [sum(Fraction(Z[x, y]) * q[x] for x in q) for y in range(n)]
            spread = sum(value**2 for value in image) / sum(q.values())
            price = sum(Fraction(multipliers[x]) * q[x] for x in q)
            largest = max(largest, spread - price)
    assert Fraction(bounded) * 2 / 3 < largest <= Fraction(bounded)


@pytest.mark.parametrize("delta", [0.6, 0.75, 0.95])
@pytest.mark.parametrize("seed", range(3))
def test_the_excess_of_one_category_with_a_part_of_another_needs_no_splits(
    delta: float, seed: int
) -> None:
    limits, generator = average_limits(SEVEN, 0.1, delta), np.random.default_rng(seed)
    assert shape_of_rows(limits) == (2, pytest.approx(1 / delta - 1))
    Z, multipliers = generator.normal(size=(7, 7)), generator.normal(size=7)
    rows = extreme_rows(limits)
    rows = rows[rows.sum(axis=1) < 2.0]
    P = Z @ Z.T - (multipliers[:, None] + multipliers) / 2.0
    excess = (rows @ P * rows).sum(axis=1) / rows.sum(axis=1)
    theta = certificate._theta(limits)
    none = np.zeros((7, 7))
    found = certificate._most_of_parts(P, none, none, 1, 1 / delta - 1, theta)
    assert found == pytest.approx(excess.max(), rel=1e-11)
    assert found >= excess.max()


@pytest.mark.parametrize(
    "limits",
    [average_limits(SEVEN, 0.5), average_limits(SEVEN, 0.5, 0.5), local_limits(SEVEN, 1.0)],
)
def test_the_listed_rows_of_largest_excess_are_found(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_MAX_SETS", 0)
    generator = np.random.default_rng(5)
    Z, multipliers = generator.normal(size=(7, 7)), generator.normal(size=7)
    listed = Listed(limits, [np.array([x]) for x in range(7)])
    rows, values = listed.largest(Z, multipliers, 0.1, 5)
    excess = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers - 0.1
    assert np.allclose(excess, values, rtol=1e-9)
    every = extreme_rows(limits)
    ratio = every / limits.prior if limits.epsilon is not None else every
    some = every[(ratio > 0.999 * ratio.max(axis=1, keepdims=True)).sum(axis=1) <= 2]
    all_of_them = ((some @ Z) ** 2).sum(axis=1) / some.sum(axis=1) - some @ multipliers - 0.1
    assert values[0] == pytest.approx(all_of_them.max(), rel=1e-9)


def test_pairs_with_a_part_are_one_of_each_choice_of_groups() -> None:
    flat = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    divided = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5])]
    rows = Listed(average_limits(flat, 0.4, 0.8), divided).pairs_with_part(0.25)
    assert len(rows) == 3 * 3 - 1
    assert np.allclose(np.sort(rows)[:, -3:], [0.0, 0.25, 1.0])


def test_of_rows_that_differ_within_groups_one_stands_for_all() -> None:
    flat = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    limits = average_limits(flat, 0.4, 0.45)
    divided = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5])]
    rows, _ = Listed(limits, divided).largest(np.eye(6), np.zeros(6), 0.0, 1000)
    whole, _ = Listed(limits, [np.array([x]) for x in range(6)]).largest(
        np.eye(6), np.zeros(6), 0.0, 1000
    )

    def kinds(some: np.ndarray) -> set[tuple[float, ...]]:
        sorted_ = np.concatenate([np.sort(some[:, members]) for members in divided], axis=1)
        return set(map(tuple, np.round(sorted_, 9).tolist()))

    assert kinds(rows) == kinds(whole)
    assert len(kinds(rows)) == len(rows) < len(whole)
