"""Fronts and the bound: what is compared with what, against brute force on small priors."""

import numpy as np
import pytest

from deniable.frontier.priors import Prior
from deniable.schema import Attribute
from deniable.solvers.matrices import response
from deniable.solvers.matrices.search import Matrices
from deniable_studies.optrr import fronts
from deniable_studies.optrr.fronts import (
    Case,
    Comparison,
    Effort,
    Level,
    at_level,
    beaten,
    levels_of,
    search_and_compare,
    warner_front,
)
from deniable_studies.study import Setting, Verdict

SHARES = (0.5, 0.3, 0.2)
SMALL = Effort(60, 20, 3, 2)


def case(shares: tuple[float, ...] = SHARES, delta: float = 0.8) -> Case:
    names = tuple(f"c{i}" for i in range(len(shares)))
    return Case("three", Prior(Attribute("a", names), shares, "a test"), delta)


def front(*points: tuple[float, float]) -> Matrices:
    privacy, errors = np.array(points).T
    return Matrices(np.zeros((len(points), 2, 2)), privacy, errors)


@pytest.fixture(scope="module")
def small() -> Comparison:
    return search_and_compare(case(), SMALL, np.random.default_rng(1), Setting())


def test_warners_front_is_what_a_plain_sweep_leaves() -> None:
    prior, delta = np.array(SHARES), 0.8
    kept = []
    for k in range(1001):
        p = k / 1000
        matrix = np.full((3, 3), (1 - p) / 2)
        np.fill_diagonal(matrix, p)
        joint = matrix * prior
        if (joint.max(axis=1) / joint.sum(axis=1)).max() <= delta and abs(3 * p - 1) > 1e-9:
            kept.append((1 - joint.max(axis=1).sum(), float(response.record_mse(matrix, prior))))
    expected = sorted(
        (p, e)
        for p, e in kept
        if not any((q >= p - 1e-12 and f < e) or (q > p + 1e-12 and f <= e) for q, f in kept)
    )
    found = warner_front(prior, delta)
    assert len(found) == len(expected)
    assert found.privacy == pytest.approx([p for p, _ in expected], abs=1e-11)
    assert found.record_mse == pytest.approx([e for _, e in expected], rel=1e-9)


def test_points_are_beaten_only_by_matrices_that_are_as_private_and_err_less() -> None:
    warner = front((0.1, 1.0), (0.2, 2.0), (0.3, 3.0), (0.4, 4.0))
    found = front((0.1, 0.5), (0.1995, 1.9), (0.3, 3.5))
    counts = beaten(warner, found)
    assert (counts.n_points, counts.n_beaten, counts.n_beyond) == (4, 1, 1)
    # 0.5/1, 3.5/2 and 3.5/3
    assert counts.median_ratio == pytest.approx(3.5 / 3)


def test_only_the_range_that_both_fronts_reach_counts_within_it() -> None:
    warner = front((0.1, 1.0), (0.2, 2.0), (0.3, 3.0), (0.4, 4.0))
    found = front((0.15, 1.5), (0.25, 1.9), (0.3, 2.5), (0.31, 9.0))
    both = Comparison(case(), warner, found, [])
    counts = beaten(warner, found)
    assert (counts.n_common, counts.n_common_beaten) == (2, 2)  # at 0.2 and 0.3
    assert fronts.better_within_range([both]).verdict is Verdict.REPRODUCED
    worse = Comparison(case(), warner, front((0.15, 1.5), (0.35, 3.5)), [])
    assert fronts.better_within_range([both, worse]).verdict is Verdict.NOT
    apart = Comparison(case(), warner, front((0.5, 1.0)), [])
    assert fronts.better_within_range([apart]).verdict is Verdict.UNTESTED


def test_without_a_point_to_compare_there_is_no_ratio_and_no_claim_of_one() -> None:
    counts = beaten(front((0.4, 1.0)), front((0.3, 0.5)))
    assert (counts.median_ratio, counts.n_beyond) == (None, 1)


def test_the_best_matrix_at_a_level_is_found_among_the_private_ones() -> None:
    found = front((0.1, 1.0), (0.2, 2.0))
    assert [at_level(found, level) for level in (0.0, 0.15, 0.2, 0.3)] == [0, 1, 1, None]


def test_levels_lie_between_what_delta_and_the_prior_allow() -> None:
    levels = levels_of(case(), 5)
    assert len(levels) == 5
    assert 0.2 < levels[0] < levels[-1] < 0.5


def test_no_method_is_below_the_bound_and_the_search_keeps_delta(small: Comparison) -> None:
    prior = small.case.shares
    assert response.worst_posterior(small.search.matrices, prior).max() <= 0.8 + 1e-9
    for level in small.levels:
        for error in (level.warner, level.search, level.square):
            assert error is None or error >= level.bound * (1 - 1e-9)
    assert fronts.nothing_below_the_bound([small]).verdict is Verdict.REPRODUCED


def test_a_matrix_below_the_bound_would_be_noticed(small: Comparison) -> None:
    wrong = [Level(level.privacy, 10.0, 1.0, 1.0, 1.0) for level in small.levels]
    planted = Comparison(small.case, small.warner, small.search, wrong)
    assert fronts.nothing_below_the_bound([planted]).verdict is Verdict.NOT
    assert fronts.nearest_to_the_bound([planted]).verdict is Verdict.NOT


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ([(0.5, 0.1)], Verdict.REPRODUCED),
        ([(0.489, 0.1)], Verdict.PARTLY),
        ([(0.3, 0.1)], Verdict.NOT),
    ],
)
def test_always_better_is_judged_by_every_point(
    points: list[tuple[float, float]], verdict: Verdict
) -> None:
    warner = front(*((0.01 * i, float(i)) for i in range(1, 51)))
    judged = fronts.always_better([Comparison(case(), warner, front(*points), [])])
    assert judged.verdict is verdict
    assert bool(judged.values["left"]) is (verdict is not Verdict.REPRODUCED)


@pytest.mark.slow
def test_the_same_seed_writes_the_same_tables_and_another_seed_another_front() -> None:
    def rows(seed: int) -> list[object]:
        setting = Setting(seed=seed)
        found = [search_and_compare(case(), SMALL, setting.generator(1), setting)]
        return [
            make(found) for make in (fronts.fronts_rows, fronts.levels_rows, fronts.summary_rows)
        ]

    first = rows(3)
    assert first == rows(3)
    assert first[0] != rows(4)[0]
