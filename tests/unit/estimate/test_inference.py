"""Variances, covariances, linear functions and ratios against dense formulas and brute force."""

from itertools import product

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.inference import Inference
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import Identity, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import Target, cell_variance_range, expected_error
from marked import slow_after
from unit.dense import (
    MECHANISMS,
    NAMES,
    anonymous,
    dense_channel,
    dense_inverse,
    random_table,
)

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
both_targets = pytest.mark.parametrize("target", ["table", "population"])

N_RECORDS = 3000


def tabulation(mechanism: Mechanism, *, weighted: bool, seed: int = 1) -> Tabulation:
    """A released table of all attributes, drawn from the dense channel."""
    names = mechanism.schema.names
    matrix = dense_channel(mechanism, names)
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.full(matrix.shape[1], 2.0))
    shape = Channel(mechanism, names).n_outputs
    cells = random.choice(matrix.shape[0], size=N_RECORDS, p=matrix @ truth)
    weights = random.gamma(3.0, size=N_RECORDS) if weighted else np.ones(N_RECORDS)

    def counted(values: np.ndarray) -> np.ndarray:
        return np.bincount(cells, values, minlength=matrix.shape[0]).reshape(shape)

    return Tabulation(counted(weights), counted(weights**2) if weighted else None, N_RECORDS)


def dense_covariance(mechanism: Mechanism, counted: Tabulation, target: str) -> np.ndarray:
    """Σ_r (w_r/W)² times L (diag 1[y] − M diag π M^T) L^T and its population counterpart, dense."""
    inverse = dense_inverse(mechanism, mechanism.schema.names)
    theta, theta_2 = counted.frequencies.ravel(), counted.square_frequencies.ravel()
    if target == "table":
        return inverse @ np.diag(theta_2) @ inverse.T - np.diag(inverse @ theta_2)
    # Each record's own contribution minus the estimate, squared: literally, output by output.
    estimate = inverse @ theta
    covariance = np.zeros((len(estimate), len(estimate)))
    for y, weight in enumerate(theta_2):
        centred = inverse[:, y] - estimate
        covariance += weight * np.outer(centred, centred)
    return covariance


@every_mechanism
@both_targets
@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_and_variances_are_those_of_the_dense_formulas(
    mechanism: Mechanism, target: Target, weighted: bool
) -> None:
    names = mechanism.schema.names
    counted = tabulation(mechanism, weighted=weighted)
    inference = Inference(Counts.of(mechanism, counted), names, target)
    shape = inference.values.shape
    inverse = dense_inverse(mechanism, names)
    np.testing.assert_allclose(
        inference.values.ravel(), inverse @ counted.frequencies.ravel(), atol=1e-12
    )
    covariance = dense_covariance(mechanism, counted, target)
    # The variance differs from the diagonal only where that is impossible for any true table.
    diagonal = covariance.diagonal().reshape(shape)
    table = dense_covariance(mechanism, counted, "table").diagonal().reshape(shape)
    low, high = (bound / counted.n_effective for bound in cell_variance_range(inference.channel))
    possible = (table >= low) & (table <= high) & (diagonal >= table)
    assert possible.mean() > 0.5
    np.testing.assert_allclose(inference.variance[possible], diagonal[possible], atol=1e-14)
    assert np.all(inference.variance >= low * (1 - 1e-12))


@every_mechanism
@both_targets
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_functions_and_ratios_are_those_of_the_dense_covariance(
    mechanism: Mechanism, target: Target, weighted: bool
) -> None:
    counted = tabulation(mechanism, weighted=weighted)
    inference = Inference(Counts.of(mechanism, counted), mechanism.schema.names, target)
    covariance = dense_covariance(mechanism, counted, target)
    random = np.random.default_rng(5)
    pi = inference.values.ravel()
    for _ in range(5):
        above, below = random.normal(size=pi.size), random.random(pi.size)
        linear = inference.linear(above.reshape(inference.values.shape))
        assert linear.estimate == pytest.approx(above @ pi, rel=1e-10)
        assert linear.standard_error**2 == pytest.approx(above @ covariance @ above, rel=1e-9)
        ratio = inference.ratio(
            above.reshape(inference.values.shape), below.reshape(inference.values.shape)
        )
        gradient = (above - ratio.estimate * below) / (below @ pi)
        assert ratio.estimate == pytest.approx((above @ pi) / (below @ pi), rel=1e-10)
        assert ratio.standard_error**2 == pytest.approx(gradient @ covariance @ gradient, rel=1e-9)


@every_mechanism
@both_targets
@pytest.mark.parametrize("weighted", slow_after(1, [False, True]))
def test_shares_of_subgroups_have_the_delta_method_error_of_the_dense_covariance(
    mechanism: Mechanism, target: Target, weighted: bool
) -> None:
    names = mechanism.schema.names
    counted = tabulation(mechanism, weighted=weighted)
    inference = Inference(Counts.of(mechanism, counted), names, target)
    covariance = dense_covariance(mechanism, counted, target)
    shape = inference.values.shape
    for n_by in range(1, len(names)):
        share, error, few = inference.within(n_by)
        margin = inference.margin(n_by)
        np.testing.assert_array_equal(few, margin.values < 2 * margin.standard_error)
        inner = tuple(range(len(names) - n_by))
        np.testing.assert_allclose(margin.values, inference.values.sum(axis=inner), atol=1e-12)
        positive = margin.values > 0
        np.testing.assert_allclose(share.sum(axis=inner)[positive], 1.0)
        assert np.all(np.isnan(share[..., ~positive]))
        assert np.all(np.isnan(error[..., ~positive]))
        for cell in np.ndindex(shape):
            if not positive[cell[len(inner) :]]:
                continue
            # Gradient of π(a,b)/π(b) at the estimate.
            inside = np.zeros(shape)
            inside[(..., *cell[len(inner) :])] = 1.0
            gradient = -share[cell] * inside
            gradient[cell] += 1.0
            gradient = gradient.ravel() / margin.values[cell[len(inner) :]]
            expected = gradient @ covariance @ gradient
            if expected > 1e-12:
                assert error[cell] ** 2 == pytest.approx(expected, rel=1e-7)
            one = inference.ratio(
                np.eye(inference.values.size)[np.ravel_multi_index(cell, shape)].reshape(shape),
                inside,
            )
            assert one.estimate == pytest.approx(share[cell], abs=1e-12)
            assert one.standard_error == pytest.approx(error[cell], abs=1e-9)


