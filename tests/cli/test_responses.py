"""Randomized response designs by name, matrices by themselves, and tables randomized by others."""

import json

import pytest

import deniable as package
from cli.test_bad_input import refused

SURVEY = """keep = ["sex"]
[[attribute]]
name = "contact"
categories = ["no", "yes"]
"""


@pytest.fixture
def survey(tmp_path):
    (tmp_path / "s.toml").write_text(SURVEY)
    rows = ["contact,sex", *["yes,f"] * 30, *["no,f"] * 70, *["yes,m"] * 40, *["no,m"] * 60]
    (tmp_path / "answers.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_a_matrix_by_itself_is_a_design(deniable, tmp_path):
    (tmp_path / "own.json").write_text("[[0.8,0.1,0.1],[0.05,0.9,0.05],[0.05,0.15,0.8]]")
    own = ("design", "--categories", "3", "--matrix", "a1=own.json")
    done = deniable(*own)
    assert done.out.startswith("Method matrix: ε of the whole record 2.77259 nats\n")
    assert "a1: a matrix of its own; it is not bistochastic and has neither" in done.out
    assert "of the best mechanism with the same ε 0.32, so that the matrix needs 1.23" in done.out
    refused(deniable(*own, "--epsilon", "2"), "has a response matrix", "leave out --epsilon")
    (tmp_path / "flat.json").write_text("[[0.5,0.5],[0.5,0.5]]")
    refused(
        deniable("design", "--categories", "2", "--matrix", "a1=flat.json"),
        "singular (rank 1, below its 2 categories)",
    )


def test_a_response_is_declared_by_an_option_or_the_schema(deniable, survey):
    by_option = deniable(
        "design", "--schema", "s.toml", "--response", "contact=forced:2/3,1/6,1/6", "--json"
    )
    (survey / "named.toml").write_text(SURVEY + 'response = "forced:2/3,1/6,1/6"\n')
    by_schema = deniable("design", "--schema", "named.toml", "--json")
    assert by_option.json == by_schema.json
    assert by_schema.json["method"] == "forced"
    (contact,) = by_schema.json["attributes"]
    assert contact["response"] == "forced:2/3,1/6,1/6"
    assert contact["epsilon"] == pytest.approx(1.6094379124341003, abs=1e-12)
    assert by_schema.json["matrices"][0]["times"] == pytest.approx(1)
    assert "forced:2/3,1/6,1/6 (Boruch 1971)" in deniable("design", "--schema", "named.toml").out
    done = deniable(
        "share", "answers.csv", "--schema", "s.toml", "--response", "contact=warner:0.7",
        "--output", "release",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "warner, a randomized response design" in (survey / "release/report.html").read_text()


@pytest.mark.parametrize(
    ("response", "answers"),
    [
        ("forced:2/3,1/6,1/6", ()),
        ("crosswise:1/4", ("B", "A")),
        ("triangular:1/4", ("circle", "triangle")),
        ("kuk:0.8,0.2,2", ()),
        ("unrelated:0.7,0.25", ()),
    ],
)
def test_a_table_of_others_is_estimated_from(deniable, survey, response, answers):
    schema = package.Schema.from_toml(survey / "s.toml")
    (contact,) = schema.attributes
    texts = answers or {"kuk": ("0", "2")}.get(response[:3], contact.categories)
    table = (survey / "answers.csv").read_text()
    table = table.replace("no,", f"{texts[0]},").replace("yes,", f"{texts[1]},")
    (survey / "answers.csv").write_text(table)
    extra = f"answers = {json.dumps(answers)}\n" if answers else ""
    (survey / "s.toml").write_text(SURVEY + f'response = "{response}"\n{extra}')
    assert deniable("design", "--schema", "s.toml", "--output", "d.json").status == 0
    words = ("answers.csv", "--mechanism", "d.json", "--randomized", "--json")
    cells = deniable("estimate", *words, "--of", "contact").json["cells"]
    # 65 % of the answers are the first, 35 % the last.
    m = package.Attribute("x", ("no", "yes"), response=response).response_matrix
    if len(m) == 2:
        share = (0.35 - float(m[1][0])) / float(m[1][1] - m[1][0])
        assert cells[1]["estimate"] == pytest.approx(share)
    assert cells[0]["estimate"] + cells[1]["estimate"] == pytest.approx(1)
    if response.startswith("crosswise"):
        fitted = deniable("estimate", "model", words[0], "contact ~ sex", *words[1:])
        assert fitted.status == 0, fitted.err
        share = ("share", "answers.csv", "--mechanism", "d.json", "--output", "r")
        refused(deniable(*share), "not one of the declared categories")


def test_a_row_without_an_answer_is_left_out_and_counted(deniable, survey):
    (survey / "s.toml").write_text(SURVEY + 'response = "forced:2/3,1/6,1/6"\n')
    assert deniable("design", "--schema", "s.toml", "--output", "d.json").status == 0
    full = (survey / "answers.csv").read_text()
    words = ("answers.csv", "--mechanism", "d.json", "--randomized")
    queries = (("--of", "contact"), ("--of", "contact", "--by", "sex"))
    before = [deniable("estimate", *words, *query, "--json").json for query in queries]
    (survey / "answers.csv").write_text(full + ",f\n" * 3)
    for query, expected in zip(queries, before, strict=True):
        found = deniable("estimate", *words, *query, "--json").json
        assert found.pop("left_out") == [{"column": "contact", "rows": 3}]
        assert found == expected
    out = deniable("estimate", *words, "--of", "contact").out
    assert "Left out: 3 rows where 'contact' is empty." in out
    fitted = deniable("estimate", "model", words[0], "contact ~ sex", *words[1:], "--json").json
    assert fitted["left_out"] == [{"column": "contact", "rows": 3}]
    assert deniable("share", "answers.csv", "--schema", "s.toml", "--output", "r").status == 2
    (survey / "answers.csv").write_text(full)
    assert deniable("share", "answers.csv", "--schema", "s.toml", "--output", "r").status == 0
    (survey / "r/data.csv").write_text((survey / "r/data.csv").read_text() + ",f\n")
    refused(deniable("estimate", "r", "--of", "contact"), "SHA-256")


def test_honesty_is_tested_between_groups_with_different_designs(deniable, survey):
    (survey / "s.toml").write_text(SURVEY.replace("sex", "card"))
    for value, response in (("A", "warner:0.75"), ("B", "warner:0.25")):
        words = ("design", "--schema", "s.toml", "--response", f"contact={response}")
        assert deniable(*words, "--output", f"{value}.json").status == 0
    rows = ["yes,A"] * 350 + ["no,A"] * 650 + ["yes,B"] * 550 + ["no,B"] * 450
    (survey / "t.csv").write_text("\n".join(["contact,card", *rows]) + "\n")
    groups = ("--mechanism", "A=A.json", "--mechanism", "B=B.json", "--mechanism-by", "card")
    honesty = ("estimate", "honesty", "t.csv", "--of", "contact", *groups, "--randomized")
    shown = deniable(*honesty, "--evasive", "no", "--output", "x.csv", "--level", "0.9")
    assert shown.status == 0, shown.err
    assert "10.00 %" in shown.out
    assert "if they all answer 'no'" in shown.out
    plain = deniable(*honesty, "--json").json
    assert plain["estimate"] == pytest.approx(0.1)
    assert plain["p_value"] < 1e-5
    assert "p_value" in (survey / "x.csv").read_text().splitlines()[0]
    # Other queries take the groups, too.
    shares = deniable("estimate", "t.csv", "--of", "contact", *groups, "--randomized", "--json")
    assert shares.json["n"] == 2000
    copies = deniable("synthesize", "t.csv", "--randomized", *groups, "--output", "copies")
    refused(copies, "at least two attributes")
    refused(deniable(*honesty[:5], "--mechanism", "A.json"), "all rows have one design")
    refused(deniable(*honesty[:5], *groups[:4]), "give --mechanism-by too")
    refused(deniable(*honesty[:5], "--mechanism-by", "card"), "needs --mechanism value=file.json")
