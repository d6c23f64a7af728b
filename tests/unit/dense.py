"""The joint channel as one dense matrix, and mechanisms of every kind to hold estimates against."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from deniable.laws import Identity, MatrixChannel, PatternTable, ProductLaw, SingleChangeMixture
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema
from laws.brute_force import Scaled, channel_of_mechanism, scaled, seen_through

_KNOWN: dict[tuple[int, tuple[str, ...]], tuple[Mechanism, NDArray[np.float64]]] = {}
"""Matrices by the mechanism's id, each with its mechanism, so that no id comes back."""
_WHOLE: dict[int, tuple[Mechanism, Scaled]] = {}
"""The same on all attributes, in whole numbers."""


def dense_channel(mechanism: Mechanism, attributes: Sequence[str]) -> NDArray[np.float64]:
    """M[y, x] = Pr[released y | true x] on some attributes, from the definition of each law; worked
    out once for each of them, and not to be written to."""
    key = (id(mechanism), tuple(attributes))
    if key not in _KNOWN:
        if len(_KNOWN) == 500:
            _KNOWN.clear()
        matrix = _from_definition(mechanism, attributes)
        matrix.flags.writeable = False
        _KNOWN[key] = mechanism, matrix
    return _KNOWN[key][1]


def _from_definition(mechanism: Mechanism, attributes: Sequence[str]) -> NDArray[np.float64]:
    positions = mechanism.schema.positions(attributes)
    if id(mechanism) not in _WHOLE:
        if len(_WHOLE) == 100:
            _WHOLE.clear()
        _WHOLE[id(mechanism)] = mechanism, scaled(channel_of_mechanism(mechanism))
    channel = seen_through(_WHOLE[id(mechanism)][1], positions)
    k = len(mechanism.schema.attributes)
    columns = []
    for x in product(*(range(mechanism.schema.n_categories[i]) for i in positions)):
        # What the other attributes are does not matter: put their first category.
        whole = [0] * k
        for position, value in zip(positions, x, strict=True):
            whole[position] = value
        row = channel[tuple(whole)]
        total = sum(row.values())
        outputs = product(*(range(mechanism.n_outputs[i]) for i in positions))
        columns.append([row.get(y, 0) / total for y in outputs])
    return np.array(columns).T


def dense_inverse(mechanism: Mechanism, attributes: Sequence[str]) -> NDArray[np.float64]:
    """The inverse of that matrix, or with more outputs than cells the Kronecker product of inverses
    (only mechanisms whose blocks each have one attribute among those asked)."""
    matrix = dense_channel(mechanism, attributes)
    if matrix.shape[0] == matrix.shape[1]:
        return np.linalg.inv(matrix)
    inverse = np.ones((1, 1))
    for name in attributes:
        single = dense_channel(mechanism, [name])
        if single.shape[0] == single.shape[1]:
            left = np.linalg.inv(single)
        else:
            weighted = single.T @ np.diag(1 / single.mean(axis=1))
            left = np.linalg.inv(weighted @ single) @ weighted
        inverse = np.kron(inverse, left)
    return inverse


def random_table(n_categories: Sequence[int], seed: int) -> PatternTable:
    """A pattern table far from a product law, whose eigenvalues are all well away from zero."""
    random = np.random.default_rng(seed)
    law = random.dirichlet(np.ones(2 ** len(n_categories))) * 0.4 + 0.01
    law[0] += 0.6
    return PatternTable.from_probabilities(
        n_categories, (law / law.sum()).reshape((2,) * len(n_categories))
    )


def random_matrix(n_categories: int, n_outputs: int, seed: int) -> MatrixChannel:
    """A response matrix without symmetry, possibly with more outputs than categories."""
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.ones(n_outputs), size=n_categories).T * 0.6
    matrix[:n_categories] += 0.4 * np.eye(n_categories)
    return MatrixChannel.from_probabilities(matrix)


def anonymous(n_categories: Sequence[int], *blocks: Block, keep: Sequence[int] = ()) -> Mechanism:
    """A mechanism on attributes a1, a2, …"""
    schema = Schema.anonymous(n_categories)
    names = tuple(schema.names[i] for i in keep)
    return Mechanism(Schema(schema.attributes, keep=names), blocks)


def product_law() -> Mechanism:
    return Mechanism.of(ProductLaw.from_levels((3, 2, 4), (1.0, 2.0, 3)))


def pattern_table() -> Mechanism:
    return anonymous((2, 3, 2, 3), Block((3, 0, 1, 2), random_table((3, 2, 3, 2), 1)))


def single_change() -> Mechanism:
    law = SingleChangeMixture((3, 2, 3), 16, 20000, 35536, (4000, 3000, 3000))
    return Mechanism.of(law)


def square_matrix_among_blocks() -> Mechanism:
    """Blocks out of order, a square matrix, and an attribute released as it is."""
    return anonymous(
        (2, 3, 2, 3),
        Block((3, 0), random_table((3, 2), 2)),
        Block((1,), random_matrix(3, 3, 3)),
        Block((2,), Identity((2,))),
        keep=(2,),
    )


def two_blocks() -> Mechanism:
    return anonymous(
        (2, 3, 2, 2),
        Block((2, 1), random_table((2, 3), 4)),
        Block((3, 0), random_table((2, 2), 5)),
    )


def more_outputs() -> Mechanism:
    return anonymous(
        (3, 2, 2),
        Block((1,), ProductLaw.from_levels((2,), (1.0,))),
        Block((0,), random_matrix(3, 5, 6)),
        Block((2,), random_matrix(2, 3, 7)),
    )


MECHANISMS = [
    product_law(),
    pattern_table(),
    single_change(),
    square_matrix_among_blocks(),
    two_blocks(),
    more_outputs(),
]
NAMES = [
    "product law",
    "pattern table",
    "single change",
    "square matrix among blocks",
    "two blocks",
    "more outputs than categories",
]
