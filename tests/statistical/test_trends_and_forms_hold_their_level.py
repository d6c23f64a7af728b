"""Tests of trend, and of whether forms agree, reject what is true as often as they say.

The joint covariance of the correlations of several attributes is that of many releases. Rows are
drawn anew each time and released by the production sampler with fresh randomness. Planted:
a status taken for randomized apart from the attribute (φ_ij replaced by φ_i φ_j), an interval that
forgets the randomization, statistics of the same rows taken for independent, and every second form
weaker than stated.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2

import deniable
from deniable.design.design import design
from deniable.estimate.agreement import Agreement
from deniable.estimate.source import open_release
from deniable.estimate.tabulate import Counts
from deniable.estimate.trend import Trend, TrendTest
from deniable.laws import PatternTable, PublishedForms
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.planning.trend_power import plan_trend
from deniable.randomness import SystemRandomness
from deniable.schema import Attribute, Schema
from statistical.budget import BUDGET, SHARE
from statistical.test_independence_holds_its_level import (
    INDEPENDENT,
    LEVELS,
    RELEASES,
    ROWS,
    SLACK,
    alarms,
    mechanism_of,
    rejections,
)

SCORES = (0.0, 1.0, 3.0)
QUESTION = Trend(("a1",), status="a2", scores=SCORES, compare=("0", "2"))
"""Of a status of four values two are compared, the others are left out."""


def forms() -> Mechanism:
    both = np.array([[0.6, 0.05], [0.05, 0.3]])
    other = np.array([[0.75, 0.1], [0.1, 0.05]])
    tables = [((0, 1), both), ((0,), np.array([0.9, 0.1])), ((0, 1), other)]
    return Mechanism.of(PublishedForms.from_probabilities((3, 4), [0.4, 0.2, 0.4], tables))


def counts_of(mechanism: Mechanism, population: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts of RELEASES releases of ROWS rows each, shape (RELEASES, outputs)."""
    cells = np.random.default_rng().choice(12, size=RELEASES * ROWS, p=population.ravel())
    columns = [codes.astype(np.uint8) for codes in np.unravel_index(cells, (3, 4))]
    codes = Randomizer(mechanism, SystemRandomness()).randomize(columns)
    channel = channel_of(mechanism, ("a1", "a2"))
    shape = channel.n_outputs
    places = channel.released_codes({i: each.astype(np.int64) for i, each in enumerate(codes)})
    flat = np.ravel_multi_index(places, shape) + np.repeat(np.arange(RELEASES), ROWS) * np.prod(
        shape
    )
    counts = np.bincount(flat, minlength=RELEASES * int(np.prod(shape)))
    return counts.reshape(RELEASES, *shape).astype(np.float64)


def trends_of(mechanism: Mechanism, counts: NDArray[np.float64]) -> list[TrendTest]:
    return [QUESTION.answer(Counts.of(mechanism, each))[0].tests[0] for each in counts]


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["table", "product", "forms"])
def test_p_values_of_trends_are_uniform_where_there_is_none(name: str) -> None:
    share = BUDGET.spend(f"trend: p-values, {name}")
    mechanism = forms() if name == "forms" else mechanism_of(name)
    found = trends_of(mechanism, counts_of(mechanism, INDEPENDENT))
    hits = rejections([test.p_value for test in found])
    assert not alarms(hits, LEVELS, share).any(), f"{hits / RELEASES} at {LEVELS}"


@pytest.mark.slow
def test_a_pair_taken_for_randomized_apart_would_be_noticed() -> None:
    # Then 5 % is over 25 %; were it that, this would go unnoticed with less than this share.
    share = BUDGET.spend("trend: a pair taken for randomized apart", 2 * SHARE)
    quiet = [h for h in range(RELEASES) if not alarms(np.full(5, h), LEVELS, share)[1]]
    assert binom.cdf(max(quiet), RELEASES, 0.25) < share
    # The law of mechanism_of("table") changes either attribute with probability 0.4.
    apart = np.outer([0.6, 0.4], [0.6, 0.4])
    wrong = Mechanism.of(PatternTable.from_probabilities((3, 4), apart))
    found = trends_of(wrong, counts_of(mechanism_of("table"), INDEPENDENT))
    hits = rejections([test.p_value for test in found])
    assert alarms(hits, LEVELS, share)[1], f"{hits / RELEASES} at {LEVELS}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "forms"])
