"""Extreme rows against linear programs, the closed-form bound against everything else, and what a
certificate proves, in exact arithmetic.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from deniable.errors import InputError
from deniable.solvers.matrices import response, schemes
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    average_limits,
    certify,
    closed_form_bound,
    extreme_rows,
    local_limits,
    most_excess,
    proven_bound,
    verify,
)
from unit.solvers.matrices.priors import (
    NORMAL_TEN,
    SKEWED,
    UNIFORM_FIVE,
    error_by_definition,
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


@pytest.mark.parametrize("limits", EVERY_KIND)
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


def test_their_number_at_ten_categories_is_known() -> None:
    assert len(extreme_rows(average_limits(NORMAL_TEN, 0.3))) == 1023
    assert len(extreme_rows(average_limits(NORMAL_TEN, 0.3, 0.75))) == 1103
    assert len(extreme_rows(local_limits(NORMAL_TEN, 1.0))) == 1022


def test_rows_on_the_inside_keep_epsilon_and_the_others_reach_it() -> None:
    limits = local_limits(SKEWED, 0.7)

    def widest(rows: np.ndarray) -> np.ndarray:
        ratio = rows / limits.prior
        return np.asarray(np.log(ratio.max(axis=1) / ratio.min(axis=1)))

    assert (widest(extreme_rows(limits, inside=True)) <= 0.7).all()
    assert (widest(extreme_rows(limits)) >= 0.7).all()


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
    for _ in range(1500):
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


def test_more_than_sixteen_categories_are_refused_by_name_of_the_way_out() -> None:
    limits = average_limits(np.full(17, 1 / 17), 0.3)
    with pytest.raises(InputError, match="closed-form bound"):
        extreme_rows(limits)
    assert closed_form_bound(limits) > 0


def test_a_worst_posterior_of_one_is_no_bound() -> None:
    assert average_limits(SKEWED, 0.3, 1.0).most_posterior is None


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


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 8), small=st.booleans())
def test_the_bounded_excess_is_never_below_that_of_any_row(seed: int, n: int, small: bool) -> None:
    generator = np.random.default_rng(seed)
    limits = random_limits(generator, n)
    Z = generator.normal(size=(n, n))
    multipliers = generator.normal(size=n) * (0.0 if small else n)
    rows = extreme_rows(limits)
    image = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1)
    most = max(0.0, float((image - rows @ multipliers).max()))
    splits = None if seed % 3 == 0 else generator.normal(size=(n, n))
    assert most_excess(limits, Z, multipliers, splits) >= most * (1 - 1e-12)


def test_where_all_pairs_are_alike_the_bounded_excess_is_that_of_the_worst_row() -> None:
    for limits in (average_limits(UNIFORM_FIVE, 0.3), local_limits(UNIFORM_FIVE, 0.7)):
        Z = np.eye(5) * 2.0 + 0.3
        multipliers = np.full(5, 0.9)
        rows = extreme_rows(limits)
        image = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1)
        most = float((image - rows @ multipliers).max())
        assert most > 0.0
        assert most_excess(limits, Z, multipliers) == pytest.approx(most, rel=1e-12)


def test_splits_of_another_shape_are_refused() -> None:
    limits = average_limits(UNIFORM_FIVE, 0.3)
    for splits in (np.zeros((4, 5)), np.full((5, 5), np.nan)):
        with pytest.raises(InputError, match="splits must be a 5 x 5 matrix"):
            most_excess(limits, np.eye(5), np.zeros(5), splits)
