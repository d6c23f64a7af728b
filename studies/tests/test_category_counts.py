"""Figures 3 and 4: the numbers behind the verdicts, in the quick form."""

import pytest

from deniable_studies import category_count_claims, category_counts
from deniable_studies.category_counts import MOST, SAME_MOST, draw, draw_same, thresholds
from deniable_studies.record_levels import ATTRIBUTES, Instance, draw_instances, instance_table
from deniable_studies.study import Findings, Setting, Verdict
from deniable_studies.values import csv_text


@pytest.fixture(scope="module")
def findings() -> Findings:
    return category_counts.run(Setting(quick=True))


def verdict(findings: Findings, start: str) -> Verdict:
    (found,) = [c.verdict for c in findings.claims if start in c.statement]
    return found


def test_what_has_a_proof_comes_out(findings: Findings) -> None:
    assert verdict(findings, "The value of (10) tends to increase") is Verdict.REPRODUCED
    assert verdict(findings, "No clear trend in the value of (11)") is Verdict.NOT
    assert verdict(findings, "However, the increasing trend") is Verdict.PARTLY
    assert verdict(findings, "significantly stronger") is not Verdict.NOT


def test_the_draws_have_the_ranges_that_the_choices_state(findings: Findings) -> None:
    (table,) = [t for t in findings.tables if t.name == "instances"]
    for row in table.rows:
        counts = [int(count) for count in str(row[table.columns.index("categories")]).split()]
        assert len(counts) == row[0]
        assert 2 <= min(counts) <= max(counts) <= MOST[len(counts)]
    assert all(f"2 to {most} (k = {k})" in findings.choices[0] for k, most in MOST.items())
    generator = Setting().generator(1)
    counts, levels = draw_same(generator, 2000)
    assert (min(counts), max(counts)) == (2, SAME_MOST)
    assert set(levels) == {3.0}


def test_few_categories_are_near_optimal_up_to_about_30_in_all(findings: Findings) -> None:
    (table,) = [t for t in findings.tables if t.name == "thresholds"]
    found = {row[0]: row[table.columns.index("within_1_percent")] for row in table.rows}
    assert set(found) == set(ATTRIBUTES)
    # 28 to 33 with 200 draws.
    assert all(isinstance(value, float) and 20 <= value <= 40 for value in found.values())


def test_the_same_seed_gives_the_same_draws_and_the_second_set_is_another() -> None:
    def table(stream: int) -> str:
        return csv_text(instance_table(draw_instances(Setting(), (3,), 4, draw, stream=stream), ""))

    assert table(0) == table(0) != table(1)


def at(sum_categories: int, excess: float) -> Instance:
    counts = (sum_categories - 4, 2, 2)
    return Instance(counts, (3.0,) * 3, (3.0,) * 3, 4 * excess, 4.0, 4.0, 0.0, None, 1.0)


def test_thresholds_are_read_per_tolerance() -> None:
    draws = {3: [at(total, 1 + (total - 10) / 100) for total in range(10, 30)]}
    assert thresholds(draws, 1.05) == {3: 15}
    assert thresholds(draws, 1.1) == {3: 20}
    assert thresholds({3: [at(10, 1.5)]}, 1.1) == {3: None}


def test_the_threshold_verdict_asks_for_a_factor_and_for_all_four() -> None:
    draws = {k: [at(10, 1)] for k in ATTRIBUTES}
    for values, expected in (
        ((30, 30, 30, 35), Verdict.REPRODUCED),
        ((30, 30, 30, 43), Verdict.PARTLY),
        ((30, 30, 30, 60), Verdict.NOT),
        ((30, 30, 30, None), Verdict.NOT),
    ):
        found = dict(zip(ATTRIBUTES, values, strict=True))
        claim = category_count_claims.same_threshold(found, draws, found, draws)
        assert claim.verdict is expected
