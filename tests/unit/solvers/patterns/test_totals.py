"""A total is spent, on levels that are met, and never buys less than independent responses."""

import math
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.response import attenuation
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns import balanced, totals
from deniable.solvers.patterns.ramps.one_law import CommonLaw, keep_floor
from unit.solvers.patterns.requests import request

FREE = math.inf


@pytest.mark.parametrize(
    ("k", "total", "floor", "method"),
    [
        (6, 3.0, 0.5, "program"),
        (9, 3.0, None, "ramp"),
        (12, 3.0, 0.9, "ramp"),
        (14, 3.0, 0.5, "ramp"),
        (24, 6.0, 0.5, "ramp"),
        (36, 6.0, 0.9, "ramp"),
    ],
)
def test_a_total_is_spent_and_every_promise_kept(
    k: int, total: float, floor: float | None, method: str
) -> None:
    counts, ratios = request(5, k)
    most = [FREE] * (k - 1) + [0.1]
    spent = totals.spend(counts, total, ratios, most, 2.0, floor)
    (part,) = spent.parts
    assert spent.solution.method == method
    assert total * (1 - 1e-6) <= spent.solution.epsilon <= total
    np.testing.assert_allclose((spent.levels / ratios)[:-1], spent.levels[0] / ratios[0])
    assert spent.levels[-1] <= 0.1
    drawn = part.account
    assert (drawn.attribute_epsilon <= spent.levels).all()
    assert (drawn.attribute_epsilon_floor >= spent.levels - 1e-9).all()
    assert (drawn.epsilon_given_rest <= 2.0 * spent.levels).all()
    assert keep_floor([part.law], floor)
    # At these levels there is no law that costs clearly less.
    again = balanced.solve(counts, spent.levels.tolist(), (2.0 * spent.levels).tolist(), floor)
    assert again.epsilon == pytest.approx(total, rel=1e-2)


def test_mixtures_spend_a_total_where_a_floor_stands_in_the_way_of_one_ramp() -> None:
    counts, ratios = request(5, 20)
    spent = totals.spend(counts, 1.0, ratios, [FREE] * 20, 2.0, 0.9)
    assert isinstance(spent.parts[0].law, VoteBlend)
    assert 1.0 * (1 - 1e-6) <= spent.solution.epsilon <= 1.0


def test_beyond_sixteen_attributes_that_are_alike_no_table_is_made() -> None:
    # It was, up to twenty: 19 MB of weights, which no page of a study can hold.
    spent = totals.spend([3] * 18, 6.0, [1.0] * 18, [FREE] * 18, 2.0, 0.5)
    assert isinstance(spent.parts[0].law, GatedSum)
    assert 0 <= 6.0 - spent.solution.epsilon < 1e-6


def test_a_total_that_pays_for_all_that_levels_may_be_is_not_spent() -> None:
    spent = totals.spend([5] * 6, 1.5, [1.0, 1.1] * 3, [0.3] * 6, 2.0, 0.5)
    np.testing.assert_array_equal(spent.levels, 0.3)
    assert spent.solution.epsilon == pytest.approx(0.83183, abs=1e-5)


def test_a_total_beyond_all_caps_buys_levels_at_the_caps() -> None:
    # The search for independent responses' scale ended before the smallest ratio's cap.
    spent = totals.spend(
        [8, 20, 5], 1.7, [0.0983, 2.2, 2.4], [FREE] * 3, FREE, 0.7, limits=[0.53] * 3
    )
    np.testing.assert_allclose(spent.levels, 0.53, rtol=1e-12)


@pytest.mark.parametrize("limits", [[2.0, None, 1.5, None], None])
def test_caps_in_nats_are_kept_and_levels_stay_below_them(
    limits: list[float | None] | None,
) -> None:
    spent = totals.spend(
        [4, 5, 2, 4], 3.0, [1.0, 1.4, 1.0, 0.8], [FREE] * 4, FREE, 0.5, limits=limits
    )
    assert 3.0 * (1 - 1e-6) <= spent.solution.epsilon <= 3.0
    if limits is not None:
        given = np.empty(4)
        for part in spent.parts:
            given[list(part.attributes)] = part.account.epsilon_given_rest
        assert given[0] <= 2.0
        assert given[2] <= 1.5


@pytest.mark.parametrize("counts", [[2, 3, 4, 5], [10, 20, 3]])
def test_a_fair_division_leaves_every_table_of_two_what_independent_responses_would(
    counts: list[int],
) -> None:
    k = len(counts)
    spent = totals.spend(counts, 2.0, [1.0] * k, [FREE] * k, FREE, None, fair=True)
    alone = [attenuation(a, 2.0 / k) for a in counts]
    singles, pairs = np.empty(k), np.ones((k, k))
    for part in spent.parts:
        singles[list(part.attributes)] = part.law.attenuations()
    for part in spent.parts:
        for i, first in enumerate(part.attributes):
            for j, second in enumerate(part.attributes):
                if i < j:
                    pairs[first, second] = part.law.eigenvalues((i, j))[1, 1]
                    assert pairs[first, second] >= alone[first] * alone[second] * (1 - 1e-6)
    assert (singles >= np.array(alone) * (1 - 1e-6)).all()


@pytest.mark.parametrize(("k", "total"), [(4, 0.5), (11, 8.0), (18, 2.0)])
def test_a_total_buys_more_than_independent_responses_and_a_larger_one_more(
    k: int, total: float
) -> None:
    counts, ratios = request(2, k)
    bought = [
        totals.spend(counts, times * total, ratios, [FREE] * k, 2.0, 0.5).levels.sum()
        for times in (1.0, 1.2)
    ]
    assert total <= bought[0] * (1 + 1e-9)
    assert bought[0] < bought[1]


def test_where_no_ramp_is_found_independent_responses_spend_the_total(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: Any) -> None:
        return None

    monkeypatch.setattr(CommonLaw, "best", none)
    spent = totals.spend(*request_of(12), [FREE] * 12, 2.0, 0.5)
    assert spent.solution.method == "independent"
    assert spent.levels.sum() == pytest.approx(3.0)


def request_of(k: int) -> tuple[list[int], float, list[float]]:
    counts, ratios = request(1, k)
    return counts, 3.0, ratios


@pytest.mark.parametrize(("categories", "ratio"), [(10_000, 1.5), (5, 12.0)])
def test_one_attribute_that_takes_most_of_a_total_leaves_the_others_a_common_law(
    categories: int, ratio: float
) -> None:
    counts, ratios = request(4, 13)
    counts[0], ratios[0] = categories, ratio
    spent = totals.spend(counts, 4.0, ratios, [FREE] * 13, 2.0, 0.5)
    assert spent.solution.method == "ramp"
    assert 4.0 * (1 - 1e-6) <= spent.solution.epsilon <= 4.0
    assert spent.levels.sum() > 5.0


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError):
        totals.spend([1, 3], 1.0, [1.0, 1.0], [FREE] * 2, 2.0, 0.5)


@pytest.mark.parametrize(
    ("counts", "total"),
    [
        ([2, 2], 50.0),
        ([5, 5, 3], 600.0),
        ([2, 4, 8, 16], 500.0),
        ([2, 2, 2, 2, 6, 6, 3, 5, 3, 4, 7, 4], 1e-5),
    ],
)
@pytest.mark.filterwarnings("error")
def test_totals_of_any_size_are_divided(counts: list[int], total: float) -> None:
    k = len(counts)
    spent = totals.spend(counts, total, [1.0] * k, [np.inf] * k, 2.0, 0.5, fair=k < 4)
    assert 0.99 * total < spent.solution.epsilon <= total
