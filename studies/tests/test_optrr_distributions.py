"""Figures 5(a), 5(b) and 5(d) of Huang and Du: the numbers behind the verdicts."""

import numpy as np
import pytest

from deniable.solvers.matrices.iterative import iterative_estimate
from deniable.solvers.matrices.response import left_inverse
from deniable.solvers.matrices.schemes import warner
from deniable_studies import optrr_distributions, optrr_iterative
from deniable_studies.optrr import at_level, search_front, warner_front
from deniable_studies.study import Findings, Setting, Verdict
from deniable_studies.values import csv_text


@pytest.fixture(scope="module")
def quick() -> Findings:
    return optrr_distributions.run(Setting(quick=True))


@pytest.fixture(scope="module")
def trial() -> optrr_iterative.Trial:
    return optrr_iterative.simulate(Setting(quick=True))


def test_under_gamma_the_search_beats_warner_everywhere_and_ranges_about_twice_as_far(
    quick: Findings,
) -> None:
    verdicts = [claim.verdict for claim in quick.claims[:3]]
    assert verdicts == [Verdict.REPRODUCED] * 3


def test_no_matrix_is_below_the_bound(quick: Findings) -> None:
    assert quick.claims[-1].verdict is Verdict.REPRODUCED


def test_under_a_uniform_prior_warner_begins_at_one_less_delta(quick: Findings) -> None:
    summary = quick.tables[0]
    row = next(row for row in summary.rows if row[0] == "uniform")
    place = list(summary.columns).index("warner_least_privacy")
    # With a uniform prior privacy is 1 − p and the worst posterior is p.
    assert row[place] == pytest.approx(0.25, abs=1.1e-3)


def test_the_iterative_study_has_the_matrices_of_the_other_one(quick: Findings) -> None:
    setting = Setting(quick=True)
    prior = optrr_distributions.gamma_case().shares
    spent = optrr_distributions.effort(setting)
    front = search_front(
        prior, optrr_distributions.DELTA, spent, optrr_distributions.gamma_draws(setting)
    )
    fronts = next(table for table in quick.tables if table.name == "fronts")
    rows = [row for row in fronts.rows if row[0] == "gamma" and row[2] == "search"]
    assert [row[3] for row in rows] == front.privacy.tolist()


def test_simulated_errors_of_a_matrix_far_from_the_edge_are_those_of_inversion() -> None:
    """By brute force: where inversion stays within the distributions both estimates agree."""
    matrix, prior = warner(3, 0.9), np.array([0.4, 0.35, 0.25])
    generator = np.random.default_rng(1)
    seen = generator.multinomial(10_000, matrix @ prior, size=50) / 10_000
    direct = seen @ left_inverse(matrix, prior).T
    assert direct.min() > 0
    assert iterative_estimate(matrix, seen, tolerance=1e-12) == pytest.approx(direct, abs=1e-8)


def test_the_search_errs_less_than_warner_with_the_iterative_estimate(
    trial: optrr_iterative.Trial,
) -> None:
    by_level: dict[float, dict[str, float]] = {}
    for point in trial.points:
        by_level.setdefault(point.level, {})[point.method] = point.iterative
        assert point.privacy >= point.level - 1e-9
    both = [errors for errors in by_level.values() if len(errors) == 2]
    assert len(both) >= 3
    assert all(errors["search"] < errors["warner"] for errors in both)


def test_a_point_takes_the_matrix_of_least_error_that_is_as_private(
    trial: optrr_iterative.Trial,
) -> None:
    prior = optrr_distributions.gamma_case().shares
    front = warner_front(prior, optrr_distributions.DELTA)
    point = next(p for p in trial.points if p.method == "warner")
    place = at_level(front, point.level)
    assert place is not None
    assert point.inversion == pytest.approx(front.record_mse[place] / 10_000)


def test_equation_3_as_printed_does_not_end_in_a_distribution(
    trial: optrr_iterative.Trial,
) -> None:
    assert abs(trial.printed_sum - 1) > 1e-3
    # With a matrix that tells nothing apart from the truth it is a weighted mean of frequencies.
    matrix, shares = np.array([[0.9, 0.3], [0.1, 0.7]]), np.array([0.6, 0.4])
    seen = matrix @ shares
    limit = optrr_iterative.printed_limit(matrix, seen)
    step = (matrix @ (seen * limit)) / (matrix @ limit)
    assert limit == pytest.approx(step, abs=1e-6)
    assert iterative_estimate(matrix, seen, tolerance=1e-12).sum() == pytest.approx(1)


def test_the_same_seed_writes_the_same_simulations() -> None:
    texts = []
    for _ in range(2):
        setting = Setting(quick=True, seed=2)
        prior = optrr_distributions.gamma_case().shares
        front = warner_front(prior, optrr_distributions.DELTA)
        found = optrr_iterative.point_at(
            front, 0.6, "warner", prior, optrr_iterative.QUICK, setting, (0, 1)
        )
        assert found is not None
        empty: dict[str, tuple[float, float]] = {}
        texts.append(
            csv_text(
                optrr_iterative.points_table(
                    optrr_iterative.Trial([found], [], empty, 1.0), optrr_iterative.QUICK
                )
            )
        )
    assert texts[0] == texts[1]
