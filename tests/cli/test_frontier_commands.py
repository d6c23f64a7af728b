"""frontier and frontier pick as a user runs them, from a prior to an estimate."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from cli.test_bad_input import refused
from deniable.proofs.problem import SolverError
from deniable.solvers.matrices import frontier as matrices_frontier

pytestmark = pytest.mark.usefixtures("no_plot")

PRIOR = "[0.4, 0.3, 0.2, 0.1]"
TABLE = "age,sex\n" + "".join(
    f"{age},{sex}\n" for age, sex in zip("0001122301" * 60, "fmfmmf" * 100, strict=True)
)
SCHEMA = """
[[attribute]]
name = "age"
categories = ["0", "1", "2", "3"]
[[attribute]]
name = "sex"
categories = ["f", "m"]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "p.json").write_text(PRIOR)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "s.toml").write_text(SCHEMA)
    return tmp_path


_TRACED: list[Path] = []  # a frontier that was drawn once and is copied


@pytest.fixture
def traced(deniable, place, tmp_path_factory):
    if not _TRACED:
        done = deniable(
            "frontier", "--prior", "p.json", "--privacy", "0.2,0.3", "--methods", "warner,bound",
            "--records", "1000", "--output", "f",
        )  # fmt: skip
        assert done.status == 0, done.err
        _TRACED.append(tmp_path_factory.mktemp("traced") / "f")
        shutil.copytree(place / "f", _TRACED[0])
    else:
        shutil.copytree(_TRACED[0], place / "f")
    return place / "f"


