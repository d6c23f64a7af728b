"""Folders and pages of studies: whole or not at all, equal for equal seeds, with every verdict."""

import json
from pathlib import Path

import pytest

from deniable.errors import InputError
from deniable_studies import folder
from deniable_studies.page import index_page, study_page
from deniable_studies.study import Claim, Findings, Setting, Study, Table, Verdict, judge
from deniable_studies.values import cell_text, csv_text


def claim(verdict: Verdict, why: str = "because") -> Claim:
    return Claim("x < y", "a paper", "always", "1 & 2", verdict, why)


def found(setting: Setting) -> Findings:
    value = float(setting.generator(1).random())
    table = Table("numbers", "One number.", ["name", "value"], [["a<b", value], ["none", None]])
    return Findings([claim(v) for v in Verdict], [], [table], ["A choice."], ["A remark."])


STUDY = Study("made-up", "A study", "nobody", "Why?", 1.0, found)


def write(path: Path, seed: int = 0, *, overwrite: bool = False) -> None:
    setting = Setting(seed=seed)
    folder.write_study(path, STUDY, found(setting), setting, overwrite=overwrite)


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
    assert "A quick run." in study_page(STUDY, findings, {}, quick=True, seed=0)
    assert "A quick run." not in study_page(STUDY, findings, {}, quick=False, seed=0)


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


def test_a_claim_that_fails_must_say_why() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        claim(Verdict.PARTLY, why="")
    assert claim(Verdict.REPRODUCED, why="").why == ""


def test_a_verdict_is_the_strongest_that_holds() -> None:
    assert judge(True) is Verdict.REPRODUCED
    assert judge(False, partly=True) is Verdict.PARTLY
    assert judge(False) is Verdict.NOT


def test_numbers_have_ten_digits_in_files_and_four_on_pages() -> None:
    table = Table("t", "", ["a"], [[1 / 3], [None], [float("nan")], [7], ["x"]])
    assert csv_text(table) == 'a\n0.3333333333\n""\n""\n7\nx\n'
    assert [cell_text(c) for c in (1 / 3, None, 12345, 1.5e-7, 0.0)] == [
        "0.3333", "", "12,345", "1.500e-07", "0",
    ]  # fmt: skip


def test_progress_of_a_part_lies_within_it() -> None:
    seen: list[float | None] = []
    setting = Setting(advance=seen.append)
    part = setting.part(0.5, 1.0)
    for i in range(2):
        with part.step(i, 2):
            pass
    assert seen == [0.75, 1.0]


def test_streams_of_a_seed_differ() -> None:
    setting = Setting(seed=3)
    assert setting.release_seed(1) != setting.release_seed(2)
    assert setting.generator(1).random() != setting.generator(2).random()
    assert setting.generator(1).random() == Setting(seed=3).generator(1).random()
