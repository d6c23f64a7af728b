"""An outcome given all other attributes, from the tables of each with the outcome.

Among all laws π(y | x) with tables M_j of the outcome and attribute j, for x as in a sample, the
model is the one of least

    Σ (M − T)²/(2V) + κ·KL(π(y | x) ‖ π(y)),

T the unbiased tables and V their variances: a logistic (multinomial) regression with a main effect
β of every category, whose dual is convex (relaxed maximum entropy: Chen and Rosenfeld 2000),

    max Σ βT − E ln Σ_y π(y) exp(α_y + Σ_j β_jy) − ½κ Σ Vβ²,    T − M = κVβ at the optimum.

κ is the largest at which the tables deviate by their noise, mean (T − M)²/V = 1 (the discrepancy
principle: Morozov 1966): no association is stronger than the release shows. It has a limit, so that
associations that all agree with independence within their noise are weak in their estimated order.
The margin of y is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import BitSource
from deniable.synthesis.drawing import Choices

SAMPLED = 10_000
"""Most rows of a fit."""

_NUMBERS = 1 << 20
"""Most rows times categories of the outcome in a pass."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """π(y | x) of attributes with given sizes.

    ``base``: π(y), shape (m,). ``effects``: β, then α in the last row, shape (categories + 1, m).
    ``penalty``: κ, in rows.
    """

    sizes: tuple[int, ...]
    base: Floats
    effects: Floats
    penalty: float

    @classmethod
    def fitted(
        cls,
        codes: NDArray[np.integer],
        sizes: Sequence[int],
        tables: Floats,
        variances: Floats,
        base: Floats,
        start: "Outcome | None" = None,
        most: float = 1e6,
    ) -> "Outcome":
        """Fit the model.

        ``codes``: the attributes of sampled rows, shape (attributes, rows). ``tables``,
        ``variances``: T and V, attribute after attribute, shape (categories, m). ``base``: π(y).
        ``start``: another fit, whose κ is used. ``most``: the limit of κ.
        """
        from scipy.optimize import minimize  # only here: slow to load

        sizes, m = tuple(sizes), len(base)
        codes = codes[:, : min(SAMPLED, max(1, _NUMBERS // m))]
        n, q = codes.shape[1], len(tables)
        design = _design(codes, sizes)
        back = design.T.tocsr()
        # Tables with the margins that the sample has.
        shares = np.asarray(design.mean(axis=0))
        tables = tables + (shares - tables.sum(axis=1))[:, None] * base
        offset = np.log(np.maximum(base, 1e-12))

        def dual(scaled: Any, weight: float, scale: Floats) -> tuple[float, Floats]:
            effects = scaled.reshape(q + 1, m) * scale
            scores = design @ effects[:-1] + (effects[-1] + offset)
            top = scores.max(axis=1, keepdims=True)
            shares = np.exp(scores - top)
            total = shares.sum(axis=1, keepdims=True)
            shares /= total
            height = float((np.log(total) + top).mean() - effects[-1] @ base)
            penalty = weight * variances * effects[:-1]
            height += float((effects[:-1] * (0.5 * penalty - tables)).sum())
            change = back @ shares / n - tables + penalty
            change = np.vstack([change, shares.mean(axis=0) - base])
            return height, (change * scale).ravel()

        def solved(effects: Floats, weight: float) -> tuple[Floats, float]:
            # In units in which the second derivatives are near 1.
            bend = np.vstack([np.outer(shares, base) + weight * variances, base])
            scale = 1 / np.sqrt(np.maximum(bend, 1e-12))
            flat = (effects / scale).ravel()
            found = minimize(
                dual,
                flat,
                (weight, scale),
                method="L-BFGS-B",
                jac=True,
                options={"maxiter": 200, "gtol": 1e-5},
            )
            effects = found.x.reshape(q + 1, m) * scale
            return effects, float(np.mean((weight * effects[:-1]) ** 2 * variances))

        if start is not None:
            effects, _ = solved(start.effects, start.penalty)
            return cls(sizes, base, effects, start.penalty)
        effects, above, penalty = np.zeros((q + 1, m)), None, most
        effects, off = solved(effects, penalty)
        while off > 1 and penalty > 1:
            above = off
            penalty /= 4
            effects, off = solved(effects, penalty)
        if above is not None and off < 1:
            # Between the last two by the slope of logarithms.
            penalty *= 4 ** (np.log(1 / off) / np.log(above / off))
        effects, _ = solved(effects, penalty)
        return cls(sizes, base, effects, penalty)

    def shares(self, codes: NDArray[np.integer]) -> Floats:
        """Return π(y | x) of rows, shape (n, m), from their attributes, shape (attributes, n)."""
        scores = _design(codes, self.sizes) @ self.effects[:-1] + self.effects[-1]
        scores += np.log(np.maximum(self.base, 1e-12))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def drawn(self, codes: NDArray[np.integer], bits: BitSource) -> NDArray[np.int64]:
        """Return outcomes of rows, shape (n,), from their attributes, shape (attributes, n)."""
        step = max(1, _NUMBERS // len(self.base))
        found = [np.zeros(0, dtype=np.int64)]
        for start in range(0, codes.shape[1], step):
            shares = self.shares(codes[:, start : start + step])
            found.append(Choices(shares).draw(np.arange(len(shares)), bits))
        return np.concatenate(found)


def _design(codes: NDArray[np.integer], sizes: Sequence[int]) -> Any:
    """Return the indicators of the categories of every row, sparse, shape (n, categories)."""
    from scipy.sparse import csr_array

    k, n = codes.shape
    starts = np.cumsum([0, *sizes])
    places = (codes.T.astype(np.int64) + starts[:-1]).ravel()
    pointers = np.arange(0, k * n + 1, k)
    return csr_array((np.ones(k * n), places, pointers), shape=(n, int(starts[-1])))
