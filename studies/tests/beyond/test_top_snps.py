"""The SNPs most associated: the verdicts, the planned number of records, and a quick run."""

from dataclasses import replace

import pytest

from deniable_studies.beyond.top_snps import OPTIMUM, SAME, STUDY, TOTAL, Case, planned
from deniable_studies.study import Findings, Setting, Verdict

GOOD = [
    Case(5, OPTIMUM, 7.0, 8000, 40, 0.9, 0.97, 0.95),
    Case(5, SAME, 50.0, 8000, 40, 0.85, 0.95, 0.96),
    Case(5, TOTAL, 7.0, 8000, 40, 0.0, 0.1, 0.15),
]


def verdict(claim: str, cases: list[Case]) -> Verdict:
    return STUDY.judges[claim](cases).verdict


def test_claims_hold_by_their_rules_and_fail_beyond_them() -> None:
    best, same, total = GOOD
    other = [replace(case, k=10) for case in GOOD]
    for claim in ("same", "total", "stated", "plan"):
        assert verdict(claim, [*GOOD, *other]) is Verdict.REPRODUCED
    assert verdict("same", [best, replace(same, right_k=0.3), total]) is Verdict.NOT
    assert verdict("same", [best, replace(same, epsilon=20.0), total]) is Verdict.NOT
    assert verdict("total", [best, same, replace(total, right=0.6)]) is Verdict.NOT
    assert verdict("total", [*GOOD, *other[:2], replace(other[2], right=0.6)]) is Verdict.PARTLY
    assert verdict("stated", [replace(case, stated=0.6) for case in GOOD]) is Verdict.NOT
    assert verdict("plan", [replace(best, right_k=0.6), same, total]) is Verdict.NOT


def test_fewer_snps_and_less_noise_need_fewer_records() -> None:
    assert planned(100, 5, 0.25) > planned(20, 5, 0.25) > planned(20, 5, 0.5) > 100


@pytest.fixture(scope="module")
def findings() -> Findings:
    return STUDY.run(Setting(quick=True))


def test_a_quick_run_has_every_method(findings: Findings, draw_all) -> None:
    assert set(findings.table("cases").column("method")) == {OPTIMUM, SAME, TOTAL}
    draw_all(findings)
