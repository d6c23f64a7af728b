"""The ledger, from the first release to the one that is refused."""

import csv
import io
import json
import os
import signal

import pyarrow
import pytest

import deniable as library
from deniable.errors import Notice
from deniable.ledger import Ledger, balances, stored_releases
from deniable.release import release
from deniable.schema import Schema
from killing import forked

LEVELS = ["--attribute-epsilon", "1,2,1.5", "--method", "kronecker"]
SHARE = ["share", "people.csv", "--schema", "people.toml", *LEVELS, "--ledger", "l"]


def test_releases_add_up_and_the_first_page_says_to_what(deniable, people):
    first = deniable(*SHARE, "--output", "r1")
    assert first.status == 0, first.err
    assert "Release 1 of population 'everybody', 4.5000 nats in all." in first.out
    second = deniable(*SHARE, "--output", "r2", "--json").json
    assert second["population"] == {"release": 2, "epsilon": 9.0}
    assert second["command"].endswith("--method kronecker --output r2 --json")
    page = (people / "r2" / "report.html").read_text()
    assert "Release 2 of this population, an ε of 9 in all." in page
    assert page.index("Release 2 of") < page.index("Guarantee")
    assert deniable("inspect", "r2").status == 0
    shown = deniable("ledger", "show", "l", "--json").json["populations"]
    (population,) = shown
    assert (population["releases"], population["epsilon"]) == (2, 9.0)
    assert [a["epsilon"] for a in population["attributes"]] == [2.0, 4.0, 3.0]
    assert "sex" in deniable("ledger", "show", "l").out


def test_a_release_beyond_the_budget_is_refused_before_a_row_is_read(deniable, people):
    said = deniable("ledger", "budget", "l", "--epsilon", "5")
    assert said.out == "Of 5 nats 5 are left for population 'everybody'\n"
    assert "l is a new ledger" in said.err
    assert deniable(*SHARE, "--output", "r1").status == 0
    (people / "people.csv").unlink()
    (people / "people.csv").write_text("no,such,table\n")
    refused = deniable(*SHARE, "--output", "r2")
    assert refused.status == 2
    assert "of 5 nats 0.5 are left after 1 release (l)" in refused.err
    assert not (people / "r2").exists()


def test_the_budget_comes_before_the_rows_in_pram_and_in_python(deniable, people):
    deniable("ledger", "budget", "l", "--epsilon", "1")
    schema = Schema.from_toml("people.toml")
    plan = library.design(schema, attribute_epsilon=[1, 1, 1], method="kronecker")
    request = library.StrengthRequest(attenuation=0.5)
    (people / "people.csv").write_text("no,such,table\n")
    words = ["pram", "people.csv", "--schema", "people.toml", "--ledger", "l", "--output", "r"]
    refused = deniable(*words, "--attenuation", "0.5")
    assert (refused.status, "does not allow this release" in refused.err) == (2, True)
    for attempt in (
        lambda: library.share("people.csv", plan, "r", library.Publication(ledger="l")),
        lambda: library.pram(
            "people.csv", schema, "r", library.Publication(ledger="l"), request=request
        ),
        lambda: library.randomize(
            pyarrow.table({"no": ["1"]}), plan, library.Publication(ledger="l")
        ),
    ):
        with pytest.raises(library.InputError, match="does not allow this release"):
            attempt()
    assert stored_releases(Ledger("l").events()) == []


def test_rows_of_one_person_count_each(deniable, people):
    (people / "people.csv").write_text("sex,age,blood,who\nf,25,A,x\nm,61,0,y\nf,30,,x\n")
    done = deniable(
        *SHARE,
        "--person",
        "who",
        "--person-epsilon",
        "9",
        "--population",
        "clinic",
        "--output",
        "r",
    )
    assert done.status == 0, done.err
    (entered,) = stored_releases(Ledger("l").events())
    assert (entered.rows_of_person, entered.of_person.epsilon) == (2, 9.0)
    assert "clinic" not in (people / "r" / "record.json").read_text()
    again = deniable(
        *SHARE, "--person", "who", "--person-epsilon", "9", "--population", "ward", "--output", "r2"
    )
    assert "population 'clinic' has exactly the same people" in again.err
    assert "exactly the same people" in deniable("ledger", "check", "l").out


