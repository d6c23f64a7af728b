"""Options that other tests of the commands do without."""

import csv
import re
from collections import Counter

import pytest

from cli.test_bad_input import refused

SECRET = "0b-secret"


def test_the_heuristic_misses_levels_of_a_share_only_if_allowed(deniable, people):
    words = ["share", "people.csv", "--schema", "people.toml", "--method", "heuristic"]
    words += ["--attribute-epsilon", "0.5,2,1", "--output", "r", "--json"]
    refused(deniable(*words), "--allow-changed-levels")
    done = deniable(*words, "--allow-changed-levels")
    assert done.json["mechanism"]["changed_levels"], done.err


def test_a_plan_takes_the_heuristic_with_changed_levels(deniable):
    words = ["plan", "--categories", "5,5,3", "--rows", "10000", "--epsilon", "4", "--json"]
    done = deniable(*words, "--method", "heuristic", "--allow-changed-levels")
    assert done.json["method"] == "heuristic", done.err


@pytest.mark.slow
def test_settings_of_the_search_reach_it(deniable, tmp_path, no_plot):
    (tmp_path / "p.json").write_text("[0.4, 0.3, 0.2, 0.1]")

    def fronts(output, *settings):
        done = deniable(
            "frontier", "--prior", "p.json", "--privacy", "0.3", "--methods", "search",
            "--generations", "300", "--population", "10", "--archive", "10", "--output", output,
            *settings,
        )  # fmt: skip
        assert done.status == 0, done.err
        return (tmp_path / output / "frontier.json").read_text()

    plain = fronts("plain")
    for setting in ("--stall=1", "--optimal-set=5", "--crossover=0", "--mutation=0.1"):
        option, _, value = setting.partition("=")
        assert fronts(option.strip("-"), option, value) != plain


def test_values_are_shown_by_pram_and_test_only_if_it_is_said(deniable, people):
    table = (people / "people.csv").read_text()
    (people / "odd.csv").write_text(table.replace("AB", SECRET))
    pram = ["pram", "odd.csv", "--schema", "people.toml", "--attenuation", "0.5", "--output", "r"]
    hidden, shown = deniable(*pram), deniable(*pram, "--show-values")
    assert SECRET not in hidden.err
    assert SECRET in shown.err
    deniable("design", "--schema", "people.toml", "--epsilon", "6", "--output", "m.json")
    test = ["estimate", "independence", "odd.csv", "--mechanism", "m.json", "--of", "sex,blood"]
    hidden, shown = deniable(*test), deniable(*test, "--show-values")
    assert hidden.status == shown.status == 2
    assert SECRET not in hidden.err
    assert SECRET in shown.err


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (["covariance", "--of", "sex,age", "--scores", "0,1"], "semicolon between them"),
        (
            ["compare", "--of", "sex", "--column", "age", "--values", "a,b", "--scores", "0,1"],
            "scores are for a mean",
        ),
        (["compare", "--of", "sex", "--column", "sex", "--values", "f"], "name a second value"),
        (["mean", "--of", "age,sex"], "is of one attribute"),
    ],
)
def test_queries_that_contradict_themselves_are_refused(deniable, people, question, problem):
    deniable("design", "--schema", "people.toml", "--epsilon", "6", "--output", "m.json")
    query, *words = question
    refused(deniable("estimate", query, "people.csv", "--mechanism", "m.json", *words), problem)


def test_a_query_that_there_is_not_is_named_with_one_that_there_is(deniable, people):
    refused(
        deniable("estimate", "maen", "r", "--of", "age"), "no such query: maen; did you mean mean?"
    )
    refused(
        deniable("estimate", "x", "r", "--of", "age"), "no such query: x; there are mean, quantile,"
    )
    for name in ("mean", "./mean"):
        words = ("--schema", "people.toml", "--epsilon", "6", "--output", "mean", "--force")
        assert deniable("share", "people.csv", *words).status == 0
        done = deniable("estimate", "mean", *[name][name == "mean" :], "--of", "age")
        assert (done.status == 0) == (name == "./mean")
        assert "./mean" in done.err or done.status == 0


