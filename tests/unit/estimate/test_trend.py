"""Tests of trend: Cochran and Armitage's without randomization, and right under every law."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import Table
from statsmodels.stats.multitest import multipletests

import deniable
from deniable.errors import InputError
from deniable.estimate.source import open_release
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.estimate.trend import Trend, TrendTests
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema
from marked import slow_after
from unit.dense import anonymous, dense_channel, random_matrix, random_table
from unit.estimate import releases
from unit.mechanism import merged
from unit.mechanism.test_published import ONE

SNP = Attribute("rs1", ("0", "1", "2"), scores=(0, 1, 2))
STATUS = Attribute("status", ("control", "case"))


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same release every time."""
    monkeypatch.setattr("deniable.api.SystemRandomness", lambda: SeededRandomness(1))


def armitage(table: NDArray[Any], scores: NDArray[Any]) -> float:
    """z of cases (the second column) against controls."""
    found = Table(table, shift_zeros=False).test_ordinal_association(scores, np.array([0, 1]))
    return float(found.zscore)


def asked(
    table: dict[str, NDArray[Any]], strata: Strata, of: tuple[str, ...] = ("rs1",), **more: Any
) -> TrendTests:
    columns = {name: np.asarray(column).astype(str) for name, column in table.items()}
    (found,) = Trend(of, status=more.pop("status", "status"), **more).run(
        open_release(pa.table(columns), strata)
    )
    return found


def people(n: int = 3000, snps: int = 3) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(5)
    genotypes = random.binomial(2, 0.3, (snps, n))
    cases = random.random(n) < 0.3 + 0.1 * genotypes[0]
    rows: dict[str, NDArray[Any]] = {f"rs{i + 1}": g for i, g in enumerate(genotypes)}
    return rows | {"status": np.where(cases, "case", "control")}


def counted(first: NDArray[Any], second: NDArray[Any], values: tuple[str, ...]) -> NDArray[Any]:
    return np.array(
        [[np.sum((first == v) & (second == s)) for s in ("control", "case")] for v in values]
    )


@pytest.mark.parametrize("declared", [True, False])
def test_without_randomization_it_is_the_test_of_cochran_and_armitage(declared: bool) -> None:
    rows = people()
    other = Attribute("x", ("0", "1"))
    attributes = (SNP, STATUS, other) if declared else (SNP, other)
    schema = Schema(attributes, keep=("rs1", "status"))
    plan = deniable.design(schema, epsilon=1)
    more = {} if declared else {"compare": ("case", "control")}
    found = asked({**rows, "x": 1 * (rows["rs2"] > 0)}, Strata.one(plan.mechanism), **more)
    (test,) = found.tests
    table = counted(rows["rs1"], rows["status"], (0, 1, 2))  # type: ignore[arg-type]
    assert test.z == pytest.approx(armitage(table, np.arange(3)), rel=1e-10)
    genotypes, cases = rows["rs1"], rows["status"] == "case"
    means = [genotypes[cases].mean(), genotypes[~cases].mean()]
    assert found.compared == ("case", "control")
    assert test.difference == pytest.approx(means[0] - means[1], rel=1e-10)
    usual = sum(genotypes[group].var() / group.sum() for group in (cases, ~cases))
    assert test.standard_error == pytest.approx(usual**0.5, rel=1e-10)
    (ranked,) = asked(
        {**rows, "x": 1 * (rows["rs2"] > 0)}, Strata.one(plan.mechanism), top=1, **more
    ).tests
    assert ranked.correlation == pytest.approx(np.corrcoef(genotypes, cases)[0, 1], rel=1e-10)
    assert ranked.probability_of_top == 1.0
    assert ranked.z == test.z


def test_missing_values_and_a_third_status_are_left_out() -> None:
    rows = people()
    random = np.random.default_rng(6)
    genotypes = np.where(random.random(3000) < 0.1, "NA", rows["rs1"].astype(str))
    status = np.where(random.random(3000) < 0.2, "unknown", rows["status"])
    snp = Attribute("rs1", ("0", "1", "2"), scores=(0, 1, 2), missing="NA")
    schema = Schema((snp, Attribute("x", ("0", "1"))), keep=("rs1", "status"))
    strata = Strata.one(deniable.design(schema, epsilon=1).mechanism)
    table = {"rs1": genotypes, "status": status, "x": 1 * (rows["rs2"] > 0)}
    with pytest.raises(InputError, match="'status' has 3 values; name two to `compare`"):
        asked(table, strata)
    (test,) = asked(table, strata, compare=("case", "control")).tests
    expected = armitage(counted(genotypes, status, ("0", "1", "2")), np.arange(3))
    assert test.z == pytest.approx(expected, rel=1e-10)
    (test,) = asked(table, strata, compare=("case", "control"), scores=(0, 1, 2, 5)).tests
    expected = armitage(counted(genotypes, status, ("0", "1", "2", "NA")), np.array([0, 1, 2, 5]))
    assert test.z == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("method", ["kronecker", "balanced"])
