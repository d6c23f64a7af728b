"""Likelihood of a regression row by row: covariates are known by row, some may be randomized.

Row r has clean covariates x_r and shows a value o_r of the randomized attributes: of the response
y, of covariates z, or of both. With V_r[z, y] = Pr[o_r | z, y] from the channel (an unchanged
response has the factor 1[y = y_r]),

    q_r = Σ_z ρ_z t_z,    t_z = Σ_y π(y | z, x_r) V_r[z, y],    ρ_z = Pr[z | x_r],

and the log-likelihood is Σ w_r ln q_r. π is multinomial in u = X(z, x)β, or proportional odds,
Pr[y ≤ k] = F(τ_k − X(z, x)β); ρ is multinomial in W(x)γ with contrasts C of the combinations z, W
the formula's columns of clean covariates. Without randomized covariates q = t.

Derivatives, by linear predictors: a_z = (ρ_z/q) ∂t_z/∂u_z and d_z = ρ_z (t_z − q)/q. The score of
a row is s = (Σ_z a_z ⊗ X_z, Σ_z d_z C_z ⊗ W). With P = (Σ_z ρ_z C_z) ⊗ W the observed information
of a row is ssᵀ less

    ββ: Σ_z (ρ_z/q) ∂²t_z/∂u_z² ⊗ X_z X_zᵀ
    βγ: Σ_z (a_z ⊗ X_z)(C_z ⊗ W)ᵀ − s_β Pᵀ
    γγ: Σ_z d_z C_z C_zᵀ ⊗ WWᵀ − P s_γᵀ − s_γ Pᵀ.

Where it is not positive definite a step uses Σ w ssᵀ in its place (Berndt, Hall, Hall and Hausman
1974). Sums run over distinct rows in batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.survey import Survey, total_variance
from deniable.models.likelihood import Derivatives

Floats = NDArray[np.float64]

MOST_AT_ONCE = 1_000_000
"""Numbers of a batch's design."""


@dataclass(frozen=True)
class RowTerm:
    """The columns of a term by row.

    ``values``: shape (1 or combinations of randomized covariates, distinct values, columns).
    ``places``: index of every row among the distinct values, shape (n,); None of values by row.
    """

    names: tuple[str, ...]
    values: Floats
    places: NDArray[np.int32] | None

    @property
    def spread(self) -> Floats:
        """Standard deviation of every column of numbers over its values other than 0; 1 for
        indicators; shape (columns,)."""
        of = np.ones(len(self.names))
        for i, column in enumerate(np.moveaxis(self.values, -1, 0)):
            if np.any((column != 0) & (abs(column) != 1)):
                of[i] = column[column != 0].std() or 1.0
        return of


def columns_in(terms: tuple[RowTerm, ...], rows: slice) -> Floats:
    """Return the columns of some rows, shape (1 or combinations, rows, columns)."""
    parts = [t.values[:, rows if t.places is None else t.places[rows]] for t in terms]
    n = max(len(part) for part in parts)
    return np.concatenate([np.broadcast_to(p, (n, *p.shape[1:])) for p in parts], axis=2)


class _Link(NamedTuple):
    """t, shape (Z, n); its derivatives by u, (Z, n, K − 1) and (Z, n, K − 1, K − 1)."""

    value: Floats
    change: Floats
    bend: Floats


def multinomial_shares(u: Floats) -> Floats:
    """Return the shares of answers from log odds against the first, on the last axis."""
    scores = np.stack([np.zeros(u.shape[:-1]), *np.moveaxis(u, -1, 0)])
    weights = np.exp(scores - scores.max(axis=0))
    return np.moveaxis(weights / weights.sum(axis=0), 0, -1)


def cumulative_shares(u: Floats) -> Floats:
    """Return the shares of ordered answers from log odds of Pr[y ≤ k], on the last axis."""
    from scipy.special import expit  # only here: loading it takes a while

    ends = (*u.shape[:-1], 1)
    below = np.concatenate([np.zeros(ends), expit(u), np.ones(ends)], axis=-1)
    return np.diff(below, axis=-1)


def _multinomial(u: Floats, v: Floats) -> _Link:
    share = multinomial_shares(u)
    t = (share * v).sum(axis=-1)
    change = (share * (v - t[..., None]))[..., 1:]
    half = -change[..., :, None] * share[..., None, 1:]
    bend = half + np.swapaxes(half, -1, -2)
    k = np.arange(u.shape[-1])
    bend[..., k, k] += change
    return _Link(t, change, bend)


