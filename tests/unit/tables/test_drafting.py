"""A draft of a schema: it can be read, fits the table it was read off, and says what it is."""

import tomllib
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.randomness import SystemRandomness
from deniable.schema import FileFormat, Schema
from deniable.tables import open_table
from deniable.tables.drafting import MOST_CATEGORIES, WARNING, _Column, draft_schema

NAME = 'the "a" \\ \x7f'


def draft(tmp_path: Path, columns: dict[str, list[str | None]]) -> tuple[str, Schema, Path]:
    path = tmp_path / "people.csv"
    pc.write_csv(pa.table(columns), path)
    text = draft_schema(path)
    (tmp_path / "draft.toml").write_text(text, encoding="utf-8")
    return text, Schema.from_toml(tmp_path / "draft.toml"), path


def test_few_values_are_categories_in_their_natural_order_and_many_numbers_are_ranges(
    tmp_path: Path,
) -> None:
    n = MOST_CATEGORIES + 10
    columns: dict[str, list[str | None]] = {
        "grade": [str(i % 11) for i in range(n)],
        "sex": ["m" if i % 2 else "f" for i in range(n)],
        "income": [str(100 * i) for i in range(n)],
    }
    text, schema, path = draft(tmp_path, columns)
    grade, sex, income = schema.attributes
    assert grade.categories == tuple(str(i) for i in range(11))
    assert sex.categories == ("f", "m")
    assert (income.range, income.drafted) == ((0, 6000), True)
    assert (grade.ordered, sex.ordered) == (True, False)
    assert grade.scores == tuple(range(11))
    assert schema.title == "people"
    assert text.startswith("# WARNING")
    assert "".join(WARNING.split()) in "".join(text.replace("# ", "").split())
    check_read(path, schema, n)


@pytest.mark.parametrize("name", ["identifier", "patient", "Respondent", "person id"])
def test_numbers_under_the_name_of_an_identifier_are_left_for_a_person(
    tmp_path: Path, name: str
) -> None:
    numbers = [str(i * 37 % 997) for i in range(60) for _ in range(3)]
    text, schema, _ = draft(tmp_path, {name: numbers, "patient age": numbers})
    assert schema.names == ("patient age",)
    assert "the name of an identifier" in text


