"""A proof that no mechanism within the limits estimates better, checked without any solver.

Write C = K − ppᵀ and G = D − ppᵀ, D = diag(p), K = Σ_y q_y q_yᵀ/(1·q_y). Every mechanism has
n·N·MSE ≥ tr(G C⁺ G). Take any n x n matrix Z and any vector λ, and let

    m = max(0, max over extreme rows of cost 1 of ‖Zᵀq‖²/(1·q) − λ·q).

By Cauchy–Schwarz tr(ZᵀG)² ≤ tr(ZᵀCZ) tr(G C⁺ G), and with Σ q_y = p and total cost at most b

    tr(ZᵀCZ) = Σ_y ‖Zᵀq_y‖²/(1·q_y) − ‖Zᵀp‖² ≤ λ·p + m b − ‖Zᵀp‖²,

so that tr(ZᵀG)²/(λ·p + m b − ‖Zᵀp‖²) is a lower bound. Whatever found Z and λ need not be trusted.
"""

from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.solvers.matrices.frontier_rows import Limits, extreme_rows
from deniable.solvers.problem import FloatArray

_UNIT = float(np.finfo(np.float64).eps) / 2

# Another machine may add up in another order; its own rigorous bound then differs by about this.
_CLAIM_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claimed lower bound with what proves it.

    Attributes:
        limits: the prior and the privacy asked for.
        directions: Z, shape (n, n).
        multipliers: λ, shape (n,).
        claim: the lower bound on n·N·MSE that is claimed.
    """

    limits: Limits
    directions: FloatArray
    multipliers: FloatArray
    claim: float

    @property
    def record_mse(self) -> float:
        """The claimed lower bound on N·MSE."""
        return self.claim / self.limits.n_categories


def certify(limits: Limits, directions: FloatArray, multipliers: FloatArray) -> Certificate:
    """Return the certificate that claims all that Z and λ prove.

    Raises:
        InputError: if the shapes do not fit or there are too many categories to enumerate rows.
    """
    proven = proven_bound(limits, directions, multipliers)
    return Certificate(limits, directions, multipliers, proven * (1.0 - _CLAIM_SLACK))


def verify(certificate: Certificate) -> float:
    """Recompute what Z and λ prove, and return it: a lower bound on n·N·MSE.

    Raises:
        InputError: if that is less than the certificate claims.
    """
    proven = proven_bound(certificate.limits, certificate.directions, certificate.multipliers)
    if not proven >= certificate.claim:
        raise InputError(
            f"certificate: it claims a bound of {certificate.claim:.12g}, but proves only "
            f"{proven:.12g}"
        )
    return proven


def proven_bound(limits: Limits, directions: FloatArray, multipliers: FloatArray) -> float:
    """The lower bound on n·N·MSE that Z and λ prove, rounded down rigorously; 0 if none.

    A sum of N products has an error of at most about N u times the sum of their absolute values,
    in whatever order it is added up (Higham 2002, section 3.1). Every quantity is therefore
    evaluated with its sum of absolute values, and moved by θ = 8(n + 8) u times that to the safe
    side; u = 2⁻⁵³. This covers the rounding of the rows and of the prior as well.

    Raises:
        InputError: if the shapes do not fit or there are too many categories to enumerate rows.
    """
    return bound_over(limits, extreme_rows(limits), directions, multipliers)


def bound_over(
    limits: Limits, rows: FloatArray, directions: FloatArray, multipliers: FloatArray
) -> float:
    """As `proven_bound`, with the extreme rows at hand; a bound only if all of them are given.

    Args:
        limits: the prior and the privacy asked for.
        rows: `extreme_rows(limits)`.
        directions: Z, shape (n, n).
        multipliers: λ, shape (n,).

    Raises:
        InputError: if the shapes do not fit.
    """
    n = limits.n_categories
    Z, multiplier = np.asarray(directions, float), np.asarray(multipliers, float)
    if Z.shape != (n, n) or multiplier.shape != (n,):
        raise InputError(f"certificate: it needs a {n} x {n} matrix and {n} multipliers")
    if not (np.isfinite(Z).all() and np.isfinite(multiplier).all()):
        raise InputError("certificate: every number must be finite")
    theta = 8.0 * (n + 8) * _UNIT
    p = limits.prior
    excess = _most_excess(rows, Z, multiplier, theta)
    # Denominator, rounded up: λ·p + m b − ‖Zᵀp‖².
    along, along_size = Z.T @ p, np.abs(Z).T @ p
    spent = excess * limits.budget
    bottom = float(multiplier @ p + spent - along @ along)
    size = float(np.abs(multiplier) @ p + spent + along_size @ along_size)
    bottom += theta * size
    # Numerator, rounded down: tr(ZᵀD) − pᵀZp.
    diagonal = np.diag(Z)
    top = float(diagonal @ p - p @ Z @ p)
    top -= theta * float(np.abs(diagonal) @ p + p @ np.abs(Z) @ p)
    if top <= 0.0 or bottom <= 0.0:
        return 0.0
    return top / bottom * top * (1.0 - theta)


def _most_excess(rows: FloatArray, Z: FloatArray, multiplier: FloatArray, theta: float) -> float:
    """m, rounded up."""
    total = rows.sum(axis=1)
    image = np.abs(rows @ Z) + theta * (rows @ np.abs(Z))
    spread = (image * image).sum(axis=1) / total
    price = rows @ multiplier
    size = spread + rows @ np.abs(multiplier)
    return max(0.0, float((spread - price + theta * size).max()))
