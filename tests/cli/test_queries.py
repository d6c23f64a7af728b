"""deniable estimate QUERY: every query takes the options of its fields and those common to all."""

from pathlib import Path
from typing import Any

import pandas
import pytest

import deniable as package
from deniable.cli.queries import QUERIES, estimate_app

SCHEMA = """
keep = ["town", "weight"]
[[attribute]]
names = ["a", "b", "c"]
categories = ["0", "1"]
ordered = true
scores = [0, 1]
[[attribute]]
name = "d"
ordered = true
categories = ["0", "1", "2"]
missing = "category:NA"
scores = [0, 1, 2, 1]
[[attribute]]
name = "e"
range = [0, 9]
grid = 4
"""

WORDS: dict[str, tuple[str, ...]] = {
    "mean": ("--of", "d", "--target", "population", "--scores", "0,2,3,9", "--answered", "--total"),
    "quantile": ("--of", "d", "--q", "0.3,0.5", "--target", "table", "--answered"),
    "distribution": ("--of", "e", "--at", "2,5.5", "--target", "population"),
    "deviation": ("--of", "e", "--target", "population", "--scores", "0,3,6,9"),
    "correlation": ("--of", "a,d,e", "--target", "population"),
    "covariance": ("--of", "a,d", "--scores", "0,1;", "--target", "population", "--answered"),
    "compare": (
        *("--of", "a", "--column", "b", "--values", "1,0", "--mean", "--scores", "0,1"),
        *("--target", "table"),
    ),
    "smooth": ("--of", "a,b,c", "--known", "known.csv"),
    "independence": ("--of", "a,d", "--answered"),
    "trend": ("--of", "a,b", "--status", "c", "--compare", "0,1", "--scores", "0,1"),
    "agreement": ("--of", "a,b"),
    "leverage": ("--of", "a", "--of", "b", "--target", "table"),
    "honesty": (),
    "model": ("a ~ b + d", "--collapse", "d=0|*", "--against", "a ~ b", "--prior", "--answered"),
}
COMMON = ("--where", "weight>=1", "--level", "0.9", "--randomized", "--anyway", "--show-values")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 999 rows by independent responses, and one by forms."""
    made = tmp_path_factory.mktemp("queries")
    lines = [
        f"{i % 2},{i % 3 % 2},{i % 5 % 2},{i % 3},{i % 10},{'AB'[i % 7 % 2]},2" for i in range(900)
    ]
    text = "\n".join(["a,b,c,d,e,town,weight", *lines, *["1,0,1,NA,4,A,1"] * 99]) + "\n"
    (made / "t.csv").write_text(text)
    (made / "s.toml").write_text(SCHEMA)
    (made / "known.csv").write_text("a,share\n0,0.45\n1,0.55\n")
    for method, epsilon in (("kronecker", 24), ("forms", 3)):
        plan = package.design(made / "s.toml", epsilon=epsilon, method=method)
        package.share(made / "t.csv", plan, made / method)
    return made


def test_every_query_has_a_command() -> None:
    assert list(QUERIES)[1:] == [name for name in estimate_app if name[0] != "-"] == list(WORDS)


def test_errors_of_a_survey_are_options_of_shares_means_quantiles_and_the_test(
    folder: Path, deniable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    sample = ("--weights", "weight", "--cluster", "town", "--target", "population")
    refused = deniable("estimate", "kronecker", "--of", "d", "--cluster", "town")
    assert (refused.status, "set --target to population" in refused.err) == (2, True)
    for query in ((), ("mean",), ("deviation",), ("quantile",)):
        found = deniable("estimate", *query, "kronecker", "--of", "d", *sample)
        assert found.status == 0, found.err
    stratified = ("--weights", "weight", "--strata", "town")
    found = deniable("estimate", "independence", "kronecker", "--of", "a,d", *stratified)
    assert found.status == 0, found.err
    assert " F " in found.out


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "model"))
        for name in WORDS
        if name != "honesty"
    ],
)
def test_every_query_takes_its_fields_and_the_common_options(
    query: str, folder: Path, deniable: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    if query != "mean":  # a picture of one query is rendered
        monkeypatch.setattr("deniable.report.method_styles.figure_bytes", lambda *_: b"drawn")
    release = "forms" if query == "agreement" else "kronecker"
    taken = {
        name for one in estimate_app[query].assemble_argument_collection() for name in one.names
    }
    words = ["estimate", query, f"{release}/data.csv", *WORDS[query], *COMMON]
    if query in ("smooth", "independence", "trend", "agreement", "model"):  # of one mechanism
        words += ["--mechanism", release]
    else:
        words += ["--mechanism", f"A={release}", "--mechanism", f"B={release}"]
        words += ["--mechanism-by", "town"]
    words += ["--weights", "weight"] * ("--weights" in taken)
    answer = ("--output", tmp_path / "x.csv")
    done = deniable(*words, *answer, "--by", "town", "--json")
    assert done.status == 0, done.err
    several = ("groups", "summaries", "correlations", "differences", "tables")
    assert any(done.json.get(name) for name in several)
    assert '"level"' in (tmp_path / "x.csv").read_text().splitlines()[0]
    drawn = ("--plot", tmp_path / "x.svg") if "--plot" in taken and query != "quantile" else ()
    if query == "mean":
        assert deniable(*words, *answer, *drawn).status == 2
    done = deniable(*words, *answer, *drawn, "--force")
    assert done.status == 0, done.err
    assert (tmp_path / "x.svg").exists() == bool(drawn)


def test_leverage_and_the_agreement_of_forms_take_counts(
    folder: Path, deniable: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    for query, release, by in (("leverage", "kronecker", []), ("agreement", "forms", ["form"])):
        counted = pandas.read_csv(f"{release}/data.csv", dtype=str).groupby(
            ["a", *by], dropna=False
        )
        counted.size().reset_index(name="count").to_csv(tmp_path / "c.csv", index=False)
        words = ("--mechanism", release, "--counts", tmp_path / "c.csv", "--of", "a", "--json")
        done, whole = (
            deniable("estimate", query, *words),
            deniable("estimate", query, release, *words[4:]),
        )
        assert done.status == 0, done.err
        assert done.json == whole.json
