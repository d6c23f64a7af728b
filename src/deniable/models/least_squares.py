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

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.models.cells import Cells
from deniable.models.formula import Term


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


def _read(stratum: Stratum, term: Term, cells: Cells) -> _Read:
    """Return the unbiased estimates of a term's columns by row.

    Raises:
        InputError: if the randomization has wiped out how the attributes go together.
    """
    attributes = [cells.axes[i].name for i in term.axes if i < cells.n_attributes]
    columns = [cells.axes[i].name for i in term.axes if i >= cells.n_attributes]
    table = term.values
    sizes = [1, *table.shape[len(attributes) : -1]]
    codes = [np.zeros(len(stratum.response), dtype=np.int64), *(stratum.kept[n] for n in columns)]
    if attributes:
        channel = channel_of(stratum.mechanism, attributes)
        released = channel.released_codes(stratum.rows.codes)
        sizes, codes = [*channel.n_outputs, *sizes], [*released, *codes]
        if isinstance(channel, PublishedChannel):
            (answers,) = released
            counts = np.bincount(answers, stratum.weights, minlength=channel.n_outputs[0])
            channel = channel.of_rows(counts.astype(np.float64))
        channel.check(stratum.weights.sum() ** 2 / (stratum.weights**2).sum())
        flat = table.reshape(*table.shape[: len(attributes)], -1)
        table = channel.inverse.transposed().apply(flat)
    places = np.ravel_multi_index(tuple(codes), tuple(sizes))
    return _Read(places, table.reshape(-1, term.values.shape[-1]))


def fit_least_squares(
    strata: Sequence[Stratum], terms: Sequence[Term], cells: Cells
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a linear model of a number released as it is.

    Args:
        strata: the rows, by what randomized them.
        terms: of the design; their columns together are its columns.
        cells: whose axes the terms are about.

    Returns:
        β, shape (p,), and its covariance, shape (p, p).

    Raises:
        InputError: if the randomization has wiped out a pair of terms, or what is left of the
            covariates is too noisy to tell a column from the others; naming it.
    """
    names = [name for term in terms for name in term.names]
    p, ends = len(names), np.cumsum([len(term.names) for term in terms])
    spans = [slice(end - len(term.names), end) for end, term in zip(ends, terms, strict=True)]
    total = float(sum(stratum.weights.sum() for stratum in strata))
    moments, with_response = np.zeros((p, p)), np.zeros(p)
    read = []
    for stratum in strata:
        single = [_read(stratum, term, cells) for term in terms]
        pairs = {
            (i, j): _read(stratum, terms[i].times(terms[j]), cells)
            for i in range(len(terms))
            for j in range(i + 1)
        }
        for span, entries in zip(spans, single, strict=True):
            with_response[span] += entries.total(stratum.weights * stratum.response) / total
        for (i, j), entries in pairs.items():
            block = entries.total(stratum.weights) / total
            moments[spans[i], spans[j]] += block.reshape(moments[spans[i], spans[j]].shape)
        read.append((stratum, single, pairs))
    moments = np.tril(moments) + np.tril(moments, -1).T
    scale = 1 / np.sqrt(np.maximum(np.diag(moments), 1e-300))
    values, vectors = np.linalg.eigh(moments * np.outer(scale, scale))
    least, weakest = values[0], vectors[:, 0] * scale
    too_noisy = InputError(
        f"the release is too noisy to tell '{names[int(np.argmax(abs(vectors[:, 0])))]}' from the "
        "other columns of the model; leave out terms, or collapse categories"
    )
    if least < 1e-10:
        raise too_noisy
    inverse = np.linalg.inv(moments)
    parameters = inverse @ with_response
    squares = np.zeros((p + 1, p + 1))
    for stratum, single, pairs in read:
        # Of every row b_r − A_r β, and last what it adds to the least eigenvalue of A.
        influence = np.zeros((len(stratum.response), p + 1))
        for span, entries in zip(spans, single, strict=True):
            influence[:, span] += entries.table[entries.places] * stratum.response[:, None]
        for (i, j), entries in pairs.items():
            told = entries.table.reshape(-1, len(terms[i].names), len(terms[j].names))
            influence[:, spans[i]] -= (told @ parameters[spans[j]])[entries.places]
            weak = np.einsum("nij,i,j->n", told, weakest[spans[i]], weakest[spans[j]])
            influence[:, p] += (1 if i == j else 2) * weak[entries.places]
            if i != j:
                theirs = told.swapaxes(1, 2) @ parameters[spans[i]]
                influence[:, spans[j]] -= theirs[entries.places]
        squares += _squares(influence, stratum) / total**2
        if stratum.mechanism.forms is None:
            squares[p, p] -= least**2 / total
    if least < 2 * np.sqrt(max(squares[p, p], 0.0)):
        raise too_noisy
    return parameters, inverse @ squares[:p, :p] @ inverse


def _squares(influence: NDArray[np.float64], stratum: Stratum) -> NDArray[np.float64]:
    """Return Σ w²ψψᵀ; within forms, less their means, with n/(n − 1) for what the means took. A
    form with one row keeps its square."""
    weights = stratum.weights
    if stratum.mechanism.forms is not None:
        form = stratum.rows.codes[len(stratum.mechanism.schema.attributes)]
        for one in np.unique(form):
            mine = form == one
            n = int(mine.sum())
            if n > 1 and weights[mine].sum() > 0:
                off = influence[mine] - np.average(influence[mine], axis=0, weights=weights[mine])
                influence[mine] = off * np.sqrt(n / (n - 1))
    weighted = influence * weights[:, None]
    return np.asarray(weighted.T @ weighted)
