"""Maps of tables against their matrices, written entry by entry from the definition."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from deniable.laws.transforms import eigenvalues_of
from deniable.mechanism.table_map import JointAxes, TableMap

RANDOM = np.random.default_rng(7)


def pattern_map(n_categories: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[np.float64]:
    kernel = RANDOM.uniform(-1, 1, (2,) * len(axes))
    return eigenvalues_of(kernel, [n_categories[axis] for axis in axes])


def shapes(of: TableMap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of the image and of the table."""
    rows, columns = list(of.n_categories), list(of.n_categories)
    for axis, matrix in of.matrices.items():
        if axis in of.joint:
            joint = of.joint[axis]
            for each, n, m in zip(joint.axes, joint.rows, joint.columns, strict=True):
                rows[each], columns[each] = n, m
        else:
            rows[axis], columns[axis] = matrix.shape
    return tuple(rows), tuple(columns)


def entry(of: TableMap, y: tuple[int, ...], x: tuple[int, ...]) -> float:
    """What a table's cell x adds to the image's cell y, from the definition of the class."""
    value = float(of.kernel[tuple(int(y[axis] != x[axis]) for axis in of.pattern_axes)])
    alone = set(range(len(of.n_categories))) - set(of.pattern_axes)
    for axis, matrix in of.matrices.items():
        joint = of.joint.get(axis, JointAxes((axis,), matrix.shape[:1], matrix.shape[1:]))
        row = np.ravel_multi_index([y[each] for each in joint.axes], joint.rows)
        column = np.ravel_multi_index([x[each] for each in joint.axes], joint.columns)
        value *= float(matrix[row, column])
        alone -= set(joint.axes)
    return value * all(y[axis] == x[axis] for axis in alone)


def dense(of: TableMap) -> NDArray[np.float64]:
    """The matrix of a map."""
    rows, columns = shapes(of)
    cells = list(product(*map(range, columns)))
    return np.array([[entry(of, y, x) for x in cells] for y in product(*map(range, rows))])


def plain() -> TableMap:
    """Two pattern axes around a matrix, and an axis that is left alone."""
    sizes = (2, 4, 3, 2)
    return TableMap(sizes, (0, 2), pattern_map(sizes, (0, 2)), {1: RANDOM.uniform(-1, 1, (3, 4))})


def over_two_axes() -> TableMap:
    """A pattern axis between the two axes of one matrix."""
    sizes = (2, 3, 2)
    return TableMap(
        sizes,
        (1,),
        pattern_map(sizes, (1,)),
        {0: RANDOM.uniform(-1, 1, (4, 5))},
        {0: JointAxes((0, 2), (2, 2), (5, 1))},
    )


MAPS = (plain(), over_two_axes())


def test_applying_a_map_is_multiplying_by_its_matrix() -> None:
    for each in MAPS:
        rows, columns = shapes(each)
        table = RANDOM.uniform(0, 10, columns)
        image = each.apply(table)
        assert image.shape == rows
        np.testing.assert_allclose(image.ravel(), dense(each) @ table.ravel(), atol=1e-12)


def test_a_table_that_is_mapped_stays_as_it_was() -> None:
    table = np.ones(shapes(MAPS[0])[1])
    MAPS[0].apply(table)
    assert (table == 1).all()


def test_the_transposed_map_has_the_transposed_matrix() -> None:
    for each in MAPS:
        np.testing.assert_allclose(dense(each.transposed()), dense(each).T, atol=1e-14)


def test_the_squared_map_has_every_entry_squared() -> None:
    for each in MAPS:
        np.testing.assert_allclose(dense(each.squared()), dense(each) ** 2, atol=1e-12)


def test_the_range_of_a_row_is_that_of_its_entries_for_its_own_value_on_axes_left_alone() -> None:
    for each in MAPS:
        rows, _ = shapes(each)
        entries = dense(each)
        kept = np.where(entries == 0, np.nan, entries)
        for end, most in zip(each.row_range(), (np.nanmin, np.nanmax), strict=True):
            found = np.broadcast_to(end, rows).ravel()
            np.testing.assert_allclose(found, most(kept, axis=1), atol=1e-14)


def test_one_map_after_another_has_the_product_of_their_matrices() -> None:
    for second in MAPS:
        first = second.transposed()
        np.testing.assert_allclose(
            dense(second.after(first)), dense(second) @ dense(first), atol=1e-12
        )


def product_with(whole: TableMap, part: TableMap, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Entrywise, where the part counts as 1 along the axes that only the whole has."""
    rows, columns = shapes(whole)
    return np.array(
        [
            [
                entry(whole, y, x)
                * entry(part, tuple(y[i] for i in axes), tuple(x[i] for i in axes))
                for x in product(*map(range, columns))
            ]
            for y in product(*map(range, rows))
        ]
    )


def test_the_entrywise_product_with_a_map_of_fewer_axes_in_another_order() -> None:
    whole = plain()
    part = TableMap((3, 4), (0,), pattern_map((3,), (0,)), {1: RANDOM.uniform(-1, 1, (3, 4))})
    result = whole.times(part, (2, 1))
    np.testing.assert_allclose(dense(result), product_with(whole, part, (2, 1)), atol=1e-12)
    turned = TableMap((3, 2), (0, 1), pattern_map((3, 2), (0, 1)), {})
    result = whole.times(turned, (2, 0))
    np.testing.assert_allclose(dense(result), product_with(whole, turned, (2, 0)), atol=1e-12)


def test_the_entrywise_product_with_a_matrix_on_one_of_two_joint_axes() -> None:
    whole = over_two_axes()
    part = TableMap((3, 2), (0,), pattern_map((3,), (0,)), {1: RANDOM.uniform(-1, 1, (2, 5))})
    result = whole.times(part, (1, 0))
    np.testing.assert_allclose(dense(result), product_with(whole, part, (1, 0)), atol=1e-12)


def test_the_matrices_of_a_map_cannot_be_changed() -> None:
    assert not hasattr(MAPS[0].matrices, "__setitem__")
    assert MAPS[0].axes_of(1) == (1,)
    assert MAPS[1].axes_of(0) == (0, 2)
