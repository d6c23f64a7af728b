"""Shifts, codes and the numbers of outputs."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws.patterns import (
    code_type,
    n_records,
    other_outputs,
    rotate,
)


def test_rotating_is_addition_modulo_a_for_every_code_and_shift_up_to_300_categories() -> None:
    for n in (*range(2, 20), *range(120, 135), *range(250, 301)):
        kind = code_type(n)
        codes, shifts = np.divmod(np.arange(n * n), n)
        rotated = rotate(codes.astype(kind), shifts.astype(kind), n)
        assert rotated.dtype == kind
        np.testing.assert_array_equal(rotated, (codes + shifts) % n)


@pytest.mark.parametrize("n", [2, 127, 128, 129, 256, 32_767, 32_768, 32_769, 65_536, 1 << 31])
def test_rotating_is_right_at_the_edges_of_the_integer_types(n: int) -> None:
    ends = [c for c in (0, 1, n // 2, n - 2, n - 1) if c >= 0]
    pairs = list(product(ends, ends))
    codes = np.array([c for c, _ in pairs], dtype=np.uint64)
    shifts = np.array([s for _, s in pairs], dtype=np.uint64)
    np.testing.assert_array_equal(rotate(codes, shifts, n), [(c + s) % n for c, s in pairs])
    assert int(np.iinfo(code_type(n)).max) >= 2 * n - 1


def test_rotating_leaves_its_arguments_alone() -> None:
    codes, shifts = np.array([0, 1, 2], dtype=np.uint8), np.array([2, 2, 2], dtype=np.uint8)
    rotate(codes, shifts, 3)
    assert codes.tolist() == [0, 1, 2]
    assert shifts.tolist() == [2, 2, 2]


@given(st.lists(st.integers(2, 1 << 31), max_size=5))
def test_other_outputs_is_the_product_over_the_changed_attributes(sizes: list[int]) -> None:
    counts = other_outputs(sizes)
    assert counts.shape == (2,) * len(sizes)
    for pattern in product((0, 1), repeat=len(sizes)):
        expected = math.prod(n - 1 for n, changed in zip(sizes, pattern, strict=True) if changed)
        assert counts[pattern] == expected
    assert sum(counts.ravel().tolist()) == n_records(sizes)
