"""Differences have the errors that the joint covariance of both sides gives them."""

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.estimate.comparing import Comparison
from deniable.estimate.inference import Inference
from deniable.estimate.ordered import Mean
from deniable.estimate.shares import Shares
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema
from unit.dense import dense_inverse

AGE = Attribute("age", ("0", "1", "2"), scores=(5, 15, 30))
SEX = Attribute("sex", ("f", "m"))
MECHANISM = Mechanism.of(
    ProductLaw.from_levels((3, 2), (3.0, 2.0)), Schema((AGE, SEX), keep=("town",))
)
TABLE = np.array([[900, 300], [500, 700], [300, 300]])

both_targets = pytest.mark.parametrize("target", ["table", "population"])


def counts(*names: str) -> Counts:
    whole = Tabulation.from_counts(TABLE)
    return Counts.of(MECHANISM, whole.margin([("age", "sex").index(name) for name in names]))


def dense_covariance(target: str) -> np.ndarray:
    inverse = dense_inverse(MECHANISM, ["age", "sex"])
    theta = TABLE.ravel() / TABLE.sum()
    pi = inverse @ theta
    known = np.diag(pi) if target == "table" else np.outer(pi, pi)
    return (inverse @ np.diag(theta) @ inverse.T - known) / TABLE.sum()


@both_targets
def test_the_covariance_of_an_estimate_is_that_of_the_dense_inverse(target: Target) -> None:
    (found,) = Shares(("age", "sex"), target=target).answer(counts("age", "sex"))
    np.testing.assert_allclose(found.covariance(), dense_covariance(target), atol=1e-15)
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.covariance())), found.standard_error.ravel(), rtol=1e-9
    )
    (within,) = Shares(("age",), by=("sex",), target=target).answer(counts("age", "sex"))
    np.testing.assert_allclose(
        np.sqrt(np.diag(within.covariance())), within.standard_error.ravel(), rtol=1e-9
    )


@both_targets
def test_two_categories_of_one_attribute_differ_with_their_covariance(target: Target) -> None:
    question = Comparison(("age",), column="age", values=("0", "2"), target=target)
    (found,) = question.answer(counts("age"))
    covariance = Shares(("age",), target=target).answer(counts("age"))[0].covariance()
    shares = Shares(("age",)).answer(counts("age"))[0].values
    assert found.difference == pytest.approx(shares[0] - shares[2])
    expected = covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2]
    assert found.standard_error**2 == pytest.approx(expected)
    assert found.ratio == pytest.approx(shares[0] / shares[2])
    relative = np.array([1 / shares[0], 0, -1 / shares[2]])
    assert found.ratio_error is not None
    assert found.ratio_error**2 == pytest.approx(relative @ covariance @ relative)
    (row,) = found.table(0.95)
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert row["low"] < row["estimate"] < row["high"]


@both_targets
def test_shares_within_two_groups_differ_with_their_covariance(target: Target) -> None:
    found = Comparison(("age",), column="sex", values=("m", "f"), target=target).answer(
        counts("age", "sex")
    )
    (within,) = Shares(("age",), by=("sex",), target=target).answer(counts("age", "sex"))
    covariance = within.covariance()
    for code, one in enumerate(found):
        assert one.of == (("age", str(code)),)
        assert one.difference == pytest.approx(within.values[code, 1] - within.values[code, 0])
        first, second = 2 * code + 1, 2 * code
        expected = covariance[first, first] + covariance[second, second]
        expected -= 2 * covariance[first, second]
        assert one.standard_error**2 == pytest.approx(expected)


def test_means_of_two_groups_differ_as_their_means_do() -> None:
    question = Comparison(("age",), column="sex", values=("f", "m"), mean=True)
    (found,) = question.answer(counts("age", "sex"))
    women, men = Mean(("age",), by=("sex",)).answer(counts("age", "sex"))
    assert found.estimates == pytest.approx((women.estimate, men.estimate))
    assert question.to_plain([found])["scores"] == "schema"
    assert "by the scores of the schema, taken as exact" in found.caption()
    # By the joint covariance, with the delta method's gradient of both ratios.
    pi = Inference(counts("age", "sex"), ("age", "sex")).values
    scores = np.array([5.0, 15.0, 30.0])
    gradient = np.zeros((3, 2))
    for group, (mean, sign) in enumerate(((women.estimate, 1), (men.estimate, -1))):
        gradient[:, group] = sign * (scores - mean) / pi[:, group].sum()
    expected = gradient.ravel() @ dense_covariance("table") @ gradient.ravel()
    assert found.standard_error**2 == pytest.approx(expected)


