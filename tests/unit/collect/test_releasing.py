"""From what browsers sent to a release that the rest of deniable reads."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deniable.collect import releasing
from deniable.collect.client import draw
from deniable.collect.collector import submission_of
from deniable.collect.counting import open_collected
from deniable.collect.releasing import add, export, remembered_study, unpacked
from deniable.collect.store import Store
from deniable.errors import InputError
from deniable.estimate.source import open_release
from deniable.ledger import Ledger, Population, stored_releases
from deniable.randomness import SeededRandomness, SystemRandomness
from deniable.release.record import in_ledger, verify
from unit.collect.studies import ANSWERS, TODAY, body_of, example_folder


@pytest.mark.slow
def test_a_release_of_what_was_collected_holds_together(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    store = folder.open_store()
    bodies = [draw(folder.study, ANSWERS, "", SeededRandomness(n)).body for n in range(120)]
    store.submit([submission_of(folder.study, body) for body in bodies], TODAY)
    records = (unpacked(folder.study, packed) for packed in store.records())
    batches = [np.array([*batch.values()]) for batch in records]
    codes = np.concatenate(batches, axis=1)
    store.dispose()
    sent = [folder.study.decode(json.loads(body)["record"]) for body in bodies]
    assert sorted(map(tuple, codes.T.tolist())) == sorted(map(tuple, sent))
    record = export(folder, tmp_path / "release", SeededRandomness(1), command="deniable x")
    assert record["release"]["rows"] == 120
    assert record["release"]["row_order"] == "shuffled"
    verify(tmp_path / "release")
    assert len(open_release(tmp_path / "release").count(["smokes"])) == 1
    rows = (tmp_path / "release" / "data.csv").read_text().splitlines()
    assert rows[0] == "smokes,alcohol,cannabis,sleep,lonely"
    labels = folder.study.design.mechanism.output_labels
    written = [",".join(t[c] for t, c in zip(labels, row, strict=True)) for row in sent]
    assert sorted(row.replace('"', "") for row in rows[1:]) == sorted(written)
    assert [row.replace('"', "") for row in rows[1:]] != written
    with pytest.raises(InputError, match="exists already"):
        export(folder, tmp_path / "release", SeededRandomness(1))


def test_a_study_counts_once_however_often_it_is_exported(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    population = Population(Ledger(tmp_path / "l"), "pupils")
    population.ledger.set_budget("pupils", 4.0)
    store = folder.open_store()
    submission = submission_of(folder.study, body_of(folder.study, seed=1))
    store.submit([submission], TODAY)
    store.dispose()
    for name in ("first", "second"):
        made = export(folder, tmp_path / name, SystemRandomness(), population=population)
        assert made["population"] == {"release": 1, "epsilon": folder.study.design.epsilon}
    (entered,) = stored_releases(population.ledger.events())
    assert entered.what == f"collect {folder.study.identity}"
    for name in ("first", "second"):
        assert in_ledger(tmp_path / name, [entered]) is entered
    with pytest.raises(InputError, match="under population 'pupils', not 'staff'"):
        remembered_study(folder.study, Population(population.ledger, "staff"))
    inside = Population(Ledger(tmp_path / "third"), "pupils")
    with pytest.raises(InputError, match="lies in the folder of a release"):
        export(folder, tmp_path / "third", SystemRandomness(), population=inside)


def test_wide_codes_come_back(tmp_path: Path) -> None:
    study = example_folder(tmp_path).study
    packed = np.array([[0x13, 0x20, 0x10], [0x00, 0x00, 0x20]], dtype=np.uint8)
    found = [column.tolist() for column in unpacked(study, packed).values()]
    assert found == [[1, 0], [3, 0], [2, 0], [0, 0], [1, 2]]


def test_an_altered_store_is_said(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    with folder.opened() as store:
        store.submit([submission_of(folder.study, body_of(folder.study))], TODAY)
    content = "CAST(substr(content, 1, 35) || x'ffffff' || substr(content, 39) AS BLOB)"
    for change, problem in (
        (f"UPDATE bucket SET content = {content}", "a record does not fit the study"),
        ("UPDATE bucket SET content = x'ffff'", "a record does not fit the study"),
        ("DROP TABLE bucket", "cannot be used: no such table"),
    ):
        with closing(sqlite3.connect(folder.path / "store.sqlite")) as raw, raw:
            raw.execute(change)
        with pytest.raises(InputError, match=problem):
            export(folder, tmp_path / "release", SeededRandomness(1))
        with pytest.raises(InputError, match=problem):
            open_collected(folder.path).count(["smokes"])


def test_records_from_files_are_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = example_folder(tmp_path)
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_bytes(body_of(folder.study, seed=1))
    many = [json.loads(body_of(folder.study, seed=n)) for n in (1, 2, 3)]
    two.write_text(json.dumps(many))
    assert add(folder, [one], TODAY) == {"stored": 1}
    assert add(folder, [one, two], TODAY) == {"stored": 2, "stored before": 2}
    two.write_text(json.dumps([json.loads(body_of(folder.study, seed=n)) for n in range(4, 9)]))
    monkeypatch.setattr(releasing, "GROUP", 2)
    groups, plain = [], Store.submit
    monkeypatch.setattr(
        Store, "submit", lambda self, group, day: groups.append(group) or plain(self, group, day)
    )
    assert add(folder, [two], TODAY) == {"stored": 5}
    assert [len(group) for group in groups] == [2, 2, 1]
    two.write_text(json.dumps([*many, {"study": "x"}]))
    with pytest.raises(InputError, match=r"two.json, record 4: the body is not a submission"):
        add(folder, [two], TODAY)
    two.write_text("{")
    with pytest.raises(InputError, match="not a record that the page saved"):
        add(folder, [two], TODAY)
    with pytest.raises(InputError, match="cannot be read"):
        add(folder, [tmp_path / "none.json"], TODAY)
