"""The protocol of λ-randomization, and the curator's mode, from the command line."""

import csv
import json
from pathlib import Path

import pytest

from marked import slow_after

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CYCLE = "[[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]]"
PRAM = ["pram", "people.csv", "--schema", "people.toml"]


def refused(result, *problems):
    assert result.status == 2, result
    assert len(result.err.splitlines()) == 1, result.err
    assert result.err.startswith("deniable: ")
    assert "Traceback" not in result.err
    for problem in problems:
        assert problem in result.err


@pytest.fixture
def kept(people):
    """The table with sex released as it is, and a column of numbers instead of ages."""
    (people / "people.toml").write_text(
        'keep = ["sex"]\n[[attribute]]\nname = "blood"\ncategories = ["A", "B", "AB", "0"]\n'
        'missing = "category:NA"\n'
    )
    return people


def design(deniable, *words):
    return deniable("design", "--schema", "people.toml", "--json", *words).json


def test_lambda_is_common_by_position_by_name_or_in_a_file(deniable, people):
    (people / "values").write_text("sex=0.9\nage=0.5\nblood=0.4")
    for text in ("0.9,0.5,0.4", "blood=0.4,sex=0.9,age=0.5", "@values"):
        plain = design(deniable, "--method", "lambda", "--attenuation", text)
        assert [a["lambda"] for a in plain["attributes"]] == [0.9, 0.5, 0.4]
        assert plain["method"] == "lambda"
    plain = design(deniable, "--attenuation", "0.3")
    assert [a["lambda"] for a in plain["attributes"]] == [0.3] * 3
    assert all(a["requested_epsilon"] is None for a in plain["attributes"])


