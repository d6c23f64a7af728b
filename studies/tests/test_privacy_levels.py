"""Figures 1 and 2: the numbers behind the verdicts, in the quick form."""

import math

import numpy as np
import pytest

from deniable_studies import privacy_level_claims, privacy_levels
from deniable_studies.record_levels import (
    ATTRIBUTES,
    Instance,
    draw_instances,
    instance_table,
)
from deniable_studies.study import Findings, Setting, Verdict
from deniable_studies.two_attributes import Trend
from deniable_studies.values import csv_text


@pytest.fixture(scope="module")
def findings() -> Findings:
    return privacy_levels.run(Setting(quick=True))


def verdict(findings: Findings, start: str) -> Verdict:
    (found,) = [c.verdict for c in findings.claims if c.statement.startswith(start)]
    return found


def test_what_has_a_proof_is_reproduced(findings: Findings) -> None:
    assert verdict(findings, "The optimal privacy level is (10)") is Verdict.REPRODUCED
    assert verdict(findings, "The smallest ε, with its proof") is Verdict.REPRODUCED
    assert verdict(findings, "When the values of ε_1 and ε_2") is Verdict.REPRODUCED


def test_the_heuristic_does_not_maintain_the_levels(findings: Findings) -> None:
    assert verdict(findings, "The heuristic satisfies") is Verdict.NOT
    (table,) = [t for t in findings.tables if t.name == "summary"]
    raised = {row[0]: row[table.columns.index("share_raised")] for row in table.rows}
    kept = {row[0]: row[table.columns.index("share_kept")] for row in table.rows}
    # 60 % and 3 % of 200 draws at k = 10; 25 draws here.
    assert isinstance(raised[10], float)
    assert raised[10] > 0.3
    assert kept[10] < 0.3 < kept[3]  # type: ignore[operator]


def test_the_optimum_is_below_the_sum_and_the_heuristic_not_below_the_optimum(
    findings: Findings,
) -> None:
    (table,) = [t for t in findings.tables if t.name == "instances"]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert {row["attributes"] for row in rows} == set(ATTRIBUTES)
    for row in rows:
        assert row["optimum_at_requested_nats"] < row["sum_requested_nats"]
        assert row["heuristic_nats"] >= row["optimum_at_achieved_nats"] - 1e-8
        assert row["linear_program_nats"] == pytest.approx(
            row["optimum_at_requested_nats"], abs=1e-8
        )


def test_the_same_seed_gives_the_same_tables_and_another_seed_others() -> None:
    def table(seed: int) -> str:
        draws = draw_instances(
            Setting(seed=seed), (3, 4), 5, privacy_levels.draw, linear_program_up_to=4
        )
        return csv_text(instance_table(draws, "draws"))

    assert table(1) == table(1) != table(2)


def at(sum_levels: float, heuristic: float, optimum: float = 1.0) -> Instance:
    levels = (sum_levels / 3,) * 3
    return Instance((5,) * 3, levels, levels, heuristic, optimum, optimum, 0.0, optimum, 1.0)


def test_the_threshold_verdict_needs_k_ln_k_and_not_k() -> None:
    exact = {k: 2 * k * math.log(k) for k in ATTRIBUTES}
    assert privacy_level_claims.proportional(exact).verdict is Verdict.REPRODUCED
    plain = {k: 2.0 * k for k in ATTRIBUTES}
    assert privacy_level_claims.proportional(plain).verdict is Verdict.NOT
    missing = privacy_level_claims.proportional(exact | {10: None})
    assert missing.verdict is Verdict.PARTLY
    assert "no Σ ε_i" in missing.why
    assert privacy_level_claims.proportional(dict.fromkeys(exact)).verdict is Verdict.NOT


def test_one_draw_above_the_sum_undoes_the_claim_of_stronger_privacy() -> None:
    good = {k: [at(10, 5, 5)] * 4 for k in ATTRIBUTES}
    assert privacy_level_claims.stronger(good).verdict is Verdict.REPRODUCED
    bad = good | {3: [*good[3], at(10, 10.5, 5)]}
    claim = privacy_level_claims.stronger(bad)
    assert claim.verdict is Verdict.NOT
    assert "1.05 times" in claim.why


def test_no_clear_trend_means_both_ways() -> None:
    both = Trend(10, 0.4, 0.6)
    assert privacy_level_claims.trend_of_11(both, both).verdict is Verdict.REPRODUCED
    up = Trend(10, 0.0, 1.0)
    assert privacy_level_claims.trend_of_11(up, both).verdict is Verdict.PARTLY
    assert privacy_level_claims.trend_of_11(up, up).verdict is Verdict.NOT


def test_a_total_of_20_in_equal_levels_is_what_the_design_says() -> None:
    line = [at(s, 0.5 * s, 0.4 * s) for s in np.linspace(20, 40, 30).tolist()]
    bought = privacy_levels.what_20_buys(line)
    assert bought.optimum == pytest.approx(50)
    assert bought.heuristic == pytest.approx(40)
    # Large equal levels: ε → ε_i + 6 ln 5.
    assert bought.equal / 7 + 6 * math.log(5) == pytest.approx(20, abs=0.02)
