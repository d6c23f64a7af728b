"""deniable test: a release in, a p-value and a strength out; and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as package
from deniable.estimate.chi_square import chi_square
from deniable.mechanism.channel import Channel
from deniable.statement.record import read_design

SCHEMA = """
keep = ["town"]
[[attribute]]
name = "smokes"
categories = ["no", "yes"]
[[attribute]]
name = "coughs"
categories = ["no", "some", "often"]
"""


TEST = ("estimate", "independence")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """900 people: who smokes coughs more; towns do not matter."""
    random = np.random.default_rng(3)
    smokes = random.random(900) < 0.4
    coughs = random.random(900) < np.where(smokes, 0.6, 0.2)
    often = coughs & (random.random(900) < 0.5)
    rows = ["smokes,coughs,town"]
    for i in range(900):
        level = "often" if often[i] else "some" if coughs[i] else "no"
        rows.append(f"{'yes' if smokes[i] else 'no'},{level},{'north' if i % 3 else 'south'}")
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def release(folder: Path, deniable: Any) -> str:
    done = deniable(
        *("share", "table.csv", "--schema", "schema.toml", "--method", "joint"),
        *("--epsilon", 5, "--output", "release", "--insecure-seed", 7),
    )
    assert done.status == 0, done.err
    return "release"


def test_two_attributes_of_a_release_are_tested(release: str, deniable: Any, folder: Path) -> None:
    done = deniable(*TEST, release, "--of", "smokes,coughs", "--json")
    assert done.status == 0, done.err
    answer = done.json
    assert (answer["n"], answer["degrees_of_freedom"]) == (900, 2)
    assert answer["p_value"] < 1e-6
    assert answer["randomized_together"] is True
    assert answer["cramers_v_low"] < answer["cramers_v"] < answer["cramers_v_high"]
    # The numbers are those of the counts in the file.
    channel = Channel(read_design(folder / "release").mechanism, ("smokes", "coughs"))
    counts = np.zeros((2, 3))
    for line in (folder / "release" / "data.csv").read_text().splitlines()[1:]:
        smokes, coughs, _ = line.split(",")
        counts[["no", "yes"].index(smokes), ["no", "some", "often"].index(coughs)] += 1
    expected = chi_square(counts, channel.forward, channel.inverse)
    assert answer["statistic"] == pytest.approx(expected.statistic, rel=1e-12)


def test_the_screen_says_what_the_numbers_are(release: str, deniable: Any) -> None:
    done = deniable(*TEST, release, "--of", "smokes,coughs")
    assert done.status == 0, done.err
    said = "Independence of smokes and coughs: 900 rows, of the population they were drawn from"
    assert said in done.out
    assert "Cramér's V" in done.out
    assert "randomized together" in done.out


def test_a_p_value_too_small_for_a_float_is_not_shown_as_0(release: str, deniable: Any) -> None:
    rows = [("no", "no", 10**7), ("no", "some", 0), ("no", "often", 0)]
    rows += [("yes", "no", 10), ("yes", "some", 10**7), ("yes", "often", 10**6)]
    lines = ["smokes,coughs,count", *(f"{s},{c},{n}" for s, c, n in rows)]
    Path("many.csv").write_text("\n".join(lines) + "\n")
    words = (*TEST, release, "--counts", "many.csv", "--of", "smokes,coughs", "--anyway")
    assert deniable(*words, "--json").json["p_value"] == 0.0
    assert "below 0.000001" in deniable(*words).out


def test_a_kept_column_is_one_of_the_two_or_forms_groups(release: str, deniable: Any) -> None:
    with_town = deniable(*TEST, release, "--of", "town,coughs", "--json").json
    assert with_town["attributes"] == ["coughs", "town"]
    assert with_town["degrees_of_freedom"] == 2
    assert with_town["p_value"] > 1e-4
    by_town = deniable(*TEST, release, "--of", "smokes,coughs", "--by", "town", "--json").json
    assert [group["group"] for group in by_town["groups"]] == [{"town": "north"}, {"town": "south"}]
    assert sum(group["n"] for group in by_town["groups"]) == 900
    one = deniable(*TEST, release, "--of", "smokes,coughs", "--where", "town=south", "--json").json
    assert one["statistic"] == by_town["groups"][1]["statistic"]


def test_python_says_the_same(release: str, deniable: Any) -> None:
    (result,) = package.open(release).independence("smokes,coughs")
    assert result.to_plain() == deniable(*TEST, release, "--of", "smokes,coughs", "--json").json


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("release", "--of", "smokes"), "name both of them"),
        (("release", "--of", "smokes,coughs,town"), "name both of them"),
        (("release", "--of", "coughs,coughs"), "name both of them"),
        (("release", "--of", "smokes,sneezes"), "there is no attribute 'sneezes'"),
        (("release", "--of", "smokes,town", "--by", "coughs"), "which is randomized"),
        (("release", "--of", "smokes,coughs", "--where", "coughs=no"), "values are randomized"),
        (("release", "--of", "smokes,coughs", "--level", "1.5"), "confidence level"),
        (("release/data.csv", "--of", "smokes,coughs"), "--mechanism"),
        (("nowhere", "--of", "smokes,coughs"), "there is no such file"),
        (("release", "--of", "smokes,town", "--by", "town"), "name it only once"),
    ],
)
def test_bad_questions_end_in_one_sentence(
    release: str, deniable: Any, arguments: tuple[str, ...], problem: str
) -> None:
    done = deniable("estimate", "independence", *arguments)
    assert (done.status, done.out) == (2, "")
    assert problem in done.err
    assert len(done.err.splitlines()) == 1