def test_the_variance_formulas_hold_over_every_possible_release_of_a_weighted_table() -> None:
    # Three records of two binary attributes with weights: all 4³ releases, each with its exact
    # probability. The estimator's variance for this table is an expectation over them, and the
    # estimate of the variance (before it is limited to what is possible) is unbiased.
    mechanism = Mechanism.of(random_table((2, 2), 8))
    names = mechanism.schema.names
    matrix, inverse = dense_channel(mechanism, names), dense_inverse(mechanism, names)
    truth, weights = [0, 0, 3], np.array([1.0, 2.0, 5.0])
    total = weights.sum()
    pi = np.bincount(truth, weights, minlength=4) / total
    mean, square, estimated = np.zeros(4), np.zeros((4, 4)), np.zeros((4, 4))
    for release in product(range(4), repeat=3):
        chance = np.prod([matrix[y, x] for y, x in zip(release, truth, strict=True)])
        counts = np.bincount(release, weights, minlength=4).reshape(2, 2)
        squares = np.bincount(release, weights**2, minlength=4).reshape(2, 2)
        inference = Inference(Counts.of(mechanism, Tabulation(counts, squares, 3)), names)
        values = inference.values.ravel()
        np.testing.assert_allclose(values, inverse @ counts.ravel() / total, atol=1e-13)
        mean += chance * values
        square += chance * np.outer(values, values)
        estimated += chance * dense_covariance(mechanism, inference.counts.parts[0][1], "table")
    np.testing.assert_allclose(mean, pi, atol=1e-13)
    np.testing.assert_allclose(estimated, square - np.outer(pi, pi), atol=1e-13)


def test_the_expected_error_is_the_size_of_the_errors_that_happen() -> None:
    mechanism = MECHANISMS[1]
    channel = Channel(mechanism, mechanism.schema.names)
    inference = Inference(
        Counts.of(channel.mechanism, tabulation(mechanism, weighted=False)), channel.attributes
    )
    predicted = expected_error(channel, N_RECORDS).mean_variance
    assert inference.variance.mean() == pytest.approx(predicted, rel=0.02)


def test_an_attribute_released_as_it_is_has_no_error_for_the_table() -> None:
    mechanism = MECHANISMS[3]
    channel = Channel(mechanism, ("a3",))
    counts = np.array([30, 70])
    table = Inference(Counts.of(channel.mechanism, counts), channel.attributes, "table")
    np.testing.assert_array_equal(table.values, [0.3, 0.7])
    np.testing.assert_array_equal(table.standard_error, [0, 0])
    population = Inference(
        Counts.of(channel.mechanism, counts),
        channel.attributes,
        "population",
    )
    np.testing.assert_allclose(population.variance, [0.3 * 0.7 / 100] * 2)
    assert expected_error(channel, 100, "table").worst == 0
    assert expected_error(channel, 100, "population").worst == pytest.approx(0.05)


def test_a_table_of_another_shape_and_an_unknown_target_are_errors() -> None:
    channel = Channel(MECHANISMS[0], ("a1", "a2"))
    counts = Tabulation.from_counts(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"make a table of shape \(3, 2\)"):
        Inference(Counts.of(channel.mechanism, counts), channel.attributes)
    counts = Tabulation.from_counts(np.ones((3, 2)))
    with pytest.raises(InputError, match="the target is table or population, not"):
        Inference(Counts.of(channel.mechanism, counts), channel.attributes, "both")  # type: ignore[arg-type]


def test_a_ratio_to_nothing_is_not_a_number() -> None:
    channel = Channel(MECHANISMS[0], ("a1",))
    inference = Inference(
        Counts.of(channel.mechanism, np.array([10, 10, 10])),
        channel.attributes,
    )
    assert np.isnan(inference.ratio(np.ones(3), np.zeros(3)).estimate)


def test_shares_among_columns_released_as_they_are_have_no_error_for_the_table() -> None:
    mechanism = anonymous(
        (3, 4, 2),
        Block((0, 1), Identity((3, 4))),
        Block((2,), ProductLaw.from_levels((2,), (1.0,))),
        keep=(0, 1),
    )
    counts = np.random.default_rng(1).integers(1, 1000, (3, 4))
    inference = Inference(Counts.of(mechanism, counts), ("a1", "a2"))
    share, error, _ = inference.within(1)
    np.testing.assert_allclose(share, counts / counts.sum(axis=0))
    np.testing.assert_array_equal(error, np.zeros((3, 4)))
    first = np.zeros((3, 4))
    first[0, 1] = 1.0
    column = first.max(axis=0, keepdims=True) * np.ones((3, 1))
    assert inference.ratio(first, column).standard_error == 0
