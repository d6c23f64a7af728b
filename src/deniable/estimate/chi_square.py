"""A χ² test of independence on randomized pairs that keeps its level.

The hypothesis is that π = αβᵀ in the population that rows were drawn from; released pairs are then
multinomial with probabilities θ⁰ = M(αβᵀ), M the channel on the pair. The statistic depends on M
(docs/proofs/estimation.md, section 5, has the derivations):

* *randomized together* (a joint law, or forms): X² = n Σ (θ − θ⁰)²/θ⁰ at the maximum likelihood
  fit, less the scores' quadratic form where the fit stops (Theorem 10). The fit may put some α_i a
  little below zero as long as every θ⁰ is positive: inside the simplex X² has another limit under
  strong noise. (λ = 0.05, 3 × 4 categories, 2,000 rows: a nominal 5 % was 4.9 % this way and 6.9 %
  inside the simplex.)
* *randomized independently*, M = M_a ⊗ M_b: the usual statistic of the released table, of the
  contrasts that M_a and M_b reach (Theorem 11). Outputs that no row has are left out.
* *parts of a merged attribute* under a response matrix, and *among some categories*, those of
  respondents with a value: the Wald statistic of Ĉ = π̂ − α̂β̂ᵀ, not centred (Theorem 12).

These have (a − 1)(b − 1) degrees of freedom; without randomization they are Pearson's test without
continuity correction. In a survey, or with weights, F = X²/tr Δ has f = tr² Δ/tr Δ² and ν f degrees
of freedom, ν the clusters less the strata (Theorem 14; Rao and Scott 1984; Thomas and Rao 1987):
X² = Ĉᵀ B⁻¹ Ĉ, and Δ compares the survey's covariance with that for independent rows, of the
interactions' log odds at the estimated shares, as in R's survey, or of Ĉ at α̂β̂ᵀ where a share is
not clearly above 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import UNCERTAIN_ERRORS
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Floats, less_mean
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Categories of two attributes, shapes (a,) and (b,)."""


CovarianceOf = Callable[[Floats], Floats]
"""From contributions of released rows to n times some estimates, (m, outputs), to the covariance of
these, (m, m)."""


@dataclass(frozen=True)
class ChiSquare:
    """A test of independence."""

    statistic: float
    degrees_of_freedom: float
    least_expected: float
    denominator: float | None = None
    """Degrees of freedom of the denominator of an F; None of an X²."""

    @property
    def p_value(self) -> float:
        """Probability of so large a statistic if the attributes are independent."""
        from scipy.special import chdtrc, fdtrc  # only here: loading it takes a fifth of a second

        if self.denominator is not None:
            return float(fdtrc(self.degrees_of_freedom, self.denominator, self.statistic))
        return float(chdtrc(self.degrees_of_freedom, self.statistic))


def chi_square(
    counts: Floats,
    forward: TableMap | StackedMap | None,
    inverse: TableMap | StackedMap,
    chosen: Chosen | None = None,
) -> ChiSquare:
    """Test independence of two attributes from counts of released pairs.

    ``counts``: rows by released values, shape of the outputs.
    """
    if forward is None or chosen is not None:
        return _by_estimates(counts, inverse, chosen)
    if isinstance(forward, StackedMap) or randomized_together(forward):
        return _together(counts, forward, inverse)
    return _separately(counts, forward)


def randomized_together(forward: TableMap) -> bool:
    """Return whether a channel on two attributes makes independent ones correlated: φ_ij ≠ φ_i φ_j.

    Rounding errors do not count; where they decide, both ways of testing give the same.
    """
    if forward.joint:
        return True
    if forward.pattern_axes != (0, 1):
        return False
    values = forward.eigenvalues
    separate = values[1, 0] * values[0, 1]
    return bool(abs(values[1, 1] - separate) > 1e-12 * abs(values[1, 1]))


def released_chi_square(counts: Floats) -> ChiSquare:
    """Test independence of the released values themselves: Pearson's test, without correction."""
    shape = (counts.shape[0], counts.shape[1])
    return _separately(counts, TableMap(shape, (), np.ones(()), {}))


