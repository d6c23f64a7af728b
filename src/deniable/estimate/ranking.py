"""The K largest of several associations, from estimates with a joint normal law.

The estimates ρ̂ are normal about the true ρ with covariance Σ. Of many estimates the largest are too
large, so the probabilities are posterior ones: ρ_j are independent draws from a mixture of normal
laws around 0 whose weights the estimates themselves determine (Stephens 2017, "False discovery
rates: a new deal"). Draws from the posterior under the joint Σ are by Gibbs sampling, with the
component of ρ_j summed over: given the other ρ, ρ̂ determines ρ_j up to a normal error.
"""

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.tabulate import Floats

_CHAINS, _SWEEPS, _USED = 500, 20, 10
"""Chains of the sampler, their sweeps, and the last of these that count: 5,000 draws, so that
probabilities have errors of 0.01 at most."""

_BLOCK = 64
"""Associations whose conditional means are computed by one product of matrices."""


def in_largest(estimates: Floats, covariance: Floats, k: int) -> tuple[Floats, float]:
    """Return, for every association, the probability that it is one of the k largest in absolute
    value, and the probability that these are the k of the largest estimates.

    The generator is seeded: equal estimates give equal probabilities.

    ``estimates``: ρ̂, shape (m,). ``covariance``: Σ, shape (m, m).
    """
    m, found = len(estimates), set(np.argsort(-np.abs(estimates), kind="stable")[:k].tolist())
    if k >= m:
        return np.ones(m), 1.0
    times, right, generator = np.zeros(m), 0, np.random.default_rng(0)
    for draws in _posterior(estimates, covariance, generator):
        largest = np.argpartition(-np.abs(draws), k - 1, axis=1)[:, :k]
        times += np.bincount(largest.ravel(), minlength=m)
        right += int(np.isin(largest, list(found)).all(axis=1).sum())
    return times / (_CHAINS * _USED), right / (_CHAINS * _USED)


def _posterior(
    estimates: Floats, covariance: Floats, generator: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Return draws of ρ, shape (chains, m) each."""
    variances = np.diag(covariance)
    spreads, weights = _prior(estimates, variances)
    precision = np.linalg.inv(covariance + 1e-6 * np.diag(variances))
    away = np.zeros((_CHAINS, len(estimates)))  # ρ − ρ̂
    kept = []
    for sweep in range(_SWEEPS):
        for j, own in enumerate(np.diag(precision)):
            block = slice(j - j % _BLOCK, j - j % _BLOCK + _BLOCK)
            if j % _BLOCK == 0:
                pulls = away @ precision[:, block]
            mean = estimates[j] + away[:, j] - pulls[:, j % _BLOCK] / own
            variance = 1.0 / own + spreads**2
            chances = weights / np.sqrt(variance) * np.exp(-0.5 * mean[:, None] ** 2 / variance)
            chances = np.cumsum(chances, axis=1)
            drawn = generator.random((_CHAINS, 1)) * chances[:, -1:]
            component = np.minimum((chances < drawn).sum(axis=1), len(spreads) - 1)
            shrunk = spreads[component] ** 2 / variance[component]
            noise = generator.standard_normal(_CHAINS)
            new = shrunk * mean + np.sqrt(shrunk / own) * noise - estimates[j]
            pulls += np.outer(new - away[:, j], precision[j, block])
            away[:, j] = new
        if sweep >= _SWEEPS - _USED:
            kept.append(away + estimates)
    return kept


def _prior(estimates: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return the standard deviations and the weights of the prior's components, shape (c,) each:
    the most likely weights if the errors were independent, by EM."""
    least = 0.1 * float(np.sqrt(variances.min()))
    most = 2.0 * float(np.abs(estimates).max())
    spreads = least * 2.0 ** np.arange(max(1.0, np.ceil(np.log2(max(most / least, 1.0))) + 1.0))
    total = variances[:, None] + spreads**2
    likely = np.exp(-0.5 * estimates[:, None] ** 2 / total) / np.sqrt(total) + 1e-300
    weights = np.full(len(spreads), 1.0 / len(spreads))
    for _ in range(200):
        share = likely * weights
        weights = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    return spreads, weights