def _cumulative(u: Floats, v: Floats) -> _Link:
    from scipy.special import expit

    below, step = expit(u), v[..., :-1] - v[..., 1:]
    t = v[..., -1] + (step * below).sum(axis=-1)
    change = step * below * (1 - below)
    bend = np.zeros((*u.shape, u.shape[-1]))
    k = np.arange(u.shape[-1])
    bend[..., k, k] = change * (1 - 2 * below)
    return _Link(t, change, bend)


@dataclass(frozen=True)
class RowLikelihood:
    """The likelihood of a regression given distinct rows.

    ``terms``: of X. ``clean``: of W. ``shown``: index of every row on the channel's second axis,
    shape (n,). ``channel``: V, shape (combinations z, shown values, answers). ``contrasts``: C,
    shape (combinations, m); m is 0 without randomized covariates. ``weights``: number, or sum of
    weights, of every distinct row, scaled to the effective number of rows. ``squares``: sums of
    squared weights in the same scale; None if unweighted. ``columns``, ``clean_columns``: the
    places of the columns in use.
    """

    terms: tuple[RowTerm, ...]
    clean: tuple[RowTerm, ...]
    shown: NDArray[np.int32]
    channel: Floats
    contrasts: Floats
    weights: Floats
    squares: Floats | None
    ordered: bool
    columns: NDArray[np.int64]
    clean_columns: NDArray[np.int64]
    survey: Survey | None = None
    lift: Floats = field(init=False, repr=False)
    """From the coefficients to those of every predictor, shape ((K − 1)·q, p)."""

    def __post_init__(self) -> None:
        q, k = len(self.columns), self.channel.shape[2] - 1
        lift = np.eye(k * q)
        if self.ordered:  # u_k = τ_k − Xβ; the first column is 1
            lift = np.zeros((k, q, k + q - 1))
            lift[np.arange(k), 0, np.arange(k)] = 1
            lift[:, 1:, k:] = -np.eye(q - 1)
            lift = lift.reshape(k * q, -1)
        object.__setattr__(self, "lift", lift)

    @property
    def n_coefficients(self) -> int:
        """Coefficients of the response; those of randomized covariates follow."""
        return int(self.lift.shape[1])

    @property
    def n_parameters(self) -> int:
        """All parameters."""
        return self.n_coefficients + int(self.contrasts.shape[1]) * len(self.clean_columns)

    @property
    def start(self) -> Floats:
        """Parameters to start from: equal shares."""
        at = np.zeros(self.n_parameters)
        if self.ordered:
            k = self.channel.shape[2]
            below = np.arange(1, k) / k
            at[: k - 1] = np.log(below / (1 - below))
        return at

    def batches(self) -> Iterator[slice]:
        """Yield the rows of every batch."""
        width = self.channel.shape[0] * max(self.n_parameters, self.channel.shape[2] ** 2)
        step, n = max(64, MOST_AT_ONCE // max(width, 1)), len(self.shown)
        return (slice(i, min(i + step, n)) for i in range(0, n, step))

    def _seen(self, rows: slice) -> Floats:
        """Return V of some rows, shape (Z, n, K), in memory answer by answer: sums over answers are
        several times faster so."""
        return np.moveaxis(np.moveaxis(self.channel, 2, 0)[:, :, self.shown[rows]], 0, -1)

    def _predictors(self, rows: slice, parameters: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return X, u, W and ρ, shapes (Z, n, q), (Z, n, K − 1), (n, columns) and (Z, n)."""
        p, k = self.n_coefficients, self.channel.shape[2] - 1
        x = columns_in(self.terms, rows)[:, :, self.columns]
        x = np.broadcast_to(x, (len(self.channel), *x.shape[1:]))
        u = x @ (self.lift @ parameters[:p]).reshape(k, -1).T
        n, m = x.shape[1], self.contrasts.shape[1]
        if not m:
            return x, u, np.zeros((n, 0)), np.ones((1, n))
        w = columns_in(self.clean, rows)[0][:, self.clean_columns]
        scores = w @ (self.contrasts @ parameters[p:].reshape(m, -1)).T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return x, u, w, (weights / weights.sum(axis=1, keepdims=True)).T

    def height(self, parameters: Floats) -> float:
        """Return the log-likelihood in nats; −∞ where thresholds are out of order."""
        total, shares = 0.0, cumulative_shares if self.ordered else multinomial_shares
        if self.ordered and (np.diff(parameters[: self.channel.shape[2] - 1]) <= 0).any():
            return -np.inf
        for rows in self.batches():
            _, u, _, rho = self._predictors(rows, parameters)
            seen = (rho * (shares(u) * self._seen(rows)).sum(axis=-1)).sum(axis=0)
            if not (seen > 0).all():
                return -np.inf
            total += float(self.weights[rows] @ np.log(seen))
        return total

    def derivatives(self, parameters: Floats) -> Derivatives:
        """Return score, Σ w ssᵀ and observed information."""
        p = self.n_parameters
        score, outer, bends = np.zeros(p), np.zeros((p, p)), np.zeros((p, p))
        for rows in self.batches():
            weights = self.weights[rows]
            scores, bend = self._of_batch(rows, parameters, weights)
            score += weights @ scores
            outer += scores.T @ (scores * weights[:, None])
            bends += bend
        return Derivatives(score, outer, outer - bends)

    def squared_scores(self, parameters: Floats) -> Floats | None:
        """Return the variance of the score: Σ w²ssᵀ, or of clusters within strata; None of rows
        without weights or clusters."""
        if self.survey is None and self.squares is None:
            return None
        p = self.n_parameters
        total = np.zeros((p, p))
        sums = np.zeros((0 if self.survey is None else len(self.survey.stratum), p))
        for rows in self.batches():
            scores, _ = self._of_batch(rows, parameters)
            if self.survey is not None:
                np.add.at(sums, self.survey.cluster[rows], scores * self.weights[rows, None])
            elif self.squares is not None:
                total += scores.T @ (scores * self.squares[rows, None])
        return total if self.survey is None else total_variance(sums, self.survey.stratum)

    def _of_batch(
        self, rows: slice, parameters: Floats, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the rows' scores, shape (n, p), and with weights the sum of ∂²q/q, shape (p, p)"""
        x, u, w, rho = self._predictors(rows, parameters)
        (n_z, n, q), k, m = x.shape, u.shape[2], self.contrasts.shape[1]
        t, change, bend = (_cumulative if self.ordered else _multinomial)(u, self._seen(rows))
        seen = np.maximum((rho * t).sum(axis=0), 1e-300)
        part = rho / seen
        a, d = part[..., None] * change, part * (t - seen)
        own = np.einsum("znk,znq->nkq", a, x).reshape(n, k * q)
        of_z = ((d.T @ self.contrasts)[:, :, None] * w[:, None, :]).reshape(n, -1)
        scores = np.hstack([own @ self.lift, of_z])
        if weights is None:
            return scores, np.zeros((0, 0))
        flat = x.reshape(n_z * n, q)
        ours = np.zeros((k, q, k, q))
        for i, j in np.ndindex(k, k):
            if i <= j and not (self.ordered and i != j):
                by_row = (weights * part * bend[..., i, j]).ravel()
                ours[i, :, j] = flat.T @ (flat * by_row[:, None])
                ours[j, :, i] = ours[i, :, j]
        second = np.zeros((scores.shape[1],) * 2)
        p = self.n_coefficients
        second[:p, :p] = self.lift.T @ ours.reshape(k * q, k * q) @ self.lift
        if m:
            mean = ((rho.T @ self.contrasts)[:, :, None] * w[:, None, :]).reshape(n, -1)
            crossed, inner = np.zeros((k, q, m, w.shape[1])), np.zeros((m, w.shape[1]) * 2)
            for z, contrast in enumerate(self.contrasts):
                for i in range(k):
                    by_row = (weights * a[z, :, i])[:, None]
                    crossed[i] += (x[z].T @ (w * by_row))[:, None, :] * contrast[:, None]
                among = w.T @ (w * (weights * d[z])[:, None])
                inner += np.einsum("i,j,ab->iajb", contrast, contrast, among)
            weighted = mean * weights[:, None]
            both = self.lift.T @ (crossed.reshape(k * q, -1) - own.T @ weighted)
            second[:p, p:], second[p:, :p] = both, both.T
            across = weighted.T @ of_z
            second[p:, p:] = inner.reshape(across.shape) - across - across.T
        return scores, second