def test_a_mistyped_population_is_asked_about_where_there_are_budgets(deniable, people):
    # Failed before: a release of 'clinik' was made, beside the budget of 'clinic'.
    deniable("ledger", "budget", "l", "--epsilon", "9", "--population", "Clinic")
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    randomize = ["randomize", "people.csv", "--mechanism", "m.json", "--ledger", "l"]
    pram = [
        "pram",
        "people.csv",
        "--schema",
        "people.toml",
        "--attenuation",
        "0.5",
        "--ledger",
        "l",
    ]
    budget = ["ledger", "budget", "l", "--epsilon", "5"]
    for words in ([*SHARE, "--output", "r"], [*pram, "--output", "p"], randomize, budget):
        for named in (["--population", "clinik"], []):
            refused = deniable(*words, *named)
            assert refused.status == 2
            assert "is not in this ledger, which has budgets (l); set --pop" in refused.err
            assert "of 'Clinic', or set --new-population" in refused.err
    assert sorted(path.name for path in people.iterdir()) == [
        *("l", "m.json", "people.csv", "people.toml"),
    ]
    assert deniable(*SHARE, "--population", " clinic", "--output", "r").status == 0
    for number, words in enumerate(([*SHARE, "--output", "s"], [*pram, "--output", "p"],
                                    randomize, budget)):  # fmt: skip
        done = deniable(*words, "--population", f"other {number}", "--new-population")
        assert done.status == 0, done.err
    shown = deniable("ledger", "show", "l", "--json").json["populations"]
    assert sorted(one["population"] for one in shown) == [
        "Clinic",
        *(f"other {n}" for n in range(4)),
    ]
    record = json.loads((people / "s" / "record.json").read_text())
    assert "population" not in record["command"]


def test_check_finds_a_release_and_misses_one(deniable, people):
    with (people / "people.csv").open("a") as file:  # two draws of five rows can be the same
        file.write("f,25,A\n" * 200)
    deniable(*SHARE, "--output", "r1")
    deniable(*SHARE[:-2], "--output", "r2")
    assert deniable("ledger", "check", "l", "--release", "r1").status == 0
    missed = deniable("ledger", "check", "l", "--release", "r1", "--release", "r2")
    assert (missed.status, "r2: the ledger does not contain this release" in missed.err) == (
        2,
        True,
    )
    plain = deniable("ledger", "check", "l", "--json").json
    assert (plain["events"], plain["remarks"]) == (4, [])
    assert plain["digest"] == Ledger("l").events()[-1].digest


def test_export_writes_a_line_per_release(deniable, people):
    deniable(*SHARE, "--output", "r1")
    (row,) = csv.DictReader(io.StringIO(deniable("ledger", "export", "l").out))
    assert (row["command"], row["epsilon"], row["counted"]) == ("share", "4.5", "True")
    assert row["attributes"] == "sex=1.0 age=2.0 blood=1.5"
    deniable("ledger", "export", "l", "--json", "--output", "all.json")
    (plain,) = json.loads((people / "all.json").read_text())["releases"]
    assert (
        plain["published"]
        == json.loads((people / "r1/record.json").read_text())["release"]["sha256"]
    )
    refused = deniable("ledger", "export", "l", "--output", "all.json")
    assert "exists already" in refused.err
    assert deniable("ledger", "export", "l", "--output", "all.json", "--force").status == 0


def test_what_fails_is_withdrawn_and_a_table_on_standard_output_counts(deniable, people):
    (people / "people.csv").write_text("sex,age,blood\nf,25,A\nm,61,Z\n")
    assert deniable(*SHARE, "--output", "r").status == 2
    assert not Ledger("l").exists  # all rows are looked at before anything is entered
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    row = "sex,age,blood\nf,25,A\n"
    done = deniable("randomize", "-", "--mechanism", "m.json", "--ledger", "l", stdin=row)
    assert done.status == 0, done.err
    assert balances(Ledger("l").events())["everybody"].epsilon == 4.5
    assert deniable("ledger", "check", "l", "--json").json["remarks"] == []
    bad = deniable(
        "randomize", "-", "--mechanism", "m.json", "--ledger", "l", stdin=row + "f,1,Z\n"
    )
    assert bad.status == 2


