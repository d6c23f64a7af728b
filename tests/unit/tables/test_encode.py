import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import encode as module
from deniable.tables.encode import ColumnEncoder, ColumnsEncoder, integer_fits

PETS = Attribute("pet", ("cat", "dog", "NA", "null", "nan"))
DIGITS = Attribute("grade", ("1", "2", "-3", "04"))
FLAG = Attribute("flag", ("true", "false"))
HOURS = Attribute("hours", bins=(0, 1, 20, 40.5), missing="unknown")

TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def encode(attribute: Attribute, column: pa.Array, **options: bool) -> list[int]:
    return ColumnEncoder(attribute, "t.csv", **options).encode(column).tolist()


def refusal(attribute: Attribute, column: pa.Array, first_row: int = 1, **options: bool) -> str:
    with pytest.raises(InputError) as caught:
        ColumnEncoder(attribute, "t.csv", **options).encode(column, first_row)
    message = str(caught.value)
    assert "'" + attribute.name + "'" in message
    assert "t.csv" in message
    return message


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_text_of_every_type_is_matched_exactly(kind):
    column = pa.array(["dog", "cat", "NA", "null", "nan"], kind)
    assert encode(PETS, column) == [1, 0, 2, 3, 4]
    assert encode(PETS, column.slice(1, 2)) == [0, 2]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@pytest.mark.parametrize("text", ["Dog", "\u00a0dog", "d og", "do", "dogs", "na", "dog\x00"])
def test_a_text_that_differs_in_anything_is_refused_without_showing_it(kind, text):
    message = refusal(PETS, pa.array(["cat", text], kind), first_row=11)
    assert message.startswith(
        "t.csv, data row 12, column 'pet': the value is not one of the declared"
    )
    assert text not in message


def test_the_value_is_shown_only_on_request_and_escaped():
    message = refusal(PETS, pa.array(["c\x1b[31mow"]), show_values=True)
    assert r"'c\x1b[31mow'" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint32", "int64"])
def test_dictionaries_that_differ_from_batch_to_batch_are_mapped_to_the_declared_order(index):
    encoder = ColumnEncoder(PETS, "t")
    for values in (["dog", "cat"], ["NA", "cat", "dog"], ["cat"]):
        column = pa.array(values + values).dictionary_encode()
        column = column.cast(pa.dictionary(pa.type_for_alias(index), pa.string()))
        expected = [PETS.categories.index(v) for v in values] * 2
        assert encoder.encode(column).tolist() == expected


def test_a_dictionary_may_list_values_that_no_row_has():
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["cow", "dog"]))
    assert encode(PETS, column) == [1, 1]
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["cow", "dog"]))
    assert "row 2" in refusal(PETS, column)


def test_nulls_are_missing_whether_in_the_indices_or_in_the_dictionary():
    attribute = Attribute("pet", ("cat", "dog"), missing="NA")
    in_indices = pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array(["cat", "dog"]))
    in_values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["cat", None]))
    for column in (in_indices, in_values):
        assert encode(attribute, column) == [0, 2]
        message = refusal(Attribute("pet", ("cat", "dog")), column)
        assert "row 2" in message
        assert '`missing="NA"`' in message


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None, "", "x"]),
        pa.array(["x", None, "", "x"], pa.large_string()),
        pa.array(["x", None, "", "x"], pa.string_view()),
        pa.array(["x", None, "", "x"]).dictionary_encode(),
    ],
    ids=lambda c: str(c.type)[:14],
)
def test_null_and_the_empty_text_stand_for_the_missing_category(column):
    assert encode(Attribute("a", ("x", "y"), missing="NA"), column) == [0, 2, 2, 0]
    assert encode(Attribute("a", ("x", "y"), missing="y"), column) == [0, 1, 1, 0]
    assert "row 2" in refusal(Attribute("a", ("x", "y")), column)


