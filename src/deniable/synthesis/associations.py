"""Margins and associations of a release, shrunk where they are not above their noise.

For a pair of attributes with margins r and c the unbiased table T has the interaction
Z = D(T − rcᵀ), D the double centring, with noise of variance V per cell. Empirical Bayes
(Efron and Morris 1973): Z_xy ~ N(0, τ²·r_x·c_y) before the noise, the scale of Pearson's residuals
at which all cells contribute alike to Φ² = Σ Z²/(rc). The τ² of largest marginal likelihood solves

    Σ w (Z² − V − τ²rc) = 0,    w = rc/(τ²rc + V)²,

and the posterior of a cell is normal with mean sZ and variance sV, s = τ²rc/(τ²rc + V). The ab
cells of Z have (a − 1)(b − 1) degrees of freedom, by whose fraction of ab the log-likelihood ratio
of τ² against 0 is multiplied. The association is left out, s = 0, unless twice that is above 4, the
square of two standard errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import Inference
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.published import PublishedChannel
from deniable.synthesis.rows import ReleasedRows, Seen

Floats = NDArray[np.float64]
Pair = tuple[int, int]
"""Places of two attributes, ascending."""

ABOVE_NOISE = 4.0
"""Twice the least log-likelihood ratio of an association that is not left out."""

_STEPS = 50
_SWEEPS, _NEAR = 100, 1e-6
"""Most sweeps of a raking, and the sum of deviations at which it has converged."""


@dataclass(frozen=True)
class Association:
    """An association above its noise: Z and s of every cell, shape (a, b), and its mutual
    information in nats."""

    interaction: Floats
    shrinkage: Floats
    information: float


@dataclass(frozen=True)
class Associations:
    """Margins and pair tables of some attributes, estimated from released rows."""

    rows: ReleasedRows
    names: tuple[str, ...]

    @cached_property
    def _counted(self) -> dict[tuple[int, ...], tuple[list[Seen], Inference]]:
        return {}

    def inference(self, places: tuple[int, ...]) -> Inference:
        """Return the inference about the joint table of some attributes."""
        if places not in self._counted:
            names = [self.names[place] for place in places]
            seen = self.rows.seen(names)
            parts = ((s.mechanism, Tabulation(s.counts, None, len(s.rows))) for s in seen)
            counts = Counts(tuple(parts), column=self.rows.strata.column)
            self._counted[places] = seen, Inference(counts, tuple(names), "population")
        return self._counted[places][1]

    def values(self, places: tuple[int, ...], weights: Floats | None = None) -> Floats:
        """Return the unbiased joint table of some attributes; ``weights``: of the rows, shape
        (n,), scaled so that every form has the weight of its number of rows."""
        inference = self.inference(places)
        if weights is None:
            return inference.values
        total = np.zeros(())
        for seen, (_, part) in zip(self._counted[places][0], inference.parts, strict=True):
            counts = np.bincount(seen.cells, weights[seen.rows], seen.counts.size).astype(float)
            if isinstance(part.channel, PublishedChannel):
                pieces = part.channel.forward.pieces
                for piece, known in zip(pieces(counts), pieces(seen.counts), strict=True):
                    piece *= known.sum() / max(piece.sum(), 1e-300)
            counts *= weights[seen.rows].sum() / (weights.sum() * counts.sum())
            total = total + part.channel.inverse.apply(counts.reshape(seen.counts.shape))
        return np.asarray(total)

    def margins(self, weights: Floats | None = None) -> list[Floats]:
        """Return the shares of every attribute's categories."""
        return [project_to_simplex(self.values((i,), weights)) for i in range(len(self.names))]

    def direct(
        self, one: int, other: int, margins: Sequence[Floats], weights: Floats | None = None
    ) -> Floats:
        """Return the unbiased table of two attributes with given margins."""
        pair = (one, other) if one < other else (other, one)
        expected = np.multiply.outer(*(margins[place] for place in pair))
        table = expected + centred(self.values(pair, weights) - expected)
        return table if one < other else table.T

    def estimable(self, one: int, other: int) -> bool:
        """Return whether any form includes both attributes, with some information left."""
        try:
            self.inference((min(one, other), max(one, other)))
        except InputError:
            return False
        return True

    def variance(self, one: int, other: int) -> Floats:
        """Return the variances of its cells; that of a cell without rows is that of a cell of
        one."""
        if one > other:
            return self.variance(other, one).T
        return np.maximum(self.inference((one, other)).variance, 1.0 / self.rows.n_rows**2)

    @cached_property
    def fitted(self) -> list[Floats]:
        """The margins of all rows."""
        return self.margins()

    @cached_property
    def found(self) -> dict[Pair, Association]:
        """The associations above their noise."""
        found = {}
        for pair in combinations(range(len(self.names)), 2):
            if not self.estimable(*pair):
                continue
            table = self.direct(*pair, self.fitted)
            margins = [self.fitted[place] for place in pair]
            expected = np.multiply.outer(*margins)
            interaction = table - expected
            shrinkage = _shrinkage(interaction, self.variance(*pair), expected)
            if shrinkage is None:
                del self._counted[pair]
                continue
            table = _table(margins, shrinkage * interaction)
            some = table > 0
            information = float((table[some] * np.log(table[some] / expected[some])).sum())
            found[pair] = Association(interaction, shrinkage, max(information, 0.0))
        return found

    def information(self, one: int, other: int) -> float:
        """Return the mutual information of two attributes in nats, 0 if not above its noise."""
        association = self.found.get((min(one, other), max(one, other)))
        return 0.0 if association is None else association.information

    def table(
        self, one: int, other: int, margins: Sequence[Floats], weights: Floats | None = None
    ) -> Floats:
        """Return the shrunk table of two attributes with given margins; with weights of the rows a
        draw from its posterior, sZ + √s(Z* − Z), Z* of the weighted rows."""
        if one > other:
            return self.table(other, one, margins, weights).T
        both = [margins[one], margins[other]]
        association = self.found.get((one, other))
        if association is None:
            return np.asarray(np.multiply.outer(*both))
        interaction = association.shrinkage * association.interaction
        if weights is not None:
            again = self.direct(one, other, margins, weights) - np.multiply.outer(*both)
            noise = again - association.interaction
            interaction = interaction + np.sqrt(association.shrinkage) * noise
        return _table(both, interaction)


