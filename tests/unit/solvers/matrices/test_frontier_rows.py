"""Extreme rows against linear programs, and the closed-form bound against everything else."""

import numpy as np
import pytest
from scipy.optimize import linprog

from deniable.errors import InputError
from deniable.solvers.matrices import response, schemes
from deniable.solvers.matrices.frontier_rows import (
    Limits,
    average_limits,
    closed_form_bound,
    extreme_rows,
    local_limits,
)
from unit.solvers.matrices.priors import (
    NORMAL_TEN,
    SKEWED,
    UNIFORM_FIVE,
    error_by_definition,
    random_mechanism,
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
    best = min(schemes.subset_selection_record_mse(40, 1.2, k) for k in range(1, 40))
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