def test_with_the_status_kept_it_is_that_of_the_released_genotypes(method: str) -> None:
    rows = people()
    attributes = tuple(Attribute(f"rs{i}", ("0", "1", "2"), scores=(0, 1, 2)) for i in (1, 2, 3))
    plan = deniable.design(Schema(attributes, keep=("status",)), epsilon=4, method=method)
    released = deniable.randomize(
        pa.table({name: column.astype(str) for name, column in rows.items()}), plan
    ).to_pydict()
    shown = {name: np.array(column) for name, column in released.items()}
    strata = Strata.one(plan.mechanism)
    found = asked(shown, strata, of=(), compare=("case", "control"))
    for test in found.tests:
        table = counted(shown[test.attribute], shown["status"], ("0", "1", "2"))
        assert test.z == pytest.approx(armitage(table, np.arange(3)), rel=1e-9)
    raw = [test.p_value for test in found.tests]
    for key, name in (("p_bonferroni", "bonferroni"), ("p_benjamini_hochberg", "fdr_bh")):
        adjusted = [row[key] for row in found.table()]
        assert adjusted == pytest.approx(multipletests(raw, method=name)[1].tolist())


def truth(mechanism: Mechanism, names: tuple[str, str], dependence: float) -> NDArray[np.float64]:
    a, b = channel_of(mechanism, names).n_categories
    table = np.outer(np.arange(1, a + 1), np.arange(b, 0, -1)).astype(float)
    table /= table.sum()
    table[:2, :2] += dependence * np.array([[1, -1], [-1, 1]]) * table[:2, :2].min()
    return table


def at_expectation(mechanism: Mechanism, names: tuple[str, str], dependence: float) -> Counts:
    channel = channel_of(mechanism, names)
    expected = np.round(10**9 * channel.forward.apply(truth(mechanism, names, dependence)))
    return Counts.of(mechanism, expected)


LAWS = {
    "product": Mechanism.of(ProductLaw.from_levels((3, 2), (1.0, 2.0))),
    "patterns": anonymous((3, 2), Block((0, 1), random_table((3, 2), 1))),
    "more answers": anonymous(
        (3, 2),
        Block((0,), random_matrix(3, 5, 6)),
        Block((1,), ProductLaw.from_levels((2,), (1.0,))),
    ),
    "square": anonymous(
        (3, 2), Block((0,), random_matrix(3, 3, 6)), Block((1,), random_matrix(2, 2, 7))
    ),
    "forms": ONE,
}


@pytest.mark.parametrize("name", LAWS)
def test_expected_counts_give_the_true_difference_and_none_where_there_is_none(name: str) -> None:
    mechanism = LAWS[name]
    names = ("a1", "a2")
    scores = (0.0, 2.0, 3.0)[: mechanism.schema.n_categories[0]]
    query = Trend(("a1",), status="a2", scores=scores, compare=("1", "0"))
    (apart,) = query.answer(at_expectation(mechanism, names, 0.0))
    assert abs(apart.tests[0].z) < 0.01
    (found,) = query.answer(at_expectation(mechanism, names, 0.5))
    table = truth(mechanism, names, 0.5)
    means = np.array(scores) @ table / table.sum(axis=0)
    assert found.tests[0].difference == pytest.approx(means[1] - means[0], abs=1e-6)
    assert found.tests[0].p_value < 1e-9


