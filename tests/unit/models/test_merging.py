"""The description of a fitted table by a smaller model."""

import numpy as np

from deniable.models.merging import describe, shares_within


def test_parameters_satisfy_the_likelihood_equations_and_change_as_finite_differences_say() -> None:
    random = np.random.default_rng(3)
    table = random.dirichlet(np.ones(12))
    group = np.repeat(np.arange(4), 3)
    design = random.normal(size=(12, 3))
    beta, change = describe(table, design, group)
    shares, centred = shares_within(design, beta, group)
    np.testing.assert_allclose(np.bincount(group, shares), 1)
    np.testing.assert_allclose(
        [shares[group == g] @ centred[group == g] for g in range(4)], 0, atol=1e-12
    )
    sizes = np.bincount(group, table)[group]
    np.testing.assert_allclose(design.T @ (table - sizes * shares), 0, atol=1e-12)
    step = 1e-6
    for cell in range(12):
        moved = table.copy()
        moved[cell] += step
        np.testing.assert_allclose(
            (describe(moved, design, group)[0] - beta) / step, change[:, cell], rtol=1e-4, atol=1e-4
        )
