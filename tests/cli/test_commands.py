"""Every command once, as a new user would run it, and the JSON that scripts rely on."""

import csv
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.statement.methods import METHODS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

LEVELS = ["--attribute-epsilon", "1,2,1.5"]


def test_the_main_job_and_back_on_the_shipped_example(deniable, tmp_path):
    done = deniable(
        "share", EXAMPLES / "insurance.csv", "--schema", EXAMPLES / "insurance.toml",
        "--epsilon", "6", "--shuffle", "--output", "release",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "report.html" in done.out.splitlines()[-1]
    assert sorted(p.name for p in (tmp_path / "release").iterdir()) == [
        "codebook.csv",
        "data.csv",
        "record.json",
        "report.html",
    ]
    estimate = deniable("estimate", "release", "--of", "hhi,whi", "--json").json
    assert estimate["attributes"] == ["hhi", "whi"]
    assert estimate["n"] == 22272
    assert {c["values"][0] for c in estimate["cells"]} == {"no", "yes"}
    assert abs(sum(c["estimate"] for c in estimate["cells"]) - 1) < 1e-9
    with (EXAMPLES / "insurance.csv").open() as file:
        rows = list(csv.DictReader(file))
    for cell in estimate["cells"]:
        truth = sum((r["hhi"], r["whi"]) == tuple(cell["values"]) for r in rows) / len(rows)
        # Six standard errors: fails by chance once in a hundred million runs.
        assert abs(cell["estimate"] - truth) < 6 * cell["standard_error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stated", "threads"),
    [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2), ({"OMP_NUM_THREADS": "2"}, 2)],
)
def test_linear_algebra_has_one_thread_unless_the_user_says_otherwise(
    stated: dict[str, str], threads: int
) -> None:
    code = (
        "from deniable.__main__ import main\n"
        "main()\n"
        "import numpy, threadpoolctl\n"
        "print(*(used['num_threads'] for used in threadpoolctl.threadpool_info()))\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")} | stated
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], env=environment, capture_output=True, text=True
    )
    used = done.stdout.splitlines()[-1]
    assert used == str(min(threads, len(os.sched_getaffinity(0)))), done.stderr


SLOW_TO_LOAD = {"scipy", "narwhals", "pandas", "matplotlib", "pyarrow.parquet"}


@pytest.mark.slow
def test_what_takes_long_to_load_is_loaded_only_where_it_is_used(deniable, tmp_path):
    example = EXAMPLES / "insurance.csv"
    schema = ["--schema", EXAMPLES / "insurance.toml", "--epsilon", "4"]
    made = deniable("share", example, *schema, "--output", "r")
    assert made.status == 0, made.err
    for words, also in (
        (["--help"], {"numpy", "pyarrow"}),
        (["estimate", "r", "--of", "race,hhi"], {"importlib.metadata", "highspy"}),
        # The limit that no mechanism can cross is searched for by SciPy.
        (["share", example, "--mechanism", "r/record.json", "--output", "s"], None),
    ):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "deniable", *words],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "cyclopts" in loaded
        unwanted = SLOW_TO_LOAD - {"scipy"} if also is None else SLOW_TO_LOAD | also
        assert loaded & unwanted == set()


@pytest.mark.parametrize("method", ["kronecker", "lp", "heuristic"])
def test_design_prints_the_contract(deniable, method):
    plain = deniable(
        "design", "--categories", "3,3,3", "--attribute-epsilon", "4,4,4",
        "--method", method, "--json",
    ).json  # fmt: skip
    assert plain["method"] == method
    assert plain["unprotected"] == []
    assert plain["epsilon_lower_bound"] <= plain["epsilon"]
    for attribute in plain["attributes"]:
        assert set(attribute) == {
            "name",
            "categories",
            "requested_epsilon",
            "epsilon",
            "epsilon_given_rest",
            "epsilon_given_rest_at_most",
            "keep_probability",
            "attenuation",
            "lambda",
            "strength",
        }
        assert 4 - 1e-9 <= attribute["epsilon"] <= 4
        assert attribute["epsilon"] <= attribute["epsilon_given_rest"] <= plain["epsilon"]


def test_a_design_is_stored_inspected_and_used_on_one_row(deniable, people):
    assert (
        deniable(
            "design", "--schema", "people.toml", *LEVELS, "--output", "m.json", "--json"
        ).status
        == 0
    )
    inspected = deniable("inspect", "m.json", "--subset", "sex,age", "--json").json
    assert inspected["verified"] is True
    assert inspected["subset_epsilon"] <= inspected["epsilon"]
    done = deniable("randomize", "-", "--mechanism", "m.json", stdin="sex,age,blood\nf,25,A\n")
    assert done.status == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 1
    assert rows[0]["sex"] in ("f", "m")
    assert rows[0]["age"] in ("[0,30)", "[30,60)", "[60,120]")
    assert rows[0]["blood"] in ("A", "B", "AB", "0", "NA")


