"""Table I: what is measured, not how long it takes; and Algorithm 3 as it is printed."""

import math
from pathlib import Path

import numpy as np
import pytest

from deniable.solvers.patterns import heuristic
from deniable_studies.folder import write_study
from deniable_studies.privacy_optimized import run_time as claims
from deniable_studies.privacy_optimized.run_time import (
    AS_PRINTED,
    MODERATE,
    PAPER,
    STUDY,
    Numbers,
    Scale,
    Timing,
    instance,
    law_rows,
    measure,
    run_as_printed,
)
from deniable_studies.study import Setting, Verdict

SMALL = Scale(
    {
        ("closed-form", PAPER): (2,),
        ("lp", PAPER): (3, 5),
        ("heuristic", PAPER): (3, 50, 2_000),
        (AS_PRINTED, PAPER): (3, 50),
        ("optimal", MODERATE): (3, 5),
    },
    runs=2,
    least_runs=2,
    patience=0.0,
    effect_runs=1,
)


@pytest.fixture(scope="module")
def timings() -> list[Timing]:
    return measure(Setting(), SMALL)


def test_the_printed_algorithm_gives_what_the_scaled_one_gives() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        k = int(generator.integers(2, 15))
        counts = generator.integers(2, 8, k).tolist()
        levels = generator.uniform(0.5, 8, k).tolist()
        printed = run_as_printed(counts, levels)
        scaled = heuristic.solve(counts, levels)
        assert printed.first_not_finite is None
        assert len(printed.values) == k + 1
        assert math.log(printed.values[0]) == pytest.approx(scaled.epsilon, rel=1e-6)
        assert printed.levels == pytest.approx(scaled.achieved_epsilon.tolist(), rel=1e-6)


def test_the_printed_algorithm_overflows_where_the_product_leaves_double_precision() -> None:
    generator = np.random.default_rng(2)
    counts, levels = instance(generator, 1_000, PAPER)
    printed = run_as_printed(counts, levels)
    logarithms = np.cumsum(np.log10(counts))
    past = int(np.argmax(logarithms > math.log10(1.7976931348623157e308))) + 1
    assert printed.first_not_finite is not None
    assert abs(printed.first_not_finite - past) <= 10
    assert math.isfinite(heuristic.solve(counts, levels).epsilon)


def test_every_size_is_run_as_often_as_promised(timings: list[Timing]) -> None:
    cells = [(t.method, t.levels, t.n_attributes) for t in timings]
    assert cells == [(m, levels, k) for (m, levels), ks in SMALL.sizes.items() for k in ks]
    for timing in timings:
        assert len(timing.seconds) == (1 if timing.method == AS_PRINTED else 2)
        assert min(timing.seconds) >= 0


def test_methods_get_the_same_instances(timings: list[Timing]) -> None:
    program, rough = (claims.at(timings, method, 3) for method in ("lp", "heuristic"))
    assert program.total == rough.total
    assert program.changed == [0, 0]


def test_what_is_not_measured_is_the_same_for_the_same_seed(timings: list[Timing]) -> None:
    assert law_rows(measure(Setting(), SMALL)) == law_rows(timings)
    measured = {name for name, table in STUDY.text.table.items() if table.measured}
    assert measured == {"table-1", "effects"}


def timing(method: str, k: int, seconds: float, levels: str = PAPER, **more: object) -> Timing:
    return Timing(method, levels, k, [seconds] * 3, **more)  # type: ignore[arg-type]


def test_the_exponent_is_that_of_the_times() -> None:
    rows = [timing("heuristic", k, 1e-6 * k**1.5) for k in (10, 100, 1_000)]
    found = claims.growth(rows, "heuristic", PAPER)
    assert found is not None
    assert found == pytest.approx((1.5, 10, 1_000))
    assert claims.growth(rows, "heuristic", PAPER, least=1_000) is None
    assert claims.growth(rows, "heuristic", MODERATE) is None


@pytest.mark.parametrize(
    ("exponent", "expected"), [(2, Verdict.REPRODUCED), (1, Verdict.PARTLY), (3, Verdict.NOT)]
)
def test_quadratic_growth_is_judged_by_the_printed_algorithm(
    exponent: float, expected: Verdict
) -> None:
    rows = [timing(AS_PRINTED, k, 1e-9 * k**exponent) for k in (100, 500, 1_000)]
    rows += [timing("heuristic", k, 1e-6 * k) for k in (1_000, 10_000)]
    assert claims.quadratic(rows).verdict is expected


