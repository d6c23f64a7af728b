"""A matrix's privacy if people's distribution differs from the design's prior."""

from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.response import sensitivity

MOVED = (0.1, 0.25)


@dataclass(frozen=True)
class WrongPrior:
    """A matrix under one other truth."""

    truth: str
    privacy: float
    misled_privacy: float
    worst_posterior: float


def wrong_priors(matrix: FloatArray, prior: FloatArray) -> list[WrongPrior]:
    """Return the privacy under the uniform distribution, and with a tenth or a quarter of all
    people moved to one category: the one with the least privacy.

    ``matrix``: M[y, x] = Pr[y | x], shape (m, n). ``prior``: of the design, shape (n,).
    """
    n = len(prior)
    results = []
    groups = [("all categories equally likely", np.full((1, n), 1.0 / n))]
    for fraction in MOVED:
        moved = (1.0 - fraction) * prior + fraction * np.eye(n)
        groups.append((f"{fraction:.0%} of the people moved to one category", moved))
    for name, truths in groups:
        result = sensitivity(matrix, prior, truths)
        worst = int(np.argmin(result.privacy))
        results.append(
            WrongPrior(
                name,
                float(result.privacy[worst]),
                float(result.misled_privacy[worst]),
                float(result.worst_posterior.max()),
            )
        )
    return results
