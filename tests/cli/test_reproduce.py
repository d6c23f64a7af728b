"""deniable reproduce, as typed. The studies themselves are tried in studies/tests."""

import json

import pytest

from cli.test_bad_input import refused
from deniable_studies import catalogue
from deniable_studies.study import Judged, Study
from deniable_studies.text import ClaimText, Text


def made_up(name: str, needs_adult: bool) -> Study[int]:
    claim = ClaimText("sums", "1 + 1 = 3", "nobody", "if so", "It is 2.")
    text = Text(
        name, f"The {name} study", "nobody", "Is it?", 75, (), (), (claim,), {}, {}, needs_adult
    )
    return Study(text, lambda _: 2, {"sums": lambda n: Judged(str(n), n == 3)}, {}, {})


@pytest.fixture
def few(monkeypatch):
    """Two studies of no time, one of which needs data."""
    studies = (made_up("quickly", False), made_up("needy", True))
    monkeypatch.setattr(catalogue, "STUDIES", studies)


@pytest.mark.slow
def test_a_study_writes_its_page_figures_numbers_and_verdicts(deniable, tmp_path):
    done = deniable("reproduce", "lambda", "--quick", "--output", "out")
    assert done.status == 0, done.err
    assert "not reproduced" in done.out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"index.html", "verdicts.json", "strength.png", "strength.svg", "table-1.csv"} <= names
    assert (tmp_path / "out" / "strength.png").read_bytes().startswith(b"\x89PNG")


def test_json_prints_the_verdicts_that_stand_in_the_folder(deniable, tmp_path, few):
    done = deniable("reproduce", "quickly", "--quick", "--output", "out", "--json")
    assert done.json == json.loads((tmp_path / "out" / "verdicts.json").read_text())
    assert done.json["quick"] is True
    assert [claim["verdict"] for claim in done.json["claims"]] == ["not reproduced"]


def test_the_full_form_says_beforehand_how_long_it_takes(deniable, few):
    assert "takes about 75 s" in deniable("reproduce", "quickly", "--output", "full").err
    assert "takes about" not in deniable("reproduce", "quickly", "--quick", "--output", "q").err


def test_without_a_name_the_studies_are_listed(deniable):
    listed = deniable("reproduce", "--json").json
    assert [study["study"] for study in listed] == [s.name for s in catalogue.STUDIES]
    assert all(study["seconds"] > 0 for study in listed)
    assert {study["study"] for study in listed if study["needs_adult"]} == {
        "optrr-adult",
        "adult-release",
    }
    shown = deniable("reproduce")
    assert all(s.name in shown.out for s in catalogue.STUDIES)


def test_all_writes_a_folder_for_each_an_index_and_what_was_skipped(deniable, tmp_path, few):
    done = deniable("reproduce", "all", "--quick", "--output", "all")
    assert done.status == 0, done.err
    assert "Skipped needy: it needs the Adult data" in done.err
    folder = tmp_path / "all"
    assert sorted(p.name for p in folder.iterdir()) == ["index.html", "quickly", "verdicts.json"]
    assert "needy: it needs the Adult data" in (folder / "index.html").read_text(encoding="utf-8")
    plain = json.loads((folder / "verdicts.json").read_text())
    assert [run["study"] for run in plain["studies"]] == ["quickly"]
    assert plain["skipped"][0]["study"] == "needy"
    again = deniable("reproduce", "all", "--quick", "--output", "all", "--force", "--json")
    assert again.status == 0, again.err
    assert again.json == plain


def test_with_the_data_nothing_is_skipped(deniable, tmp_path, few):
    (tmp_path / "adult.data").write_text("")
    done = deniable("reproduce", "all", "--quick", "--adult", "adult.data", "--output", "all")
    assert done.status == 0, done.err
    assert (tmp_path / "all" / "needy" / "index.html").exists()
    assert "Skipped" not in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing", "--output", "o"], "there is no study 'nothing'"),
        (["quickly"], "give --output"),
        (["--output", "o"], "name a study"),
        (["quickly", "--seed", "-1", "--output", "o"], "--seed"),
        (["quickly", "--adult", "absent", "--output", "o"], "--adult"),
        (["quickly", "--output", "absent/o"], "its folder does not exist"),
        (["needy", "--output", "o"], "needs the Adult data"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(deniable, tmp_path, few, arguments, says):
    refused(deniable("reproduce", *arguments), says)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_never_replaced(deniable, tmp_path, few):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    for name in ("quickly", "all"):
        refused(deniable("reproduce", name, "--output", "mine"), "exists already")
        refused(deniable("reproduce", name, "--output", "mine", "--force"), "other files")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"


def test_without_the_studies_installed_one_sentence_says_how_to_get_them(deniable, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    for arguments in ([], ["all", "--quick", "--output", "o"]):
        refused(deniable("reproduce", *arguments), "the studies are not installed")
