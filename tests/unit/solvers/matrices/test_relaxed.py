"""Bounds by moments of sets against the least error over all rows, listed."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from deniable.errors import InputError
from deniable.solvers.matrices import certificate, frontier, groups, relaxed
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    average_limits,
    certify,
    closed_form_bound,
    local_limits,
    most_excess,
    verify,
)
from deniable.solvers.matrices.listed import Listed
from unit.solvers.matrices.priors import any_limits


def bound(limits: Limits, most: int = 30) -> Certificate:
    divided = groups.of_like_shares(limits, most)
    return relaxed.bound(limits, Listed(groups.alike(limits, divided), divided))[0]


def listed_and_bounded(limits: Limits) -> tuple[float, float, float]:
    """n N MSE: the least, the certificate's claim by listed rows, and by the bounded excess."""
    with pytest.MonkeyPatch.context() as few:
        few.setattr(certificate, "_MAX_SETS", 0)
        found = bound(limits)
        Z, multipliers = found.directions, found.multipliers
        helps = found.splits, found.squares, found.part_splits, found.outside
        excess = most_excess(limits, Z, multipliers, *helps)
    bounded = certificate._bound_by(limits, excess, Z, multipliers)
    return frontier.solve(limits).certificate.claim, found.claim, bounded


def spread(n: int, seed: int) -> np.ndarray:
    shares = np.exp(np.random.default_rng(seed).uniform(np.log(0.002), 0.0, n))
    return np.asarray(shares / shares.sum())


AVERAGE = [
    average_limits(spread(n, n), share * (1 - spread(n, n).max()))
    for n in (5, 9)
    for share in (0.0, 0.3, 0.8, 0.95)
]


@pytest.mark.parametrize("limits", AVERAGE)
def test_for_average_privacy_nothing_is_lost(limits: Limits) -> None:
    exact, claim, bounded = listed_and_bounded(limits)
    assert exact * (1 - 1e-5) < bounded <= claim * (1 + 1e-10)
    assert claim <= exact * (1 + 1e-8)


@pytest.mark.parametrize("delta", [1 / 2, 1 / 3])
def test_where_no_row_has_a_part_less_than_a_thousandth_is_lost(delta: float) -> None:
    prior = 0.3 * spread(9, 2) + 0.7 / 9
    for share in (0.1, 0.5, 0.8):
        exact, claim, bounded = listed_and_bounded(
            average_limits(prior, share * (1 - prior.max()), delta)
        )
        assert exact * (1 - 1e-3) < bounded <= claim * (1 + 1e-10)
        assert claim <= exact * (1 + 1e-8)


@pytest.mark.parametrize("delta", [0.7, 0.3, 0.27])
def test_where_rows_have_a_part_and_the_budget_is_that_of_delta_nothing_is_lost(
    delta: float,
) -> None:
    prior = 0.3 * spread(9, 2) + 0.7 / 9
    limits = average_limits(prior, 0.1, delta)
    exact, claim, bounded = listed_and_bounded(limits)
    assert exact * (1 - 1e-5) < bounded <= claim * (1 + 1e-10)
    assert claim <= exact * (1 + 1e-8)


@pytest.mark.parametrize(("delta", "share"), [(0.7, 0.6), (0.31, 0.95), (0.31, 0.98), (1 / 3, 0.9)])
def test_where_privacy_and_delta_both_bind_less_than_a_hundredth_is_lost(
    delta: float, share: float
) -> None:
    prior = 0.3 * spread(9, 2) + 0.7 / 9
    limits = average_limits(prior, share * (1 - prior.max()), delta)
    assert limits.success is not None
    assert limits.success < 0.97 * delta
    exact, claim, bounded = listed_and_bounded(limits)
    assert exact * (1 - 1e-2) < bounded <= claim * (1 + 1e-10)
    assert claim <= exact * (1 + 1e-8)


@pytest.mark.parametrize("level", [0.3, 1.0, 2.0, 4.0])
def test_under_ldp_less_than_two_ten_thousandths_are_lost(level: float) -> None:
    for seed in (0, 1):
        exact, claim, bounded = listed_and_bounded(local_limits(spread(9, seed), level))
        assert exact * (1 - 2e-4) < bounded <= claim * (1 + 1e-10)
        assert claim <= exact * (1 + 1e-8)


@settings(max_examples=15, deadline=None)
@given(limits=any_limits(3))
def test_no_bound_is_above_the_least_error(limits: Limits) -> None:
    exact, claim, bounded = listed_and_bounded(limits)
    assert bounded <= exact * (1 + 1e-7)
    assert claim <= exact * (1 + 1e-7)
    if limits.epsilon is None:
        assert claim >= closed_form_bound(limits) * (1 - 1e-9)


