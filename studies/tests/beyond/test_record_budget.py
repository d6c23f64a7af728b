"""Budgets for whole records: the numbers behind the verdicts, and brute force on small laws."""

import math
import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from deniable.design.design import design
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.beyond.record_budget import (
    ALL,
    EXAMPLE,
    FORMS,
    FORMS_SHARES,
    RSFD,
    RSFD_STATED,
    SMP,
    STUDY,
    SUBSETS,
    Budget,
    Numbers,
    grid,
    measure,
    most_attenuation,
    parts_of_cost,
    point,
    saved,
)
from deniable_studies.study import Findings, Setting, Verdict

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def numbers() -> Numbers:
    return measure(Setting(quick=True))


@pytest.fixture(scope="module")
def findings(numbers: Numbers) -> Findings:
    return STUDY.findings(numbers, Setting(quick=True))


def verdict(findings: Findings, start: str) -> Verdict:
    (claim,) = [c for c in findings.claims if c.statement.startswith(start)]
    return claim.verdict


def test_verdicts_are_those_that_were_looked_into(findings: Findings) -> None:
    assert verdict(findings, "At the same ε for the record") is Verdict.REPRODUCED
    assert verdict(findings, "At the same ε independent") is Verdict.REPRODUCED
    assert verdict(findings, "For shares alone published forms") is Verdict.REPRODUCED
    assert verdict(findings, "Someone who knows") is Verdict.REPRODUCED
    assert verdict(findings, "Balanced keeps every table") is Verdict.REPRODUCED
    assert verdict(findings, "Under the optimum of identical") is Verdict.REPRODUCED
    assert verdict(findings, "RS+FD is a pattern law") is Verdict.REPRODUCED
    assert verdict(findings, "RS+FD gives the whole tuple") is Verdict.NOT


def test_every_method_is_in_the_table_at_every_budget(findings: Findings) -> None:
    laws = findings.tables[0]
    assert len(laws.rows) == len(ALL) * len(list(grid(quick=True)))
    assert len(set(map(str, laws.rows))) == len(laws.rows)


def test_the_full_grid_goes_from_2_to_1000_attributes_and_from_1_to_10_nats() -> None:
    budgets = list(grid(quick=False))
    assert len(set(budgets)) == len(budgets)
    assert {b.n_attributes for b in budgets} >= {2, 1000}
    assert {b.epsilon for b in budgets} == set(range(1, 11))


def test_attenuations_are_those_of_the_records_that_are_drawn() -> None:
    budget, n = Budget(3, 3, 4.0), 400_000
    optimal = point(budget, "optimal")
    mechanism = design(Schema.anonymous([3, 3, 3]), epsilon=4.0, method="optimal").mechanism
    true = [np.zeros(n, dtype=np.uint8)] * 3
    drawn = Randomizer(mechanism, SeededRandomness(5)).randomize(true)
    signs = [np.where(column == 0, 1.0, -1 / 2) for column in drawn]
    # The standard deviation of a product of signs is at most 1.
    assert optimal.marginal == pytest.approx(signs[0].mean(), abs=4 / n**0.5)
    assert optimal.pair == pytest.approx((signs[0] * signs[1]).mean(), abs=4 / n**0.5)


def test_the_kronecker_product_of_a_budget_is_independent_responses() -> None:
    kronecker = point(Budget(4, 5, 3.0), "kronecker")
    level = 3.0 / 5
    phi = math.expm1(level) / (math.exp(level) + 3)
    assert kronecker.marginal == pytest.approx(phi, rel=1e-9)
    assert kronecker.pair == pytest.approx(phi**2, rel=1e-9)
    assert kronecker.given_rest == pytest.approx(level, rel=1e-9)


def test_baselines_keep_the_level_they_are_compared_at() -> None:
    honest, stated, sampled = (point(Budget(5, 10, 2.0), m) for m in (RSFD, RSFD_STATED, SMP))
    assert honest.epsilon == sampled.epsilon == 2.0
    assert stated.epsilon == pytest.approx(math.log(10 * math.expm1(2.0) + 1))
    assert stated.given_rest == pytest.approx(2.0)
    assert honest.pair == stated.pair == 0.0
    assert sampled.pair is None


def test_subset_selection_and_forms_are_worth_what_brute_force_says() -> None:
    budget = Budget(6, 2, 1.0)
    best = 0.0
    for size in range(1, 6):
        # Column of the set {0, …, s − 1}, and what it tells of the share of category 0.
        column = np.where(np.arange(6) < size, math.e, 1.0)
        density = column / column.mean()
        best = max(best, float(((density - 1) ** 2).mean()) / 5)
    assert point(budget, SUBSETS).marginal == pytest.approx(math.sqrt(best / 2))
    single = point(Budget(3, 3, 2.0), FORMS_SHARES)
    assert most_attenuation(Budget(3, 3, 2.0)) >= single.marginal
    assert single.pair is None
    both = point(Budget(3, 3, 2.0), FORMS)
    law = design(Schema.anonymous((3, 3, 3)), epsilon=2.0, method="forms").mechanism.forms
    assert law is not None
    told = law.pair_information()
    assert both.marginal == pytest.approx(math.sqrt(told[0, 0]), rel=0.05)
    assert both.pair == pytest.approx(math.sqrt(told[0, 1]), rel=0.1)


def test_what_cap_and_floor_cost_is_told_apart() -> None:
    by_floor = point(Budget(5, 2, 1.0), "balanced")
    cap, floor = parts_of_cost(by_floor)
    assert cap == pytest.approx(0, abs=1e-6)
    assert 0.2 < floor < by_floor.cost  # of a total the floor is raised further
    by_cap = point(Budget(2, 10, 3.0), "balanced")
    cap, floor = parts_of_cost(by_cap)
    assert cap == pytest.approx(by_cap.cost, abs=1e-6)
    assert floor == pytest.approx(0, abs=1e-6)


def test_nothing_is_saved_where_nothing_is_left() -> None:
    assert saved(0.2, 0.1) == pytest.approx(4)
    assert saved(-0.2, 0.1) == pytest.approx(4)
    assert saved(0.0, 0.1) is saved(None, 0.1) is None


def test_a_printed_number_that_is_wrong_is_seen(numbers: Numbers) -> None:
    row = numbers.bought[1]
    for stated, computed, half_unit in zip(row.stated, row.computed, row.half_units, strict=True):
        assert abs(stated - computed) <= half_unit
        assert abs(1.05 * stated - computed) > half_unit


def test_category_counts_of_the_example_are_those_of_its_schema() -> None:
    text = (ROOT / "examples" / "insurance.toml").read_text(encoding="utf-8")
    counts = []
    for entry in tomllib.loads(text)["attribute"]:
        size = len(entry["categories"]) if "categories" in entry else len(entry["bins"]) - 1
        counts += [size] * len(entry.get("names", ["one"]))
    assert sorted(counts) == sorted(EXAMPLE)


def test_the_same_numbers_come_out_again(numbers: Numbers) -> None:
    for budget, method in product(list(grid(quick=True))[:3], ("optimal", "balanced")):
        assert point.__wrapped__(budget, method) == numbers.points.at(budget, method)


def test_every_figure_can_be_drawn(findings: Findings, draw_all) -> None:
    draw_all(findings)