def test_a_column_of_nothing_but_nulls_is_missing_everywhere():
    assert encode(Attribute("a", ("x", "y"), missing="NA"), pa.nulls(3)) == [2, 2, 2]
    assert "missing" in refusal(Attribute("a", ("x", "y")), pa.nulls(3))
    assert encode(HOURS, pa.nulls(2)) == [3, 3]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_match_their_decimal_text(name):
    kind = pa.type_for_alias(name)
    assert encode(DIGITS, pa.array([2, 1], kind)) == [1, 0]
    if not name.startswith("u"):
        assert encode(DIGITS, pa.array([-3], kind)) == [2]
    # "04" is no number's decimal text: as an integer, 4 is unknown.
    message = refusal(DIGITS, pa.array([1, 1, 4], kind))
    assert "row 3" in message
    assert "4" not in message.replace("t.csv, data row 3", "")


def test_a_category_that_does_not_fit_the_integer_type_does_not_disturb():
    attribute = Attribute("n", ("1", "300", "99999999999999999999"), missing="NA")
    assert encode(attribute, pa.array([1, None], pa.uint8())) == [0, 3]
    assert encode(attribute, pa.array([300], pa.int64())) == [1]


def test_booleans_match_true_and_false():
    assert encode(FLAG, pa.array([True, False, True])) == [0, 1, 0]
    assert encode(Attribute("f", ("true", "x"), missing="x"), pa.array([True, None])) == [0, 1]
    assert "row 2" in refusal(Attribute("f", ("true", "x")), pa.array([True, False]))
    assert "missing" in refusal(FLAG, pa.array([True, None]))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(5, 1)], ids=str)
def test_fractional_numbers_need_bins_and_whole_ones_are_the_integers_they_are(kind):
    assert encode(DIGITS, pa.array([1.0, 2.0]).cast(kind)) == [0, 1]
    assert encode(DIGITS, pa.array([-3.0, 1.0]).cast(kind).dictionary_encode()) == [2, 0]
    assert "data row 2" in refusal(DIGITS, pa.array([1.0, 1.5]).cast(kind))
    assert "missing" in refusal(DIGITS, pa.array([1.0, None]).cast(kind))
    assert "declare bins" in refusal(PETS, pa.array([1.0, 2.0]).cast(kind))


def test_whole_numbers_with_zeros_behind_their_point_are_the_integers_they_are():
    attribute = Attribute("a", ("0", "1", "10", "NA"), missing="NA", missing_codes=("99",))
    texts = ["1.0", "10.000", "0", "", "99.0", "1"]
    for column in (pa.array(texts), pa.array(texts).dictionary_encode()):
        assert ColumnEncoder(attribute, "t").encode(column).tolist() == [1, 2, 0, 3, 3, 1]
    by_comma = ColumnEncoder(attribute, "t", decimal=",")
    assert by_comma.encode(pa.array(["1,0", "10"])).tolist() == [1, 2]
    for text in ("1.5", "1.", "2.0", "+1.0", "1,0"):
        with pytest.raises(InputError, match="not one of the declared categories"):
            ColumnEncoder(attribute, "t").encode(pa.array(["1", text]))
    # A text that is declared is what it says.
    versions = ColumnEncoder(Attribute("v", ("1", "1.0")), "t")
    assert versions.encode(pa.array(["1.0", "1"])).tolist() == [1, 0]


def test_dates_match_as_they_are_written():
    days = Attribute("day", ("2024-12-31", "2025-01-01"), missing="NA")
    column = pa.array(["2025-01-01", "2024-12-31", None]).cast(pa.date32())
    assert encode(days, column) == [1, 0, 2]
    assert encode(days, column.cast(pa.date64()).dictionary_encode()) == [1, 0, 2]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.time32("s"), pa.binary(), pa.list_(pa.string())], ids=str
)
def test_types_that_cannot_be_matched_are_refused_by_name(kind):
    for attribute in (PETS, HOURS):
        message = refusal(attribute, pa.nulls(1, kind))
        assert str(kind) in message
        with pytest.raises(InputError, match=r"convert it to|decode it to text|make one column"):
            ColumnEncoder(attribute, "t", column_type=kind)


def test_booleans_are_the_categories_of_their_name_in_any_case():
    # Failed before: only in lower case, as pandas and R do not write them.
    for names in (("true", "false"), ("True", "False"), ("TRUE", "FALSE"), ("True", "false")):
        flag = Attribute("f", names, missing="NA")
        assert encode(flag, pa.array([True, False, None])) == [0, 1, 2]
        assert encode(flag, pa.array([True, False]).dictionary_encode()) == [0, 1]
    assert encode(Attribute("f", ("True", "true", "false")), pa.array([True])) == [1]
    assert "not one of" in refusal(Attribute("f", ("True", "TRUE", "false")), pa.array([True]))
    said = refusal(Attribute("f", ("yes", "no")), pa.array([True]))
    assert "holds true and false, and no category is true or false" in said


