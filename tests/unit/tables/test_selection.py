"""Conditions on kept columns: the same rows however a file holds their values."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InputError, Notice
from deniable.tables.reading import Batch
from deniable.tables.selection import Selector, conditions_of, value_among


def chosen(values: Any, *where: str, **how: Any) -> list[int]:
    column = values if isinstance(values, pa.Array) else pa.array(values)
    selector = Selector(conditions_of(where, ("x",)), **how)
    rows, _ = selector.choose(Batch([], {"x": column}, len(column), 1), "t")
    selector.selection()
    return [] if rows is None else np.flatnonzero(rows).tolist()


AGES = {
    "texts": pa.array(["3", "30", "", "18"]),
    "texts with blanks": pa.array([" 3", "30 ", "  ", " 18 "]),
    "texts of floats": pa.array(["3.0", "30.0", None, "18.00"]),
    "integers": pa.array([3, 30, None, 18]),
    "floats": pa.array([3.0, 30.0, float("nan"), 18.0]),
    "single floats": pa.array([3.0, 30.0, None, 18.0], pa.float32()),
    "decimals": pa.array([Decimal("3.00"), Decimal("30.00"), None, Decimal("18.00")]),
    "categories": pa.array(["3.0", "30.0", None, "18.0"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", AGES)
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("x=3", [0]),
        ("x=3.0", [0]),
        ("x == 18", [3]),
        ("x=3|18", [0, 3]),
        ("x!=3", [1, 2, 3]),
        ("x=", [2]),
        ("x!=", [0, 1, 3]),
        ("x>=18", [1, 3]),
        ("x > 18", [1]),
        ("x<18", [0]),
        ("x<=1.8e1", [0, 3]),
    ],
)
def test_numbers_are_equal_as_numbers_and_gaps_fulfil_no_comparison(
    kind: str, where: str, rows: list[int]
) -> None:
    assert chosen(AGES[kind], where) == rows


def test_a_declared_missing_category_is_an_empty_cell() -> None:
    cells, missing = pa.array(["a", None, "b", ""]), {"x": "NA"}
    assert chosen(cells, "x=NA", missing=missing) == [1, 3]
    assert chosen(cells, "x=a|NA", missing=missing) == [0, 1, 3]
    assert chosen(cells, "x!=NA", missing=missing) == [0, 2]
    with pytest.raises(InputError, match="no row has the value 'NA'"):
        chosen(pa.array(["a"]), "x=NA", missing=missing)


def test_conditions_are_all_fulfilled_and_what_is_left_out_is_counted() -> None:
    selector = Selector(conditions_of(["x>=18", "x<30"], ("x",)))
    rows, _ = selector.choose(Batch([], {"x": AGES["texts"]}, 4, 1), "t")
    assert rows is not None
    assert rows.tolist() == [False, False, False, True]
    selection = selector.selection()
    assert selection.left_out == (("x", 1),)
    assert (
        selection.text()
        == "Only rows where x >= 18 and x < 30. Left out: 1 row where 'x' is empty."
    )
    assert selection.to_plain() == {
        "where": ["x >= 18", "x < 30"],
        "left_out": [{"column": "x", "rows": 1}],
    }


DAY = datetime.date(2025, 12, 31)


@pytest.mark.parametrize(
    "values",
    [
        [DAY, datetime.date(2026, 1, 2), None],
        [datetime.datetime(2025, 12, 31, 8), datetime.datetime(2026, 1, 2), None],
        ["2025-12-31", "2026-01-02", ""],
        ["2025-12-31 08:00:00", "2026-01-02 00:00:00", None],
    ],
)
def test_days_are_compared_as_days(values: Any) -> None:
    assert chosen(values, "x=2025-12-31") == [0]
    assert chosen(values, "x<=2025-12-31") == [0]
    assert chosen(values, "x>2025-12-31") == [1]


@pytest.mark.parametrize(
    "values", [[True, False, None], ["True", "False", ""], ["true", "false", None]]
)
@pytest.mark.parametrize("text", ["true", "True", "TRUE", "1"])
def test_a_truth_value_is_found_however_it_is_written(values: Any, text: str) -> None:
    assert chosen(values, f"x={text}") == [0]


def test_decimal_commas_and_32_bits_are_numbers() -> None:
    assert chosen(["1,5", "2"], "x=1.5", decimal=",") == [0]
    assert chosen(["1,5", "2"], "x>1.7", decimal=",") == [1]
    assert chosen(pa.array([0.1, 0.2], pa.float32()), "x=0.1") == [0]
    assert chosen(["inf", "3"], "x!=inf") == [1]


@pytest.mark.parametrize(
    ("values", "where", "message"),
    [
        (["3", "many"], "x>2", "t, data row 2, column 'x': the value is not a number"),
        (["2025-12-31", "soon"], "x>2025-01-01", "data row 2, column 'x': the value is not a date"),
        (["3"], "x=4", "no row has the value '4' in 'x'"),
        (["3"], "x=3|4", "no row has the value '4' in 'x'"),
        (["3"], "x>many", "> compares with a number or with a date"),
        (["3"], "x", "expected column=value"),
        (["3"], "=3", "expected column=value"),
    ],
)
def test_what_is_no_condition_or_cannot_be_compared_is_one_sentence(
    values: Any, where: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        chosen(values, where)


def test_a_word_that_an_earlier_condition_leaves_out_is_not_compared() -> None:
    assert chosen(["3", "many", "1"], "x!=many", "x>2") == [0]
    with pytest.warns(Notice, match="no row has the value 'few' in 'x'"):
        assert chosen(["3", "1"], "x!=few") == [0, 1]


def test_conditions_are_texts_or_values_by_column() -> None:
    assert conditions_of({"a": 3, "b": [True, None]}, ()) == conditions_of(["a=3", "b=true|"], ())
    assert conditions_of({"day": DAY}, ())[0].values == ("2025-12-31",)
    (odd,) = conditions_of("a>b=c", ("a>b",))
    assert (odd.column, odd.operator, odd.values) == ("a>b", "=", ("c",))
    with pytest.raises(InputError, match="'a' is given twice"):
        conditions_of(["a=1", "a=2"], ())
    with pytest.raises(InputError, match="`where` is a condition such as"):
        conditions_of([3], ())  # type: ignore[list-item]


def test_a_value_to_compare_is_found_among_labels() -> None:
    assert value_among("3", ["3.0", "4.0"]) == "3.0"
    assert value_among("3", ["3", "3.0"]) == "3"
    assert value_among("5", ["3.0", "4.0"]) is None


def test_a_column_of_numbers_leaves_out_gaps_and_refuses_words() -> None:
    batch = Batch([], {"x": pa.array(["1", "NA", "", "nan", "2"])}, 5, 11)
    selector = Selector(numbers=["x"])
    rows, numbers = selector.choose(batch, "t")
    assert rows is not None
    assert numbers["x"][rows].tolist() == [1.0, 2.0]
    assert selector.selection().left_out == (("x", 3),)
    for bad in (["1", "inf"], ["1", "-inf"], ["1", "5%"], ["1", "1 234"], ["1", "1,5"]):
        with pytest.raises(
            InputError, match="t, data row 12, column 'x': the value is not a finite"
        ):
            Selector(numbers=["x"]).choose(Batch([], {"x": pa.array(bad)}, 2, 11), "t")
    with pytest.raises(InputError, match="the value '5%' is not"):
        Selector(numbers=["x"], show_values=True).choose(
            Batch([], {"x": pa.array(["5%"])}, 1, 1), "t"
        )
