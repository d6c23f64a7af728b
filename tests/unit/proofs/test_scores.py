"""Scores: the uniform measure and the rows of attenuations against all patterns."""

import itertools

import numpy as np
import pytest

from deniable.proofs.scores import Scores, all_patterns

CASES = [
    Scores((2, 3, 5), (2, 1, 2), (1, 3, 2)),
    Scores((4,), (3,), (2,)),
    all_patterns((2, 3, 4), (2, 1, 2)),
]


@pytest.mark.parametrize("scores", CASES)
def test_measure_and_rows_equal_sums_over_patterns(scores: Scores) -> None:
    attributes = [t for t, n in enumerate(scores.members) for _ in range(n)]
    measure = dict.fromkeys(scores.values.tolist(), 0)
    none = dict.fromkeys(measure, 0.0)
    single = [dict(none) for _ in scores.members]
    pairs = [
        (s, t)
        for s in range(len(scores.members))
        for t in range(s + 1)
        if s != t or scores.members[s] > 1
    ]
    double = [dict(none) for _ in pairs]
    for pattern in itertools.product([False, True], repeat=len(attributes)):
        value = sum(
            scores.costs[t] for t, changed in zip(attributes, pattern, strict=True) if changed
        )
        outputs = 1
        for t, changed in zip(attributes, pattern, strict=True):
            outputs *= scores.n_categories[t] - 1 if changed else 1
        measure[value] += outputs

        def sign(place: int) -> float:
            t = attributes[place]
            return -1 / (scores.n_categories[t] - 1) if pattern[place] else 1.0  # noqa: B023

        for t in range(len(scores.members)):
            single[t][value] += outputs * sign(attributes.index(t))
        for row, (s, t) in zip(double, pairs, strict=True):
            first = attributes.index(s)
            second = next(i for i, kind in enumerate(attributes) if kind == t and i != first)
            row[value] += outputs * sign(first) * sign(second)
    assert scores.measure.tolist() == list(measure.values())
    assert sum(measure.values()) == scores.scale
    np.testing.assert_allclose(
        scores.single.astype(float), [list(row.values()) for row in single], atol=1e-9
    )
    np.testing.assert_allclose(
        scores.double(pairs).astype(float), [list(row.values()) for row in double], atol=1e-9
    )


@pytest.mark.parametrize("scores", CASES)
def test_neighbours_are_scores_that_differ_by_one_attribute(scores: Scores) -> None:
    for t, (kept, gone) in enumerate(scores.neighbours):
        assert (scores.values[gone] - scores.values[kept] == scores.costs[t]).all()
        others = [
            range(0, (n - (i == t)) * cost + 1, cost)
            for i, (n, cost) in enumerate(zip(scores.members, scores.costs, strict=True))
        ]
        assert set(scores.values[kept].tolist()) == {sum(x) for x in itertools.product(*others)}


def test_costs_that_tell_all_patterns_apart() -> None:
    scores = all_patterns((2, 3), (2, 1))
    assert scores.all_patterns
    assert len(scores.values) == 6
    assert not Scores((2, 3), (2, 1), (1, 2)).all_patterns
