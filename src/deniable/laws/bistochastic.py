"""Bistochastic response matrices: checks, and integers that are bistochastic exactly."""

import math

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.matrix import MatrixChannel

SUM_TOLERANCE = 1e-9
"""Tolerance of row and column sums: a matrix written with ten digits passes."""

_MOST_CHANGE = 1e-6
"""The most by which an entry may have to be changed to make the sums exact, as a part of it: a
level moves by 2e-6 nats at most."""


def check_bistochastic(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a response matrix as floats, shape (r, r), if it is bistochastic and positive.

    Ruiz (λ-randomization), section 2.2: rows and columns add up to 1 and every entry is above 0, so
    any category may be reported as any other.

    ``matrix``: ``matrix[y, x]`` = Pr[output y | input x], the transpose of Ruiz's P.
    """
    try:
        values = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("a bistochastic matrix is a square table of numbers") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise InputError(
            "a bistochastic matrix is square, with one row and one column per category; this one "
            f"has shape {'×'.join(str(n) for n in values.shape)}"
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"row {row + 1}, column {column + 1} of the bistochastic matrix is "
            f"{values[row, column]:g}; every entry must be above 0, or some answer would rule out "
            "a category"
        )
    for axis, name in ((1, "row"), (0, "column")):
        sums = values.sum(axis=axis)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > SUM_TOLERANCE:
            raise InputError(
                f"{name} {worst + 1} of the bistochastic matrix adds up to {sums[worst]:.12g}, "
                "not 1"
            )
    return values


def bistochastic_channel(matrix: NDArray[np.float64]) -> MatrixChannel:
    """Return a single-attribute law whose integer rows and columns all add up to 2^bits exactly.

    >>> law = bistochastic_channel([[0.7, 0.3], [0.3, 0.7]])
    >>> [sum(row) == 2**law.bits for row in (*law.weights, *zip(*law.weights))]
    [True, True, True, True]
    """
    values = check_bistochastic(matrix)
    bits, weights = exact_weights(values / values.sum(axis=0))
    return MatrixChannel((len(values),), bits, tuple(map(tuple, weights)))


def exact_weights(matrix: NDArray[np.float64]) -> tuple[int, list[list[int]]]:
    """Return integers near 2^bits times a bistochastic matrix, with exactly equal sums.

    Every entry first keeps its 53 bits. The missing parts of row and column sums are then added to
    the 2r − 1 entries of a spanning tree of rows and columns, which determine them uniquely. With
    the largest entries as the tree, every change is small relative to the entry changed.

    ``matrix``: positive, sums near 1, shape (r, r).
    """
    n = len(matrix)
    least = math.frexp(float(matrix.min()))[1]
    bits = 64 * math.ceil((54 - least) / 64)
    weights = []
    for row in matrix.tolist():
        ratios = [entry.as_integer_ratio() for entry in row]
        weights.append([(numerator << bits) // denominator for numerator, denominator in ratios])
    total = 1 << bits
    lacking = [total - sum(row) for row in weights]
    lacking += [total - sum(column) for column in zip(*weights, strict=True)]
    for node, parent in reversed(_spanning_tree(matrix)):
        row, column = min(node, parent), max(node, parent) - n
        change = lacking[node]
        if abs(change) > _MOST_CHANGE * weights[row][column]:
            raise InputError(
                "the rows and columns of the bistochastic matrix add up to 1 to too few digits "
                f"for its small entries (row {row + 1}, column {column + 1}); give more digits"
            )
        weights[row][column] += change
        lacking[parent] -= change
    return bits, weights


def _spanning_tree(matrix: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return (node, parent) in the order of joining; nodes are rows, then columns (Prim)."""
    n = len(matrix)
    attraction = np.full(2 * n, -np.inf)
    parents = np.zeros(2 * n, dtype=np.intp)
    joined = np.zeros(2 * n, dtype=bool)
    edges: list[tuple[int, int]] = []
    node = 0
    while True:
        joined[node] = True
        others = slice(n, 2 * n) if node < n else slice(0, n)
        reach = matrix[node] if node < n else matrix[:, node - n]
        closer = (reach > attraction[others]) & ~joined[others]
        attraction[others] = np.where(closer, reach, attraction[others])
        parents[others] = np.where(closer, node, parents[others])
        if len(edges) == 2 * n - 1:
            return edges
        node = int(np.argmax(np.where(joined, -np.inf, attraction)))
        edges.append((node, int(parents[node])))
