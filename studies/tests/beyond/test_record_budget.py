"""Budgets for whole records: the numbers behind the verdicts."""

import tomllib
from itertools import product
from pathlib import Path

import pytest

from deniable_studies.beyond.budgets import ALL, point
from deniable_studies.beyond.record_budget import (
    EXAMPLE,
    HALF_UNITS,
    PRINTED,
    STUDY,
    Bought,
    Numbers,
    grid,
    measure,
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
    assert verdict(findings, "At the same ε independent") is Verdict.NOT
    assert verdict(findings, "For shares alone published forms") is Verdict.REPRODUCED
    assert verdict(findings, "Given all other true values") is Verdict.REPRODUCED
    assert verdict(findings, "Under balanced every table") is Verdict.REPRODUCED
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


def test_a_printed_number_that_is_wrong_is_seen() -> None:
    printed = PRINTED[1]
    laws = [point(printed.budget, method) for method in ("optimal", "kronecker")]
    row = Bought(printed, HALF_UNITS[1], *laws, balanced=None)
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
