"""Small tables under every kind of law, and true distributions with known parameters."""

from functools import cache
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import deniable
from deniable.estimate.source import Release, open_release
from deniable.laws import MatrixChannel, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.models.likelihood import Likelihood, Observed
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema

SIZES = (2, 3, 2)
SHAPE = (*SIZES, 1)
NAMES = ("y", "a", "b")
CATEGORIES = (("no", "yes"), ("p", "q", "r"), ("f", "m"))
SCHEMA = Schema(
    tuple(Attribute(n, c) for n, c in zip(NAMES, CATEGORIES, strict=True)),
    keep=("town", "hours", "weight"),
)


@cache
def laws() -> dict[str, Mechanism]:
    """Mechanisms on three attributes: a product, votes, a ramp, a table of patterns, a matrix with
    more answers than categories, and forms."""

    def designed(**how: object) -> Mechanism:
        return deniable.design(SCHEMA, **how).mechanism  # type: ignore[arg-type]

    rows = [[4, 1], [2, 1], [2, 6]]
    matrix = Mechanism(
        SCHEMA,
        (
            Block((0,), MatrixChannel.from_probabilities(np.array(rows) / 8)),
            Block((1, 2), ProductLaw.from_levels((3, 2), (2.0, 2.0))),
        ),
    )
    return {
        "product": Mechanism.of(ProductLaw.from_levels(SIZES, (1.5, 2.0, 1.0)), SCHEMA),
        "votes": designed(epsilon=3, method="optimal"),
        "ramp": designed(epsilon=3, method="balanced"),
        "table": designed(attribute_epsilon=(1.0, 1.5, 0.7), method="lp"),
        "matrix": matrix,
        "forms": designed(epsilon=3, method="forms", pairs=0.9),
    }


def as_it_is() -> Mechanism:
    """A mechanism that leaves all three attributes as they are."""
    attributes = (*SCHEMA.attributes, Attribute("other", ("0", "1")))
    schema = Schema(attributes, keep=(*NAMES, *SCHEMA.keep))
    return deniable.design(schema, epsilon=1).mechanism


def truth(interaction: float = 0.8) -> NDArray[np.float64]:
    """A distribution of y, a, b in which y has log odds −1 + 0.6[q] − 0.5[r] + interaction [m]."""
    covariates = np.array([[0.2, 0.25], [0.1, 0.15], [0.2, 0.1]])
    odds = -1 + np.array([0.0, 0.6, -0.5])[:, None] + np.array([0.0, interaction])[None, :]
    share = 1 / (1 + np.exp(-odds))
    return np.stack([covariates * (1 - share), covariates * share])


COEFFICIENTS = (-1.0, 0.6, -0.5, 0.8)


def likelihood_of(mechanism: Mechanism, table: NDArray[np.float64], n: float = 1.0) -> Likelihood:
    """The likelihood given the expected counts of n rows with a true table."""
    channel = channel_of(mechanism, NAMES)
    return Likelihood(SHAPE, (Observed(channel.forward, n * channel.forward.apply(table)),))


def people(n: int = 3000, seed: int = 5) -> pa.Table:
    """People with the true distribution, and hours = 30 + 4[q] − 6[m] + noise."""
    random = np.random.default_rng(seed)
    flat = random.choice(12, n, p=truth().ravel())
    y, a, b = np.unravel_index(flat, SIZES)
    columns = {
        name: [labels[i] for i in codes]
        for name, labels, codes in zip(NAMES, CATEGORIES, (y, a, b), strict=True)
    }
    hours = 30 + 4.0 * (a == 1) - 6.0 * (b == 1) + 5 * random.normal(size=n)
    town = random.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2]).tolist()
    weight = random.choice([0.5, 1.0, 2.0], n).tolist()
    return pa.table(columns | {"hours": hours.round(6), "town": town, "weight": weight})


def released(mechanism: Mechanism, table: pa.Table) -> Release:
    """A release of a table, the same on every run, opened."""
    frame = table
    if "other" in mechanism.schema.names:
        frame = table.append_column("other", pa.array(["0"] * len(table)))
    with patch("deniable.api.SystemRandomness", lambda: SeededRandomness(7)):
        rows = deniable.randomize(frame, mechanism)
    return open_release(rows, Strata.one(mechanism))
