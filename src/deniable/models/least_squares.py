"""Least squares of a number that is released as it is, on attributes that are randomized.

β = A⁻¹b, A the mean of xxᵀ and b that of xy. Entry by entry these are means of functions of a few
attributes, and every released row has an unbiased estimate of each: the transposed inverse of the
channel on these attributes, applied to the function and read at what the row shows. So only the
attributes of two terms are ever brought together, however many there are. With A_r and b_r what row
r adds, β̂ moves by ψ_r = Â⁻¹(b_r − A_r β̂) times w_r/Σw; the covariance is the sum of the squares,
within forms, as the number of rows of each form is known.

Names: w_r the rows' weights, 1 without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of

CHUNK = 1 << 15
"""Rows whose influences are held at once."""


@dataclass(frozen=True)
class Term:
    """Some columns of a design, as functions of a few variables.

    Args:
        attributes: those that are randomized.
        columns: those that are released as they are.
        values: shape (*categories of the attributes, *values of the columns, columns of the
            design).
    """

    attributes: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64]

    def times(self, other: "Term") -> "Term":
        """Return the products of all columns of one with all of the other, the latter fastest."""
        attributes = tuple(dict.fromkeys([*self.attributes, *other.attributes]))
        columns = tuple(dict.fromkeys([*self.columns, *other.columns]))
        both = [*attributes, *columns]
        first, second = self._over(both), other._over(both)
        product = first[..., :, None] * second[..., None, :]
        return Term(attributes, columns, product.reshape(*product.shape[:-2], -1))

    def _over(self, names: Sequence[str]) -> NDArray[np.float64]:
        own = [*self.attributes, *self.columns]
        order = sorted(range(len(own)), key=lambda axis: names.index(own[axis]))
        moved = np.transpose(self.values, (*order, len(own)))
        sizes = iter(moved.shape[:-1])
        return moved.reshape(*(next(sizes) if n in own else 1 for n in names), moved.shape[-1])


@dataclass(frozen=True)
class Stratum:
    """Rows that one mechanism randomized.

    Args:
        mechanism: it.
        rows: their released codes.
        kept: codes of columns released as they are, by name, shape (n,).
        response: y, shape (n,).
        weights: w, shape (n,).
    """

    mechanism: Mechanism
    rows: KeptRows
    kept: dict[str, NDArray[np.int64]]
    response: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def groups(self) -> NDArray[np.int64]:
        """The form of every row, zeros without forms."""
        form = self.rows.codes.get(len(self.mechanism.schema.attributes))
        return np.zeros(len(self.response), dtype=np.int64) if form is None else form


@dataclass(frozen=True)
class _Read:
    """What every row of a stratum tells of the columns of a term: entries of a table.

    Args:
        places: of each row its place in the table, shape (n,).
        table: shape (places, columns).
    """

    places: NDArray[np.int64]
    table: NDArray[np.float64]

    def total(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum over rows, shape (columns,)."""
        return np.asarray(np.bincount(self.places, weights, minlength=len(self.table)) @ self.table)


def _read(stratum: Stratum, term: Term) -> _Read:
    """Return the unbiased estimates of a term's columns by row.

    Raises:
        InputError: if the randomization has wiped out how the attributes go together.
    """
    sizes = term.values.shape[len(term.attributes) : -1]
    kept = np.zeros(len(stratum.response), dtype=np.int64)
    for name, size in zip(term.columns, sizes, strict=True):
        kept = kept * size + stratum.kept[name]
    columns = term.values.shape[-1]
    if not term.attributes:
        return _Read(kept, term.values.reshape(-1, columns))
    channel = channel_of(stratum.mechanism, term.attributes)
    codes = channel.released_codes(stratum.rows.codes)
    places = np.zeros(len(kept), dtype=np.int64)
    for column, size in zip(codes, channel.n_outputs, strict=True):
        places = places * size + column
    if isinstance(channel, PublishedChannel):
        counts = np.bincount(places, stratum.weights, minlength=prod(channel.n_outputs))
        channel = channel.of_rows(counts.astype(np.float64))
    channel.check(stratum.weights.sum() ** 2 / (stratum.weights**2).sum())
    shape = term.values.shape[: len(term.attributes)]
    table = channel.inverse.transposed().apply(term.values.reshape(*shape, -1))
    return _Read(places * prod(sizes) + kept, table.reshape(-1, columns))


@dataclass(frozen=True)
class LeastSquaresFit:
    """A linear model fitted by least squares.

    Args:
        parameters: β, shape (p,).
        covariance: of them, shape (p, p).
    """

    parameters: NDArray[np.float64]
    covariance: NDArray[np.float64]


