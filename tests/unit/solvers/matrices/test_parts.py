"""Moments of rows with a part of a category, against sums over all such rows of each group."""

from itertools import combinations, permutations

import numpy as np
import pytest

from deniable.solvers.matrices.certificate import average_limits
from deniable.solvers.matrices.listed import Listed
from deniable.solvers.matrices.parts import Parts
from deniable.solvers.matrices.relaxed import _Relaxed

DIVIDED = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5])]
GROUP = np.array([0, 1, 1, 2, 2, 2])
N = 6


def of_all_rows(weights: dict[tuple[int, ...], float], whole: int) -> tuple[np.ndarray, ...]:
    """X, Y and y if a row has the weight of how many of each group it names, and its part's."""
    X, Y, y = np.zeros((N, N)), np.zeros((N, N)), np.zeros(N)
    for members in combinations(range(N), whole):
        for part in sorted(set(range(N)).difference(members)):
            kind = (*np.bincount(GROUP[list(members)], minlength=3), GROUP[part])
            weight = weights[tuple(int(k) for k in kind)]
            X[np.ix_(members, members)] += weight
            Y[list(members), part] += weight
            y[part] += weight
    return X, Y, y


@pytest.mark.parametrize(("whole", "delta"), [(1, 0.7), (2, 0.37), (3, 0.28)])
def test_moments_of_rows_keep_what_is_said_of_them(whole: int, delta: float) -> None:
    limits = average_limits(np.full(N, 1 / N), 0.1, delta)
    part = 1.0 / delta - whole
    program = _Relaxed(limits, Listed(limits, DIVIDED), np.empty((0, N)), whole + 1, part)
    parts = program.parts
    assert isinstance(parts, Parts)
    generator = np.random.default_rng(whole)
    weights = {
        (*count, at): float(generator.random() < 0.4) * generator.random()
        for count in np.ndindex(2, 3, 4)
        for at in range(3)
    }
    X, Y, y = of_all_rows(weights, whole)
    first = [0, 1, 3]
    pairs = [(x, z) for x in range(3) for z in range(x, 3)]
    entries = [X[first[a], first[b]] for a, b in pairs] + [X[1, 2], X[3, 4]]
    apart = [(a, b) for a, b in pairs if a != b]
    ahead = [Y[first[a], first[b]] for a, b in apart]
    behind = [Y[first[b], first[a]] for a, b in apart]
    unknowns = np.array([*entries, *ahead, *behind, Y[1, 2], Y[3, 4], *y[first]])
    assert np.abs(parts.equal @ unknowns).max() < 1e-12
    assert (parts.slope @ unknowns).min() > -1e-12
    K = X + part * (Y + Y.T) + part**2 * np.diag(y)
    wanted = [K[first[a], first[b]] for a, b in pairs] + [K[1, 2], K[3, 4]]
    assert np.allclose(parts.moments @ unknowns, wanted)
    assert parts.cost @ unknowns == pytest.approx((whole + part) * y.sum())


@pytest.mark.parametrize("whole", [1, 3])
def test_rows_of_the_same_weight_have_the_moments_of_random_ones(whole: int) -> None:
    limits = average_limits(np.full(N, 1 / N), 0.1, 1.0 / (whole + 0.4))
    parts = _Relaxed(limits, Listed(limits, DIVIDED), np.empty((0, N)), whole + 1, 0.4).parts
    assert parts is not None
    unknowns = parts.at_random(2.0)
    assert np.abs(parts.equal @ unknowns).max() < 1e-12
    every = list(permutations(range(N), whole + 1))
    both = sum(0 in row[:-1] and 1 in row[:-1] for row in every) / len(every)
    assert unknowns[1] == pytest.approx(2.0 * both)
    last = sum(0 in row[:-1] and row[-1] == 1 for row in every) / len(every)
    assert unknowns[8] == pytest.approx(2.0 * last)
