"""Columns that pass through: their groups, their numbers, and whose rows they are."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.tables.rows import Repeats, concatenated, count_rows, groups_of, numbers_of


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["b", "a", "b", None, ""], ["b", "a", "b", "", ""]),
        ([3, 1, 3, None], ["3", "1", "3", ""]),
        ([True, False, None, True], ["true", "false", "", "true"]),
        ([0.5, 2.0], ["0.5", "2.0"]),
    ],
)
def test_the_group_of_a_row_is_the_text_of_its_value(values: list[Any], texts: list[str]) -> None:
    for column in (pa.array(values), pa.chunked_array([pa.array(values)])):
        codes, labels = groups_of(column)
        assert [labels[code] for code in codes] == texts


def test_numbers_are_read_from_numbers_and_from_texts() -> None:
    assert numbers_of(pa.array([1, 2]), "w", "t", 1).tolist() == [1.0, 2.0]
    assert numbers_of(pa.array(["1e2", "-0.5"]), "w", "t", 1).tolist() == [100.0, -0.5]
    for bad in (pa.array(["1", "two", "3"]), pa.array([1.0, None, 3.0])):
        with pytest.raises(InputError, match="t, data row 12: column 'w' does not hold a number"):
            numbers_of(bad, "w", "t", 11)


def test_a_text_is_a_number_by_its_decimal_point_or_refused() -> None:
    assert numbers_of(pa.array(["1,5", " -2 "]), "w", "t", 1, ",").tolist() == [1.5, -2.0]
    for bad in ("1.500", "1_000", "1,000,5", "nan", "", "1 1"):
        with pytest.raises(InputError, match="t, data row 2: column 'w' does not hold a number"):
            numbers_of(pa.array(["1", bad]), "w", "t", 1, ",")


def test_batches_are_joined_by_column_in_order() -> None:
    batches = [{"a": pa.array([1, 2])}, {"a": pa.chunked_array([pa.array([3]), pa.array([4])])}]
    assert concatenated(batches)["a"].to_pylist() == [1, 2, 3, 4]


def test_rows_are_counted_by_person_over_batches_and_belong_to_somebody() -> None:
    rows_of: Counter[Any] = Counter()
    for batch in (["p", "q", "p"], ["q", "p"]):
        count_rows(pa.array(batch), rows_of, "t", 1)
    assert rows_of == {"p": 3, "q": 2}
    with pytest.raises(InputError, match="t, data row 6: "):
        count_rows(pa.array(["p", None]), rows_of, "t", 5)
    with pytest.raises(InputError, match="t, data row 6: "):
        count_rows(pa.array(["p", "  "]), rows_of, "t", 5)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.dictionary(pa.int32(), pa.string())])
def test_a_value_that_comes_again_in_a_later_batch_repeats(kind: Any) -> None:
    batches = [["1", "2"], [], ["3", "4"], ["5", "1"]]
    repeats = Repeats()
    for number, batch in enumerate(batches):
        assert not repeats.found, number
        repeats.add(
            pa.array(batch).cast(pa.int64()) if kind == pa.int64() else pa.array(batch, kind)
        )
    assert repeats.found
    repeats.add(pa.array(["6"]))  # nothing more is looked at


def test_repeats_are_looked_for_among_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.tables.rows._MOST_PERSONS", 3)
    repeats = Repeats()
    for batch in ([1, 2], [3, 4], [1, 1]):
        repeats.add(pa.array(batch))
    assert not repeats.found
