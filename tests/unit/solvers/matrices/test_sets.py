"""Rows by search and their weights, against the program over all rows."""

import numpy as np
import pytest
from scipy.optimize import nnls

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices import frontier, groups, relaxed, sets
from deniable.solvers.matrices.certificate import (
    Limits,
    average_limits,
    certify,
    extreme_rows,
    local_limits,
    shape_of_rows,
)
from deniable.solvers.matrices.listed import Listed
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED

SEVEN = NORMAL_TEN[1:8] / NORMAL_TEN[1:8].sum()
EVERY_KIND = [
    average_limits(SEVEN, 0.5),
    average_limits(SEVEN, 0.5, 0.75),
    average_limits(SKEWED, 0.3, 0.5),
    local_limits(SEVEN, 1.0),
]


def alone(limits: Limits) -> Listed:
    """Every category by itself."""
    return Listed(limits, [np.array([x]) for x in range(limits.n_categories)])


def start(limits: Limits) -> sets.Dual:
    found = relaxed.in_closed_form(limits)
    return found.directions, found.multipliers


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_the_search_comes_near_the_least_error_and_its_dual_proves_it(limits: Limits) -> None:
    least = frontier.solve(limits)
    found, dual = sets.mechanism(limits, alone(limits), start(limits), 8, 1e-5)
    assert found is not None
    assert found.error == pytest.approx(least.record_mse * limits.n_categories, rel=1e-4)
    proof = certify(limits, *dual)
    assert least.certificate.claim * (1 - 1e-4) < proof.claim
    assert proof.claim <= least.certificate.claim * (1 + 1e-7)


PAIRS = np.array([0.25, 0.25, 0.15, 0.15, 0.1, 0.1])
IN_GROUPS = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])]


@pytest.mark.parametrize(
    "limits",
    [
        average_limits(PAIRS, 0.5),
        average_limits(PAIRS, 0.5, 0.6),
        average_limits(PAIRS, 0.5, 0.45),
        local_limits(PAIRS, 1.0),
    ],
)
def test_taking_equal_shares_alike_loses_nothing(limits: Limits) -> None:
    least = frontier.solve(limits).certificate.claim
    listed = Listed(limits, IN_GROUPS)
    found, dual = sets.mechanism(limits, listed, start(limits), 8, 1e-5)
    assert found is not None
    assert found.error == pytest.approx(least, rel=1e-4)
    assert certify(limits, *dual).claim == pytest.approx(least, rel=1e-3)
    rows, weights = sets.drawn(limits, listed, found, 5000)
    off = weights @ rows / limits.prior - 1.0
    assert np.abs(off).max() < 0.1
    every = extreme_rows(limits, inside=True)
    assert all(np.abs(every - row).max(axis=1).min() < 1e-12 for row in rows)


def test_a_category_that_no_row_names_takes_the_place_of_another() -> None:
    prior = np.array([0.5, 0.499, 0.001])
    limits = average_limits(prior, 0.3)
    listed = Listed(
        groups.alike(limits, [np.array([0]), np.array([1, 2])]),
        [np.array([0]), np.array([1, 2])],
    )
    row = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    nothing = np.zeros((3, 3)), np.zeros(3)
    found = sets.Weighted(listed.limits, row, np.array([0.5, 0.5]), *nothing, 0.0, 1.0)
    rows, weights = sets.drawn(limits, listed, found, 2)
    assert sorted(rows.argmax(axis=1)) == [0, 1, 2]
    assert weights.sum() == pytest.approx(1.0)


def test_rare_categories_are_named_in_many_rows_for_average_privacy() -> None:
    prior = np.append(0.99, np.full(9, 0.01 / 9))
    limits = average_limits(prior, 0.005)
    listed = Listed(limits, [np.array([0]), np.arange(1, 10)])
    rows = np.zeros((2, 10))
    rows[0, 0] = rows[1, 1:4] = 1.0
    nothing = np.zeros((10, 10)), np.zeros(10)
    found = sets.Weighted(limits, rows, np.array([0.99, 0.01 / 3]), *nothing, 0.0, 1.0)
    rows, weights = sets.drawn(limits, listed, found, 100)
    assert weights.sum() == pytest.approx(0.99 + 0.01 / 3)
    # By their weight alone they would be in one row.
    assert (rows > 0.0).sum(axis=0)[1:].min() > 5


