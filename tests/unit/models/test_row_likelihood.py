"""Derivatives of the likelihood by row, against differences and sums over all combinations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.estimate.survey import Survey
from deniable.models.cells import contrasts
from deniable.models.row_likelihood import (
    RowLikelihood,
    RowTerm,
    cumulative_shares,
    multinomial_shares,
)

ROWS, Q = 60, 3


def likelihood(n_z: int, answers: int, *, ordered: bool, seed: int = 3) -> RowLikelihood:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_z, ROWS, Q - 1))
    w = random.normal(size=(1, ROWS, 1))
    one = RowTerm(("",), np.ones((1, 1, 1)), np.zeros(ROWS, dtype=np.int32))
    places = np.arange(ROWS, dtype=np.int32)
    shown = random.integers(0, 5, ROWS).astype(np.int32)
    channel = random.dirichlet(np.ones(5), (n_z, answers)).transpose(0, 2, 1)
    return RowLikelihood(
        terms=(one, RowTerm(("a", "b"), x, places)),
        clean=(one, RowTerm(("c",), w, places)) if n_z > 1 else (),
        shown=shown,
        channel=np.ascontiguousarray(channel),
        contrasts=contrasts(n_z) if n_z > 1 else np.zeros((1, 0)),
        weights=random.uniform(0.5, 2, ROWS),
        squares=None,
        ordered=ordered,
        columns=np.arange(Q),
        clean_columns=np.arange(2 if n_z > 1 else 0),
    )


def somewhere(of: RowLikelihood) -> NDArray[np.float64]:
    at = of.start + 0.3 * np.random.default_rng(1).normal(size=of.n_parameters)
    if of.ordered:
        k = of.channel.shape[2] - 1
        at[:k] = np.sort(at[:k]) + 0.1 * np.arange(k)
    return at


CASES = [(1, 2, False), (1, 4, False), (1, 3, True), (3, 2, False), (2, 3, False), (3, 3, True)]


@pytest.mark.parametrize(("n_z", "answers", "ordered"), CASES)
def test_the_height_is_the_sum_over_all_combinations(n_z: int, answers: int, ordered: bool) -> None:
    of = likelihood(n_z, answers, ordered=ordered)
    at, k, height = somewhere(of), answers - 1, 0.0
    p = k + Q - 1 if ordered else k * Q
    gamma = at[p:].reshape(n_z - 1, -1 if n_z > 1 else 0)
    for row in range(ROWS):
        odds = np.zeros(n_z)
        if n_z > 1:
            odds = of.contrasts @ gamma @ [1, of.clean[1].values[0, row, 0]]
        rho, seen = np.exp(odds) / np.exp(odds).sum(), 0.0
        for z, y in product(range(n_z), range(answers)):
            x = np.array([1.0, *of.terms[1].values[z, row]])
            if ordered:
                below = [0.0, *1 / (1 + np.exp(x[1:] @ at[k:p] - at[:k])), 1.0]
                share = below[y + 1] - below[y]
            else:
                weights = np.exp([0.0, *at[:p].reshape(k, Q) @ x])
                share = weights[y] / weights.sum()
            seen += rho[z] * share * of.channel[z, of.shown[row], y]
        height += of.weights[row] * np.log(seen)
    assert of.height(at) == pytest.approx(height, rel=1e-12)


@pytest.mark.parametrize(("n_z", "answers", "ordered"), CASES)
def test_score_and_information_are_differences(
    n_z: int, answers: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = likelihood(n_z, answers, ordered=ordered)
    at, step = somewhere(of), 1e-5
    found = of.derivatives(at)
    for i, unit in enumerate(np.eye(len(at)) * step):
        rise = (of.height(at + unit) - of.height(at - unit)) / (2 * step)
        assert found.score[i] == pytest.approx(rise, rel=1e-6, abs=1e-6)
        bend = (of.derivatives(at - unit).score - of.derivatives(at + unit).score) / (2 * step)
        np.testing.assert_allclose(found.curvature[i], bend, rtol=1e-5, atol=1e-5)
    # Of rows one by one the squares of the scores.
    one_by_one = np.zeros((len(at),) * 2)
    for row in range(ROWS):
        weight = np.where(np.arange(ROWS) == row, 1.0, 0.0)
        score = replace(of, weights=weight).derivatives(at).score
        one_by_one += of.weights[row] * np.outer(score, score)
    np.testing.assert_allclose(found.information, one_by_one, atol=1e-10)
    monkeypatch.setattr("deniable.models.row_likelihood.MOST_AT_ONCE", 64)
    np.testing.assert_allclose(of.derivatives(at).curvature, found.curvature, atol=1e-10)


def test_a_variance_of_clusters_is_that_of_their_sums_within_strata() -> None:
    of, random = likelihood(1, 2, ordered=False), np.random.default_rng(2)
    at = somewhere(of)
    cluster = np.concatenate([np.arange(12), random.integers(0, 12, ROWS - 12)])
    stratum = np.repeat([0, 1, 2], 4)
    found = replace(of, survey=Survey(cluster, stratum)).squared_scores(at)
    sums = np.zeros((12, Q))
    for row in range(ROWS):
        weight = np.where(np.arange(ROWS) == row, of.weights[row], 0.0)
        sums[cluster[row]] += replace(of, weights=weight).derivatives(at).score
    expected = sum(4 * np.cov(sums[stratum == h].T, ddof=1) for h in range(3))
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_thresholds_out_of_order_have_no_height() -> None:
    of = likelihood(1, 3, ordered=True)
    at = somewhere(of)
    at[[0, 1]] = at[[1, 0]]
    assert of.height(at) == -np.inf


def test_shares_sum_to_one_far_out() -> None:
    for shares in (multinomial_shares, cumulative_shares):
        found = shares(np.array([[-800.0, 900.0]]))
        assert found.sum() == pytest.approx(1)
        assert np.isfinite(found).all()
