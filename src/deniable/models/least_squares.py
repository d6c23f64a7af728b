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

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.strata import Strata
from deniable.models.cells import Cells
from deniable.models.formula import Term


def fit_least_squares(
    rows: KeptRows,
    strata: Strata,
    response: str,
    weights: str | None,
    terms: Sequence[Term],
    cells: Cells,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a linear model of a number released as it is.

    Args:
        rows: released codes, the other columns of the model as texts, response and weights as
            numbers.
        strata: what randomized them.
        response: name of the column with y.
        weights: of that with w, or None.
        terms: of the design; their columns together are its columns.
        cells: whose axes the terms are about.

    Returns:
        β, shape (p,), and its covariance, shape (p, p).

    Raises:
        InputError: if the randomization has wiped out a pair of terms, or what is left of the
            covariates is too noisy to tell a column from the others; naming it.
    """
    names = [name for term in terms for name in term.names]
    ends, p = np.cumsum([len(term.names) for term in terms]), len(names)
    spans = [slice(end - len(term.names), end) for end, term in zip(ends, terms, strict=True)]
    w = np.ones(rows.n_rows) if weights is None else rows.numbers[weights]
    moments, with_response = np.zeros((p, p)), np.zeros(p)
    read = []
    for mechanism, chosen in _strata_of(rows, strata):
        part, weight = rows.where(chosen), w[chosen] / w.sum()
        y = part.numbers[response]
        single = [_read(mechanism, part, weight, term, cells) for term in terms]
        pairs = {
            (i, j): _read(mechanism, part, weight, terms[i].times(terms[j]), cells)
            for i in range(len(terms))
            for j in range(i + 1)
        }
        for span, (places, table) in zip(spans, single, strict=True):
            with_response[span] += np.bincount(places, weight * y, len(table)) @ table
        for (i, j), (places, table) in pairs.items():
            block = moments[spans[i], spans[j]]
            block += (np.bincount(places, weight, len(table)) @ table).reshape(block.shape)
        read.append((mechanism, part, weight, y, single, pairs))
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
    for mechanism, part, weight, y, single, pairs in read:
        # Of every row b_r − A_r β, and last what it adds to the least eigenvalue of A.
        influence = np.zeros((len(y), p + 1))
        for span, (places, table) in zip(spans, single, strict=True):
            influence[:, span] += table[places] * y[:, None]
        for (i, j), (places, table) in pairs.items():
            told = table.reshape(-1, len(terms[i].names), len(terms[j].names))
            influence[:, spans[i]] -= (told @ parameters[spans[j]])[places]
            weak = np.einsum("nij,i,j->n", told, weakest[spans[i]], weakest[spans[j]])
            influence[:, p] += (1 if i == j else 2) * weak[places]
            if i != j:
                influence[:, spans[j]] -= (told.swapaxes(1, 2) @ parameters[spans[i]])[places]
        if mechanism.forms is None:
            squares[p, p] -= least**2 / w.sum()
        else:
            _take_off_means(influence, weight, part.codes[len(mechanism.schema.attributes)])
        weighted = influence * weight[:, None]
        squares += weighted.T @ weighted
    if least < 2 * np.sqrt(max(squares[p, p], 0.0)):
        raise too_noisy
    return parameters, inverse @ squares[:p, :p] @ inverse


def _strata_of(rows: KeptRows, strata: Strata) -> list[tuple[Mechanism, NDArray[np.bool_]]]:
    """Return the mechanisms, and which rows each randomized."""
    if strata.column is None:
        return [(strata.mechanism_of(""), np.ones(rows.n_rows, dtype=bool))]
    codes, labels = rows.texts[strata.column]
    return [(strata.mechanism_of(labels[i]), codes == i) for i in np.unique(codes)]


def _read(
    mechanism: Mechanism, rows: KeptRows, weights: NDArray[np.float64], term: Term, cells: Cells
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the unbiased estimates of a term's columns by row: each row's place in a table, shape
    (n,), and the table, shape (places, columns)."""
    axes = [cells.axes[i] for i in term.axes]
    attributes = [axis.name for axis in axes[: sum(i < cells.n_attributes for i in term.axes)]]
    table, sizes = term.values, [1]
    codes = [np.zeros(rows.n_rows, dtype=np.int64)]
    if attributes:
        channel = channel_of(mechanism, attributes)
        codes += channel.released_codes(rows.codes)
        sizes += channel.n_outputs
        if isinstance(channel, PublishedChannel):
            counts = np.bincount(codes[1], weights, channel.n_outputs[0])
            channel = channel.of_rows(counts.astype(np.float64))
        channel.check(weights.sum() ** 2 / (weights**2).sum())
        flat = table.reshape(*table.shape[: len(attributes)], -1)
        table = channel.inverse.transposed().apply(flat)
    for axis in axes[len(attributes) :]:
        own, labels = rows.texts[axis.name]
        place = {label: i for i, label in enumerate(axis.categories)}
        codes.append(np.array([place.get(label, 0) for label in labels])[own])
        sizes.append(len(axis.categories))
    places = np.ravel_multi_index(tuple(codes), tuple(sizes))
    return places, table.reshape(-1, term.values.shape[-1])


def _take_off_means(
    influence: NDArray[np.float64], weights: NDArray[np.float64], form: NDArray[np.int64]
) -> None:
    """Take their form's mean off rows, with √(n/(n − 1)) for what the mean took; a form with one
    row keeps its own."""
    for one in np.unique(form):
        mine = form == one
        n = int(mine.sum())
        if n > 1 and weights[mine].sum() > 0:
            off = influence[mine] - np.average(influence[mine], axis=0, weights=weights[mine])
            influence[mine] = off * np.sqrt(n / (n - 1))
