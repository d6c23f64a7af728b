"""The interaction transform: every pattern law, its inverse and its squares, without a matrix.

A *pattern kernel* g(S) is a channel whose entry depends only on the set of attributes that differ.
It multiplies the interaction component T of a table by its eigenvalue ψ(T)
(docs/proofs/interactions.md, Theorem 1 and Corollary 2).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def apply_eigenvalues(
    table: NDArray[np.float64], eigenvalues: NDArray[np.float64], axes: Sequence[int]
) -> NDArray[np.float64]:
    """Multiply every interaction component of a table by its eigenvalue.

    ``table``: any shape. ``eigenvalues``: shape (2,)·m; index 1 on axis j means that ``axes[j]`` is
    in T. ``axes``: the axes of the table that the kernel acts on, ascending; the others are carried
    along. Returns a new table.

    >>> apply_eigenvalues(np.array([8.0, 2.0]), np.array([1.0, 0.5]), (0,)).tolist()
    [6.5, 3.5]
    """
    values = np.array(table, dtype=np.float64)
    for axis in axes:
        _to_components(values, axis)
    if axes:
        # Along the longest axis the eigenvalues are two, so that theirs is a much smaller table.
        longest = max(axes, key=lambda axis: values.shape[axis])
        shape = [2 if axis == longest else n for axis, n in enumerate(values.shape)]
        mean, deviation = np.moveaxis(_spread(eigenvalues, shape, axes), longest, 0)
        moved = np.moveaxis(values, longest, 0)
        moved[0] *= mean
        moved[1:] *= deviation
    else:
        values *= eigenvalues
    for axis in axes:
        _from_components(values, axis)
    return values


def _to_components(values: NDArray[np.float64], axis: int) -> None:
    # In place along one axis: entry 0 becomes the mean, entry c > 0 the deviation of category c
    # from it. Category 0's own deviation is minus the sum of the others.
    moved = values.swapaxes(0, axis)
    mean = np.add.reduce(moved, axis=0) / len(moved)
    moved[1:] -= mean
    moved[0] = mean


def _from_components(values: NDArray[np.float64], axis: int) -> None:
    moved = values.swapaxes(0, axis)
    mean = moved[0].copy()
    moved[0] -= np.add.reduce(moved[1:], axis=0)
    moved[1:] += mean


def _spread(
    eigenvalues: NDArray[np.float64], shape: Sequence[int], axes: Sequence[int]
) -> NDArray[np.float64]:
    # From (2,)·m to a shape that broadcasts against the components: on each axis the constant part
    # takes entry 0 and all a − 1 deviations take entry 1.
    values = eigenvalues
    for j, axis in enumerate(axes):
        values = values.repeat((1, shape[axis] - 1), axis=j)
    full = [1] * len(shape)
    for j, axis in enumerate(axes):
        full[axis] = values.shape[j]
    return values.reshape(full)


def kernel_of(
    eigenvalues: NDArray[np.float64], n_categories: Sequence[float]
) -> NDArray[np.float64]:
    """Return the pattern kernel g(S) of given eigenvalues ψ(T); both of shape (2,)·m.

    Along one axis ψ₀ = g₀ + (a−1) g₁ and ψ₁ = g₀ − g₁.

    >>> kernel_of(np.array([1.0, 0.5]), (2,)).tolist()
    [0.75, 0.25]
    """
    kernel = np.array(eigenvalues, dtype=np.float64)
    for axis, n in enumerate(n_categories):
        moved = kernel.swapaxes(0, axis)
        changed = (moved[0] - moved[1]) / n
        moved[0] = changed + moved[1]
        moved[1] = changed
    return kernel


def eigenvalues_of(kernel: NDArray[Any], n_categories: Sequence[float]) -> NDArray[np.float64]:
    """Return the eigenvalues ψ(T) of a pattern kernel g(S); both of shape (2,)·m.

    >>> eigenvalues_of(np.array([0.75, 0.25]), (2,)).tolist()
    [1.0, 0.5]
    """
    values = np.array(kernel, dtype=np.float64)
    for axis, n in enumerate(n_categories):
        moved = values.swapaxes(0, axis)
        constant = moved[0] + (n - 1) * moved[1]
        moved[1] = moved[0] - moved[1]
        moved[0] = constant
    return values
