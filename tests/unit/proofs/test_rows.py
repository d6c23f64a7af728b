"""Extreme rows against linear programs, the closed-form bound against everything else, and what a
certificate proves, in exact arithmetic.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from deniable.errors import InputError
from deniable.proofs.rows import (
    Certificate,
    Groups,
    Limits,
    average_limits,
    bound_over,
    certify,
    closed_form_bound,
    local_limits,
    most_excess,
    n_kinds,
    proven_bound,
    row_kinds,
    verify,
)
from deniable.solvers.matrices import response, schemes
from marked import slow_after
from unit.solvers.matrices.priors import (
    NORMAL_TEN,
    SKEWED,
    UNIFORM_FIVE,
    any_limits,
    error_by_definition,
    extreme_rows,
    random_mechanism,
    subset_selection_record_mse,
    within,
)

EVERY_KIND = [
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.3, 0.45),
    average_limits(SKEWED, 0.3, 0.5),
    average_limits(SKEWED, 0.3, 0.75),
    average_limits(UNIFORM_FIVE, 0.3, 1 / 3),
    average_limits(UNIFORM_FIVE, 0.3, 0.28),
    local_limits(SKEWED, 0.7),
]


def cost_of(row: np.ndarray, limits: Limits) -> float:
    return float(row.sum() if limits.epsilon is not None else row.max())


def allowed(row: np.ndarray, limits: Limits) -> bool:
    if limits.epsilon is not None:
        ratio = row / limits.prior
        return bool(ratio.max() <= np.exp(limits.epsilon) * ratio.min() * (1 + 1e-12))
    if limits.most_posterior is None:
        return True
    return bool(row.max() <= limits.most_posterior * row.sum() * (1 + 1e-12))


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_extreme_rows_are_allowed_and_cost_one(limits: Limits) -> None:
    for row in extreme_rows(limits):
        assert allowed(row, limits)
        assert cost_of(row, limits) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("limits", slow_after(3, EVERY_KIND))
def test_every_allowed_row_splits_into_extreme_rows_at_no_greater_cost(limits: Limits) -> None:
    generator = np.random.default_rng(1)
    rows = extreme_rows(limits)
    n = limits.n_categories
    tried = 0
    while tried < 40:
        row = generator.dirichlet(np.full(n, generator.uniform(0.3, 3.0)))
        if limits.epsilon is not None:
            row = limits.prior * np.exp(generator.uniform(0, limits.epsilon, size=n))
        if not allowed(row, limits):
            continue
        tried += 1
        answer = linprog(np.ones(len(rows)), A_eq=rows.T, b_eq=row)
        assert answer.status == 0
        assert answer.fun <= cost_of(row, limits) + 1e-9


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_no_extreme_row_is_a_mixture_of_the_others(limits: Limits) -> None:
    rows = extreme_rows(limits)
    for index in range(len(rows)):
        others = np.delete(rows, index, axis=0)
        answer = linprog(
            np.ones(len(others)),
            A_eq=others.T,
            b_eq=rows[index],
        )
        assert answer.status == 2 or answer.fun > 1 + 1e-9


def test_extreme_rows_reach_epsilon_and_never_exceed_it() -> None:
    limits = local_limits(SKEWED, 0.7)
    ratio = extreme_rows(limits) / limits.prior
    widest = np.log(ratio.max(axis=1) / ratio.min(axis=1))
    assert (widest <= 0.7).all()
    assert widest == pytest.approx(0.7, abs=1e-14)


def random_limits(generator: np.random.Generator, n: int) -> Limits:
    prior = generator.dirichlet(np.full(n, generator.uniform(0.5, 5.0))) + 1e-3
    prior /= prior.sum()
    most = prior.max()
    kind = generator.integers(3)
    if kind == 0:
        return local_limits(prior, float(generator.uniform(0.05, 4.0)))
    privacy = float(generator.uniform(0.0, 0.99)) * (1 - most)
    delta = float(generator.uniform(most + 1e-3, 1.0)) if kind == 1 else None
    return average_limits(prior, privacy, delta)


def shrunk_into(matrix: np.ndarray, limits: Limits) -> np.ndarray:
    """Mix with the uniform answer until the limits hold."""
    low, high = 0.0, 1.0
    flat = 1.0 / len(matrix)
    if within(matrix, limits):
        return matrix
    for _ in range(50):
        middle = (low + high) / 2
        if within(middle * matrix + (1 - middle) * flat, limits):
            low = middle
        else:
            high = middle
    return low * matrix + (1 - low) * flat


def test_no_random_mechanism_is_below_the_closed_form_bound() -> None:
    generator = np.random.default_rng(2)
    for _ in range(200):
        n = int(generator.integers(2, 7))
        limits = random_limits(generator, n)
        matrix = random_mechanism(generator, n, int(generator.integers(n, 2 * n + 2)))
        matrix = shrunk_into(matrix, limits)
        assert error_by_definition(matrix, limits.prior) >= closed_form_bound(limits) * (1 - 1e-9)


def test_the_closed_form_bound_holds_and_is_tight_for_forty_uniform_categories() -> None:
    prior = np.full(40, 1 / 40)
    t = schemes.blank_answer_at(prior, 0.5)
    blank = float(response.record_mse(schemes.blank_answer(40, t), prior)) * 40
    assert closed_form_bound(average_limits(prior, 0.5)) == pytest.approx(blank, rel=1e-9)
    best = min(subset_selection_record_mse(40, 1.2, k) for k in range(1, 40))
    assert closed_form_bound(local_limits(prior, 1.2)) == pytest.approx(best * 40, rel=1e-9)


@pytest.mark.parametrize("delta", [0.25, 0.3, 0.45])
def test_with_a_bound_on_posteriors_the_closed_form_bound_rises_with_privacy(delta: float) -> None:
    levels = np.linspace(0.0, 0.75, 60)
    bounds = [closed_form_bound(average_limits(UNIFORM_FIVE, level, delta)) for level in levels]
    assert (np.diff(bounds) >= -1e-9).all()
    free = [closed_form_bound(average_limits(UNIFORM_FIVE, level)) for level in levels]
    assert (np.array(bounds) >= np.array(free) * (1 - 1e-9)).all()
    # At a privacy that is worth less than δ gives anyway, δ alone decides.
    assert bounds[0] == pytest.approx(bounds[10])


@pytest.mark.parametrize(
    ("privacy", "delta", "message"),
    [
        (0.61, None, "privacy: it must be from 0 to 0.59"),
        (0.6, None, "privacy"),
        (-0.1, None, "privacy"),
        (float("nan"), None, "privacy"),
        (0.3, 0.4, "most_posterior: the bound must be from 0.4"),
        (0.3, 1.1, "most_posterior"),
    ],
)
def test_privacy_out_of_reach_is_refused(privacy: float, delta: float | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        average_limits(SKEWED, privacy, delta)


@pytest.mark.parametrize("level", [0.0, -1.0, 31.0, float("nan")])
def test_a_level_out_of_range_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        local_limits(SKEWED, level)


LIMITS = [
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.3, 0.75),
    local_limits(SKEWED, 0.7),
]


def by_rows(limits: Limits, Z: np.ndarray, multipliers: np.ndarray) -> float:
    """What Z and λ prove, without the closed form."""
    kinds = row_kinds(limits, np.ones(limits.n_categories, dtype=np.intp))
    return bound_over(limits, kinds, Z, multipliers, np.arange(limits.n_categories))


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
        proven = Fraction(by_rows(limits, Z, multipliers))
        assert 0 < proven <= exact
        assert proven > exact * Fraction(999_999_999, 1_000_000_000)


def honest() -> Certificate:
    limits = average_limits(NORMAL_TEN, 0.5)
    return certify(limits, np.eye(10) - NORMAL_TEN, np.zeros(10))


@pytest.mark.parametrize("share", [1e-9, 1e-6, 0.1])
def test_a_certificate_that_claims_a_little_more_is_refused(share: float) -> None:
    certificate = honest()
    assert verify(certificate) >= certificate.claim
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
    assert by_rows(limits, np.zeros((4, 4)), np.zeros(4)) == 0.0
    assert proven_bound(limits, np.zeros((4, 4)), np.zeros(4)) == closed_form_bound(limits)


def grouping(generator: np.random.Generator, n: int) -> Groups:
    """A group for each category, no number left out."""
    return np.unique(generator.integers(0, n, size=n), return_inverse=True)[1]


def named_by(limits: Limits, rows: np.ndarray) -> np.ndarray:
    """v of each row: 1 for what it names, φ for what it names in part."""
    if limits.epsilon is None:
        return rows
    ratio = rows / limits.prior
    return np.asarray((ratio > 0.999 * ratio.max(axis=1, keepdims=True)).astype(float))


@given(limits=any_limits(2), seed=st.integers(0, 10**6))
def test_kinds_of_rows_are_those_of_all_extreme_rows(limits: Limits, seed: int) -> None:
    groups = grouping(np.random.default_rng(seed), limits.n_categories)
    member = np.eye(groups.max() + 1)[groups]
    named = named_by(limits, extreme_rows(limits))
    kinds = row_kinds(limits, np.bincount(groups))
    found = np.concatenate([kinds.sums, kinds.squares], axis=1).round(9)
    every = np.concatenate([named @ member, named**2 @ member], axis=1).round(9)
    assert len(found) <= n_kinds(limits, np.bincount(groups)) <= 2 * len(found) + 2
    assert np.array_equal(np.unique(found, axis=0), np.unique(every, axis=0))


@given(limits=any_limits(2), seed=st.integers(0, 10**6), small=st.booleans())
def test_the_bounded_excess_is_never_below_that_of_any_row(
    limits: Limits, seed: int, small: bool
) -> None:
    generator = np.random.default_rng(seed)
    n = limits.n_categories
    groups = grouping(generator, n)
    kinds = row_kinds(limits, np.bincount(groups))
    Z = generator.normal(size=(n, n))
    multipliers = generator.normal(size=n) * (0.0 if small else n)
    rows = extreme_rows(limits)
    image = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1)
    most = max(0.0, float((image - rows @ multipliers).max()))
    assert most_excess(limits, kinds, Z, multipliers, groups) >= most * (1 - 1e-12)


@pytest.mark.parametrize("delta", [None, 1 / 3, 0.28])
def test_where_all_of_a_group_are_alike_the_bounded_excess_is_that_of_the_worst_row(
    delta: float | None,
) -> None:
    groups = np.array([0, 0, 1, 1, 1])
    alike = np.array([[2.0, 0.5], [0.5, 1.0]])[np.ix_(groups, groups)]
    Z = np.linalg.cholesky(alike + np.diag(np.array([0.7, 0.3])[groups]))
    multipliers = np.array([0.9, 0.2])[groups]
    for limits in (average_limits(UNIFORM_FIVE, 0.3, delta), local_limits(UNIFORM_FIVE, 0.7)):
        rows = extreme_rows(limits)
        image = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1)
        most = float((image - rows @ multipliers).max())
        assert most > 0.0
        kinds = row_kinds(limits, np.bincount(groups))
        assert len(kinds) < len(rows)
        assert most_excess(limits, kinds, Z, multipliers, groups) == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize(
    "groups", [[0, 0, 0], [0, 0, 0, 2], [0, 0, 0, -1], [1, 1, 1, 2], [10**9, 0, 1, 2]]
)
def test_groups_that_are_not_one_for_each_category_are_refused(groups: list[int]) -> None:
    with pytest.raises(InputError, match="the group, 0, 1, …, of each of 4"):
        proven_bound(LIMITS[0], np.eye(4), np.zeros(4), np.array(groups))


def test_more_kinds_of_rows_than_can_be_compared_are_refused() -> None:
    limits = average_limits(np.full(30, 1 / 30), 0.3)
    with pytest.raises(InputError, match="kinds of rows are too many to check"):
        proven_bound(limits, np.eye(30), np.zeros(30))
    # In three groups of ten there are 1,330; and the closed form needs none.
    proven = proven_bound(limits, np.zeros((30, 30)), np.zeros(30), np.arange(30) // 10)
    assert proven == closed_form_bound(limits)
