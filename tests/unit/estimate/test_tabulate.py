"""Counting batches of codes."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.tabulate import MAX_CELLS, Tabulation, Tabulator


def random_codes(n_outputs: tuple[int, ...], rows: int, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, n, rows).astype(np.uint8) for n in n_outputs]


def by_hand(
    columns: list[np.ndarray], weights: np.ndarray, n_outputs: tuple[int, ...]
) -> np.ndarray:
    counts = np.zeros(n_outputs)
    for *cell, weight in zip(*columns, weights, strict=True):
        counts[tuple(cell)] += weight
    return counts


@pytest.mark.parametrize("n_outputs", [(3, 2, 4), (200, 20, 30), (5,)])
def test_batches_add_up_to_the_counts_of_all_rows(n_outputs: tuple[int, ...]) -> None:
    tabulator = Tabulator(n_outputs)
    batches = [random_codes(n_outputs, rows, rows) for rows in (50, 0, 7, 300)]
    for batch in batches:
        tabulator.add(batch)
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    tabulation = tabulator.tabulation()
    np.testing.assert_array_equal(tabulation.counts, by_hand(columns, np.ones(357), n_outputs))
    assert tabulation.n_records == 357
    assert tabulation.n_effective == 357
    np.testing.assert_array_equal(tabulation.square_frequencies, tabulation.frequencies / 357)


@pytest.mark.parametrize("n_outputs", [(3, 2, 4), (200, 20, 30)])
def test_weights_and_their_squares_are_added_up(n_outputs: tuple[int, ...]) -> None:
    random = np.random.default_rng(3)
    tabulator = Tabulator(n_outputs, weighted=True)
    batches = [random_codes(n_outputs, rows, rows) for rows in (50, 300)]
    weights = [random.gamma(2.0, size=len(batch[0])) for batch in batches]
    for batch, weight in zip(batches, weights, strict=True):
        tabulator.add(batch, weight)
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    weight = np.concatenate(weights)
    tabulation = tabulator.tabulation()
    assert tabulation.squares is not None
    np.testing.assert_allclose(tabulation.counts, by_hand(columns, weight, n_outputs), rtol=1e-12)
    np.testing.assert_allclose(tabulation.squares, by_hand(columns, weight**2, n_outputs))
    assert tabulation.n_records == 350
    assert tabulation.n_effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_a_margin_is_the_count_of_fewer_attributes_in_the_order_asked() -> None:
    n_outputs = (3, 2, 4)
    columns = random_codes(n_outputs, 100, 1)
    weights = np.random.default_rng(1).random(100)
    tabulator = Tabulator(n_outputs, weighted=True)
    tabulator.add(columns, weights)
    for axes in [(2, 0), (0, 2), (1,), (2, 1, 0), (1, 2, 0)]:
        margin = tabulator.tabulation().margin(axes)
        shape = tuple(n_outputs[axis] for axis in axes)
        chosen = [columns[axis] for axis in axes]
        np.testing.assert_allclose(margin.counts, by_hand(chosen, weights, shape))
        assert margin.squares is not None
        np.testing.assert_allclose(margin.squares, by_hand(chosen, weights**2, shape))


def test_a_tabulation_does_not_change_when_more_is_counted() -> None:
    tabulator = Tabulator((2,))
    tabulator.add([np.array([0, 1, 1])])
    before = tabulator.tabulation()
    tabulator.add([np.array([0])])
    np.testing.assert_array_equal(before.counts, [1, 2])


def test_a_bad_weight_is_an_error_that_says_in_which_record() -> None:
    for bad in (-1.0, np.nan, np.inf):
        tabulator = Tabulator((2,), weighted=True)
        tabulator.add([np.array([0, 1])], np.array([1.0, 2.0]))
        with pytest.raises(InputError, match="record 4 is negative or not a finite") as caught:
            tabulator.add([np.array([0, 1])], np.array([1.0, bad]))
        assert str(bad) not in str(caught.value)


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(InputError, match="no records"):
        Tabulator((2, 2)).tabulation()
    weighted = Tabulator((2,), weighted=True)
    weighted.add([np.array([0])], np.array([0.0]))
    with pytest.raises(InputError, match="all their weights are 0"):
        weighted.tabulation()


def test_counts_must_be_whole_and_not_negative() -> None:
    assert Tabulation.from_counts(np.array([3, 0, 2])).n_records == 5
    with pytest.raises(InputError, match="whole numbers"):
        Tabulation.from_counts(np.array([0.5, 1.5]))
    with pytest.raises(InputError, match="not negative"):
        Tabulation.from_counts(np.array([-1, 5]))
    for bad in (np.inf, np.nan):
        with pytest.raises(InputError):
            Tabulation.from_counts(np.array([bad, 5]))


def test_a_table_too_large_for_memory_is_refused_before_it_is_made() -> None:
    with pytest.raises(InputError, match=f"more than {MAX_CELLS}"):
        Tabulator((1000, 1000, 1000))
