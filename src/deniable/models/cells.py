"""The cells of a model: every combination of categories, and how the model merges them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.schema.names import split_names

OTHERS = "other"
"""What the category is called that * stands for."""


@dataclass(frozen=True)
class Axis:
    """One variable of a model.

    Args:
        name: of the attribute, or of the column released as it is.
        categories: as they were randomized, or the values that occur.
        levels: what the model sees, the first is the reference; by default the categories.
        level_of: the place among ``levels`` of every category.
        numbers: the values of a column of numbers, by category; None for categories.
    """

    name: str
    categories: tuple[str, ...]
    levels: tuple[str, ...] = ()
    level_of: tuple[int, ...] = ()
    numbers: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.levels:
            object.__setattr__(self, "levels", self.categories)
            object.__setattr__(self, "level_of", tuple(range(len(self.categories))))

    @property
    def merged(self) -> bool:
        """Whether the model sees fewer levels than there are categories."""
        return len(self.levels) < len(self.categories)

    def collapsed(self, text: str) -> "Axis":
        """Return the axis with merged categories.

        Args:
            text: the levels with ``|`` between them, the reference first; each a category, several
                with commas between them, or ``*`` for all others.

        Raises:
            InputError: if a category is unknown, in two levels, or in none.

        >>> race = Axis("race", ("Black", "White", "Other")).collapsed("White|*")
        >>> race.levels, race.level_of
        (('White', 'other'), (1, 0, 1))
        """
        where = f"`collapse` '{self.name}={text}'"
        groups = [split_names(part) for part in text.split("|")]
        named = [name for group in groups for name in group if name != "*"]
        if unknown := [name for name in named if name not in self.categories]:
            raise InputError(
                f"{where}: '{self.name}' has no category '{unknown[0]}' "
                f"(it has {', '.join(self.categories)})"
            )
        if twice := [name for name in named if named.count(name) > 1]:
            raise InputError(f"{where}: '{twice[0]}' is named twice")
        rest = [name for name in self.categories if name not in named]
        stars = sum(group == ["*"] for group in groups)
        if not all(groups) or stars > 1 or any("*" in group and len(group) > 1 for group in groups):
            raise InputError(f"{where}: expected levels such as 'a|b,c|*', with * at most once")
        if rest and not stars:
            raise InputError(f"{where}: '{rest[0]}' is in no level; add |* for all others")
        if stars and not rest:
            raise InputError(f"{where}: nothing is left for *; leave it out")
        other = OTHERS if len(rest) != 1 else rest[0]
        while other in named:
            other = f"{other} values"
        levels = tuple(other if group == ["*"] else "+".join(group) for group in groups)
        members = [rest if group == ["*"] else group for group in groups]
        of = {name: place for place, group in enumerate(members) for name in group}
        return Axis(self.name, self.categories, levels, tuple(of[name] for name in self.categories))


@dataclass(frozen=True)
class Cells:
    """The table of a model.

    Args:
        axes: attributes, then columns released as they are.
        n_attributes: how many of the axes are attributes.
    """

    axes: tuple[Axis, ...]
    n_attributes: int

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Categories of every axis."""
        return tuple(len(axis.categories) for axis in self.axes)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return prod(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """As a likelihood takes it: the columns released as they are together on the last axis."""
        return (*self.sizes[: self.n_attributes], prod(self.sizes[self.n_attributes :]))

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of every axis, by its name."""
        return {axis.name: axis.categories for axis in self.axes}

    def place(self, name: str) -> int:
        """Return the axis of a name."""
        return list(self.categories).index(name)

    @cached_property
    def indices(self) -> tuple[NDArray[np.int64], ...]:
        """The category of every cell along each axis, shape (cells,) each."""
        return tuple(grid.ravel() for grid in np.indices(self.sizes))

    def frame(self, axes: Sequence[int] | None = None) -> Any:
        """Return a pandas frame with a row per cell: levels, or numbers, under the axes' names.

        Args:
            axes: of only these a row for each combination; by default of all.
        """
        import pandas

        chosen = self if axes is None else Cells(tuple(self.axes[i] for i in axes), len(axes))
        columns: dict[str, Any] = {}
        for axis, index in zip(chosen.axes, chosen.indices, strict=True):
            if axis.numbers is not None:
                columns[axis.name] = np.array(axis.numbers)[index]
            else:
                codes = np.array(axis.level_of, dtype=np.int64)[index]
                columns[axis.name] = pandas.Categorical.from_codes(codes, pandas.Index(axis.levels))
        return pandas.DataFrame(columns)

    def merged_into(self, axes: Sequence[int]) -> NDArray[np.int64]:
        """Return, for every cell, the place of its combination of levels of some axes, the last
        fastest; shape (cells,)."""
        place = np.zeros(self.n_cells, dtype=np.int64)
        for i in axes:
            axis = self.axes[i]
            place = place * len(axis.levels) + np.array(axis.level_of)[self.indices[i]]
        return place


@dataclass(frozen=True)
class Columns:
    """Columns of a design.

    Args:
        values: shape (cells, columns).
        names: of the columns.
        order: how many variables each brings together: 1 for a main effect.
        terms: the term of a formula that each belongs to; empty for what is only there for the
            joint distribution of the covariates.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    order: tuple[int, ...]
    terms: tuple[str, ...]

    @staticmethod
    def beside(*parts: "Columns") -> "Columns":
        """Return several beside each other."""
        return Columns(
            np.hstack([part.values for part in parts]),
            tuple(name for part in parts for name in part.names),
            tuple(order for part in parts for order in part.order),
            tuple(term for part in parts for term in part.terms),
        )


def beside_nothing(cells: Cells) -> Columns:
    """Return no columns."""
    return Columns(np.zeros((cells.n_cells, 0)), (), (), ())


def interactions(cells: Cells, axes: Sequence[int], most: int) -> Columns:
    """Return orthonormal contrasts of categories, and their products, up to so many axes.

    They are there for a joint distribution and mean nothing one by one; so no category is a
    reference, and a prior on them favours none.

    >>> made = interactions(Cells((Axis("a", ("0", "1")), Axis("b", ("0", "1"))), 2), (0, 1), 2)
    >>> made.names, abs(made.values[0].round(3)).tolist()
    (('(a)', '(b)', '(a:b)'), [0.707, 0.707, 0.5])
    """
    contrasts = {axis: _contrasts(cells.sizes[axis])[cells.indices[axis]] for axis in axes}
    parts = [beside_nothing(cells)]
    for size in range(1, most + 1):
        for chosen in combinations(axes, size):
            values = np.ones((cells.n_cells, 1))
            for axis in chosen:
                values = _products(values, contrasts[axis])
            name = f"({':'.join(cells.axes[axis].name for axis in chosen)})"
            m = values.shape[1]
            parts.append(Columns(values, (name,) * m, (size,) * m, ("",) * m))
    return Columns.beside(*parts)


def _contrasts(n: int) -> NDArray[np.float64]:
    """Return an orthonormal basis of what sums to 0, shape (n, n − 1)."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))
    return np.asarray(basis[:, 1:])


def _products(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _within(cells: Cells, axis: int) -> NDArray[np.float64]:
    """Return indicators that tell the merged categories of each level apart, all but the first."""
    of = cells.axes[axis].level_of
    later = [place for place in range(len(of)) if of.index(of[place]) != place]
    return np.asarray(cells.indices[axis][:, None] == np.array(later, dtype=np.int64), dtype=float)


def _of_levels(cells: Cells, axis: int) -> NDArray[np.float64]:
    """Return indicators of all levels of an axis but the first."""
    level = np.array(cells.axes[axis].level_of)[cells.indices[axis]]
    return np.asarray(level[:, None] == np.arange(1, len(cells.axes[axis].levels)), dtype=float)


def of_merged(cells: Cells, response: int | None) -> Columns:
    """Return what a model needs beside its formula to tell merged categories apart.

    Args:
        cells: of the model.
        response: with a response, what merged categories of covariates do to it; without, shares of
            their own for them, and pairs with everything.
    """
    parts = [beside_nothing(cells)]

    def add(values: NDArray[np.float64], order: int, *axes: int) -> None:
        name = f"({':'.join(cells.axes[axis].name for axis in axes)})"
        m = values.shape[1]
        parts.append(Columns(values, (name,) * m, (order,) * m, ("",) * m))

    merged = [i for i, axis in enumerate(cells.axes) if axis.merged and i != response]
    for i in merged:
        if response is not None:
            answers = cells.indices[response][:, None] == np.arange(1, cells.sizes[response])
            add(_products(answers.astype(float), _within(cells, i)), 2, response, i)
            continue
        add(_within(cells, i), 1, i)
        for j in range(len(cells.axes)):
            if j != i:
                add(_products(_within(cells, i), _of_levels(cells, j)), 2, i, j)
            if j > i and j in merged:
                add(_products(_within(cells, i), _within(cells, j)), 2, i, j)
    return Columns.beside(*parts)
