"""The channel on some of a mechanism's attributes, and its inverse, as maps of tables.

A channel M takes the table of the true values (shape: categories of every attribute) to the table
of what is expected to be released (shape: outputs of every attribute). It is a product over axes of
three kinds, and none needs a matrix over the joint table:

* axes whose laws are pattern laws: together one pattern kernel, applied by its eigenvalues;
* axes with a response matrix: that small matrix;
* axes released as they are: nothing is done.

Inverses, squares and entrywise products of such maps are of the same form, so every variance in
:mod:`deniable.inference` costs a few passes over the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.families import Identity, PatternLaw, ResponseLaw
from deniable.mechanism import Mechanism
from deniable.transforms import apply_eigenvalues, eigenvalues_of, kernel_of

LEAST_ATTENUATION = 1e-9
"""Eigenvalues are sums of probabilities with rounding errors near 1e-16; below this they have too
few digits left to divide by, and no table is large enough (1e18 records) to need them."""

HOPELESS = 1e-3
"""A component is refused if its noise is over 1/HOPELESS times the most it could ever hold."""


@dataclass(frozen=True)
class TableMap:
    """A linear map of tables that is a product of a pattern kernel and small matrices.

    Args:
        n_categories: categories per axis; where ``matrices`` has the axis, only a label.
        pattern_axes: the axes of the pattern kernel, ascending.
        eigenvalues: of the pattern kernel, shape (2,)·len(pattern_axes).
        matrices: for other axes, the matrix (rows, columns) that acts on them. Axes that are in
            neither are left alone.
    """

    n_categories: tuple[int, ...]
    pattern_axes: tuple[int, ...]
    eigenvalues: NDArray[np.float64]
    matrices: Mapping[int, NDArray[np.float64]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", MappingProxyType(dict(self.matrices)))

    @cached_property
    def pattern_categories(self) -> tuple[int, ...]:
        """Categories of the pattern axes."""
        return tuple(self.n_categories[axis] for axis in self.pattern_axes)

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """The pattern kernel g(S), shape (2,)·len(pattern_axes)."""
        return kernel_of(self.eigenvalues, self.pattern_categories)

    def apply(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the image of a table; a new array."""
        values = np.asarray(table, dtype=np.float64)
        for axis, matrix in self.matrices.items():
            values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
        return apply_eigenvalues(values, self.eigenvalues, self.pattern_axes)

    def transposed(self) -> "TableMap":
        """Return the transposed map. Pattern kernels are symmetric."""
        return self._with(self.eigenvalues, {i: m.T for i, m in self.matrices.items()})

    def squared(self) -> "TableMap":
        """Return the map whose matrix has every entry squared."""
        return self.times(self, range(len(self.n_categories)))

    def times(self, other: "TableMap", axes: Sequence[int]) -> "TableMap":
        """Return the entrywise product with a map of fewer axes.

        Args:
            other: a map over ``axes`` only; on the remaining axes it counts as constant 1.
            axes: the axes of this map that are other's axes, in other's order.
        """
        # Axis j of other's pattern kernel belongs to axis axes[j] here: line the two kernels up.
        mine = {axis: place for place, axis in enumerate(self.pattern_axes)}
        places = [mine[axes[axis]] for axis in other.pattern_axes]
        order = np.argsort(places)
        shape = [2 if place in places else 1 for place in range(len(self.pattern_axes))]
        factor = np.transpose(other.kernel, order).reshape(shape)
        matrices = dict(self.matrices)
        for axis, matrix in other.matrices.items():
            matrices[axes[axis]] = matrices[axes[axis]] * matrix
        return self._with(eigenvalues_of(self.kernel * factor, self.pattern_categories), matrices)

    def after(self, first: "TableMap") -> "TableMap":
        """Return the composition self∘first, both over the same axes of the same kinds."""
        matrices = {i: m @ first.matrices[i] for i, m in self.matrices.items()}
        return self._with(self.eigenvalues * first.eigenvalues, matrices)

    def _with(
        self, eigenvalues: NDArray[np.float64], matrices: Mapping[int, NDArray[np.float64]]
    ) -> "TableMap":
        return TableMap(self.n_categories, self.pattern_axes, eigenvalues, matrices)


