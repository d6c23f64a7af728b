"""A record states what is true of its release, and another one is refused."""

import hashlib
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.api import share
from deniable.design.design import design
from deniable.errors import InputError
from deniable.mechanism.strata import Strata
from deniable.release.record import expected_errors, verify
from deniable.schema import Attribute, Schema
from deniable.statement.expected_accuracy import expected_accuracy
from deniable.statement.record import mechanism_to_plain, to_json
from unit.release.letters import DESIGN, ROWS, released


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["format"], "deniable releases"),
        (["title"], "Digits"),
        (["release", "rows"], 5),
        (["release", "columns"], ["a", "b"]),
        (["release", "row_order"], "sorted"),
        (["release", "randomness"], "dice"),
        (["release", "rows"], 10**400),
        (["release", "file"], "../data.csv"),
        (["release", "file"], "data." + "c" * 10_000),
        (["release", "file"], ["data.csv"]),
        (["release"], []),
        (["guarantee", "person"], "x"),
        (["guarantee", "person"], {"column": "p", "most_rows": "3", "epsilon": 1.0}),
        (["guarantee", "person"], {"column": "p", "most_rows": 2, "epsilon": 1.0}),
        (["attenuation", "pairs", 0, "attributes"], ["b", "a"]),
        (["attenuation", "single"], {"b": 0.5, "a": 0.5, "c": 1.0}),
        (["expected_error", 0, "standard_error"], 1e-5),
        (["guarantee", "instead"], [{"columns": ["a"], "if_frequencies_known": None}]),
        (["comparison"], {"saving": {"marginals": 40.0, "pairs": 40.0}}),
        (["mechanism"], None),
        (["format_version"], 9),
        (["sentence"], "Nothing can be learned."),
        (["attenuation", "double"], {"a": 0.5}),
    ],
)
def test_no_altered_statement_verifies(where, value, tmp_path):
    folder = released(tmp_path, ROWS)
    verify(folder)
    record = part = json.loads((folder / "record.json").read_text())
    for step in where[:-1]:
        part = part[step]
    assert part.get(where[-1]) != value
    part[where[-1]] = value
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"record\.json"):
        verify(folder)


@pytest.mark.parametrize("place", [["epsilon"], ["person", "epsilon"]])
def test_no_level_of_the_guarantee_is_understated_by_a_last_digit(place, tmp_path):
    # Failed before: 1e-9 less than the truth was taken for a rounding.
    folder = released(
        tmp_path, ROWS | {"who": ["p", "p", "q", "r"]}, person="who", person_epsilon=99.0
    )
    record = json.loads((folder / "record.json").read_text())
    part = record["guarantee"]
    for step in place[:-1]:
        part = part[step]
    true = part[place[-1]]
    for stated in (math.nextafter(true, 0.0), true * (1 - 1e-10)):
        part[place[-1]] = stated
        (folder / "record.json").write_text(json.dumps(record))
        with pytest.raises(InputError, match="the guarantee states ε"):
            verify(folder)
    part[place[-1]] = true
    (folder / "record.json").write_text(json.dumps(record))
    verify(folder)


def test_a_number_of_rows_that_is_false_throughout_does_not_verify(tmp_path):
    """The record alone cannot tell: its expected errors follow from the number it states."""
    folder = released(tmp_path, ROWS)
    record = json.loads((folder / "record.json").read_text())
    record["release"]["rows"] = 40_000
    record["expected_error"] = expected_errors(Strata.one(DESIGN.mechanism), {"": 40_000})
    record["readable"] = expected_accuracy(DESIGN.account).to_plain(40_000)
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="number of rows"):
        verify(folder)


def test_what_only_the_maker_knows_is_said_and_more_where_the_rows_are_missing(tmp_path):
    folder = released(tmp_path, ROWS)
    alone = verify(folder)
    own = {"software", "mechanism.method", "release.row_order", "release.randomness"}
    assert alone.keys() == own | {"guarantee.person", "title"}
    (folder / "data.parquet").unlink()
    unseen = {"release.rows", "release.columns", "release.sha256"}
    assert verify(folder).keys() == alone.keys() | unseen
    (tmp_path / "m.json").write_bytes(to_json(mechanism_to_plain(DESIGN)))
    assert verify(tmp_path / "m.json").keys() == {"software", "method", "schema"}


def test_most_rows_of_a_person_beyond_all_rows_are_refused(tmp_path):
    # Failed before: 10^30 rows took as much memory as there was.
    rows = ROWS | {"who": ["p", "p", "q", "r"]}
    folder = released(tmp_path, rows, person="who", person_epsilon=99.0)
    verify(folder)
    record = json.loads((folder / "record.json").read_text())
    assert record["guarantee"]["person"]["most_rows"] == 2
    for most in (5, 10**15, 10**30):
        record["guarantee"]["person"]["most_rows"] = most
        (folder / "record.json").write_text(json.dumps(record))
        with pytest.raises(InputError, match=r"more rows than the release|Expected `int`"):
            verify(folder)


def test_a_record_of_a_later_version_names_who_reads_it(tmp_path):
    folder = released(tmp_path, ROWS)
    record = json.loads((folder / "record.json").read_text())
    for software, reader in (("deniable 3.1", "deniable 3.1 or a later"), ("x\n", "with a later")):
        later = record | {"format_version": 7, "software": software}
        (folder / "record.json").write_text(json.dumps(later))
        with pytest.raises(InputError, match=rf"reads version 2; read it with {reader}|{reader}"):
            verify(folder)


def test_metadata_that_no_parquet_release_has_are_named(tmp_path):
    table = pa.table({"smokes": ["no", "yes"] * 50})
    pq.write_table(table, tmp_path / "t.parquet")
    schema = Schema((Attribute("smokes", ("no", "yes")),))
    folder = tmp_path / "release"
    share(tmp_path / "t.parquet", design(schema, epsilon=2), folder)
    sound = verify(folder)
    assert not any("metadata" in words for words in sound.values())
    data = folder / "data.parquet"
    rows = pq.read_table(data)
    pq.write_table(rows.replace_schema_metadata({"note": "Ada smokes"}), data)
    record = json.loads((folder / "record.json").read_text())
    record["release"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    (folder / "record.json").write_bytes(to_json(record))
    found = verify(folder)
    assert found.keys() - sound.keys() == {"files/data.parquet", "files/report.html"}  # its digest
    assert found["files/data.parquet"] == "the metadata in data.parquet"