def fit_least_squares(
    strata: Sequence[Stratum], terms: Sequence[Term], names: Sequence[str]
) -> LeastSquaresFit:
    """Fit a linear model of a number released as it is.

    Args:
        strata: the rows, by what randomized them.
        terms: of the design; their columns together are its columns.
        names: of the columns, shape (p,).

    Raises:
        InputError: if the randomization has wiped out a pair of terms, or what is left of the
            covariates is too noisy to tell a column from the others; naming it.
    """
    sizes = [term.values.shape[-1] for term in terms]
    ends = np.cumsum(sizes)
    spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1)]
    p, total = int(ends[-1]), float(sum(stratum.weights.sum() for stratum in strata))
    moments, with_response = np.zeros((p, p)), np.zeros(p)
    read = []
    for stratum in strata:
        squares = {(i, j): _read(stratum, terms[i].times(terms[j])) for i, j in pairs}
        single = [_read(stratum, term) for term in terms]
        for (i, j), entries in squares.items():
            block = entries.total(stratum.weights).reshape(sizes[i], sizes[j]) / total
            moments[spans[i], spans[j]] += block
            if i != j:
                moments[spans[j], spans[i]] += block.T
        for span, entries in zip(spans, single, strict=True):
            with_response[span] += entries.total(stratum.weights * stratum.response) / total
        read.append((stratum, squares, single))
    scale = 1 / np.sqrt(np.maximum(np.diag(moments), 1e-300))
    values, vectors = np.linalg.eigh(moments * np.outer(scale, scale))
    weakest = vectors[:, 0] * scale
    if values[0] > 0:
        inverse = np.linalg.inv(moments)
        parameters = inverse @ with_response
    else:
        inverse, parameters = np.zeros((p, p)), np.zeros(p)
    influence_squares, weakest_square = np.zeros((p, p)), 0.0
    for stratum, squares, single in read:
        weights, groups = stratum.weights, stratum.groups
        sums = _Sums.of(int(groups.max(initial=0)) + 1, p + 1)
        for start in range(0, len(weights), CHUNK):
            chosen = slice(start, start + CHUNK)
            influence = np.zeros((len(weights[chosen]), p + 1))
            for span, entries in zip(spans, single, strict=True):
                told = entries.table[entries.places[chosen]]
                influence[:, span] += told * stratum.response[chosen, None]
            for (i, j), entries in squares.items():
                told = entries.table.reshape(-1, sizes[i], sizes[j])
                mine, theirs = (
                    told @ parameters[spans[j]],
                    told.swapaxes(1, 2) @ parameters[spans[i]],
                )
                weak = np.einsum("nij,i,j->n", told, weakest[spans[i]], weakest[spans[j]])
                places = entries.places[chosen]
                influence[:, spans[i]] -= mine[places]
                influence[:, p] += (1 if i == j else 2) * weak[places]
                if i != j:
                    influence[:, spans[j]] -= theirs[places]
            sums.add(influence, weights[chosen], groups[chosen])
        squared = sums.squares(within=stratum.mechanism.forms is not None) / total**2
        influence_squares += squared[:p, :p]
        weakest_square += squared[p, p] - (
            0.0 if stratum.mechanism.forms else values[0] ** 2 / total
        )
    if values[0] < max(2 * np.sqrt(max(weakest_square, 0.0)), 1e-10):
        worst = names[int(np.argmax(abs(vectors[:, 0])))]
        raise InputError(
            f"the release is too noisy to tell '{worst}' from the other columns of the model; "
            "leave out terms, or collapse categories"
        )
    return LeastSquaresFit(parameters, inverse @ influence_squares @ inverse)


@dataclass
class _Sums:
    """Sums over rows, by form, of what makes squares about the forms' means."""

    first: NDArray[np.float64]
    weighted: NDArray[np.float64]
    second: NDArray[np.float64]
    weights: NDArray[np.float64]
    square_weights: NDArray[np.float64]
    n_rows: NDArray[np.float64]

    @classmethod
    def of(cls, groups: int, p: int) -> "_Sums":
        def wide() -> NDArray[np.float64]:
            return np.zeros((groups, p))

        def one() -> NDArray[np.float64]:
            return np.zeros(groups)

        return cls(wide(), wide(), np.zeros((groups, p, p)), one(), one(), one())

    def add(
        self,
        influence: NDArray[np.float64],
        weights: NDArray[np.float64],
        groups: NDArray[np.int64],
    ) -> None:
        for group in np.unique(groups):
            mine, w = influence[groups == group], weights[groups == group]
            self.first[group] += w @ mine
            self.weighted[group] += w**2 @ mine
            self.second[group] += (mine * (w**2)[:, None]).T @ mine
            self.weights[group] += w.sum()
            self.square_weights[group] += (w**2).sum()
            self.n_rows[group] += len(w)

    def squares(self, *, within: bool) -> NDArray[np.float64]:
        """Return Σ w²ψψᵀ; within forms, less their means, with n/(n − 1) for what the means took.
        A form with one row keeps its square."""
        total = np.zeros(self.second.shape[1:])
        for group in np.flatnonzero(self.n_rows):
            square = self.second[group]
            if within and self.n_rows[group] > 1:
                mean = self.first[group] / self.weights[group]
                crossed = np.outer(self.weighted[group], mean)
                square = square - crossed - crossed.T
                square = square + self.square_weights[group] * np.outer(mean, mean)
                square = square * self.n_rows[group] / (self.n_rows[group] - 1)
            total += square
        return total