def test_large_numbers_without_a_fraction_are_whole():
    # Failed before: they were called fractional, and decimals were rounded to floats.
    large = Attribute("x", (str(2**53), str(2**53 + 1), str(2**70), "7"), missing="NA")
    floats = pa.array([2.0**53, 7, 2.0**70, None])
    assert encode(large, floats) == [0, 3, 2, 4]
    numbers = [Decimal(2**53 + 1), Decimal("7.0"), None, Decimal(2**53)]
    for kind in (pa.decimal128(38, 2), pa.decimal256(60, 3)):
        assert encode(large, pa.array(numbers, kind)) == [1, 3, 4, 0]
        assert encode(large, pa.nulls(2, kind)) == [4, 4]
        assert "is fractional" in refusal(large, pa.array([Decimal("7.5")], kind))
    for value in (1e300, math.inf, -math.inf, 2.0**53 + 2):
        assert "not one of the declared categories" in refusal(large, pa.array([value]))
    assert "is fractional" in refusal(large, pa.array([7.5]))


def test_booleans_have_no_place_in_bins():
    assert "bool" in refusal(HOURS, pa.array([True]))


NUMBERS = [0, 0.5, 1, 19, 20, 40, 40.5]
PLACES = [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(6, 2)], ids=str)
def test_numbers_go_into_half_open_intervals_with_the_last_one_closed(kind):
    assert encode(HOURS, pa.array(NUMBERS).cast(kind)) == PLACES


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_numeric_text_goes_into_the_same_intervals(kind):
    texts = ["0", ".5", "1.", "1.9e1", "+20", "4E1", "40.5"]
    column = pa.array(texts, kind)
    assert encode(HOURS, column) == PLACES
    if kind != pa.string_view():
        assert encode(HOURS, column.dictionary_encode()) == PLACES


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_go_into_bins(name):
    assert encode(HOURS, pa.array([0, 1, 20, 40], pa.type_for_alias(name))) == [0, 1, 2, 2]


def test_an_interval_that_is_already_named_is_that_interval():
    assert encode(HOURS, pa.array(["[0,1)", "25", "[20,40.5]", "unknown"])) == [0, 2, 2, 3]


def test_missing_numbers_are_null_nan_and_empty_text():
    assert encode(HOURS, pa.array([1.0, None, float("nan")])) == [1, 3, 3]
    assert encode(HOURS, pa.array([1, None])) == [1, 3]
    assert encode(HOURS, pa.array(["1", None, ""])) == [1, 3, 3]
    strict = Attribute("hours", bins=(0, 1, 20))
    for column in (pa.array([1.0, float("nan")]), pa.array(["1", ""]), pa.array([1, None])):
        assert "row 2, column 'hours': the value is missing" in refusal(strict, column)


@pytest.mark.parametrize("number", [-0.001, 40.6, 1e300, float("inf"), float("-inf")])
def test_a_number_outside_the_edges_is_refused_without_showing_it(number):
    columns = [pa.array([1.0, number])]
    if np.isfinite(number):
        columns.append(pa.array(["1", repr(number)]))
    for column in columns:
        message = refusal(HOURS, column)
        assert "row 2" in message
        assert "outside the declared bins" in message
        assert repr(number) not in message


@pytest.mark.parametrize("text", ["nan", "inf", "1,5", "1_0", "1 0", "0x1", "one", "[0,2)", "1e"])
def test_text_that_is_neither_number_nor_interval_is_refused(text):
    message = refusal(HOURS, pa.array(["1", text]))
    assert "neither a number nor the label" in message
    assert text not in message


def test_a_number_that_stands_for_missing_is_that_category_in_every_type():
    attribute = Attribute("hours", bins=(0, 1, 20), missing="-9")
    for column in (pa.array([-9, 0]), pa.array([-9.0, 0.5]), pa.array(["-9", "0"])):
        assert encode(attribute, column) == [2, 0]


