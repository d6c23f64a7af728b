"""Everything that is estimated, under published forms: exactly unbiased, with the exact variance.

Both by sums over all forms and answers.
The rows of each form are fixed: errors are those of answers, given which forms the rows have.
"""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.estimate.association import association
from deniable.estimate.covariance import Covariance, indicator_covariance
from deniable.estimate.inference import Inference
from deniable.estimate.intervals import share_variance
from deniable.estimate.ordered import Quantile
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import cell_variance_range
from deniable.mechanism.published import PublishedChannel
from deniable.schema import Attribute, Schema
from unit.mechanism.test_published import ONE, SIZES, by_form, dense
from unit.mechanism.test_published import mechanism as asking

NAMES = ("a1", "a2")
SHAPE = SIZES[:2]
CELLS = math.prod(SHAPE)
RANDOM = np.random.default_rng(4)
TRUTH = RANDOM.dirichlet(np.full(CELLS, 3.0)).reshape(SHAPE)
WHOLE = 10**9
"""So many rows, their expected counts: estimates are the truth, and errors what they should be."""

CHANNEL = PublishedChannel(ONE, NAMES)
FORWARD, INVERSE = dense(CHANNEL)


def expected_counts() -> Counts:
    counts = np.round(WHOLE * FORWARD @ TRUTH.ravel())
    return Counts.of(ONE, counts)


def exact_covariance(target: str) -> NDArray[np.float64]:
    """n times the covariance of π̂, by the law of every form."""
    total = np.zeros((CELLS, CELLS))
    for fraction, law, left in by_form(CHANNEL, TRUTH):
        mean = left @ law
        total += fraction * ((left * law) @ left.T - np.outer(mean, mean))
    if target == "table":
        pi = TRUTH.ravel()
        total -= np.diag(pi) - np.outer(pi, pi)
    return total


@pytest.mark.parametrize("target", ["table", "population"])
def test_errors_and_covariances_of_cells_are_the_exact_ones(target: str) -> None:
    inference = Inference(expected_counts(), NAMES, target)
    exact = exact_covariance(target)
    np.testing.assert_allclose(inference.values, TRUTH, atol=1e-7)
    of_cells = inference.standard_error.ravel() ** 2 * WHOLE
    np.testing.assert_allclose(of_cells, np.diag(exact), rtol=1e-6)
    weights = np.eye(CELLS).reshape(CELLS, *SHAPE)
    np.testing.assert_allclose(inference.covariance(weights) * WHOLE, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["table", "population"])
def test_errors_of_means_and_of_shares_of_subgroups_are_the_exact_ones(target: str) -> None:
    inference = Inference(expected_counts(), NAMES, target)
    exact = exact_covariance(target)
    scores = np.array([1.0, 4.0, 10.0])[None, :]
    value = inference.linear(np.broadcast_to(scores, SHAPE))
    weights = np.broadcast_to(scores, SHAPE).ravel()
    assert value.estimate == pytest.approx(float(weights @ TRUTH.ravel()), rel=1e-6)
    assert value.standard_error**2 * WHOLE == pytest.approx(weights @ exact @ weights, rel=1e-5)
    # Shares of a1 within each value of a2: ratios, by the delta method.
    within, errors, _ = inference.within(1)
    below = TRUTH.sum(axis=0)
    for i, j in product(range(SHAPE[0]), range(SHAPE[1])):
        gradient = np.zeros(SHAPE)
        gradient[:, j] = -TRUTH[i, j] / below[j]
        gradient[i, j] += 1.0
        gradient /= below[j]
        assert within[i, j] == pytest.approx(TRUTH[i, j] / below[j], rel=1e-5)
        variance = gradient.ravel() @ exact @ gradient.ravel()
        assert errors[i, j] ** 2 * WHOLE == pytest.approx(variance, rel=1e-5)


def test_weighted_rows_count_by_their_weights() -> None:
    # Rows of two weights, 1 and 3, over every output: of the form's rows the squared weights count.
    plain = np.round(WHOLE * FORWARD @ TRUTH.ravel())
    heavy = np.round(plain / 4)
    counts, squares = plain - heavy + 3 * heavy, plain - heavy + 9 * heavy
    weighted = Counts.of(ONE, Tabulation(counts, squares, int(plain.sum())))
    inference = Inference(weighted, NAMES, "population")
    np.testing.assert_allclose(inference.values, TRUTH, atol=1e-7)
    worth = counts.sum() ** 2 / squares.sum()
    exact = np.diag(exact_covariance("population"))
    np.testing.assert_allclose(inference.variance.ravel() * worth, exact, rtol=1e-6)


def test_a_covariance_of_three_rows_has_the_expectation_that_its_formula_gives() -> None:
    # One row of each form, all outcomes. The plug-in misses Cov(m_s, m_t), which the correction
    # estimates from K_f π̂, the forms' means: what is left is what noise adds to their products,
    #     (Cov/n − Σ (n_f/n²) Cov(K_f π̂·s, K_f π̂·t))/(1 − 1/n).
    n, s, t = 3, np.array([0.0, 2.0]), np.array([-1.0, 0.5, 3.0])
    mechanism = asking((0, 1), (0,), (0, 1, 2))
    channel = PublishedChannel(mechanism, NAMES, (1 / n,) * 3)
    ends = np.cumsum([0, *map(math.prod, channel.shapes)])
    laws, lefts = zip(*((law, left) for _, law, left in by_form(channel, TRUTH)), strict=True)
    covariance = np.zeros((CELLS, CELLS))
    for law, left in zip(laws, lefts, strict=True):
        covariance += ((left * law) @ left.T - np.outer(left @ law, left @ law)) / n**2
    along = np.outer(s, np.ones(3)).ravel(), np.outer(np.ones(2), t).ravel()
    left_over = along[0] @ covariance @ along[1] / n
    for mean in channel.means:
        seen = [mean.transposed().apply(each.reshape(SHAPE)).ravel() for each in along]
        left_over -= seen[0] @ covariance @ seen[1] / n**2
    expected = 0.0
    for outcome in product(*(range(len(law)) for law in laws)):
        counts = np.zeros(ends[-1])
        counts[ends[:-1] + outcome] = 1
        (found,) = Covariance(NAMES, scores=(s, t), target="population").answer(
            Counts.of(mechanism, counts)
        )
        chance = math.prod(law[y] for law, y in zip(laws, outcome, strict=True))
        expected += chance * found.estimate
    exact = s @ indicator_covariance(TRUTH) @ t + left_over / (1 - 1 / n)
    assert expected == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("target", ["table", "population"])