def test_a_covariance_to_preserve_is_preserved_and_the_optimisation_named(deniable, people):
    done = deniable(
        "design", "--schema", "people.toml", "--preserve", "sex:age=0.4",
        "--attenuation", "blood=0.2", "--output", "m.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "convex program" in done.err
    plain = deniable("inspect", "m.json", "--covariance", "age,sex", "--json").json
    assert plain["covariance"]["share"] == pytest.approx(0.4)
    assert plain["covariance"]["spurious"] == 0
    assert plain["attributes"][2]["lambda"] == 0.2


def test_the_screen_shows_strength_and_lambda_beside_epsilon(deniable, people):
    out = deniable("design", "--schema", "people.toml", "--attenuation", "0.5").out
    assert "strength" in out.splitlines()[0]
    assert "λ" in out
    assert "ε does" in out


def test_a_joint_law_comes_with_a_warning_about_raw_cross_tables(deniable, people):
    deniable("design", "--schema", "people.toml", "--method", "joint", "--epsilon", "3",
             "--output", "m.json")  # fmt: skip
    refused(deniable("inspect", "m.json", "--covariance", "sex"), "two attributes")
    done = deniable("inspect", "m.json", "--covariance", "sex,age")
    assert "WARNING" in done.out
    assert deniable("inspect", "m.json", "--covariance", "sex,age", "--json").json["covariance"][
        "spurious"
    ] > 0  # fmt: skip


@pytest.mark.parametrize("target", slow_after(1, ["table", "population"]))
def test_the_whole_protocol_on_the_shipped_example(deniable, tmp_path, target):
    done = deniable(
        "share", EXAMPLES / "insurance.csv", "--schema", EXAMPLES / "insurance.toml",
        "--method", "lambda", "--preserve", "hours:husband_income=0.4", "--strength", "0.3",
        "--output", "release",
    )  # fmt: skip
    assert done.status == 0, done.err
    report = (tmp_path / "release" / "report.html").read_text()
    assert "Strength" in report
    assert "λ-randomization" in report
    plain = deniable(
        "estimate", "covariance", "release", "--of", "hhi,whi", "--scores", "0,1;0,1",
        "--target", target, "--json",
    ).json  # fmt: skip
    with (EXAMPLES / "insurance.csv").open() as file:
        rows = [(r["hhi"] == "yes", r["whi"] == "yes") for r in csv.DictReader(file)]
    n = len(rows)
    means = [sum(r[i] for r in rows) / n for i in (0, 1)]
    true = sum(a and b for a, b in rows) / n - means[0] * means[1]
    # Seven standard errors: fails by chance less than once in ten billion runs.
    assert abs(plain["estimate"] - true) < 7 * plain["standard_error"]
    assert deniable("estimate", "covariance", "release", "--of", "hours,husband_income").out


@pytest.mark.slow
def test_a_whole_table_is_randomized_in_every_mode_and_estimated_from(deniable, kept):
    (kept / "strata.json").write_text('{"f": {"attenuation": 0.4}}')
    modes = {
        "plain": [],
        "invariant": ["--invariant", "--alpha", "0.8"],
        "strata": ["--by", "sex", "--per-stratum", "strata.json"],
        "both": ["--by", "sex", "--invariant", "--numeric", "age=0.9"],
    }
    for name, mode in modes.items():
        done = deniable(
            *PRAM, "--attenuation", "0.6", *mode, "--drop-other-columns", "--output", name
        )
        assert done.status == 0, done.err
        assert deniable("inspect", name).out.splitlines()[-1].startswith("Verified")
        assert deniable("inspect", name, "--json", "--subset", "blood").json["verified"] is True
        plain = deniable("estimate", name, "--of", "blood", "--json").json
        assert plain["n"] == 5
        record = json.loads((kept / name / "record.json").read_text())
        for one in record["guarantee"]["instead"]:
            assert ", ".join(one["columns"]) in done.out
    assert "no differential-privacy guarantee" in done.out
    assert "0.9" not in record["command"]
    assert "--numeric 'age=?'" in record["command"]
    strata = deniable("inspect", "strata", "--json").json
    assert [part["attributes"][0]["lambda"] for part in strata["strata"]] == [0.4, 0.6]


def test_a_release_of_strata_is_inspected_stratum_by_stratum(deniable, kept):
    (kept / "people.toml").write_text(
        (kept / "people.toml").read_text() + '[[attribute]]\nname = "age"\nbins = [0, 30, 120]\n'
    )
    deniable(*PRAM, "--attenuation", "0.6", "--by", "sex", "--output", "r")
    done = deniable("inspect", "r", "--subset", "blood", "--covariance", "blood,age")
    assert done.out.count("Stratum sex = ") == 2
    assert done.out.count("0.36 is left") == 2
    parts = deniable("inspect", "r", "--covariance", "blood,age", "--json").json["strata"]
    assert [part["covariance"]["share"] for part in parts] == pytest.approx([0.36, 0.36])


def test_a_mechanism_made_for_one_table_randomizes_no_other(deniable, kept):
    common = [*PRAM, "--attenuation", "0.6", "--drop-other-columns", "--invariant"]
    deniable(*common, "--output", "whole")
    deniable(*common, "--by", "sex", "--output", "strata")
    for name in ("whole", "strata"):
        refused(
            deniable("randomize", "people.csv", "--mechanism", name, "--drop-other-columns"),
            "table",
        )


def test_a_matrix_stands_beside_lambda(deniable, people):
    (people / "age.json").write_text(CYCLE)
    plain = design(deniable, "--attenuation", "0.5", "--matrix", "age=age.json")
    assert [a["lambda"] for a in plain["attributes"]] == [0.5, None, 0.5]
    assert all(0 < a["strength"] < 1 for a in plain["attributes"])
    assert plain["strength"] is not None


def test_no_path_is_left_in_the_recorded_command(deniable, kept):
    (kept / "blood.json").write_text("[[0.6,0.1,0.1,0.1,0.1],[0.1,0.6,0.1,0.1,0.1],"
                                     "[0.1,0.1,0.6,0.1,0.1],[0.1,0.1,0.1,0.6,0.1],"
                                     "[0.1,0.1,0.1,0.1,0.6]]")  # fmt: skip
    (kept / "strata.json").write_text('{"f": {"attenuation": 0.4}}')
    done = deniable(
        "pram", kept / "people.csv", "--schema", kept / "people.toml", "--drop-other-columns",
        "--matrix", f"blood={kept / 'blood.json'}", "--by", "sex",
        "--per-stratum", kept / "strata.json", "--output", kept / "r", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert str(kept) not in (kept / "r" / "record.json").read_text()
    assert "--matrix blood=blood.json" in done.json["command"]
