"""Least squares of a number, released unchanged or randomized, on randomized attributes.

β = A⁻¹b, A the mean of xxᵀ and b that of xy. Entry by entry these are means of functions of a few
attributes, and every released row has an unbiased estimate of each: the transposed inverse of the
channel on these attributes, applied to the function, at the row's released value. So only tables of
the attributes of two terms are needed. With A_r and b_r the contributions of row r and w_r its
weight (1 without), β̂ moves by ψ_r = Â⁻¹(b_r − A_r β̂) times w_r/Σw; the covariance is the sum of the
squares, within forms.

A number that is rounded and randomized is a function of the points of its grid, unbiased for every
function that is linear between points (docs/proofs/numbers.md): a response adds its axis to every
table of b. In A a number occurs twice, in products of two functions f and g of it, which the points
make too large by Σ Δf Δg s(1 − s), s the place between two points; of numbers spread evenly between
points s(1 − s) has the mean 1/6, which is taken off (section 7 there).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.estimate.survey import total_variance
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.strata import Strata
from deniable.mechanism.table_map import TableMap
from deniable.models.cells import Cells
from deniable.models.formula import Term

MOST_AT_ONCE = 4_000_000
"""Numbers of a table or of rows' influence that are held at a time, if columns and rows are few."""

MOST_LOOKED_AT = 20
"""Columns of which it is computed how far they are from the others."""

FEWEST_ERRORS = 3.0
"""Standard errors from a combination of the others, below which a column's β is not to be read."""


