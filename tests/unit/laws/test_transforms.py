"""The interaction transform against dense Kronecker products."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws.transforms import apply_eigenvalues, eigenvalues_of, kernel_of

SEED = 20240229


def dense_kernel(kernel: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """The matrix whose entry depends on which attributes differ, entry by entry."""
    rows = list(np.ndindex(*sizes))
    return np.array(
        [
            [kernel[tuple(int(a != b) for a, b in zip(x, y, strict=True))] for x in rows]
            for y in rows
        ]
    )


small = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)


@given(small, st.integers(0, 1 << 30))
def test_applying_eigenvalues_is_multiplying_by_the_dense_kernel(
    sizes: tuple[int, ...], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    kernel = generator.normal(size=(2,) * len(sizes))
    table = generator.normal(size=sizes)
    result = apply_eigenvalues(table, eigenvalues_of(kernel, sizes), range(len(sizes)))
    expected = (dense_kernel(kernel, sizes) @ table.ravel()).reshape(sizes)
    np.testing.assert_allclose(result, expected, atol=1e-11)


@given(small, st.integers(0, 1 << 30))
def test_kernels_and_eigenvalues_are_each_others_inverse(sizes: tuple[int, ...], seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(2,) * len(sizes))
    np.testing.assert_allclose(eigenvalues_of(kernel_of(values, sizes), sizes), values, atol=1e-12)
    np.testing.assert_allclose(kernel_of(eigenvalues_of(values, sizes), sizes), values, atol=1e-12)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2), ()])
def test_the_axes_not_named_are_carried_along(axes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(SEED)
    shape = (3, 2, 4)
    table = generator.normal(size=shape)
    eigenvalues = generator.normal(size=(2,) * len(axes))
    kernel = kernel_of(eigenvalues, [shape[axis] for axis in axes])
    expected = np.zeros(shape)
    for y in np.ndindex(*shape):
        for x in np.ndindex(*shape):
            if all(x[i] == y[i] for i in range(3) if i not in axes):
                expected[y] += kernel[tuple(int(x[i] != y[i]) for i in axes)] * table[x]
    np.testing.assert_allclose(apply_eigenvalues(table, eigenvalues, axes), expected, atol=1e-12)


def test_eigenvalues_of_a_product_kernel_are_the_products_of_single_ones() -> None:
    sizes, keeps = (3, 5, 2), (0.7, 0.4, 0.9)
    singles = [np.array([p, (1 - p) / (n - 1)]) for n, p in zip(sizes, keeps, strict=True)]
    kernel = reduce(np.multiply.outer, singles)
    shrinks = [np.array([1, (n * p - 1) / (n - 1)]) for n, p in zip(sizes, keeps, strict=True)]
    np.testing.assert_allclose(
        eigenvalues_of(kernel, sizes), reduce(np.multiply.outer, shrinks), atol=1e-15
    )


def test_the_table_passed_in_is_not_changed_and_integers_are_accepted() -> None:
    table = np.arange(12).reshape(3, 4)
    before = table.copy()
    result = apply_eigenvalues(table, np.array([[1.0, 0.0], [0.0, 0.0]]), (0, 1))
    np.testing.assert_array_equal(table, before)
    np.testing.assert_allclose(result, np.full((3, 4), 5.5))
