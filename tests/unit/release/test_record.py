"""A record states what is true of its release, and another one is refused."""

import json

import pytest

from deniable.errors import InputError
from deniable.mechanism.strata import Strata
from deniable.release.record import expected_errors, verify
from unit.release.letters import DESIGN, ROWS, released


def test_a_release_verifies_and_an_altered_one_does_not(tmp_path):
    folder = released(tmp_path, ROWS)
    verify(folder)
    record = (folder / "record.json").read_text()
    for old, new in (
        ('"single": {\n      "a": 0.', '"single": {\n      "a": 1.'),
        ('"sentence": "Every', '"sentence": "No'),
        ('"attenuation": {\n    "single"', '"attenuation": {\n    "double"'),
    ):
        assert old in record
        (folder / "record.json").write_text(record.replace(old, new))
        with pytest.raises(InputError, match=r"record\.json"):
            verify(folder)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["title"], "Digits"),
        (["release", "rows"], 5),
        (["release", "columns"], ["a", "b"]),
        (["release", "row_order"], "shuffled"),
        (["release", "randomness"], "seeded"),
        (["release", "file"], ["data.csv"]),
        (["release"], []),
        (["guarantee", "person"], "x"),
        (["guarantee", "person"], {"column": "p", "most_rows": "3", "epsilon": 1.0}),
        (["guarantee", "person"], {"column": "p", "most_rows": 2, "epsilon": 1.0}),
        (["attenuation", "pairs", 0, "attributes"], ["b", "a"]),
        (["attenuation", "single"], {"b": 0.5, "a": 0.5, "c": 1.0}),
        (["expected_error", 0, "standard_error"], 1e-5),
        (["small_print"], []),
        (["format_version"], 9),
    ],
)
def test_no_altered_statement_verifies(where, value, tmp_path):
    folder = released(tmp_path, ROWS)
    record = part = json.loads((folder / "record.json").read_text())
    for step in where[:-1]:
        part = part[step]
    assert part[where[-1]] != value
    part[where[-1]] = value
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"record\.json"):
        verify(folder)


def test_a_number_of_rows_that_is_false_throughout_does_not_verify(tmp_path):
    """The record alone cannot tell: its expected errors follow from the number it states."""
    folder = released(tmp_path, ROWS)
    record = json.loads((folder / "record.json").read_text())
    record["release"]["rows"] = 40_000
    record["expected_error"] = expected_errors(Strata.one(DESIGN.mechanism), {"": 40_000})
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="number of rows"):
        verify(folder)
