"""What can be said of estimates before there are data.

A pattern law multiplies the covariance C of two attributes' indicators by φ_ij and adds what
:mod:`deniable.estimate.covariance` derives; response matrices turn it into M_i C M_jᵀ.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.strength import single_attenuations


@dataclass(frozen=True)
class CovariancePrediction:
    """What a mechanism leaves of the covariance of two attributes, before there are data.

    Args:
        attributes: their names.
        share: what every covariance of scores, and every entry of the indicators' covariance, is
            multiplied by, φ_ij. None under a response matrix that treats contrasts differently.
        spurious: φ_ij − φ_i φ_j: how much of (α − 1/a_i)(β − 1/a_j)ᵀ is added to it.
        least_share, most_share: between which factors the root of the sum of squares of the
            indicators' covariance is multiplied; both |share| where there is one.
    """

    attributes: tuple[str, str]
    share: float | None
    spurious: float
    least_share: float
    most_share: float

    @property
    def warning(self) -> str:
        """What a reader of a raw cross-table has to know; empty under independent responses."""
        if self.spurious == 0:
            return ""
        first, second = self.attributes
        return (
            f"'{first}' and '{second}' are randomized together: the release shows a covariance "
            "also where they are independent. Do not read it off the released table; estimate it."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "attributes": list(self.attributes),
            "share": self.share,
            "spurious": self.spurious,
            "least_share": self.least_share,
            "most_share": self.most_share,
        }

    def of_scores(
        self, covariance: float, first_excess: float = 0.0, second_excess: float = 0.0
    ) -> float | None:
        """Return the expected covariance of scores in the release; None without a share.

        Args:
            covariance: of the true scores.
            first_excess, second_excess: mean of the true scores less the plain average of the
                scores over the categories; matters under joint laws only.
        """
        if self.share is None:
            return None
        return self.share * covariance + self.spurious * first_excess * second_excess


def predict_covariance(mechanism: Mechanism, first: str, second: str) -> CovariancePrediction:
    """Return what is left of the covariance of two attributes (Ruiz, equation (9), and its general
    form for joint laws).

    Raises:
        InputError: if an attribute is unknown, or the two are one, or a part of a merged attribute
            with a response matrix is asked for: what is left depends on its other parts too.
    """
    channel = Channel(mechanism, (first, second))
    if channel.shared_matrices:
        raise InputError(
            f"what is left of the covariance of '{first}' and '{second}' is not known beforehand: "
            f"'{channel.shared_matrices[0]}' is randomized as one by a matrix, so that it depends "
            "on all of its parts"
        )
    positions = channel.positions
    blocks = [mechanism.block_of(position) for position in positions]
    if blocks[0][0] is blocks[1][0]:
        eigenvalues = channel.forward.eigenvalues
        if eigenvalues.ndim < 2:  # both released as they are
            return CovariancePrediction((first, second), 1.0, 0.0, 1.0, 1.0)
        share = float(eigenvalues[1, 1])
        spurious = share - float(eigenvalues[1, 0]) * float(eigenvalues[0, 1])
        # A product law's share is the product itself: no rounding error is to look like a term.
        spurious = 0.0 if abs(spurious) <= 4e-16 * abs(share) else spurious
        return CovariancePrediction((first, second), share, spurious, abs(share), abs(share))
    singles = [single_attenuations(block.law)[place] for block, place in blocks]
    if singles[0] is not None and singles[1] is not None:
        share = singles[0] * singles[1]
        return CovariancePrediction((first, second), share, 0.0, abs(share), abs(share))
    least = most = 1.0
    for axis, single in enumerate(singles):
        if single is None:
            weakest, strongest = _contrast_range(channel.forward.matrices[axis])
        else:
            weakest = strongest = abs(single)
        least, most = least * weakest, most * strongest
    return CovariancePrediction((first, second), None, 0.0, least, most)


def _contrast_range(matrix: NDArray[np.float64]) -> tuple[float, float]:
    # Rows and columns of C add up to 0: only what M does to such vectors counts.
    n = matrix.shape[1]
    contrasts = np.linalg.svd(np.full((1, n), 1.0))[2][1:].T
    values = np.linalg.svd(matrix @ contrasts, compute_uv=False)
    return float(values.min()), float(values.max())
