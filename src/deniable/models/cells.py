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
from deniable.estimate.query import value_among
from deniable.schema.names import split_names

OTHERS = "other"
"""Name of the category for *."""


@dataclass(frozen=True)
class Axis:
    """One variable of a model."""

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

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return the level, or the number, of some categories, shape (n,)."""
        return np.asarray(self.level_of if self.numbers is None else self.numbers)[codes]

    def without(self, gone: Sequence[int]) -> "Axis":
        """Return the axis without some categories, and without levels that are left with none.

        >>> race = Axis("race", ("Black", "White", "Other")).collapsed("White|*")
        >>> race.without([1]).levels, race.without([0]).level_of
        (('other',), (0, 1))
        """
        left = [i for i in range(len(self.categories)) if i not in gone]
        used = sorted({self.level_of[i] for i in left})
        return Axis(
            self.name,
            tuple(self.categories[i] for i in left),
            tuple(self.levels[level] for level in used),
            tuple(used.index(self.level_of[i]) for i in left),
        )

    def collapsed(self, text: str) -> "Axis":
        """Return the axis with merged categories: levels with ``|`` between them, the reference
        first; each a category, several with commas between them, or ``*`` for all others.
        """
        where = f"`collapse` '{self.name}={text}'"
        groups = [
            [value_among(name, self.categories) or name for name in split_names(part)]
            for part in text.split("|")
        ]
        named = [name for group in groups for name in group if name != "*"]
        rest = [name for name in self.categories if name not in named]
        if unknown := [name for name in named if name not in self.categories]:
            known = f"(it has {', '.join(self.categories)})"
            raise InputError(f"{where}: '{self.name}' has no category '{unknown[0]}' {known}")
        if twice := [name for name in named if named.count(name) > 1]:
            raise InputError(f"{where}: '{twice[0]}' is named twice")
        stars = sum("*" in group for group in groups)
        if not all(groups) or stars > 1 or (stars and ["*"] not in groups):
            raise InputError(f"{where}: expected levels such as 'a|b,c|*', with * at most once")
        if rest and not stars:
            raise InputError(f"{where}: '{rest[0]}' is in no level; add |* for all others")
        if len(groups) < 2:
            raise InputError(
                f"{where}: all categories of '{self.name}' are in one level; "
                "name two levels or more, or leave it out of the formula"
            )
        if stars and not rest:
            raise InputError(f"{where}: no categories remain for *; leave it out")
        other = OTHERS if len(rest) != 1 else rest[0]
        while other in named:
            other = f"{other} values"
        levels = tuple(other if group == ["*"] else "+".join(group) for group in groups)
        if alike := [name for name in levels if levels.count(name) > 1]:
            raise InputError(f"{where}: two levels would be called '{alike[0]}'; merge otherwise")
        members = [rest if group == ["*"] else group for group in groups]
        of = {name: place for place, group in enumerate(members) for name in group}
        return Axis(self.name, self.categories, levels, tuple(of[name] for name in self.categories))


@dataclass(frozen=True)
class Cells:
    """The table of a model.

    ``n_attributes``: how many of the axes are attributes.
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
        """Shape for the likelihood: kept columns are one axis, the last."""
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

    @property
    def levels(self) -> "Cells":
        """Contingency table of the model's variables, with merged categories."""
        axes = (Axis(axis.name, axis.levels, numbers=axis.numbers) for axis in self.axes)
        return Cells(tuple(axes), self.n_attributes)

    def values(self) -> list[NDArray[Any]]:
        """Return, by axis, the level or number of every cell, shape (cells,)."""
        both = zip(self.axes, self.indices, strict=True)
        return [axis.values(index) for axis, index in both]

    def merged_into(self, axes: Sequence[int]) -> NDArray[np.int64]:
        """Return, for every cell, the place of its combination of levels of some axes, the last
        fastest; shape (cells,)."""
        place = np.zeros(self.n_cells, dtype=np.int64)
        for i in axes:
            level_of = np.array(self.axes[i].level_of)
            place = place * len(self.axes[i].levels) + level_of[self.indices[i]]
        return place

    def covariates(self, response: int | None) -> NDArray[np.int64]:
        """Return, for every cell, the combination of levels of all axes but the response's, from 0;
        zeros for a log-linear model, which has no response."""
        axes = range(len(self.axes))
        return self.merged_into([i for i in axes if response not in (None, i)])


