"""Tests of coefficients and of a whole model."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.models.likelihood import LogLinearFit, jacobian_of
from deniable.numerals import p_text

MOST_SATURATED = 1_000
"""Cells up to which a model is tested against the saturated one."""


@dataclass(frozen=True)
class Test:
    """A test of some coefficients."""

    __test__ = False  # no test of pytest's

    of: str
    statistic: float
    degrees_of_freedom: int
    kind: Literal["likelihood ratio", "Wald", "score"]
    without: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """Probability of a statistic as large under the null hypothesis."""
        from scipy.special import gammaincc  # only here: loading it takes a while

        return float(gammaincc(self.degrees_of_freedom / 2, self.statistic / 2))

    def sentence(self, name: str) -> str:
        """Return the result in words, after the test's name."""
        return (
            f"{name}: χ² {self.statistic:.2f}, {self.degrees_of_freedom} df, "
            f"p {p_text(self.p_value)}."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"without": list(self.without), "p_value": self.p_value}


def wald_test(
    of: str,
    matrix: NDArray[np.float64],
    values: NDArray[np.float64],
    covariance: NDArray[np.float64],
    without: tuple[str, ...],
) -> Test:
    """Return the test of Lβ = 0, with L a matrix of shape (df, q)."""
    off = matrix @ values
    statistic = float(off @ np.linalg.solve(matrix @ covariance @ matrix.T, off))
    return Test(of, statistic, len(off), "Wald", without)


def goodness_of_fit(fit: LogLinearFit) -> Test | None:
    """Return the score test of a log-linear model against the saturated one (Rao): whether, at the
    fit, any direction of the table that the channel leaves would raise the likelihood.

    With s and K score and information of all cells' logarithms, both less their projection
    K X(XᵀKX)⁻¹Xᵀ on the model, it is sᵀK⁻s, χ² with the rank of K degrees of freedom. Known
    margins leave the directions that do not move them.
    """
    from scipy.linalg import null_space  # only here: loading it takes a while

    if fit.design.shape[0] > MOST_SATURATED:
        return None
    probabilities = fit.probabilities.ravel()
    cells = np.eye(probabilities.size)
    saturated = replace(fit.likelihood, known=()).derivatives(probabilities, cells)
    scale = 1 / np.sqrt(fit.n_records * probabilities)
    free, design = cells, fit.design / scale[:, None]
    if fit.likelihood.known:
        moved = np.vstack([known.members for known in fit.likelihood.known])
        moved = moved @ jacobian_of(cells, probabilities) * scale
        free, design = null_space(moved), design @ null_space(moved @ design)
    score = free.T @ (scale * saturated.score)
    information = free.T @ (saturated.information * np.outer(scale, scale)) @ free
    fitted = free.T @ design
    crossed = information @ fitted
    inner = np.linalg.pinv(fitted.T @ crossed, hermitian=True)
    values, vectors = np.linalg.eigh(information - crossed @ inner @ crossed.T)
    some = values > 1e-9
    if not some.any():
        return None
    along = vectors[:, some].T @ (score - crossed @ (inner @ (fitted.T @ score)))
    return Test("the model", float((along**2 / values[some]).sum()), int(some.sum()), "score")