@pytest.mark.slow
def test_the_variable_names_the_ledger_for_commands_and_in_python(
    deniable, people, monkeypatch, tmp_path
):
    import pandas

    monkeypatch.setenv("DENIABLE_LEDGER", "l")
    lost = deniable(*SHARE[:-2], "--output", "r1")  # failed before: a new one, without a word
    assert (lost.status, "DENIABLE_LEDGER names it; restore it" in lost.err) == (2, True)
    begun = deniable(*SHARE, "--output", "r1")
    assert (begun.status, "l is a new ledger without a budget" in begun.err) == (0, True)
    plan = library.design(Schema.from_toml("people.toml"), attribute_epsilon=[1, 1, 1])
    frame = pandas.DataFrame({"sex": ["f", "m"], "age": [25, 61], "blood": ["A", "0"]})
    library.randomize(frame, plan, library.Publication(population="others"))
    library.share(frame, plan, "r2")
    request = library.StrengthRequest(attenuation=0.5)
    with pytest.warns(Notice, match="new ledger"):
        library.pram(
            frame,
            plan.mechanism.schema,
            "r3",
            library.Publication(ledger=tmp_path / "l2"),
            request=request,
        )
    found = balances(Ledger("l").events())
    assert [(b.population, len(b.releases)) for b in found.values()] == [
        ("everybody", 2),
        ("others", 1),
    ]
    assert found["others"].epsilon == plan.epsilon
    assert deniable("ledger", "show").status == 0
    monkeypatch.delenv("DENIABLE_LEDGER")
    for blank in (None, "", " "):  # failed before: ". is a folder"
        if blank is not None:
            monkeypatch.setenv("DENIABLE_LEDGER", blank)
        assert "set DENIABLE_LEDGER" in deniable("ledger", "show").err
        assert deniable(*SHARE[:-2], "--output", f"r{blank}").status == 0
        with pytest.raises(library.InputError, match="name of the ledger is blank"):
            library.randomize(frame, plan, library.Publication(ledger=blank or ""))
    monkeypatch.setenv("DENIABLE_LEDGER", ".")
    assert "DENIABLE_LEDGER: . is a folder" in deniable(*SHARE[:-2], "--output", "r4").err