def test_the_variance_of_a_cell_follows_its_share_within_forms(target: str) -> None:
    # n V(c) at the expected counts: second moments move along their regression on the estimate,
    # within forms, and so do the means of forms, by that at the uniform truth; what these differ by
    # is no error.
    inference = Inference(expected_counts(), NAMES, target)
    found, pi = share_variance(inference), TRUTH.ravel()
    uniform = np.full(CELLS, 1 / CELLS)
    spread = (INVERSE * (FORWARD @ uniform)) @ INVERSE.T - np.outer(uniform, uniform)
    least = float(cell_variance_range(CHANNEL)[0].max())
    ends = np.cumsum([0, *map(math.prod, CHANNEL.shapes)])
    compared = 0
    for share, stated in ((0.0, found.at_zero), (1.0, found.at_one)):
        together = variance = between = np.zeros(CELLS)
        for fraction, (start, end) in zip(CHANNEL.rows, pairwise(ends), strict=True):
            law, left = FORWARD[start:end] @ pi / fraction, INVERSE[:, start:end]
            mean, square = left @ law, left**2 @ law
            off = left - mean[:, None]
            together = together + fraction * (off * (left**2 - square[:, None])) @ law
            variance = variance + fraction * off**2 @ law
            moved = left @ FORWARD[start:end] / fraction - np.eye(CELLS)
            followed = np.diag(moved @ spread) / np.diag(spread)
            between = between + fraction * (mean - pi + followed * (share - pi)) ** 2
        expected = INVERSE**2 @ (FORWARD @ pi) + together / variance * (share - pi) - between
        expected -= share if target == "table" else share**2
        possible = (expected > least) & (found.at_zero.ravel() > least)
        compared += int(possible.sum())
        np.testing.assert_allclose(stated.ravel()[possible], expected[possible], rtol=1e-5)
    assert compared > CELLS


def test_cramers_v_has_the_noise_of_answers_within_forms() -> None:
    frequencies = FORWARD @ TRUTH.ravel()
    n = 5000
    found = association(frequencies, CHANNEL.inverse, n)
    covariance = exact_covariance("population") / n
    first, second = TRUTH.sum(axis=1), TRUTH.sum(axis=0)
    scale = np.diag(np.outer(first, second).ravel() ** -0.5)
    margins = np.kron(
        np.eye(SHAPE[0]) - np.outer(first, np.ones(SHAPE[0])),
        np.eye(SHAPE[1]) - np.outer(second, np.ones(SHAPE[1])),
    )
    noise = scale @ margins @ covariance @ margins.T @ scale
    square = float((TRUTH**2 / np.outer(first, second)).sum() - 1)
    assert found.square == pytest.approx(square - np.trace(noise), rel=1e-9)
    assert found.floor == pytest.approx(2 * (noise**2).sum(), rel=1e-9)
    # Of all rows together the spread between forms would have come on top.
    left = INVERSE
    whole = (left * frequencies) @ left.T - np.outer(TRUTH.ravel(), TRUTH.ravel())
    apart = scale @ margins @ (whole / n) @ margins.T @ scale
    assert np.trace(apart) > 1.01 * np.trace(noise)


def test_a_quantile_within_a_subgroup_is_as_sure_as_its_cumulative_shares() -> None:
    attributes = (
        Attribute("a1", ("x", "y")),
        Attribute("a2", ("1", "2", "3"), ordered=True),
        Attribute("a3", ("x", "y")),
    )
    ordered = Mechanism(Schema(attributes), ONE.blocks)
    n = 40_000
    names = ("a2", "a1")
    forward, _ = dense(PublishedChannel(ordered, names))
    counts = np.round(n * forward @ TRUTH.T.ravel())
    found = Quantile(("a2",), by=("a1",)).answer(Counts.of(ordered, counts))
    exact = exact_covariance("table") / counts.sum()
    for i, summary in enumerate(found):
        size, below = TRUTH[i].sum(), np.cumsum(TRUTH[i]) / TRUTH[i].sum()
        place = int(np.argmax(below >= 0.5))
        assert summary.estimate == str(place + 1)
        reached = [0.0, 1.0]  # chances that the median is at or below the category before, and it
        for at, category in enumerate((place - 1, place)):
            if not 0 <= category < 2:
                continue
            gradient = np.zeros(SHAPE)
            gradient[i] = ((np.arange(3) <= category) - below[category]) / size
            error = math.sqrt(gradient.ravel() @ exact @ gradient.ravel())
            reached[at] = norm.cdf((below[category] - 0.5) / error)
        assert summary.confidence == pytest.approx(reached[1] - reached[0], abs=2e-3)
