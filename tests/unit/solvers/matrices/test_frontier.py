"""The exact bound and the mechanism that attains it, against thousands of others."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.problem import SolverError
from deniable.proofs.rows import Limits, average_limits, closed_form_bound, local_limits, verify
from deniable.solvers.matrices import frontier, response, schemes
from marked import slow_after, weekly_after
from unit.proofs.test_rows import random_limits, shrunk_into
from unit.solvers.matrices.priors import (
    NORMAL_TEN,
    SKEWED,
    UNIFORM_FIVE,
    error_by_definition,
    extreme_rows,
    random_mechanism,
    subset_selection_record_mse,
    within,
)

EVERY_KIND = [
    average_limits([0.7, 0.3], 0.2),
    average_limits(SKEWED, 0.0),
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.599),
    average_limits(SKEWED, 0.3, 0.75),
    average_limits(SKEWED, 0.5, 0.6),
    average_limits(SKEWED, 0.0, 0.5),
    average_limits(SKEWED, 0.58, 0.42),
    average_limits(UNIFORM_FIVE, 0.7, 1 / 3),
    average_limits(UNIFORM_FIVE, 0.79),
    average_limits(NORMAL_TEN, 0.5, 0.75),
    local_limits(SKEWED, 0.05),
    local_limits(SKEWED, 1.0),
    local_limits(UNIFORM_FIVE, 6.0),
    local_limits(NORMAL_TEN, 0.5),
]


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_the_mechanism_keeps_the_limits_and_attains_a_verified_bound(limits: Limits) -> None:
    point = frontier.solve(limits)
    n = limits.n_categories
    assert verify(point.certificate) >= point.certificate.claim
    assert 0 <= point.gap < 1e-7
    assert within(point.matrix, limits, margin=1e-11)
    assert np.allclose(point.matrix.sum(axis=0), 1.0, atol=1e-14)
    assert len(point.matrix) <= n * (n + 1) // 2 + 1
    expected = error_by_definition(point.matrix, limits.prior) / n
    assert point.record_mse == pytest.approx(expected, rel=1e-7)
    assert closed_form_bound(limits) <= n * point.record_mse * (1 + 1e-9)


@pytest.mark.parametrize("limits", [EVERY_KIND[3], EVERY_KIND[5], EVERY_KIND[12]])
def test_a_certificate_whose_numbers_have_been_nudged_is_refused(limits: Limits) -> None:
    certificate = frontier.solve(limits).certificate
    n = limits.n_categories
    generator = np.random.default_rng(1)
    size = np.abs(certificate.multipliers).max()
    for _ in range(10):
        nudge = 1e-5 * size * generator.normal(size=n)
        with pytest.raises(InputError, match="proves only"):
            verify(replace(certificate, multipliers=certificate.multipliers + nudge))
        scale = 1e-3 * np.abs(certificate.directions).max()
        nudges = scale * generator.normal(size=(n, n))
        with pytest.raises(InputError, match="proves only"):
            verify(replace(certificate, directions=certificate.directions + nudges))


@pytest.mark.parametrize("seed", slow_after(1, range(12)))
def test_no_random_mechanism_of_any_kind_is_below_the_bound(seed: int) -> None:
    """2,400 mechanisms in all, with and without δ and under ε-LDP, half of them near the best."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 6))
    limits = random_limits(generator, n)
    point = frontier.solve(limits)
    bound = point.certificate.claim
    for trial in range(200):
        matrix = random_mechanism(generator, n, int(generator.integers(n, 3 * n)))
        if trial % 2:
            share = 10.0 ** -generator.uniform(0.5, 5)
            noise = generator.dirichlet(np.full(len(point.matrix), 0.3), size=n).T
            matrix = (1 - share) * point.matrix + share * noise
        matrix = shrunk_into(matrix, limits)
        assert error_by_definition(matrix, limits.prior) >= bound * (1 - 1e-9)