def test_a_frontier_is_printed_and_written(deniable, place):
    done = deniable(
        "frontier", "--prior", "p.json", "--privacy", "0.3,0.2", "--delta", "0.75",
        "--methods", "warner,up,frapp,subset,square,search,bound", "--records", "10000",
        "--generations", "50", "--population", "20", "--archive", "20", "--starts", "4",
        "--output", "f", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    rows = json.loads((place / "f" / "frontier.json").read_text())
    assert {row["method"] for row in rows} == {
        "warner", "up", "frapp", "subset", "square", "search", "bound",
    }  # fmt: skip
    for row, printed in zip(rows, done.json, strict=True):
        assert {"method", "privacy", "mse", "worst_posterior", "lower_bound"} <= set(row)
        assert row["mse"] == printed["mse"] >= row["lower_bound"] > 0
        assert row["worst_posterior"] <= 0.75 * (1 + 1e-11)
        assert row["privacy"] >= row["level"] - 1e-11
    with (place / "f" / "frontier.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert "hypervolume" in done.err


def test_a_picked_point_randomizes_estimates_is_inspected_and_shared(deniable, place, traced):
    done = deniable(
        "frontier", "pick", "f", "--privacy", "0.3", "--name", "age", "--output", "m.json"
    )
    assert done.status == 0, done.err
    assert "Method bound at privacy 0.3" in done.out
    assert "no ε-differential privacy" in done.out
    seen = deniable("inspect", "m.json", "--json").json
    assert seen["epsilon"] is None
    assert seen["unprotected"] == ["age"]
    assert seen["verified"] is True
    guess = seen["attributes"][0]["best_guess"]
    assert guess["before"] == pytest.approx(0.4)
    assert guess["success"] == pytest.approx(0.7)
    text = deniable("inspect", "m.json").out
    assert "NO ε-DIFFERENTIAL PRIVACY holds for age" in text
    assert "right for 70 % of the people (without it for 40 %)" in text

    (place / "ages.csv").write_text("\n".join(line[0] for line in TABLE.splitlines()[1:]) + "\n")
    rows = (place / "ages.csv").read_text()
    (place / "ages.csv").write_text("age\n" + rows)
    done = deniable("randomize", "ages.csv", "--mechanism", "m.json", "--output", "r.csv")
    assert done.status == 0, done.err
    assert (place / "r.csv").read_text().splitlines()[1].startswith("answer ")
    result = deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "age", "--json").json
    truth = [rows.split().count(c) / 600 for c in "0123"]
    for cell, share in zip(result["cells"], truth, strict=True):
        assert abs(cell["estimate"] - share) < 7 * cell["standard_error"]
    done = deniable("share", "ages.csv", "--mechanism", "m.json", "--output", "release")
    assert done.status == 0, done.err
    assert "No ε-differential privacy holds for the whole record" in done.out
    record = json.loads((place / "release" / "record.json").read_text())
    assert record["guarantee"]["epsilon"] is None
    assert "right for 70 % of the people" in done.out
    assert record["guarantee"]["instead"][0]["columns"] == ["age"]
    page = (place / "release" / "report.html").read_text()
    assert "NO ε-DIFFERENTIAL PRIVACY:" in page
    assert "NOT PROTECTED:" not in page
    assert "some released values are possible for some true values only" in page
    assert page.count("right for 70 % of the people") >= 2
    assert deniable("inspect", "release").status == 0


def test_a_picked_mechanism_can_go_to_standard_output(deniable, place, traced):
    pick = ["frontier", "pick", "f", "--privacy", "0.3", "--output"]
    assert deniable(*pick, "m.json").status == 0
    piped = deniable(*pick, "-")
    assert piped.out == (place / "m.json").read_text()
    assert "Method bound at privacy 0.3" in piped.err
    refused(deniable(*pick, "-", "--json"), "both write to standard output")


def test_a_matrix_stands_next_to_levels_for_the_others(deniable, place, traced):
    assert deniable("frontier", "pick", "f", "--privacy", "0.3", "--output", "m.json").status == 0
    for given in ("age=m.json", "age=f/matrices/warner-0.3.json"):
        done = deniable(
            "design", "--schema", "s.toml", "--matrix", given, "--attribute-epsilon", "1",
            "--method", "kronecker", "--output", "both.json", "--force", "--json",
        )  # fmt: skip
        assert done.status == 0, done.err
        age, sex = done.json["attributes"]
        assert sex["epsilon"] == pytest.approx(1.0, abs=1e-9)
        assert (age["epsilon"] is None) == given.endswith("m.json")
        done = deniable(
            "share", "t.csv", "--mechanism", "both.json", "--output", "release", "--force"
        )
        assert done.status == 0, done.err
        result = deniable("estimate", "release", "--of", "age,sex", "--json").json
        assert len(result["cells"]) == 8
    shared = deniable(
        "share", "t.csv", "--schema", "s.toml", "--matrix", "age=m.json",
        "--attribute-epsilon", "sex=1", "--output", "other",
    )  # fmt: skip
    assert shared.status == 0, shared.err
    mixed = deniable(
        "design", "--schema", "s.toml", "--matrix", "age=m.json", "--attenuation", "0.5", "--json"
    ).json
    assert mixed["method"] == "lambda"
    assert mixed["attributes"][1]["lambda"] == pytest.approx(0.5)


def test_matrices_alone_make_a_mechanism(deniable, place, traced):
    assert deniable("frontier", "pick", "f", "--privacy", "0.3", "--output", "m.json").status == 0
    four = ["design", "--categories", "4", "--matrix", "a1=m.json"]
    assert deniable(*four, "--json").json["method"] == "matrix"
    refused(deniable(*four, "--epsilon", "1"), "every attribute has a response matrix")
    refused(deniable("design", "--categories", "3", *four[3:]), "its matrix is for 4")
    twice = ["--matrix", "a1=m.json", "--attribute-epsilon", "1"]
    refused(deniable("design", "--categories", "4,2", *four[3:], *twice), "given twice")
    (place / "flat.json").write_text(json.dumps([[0.25] * 4] * 4))
    flat = ["--matrix", "age=flat.json", "--attribute-epsilon", "1"]
    refused(deniable("design", "--schema", "s.toml", *flat), "flat.json", "singular")


def _files(folder):
    """Content of every file of a folder, by its path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_all_that_a_frontier_writes_of_data_follows_from_rounded_shares(deniable, place):
    """Tables whose shares round alike make the same files and screens, to the last bit."""
    made = []
    for counts in ((206, 193, 195, 6), (209, 190, 195, 6), (210, 194, 196, 0)):
        text = "age\n" + "".join(f"{age}\n" * n for age, n in enumerate(counts))
        (place / "t.csv").write_text(text)
        done = deniable(
            "frontier", "--column", "t.csv:age", "--schema", "s.toml", "--privacy", "0.3",
            "--methods", "warner,square,bound", "--starts", "2", "--output", "f", "--force",
        )  # fmt: skip
        assert done.status == 0, done.err
        assert "read off the data and rounded to 1/50" in done.err
        picked = deniable("frontier", "pick", "f", "--privacy", "0.3", "--output", "m", "--force")
        screens = (done.out, done.err, picked.out, (place / "m").read_text())
        made.append((_files(place / "f"), screens))
    assert made[0] == made[1] == made[2]
    about = json.loads(made[0][0]["about.json"])
    assert about["prior"] == [0.34, 0.32, 0.32, 0.02]
    assert about["attribute"]["name"] == "age"


@pytest.mark.slow
def test_every_output_states_the_source_of_a_prior(deniable, place):
    given = {
        "column 'age' of t.csv, rounded to 1/50": ["--column", "t.csv:age", "--schema", "s.toml"],
        "the file p.json": ["--prior", "p.json"],
        "a normal distribution in 4 bins": ["--distribution", "normal,4"],
    }
    for source, prior in given.items():
        traced = deniable(
            "frontier", *prior, "--privacy", "0.3", "--methods", "bound", "--output", "f", "--force"
        )
        assert traced.status == 0, traced.err
        pick = ["--privacy", "0.3", "--name", "age", "--schema", "s.toml", "--output", "m.json"]
        outputs = [deniable("frontier", "pick", "f", *pick, "--force").out]
        outputs.append((place / "m.json").read_text())
        share = ["share", "t.csv", "--schema", "s.toml", "--matrix", "age=m.json", "--method"]
        share += ["kronecker", "--attribute-epsilon", "sex=1", "--output", "r", "--force"]
        outputs.append(deniable(*share).out)
        outputs += [(place / "r" / name).read_text() for name in ("record.json", "report.html")]
        outputs += [deniable("inspect", which).out for which in ("m.json", "r")]
        outputs.append(deniable("inspect", "r", "--json").out)
        assert all(source in text.replace("&#39;", "'") for text in outputs)
        assert outputs[-3].count("read off the data") == prior.count("--column")
        assert "the source of the prior" in outputs[-3]


def test_an_unrounded_prior_of_data_is_refused_and_an_unstated_source_said(deniable, place, traced):
    about = place / "f" / "about.json"
    plain = json.loads(about.read_text())
    pick = ["frontier", "pick", "f", "--privacy", "0.3", "--output", "m.json", "--force"]
    about.write_text(json.dumps(plain | {"disclosure": "It was read from the data."}))
    refused(deniable(*pick), "counts follow from it; trace the frontier again")
    about.write_text(json.dumps(plain | {"prior_steps": 7}))
    refused(deniable(*pick), "not rounded to 1/7")
    about.write_text(json.dumps(plain))
    assert deniable(*pick).status == 0
    mechanism = json.loads((place / "m.json").read_text())
    for stated in (mechanism["blocks"][0]["law"], mechanism["attributes"][0]["best_guess"]):
        del stated["prior_source"]
    (place / "m.json").write_text(json.dumps(mechanism))
    assert "whose source is not stated" in deniable("inspect", "m.json").out


def test_a_prior_is_read_from_files_of_every_form(deniable, place):
    rows = "".join(f"{sex};{age}\n" for sex, age in [("f", "é"), ("m", "é"), ("f", "z")] * 500)
    (place / "odd.csv").write_bytes(rows.encode("latin-1"))
    ask = ["frontier", "--privacy", "0.2", "--methods", "bound", "--output", "f"]
    odd = [*ask, "--column", "odd.csv:age"]
    told = ["--separator", ";", "--encoding", "latin-1", "--no-header", "--columns", "sex,age"]
    done = deniable(*odd, *told, "--decimal", ",", "--dates", "31.12.2025")
    assert done.status == 0, done.err
    about = json.loads((place / "f" / "about.json").read_text())
    assert about["prior"] == [0.33, 0.67]
    # What stands in the schema's [file] need not be said again.
    written = 'separator = ";"\nencoding = "latin-1"\ncolumns = ["sex", "age"]\n'
    attribute = '[[attribute]]\nname = "age"\ncategories = ["é", "z"]\n'
    (place / "odd.toml").write_text(f"[file]\n{written}{attribute}")
    done = deniable(*odd, "--schema", "odd.toml", "--force")
    assert done.status == 0, done.err
    assert json.loads((place / "f" / "about.json").read_text())["prior"][0] > 0.5
    # The first row is a person's: nothing of it is shown.
    refused(deniable(*odd, "--encoding", "latin-1", "--force"), "set --no-header")
    insisted = ["--encoding", "latin-1", "--separator", ";", "--header", "--force"]
    refused(deniable(*odd, *insisted), "there is no column 'age'")


def test_under_ldp_the_levels_are_epsilon_and_the_mechanism_keeps_it(deniable, place):
    done = deniable(
        "frontier", "--distribution", "normal,5", "--epsilon-ldp", "0.5,1", "--methods",
        "warner,square,subset,bound", "--starts", "4", "--output", "f",
    )  # fmt: skip
    assert done.status == 0, done.err
    done = deniable("frontier", "pick", "f", "--epsilon-ldp", "1", "--output", "m.json", "--json")
    assert done.json["epsilon"] <= 1
    assert done.json["epsilon"] == pytest.approx(1, abs=1e-9)
    assert done.json["unprotected"] == []


@pytest.mark.slow
def test_beyond_sixteen_categories_it_is_said_that_the_bound_is_proven_only(deniable, place):
    done = deniable(
        "frontier", "--distribution", "uniform,17", "--privacy", "0.3", "--output", "f",
        "--methods", "warner,bound", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "proven, but it may be below" in done.err
    bound = next(row for row in done.json if row["method"] == "bound")
    assert bound["bound"] == "proven"
    assert 1 <= bound["ratio"] < 1.01
    assert (place / "f" / "certificates" / "0.3.json").exists()


BAD = [
    (["--prior", "zero.json"], "zero.json: prior: entry 3 is not above 0"),
    (["--prior", "t.csv"], "JSON list of shares"),
    (["--prior", "p.json", "--delta", "0.3"], "likeliest category has probability 0.4"),
    (["--prior", "p.json", "--privacy", "0.6"], "it must be from 0 to 0.5999994"),
    (["--prior", "p.json", "--privacy", "x"], "--privacy: 'x' is not a number"),
    (["--prior", "p.json", "--epsilon-ldp", "1", "--privacy", "0.3"], "one is the axis"),
    (["--prior", "p.json", "--methods", "best"], "there is no method 'best'"),
    (["--prior", "p.json", "--population", "1", "--methods", "search"], "population_size"),
    (["--column", "t.csv:weight"], "there is no column 'weight'"),
    (["--distribution", "cauchy,3"], "normal, gamma, uniform"),
    (["--prior", "p.json", "--distribution", "normal,3"], "give one prior"),
    ([], "give one prior"),
    (["--prior", "p.json", "--schema", "s.toml"], "categories of --column"),
    (["--prior", "p.json", "--separator", ";"], "give --column too"),
]


@pytest.mark.parametrize(("words", "problem"), BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(deniable, place, words, problem):
    (place / "zero.json").write_text("[0.5, 0.5, 0]")
    before = sorted(place.iterdir())
    refused(deniable("frontier", *words, "--output", "f"), problem)
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--privacy", "0.5"], "the most private is at 0.3"),
        ([], "either --privacy or --epsilon-ldp"),
        (["--privacy", "0.3", "--schema", "s.toml", "--name", "weight"], "no attribute 'weight'"),
    ],
)
def test_a_point_that_is_not_there_is_refused(deniable, place, traced, words, problem):
    refused(deniable("frontier", "pick", "f", *words, "--output", "m.json"), problem)
    assert not (place / "m.json").exists()
    nowhere = deniable("frontier", "pick", "nowhere", *words, "--output", "m.json")
    refused(nowhere, "nowhere: this is not a folder that frontier has made")


def test_share_takes_a_schema_or_a_mechanism(deniable, place, traced):
    pick = ["frontier", "pick", "f", "--privacy", "0.3", "--name", "age", "--output", "m.json"]
    assert deniable(*pick).status == 0
    share = ["share", "t.csv", "--output", "release"]
    assert "there is no schema" in deniable(*share).err
    refused(deniable(*share, "--schema", "s.toml", "--mechanism", "m.json"), "either --schema")
    refused(deniable(*share, "--mechanism", "m.json", "--epsilon", "1"), "is a finished design")
    assert not (place / "release").exists()
    # Each of the two by itself, with what it needs, is enough.
    assert deniable(*share, "--mechanism", "m.json", "--drop-other-columns").status == 0
    record = json.loads((place / "release" / "record.json").read_text())
    assert record["release"]["columns"] == ["age"]
    assert deniable(*share, "--schema", "s.toml", "--epsilon", "2", "--force").status == 0
    record = json.loads((place / "release" / "record.json").read_text())
    assert record["release"]["columns"] == ["age", "sex"]


def test_a_bound_above_a_matrix_of_the_program_is_one_sentence(deniable, place, monkeypatch):
    def wrong(*_):
        raise SolverError("a response matrix came out below the bound; please report it")

    monkeypatch.setattr(matrices_frontier, "solve", wrong)
    words = ("frontier", "--distribution", "normal,4", "--privacy", "0.3", "--output", "wrong")
    refused(deniable(*words), "at level 0.3 a response matrix came out below the bound")
    assert not (place / "wrong").exists()