@dataclass(frozen=True)
class Channel:
    """What a mechanism does to the joint table of some attributes, and how to undo it.

    Args:
        mechanism: the randomization.
        attributes: their names, in the order of the table's axes.

    Raises:
        InputError: if a name is unknown or given twice, or there is none.
    """

    mechanism: Mechanism
    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not self.attributes:
            raise InputError("name at least one attribute to estimate")
        self.mechanism.schema.positions(self.attributes)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Positions of the attributes in the schema."""
        return self.mechanism.schema.positions(self.attributes)

    @cached_property
    def n_categories(self) -> tuple[int, ...]:
        """Shape of a table of true values."""
        return tuple(self.mechanism.schema.n_categories[i] for i in self.positions)

    @cached_property
    def n_outputs(self) -> tuple[int, ...]:
        """Shape of a table of released values."""
        return tuple(self.mechanism.n_outputs[i] for i in self.positions)

    @cached_property
    def _matrix_laws(self) -> dict[int, ResponseLaw]:
        laws = [self.mechanism.block_of(position)[0].law for position in self.positions]
        return {axis: law for axis, law in enumerate(laws) if isinstance(law, ResponseLaw)}

    @cached_property
    def forward(self) -> TableMap:
        """M: the true table to the expected released table. Columns sum to 1."""
        groups: dict[int, list[int]] = {}
        for axis, position in enumerate(self.positions):
            block, _ = self.mechanism.block_of(position)
            if isinstance(block.law, PatternLaw) and not isinstance(block.law, Identity):
                groups.setdefault(self.mechanism.blocks.index(block), []).append(axis)
        # Blocks are independent: the eigenvalue of T is the product over blocks of the eigenvalue
        # of T's part in each.
        order: list[int] = []
        eigenvalues = np.ones(())
        for index, axes in groups.items():
            block = self.mechanism.blocks[index]
            assert isinstance(block.law, PatternLaw)
            places = [block.attributes.index(self.positions[axis]) for axis in axes]
            eigenvalues = np.multiply.outer(eigenvalues, block.law.eigenvalues(places))
            order += axes
        ascending = np.argsort(order)
        return TableMap(
            self.n_categories,
            tuple(sorted(order)),
            np.transpose(eigenvalues, ascending),
            {axis: law.matrix() for axis, law in self._matrix_laws.items()},
        )

    @cached_property
    def inverse(self) -> TableMap:
        """L with L·M = 1, whose columns sum to 1 too: unbiased, and consistent with its margins.

        Theory of pattern laws: the component T of the table is divided by φ(T). Not defined where
        an eigenvalue is zero; call :meth:`check` first.
        """
        return TableMap(
            self.n_categories,
            self.forward.pattern_axes,
            1.0 / self.forward.eigenvalues,
            {axis: law.left_inverse() for axis, law in self._matrix_laws.items()},
        )

    @cached_property
    def attenuation(self) -> NDArray[np.float64]:
        """|φ(T)| for every set T of the attributes, shape (2,)·m.

        For an axis with a response matrix, 1/‖L‖ with L its left inverse (spectral norm): its
        smallest singular value if it is square, and φ if it is a k-ary randomized response.
        """
        values = np.abs(self.forward.eigenvalues)
        for axis in range(len(self.attributes)):
            if axis in self.forward.pattern_axes:
                continue
            weakest = 1.0
            if axis in self._matrix_laws:
                norm = float(np.linalg.norm(self._matrix_laws[axis].left_inverse(), 2))
                weakest = min(1.0, 1.0 / norm)
            values = np.stack([values, weakest * values], axis=axis)
        return values

    @property
    def condition(self) -> float:
        """1/min |φ(T)|: how many times noise is magnified in the worst direction; at least 1."""
        return float(max(1.0, 1.0 / self.attenuation.min()))

    def check(self, n_records: float) -> None:
        """Refuse a table with a component that the randomization has wiped out.

        Spread over all cells, the noise in the component T has a root mean square of
        √(d_T/n)/(N |φ(T)|) with d_T = ∏_{i∈T}(a_i − 1) and N cells (taking the released table as
        uniform), and the component itself can never exceed √d_T/N, its size if all records were
        equal. So it drowns when |φ(T)| √n < 1. A table is refused when noise is more than a
        thousand times that most, |φ(T)| √n < 1e-3, or |φ(T)| < 1e-9; between the two, standard
        errors tell, and cells are marked as uncertain.

        Args:
            n_records: rows, or the effective number Σ²w/Σw² of weighted rows.

        Raises:
            InputError: naming the attributes of the smallest such T.
        """
        least = max(LEAST_ATTENUATION, HOPELESS / max(n_records, 1.0) ** 0.5)
        lost = np.argwhere(self.attenuation < least)
        if not len(lost):
            return
        sizes = lost.sum(axis=1)
        smallest = lost[sizes == sizes.min()]
        strengths = self.attenuation[tuple(smallest.T)]
        members = smallest[int(np.argmin(strengths))]
        names = ", ".join(
            f"'{name}'" for name, inside in zip(self.attributes, members, strict=True) if inside
        )
        if sizes.min() == 1:
            raise InputError(
                f"{names} cannot be estimated: this mechanism leaves next to nothing of it in "
                f"{n_records:.0f} records (attenuation {strengths.min():.1e}); it needs a larger "
                "privacy level or many more records"
            )
        raise InputError(
            f"a joint table of {names} cannot be estimated: this mechanism leaves next to nothing "
            f"of how they go together in {n_records:.0f} records (attenuation "
            f"{strengths.min():.1e}); ask for tables of fewer of them, or release with another "
            "method or larger privacy levels"
        )