def _separately(counts: Floats, forward: TableMap) -> ChiSquare:
    n = counts.sum()
    bases, margins = [], []
    for axis in range(2):
        margin = counts.sum(axis=1 - axis) / n
        seen = margin > 0
        matrix = _matrix(forward, axis)[seen]
        root = np.sqrt(margin[seen])
        # Contrasts of D^{-1/2}M without their part along √θ; their span, by singular values.
        scaled = (matrix[:, :-1] - matrix[:, -1:]) / root[:, None]
        scaled = scaled - np.outer(root, root @ scaled)
        left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
        bases.append(left[:, sizes > 1e-10 * max(1.0, float(sizes[0]))])
        margins.append(np.where(seen, margin, np.nan))
    rows, columns = (np.isfinite(margin) for margin in margins)
    product = np.outer(margins[0][rows], margins[1][columns])
    degrees = bases[0].shape[1] * bases[1].shape[1]
    if degrees == 0:
        raise InputError(
            "all rows have the same released value of one of the two attributes, so no test is "
            "possible"
        )
    residual = (counts[np.ix_(rows, columns)] / n - product) / np.sqrt(product)
    statistic = float(n * ((bases[0].T @ residual @ bases[1]) ** 2).sum())
    return ChiSquare(statistic, degrees, float(n * product.min()))


def _matrix(forward: TableMap, axis: int) -> Floats:
    """Return M_a of a channel that is M_a ⊗ M_b."""
    if axis in forward.matrices:
        return forward.matrices[axis]
    size = forward.n_categories[axis]
    if axis not in forward.pattern_axes:
        return np.eye(size)
    place = [0] * len(forward.pattern_axes)
    place[forward.pattern_axes.index(axis)] = 1
    kept = float(forward.eigenvalues[tuple(place)])
    return np.asarray(kept * np.eye(size) + (1 - kept) / size)


def _together(
    counts: Floats, forward: TableMap | StackedMap, inverse: TableMap | StackedMap
) -> ChiSquare:
    n = float(counts.sum())
    observed = counts / n
    estimate = inverse.apply(observed)
    a, b = estimate.shape
    first, second = (_start(estimate.sum(axis=1 - axis), n) for axis in range(2))
    expected = forward.apply(np.outer(first, second))
    for _ in range(50):  # a fit that has not settled by then costs little: see above
        gain, step = _score(observed, expected, forward, first, second)
        if n * gain < 1e-10:  # of X²
            break
        size = 1.0
        while size > 1e-6:
            new_first = first + size * step[:a]
            new_second = second + size * step[a:]
            new_expected = forward.apply(np.outer(new_first, new_second))
            # No step takes more than nine tenths of a cell's probability, but down to a thousandth
            # of an expected row, which does not change X².
            least = np.maximum(0.1 * expected, np.minimum(expected, 1e-3 / n))
            if np.all(new_expected >= least):
                break
            size /= 2
        else:
            break
        first, second, expected = new_first, new_second, new_expected
    gain, _ = _score(observed, expected, forward, first, second)
    statistic = n * (_reachable(observed, expected, forward, (a, b)) - gain)
    degrees = (a - 1) * (b - 1)
    return ChiSquare(max(statistic, 0.0), degrees, n * float(expected.min()))


def _start(margin: Floats, n: float) -> Floats:
    # Inside the simplex, off its edge: every θ⁰ is positive even if the law never changes both.
    nearest = project_to_simplex(margin)
    return np.asarray(nearest * (1 - 0.5 / n) + 0.5 / (n * len(margin)))


def _reachable(
    observed: Floats, expected: Floats, forward: TableMap | StackedMap, shape: tuple[int, int]
) -> float:
    """Return Σ (θ − θ⁰)²/θ⁰ of the part of θ − θ⁰ that M reaches."""
    residual = ((observed - expected) / np.sqrt(expected)).ravel()
    cells = shape[0] * shape[1]
    if expected.size > cells:
        tables = np.eye(cells).reshape(*shape, cells)
        slopes = forward.apply(tables).reshape(expected.size, cells)
        basis, _ = np.linalg.qr(slopes / np.sqrt(expected).reshape(-1, 1))
        residual = basis.T @ residual
    return float((residual**2).sum())


def _score(
    observed: Floats,
    expected: Floats,
    forward: TableMap | StackedMap,
    first: Floats,
    second: Floats,
) -> tuple[float, Floats]:
    """Return the scores' quadratic form (over n) and the Fisher scoring step of (α, β)."""
    a, b = len(first), len(second)
    # Along e_i − e_last, for either margin; one image under M each.
    contrasts = [np.vstack([np.eye(size - 1), -np.ones(size - 1)]) for size in (a, b)]
    tables = np.concatenate(
        [contrasts[0][:, None, :] * second[:, None], first[:, None, None] * contrasts[1]], axis=2
    )
    slopes = forward.apply(tables).reshape(expected.size, a + b - 2)
    weighted = slopes / expected.reshape(-1, 1)
    score = weighted.T @ (observed - expected).ravel()
    step = np.linalg.solve(slopes.T @ weighted, score)
    moved = np.concatenate([contrasts[0] @ step[: a - 1], contrasts[1] @ step[a - 1 :]])
    return float(score @ step), moved