def test_many_categories_and_an_empty_batch_work():
    many = Attribute("m", tuple(f"c{i}" for i in range(70_000)))
    assert encode(many, pa.array(["c69999", "c0", "c300"])) == [69_999, 0, 300]
    assert encode(many, pa.array([], pa.string())) == []
    assert encode(many, pa.array([], pa.string()).dictionary_encode()) == []


@given(
    values=st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b,", '"', "é", "NA", "x"]))),
    as_dictionary=st.booleans(),
    missing=st.sampled_from([None, "NA", "other"]),
)
def test_encoding_agrees_with_a_loop_over_the_values(values, as_dictionary, missing):
    attribute = Attribute("v", ("a", "b,", '"', "é", "NA"), missing=missing)
    column = pa.array(values, pa.string())
    column = column.dictionary_encode() if as_dictionary else column
    expected = []
    for value in values:
        value = value or missing
        if value not in attribute.categories:
            assert f"row {len(expected) + 1}," in refusal(attribute, column)
            return
        expected.append(attribute.categories.index(value))
    assert encode(attribute, column) == expected


def test_columns_declared_alike_are_looked_at_together_and_come_out_as_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "_TOGETHER_CELLS", 17)  # three columns of five rows
    random = np.random.default_rng(3)
    declared = [PETS, Attribute("pet", PETS.categories, missing="NA"), HOURS, DIGITS]
    columns, encoders = {}, {}
    for place in range(40):
        attribute = declared[place % 4]
        texts = [*attribute.categories, "2.5", "", "?", None]
        column = pa.array([texts[j] for j in random.integers(0, len(texts), 5)], pa.string())
        name = f"c{place}"
        encoders[name] = ColumnEncoder(attribute, "t")
        columns[name] = column.dictionary_encode() if place % 5 == 0 else column
    batch = pa.RecordBatch.from_pydict(columns)
    types = {name: column.type for name, column in columns.items()}
    groups = list(ColumnsEncoder(encoders, types).look(batch))
    assert max(len(names) for names, _ in groups) == 3
    found = {
        name: codes for names, block in groups for name, codes in zip(names, block, strict=True)
    }
    assert sorted(found) == sorted(columns)
    for name, column in columns.items():
        assert found[name].tolist() == encoders[name].look(column).tolist()


def test_an_interval_without_an_end_holds_every_number_beyond_its_edge_but_not_infinity():
    gain = Attribute("gain", bins=(-math.inf, 0, 1000, math.inf))
    numbers = [-1e300, -0.5, 0.0, 1000.0, 1e300]
    for column in (pa.array(numbers), pa.array([repr(x) for x in numbers])):
        assert encode(gain, column) == [0, 0, 1, 2, 2]
    assert encode(gain, pa.array(gain.categories)) == [0, 1, 2]
    for infinite in (math.inf, -math.inf):
        assert "outside the declared bins" in refusal(gain, pa.array([infinite]))


@given(st.lists(st.floats(-1, 60, allow_nan=False), min_size=1))
def test_binning_agrees_with_comparisons(numbers):
    edges = HOURS.bins
    expected = [
        next((j for j in range(3) if edges[j] <= x < edges[j + 1]), 2 if x == edges[3] else None)
        for x in numbers
    ]
    for column in (pa.array(numbers), pa.array([repr(x) for x in numbers])):
        if None in expected:
            assert f"row {expected.index(None) + 1}," in refusal(HOURS, column)
        else:
            assert encode(HOURS, column) == expected


@pytest.mark.parametrize(
    ("text", "kind", "fits"),
    [
        ("127", pa.int8(), True),
        ("128", pa.int8(), False),
        ("-128", pa.int8(), True),
        ("-129", pa.int8(), False),
        ("255", pa.uint8(), True),
        ("256", pa.uint8(), False),
        ("-1", pa.uint8(), False),
        ("01", pa.int8(), False),
        ("-0", pa.int8(), False),
        ("1.0", pa.int8(), False),
        ("١", pa.int8(), False),
    ],
)
def test_only_the_decimal_text_of_a_number_in_range_fits_an_integer_type(text, kind, fits):
    assert integer_fits(text, kind) is fits


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.large_string()], ids=str)
def test_codes_of_missing_values_are_missing_values_in_texts(kind):
    attribute = Attribute("pet", ("cat", "dog"), missing="NA", missing_codes=("?", "999"))
    assert encode(attribute, pa.array(["dog", "?", None, "999", "NA"], kind)) == [1, 2, 2, 2, 2]
    in_bins = Attribute("h", bins=(0, 10, 20), missing="NA", missing_codes=("?", "999"))
    assert encode(in_bins, pa.array(["5", "?", "", "999.0", "15"], kind)) == [0, 2, 2, 2, 1]