@pytest.mark.parametrize("name", ["patterns", "square"])
def test_the_statistic_and_the_error_are_those_of_dense_matrices(name: str) -> None:
    mechanism, n = LAWS[name], 5000
    scores, status = np.array([0.0, 2.0, 3.0]), np.array([1.0, 0.0])
    table = truth(mechanism, ("a1", "a2"), 0.5)
    forward = dense_channel(mechanism, ("a1", "a2"))
    random = np.random.default_rng(2)
    observed = random.multinomial(n, forward @ table.ravel()).astype(float)
    counts = Counts.of(mechanism, observed.reshape(3, 2))
    query = Trend(("a1",), status="a2", scores=(0, 2, 3), compare=("0", "1"))
    (found,) = query.answer(counts)
    theta, inverse = observed / n, np.linalg.inv(forward)

    def plug_in(frequencies: NDArray[np.float64]) -> tuple[float, float]:
        pi = (inverse @ frequencies).reshape(3, 2)
        first, second = pi.sum(axis=1), pi.sum(axis=0)
        return float(scores @ pi @ status - scores @ first * (second @ status)), second @ status

    def gradient(at: NDArray[np.float64], of: Any) -> NDArray[np.float64]:
        steps = 1e-6 * np.eye(6)
        return np.array([(of(at + step) - of(at - step)) / 2e-6 for step in steps])

    score, share = plug_in(theta)
    pi = (inverse @ theta).reshape(3, 2)
    null = forward @ np.outer(pi.sum(axis=1), pi.sum(axis=0)).ravel()
    slope = gradient(theta, lambda at: plug_in(at)[0])
    variance = null @ (slope - null @ slope) ** 2
    assert found.tests[0].z == pytest.approx(score * ((n - 1) / variance) ** 0.5, rel=1e-6)
    slope = gradient(theta, lambda at: plug_in(at)[0] / (plug_in(at)[1] * (1 - plug_in(at)[1])))
    error = ((theta @ (slope - theta @ slope) ** 2) / n) ** 0.5
    assert found.tests[0].difference == pytest.approx(score / (share * (1 - share)), rel=1e-9)
    assert found.tests[0].standard_error == pytest.approx(error, rel=1e-6)


def test_a_part_of_a_merged_attribute_is_tested_by_itself() -> None:
    mechanism, n = merged.MECHANISMS["more answers at 0"], 10**7
    cells = int(np.prod(mechanism.schema.n_categories))
    pair = ("q", "b")
    sums = merged.sums(mechanism, pair)
    population = np.ones(cells) / cells
    population *= 1 + 0.5 * (sums[0] - sums[0].mean())
    population /= population.sum()
    released = merged.dense(mechanism) @ population
    counts = merged.counted(mechanism, pair, n * released / released.sum())
    query = Trend(("q",), status="b", scores=(0, 1, 2))
    (found,) = query.answer(Counts.of(mechanism, Tabulation(counts, None, n)))
    table = (sums @ population).reshape(3, 2)
    means = np.arange(3) @ table / table.sum(axis=0)
    assert found.tests[0].difference == pytest.approx(means[1] - means[0], abs=1e-6)
    assert found.tests[0].p_value < 1e-9


def test_under_forms_a_kept_status_compares_within_forms() -> None:
    rows = people(4000)
    attributes = tuple(Attribute(f"rs{i}", ("0", "1", "2"), scores=(0, 1, 2)) for i in (1, 2, 3))
    plan = deniable.design(Schema(attributes, keep=("status",)), epsilon=3, method="forms", pairs=0)
    table = pa.table({name: column.astype(str) for name, column in rows.items()})
    answers = deniable.randomize(table, plan)
    released = {k: np.array(v) for k, v in answers.to_pydict().items()}
    query = Trend(("rs2",), status="status", compare=("case", "control"))
    (answer,) = query.run(open_release(answers, Strata.one(plan.mechanism)))
    (found,) = answer.tests
    form = plan.mechanism.form_column
    share = np.mean(released["status"] == "case")
    score = variance = 0.0
    law = plan.mechanism.forms
    assert law is not None
    assert form is not None
    answered = {
        c: (released[form].astype(int) == c + 1)
        for c, one in enumerate(law.forms)
        if one.eigenvalues((1,))[1] > 0
    }
    for c, inside in answered.items():
        weight = law.forms[c].eigenvalues((1,))[1]
        genotypes = released["rs2"][inside].astype(float)
        cases = released["status"][inside] == "case"
        score += weight * float((genotypes - genotypes.mean()) @ (cases - share))
        variance += weight**2 * inside.sum() * genotypes.var() * share * (1 - share)
    assert found.z == pytest.approx(score / variance**0.5, rel=0.02)


def many(kept: bool, method: str, **how: Any) -> tuple[Any, Any]:
    """A release of six SNPs, of which the second is much like the first, and its design."""
    random = np.random.default_rng(9)
    cases = random.random(3000) < 0.4
    carriers = random.random((6, 3000)) < np.where(cases, 0.5, 0.3)
    carriers[2:] = random.random((4, 3000)) < 0.4
    carriers[1] = np.where(random.random(3000) < 0.9, carriers[0], carriers[1])
    rows = {f"rs{j}": column.astype(int).astype(str) for j, column in enumerate(carriers)}
    rows["status"] = np.where(cases, "case", "control")
    rows["town"] = np.where(random.random(3000) < 0.5, "A", "B")
    snps = tuple(Attribute(f"rs{j}", ("0", "1")) for j in range(6))
    attributes, keep = (snps, ("status", "town")) if kept else ((*snps, STATUS), ("town",))
    plan = deniable.design(Schema(attributes, keep=keep), method=method, **how)
    return deniable.randomize(pa.table(rows), plan), plan


