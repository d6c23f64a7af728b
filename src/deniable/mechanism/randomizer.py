"""Codes in, randomized codes out."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import checked_arithmetic
from deniable.mechanism.mechanism import Mechanism
from deniable.randomness import BitSource

_ROWS = 1 << 16
"""Rows randomized at a time: an attribute's codes and draws then stay in the second-level cache."""


class Randomizer:
    """A mechanism made ready to randomize many batches.

    ``source``: where random bits come from; :class:`~deniable.randomness.SystemRandomness` for
    anything that protects people.

    >>> from deniable.laws import ProductLaw
    >>> from deniable.randomness import SeededRandomness
    >>> mechanism = Mechanism.of(ProductLaw.from_levels((2, 4), (1.0, 2.0)))
    >>> codes = [np.array([0, 0, 0]), np.array([1, 2, 3])]
    >>> [column.tolist() for column in Randomizer(mechanism, SeededRandomness(1)).randomize(codes)]
    [[1, 0, 0], [1, 2, 3]]
    >>> randomizer = Randomizer(mechanism, SeededRandomness(1))
    >>> [(i, drawn.tolist()) for i, drawn in randomizer.by_attribute(3, codes.__getitem__)]
    [(0, [1, 0, 0]), (1, [1, 2, 3])]
    """

    def __init__(self, mechanism: Mechanism, source: BitSource) -> None:
        self.mechanism = mechanism
        self.source = source
        # The number of the form comes after the attributes.
        form = (len(mechanism.schema.attributes),)
        with checked_arithmetic():
            self._samplers = [
                (b.attributes, form if b.law is mechanism.forms else (), b.law.sampler())
                for b in mechanism.blocks
            ]

    def with_bits(self, source: BitSource) -> "Randomizer":
        """Return one that draws by the same tables, which need not be made again, with bits from
        elsewhere."""
        other = copy(self)
        other.source = source
        return other

    def randomize(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the randomized codes.

        ``columns``: one array of codes 0 … a−1 per attribute, in the schema's order, shape (n,).

        One array per attribute, shape (n,), in a type that holds its outputs. Of a mechanism with
        forms one array more, the forms of the rows from 0, and codes that are the number of an
        attribute's released values where the form does not ask.
        """
        for i, codes in zip(range(len(self.mechanism.schema.attributes)), columns, strict=True):
            self._check(i, codes)
        with checked_arithmetic():
            return self._all(columns)

    def by_attribute(
        self, count: int, codes_of: Callable[[int], NDArray[Any]]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all rows' randomized codes of one attribute after the other.

        Drawn as by :meth:`randomize`, for tables that are stored column by column and are too wide
        to be held: of a row only what its law's later attributes have to know of it is kept.

        ``codes_of``: returns an attribute's codes, shape (count,), when its turn has come.

        The number of the attribute, in the order of the blocks, and its codes, shape (count,); at
        last, of a mechanism with forms, the number after the attributes' with the forms.
        """

        def checked(i: int) -> NDArray[Any]:
            codes = codes_of(i)
            self._check(i, codes)
            return codes

        with checked_arithmetic():
            for attributes, further, sampler in self._samplers:
                columns = map(checked, attributes)
                drawn = sampler.by_attribute(columns, count, self.source)
                yield from zip((*attributes, *further), drawn, strict=True)

    def _check(self, i: int, codes: NDArray[Any]) -> None:
        attribute = self.mechanism.schema.attributes[i]
        if len(codes) and codes.max() >= attribute.n_categories:
            raise ValueError(f"a code of '{attribute.name}' is not below its categories")

    def _all(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        count = len(columns[0])
        outputs = self._piece([column[:_ROWS] for column in columns])
        if count <= _ROWS:
            return outputs
        whole = [np.empty(count, dtype=output.dtype) for output in outputs]
        for start in range(0, count, _ROWS):
            if start:
                outputs = self._piece([column[start : start + _ROWS] for column in columns])
            for target, output in zip(whole, outputs, strict=True):
                target[start : start + len(output)] = output
        return whole

    def _piece(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        outputs: dict[int, NDArray[Any]] = {}
        for attributes, further, sampler in self._samplers:
            drawn = sampler.randomize([columns[i] for i in attributes], self.source)
            outputs.update(zip((*attributes, *further), drawn, strict=True))
        return [outputs[i] for i in sorted(outputs)]
