"""Rows from a junction tree of associations, for tables too large for a model of all pairs.

Attributes join one after the other. Each depends on at most two others S that are in one clique
already, those of largest mutual information in total among the associations above their noise
(:mod:`deniable.synthesis.associations`); the new clique is S and the attribute. Its table is the
one of largest entropy with the table of S, which the earlier clique has, and the shrunk table of
the attribute with each of S, by iterative proportional fitting: a log-linear model without
interactions of three. Every chosen pair table therefore holds in the whole.

With an outcome the tree is of the other attributes, and the outcome depends on all of them
(:mod:`deniable.synthesis.outcome`).

Margins and associations of every copy are those of randomly weighted rows (Bayesian bootstrap:
Rubin 1981), with the same weights in all tables of a copy.

The true values of a released row y are drawn by a chain (independence Metropolis–Hastings): the
tree with evidence on each attribute alone, e^ρ where it agrees with y, proposes all values
together, and the rest of M[y, x] decides. The ρ are such that proposals agree with y as often as
the true values do (cross-entropy method: Rubinstein 1999).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.mechanism.channel import Channel
from deniable.mechanism.published import PublishedChannel
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.randomness import BitSource
from deniable.synthesis.associations import Associations, raked
from deniable.synthesis.drawing import Choices, code_type, exponentials, uniforms
from deniable.synthesis.outcome import SAMPLED, Outcome
from deniable.synthesis.rows import ReleasedRows

WIDTH = 2
"""Most attributes that an attribute depends on."""

MOST_CELLS = 100_000
"""Largest clique with three attributes."""

MOST_IMPUTED = 20
"""Largest number of attributes with imputed values: a law has a number for every subset of them."""

STEPS = 25
"""Steps of the chain that draws true values."""

_BLOCK = 1 << 14
"""Rows imputed together."""

_TUNED = 2000
"""Rows, and draws of each, that determine the factors, and the number of corrections."""
_TUNING_DRAWS, _TUNINGS = 8, 6


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnTree:
    """A tree with drawn shares.

    ``order``: places of the attributes, parents first. ``parents``: of every attribute, by place.
    ``shares``: of every attribute given its parents, shape (combinations of parents, categories).
    """

    parents: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    shares: tuple[Floats, ...]


@dataclass(frozen=True)
class TreeModel:
    """A junction tree of associations, fitted to released rows.

    ``parents``: of every attribute in the tree, in their order. ``outcome``: the place of the
    attribute that depends on all others; None without.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    associations: Associations
    parents: dict[int, tuple[int, ...]]
    outcome: int | None = None

    kind: ClassVar[str] = "tree"

    @classmethod
    def fitted(
        cls, rows: ReleasedRows, names: Sequence[str], about: str | None = None, width: int = WIDTH
    ) -> "TreeModel":
        """Find the tree; ``about``: the outcome's name."""
        names = tuple(names)
        associations = Associations(rows, names)
        sizes = tuple(len(shares) for shares in associations.fitted)
        outcome = None if about is None else names.index(about)
        parents = _grown(associations, sizes, outcome, width)
        return cls(names, sizes, associations, parents, outcome)

    @cached_property
    def regressors(self) -> tuple[int, ...]:
        """Places of the attributes that the outcome depends on."""
        of, outcome = self.associations, self.outcome
        return tuple(i for i in self.parents if outcome is not None and of.estimable(i, outcome))

    def to_plain(self) -> dict[str, Any]:
        """Return the model's assumptions as plain values."""
        edges = [(parent, place) for place, of in self.parents.items() for parent in of]
        edges += [(self.outcome, place) for place in self.regressors if self.outcome is not None]
        known = {frozenset(edge) for edge in edges}
        pairs = combinations(range(len(self.names)), 2)
        return {
            "kind": self.kind,
            "attributes": list(self.names),
            "about": None if self.outcome is None else self.names[self.outcome],
            "cells": prod(self.sizes),
            "parameters": sum(size - 1 for size in self.sizes)
            + sum((self.sizes[i] - 1) * (self.sizes[j] - 1) for i, j in edges),
            "pairs": [[self.names[i] for i in edge] for edge in edges],
            "independent": [
                [self.names[i] for i in pair] for pair in pairs if frozenset(pair) not in known
            ],
            "test": None,
        }

    def drawn(self, margins: Sequence[Floats], weights: Floats | None = None) -> DrawnTree:
        """Return the tree of weighted rows, given their margins."""
        of = self.associations
        shares: list[Floats] = [np.zeros((0, 0))] * len(self.names)
        cliques: list[tuple[tuple[int, ...], Floats]] = []
        for place, parents in self.parents.items():
            base = _margin(cliques, parents)
            last = len(parents)
            table = raked(
                np.multiply.outer(base, margins[place]),
                [(tuple(range(last)), base)]
                + [
                    ((axis, last), of.table(parent, place, margins, weights))
                    for axis, parent in enumerate(parents)
                ],
            )
            cliques.append(((*parents, place), table))
            table = table.reshape(-1, self.sizes[place])
            # Values of parents without a row: independent of them.
            some = table.sum(axis=1, keepdims=True)
            shares[place] = np.where(some > 0, table / np.where(some > 0, some, 1), margins[place])
        parents_of = tuple(self.parents.get(place, ()) for place in range(len(self.names)))
        return DrawnTree(parents_of, tuple(self.parents), tuple(shares))

    def synthetic(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return new rows of several copies, shape (copies, attributes, rows)."""
        found = np.empty((copies, len(self.names), n_rows), code_type(self.sizes))
        of, fit = self.associations, None
        for copy in found:
            weights = exponentials(of.rows.n_rows, bits)
            margins = of.margins(weights)
            self._draw(copy, self.drawn(margins, weights), bits)
            if self.outcome is not None:
                others = copy[list(self.regressors)]
                fit = fit or self._outcome(others, of.fitted)
                copy[self.outcome] = self._outcome(others, margins, weights, fit).drawn(
                    others, bits
                )
        return found

    def _draw(self, rows: NDArray[Any], tree: DrawnTree, bits: BitSource) -> None:
        """Draw the attributes of the tree into rows, shape (attributes, n)."""
        for place in tree.order:
            of = np.zeros(rows.shape[1], np.int64)
            for parent in tree.parents[place]:
                of = of * self.sizes[parent] + rows[parent]
            rows[place] = Choices(tree.shares[place]).draw(of, bits)

    def regression(self, bits: BitSource) -> Outcome:
        """Return the fitted regression of the outcome on the regressors."""
        margins = self.associations.fitted
        rows = np.zeros((len(self.names), SAMPLED), code_type(self.sizes))
        self._draw(rows, self.drawn(margins), bits)
        return self._outcome(rows[list(self.regressors)], margins)

    def _outcome(
        self,
        others: NDArray[Any],
        margins: Sequence[Floats],
        weights: Floats | None = None,
        start: Outcome | None = None,
    ) -> Outcome:
        """Fit the outcome to weighted rows, for regressors as in sampled rows."""
        outcome, of, places = self.outcome, self.associations, self.regressors
        assert outcome is not None
        return Outcome.fitted(
            others,
            [self.sizes[place] for place in places],
            np.concatenate([of.direct(i, outcome, margins, weights) for i in places]),
            np.concatenate([of.variance(i, outcome) for i in places]),
            margins[outcome],
            start,
            most=of.rows.n_rows / 4,
        )

    def imputed(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return true values of the released rows, drawn given the release, shape (copies,
        attributes, rows). The tree has width 1 and no outcome."""
        if len(self.names) > MOST_IMPUTED:
            raise InputError(
                f"true values of released rows are drawn for at most {MOST_IMPUTED} attributes; "
                "name fewer, or use synthetic rows"
            )
        found = np.empty((copies, len(self.names), n_rows), code_type(self.sizes))
        rows_of = self.associations.rows
        drawn = [exponentials(rows_of.n_rows, bits) for _ in range(copies)]
        trees = [self.drawn(self.associations.margins(each), each) for each in drawn]
        for stratum, rows in rows_of.parts:
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                channel, axes = rows_of.shown(self.names, block, stratum)
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
            for parent in tree.parents[place]:
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
                of = rows
                for parent in tree.parents[place]:
                    of = rows * len(tree.shares[place]) + values[parent]
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


def _margin(cliques: Sequence[tuple[tuple[int, ...], Floats]], places: tuple[int, ...]) -> Floats:
    """Return the table of some attributes from the first clique that has all of them."""
    if not places:
        return np.ones(())
    members, table = next(clique for clique in cliques if {*places} <= {*clique[0]})
    rest = tuple(axis for axis, member in enumerate(members) if member not in places)
    left = [member for member in members if member in places]
    return np.transpose(table.sum(axis=rest), [left.index(place) for place in places])


def _grown(
    associations: Associations, sizes: Sequence[int], outcome: int | None, width: int
) -> dict[int, tuple[int, ...]]:
    """Return the parents of every attribute but the outcome, in the order of the tree."""
    gain = associations.information
    waiting = [place for place in range(len(sizes)) if place != outcome]
    first = max(waiting, key=lambda i: sum(gain(i, j) for j in waiting if j != i))
    parents: dict[int, tuple[int, ...]] = {first: ()}
    waiting.remove(first)
    # For every separator the total information of the attributes that wait.
    offers: dict[tuple[int, ...], dict[int, float]] = {}

    def offer(separator: tuple[int, ...]) -> None:
        cells = prod(sizes[place] for place in separator)
        offers[separator] = {
            place: sum(gain(place, parent) for parent in separator)
            for place in waiting
            if len(separator) < 2 or cells * sizes[place] <= MOST_CELLS
        }

    offer(())
    offer((first,))
    while waiting:
        _, _, place, separator = max(
            (worth, -len(separator), place, separator)
            for separator, worths in offers.items()
            for place, worth in worths.items()
        )
        chosen = tuple(parent for parent in separator if gain(place, parent) > 0)
        parents[place] = chosen
        waiting.remove(place)
        for worths in offers.values():
            worths.pop(place, None)
        clique = tuple(sorted((*chosen, place)))
        for n in range(1, width + 1):
            for part in combinations(clique, n):
                if part not in offers:
                    offer(part)
    return parents