@pytest.mark.parametrize("n", [3, 4, 6])
@pytest.mark.parametrize("level", [0.1, 0.55, 1.0, 3.0])
def test_under_ldp_and_a_uniform_prior_subset_selection_is_the_best_there_is(
    n: int, level: float
) -> None:
    point = frontier.solve(local_limits(np.full(n, 1 / n), level))
    best = min(subset_selection_record_mse(n, level, k) for k in range(1, n))
    assert point.certificate.record_mse == pytest.approx(best, rel=1e-7)
    assert point.certificate.record_mse <= best


def test_without_a_worst_case_bound_blank_answers_are_best_for_a_uniform_prior_only() -> None:
    def ratio(prior: list[float], privacy: float) -> float:
        p = np.array(prior)
        blank = schemes.blank_answer(len(p), schemes.blank_answer_at(p, privacy))
        bound = frontier.solve(average_limits(p, privacy)).certificate.record_mse
        return float(response.record_mse(blank, p)) / bound

    assert ratio([0.25] * 4, 0.4) == pytest.approx(1.0, rel=1e-7)
    assert ratio([0.5, 0.3, 0.2], 0.25) == pytest.approx(1.2, abs=0.05)


def test_the_bound_rises_with_privacy_and_falls_with_delta() -> None:
    levels = np.linspace(0.0, 0.59, 12)
    loose = [frontier.solve(average_limits(SKEWED, v)).record_mse for v in levels]
    tight = [frontier.solve(average_limits(SKEWED, v, 0.6)).record_mse for v in levels]
    assert (np.diff(loose) > 0).all()
    assert (np.diff(tight) > -1e-7).all()
    assert (np.array(tight) >= np.array(loose) * (1 - 1e-7)).all()
    # The least error is convex in the privacy.
    assert (np.diff(loose, 2) > -1e-7).all()


def test_all_rows_at_once_give_what_growing_the_set_of_rows_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = average_limits(NORMAL_TEN[1:9] / NORMAL_TEN[1:9].sum(), 0.4, 0.55)
    grown = frontier.solve(limits)
    monkeypatch.setattr(frontier, "_first_rows", lambda count, _: np.arange(count))
    whole = frontier.solve(limits)
    assert grown.record_mse == pytest.approx(whole.record_mse, rel=1e-7)
    # The first set is so small here that it has to grow.
    monkeypatch.setattr(
        frontier, "_first_rows", lambda count, _: np.array([0, count // 2, count - 1])
    )
    assert frontier.solve(limits).gap < 1e-7


@pytest.mark.parametrize("n", [11, pytest.param(16, marks=pytest.mark.weekly)])
def test_up_to_sixteen_categories_are_solved_exactly(n: int) -> None:
    prior = np.arange(1, n + 1) / (n * (n + 1) / 2)
    limits = average_limits(prior, 0.5)
    assert frontier.solve(limits).gap < 1e-6
    assert len(extreme_rows(limits)) == 2**n - 1


RISING = np.arange(1, 19) / 171
STEEP = np.logspace(0, -2, 20) / np.logspace(0, -2, 20).sum()
PEAKED = np.append(0.37, 0.63 * np.arange(9, 25) / np.arange(9, 25).sum())
RARE = np.concatenate([[0.5, 0.3, 0.15], np.logspace(-2, -8, 7), np.full(10, 1e-9)])
RARE /= RARE.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "most_gap"),
    [
        (average_limits(RARE, 0.31), 1e-4),
        *weekly_after(
            0,
            [
                (average_limits(RISING, 0.6, 0.28), 0.02),
                (local_limits(RISING, 0.5), 0.005),
                # Sets of three, the smallest that keep 0.4, leave the likeliest at most a third.
                (average_limits(PEAKED, 0.58, 0.4), 0.01),
                (average_limits(RISING, 0.6), 0.002),
                (average_limits(RISING, 0.6, 0.7), 0.003),
                (average_limits(STEEP, 0.5), 0.002),
                (local_limits(RISING, 3.0), 0.003),
                (average_limits(RARE, 0.31, 0.7), 1e-4),
                (average_limits(np.full(80, 1 / 80), 0.5), 1e-3),
                (local_limits(np.full(41, 1 / 41), 1.0), 0.01),
            ],
        ),
    ],
)
def test_beyond_sixteen_categories_a_mechanism_is_near_the_proven_bound(
    limits: Limits, most_gap: float
) -> None:
    point = frontier.solve(limits)
    n = limits.n_categories
    assert point.matrix is not None
    assert within(point.matrix, limits, margin=1e-9)
    assert np.allclose(point.matrix.sum(axis=0), 1.0, atol=1e-12)
    if limits.prior.min() > 1e-6:
        error = error_by_definition(point.matrix, limits.prior) / n
        assert point.record_mse == pytest.approx(error, rel=1e-6)
    assert verify(point.certificate) >= point.certificate.claim
    assert point.certificate.claim >= closed_form_bound(limits) * (1 - 1e-9)
    assert 0 <= point.gap < most_gap