def test_the_interval_of_a_difference_covers_and_a_narrow_one_would_not(name: str) -> None:
    share = BUDGET.spend(f"trend: intervals, {name}", 2 * SHARE) / 2
    tied = np.array([[0.45, 0.15, 0, 0], [0, 0.1, 0.15, 0], [0, 0, 0, 0.15]])
    population = 0.7 * INDEPENDENT + 0.3 * tied
    within = population / population.sum(axis=0)
    truth = np.array(SCORES) @ (within[:, 0] - within[:, 2])
    mechanism = forms() if name == "forms" else mechanism_of(name)
    found = trends_of(mechanism, counts_of(mechanism, population))

    def held(part: float) -> NDArray[np.int_]:
        inside = [abs(t.difference - truth) <= part * 1.959964 * t.standard_error for t in found]
        return np.array([np.sum(inside)])

    # A ratio of estimates: 95 % may be 92.5 to 97.5 %.
    assert not alarms(held(1.0), np.array([0.95]), share, 0.025).any(), f"{held(1.0) / RELEASES}"
    # As if randomization added nothing: half as wide, it covers less than 0.75.
    quiet = [
        h for h in range(RELEASES) if not alarms(np.array([h]), np.array([0.95]), share, 0.025)
    ]
    assert binom.sf(min(quiet) - 1, RELEASES, 0.75) < share
    assert alarms(held(0.5), np.array([0.95]), share, 0.025).all(), f"{held(0.5) / RELEASES}"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["balanced", "forms"])
