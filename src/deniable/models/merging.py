"""Coefficients of models that merge categories, from the fitted table of all categories.

A model that merges categories is fitted with all categories, and the formula is then fitted to the
fitted table: β* is where the ordinary likelihood equations hold on it. Its errors follow from those
of the table, dβ* = H⁻¹ Zᵀ dr, with H the equations' information and r the residuals. Without
randomization or prior β* is the ordinary fit, as the larger model's equations include the smaller
one's. Merging in the likelihood would assume that the categories of a level act alike; where they
do not, the estimate would depend on the channel.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deniable.models.cells import Cells
from deniable.models.likelihood import LogLinearFit, jacobian_of, probabilities_of

CoefficientMap = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Coefficients and their derivatives, shape (q, p), from the parameters of a fit."""


def describe(
    table: NDArray[np.float64], design: NDArray[np.float64], group: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the parameters of p ∝ exp(Zβ) within groups of cells, nearest to a table.

    ``table``: probabilities of the cells, shape (cells,). ``design``: Z, shape (cells, q).
    ``group``: of every cell, from 0, shape (cells,): for a regression, which combination of
    covariates; for a log-linear model zeros.

    Β*, shape (q,), where Σ table·ln p is largest, and dβ*/dtable, shape (q, cells).
    """
    parameters, sizes = np.zeros(design.shape[1]), np.bincount(group, table)[group]
    for _ in range(100):
        share, centred = shares_within(design, parameters, group)
        information = (centred * (sizes * share)[:, None]).T @ centred
        inverse = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
        step = inverse @ (centred.T @ table)
        largest = float(abs(step).max(initial=0.0))
        parameters = parameters + step * min(1.0, 4.0 / max(largest, 1e-300))
        if largest < 1e-12:
            break
    return parameters, inverse @ centred.T


def shares_within(
    design: NDArray[np.float64], parameters: NDArray[np.float64], group: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exp(Zβ) scaled to sum to 1 within each group of cells, shape (cells,), and Z less its
    groups' means."""
    scores = design @ parameters
    highest = np.full(group.max() + 1, -np.inf)
    np.maximum.at(highest, group, scores)
    weights = np.exp(scores - highest[group])
    share = weights / np.bincount(group, weights)[group]
    means = np.zeros((len(highest), design.shape[1]))
    np.add.at(means, group, share[:, None] * design)
    return share, design - means[group]


def first_coefficients(
    n: int, parameters: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the first parameters and their derivatives: coefficients without merged categories."""
    return parameters[:n], np.eye(n, len(parameters))


def coefficients_of_levels(
    whole: NDArray[np.float64],
    cells: Cells,
    design: NDArray[np.float64],
    response: int | None,
    inside: NDArray[np.int64],
    parameters: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients of a formula on merged categories, and their derivatives; ``whole`` is
    the fit's design, ``inside`` are the places of the model's cells in it."""
    shares, place = probabilities_of(whole @ parameters), cells.merged_into(range(len(cells.axes)))
    table = np.bincount(place, shares[inside], len(design)).astype(np.float64)
    values, change = describe(table, design, cells.levels.covariates(response))
    return values, change[:, place] @ jacobian_of(whole, shares)[inside]


def of_levels(
    fit: LogLinearFit, coefficient_map: CoefficientMap
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients, covariance and data's share of a formula on merged categories."""
    values, linear = coefficient_map(fit.parameters)
    covariance = linear @ fit.covariance @ linear.T
    share = np.ones(len(values))
    if fit.precision.min() > 1e-6:  # with the prior
        share = 1 - np.diag(covariance) / ((linear**2) @ (1 / fit.precision))
    return values, covariance, share
