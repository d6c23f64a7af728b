"""The channel on some of a mechanism's attributes, and its inverse, as maps of tables.

A channel M maps the table of true values (shape: categories of every attribute) to the expected
released table (shape: outputs of every attribute). It is a product over axes of three kinds, and
none needs a matrix over the joint table: pattern laws, together one kernel applied by its
eigenvalues; response matrices; and the identity. Inverses, squares and entrywise products of such
maps are of the same form, so every variance in :mod:`deniable.estimate.inference` costs a few
passes over the table.

An axis may also be one part of an attribute merged from several columns
(docs/proofs/interactions.md, Theorem 9). Under a response matrix the released values of such an
attribute are one variable, on the axis of the part named first; the other axes have length 1.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import PatternLaw
from deniable.laws.matrix import ResponseLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.response_axes import ResponseAxes
from deniable.mechanism.table_map import JointAxes, TableMap
from deniable.numerals import number_text
from deniable.schema import Variable

LEAST_ATTENUATION = 1e-9
"""Eigenvalues are sums of probabilities with rounding errors near 1e-16; below this they have too
few digits left to divide by, and no table is large enough (1e18 records) to need them."""

HOPELESS = 1e-3
"""A component is refused if its noise is over 1/HOPELESS times the most it could ever hold."""


@dataclass(frozen=True)
class Axes:
    """The axes of a table of some attributes, and the response matrices that act on them.

    ``attributes``: names of attributes or of parts of merged ones, in the order of the axes.
    """

    mechanism: Mechanism
    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not self.attributes:
            raise InputError("name at least one attribute to estimate")
        _ = self.variables

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables on the axes: attributes, or parts of merged ones."""
        return self.mechanism.schema.variables(self.attributes)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Positions in the schema of the attributes that the axes belong to."""
        return tuple(variable.position for variable in self.variables)

    @cached_property
    def n_categories(self) -> tuple[int, ...]:
        """Shape of a table of true values."""
        return tuple(variable.attribute.n_categories for variable in self.variables)

    @cached_property
    def _responses(self) -> dict[int, ResponseAxes]:
        """The response matrices, by the first of their axes."""
        axes_of: dict[int, list[int]] = {}
        for axis, position in enumerate(self.positions):
            if isinstance(self.mechanism.block_of(position)[0].law, ResponseLaw):
                axes_of.setdefault(position, []).append(axis)
        responses = {}
        for position, axes in axes_of.items():
            law = self.mechanism.block_of(position)[0].law
            assert isinstance(law, ResponseLaw)
            parts = tuple(p for p in (self.variables[axis].part for axis in axes) if p is not None)
            attribute = self.mechanism.schema.attributes[position]
            responses[axes[0]] = ResponseAxes(law, attribute, tuple(axes), parts)
        return responses

    @property
    def shared_matrices(self) -> tuple[str, ...]:
        """Merged attributes under a response matrix, some of whose parts are among the axes: the
        release has no value of each part, only one of the attribute."""
        return tuple(r.attribute.name for r in self._responses.values() if r.parts)

    @property
    def complete(self) -> bool:
        """Whether the axes hold, of every merged attribute with a response matrix, all parts or
        none: only then is there a :attr:`forward` map."""
        return all(response.complete for response in self._responses.values())

    def spread(self, shares: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the table that is the product of shares along the axes, as maps take it; parts
        that are missing are evenly spread."""
        columns = list(shares)
        for response in self._responses.values():
            if not response.complete:
                first, *others = response.axes
                named = reduce(np.multiply.outer, (shares[axis] for axis in response.axes))
                sums = response.sums(response.parts)
                columns[first] = (named.ravel() / sums.sum(axis=1)) @ sums
                for axis in others:
                    columns[axis] = np.ones(1)
        return np.asarray(reduce(np.multiply.outer, columns))

    def _with_missing_parts(self) -> tuple[str, ...]:
        missing = [
            part.name
            for response in self._responses.values()
            if not response.complete
            for i, part in enumerate(response.attribute.parts)
            if i not in response.parts
        ]
        return (*self.attributes, *missing)

    @cached_property
    @abstractmethod
    def attenuation(self) -> NDArray[np.float64]:
        """Attenuation of the component of every set T of the attributes, shape (2,)·m."""

    def _left_of(
        self, pattern_axes: Sequence[int], patterns: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return :attr:`attenuation` from that of the pattern axes."""
        m = len(self.attributes)
        values = np.ones((2,) * m)
        factors = [(tuple(pattern_axes), patterns)]
        factors += [(r.axes, r.attenuation()) for r in self._responses.values()]
        for axes, factor in factors:
            values = values * factor.reshape([2 if axis in axes else 1 for axis in range(m)])
        return values

    @property
    def condition(self) -> float:
        """1/min |φ(T)|: the largest amplification of noise in any direction; at least 1."""
        return float(max(1.0, 1.0 / self.attenuation.min()))


@dataclass(frozen=True)
class Channel(Axes):
    """The map from true to expected released joint tables of some attributes, and its inverse."""

    @cached_property
    def n_outputs(self) -> tuple[int, ...]:
        """Shape of a table of released values."""
        shape = list(self.n_categories)
        for response in self._responses.values():
            for axis, n in zip(response.axes, response.outputs, strict=True):
                shape[axis] = n
        return tuple(shape)

    def completed(self) -> "Channel":
        """Return the channel with further axes behind, for the parts that are missing."""
        return Channel(self.mechanism, self._with_missing_parts())

    @cached_property
    def forward(self) -> TableMap:
        """M: the true table to the expected released table. Columns sum to 1."""
        if not self.complete:
            raise InputError(
                f"the released values of '{self.shared_matrices[0]}' depend on all its parts; name "
                "all of them"
            )
        return self.pattern_forward

    @cached_property
    def pattern_forward(self) -> TableMap:
        """:attr:`forward`, whether or not parts are missing; where they are, the columns of their
        axis are the attribute's own categories."""
        groups: dict[int, list[int]] = {}
        for axis, position in enumerate(self.positions):
            block, _ = self.mechanism.block_of(position)
            if isinstance(block.law, PatternLaw) and not block.law.kept_as_it_is:
                groups.setdefault(self.mechanism.blocks.index(block), []).append(axis)
        # Blocks are independent: the eigenvalue of T is the product over blocks of the eigenvalue
        # of T's part in each.
        order: list[int] = []
        eigenvalues = np.ones(())
        for index, axes in groups.items():
            block = self.mechanism.blocks[index]
            assert isinstance(block.law, PatternLaw)
            places = [block.attributes.index(self.positions[axis]) for axis in axes]
            of_axes = _per_axis(block.law, places)
            eigenvalues = np.multiply.outer(eigenvalues, of_axes)
            order += axes
        ascending = np.argsort(order)
        return TableMap(
            self.n_categories,
            tuple(sorted(order)),
            np.transpose(eigenvalues, ascending),
            {axis: r.law.matrix() @ r.columns.T for axis, r in self._responses.items()},
            {
                axis: JointAxes(
                    r.axes,
                    r.outputs,
                    r.rows if r.complete else (r.attribute.n_categories, *r.outputs[1:]),
                )
                for axis, r in self._responses.items()
                if len(r.axes) > 1
            },
        )

    @cached_property
    def inverse(self) -> TableMap:
        """L with L·M = 1, whose columns sum to 1 too: unbiased, and consistent with its margins.

        The component T of the table is divided by φ(T) (docs/proofs/interactions.md, Corollary 2).
        Not defined where an eigenvalue is zero; call :meth:`check` first. Where parts are missing,
        SL (Theorem 9 there).
        """
        return self.undoing(1.0 / self.pattern_forward.eigenvalues)

    def undoing(self, factors: NDArray[np.float64]) -> TableMap:
        """Return the map that undoes response matrices and multiplies the components of a table by
        given factors, shape (2,)·(pattern axes)."""
        return TableMap(
            self.n_categories,
            self.pattern_forward.pattern_axes,
            factors,
            {axis: r.sums(r.parts) @ r.left_inverse for axis, r in self._responses.items()},
            {
                axis: JointAxes(r.axes, r.rows, r.outputs)
                for axis, r in self._responses.items()
                if len(r.axes) > 1
            },
        )

    @cached_property
    def second_moments(self) -> TableMap:
        """(L∘L)M: the mean square of a row's contribution to a cell, by the row's true values."""
        return self.inverse.squared().after(self.pattern_forward)

    def belongs(self, axis: int) -> NDArray[np.bool_]:
        """Return, for an axis with a matrix, which columns of :attr:`second_moments` there belong
        to which row: to itself, or to a sum that holds it."""
        response = self._responses[axis]
        return np.asarray(response.sums(response.parts) @ response.columns.T > 0)

    def released_codes(self, codes: Mapping[int, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the codes counted along each axis, arrays of shape (n,), from released codes."""
        later = {axis for r in self._responses.values() for axis in r.axes[1:]}
        joint = {axis for r in self._responses.values() for axis in r.axes[:1]}
        columns = []
        for axis, variable in enumerate(self.variables):
            column = codes[variable.position]
            if axis in later:
                column = np.zeros(len(column), dtype=np.uint8)
            elif variable.part is not None and axis not in joint:
                whole = self.mechanism.schema.attributes[variable.position]
                stride = whole.strides[variable.part]
                column = column // stride % variable.attribute.n_categories
            columns.append(column)
        return columns

    def margin_axes(self, n_by: int) -> list[int]:
        """Return the axes of released values that the last ``n_by`` attributes are estimated from,
        in the order of their own channel."""
        axes: list[int] = []
        first = {axis: r.axes[0] for r in self._responses.values() for axis in r.axes}
        for axis in range(len(self.attributes) - n_by, len(self.attributes)):
            if (source := first.get(axis, axis)) not in axes:
                axes.append(source)
        return axes

    @cached_property
    def attenuation(self) -> NDArray[np.float64]:
        """|φ(T)| for every set T of the attributes, shape (2,)·m.

        For an axis with a response matrix, 1/‖L‖ with L its left inverse (spectral norm): its
        smallest singular value if it is square, and φ if it is a k-ary randomized response. For
        parts, with SL in place of L and cells of a common size.
        """
        forward = self.pattern_forward
        return self._left_of(forward.pattern_axes, np.abs(forward.eigenvalues))

    def check(self, n_records: float) -> None:
        """Raise if the randomization has destroyed a component of the table.

        Averaged over cells, the noise in component T is √(d_T/n)/(N |φ(T)|), d_T = ∏_{i∈T}(a_i − 1)
        and N cells (released table uniform); the component is at most √d_T/N, its size if all rows
        are equal. Noise is the larger if |φ(T)| √n < 1. Tables with |φ(T)| √n < 1e-3 or
        |φ(T)| < 1e-9 are refused; between the two, standard errors show the noise.
        """
        refuse_lost(self.attributes, self.attenuation, n_records)


def refuse_lost(
    attributes: Sequence[str], attenuation: NDArray[np.float64], n_records: float
) -> None:
    """Raise if a component has too small an eigenvalue (:meth:`Channel.check`)."""
    least = max(LEAST_ATTENUATION, HOPELESS / max(n_records, 1.0) ** 0.5)
    lost = np.argwhere(attenuation < least)
    if not len(lost):
        return
    sizes = lost.sum(axis=1)
    smallest = lost[sizes == sizes.min()]
    strengths = attenuation[tuple(smallest.T)]
    members = smallest[int(np.argmin(strengths))]
    names = ", ".join(
        f"'{name}'" for name, inside in zip(attributes, members, strict=True) if inside
    )
    if sizes.min() == 1:
        raise InputError(
            f"{names} cannot be estimated: the randomization has destroyed nearly all information "
            f"(n = {n_records:.0f}, attenuation {number_text(strengths.min(), 2)}); it needs a "
            "larger "
            "privacy level or many more records"
        )
    raise InputError(
        f"a joint table of {names} cannot be estimated: the randomization has destroyed nearly "
        f"all association between them (n = {n_records:.0f}, attenuation "
        f"{number_text(strengths.min(), 2)}); use tables of fewer attributes, or release with "
        "another "
        "method or larger privacy levels"
    )


def _per_axis(law: PatternLaw, places: Sequence[int]) -> NDArray[np.float64]:
    """Return φ for every set of axes, shape (2,)·len(places): that of the attributes with at least
    one of these axes."""
    distinct = list(dict.fromkeys(places))
    eigenvalues = law.eigenvalues(distinct)
    if len(distinct) == len(places):
        return eigenvalues
    chosen = np.indices((2,) * len(places))
    index = tuple(
        np.max([chosen[axis] for axis, p in enumerate(places) if p == place], axis=0)
        for place in distinct
    )
    return np.asarray(eigenvalues[index])
