"""What a question can be asked of, and what is refused before a row is read."""

import hashlib
import json
from pathlib import Path

import pytest

from deniable.design.design import design
from deniable.errors import InputError, Notice
from deniable.estimate.source import Release, open_release, released_files
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, to_json
from unit.estimate.releases import by_town, mechanism, table

DESIGN = design(Schema((Attribute("a", ("x", "y")),)), epsilon=1.0)
ROWS = b"a\nx\ny\nx\n"


def folder(path: Path) -> Path:
    path.mkdir()
    (path / "data.csv").write_bytes(ROWS)
    record = {
        "format": "deniable release",
        "format_version": 1,
        "release": {
            "file": "data.csv",
            "sha256": hashlib.sha256(ROWS).hexdigest(),
            "columns": ["a"],
        },
        "guarantee": {"unprotected": []},
        "mechanism": mechanism_to_plain(DESIGN),
    }
    (path / "record.json").write_bytes(to_json(record))
    return path


def test_a_folder_says_what_randomized_its_rows(tmp_path: Path) -> None:
    release = open_release(folder(tmp_path / "release"))
    assert release.strata == Strata.one(DESIGN.mechanism)
    (counts,) = release.count(["a"])
    assert counts.parts[0][1].counts.tolist() == [2, 1]


def test_a_table_and_the_file_of_its_mechanism_are_a_release(tmp_path: Path) -> None:
    (tmp_path / "mechanism.json").write_bytes(to_json(mechanism_to_plain(DESIGN)))
    (tmp_path / "rows.csv").write_bytes(ROWS)
    release = open_release(tmp_path / "rows.csv", tmp_path / "mechanism.json")
    assert release.count(["a"])[0].n_records == 3


def test_rows_that_are_not_those_of_the_record_are_refused(tmp_path: Path) -> None:
    made = folder(tmp_path / "release")
    assert released_files(made, Strata.one(DESIGN.mechanism)) == [made / "data.csv"]
    (made / "data.csv").write_bytes(ROWS + b"x\n")
    with pytest.raises(InputError, match="SHA-256 differs"):
        open_release(made)
    (made / "data.csv").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        open_release(made)
    (made / "record.json").write_text(json.dumps({"mechanism": 1}))
    with pytest.raises(InputError, match="not the record of a release"):
        released_files(made, Strata.one(DESIGN.mechanism))


def test_what_is_missing_or_given_twice_is_named(tmp_path: Path) -> None:
    made, plan = folder(tmp_path / "release"), tmp_path / "mechanism.json"
    plan.write_bytes(to_json(mechanism_to_plain(DESIGN)))
    (tmp_path / "counts.csv").write_text("a,count\nx,2\n")
    with pytest.raises(InputError, match="no such file or folder"):
        open_release(tmp_path / "nowhere")
    with pytest.raises(InputError, match="table's mechanism with `plan`"):
        open_release(made / "data.csv")
    with pytest.raises(InputError, match="name the randomized table"):
        open_release(None, plan)
    with pytest.raises(InputError, match="either rows or counts"):
        open_release(made / "data.csv", plan, tmp_path / "counts.csv")


def test_counts_are_enough_where_nothing_has_to_be_known_of_single_rows(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("smokes,count\nyes,3\nno,4\n")
    release = Release(Strata.one(mechanism()), table(), path)
    (counts,) = release.count(["smokes"])
    assert counts.parts[0][1].counts.tolist() == [4, 3]
    with pytest.raises(InputError, match="there is no column 'town'"):
        Release(by_town(), None, path).count(["smokes"])


def test_counts_of_fewer_rows_than_were_released_are_warned_of(tmp_path: Path) -> None:
    record = folder(tmp_path / "release") / "record.json"
    plain = json.loads(record.read_bytes())
    record.write_bytes(to_json(plain | {"release": plain["release"] | {"rows": 3}}))
    path = tmp_path / "counts.csv"
    path.write_text("a,count\nx,1\n")
    for source, stated in ((None, record), (record.parent, None)):
        with pytest.warns(Notice, match="the table has 1 of the 3 rows that were released"):
            open_release(source, stated, path).count(["a"])