def test_of_rows_error_and_epsilon_any_two_give_the_third(deniable, people):
    ask = ("plan", "--schema", "people.toml", "--method", "kronecker", "--json")
    (width,) = {
        max(
            t["half_width"]
            for t in deniable(*ask, "--rows", "5000", "--epsilon", "3").json["tables"]
        )
    }
    found = deniable(*ask, "--epsilon", "3", "--within", f"{100 * width}pt").json
    assert found["rows"] == pytest.approx(5000, abs=1)
    found = deniable(*ask, "--rows", "5000", "--error", str(width / 1.959964)).json
    assert found["epsilon"] == pytest.approx(3, abs=0.011)  # to three digits
    said = deniable("plan", "--categories", "2,3", "--rows", "1000", "--error", "2%")
    assert "1,000 rows at ε = " in said.out
    assert "sampling error not included" in said.out
    assert "--target population" in said.out
    refused(deniable(*ask, "--rows", "5000"), "give two of --rows, --within")
    refused(deniable(*ask, "--rows", "5000", "--error", "few"), "'few' is not a number")


@pytest.mark.slow
def test_tables_are_told_of_and_planned_for(deniable, people, tmp_path):
    words = ("design", "--schema", "people.toml", "--epsilon", "3", "--rows", "5000")
    words += ("--method", "optimal", "--tables", "age", "--tables", "age,sex")
    found = deniable(*words, "--json").json
    assert [one["attributes"] for one in found["tables"]] == [["age"], ["age", "sex"]]
    said = deniable(*words).out
    for key in ("tables", "independent_tables"):
        assert f"{100 * found[key][1]['half_width']:.2f}" in said
    assert "one_column" in [one["key"] for one in found["observers"]]
    (tmp_path / "shares.txt").write_text("sex=0.9:0.1")
    needed = deniable(*words, "--within", "1pt", "--json").json["tables"][0]["rows_needed"]
    assert f"{needed:,}" in deniable(*words, "--within", "1pt").out
    rare = deniable(*words, "--assume", f"@{tmp_path / 'shares.txt'}", "--json").json
    assert rare == deniable(*words, "--assume", "sex=0.9:0.1", "--json").json
    assert rare["tables"][0] == found["tables"][0]
    worst = deniable(*words, "--assume", "worst", "--json").json["tables"]
    assert worst[1]["standard_error"] > found["tables"][1]["standard_error"]

    ask = ("plan", "--schema", "people.toml", "--rows", "5000", "--tables", "age,sex")
    least = deniable(*ask, "--within", "3pt", "--method", "kronecker", "--json").json
    assert 0.027 < least["tables"][0]["half_width"] <= 0.03
    assert "the smallest at which every table" in deniable(*ask, "--within", "3pt").out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("design --epsilon 3 --tables age", "--tables needs --rows"),
        ("design --epsilon 3 --assume worst", "--assume is for --tables"),
        ("design --rows 9 --tables age --assume even", "expected uniform, worst or name=share"),
        ("design --rows 9 --tables age --assume a=1:0,a=0:1", "'a' is given twice"),
        ("design --rows 9 --tables age --assume a=b:0", "'b' is not a number"),
        ("design --epsilon 3 --within 2pt", "give --tables too"),
        ("plan --rows 9 --tables age", "give two of --rows, --within"),
        ("plan --rows 9 --error 2pt --assume uniform", "--assume is for --tables"),
        ("plan --rows 9 --error 2pt --pairs 0.5 --method optimal", "balanced and forms"),
        ("plan --rows 9 --error 2pt --max-questions 3", "method forms"),
        ("plan --rows 9 --error 2pt --importance nobody=2", "no protected attribute 'nobody'"),
        ("plan --rows 9 --error 2pt --at-most nobody=2", "no protected attribute 'nobody'"),
        ("plan --rows 9 --error 2pt --pair-floor few", "'few' is not a number"),
        ("plan --rows 9 --epsilon 2 --within 2pt", "give two of --rows, --within"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(deniable, people, words, problem):
    refused(deniable(*words.split(), "--schema", "people.toml"), problem)


@pytest.mark.slow
def test_a_design_says_whether_it_is_worth_anything_with_so_many_rows(deniable):
    words = ("design", "--categories", ",".join(["4"] * 20), "--epsilon", "2", "--rows", "500")
    words += ("--method", "kronecker")
    done = deniable(*words)
    assert "NOTHING CAN BE READ. 0 of 20 attributes readable; a1: 0 of 4 categories" in done.out
    first = deniable(*words, "--json").json["readable"]["attributes"][0]
    assert first["readable"] == 0
    assert first["readable_from"] > 500
    enough = deniable(*words[:-4], "--rows", str(first["readable_from"]), *words[-2:])
    assert "20 of 20 attributes readable." in enough.out
    weak = deniable("design", "--categories", "4,4", "--epsilon", "12")
    assert "WARNING: ε = 12 hardly protects a row as a whole" in weak.out


@pytest.mark.slow
def test_an_answer_is_written_drawn_and_compared(deniable, people):
    words = ("--schema", "people.toml", "--epsilon", "9", "--method", "kronecker")
    assert deniable("share", "people.csv", *words, "--output", "r").status == 0
    ask = ("estimate", "r", "--of", "sex,age")
    done = deniable(*ask, "--output", "a.csv", "--wide", "--plot", "a.png", "--json")
    assert done.status == 0, done.err
    written = (people / "a.csv").read_text().splitlines()
    assert written[0].startswith('"sex","age=[0,30)"')
    assert (people / "a.png").read_bytes().startswith(b"\x89PNG")
    refused(deniable(*ask, "--output", "a.csv"), "a.csv", "exists")
    assert deniable(*ask, "--output", "a.csv", "--plot", "a.png", "--force").status == 0
    refused(deniable(*ask, "--plot", "a.pdf"), "ending in .png or .svg")
    made = people / "b.csv"
    refused(deniable(*ask, "--output", "b.csv", "--plot", "a.pdf"), "ending in .png or .svg")
    refused(deniable(*ask, "--output", "b.csv", "--plot", "a.png"), "a.png", "exists")
    assert not made.exists()
    refused(deniable(*ask, "--wide"), "--output")
    sexes = ("--column", "sex", "--values", "f,m")
    compared = deniable("estimate", "compare", "r", "--of", "sex", *sexes, "--json").json
    (row,) = compared["differences"]
    assert row["estimate"] == pytest.approx(row["first"] - row["second"])
    said = deniable("estimate", "compare", "r", "--of", "age", *sexes).out
    assert "Shares of age, sex f less m: 5 rows, of these rows" in said
    by_mean = ("--of", "age", "--mean", *sexes)
    refused(deniable("estimate", "compare", "r", *by_mean), "has bins and no scores")
    assert "Mean of age" in deniable("estimate", "compare", "r", *by_mean, "--scores", "middle").out
    rows = (people / "r" / "data.csv").read_text().splitlines()
    place = rows[0].split(",").index("sex")
    nobody = [
        ",".join("f" if i == place else c for i, c in enumerate(row.split(","))) for row in rows[1:]
    ]
    (people / "f.csv").write_text("\n".join([rows[0], *nobody]) + "\n")
    words = (*by_mean, "--scores", "middle", "--mechanism", "r/record.json", "--anyway")
    said = deniable("estimate", "compare", "f.csv", *words)
    assert "no answer: the estimated size of a group, the denominator, is not" in said.out, said.err
    assert "holds 0" not in said.out


@pytest.mark.slow
def test_a_cap_under_forms_is_a_part_of_the_records_epsilon(deniable, people):
    words = ["--schema", "people.toml", "--epsilon", "3", "--method", "forms"]
    more = [*words, "--given-rest", "0.5e"]
    assert deniable("share", "people.csv", *more, "--output", "r").status == 0
    said = deniable("inspect", "r", "--covariance", "sex,blood").out
    assert "people asked" in said
    assert re.search(r"is left in the \d+\.\d\d % of rows with both", said)


def test_forms_ask_what_is_said_and_name_their_column(deniable, people):
    words = ["--schema", "people.toml", "--epsilon", "3", "--method", "forms", "--pairs", "0"]
    more = ["--max-questions", "1", "--form-column", "questionnaire"]
    header, *five = (people / "people.csv").read_text().splitlines(keepends=True)
    (people / "people.csv").write_text(header + "".join(20 * five))  # so that somebody is asked
    assert deniable("design", *words, *more, "--output", "m.json").status == 0
    assert deniable("share", "people.csv", *words, *more, "--output", "r").status == 0
    with (people / "r" / "data.csv").open(newline="") as released:
        header, *rows = csv.reader(released)
    assert header == ["sex", "age", "blood", "questionnaire"]
    assert {sum(map(bool, row[:3])) for row in rows} == {1}
    # Counts of these rows tell what the rows tell.
    counted = Counter((row[0], row[3]) for row in rows)
    lines = ["sex,questionnaire,count", *(f"{a},{b},{n}" for (a, b), n in counted.items())]
    (people / "counts.csv").write_text("\n".join(lines) + "\n")
    ask = ["estimate", "--of", "sex", "--json", "--anyway"]
    of_counts = deniable(*ask, "--counts", "counts.csv", "--mechanism", "m.json")
    assert of_counts.json == deniable(*ask, "r").json
