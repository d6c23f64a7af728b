"""Eigenvalues and levels of subsets against the enumerated law."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from deniable.laws.votes import backward
from marked import slow_after
from unit.laws.votes import whole_law as oracle


def answered(law: oracle.GatedSum, subset: Sequence[int]) -> oracle.FloatArray:
    """φ of every T ⊆ subset, however few or many."""
    return backward.normalized(backward.components(law, subset), law.retention[list(subset)])


@pytest.mark.parametrize("seed", slow_after(1, range(8)))
def test_eigenvalues_of_every_subset_in_any_order_equal_the_enumerated_law(seed: int) -> None:
    law = oracle.random_sum(seed, 5)
    q = oracle.pattern_law(law)
    k, a = law.n_attributes, law.n_categories
    exact = np.array([oracle.attenuation(a, q, np.flatnonzero(row)) for row in oracle.patterns(k)])
    exact = exact.reshape((2,) * k)  # of the set of those whose index is 1
    for size in range(k + 1):
        for subset in itertools.permutations(range(k), size):
            found = answered(law, subset)
            assert found.shape == (2,) * size
            order = np.argsort(subset).astype(int)  # of the axes, by their attributes
            expected = exact[tuple(slice(2) if i in subset else 0 for i in range(k))]
            np.testing.assert_allclose(found.transpose(order), expected, rtol=0, atol=1e-13)


def test_all_the_eigenvalues_of_a_subset_of_many_attributes_agree_with_single_ones() -> None:
    random = np.random.default_rng(3)
    law = oracle.GatedSum(
        tuple(random.integers(2, 9, 70).tolist()),
        random.integers(100, 400, 70),
        random.random(70),
        "vote",
        4_200.0,
        1.0,
        8.0,
        random.uniform(0.9, 1.0, 70),
    )
    subset = [7, 69, 0, 50, 33]
    found = answered(law, subset)
    single = law.moments().gain / (1 - law.uniform_keep)
    for place, i in enumerate(subset):
        index = tuple(int(place == axis) for axis in range(len(subset)))
        assert found[index] == pytest.approx(single[i], abs=1e-13)
    for (x, i), (y, j) in itertools.combinations(enumerate(subset), 2):
        index = tuple(int(axis in (x, y)) for axis in range(len(subset)))
        assert found[index] == pytest.approx(law.pair_attenuation(i, j), abs=1e-13)


@pytest.mark.parametrize("seed", slow_after(6, range(24)))
def test_at_one_sum_and_from_any_later_table_the_numbers_are_the_same_to_the_last_bit(
    seed: int,
) -> None:
    law = oracle.random_sum(seed, 6)
    back = backward.Backward(law)
    for i, later in itertools.combinations(range(law.n_attributes + 1), 2):
        change, dither = back.choices(i, back.after(i + 1))
        held = {later: back.after(later)}
        for state, s in enumerate(range(back.bounds(i)[0], back.bounds(i)[1] + 1)):
            one, other = back.choices_at(i, s, held)
            assert one == tuple(weights[state] for weights in change)
            assert other == (dither and tuple(weights[state] for weights in dither))


@pytest.mark.parametrize("narrower", range(5))
@pytest.mark.parametrize("seed", range(24))
def test_states_are_brought_back_where_one_could_lie_beyond_the_ends(
    seed: int, narrower: int
) -> None:
    law = oracle.random_sum(seed, 6)
    first, last = law.rise
    law.__dict__["rise"] = (first, max(last - narrower, first))
    back = backward.Backward(law)
    for i in range(law.n_attributes):
        shift, beyond = back.moves(i)
        most = back.n_states(i) - 1 + shift + back.weights[i] + (back.dither[i] > 0)
        inside = shift >= 0 and most < back.n_states(i + 1)
        assert inside or beyond


@pytest.mark.parametrize("most", [5, 140])
def test_all_pairs_at_once_are_those_one_by_one(most: int) -> None:
    law = oracle.random_sum(2, most)
    k, pairs = law.n_attributes, law.pair_eigenvalues()
    for i, j in ((0, 1), (2, 1), (k - 1, 0)):
        alone = backward.normalized(backward.components(law, (i, j)), law.retention[[i, j]])
        expected = [[1.0, pairs[j, j]], [pairs[i, i], pairs[i, j]]]
        np.testing.assert_allclose(alone, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(law.eigenvalues((i, j)), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(law.eigenvalues((i,)), [1.0, pairs[i, i]], rtol=0, atol=1e-12)
