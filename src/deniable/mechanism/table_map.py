"""Linear maps of tables: a pattern kernel times small matrices, applied axis by axis.

Where answers name sets of categories, one side of the map has an axis of answers instead of
categories; an entry then depends on whether the category is in the set, elsewhere on whether it is
unchanged.

The proofs are in docs/proofs/interactions.md, Theorem 8, and docs/proofs/forms.md, section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.laws.set_answers import SetAnswers
from deniable.laws.transforms import apply_eigenvalues, eigenvalues_of, kernel_of


class JointAxes(NamedTuple):
    """Axes on which one matrix acts, ascending, and the shapes of its rows and columns there."""

    axes: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class TableMap:
    """A linear map of tables that is a product of a pattern kernel and small matrices.

    ``n_categories``: categories per axis; where ``matrices`` has the axis, only a label.
    ``pattern_axes``: the axes of the pattern kernel, ascending. ``eigenvalues``: of the pattern
    kernel, shape (2,)·len(pattern_axes). ``matrices``: for other axes, their matrix (rows,
    columns). ``joint``: axes that share one matrix, ascending, with the shapes of its rows and
    columns over them, by the first of them, the key of the matrix. ``sets``: the pattern axes that
    hold answers on one side of the map, and the sets that these name.
    """

    n_categories: tuple[int, ...]
    pattern_axes: tuple[int, ...]
    eigenvalues: NDArray[np.float64]
    matrices: Mapping[int, NDArray[np.float64]]
    joint: Mapping[int, JointAxes] = field(default_factory=dict)
    sets: Mapping[int, SetAnswers] = field(default_factory=dict)
    from_answers: bool = True
    weighted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", MappingProxyType(dict(self.matrices)))
        object.__setattr__(self, "joint", MappingProxyType(dict(self.joint)))
        object.__setattr__(self, "sets", MappingProxyType(dict(self.sets)))

    @cached_property
    def pattern_categories(self) -> tuple[float, ...]:
        """Categories of the pattern axes; of answers that name sets, how many sets would hold all
        of them."""
        return tuple(
            self.n_categories[axis] / (self.sets[axis].breadth if axis in self.sets else 1)
            for axis in self.pattern_axes
        )

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """The pattern kernel g(S), shape (2,)·len(pattern_axes), without the shares of lists."""
        return kernel_of(self.eigenvalues, self.pattern_categories) / self._breadth

    @property
    def _breadth(self) -> int:
        # Answers are spread evenly over their sets before the eigenvalues are applied.
        return prod(sets.breadth for sets in self.sets.values())

    def apply(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the image of a table; a new array."""
        values = np.asarray(table, dtype=np.float64)
        if self.from_answers:
            for axis, sets in self.sets.items():
                values = sets.spread(values, axis, weighted=self.weighted)
        for axis, matrix in self.matrices.items():
            if axis in self.joint:
                values = _apply_jointly(matrix, values, self.joint[axis])
            else:
                values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
        values = apply_eigenvalues(values, self.eigenvalues, self.pattern_axes)
        if not self.from_answers:
            for axis, sets in self.sets.items():
                values = sets.gathered(values, axis, weighted=self.weighted)
        return values

    def transposed(self) -> "TableMap":
        """Return the transposed map. Pattern kernels are symmetric."""
        joint = {i: JointAxes(j.axes, j.columns, j.rows) for i, j in self.joint.items()}
        matrices = {i: m.T for i, m in self.matrices.items()}
        turned = not self.from_answers
        return replace(self, matrices=matrices, joint=joint, from_answers=turned)

    def squared(self) -> "TableMap":
        """Return the map whose matrix has every entry squared."""
        return self._squared

    def cubed(self) -> "TableMap":
        """Return the map whose matrix has every entry to the third power."""
        return self._cubed

    # Many tables use one map: its powers are computed once.

    @cached_property
    def _squared(self) -> "TableMap":
        return self.times(self, range(len(self.n_categories)))

    @cached_property
    def _cubed(self) -> "TableMap":
        return self._squared.times(self, range(len(self.n_categories)))

    def row_range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the greatest entry of every row; their shapes broadcast to a table.

        On unchanged axes only the row's own value counts.
        """
        ends = [np.full((1,) * len(self.n_categories), f(self.kernel)) for f in (np.min, np.max)]
        for axis, matrix in self.matrices.items():
            axes = self.axes_of(axis)
            rows = self.joint[axis].rows if axis in self.joint else matrix.shape[:1]
            sizes = dict(zip(axes, rows, strict=True))
            shape = [sizes.get(j, 1) for j in range(len(self.n_categories))]
            factors = [f(matrix, axis=1).reshape(shape) for f in (np.min, np.max)]
            products = [end * factor for end in ends for factor in factors]
            ends = [np.minimum.reduce(products), np.maximum.reduce(products)]
        return ends[0], ends[1]

    def times(self, other: "TableMap", axes: Sequence[int]) -> "TableMap":
        """Return the entrywise product with a map of fewer axes.

        ``other``: a map over ``axes`` only; on the remaining axes it counts as constant 1.
        ``axes``: the axes of this map that are other's axes, in other's order.
        """
        # Axis j of other's pattern kernel belongs to axis axes[j] here: line the two kernels up.
        mine = {axis: place for place, axis in enumerate(self.pattern_axes)}
        places = [mine[axes[axis]] for axis in other.pattern_axes]
        order = np.argsort(places)
        shape = [2 if place in places else 1 for place in range(len(self.pattern_axes))]
        factor = np.transpose(other.kernel, order).reshape(shape)
        matrices = dict(self.matrices)
        for axis, matrix in other.matrices.items():
            own = [axes[i] for i in other.axes_of(axis)]
            at = next(first for first in matrices if own[0] in self.axes_of(first))
            theirs = matrix
            if (joint := self.joint.get(at)) is not None:
                # The other's rows are constant along the axes that only this map has.
                pairs = zip(joint.axes, joint.rows, strict=True)
                narrow = matrix.reshape(*(n if i in own else 1 for i, n in pairs), -1)
                wide = np.broadcast_to(narrow, (*joint.rows, matrix.shape[1]))
                theirs = wide.reshape(-1, matrix.shape[1])
            matrices[at] = matrices[at] * theirs
        eigenvalues = eigenvalues_of(self.kernel * factor, self.pattern_categories)
        return replace(self, eigenvalues=eigenvalues * self._breadth, matrices=matrices)

    def after(self, first: "TableMap") -> "TableMap":
        """Return the composition self∘first, both over the same axes of the same kinds; where
        answers name sets, of a map from answers and a weighted one to them."""
        matrices = {i: m @ first.matrices[i] for i, m in self.matrices.items()}
        joint = {
            i: JointAxes(j.axes, j.rows, first.joint[i].columns) for i, j in self.joint.items()
        }
        eigenvalues = self.eigenvalues * first.eigenvalues
        for place, axis in enumerate(self.pattern_axes):
            if axis in self.sets:  # spreading over sets and reading them back scales by this
                shown = np.array([1.0, self.sets[axis].information])
                eigenvalues = np.moveaxis(np.moveaxis(eigenvalues, place, -1) * shown, -1, place)
        return replace(self, eigenvalues=eigenvalues, matrices=matrices, joint=joint, sets={})

    def axes_of(self, axis: int) -> tuple[int, ...]:
        """Return the axes that a matrix acts on."""
        return self.joint[axis].axes if axis in self.joint else (axis,)


def _apply_jointly(
    matrix: NDArray[np.float64], values: NDArray[np.float64], joint: JointAxes
) -> NDArray[np.float64]:
    front = tuple(range(len(joint.axes)))
    moved = np.moveaxis(values, joint.axes, front)
    rest = moved.shape[len(front) :]
    image = matrix @ moved.reshape(matrix.shape[1], -1)
    return np.moveaxis(image.reshape(*joint.rows, *rest), front, joint.axes)
