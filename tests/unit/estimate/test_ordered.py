"""Means and quantiles against the dense table."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import norm

from deniable.errors import InputError
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.schema import Attribute, Schema
from unit.dense import dense_channel, dense_inverse

HOURS = Attribute("hours", bins=(0, 10, 20, 40, 80))
INCOME = Attribute("income", bins=(0, 1, 3, 7), missing="none")
DEGREE = Attribute("degree", ("low", "middle", "high"), ordered=True)
SEX = Attribute("sex", ("f", "m"))

both_targets = pytest.mark.parametrize("target", ["table", "population"])


def mechanism_of(*attributes: Attribute, epsilon: float = 3.0) -> Mechanism:
    schema = Schema(attributes)
    k = len(attributes)
    law = ProductLaw.from_levels(schema.n_categories, (epsilon,) * k)
    return Mechanism.of(law, schema)


def released(mechanism: Mechanism, truth: np.ndarray, n: int, seed: int = 1) -> Counts:
    matrix = dense_channel(mechanism, mechanism.schema.names)
    counts = np.random.default_rng(seed).multinomial(n, matrix @ truth.ravel())
    return Counts.of(mechanism, counts.reshape(mechanism.schema.n_categories))


def covariance(mechanism: Mechanism, counted: Counts, target: str) -> np.ndarray:
    inverse = dense_inverse(mechanism, mechanism.schema.names)
    theta = counted.frequencies.ravel()
    pi = inverse @ theta
    around = inverse @ np.diag(theta) @ inverse.T
    known = np.diag(pi) if target == "table" else np.outer(pi, pi)
    return (around - known) / counted.total


@both_targets
def test_a_mean_is_the_scores_times_the_estimated_table(target: Target) -> None:
    mechanism = mechanism_of(HOURS)
    counted = released(mechanism, np.array([0.1, 0.2, 0.4, 0.3]), 5000)
    (mean,) = Mean(("hours",), scores="middle", target=target).answer(counted)
    assert (mean.scores, mean.n_records, mean.target) == ("middle", 5000, target)
    middles = np.array([5.0, 15.0, 30.0, 60.0])
    pi = Shares(("hours",)).answer(counted)[0].values
    assert mean.estimate == pytest.approx(middles @ pi)
    expected = middles @ covariance(mechanism, counted, target) @ middles
    assert mean.standard_error == pytest.approx(expected**0.5)
    assert mean.high == pytest.approx(mean.estimate + 1.959964 * mean.standard_error)
    assert mean.low == pytest.approx(mean.estimate - 1.959964 * mean.standard_error)
    assert not mean.uncertain


@both_targets
def test_a_subgroups_mean_is_a_ratio_with_the_delta_method_error(target: Target) -> None:
    mechanism = mechanism_of(HOURS, SEX)
    truth = np.array([[0.1, 0.05], [0.1, 0.1], [0.2, 0.2], [0.05, 0.2]])
    counted = released(mechanism, truth, 5000)
    scores = [1.0, 2.0, 3.0, 5.0]
    means = Mean(("hours",), by=("sex",), scores=scores, target=target).answer(counted)
    pi = Shares(("hours", "sex")).answer(counted)[0].values
    for group, mean in enumerate(means):
        assert mean.group == (("sex", "fm"[group]),)
        expected = scores @ pi[:, group] / pi[:, group].sum()
        assert mean.estimate == pytest.approx(expected)
        gradient = np.zeros((4, 2))
        gradient[:, group] = (np.array(scores) - expected) / pi[:, group].sum()
        flat = gradient.ravel()
        variance = flat @ covariance(mechanism, counted, target) @ flat
        assert mean.standard_error == pytest.approx(variance**0.5)


@both_targets
def test_without_scores_a_mean_of_bins_is_between_those_of_the_edges(target: Target) -> None:
    mechanism = mechanism_of(HOURS)
    counts = released(mechanism, np.array([0.1, 0.2, 0.4, 0.3]), 5000)
    (mean,) = Mean(("hours",), target=target, level=0.9).answer(counts)
    (lower,) = Mean(("hours",), scores=(0, 10, 20, 40), target=target, level=0.9).answer(counts)
    (upper,) = Mean(("hours",), scores=(10, 20, 40, 80), target=target, level=0.9).answer(counts)
    assert mean.estimate is mean.standard_error is None
    assert mean.scores == "edges"
    assert (mean.least, mean.most) == (
        (lower.estimate, lower.standard_error),
        (upper.estimate, upper.standard_error),
    )
    assert (mean.low, mean.high) == (lower.low, upper.high)
    plain = mean.to_plain()
    assert plain["least"] == {"estimate": lower.estimate, "standard_error": lower.standard_error}
    assert (plain["n"], plain["target"], plain["estimate"]) == (5000, target, None)


def test_the_interval_from_edge_to_edge_stays_within_the_bins() -> None:
    mechanism = mechanism_of(HOURS, epsilon=0.3)
    (mean,) = Mean(("hours",)).answer(Counts.of(mechanism, np.array([3, 4, 6, 3])))
    assert (mean.low, mean.high) == (0, 80)
    assert mean.uncertain


def test_a_schemas_scores_are_averaged_and_said_to_be_the_schemas() -> None:
    scored = Attribute("hours", bins=(0, 10, 20, np.inf), scores=(4, 16, 31), missing="?")
    mechanism = mechanism_of(scored)
    counts = exact(mechanism, np.array([0.2, 0.4, 0.2, 0.2]), 10**6)
    (mean,) = Mean(("hours",)).answer(counts)
    assert mean.estimate == pytest.approx((0.2 * 4 + 0.4 * 16 + 0.2 * 31) / 0.8)
    assert mean.scores == "schema"
    (given,) = Mean(("hours",), scores=(0, 0, 0, 1)).answer(counts)
    assert (given.scores, given.estimate) == ("given", pytest.approx(0.2))


@both_targets
def test_margins_of_scores_move_the_ends_of_a_mean_outwards(target: Target) -> None:
    scored = Attribute("hours", bins=(0, 10, 20, np.inf), scores=(4, 16, 31), missing="?")
    apart = replace(scored, score_margins=(2.0, 1.0, 5.0))
    mechanism = mechanism_of(apart)
    counts = released(mechanism, np.array([0.2, 0.4, 0.2, 0.2]), 5000)
    (mean,) = Mean(("hours",), target=target).answer(counts)
    ends = [
        Mean(("hours",), scores=scores, target=target).answer(counts)[0]
        for scores in ((4, 16, 31), (2, 15, 26), (6, 17, 36))
    ]
    assert (mean.estimate, mean.standard_error) == (ends[0].estimate, ends[0].standard_error)
    assert (mean.low, mean.high) == (ends[1].low, ends[2].high)
    assert mean.least is not None
    assert mean.least.estimate == ends[1].estimate
    assert "by the scores of the schema and their margins" in mean.caption()
    assert mean.to_plain()["most"]["estimate"] == ends[2].estimate
    assert "margins" not in ends[0].caption()


def test_a_mean_of_an_interval_without_an_end_needs_a_score() -> None:
    mechanism = mechanism_of(Attribute("hours", bins=(-np.inf, 10, 20, np.inf)))
    counts = Counts.of(mechanism, np.array([30, 40, 50]))
    with pytest.raises(InputError, match="an open interval, whose mean has no bounds"):
        Mean(("hours",)).answer(counts)
    with pytest.raises(InputError, match="has no middle"):
        Mean(("hours",), scores="middle").answer(counts)
    with pytest.raises(InputError, match="or 'middle' for the middles of bins, not 'mean'"):
        Mean(("hours",), scores="mean").answer(counts)  # type: ignore[arg-type]
    assert Mean(("hours",), scores=(5, 15, 30)).answer(counts)[0].estimate is not None
    with pytest.raises(InputError, match="in which values cannot be interpolated"):
        Quantile(("hours",), interpolate=True).answer(counts)
    (found,) = Quantile(("hours",), q=0.9).answer(counts)
    assert found.estimate == "[20,inf)"
    assert found.to_plain()["bounds"] == [20, None]


def test_missing_values_are_left_out_of_means_of_bins() -> None:
    mechanism = mechanism_of(INCOME)
    counted = released(mechanism, np.array([0.2, 0.3, 0.1, 0.4]), 5000)
    pi = Shares(("income",)).answer(counted)[0].values
    (mean,) = Mean(("income",), scores="middle").answer(counted)
    expected = np.array([0.5, 2.0, 5.0]) @ pi[:3] / pi[:3].sum()
    assert mean.estimate == pytest.approx(expected)
    (scored,) = Mean(("income",), scores=[0.5, 2.0, 5.0, 0.0]).answer(counted)
    assert scored.estimate == pytest.approx(expected * pi[:3].sum())


def exact(mechanism: Mechanism, truth: np.ndarray, n: int) -> Counts:
    """Released frequencies exactly as expected (counts need not be whole for this)."""
    matrix = dense_channel(mechanism, mechanism.schema.names)
    counts = n * (matrix @ truth.ravel()).reshape(mechanism.schema.n_categories)
    return Counts.of(mechanism, Tabulation(counts, None, n))


def test_quantiles_of_bins_are_linear_within_a_bin() -> None:
    mechanism = mechanism_of(HOURS)
    counted = exact(mechanism, np.array([0.1, 0.2, 0.4, 0.3]), 10**6)
    for probability, value in [(0.05, 5), (0.1, 10), (0.2, 15), (0.5, 30), (0.85, 60)]:
        (found,) = Quantile(("hours",), q=probability, interpolate=True).answer(counted)
        assert found.scores == "interpolated"
        assert found.estimate == pytest.approx(value)
        assert found.standard_error == pytest.approx((found.high - found.low) / (2 * 1.959964))
        assert found.low < found.estimate < found.high
        assert not found.uncertain


def test_several_quantiles_are_those_of_each() -> None:
    counted = exact(mechanism_of(HOURS), np.array([0.1, 0.2, 0.4, 0.3]), 2000)
    each = [Quantile("hours", q=q).answer(counted)[0] for q in (0.25, 0.9)]
    assert Quantile("hours", q=[0.25, 0.9]).answer(counted) == each
    assert [one.probability for one in each] == [0.25, 0.9]


def test_a_quantile_of_bins_is_the_bin_that_contains_it_with_its_probability() -> None:
    mechanism = mechanism_of(HOURS, epsilon=1.0)
    counted = exact(mechanism, np.array([0.1, 0.2, 0.4, 0.3]), 2000)
    (found,) = Quantile(("hours",), q=0.35).answer(counted)
    assert (found.estimate, found.low, found.high) == ("[20,40)", "[10,20)", "[20,40)")
    assert found.bounds == (10, 40)
    assert found.scores is found.standard_error is None
    # The cumulative share is 0.3 at 20 and 0.7 at 40, each with its normal error.
    below = np.tril(np.ones((4, 4)))
    error = np.sqrt(np.diag(below @ covariance(mechanism, counted, "table") @ below.T)[1:3])
    expected = norm.cdf((0.7 - 0.35) / error[1]) - norm.cdf((0.3 - 0.35) / error[0])
    assert found.confidence == pytest.approx(expected)
    assert found.to_plain()["confidence"] == found.confidence
    assert found.to_plain()["bounds"] == [10, 40]


def test_quantiles_of_categories_are_the_first_that_reaches_the_probability() -> None:
    mechanism = mechanism_of(DEGREE, SEX)
    truth = np.array([[0.3, 0.1], [0.15, 0.1], [0.05, 0.3]])
    counted = exact(mechanism, truth, 10**6)
    women, men = Quantile(("degree",), by=("sex",)).answer(counted)
    assert (women.estimate, women.low, women.high) == ("low", "low", "low")
    assert (men.estimate, men.low, men.high) == ("high", "high", "high")
    degree = Counts.of(mechanism, counted.parts[0][1].margin([0]))
    (everybody,) = Quantile(("degree",)).answer(degree)
    assert everybody.estimate == "middle"
    assert everybody.bounds is None
    with pytest.raises(InputError, match="'degree' has no bins to interpolate in"):
        Quantile(("degree",), interpolate=True).answer(degree)


def test_a_quantiles_interval_holds_what_is_not_significantly_different() -> None:
    mechanism = mechanism_of(HOURS, epsilon=1.0)
    counted = exact(mechanism, np.array([0.1, 0.2, 0.4, 0.3]), 2000)
    (found,) = Quantile(("hours",), interpolate=True, level=0.9).answer(counted)
    inverse = dense_inverse(mechanism, ["hours"])
    edges = [0, 10, 20, 40, 80]
    below = np.tril(np.ones((4, 4)))
    cumulative = below @ inverse @ counted.frequencies
    error = np.sqrt(
        np.maximum(np.diag(below @ covariance(mechanism, counted, "table") @ below.T), 0)
    )
    upper = np.concatenate([[0], cumulative + 1.6448536 * error])
    lower = np.concatenate([[0], cumulative - 1.6448536 * error])
    assert np.interp(found.low, edges, upper) == pytest.approx(0.5, abs=1e-6)
    assert np.interp(found.high, edges, lower) == pytest.approx(0.5, abs=1e-6)


def test_missing_values_are_left_out_of_quantiles() -> None:
    mechanism = mechanism_of(INCOME)
    counted = exact(mechanism, np.array([0.2, 0.3, 0.1, 0.4]), 10**6)
    counts = counted
    (found,) = Quantile(("income",), interpolate=True).answer(counts)
    # Of those with an income 1/3 are below 1 and 5/6 below 3: a third of the way to 3.
    assert found.estimate == pytest.approx(1 + 2 * (1 / 2 - 1 / 3) / (1 / 2))


def test_cumulative_frequencies_that_fall_are_pooled() -> None:
    # Inversion of these counts gives a negative middle bin; the curve is the isotonic regression.
    mechanism = mechanism_of(HOURS, epsilon=1.0)
    counted = Counts.of(mechanism, np.array([500, 100, 420, 480]))
    pi = Shares(("hours",)).answer(counted)[0].values
    assert pi[1] < 0
    curve = np.clip(isotonic_regression(np.cumsum(pi)).x, 0, 1)
    edges = np.array([0, 10, 20, 40, 80])
    for probability in (0.1, 0.4, 0.7):
        (found,) = Quantile(("hours",), q=probability, interpolate=True).answer(counted)
        assert np.interp(found.estimate, edges, [0, *curve]) == pytest.approx(probability)
        assert found.low <= found.estimate <= found.high


def test_what_noise_has_swamped_is_marked_and_strict_json() -> None:
    mechanism = mechanism_of(HOURS, SEX, epsilon=0.3)
    counted = Counts.of(mechanism, np.array([[3, 2], [4, 5], [6, 2], [3, 8]]))
    summaries = Mean(("hours",), by=("sex",)).answer(counted)
    summaries += Quantile(("hours",), by=("sex",)).answer(counted)
    for summary in summaries:
        assert summary.uncertain
        json.dumps(summary.to_plain(), allow_nan=False)


def test_a_subgroup_without_people_has_no_mean_and_no_quantile() -> None:
    mechanism = mechanism_of(HOURS, SEX)
    counted = Counts.of(mechanism, np.array([[300, 0], [200, 0], [100, 0], [50, 0]]))
    _, nobody = Mean(("hours",), by=("sex",)).answer(counted)
    assert nobody.estimate is nobody.standard_error is nobody.low is None
    assert nobody.uncertain
    _, nobody = Quantile(("hours",), by=("sex",)).answer(counted)
    assert nobody.estimate is nobody.low is nobody.high is None
    assert nobody.uncertain


def test_attributes_without_scores_or_order_and_bad_requests_are_refused() -> None:
    mechanism = mechanism_of(HOURS, DEGREE, SEX)
    sex = Counts.of(mechanism, np.array([30, 40]))
    degree = Counts.of(mechanism, np.array([30, 40, 50]))
    with pytest.raises(InputError, match="'degree' has no scores, so it has no mean"):
        Mean(("degree",)).answer(degree)
    with pytest.raises(InputError, match="'sex' needs 2 scores"):
        Mean(("sex",), scores=[1.0, 2.0, 3.0]).answer(sex)
    with pytest.raises(InputError, match="finite"):
        Mean(("sex",), scores=[1.0, float("nan")]).answer(sex)
    with pytest.raises(InputError, match="'sex' has no order"):
        Quantile(("sex",)).answer(sex)
    for probability in (0.0, 1.0, 50.0):
        with pytest.raises(InputError, match="between 0 and 1"):
            Quantile(("degree",), q=probability).answer(degree)
    with pytest.raises(InputError, match="q is"):
        Quantile(("degree",), q="0.5")  # type: ignore[arg-type]


def test_people_without_a_value_are_counted_and_named_where_they_are_left_out() -> None:
    # Failed before: nothing told that the mean was of three quarters of the people.
    mechanism = mechanism_of(INCOME)
    truth = np.array([0.3, 0.25, 0.2, 0.25])
    counted = released(mechanism, truth, 200_000)
    for question in (Mean(("income",), scores="middle"), Quantile(("income",))):
        (answer,) = question.answer(counted)
        assert answer.left_out == pytest.approx(0.25, abs=0.01)
        assert answer.to_plain()["left_out"] == answer.left_out
        assert "people without a value are left out" in answer.caption()
    (mean,) = Mean(("hours",), scores="middle").answer(released(mechanism_of(HOURS), truth, 1000))
    assert mean.left_out is None
    assert "left out" not in mean.caption()
