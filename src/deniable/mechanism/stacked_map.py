"""Linear maps between a table and the stacked released tables of several forms.

Under published forms a released value is a form and the answers to its attributes. The table of all
of them is a flat vector, form after form; each form has a
:class:`~deniable.mechanism.table_map.TableMap`, and squares, transposes and products are taken form
by form.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from deniable.mechanism.table_map import TableMap


@dataclass(frozen=True)
class StackedMap:
    """The maps of several forms, from the stacked vector to a table or back.

    ``shapes``: of each form's released table; axes that it does not include have length 1.
    ``scales``: factor of each form's map, shape (forms,).
    """

    parts: tuple[TableMap, ...]
    shapes: tuple[tuple[int, ...], ...]
    scales: tuple[float, ...]
    gathers: bool

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Shape of the table."""
        return self.parts[0].n_categories

    def pieces(self, stacked: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield each form's released table; further axes are carried along."""
        start = 0
        for shape in self.shapes:
            end = start + prod(shape)
            yield stacked[start:end].reshape(*shape, *stacked.shape[1:])
            start = end

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the image of a stacked vector, or of a table; a new array."""
        if self.gathers:
            images = (
                scale * part.apply(piece)
                for part, scale, piece in zip(
                    self.parts, self.scales, self.pieces(values), strict=True
                )
            )
            total = next(images)
            for image in images:
                total += image
            return total
        rest = values.shape[len(self.shapes[0]) :]
        return np.concatenate(
            [
                scale * part.apply(values).reshape(-1, *rest)
                for part, scale in zip(self.parts, self.scales, strict=True)
            ]
        )

    def transposed(self) -> "StackedMap":
        """Return the transposed map."""
        return self._with([part.transposed() for part in self.parts], gathers=not self.gathers)

    def squared(self) -> "StackedMap":
        """Return the map whose matrix has every entry squared."""
        return self._with([p.squared() for p in self.parts], [s**2 for s in self.scales])

    def cubed(self) -> "StackedMap":
        """Return the map whose matrix has every entry to the third power."""
        return self._with([p.cubed() for p in self.parts], [s**3 for s in self.scales])

    def row_ranges(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return the least and the greatest entry of every row of a map that gathers, form by form;
        their shapes broadcast to the table."""
        ranges = [part.row_range() for part in self.parts]
        return [(s * low, s * high) for s, (low, high) in zip(self.scales, ranges, strict=True)]

    def times(self, other: "StackedMap", axes: Sequence[int]) -> "StackedMap":
        """Return the entrywise product with a map from the same forms' answers on fewer axes.

        ``other``: a map over ``axes`` only; on the remaining axes it counts as constant 1.
        ``axes``: the axes of this map that are other's axes, in other's order.
        """
        return self._with(
            [
                mine.times(theirs, axes)
                for mine, theirs in zip(self.parts, other.parts, strict=True)
            ],
            [a * b for a, b in zip(self.scales, other.scales, strict=True)],
        )

    def _with(
        self,
        parts: Sequence[TableMap],
        scales: Sequence[float] | None = None,
        *,
        gathers: bool | None = None,
    ) -> "StackedMap":
        return replace(
            self,
            parts=tuple(parts),
            scales=self.scales if scales is None else tuple(scales),
            gathers=self.gathers if gathers is None else gathers,
        )
