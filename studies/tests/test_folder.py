"""Folders and pages of studies: whole or not at all, equal for equal seeds, with every verdict."""

import json
from pathlib import Path

import pytest

from deniable.errors import InputError
from deniable_studies import folder
from deniable_studies.page import cell_text, index_page, study_page
from deniable_studies.study import Findings, Judged, Setting, Study, Verdict
from deniable_studies.text import ClaimText, FigureText, TableText, Text

CLAIMS = tuple(ClaimText(str(v), "x < y", "a paper", "always", "because") for v in Verdict)
TEXT = Text(
    "made-up",
    "A study",
    "nobody",
    "Why?",
    1.0,
    choices=("A choice.",),
    remarks=("A remark.",),
    claim=CLAIMS,
    figure={"dot": FigureText("A dot.", (2.0, 2.0))},
    table={"numbers": TableText("One number.", ("name", "value"))},
)
STUDY = Study(
    TEXT,
    lambda setting: float(setting.generator(1).random()),
    judges={
        str(v): lambda _, v=v: Judged(
            "1 & 2",
            v is Verdict.REPRODUCED,
            v is Verdict.PARTLY,
            tested=v is not Verdict.UNTESTED,
            decided=v is not Verdict.UNDECIDED,
        )
        for v in Verdict
    },
    figures={"dot": lambda canvas, value: canvas.subplots().plot([value], [value], "o")},
    tables={"numbers": lambda value: [["a<b", value], ["none", None]]},
)


def found(setting: Setting) -> Findings:
    return STUDY.run(setting)


PICTURES = {"dot": b"a picture"}


def write(path: Path, seed: int = 0, *, overwrite: bool = False) -> None:
    setting = Setting(seed=seed)
    folder.write_study(path, STUDY, found(setting), setting, overwrite=overwrite)


@pytest.mark.slow
def test_the_same_seed_writes_the_same_numbers_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write(tmp_path / name, seed)
    texts = {name: (tmp_path / name / "numbers.csv").read_text() for name in "abc"}
    assert texts["a"] == texts["b"] != texts["c"]


def test_a_page_states_every_claim_with_its_verdict_and_escapes_it(tmp_path: Path) -> None:
    write(tmp_path / "s")
    page = (tmp_path / "s" / "index.html").read_text(encoding="utf-8")
    assert "x &lt; y" in page
    assert "1 &amp; 2" in page
    assert "a&lt;b" in page
    for verdict in Verdict:
        assert f"{verdict.capitalize()}." in page
    plain = json.loads((tmp_path / "s" / "verdicts.json").read_text())
    assert [c["verdict"] for c in plain["claims"]] == [str(v) for v in Verdict]


def test_a_quick_run_is_called_one_and_a_full_one_is_not() -> None:
    findings = found(Setting())
    assert "A quick run." in study_page(STUDY, findings, PICTURES, quick=True, seed=0)
    assert "A quick run." not in study_page(STUDY, findings, PICTURES, quick=False, seed=0)


def test_the_index_counts_verdicts_and_says_what_was_skipped_and_why() -> None:
    verdicts = [str(Verdict.REPRODUCED), str(Verdict.REPRODUCED), str(Verdict.NOT)]
    page = index_page([(STUDY, verdicts)], [(STUDY, "no data")], quick=False)
    assert "<b>2</b>reproduced" in page
    assert "<b>0</b>partly reproduced" in page
    assert "<b>1</b>not reproduced" in page
    assert "made-up: no data" in page
    assert 'href="made-up/index.html"' in page


def test_only_an_older_study_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "s"
    write(target)
    with pytest.raises(InputError, match="exists already"):
        write(target)
    write(target, overwrite=True)
    other = tmp_path / "precious"
    other.mkdir()
    (other / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match="holds other files"):
        write(other, overwrite=True)
    assert (other / "thesis.txt").read_text() == "all of it"


def test_numbers_have_four_digits_on_pages() -> None:
    shown = [cell_text(cell) for cell in (1 / 3, None, 12345, 1.5e-7, 0.0, 23456.7, "x")]
    assert shown == ["0.3333", "", "12,345", "1.500e-07", "0", "23,457", "x"]
