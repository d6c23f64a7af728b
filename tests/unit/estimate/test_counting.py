"""Rows become counts: against counting them one by one."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.estimate import counting
from deniable.estimate.counting import (
    count_tables,
    first_rows,
    read_rows,
    released_attributes,
)
from deniable.estimate.tabulate import Counts
from deniable.laws import Identity, MatrixChannel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema
from deniable.tables import open_table
from unit.estimate.releases import (
    SCHEMA,
    by_town,
    count_rows,
    engine_counts,
    mechanism,
    rows,
    table,
)

ONE = Strata.one(mechanism())
AGES = SCHEMA.attributes[1].categories


def one_by_one(names: list[str], **where: str) -> Counter[tuple[str, ...]]:
    columns = rows()
    chosen = [i for i in range(400) if all(columns[c][i] == v for c, v in where.items())]
    return Counter(tuple(str(columns[name][i]) for name in names) for i in chosen)


def test_rows_are_counted_by_their_released_values_in_the_order_of_the_names() -> None:
    (counts,) = count_rows(table(), ONE, ["age", "smokes"])
    assert counts.group == ()
    assert counts.column is None
    ((made_by, tabulation),) = counts.parts
    assert made_by == mechanism()
    expected = one_by_one(["age", "smokes"])
    for i, age in enumerate(AGES):
        for j, smokes in enumerate(("no", "yes")):
            assert tabulation.counts[i, j] == expected[age, smokes]
    assert tabulation.n_records == 400


def test_groups_come_in_the_order_of_their_values_and_only_rows_that_are_selected_count() -> None:
    found = count_rows(table(), ONE, ["smokes"], by=["town"], where={"sex": "f"})
    assert [counts.group for counts in found] == [
        (("sex", "f"), ("town", "a")),
        (("sex", "f"), ("town", "b")),
    ]
    for counts in found:
        expected = one_by_one(["smokes"], **dict(counts.group))
        assert counts.parts[0][1].counts.tolist() == [expected[("no",)], expected[("yes",)]]


def test_weights_are_added_up_and_squared() -> None:
    (counts,) = count_rows(table(), ONE, ["sex"], weights="weight")
    weights, sexes = np.array(rows()["weight"]), np.array(rows()["sex"])
    tabulation = counts.parts[0][1]
    assert tabulation.squares is not None
    for place, sex in enumerate(("f", "m")):
        assert tabulation.counts[place] == pytest.approx(weights[sexes == sex].sum())
        assert tabulation.squares[place] == pytest.approx((weights[sexes == sex] ** 2).sum())


def test_strata_of_a_group_stand_side_by_side_each_with_its_mechanism() -> None:
    strata = by_town()
    (together,) = count_rows(table(), strata, ["smokes"])
    assert [made_by for made_by, _ in together.parts] == list(strata.mechanisms.values())
    assert together.column == "town"
    for (_, tabulation), town in zip(together.parts, "ab", strict=True):
        assert tabulation.counts.sum() == sum(one_by_one(["smokes"], town=town).values())
    apart = count_rows(table(), strata, ["smokes"], by=["town"])
    assert [counts.group for counts in apart] == [(("town", "a"),), (("town", "b"),)]
    assert [len(counts.parts) for counts in apart] == [1, 1]
    by_sex = count_rows(table(), strata, ["smokes"], by=["sex"])
    assert [len(counts.parts) for counts in by_sex] == [2, 2]


def test_rows_of_a_stratum_that_the_record_does_not_know_are_refused() -> None:
    strange = table().set_column(3, "town", pa.array(["c"] * 400))
    with pytest.raises(InputError, match="the rows are not those of this release"):
        count_rows(strange, by_town(), ["smokes"])


def test_columns_that_are_randomized_or_unknown_select_and_group_nothing() -> None:
    with pytest.raises(InputError, match="rows cannot be selected by 'smokes'"):
        count_rows(table(), ONE, ["age"], where={"smokes": "yes"})
    with pytest.raises(InputError, match=r"'other' is not a kept column .* \(sex, town, weight\)"):
        count_rows(table(), ONE, ["age"], by=["other"])
    with pytest.raises(InputError, match="no row has the value 'elsewhere' in 'town'"):
        count_rows(table(), ONE, ["age"], where={"town": "elsewhere"})
    with pytest.raises(InputError, match="there is no row"):
        count_rows(table(), ONE, ["age"], by=["sex"], where=["weight<0"])
    with pytest.raises(InputError, match="data row 1, column 'town': the value is not a finite"):
        count_rows(table(), ONE, ["age"], weights="town")


def test_more_groups_than_anyone_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_GROUPS", 3)
    with pytest.raises(InputError, match="more than 3 groups of sex, town"):
        count_rows(table(), ONE, ["age"], by=["sex", "town"])


def test_released_values_are_read_back_as_they_are_written() -> None:
    binned = Attribute("a", bins=(0.0, 1.0, 2.0), missing="NA")
    schema = Schema((binned, Attribute("b", ("x", "y"))), keep=("b",))
    answers = MatrixChannel.from_probabilities(np.vstack([0.7 * np.eye(3), np.full((1, 3), 0.3)]))
    blocks = (Block((0,), answers), Block((1,), Identity((2,))))
    first, second = released_attributes(Strata.one(Mechanism(schema, blocks)), ["a", "b"])
    assert first.categories == ("answer 1", "answer 2", "answer 3", "answer 4")
    assert second is schema.attributes[1]
    (age,) = released_attributes(ONE, ["age"])
    assert (age.categories, age.bins) == (AGES, None)


def test_a_file_of_counts_adds_up_what_is_listed_twice(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("smokes,sex,count\nyes,f,3\nno,m,4\nyes,f,2\n")
    (counts,) = count_rows(path, ONE, ["smokes", "sex"], counted=True)
    assert counts.parts[0][1].counts.tolist() == [[0, 4], [5, 0]]
    assert counts.n_records == 9
    for number, problem in [
        ("many", "does not hold a number"),
        ("1.5", "whole numbers"),
        ("-1", "whole numbers"),
        ("inf", "does not hold a number"),
    ]:
        path.write_text(f"smokes,count\nyes,{number}\n")
        with pytest.raises(InputError, match=problem):
            count_rows(path, ONE, ["smokes"], counted=True)
    path.write_text("smokes,count\nyes,1\n")
    for how, missing in [({"by": ["town"]}, "town"), ({"weights": "weight"}, "weight")]:
        with pytest.raises(InputError, match=f"there is no column '{missing}'"):
            count_rows(path, ONE, ["smokes"], counted=True, **how)


def same(first: list[Counts], second: list[Counts]) -> bool:
    """Whether counts agree in everything."""
    assert [c.group for c in first] == [c.group for c in second]
    for one, other in zip(first, second, strict=True):
        for (law, a), (other_law, b) in zip(one.parts, other.parts, strict=True):
            assert (law, a.n_records) == (other_law, b.n_records)
            np.testing.assert_allclose(a.counts, b.counts)
            if a.squares is None or b.squares is None:
                assert a.squares is b.squares
            else:
                np.testing.assert_allclose(a.squares, b.squares)
    return bool(first)


@pytest.mark.parametrize("weights", [None, "weight"])
@pytest.mark.parametrize("by", [[], ["town"], ["sex", "town"]])
@pytest.mark.parametrize("where", [{}, {"sex": "f"}])
def test_counts_of_any_engine_are_those_of_the_rows(weights, by, where) -> None:
    engine = engine_counts(rows(), ["smokes", "age", "sex", "town"])
    how = {"by": by, "where": where, "weights": weights}
    for strata in (ONE, by_town()):
        for names in (["age"], ["smokes", "age"]):
            counted = count_rows(engine, strata, names, counted=True, **how)
            assert same(counted, count_rows(table(), strata, names, **how))


def test_several_tables_are_counted_in_one_pass(monkeypatch) -> None:
    opened = []

    def open_once(*args: object, **kwargs: object) -> object:
        opened.append(args)
        return open_table(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setitem(count_tables.__globals__, "open_table", open_once)
    tables = [["age"], ["smokes", "age"], ["age", "sex"], ["smokes"]]
    found = count_tables(table(), by_town(), tables, by=["sex"], weights="weight")
    assert len(opened) == 1
    for names, counts in zip(tables, found, strict=True):
        assert same(counts, count_rows(table(), by_town(), names, by=["sex"], weights="weight"))


def test_rows_without_a_group_or_a_weight_are_left_out_and_counted() -> None:
    # Failed before: an empty cell was a group of its own, and no weight a refusal.
    columns = rows()
    columns["town"][3] = columns["town"][9] = None
    columns["weight"][5] = None
    gaps = pa.table(columns)
    found = count_rows(gaps, ONE, ["smokes"], by=["town"], weights="weight")
    assert [dict(counts.group)["town"] for counts in found] == ["a", "b"]
    assert {counts.selection.left_out for counts in found} == {(("weight", 1), ("town", 2))}
    assert sum(counts.n_records for counts in found) == 397
    (older,) = count_rows(gaps, ONE, ["smokes"], where=["weight>=1", "town=a|b"])
    assert older.selection.left_out == (("weight", 1),)
    expected = [i for i in range(400) if columns["town"][i] and (columns["weight"][i] or 0) >= 1]
    assert older.n_records == len(expected)
    with pytest.raises(InputError, match=r"to estimate from \(Only rows where weight > 1 and"):
        count_rows(table(), ONE, ["smokes"], where=["weight>1", "weight<1"])


def test_an_empty_randomized_cell_is_an_error_in_a_release_and_an_incomplete_case_elsewhere() -> (
    None
):
    columns = rows(6) | {"smokes": ["no", None, "yes", "", "no", "yes"]}
    columns["age"][4] = ""
    with pytest.raises(InputError, match="data row 2, column 'smokes'"):
        count_tables(pa.table(columns), by_town(), [["smokes"]])
    with pytest.raises(InputError, match="data row 2, column 'smokes'"):
        read_rows(pa.table(columns), by_town(), ["smokes"])
    counted = count_tables(
        pa.table(columns), by_town(), [["smokes"], ["age", "smokes"]], complete_cases=True
    )
    for groups in counted:
        assert sum(counts.n_records for counts in groups) == 3
        assert groups[0].selection.left_out == (("smokes", 2), ("age", 1))
    read = read_rows(pa.table(columns), by_town(), ["smokes"], texts=["sex"], complete_cases=True)
    assert read.codes[0].tolist() == [0, 1, 0, 1]
    assert len(read.texts["sex"][0]) == 4
    first = first_rows(pa.table(columns), by_town(), ["smokes"], 10, complete_cases=True)
    assert sum(len(own.codes[0]) for own in first.values()) == 4
