"""Estimates that are distributions: maximum likelihood by EM, and projection to the simplex.

The proofs are in docs/proofs/estimation.md, section 4.
"""

from dataclasses import dataclass

import numpy as np

from deniable.estimate.tabulate import Floats
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

_SMALLEST = 1e-300
"""Probability in place of 0, whose logarithm is taken; not far above the least double."""


@dataclass(frozen=True)
class MaximumLikelihood:
    """Where EM stopped.

    ``values``: the distribution, the shape of the true table. ``gap``: an upper bound on how far
    its log-likelihood is from the largest possible, in nats, for all records together.
    """

    values: Floats
    gap: float
    iterations: int
    converged: bool


def maximum_likelihood(
    frequencies: Floats,
    forward: TableMap | StackedMap,
    n_records: float,
    *,
    tolerance: float = 0.1,
    max_iterations: int = 5_000,
) -> MaximumLikelihood:
    """Return the distribution under which the released table is most likely.

    Iterative Bayes or EM, p ← p∘g with g = Mᵀ(θ/(M p)), until n(max g − 1) ≤ tolerance, which
    bounds the distance of the log-likelihood from its maximum (docs/proofs/estimation.md, Theorem
    8). One standard error away from the maximum it is 0.5 lower; the default of 0.1 is inside the
    noise.

    Plain EM crawls where entries go to zero, so every two steps are extrapolated (SQUAREM, Varadhan
    and Roland 2008), in ln p, where such entries move by equal steps and none turns negative.
    An extrapolation that would lower the likelihood is dropped: the likelihood never falls.

    ``frequencies``: θ, the released table's frequencies, shape of the outputs. ``tolerance``: of
    the log-likelihood of all records, in nats.
    """
    seen, transposed = frequencies > 0, forward.transposed()

    def likelihood(values: Floats) -> tuple[float, Floats]:
        # ℓ(p) and g. Released values that were seen have probabilities of about 1/n; rounding in
        # the transform is 1e-16 and could make a zero negative.
        expected = forward.apply(values)
        expected = np.maximum(expected, np.finfo(np.float64).eps * expected.max())
        height = float((frequencies[seen] * np.log(expected[seen])).sum())
        return height, np.maximum(transposed.apply(frequencies / expected), 0.0)

    values = np.full(forward.n_categories, 1.0 / np.prod(forward.n_categories))
    height, ratio = likelihood(values)
    iterations, longest = 0, 4.0
    while True:
        gap = n_records * max(0.0, float(ratio.max()) - 1.0)
        if gap <= tolerance or iterations >= max_iterations:
            return MaximumLikelihood(values, gap, iterations, gap <= tolerance)
        first = _step(values, ratio)
        _, next_ratio = likelihood(first)
        second = _step(first, next_ratio)
        iterations += 2
        # Steps in ln p. Entries are weighted by p (the Fisher metric), or those on their way to
        # zero would decide the length.
        step, next_step = _log(ratio), _log(next_ratio)
        bend = next_step - step
        size, change = float((values * step**2).sum()), float((values * bend**2).sum())
        length = min(longest, np.sqrt(size / change)) if change > 0 else longest
        if length > 1:
            exponent = 2 * length * step + length**2 * bend
            candidate = values * np.exp(np.clip(exponent, -100, 100))
            candidate = np.maximum(candidate / candidate.sum(), _SMALLEST)
            candidate_height, candidate_ratio = likelihood(candidate)
            if candidate_height >= height:
                if length == longest:
                    longest *= 4
                values, height, ratio = candidate, candidate_height, candidate_ratio
                continue
            longest = max(4.0, longest / 4)
        values = second
        height, ratio = likelihood(values)


def _step(values: Floats, ratio: Floats) -> Floats:
    values = np.maximum(values * ratio, _SMALLEST)
    return np.asarray(values / values.sum())


def _log(ratio: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(ratio, 1e-20)))


def project_to_simplex(values: Floats) -> Floats:
    """Return the distribution nearest to a table in the Euclidean distance, the same shape.

    It is max(values − t, 0) for the one t that makes the sum 1: from t for all entries, those at or
    below it are left out until there are none (Michelot 1986).
    """
    positive = values.ravel()
    while True:
        threshold = (positive.sum() - 1) / positive.size
        above = positive[positive > threshold]
        if above.size in (0, positive.size):  # none where rounding makes equal entries t
            return np.asarray(np.maximum(values - threshold, 0.0))
        positive = above
