"""Densities over patterns that leave little of an attribute to someone who knows the rest.

A density f against the uniform law of the patterns of m attributes has record level ε if its
largest value is at most e^ε times its least, and leaves attribute i at most γ_i given the rest if
f(S) ≤ e^γ_i f(S △ {i}) for every pattern S. Both are linear in f.
"""

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers.highs import INFINITY, Program, Repeated, Rows


class CappedDensities:
    """The densities of a record level under caps.

    ``uniform``: μ, the uniform law of the patterns, shape (2^m,), attribute 0 the highest bit.
    ``epsilon``: of the record, in nats. ``caps``: γ, in nats, at most ε, shape (m,).

    >>> densities = CappedDensities(np.array([0.25, 0.25, 0.25, 0.25]), np.log(9), np.log([3, 3]))
    >>> densities.sloped(np.array([[9.0, 1.0, 1.0, 1.0]]), wide=True).round(6).tolist()
    [[9.0, 3.0, 3.0, 1.0]]
    >>> densities.best(np.array([4.0, 1.0, -1.0, -4.0])).round(6).tolist()
    [9.0, 3.0, 3.0, 1.0]
    """

    def __init__(self, uniform: FloatArray, epsilon: float, caps: FloatArray) -> None:
        self._uniform = uniform
        self._most = float(np.exp(epsilon))
        self._ratios = np.exp(caps)
        self._program: Repeated | None = None

    def sloped(self, densities: FloatArray, *, wide: bool = False) -> FloatArray:
        """Return the largest densities below these, or if ``wide`` the least above them, that keep
        the caps; shape (n, 2^m), of least value 1."""
        tables = densities.reshape(-1, *(2,) * len(self._ratios))
        for axis, ratio in enumerate(self._ratios, start=1):
            other = np.flip(tables, axis)
            tables = (
                np.maximum(tables, other / ratio) if wide else np.minimum(tables, other * ratio)
            )
        sloped = tables.reshape(densities.shape)
        sloped = sloped / sloped.min(axis=1, keepdims=True)
        return np.asarray(np.minimum(sloped, self._most))

    def best(self, score: FloatArray) -> FloatArray | None:
        """Return the density under which a score has the largest mean, of least value 1; None if
        the program is not solved.

        ``score``: of the patterns, shape (2^m,).
        """
        if self._program is None:
            self._program = Repeated(self._prepared())
        size = float(np.abs(score).max()) or 1.0
        point = self._program.least(np.append(-self._uniform * score / size, 0.0))
        if point is None or point[:-1].min() <= 0:
            return None
        density = point[:-1] / point[:-1].min()
        table = density.reshape((2,) * len(self._ratios))
        for axis in range(table.ndim):
            other = np.flip(table, axis)
            if np.abs(table / other - 1).max() <= 1e-7:  # the same but for the program's rounding
                table = np.minimum(table, other)
        return np.asarray(self.sloped(table.reshape(1, -1))[0])

    def _prepared(self) -> Program:
        """The program: values of f of mean 1, and their least as one variable more."""
        n, m = len(self._uniform), len(self._ratios)
        patterns = np.arange(n)
        first = np.concatenate([np.tile(patterns, m), patterns, np.full(n, n)])
        flipped = [patterns ^ (1 << m - 1 - axis) for axis in range(m)]
        second = np.concatenate([*flipped, np.full(n, n), patterns])
        factor = np.concatenate([np.repeat(self._ratios, n), np.full(n, self._most), np.ones(n)])
        index = np.stack([first, second], axis=1).ravel()
        value = np.stack([1 / factor, -np.ones(len(factor))], axis=1).ravel()
        rows = Rows(
            np.append(2 * np.arange(len(factor) + 1), 2 * len(factor) + n),
            np.concatenate([index, patterns]),
            np.concatenate([value, self._uniform]),
        )
        return Program(
            np.zeros(n + 1),
            np.zeros(n + 1),
            np.full(n + 1, INFINITY),
            rows,
            np.append(np.full(len(factor), -INFINITY), 1.0),
            np.append(np.zeros(len(factor)), 1.0),
        )
