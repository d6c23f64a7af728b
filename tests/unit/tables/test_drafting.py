"""A draft of a schema: it can be read, fits the table it was read off, and says what it is."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.tables import open_table
from deniable.tables.drafting import MOST_CATEGORIES, WARNING, draft_schema

NAME = 'the "a" \\ \x7f'


def draft(tmp_path: Path, columns: dict[str, list[str | None]]) -> tuple[str, Schema, Path]:
    path = tmp_path / "people.csv"
    pc.write_csv(pa.table(columns), path)
    text = draft_schema(path)
    (tmp_path / "draft.toml").write_text(text, encoding="utf-8")
    return text, Schema.from_toml(tmp_path / "draft.toml"), path


def test_few_values_are_categories_in_their_natural_order_and_many_numbers_are_bins(
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
    assert income.bins is not None
    assert (income.bins[0], income.bins[-1]) == (0, 100 * (n - 1))
    assert len(income.bins) == 6
    assert schema.title == "people"
    assert text.startswith("# WARNING")
    assert "".join(WARNING.split()) in "".join(text.replace("# ", "").split())
    with open_table(path, schema.attributes) as reader:
        assert sum(batch.n_rows for batch in reader) == n


def test_missing_values_become_a_category(tmp_path: Path) -> None:
    _, schema, _ = draft(tmp_path, {"a": ["x", None, "y"], "b": ["1", "2", "1"]})
    assert schema.attributes[0].categories == ("x", "y", "NA")
    assert schema.attributes[1].missing is None


def test_columns_that_say_nothing_or_name_people_are_left_for_a_person_to_decide(
    tmp_path: Path,
) -> None:
    n = MOST_CATEGORIES + 1
    columns: dict[str, list[str | None]] = {
        "same": ["x"] * n,
        "name": [f"person {i}" for i in range(n)],
        "strange": [str(i) for i in range(n - 1)] + ["inf"],
        "sex": ["f", "m"] * (n // 2) + ["f"],
    }
    text, schema, _ = draft(tmp_path, columns)
    assert schema.names == ("sex",)
    assert '# column "same" has fewer than two values' in text
    assert '# column "name" has over' in text
    assert '# column "strange" has over' in text


def test_names_and_values_that_toml_would_misread_are_quoted(tmp_path: Path) -> None:
    _, schema, _ = draft(
        tmp_path, {'the "a" \\ \x7f': ['say "hi"', "back\\slash"], "é": ["ü", "ß"]}
    )
    assert schema.names == (NAME, "é")
    assert schema.attributes[0].categories == ("back\\slash", 'say "hi"')


def test_standard_input_cannot_be_read_twice() -> None:
    with pytest.raises(InputError, match="read twice"):
        draft_schema("-")
