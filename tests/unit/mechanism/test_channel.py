"""The channel and its inverse against dense matrices over the joint table."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import MatrixChannel, PatternTable, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.table_map import TableMap
from unit.dense import MECHANISMS, NAMES, anonymous, dense_channel, dense_inverse

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)


def orders(mechanism: Mechanism) -> list[tuple[str, ...]]:
    """All attributes, backwards; the first alone; two that are not neighbours."""
    names = mechanism.schema.names
    return [names, names[::-1], names[:1], (names[-1], names[0])]


def as_matrix(table_map: TableMap, rows: tuple[int, ...], columns: tuple[int, ...]) -> np.ndarray:
    """The map as a dense matrix, column by column."""
    units = np.eye(int(np.prod(columns))).reshape(-1, *columns)
    images = [table_map.apply(unit) for unit in units]
    assert all(image.shape == rows for image in images)
    return np.stack([image.ravel() for image in images], axis=1)


@every_mechanism
def test_the_forward_channel_is_the_dense_channel(mechanism: Mechanism) -> None:
    for names in orders(mechanism):
        channel = Channel(mechanism, names)
        forward = as_matrix(channel.forward, channel.n_outputs, channel.n_categories)
        np.testing.assert_allclose(forward, dense_channel(mechanism, names), atol=1e-14)


@every_mechanism
def test_the_inverse_is_the_dense_inverse(mechanism: Mechanism) -> None:
    for names in orders(mechanism):
        channel = Channel(mechanism, names)
        inverse = as_matrix(channel.inverse, channel.n_categories, channel.n_outputs)
        np.testing.assert_allclose(inverse, dense_inverse(mechanism, names), atol=1e-11)


@every_mechanism
def test_the_condition_is_the_norm_of_the_inverse(mechanism: Mechanism) -> None:
    for names in orders(mechanism):
        norm = np.linalg.norm(dense_inverse(mechanism, names), 2)
        assert Channel(mechanism, names).condition == pytest.approx(norm, rel=1e-9)


def vanishing_pair() -> Mechanism:
    """Two binary attributes whose singles survive and whose pair does not.

    With φ = P(kept) − P(changed): φ_1 = φ_2 = q00 − q11 = 1/2 and φ_12 = q00 + q11 − q01 − q10 = 0.
    """
    tiny = 1e-13
    law = np.array([[0.5 - tiny, 0.25], [0.25, tiny]])
    return anonymous(
        (2, 2, 3),
        Block((2,), ProductLaw.from_levels((3,), (1.0,))),
        Block((0, 1), PatternTable.from_probabilities((2, 2), law)),
    )


def test_a_vanished_interaction_is_an_error_that_names_its_attributes() -> None:
    mechanism = vanishing_pair()
    with pytest.raises(InputError, match="a joint table of 'a1', 'a2' cannot be estimated"):
        Channel(mechanism, ("a3", "a1", "a2")).check(1e9)
    Channel(mechanism, ("a1", "a3")).check(1e9)
    Channel(mechanism, ("a2",)).check(1e9)


def test_whether_a_component_is_lost_depends_on_the_number_of_records() -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((2,), (1e-5,)))
    channel = Channel(mechanism, ("a1",))
    attenuation = 1 / channel.condition
    limit = (1e-3 / attenuation) ** 2
    channel.check(1.01 * limit)
    with pytest.raises(InputError, match="'a1' cannot be estimated"):
        channel.check(0.99 * limit)


def test_a_nearly_singular_response_matrix_is_refused_too() -> None:
    matrix = np.full((3, 3), 1 / 3) + 1e-11 * (np.eye(3) - 1 / 3)
    mechanism = anonymous(
        (3, 2),
        Block((0,), MatrixChannel.from_probabilities(matrix)),
        Block((1,), ProductLaw.from_levels((2,), (1.0,))),
    )
    with pytest.raises(InputError, match="'a1' cannot be estimated"):
        Channel(mechanism, ("a2", "a1")).check(1e6)
    Channel(mechanism, ("a2",)).check(1e6)


def test_no_attributes_unknown_ones_and_repeated_ones_are_refused() -> None:
    mechanism = MECHANISMS[0]
    with pytest.raises(InputError, match="at least one attribute"):
        Channel(mechanism, ())
    with pytest.raises(InputError, match="no attribute 'b'"):
        Channel(mechanism, ("b",))
    with pytest.raises(InputError, match="'a1' is named twice"):
        Channel(mechanism, ("a1", "a1"))
