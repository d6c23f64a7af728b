"""Columns of numbers: exact rounding to the points of a grid, in every type and spelling."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute
from deniable.tables import open_table
from deniable.tables.columns import number_column, released_columns
from deniable.tables.encode import ColumnEncoder

AGE = Attribute("age", range=(17, 90), grid=5, missing="NA", missing_codes=("999",))


def encoder(attribute: Attribute = AGE, **more: Any) -> ColumnEncoder:
    return ColumnEncoder(attribute, "table", rounding=SeededRandomness(1), **more)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([17, 20, 90, None, 999]),
        pa.array([17.0, 20.0, 90.0, float("nan"), 999.0]),
        pa.array([Decimal("17.0"), Decimal("20.0"), Decimal("90.0"), None, Decimal("999.0")]),
        pa.array(["17", " 20.0 ", "9e1", "", "999"]),
        pa.array(["17", "20", "90", None, "NA"]).dictionary_encode(),
        pa.array([17, 20, 90, None, 999], pa.int16()).dictionary_encode(),
    ],
)
def test_a_number_is_so_many_units_above_the_lowest_point(column: Any) -> None:
    units = encoder().look(column)
    step = AGE.number_grid.step  # type: ignore[union-attr]
    shares = [Fraction(int(unit), step) for unit in units]
    assert shares == [0, Fraction(3 * 4, 73), 4, 5, 5]


def test_a_decimal_comma_and_dates_are_read() -> None:
    units = encoder(decimal=",").look(pa.array(["17,5"]))
    assert Fraction(int(units[0]), AGE.number_grid.step) == Fraction(2, 73)  # type: ignore[union-attr]
    seen = Attribute("seen", range=(dt.date(2020, 1, 1), dt.date(2020, 1, 5)), grid=3)
    for column in (
        pa.array([dt.date(2020, 1, 2)]),
        pa.array([dt.datetime(2020, 1, 2, 23)]),
        pa.array(["2020-01-02"]),
        pa.array(["2.1.2020"]),
    ):
        units = encoder(seen, dates="31.12.2025").look(column)
        assert Fraction(int(units[0]), seen.number_grid.step) == Fraction(1, 2)  # type: ignore[union-attr]


def test_each_number_becomes_its_neighbours_with_the_exact_probabilities() -> None:
    """The mean of the points is the number; a defect of a twentieth of a step would be seen."""
    grid = AGE.number_grid
    assert grid is not None
    numbers = np.array([17, 20, 35.25, 50, 71.7, 90])
    draws = 40_000
    codes = encoder().encode(pa.array(np.repeat(numbers, draws))).reshape(len(numbers), draws)
    points = np.array(grid.points)[codes]
    for number, drawn in zip(numbers, points, strict=True):
        low, high = drawn.min(), drawn.max()
        assert low <= number <= high
        assert high - low in (0, 18.25)
        assert abs(drawn.mean() - number) < 6 * 18.25 / 2 / draws**0.5


def test_a_point_is_never_moved() -> None:
    codes = encoder().encode(pa.array(np.tile(AGE.number_grid.points, 1000)))  # type: ignore[union-attr]
    assert np.array_equal(codes, np.tile(np.arange(5), 1000))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([17, 16.9]), "data row 2, column 'age': the value lies outside the declared ra"),
        (pa.array(["17", "90.01"]), "outside the declared range; widen"),
        (pa.array([float("inf")]), "outside the declared range"),
        (pa.array(["old"]), "the value is not a number; correct"),
        (pa.array([dt.date(2020, 1, 1)]), "holds dates or times"),
    ],
)
def test_a_value_that_is_no_number_of_the_range_is_refused(column: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder().encode(column)


def test_without_a_missing_category_an_empty_cell_is_refused() -> None:
    with pytest.raises(InputError, match="the value is missing"):
        encoder(Attribute("age", range=(17, 90))).encode(pa.array([None], pa.int64()))


def test_outside_numbers_are_set_to_the_nearer_end_where_the_schema_says_so() -> None:
    clipping = Attribute("age", range=(17, 90), grid=5, outside="clip")
    assert encoder(clipping).encode(pa.array([3, 17, 90, 1e300])).tolist() == [0, 0, 4, 4]
    with pytest.raises(InputError, match="outside the declared range"):
        encoder(clipping).encode(pa.array([float("inf")]))


def test_a_released_table_holds_points_only() -> None:
    third = Attribute("x", range=(0, 1), grid=4)
    released = ColumnEncoder(third, "table")
    for column in (pa.array(third.categories), pa.array([float(t) for t in third.categories])):
        assert released.encode(column).tolist() == [0, 1, 2, 3]
    for column in (pa.array(["0.5"]), pa.array([0.5])):
        with pytest.raises(InputError, match="not a point of the declared grid"):
            released.encode(column)


@pytest.mark.parametrize(
    ("kind", "grid", "expected"),
    [
        (pa.int64(), 3, pa.float64()),
        (pa.int64(), 2, pa.int64()),
        (pa.float32(), 3, pa.float64()),
        (pa.float64(), 2, pa.int64()),
        (pa.string(), 3, pa.string()),
        (pa.decimal128(9, 2), 3, pa.float64()),
    ],
)
def test_a_released_column_holds_numbers(kind: Any, grid: int, expected: Any) -> None:
    attribute = Attribute("age", range=(17, 90), grid=grid, missing="NA")
    (column,) = released_columns([("age", kind)], [attribute])
    assert column.kind == expected


def test_a_released_column_of_dates_holds_dates() -> None:
    seen = Attribute("seen", range=(dt.date(2020, 1, 1), dt.date(2020, 1, 5)), missing="?")
    (column,) = released_columns([("seen", pa.date32())], [seen])
    assert column.kind == pa.date32()


def test_numbers_set_to_an_end_are_counted_by_column() -> None:
    clipping = [Attribute(name, range=(17, 90), grid=2, outside="clip") for name in ("a", "b")]
    table = pa.table({"a": [3, 17, 95, 1], "b": [20, 30, 40, 91]})
    with open_table(table, clipping, rounding=SeededRandomness(1)) as reader:
        (batch,) = reader
        assert batch.codes[0].tolist() == [0, 0, 1, 0]
        assert reader.outside == {"a": 3, "b": 1}
    with open_table(table, clipping, rounding=SeededRandomness(1)) as reader:
        assert reader.look() == 4
        assert reader.outside == {"a": 3, "b": 1}


@pytest.mark.parametrize("odd", ["nan", "inf", " 20", "+20", "2e1", "", "NA", "999"])
def test_a_column_of_plain_texts_is_read_as_cell_by_cell(odd: str) -> None:
    one = encoder()
    whole = one.look(pa.array(["17", odd, "90"]))
    cells = [int(one.look(pa.array([text]))[0]) for text in ("17", odd, "90")]
    written = {" 20": 20, "+20": 20, "2e1": 20}
    assert whole.tolist() == cells
    expected = one.look(pa.array([written.get(odd)], pa.float64()))[0]
    assert whole[1] == (expected if odd not in ("nan", "inf") else -1)


def test_decimal_categories_are_read_from_columns_of_numbers() -> None:
    released = ColumnEncoder(Attribute("x", ("-1.25", "0.5", "3", "NA"), missing="NA"), "table")
    column = pa.array([3.0, -1.25, None, 0.5])
    assert released.encode(column).tolist() == [2, 0, 3, 1]
    with pytest.raises(InputError):
        released.encode(pa.array([0.25]))


def test_a_column_of_values_has_the_type_of_the_release() -> None:
    x = Attribute("x", range=(0, 80), grid=9)
    y = Attribute("y", range=(-3, 3), grid=7, missing="?")
    values = np.array([12.345, np.nan])
    assert number_column(values, x, pa.int64()).to_pylist() == [12, None]
    assert number_column(values, y, pa.string()).to_pylist() == ["12.3", "?"]
    assert number_column(values, y, pa.float64()).to_pylist() == [12.3, None]
    days = Attribute("born", range=(dt.date(1970, 1, 1), dt.date(1970, 3, 1)), grid=3, missing="?")
    assert number_column(values, days, pa.date32()).to_pylist() == [dt.date(1970, 1, 13), None]
    assert number_column(values, days, pa.string()).to_pylist() == ["1970-01-13", "?"]