def test_under_ldp_more_in_every_multiplier_is_as_good_as_a_larger_excess() -> None:
    prior = spread(18, 4)
    limits = local_limits(prior, 3.0)
    divided = groups.of_like_shares(limits, 6)
    listed = Listed(groups.alike(limits, divided), divided)
    program = relaxed._Relaxed(limits, listed, np.empty((0, 18)), 1)
    found = program.solve()
    assert found is not None
    for more in (0.0, 0.1, 0.5):
        proof = relaxed._with_more(found.certificate, more * found.error)
        assert verify(proof) >= proof.claim
        assert proof.claim <= found.error * (1 + 1e-3)


ALIKE = np.outer([0.2, 0.12, 0.1, 0.06, 0.02], [1.0, 1.1]).ravel() / 1.05


@pytest.mark.parametrize(
    "limits", [average_limits(ALIKE, 0.5), local_limits(ALIKE, 2.0), local_limits(ALIKE, 0.5)]
)
def test_taking_like_categories_alike_loses_at_most_a_hundredth(limits: Limits) -> None:
    exact = frontier.solve(limits).certificate.claim
    merged = bound(limits, 6).claim
    assert 0.99 * exact < merged <= exact * (1 + 1e-8)


@pytest.mark.parametrize("level", [1.0, 3.0, 5.0])
def test_at_the_least_shares_of_groups_a_bound_holds_for_the_true_ones(level: float) -> None:
    prior = np.logspace(0, -2, 10) / np.logspace(0, -2, 10).sum()
    limits = local_limits(prior, level)
    exact = frontier.solve(limits).certificate.claim
    claims = []
    for most in (5, 7, 10):
        divided = groups.with_least_share(limits, most)
        listed = Listed(groups.lowered(limits, divided), divided)
        found, (Z, multipliers), error = relaxed.bound(limits, listed)
        assert verify(found) >= found.claim
        assert found.claim <= exact * (1 + 1e-8)
        # Without what is made of larger shares the same Z and λ prove less.
        ratio = listed.limits.prior / prior
        plain = certify(limits, ratio[:, None] * Z, ratio * multipliers).claim
        assert plain < found.claim if most < 10 else plain == pytest.approx(exact, rel=1e-3)
        assert plain <= error * (1 + 1e-8)
        claims.append(found.claim)
    assert 0.9 * exact < claims[0] < claims[1] < claims[2]
    assert claims[2] == pytest.approx(exact, rel=1e-3)


def test_of_shares_that_lack_something_to_one_the_rest_is_of_a_category_in_no_set() -> None:
    divided = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5])]
    prior = np.array([0.3, 0.17, 0.13, 0.15, 0.14, 0.11])
    limits = local_limits(prior, 1.5)
    least = groups.lowered(limits, divided).prior
    listed = Listed(replace(limits, prior=least), divided)
    rows = listed.sets_up_to(1)
    program = relaxed._Relaxed(limits, listed, rows, 2)
    # The same weight for all sets that name as many of each group, in listed rows and in moments.
    sets = np.array(
        [[x in some for x in range(6)] for k in (1, 2, 3) for some in combinations(range(6), k)]
    )
    kinds = [tuple(int(some[members].sum()) for members in divided) for some in sets]
    generator = np.random.default_rng(0)
    weight = {kind: generator.random() / kinds.count(kind) for kind in sorted(set(kinds))}
    gain = np.expm1(1.5)
    wanted, moments = np.zeros(6), np.zeros((7, 7))
    one = np.zeros(3)
    for some, kind in zip(sets, kinds, strict=True):
        total = 1.0 + gain * (some @ least)
        wanted += weight[kind] * (1.0 + gain * some) * total
        if some.sum() == 1:
            # A listed row stands for every set of its kind, in units of its sum.
            one[kind.index(1)] += weight[kind] * (least.sum() + gain * (some @ least)) ** 2
        else:
            moments += weight[kind] * np.outer(np.append(1.0, some), np.append(1.0, some))
    first, second = [1, 2, 4], [1, 3, 5]
    pairs = [
        moments[first[g], second[h]] if g != h else moments[first[g], first[g]]
        for g in range(3)
        for h in range(g, 3)
    ]
    y = np.array([*pairs, moments[2, 3], moments[4, 5], moments[0, 0], *one])
    assert program.equal @ y == pytest.approx(wanted[[0, 1, 3]], rel=1e-12)


