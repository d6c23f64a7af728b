"""Orbits against the patterns that they stand for."""

import itertools
import math

import numpy as np
import pytest

from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.restricted import bring_down, keep_masses

COUNTS = [3, 2, 3, 5, 2, 3]
LEVELS = [1.0, 0.5, 1.0, 2.0, 0.5, 0.25]


def patterns() -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=len(COUNTS)))


def test_attributes_that_are_alike_share_a_group_unless_something_else_tells_them_apart() -> None:
    problem = checked_problem(COUNTS, LEVELS)
    assert orbits(problem).size.tolist() == [2, 2, 1, 1]
    assert orbits(problem).group_of.tolist() == [0, 1, 0, 2, 1, 3]
    apart = orbits(problem, [1.5, 9.0, 2.5, 9.0, 9.0, 9.0])
    assert apart.size.tolist() == [1, 2, 1, 1, 1]


def test_chances_and_averages_are_those_of_the_patterns_in_each_orbit() -> None:
    problem = checked_problem(COUNTS, LEVELS)
    grouped = orbits(problem)
    n, m = grouped.changed.shape
    expanded = grouped.expand(np.arange(n, dtype=np.float64)).astype(int)
    chance = np.zeros(n)
    drift = np.zeros((m, n))
    pair = {(i, j): np.zeros(n) for i in range(m) for j in range(i, m)}
    for pattern in patterns():
        orbit = int(expanded[pattern])
        counts = [
            sum(pattern[i] for i in np.flatnonzero(grouped.group_of == group)) for group in range(m)
        ]
        assert grouped.changed[orbit].tolist() == counts
        mu = math.prod((a - 1) / a if s else 1 / a for s, a in zip(pattern, COUNTS, strict=True))
        chance[orbit] += mu
        signs = [-1 / (a - 1) if s else 1.0 for s, a in zip(pattern, COUNTS, strict=True)]
        for group in range(m):
            first = int(np.flatnonzero(grouped.group_of == group)[0])
            drift[group, orbit] += mu * ((1 - pattern[first]) - problem.keep_probability[first])
        for i, j in pair:
            left = np.flatnonzero(grouped.group_of == i)
            right = np.flatnonzero(grouped.group_of == j)
            if i == j and len(left) < 2:
                continue
            other = int(right[1] if i == j else right[0])
            pair[i, j][orbit] += mu * signs[int(left[0])] * signs[other]
    np.testing.assert_allclose(grouped.chance, chance, rtol=1e-14)
    np.testing.assert_allclose(grouped.drift, drift / chance, atol=1e-15)
    for (i, j), value in pair.items():
        if i != j or grouped.size[i] > 1:
            np.testing.assert_allclose(grouped.pair_attenuation(i, j), value / chance, atol=1e-15)


@pytest.mark.parametrize("k", [700, 1100])
def test_more_patterns_than_doubles_can_count_have_chances_that_add_up_to_one(k: int) -> None:
    """They were none, and the default law fell back to independent responses."""
    chance = orbits(checked_problem([3] * k, [0.3] * k)).chance
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    assert chance @ np.arange(k + 1) == pytest.approx(2 * k / 3)


def test_the_edges_are_all_pairs_that_differ_by_one_more_changed_attribute() -> None:
    grouped = orbits(checked_problem(COUNTS, LEVELS))
    near, far, group = grouped.edges
    found = list(zip(near.tolist(), far.tolist(), group.tolist(), strict=True))
    expected = set()
    for a, b in itertools.permutations(range(len(grouped.chance)), 2):
        step = grouped.changed[b] - grouped.changed[a]
        if step.min() >= 0 and step.sum() == 1:
            expected.add((a, b, int(step.argmax())))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_bringing_a_group_down_is_an_independent_response_for_each_of_its_attributes() -> None:
    counts, levels = [4, 4, 4, 3], [0.3, 0.3, 0.3, 6.0]
    grouped = orbits(checked_problem(counts, levels))
    generator = np.random.default_rng(1)
    # A falling law that keeps the first group too often, and the second not often enough.
    high = np.exp(2.0 * (grouped.size - grouped.changed) @ np.array([1.0, 1.3])) - 1.0
    high *= generator.uniform(0.9, 1.0)
    kept, changed = keep_masses(grouped, high)
    assert kept[0] > changed[0]
    low = bring_down(grouped, high)
    kept, changed = keep_masses(grouped, low)
    assert kept[0] == pytest.approx(changed[0], rel=1e-15)

    def table(excess: np.ndarray) -> np.ndarray:
        density = grouped.expand(1.0 + excess)
        law = density * grouped.expand(grouped.chance / grouped.chance)
        for i, a in enumerate(counts):
            law = law * np.reshape([1.0, a - 1.0], [2 if j == i else 1 for j in range(4)])
        return law / law.sum()

    before, after = table(high), table(low)
    p = before.sum(axis=(1, 2, 3))[0]
    target = math.exp(0.3) / (math.exp(0.3) + 3)
    theta = 1 - (target - 1 / 4) / (p - 1 / 4)
    step = np.array([[1 - theta * 3 / 4, theta / 4], [theta * 3 / 4, 1 - theta / 4]])
    for axis in range(3):
        before = np.moveaxis(np.tensordot(step, before, axes=(1, axis)), 0, axis)
    np.testing.assert_allclose(after, before, rtol=1e-12)


def test_sums_over_what_is_kept_and_masses_of_fates_are_those_of_the_fractions() -> None:
    grouped = orbits(checked_problem(COUNTS, LEVELS))
    random = np.random.default_rng(0)
    weights, mass = random.random(len(grouped.size)), random.random(len(grouped.chance))
    np.testing.assert_allclose(grouped.kept_sum(weights), weights @ grouped.kept_fraction)
    kept, changed = grouped.fates(mass)
    np.testing.assert_allclose(kept, grouped.kept_fraction @ mass)
    np.testing.assert_allclose(changed, grouped.changed_fraction @ mass)
