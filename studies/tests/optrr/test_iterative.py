"""Figure 5(d) of Huang and Du: the numbers behind the verdicts."""

import numpy as np
import pytest

from deniable.solvers.matrices.response import left_inverse
from deniable.solvers.matrices.schemes import warner
from deniable_studies.optrr import distributions, iterative
from deniable_studies.optrr.fronts import at_level, warner_front
from deniable_studies.optrr.iterative_estimate import iterative_estimate
from deniable_studies.study import Setting, Verdict


@pytest.fixture(scope="module")
def trial() -> iterative.Trial:
    return iterative.simulate(Setting(quick=True))


def test_simulated_errors_of_a_matrix_far_from_the_edge_are_those_of_inversion() -> None:
    """By brute force: where inversion stays within the distributions both estimates agree."""
    matrix, prior = warner(3, 0.9), np.array([0.4, 0.35, 0.25])
    generator = np.random.default_rng(1)
    seen = generator.multinomial(10_000, matrix @ prior, size=50) / 10_000
    direct = seen @ left_inverse(matrix, prior).T
    assert direct.min() > 0
    assert iterative_estimate(matrix, seen, tolerance=1e-12) == pytest.approx(direct, abs=1e-8)


def test_the_search_errs_less_than_warner_with_the_iterative_estimate(
    trial: iterative.Trial,
) -> None:
    by_level: dict[float, dict[str, float]] = {}
    for point in trial.points:
        by_level.setdefault(point.level, {})[point.method] = point.iterative
        assert point.privacy >= point.level - 1e-9
    both = [errors for errors in by_level.values() if len(errors) == 2]
    assert len(both) >= 3
    assert all(errors["search"] < errors["warner"] for errors in both)


def test_a_point_takes_the_matrix_of_least_error_that_is_as_private(
    trial: iterative.Trial,
) -> None:
    prior = distributions.gamma_case().shares
    front = warner_front(prior, distributions.DELTA)
    point = next(p for p in trial.points if p.method == "warner")
    place = at_level(front, point.level)
    assert place is not None
    assert point.inversion == pytest.approx(front.record_mse[place] / 10_000)


def test_equation_3_as_printed_does_not_end_in_a_distribution(
    trial: iterative.Trial,
) -> None:
    assert abs(trial.printed_sum - 1) > 1e-3
    # With a matrix that tells nothing apart from the truth it is a weighted mean of frequencies.
    matrix, shares = np.array([[0.9, 0.3], [0.1, 0.7]]), np.array([0.6, 0.4])
    seen = matrix @ shares
    limit = iterative.printed_limit(matrix, seen)
    step = (matrix @ (seen * limit)) / (matrix @ limit)
    assert limit == pytest.approx(step, abs=1e-6)
    assert iterative_estimate(matrix, seen, tolerance=1e-12).sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_simulation() -> None:
    prior = distributions.gamma_case().shares
    front = warner_front(prior, distributions.DELTA)

    def point(seed: int) -> iterative.Point | None:
        setting = Setting(quick=True, seed=seed)
        size = iterative.Size(1, 20)
        return iterative.point_at(front, 0.6, "warner", prior, size, setting, (0, 1))

    assert point(2) == point(2) != point(3)
    assert point(2) is not None


def test_the_verdicts_are_those_of_the_numbers(trial: iterative.Trial) -> None:
    findings = iterative.STUDY.findings(trial, Setting(quick=True))
    verdicts = [claim.verdict for claim in findings.claims]
    assert verdicts == [Verdict.REPRODUCED] * 3 + [Verdict.NOT]
    assert "θ_{i,j}" in findings.claims[-1].why


def test_every_figure_can_be_drawn(trial: iterative.Trial, draw_all) -> None:
    draw_all(iterative.STUDY.findings(trial, Setting(quick=True)))