def test_equal_shares_are_taken_alike_at_no_loss() -> None:
    prior = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    for limits in (average_limits(prior, 0.4), local_limits(prior, 1.0)):
        divided = groups.of_like_shares(limits, 3)
        assert sorted(len(group) for group in divided) == [1, 2, 3]
        assert bound(limits, 3).claim == pytest.approx(bound(limits).claim, rel=1e-5)


def test_a_certificate_beyond_sixteen_categories_is_verified_and_its_defects_are_found() -> None:
    limits = average_limits(spread(18, 4), 0.96 * (1 - spread(18, 4).max()))
    found = bound(limits)
    assert verify(found) >= found.claim > closed_form_bound(limits) * (1 - 1e-9)
    generator = np.random.default_rng(0)
    with pytest.raises(InputError, match="proves only"):
        verify(replace(found, splits=None))
    with pytest.raises(InputError, match="proves only"):
        verify(replace(found, claim=found.claim * (1 + 1e-6)))
    nudge = 1e-4 * generator.normal(size=18) * np.abs(found.multipliers).max()
    with pytest.raises(InputError, match="proves only"):
        verify(replace(found, multipliers=found.multipliers + nudge))


def test_without_its_squares_a_bound_under_ldp_proves_less() -> None:
    found = bound(local_limits(spread(18, 4), 1.0))
    assert found.squares is not None
    with pytest.raises(InputError, match="proves only"):
        verify(replace(found, squares=None))


@pytest.mark.parametrize("help_", ["splits", "outside"])
def test_where_both_bind_a_bound_needs_its_splits_within_sets_and_outside(
    help_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_MAX_SETS", 0)
    prior = np.logspace(0, -2, 18) / np.logspace(0, -2, 18).sum()
    found = bound(average_limits(prior, 0.97 * (1 - prior.max()), 1 / 3))
    assert verify(found) >= found.claim
    with pytest.raises(InputError, match="proves only"):
        verify(replace(found, **{help_: None}))
    with pytest.raises(InputError, match="outside must be"):
        verify(replace(found, outside=np.full(18, np.nan)))


def test_without_the_splits_of_its_rows_with_a_part_a_bound_proves_less() -> None:
    prior = 0.3 * spread(18, 4) + 0.7 / 18
    found = bound(average_limits(prior, 0.2, 0.19))
    assert found.part_splits is not None
    assert verify(found) >= found.claim
    generator = np.random.default_rng(1)
    wrong = found.part_splits + 0.1 * generator.normal(size=(18, 18))
    for part_splits in (None, wrong, np.zeros((18, 18))):
        with pytest.raises(InputError, match="proves only"):
            verify(replace(found, part_splits=part_splits))
    with pytest.raises(InputError, match="part_splits must be a 18 x 18 matrix"):
        verify(replace(found, part_splits=np.zeros((18, 19))))


def test_a_uniform_prior_of_eighty_categories_has_the_closed_form() -> None:
    limits = average_limits(np.full(80, 1 / 80), 0.5)
    assert bound(limits).claim == pytest.approx(closed_form_bound(limits), rel=1e-6)


def test_a_program_that_cannot_be_solved_leaves_the_closed_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = average_limits(spread(18, 4), 0.3)
    monkeypatch.setattr(relaxed._Relaxed, "solve", lambda _: None)
    assert bound(limits).claim == relaxed.in_closed_form(limits).claim


def test_at_the_edge_of_what_is_possible_rounding_leaves_a_proof() -> None:
    prior = np.array([50.0] * 4 + [10.0] * 2 + [3.0] + [1.0] * 3)
    prior /= prior.sum()
    largest = prior.max()
    limits = average_limits(prior, 1.0 - 1.002 * largest, 1.002 * largest)
    found = bound(limits)
    assert found.claim > 5.0 * relaxed.in_closed_form(limits).claim
    assert verify(found) >= found.claim


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["average", "worst", "local", "sharp", "many", "far"])
def test_forty_one_categories_and_a_hundred(kind: str) -> None:
    prior = spread(41, 5)
    room = 1 - prior.max()
    limits = {
        "average": lambda: average_limits(prior, 0.6 * room),
        "worst": lambda: average_limits(prior, 0.3 * room, 0.8),
        "local": lambda: local_limits(prior, 1.0),
        "sharp": lambda: average_limits(prior, 0.5 * room, 0.3),
        "many": lambda: local_limits(spread(100, 5), 3.0),
        "far": lambda: local_limits(np.logspace(0, -3, 100) / np.logspace(0, -3, 100).sum(), 5.0),
    }[kind]()
    point = frontier.solve(limits)
    assert verify(point.certificate) >= point.certificate.claim
    assert 0 <= point.gap < (0.03 if kind in ("many", "far") else 2e-3)