def test_feasibility_is_judged_by_the_times_that_were_taken() -> None:
    quick = [timing("lp", 10, 0.1), timing("lp", 12, 0.2), timing("optimal", 12, 0.1, gap=[0.0])]
    assert claims.optimal_up_to_ten(quick).verdict is Verdict.REPRODUCED
    assert claims.hard_beyond_ten(quick).verdict is Verdict.NOT
    slow = [timing("lp", 10, 61), timing("lp", 12, 7e3), timing("optimal", 12, 61, gap=[0.0])]
    assert claims.optimal_up_to_ten(slow).verdict is Verdict.NOT
    assert claims.hard_beyond_ten(slow).verdict is Verdict.REPRODUCED


def test_the_heuristics_times_are_those_of_the_printed_algorithm() -> None:
    ours = [timing("heuristic", k, 1e-3) for k in (1_000, 10_000, 100_000)]
    assert claims.heuristic_in_time(ours).verdict is Verdict.UNTESTED
    printed = [timing(AS_PRINTED, k, 1.0) for k in (1_000, 10_000, 100_000)]
    assert claims.heuristic_in_time([*ours, *printed]).verdict is Verdict.REPRODUCED
    assert claims.heuristic_in_time(printed[:2]).verdict is Verdict.PARTLY
    over = [timing(AS_PRINTED, k, 1.0, not_finite=[580] * 3) for k in (1_000, 10_000)]
    claim = STUDY.claim("heuristic-in-time", claims.heuristic_in_time(over))
    assert claim.verdict is Verdict.PARTLY
    assert "finite in 0 of 3 runs" in claim.found
    assert "overflow" in claim.why
    assert claims.heuristic_in_time([timing(AS_PRINTED, 1_000, 3.0)]).verdict is Verdict.NOT


def test_an_overflow_anywhere_undoes_the_claim_of_large_sizes() -> None:
    fine = [timing(AS_PRINTED, 700, 1.0)]
    assert claims.finite_as_printed(fine).verdict is Verdict.REPRODUCED
    over = [timing(AS_PRINTED, 700, 1.0, not_finite=[590])]
    claim = claims.finite_as_printed(over)
    assert claim.verdict is Verdict.NOT
    assert "finite in 2 of 3 runs" in claim.found


def test_a_gap_that_stays_open_is_said() -> None:
    near = [timing("optimal", 3, 1.0, gap=[1e-9], epsilon=[5.0])]
    assert claims.proof_at_any_size(near, PAPER).verdict is Verdict.REPRODUCED
    wide = [*near, timing("optimal", 100, 1.0, gap=[2.0], epsilon=[100.0])]
    judged = claims.proof_at_any_size(wide, PAPER)
    claim = STUDY.claim("proof-at-the-papers-levels", judged)
    assert claim.verdict is Verdict.NOT
    assert "From k = 100 on" in claim.why


def test_little_effect_is_the_factor_between_settings() -> None:
    effects = {"lp, k = 10": {"a": [1.0, 1.1], "b": [1.9]}, "optimal, k = 10": {"a": [1], "b": [9]}}
    assert claims.little_effect(effects).verdict is Verdict.REPRODUCED
    assert claims.little_effect({"lp, k = 10": {"a": [1.0], "b": [3.0]}}).verdict is Verdict.PARTLY


@pytest.mark.slow
def test_the_page_and_its_figure_are_written(tmp_path: Path, timings: list[Timing]) -> None:
    more = [timing("lp", k, 0.1) for k in (10, 12)]
    more += [timing("optimal", 12, 0.1, gap=[0.0], epsilon=[50.0])]
    more += [timing(AS_PRINTED, k, 0.1) for k in (100, 700)]
    more += [timing("heuristic", 10_000, 0.1)]
    for each in more[:3] + more[5:]:
        each.total, each.changed = [60.0], [0]
        each.epsilon = each.epsilon or [50.0]
    effects = {"lp, k = 10": {"a": [1.0], "b": [1.5]}}
    findings = STUDY.findings(Numbers(SMALL, [*timings, *more], effects), Setting())
    write_study(tmp_path / "out", STUDY, findings, Setting(), overwrite=False)
    assert (tmp_path / "out" / "growth.png").stat().st_size > 10_000