def test_pram_reserves_the_worst_stratum_and_counts_what_was_drawn(deniable, people):
    schema = (people / "people.toml").read_text().split("[[attribute]]")
    (people / "two.toml").write_text('keep = ["sex"]\n' + "[[attribute]]".join(["", *schema[2:]]))
    words = ["pram", "people.csv", "--schema", "two.toml", "--ledger", "l", "--by", "sex"]
    (people / "strata.json").write_text('{"m": {"attenuation": 0.9}}')
    done = deniable(*words, "--attenuation", "0.5", "--per-stratum", "strata.json", "--output", "r")
    assert done.status == 0, done.err
    (entered,) = stored_releases(Ledger("l").events())
    record = json.loads((people / "r" / "record.json").read_text())
    assert entered.spending.epsilon == record["guarantee"]["epsilon"]
    invariant = deniable(*words, "--attenuation", "0.5", "--invariant", "--output", "r2")
    assert "unbounded in all" in invariant.out
    assert "without a bound for all of them together" in (people / "r2/report.html").read_text()
    deniable("ledger", "budget", "l", "--epsilon", "100")
    assert deniable(*words, "--attenuation", "0.5", "--output", "r3").status == 2
    assert "is over its budget" in deniable("ledger", "check", "l").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*SHARE[:-1], "out/l", "--output", "out"], "folder of the ledger does not exist"),
        ([*SHARE[:-1], "r/l", "--force", "--output", "r"], "lies in the folder of a release"),
        ([*SHARE, "--insecure-seed", "1", "--output", "x"], "cannot count as a release"),
        ([*SHARE[:-2], "--population", "p", "--output", "x"], "--population needs a ledger"),
        (["ledger", "show", "none"], "no such ledger"),
        (["ledger", "budget", "l", "--epsilon", "0"], "positive number"),
        (["randomize", "people.csv", "--mechanism", "m.json", "--ledger", "x.csv",
          "--output", "x.csv", "--force"], "lies in the folder of a release"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(deniable, people, words, said):
    (people / "r").mkdir()
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    done = deniable(*words)
    assert (done.status, said in done.err) == (2, True), done.err
    assert done.err.count("deniable: ") == 1


def test_a_record_with_a_smaller_total_than_its_own_level_is_refused(deniable, people):
    deniable(*SHARE, "--output", "r")
    record = json.loads((people / "r" / "record.json").read_text())
    record["population"]["epsilon"] = 4.0
    (people / "r" / "record.json").write_text(json.dumps(record))
    assert "less than this release alone" in deniable("inspect", "r").err


def test_rows_that_were_complete_when_the_process_died_count_and_are_swept(
    deniable, people, monkeypatch
):
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(release, "write_statements", die)
        child = forked(lambda: deniable(*SHARE, "--output", "r"))
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert not (people / "r").exists()
    checked = deniable("ledger", "check", "l").out
    assert "was interrupted when its rows were complete; it counts, since" in checked
    done = deniable(*SHARE, "--output", "r")
    assert "had left" in done.err
    assert "with data.csv; it has been removed" in done.err
    assert "Release 2 of population 'everybody', 9.0000 nats in all." in done.out
    assert not [p for p in people.iterdir() if p.name.startswith(".")]


def test_a_mistyped_ledger_is_refused_if_none_is_to_be_begun(deniable, people, monkeypatch):
    # Failed before: it was begun, and no earlier release counted.
    refused = deniable(*SHARE, "--no-new-ledger", "--output", "r")
    assert (refused.status, "start a new one with --new-ledger" in refused.err) == (2, True)
    assert not (people / "l").exists()
    monkeypatch.setenv("DENIABLE_LEDGER", "l")
    assert deniable(*SHARE[:-2], "--output", "r").status == 2
    done = deniable(*SHARE[:-2], "--new-ledger", "--output", "r")
    assert done.status == 0, done.err
    assert (people / "l").exists()
    assert "ledger" not in json.loads((people / "r" / "record.json").read_text())["command"]


def test_a_release_is_checked_without_being_made(deniable, people):
    # Failed before: what is wrong was said one thing at a time, and the first run without it drew.
    budget = ["ledger", "budget", "l", "--epsilon", "9", "--population", "clinic"]
    deniable(*budget)
    (people / "r").mkdir()
    (people / "r" / "other").touch()
    before = (people / "l").read_bytes()
    refused = deniable(*SHARE, "--sign", "nokey", "--output", "r", "--check", "--json")
    assert [one["at"] for one in json.loads(refused.out)["problems"]] == [
        *("sign", "output", "ledger"),
    ]
    assert refused.status == 2
    assert "refused for 3 reasons:" in refused.err
    again = deniable(*SHARE, "--sign", "nokey", "--output", "r")
    assert again.err == refused.err, "the command says the same"
    ready = [*SHARE, "--population", "clinic", "--output", "new"]
    checked = deniable(*ready, "--check", "--json")
    assert checked.status == 0, checked.err
    assert checked.json["problems"] == []
    assert checked.json["ledger"]["after"]["left"] == 4.5
    shown = deniable(*ready, "--check").out
    assert "neither draws nor output were made" in shown
    assert "new would have 5 rows" in shown
    assert (people / "l").read_bytes() == before
    assert sorted(path.name for path in people.iterdir()) == [
        *("l", "people.csv", "people.toml", "r"),
    ]
    assert deniable(*ready, "--check", "--resume").status == 2
