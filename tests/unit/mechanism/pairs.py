"""Mechanisms on two attributes of 3 and 4 categories, and what they do to a table."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.laws import Identity, ProductLaw, joint_of_epsilon
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from unit.dense import anonymous, dense_channel, random_table

S, T = np.array([-1.0, 0.0, 2.5]), np.array([3.0, 1.0, 0.0, -2.0])


def product() -> Mechanism:
    return Mechanism.of(ProductLaw.from_levels((3, 4), (1.5, 2.0)))


def joint() -> Mechanism:
    return anonymous((3, 4), Block((1, 0), joint_of_epsilon((4, 3), 3.5)))


def table_law() -> Mechanism:
    return Mechanism.of(random_table((3, 4), 3))


def matrices() -> Mechanism:
    cycle = 0.6 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, 0) + 0.1 / 3
    return anonymous(
        (3, 4),
        Block((0,), bistochastic_channel(cycle)),
        Block((1,), bistochastic_channel(0.7 * np.eye(4) + 0.3 / 4)),
    )


def half_kept() -> Mechanism:
    law = ProductLaw.from_levels((3,), (1.5,))
    return anonymous((3, 4), Block((0,), law), Block((1,), Identity((4,))), keep=(1,))


MADE: list[Callable[[], Mechanism]] = [product, joint, table_law, matrices, half_kept]
every_pair = pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)


def truth(seed: int = 2) -> NDArray[np.float64]:
    return np.random.default_rng(seed).dirichlet(np.full(12, 0.7)).reshape(3, 4)


def released(mechanism: Mechanism, table: NDArray[np.float64]) -> NDArray[np.float64]:
    dense = dense_channel(mechanism, mechanism.schema.names)
    return (dense @ table.ravel()).reshape(Channel(mechanism, mechanism.schema.names).n_outputs)