def test_a_design_goes_to_standard_output_alone(deniable, people):
    words = ["design", "--schema", "people.toml", *LEVELS]
    deniable(*words, "--output", "m.json")
    written = deniable(*words, "--output", "-")
    assert written.out == (people / "m.json").read_text()
    refused = deniable(*words, "--output", "-", "--json")
    assert refused.status == 2
    assert "both write to standard output" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ["design", "--categories", "3,3", "--epsilon", "1"],
        ["schema", "init", "people.csv"],
        ["randomize", "people.csv", "--mechanism", "m.json"],
        ["ledger", "export", "l"],
    ],
)
def test_an_option_is_no_name_of_an_output(deniable, people, words):
    before = set(people.iterdir())
    refused = deniable(*words, "--output", "--force")
    assert refused.status == 2
    assert "--force is no output" in refused.err
    assert set(people.iterdir()) == before


def test_randomize_writes_the_kind_of_file_it_is_asked_for(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    done = deniable("randomize", "people.csv", "--mechanism", "m.json", "--output", "o.csv.gz")
    assert done.status == 0, done.err
    assert len(gzip.decompress((people / "o.csv.gz").read_bytes()).splitlines()) == 6
    assert (
        deniable("randomize", "people.csv", "--mechanism", "m.json", "--output", "o.parquet").status
        == 0
    )
    estimate = deniable("estimate", "o.parquet", "--mechanism", "m.json", "--of", "sex", "--json")
    assert estimate.json["n"] == 5


def test_counts_are_enough_for_an_estimate(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    (people / "counts.csv").write_text("sex,count\nf,60\nm,40\n")
    plain = deniable(
        "estimate", "--mechanism", "m.json", "--counts", "counts.csv", "--of", "sex", "--json"
    ).json
    assert plain["n"] == 100
    # By hand: (f − (1 − φ)/2)/φ with φ = (e − 1)/(e + 1) at ε = 1.
    phi = 0.46211715726
    assert plain["cells"][0]["estimate"] == pytest.approx((0.6 - (1 - phi) / 2) / phi, abs=1e-9)


def test_several_tables_are_estimated_at_once(deniable, people):
    deniable("share", "people.csv", "--schema", "people.toml", *LEVELS, "--output", "r")
    both = deniable("estimate", "r", "--of", "sex,age", "--of", "blood", "--pairs", "--json").json
    tables = [table["attributes"] for table in both["tables"]]
    pairs = [["sex", "age"], ["sex", "blood"], ["age", "blood"]]
    assert tables == [["sex", "age"], ["blood"], *pairs]
    for names, table in zip(tables, both["tables"], strict=True):
        assert table == deniable("estimate", "r", "--of", ",".join(names), "--json").json
    shown = deniable("estimate", "r", "--of", "sex", "--of", "blood", "--output", "both.csv")
    assert "Shares of sex" in shown.out
    assert "Shares of blood" in shown.out
    columns = (people / "both.csv").read_text().splitlines()[0].replace('"', "").split(",")
    assert (columns[0], columns[-1]) == ("sex", "blood")
    for words, problem in [
        (["--of", "sex", "--of", "age", "--plot", "x.png"], "are for one table"),
        (["--pairs", "--plot", "x.png"], "are for one table"),
        (["--of", "sex", "--weights", "w"], "'w'"),
        ([], "name the attributes to estimate with --of"),
    ]:
        refused = deniable("estimate", "r", *words)
        assert (refused.status, problem in refused.err) == (2, True), refused.err


def test_every_method_and_target_of_estimate_answers(deniable, people):
    deniable("share", "people.csv", "--schema", "people.toml", *LEVELS, "--output", "r")
    for extra in (
        ["--method", "em"],
        ["--method", "projected"],
        ["--target", "population", "--level", "0.9"],
        ["--by", "age"],
    ):
        done = deniable("estimate", "r", "--of", "sex", *extra, "--json")
        assert done.status == 0, done.err
        assert done.json["cells"]
    mean, quantile = (("estimate", name, "r", "--of", "age") for name in ("mean", "quantile"))
    assert deniable(*mean, "--json").json["summaries"]
    assert "between" in deniable(*mean).out
    assert "MIDDLES" in deniable(*mean, "--scores", "middle").out
    assert "Quantiles of age: 5 rows" in deniable(*quantile).out
    assert "INTERPOLATED" in deniable(*quantile, "--q", "0.5", "--interpolate").out


def test_kept_columns_are_released_untouched_and_said_to_be_unprotected(deniable, people):
    (people / "people.toml").write_text(
        'keep = ["blood"]\n'
        + (people / "people.toml").read_text().split('[[attribute]]\nname = "blood"')[0]
    )
    done = deniable(
        "share", "people.csv", "--schema", "people.toml", "--attribute-epsilon", "1,2",
        "--output", "r", "--json",
    )  # fmt: skip
    assert done.json["guarantee"]["unprotected"] == ["blood"]
    with (people / "r" / "data.csv").open() as file:
        assert [row["blood"] for row in csv.DictReader(file)] == ["A", "0", "", "AB", "B"]
    assert deniable("estimate", "r", "--of", "sex", "--where", "blood=A", "--json").json["n"] == 1
    by = deniable("estimate", "r", "--of", "sex", "--by", "blood", "--json").json
    assert [g["group"]["blood"] for g in by["groups"]] == ["0", "A", "AB", "B"]
    assert by["left_out"] == [{"column": "blood", "rows": 1}]


def test_rows_of_one_person_are_counted_and_the_column_dropped(deniable, people):
    rows = (people / "people.csv").read_text().splitlines()
    ids = ["who", "x", "y", "x", "z", "x"]
    (people / "people.csv").write_text(
        "\n".join(f"{w},{r}" for w, r in zip(ids, rows, strict=True)) + "\n"
    )
    done = deniable(
        "share", "people.csv", "--schema", "people.toml", *LEVELS, "--person", "who",
        "--person-epsilon", "99", "--output", "r", "--json",
    )  # fmt: skip
    person = done.json["guarantee"]["person"]
    assert person["most_rows"] == 3
    assert person["epsilon"] == pytest.approx(3 * done.json["guarantee"]["epsilon"])
    assert "who" not in (people / "r" / "data.csv").read_text()
    assert deniable("inspect", "r", "--json").json["verified"] is True


def test_the_command_in_the_record_has_names_and_no_paths(deniable, people):
    (people / "levels").write_text("1,2,1.5")
    done = deniable(
        "share", people / "people.csv", f"--schema={people / 'people.toml'}",
        "--attribute-epsilon", f"@{people / 'levels'}", "--output", people / "r", "--json",
    )  # fmt: skip
    assert done.json["command"] == (
        "deniable share people.csv --schema=people.toml --attribute-epsilon @levels "
        "--output r --json"
    )
    assert str(people) not in (people / "r" / "record.json").read_text()


def test_a_seeded_release_says_that_it_is_not_private(deniable, people):
    done = deniable(
        "share", "people.csv", "--schema", "people.toml", *LEVELS, "--insecure-seed", "1",
        "--output", "r", "--json",
    )  # fmt: skip
    assert "NOT PRIVATE" in done.err
    assert done.json["release"]["randomness"] == "seeded"
    assert "NOT PRIVATE" in (people / "r" / "report.html").read_text()


def test_the_version_is_told(deniable):
    assert deniable("--version").out.startswith("deniable ")


@pytest.mark.parametrize(
    "command",
    [
        "share", "design", "randomize", "estimate", "inspect", "pram", "reproduce",
        "schema init", "frontier", "frontier pick", "estimate independence", "estimate model",
    ],
)  # fmt: skip
def test_the_example_in_every_help_can_be_pasted_from_a_terminal_of_80_columns(
    deniable, monkeypatch, command
):
    monkeypatch.setenv("COLUMNS", "80")
    done = deniable(*command.split(), "--help")
    assert done.status == 0
    example = done.out.split("Example: ")[1].split("\n\n")[0]
    assert example.startswith(f"deniable {command} ")
    # A line that does not end in a backslash is the last: the shell would run what is before it.
    lines = example.splitlines()
    assert all(line.endswith(" \\") for line in lines[:-1])
    words = shlex.split(example.replace("\\\n", ""))
    assert words[0] == "deniable"
    assert all(word in done.out for word in words if word.startswith("--"))


@pytest.mark.parametrize("command", ["share", "design"])
def test_help_lists_the_methods_that_can_be_chosen_with_their_defaults(
    deniable, monkeypatch, command
):
    monkeypatch.setenv("COLUMNS", "80")
    shown = " ".join(deniable(command, "--help").out.split("Methods")[1].split())
    assert shown.startswith("(default: balanced; with strengths: lambda)")
    for spec in METHODS.values():
        assert (f" {spec.name}: {spec.help}." in shown) == spec.offered
    assert "Defaults: --given-rest 2x, --pair-floor 0.5. optimal:" in shown
    assert "Defaults: --given-rest none, --pair-floor none. kronecker:" in shown


def test_an_unknown_command_is_answered_with_a_whole_sentence(deniable):
    done = deniable("compare")
    assert done.status == 2
    commands, _ = done.err.split("Available commands: ")[1].split(" (deniable --help")
    # The list is cut by the parser; a reader must see that it is.
    assert commands.endswith("…") or {"combine", "reproduce"} <= set(commands.split(", "))


@pytest.mark.slow
def test_share_says_what_a_steward_must_know_in_eight_lines_and_the_rest_on_request(deniable):
    share = ["share", EXAMPLES / "insurance.csv", "--schema", EXAMPLES / "insurance.toml"]
    brief = deniable(*share, "--epsilon", "4", "--output", "r").out
    assert len(brief.splitlines()) <= 8
    for said in ("at most 54.6 times", "12 of 12 attributes readable", "Of 66 tables of two",
                 "sampling error not included", "report.html"):  # fmt: skip
        assert said in brief
    assert "ε given rest" not in brief
    full = deniable(*share, "--epsilon", "4", "--output", "r", "--force", "--verbose").out
    assert "ε given rest" in full
    assert "Independent randomization at the same ε" in full
    assert set(brief.splitlines()) <= set(full.splitlines())


@pytest.mark.slow
def test_share_says_what_helps_most_where_nothing_can_be_read(deniable, tmp_path, monkeypatch):
    # The search for forms takes seconds and has tests of its own; here it finds none.
    monkeypatch.setattr("deniable.planning.alternatives.forms_instead", lambda *_: [])
    rows = (EXAMPLES / "insurance.csv").read_text().splitlines(keepends=True)[:600]
    (tmp_path / "few.csv").write_text("".join(rows))
    share = ["share", "few.csv", "--schema", EXAMPLES / "insurance.toml", "--epsilon", "2"]
    said = deniable(*share, "--output", "r").out
    assert len(said.splitlines()) <= 8
    assert "All of these are readable from about 4," in said
    (command,) = re.findall(r"At which ε hhi can be read: deniable (plan .*)", said)
    planned = deniable(*shlex.split(command))
    assert planned.status == 0, planned.err


def test_no_level_is_shown_below_the_true_one(deniable):
    words = ("--categories", "5,3", "--attribute-epsilon", "1,2", "--method", "optimal")
    exact = deniable("design", *words, "--json").json
    given_rest = exact["attributes"][0]["epsilon_given_rest"]
    assert 1.2259 < given_rest < 1.22595  # to the nearest this would be 1.2259
    shown = deniable("design", *words).out
    assert " 1.2260 " in shown
    headline = float(shown.split("ε of the whole record ")[1].split(" nats")[0])
    assert exact["epsilon"] <= headline <= exact["epsilon"] + 1e-5


def test_it_is_said_of_means_too_what_uncertain_means(deniable, people):
    words = ("--schema", "people.toml", *LEVELS, "--insecure-seed", "1", "--output", "r")
    deniable("share", "people.csv", *words)
    shown = deniable("estimate", "mean", "r", "--of", "age", "--by", "sex").out
    assert " uncertain " in shown
    assert "uncertain: not to be used." in shown


def test_of_many_cells_the_uncertain_ones_are_counted_and_no_table_is_shown_of_none(
    deniable, tmp_path
):
    rows = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(100))
    (tmp_path / "r.csv").write_text("a1,a2,a3\n" + rows)
    words = ("design", "--categories", "7,5,3", "--epsilon", "2", "--method", "kronecker",
             "--output", "m.json")  # fmt: skip
    assert deniable(*words).status == 0
    shown = deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "a1,a2,a3").out
    assert "105 of 105 cells are uncertain and not listed: not to be used by" in shown
    assert "two standard errors are more than 10 points" in " ".join(shown.split())
    assert "count" not in shown
    few = deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "a1").out
    assert "uncertain: not to be used by itself, less than two standard errors" in few


