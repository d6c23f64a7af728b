"""Survey files as people have them: draft from labels, share, estimate, and the same back."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
import xlsxwriter

N = 1500
LABELS = {
    "sex": {1: "Männlich", 2: "Weiblich", 3: "divers"},
    "happy": {1: "not", 2: "little", 3: "very", -9: "refused", -8: "do not know"},
}


@pytest.fixture(autouse=True)
def _no_probe(monkeypatch):
    """Files that the tests write are sound; a process for each would take half a second."""
    monkeypatch.setattr("deniable.tables.survey_source.tried", lambda *_: "")


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            "sex": rng.integers(1, 3, N).astype(float),
            "happy": rng.choice([1.0, 2, 3, -9, -8], N),
            "income": np.where(rng.random(N) < 0.1, np.nan, np.round(rng.lognormal(7, 1, N))),
        }
    )
    path = tmp_path / "study.sav"
    pyreadstat.write_sav(
        data,
        path,
        column_labels={"happy": "How happy are you?"},
        variable_value_labels=LABELS,
        missing_ranges={"happy": [{"lo": -9, "hi": -8}]},
        variable_measure={"happy": "ordinal"},
    )
    return data


def test_a_file_of_spss_from_draft_to_estimates(deniable, study):
    drafted = deniable("schema", "init", "study.sav", "--output", "s.toml")
    assert drafted.status == 0
    assert "WARNING" in drafted.err  # of the incomes
    text = Path("s.toml").read_text()
    assert text.count("\ndrafted = true") == 1
    assert 'question = "How happy are you?"' in text
    words = ("study.sav", "--schema", "s.toml", "--epsilon", 6, "--output", "release")
    kinds = ("--as", "sav", "--as", "dta", "--as", "parquet", "--as", "csv")
    shared = deniable("share", *words, *kinds, "--accept-drafted")
    assert shared.status == 0, shared.err
    assert "People are numbered" not in shared.out
    files = {path.name for path in Path("release").iterdir()}
    assert files >= {"data.csv", "data.sav", "data.dta", "data.parquet", "record.json"}
    record = json.loads(Path("release/record.json").read_text())
    assert record["release"]["file"] == "data.csv"
    assert set(record["release"]["beside"]) == {"data.sav", "data.dta", "data.parquet"}
    assert "Verified" in deniable("inspect", "release").out
    of = ("--of", "happy", "--of", "sex,income", "--json")
    expected = deniable("estimate", "release", *of).json
    for kind in ("csv", "sav", "dta", "parquet"):
        rows = (f"release/data.{kind}", "--mechanism", "release")
        assert deniable("estimate", *rows, *of).json == expected
    again = deniable("share", *words, "--accept-drafted", "--force")
    assert again.status == 0, again.err
    assert not Path("release/data.sav").exists()


def test_an_altered_copy_is_refused(deniable, study):
    deniable("schema", "init", "study.sav", "--output", "s.toml")
    words = ("study.sav", "--schema", "s.toml", "--epsilon", 6, "--output", "release")
    assert deniable("share", *words, "--accept-drafted", "--as", "sav").status == 0
    with Path("release/data.sav").open("ab") as file:
        file.write(b"x")
    refused = deniable("estimate", "release", "--of", "sex")
    assert refused.status == 2
    assert "data.sav is not the file" in refused.err


@pytest.mark.slow
def test_estimates_from_a_survey_file_equal_those_from_csv(deniable, study):
    """The same draws from the same rows, whatever file they stand in."""
    deniable("schema", "init", "study.sav", "--output", "s.toml")
    text = study.copy()
    text["happy"] = text["happy"].astype(int)
    text["sex"] = text["sex"].astype(int)
    text.to_csv("study.csv", index=False)
    pyreadstat.write_dta(study.astype({"sex": int, "happy": int}), "study.dta")
    estimates = []
    for kind in ("sav", "csv", "dta"):
        words = (f"study.{kind}", "--schema", "s.toml", "--epsilon", 6, "--output", kind)
        shared = deniable("share", *words, "--accept-drafted", "--insecure-seed", 1)
        assert shared.status == 0, shared.err
        estimates.append(deniable("estimate", kind, "--of", "happy,income", "--json").json)
    assert estimates[0] == estimates[1] == estimates[2]


def test_a_codebook_kept_apart_declares_and_contradicts(deniable, study, tmp_path):
    study["happy"].astype(int).to_csv("t.csv", index=False)
    rows = ["name,value,label,missing", "happy,1,not,", "happy,2,little,", "happy,3,very,"]
    Path("short.csv").write_text("\n".join(rows))
    refused = deniable("schema", "init", "t.csv", "--codebook", "short.csv", "--output", "s.toml")
    assert refused.status == 2
    assert "2 values that the codebook does not name" in refused.err
    assert "--show-values shows the values" in refused.err
    assert not Path("s.toml").exists()
    shown = deniable("schema", "init", "t.csv", "--codebook", "short.csv", "--show-values")
    assert "'-9'" in shown.err
    rows += ["happy,-9,refused,yes", "happy,-8,do not know,yes"]
    Path("whole.csv").write_text("\n".join(rows))
    made = deniable("schema", "init", "t.csv", "--codebook", "whole.csv", "--output", "s.toml")
    assert (made.status, made.err) == (0, "")
    assert "drafted" not in Path("s.toml").read_text()
    shared = deniable("share", "t.csv", "--schema", "s.toml", "--epsilon", 2, "--output", "r")
    assert shared.status == 0, shared.err


@pytest.mark.slow
def test_a_workbook_is_drafted_shared_randomized_and_traced(deniable, study):
    with xlsxwriter.Workbook("study.xlsx") as book:
        book.add_worksheet("Notes").write(0, 0, "made in 2025")
        sheet = book.add_worksheet("People")
        sheet.merge_range(0, 0, 0, 1, "Survey of 2025")
        sheet.write_row(1, 0, ["sex", "happy"])
        for place, row in enumerate(study[["sex", "happy"]].to_numpy().tolist(), start=2):
            sheet.write_row(place, 0, row)
    refused = deniable("schema", "init", "study.xlsx")
    assert refused.status == 2
    assert "set --sheet to that of the table" in refused.err
    drafted = deniable("schema", "init", "study.xlsx", "--sheet", "People", "--output", "s.toml")
    assert drafted.status == 0, drafted.err
    assert "row 2 is taken as the header" in drafted.err
    assert 'sheet = "People"' in Path("s.toml").read_text()
    words = ("study.xlsx", "--schema", "s.toml", "--epsilon", 4, "--accept-drafted")
    assert deniable("share", *words, "--sheet", "People", "--output", "r").status == 0
    assert Path("r/data.csv").read_text().startswith("sex,happy\n")
    known = ("study.xlsx", "--mechanism", "r", "--sheet", "People", "--accept-drafted")
    assert deniable("randomize", *known, "--output", "o.csv").status == 0
    assert len(Path("o.csv").read_text().splitlines()) == N + 1
    whole = (
        *words[:3],
        "--attenuation",
        0.6,
        "--accept-drafted",
        "--sheet",
        "People",
        "--output",
        "p",
    )
    assert deniable("pram", *whole, "--as", "sav").status == 0
    assert Path("p/data.sav").exists()
    column = ("--column", "study.xlsx:sex", "--sheet", "People", "--privacy", 0.3)
    assert deniable("frontier", *column, "--methods", "bound", "--output", "f").status == 0


def test_a_release_in_parts_is_written_in_one_kind(deniable, study):
    text = study[["sex"]].astype(int)
    for name in ("a.csv", "b.csv"):
        text.to_csv(name, index=False)
    Path("s.toml").write_text('[[attribute]]\nname = "sex"\ncategories = ["1", "2"]\n')
    words = ("a.csv", "b.csv", "--schema", "s.toml", "--epsilon", 2, "--output", "r")
    refused = deniable("share", *words, "--as", "sav")
    assert refused.status == 2
    assert "--as needs a release of one table" in refused.err
    assert not Path("r").exists()


def test_a_name_that_no_file_can_have_is_refused_before_anything_is_drawn(deniable, study):
    Path("t.csv").write_text("a b\n1\n2\n")
    Path("s.toml").write_text('[[attribute]]\nname = "a b"\ncategories = ["1", "2"]\n')
    words = ("t.csv", "--schema", "s.toml", "--epsilon", 2, "--output", "r")
    refused = deniable("share", *words, "--as", "dta")
    assert refused.status == 2
    assert "leave out --as dta" in refused.err
    assert not Path("r").exists()


def test_kept_values_are_looked_at_before_anything_is_drawn(deniable, tmp_path):
    rows = pa.table({"sex": ["1", "2"], "town": ["a", "b" * 40_000]})
    pq.write_table(rows, "t.parquet")
    text = 'keep = ["town"]\n[[attribute]]\nname = "sex"\ncategories = ["1", "2"]\n'
    Path("s.toml").write_text(text)
    words = ("t.parquet", "--schema", "s.toml", "--epsilon", 2, "--output", "r")
    counted = ("--ledger", "l.sqlite", "--population", "p")
    refused = deniable("share", *words, "--as", "sav", *counted)
    assert refused.status == 2
    assert "data row 2, column 'town': a text of more than 32,767 bytes" in refused.err
    assert not Path("r").exists()
    assert not Path("l.sqlite").exists()
