"""Columns merged into one attribute as a user runs them: from a frontier to estimates of a part."""

import csv
import json
from collections import Counter
from html import unescape
from itertools import product
from shutil import copytree

import pytest

from cli.test_bad_input import refused
from marked import slow_after

AGES, SEXES, TOWNS = ("young", "old"), ("f", "m", "x"), ("n", "s")
SCHEMA = """
[[attribute]]
name = "age"
categories = ["young", "old"]
[[attribute]]
name = "town"
categories = ["n", "s"]
[[attribute]]
name = "sex"
categories = ["f", "m", "x"]
labels = { f = "woman" }
"""
MERGED = """
[[attribute]]
name = "town"
categories = ["n", "s"]
[[attribute]]
name = "age+sex"
epsilon = 2.0
[[attribute.part]]
name = "age"
categories = ["young", "old"]
[[attribute.part]]
name = "sex"
categories = ["f", "m", "x"]
"""
SHARES = dict(zip(product(AGES, SEXES), (0.25, 0.2, 0.05, 0.15, 0.25, 0.1), strict=True))
ROWS = [
    (age, TOWNS[i % 3 // 2], sex)
    for (age, sex), share in SHARES.items()
    for i in range(round(3000 * share))
]


@pytest.fixture
def place(tmp_path):
    lines = "".join(",".join(row) + "\n" for row in ROWS)
    (tmp_path / "t.csv").write_text("age,town,sex\n" + lines)
    (tmp_path / "two.csv").write_text(
        "sex,age\n" + "".join(f"{sex},{age}\n" for age, _, sex in ROWS)
    )
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "merged.toml").write_text(MERGED)
    return tmp_path


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Where the frontier is kept between tests, once one has traced it."""
    return tmp_path_factory.mktemp("shelf") / "f"


@pytest.fixture
def traced(deniable, place, shelf, no_plot):
    if shelf.exists():
        copytree(shelf, place / "f")
        return place
    done = deniable(
        "frontier", "--column", "t.csv:age,sex", "--schema", "s.toml", "--privacy", "0.4,0.5",
        "--delta", "0.8", "--methods", "warner,square,bound", "--starts", "3", "--output", "f",
    )  # fmt: skip
    assert done.status == 0, done.err
    copytree(place / "f", shelf)
    return place


def picked(deniable, method):
    done = deniable(
        "frontier", "pick", "f", "--privacy", "0.4", "--method", method, "--output", "m.json",
        "--force",
    )  # fmt: skip
    assert done.status == 0, done.err
    return done


def shares_of(*names):
    columns = {"age": 0, "sex": 1, "town": 2}
    counted = Counter()
    for age, town, sex in ROWS:
        values = (age, sex, town)
        counted[tuple(values[columns[name]] for name in names)] += 1
    return {key: count / len(ROWS) for key, count in counted.items()}


def cells(result):
    return {tuple(cell["values"]): cell for cell in result["cells"]}


@pytest.mark.parametrize("method", slow_after(1, ["square", "bound", "warner"]))
def test_from_a_frontier_of_two_columns_to_estimates_of_either(deniable, traced, method):
    text = picked(deniable, method).out
    assert "'age+sex' merges the columns age and sex, randomized as one value" in text
    plain = json.loads((traced / "m.json").read_text())
    (whole,) = plain["schema"]["attribute"]
    assert whole["name"] == "age+sex"
    assert [part["name"] for part in whole["part"]] == ["age", "sex"]
    done = deniable(
        "randomize", "two.csv", "--mechanism", "m.json", "--output", "r.csv",
        "--insecure-seed", "7",
    )  # fmt: skip
    assert done.status == 0, done.err
    with (traced / "r.csv").open() as file:
        released = list(csv.DictReader(file))
    assert len(released) == len(ROWS)
    if method == "bound":
        assert list(released[0]) == ["age+sex"]
        assert released[0]["age+sex"].startswith("answer ")
    else:
        assert list(released[0]) == ["sex", "age"]
        assert {row["age"] for row in released} == set(AGES)
    for names in (("age",), ("sex",), ("age", "sex"), ("sex", "age")):
        truth = shares_of(*names)
        for way in ("inversion", "em"):
            done = deniable(
                "estimate", "r.csv", "--mechanism", "m.json", "--of", ",".join(names),
                "--method", way, "--json",
            )  # fmt: skip
            assert done.status == 0, done.err
            result = cells(done.json)
            assert set(result) == set(truth)
            for key, share in truth.items():
                assert result[key]["standard_error"] > 0
                assert abs(result[key]["estimate"] - share) < 6 * result[key]["standard_error"]
    whole = cells(
        deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "age+sex", "--json").json
    )
    age = cells(
        deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "age", "--json").json
    )
    for category in AGES:
        added = sum(whole[(f"{category}+{sex}",)]["estimate"] for sex in SEXES)
        assert age[(category,)]["estimate"] == pytest.approx(added)
    within = deniable(
        "estimate", "r.csv", "--mechanism", "m.json", "--of", "age", "--by", "sex", "--json"
    ).json
    joint = cells(
        deniable("estimate", "r.csv", "--mechanism", "m.json", "--of", "age,sex", "--json").json
    )
    for (a, s), cell in cells(within).items():
        size = sum(joint[(other, s)]["estimate"] for other in AGES)
        assert cell["estimate"] == pytest.approx(joint[(a, s)]["estimate"] / size)


@pytest.mark.parametrize("given", slow_after(1, ["age,sex", "age+sex", "sex,age"]))
def test_a_matrix_of_a_combination_replaces_both_attributes_of_a_schema(deniable, traced, given):
    picked(deniable, "bound")
    done = deniable(
        "share", "t.csv", "--schema", "s.toml", "--matrix", f"{given}=m.json",
        "--attribute-epsilon", "town=1", "--method", "kronecker", "--output", "release",
        "--insecure-seed", "3", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    record = done.json
    assert record["release"]["columns"] == ["age+sex", "town"]
    names = [row["name"] for row in record["mechanism"]["attributes"]]
    assert names == ["age+sex", "town"]
    assert record["mechanism"]["attributes"][0]["parts"] == ["age", "sex"]
    assert record["guarantee"]["unprotected"] == ["age+sex"]
    assert any("merges the columns age and sex" in line for line in record["small_print"])
    assert deniable("inspect", "release").status == 0
    result = cells(deniable("estimate", "release", "--of", "sex,town", "--json").json)
    for key, share in shares_of("sex", "town").items():
        assert abs(result[key]["estimate"] - share) < 6 * result[key]["standard_error"]
    with (traced / "release" / "codebook.csv").open() as file:
        book = list(csv.DictReader(file))
    assert {row["attribute"] for row in book} == {"age+sex", "town"}
    assert all("answer 1 to answer" in r["released as"] for r in book if r["attribute"] != "town")
    page = (traced / "release" / "report.html").read_text()
    assert "merged from age, sex" in page
    assert "deniable estimate . --of age,sex" in page
    assert "(not protected)" not in page
    assert "no ε; best guess right for 60" in page
    assert "single columns are easier to guess" in page
    assert "Its parts are no harder to guess." in unescape(page)
    assert "The best guess of 'sex' is right for" in unescape(page)


def test_how_well_a_combination_is_guessed_is_said_once_on_the_screen(deniable, traced):
    picked(deniable, "bound")
    done = deniable(
        "share", "t.csv", "--schema", "s.toml", "--matrix", "age,sex=m.json",
        "--attribute-epsilon", "town=1", "--method", "kronecker", "--output", "release",
        "--insecure-seed", "3",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.out.count("the best guess of the combination") == 1
    assert done.out.count("The best guess of 'sex'") == 1
    inspected = deniable("inspect", "release").out
    assert inspected.count("the best guess of the combination") == 1


def test_what_is_said_of_the_parts_is_checked_when_a_record_is_read(deniable, traced):
    picked(deniable, "bound")
    plain = json.loads((traced / "m.json").read_text())
    guess = plain["attributes"][0]["best_guess"]
    assert [part["name"] for part in guess["parts"]] == ["age", "sex"]
    for part in guess["parts"]:
        assert part["success"] >= guess["success"] - 1e-12
        assert part["given_rest"]["success"] >= part["before"]
    flattered = json.loads(json.dumps(plain))
    flattered["attributes"][0]["best_guess"]["parts"][1]["success"] = 0.5
    (traced / "m.json").write_text(json.dumps(flattered))
    refused(deniable("inspect", "m.json"), "best_guess")
    renamed = json.loads(json.dumps(plain))
    renamed["attributes"][0]["parts"] = ["age", "blood"]
    (traced / "m.json").write_text(json.dumps(renamed))
    refused(deniable("inspect", "m.json"), "parts of 'age+sex'")


@pytest.mark.parametrize("method", slow_after(2, ["kronecker", "balanced", "optimal", "lambda"]))
def test_other_methods_randomize_a_merged_attribute_like_any_other(deniable, place, method):
    words = ["--attenuation", "0.6"] if method == "lambda" else ["--attribute-epsilon", "1,2"]
    schema = MERGED.replace("epsilon = 2.0\n", "")
    (place / "merged.toml").write_text(schema)
    done = deniable(
        "share", "t.csv", "--schema", "merged.toml", *words, "--method", method, "--output",
        "release", "--insecure-seed", "11", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.json["release"]["columns"] == ["age", "town", "sex"]
    assert deniable("inspect", "release").status == 0
    for of in (("age",), ("town", "sex"), ("sex", "town", "age")):
        result = cells(deniable("estimate", "release", "--of", ",".join(of), "--json").json)
        for key, share in shares_of(*of).items():
            assert abs(result[key]["estimate"] - share) < 6 * result[key]["standard_error"]
    tested = deniable("estimate", "independence", "release", "--of", "age,sex", "--json")
    assert tested.status == 0, tested.err
    assert tested.json["p_value"] < 1e-3


@pytest.mark.parametrize("by", [None, "region"])
def test_a_curator_randomizes_a_merged_attribute_too(deniable, place, by):
    lines = "".join(f"{','.join(row)},{'ew'[i % 2]}\n" for i, row in enumerate(ROWS))
    (place / "t.csv").write_text("age,town,sex,region\n" + lines)
    schema = 'keep = ["region"]\n' + MERGED.replace("epsilon = 2.0\n", "")
    (place / "merged.toml").write_text(schema)
    done = deniable(
        "pram", "t.csv", "--schema", "merged.toml", "--attenuation", "0.7", "--invariant",
        "--output", "release", "--insecure-seed", "5", *([] if by is None else ["--by", by]),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert deniable("inspect", "release").status == 0
    result = cells(deniable("estimate", "release", "--of", "sex", "--json").json)
    for key, share in shares_of("sex").items():
        assert abs(result[key]["estimate"] - share) < 6 * result[key]["standard_error"]
    grouped = deniable("estimate", "release", "--of", "age", "--where", "region=e", "--json")
    assert grouped.status == 0, grouped.err
    assert grouped.json["n"] == len(ROWS) / 2


def test_several_files_are_merged_and_named_when_a_point_is_picked(deniable, place, no_plot):
    (place / "a.json").write_text('{"young": 0.5, "old": 0.5}')
    (place / "b.json").write_text('{"f": 0.4, "m": 0.45, "x": 0.15}')
    done = deniable(
        "frontier", "--prior", "a.json", "--prior", "b.json", "--privacy", "0.4", "--methods",
        "warner", "--output", "f",
    )  # fmt: skip
    assert done.status == 0, done.err
    pick = ["frontier", "pick", "f", "--privacy", "0.4", "--output", "m.json", "--force"]
    assert deniable(*pick, "--name", "age,sex").status == 0
    done = deniable("randomize", "two.csv", "--mechanism", "m.json", "--output", "r.csv")
    assert done.status == 0, done.err
    assert deniable(*pick, "--name", "age,sex", "--schema", "s.toml").status == 0
    plain = json.loads((place / "m.json").read_text())
    assert plain["schema"]["attribute"][0]["part"][1]["labels"] == {"f": "woman"}
    refused(deniable(*pick, "--name", "age"), "2 columns merged into one")
    refused(
        deniable(*pick, "--name", "sex,age", "--schema", "s.toml"), "3 categories in the schema"
    )
    refused(deniable(*pick, "--schema", "s.toml"), "--name: give the attribute of the schema")


def test_bad_input_about_parts_is_one_sentence(deniable, traced):
    picked(deniable, "warner")
    deniable("randomize", "two.csv", "--mechanism", "m.json", "--output", "r.csv")
    ask = ["estimate", "r.csv", "--mechanism", "m.json"]
    refused(deniable(*ask, "--of", "age", "--where", "sex=f"), "selected by 'sex'", "randomized")
    refused(deniable(*ask, "--of", "age,age+sex"), "name either the whole or its parts")
    refused(deniable(*ask, "--of", "blood"), "no attribute 'blood'")
    refused(deniable("inspect", "m.json", "--subset", "age"), "name 'age+sex' instead")
    refused(deniable("inspect", "m.json", "--covariance", "age,sex"), "depends on all of its parts")
    refused(
        deniable("randomize", "r.csv", "--mechanism", "m.json", "--output", "r.csv"),
        "is the input table",
    )
    (traced / "one.csv").write_text("age\nyoung\n")
    refused(deniable("randomize", "one.csv", "--mechanism", "m.json"), "no column 'sex'")
    (traced / "odd.csv").write_text("age,sex\nyoung,Rumpelstiltskin\n")
    refused(
        deniable("randomize", "odd.csv", "--mechanism", "m.json", "--output", "o.csv"),
        "row 1, column 'sex'",
    )
    design = ["design", "--schema", "s.toml", "--attribute-epsilon", "1"]
    refused(deniable(*design, "--matrix", "age,town=m.json"), "3 categories of 'town'")
    refused(deniable(*design, "--matrix", "age,blood=m.json"), "no attribute 'blood'")
    refused(
        deniable(*design, "--matrix", "age,sex=m.json", "--matrix", "age+sex=m.json"),
        "given twice",
    )
    with_level = SCHEMA.replace('"old"]', '"old"]\nepsilon = 1.0')
    (traced / "s.toml").write_text(with_level)
    refused(deniable(*design, "--matrix", "age,sex=m.json"), "'age' has both a matrix and")
    (traced / "s.toml").write_text(SCHEMA)
    refused(
        deniable("frontier", "--column", "t.csv:age,sex,town", "--schema", "merged.toml",
                 "--output", "g"),
        "'age' is a part of 'age+sex'",
    )  # fmt: skip
    (traced / "merged.toml").write_text(MERGED.replace("epsilon = 2.0\n", ""))
    refused(
        deniable("share", "t.csv", "--schema", "merged.toml", "--epsilon", "3", "--person", "sex",
                 "--output", "g"),
        "'sex' identifies persons",
    )  # fmt: skip
    refused(
        deniable("pram", "t.csv", "--schema", "merged.toml", "--attenuation", "0.5", "--numeric",
                 "sex=0.5", "--output", "g"),
        "'sex' is an attribute of the schema",
    )  # fmt: skip
    (traced / "merged.toml").write_text('keep = ["sex"]\n' + MERGED)
    merged = deniable("design", "--schema", "merged.toml", "--epsilon", "3")
    refused(merged, "'sex' is listed under keep, but")


def test_under_forms_the_parts_are_empty_together_and_estimated(deniable, place):
    (place / "forms.toml").write_text(MERGED.replace("epsilon = 2.0\n", ""))
    words = [
        "--schema",
        "forms.toml",
        "--epsilon",
        "2",
        "--method",
        "forms",
        "--max-questions",
        "1",
    ]
    assert deniable("share", "t.csv", *words, "--output", "f").status == 0
    with (place / "f" / "data.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    age, sex = header.index("age"), header.index("sex")
    assert {(row[age] == "", row[sex] == "") for row in rows} == {(True, True), (False, False)}
    for (age_of,), cell in cells(deniable("estimate", "f", "--of", "age", "--json").json).items():
        truth = shares_of("age")[(age_of,)]
        assert abs(cell["estimate"] - truth) < 7 * cell["standard_error"]
    torn = next(number for number, row in enumerate(rows) if row[age])
    rows[torn][age] = ""
    with (place / "torn.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    refused(
        deniable("estimate", "torn.csv", "--mechanism", "f", "--of", "age,sex"),
        f"data row {torn + 1}: a part of 'age+sex' is empty and another is not",
    )