def test_codes_of_missing_values_are_missing_values_in_numbers():
    attribute = Attribute("n", ("1", "x", "2"), missing="NA", missing_codes=("999",))
    for column in (pa.array([1, 999, 2, None]), pa.array([1.0, 999, 2, None])):
        assert encode(attribute, column) == [0, 3, 2, 3]
    in_bins = Attribute("h", bins=(0, 10, 20), missing="NA", missing_codes=("-1", "999"))
    assert encode(in_bins, pa.array([5, 999, -1, None])) == [0, 2, 2, 2]


BORN = Attribute(
    "born", bins=(dt.date(1950, 1, 1), dt.date(1980, 1, 1), dt.date(1999, 12, 31)), missing="NA"
)
DAYS = ["1950-01-01", "1979-12-31", "1980-01-01", "1999-12-31", None]


def test_dates_and_times_go_into_intervals_of_days():
    texts = pa.array(DAYS)
    days = texts.cast(pa.date32())
    late = pa.array([None if day is None else f"{day} 23:59:59" for day in DAYS])
    times = late.cast(pa.timestamp("us"))
    columns = [texts, late, days, days.cast(pa.date64()), times, times.dictionary_encode()]
    columns.append(times.cast(pa.timestamp("ns", "UTC")))
    columns.append(pa.array(["[1950-01-01,1980-01-01)"] * 2 + ["1999-12-31T23:59Z"] * 2 + [None]))
    for column in columns:
        assert encode(BORN, column) == [0, 0, 1, 1, 2], column.type
    assert "outside the declared bins" in refusal(BORN, pa.array(["1949-12-31"]))
    for text in ("1950-13-01", "1.1.1950", "1950"):
        assert "neither a date such as" in refusal(BORN, pa.array([text]))


def test_codes_of_missing_dates_are_dates_and_no_numbers_of_days():
    codes = ("999", "1979-01-01", "01.02.1960")
    born = replace(BORN, missing_codes=codes)
    days = [dt.date(1970, 1, 1) + dt.timedelta(days=999), dt.date(1979, 1, 1), dt.date(1960, 2, 1)]
    texts = [str(day) for day in days]
    assert encode(born, pa.array([*texts, "999"])) == [0, 2, 0, 2]
    for column in (pa.array(days), pa.array(texts), pa.array(days).cast(pa.timestamp("us"))):
        assert encode(born, column) == [0, 2, 0]
        assert encode(born, column, dates="31.12.2025") == [0, 2, 2]


def test_numbers_have_no_place_in_intervals_of_days():
    with pytest.raises(InputError, match="holds no dates, which the bins are of"):
        ColumnEncoder(BORN, "t", column_type=pa.float64())


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_blanks_at_the_ends_of_texts_do_not_count(kind):
    texts = pa.array([" dog", "dog\t", "\r\ndog\n", " ", None, "cat"]).cast(kind)
    assert ColumnEncoder(Attribute("pet", ("cat", "dog"), missing="NA"), "t").encode(
        texts
    ).tolist() == [1, 1, 1, 2, 2, 0]
    numbers = pa.array([" 1", "2.0 ", "\t-9\n", ""]).cast(kind)
    coded = Attribute("n", ("1", "2"), missing="NA", missing_codes=("-9",))
    assert ColumnEncoder(coded, "t").encode(numbers).tolist() == [0, 1, 2, 2]
    binned = Attribute("n", bins=(0, 2, 4), missing="NA", missing_codes=("-9",))
    assert ColumnEncoder(binned, "t").encode(numbers).tolist() == [0, 1, 2, 2]