def centred(table: Floats) -> Floats:
    """Return a table less the means of its rows and columns."""
    table = table - table.mean(axis=0)
    return np.asarray(table - table.mean(axis=1, keepdims=True))


def raked(table: Floats, margins: Sequence[tuple[tuple[int, ...], Floats]]) -> Floats:
    """Return the table with given margins that is nearest to a table in relative entropy
    (iterative proportional fitting); ``margins``: axes, ascending, and their table."""
    for _ in range(_SWEEPS):
        off = 0.0
        for axes, wanted in margins:
            rest = tuple(axis for axis in range(table.ndim) if axis not in axes)
            had = table.sum(axis=rest, keepdims=True)
            target = np.expand_dims(wanted, rest)
            off = max(off, float(abs(had - target).sum()))
            table = table * np.divide(target, had, out=np.zeros_like(had), where=had > 0)
        if off < _NEAR:
            break
    return np.asarray(table / table.sum())


def _table(margins: Sequence[Floats], interaction: Floats) -> Floats:
    table = np.maximum(np.multiply.outer(*margins) + interaction, 0.0)
    return raked(table, [((0,), margins[0]), ((1,), margins[1])])


def _shrinkage(interaction: Floats, variance: Floats, expected: Floats) -> Floats | None:
    """Return s of every cell, or None if the association is not above its noise."""
    excess, scale = interaction**2 - variance, 0.0
    weights = np.ones_like(expected)
    for _ in range(_STEPS):
        before = scale
        scale = max(0.0, float((excess * weights).sum() / (expected * weights).sum()))
        if abs(scale - before) <= 1e-6 * scale:
            break
        weights = expected / (scale * expected + variance) ** 2
    a, b = interaction.shape
    prior = scale * expected
    gain = interaction**2 * (1 / variance - 1 / (prior + variance)) - np.log1p(prior / variance)
    if float(gain.sum()) * (a - 1) * (b - 1) / (a * b) <= ABOVE_NOISE:
        return None
    return np.asarray(prior / (prior + variance))
