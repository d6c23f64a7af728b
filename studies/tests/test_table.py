"""The verdicts in the documentation: every claim of every study, written by the command."""

import csv
import json
from pathlib import Path

import pytest
from msgspec.structs import replace as with_text

from deniable_studies import table
from deniable_studies.catalogue import STUDIES
from deniable_studies.study import Verdict
from deniable_studies.text import ClaimText, Text

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
CLAIM = ClaimText("a", "|x| is 1", "nobody", "always", "It is 2.")
TEXT = Text("made-up", "A study", "nobody", "Is it?", 1.0, (), (), (CLAIM,), {}, {})


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def run(verdict: str = "not reproduced", **more: object) -> dict[str, object]:
    claims = [{"statement": "|x| is 1", "verdict": verdict}]
    return {"study": "made-up", "quick": False, "seed": 3, "claims": claims} | more


def listed() -> list[dict[str, str]]:
    with PAGE.with_name(table.FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_file_lists_every_claim_of_every_study_with_a_verdict() -> None:
    expected = [
        (study.name, claim.statement, claim.source)
        for study in STUDIES
        for claim in study.text.claim
    ]
    assert [(row["study"], row["claim"], row["source"]) for row in listed()] == expected
    assert {row["verdict"] for row in listed()} <= {*Verdict, "in full only"}


def test_the_page_counts_the_verdicts() -> None:
    page = PAGE.read_text(encoding="utf-8")
    part = page.split(table.BEGIN)[1].split(table.END)[0]
    counted = {row[0].strip("`"): [int(cell) for cell in row[2:]] for row in rows(part)}
    assert list(counted) == [study.name for study in STUDIES]
    for name, counts in counted.items():
        verdicts = [row["verdict"] for row in listed() if row["study"] == name]
        assert counts == [verdicts.count(verdict) for verdict in Verdict]


def test_a_table_counts_verdicts_and_says_which_runs_were_quick() -> None:
    text = table.table_text([TEXT], {"made-up": run()})
    assert text.startswith("Full runs, seed 3.")
    assert rows(text) == [["`made-up`", "A study", "0", "0", "1", "0", "0"]]
    quick = table.table_text([TEXT], {"made-up": run(quick=True)})
    assert quick.startswith("Runs, seed 3. Quick ones")


def test_a_run_of_other_claims_or_none_at_all_is_refused() -> None:
    other = with_text(TEXT, claim=(with_text(CLAIM, statement="x is 2"),))
    with pytest.raises(ValueError, match="the run of made-up is of other claims"):
        table.csv_text([other], {"made-up": run()})
    with pytest.raises(ValueError, match="no run of made-up"):
        table.csv_text([TEXT], {})


def test_a_claim_that_quick_runs_leave_out_is_listed_all_the_same() -> None:
    later = with_text(CLAIM, id="b", statement="later", full_only=True)
    verdicts = table.verdicts_of(with_text(TEXT, claim=(CLAIM, later)), run(quick=True))
    assert verdicts == {"|x| is 1": "not reproduced", "later": "in full only"}


def test_only_what_is_between_the_markers_is_replaced() -> None:
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
    new = table.replaced(page, "new")
    assert new == f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter\n"
    assert table.replaced(new, "new") == new
    with pytest.raises(ValueError, match="markers"):
        table.replaced("no marker", "new")


def test_a_study_that_was_not_run_keeps_its_verdicts(tmp_path: Path) -> None:
    texts = [study.text for study in STUDIES]
    path = PAGE.with_name(table.FILE)
    known = table.runs_in(path)
    assert table.csv_text(texts, known) == path.read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    assert table.replaced(page, table.table_text(texts, known)) == page
    assert table.runs_in(tmp_path / "none.csv") == {}
    (tmp_path / "one.csv").write_text(table.csv_text([TEXT], {"made-up": run(quick=True)}))
    kept = table.runs_in(tmp_path / "one.csv")
    assert kept["made-up"] | {"study": "made-up"} == run(quick=True)


def test_folders_of_one_study_and_of_all_are_read_and_the_later_run_counts(tmp_path: Path) -> None:
    for name, plain in (("all", {"studies": [run("reproduced")]}), ("one", run())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "verdicts.json").write_text(json.dumps(plain))
    both = table.read_runs([tmp_path / "all", tmp_path / "one"])
    assert both["made-up"]["claims"][0]["verdict"] == "not reproduced"
    assert table.read_runs([tmp_path / "all"])["made-up"]["claims"][0]["verdict"] == "reproduced"


def test_the_command_says_what_is_wrong_and_leaves_the_page_alone(tmp_path, capsys) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marker")
    with pytest.raises(SystemExit) as stopped:
        table.main([str(tmp_path), str(page)])
    assert stopped.value.code == 2
    assert "verdicts.json" in capsys.readouterr().err
    assert page.read_text() == "no marker"
