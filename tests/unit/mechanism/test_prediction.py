"""What is said of errors before there are data, against every true table by dense formulas."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import Target, cell_variance_range, expected_error
from unit.dense import MECHANISMS, NAMES, anonymous, dense_channel, dense_inverse

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
        worst = max(
            variances((1 - share) * at + share * other).max()
            for at in np.eye(cells)
            for other in np.eye(cells)
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
    mechanism = anonymous((n_categories,), Block((0,), ProductLaw.from_levels((5,), (1.2,))))
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
