import numpy as np

from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

# Two forms of a table of 2 × 3: one asks both attributes, the other the second only.
BOTH = TableMap((2, 3), (0, 1), np.array([[1.0, 0.5], [0.4, 0.3]]), {})
SECOND = TableMap((2, 3), (1,), np.array([1.0, 0.7]), {0: np.ones((1, 2))})
TO = StackedMap((BOTH, SECOND), ((2, 3), (1, 3)), (0.25, 0.75), gathers=False)


def matrix(of: StackedMap) -> np.ndarray:
    shape = (9,) if of.gathers else (2, 3)
    size = int(np.prod(shape))
    return np.array([of.apply(np.eye(size)[i].reshape(shape)).ravel() for i in range(size)]).T


def test_a_transposed_map_has_the_transposed_matrix() -> None:
    assert matrix(TO).shape == (9, 6)
    assert np.allclose(matrix(TO.transposed()), matrix(TO).T)
    assert TO.transposed().n_categories == (2, 3)


def test_powers_and_products_are_those_of_the_entries() -> None:
    back = TO.transposed()
    assert np.allclose(matrix(back.squared()), matrix(back) ** 2)
    assert np.allclose(matrix(back.cubed()), matrix(back) ** 3)
    ones = TableMap((3,), (0,), np.array([3.0, 0.0]), {})  # constant 1
    same = StackedMap((ones, ones), ((3,), (3,)), (1.0, 2.0), gathers=True)
    assert np.allclose(matrix(back.times(same, (1,))), matrix(back) * np.repeat([1.0, 2.0], [6, 3]))


def test_the_ranges_of_a_row_are_those_of_its_entries_under_each_form() -> None:
    back = TO.transposed()
    of_form = np.split(matrix(back), [6], axis=1)
    for ends, entries in zip(back.row_ranges(), of_form, strict=True):
        for end, most in zip(ends, (np.min, np.max), strict=True):
            assert np.allclose(np.broadcast_to(end, (2, 3)).ravel(), most(entries, axis=1))


def test_further_axes_are_carried_along() -> None:
    tables = np.arange(12.0).reshape(2, 3, 2)
    images = TO.apply(tables)
    for i in range(2):
        assert np.allclose(images[:, i], TO.apply(tables[:, :, i]))
    pieces = list(TO.pieces(images))
    assert [piece.shape for piece in pieces] == [(2, 3, 2), (1, 3, 2)]
