"""model, and what estimate does with known shares and small groups, as a user types them."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from unit.models.cases import people

SCHEMA = """
keep = ["town", "hours", "weight"]
[[attribute]]
name = "y"
categories = ["no", "yes"]
[[attribute]]
name = "a"
categories = ["p", "q", "r"]
[[attribute]]
name = "b"
categories = ["f", "m"]
"""


MODEL = ("estimate", "model")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of the release and its table, once a test has made them."""
    return tmp_path_factory.mktemp("shelf") / "made"


@pytest.fixture
def release(tmp_path: Path, deniable: Any, shelf: Path) -> str:
    if shelf.exists():
        copytree(shelf, tmp_path, dirs_exist_ok=True)
        return "release"
    people(2000).to_pandas().to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "census.csv").write_text("b,share\nf,0.5\nm,0.5\n")
    done = deniable(
        *("share", "table.csv", "--schema", "schema.toml", "--epsilon", 6),
        *("--output", "release", "--insecure-seed", 7),
    )
    assert done.status == 0, done.err
    copytree(tmp_path, shelf)
    return "release"


def test_rows_and_people_are_left_out_and_said(release: str, deniable: Any, tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_text(SCHEMA.replace('"r"]', '"r"]\nmissing = "category:NA"'))
    table = (tmp_path / "table.csv").read_text().splitlines()
    place = table[0].split(",").index("hours")
    cells = table[1].split(",")
    cells[place] = ""
    for name, value in (("weight", "2.0"), ("town", "A")):
        cells[table[0].split(",").index(name)] = value
    (tmp_path / "gaps.csv").write_text("\n".join([table[0], ",".join(cells), *table[2:]]) + "\n")
    done = deniable(
        *("share", "gaps.csv", "--schema", "answers.toml", "--epsilon", 6, "--output", "gaps"),
    )
    assert done.status == 0, done.err
    question = ("--where", "weight>=1", "--where", "town=A|B", "--answered")
    done = deniable(*MODEL, "gaps", "hours ~ a + b", *question)
    assert done.status == 0, done.err
    assert "Only rows where weight >= 1 and town = A or B." in done.out
    assert (
        "Left out: 1 row where 'hours' is empty. Only respondents with an answer to a." in done.out
    )
    plain = json.loads(deniable(*MODEL, "gaps", "y ~ a", *question, "--json").out)
    assert (plain["where"], plain["answered"]) == (["weight >= 1", "town = A or B"], ["a"])
    shares = deniable("estimate", "gaps", "--of", "a,y", "--weights", "hours", "--answered")
    assert shares.status == 0, shares.err
    assert (
        "Left out: 1 row where 'hours' is empty. Only respondents with an answer to a."
        in shares.out
    )
    test = deniable("estimate", "independence", "gaps", "--of", "a,y", "--answered")
    assert (test.status, "Only respondents with an answer to a." in test.out) == (0, True), test.err
    test = deniable("estimate", "independence", "gaps", "--of", "a,town", "--answered", "--json")
    assert (test.status, test.json["degrees_of_freedom"]) == (0, 4), test.err
    refused = deniable("estimate", "trend", "gaps", "--of", "a", "--status", "y", "--answered")
    assert (refused.status, "Unknown option: --answered" in refused.err) == (2, True)
    refused = deniable("estimate", "gaps", "--of", "y", "--where", "a=p")
    assert (refused.status, "rows cannot be selected by 'a'" in refused.err) == (2, True)
    refused = deniable("estimate", "gaps", "--of", "y", "--where", "town=Z")
    assert (refused.status, "no row has the value 'Z' in 'town'" in refused.err) == (2, True)


def test_a_model_is_printed_written_and_drawn(release: str, deniable: Any, tmp_path: Path) -> None:
    done = deniable(
        *(*MODEL, release, "y ~ a + b", "--collapse", "a=p|*", "--against", "y ~ b"),
        *("--output", "m.csv", "--plot", "m.svg"),
    )
    assert done.status == 0, done.err
    assert "Logistic model y ~ a + b: 2,000 rows" in done.out
    assert "a[T.other]" in done.out
    assert "Wald test against y ~ b" in done.out
    first = (tmp_path / "m.csv").read_text().splitlines()[0]
    assert first.startswith('"term","estimate","std_error","statistic","p_value","low","high"')
    assert "<svg" in (tmp_path / "m.svg").read_text()
    again = deniable(*MODEL, release, "y ~ a + b", "--output", "m.csv", "--odds-ratios")
    assert again.status == 2
    forced = deniable(*MODEL, release, "y ~ a", "--output", "m.csv", "--odds-ratios", "--force")
    assert forced.status == 0, forced.err
    assert "odds ratio" in forced.out


@pytest.mark.slow
def test_predictions_groups_weights_priors_and_margins_are_options(
    release: str, deniable: Any
) -> None:
    done = deniable(*MODEL, release, "y ~ b", "--predict", "--prior", "--anyway", "--show-values")
    assert done.status == 0, done.err
    assert len([line for line in done.out.splitlines() if " yes " in line]) == 2
    plain = deniable(
        *(
            "estimate",
            "model",
            release,
            "~ y*b",
            "--by",
            "town",
            "--weights",
            "weight",
            "--no-prior",
        ),
        *("--known", "census.csv", "--level", 0.9, "--json"),
    )
    assert plain.status == 0, plain.err
    groups = plain.json["groups"]
    assert [group["group"] for group in groups] == [{"town": t} for t in "ABC"]
    assert groups[0]["prior"] is None
    assert groups[0]["known"] == ["b"]
    assert sum(p["estimate"] for p in groups[0]["predictions"] if p["b"] == "f") == (
        pytest.approx(0.5, abs=1e-6)
    )
    numbers = deniable(*MODEL, release, "hours ~ a + b", "--where", "town=A")
    assert numbers.status == 0, numbers.err
    assert "Linear model hours ~ a + b, where town = A" in numbers.out


@pytest.mark.slow
def test_numbers_and_clusters_make_a_model_by_row(release: str, deniable: Any) -> None:
    survey = ("--cluster", "weight", "--strata", "town", "--weights", "weight")
    done = deniable(*MODEL, release, "y ~ hours + b", *survey, "--json")
    assert done.status == 0, done.err
    assert (done.json["prior"], done.json["dropped"]) == (None, [])
    done = deniable(
        *MODEL, release, "a ~ hours", "--ordered", "--errors", "robust", "--odds-ratios"
    )
    assert done.status == 0, done.err
    assert "Proportional odds model a ~ hours: 2,000 rows" in done.out
    refused = deniable(*MODEL, release, "~ a*b", "--errors", "scores")
    assert (refused.status, "--errors needs a model by row" in refused.err) == (2, True)


def test_a_formula_of_one_attribute_is_fitted(release: str, deniable: Any) -> None:
    done = deniable(*MODEL, release, "~ a")  # failed before: a traceback
    assert done.status == 0, done.err
    assert "Likelihood ratio test without a" in done.out
    both = deniable(*MODEL, release, "y ~ a*b")
    assert "test without a (and a:b, which contains it)" in both.out


def test_counts_need_no_release(release: str, deniable: Any, tmp_path: Path) -> None:
    import pandas

    rows = pandas.read_csv(tmp_path / "release" / "data.csv")
    rows.groupby(["y", "a", "b"]).size().reset_index(name="count").to_csv(
        tmp_path / "c.csv", index=False
    )
    counted = deniable(*MODEL, "y ~ a + b", "--mechanism", "release", "--counts", "c.csv", "--json")
    assert counted.status == 0, counted.err
    whole = deniable(*MODEL, release, "y ~ a + b", "--json")
    assert counted.json["coefficients"] == whole.json["coefficients"]


def test_estimate_holds_known_shares_and_smooths_small_groups(release: str, deniable: Any) -> None:
    held = deniable("estimate", release, "--of", "y,b", "--known", "census.csv", "--json")
    assert held.status == 0, held.err
    of = {tuple(cell["values"]): cell["estimate"] for cell in held.json["cells"]}
    assert of["no", "f"] + of["yes", "f"] == pytest.approx(0.5, abs=1e-12)
    smooth = deniable("estimate", "smooth", release, "--of", "y,a,b")
    assert smooth.status == 0, smooth.err
    assert "Shares of y, a, b by the model of all pairs" in smooth.out
    assert "All pairs against the saturated model" in smooth.out
    assert "unbiased" in smooth.out
    wide = deniable("estimate", "smooth", release, "--of", "y,a,b", "--wide", "--output", "w.csv")
    assert wide.status == 0, wide.err
    assert Path("w.csv").read_text().startswith('"y","a","b=f","b=m","n"')


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((*MODEL, "release"), "name a release and a formula"),
        (
            (*MODEL, "release", "y ~ a +"),
            "formula 'y ~ a +': expected a column at its end",
        ),
        ((*MODEL, "release", "y ~ foo(a)"), "'foo' is not a function of formulas"),
        (
            (*MODEL, "release", "y ~ log(a)"),
            "log(a) cannot be computed: 'a' has categories",
        ),
        (
            (*MODEL, "release", "y ~ `aa`"),
            "formula 'y ~ `aa`': there is no attribute 'aa'",
        ),
        ((*MODEL, "release", "y ~ 0"), "'y ~ 0' has no terms"),
        (
            (*MODEL, "release", "y ~ a", "--odds-ratios", "--predict"),
            "give one of them",
        ),
        (
            (*MODEL, "release", "y ~ a", "--by", "town", "--plot", "x.png"),
            "a plot is of one model",
        ),
        ((*MODEL, "release", "y ~ a", "--plot", "x.pdf"), "ending in .png or .svg"),
        (("estimate", "smooth", "release", "--of", "y,a"), "for three attributes or more"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: tuple[str, ...], what: str, release: str, deniable: Any
) -> None:
    done = deniable(*words)
    assert done.status == 2
    assert what in done.err
    assert len(done.err.strip().splitlines()) == 1
