"""The keystream, draws from integer weights, and orders: fresh bits against what they should be."""

from collections import Counter
from itertools import permutations as orders
from math import factorial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.randomness import BitSource, ExactCategorical, SystemRandomness, permutation
from marked import slow_after
from statistical.budget import BUDGET, SHARE
from statistical.counting import expectation

WORDS = 1 << 18
LAGS = (1, 2, 4096, 8192, 16384)
"""8192 words of 64 bits are one piece of keystream."""


def ones_per_position(words: NDArray[np.uint64]) -> list[int]:
    return [int(((words >> np.uint64(j)) & np.uint64(1)).sum()) for j in range(64)]


def check_bits(source: BitSource, false_alarm: float) -> list[str]:
    """What is wrong with a source: bits not balanced, bytes not uniform, words that repeat."""
    words = source.bits(np.uint64, WORDS)
    share = false_alarm / (2 + len(LAGS))
    wrong = []
    if expectation(WORDS, [0.5] * 64, share).alarms(ones_per_position(words)).size:
        wrong.append("balance")
    data = np.bincount(source.bits(np.uint8, WORDS), minlength=256)
    if expectation(WORDS, [1 / 256] * 256, share).alarms(data).size:
        wrong.append("bytes")
    for lag in LAGS:
        # Words drawn apart are independent, so their exclusive or is uniform too. Those at even
        # and odd multiples of the lag are compared once each, so that the pairs are disjoint.
        paired = words[: WORDS - WORDS % (2 * lag)].reshape(-1, 2, lag)
        different = (paired[:, 0] ^ paired[:, 1]).ravel()
        exact = expectation(different.size, [0.5] * 64, share)
        if exact.alarms(ones_per_position(different)).size:
            wrong.append(f"lag {lag}")
    return wrong


def test_bits_from_the_system_are_balanced_and_do_not_repeat() -> None:
    share = BUDGET.spend("bits from the system")
    assert check_bits(SystemRandomness(), share) == []


def test_two_sources_are_independent_of_each_other() -> None:
    share = BUDGET.spend("two sources")
    both = [SystemRandomness().bits(np.uint64, WORDS) for _ in range(2)]
    expected = expectation(WORDS, [0.5] * 64, share)
    assert expected.alarms(ones_per_position(both[0] ^ both[1])).size == 0
    assert expected.alarms(ones_per_position(both[0] ^ both[0])).size == 64


class Wrong:
    """Good bits, spoilt."""

    secure = False

    def __init__(self) -> None:
        self.good = SystemRandomness()

    def bits(self, dtype: Any, count: int) -> NDArray[Any]:
        return self.spoil(self.good.bits(dtype, count))

    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError


class StuckBit(Wrong):
    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return drawn & ~drawn.dtype.type(1 << 5)


class SlightlyBiased(Wrong):
    """The lowest bit of every twenty-fifth word is set."""

    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        drawn[::25] |= drawn.dtype.type(1)
        return drawn


class NeverZero(Wrong):
    """Bytes 1 … 255: each bit is almost balanced."""

    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return np.where(drawn == 0, drawn.dtype.type(255), drawn)


class StartsOver(Wrong):
    """The same piece of keystream again and again."""

    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return np.resize(drawn[:8192], drawn.size)