@pytest.mark.parametrize("kept", slow_after(1, [True, False]))
@pytest.mark.parametrize(
    ("method", "how"), [("kronecker", {"epsilon": 18.0}), ("forms", {"epsilon": 6.0, "pairs": 0.5})]
)
def test_the_joint_covariance_is_that_of_the_rows_contributions(
    kept: bool, method: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    released, plan = many(kept, method, **how)
    given: list[Any] = []
    chances = np.linspace(0.9, 0.1, 6)
    monkeypatch.setattr(
        "deniable.estimate.trend.in_largest", lambda *of: (given.append(of), (chances, 0.5))[1]
    )
    strata = Strata.one(plan.mechanism)
    question = Trend(status="status", top=2, compare=("case", "control"))
    (found,) = question.run(open_release(released, strata))
    ((_, covariance, k),) = given
    assert k == 2
    by_name = {test.attribute: test for test in found.tests}
    errors = np.array([by_name[f"rs{j}"].correlation_error for j in range(6)])
    assert np.sqrt(np.diag(covariance)) == pytest.approx(errors, rel=1e-9)
    shown = np.abs([test.correlation for test in found.tests])
    assert (np.diff(shown) <= 0).all()
    assert found.all_right == 0.5
    assert [row["attribute"] for row in found.table()] == [t.attribute for t in found.tests[:2]]
    assert found.to_plain()["top"] == 2
    assert "with probability 0.50" in found.remarks()[0]
    # The second SNP is much like the first, so that the statistics are correlated.
    assert covariance[0, 1] > 0.3 * errors[0] * errors[1]
    assert abs(covariance[0, 4]) < 0.2 * errors[0] * errors[4]


def test_the_most_associated_of_groups_of_rows() -> None:
    released, plan = many(True, "kronecker", epsilon=18.0)
    strata = Strata.one(plan.mechanism)
    question = Trend(status="status", top=1, by=("town",), compare=("case", "control"))
    answers = question.run(open_release(released, strata))
    assert [dict(answer.group)["town"] for answer in answers] == ["A", "B"]
    for answer in answers:
        town = dict(answer.group)["town"]
        (alone,) = Trend(
            status="status", top=1, where={"town": town}, compare=("case", "control")
        ).run(open_release(released, strata))
        assert answer.table()[0]["probability_of_top"] == alone.table()[0]["probability_of_top"]
        assert answer.table()[0]["attribute"] in ("rs0", "rs1")
        assert answer.table()[0]["p_bonferroni"] == 6 * answer.tests[0].p_value
    for top, words in ((0, "at least 1"), (7, "`top` is 7, and 6 attributes")):
        with pytest.raises(InputError, match=words):
            Trend(status="status", top=top, compare=("case", "control")).run(
                open_release(released, strata)
            )


def test_pairs_of_attributes_without_randomization_are_tested_by_mantels_statistic() -> None:
    rows = people()
    rows["rs2"] = np.where(np.random.default_rng(7).random(3000) < 0.2, rows["rs1"], rows["rs2"])
    snps = tuple(Attribute(f"rs{j}", ("0", "1", "2"), scores=(0, 1, 3)) for j in (1, 2, 3))
    schema = Schema((*snps, Attribute("x", ("0", "1"))), keep=("rs1", "rs2", "rs3"))
    strata = Strata.one(deniable.design(schema, epsilon=1).mechanism)
    table = {**rows, "x": 1 * (rows["rs2"] > 0)}
    found = asked(table, strata, ("rs1", "rs2", "rs3"), status=None, top=2)
    assert [row["attribute"] + row["other"] for row in found.table()] == ["rs1rs2", "rs1rs3"]
    for test in found.tests:
        first, second = (np.array([0, 1, 3])[rows[n]] for n in (test.attribute, test.other))
        table_of_two = [
            [np.sum((first == a) & (second == b)) for b in (0, 1, 3)] for a in (0, 1, 3)
        ]
        oracle = Table(np.array(table_of_two), shift_zeros=False).test_ordinal_association(
            np.array([0, 1, 3]), np.array([0, 1, 3])
        )
        assert test.z == pytest.approx(oracle.zscore, rel=1e-10)
        assert test.correlation == pytest.approx(np.corrcoef(first, second)[0, 1], rel=1e-10)
        slope = np.cov(first, second, ddof=0)[0, 1] / second.var()
        assert test.difference == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize(
    ("method", "how"), [("kronecker", {"epsilon": 18.0}), ("forms", {"epsilon": 6.0, "pairs": 0.5})]
)
def test_of_all_pairs_the_one_alike_is_most_associated(method: str, how: dict[str, Any]) -> None:
    released, plan = many(True, method, **how)
    release = open_release(released, Strata.one(plan.mechanism))
    (found,) = Trend(top=1).run(release)
    assert len(found.tests) == 15
    ((first, other),) = [(row["attribute"], row["other"]) for row in found.table()]
    assert (first, other) == ("rs0", "rs1")
    assert found.all_right is not None
    assert found.all_right > 0.95
    assert "Trend between attributes" in found.caption()
    assert found.to_plain()["status"] is None
    # Against the first as the status it is the same test.
    (alone,) = Trend(("rs1",), status="rs0").run(release)
    assert abs(alone.tests[0].z) == pytest.approx(abs(found.tests[0].z), rel=1e-9)
    with pytest.raises(InputError, match="a status, or two attributes or more"):
        Trend(("rs0",)).run(release)
    with pytest.raises(InputError, match="name the status"):
        Trend(compare=("0", "1"))


def test_too_many_pairs_are_not_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    released, plan = many(True, "kronecker", epsilon=18.0)
    monkeypatch.setattr("deniable.estimate.trend.MOST_RANKED", 14)
    with pytest.raises(InputError, match="at most 14 pairs of attributes, and these are 15"):
        Trend(top=1).run(open_release(released, Strata.one(plan.mechanism)))


def test_what_cannot_be_tested_is_said() -> None:
    strata = Strata.one(releases.mechanism())
    rows = {name: np.array(column) for name, column in releases.rows().items()}

    def refused(words: str, of: tuple[str, ...] = ("smokes",), **more: Any) -> None:
        with pytest.raises(InputError, match=words):
            asked(rows, strata, of, **more)

    refused("takes no weights", status="town", weights="weight")
    refused("'smokes' is the status and is tested too", status="smokes")
    refused("'sex' is the status and forms the groups too", status="sex", by=("sex",))
    refused("within subgroups of 'age', which is randomized", status="sex", by=("age",))
    refused("'age' has bins and no scores", of=("age",), status="sex")
    refused("'sex' has no value 'x' to compare", status="sex", compare=("f", "x"))
    refused("two different values", status="sex", compare=("f", "f"))
    refused("'age' has 3 values", status="age")
    refused("no attribute 'nothing'", status="nothing")
    town = Strata(releases.by_town().mechanisms, "town")
    with pytest.raises(InputError, match="mechanisms of their own"):
        asked(rows, town, ("smokes",), status="town")
    same = rows | {"sex": np.full(400, "f")}
    with pytest.raises(InputError, match="no two groups"):
        asked(same, strata, ("smokes",), status="sex")
    constant = rows | {"smokes": np.full(400, "no")}
    with pytest.raises(InputError, match="same value of 'smokes', so there is no trend"):
        asked(constant, strata, ("smokes",), status="sex")
    found = asked(rows, strata, (), status="sex")
    assert [test.attribute for test in found.tests] == ["smokes"]
    assert [name for name, _ in found.untested] == ["age"]
    assert found.to_plain()["untested"][0]["reason"].startswith("'age' has bins")


def test_groups_of_rows_are_tested_by_themselves() -> None:
    strata = Strata.one(releases.mechanism())
    columns = pa.table({k: [str(v) for v in vs] for k, vs in releases.rows().items()})
    query = Trend(("smokes",), status="sex", by=("town",), level=0.9)
    answers = query.run(open_release(columns, strata))
    assert len(answers) == len(query.to_plain(answers)["groups"]) > 1
    town = dict(answers[0].group)["town"]
    assert f"where town = {town}" in answers[0].caption(0.9)
    undeclared = Trend(("smokes",), status="town", by=("sex",))
    first, second = undeclared.run(open_release(columns, strata))
    assert (first.group, second.group) == ((("sex", "f"),), (("sex", "m"),))
    (row,) = first.table(0.95)
    assert row["low"] < row["difference"] < row["high"]
    assert row["sex"] == "f"