def rows() -> pa.Table:
    flat = np.repeat(np.arange(6), TABLE.ravel())
    return pa.table(
        {
            "age": [str(code // 2) for code in flat],
            "sex": ["fm"[code % 2] for code in flat],
            "town": ["ab"[i % 2] for i in range(len(flat))],
        }
    )


def test_groups_of_rows_are_independent_so_that_their_variances_add() -> None:
    release = Release(Strata.one(MECHANISM), rows())
    found = Comparison(("age",), column="town", values=("a", "b")).run(release)
    assert [one.of for one in found] == [(("age", str(code)),) for code in range(3)]
    groups = release.count(["age"], by=["town"])
    first, second = (Shares(("age",)).answer(group)[0] for group in groups)
    np.testing.assert_allclose(
        [one.standard_error**2 for one in found],
        first.standard_error**2 + second.standard_error**2,
    )
    assert found[0].n_records == 3000
    plain = Comparison(("age",), column="sex", values=("f", "m"), by=("town",))
    answers = plain.run(release)
    assert [dict(one.group) for one in answers] == [{"town": t} for t in "ab" for _ in range(3)]
    assert len(plain.to_plain(answers)["differences"]) == 6


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="compared with itself"):
        Comparison(("age",), column="sex", values=("f", "f"))
    with pytest.raises(InputError, match="of one attribute, between two groups"):
        Comparison(("age",), column="age", values=("0", "1"), mean=True)
    with pytest.raises(InputError, match="'x' is no category of 'sex'; it has f, m"):
        Comparison(("age",), column="sex", values=("f", "x")).answer(counts("age", "sex"))
    release = Release(Strata.one(MECHANISM), rows())
    with pytest.raises(InputError, match="no row has the value 'c' in 'town'"):
        Comparison(("age",), column="town", values=("a", "c")).run(release)
    with pytest.raises(InputError, match="leave it out of those within which they are"):
        Comparison(("age",), column="sex", values=("f", "m"), by=("sex",)).run(release)


@both_targets
def test_within_subgroups_of_a_randomized_attribute_errors_are_of_the_joint_table(
    target: Target,
) -> None:
    question = Comparison(("age",), column="age", values=("0", "2"), by=("sex",), target=target)
    found = question.answer(counts("age", "sex"))
    (within,) = Shares(("age",), by=("sex",), target=target).answer(counts("age", "sex"))
    covariance = within.covariance()
    assert [one.group for one in found] == [(("sex", "f"),), (("sex", "m"),)]
    for code, one in enumerate(found):
        assert one.difference == pytest.approx(within.values[0, code] - within.values[2, code])
        first, second = code, 4 + code
        expected = covariance[first, first] + covariance[second, second]
        expected -= 2 * covariance[first, second]
        assert one.standard_error**2 == pytest.approx(expected)


def test_groups_of_rows_are_compared_within_subgroups_too() -> None:
    release = Release(Strata.one(MECHANISM), rows())
    found = Comparison(("age",), column="town", values=("a", "b"), by=("sex",)).run(release)
    towns = release.count(["age", "sex"], by=["town"])
    first, second = (Shares(("age",), by=("sex",)).answer(town)[0] for town in towns)
    errors = first.standard_error**2 + second.standard_error**2
    assert [one.group for one in found] == [(("sex", sex),) for sex in "fm" for _ in range(3)]
    for place, one in enumerate(found):
        sex, age = divmod(place, 3)
        assert one.difference == pytest.approx(first.values[age, sex] - second.values[age, sex])
        assert one.standard_error**2 == pytest.approx(errors[age, sex])
    means = Comparison(("age",), column="town", values=("a", "b"), by=("sex",), mean=True)
    by_town = [Mean(("age",), by=("sex",)).answer(town) for town in towns]
    for one, of_a, of_b in zip(means.run(release), *by_town, strict=True):
        assert one.estimates == pytest.approx((of_a.estimate, of_b.estimate))
