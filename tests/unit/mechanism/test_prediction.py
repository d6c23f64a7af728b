"""What is said of errors before there are data, against every true table by dense formulas."""

from collections.abc import Callable

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.covariance import indicator_covariance
from deniable.laws import Identity, ProductLaw
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import (
    Target,
    cell_variance_range,
    expected_error,
    expected_variance,
    predict_covariance,
)
from unit.dense import MECHANISMS, NAMES, anonymous, dense_channel, dense_inverse
from unit.mechanism.pairs import S, T, every_pair, joint, matrices, product, released, truth

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
both_targets = pytest.mark.parametrize("target", ["table", "population"])


@every_mechanism
def test_the_range_of_a_cells_variance_is_that_over_all_true_records(
    mechanism: Mechanism,
) -> None:
    names = mechanism.schema.names
    for chosen in (names, names[:1], names[1:], (names[-1], names[0])):
        channel = Channel(mechanism, chosen)
        matrix, inverse = dense_channel(mechanism, chosen), dense_inverse(mechanism, chosen)
        variances = inverse**2 @ matrix - np.eye(matrix.shape[1])
        low, high = (
            np.broadcast_to(bound, channel.n_categories).ravel()
            for bound in cell_variance_range(channel)
        )
        np.testing.assert_allclose(low, variances.min(axis=1), atol=1e-11)
        np.testing.assert_allclose(high, variances.max(axis=1), atol=1e-11)


@every_mechanism
@both_targets
def test_the_expected_error_is_the_worst_and_the_mean_over_true_tables(
    mechanism: Mechanism, target: Target
) -> None:
    names = mechanism.schema.names
    for chosen in (names, names[:1], names[-2:]):
        matrix, inverse = dense_channel(mechanism, chosen), dense_inverse(mechanism, chosen)
        second, cells, n = inverse**2 @ matrix, matrix.shape[1], 100

        def variances(pi: np.ndarray, second: np.ndarray = second) -> np.ndarray:
            return (second @ pi - (pi if target == "table" else pi**2)) / 100

        # The extremes lie on mixtures of two true values: linear, or concave in one share.
        at, other = np.eye(cells)[:, None], np.eye(cells)[None]
        worst = max(
            variances(np.moveaxis((1 - share) * at + share * other, 2, 0).reshape(cells, -1)).max()
            for share in ([0.0] if target == "table" else np.linspace(0, 1, 101))
        )
        found = expected_error(Channel(mechanism, chosen), n, target)
        assert found.worst**2 == pytest.approx(worst, rel=2e-3)
        assert found.worst**2 >= worst * (1 - 1e-12)
        uniform = variances(np.full(cells, 1 / cells))
        assert found.mean_variance == pytest.approx(uniform.mean(), rel=1e-9)
        assert found.uniform**2 == pytest.approx(uniform.mean(), rel=1e-9)


def test_the_expected_error_of_one_attribute_is_the_closed_form() -> None:
    n_categories, n = 5, 1000
    mechanism = Mechanism.of(ProductLaw.from_levels((5,), (1.2,)))
    channel = Channel(mechanism, ("a1",))
    phi = 1 / channel.condition
    each = (1 - 1 / n_categories) / n_categories / n
    table = expected_error(channel, n, "table").mean_variance
    assert table == pytest.approx(each * (1 / phi**2 - 1), rel=1e-12)
    population = expected_error(channel, n, "population").mean_variance
    assert population == pytest.approx(each / phi**2, rel=1e-12)


def test_there_is_no_error_without_records() -> None:
    with pytest.raises(InputError, match="at least 1"):
        expected_error(Channel(MECHANISMS[0], ("a1",)), 0)


@every_pair
def test_the_predicted_covariance_is_that_of_the_dense_channel(
    make: Callable[[], Mechanism],
) -> None:
    mechanism, table = make(), truth()
    prediction = predict_covariance(mechanism, "a1", "a2")
    before = indicator_covariance(table)
    after = indicator_covariance(released(mechanism, table))
    size = np.linalg.norm(after) / np.linalg.norm(before)
    if prediction.spurious == 0:
        assert prediction.least_share - 1e-12 <= size <= prediction.most_share + 1e-12
    if prediction.share is None:
        assert make is matrices
        return
    excess = [table.sum(axis=1) - 1 / 3, table.sum(axis=0) - 1 / 4]
    expected = prediction.share * before + prediction.spurious * np.outer(*excess)
    np.testing.assert_allclose(after, expected, atol=1e-14)
    scored = prediction.share * (S @ before @ T) + prediction.spurious * np.prod(
        [S @ excess[0], T @ excess[1]]
    )
    assert scored == pytest.approx(S @ after @ T, rel=1e-12)


def test_under_a_product_law_the_share_is_the_product_of_both_lambda_and_nothing_is_added() -> None:
    mechanism = product()
    prediction = predict_covariance(mechanism, "a2", "a1")
    law = mechanism.blocks[0].law
    assert isinstance(law, ProductLaw)
    assert prediction.share == pytest.approx(np.prod(law.attenuations()), rel=1e-15)
    assert prediction.spurious == 0
    assert prediction.least_share == prediction.most_share == prediction.share


def test_a_joint_law_makes_independent_attributes_correlated() -> None:
    mechanism = joint()
    table = np.outer([0.7, 0.2, 0.1], [0.5, 0.3, 0.1, 0.1])
    prediction = predict_covariance(mechanism, "a1", "a2")
    after = S @ indicator_covariance(released(mechanism, table)) @ T
    assert prediction.spurious > 0.1
    excess = (S @ (table.sum(axis=1) - 1 / 3), T @ (table.sum(axis=0) - 1 / 4))
    assert prediction.spurious * excess[0] * excess[1] == pytest.approx(after, rel=1e-12)
    assert abs(after) > 0.05


def test_attributes_both_released_as_they_are_keep_everything() -> None:
    mechanism = anonymous(
        (3, 2, 2),
        Block((0,), ProductLaw.from_levels((3,), (1.0,))),
        Block((1, 2), Identity((2, 2))),
        keep=(1, 2),
    )
    prediction = predict_covariance(mechanism, "a2", "a3")
    assert (prediction.share, prediction.spurious) == (1.0, 0.0)


def test_a_matrix_of_the_lambda_class_has_a_share_and_any_other_a_range() -> None:
    prediction = predict_covariance(matrices(), "a1", "a2")
    assert prediction.share is None
    first = 0.6 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, 0)
    contrasts = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    values = np.linalg.svd(first @ contrasts.T, compute_uv=False) * 0.7
    assert prediction.least_share == pytest.approx(values.min(), rel=1e-12)
    assert prediction.most_share == pytest.approx(values.max(), rel=1e-12)
    alike = anonymous(
        (3, 4),
        Block((0,), bistochastic_channel(0.5 * np.eye(3) + 0.5 / 3)),
        Block((1,), bistochastic_channel(0.7 * np.eye(4) + 0.3 / 4)),
    )
    assert predict_covariance(alike, "a1", "a2").share == pytest.approx(0.35, rel=1e-12)


@every_mechanism
def test_what_one_row_tells_of_shares_is_what_the_channels_of_single_attributes_say(
    mechanism: Mechanism,
) -> None:
    names = [mechanism.schema.names[i] for i in mechanism.schema.protected]
    shares = expected_variance(mechanism).shares
    try:
        of_each = [expected_error(Channel(mechanism, (n,)), 1, "population") for n in names]
    except InputError:  # nothing is left of one of them
        assert shares is None
        return
    assert shares == pytest.approx(np.mean([each.mean_variance for each in of_each]), rel=1e-9)
