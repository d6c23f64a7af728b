"""How a text file holds a table, as told by a schema or an option."""

import pytest

from deniable.errors import InputError
from deniable.schema import FileFormat, Schema

ATTRIBUTE = {"name": "sex", "categories": ["f", "m"]}


def test_a_schema_says_how_its_file_is_read_and_gives_it_back():
    said = {"separator": ";", "decimal": ",", "encoding": "latin-1", "columns": ["sex"]}
    schema = Schema.from_plain({"attribute": [ATTRIBUTE], "file": said})
    assert schema.file == FileFormat(";", ",", "latin-1", None, ("sex",))
    assert schema.to_plain()["file"] == said
    assert "file" not in Schema.from_plain({"attribute": [ATTRIBUTE]}).to_plain()


def test_what_an_option_says_goes_before_what_the_schema_says():
    told = FileFormat(separator=";", header=False).with_changes(FileFormat(separator="|"))
    assert told == FileFormat(separator="|", header=False)
    assert FileFormat(columns=("a",)).with_changes(FileFormat(header=True)).has_header


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"separator": ", "}, "single character"),
        ({"separator": '"'}, "single character"),
        ({"decimal": ";"}, "decimal point must be"),
        ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ({"columns": ["a", ""]}, "an empty name"),
        ({"columns": ["a", "a"]}, "two columns have the name 'a'"),
        ({"delimiter": ","}, "delimiter"),
    ],
)
def test_what_contradicts_itself_is_refused(said, problem):
    with pytest.raises(InputError, match=problem):
        Schema.from_plain({"attribute": [ATTRIBUTE], "file": said})


@pytest.mark.parametrize("form", ["31.12.2025", "12/31/2025", "2025-12-31", "20251231"])
def test_dates_are_shown_by_the_last_day_of_2025(form: str) -> None:
    assert FileFormat(dates=form).to_plain() == {"dates": form}


@pytest.mark.parametrize("form", ["%d.%m.%Y", "31.12", "31.12.25", "31.31.2025", "31.12/2025", ""])
def test_another_example_of_a_date_is_refused(form: str) -> None:
    with pytest.raises(InputError, match="are given as the last day of 2025"):
        FileFormat(dates=form)
