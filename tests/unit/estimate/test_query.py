"""Every query answers for itself: the same as its estimator, group by group."""

import json
from typing import Any

import pytest

import deniable
from deniable.errors import InputError
from deniable.estimate.covariance import Covariance
from deniable.estimate.independence import Independence, independence
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.query import Query
from deniable.estimate.shares import Shares
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts
from deniable.mechanism.strata import Strata
from unit.estimate.releases import by_town, count_rows, mechanism, table

ONE = Strata.one(mechanism())
RELEASE = Release(ONE, table())


def counted(*names: str, by: tuple[str, ...] = ()) -> list[Counts]:
    return count_rows(table(), ONE, names, by=by)


def test_shares_answer_as_the_table_does() -> None:
    (found,) = Shares(("smokes",), by=("sex",), method="em", target="population").run(RELEASE)
    (counts,) = counted("smokes", "sex")
    (expected,) = Shares(("smokes",), by=("sex",), method="em", target="population").answer(counts)
    assert found.to_plain() == expected.to_plain()


def test_means_and_quantiles_answer_for_kept_columns_and_attributes_alike() -> None:
    means = Mean(("age",), by=("sex", "town"), level=0.9, scores=(1.0, 2.0, 5.0)).run(RELEASE)
    expected = [
        summary
        for counts in counted("age", "sex", by=("town",))
        for summary in Mean(("age",), by=("sex",), scores=(1.0, 2.0, 5.0), level=0.9).answer(counts)
    ]
    assert means == expected
    assert [dict(mean.group) for mean in means] == [
        {"town": town, "sex": sex} for town in "ab" for sex in "fm"
    ]
    (median,) = Quantile(("age",), q=0.4).run(RELEASE)
    assert [median] == Quantile(("age",), q=0.4).answer(counted("age")[0])


def test_covariance_and_independence_answer_for_every_group() -> None:
    middles = (None, "middle")
    query = Covariance(("smokes", "age"), by=("town",), weights="weight", scores=middles)
    found = query.run(RELEASE)
    groups = count_rows(table(), ONE, ["smokes", "age"], by=["town"], weights="weight")
    assert found == [
        Covariance(("smokes", "age"), scores=middles).answer(counts)[0] for counts in groups
    ]
    tests = Independence(("smokes", "age"), by=("town",)).run(RELEASE)
    pairs = counted("smokes", "age", by=("town",))
    assert tests == [independence(counts, ("smokes", "age")) for counts in pairs]


def test_a_kept_column_that_is_not_declared_is_tested_like_one_that_is() -> None:
    (test,) = Independence(("town", "smokes")).run(RELEASE)
    assert test.attributes == ("smokes", "town")
    assert test.n_records == 400
    counts = [each.parts[0][1].counts for each in counted("smokes", by=("town",))]
    assert test.released is not None
    assert sum(c.sum() for c in counts) == test.n_records
    with pytest.raises(InputError, match="mechanisms of their own"):
        Independence(("smokes", "town")).run(Release(by_town(), table()))
    with pytest.raises(InputError, match=r"test within each of them \(by 'town'\)"):
        Independence(("smokes", "age")).run(Release(by_town(), table()))
    assert len(Independence(("smokes", "age"), by=("town",)).run(Release(by_town(), table()))) == 2


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        (Shares(("smokes",)), {"attributes", "cells", "level"}),
        (Shares(("smokes",), by=("town",)), {"groups"}),
        (Mean(("age",)), {"level", "summaries"}),
        (Quantile(("age",), by=("town",)), {"level", "summaries"}),
        (Covariance(("smokes", "age"), scores=(None, "middle")), {"estimate", "low", "level"}),
        (Independence(("smokes", "age")), {"p_value", "cramers_v", "level"}),
        (Independence(("smokes", "age"), by=("town",)), {"groups"}),
    ],
)
def test_answers_become_plain_values(query: Query[Any], keys: set[str]) -> None:
    plain = query.to_plain(query.run(RELEASE))
    assert keys <= plain.keys()
    json.dumps(plain, allow_nan=False)


def test_the_level_of_a_question_is_that_of_its_intervals() -> None:
    narrow, wide = (
        query.to_plain(query.run(RELEASE))["cells"][0]
        for query in (Shares(("smokes",), level=0.5), Shares(("smokes",), level=0.99))
    )
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Shares(()), "no attribute is named"),
        (lambda: Mean(("age", "smokes")), "of one attribute"),
        (lambda: Quantile(("age", "smokes")), "of one attribute"),
        (lambda: Covariance(("age",)), "of two attributes"),
        (lambda: Independence(("age", "age")), "of two attributes"),
        (lambda: Covariance(("age", "smokes"), by=("sex",)).run(RELEASE), "subgroups of 'sex'"),
        (lambda: Independence(("age", "sex"), by=("smokes",)).run(RELEASE), "which is randomized"),
        (lambda: Independence(("age", "town"), by=("town",)).run(RELEASE), "only once"),
        (lambda: Independence(("town", "weight")).run(RELEASE), "both released unchanged"),
        (
            lambda: Shares(("age",), method="guess").run(RELEASE),
            "the method is inversion, em or projected",
        ),  # type: ignore[arg-type]
        (lambda: Shares(("age",), target="world").run(RELEASE), "the target is"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(ask: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_a_table_has_no_axis_for_a_kept_column_that_is_not_declared() -> None:
    groups = deniable.open(table(), mechanism()).shares("smokes", by=["town"])
    assert [each.attributes for each in groups] == [("smokes",)] * len(groups)
    selected = deniable.open(table(), mechanism()).shares("smokes", where={"town": "a"})[0]
    assert selected.group == (("town", "a"),)