def test_under_ldp_copies_of_a_row_name_all_of_a_group_in_turn() -> None:
    limits = local_limits(np.full(9, 1 / 9), 2.0)
    listed = Listed(limits, [np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7, 8])])
    named = np.zeros((3, 9))
    named[0, 0] = named[1, [0, 2, 1]] = named[2, [0, 1, 3]] = 1.0
    nothing = np.zeros((9, 9)), np.zeros(9)
    rows = sets._as_rows(limits, named > 0)
    found = sets.Weighted(limits, rows, np.array([0.3, 0.4, 0.3]), *nothing, 0.0, 1.0)
    rows, weights = sets.drawn(limits, listed, found, 200)
    assert weights.sum() == pytest.approx(1.0)
    ratio = rows / limits.prior
    named = ratio > 0.999 * ratio.max(axis=1, keepdims=True)
    single = named.sum(axis=1) == 1
    # Each of the four sets of one, once.
    assert single.sum() == 4
    assert weights[single] == pytest.approx(np.full(4, 0.075))
    two = named[:, listed.divided[0]].sum(axis=1) == 2
    # Each in half of the copies that name two of four, and not all copies name the same two.
    assert len(weights[two]) > 10
    assert weights[two] @ named[two][:, listed.divided[0]] == pytest.approx(np.full(4, 0.2))


def test_there_are_no_more_copies_of_a_row_than_choices() -> None:
    limits = local_limits(np.full(7, 1 / 7), 2.0)
    listed = Listed(limits, [np.array([0, 1, 2]), np.array([3, 4, 5, 6])])
    ratio = np.array([[1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 0]], float)
    choices = sets._choices(listed, ratio)
    every = extreme_rows(limits) / limits.prior
    every = every > 0.999 * every.max(axis=1, keepdims=True)
    for row, number in zip(ratio, choices, strict=True):
        same = [(every[:, some].sum(axis=1) == row[some].sum()) for some in listed.divided]
        assert number == (same[0] & same[1]).sum()
    weights = np.array([0.5, 0.3, 0.2])
    assert sets._copies(weights, choices, 10).tolist() == [3, 5, 3]
    assert sets._copies(weights, choices, 1000).tolist() == [3, 18, 4]
    assert sets._copies(weights, np.full(3, np.inf), 10).tolist() == [5, 3, 2]


def test_rows_that_make_no_mechanism_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = average_limits(SKEWED, 0.3)
    monkeypatch.setattr(sets, "_first", lambda *_: np.eye(4))
    monkeypatch.setattr(sets, "_priced", lambda *_: (np.eye(4), 0.0))
    dual = start(limits)
    found, last = sets.mechanism(limits, alone(limits), dual, 4, 1e-6)
    assert found is None
    assert last is dual


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_all_rows_are_weighed_to_the_least_error_and_the_sums_hold(limits: Limits) -> None:
    rows = extreme_rows(limits, inside=True)
    found = sets.weigh(limits, alone(limits), rows, 1e-8)
    assert found is not None
    least = frontier.solve(limits).certificate.claim
    assert found.error == pytest.approx(least, rel=1e-6)
    assert np.allclose(found.weights @ rows, limits.prior, rtol=1e-7)
    assert limits.success is None or found.weights.sum() <= limits.success * (1 + 1e-9)


@pytest.mark.parametrize("limits", EVERY_KIND)
def test_every_row_searched_is_an_extreme_one(limits: Limits) -> None:
    generator = np.random.default_rng(0)
    first = sets._first(limits, generator)
    searched, _ = sets._search(limits, alone(limits), *start(limits), first, generator)
    listed = extreme_rows(limits, inside=True)
    for row in np.concatenate([first, searched]):
        assert np.abs(listed - row).max(axis=1).min() < 1e-12


def drawn_dual(
    limits: Limits, generator: np.random.Generator, *, in_pairs: bool
) -> tuple[Listed, FloatArray, FloatArray]:
    """Z and λ for ten categories; in pairs, alike within each pair."""
    Z, multipliers = generator.normal(size=(10, 10)), generator.normal(size=10)
    if not in_pairs:
        return alone(limits), Z, multipliers
    half = Z[:5, :5]
    Z = np.block([[half, half[:, ::-1]], [half[::-1], half[::-1, ::-1]]]) + np.eye(10)
    pairs = [np.array([x, 9 - x]) for x in range(5)]
    return Listed(limits, pairs), Z, multipliers + multipliers[::-1]


