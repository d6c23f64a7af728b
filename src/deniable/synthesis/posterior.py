"""Draws from the posterior of a log-linear model.

The posterior is e^(ℓ(β) − ½βᵀPβ) up to a factor. Where a release says little of a rare category it is
far from normal on the scale of logarithms: a share that may be 0 has a long tail to one side only.
So N(β̂, V) is where proposals come from, not what is drawn: elliptical slice sampling (Murray, Adams
and MacKay 2010) with N(β̂, V) as its normal part and the rest, posterior over N(β̂, V), as its
likelihood. It has the posterior as its exact limit and nothing to tune; where the posterior is normal
every step is as good as a new draw.
"""

import math
from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from deniable.models.likelihood import Likelihood, LogLinearFit, probabilities_of
from deniable.randomness import BitSource
from deniable.synthesis.drawing import normals, uniforms

STEPS = 20
"""Of the chain from one draw to the next."""

_FIRST = 100
"""Steps before the first draw."""

_MATRIX = 1 << 22
"""Numbers up to which a channel is written out as a matrix: one product instead of a pass for every
axis and form."""


def _log_likelihood(likelihood: Likelihood) -> Callable[[NDArray[np.float64]], float]:
    """Return the log-likelihood as a function of the cells' shares."""
    cells = prod(likelihood.shape)
    if cells * sum(each.counts.size for each in likelihood.observed) > _MATRIX:
        return likelihood.log_likelihood
    units = np.eye(cells).reshape(*likelihood.shape, cells)
    matrix = np.concatenate([each.seen(units) for each in likelihood.observed])
    counts = np.concatenate([each.counts.ravel() for each in likelihood.observed])
    matrix, counts = matrix[counts > 0], counts[counts > 0]
    return lambda shares: float(counts @ np.log(np.maximum(matrix @ shares, 1e-300)))


def posterior_draws(fit: LogLinearFit, copies: int, bits: BitSource) -> NDArray[np.float64]:
    """Return the shares of all cells at parameters drawn from their posterior.

    Args:
        fit: with a prior, so that the posterior is one.
        copies: how many draws.
        bits: source of randomness.

    Returns:
        Shape (copies, cells); each sums to 1.
    """
    values, vectors = np.linalg.eigh(fit.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    p, log_likelihood = len(values), _log_likelihood(fit.likelihood)
    centre = fit.design @ fit.parameters

    def rest(white: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
        """Return the logarithm of posterior over N(β̂, V), up to a constant."""
        at = fit.parameters + root @ white
        height = log_likelihood(probabilities_of(scores))
        return height - 0.5 * float(fit.precision @ at**2) + 0.5 * float(white @ white)

    white, change = np.zeros(p), np.zeros(len(centre))
    height = rest(white, centre)
    found = np.empty((copies, len(centre)))
    for copy in range(copies):
        for _ in range(STEPS + (0 if copy else _FIRST)):
            other = normals(p, bits)
            towards = fit.design @ (root @ other)
            level, start = uniforms(2, bits)
            wanted = height + math.log(level)
            angle = 2 * math.pi * float(start)
            low, high = angle - 2 * math.pi, angle
            while True:
                cos, sin = math.cos(angle), math.sin(angle)
                moved, changed = cos * white + sin * other, cos * change + sin * towards
                if (height := rest(moved, centre + changed)) > wanted:
                    break
                low, high = (angle, high) if angle < 0 else (low, angle)
                angle = low + (high - low) * float(uniforms(1, bits)[0])
            white, change = moved, changed
        found[copy] = probabilities_of(centre + change)
    return found
