"""The importance design: published figures, a proved gap, and the promise of a budget."""

import math

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns import importance, optimal
from deniable.solvers.patterns.orbits import orbits

ADULT = np.array([7, 16, 7, 14, 6, 5, 2, 41, 2])


@pytest.mark.parametrize(
    ("epsilon", "variance"), [(1, 7.5e-4), (2, 1.745e-4), (4, 4.05e-5), (8, 1.2e-5)]
)
def test_adult_reaches_the_expected_variances_within_its_budget(
    epsilon: float, variance: float
) -> None:
    share = (1 - 1 / ADULT) / ADULT
    found = importance.solve(ADULT.tolist(), epsilon, share.tolist())
    assert found.lower_bound is not None
    assert found.objective / 45_222 / 9 <= variance
    assert 0 <= found.objective - found.lower_bound <= 1e-6 * found.objective
    law = optimal.solve(ADULT.tolist(), found.attribute_epsilon.tolist())
    assert epsilon * (1 - 1e-5) <= law.epsilon <= epsilon * (1 + 1e-9)


def test_attributes_that_are_alike_get_one_level_the_same_as_if_they_were_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, costs, caps = [4, 9, 4, 4, 9, 4], [1.0, 2.0, 1.0, 3.0, 2.0, 1.0], [None] * 5 + [0.2]
    found = importance.solve(counts, 1.5, costs, caps)
    first, second, third, _, fifth, _ = found.attribute_epsilon.tolist()
    assert (first, second) == (third, fifth)
    monkeypatch.setattr(importance, "orbits", lambda problem, _: orbits(problem, range(6)))
    apart = importance.solve(counts, 1.5, costs, caps)
    assert found.objective == pytest.approx(apart.objective, rel=2e-6)
    assert found.lower_bound == pytest.approx(apart.lower_bound, rel=2e-6)


def test_no_other_law_of_the_budget_has_a_smaller_objective() -> None:
    counts, weights = [3, 5, 4, 8], np.array([1.0, 2.0, 1.0, 0.5])
    found = importance.solve(counts, 2.0, weights.tolist())
    random = np.random.default_rng(1)
    for _ in range(8):
        levels = found.attribute_epsilon * random.uniform(0.8, 1.2, 4)
        scale = 2.0 / optimal.solve(counts, levels.tolist()).epsilon
        levels = levels * min(scale, 1.0)
        assert optimal.solve(counts, levels.tolist()).epsilon <= 2.0 + 1e-9
        lift = np.expm1(levels)
        attenuation = lift / (lift + counts)
        assert float((weights / attenuation**2).sum()) >= found.objective * (1 - 1e-6)


def test_more_importance_gives_more_accuracy_and_a_larger_budget_never_less() -> None:
    plain = importance.solve([4, 4, 4], 1.0, [1, 1, 1])
    first = importance.solve([4, 4, 4], 1.0, [5, 1, 1])
    assert first.attribute_epsilon[0] > plain.attribute_epsilon[0] > first.attribute_epsilon[1]
    richer = importance.solve([4, 4, 4], 1.5, [1, 1, 1])
    assert np.all(richer.attribute_epsilon > plain.attribute_epsilon)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_caps_hold_as_drawn_and_free_the_budget_for_others(epsilon: float) -> None:
    caps = [None, 0.1, None, None, 0.3, None, 0.2, 1.0, None]
    free = importance.solve(ADULT.tolist(), epsilon, [1.0] * 9)
    capped = importance.solve(ADULT.tolist(), epsilon, [1.0] * 9, caps)
    assert capped.lower_bound is not None
    assert free.lower_bound is not None
    for got, cap in zip(capped.attribute_epsilon, caps, strict=True):
        assert cap is None or got <= cap
    law = optimal.solve(ADULT.tolist(), capped.attribute_epsilon.tolist())
    assert law.epsilon <= epsilon * (1 + 1e-9)
    assert capped.objective <= capped.lower_bound * (1 + 1e-6)
    assert capped.lower_bound >= free.lower_bound * (1 - 1e-6)
    assert capped.attribute_epsilon[0] > free.attribute_epsilon[0]


@pytest.mark.weekly
def test_many_attributes_get_levels_that_use_up_the_budget_in_the_limit() -> None:
    random = np.random.default_rng(2)
    counts, weights = random.integers(2, 9, 400).tolist(), random.uniform(0.5, 3, 400)
    caps = [0.05] + [None] * 399
    found = importance.solve(counts, 6.0, weights.tolist(), caps)
    assert found.lower_bound is None
    levels = found.attribute_epsilon
    assert 0.05 * (1 - 1e-12) <= levels[0] <= 0.05
    # The scale that meets the budget is found by whoever asks; it is close to one.
    assert optimal.solve(counts, levels.tolist()).epsilon == pytest.approx(6.0, rel=0.02)
    a = np.array(counts)
    lift = np.expm1(levels)
    gain = (a - 1) * lift / (a * (lift + a))
    balance = levels * gain**3 / (weights * (1 - 1 / a) ** 2)
    assert balance[1:].max() == pytest.approx(balance[1:].min(), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([3], 1.0, []), "0 were given for 1"),
        (([3], -1.0, [1.0]), "must lie above 0"),
        (([3], math.inf, [1.0]), "must lie above 0"),
        (([3], 1.0, [0.0]), "finite and above 0"),
        (([3, 3], 1.0, [1.0, math.nan]), "finite and above 0"),
        (([3, 3], 1.0, [1.0, 1.0], [None, 0.0]), r"at_most\[1\]"),
        (([3, 3], 1.0, [1.0, 1.0], [None]), "1 were given for 2"),
    ],
)
def test_impossible_requests_are_refused(arguments: tuple, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        importance.solve(*arguments)


@pytest.mark.parametrize("k", [3, 20, 60])
@pytest.mark.parametrize("level", [0.1, 3.0, 12.0, 40.0, 100.0, 300.0])
def test_the_limit_lies_between_the_largest_level_and_the_sum_of_all(k: int, level: float) -> None:
    found = importance.limit_epsilon(checked_problem([5] * k, [level] * k))
    assert level <= found <= k * level * (1 + 1e-15)


@pytest.mark.parametrize("total", [0.5, 4.0, 100.0])
def test_no_level_of_a_division_is_above_the_total(total: float) -> None:
    counts = [10_000, *[4] * 24]
    levels = importance.solve(counts, total, [1.0] * 25).attribute_epsilon
    assert levels.max() <= total
    assert levels.min() > 0.0


def test_beside_a_level_that_is_the_total_the_others_rise_whatever_the_rounding() -> None:
    counts = [10_000, *range(2, 26)]
    cost, sums = [(1 - 1 / a) / a for a in counts], []
    for total in np.linspace(1.0, 1.1, 4):
        levels = importance.solve(counts, float(total), cost).attribute_epsilon
        assert levels[0] == pytest.approx(total, rel=1e-12)
        sums.append(levels.sum() / total)
    assert max(sums) < 1.02 * min(sums)
