"""Axes of an attribute under a response matrix: the attribute, or some of its parts.

The proofs are in docs/proofs/interactions.md, Theorem 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from deniable.laws import ResponseLaw
from deniable.schema import Attribute


@dataclass(frozen=True)
class ResponseAxes:
    """A response matrix and the axes of its attribute: one for the whole, or one for each part.

    ``axes``: the table's axes that it acts on, ascending. ``parts``: the parts on these axes, in
    their order; empty for the attribute itself.
    """

    law: ResponseLaw
    attribute: Attribute
    axes: tuple[int, ...]
    parts: tuple[int, ...]

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Categories along the axes."""
        declared = [self.attribute.parts[i] for i in self.parts] or [self.attribute]
        return tuple(each.n_categories for each in declared)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Released values along the axes: all of them along the first."""
        return (*self.law.n_outputs, *(1 for _ in self.axes[1:]))

    @property
    def complete(self) -> bool:
        """Whether the axes determine the attribute's category."""
        return prod(self.rows) == self.attribute.n_categories

    def sums(self, parts: Sequence[int]) -> NDArray[np.float64]:
        """Return S, the sum over all parts but these: 1 where a combination of them (rows, the last
        fastest) belongs to a category (columns)."""
        codes = np.arange(self.attribute.n_categories)
        rows, n_rows = np.zeros_like(codes), 1
        for i in parts:
            size = self.attribute.parts[i].n_categories
            rows = rows * size + codes // self.attribute.strides[i] % size
            n_rows *= size
        if not self.parts:
            rows, n_rows = codes, len(codes)
        return np.equal.outer(np.arange(n_rows), rows).astype(np.float64)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """The categories, in the order of the axes if these determine them; else in their own."""
        return self.sums(self.parts) if self.complete else np.eye(self.attribute.n_categories)

    @cached_property
    def left_inverse(self) -> NDArray[np.float64]:
        """L with L·M = 1, shape (a, m); of a number the one whose estimate of the mean is nearest
        to the average of the released values."""
        left, grid = self.law.left_inverse(), self.attribute.number_grid
        values = self.attribute.answer_values()
        if grid is None or values is None:
            return left
        # L + s dᵀ/s² adds d to the weights of the mean, Lᵀs, and is a left inverse if dᵀM = 0; its
        # columns add up to 1 as those of L, since scores less their middle add up to 0.
        middle = (grid.low + grid.high) / 2
        scores = self.attribute.category_scores() or ()
        points = np.array([0.0 if score is None else score - middle for score in scores])
        change = np.array([0.0 if v is None else v - middle for v in values]) - points @ left
        change -= (change @ self.law.matrix()) @ left
        return np.asarray(left + np.outer(points, change) / (points @ points))

    def attenuation(self) -> NDArray[np.float64]:
        """Return the attenuation of each set of the axes, shape (2,)·len(axes): √(cells summed into
        one)/‖SL‖, which under a k-ary randomized response is φ."""
        left = self.left_inverse
        values = np.ones((2,) * len(self.axes))
        for chosen in np.argwhere(values)[1:]:
            matrix = self.sums([i for i, c in zip(self.parts, chosen, strict=False) if c]) @ left
            norm = float(np.linalg.norm(matrix, 2)) * (len(matrix) / left.shape[0]) ** 0.5
            values[tuple(chosen)] = min(1.0, 1.0 / norm)
        return values
