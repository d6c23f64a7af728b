"""Randomization of codes."""

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
    """A mechanism, prepared to randomize many batches.

    ``source``: of random bits; :class:`~deniable.randomness.SystemRandomness` for anything that
    protects people.
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
        """Return a randomizer that shares these tables and draws with bits from
        elsewhere."""
        other = copy(self)
        other.source = source
        return other

    def randomize(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the randomized codes, one array per attribute, shape (n,), in a type that holds
        its outputs.

        ``columns``: one array of codes 0 … a−1 per attribute, in the schema's order, shape (n,).

        A mechanism with forms returns one array more, the forms of the rows from 0; attributes that
        a form does not include have the number of the attribute's released values as their code.
        """
        for i, codes in zip(range(len(self.mechanism.schema.attributes)), columns, strict=True):
            self._check(i, codes)
        with checked_arithmetic():
            return self._all(columns)

    def by_attribute(
        self, count: int, codes_of: Callable[[int], NDArray[Any]]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the number of each attribute, in the order of the blocks, and its randomized codes,
        shape (count,); last, with forms, the number after the attributes' and the rows' forms.

        Same draws as :meth:`randomize`, for tables stored column by column that do not fit in
        memory: of each row only the state that its law's later attributes need is held.

        ``codes_of``: returns an attribute's codes, shape (count,), when its turn has come.
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
