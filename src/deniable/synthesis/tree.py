"""Rows from a tree of associations, for tables too large for a model of all pairs.

Every attribute depends on at most one other: π(x) = π(x_root) ∏ π(x_child | x_parent), on the edges
of a maximum spanning forest (Chow and Liu 1968). The weight of a pair is the mutual information of
its attributes, ½Φ², less its inflation by noise: by one scoring step from independence the
interactions are b = (I + P)⁻¹s, I their information given the main effects, s their score and P the
prior; ½(bᵀHb − tr HC), H the information of a clean row and C the covariance of b. Edges are only
pairs whose bᵀs, χ² without association, is significant at 5 % over all pairs (Bonferroni).

The table of every edge is fitted by maximum likelihood through the channel. Its shares are drawn
for every copy (:func:`~deniable.synthesis.rows.drawn_shares`), with the same row weights in all
tables of a copy, so that edges agree on a shared attribute as in the fit.

The true values of a released row y are drawn by a chain (independence Metropolis–Hastings): the
tree with evidence on each attribute alone, e^ρ where it agrees with y, proposes all values
together, and the rest of M[y, x] decides. The ρ are such that proposals agree with y as often as
the true values do (cross-entropy method: Rubinstein 1999).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.mechanism.channel import Channel
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.models.cells import Axis, Cells, interactions
from deniable.models.formula import prior_precision
from deniable.models.likelihood import LogLinearFit, fit_log_linear
from deniable.randomness import BitSource
from deniable.synthesis.drawing import Choices, code_type, exponentials, uniforms
from deniable.synthesis.rows import MAIN, ReleasedRows, Seen, drawn_shares, likelihood_of

SIGNIFICANT = 0.05
"""Largest p-value, over all pairs, of an edge."""

MOST_IMPUTED = 20
"""Largest number of attributes with imputed values: a law has a number for every subset of them."""

STEPS = 25
"""Steps of the chain that draws true values."""

_BLOCK = 1 << 14
"""Rows imputed together."""

_TUNED = 2000
"""Rows, and draws of each, that determine the factors, and the number of corrections."""
_TUNING_DRAWS, _TUNINGS = 8, 6


FittedTable = tuple[tuple[int, ...], LogLinearFit, list[Seen]]


@dataclass(frozen=True)
class DrawnTree:
    """A tree with drawn shares."""

    parents: tuple[int, ...]
    order: tuple[int, ...]
    shares: tuple[NDArray[np.float64], ...]


@dataclass(frozen=True)
class TreeModel:
    """A tree of associations, fitted to released rows."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: ReleasedRows
    edges: tuple[tuple[int, int], ...]
    tables: tuple[FittedTable, ...]

    kind: ClassVar[str] = "tree"

    @classmethod
    def fitted(cls, rows: ReleasedRows, names: Sequence[str]) -> "TreeModel":
        """Find the tree and fit it."""
        names = tuple(names)
        axes = tuple(
            Axis(name, variable.attribute.categories)
            for name, variable in zip(names, rows.strata.schema.variables(names), strict=True)
        )
        single = [_saturated(rows, axes, (i,)) for i in range(len(axes))]
        shares = [fit.probabilities.ravel() for _, fit, _ in single]
        weights = {}
        pairs = list(combinations(range(len(axes)), 2))
        for i, j in pairs:
            p_value, weight = _association(rows, axes, (i, j), shares)
            if p_value < SIGNIFICANT / len(pairs) and weight > 0:
                weights[i, j] = weight
        edges = _directed(_spanning(weights, len(axes)), len(axes))
        tables = [_saturated(rows, axes, edge) for edge in edges]
        alone = set(range(len(axes))) - {place for edge in edges for place in edge}
        tables += [single[place] for place in sorted(alone)]
        sizes = tuple(len(axis.categories) for axis in axes)
        return cls(names, sizes, rows, tuple(edges), tuple(tables))

    def to_plain(self) -> dict[str, Any]:
        """Return the model's assumptions as plain values."""
        edges = [[self.names[i] for i in edge] for edge in self.edges]
        known = {frozenset(edge) for edge in edges}
        return {
            "kind": self.kind,
            "attributes": list(self.names),
            "cells": prod(self.sizes),
            "parameters": sum(len(fit.parameters) for _, fit, _ in self.tables),
            "pairs": edges,
            "independent": [
                list(pair) for pair in combinations(self.names, 2) if frozenset(pair) not in known
            ],
            "test": None,
        }

    def drawn(self, bits: BitSource) -> DrawnTree:
        """Return a tree at parameters drawn from their posterior."""
        weights = exponentials(self.rows.n_rows, bits)
        parents, order = [-1] * len(self.names), list[int]()
        shares: list[NDArray[np.float64]] = [np.zeros((0, 0))] * len(self.names)
        for at, fit, seen in self.tables:
            table = drawn_shares(fit, seen, weights).reshape(self.sizes[at[0]], -1)
            if at[0] not in order:
                order.append(at[0])
                shares[at[0]] = table.sum(axis=1)[None, :]
            if len(at) == 2:
                order.append(at[1])
                parents[at[1]], shares[at[1]] = at[0], table / table.sum(axis=1, keepdims=True)
        return DrawnTree(tuple(parents), tuple(order), tuple(shares))

    def synthetic(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return new rows of several copies, shape (copies, attributes, rows)."""
        found = np.empty((copies, len(self.names), n_rows), code_type(self.sizes))
        for copy in range(copies):
            tree = self.drawn(bits)
            for place in tree.order:
                parent = tree.parents[place]
                of = np.zeros(n_rows, np.int64) if parent < 0 else found[copy, parent].astype(int)
                found[copy, place] = Choices(tree.shares[place]).draw(of, bits)
        return found

    def imputed(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return true values of the released rows, drawn given the release, shape (copies,
        attributes, rows)."""
        if len(self.names) > MOST_IMPUTED:
            raise InputError(
                f"true values of released rows are drawn for at most {MOST_IMPUTED} attributes; "
                "name fewer, or use synthetic rows"
            )
        found = np.empty((copies, len(self.names), n_rows), code_type(self.sizes))
        trees = [self.drawn(bits) for _ in range(copies)]
        for stratum, rows in self.rows.parts:
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                channel, axes = self.rows.shown(self.names, block, stratum)
                for evidence in evidence_of(channel, axes):
                    for copy, values in enumerate(evidence.drawn(trees, bits)):
                        found[copy][:, block[evidence.rows]] = values
        return found


@dataclass(frozen=True)
class Evidence:
    """Evidence of rows under one pattern kernel on their true values.

    ``rows``: their places in the block, shape (n,). ``factors``: per attribute the likelihood of
    each category where a matrix gives one, shape (n, categories). ``hits``: per attribute of the
    kernel, by its place, which categories agree with the released value, shape (n, categories).
    ``kernel``: logarithms of the kernel by disagreeing attributes, shape (2,)·(attributes).
    """

    rows: NDArray[np.intp]
    factors: list[NDArray[np.float64]]
    hits: dict[int, NDArray[np.bool_]]
    kernel: NDArray[np.float64]

    def some(self, places: NDArray[np.intp]) -> "Evidence":
        """Return the evidence of some of the rows."""
        return Evidence(
            self.rows[places],
            [factor[places] for factor in self.factors],
            {axis: hits[places] for axis, hits in self.hits.items()},
            self.kernel,
        )

    def drawn(self, trees: Sequence[DrawnTree], bits: BitSource) -> Iterator[NDArray[np.int64]]:
        """Yield true values of the rows under every tree, shape (attributes, n)."""
        logs = self._tuned(trees[0], bits)
        for tree in trees:
            propose = self._proposals(tree, logs, bits)
            found, weight = propose()
            for _ in range(STEPS if self.hits else 0):
                values, new = propose()
                taken = np.log(uniforms(len(new), bits)) < new - weight
                found[:, taken], weight[taken] = values[:, taken], new[taken]
            yield found

    def _tuned(self, tree: DrawnTree, bits: BitSource) -> NDArray[np.float64]:
        """Return the logarithms of the factors that favour agreeing categories."""
        places = range(self.kernel.ndim)
        start = [np.mean(np.take(self.kernel, 0, i) - np.take(self.kernel, 1, i)) for i in places]
        logs = np.array(start)
        sample = np.linspace(0, len(self.rows) - 1, min(_TUNED, len(self.rows))).astype(np.intp)
        few = self.some(np.repeat(sample, _TUNING_DRAWS))
        for _ in range(_TUNINGS if self.hits else 0):
            values, weight = few._proposals(tree, logs, bits)()
            agree = few._agree(values).reshape(len(logs), -1, _TUNING_DRAWS)
            weight = weight.reshape(-1, _TUNING_DRAWS)
            weight = np.exp(weight - weight.max(axis=1, keepdims=True))
            weight /= weight.sum(axis=1, keepdims=True)
            wanted = np.clip((agree * weight).sum(axis=2).mean(axis=1), 1e-3, 1 - 1e-3)
            had = np.clip(agree.mean(axis=(1, 2)), 1e-3, 1 - 1e-3)
            logs = logs + np.log(wanted / (1 - wanted)) - np.log(had / (1 - had))
        return logs

    def _agree(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which attributes of the kernel agree with the released row, shape (attributes,
        n)."""
        rows = np.arange(values.shape[1])
        agree = [hits[rows, values[axis]] for axis, hits in self.hits.items()]
        return np.array(agree, dtype=bool).reshape(len(self.hits), len(rows))

    def _proposals(
        self, tree: DrawnTree, logs: NDArray[np.float64], bits: BitSource
    ) -> Callable[[], tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Return the proposer of true values of all rows, shape (attributes, n), with the logarithm
        of their probability over their proposal probability, up to a constant of the row."""
        beliefs = [factor.copy() for factor in self.factors]
        for factor, (axis, hits) in zip(logs, self.hits.items(), strict=True):
            beliefs[axis] *= np.where(hits, np.exp(factor), 1.0)
        for place in reversed(tree.order):
            if (parent := tree.parents[place]) >= 0:
                beliefs[parent] *= beliefs[place] @ tree.shares[place].T
        rows = np.arange(len(self.rows))

        choices: dict[int, Choices] = {}
        for place in tree.order:
            shares = tree.shares[place]
            of = beliefs[place][:, None, :] * shares
            choices[place] = Choices(of.reshape(-1, shares.shape[1]))

        def propose() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            values = np.zeros((len(beliefs), len(rows)), dtype=np.int64)
            for place in tree.order:
                parent, n = tree.parents[place], len(tree.shares[place])
                of = rows if parent < 0 else rows * n + values[parent]
                values[place] = choices[place].draw(of, bits)
            agree = self._agree(values)
            return values, self.kernel[tuple(np.where(agree, 0, 1))] - logs @ agree

        return propose


def evidence_of(
    channel: Channel | PublishedChannel, axes: Sequence[NDArray[Any]]
) -> Iterator[Evidence]:
    """Yield the evidence of released rows, grouped by kernel.

    ``channel``: on all attributes of a model, one axis each. ``axes``: the released codes along
    each axis, shape (n,) each.
    """
    forward = channel.forward
    if not isinstance(forward, StackedMap):
        yield _evidence(forward, np.arange(len(axes[0])), list(axes))
        return
    ends = np.cumsum([prod(shape) for shape in forward.shapes])
    group = np.searchsorted(ends, axes[0], side="right")
    for place in np.unique(group):
        rows = np.flatnonzero(group == place)
        shape = forward.shapes[place]
        inside = axes[0][rows] - (ends[place] - prod(shape))
        yield _evidence(forward.parts[place], rows, list(np.unravel_index(inside, shape)))


def _evidence(part: TableMap, rows: NDArray[np.intp], shown: list[NDArray[Any]]) -> Evidence:
    hits = {}
    factors = [np.ones((len(rows), n)) for n in part.n_categories]
    for axis, matrix in part.matrices.items():
        factors[axis] *= matrix[shown[axis]]
    for axis in set(range(len(factors))) - {*part.matrices, *part.pattern_axes}:
        factors[axis] *= np.eye(part.n_categories[axis])[shown[axis]]  # released unchanged
    for axis in part.pattern_axes:
        n = part.n_categories[axis]
        agree = part.sets[axis].holds() if axis in part.sets else np.eye(n, dtype=bool)
        hits[axis] = agree[shown[axis]]
    return Evidence(rows, factors, hits, np.log(np.maximum(part.kernel, 1e-300)))


def _saturated(rows: ReleasedRows, axes: Sequence[Axis], places: tuple[int, ...]) -> FittedTable:
    """Fit the saturated model of one or two attributes."""
    names = [axes[place].name for place in places]
    cells = Cells(tuple(axes[place] for place in places), len(places))
    seen = rows.seen(names)
    for part in seen:
        channel_of(part.mechanism, names, part.counts).check(len(part.rows))
    columns = interactions(cells, range(len(places)), 2)
    likelihood = likelihood_of(seen, names, cells.sizes)
    precision = prior_precision(columns, MAIN)
    fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
    return places, fit, seen


def _association(
    rows: ReleasedRows,
    axes: Sequence[Axis],
    pair: tuple[int, int],
    shares: Sequence[NDArray[np.float64]],
) -> tuple[float, float]:
    """Return the p-value of an association, and the mutual information of two attributes in nats,
    less its inflation by noise."""
    from scipy.special import gammaincc  # only here: slow to load

    names = [axes[place].name for place in pair]
    cells = Cells(tuple(axes[place] for place in pair), 2)
    likelihood = likelihood_of(rows.seen(names), names, cells.sizes)
    columns = interactions(cells, (0, 1), 2)
    none = np.multiply.outer(*(shares[place] for place in pair)).ravel()
    at = likelihood.derivatives(none, columns.values)
    prior = np.diag(prior_precision(columns))
    m = sum(order == 1 for order in columns.order)
    score, information = _given_first(at.score, at.information, prior, m)
    inverse = np.linalg.inv(information + prior[m:, m:])
    found = inverse @ score
    centred = columns.values - none @ columns.values
    clean = centred.T @ (none[:, None] * centred)
    _, clean = _given_first(at.score, clean, np.eye(len(clean)) * 1e-12, m)
    noise = inverse @ information @ inverse
    weight = 0.5 * float(found @ clean @ found - np.trace(clean @ noise))
    return float(gammaincc(len(found) / 2, max(0.0, float(score @ found)) / 2)), weight


def _given_first(
    score: NDArray[np.float64],
    information: NDArray[np.float64],
    prior: NDArray[np.float64],
    m: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return score and information of the parameters after the first m, given those."""
    across = np.linalg.solve(information[:m, :m] + prior[:m, :m], information[:m, m:])
    return (
        score[m:] - across.T @ score[:m],
        information[m:, m:] - information[m:, :m] @ across,
    )


def _spanning(weights: Mapping[tuple[int, int], float], n: int) -> list[tuple[int, int]]:
    """Return the edges of the spanning forest with the largest sum of weights."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    if not weights:
        return []
    first, second = zip(*weights, strict=True)
    found = minimum_spanning_tree(
        coo_array((-np.array([*weights.values()]), (first, second)), (n, n))
    )
    return [(int(i), int(j)) for i, j in np.argwhere(found.toarray() < 0)]


def _directed(edges: Sequence[tuple[int, int]], n: int) -> list[tuple[int, int]]:
    """Return the edges as parent and child, parents first; the attribute with the most edges is the
    root of its tree."""
    beside: list[set[int]] = [set() for _ in range(n)]
    for i, j in edges:
        beside[i].add(j)
        beside[j].add(i)
    found, reached = [], set()
    for root in sorted(range(n), key=lambda place: (-len(beside[place]), place)):
        waiting = [] if root in reached else [root]
        reached.add(root)
        for parent in waiting:
            for child in sorted(beside[parent] - reached):
                reached.add(child)
                found.append((parent, child))
                waiting.append(child)
    return found