class SaysEverythingTwice(Wrong):
    def spoil(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(drawn[: drawn.size // 2], 2)


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (StuckBit, "balance"),
        (SlightlyBiased, "balance"),
        (NeverZero, "bytes"),
        (StartsOver, "lag 8192"),
        (SaysEverythingTwice, "lag 1"),
    ],
)
def test_a_spoilt_source_is_seen(kind: type[Wrong], seen: str) -> None:
    # The bias of 1/50 is what could be missed most easily; the others are far from the truth.
    share = SHARE / (2 + len(LAGS))
    miss = expectation(WORDS, [0.5] * 64, share).miss_probability([0.52] + [0.5] * 63)
    assert miss <= SHARE
    BUDGET.spend(f"a source spoilt: {kind.__name__}", max(miss, 1e-300))
    assert seen in check_bits(kind(), SHARE)


# --- draws from integer weights ------------------------------------------------------------------

THIRD = (1 << 80) // 3
WEIGHTS: dict[str, list[int]] = {
    "thirds": [1, 1, 1],
    "unequal and zero": [5, 0, 17, 1, 0, 233],
    "one in a thousand": [1, 1023],
    "wide": [THIRD, 1, (1 << 80) - THIRD - 1],
    "two hundred and fifty-six": list(range(1, 257)),
    "five thousand": [1 + j % 7 for j in range(5000)],
}


def check_draws(draw: Any, weights: list[int], count: int, false_alarm: float) -> bool:
    """Whether the outcomes follow the weights."""
    counts = np.bincount(draw(count), minlength=len(weights))
    exact = [weight / sum(weights) for weight in weights]
    return expectation(count, exact, false_alarm).alarms(counts).size == 0


@pytest.mark.parametrize("prefix_bits", [8, 16])
@pytest.mark.parametrize("name", WEIGHTS)
def test_outcomes_are_drawn_as_often_as_their_weights_say(name: str, prefix_bits: int) -> None:
    table = ExactCategorical(WEIGHTS[name], prefix_bits=prefix_bits)
    source = SystemRandomness()
    share = BUDGET.spend(f"draws of {name} by {prefix_bits} bits")
    assert check_draws(lambda n: table.draw(n, source), WEIGHTS[name], 1_000_000, share)


def test_a_draw_that_looks_at_eight_bits_only_is_seen() -> None:
    # U rounded down to a multiple of 1/256 makes the outcome of 1/1024 four times as likely.
    source = SystemRandomness()
    expected = expectation(1_000_000, [1 / 1024, 1023 / 1024], SHARE)
    miss = expected.miss_probability([1 / 256, 255 / 256])
    assert miss <= SHARE
    BUDGET.spend("eight bits only", max(miss, 1e-300))

    def rounded(n: int) -> NDArray[np.intp]:
        return (source.bits(np.uint8, n) / 256 >= 1 / 1024).astype(np.intp)

    assert not check_draws(rounded, WEIGHTS["one in a thousand"], 1_000_000, SHARE)


def test_outcomes_that_are_off_by_one_are_seen() -> None:
    weights = [5, 17, 1, 233]
    table, source = ExactCategorical(weights), SystemRandomness()
    exact = np.array(weights) / sum(weights)
    miss = expectation(100_000, exact, SHARE).miss_probability(np.roll(exact, 1))
    assert miss <= SHARE
    BUDGET.spend("outcomes off by one", max(miss, 1e-300))
    assert not check_draws(lambda n: (table.draw(n, source) + 1) % 4, weights, 100_000, SHARE)


# --- orders --------------------------------------------------------------------------------------


def check_orders(shuffle: Any, length: int, count: int, false_alarm: float) -> bool:
    """Whether all orders of a short list are equally frequent."""
    seen = Counter(tuple(shuffle(length).tolist()) for _ in range(count))
    counts = [seen[order] for order in orders(range(length))]
    exact = [1 / factorial(length)] * factorial(length)
    return sum(counts) == count and not expectation(count, exact, false_alarm).alarms(counts).size


@pytest.mark.parametrize("length", slow_after(1, [2, 3, 4]))
def test_every_order_is_equally_likely(length: int) -> None:
    source = SystemRandomness()
    share = BUDGET.spend(f"orders of {length}")
    assert check_orders(lambda n: permutation(n, source), length, 20_000, share)


def test_an_order_by_keys_that_may_be_equal_is_seen() -> None:
    # Keys of two bits, ties left in place: 0,1,2 has probability C(6,3)/64 = 20/64, not 1/6.
    source = SystemRandomness()

    def with_ties(n: int) -> NDArray[np.intp]:
        return np.argsort(source.bits(np.uint8, n) >> 6, kind="stable")

    expected = expectation(20_000, [1 / 6] * 6, SHARE)
    miss = expected.miss_probability([20 / 64] + [1 / 6] * 5)
    assert miss <= SHARE
    BUDGET.spend("orders with ties", max(miss, 1e-300))
    assert not check_orders(with_ties, 3, 20_000, SHARE)