def fit_least_squares(
    rows: KeptRows,
    strata: Strata,
    response: str | Term,
    weights: str | None,
    terms: Sequence[Term],
    cells: Cells,
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
    """Fit a linear model of a number: of a column, or of the points of a randomized one as a term.

    Where the least eigenvalue of A is 0, or within two standard errors of it, a column is dropped
    of those that make up its eigenvector: one whose own moment is as small, such as that of a
    category that does not occur, or else the last one; at most one term.

    Returns the columns that remain, shape (p,); their β and its covariance; and the places of
    columns within three standard errors of a combination of the others, whose β and errors are
    invalid.
    """
    names = [name for term in terms for name in term.names]
    ends, p = np.cumsum([len(term.names) for term in terms]), len(names)
    spans = [slice(end - len(term.names), end) for end, term in zip(ends, terms, strict=True)]
    w = np.ones(rows.n_rows) if weights is None else rows.numbers[weights]
    parts = [
        _Part(
            mechanism,
            rows.where(chosen),
            w[chosen] / w.sum(),
            cells,
        )
        for mechanism, chosen in strata_of(rows, strata)
    ]
    moments, with_response = np.zeros((p, p)), np.zeros(p)
    for part in parts:
        for i, one in enumerate(terms):
            if isinstance(response, Term):
                with_response[spans[i]] += part.product(one, response)[:, 0]
            else:
                seen = part.reading(one.axes).truth(part.weights * part.rows.numbers[response])
                with_response[spans[i]] += seen @ one.values.reshape(len(seen), -1)
            for j, other in enumerate(terms[: i + 1]):
                moments[spans[i], spans[j]] += part.product(one, other)
    moments = np.tril(moments) + np.tril(moments, -1).T
    kept = np.ones(p, dtype=bool)
    owner = np.repeat(np.arange(len(terms)), [len(term.names) for term in terms])
    lost: set[int] = set()

    def deviations(value: float, along: NDArray[np.float64]) -> float:
        """Return how many standard errors a mean square is from 0."""
        of_term = [along[span] for span in spans]
        variance = sum(part.variance_along(terms, of_term, value) for part in parts)
        return value / np.sqrt(variance) if variance > 0 else np.inf

    while (weak := _weakest(moments, kept)) is not None:
        least, direction, place = weak
        noisy = abs(least) > 1e-10
        if noisy and deviations(least, direction) > 2:
            break
        much = np.argsort(-abs(direction * np.sqrt(abs(np.diag(moments)))))[:MOST_LOOKED_AT]
        alone = {i: deviations(moments[i, i], np.eye(p)[i]) for i in much if kept[i]}
        rarest = min(alone, key=lambda i: alone[i])
        if alone[rarest] < 2:
            place = int(rarest)
        elif noisy:
            if kept[owner == owner[place]].sum() == 1:
                lost.add(int(owner[place]))
            if len(lost) > 1 or len(lost) == sum(bool(term.axes) for term in terms):
                raise InputError(
                    f"the release is too noisy to separate '{names[place]}' from the other "
                    "columns of the model; leave out terms, or collapse categories"
                )
        kept[place] = False
    inverse = np.linalg.inv(moments[kept][:, kept])
    largest = np.concatenate([abs(t.values).reshape(-1, len(t.names)).max(axis=0) for t in terms])
    parameters = np.zeros(p)
    parameters[kept] = inverse @ with_response[kept]
    squares = np.zeros((p, p))
    survey = rows.survey
    sums = np.zeros((0 if survey is None else len(survey.stratum), p))
    for part in parts:
        squares += part.squares(terms, [parameters[span] for span in spans], response, sums)
    if survey is not None:
        squares = total_variance(sums, survey.stratum)
    covariance = inverse @ squares[kept][:, kept] @ inverse
    # The residual of a column on the others has the mean square 1/(A⁻¹)_jj.
    y = (
        response.values
        if isinstance(response, Term)
        else np.concatenate([part.rows.numbers[response] for part in parts])
    )
    wide = np.sqrt(np.maximum(np.diag(covariance), 0.0)) * largest[kept] / max(y.std(), 1e-300)
    unread, places = [], np.flatnonzero(kept)
    for i in np.argsort(-wide)[:MOST_LOOKED_AT]:
        if wide[i] > 1:
            along = np.zeros(p)
            along[places] = inverse[i] / inverse[i, i]
            if deviations(1 / inverse[i, i], along) < FEWEST_ERRORS:
                unread.append(int(places[i]))
    return kept, parameters[kept], covariance, tuple(sorted(unread))


def _weakest(
    moments: NDArray[np.float64], kept: NDArray[np.bool_]
) -> tuple[float, NDArray[np.float64], int] | None:
    """Return the least eigenvalue of the moments of columns of unit size, its eigenvector, and the
    last column that makes up much of it; None if no column is left."""
    places = np.flatnonzero(kept)
    if not places.size:
        return None
    inner = moments[kept][:, kept]
    diagonal = np.diag(inner)
    direction = np.zeros(len(kept))
    if diagonal.min() <= 0:  # noise outweighs it
        place = int(places[np.argmin(diagonal)])
        return float(diagonal.min()), np.eye(len(kept))[place], place
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(inner * np.outer(scale, scale))
    weakest = abs(vectors[:, 0])
    direction[places] = vectors[:, 0] * scale
    return float(values[0]), direction, int(places[weakest > weakest.max() / 2][-1])


@dataclass(frozen=True)
class _Part:
    """Rows that one mechanism randomized.

    ``cells``: whose axes terms are about.
    """

    mechanism: Mechanism
    rows: KeptRows
    weights: NDArray[np.float64]
    cells: Cells
    _readings: dict[tuple[int, ...], "_Reading"] = field(default_factory=dict)

    def reading(self, axes: Sequence[int]) -> "_Reading":
        """Return the estimates of all rows for some axes."""
        key = tuple(sorted(set(axes)))
        if key not in self._readings:
            self._readings[key] = _read(self.mechanism, self.rows, self.weights, key, self.cells)
        return self._readings[key]

    def product(self, one: Term, other: Term) -> NDArray[np.float64]:
        """Return the estimated means of the products of two terms' columns."""
        pairs = _of_numbers(one, other, self.cells)
        return np.asarray(sum(factor * self._of_points(*pair) for factor, *pair in pairs))

    def _of_points(self, one: Term, other: Term) -> NDArray[np.float64]:
        reading = self.reading((*one.axes, *other.axes))
        shared = [axis for axis in one.axes if axis in other.axes]
        rest = [[axis for axis in term.axes if axis not in shared] for term in (one, other)]
        order = [reading.axes.index(axis) for axis in (*shared, *rest[0], *rest[1])]
        n = [prod(self.cells.sizes[axis] for axis in axes) for axes in (shared, *rest)]
        truth = reading.truth(self.weights).reshape(reading.sizes).transpose(order).reshape(n)
        first, second = (
            term.values.transpose([*map(term.axes.index, (*shared, *own)), -1]).reshape(
                n[0], -1, len(term.names)
            )
            for term, own in zip((one, other), rest, strict=True)
        )
        return np.asarray(np.tensordot(first, truth @ second, axes=([0, 1], [0, 1])))

    def variance_along(
        self, terms: Sequence[Term], direction: Sequence[NDArray[np.float64]], mean: float
    ) -> float:
        """Return the part of the rows in the variance of the estimated mean square of a combination
        of columns, a mean which is given."""
        each = np.zeros((self.rows.n_rows, 1))
        for i, one in enumerate(terms):
            for j, other in enumerate(terms[: i + 1]):
                if not (direction[i].any() and direction[j].any()):
                    continue
                reading = self.reading((*one.axes, *other.axes))
                value = np.zeros((prod(reading.sizes), 1))
                for factor, first, second in _of_numbers(one, other, self.cells):
                    along = reading.spread(first, first.values @ direction[i][:, None])
                    value += (
                        factor
                        * along
                        * reading.spread(second, second.values @ direction[j][:, None])
                    )
                each += (1 if i == j else 2) * reading.back(value)[reading.places]
        square = float(self._summed([(slice(None), each)], 1)[0, 0])
        return square - (mean**2 * (self.weights**2).sum() if self.mechanism.forms is None else 0)

    def squares(
        self,
        terms: Sequence[Term],
        parameters: Sequence[NDArray[np.float64]],
        response: str | Term,
        sums: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return Σ w²ψψ′ of b_r − A_r β by row, shape (p, p), within forms; add Σ wψ to the sums of
        clusters, shape (clusters, p)."""
        ends = np.cumsum([len(term.names) for term in terms])
        p, n = int(ends[-1]), self.rows.n_rows
        minus = -np.ones((1, 1))
        of_each = [*zip(terms, parameters, strict=True)]
        if isinstance(response, Term):
            of_each.append((response, minus[0]))
        largest = max(prod(reading.sizes) for reading in self._readings.values())
        step = max(1, MOST_AT_ONCE // p, largest // 8)

        def chunks() -> Iterator[tuple[slice, NDArray[np.float64]]]:
            for chosen in (slice(i, min(i + step, n)) for i in range(0, n, step)):
                influence = np.zeros((chosen.stop - chosen.start, p))
                for i, one in enumerate(terms):
                    mine = influence[:, ends[i] - len(one.names) : ends[i]]
                    if not isinstance(response, Term):
                        y = self.rows.numbers[response][chosen, None]
                        _add(mine, self.reading(one.axes), one, -minus, chosen, y)
                    for other, of_other in of_each:
                        reading = self.reading((*one.axes, *other.axes))
                        for factor, first, second in _of_numbers(one, other, self.cells):
                            fitted = reading.spread(second, second.values @ of_other[:, None])
                            _add(mine, reading, first, factor * fitted, chosen, minus)
                if self.rows.survey is not None:
                    weighted = influence * self.weights[chosen, None]
                    np.add.at(sums, self.rows.survey.cluster[chosen], weighted)
                yield chosen, influence

        return self._summed(chunks(), p)

    def _summed(
        self, chunks: Iterable[tuple[slice, NDArray[np.float64]]], p: int
    ) -> NDArray[np.float64]:
        """Return the sum of squares of rows by squared weights; under forms about the mean of every
        form, times n/(n − 1), and about 0 for a form with one row."""
        forms, w = np.zeros(self.rows.n_rows, dtype=np.int64), self.weights
        centred = self.mechanism.forms is not None
        if centred:
            forms = self.rows.codes[len(self.mechanism.schema.attributes)].astype(np.int64)
        n, sums = np.bincount(forms), np.maximum(np.bincount(forms, w), 1e-300)
        some = centred & (n > 1) & (sums > 1e-300)
        scale = np.where(some, n / np.maximum(n - 1, 1), 1.0)
        total, first, second = np.zeros((p, p)), *np.zeros((2, len(n), p))
        for chosen, influence in chunks:
            weight, form = w[chosen, None], forms[chosen]
            weighted = influence * (weight * np.sqrt(scale[form])[:, None])
            total += weighted.T @ weighted
            for one in np.flatnonzero(some):
                mine = form == one
                first[one] += weight[mine, 0] @ influence[mine] / sums[one]
                second[one] += weight[mine, 0] ** 2 @ influence[mine]
        crossed = first.T @ (scale[:, None] * second)
        squares = np.bincount(forms, w**2)
        return total - crossed - crossed.T + first.T @ ((scale * squares)[:, None] * first)


def _of_numbers(one: Term, other: Term, cells: Cells) -> Iterator[tuple[float, Term, Term]]:
    """Yield factors and pairs of terms: with the sum of the products of these at the points, the
    product of two terms' columns is that at the numbers."""
    # An interval between points has half of the people at either, all of them at an end. So Δf Δg/6
    # of an interval is taken off as 1/12 at its points, and as 1/6 at an end.
    pairs = [(1.0, one, other)]
    for axis in {*one.axes} & {*other.axes}:
        if cells.axes[axis].numbers is None or axis >= cells.n_attributes:
            continue
        n = len(cells.axes[axis].numbers or ())
        for factor, *both in pairs[:]:
            for ends in ((1, 0), (0, 1)):
                first, second = (_steps(term, axis, n, ends) for term in both)
                pairs.append((-factor / 12, first, second))
    yield from pairs


def _steps(term: Term, axis: int, n: int, ends: tuple[int, int]) -> Term:
    """Return a term with the steps of its columns between an axis's n points: to each from the
    point before, or to the next, the outermost step at two points."""
    place = term.axes.index(axis)
    values = np.moveaxis(term.values, place, 0)
    steps = np.zeros(values.shape)
    steps[:n] = np.pad(np.diff(values[:n], axis=0), [ends, *[(0, 0)] * (values.ndim - 1)], "edge")
    return replace(term, values=np.moveaxis(steps, 0, place))


def _add(
    to: NDArray[np.float64],
    reading: "_Reading",
    term: Term,
    factor: NDArray[np.float64],
    chosen: slice,
    times: NDArray[np.float64],
) -> None:
    """Add to some rows the estimates of a term's columns times a function, in blocks of columns."""
    step = max(16, MOST_AT_ONCE // prod(reading.sizes))
    for columns in (slice(i, i + step) for i in range(0, len(term.names), step)):
        table = reading.back(reading.spread(term, term.values[..., columns]) * factor)
        to[:, columns] += table[reading.places[chosen]] * times


@dataclass(frozen=True)
class _Reading:
    """Unbiased estimates by row on a table of some axes.

    ``places``: index of every row among released values and kept columns, shape (n,).
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    inverse: TableMap | StackedMap | None
    attributes: tuple[int, ...]
    outputs: tuple[int, ...]
    kept: int
    places: NDArray[np.int64]

    def truth(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the estimated sums of rows' weights by the true cells, flat."""
        counts = np.bincount(self.places, weights, prod(self.outputs) * self.kept).astype(float)
        if self.inverse is None:
            return counts
        return self.inverse.apply(counts.reshape(*self.outputs, self.kept)).ravel()

    def back(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the unbiased estimates of functions of the true cells, shape (cells, m), by
        released cell."""
        if self.inverse is None:
            return table
        m = table.shape[1]
        shaped = table.reshape(*self.attributes, -1)
        return self.inverse.transposed().apply(shaped).reshape(-1, m)

    def spread(self, term: Term, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return functions of a term's axes for every cell, shape (cells, m)."""
        shape = [n if a in term.axes else 1 for a, n in zip(self.axes, self.sizes, strict=True)]
        m = values.shape[-1]
        return np.broadcast_to(values.reshape(*shape, m), (*self.sizes, m)).reshape(-1, m)


def strata_of(rows: KeptRows, strata: Strata) -> list[tuple[Mechanism, NDArray[np.bool_]]]:
    """Return the mechanisms, and which rows each randomized."""
    if strata.column is None:
        return [(strata.mechanism_of(""), np.ones(rows.n_rows, dtype=bool))]
    codes, labels = rows.texts[strata.column]
    return [(strata.mechanism_of(labels[i]), codes == i) for i in np.unique(codes)]


def _read(
    mechanism: Mechanism,
    rows: KeptRows,
    weights: NDArray[np.float64],
    places: tuple[int, ...],
    cells: Cells,
) -> _Reading:
    """Return the estimates of rows for some axes of a table."""
    n = sum(i < cells.n_attributes for i in places)
    axes = [cells.axes[i] for i in places]
    sizes = tuple(len(axis.categories) for axis in axes)
    codes, outputs, inverse = [np.zeros(rows.n_rows, dtype=np.int64)], [1], None
    if n:
        channel = channel_of(mechanism, [axis.name for axis in axes[:n]])
        codes += channel.released_codes(rows.codes)
        outputs = list(channel.n_outputs)
        if isinstance(channel, PublishedChannel):
            counts = np.bincount(codes[1], weights, channel.n_outputs[0])
            channel = channel.of_rows(counts.astype(np.float64))
        channel.check(weights.sum() ** 2 / (weights**2).sum())
        inverse = channel.inverse
    for axis in axes[n:]:
        own, labels = rows.texts[axis.name]
        place = {label: i for i, label in enumerate(axis.categories)}
        codes.append(np.array([place.get(label, 0) for label in labels])[own])
    shape = (1, *(outputs if n else ()), *sizes[n:])
    at = np.ravel_multi_index(tuple(codes), shape)
    return _Reading(places, sizes, inverse, sizes[:n], tuple(outputs), prod(sizes[n:]), at)