def test_nothing_is_compared_with_independent_randomization_if_there_is_one_attribute(
    deniable, people
):
    (people / "one.toml").write_text('[[attribute]]\nname = "sex"\ncategories = ["f", "m"]\n')
    words = ("--schema", "one.toml", "--epsilon", "1", "--output", "r", "--drop-other-columns")
    done = deniable("share", "people.csv", *words)
    assert done.status == 0, done.err
    assert "Independent randomization" not in done.out
    assert "times as many rows" not in (people / "r" / "report.html").read_text()
    assert deniable("inspect", "r").status == 0


def test_what_costs_nothing_is_not_said_to_cost_less_than_nothing(deniable):
    shown = deniable("design", "--categories", "6", "--attribute-epsilon", "2").out
    assert "next to the levels cost nothing" in shown


def test_there_is_no_colour_in_pipes(deniable, people):
    done = deniable("design", "--schema", "people.toml", *LEVELS)
    assert "\x1b[" not in done.out + done.err


def test_the_level_of_an_interval_is_never_rounded_to_certainty(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    question = ("people.csv", "--mechanism", "m.json", "--of", "sex", "--level", "0.999")
    assert "99.9% from" in deniable("estimate", *question).out


@pytest.mark.parametrize("method", ["optimal", "balanced"])
def test_the_optimum_comes_with_its_gap_and_certificate(deniable, method):
    plain = deniable(
        "design", "--categories", "5,2,3,4", "--attribute-epsilon", "1,2,0.5,1.5",
        "--method", method, "--output", "m.json", "--json",
    ).json  # fmt: skip
    assert plain["gap"] == pytest.approx(plain["epsilon"] - plain["epsilon_lower_bound"])
    assert len(plain["certificate"]["weights"]) == 4
    if method == "optimal":
        assert plain["gap"] < 1e-8
        assert plain["certificate"]["laws"] == []  # a table is no law of votes
    else:
        assert plain["optimal_epsilon"] <= plain["epsilon"]
        assert all(a["epsilon_given_rest"] <= 2 * a["epsilon"] + 1e-9 for a in plain["attributes"])
    inspected = deniable("inspect", "m.json", "--json").json
    assert inspected["certificate"] == plain["certificate"]
    assert inspected["gap"] == plain["gap"]


def test_a_total_is_divided_by_importance_under_caps(deniable, people):
    plain = deniable(
        "design", "--schema", "people.toml", "--epsilon", "2", "--importance", "sex=9",
        "--at-most", "blood=0.3", "--json",
    ).json  # fmt: skip
    sex, _age, blood = plain["attributes"]
    assert blood["epsilon"] <= 0.3 < sex["epsilon"]
    assert plain["epsilon"] <= 2


@pytest.mark.slow
def test_a_level_given_the_rest_that_is_only_a_bound_is_shown_as_one(deniable, tmp_path):
    # Failed before: 25 nats were stated, of which no output reveals more than a quarter.
    words = ["--categories", "2,2,2", "--attribute-epsilon", "40,0.1,0.1", "--method", "optimal"]
    (tmp_path / "t.csv").write_text("a1,a2,a3\n" + "0,1,0\n1,1,0\n" * 50)
    made = ["design", *words, "--output", "m.json"]
    share = ["share", "t.csv", "--mechanism", "m.json", "--output", "r", "--verbose"]
    for command in (made, ["inspect", "m.json"], share):
        shown = deniable(*command).out
        assert shown.count("≤ 25.") == 2
        assert "≤: an upper bound" in shown
    inspected = deniable("inspect", "m.json", "--json").json["attributes"]
    at_most = [row["epsilon_given_rest_at_most"] for row in inspected]
    assert at_most == [False, True, True]
    assert inspected[1]["epsilon_given_rest"] > 20
    page = (tmp_path / "r" / "report.html").read_text()
    assert page.count("at most 25.") >= 2
    assert "“at most”: an upper bound" in page
    assert "(upper bounds)" in page
    exact = deniable("design", "--categories", "2,3", "--epsilon", "2").out
    assert "≤" not in exact


def test_a_mean_by_a_kept_column_has_the_rows_of_every_group(deniable, people):
    # Failed before: the caption had the first group's rows for all groups.
    (people / "groups.csv").write_text(
        "age,region\n" + "25,n\n" * 120 + "61,n\n" * 60 + "30,s\n" * 500
    )
    (people / "groups.toml").write_text(
        'keep = ["region"]\n[[attribute]]\nname = "age"\nbins = [0, 30, 60, 120]\n'
        'missing = "category:NA"\nscores = [20, 45, 70]\n'
    )
    share = ["share", "groups.csv", "--schema", "groups.toml", "--epsilon", "6", "--output", "r"]
    assert deniable(*share).status == 0
    shown = deniable("estimate", "mean", "r", "--of", "age", "--by", "region").out
    assert "180 to 500 rows per group" in shown
    rows = {line.split()[1]: line for line in shown.splitlines() if "│" in line}
    assert " 180 " in rows["n"]
    assert " 500 " in rows["s"]
    assert "left out" in shown
    alike = deniable("estimate", "mean", "r", "--of", "age", "--where", "region=s").out
    assert "500 rows" in alike
    assert "per group" not in alike