def _by_estimates(
    counts: Floats, inverse: TableMap | StackedMap, chosen: Chosen | None
) -> ChiSquare:
    n, frequencies = float(counts.sum()), counts / counts.sum()
    table, of_table = table_influence(frequencies, inverse, chosen)
    product, excess, columns = _excess(table, of_table)
    free = len(excess)
    if isinstance(inverse, StackedMap):
        columns = less_mean(columns, frequencies.ravel(), inverse)
    covariance = (columns * frequencies.ravel()) @ columns.T / n
    statistic = float(excess @ np.linalg.solve(covariance, excess))
    if chosen is None:
        product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n**2
        product = product[product > 0]
    else:
        product = product * inverse.apply(frequencies)[np.ix_(*chosen)].sum()
    return ChiSquare(statistic, free, n * max(float(product.min()), 0.0))


def _excess(table: Floats, of_table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return α̂β̂ᵀ, and of Ĉ without its last row and column, flat, the values and the contributions
    of one released row to n times these, (m, outputs)."""
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    columns = interaction_influence(table, of_table)[:-1, :-1]
    return product, (table - product)[:-1, :-1].ravel(), columns.reshape(-1, columns.shape[-1])


def survey_chi_square(
    frequencies: Floats,
    forward: TableMap | StackedMap | None,
    inverse: TableMap | StackedMap,
    n_records: int,
    covariance_of: CovarianceOf,
    degrees_of_freedom: int,
    chosen: Chosen | None = None,
) -> ChiSquare:
    """Test independence of two attributes in a survey.

    ``frequencies``: θ, weighted. ``covariance_of``: in the survey. ``degrees_of_freedom``: ν.
    """
    table, of_table = table_influence(frequencies, inverse, chosen)
    product, excess, columns = _excess(table, of_table)
    null = frequencies
    if forward is not None and chosen is None:
        nearest = (project_to_simplex(table.sum(axis=1 - axis)) for axis in range(2))
        null = forward.apply(np.outer(*nearest))
    base = independent_covariance(null, inverse, n_records)(columns)
    statistic = float(excess @ np.linalg.solve(base, excess))
    cells = of_table.reshape(table.size, -1)
    errors = np.sqrt(np.diag(covariance_of(cells)))
    if (table.ravel() > UNCERTAIN_ERRORS * errors).all():
        contrasts = [np.vstack([np.eye(n - 1), -np.ones(n - 1)]) for n in table.shape]
        columns = (np.kron(*contrasts) / table.reshape(-1, 1)).T @ cells
        base = independent_covariance(frequencies, inverse, n_records)(columns)
    effects = np.linalg.solve(base, covariance_of(columns))
    total = float(np.trace(effects))
    free = total**2 / float(np.trace(effects @ effects))
    least = n_records * max(float(product.min()), 0.0)
    return ChiSquare(statistic / total, free, least, free * degrees_of_freedom)


def independent_covariance(
    frequencies: Floats, inverse: TableMap | StackedMap, n_records: float
) -> CovarianceOf:
    """Return the covariance for independent rows."""
    flat = frequencies.ravel()

    def covariance_of(columns: Floats) -> Floats:
        centred = less_mean(columns, flat, inverse)
        return np.asarray((centred * flat) @ centred.T / n_records)

    return covariance_of


def table_influence(
    frequencies: Floats, inverse: TableMap | StackedMap, chosen: Chosen | None = None
) -> tuple[Floats, Floats]:
    """Return π̂ and the contribution of one released row to n π̂, shape (a, b, outputs); among chosen
    categories π̂ are the shares of these."""
    table = inverse.apply(frequencies)
    cells = np.eye(table.size).reshape(*table.shape, table.size)
    rows = inverse.transposed().apply(cells).reshape(frequencies.size, table.size)
    columns = rows.T.reshape(*table.shape, frequencies.size)
    if chosen is None:
        return table, columns
    table, columns = table[np.ix_(*chosen)], columns[np.ix_(*chosen)]
    total = table.sum()
    table = table / total
    return table, (columns - table[..., None] * columns.sum(axis=(0, 1))) / total


def interaction_influence(table: Floats, influence: Floats) -> Floats:
    """Return the contribution of one released row to n Ĉ, shape (a, b, outputs)."""
    first, second = table.sum(axis=1), table.sum(axis=0)
    columns = influence - first[:, None, None] * influence.sum(axis=0)
    return np.asarray(columns - second[None, :, None] * columns.sum(axis=1)[:, None, :])
