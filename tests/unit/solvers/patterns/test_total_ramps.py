"""Ramps that spend a total: which caps are tried, and from where."""

import itertools
import math

import numpy as np
import pytest

from deniable.solvers.patterns import totals
from deniable.solvers.patterns.total_ramps import Division, Reached, TotalRamps, _Found
from deniable.solvers.problem import checked_problem


def alike(multiple: float) -> TotalRamps:
    """The search for twelve attributes that are alike."""
    problem, none = checked_problem([3] * 12, [1.0] * 12), np.full(12, math.inf)
    return TotalRamps(Division(problem, 2.0, none, multiple, none, 0.5), np.zeros(12, np.int64))


@pytest.mark.parametrize("settles", [True, False])
def test_a_long_way_is_gone_only_where_a_ramp_settles_under_no_caps(
    settles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Under 6x no start settled, and 9 s went to ways there that led nowhere.
    search, far = alike(6.0), []

    def by_ramps(_: float, cap: float, *__: object, afar: bool = False) -> _Found:
        far.append(afar)
        if not (afar or settles) or cap > 2.0:
            return _Found()
        return _Found(Reached(0.5, np.full(12, 0.5), [], "ramp", None, cap))

    monkeypatch.setattr(search, "_by_ramps", by_ramps)
    monkeypatch.setattr(search, "_near", lambda *_, **__: None)
    monkeypatch.setattr(search, "_between", lambda best, *_: best)
    best = search.best(0.3, -math.inf)
    assert best is not None
    assert best.multiple == 2.0
    assert any(far) == (not settles)


@pytest.mark.parametrize(("strict", "loose"), [(1.5, 1.7), (2.0, 2.7), (3.0, 6.0)])
def test_what_is_tried_for_a_request_with_a_floor_is_tried_for_a_looser_one(
    strict: float, loose: float
) -> None:
    # A tenth below the request's caps they were others: 1.7x bought 2.876 of the 2.880 of 1.5x.
    tried, more = (alike(cap)._rungs(np.full(12, cap)) for cap in (strict, loose))
    assert tried[0] == math.inf
    assert len(tried) > 3
    assert set(tried) < set(more)


@pytest.mark.slow
def test_beside_a_giant_looser_caps_buy_no_less() -> None:
    # 2x bought 4.818, and 1.5x 4.829.
    counts = [2, 4, 2, 3, 3, 3, 4, 3, 2, 2, 3, 2, 3, 3, 4, 4, 4, 2, 4, 2, 2, 3, 4, 4]
    ratios = [1.07, 0.35, 0.94, 0.39, 0.33, 1.11, 0.5, 1.35, 0.84, 0.3, 1.08, 0.72]
    ratios += [0.5, 1.31, 1.35, 1.01, 0.26, 1.34, 0.31, 0.53, 1.05, 1.49, 0.59, 20.0]
    bought = [
        totals.spend(counts, 3.0, ratios, [math.inf] * 24, cap, 0.4).levels.sum()
        for cap in (1.5, 1.7, 2.0, 3.0)
    ]
    assert all(more >= less - 1e-3 for less, more in itertools.pairwise(bought))
