"""Whole tables: what is drawn, what the folder says, and what it may depend on."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.design.design import design
from deniable.design.request import StrengthRequest
from deniable.errors import InputError
from deniable.estimate.covariance import Covariance
from deniable.estimate.shares import Shares
from deniable.estimate.source import open_release
from deniable.laws import InvariantChannel, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.randomness import SeededRandomness, SystemRandomness
from deniable.release.curator import (
    Treatment,
    contract_to_mean,
    invariant_design,
    pram,
    randomize_strata,
)
from deniable.release.record import verify
from deniable.release.release import Options
from deniable.schema import Attribute, Schema
from deniable.statement.strata import read_designs

SCHEMA = Schema(
    (
        Attribute("a", ("x", "y"), scores=(0.0, 1.0)),
        Attribute("b", ("1", "2", "3"), scores=(1.0, 2.0, 3.0)),
    ),
    title="Letters",
    keep=("c",),
)
HALF = StrengthRequest(attenuation=0.5)


def rows(n: int = 600, seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    c = random.choice(["n", "s", "w"], size=n, p=[0.5, 0.3, 0.2])
    a = np.where(random.random(n) < np.where(c == "n", 0.7, 0.2), "x", "y")
    b = np.where(a == "x", random.integers(1, 3, n), random.integers(1, 4, n))
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "c": c.tolist(),
        "income": random.gamma(2.0, 10.0, n).round(2).tolist(),
    }


def released(folder: Path, table: dict[str, Any], **how: Any) -> dict[str, Any]:
    treatment = {k: how.pop(k) for k in list(how) if k in Treatment.__dataclass_fields__}
    treatment = {"schema": SCHEMA, "request": HALF, **treatment}
    return pram(
        pa.table(table),
        Treatment(**treatment),
        folder,
        Options(drop_other_columns=True, **how),
        SystemRandomness(),
    )


MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "invariant": {"invariant": True, "alpha": 0.8},
    "strata": {"by": "c", "strata": {"n": StrengthRequest(attenuation=0.8)}},
    "invariant strata": {"by": "c", "invariant": True},
    "numbers": {"numeric": {"income": 0.9}, "by": "c"},
}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@every_mode
def test_a_release_verifies_and_answers(tmp_path: Path, mode: dict[str, Any]) -> None:
    record = released(tmp_path / "r", rows(), **mode)
    verify(tmp_path / "r")
    (found,) = Shares(("a", "b")).run(open_release(tmp_path / "r"))
    assert found.n_records == 600
    assert found.values.sum() == pytest.approx(1)
    groups = Shares(("a",), by=("c",)).run(open_release(tmp_path / "r"))
    assert [g.group for g in groups] == [(("c", "n"),), (("c", "s"),), (("c", "w"),)]
    assert sum(g.n_records for g in groups) == 600
    (selected,) = Shares(("a",), where={"c": "s"}).run(open_release(tmp_path / "r"))
    assert selected.values == pytest.approx(groups[1].values)
    (covariance,) = Covariance(("a", "b")).run(open_release(tmp_path / "r"))
    assert math.isfinite(covariance.standard_error)
    text = (tmp_path / "r" / "report.html").read_text()
    for one in record["guarantee"]["instead"]:
        assert one["statement"].split(":")[0].split("'")[0][:60] in text


@every_mode
def test_an_altered_statement_is_noticed(tmp_path: Path, mode: dict[str, Any]) -> None:
    released(tmp_path / "r", rows(), **mode)
    path = tmp_path / "r" / "record.json"
    record = json.loads(path.read_text())
    for place in (("guarantee", "unprotected"), ("guarantee", "instead"), ("expost", "numeric")):
        edited = json.loads(path.read_text())
        edited[place[0]][place[1]] = ["income2"] if place[1] == "numeric" else ["No"]
        path.write_text(json.dumps(edited))
        with pytest.raises(InputError, match="record"):
            verify(tmp_path / "r")
        path.write_text(json.dumps(record))
    verify(tmp_path / "r")


def test_strata_of_other_names_or_sizes_than_the_rows_have_are_noticed(tmp_path: Path) -> None:
    released(tmp_path / "r", rows(), **MODES["strata"])
    path = tmp_path / "r" / "record.json"
    for key, value in (("stratum", "elsewhere"), ("rows", None)):
        edited = json.loads(path.read_text())
        first, second, *_ = edited["expost"]["strata"]["mechanisms"]
        if value is None:
            first["rows"], second["rows"] = first["rows"] + 1, second["rows"] - 1
        else:
            first[key] = value
        kept = path.read_text()
        path.write_text(json.dumps(edited))
        with pytest.raises(InputError, match=r"strata|expected error"):
            verify(tmp_path / "r")
        path.write_text(kept)


def test_plain_pram_keeps_its_guarantee_and_invariant_pram_has_none(tmp_path: Path) -> None:
    plain = released(tmp_path / "plain", rows())["guarantee"]
    assert plain["epsilon"] == pytest.approx(math.log(3) + math.log(4))
    assert plain["instead"] == []
    invariant = released(tmp_path / "invariant", rows(), invariant=True)["guarantee"]
    assert invariant["epsilon"] is None
    assert invariant["unprotected"] == ["c", "a", "b"]
    (one,) = invariant["instead"]
    assert one["columns"] == ["a", "b"]
    assert "uses the data" in one["statement"]
    known = one["if_frequencies_known"]
    assert known["epsilon"] == pytest.approx(sum(known["attributes"].values()))
    assert 0 < known["attributes"]["a"] <= math.log(3) + 1e-9
    assert "made from the table itself" in invariant["sentence"]


def test_strata_have_the_level_of_the_least_protected_one(tmp_path: Path) -> None:
    record = released(tmp_path / "r", rows(), **MODES["strata"])
    plan = read_designs(tmp_path / "r")
    assert plan.column == "c"
    assert list(plan.designs) == ["n", "s", "w"]
    assert dict(plan.sizes) == {s: rows()["c"].count(s) for s in "nsw"}
    assert record["guarantee"]["epsilon"] == plan.designs["n"].epsilon
    assert "mechanism" not in record
    (one,) = record["guarantee"]["instead"]
    assert one["columns"] == ["c"]
    assert plan.designs["n"].epsilon > plan.designs["s"].epsilon


def test_numbers_are_pulled_to_the_mean_of_their_stratum_and_the_factor_is_kept_back(
    tmp_path: Path,
) -> None:
    table = rows()
    record = released(tmp_path / "r", table, numeric={"income": 0.375}, by="c")
    income, c = np.array(table["income"]), np.array(table["c"])
    out = pq.read_table(tmp_path / "r" / "data.parquet")
    for stratum in "nsw":
        mean = income[c == stratum].mean()
        expected = mean + 0.375 * (income[c == stratum] - mean)
        np.testing.assert_allclose(np.array(out["income"])[c == stratum], expected, rtol=1e-12)
    assert "0.375" not in (tmp_path / "r" / "record.json").read_text()
    assert "0.375" not in (tmp_path / "r" / "report.html").read_text()
    assert record["guarantee"]["unprotected"] == ["c", "income"]
    assert "that agree on c, income" in record["guarantee"]["sentence"]
    assert "pulled towards the mean" in (tmp_path / "r" / "codebook.csv").read_text()


@pytest.mark.parametrize("mode", ["plain", "strata", "numbers"])
def test_beside_the_rows_nothing_depends_on_the_true_values_unless_pram_is_invariant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    import deniable.release.curator as module

    class Fixed:
        def __init__(self, mechanism: Any, source: Any) -> None:
            pass

        def randomize(self, columns: Any) -> Any:
            return [column * 0 for column in columns]

    monkeypatch.setattr(module, "Randomizer", Fixed)
    monkeypatch.setattr(module, "contract_to_mean", lambda values, *_: values * 0)
    table = rows()
    other = {**rows(seed=2), "c": table["c"]}
    for name, content in (("one", table), ("two", other)):
        released(tmp_path / name, content, **MODES[mode])
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_the_record_of_invariant_pram_holds_the_frequencies_and_says_so(tmp_path: Path) -> None:
    table = rows()
    released(tmp_path / "r", table, invariant=True)
    law = read_designs(tmp_path / "r").strata.mechanism_of("").block_of(0)[0].law
    assert isinstance(law, InvariantChannel)
    assert law.counts == (table["a"].count("x"), table["a"].count("y"))
    assert "discloses them" in (tmp_path / "r" / "report.html").read_text()


def test_the_matrix_of_an_attribute_is_the_first_stage(tmp_path: Path) -> None:
    cycle = 0.7 * np.eye(3) + 0.2 * np.roll(np.eye(3), 1, 0) + 0.1 / 3
    request = StrengthRequest(attenuation=0.5, matrices={"b": cycle})
    released(tmp_path / "r", rows(), request=request, invariant=True)
    mechanism = read_designs(tmp_path / "r").strata.mechanism_of("")
    laws = [mechanism.block_of(i)[0].law for i in (0, 1)]
    assert all(isinstance(law, InvariantChannel) for law in laws)
    np.testing.assert_allclose(laws[0].base.matrix(), 0.5 * np.eye(2) + 0.25)  # type: ignore[attr-defined]
    np.testing.assert_allclose(laws[1].base.matrix(), cycle)  # type: ignore[attr-defined]


def test_an_invariant_design_keeps_the_expected_marginals_of_the_table() -> None:
    base = design(SCHEMA, attenuation=0.4)
    codes = [np.array([0, 0, 0, 1]), np.array([2, 1, 1, 1])]
    made = invariant_design(base, codes, 0.7)
    for position, column in enumerate(codes):
        law = made.mechanism.block_of(position)[0].law
        counts = np.bincount(column, minlength=SCHEMA.n_categories[position])
        np.testing.assert_allclose(law.matrix() @ counts, counts, atol=1e-12)  # type: ignore[attr-defined]


def test_missing_values_are_a_stratum(tmp_path: Path) -> None:
    table = rows(30)
    table["c"][:5] = [None] * 3 + [""] * 2
    released(tmp_path / "r", table, by="c")
    plan = read_designs(tmp_path / "r")
    assert plan.column == "c"
    assert plan.sizes[""] == 5
    groups = Shares(("a",), by=("c",)).run(open_release(tmp_path / "r"))
    assert groups[0].n_records == 5


def test_rows_of_a_person_count_and_rows_can_be_shuffled(tmp_path: Path) -> None:
    table = rows(90) | {"who": [f"p{i % 30}" for i in range(90)]}
    record = released(tmp_path / "r", table, person="who", person_epsilon=99.0, shuffle=True)
    assert record["guarantee"]["person"]["most_rows"] == 3
    assert record["release"]["row_order"] == "shuffled"
    assert "who" not in record["release"]["columns"]
    verify(tmp_path / "r")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"by": "d"}, "'d' forms the strata"),
        ({"by": "a"}, "'a' forms the strata"),
        ({"strata": {"n": HALF}}, "need `by`, the column"),
        ({"by": "c", "strata": {"q": HALF}}, "stratum 'q' has no rows; leave it out"),
        (
            {"by": "c", "request": StrengthRequest(), "strata": {"n": HALF}},
            "stratum 's' of the table has no request: set how strongly",
        ),
        ({"request": StrengthRequest()}, "set how strongly"),
        (
            {"by": "c", "strata": {"n": StrengthRequest(attenuation=1.5)}},
            "stratum 'n': .* between 0 and 1",
        ),
        ({"request": StrengthRequest(attenuation=1.5)}, "between 0 and 1"),
        ({"alpha": 0.5}, "needs invariant PRAM"),
        ({"alpha": 0.0, "invariant": True}, "above 0"),
        ({"numeric": {"income": 1.0}}, "'income': λ must lie between 0 and 1"),
        ({"numeric": {"a": 0.5}}, "'a' is an attribute"),
        ({"numeric": {"c": 0.5}}, "'c' is released unchanged"),
        ({"numeric": {"wealth": 0.5}}, "no column 'wealth'"),
        ({"numeric": {"name": 0.5}}, "row 1: column 'name' does not hold a number"),
        ({"numeric": {"hole": 0.5}}, "row 2: column 'hole' does not hold a number"),
        ({"person": "income", "numeric": {"income": 0.5}}, "identifies persons"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    tmp_path: Path, how: dict[str, Any], words: str
) -> None:
    table = rows(20) | {"name": ["secret"] * 20, "hole": [1.0, math.nan] * 10}
    with pytest.raises(InputError, match=words) as caught:
        released(tmp_path / "r", table, **how)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    empty = {name: pa.array([], type=pa.string()) for name in ("a", "b", "c")}
    with pytest.raises(InputError, match="no rows"):
        released(tmp_path / "r", empty)


def test_counts_of_strata_say_which_stratum_they_are_of(tmp_path: Path) -> None:
    released(tmp_path / "r", rows(), by="c")
    (tmp_path / "counts.csv").write_text("a,count\nx,3\ny,4\n")
    with pytest.raises(InputError, match="there is no column 'c'"):
        Shares(("a",)).run(open_release(tmp_path / "r", counts=tmp_path / "counts.csv"))


def test_a_seeded_release_repeats(tmp_path: Path) -> None:
    for name in ("one", "two"):
        pram(
            pa.table({k: v for k, v in rows().items() if k != "income"}),
            Treatment(SCHEMA, HALF, by="c", invariant=True),
            tmp_path / name,
            Options(),
            SeededRandomness(3),
        )
    first, second = ((tmp_path / n / "data.parquet").read_bytes() for n in ("one", "two"))
    assert first == second


def test_each_stratum_is_randomized_by_its_own_matrix_and_rows_stay_in_place() -> None:
    count = 30_000
    strata = np.arange(count) % 3
    columns = [
        (np.arange(count) // 3 % 2).astype(np.uint8),
        (np.arange(count) % 5).astype(np.uint8),
    ]
    laws = [ProductLaw.from_levels((2, 5), (level, 1.0)) for level in (0.1, 1, 4)]
    schema = Schema.anonymous((2, 5))
    mechanisms = [Mechanism(schema, (Block((0, 1), law),)) for law in laws]
    drawn = randomize_strata(columns, strata, mechanisms, SeededRandomness(4))
    assert [d.shape for d in drawn] == [(count,), (count,)]
    for i, law in enumerate(laws):
        kept = (drawn[0] == columns[0])[strata == i].mean()
        expected = law.keep_probabilities()[0]
        assert abs(kept - expected) < 5 * np.sqrt(expected * (1 - expected) * 3 / count)


def test_invariance_holds_within_each_stratum() -> None:
    random = np.random.default_rng(9)
    strata = random.integers(0, 2, size=4000)
    codes = np.where(strata == 0, random.integers(0, 2, 4000), 2).astype(np.uint8)
    base = design(Schema.anonymous((3,)), attenuation=0.4)
    made = [invariant_design(base, [codes[strata == i]]).mechanism for i in (0, 1)]
    (drawn,) = randomize_strata([codes], strata, made, SeededRandomness(1))
    assert set(drawn[strata == 0].tolist()) == {0, 1}
    assert set(drawn[strata == 1].tolist()) == {2}


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(values, st.floats(0.01, 0.99))
def test_a_contracted_column_is_the_papers_matrix_times_the_values(
    column: list[float], attenuation: float
) -> None:
    x = np.array(column)
    n = len(x)
    matrix = attenuation * np.eye(n) + (1 - attenuation) / n
    scale = max(1.0, float(np.abs(x).max()))
    np.testing.assert_allclose(contract_to_mean(x, attenuation), matrix @ x, atol=1e-12 * scale)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_or_infinite_number_is_named_by_its_row_and_not_shown(bad: float) -> None:
    with pytest.raises(InputError, match="row 2 of a numerical attribute"):
        contract_to_mean(np.array([1.0, bad, 3.0]), 0.5)


def test_no_rows_and_a_lambda_that_is_none_are_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        contract_to_mean(np.array([]), 0.5)
    for attenuation in (0.0, 1.0, np.nan):
        with pytest.raises(InputError, match="λ"):
            contract_to_mean(np.array([1.0]), attenuation)
