"""SPEA2 fitness and selection, straight from the paper's definitions, in plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.solvers.matrices import spea2


def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Definition 5.1 for (privacy, error)."""
    return a[0] >= b[0] and a[1] <= b[1] and a != b


def fitness_by_hand(points: list[tuple[float, float]], where: np.ndarray, k: int) -> list[float]:
    strength = [sum(beats(a, b) for b in points) for a in points]
    result = []
    for i, b in enumerate(points):
        raw = sum(strength[j] for j, a in enumerate(points) if beats(a, b))
        distances = sorted(math.dist(where[i], where[j]) for j in range(len(points)) if j != i)
        result.append(raw + 1 / (distances[k - 1] + 2))
    return result


def thinned_by_hand(points: np.ndarray, size: int) -> list[int]:
    """Remove the point with the smallest sorted list of distances, again and again."""
    alive = list(range(len(points)))
    while len(alive) > size:
        lists = [
            sorted(float(np.hypot(*(points[i] - points[j]))) for j in alive if j != i)
            for i in alive
        ]
        alive.pop(lists.index(min(lists)))
    return alive


coarse = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 7)), min_size=2, max_size=14)


@given(coarse)
def test_dominance_and_the_front_are_as_defined(points: list[tuple[int, int]]) -> None:
    privacy, error = np.array(points, dtype=float).T
    pairs = [(float(a), float(b)) for a, b in points]
    expected = [[beats(a, b) for b in pairs] for a in pairs]
    assert (spea2.dominance(privacy, error) == np.array(expected)).all()
    front = spea2.non_dominated(privacy, error)
    best = {b for b in pairs if not any(beats(a, b) for a in pairs)}
    assert [pairs[i] for i in front] == sorted(best)


@given(coarse, st.integers(1, 4))
def test_fitness_is_as_defined(points: list[tuple[int, int]], k: int) -> None:
    privacy, error = np.array(points, dtype=float).T
    k = min(k, len(points) - 1)
    pairs = [(float(a), float(b)) for a, b in points]
    expected = fitness_by_hand(pairs, spea2.scaled(privacy, error), k)
    found = spea2.fitness(privacy, error, k)
    assert np.allclose(found, expected)
    dominated = [any(beats(a, b) for a in pairs) for b in pairs]
    assert ((found >= 1) == np.array(dominated)).all()


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=16),
    st.booleans(),
    st.data(),
)
def test_thinning_removes_the_most_crowded_first(
    steps: list[int], jitter: bool, data: st.DataObject
) -> None:
    """With many ties and copies as in the search, and without any."""
    x = np.sort(np.array(steps, dtype=float))
    y = x.copy()
    if jitter:
        seed = data.draw(st.integers(0, 2**32 - 1))
        generator = np.random.default_rng(seed)
        x, y = np.sort(generator.random(len(x))), np.sort(generator.random(len(x)))
    points = np.stack([x, y], axis=1)
    size = data.draw(st.integers(1, len(points)))
    kept = points[spea2.thin(points, size)]
    assert (kept == points[thinned_by_hand(points, size)]).all()


def test_thinning_keeps_both_ends_and_spreads_the_rest() -> None:
    x = np.concatenate([np.linspace(0, 0.1, 50), np.linspace(0.2, 1.0, 9)])
    kept = x[spea2.thin(np.stack([x, x], axis=1), 11)]
    assert kept[0] == 0.0
    assert kept[-1] == 1.0
    assert np.diff(kept).max() < 0.11


@given(coarse, st.integers(2, 10))
def test_selection_takes_the_front_and_fills_up_with_the_fittest(
    points: list[tuple[int, int]], size: int
) -> None:
    privacy, error = np.array(points, dtype=float).T
    values = spea2.fitness(privacy, error)
    chosen = spea2.select(privacy, error, values, size)
    assert len(chosen) == len(set(chosen.tolist())) == min(size, len(points))
    front = set(np.flatnonzero(values < 1).tolist())
    if len(front) >= size:
        assert set(chosen.tolist()) <= front
    else:
        assert front <= set(chosen.tolist())
        left = np.setdiff1d(np.arange(len(points)), chosen)
        if len(left):
            assert values[chosen].max() <= values[left].min()


def test_infinite_errors_do_not_disturb_the_rest() -> None:
    privacy = np.array([0.1, 0.2, 0.3, 0.5])
    error = np.array([1.0, 2.0, 3.0, np.inf])
    assert np.isfinite(spea2.fitness(privacy, error)).all()
    assert spea2.non_dominated(privacy, error).tolist() == [0, 1, 2]
    nothing = np.full(3, np.inf)
    assert len(spea2.non_dominated(privacy[:3], nothing)) == 0
    assert np.isfinite(spea2.fitness(privacy[:3], nothing)).all()


def test_fitness_agrees_with_an_independent_implementation() -> None:
    """pymoo's, where it is installed; it scales otherwise, so points on a unit square are used."""
    pymoo = pytest.importorskip(
        "pymoo.util.nds.non_dominated_sorting", reason="pymoo is not installed"
    )
    generator = np.random.default_rng(1)
    privacy, error = generator.random(60), generator.random(60)
    fronts = pymoo.NonDominatedSorting().do(
        np.stack([-privacy, error], axis=1), only_non_dominated_front=True
    )
    assert set(fronts.tolist()) == set(spea2.non_dominated(privacy, error).tolist())
    assert set(fronts.tolist()) == set(np.flatnonzero(spea2.fitness(privacy, error) < 1).tolist())
