"""The iterative estimate of the true shares, and its error by simulation."""

from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray


@dataclass(frozen=True)
class SimulatedError:
    """The mean squared error of an estimate over simulated data sets.

    Attributes:
        mse: the average over categories, as in equation (10).
        standard_error: of `mse`, from the spread between data sets.
    """

    mse: float
    standard_error: float


def iterative_estimate(
    matrix: FloatArray,
    frequencies: FloatArray,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 100_000,
) -> FloatArray:
    """Iterate p_x ← p_x Σ_y θ_y M[y, x]/(M p)_y from uniform shares, until p changes by little.

    The printed equation (3) has θ_{i,j} where θ_{j,i} is meant; as printed the limit need not sum
    to 1. Every step stays a distribution and raises the likelihood (it is an EM step), but plain
    steps are short near the boundary, so that this is for studying the method on small tables.

    ``matrix``: M, shape (m, n). ``frequencies``: θ, observed shares of the outputs, shape (..., m).

    Returns the estimated shares, shape (..., n).

    Source: Agrawal, Srikant and Thomas 2005; Huang and Du, equation (3), indices corrected.

    >>> matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> iterative_estimate(matrix, matrix @ np.array([0.3, 0.7])).round(6).tolist()
    [0.3, 0.7]
    """
    n = matrix.shape[1]
    shares = np.full((*frequencies.shape[:-1], n), 1.0 / n)
    seen = frequencies > 0
    for _ in range(max_iterations):
        expected = shares @ matrix.T
        ratio = np.divide(frequencies, expected, out=np.zeros_like(expected), where=seen)
        following = shares * (ratio @ matrix)
        change = float(np.abs(following - shares).max(initial=0.0))
        shares = following
        if change <= tolerance:
            break
    return np.asarray(shares)


def simulated_mse(
    matrix: FloatArray,
    prior: FloatArray,
    n_records: int,
    n_simulations: int,
    generator: np.random.Generator,
    *,
    tolerance: float = 1e-9,
) -> SimulatedError:
    """MSE of the iterative estimate over data sets of records drawn from the prior.

    ``matrix``: M, shape (m, n). ``prior``: the true distribution, shape (n,). ``n_simulations``:
    number of data sets, at least 2.

    Source: Huang and Du, section VI.E.
    """
    if n_records < 1 or n_simulations < 2:
        raise InputError("n_simulations: it takes at least 2 simulations, of at least 1 record")
    occurrence = matrix @ prior
    counts = generator.multinomial(n_records, occurrence / occurrence.sum(), size=n_simulations)
    estimate = iterative_estimate(matrix, counts / n_records, tolerance=tolerance)
    errors = ((estimate - prior) ** 2).mean(axis=1)
    return SimulatedError(float(errors.mean()), float(errors.std(ddof=1) / n_simulations**0.5))