def test_the_joint_covariance_is_that_of_many_releases(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = BUDGET.spend(f"trend: joint covariance, {method}", 2 * SHARE) / 2
    releases, n, random = 200, 1000, np.random.default_rng()
    snps = tuple(Attribute(name, ("0", "1")) for name in ("a", "b"))
    mechanism = design(Schema(snps, keep=("status",)), epsilon=4, method=method).mechanism
    found, stated = [], []

    def seen(correlations: Any, covariance: Any, k: int) -> tuple[Any, float]:
        found.append(correlations[0] - correlations[1])
        stated.append(covariance)
        return np.ones(2), 0.5

    monkeypatch.setattr("deniable.estimate.trend.in_largest", seen)
    for _ in range(releases):
        cases = random.random(n) < 0.4
        first = random.random(n) < np.where(cases, 0.5, 0.3)
        second = np.where(random.random(n) < 0.9, first, random.random(n) < 0.4)
        texts = {"a": first.astype(int), "b": second.astype(int), "status": cases.astype(int)}
        table = pa.table({name: column.astype(str) for name, column in texts.items()})
        release = open_release(deniable.randomize(table, mechanism), Strata.one(mechanism))
        Trend(status="status", top=1).run(release)
    matrix = np.mean(stated, axis=0)
    times = releases * np.var(found)

    def wrong(variance: float) -> bool:
        # By the normal limit: the variance may be 10 % off.
        below = chi2.cdf(times / (0.9 * variance), releases - 1)
        return bool(min(2 * below, 2 * chi2.sf(times / (1.1 * variance), releases - 1)) < share)

    assert not wrong(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    # Taken for independent, the variance would be more than four times as large.
    apart = matrix[0, 0] + matrix[1, 1]
    assert apart > 4 * (apart - 2 * matrix[0, 1])
    limit = chi2.ppf(share / 2, releases - 1) * 0.9
    assert chi2.sf(4 * limit, releases - 1) < share
    assert wrong(apart)


SIZES = (3, 5, 2)
MANY = [((0, 1), 0.85), ((1, 2), 0.8), ((0, 2), 0.75), ((1,), 0.7), ((0, 1, 2), 0.65)]


def asking(weaker: float = 1.0) -> Mechanism:
    """Forms that keep an answer with some probability; every second one so much weaker."""
    tables = []
    for number, (asked, kept) in enumerate(MANY):
        kept_all = kept * (weaker if number % 2 else 1.0)
        table = np.full((2,) * len(asked), (1 - kept_all) / (2 ** len(asked) - 1))
        table[(0,) * len(asked)] = kept_all
        tables.append((asked, table))
    return Mechanism.of(PublishedForms.from_probabilities(SIZES, [0.2] * 5, tables))


def agreed(made_by: Mechanism, stated: Mechanism, releases: int, rows: int) -> list[float]:
    random = np.random.default_rng()
    channels = [PublishedChannel(stated, (n,)).of_every_form() for n in stated.schema.names]
    question, p_values = Agreement(()), []
    randomizer = Randomizer(made_by, SystemRandomness())
    for _ in range(releases):
        first = random.choice(3, rows, p=[0.6, 0.3, 0.1])
        truth = [first, (first + random.integers(0, 3, rows)) % 5, (first > 0).astype(int)]
        *codes, form = randomizer.randomize([column.astype(np.uint8) for column in truth])
        counted = []
        for place, channel in enumerate(channels):
            (cells,) = channel.released_codes({place: codes[place].astype(np.int64), 3: form})
            counts = np.bincount(cells, minlength=channel.n_outputs[0]).astype(float)
            counted.append(Counts.of(stated, counts))
        p_values.append(question.agreement(stated.schema.names, counted).p_value)
    return p_values


@pytest.mark.weekly
def test_forms_of_one_population_disagree_at_5_percent_in_at_most_5() -> None:
    share = BUDGET.spend("forms agree: level")
    releases = 1000
    hits = sum(p < 0.05 for p in agreed(asking(), asking(), releases, 2000))
    assert binom.sf(hits - 1, releases, 0.062) > share, f"{hits / releases}"


@pytest.mark.slow
def test_every_second_form_weaker_than_stated_is_found() -> None:
    share = BUDGET.spend("forms agree: every second form weaker")
    releases = 200
    hits = sum(p < 0.05 for p in agreed(asking(0.7), asking(), releases, 20_000))
    assert binom.cdf(hits, releases, 0.95) > share, f"{hits / releases}"


@pytest.mark.weekly
@pytest.mark.parametrize("there", [False, True])
def test_a_planned_study_finds_the_odds_ratio_as_often_as_it_says(there: bool) -> None:
    share = BUDGET.spend(f"trend: a planned study, {there}")
    plan = plan_trend(people=10_000, snps=5, epsilon=4, level=0.25)
    assert plan.odds_ratio is not None
    attributes = Schema.anonymous((2,) * 5).attributes
    schema = Schema(attributes, keep=("status",))
    mechanism = design(schema, epsilon=4, method="forms", pairs=0.0).mechanism
    channel = channel_of(mechanism, ("a1",))
    copies = np.array([0.49, 0.42, 0.09])
    tilted = copies * (plan.odds_ratio if there else 1.0) ** np.arange(3)
    carriers = [copies[1:].sum(), tilted[1:].sum() / tilted.sum()]
    random, found = np.random.default_rng(), []
    question = Trend(("a1",), status="status", compare=("1", "0"))
    randomizer = Randomizer(mechanism, SystemRandomness())
    for _ in range(RELEASES):
        parts = []
        for status, carried in enumerate(carriers):
            codes = [
                (random.random(5000) < carried).astype(np.uint8),
                *[np.zeros(5000, np.uint8)] * 4,
            ]
            *released, form = randomizer.randomize(codes)
            (cells,) = channel.released_codes({0: released[0].astype(np.int64), 5: form})
            counts = np.bincount(cells, minlength=channel.n_outputs[0]).astype(float)
            parts.append(Counts.of(mechanism, counts, [("status", str(status))]))
        (test,) = question.tested({"a1": parts})[0].tests
        found.append(test.p_value)
    nominal = np.array([0.8 if there else 0.05])
    hits = np.array([np.sum(np.array(found) < 0.05)])
    # The plan goes by the normal limit.
    assert not alarms(hits, nominal, share, 0.02 if there else SLACK).any(), f"{hits / RELEASES}"