def test_ordered_categories_are_those_of_the_type_in_its_order(tmp_path: Path) -> None:
    def ordered(values: list[str | None], declared: list[str], *, flag: bool = True) -> pa.Array:
        codes = pa.array([None if v is None else declared.index(v) for v in values], pa.int8())
        return pa.DictionaryArray.from_arrays(codes, pa.array(declared), ordered=flag)

    sizes = ["small", "large", None, "medium"] * 5
    steps = ["10", "50", "20", "10"] * 5
    table = pa.table(
        {
            "size": ordered(sizes, ["small", "medium", "large", "huge", "n/a"]),
            "step": ordered(steps, ["50", "20", "10"]),
            "unordered": ordered(sizes, ["small", "medium", "large"], flag=False),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table.to_pandas()):
        size, step, unordered = Schema.from_plain(tomllib.loads(draft_schema(source))).attributes
        assert size.categories == ("small", "medium", "large", "huge", "NA")
        assert size.ordered
        assert size.drafted
        assert (step.categories, step.scores) == (("50", "20", "10"), (50.0, 20.0, 10.0))
        assert (unordered.categories, unordered.ordered) == (
            ("large", "medium", "small", "NA"), False
        )  # fmt: skip
    # Batches that do not agree tell no order.
    column = _Column(commas=False)
    column.add(ordered(sizes, ["small", "medium", "large"]))
    column.add(ordered(sizes, ["large", "medium", "small"]))
    assert column.order == ()


def test_missing_values_become_a_category(tmp_path: Path) -> None:
    _, schema, _ = draft(tmp_path, {"a": ["x", None, "y"], "b": ["1", "2", "1"]})
    assert schema.attributes[0].categories == ("x", "y", "NA")
    assert schema.attributes[1].missing is None


def test_columns_that_say_nothing_or_name_people_are_left_for_a_person_to_decide(
    tmp_path: Path,
) -> None:
    n = 2 * MOST_CATEGORIES
    columns: dict[str, list[str | None]] = {
        "same": ["x"] * n,
        "who": [f"person {i}" for i in range(n)],
        "row": [str(i + 7) for i in range(n)],
        "zip": [f"{i % 60:05}" for i in range(n)],
        "customer_id": [str(i % 60 + 1000) for i in range(n)],
        "strange": [str(i % 70) for i in range(n - 1)] + ["inf"],
        "sex": ["f", "m"] * (n // 2),
        "income": [str(i * i) for i in range(n)],
    }
    text, schema, _ = draft(tmp_path, columns)
    assert schema.names == ("sex", "income")
    assert '# column "same" has fewer than two values' in text
    head = text.partition("\n\n")[0]
    assert "\n# Not declared: " in head
    assert '"same"' in head.splitlines()[-2]
    assert head.splitlines()[-1] == '# keep = ["same"]'
    assert '# column "who" has a value of its own in every row' in text
    assert '# column "row" has a value of its own in every row' in text
    assert '# column "zip" has over 50 numbers that begin with 0' in text
    assert '# column "customer_id" has over 50 values and the name of an identifier' in text
    assert '# column "strange" has over 50 distinct texts' in text


def test_a_draft_says_of_every_attribute_that_it_is_one(tmp_path: Path) -> None:
    _, schema, _ = draft(tmp_path, {"a": ["x", "y"], "b": ["1", "2"]})
    assert schema.drafted == ("a", "b")


def test_what_stands_for_a_missing_value_is_proposed_as_such(tmp_path: Path) -> None:
    n = 60
    columns: dict[str, list[str | None]] = {
        "work": ["?" if i % 9 == 0 else f"job {i % 5}" for i in range(n)],
        "both": [("n/a", ".", "x", "y", None)[i % 5] for i in range(n)],
        "age": ["999" if i % 7 == 0 else str(i) for i in range(n)],
        "grade": ["-9" if i % 7 == 0 else str(i % 4) for i in range(n)],
        "elders": [str(40 + i) for i in range(n)],
        "height": ["." if i % 6 == 0 else f"{100 + i}.5" for i in range(n)],
    }
    _, schema, path = draft(tmp_path, columns)
    missing = {a.name: (a.missing, a.missing_codes) for a in schema.attributes}
    assert missing == {
        "work": ("?", ()),
        "both": ("NA", ("n/a", ".")),
        "age": ("NA", ("999",)),
        "grade": ("NA", ("-9",)),
        "height": ("NA", (".",)),
    }
    assert schema.attributes[schema.position("age")].range == (0, 60)
    assert schema.attributes[schema.position("grade")].categories == ("0", "1", "2", "3", "NA")
    check_read(path, schema, n)


def test_an_empty_field_never_becomes_a_code_of_the_table(tmp_path: Path) -> None:
    # 41 % of a table were once released as -1, which was somebody's answer.
    spent = [None if i % 5 < 2 else "-1" if i % 5 == 2 else str(i % 4) for i in range(100)]
    text, schema, _ = draft(tmp_path, {"spent": spent, "sex": ["f", "m", None, "?"] * 25})
    spending, sex = schema.attributes
    assert (spending.categories[-1], spending.missing) == ("NA", "NA")
    assert spending.missing_codes == ("-1",)
    assert "# -1: far from all other numbers, taken for missing like an empty field" in text
    assert (sex.categories, sex.missing_codes) == (("f", "m", "NA"), ("?",))


def test_a_draft_remarks_what_only_a_person_can_know(tmp_path: Path) -> None:
    n = 100
    columns: dict[str, list[str | None]] = {
        "ill": ["Yes" if i % 3 else "yes" if i % 2 else "no " for i in range(n)],
        "region": [str(i % 4) for i in range(n)],
        "sex": ["f" if i % 2 else "m" for i in range(n)],
        "income": [str(100 * i) for i in range(n)],
    }
    text, _, _ = draft(tmp_path, columns)
    ill, region, sex, income = text.split("[[attribute]]")[1:]
    assert '# "Yes" and "yes" differ by case or blanks only: one category?' in ill
    assert "# taken for a count or a scale: if they are codes of unordered categories" in region
    assert region.index("remove these two lines") < region.index("ordered = true")
    assert "#" not in sex
    assert '# instead: for = "distribution", or bins' in income


def test_ranges_have_round_ends_around_all_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 5000
    numbers = {
        "income": rng.lognormal(10, 1, n),
        "change": rng.normal(0, 3.3, n),
        "gain": np.where(rng.random(n) < 0.8, 0, rng.integers(114, 9999, n)).astype(float),
        "share": rng.beta(2, 5, n) / 100,
        "degrees": rng.uniform(-20, -12, n),
        "place": rng.uniform(34.05, 34.056, n),
    }
    _, schema, path = draft(
        tmp_path, {name: [repr(float(v)) for v in values] for name, values in numbers.items()}
    )
    for attribute in schema.attributes:
        assert attribute.range is not None
        (low, high), values = attribute.range, numbers[attribute.name]
        spread = values.max() - values.min()
        assert values.min() - 0.6 * spread <= low <= values.min()
        assert values.max() <= high <= values.max() + 0.6 * spread
    assert [schema.attributes[i].range[0] for i in (0, 2, 3)] == [0, 0, 0]  # type: ignore[index]
    check_read(path, schema, n)


def check_read(source: Any, schema: Schema, rows: int) -> None:
    """Fail unless the table fits its draft."""
    bits = SystemRandomness()
    with open_table(
        source, schema.attributes, [], other_columns="drop", file_format=schema.file, rounding=bits
    ) as reader:
        assert sum(batch.n_rows for batch in reader) == rows


def test_ranges_of_dates_begin_and_end_with_years_or_months(tmp_path: Path) -> None:
    n = 300
    columns: dict[str, list[str | None]] = {
        "born": [str(date(1930, 3, 5) + timedelta(days=97 * i)) for i in range(n)],
        "seen": [f"{date(2024, 1, 3) + timedelta(days=i)} 12:30:00" for i in range(n)],
        "wave": [("2019-05-01", "2020-05-01", "2021-05-01")[i % 3] for i in range(n)],
    }
    _, schema, path = draft(tmp_path, columns)
    born, seen, wave = schema.attributes
    assert (born.categories[0], born.categories[-1]) == ("1930-01-01", "2010-01-01")
    assert (seen.categories[0], seen.categories[-1]) == ("2024-01-01", "2024-11-01")
    assert wave.categories == ("2019-05-01", "2020-05-01", "2021-05-01")
    check_read(path, schema, n)


ADULT = "39, State-gov, 77516, Male\n50, ?, 83311, Female\n38, Private, 83311, Male\n"


def test_a_first_row_that_is_data_is_refused_and_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "adult.data"
    path.write_text(ADULT)
    with pytest.raises(
        InputError, match=r"column 1 would be called by a number.*schema.file.header = False"
    ) as e:
        draft_schema(path)
    assert "39" not in str(e.value).replace(str(path), "")
    path.write_text("Male,Private\nFemale,Private\n")
    with pytest.raises(InputError, match="the name of column 2 occurs as a value in it") as caught:
        draft_schema(path)
    assert "Private" not in str(caught.value)
    told = FileFormat(columns=("sex", "work"))
    schema = Schema.from_plain(tomllib.loads(draft_schema(path, told)))
    assert schema.file == told
    assert schema.names == ("sex",)
    path.write_text("1990,1991\n5,6\n7,8\n")
    schema = Schema.from_plain(tomllib.loads(draft_schema(path, FileFormat(header=True))))
    assert schema.names == ("1990", "1991")


def test_what_init_found_out_about_the_file_is_what_share_is_told(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    lines = [f" {'m' if i % 2 else 'f'} ; {i},5 ; {'a,b' if i % 3 else '?'} " for i in range(60)]
    path.write_text("sex;hours;group\n" + "\n".join(lines) + "\n", encoding="utf-16")
    schema = Schema.from_plain(tomllib.loads(draft_schema(path)))
    assert schema.file == FileFormat(separator=";", decimal=",")
    sex, hours, group = schema.attributes
    assert sex.categories == ("f", "m")
    assert hours.range == (0, 60)
    assert group.categories == ("a,b", "?")
    check_read(path, schema, 60)


def test_two_kinds_of_decimal_points_are_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a;b\n" + "".join(f"{i},5;{i}.5\n" for i in range(60)))
    with pytest.raises(InputError, match="'a' has numbers with a decimal comma and 'b' with a"):
        draft_schema(path)
    assert '# column "b"' in draft_schema(path, FileFormat(decimal=","))


def test_a_table_without_rows_gives_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n")
    with pytest.raises(InputError, match=r"table\.csv has no rows"):
        draft_schema(path)


def test_names_and_values_that_toml_would_misread_are_quoted(tmp_path: Path) -> None:
    _, schema, _ = draft(
        tmp_path, {'the "a" \\ \x7f': ['say "hi"', "back\\slash"], "é": ["ü", "ß"]}
    )
    assert schema.names == (NAME, "é")
    assert schema.attributes[0].categories == ("back\\slash", 'say "hi"')


def test_standard_input_cannot_be_read_twice() -> None:
    with pytest.raises(InputError, match="reads its table twice"):
        draft_schema("-")


def test_numbers_close_together_and_far_from_0_are_told_apart(tmp_path: Path) -> None:
    columns: dict[str, list[str | None]] = {
        "year": [str(2007 + i % 3) for i in range(6000)],
        "place": [f"{34.05 + i / 1e6:.6f}" for i in range(6000)],
        "skewed": [str(1.003**i) for i in range(6000)],
    }
    _, schema, path = draft(tmp_path, columns)
    year, place, skewed = schema.attributes
    assert year.categories == ("2007", "2008", "2009")
    assert year.scores == (2007, 2008, 2009)
    assert place.range is not None
    assert 34.045 < place.range[0] < 34.056 <= place.range[1] < 34.06
    assert skewed.range == (0, 8e7)
    check_read(path, schema, 6000)


def test_memory_of_numbers_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.tables.drafting._DISTINCT", 50)
    monkeypatch.setattr("deniable.tables.drafting._MOST_ROUNDED", 3000)
    column = _Column(commas=False)
    for start in range(0, 6):
        numbers = (np.arange(5000) + 5000 * start) * 1.37
        column.add(pa.array(np.round(numbers, 4)))
    assert len(column.histogram) <= 3000 + 5000
    assert sum(column.histogram.values()) == 30_000


def test_one_number_or_date_beside_missing_values_is_a_category(tmp_path: Path) -> None:
    _, schema, _ = draft(
        tmp_path,
        {
            "year": ["2007", None, "2007"],
            "day": ["2020-01-01", "2020-01-01", None],
            "x": list("aba"),
        },
    )
    assert [one.categories for one in schema.attributes] == [
        ("2007", "NA"),
        ("2020-01-01", "NA"),
        ("a", "b"),
    ]


def dated(tmp_path: Path, *written: str, days: int = 60) -> tuple[str, Schema]:
    """The draft of a table with a column of dates for each way of writing them."""
    shown = [date(1960, 1, 1) + timedelta(days=301 * i) for i in range(days)]
    columns: dict[str, list[str | None]] = {"sex": ["f", "m"] * (days // 2)}
    for place, form in enumerate(written):
        columns[f"day{place}"] = [one.strftime(form) for one in shown]
    text, schema, path = draft(tmp_path, columns)
    check_read(path, schema, days)
    return text, schema


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("%d.%m.%Y", "31.12.2025"),
        ("%d/%m/%Y", "31/12/2025"),
        ("%m/%d/%Y", "12/31/2025"),
        ("%m-%d-%Y 10:30", "12-31-2025"),
        ("%Y/%m/%d", "2025/12/31"),
        ("%Y-%m-%d", None),
    ],
)
def test_dates_are_read_as_they_are_written(tmp_path: Path, written: str, form: str) -> None:
    _, schema = dated(tmp_path, written)
    assert schema.file.dates == form
    assert schema.attributes[1].dates
    assert schema.attributes[1].range == dated(tmp_path, "%Y-%m-%d")[1].attributes[1].range


def test_dates_in_columns_of_text_are_read_as_they_are_written(tmp_path: Path) -> None:
    shown = [date(1960, 1, 1) + timedelta(days=301 * i) for i in range(60)]
    columns = {"sex": ["f", "m"] * 30, "day": [one.strftime("%d.%m.%Y") for one in shown]}
    table, path = pa.table(columns), tmp_path / "people.parquet"
    pq.write_table(table, path)
    schema = Schema.from_plain(tomllib.loads(draft_schema(path)))
    assert schema.file == FileFormat(dates="31.12.2025")
    for source in (path, table, table.to_reader()):
        check_read(source, schema, 60)
    with (
        pytest.raises(InputError, match="not a date such as 2025-12-31"),
        open_table(path, schema.attributes, [], rounding=SystemRandomness()) as reader,
    ):
        list(reader)


def test_which_number_is_the_day_is_not_guessed_at(tmp_path: Path) -> None:
    days: list[str | None] = [f"{1 + i % 12:02}/{1 + i % 11:02}/{1960 + i % 47}" for i in range(60)]
    text, schema, path = draft(tmp_path, {"sex": ["f", "m"] * 30, "day": list(days)})
    assert schema.names == ("sex",)
    assert "written as 31/12/2025 or 12/31/2025 is:" in text
    assert "give the form of the file's dates with --dates" in text
    told = tomllib.loads(draft_schema(path, FileFormat(dates="12/31/2025")))
    assert told["file"] == {"dates": "12/31/2025"}
    assert [one["name"] for one in told["attribute"]] == ["sex", "day"]


def test_one_form_is_for_all_columns_and_another_is_left_for_a_person(tmp_path: Path) -> None:
    text, schema = dated(tmp_path, "%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y")
    assert schema.names == ("sex", "day0", "day1")
    assert "written as 12/31/2025 is:" in text
    numbers = [int(f"{1950 + i}0101") for i in range(60)]
    path = tmp_path / "numbers.csv"
    pc.write_csv(pa.table({"day": numbers, "sex": ["f", "m"] * 30}), path)
    assert "range = [19500000, " in draft_schema(path)
    assert "range = [1950-01-01, 2010-01-01]" in draft_schema(path, FileFormat(dates="20251231"))


@pytest.mark.parametrize("people", [8, 600])
def test_a_column_that_may_say_whose_row_it_is_proposes_to_say_so(
    tmp_path: Path, people: int
) -> None:
    rows = [f"{n % people},{n % people},{'xy'[n % 2]}" for n in range(3 * people)]
    (tmp_path / "t.csv").write_text("\n".join(["PatientID,visits,a", *rows]) + "\n")
    text = draft_schema(str(tmp_path / "t.csv"))
    assert text.count("--person") == 1
    assert text.index('release with --person "PatientID"') < text.index('"visits"')
    single = [f"{n},{n},{'xy'[n % 2]}" for n in range(people)]
    (tmp_path / "t.csv").write_text("\n".join(["PatientID,visits,a", *single]) + "\n")
    assert "--person" not in draft_schema(str(tmp_path / "t.csv"))