@pytest.mark.weekly
def test_where_drawn_answers_are_too_few_the_truth_or_no_answer_is_the_mechanism() -> None:
    prior = np.logspace(0, -3, 100) / np.logspace(0, -3, 100).sum()
    limits = average_limits(prior, 0.9 * (1 - prior.max()))
    point = frontier.solve(limits)
    assert point.matrix is not None
    assert len(point.matrix) == 101
    assert within(point.matrix, limits, margin=1e-11)
    assert 0 <= point.gap < 0.31


@pytest.mark.slow
def test_a_certificate_in_groups_does_not_prove_more_nor_in_other_groups() -> None:
    certificate = frontier.solve(average_limits(STEEP, 0.5, 0.45)).certificate
    assert certificate.groups is not None
    generator = np.random.default_rng(0)
    nudge = 1e-4 * generator.normal(size=20) * np.abs(certificate.multipliers).max()
    for wrong in (
        {"claim": certificate.claim * (1 + 1e-6)},
        {"multipliers": certificate.multipliers + nudge},
        {"groups": np.roll(certificate.groups, 3)},
    ):
        with pytest.raises(InputError, match="proves only"):
            verify(replace(certificate, **wrong))


@pytest.mark.slow
def test_where_no_mechanism_is_found_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier, "drawn_mechanism", lambda *_: None)
    point = frontier.solve(average_limits(STEEP, 0.5))
    assert point.matrix is None
    assert point.gap == np.inf
    assert verify(point.certificate) >= point.certificate.claim


def test_an_error_below_the_proven_bound_is_never_a_result() -> None:
    point = frontier.solve(average_limits(SKEWED, 0.3))
    with pytest.raises(SolverError, match="error of the program"):
        replace(point, record_mse=point.record_mse * (1.0 - 1e-8))


def test_limits_so_near_the_edge_that_a_matrix_breaks_them_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frontier, "exact_mechanism", lambda *_: np.eye(3))
    with pytest.raises(InputError, match="too near the edge"):
        frontier.solve(average_limits([0.5, 0.3, 0.2], 0.25))


@pytest.mark.parametrize("least", slow_after(1, [1e-6, 1e-9, 1e-12]))
@pytest.mark.parametrize("kind", ["average", "worst", "local"])
def test_rare_categories_do_no_harm(least: float, kind: str) -> None:
    prior = np.append([0.5, 0.3, 0.15], np.full(5, least))
    prior[3] = 1e-4
    prior /= prior.sum()
    if kind == "local":
        limits = local_limits(prior, 1.0)
    else:
        limits = average_limits(prior, 0.3, None if kind == "average" else 0.69)
    point = frontier.solve(limits)
    assert point.matrix is not None
    assert within(point.matrix, limits, margin=1e-9)
    assert verify(point.certificate) >= point.certificate.claim
    assert 0 <= point.gap < 1e-4


@pytest.mark.slow
def test_a_neighbours_rows_save_time_and_change_no_bound() -> None:
    prior, near = NORMAL_TEN[1:9] / NORMAL_TEN[1:9].sum(), None
    for level in (0.6, 0.5, 0.4):
        limits = average_limits(prior, level, 0.75)
        near, alone = frontier.solve(limits, near), frontier.solve(limits)
        assert verify(near.certificate) > 0
        assert near.gap < 1e-7
        assert near.record_mse == pytest.approx(alone.record_mse, rel=1e-7)
    # Nor do the rows of a point with other limits.
    assert frontier.solve(average_limits(prior, 0.5, 0.6), near).gap < 1e-7
