"""The folder of copies: what is in it, what travels along, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import deniable
from deniable.errors import InputError
from deniable.estimate.source import open_release
from deniable.mechanism.strata import Strata
from deniable.randomness import SeededRandomness
from deniable.synthesis.folder import MARK, SynthesisRequest, claim_of, rendered, write_copies
from unit.models.cases import NAMES, laws, people, released
from unit.release import letters

LAWS = laws()


def made(folder: Path, law: str = "ramp", **how: object) -> dict[str, Any]:
    release = released(LAWS[law], people(800))
    request = SynthesisRequest(**({"copies": 5} | how))  # type: ignore[arg-type]
    return write_copies(release, request, folder, {"epsilon": 3.0}, SeededRandomness(1))


@pytest.mark.parametrize("tables", ["pairs", "tree"])
def test_synthetic_copies(tables: str, tmp_path: Path) -> None:
    about = made(tmp_path / "out", tables=tables)
    stored = json.loads((tmp_path / "out" / "about.json").read_text())
    assert stored["guarantee"] == {"epsilon": 3.0}
    assert stored["left_out"] == ["town", "hours", "weight"]
    assert len(stored["tables"]) == 6
    assert all(MARK in name for name in about["files"])
    table = pyarrow.csv.read_csv(tmp_path / "out" / about["files"][2])
    assert table.column_names == [MARK, *NAMES]
    assert set(table[MARK].to_pylist()) == {"synthetic copy 3"}
    assert table.num_rows == 800
    page = (tmp_path / "out" / "about.html").read_text()
    assert "No row is a person" in page
    assert "The model" in page


def test_kept_columns_travel_with_imputed_rows(tmp_path: Path) -> None:
    about = made(
        tmp_path / "out", "forms", rows="imputed", where={"town": "A"}, file_format="parquet"
    )
    table = pyarrow.parquet.read_table(tmp_path / "out" / about["files"][0])
    assert table.column_names == [MARK, *NAMES, "town", "hours", "weight"]
    whole = people(800).filter(pyarrow.compute.field("town") == "A")
    assert table["hours"].to_pylist() == whole["hours"].to_pylist()
    assert about["n_rows"] == whole.num_rows


def test_cells_that_disagree_are_shown() -> None:
    cell = {"categories": ["x"], "share": 0.5, "direct": 0.1, "low": 0.0, "high": 0.2}
    about = {
        "copies": 5, "rows": "synthetic", "n_rows": 9, "kept": [], "left_out": [],
        "combining": "", "guarantee": {}, "tables": [
            {"attributes": ["a"], "cells": [cell | {"disagrees": True}]},
            {"attributes": ["b"], "cells": [cell | {"direct": None, "disagrees": False}]},
        ],
        "model": {
            "kind": "tree", "attributes": ["a", "b"], "about": None, "pairs": [],
            "independent": [["a", "b"]],
        },
    }  # fmt: skip
    page = rendered(about)
    assert "Do not use the copies for them" in page
    assert "not told" in page


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="4 copies are too few"):
        SynthesisRequest(copies=4)
    for wrong in ({"tables": "pairs"}, {"rows": "imputed"}):
        with pytest.raises(InputError, match="rows of a tree"):
            SynthesisRequest(about="y", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'y' is not synthesized"):
        made(tmp_path / "out", of=("a", "b"), about="y")
    for of, said in (
        (("town", "y"), "imputed rows include it"),
        (("y",), "at least two"),
        (("y", "z"), "z"),
    ):
        with pytest.raises(InputError, match=said):
            made(tmp_path / "out", of=of)
    with pytest.raises(InputError, match="no row"):
        made(tmp_path / "out", where={"town": "nowhere"})
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        made(tmp_path / "mine")
    strata = Strata(dict.fromkeys("ABC", LAWS["ramp"]), "town")
    release = open_release(released(LAWS["ramp"], people(300)).rows, strata)
    request = SynthesisRequest(copies=5, tables="tree", rows="imputed")
    assert write_copies(release, request, tmp_path / "s", {}, SeededRandomness(1))["n_rows"] == 300


def test_the_claim_is_the_records(tmp_path: Path) -> None:
    release = released(LAWS["ramp"], people(50))
    folder = letters.released(tmp_path, letters.ROWS)
    record = json.loads((folder / "record.json").read_text())
    assert claim_of(folder, release) == record["guarantee"]
    record["guarantee"]["epsilon"] = 0.5  # failed before: it was passed on as it was
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="the guarantee states ε"):
        claim_of(folder, release)
    assert claim_of(None, release)["epsilon"] == pytest.approx(3, abs=1e-6)
    assert deniable.synthesize is not None
