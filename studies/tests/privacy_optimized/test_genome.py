"""The genome study: its simulation against scipy and dense matrices, its verdicts by rule."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest

from deniable_studies.privacy_optimized import genome
from deniable_studies.privacy_optimized.genome import (
    METHODS,
    N_COPIES,
    PValues,
    Run,
    accuracy,
    channel_of,
    examine,
    laws,
    nothing_to_find,
    records_of,
    release,
    simulate,
    statistic,
)
from deniable_studies.study import Setting, Verdict


def test_the_statistic_is_pearsons_and_tables_have_the_papers_shares() -> None:
    tables = simulate(np.random.default_rng(1), 400)
    assert np.all(tables.sum(axis=(1, 2)) == N_COPIES)
    expected = [chi2_contingency(table, correction=False).statistic for table in tables[:20]]
    np.testing.assert_allclose(statistic(tables)[:20], expected, rtol=1e-10)
    # 1/3, then a third of 2/3, then two fifths of 4/9; four standard errors of a mean of 400.
    shares = tables.mean(axis=0) / N_COPIES
    np.testing.assert_allclose(shares.ravel(), [1 / 3, 2 / 9, 8 / 45, 4 / 15], atol=0.0022)


def test_a_snps_channel_is_four_ary_randomized_response() -> None:
    keep = 0.7
    forward, inverse = channel_of(keep)
    dense = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    table = np.array([[0.4, 0.1], [0.2, 0.3]])
    np.testing.assert_allclose(forward.apply(table).ravel(), dense @ table.ravel(), rtol=1e-14)
    np.testing.assert_allclose(inverse.apply(forward.apply(table)), table, rtol=1e-13)


def test_methods_spend_the_same_total_and_no_more() -> None:
    asked = np.random.default_rng(2).uniform(3, 5, 10).tolist()
    found = laws(asked)
    spent = {method: found.mechanisms[method].epsilon for method in METHODS}
    assert spent["heuristic"] == found.total
    assert spent["kronecker"] == pytest.approx(found.total, abs=1e-9)
    assert found.total - 0.1 < spent["optimal"] <= found.total
    levels = {m: np.array(found.mechanisms[m].attribute_epsilon) for m in METHODS}
    ratio = levels["kronecker"] / levels["heuristic"]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert levels["optimal"].min() > levels["kronecker"].mean()


@pytest.mark.slow
def test_released_counts_and_corrected_statistics_come_back_to_the_truth() -> None:
    generator = np.random.default_rng(3)
    mechanism = laws([4.0] * 12).mechanisms["kronecker"]
    tables = simulate(generator, 12)
    records = records_of(tables, generator)
    corrected, naive = [], []
    for seed in range(25):
        released = release(mechanism, records, seed)
        assert np.all(released.sum(axis=(1, 2)) == N_COPIES)
        tested = examine(released, mechanism.keep_probability)
        corrected.append((tested.corrected - statistic(tables)).mean())
        naive.append((tested.naive - statistic(tables)).mean())
    error = np.std(corrected, ddof=1) / 5
    assert abs(np.mean(corrected)) < 5 * error
    assert np.mean(naive) < -20  # what is released is attenuated


@pytest.mark.slow
def test_the_same_seed_gives_the_same_runs_and_another_gives_others() -> None:
    first = accuracy(Setting(seed=5), {10: 1})
    assert [run.method for run in first] == list(METHODS)
    assert repr(accuracy(Setting(seed=5), {10: 1})) == repr(first)
    assert repr(accuracy(Setting(seed=6), {10: 1})) != repr(first)


@pytest.mark.slow
def test_p_values_of_the_corrected_test_are_uniform_and_the_released_ones_are_not() -> None:
    null = nothing_to_find(Setting(seed=1), 300)
    assert kstest(null.corrected, "uniform").pvalue > 1e-3
    assert np.mean(null.naive < 0.05) > 0.5
    assert np.all(np.diff(null.corrected) >= 0)


def made_up(**changes: dict[str, float]) -> list[Run]:
    """Two runs at k = 10 and 20 that bear every claim out, but for what is changed by method."""
    values = {
        "kronecker": {"naive": 61.0, "corrected": 30.0, "notebook": 62.0},
        "heuristic": {"naive": 10.0, "corrected": 6.0, "notebook": 20.0},
        "optimal": {"naive": 8.0, "corrected": 5.0, "notebook": float("nan")},
    }
    return [
        Run(
            *(k, method, number, 30.0, 30.0, 3.0, 0.0, 80.0),
            bias=0.1 * (-1) ** number,
            found=1.0,
            **(values[method] | changes.get(method, {})),
        )
        for k in (10, 20)
        for method in METHODS
        for number in range(2)
    ]


CLAIMS = {
    "half": genome.half,
    "slip": genome.slip,
    "optimum": genome.optimum,
    "corrected": genome.corrected,
    "unbiased": genome.unbiased,
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_holds_is_reproduced(name: str) -> None:
    assert CLAIMS[name](made_up()).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("name", "changes", "verdict"),
    [
        ("half", {"heuristic": {"naive": 40.0}}, Verdict.NOT),
        ("slip", {"heuristic": {"notebook": 9.0}}, Verdict.PARTLY),
        ("optimum", {"optimal": {"naive": 11.0}}, Verdict.NOT),
        ("corrected", {"optimal": {"corrected": 9.0}}, Verdict.PARTLY),
    ],
)
def test_a_claim_that_fails_is_not_reproduced(
    name: str, changes: dict[str, dict[str, float]], verdict: Verdict
) -> None:
    claim = genome.STUDY.claim(name, CLAIMS[name](made_up(**changes)))
    assert claim.verdict is verdict
    assert claim.why


def test_a_bias_is_noticed() -> None:
    runs = [replace(run, bias=run.bias + 2.0) for run in made_up()]
    assert genome.unbiased(runs).verdict is Verdict.NOT


def test_heights_are_judged_point_by_point() -> None:
    assert genome.heights(made_up()).verdict is Verdict.NOT
    same = made_up(heuristic={"naive": 20.3})
    assert genome.heights(same).verdict is Verdict.REPRODUCED


def test_p_values_off_the_diagonal_are_noticed() -> None:
    even = (np.arange(4000) + 0.5) / 4000
    misled = even**3
    assert genome.uniform(PValues(even, misled)).verdict is Verdict.REPRODUCED
    assert genome.uniform(PValues(misled, misled)).verdict is Verdict.PARTLY
    assert genome.uniform(PValues(misled, even)).verdict is Verdict.NOT


@pytest.mark.slow
def test_the_page_says_what_the_runs_were_and_every_figure_can_be_drawn(draw_all) -> None:
    even = (np.arange(40) + 0.5) / 40
    numbers = genome.Numbers(made_up(), PValues(even, even**3))
    findings = genome.STUDY.findings(numbers, Setting())
    assert "Averages over 2 runs (the paper: 10)" in findings.choices[3]
    assert "0.2577" in findings.claims[-1].rule  # 1.63/√40
    assert len(findings.table("accuracy").rows) == len(numbers.runs)
    assert findings.table("p-values").column("corrected")[4] == 0.1
    draw_all(findings)
