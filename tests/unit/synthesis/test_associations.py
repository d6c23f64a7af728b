"""Shrunk associations: against a grid, on independent and dependent attributes, and raking."""

import numpy as np
import pytest

from deniable.randomness import SeededRandomness
from deniable.synthesis.associations import Associations, _shrinkage, centred, raked
from deniable.synthesis.drawing import exponentials
from deniable.synthesis.rows import ReleasedRows
from unit.models.cases import NAMES, laws, people, released, truth

RANDOM = np.random.default_rng(1)


def associations(law: str, n: int = 3000) -> Associations:
    return Associations(ReleasedRows.read(released(laws()[law], people(n)), NAMES, {}), NAMES)


def test_shrinkage_is_of_the_largest_marginal_likelihood() -> None:
    margins = [RANDOM.dirichlet(np.ones(n) * 3) for n in (4, 5)]
    expected = np.multiply.outer(*margins)
    variance = 1e-4 * (1 + RANDOM.random((4, 5)))
    interaction = centred(RANDOM.normal(0, np.sqrt(0.1 * expected + variance)))
    found = _shrinkage(interaction, variance, expected)
    assert found is not None
    grid = np.geomspace(1e-4, 10, 20_001)[:, None, None] * expected
    height = -0.5 * (interaction**2 / (grid + variance) + np.log(grid + variance)).sum(axis=(1, 2))
    best = grid[np.argmax(height)]
    np.testing.assert_allclose(found, best / (best + variance), rtol=1e-3)
    assert _shrinkage(interaction / 1000, variance, expected) is None


def test_an_association_below_its_noise_is_left_out() -> None:
    kept = alike = 0
    for _ in range(400):
        noise = centred(RANDOM.normal(0, 0.01, (3, 4)) * np.sqrt(12 / 6))
        kept += _shrinkage(noise, np.full((3, 4), 1e-4), np.full((3, 4), 1 / 12)) is not None
        alike += _shrinkage(1.8 * noise, np.full((3, 4), 1e-4), np.full((3, 4), 1 / 12)) is not None
    assert kept < 40  # half of a χ² with one degree of freedom is above 4 in 2.3 %
    assert alike > 200


@pytest.mark.parametrize("law", ["matrix", "forms"])
def test_weighted_rows(law: str) -> None:
    """With equal weights the table is the estimate; over weights its variance is the estimate's."""
    of = associations(law, 1000)
    pair = (0, 2)
    np.testing.assert_allclose(of.values(pair, np.ones(1000)), of.values(pair), atol=1e-12)
    bits = SeededRandomness(3)
    drawn = np.array([of.values(pair, exponentials(1000, bits)) for _ in range(150)])
    np.testing.assert_allclose(drawn.mean(axis=0), of.values(pair), atol=0.04)
    ratio = drawn.var(axis=0) / of.variance(*pair)
    assert (ratio > 0.6).all()
    assert (ratio < 1.6).all()
    np.testing.assert_array_equal(of.variance(2, 0), of.variance(0, 2).T)


def test_tables_have_their_margins() -> None:
    of = associations("votes", 20_000)
    exact = truth().sum(axis=1)
    assert (0, 2) in of.found
    table = of.table(2, 0, of.fitted)
    np.testing.assert_allclose(table.sum(axis=0), of.fitted[0], atol=1e-5)
    np.testing.assert_allclose(table.sum(axis=1), of.fitted[2], atol=1e-5)
    assert abs(table.T - exact).sum() < 0.1
    assert of.information(0, 2) == of.information(2, 0) > 0


def test_raking_adds_no_interaction_of_three() -> None:
    wanted = RANDOM.dirichlet(np.ones(12)).reshape(2, 3, 2)
    margins = [(axes, wanted.sum(axis=3 - sum(axes))) for axes in ((0, 1), (0, 2), (1, 2))]
    found = raked(np.ones((2, 3, 2)), margins)
    for axes, table in margins:
        np.testing.assert_allclose(found.sum(axis=3 - sum(axes)), table, atol=1e-6)
    odds = np.log(found[0] / found[1])
    np.testing.assert_allclose(odds[1:] - odds[0], (odds[1:] - odds[0])[:, :1] * [1, 1], atol=1e-9)
