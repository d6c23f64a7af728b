"""What a study of genotypes finds: the table of the docs, and the closed form without forms."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import deniable
from deniable.errors import InputError
from deniable.mechanism.channel import Channel
from deniable.planning.trend_power import SENTENCE, plan_trend, without_privacy
from deniable.schema import Schema
from marked import slow_after, weekly_after

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "plink.md"
ROW = re.compile(
    r"\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|"
)
PRINTED = [tuple(cell.replace(",", "") for cell in row) for row in ROW.findall(PAGE.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    weekly_after(1, [(row,) for row in PRINTED]),
    ids="-".join,
)
def test_the_table_of_the_docs(row: tuple[str, ...]) -> None:
    people, snps = int(row[0]), int(row[1])
    for epsilon, printed in zip((1, 2, 5, 10), row[3:], strict=True):
        found = plan_trend(people=people, snps=snps, epsilon=epsilon, allele=0.3)
        digits = len(printed.split(".")[1])
        assert f"{found.odds_ratio:.{digits}f}" == printed
        most = (np.exp(epsilon) - 1) ** 2 / (4 * np.exp(epsilon)) / snps
        assert found.worth <= people * min(1.0, most)
    usual = without_privacy(found)
    assert f"{usual:.2f}" == row[2]


def test_the_table_of_the_docs_is_found_and_has_the_figures_that_were_to_be_reached() -> None:
    reached = {(row[0], row[1]): [float(cell) for cell in row[3:]] for row in PRINTED}
    assert len(reached) == 5
    aimed = {
        ("100000", "10"): (1.31, 1.15, 1.07, 1.04),
        ("100000", "100"): (2.9, 1.7, 1.28, 1.15),
        ("500000", "1000"): (11, 2.4, 1.49, 1.26),
    }
    for study, ratios in aimed.items():
        # Of the logarithms, which is what is tested.
        assert np.log(reached[study]) == pytest.approx(np.log(ratios), rel=0.03)


@pytest.mark.parametrize("epsilon", slow_after(1, [1.0, 2.0, 5.0, 10.0]))
def test_carriers_are_worth_half_as_many_people_again_to_twice_as_many(epsilon: float) -> None:
    carriers, copies = (
        plan_trend(people=100_000, snps=10, epsilon=epsilon, coding=coding).worth
        for coding in ("carrier", "additive")
    )
    assert 1.45 < carriers / copies < 1.95


def test_under_one_pattern_law_it_is_the_closed_form() -> None:
    allele, cases, snps, people = 0.2, 0.3, 3, 20_000
    found = plan_trend(
        people=people,
        snps=snps,
        epsilon=4,
        allele=allele,
        cases=cases,
        coding="additive",
        method="kronecker",
    )
    made = deniable.design(Schema.anonymous((3,) * snps), epsilon=4, method="kronecker")
    phi = float(Channel(made.mechanism, ("a1",)).attenuation[1])
    assert found.odds_ratio is not None
    controls = np.array([0.64, 0.32, 0.04])
    tilted = controls * found.odds_ratio ** np.arange(3)
    tilted /= tilted.sum()
    seen = phi * (cases * tilted + (1 - cases) * controls) + (1 - phi) / 3
    scores = np.arange(3)
    variance = seen @ scores**2 - (seen @ scores) ** 2
    shift = phi * scores @ (tilted - controls)
    power = NormalDist().cdf(
        abs(shift) * (people * cases * (1 - cases) / variance) ** 0.5
        - NormalDist().inv_cdf(1 - 0.05 / snps / 2)
    )
    assert power == pytest.approx(0.8, abs=1e-6)


def test_nothing_is_found_among_few_people_and_privacy_costs() -> None:
    few = plan_trend(people=200, snps=50, epsilon=0.5)
    assert few.odds_ratio is None
    assert without_privacy(replace(few, people=20)) is None
    more = plan_trend(people=100_000, snps=1, epsilon=8)
    usual = without_privacy(more)
    assert usual is not None
    assert more.odds_ratio is not None
    assert 1 < usual < more.odds_ratio
    assert "at most a k-th of one person's budget" in SENTENCE
    assert more.to_plain()["coding"] == "carrier"


@pytest.mark.parametrize(("snps", "top"), [(20, 3), (6, 5), (100, 1)])
def test_the_noncentrality_puts_the_right_snps_on_top_as_often_as_planned(
    snps: int, top: int
) -> None:
    plan = plan_trend(people=10_000, snps=snps, epsilon=6, top=top, method="kronecker")
    draws = np.abs(np.random.default_rng(1).normal(size=(20_000, snps)))
    draws[:, :top] = np.abs(np.random.default_rng(2).normal(size=(20_000, top)) + plan.needed**0.5)
    right = draws[:, :top].min(axis=1) > draws[:, top:].max(axis=1)
    assert right.mean() == pytest.approx(0.9, abs=4 * (0.09 / 20_000) ** 0.5)


def test_people_epsilon_and_odds_ratio_follow_from_each_other() -> None:
    more = {"snps": 8, "top": 2, "method": "kronecker"}
    first = plan_trend(people=20_000, epsilon=6, **more)  # type: ignore[arg-type]
    ratio = first.odds_ratio
    assert ratio is not None
    by_people = plan_trend(epsilon=6, odds_ratio=ratio, **more)  # type: ignore[arg-type]
    assert by_people.people == pytest.approx(20_000, abs=1)
    by_level = plan_trend(people=20_000, odds_ratio=ratio, **more)  # type: ignore[arg-type]
    assert by_level.epsilon == pytest.approx(6, rel=2e-3)
    assert by_level.epsilon >= 6 * (1 - 1e-9)
    few = plan_trend(people=20, odds_ratio=1.1, **more)  # type: ignore[arg-type]
    assert few.epsilon is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"people": 0}, "number of people must be at least 1"),
        ({"snps": 0}, "number of SNPs must be at least 1"),
        ({"allele": 1.0}, "an allele's share is a number between 0 and 1"),
        ({"cases": 0.0}, "the part of cases is"),
        ({"power": 2.0}, "the power is"),
        ({"coding": "dominant"}, "the coding is carrier or additive"),
        ({"epsilon": 0.0}, "epsilon|total|level"),
        ({"top": 2}, "top is from 1 to 1"),
        ({"odds_ratio": 2.0}, "give two of people"),
        ({"people": None, "odds_ratio": 1.0}, "odds ratio must be above 1"),
    ],
)
def test_impossible_studies_are_refused(wrong: dict[str, object], words: str) -> None:
    asked: dict[str, object] = {"people": 100, "snps": 2, "epsilon": 1.0}
    with pytest.raises(InputError, match=words):
        plan_trend(**(asked | wrong))  # type: ignore[arg-type]
