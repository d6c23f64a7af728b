"""Maximum likelihood of log-linear models from randomized counts.

The cells' probabilities are π(β) ∝ exp(Xβ). Rows counted together show θ_c = M_c π, with M_c the
channel on the model's attributes, one projection of the law or of a form after the other. The fit
is the β of largest

    ℓ(β) − ½βᵀPβ,    ℓ(β) = Σ_c n_c·ln θ_c,

P the precisions of independent normal priors with mean 0 (or 0). With J = diag(π)(X − 1πᵀX)
and G_c = M_c J, the score is Σ G_cᵀ(n_c/θ_c) − Pβ and the expected information
Σ m_c G_cᵀ diag(1/θ_c) G_c + P, where m_c is n, or of several strata the rows of each; Fisher
scoring takes steps of one over the other, halved until the objective rises. Where strong noise
makes expected and observed curvature differ by a factor of two scoring swings back and forth; so a
step uses the observed one where that is positive definite,

    Σ G_cᵀ diag(n_c/θ_c²) G_c − Σ_x (u_x − n) π_x (X_x − m)(X_x − m)ᵀ + P,

with u = Σ M_cᵀ(n_c/θ_c) and m = πᵀX. Errors are made from the expected information. This is a
composite link function (Thompson and Baker 1981); for misclassified tables van den Hout and van der
Heijden (2002). The channel is applied to the columns of J by its eigenvalues: no matrix over
cells × cells.

Weights: rows count as n_eff = (Σw)²/Σw² together, and the covariance is the sandwich
A⁻¹(B + P)A⁻¹, A the information with the prior and B the scores' squares by squared weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.known import Margins, margin_members
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

MOST_STEPS = 200
_NEAR = 1e-18
"""A fit has converged when the squared step, in standard errors, is below this."""
_ROUNDED = 1e-12
"""A squared step below this that the last step did not halve is rounding."""
_SMALLEST = 1e-300
CERTAIN = 1e6
"""Weight of every known margin as a multiple of the rows: it holds to six digits."""


@dataclass(frozen=True)
class Observed:
    """Released rows, counted, all through one channel.

    ``counts``: sums of weights by released value, any shape. ``column``: the rows' index on the
    cells' last axis, that of kept columns.
    """

    forward: TableMap | StackedMap
    counts: NDArray[np.float64]
    squares: NDArray[np.float64] | None = None
    column: int = 0

    def seen(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expectation of tables, shape (*attributes, columns, m), as (released, m)."""
        axes = len(self.forward.n_categories)
        image = self.forward.apply(table[(slice(None),) * axes + (self.column,)])
        return image.reshape(-1, table.shape[-1])

    def back(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transposed channel's image of numbers per released value, flat."""
        return self.forward.transposed().apply(released.reshape(self.counts.shape)).ravel()


@dataclass(frozen=True)
class KnownShares:
    """Known margins, with a weight far above that of the rows.

    ``members``: indicators of the cells of each share, shape (shares, cells). ``shares``:
    positive, shape (shares,); those of one margin sum to 1.
    """

    members: NDArray[np.float64]
    shares: NDArray[np.float64]


def known_shares(
    known: Margins | None, categories: Mapping[str, Sequence[str]]
) -> tuple[KnownShares, ...]:
    """Return those margins that are of some attributes, by the cells of their table; raises as
    :func:`~deniable.estimate.known.margin_members`."""
    found = [] if known is None else margin_members(known, categories)
    return tuple(KnownShares(members, shares) for members, shares in found)


class Derivatives(NamedTuple):
    """Of a log-likelihood: score, (p,), expected information and observed curvature, (p, p)."""

    score: NDArray[np.float64]
    information: NDArray[np.float64]
    curvature: NDArray[np.float64]


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a table of cells given all that was released of it."""

    shape: tuple[int, ...]
    observed: tuple[Observed, ...]
    known: tuple[KnownShares, ...] = ()
    certain: float = CERTAIN

    @cached_property
    def total(self) -> float:
        """Sum of the rows' weights."""
        return float(sum(each.counts.sum() for each in self.observed))

    @property
    def occurring(self) -> NDArray[np.bool_]:
        """Combinations of values of kept columns that occur, as a mask."""
        found = np.zeros(self.shape[-1], dtype=bool)
        found[[each.column for each in self.observed if each.counts.any()]] = True
        return found

    @cached_property
    def n_effective(self) -> float:
        """(Σw)²/Σw², the number of rows without weights."""
        squares = (e.counts if e.squares is None else e.squares for e in self.observed)
        return self.total**2 / float(sum(each.sum() for each in squares))

    def _counted(self) -> Iterator[tuple[Observed, NDArray[np.float64]]]:
        # Weights are scaled so that all rows count as their effective number.
        scale = self.n_effective / self.total
        return ((each, scale * each.counts.ravel()) for each in self.observed)

    def log_likelihood(self, probabilities: NDArray[np.float64]) -> float:
        """Return Σ n·ln θ in nats, of cells' probabilities, shape (cells,)."""
        table = probabilities.reshape(*self.shape, 1)
        height = 0.0
        for each, counts in self._counted():
            logarithms = np.log(np.maximum(each.seen(table)[:, 0], _SMALLEST))
            height += float(counts @ logarithms)
        return height

    def distance_from_known(self, probabilities: NDArray[np.float64]) -> float:
        """Return the penalty of known margins; near 0 where they hold."""
        height = 0.0
        for known in self.known:
            # Σ m ln(m/θ) = Σ m (d − ln(1 + d)), as both sum to 1: no digits are lost near 0.
            off = known.members @ probabilities / known.shares - 1
            height += float(known.shares @ (off - np.log1p(np.maximum(off, -1 + 1e-15))))
        return self.certain * self.n_effective * height

    def height(self, probabilities: NDArray[np.float64]) -> float:
        """Return the log-likelihood less the penalty of known margins."""
        return self.log_likelihood(probabilities) - self.distance_from_known(probabilities)

    def derivatives(
        self, probabilities: NDArray[np.float64], design: NDArray[np.float64]
    ) -> Derivatives:
        """Return the derivatives by the parameters of a log-linear model: of cells' probabilities,
        shape (cells,), and X, shape (cells, p)."""
        p = design.shape[1]
        centred = design - probabilities @ design
        jacobian = probabilities[:, None] * centred
        together = np.column_stack([jacobian, probabilities]).reshape(*self.shape, p + 1)
        ratios = np.zeros(self.shape)
        expected_information, squares = np.zeros((p, p)), np.zeros((p, p))
        n, of_column = self.n_effective, np.zeros(self.shape[-1])
        for each in self.observed:
            of_column[each.column] += each.counts.sum()
        for each, counts in self._counted():
            # Strata share the rows of their column: their numbers are known, not estimated.
            among = each.counts.sum() / of_column[each.column] if of_column[each.column] else 1.0
            image = each.seen(together)
            theta = np.maximum(image[:, p], _SMALLEST)
            change, ratio = image[:, :p], counts / theta
            expected_information += among * n * change.T @ (change / theta[:, None])
            squares += change.T @ (change * (ratio / theta)[:, None])
            ratios[..., each.column] += each.back(ratio).reshape(self.shape[:-1])
        u = ratios.ravel()
        curvature = squares - centred.T @ (centred * ((u - n) * probabilities)[:, None])
        score = jacobian.T @ u
        for known in self.known:
            weight = self.certain * n
            change, theta = known.members @ jacobian, known.members @ probabilities
            # Less 1, as the changes of a margin sum to 0: the difference keeps its digits.
            score += weight * change.T @ (known.shares / theta - 1)
            information = weight * change.T @ (change / theta[:, None])
            expected_information += information
            curvature += information
        return Derivatives(score, expected_information, curvature)

    def squared_scores(
        self, probabilities: NDArray[np.float64], jacobian: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return Σ w²ss′ of the rows' scores s, as their effective number; None unweighted."""
        if all(each.squares is None for each in self.observed):
            return None
        p = jacobian.shape[1]
        together = np.column_stack([jacobian, probabilities]).reshape(*self.shape, p + 1)
        total = np.zeros((p, p))
        for each in self.observed:
            image = each.seen(together)
            some = image[:, p] > _SMALLEST
            scores = image[some, :p] / image[some, p, None]
            squares = each.counts if each.squares is None else each.squares
            total += (scores * squares.ravel()[some, None]).T @ scores
        return np.asarray(total * (self.n_effective / self.total) ** 2)


@dataclass(frozen=True)
class LogLinearFit:
    """A fitted log-linear model: π ∝ exp(Xβ) on the cells.

    ``design``: X, shape (cells, p), cells in the order of the table, the last axis fastest.
    ``names``: of the parameters, shape (p,). ``parameters``: β at the largest posterior density
    (likelihood without a prior), shape (p,). ``covariance``: of the parameters, shape (p, p).
    ``precision``: of the prior, shape (p,); zeros without. ``log_likelihood``: at the fit, in nats.
    ``penalty``: ½βᵀPβ, in nats.
    """

    shape: tuple[int, ...]
    design: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...]
    parameters: NDArray[np.float64] = field(repr=False)
    covariance: NDArray[np.float64] = field(repr=False)
    precision: NDArray[np.float64] = field(repr=False)
    log_likelihood: float
    penalty: float
    n_records: float
    likelihood: Likelihood = field(repr=False)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """π of the cells, the shape of the table."""
        return probabilities_of(self.design @ self.parameters).reshape(self.shape)

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Of the parameters, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def data_share(self) -> NDArray[np.float64]:
        """How much of the information on each parameter is the data's: 1 − posterior variance over
        prior variance, shape (p,); 1 without a prior."""
        return np.clip(1 - np.diag(self.covariance) * self.precision, 0.0, 1.0)

    @property
    def objective(self) -> float:
        """Log-likelihood less the prior's penalty, which was maximized, in nats."""
        return self.log_likelihood - self.penalty

    def jacobian(self, parameters: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return ∂π/∂β at the fit, or at other parameters; shape (cells, p)."""
        scores = self.design @ (self.parameters if parameters is None else parameters)
        return jacobian_of(self.design, probabilities_of(scores))

    def standard_errors_of_cells(self) -> NDArray[np.float64]:
        """Return the standard errors of the cells' probabilities, the shape of the table."""
        return errors_along(self.jacobian(), self.covariance).reshape(self.shape)


def errors_along(rows: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard errors of combinations of parameters, a row for each."""
    return np.asarray(np.sqrt(np.maximum(((rows @ covariance) * rows).sum(axis=1), 0.0)))


def probabilities_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(scores) scaled to sum to 1."""
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def jacobian_of(
    design: NDArray[np.float64], probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return diag(π)(X − 1πᵀX)."""
    return np.asarray(probabilities[:, None] * (design - probabilities @ design))


def fit_log_linear(
    likelihood: Likelihood,
    design: NDArray[np.float64],
    names: Sequence[str],
    precision: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
) -> LogLinearFit:
    """Fit a log-linear model.

    ``design``: X, shape (cells, p), without a constant column. ``precision``: one over the prior
    variance of each parameter, shape (p,); 0 for none.
    """
    cells, p = design.shape
    if cells != prod(likelihood.shape):
        raise ValueError(f"a design of {cells} rows for {prod(likelihood.shape)} cells")
    start = np.zeros(p) if start is None else start
    parameters, information = maximised(likelihood, design, names, precision, start)
    inverse = inverse_of(information, names)
    prior = np.diag(precision)
    probabilities = probabilities_of(design @ parameters)
    squares = likelihood.squared_scores(probabilities, jacobian_of(design, probabilities))
    covariance = inverse if squares is None else inverse @ (squares + prior) @ inverse
    return LogLinearFit(
        likelihood.shape,
        design,
        tuple(names),
        parameters,
        covariance,
        precision,
        likelihood.log_likelihood(probabilities),
        0.5 * float(precision @ parameters**2),
        likelihood.n_effective,
        likelihood,
    )


class At(NamedTuple):
    """A number at some parameters: its value, its derivatives by them, shape (p,), and the second
    ones, shape (p, p), negative semidefinite; None for zeros, or nearly."""

    value: float
    change: NDArray[np.float64]
    bend: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Held:
    """A penalty that keeps a number near a value: ½·weight·(number − value)² is subtracted from the
    objective."""

    number: Callable[[NDArray[np.float64]], At]
    value: float
    weight: float


def maximised(
    likelihood: Likelihood,
    design: NDArray[np.float64],
    names: Sequence[str],
    precision: NDArray[np.float64],
    start: NDArray[np.float64],
    held: Held | None = None,
    near: float = _NEAR,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the parameters of the largest objective and the information there, with the prior's; a
    number of them may be held. Raises as :func:`fit_log_linear`, whose other arguments these are.
    """
    prior = np.diag(precision)

    def objective(at: NDArray[np.float64]) -> float:
        height = likelihood.height(probabilities_of(design @ at)) - 0.5 * float(precision @ at**2)
        if held is not None:
            height -= 0.5 * held.weight * (held.number(at).value - held.value) ** 2
        return height

    def derivatives(parameters: NDArray[np.float64]) -> Derivatives:
        at = likelihood.derivatives(probabilities_of(design @ parameters), design)
        score, more = at.score - precision * parameters, prior
        if held is not None:
            number = held.number(parameters)
            pull = held.weight * (held.value - number.value)
            score = score + pull * number.change
            more = prior + held.weight * np.outer(number.change, number.change)
            if number.bend is not None and pull > 0:
                more = more - pull * number.bend
        return Derivatives(score, at.information + more, at.curvature + more)

    found, at = climbed(objective, derivatives, names, start, near)
    return found, at.information


def climbed(
    objective: Callable[[NDArray[np.float64]], float],
    derivatives: Callable[[NDArray[np.float64]], Derivatives],
    names: Sequence[str],
    start: NDArray[np.float64],
    near: float = _NEAR,
) -> tuple[NDArray[np.float64], Derivatives]:
    """Return the parameters of the largest objective and its derivatives there. Steps use the
    curvature where it is that of a maximum, and elsewhere the information."""
    parameters = np.array(start, dtype=np.float64)
    height, gain = objective(parameters), np.inf
    for _ in range(MOST_STEPS):
        at = derivatives(parameters)
        step = _newton_step(at.curvature, at.score)
        if step is None:
            step = inverse_of(at.information, names) @ at.score
        before, gain = gain, float(step @ at.score)
        if gain < near or before / 2 < gain < _ROUNDED:
            return parameters, at
        length = 1.0
        while (new := objective(parameters + length * step)) < height - 1e-13 * abs(height):
            length /= 2
        parameters, height = parameters + length * step, new
    raise InputError(
        "the fit does not settle: the release may be too small for this model; leave out "
        "terms, or collapse categories"
    )


def _newton_step(
    curvature: NDArray[np.float64], score: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the Newton step, or None where the curvature is not that of a maximum."""
    scale = 1 / np.sqrt(np.maximum(np.diag(curvature), _SMALLEST))
    scaled = curvature * np.outer(scale, scale)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(scale * np.linalg.solve(scaled, scale * score))


def inverse_of(information: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the inverse, scaled to a unit diagonal first; if it is singular, an error names the
    parameter on which there is least."""
    if not len(information):
        return information
    diagonal = np.diag(information)
    scale = 1 / np.sqrt(np.maximum(diagonal, _SMALLEST))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    if diagonal.min(initial=1.0) <= 0 or values[0] < 1e-13 * values[-1]:
        worst = int(np.argmin(diagonal) if diagonal.min() <= 0 else np.argmax(abs(vectors[:, 0])))
        raise InputError(
            f"the release cannot separate '{names[worst]}' from the rest of the model; leave it "
            "out, collapse categories, or fit with the prior"
        )
    return np.asarray((vectors / values) @ vectors.T * np.outer(scale, scale))