@dataclass(frozen=True)
class Columns:
    """Columns of a design.

    ``values``: shape (cells, columns).
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    order: tuple[int, ...]
    terms: tuple[str, ...]

    def where(self, chosen: NDArray[np.bool_]) -> "Columns":
        """Return some of the columns."""
        places = np.flatnonzero(chosen)
        return Columns(
            self.values[:, places],
            tuple(self.names[i] for i in places),
            tuple(self.order[i] for i in places),
            tuple(self.terms[i] for i in places),
        )

    @staticmethod
    def joined(*parts: "Columns") -> "Columns":
        """Return the columns of all parts."""
        return Columns(
            np.hstack([part.values for part in parts]),
            tuple(name for part in parts for name in part.names),
            tuple(order for part in parts for order in part.order),
            tuple(term for part in parts for term in part.terms),
        )


def _products(cells: Cells, factors: Sequence[tuple[int, NDArray[np.float64]]]) -> Columns:
    """Return the products of functions of one axis each, with shape (categories, columns), as
    columns that belong to no term of a formula."""
    values = np.ones((cells.n_cells, 1))
    for axis, function in factors:
        here = function[cells.indices[axis]]
        values = (values[:, :, None] * here[:, None, :]).reshape(cells.n_cells, -1)
    name = f"distribution of {', '.join(cells.axes[axis].name for axis, _ in factors)}"
    m = values.shape[1]
    return Columns(values, (name,) * m, (len(factors),) * m, ("",) * m)


def interactions(cells: Cells, axes: Sequence[int], most: int) -> Columns:
    """Return orthonormal contrasts of categories and their products over up to ``most`` axes.

    They parametrize a joint distribution without reference categories, so that a prior on them
    favours none.
    """
    factors = [(axis, contrasts(cells.sizes[axis])) for axis in axes]
    sets = (chosen for size in range(1, most + 1) for chosen in combinations(factors, size))
    return Columns.joined(*(_products(cells, chosen) for chosen in sets))


def contrasts(n: int) -> NDArray[np.float64]:
    """Return an orthonormal basis of the vectors that sum to 0, shape (n, n − 1)."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))
    return np.asarray(basis[:, 1:])


def _contrasts_within(level_of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return contrasts of the categories of every level, of half the squared length of orthonormal
    ones: with two categories their difference is the parameter."""
    blocks = []
    for members in (np.flatnonzero(level_of == level) for level in range(level_of.max() + 1)):
        block = np.zeros((len(level_of), len(members) - 1))
        block[members] = contrasts(len(members)) / np.sqrt(2)
        blocks.append(block)
    return np.hstack(blocks)


def of_merged(cells: Cells, response: int | None) -> list[Columns]:
    """Return the columns that distinguish merged categories: with a response, the effects of
    those of covariates on it; without one, their shares and pairs with all other axes."""
    level_of = [np.array(axis.level_of) for axis in cells.axes]
    # Contrasts of the categories of a level, and indicators of all levels but the first.
    within = [
        (i, _contrasts_within(level_of[i]))
        for i, axis in enumerate(cells.axes)
        if axis.merged and i != response
    ]
    if response is not None:
        answers = (response, np.eye(cells.sizes[response])[:, 1:])
        return [_products(cells, (answers, own)) for own in within]
    levels = [(j, np.eye(of.max() + 1)[of, 1:]) for j, of in enumerate(level_of)]
    factors = [
        *((own,) for own in within),
        *((own, other) for own in within for other in levels if other[0] != own[0]),
        *combinations(within, 2),
    ]
    return [_products(cells, each) for each in factors]