def excess_of(rows: FloatArray, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
    return np.asarray(((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1) - rows @ multipliers)


@pytest.mark.parametrize("limits", [average_limits(NORMAL_TEN, 0.5), local_limits(NORMAL_TEN, 1.0)])
def test_the_search_finds_the_row_of_largest_excess(limits: Limits) -> None:
    """With groups, too: Z and λ are then alike within each."""
    generator = np.random.default_rng(1)
    rows = extreme_rows(limits)
    for number in range(10):
        listed, Z, multipliers = drawn_dual(limits, generator, in_pairs=number % 2 == 1)
        excess = excess_of(rows, Z, multipliers)
        found, values = sets._search(limits, listed, Z, multipliers, rows[:5], generator)
        best = excess_of(found, Z, multipliers)
        assert best[0] == pytest.approx(values[0], rel=1e-9)
        assert best[0] == pytest.approx(excess.max(), rel=1e-9)


@pytest.mark.parametrize("delta", [0.7, 0.28])
def test_the_search_finds_the_set_and_the_row_with_a_part_of_largest_excess(delta: float) -> None:
    """With groups, too."""
    generator = np.random.default_rng(1)
    limits = average_limits(NORMAL_TEN, 0.5, delta)
    rows = extreme_rows(limits)
    with_part = ((rows > 0) & (rows < 1)).any(axis=1)
    rows, whole = rows[with_part], rows[~with_part]
    for number in range(6):
        listed, Z, multipliers = drawn_dual(limits, generator, in_pairs=number % 2 == 1)
        excess = excess_of(rows, Z, multipliers)
        args = limits, listed, Z, multipliers, rows[:5], generator
        found, values = sets._search(*args)
        best = excess_of(found, Z, multipliers)
        assert np.allclose(best, values, rtol=1e-9)
        in_part = ((found > 0) & (found < 1)).any(axis=1)
        assert best[in_part][0] == pytest.approx(excess.max(), rel=1e-9)
        assert best[~in_part][0] == pytest.approx(excess_of(whole, Z, multipliers).max(), rel=1e-9)
        assert all(np.abs(rows - row).max(axis=1).min() < 1e-12 for row in found[in_part])


@pytest.mark.parametrize("delta", [0.42, 0.5, 0.6])
def test_rows_at_the_edge_are_extreme_and_on_average_near_the_prior(delta: float) -> None:
    limits = average_limits(SKEWED, 0.2, delta)
    rows = sets._at_the_edge(limits, np.random.default_rng(1))
    listed = extreme_rows(limits)
    assert all(np.abs(listed - row).max(axis=1).min() < 1e-12 for row in rows[:50])
    assert np.abs(rows.mean(axis=0) * delta - SKEWED).max() < 0.08


@pytest.mark.parametrize("delta", [0.42, 0.45, 0.6, 0.8])
def test_pieces_of_the_prior_are_extreme_rows_and_make_a_mechanism(delta: float) -> None:
    generator = np.random.default_rng(4)
    for privacy in (0.1, 0.5):
        limits = average_limits(SKEWED, privacy, delta)
        pieces = sets._pieces(limits, generator)
        listed = extreme_rows(limits)
        assert all(np.abs(listed - row).max(axis=1).min() < 1e-9 for row in pieces)
        sums = np.vstack([pieces.T, np.ones(len(pieces))])
        wanted = np.append(limits.prior, limits.budget)
        slack = np.append(np.zeros(4), 1.0)[:, None]
        assert nnls(np.hstack([sums, slack]), wanted)[1] < 1e-6


def test_rows_that_make_no_mechanism_have_no_weights() -> None:
    limits = average_limits(SKEWED, 0.3)
    assert sets.weigh(limits, alone(limits), np.eye(4), 1e-6) is None
    assert sets.weigh(limits, alone(limits), np.eye(4)[:3], 1e-6) is None


def test_sizes_are_filled_to_what_is_allowed() -> None:
    limits = average_limits(NORMAL_TEN, 0.5, 0.4)
    assert shape_of_rows(limits)[0] == 3
    generator = np.random.default_rng(2)
    filled = sets._filled(np.eye(10, dtype=bool), 3, 10, generator)
    assert (filled.sum(axis=1) == 3).all()
    assert (filled & np.eye(10, dtype=bool)).any(axis=1).all()
