"""Mechanisms with a merged attribute at every place, and questions about its parts, dense."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import DesignedChannel, Law, ProductLaw, SingleChangeMixture
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from unit.dense import dense_channel, random_matrix, random_table

WHOLE = Attribute("p+q", parts=(Attribute("p", ("p0", "p1")), Attribute("q", ("q0", "q1", "q2"))))
OTHERS = (Attribute("a", ("a0", "a1", "a2")), Attribute("b", ("b0", "b1")))
QUESTIONS: list[tuple[str, ...]] = [
    ("p",),
    ("q",),
    ("p", "q"),
    ("q", "p"),
    ("p", "a"),
    ("b", "q"),
    ("q", "a", "p"),
    ("b", "p", "a", "q"),
    ("a", "b"),
    ("p+q", "a"),
]


def schema_with(place: int) -> Schema:
    """p+q at a place among a and b."""
    attributes = list(OTHERS)
    attributes.insert(place, WHOLE)
    return Schema(tuple(attributes))


def random_designed(n: int, n_outputs: int, seed: int) -> DesignedChannel:
    random = np.random.default_rng(seed)
    prior = random.dirichlet(np.full(n, 3.0))
    return DesignedChannel.for_prior(random_matrix(n, n_outputs, seed).matrix(), tuple(prior))


def mechanisms() -> Iterator[tuple[str, Mechanism]]:
    for place in range(3):
        schema = schema_with(place)
        sizes = schema.n_categories
        rest = tuple(i for i in range(3) if i != place)
        others = ProductLaw.from_levels(tuple(sizes[i] for i in rest), (2.0, 1.5))
        laws: dict[str, Law] = {
            "square": random_matrix(6, 6, 10 + place),
            "more answers": random_matrix(6, 9, 20 + place),
            "designed": random_designed(6, 8, 30 + place),
        }
        for name, law in laws.items():
            yield (
                f"{name} at {place}",
                Mechanism(schema, (Block(rest, others), Block((place,), law))),
            )
        backwards = tuple(sizes[i] for i in (2, 1, 0))
        table = Block((2, 1, 0), random_table(backwards, 40 + place))
        yield f"pattern table at {place}", Mechanism(schema, (table,))
    schema = schema_with(1)
    mixture = SingleChangeMixture(schema.n_categories, 16, 20000, 35536, (4000, 3000, 3000))
    yield "single change at 1", Mechanism.of(mixture, schema)


MECHANISMS = dict(mechanisms())
_DENSE: dict[int, NDArray[np.float64]] = {}


def dense(mechanism: Mechanism) -> NDArray[np.float64]:
    """The dense channel of all attributes, worked out once for each of the mechanisms here."""
    if id(mechanism) not in _DENSE:
        _DENSE[id(mechanism)] = dense_channel(mechanism, mechanism.schema.names)
    return _DENSE[id(mechanism)]


def sums(mechanism: Mechanism, question: Sequence[str]) -> NDArray[np.float64]:
    """The joint table of all attributes, in the schema's order, to the table asked for: cell by
    cell, from names to categories."""
    columns: list[tuple[str, tuple[str, ...]]] = []
    for attribute in mechanism.schema.attributes:
        columns += [(c.name, c.categories) for c in attribute.columns]
    asked = dict(columns) | {WHOLE.name: WHOLE.categories}
    cells = list(product(*(asked[name] for name in question)))
    matrix = np.zeros((len(cells), int(np.prod(mechanism.schema.n_categories))))
    for x, record in enumerate(product(*(categories for _, categories in columns))):
        values = dict(zip((name for name, _ in columns), record, strict=True))
        values[WHOLE.name] = f"{values['p']}+{values['q']}"
        matrix[cells.index(tuple(values[name] for name in question)), x] = 1
    return matrix


def position(mechanism: Mechanism) -> int:
    return mechanism.schema.position(WHOLE.name)


def left_inverse(mechanism: Mechanism) -> NDArray[np.float64]:
    """L of the joint table: the inverse, or with more answers that of every block, multiplied."""
    names = mechanism.schema.names
    matrix = dense(mechanism)
    if matrix.shape[0] == matrix.shape[1]:
        return np.linalg.inv(matrix)
    whole = np.ones((1, 1))
    for i, name in enumerate(names):
        response = dense_channel(mechanism, [name])
        single = np.linalg.pinv(response)
        if len(response) > response.shape[1]:
            law = mechanism.block_of(i)[0].law
            prior = np.array(getattr(law, "prior", np.full(6, 1 / 6)))
            weighted = response.T @ np.diag(1 / (response @ (prior / prior.sum())))
            single = np.linalg.inv(weighted @ response) @ weighted
        whole = np.kron(whole, single)
    return whole


def released_cells(mechanism: Mechanism) -> list[tuple[int, ...]]:
    return list(product(*(range(n) for n in mechanism.n_outputs)))


def counted(
    mechanism: Mechanism, question: Sequence[str], frequencies: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What is counted for a question, from weights of all cells of the released joint table."""
    channel = Channel(mechanism, tuple(question))
    codes = np.array(released_cells(mechanism)).T
    columns = channel.released_codes(dict(enumerate(codes)))
    table = np.zeros(channel.n_outputs)
    np.add.at(table, tuple(columns), frequencies)
    return table


def drawn(
    mechanism: Mechanism, *, weighted: bool, n: int = 4000, seed: int = 3
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Counts and squared weights of a released joint table, flat."""
    random = np.random.default_rng(seed)
    matrix = dense(mechanism)
    truth = random.dirichlet(np.full(matrix.shape[1], 2.0))
    cells = random.choice(len(matrix), size=n, p=matrix @ truth)
    weights = random.gamma(3.0, size=n) if weighted else np.ones(n)
    first = np.bincount(cells, weights, minlength=len(matrix))
    return first, np.bincount(cells, weights**2, minlength=len(matrix)) if weighted else None


def tabulation(
    mechanism: Mechanism, question: Sequence[str], *, weighted: bool = False, n: int = 4000
) -> Tabulation:
    first, squares = drawn(mechanism, weighted=weighted, n=n)
    return Tabulation(
        counted(mechanism, question, first),
        None if squares is None else counted(mechanism, question, squares),
        n,
    )


def counts_of(mechanism: Mechanism, question: Sequence[str], **how: Any) -> Counts:
    return Counts.of(mechanism, tabulation(mechanism, question, **how))


def all_orders() -> list[tuple[str, ...]]:
    return list(permutations(("p", "q", "a", "b")))
