"""A response matrix seen through the parts of a merged attribute, against sums written out."""

import numpy as np
import pytest

from deniable.laws import MatrixChannel
from deniable.mechanism.response_axes import ResponseAxes
from deniable.schema import Attribute

PARTS = (
    Attribute("p", ("p0", "p1")),
    Attribute("q", ("q0", "q1", "q2")),
    Attribute("r", ("r0", "r1")),
)
WHOLE = Attribute.merged(PARTS)


def k_ary(n: int, attenuation: float) -> np.ndarray:
    return attenuation * np.eye(n) + (1 - attenuation) / n


def axes_of(matrix: np.ndarray, *parts: int) -> ResponseAxes:
    law = MatrixChannel.from_probabilities(matrix)
    return ResponseAxes(law, WHOLE, tuple(range(max(1, len(parts)))), parts)


@pytest.mark.parametrize("parts", [(0,), (1,), (2,), (2, 0), (1, 2), (0, 1, 2), (2, 1, 0)])
def test_sums_over_the_other_parts_are_those_of_the_table(parts: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).uniform(size=(2, 3, 2))
    response = axes_of(k_ary(12, 0.5), *parts)
    others = tuple(i for i in range(3) if i not in parts)
    expected = np.transpose(table.sum(axis=others), np.argsort(np.argsort(parts)))
    assert response.rows == expected.shape
    assert response.sums(parts) @ table.ravel() == pytest.approx(expected.ravel())


def test_an_axis_for_the_attribute_itself_sums_nothing() -> None:
    response = axes_of(k_ary(12, 0.5))
    assert response.rows == (12,)
    assert response.complete
    np.testing.assert_array_equal(response.columns, np.eye(12))


def test_released_values_stand_on_the_first_axis_and_all_parts_tell_the_category() -> None:
    more = np.vstack([k_ary(12, 0.5) * 0.9, np.full((1, 12), 0.1)])
    some, every = axes_of(more, 0, 1), axes_of(more, 2, 1, 0)
    assert (some.outputs, every.outputs) == ((13, 1), (13, 1, 1))
    assert (some.complete, every.complete) == (False, True)
    np.testing.assert_array_equal(some.columns, np.eye(12))
    # In the order of the axes: r, q, p.
    order = np.arange(12).reshape(2, 3, 2).transpose(2, 1, 0).ravel()
    np.testing.assert_array_equal(every.columns @ np.arange(12), order)


def test_under_a_k_ary_response_every_set_of_parts_is_left_with_lambda() -> None:
    values = axes_of(k_ary(12, 0.3), 0, 2).attenuation()
    np.testing.assert_allclose(values, [[1.0, 0.3], [0.3, 0.3]], rtol=1e-9)


def test_under_independent_responses_every_set_of_parts_is_left_with_its_own_product() -> None:
    matrix = np.kron(k_ary(2, 0.9), np.kron(k_ary(3, 0.6), k_ary(2, 0.5)))
    values = axes_of(matrix, 1, 0).attenuation()
    np.testing.assert_allclose(values, [[1.0, 0.9], [0.6, 0.54]], rtol=1e-9)
