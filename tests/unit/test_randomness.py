"""The door to entropy, and exact draws through every branch, bit by bit.

Whether the bits and the draws are distributed as they should be is asked in tests/statistical.
"""

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable import randomness
from deniable.randomness import (
    ExactCategorical,
    SeededRandomness,
    SystemRandomness,
    happens,
    permutation,
    smallest_unsigned,
    uniform_below,
)
from killing import finished, forked
from unit.scripted import ScriptedBits, outcome_of_interval

ALL_ONES = (1 << 64) - 1


def prefix_type(prefix_bits: int) -> type:
    return {8: np.uint8, 16: np.uint16}[prefix_bits]


# --- exact draws ---------------------------------------------------------------------------------


def small_weights() -> list[list[int]]:
    """All distributions over up to four outcomes whose weights are at most 3, and odd ones."""
    found = [list(w) for n in (2, 3, 4) for w in product(range(4), repeat=n) if any(w)]
    return [*found, [1, 254], [85, 85, 85], [1] * 17, [7, 0, 0, 249], [0, 0, 5], [1 << 20, 1]]


def test_every_eight_bit_prefix_decides_exactly_what_it_determines() -> None:
    for weights in small_weights()[::4]:
        table = ExactCategorical(weights, prefix_bits=8)
        decided, expected = [], []
        for prefix in range(256):
            outcome = outcome_of_interval(weights, Fraction(prefix, 256), Fraction(prefix + 1, 256))
            if outcome is None:
                # Undecided: the rest of the 64 bits, here as low and as high as it can be.
                for tail in (0, ALL_ONES):
                    source = ScriptedBits((np.uint8, [prefix]), (np.uint64, [tail]), *EXTENSION)
                    (drawn,) = table.draw(1, source)
                    value = (prefix << 56) | (tail >> 8)
                    low = Fraction(value, 1 << 64)
                    high = low + Fraction(1, 1 << 64)
                    known = outcome_of_interval(weights, low, high)
                    if known is not None:
                        assert drawn == known
                        assert len(source._requests) == len(EXTENSION)
            else:
                decided.append(prefix)
                expected.append(outcome)
        source = ScriptedBits((np.uint8, decided))
        assert table.draw(len(decided), source).tolist() == expected
        assert source.used_up


EXTENSION = ((np.uint64, [0]), (np.uint64, [1]), (np.uint64, [2]))


@pytest.mark.parametrize("prefix_bits", [8, 16])
def test_the_prefixes_bracket_every_probability_and_leave_few_undecided(prefix_bits: int) -> None:
    size = 1 << prefix_bits
    some = small_weights()[:: 4 if prefix_bits == 8 else 24]
    cases = [*some, [1, (1 << 80)], [3, 1 << 70, 5, 1 << 70], list(range(1, 40))]
    for weights in cases:
        table = ExactCategorical(weights, prefix_bits=prefix_bits)
        if len(weights) == 1:
            continue
        found = []
        for tail in (0, ALL_ONES):
            first = ScriptedBits((prefix_type(prefix_bits), range(size)))
            undecided = int(np.count_nonzero(table._table == len(weights)))
            if undecided:
                first._requests.append((np.dtype(np.uint64), [tail] * undecided))
                # Where a boundary is touched to the 64th bit, any further bits will do.
                first._requests += [(np.dtype(np.uint64), [tail])] * undecided
            found.append(np.bincount(table.draw(size, first), minlength=len(weights)))
            assert undecided <= len(weights) - 1
        # U = prefix + 0… and U = prefix + 1… are the ends of the interval, so the cumulative
        # frequencies lie on both sides of the cumulative probabilities.
        least = np.cumsum(found[1]).tolist()
        most = np.cumsum(found[0]).tolist()
        edge = 0
        for low, high, weight in zip(least, most, weights, strict=True):
            edge += weight
            exact = Fraction(edge * size, sum(weights))
            assert low <= exact <= high
            assert high - low <= 1


def check_draw_near(
    weights: list[int], near: int, offset: int, at_bits: int, prefix_bits: int
) -> None:
    """Aim U at a boundary, as closely as so many bits allow: the draw looks at as many bits as it
    takes, and is the outcome where U lies."""
    total_bits = 320
    boundary = sum(weights[: near % len(weights)])
    u = ((boundary << at_bits) // sum(weights) + offset) % (1 << at_bits)
    u <<= total_bits - at_bits
    words = [(u >> (total_bits - 64 * j)) & ALL_ONES for j in range(1, 6)]
    # The second look takes 64 new bits, of which those after the prefix are used.
    rest = (words[0] << prefix_bits) & ALL_ONES
    script: list[tuple[type, list[int]]] = []
    looks = [(prefix_type(prefix_bits), u >> (total_bits - prefix_bits)), (np.uint64, rest | 1)]
    looks += [(np.uint64, word) for word in words[1:]]
    for known, (kind, word) in zip((prefix_bits, 64, 128, 192, 256, 320), looks, strict=True):
        script.append((kind, [word]))
        low = Fraction(u >> (total_bits - known), 1 << known)
        expected = outcome_of_interval(weights, low, low + Fraction(1, 1 << known))
        if expected is not None:
            source = ScriptedBits(*script)
            table = ExactCategorical(weights, prefix_bits=prefix_bits)
            assert table.draw(1, source).tolist() == [expected]
            assert source.used_up
            return
    # Else a boundary that is no multiple of 2^-320, met to the last bit.


@given(
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 1 << 90)), min_size=2, max_size=6).filter(
        any
    ),
    st.integers(0, 5),
    st.integers(-2, 2),
    st.sampled_from([64, 128, 192]),
    st.sampled_from([8, 16]),
)
def test_a_draw_uses_as_many_bits_as_it_takes_and_lands_where_u_lies(
    weights: list[int], near: int, offset: int, at_bits: int, prefix_bits: int
) -> None:
    check_draw_near(weights, near, offset, at_bits, prefix_bits)


@pytest.mark.parametrize("prefix_bits", [8, 16])
@pytest.mark.parametrize(
    "weights",
    [
        [(1 << 63) + 1, (1 << 63) - 1],  # the boundary is a multiple of 2^-64: decided at once
        [(1 << 127) + 1, (1 << 127) - 1],  # of 2^-128: at 128 bits, on either side of it
        [1, 2],  # 1/3 = 0.010101…: U follows it for 64 bits, 128, 192 or 256
        [1, 1 << 200, 1],  # far below what 64 bits can tell
        [0, 0, 3, 0, 1, 0],
        [3, 1 << 66, 12345, 0, 1 << 65, 77],
    ],
)
def test_a_tie_is_looked_at_as_long_as_it_takes(weights: list[int], prefix_bits: int) -> None:
    for near, offset in product(range(len(weights)), range(-2, 3)):
        for at_bits in (64, 128, 192, 200, 201, 256):
            check_draw_near(weights, near, offset, at_bits, prefix_bits)


def test_thousands_of_outcomes_are_drawn_without_a_table_and_as_exactly() -> None:
    n = 5000
    assert n > randomness._DIRECT_OUTCOMES
    table = ExactCategorical([1] * n)
    assert table._table is None
    starts = [-(-(j << 64) // n) for j in range(n)]  # the first 64-bit U of every outcome
    drawn = table.draw(n, ScriptedBits((np.uint64, starts)))
    assert drawn.tolist() == list(range(n))
    assert drawn.dtype == np.uint16
    inexact = [j for j in range(1, n) if (j << 64) % n]
    (j,) = inexact[:1]
    for last, outcome in ((0, j - 1), (ALL_ONES, j)):
        source = ScriptedBits((np.uint64, [starts[j] - 1]), (np.uint64, [last]))
        assert table.draw(1, source).tolist() == [outcome]
        assert source.used_up
    exact = ExactCategorical([1] * 8192)
    source = ScriptedBits((np.uint64, [(17 << 51) - 1, 17 << 51]))
    assert exact.draw(2, source).tolist() == [16, 17]


def uneven(n: int) -> list[list[int]]:
    """Weights of n outcomes, such that a prefix has no boundary, one, or very many."""
    random = np.random.default_rng(n)
    steep = [int(w) ** 9 + 1 for w in random.integers(0, 1000, n).tolist()]
    rare = [1] * (n - 1) + [1 << 80]
    lonely = [0] * n
    lonely[5], lonely[n - 1] = 3, 5
    return [[1] * n, steep, rare, rare[::-1], lonely, [1] + [0] * (n - 1)]


@pytest.mark.parametrize("kind", range(6))
def test_a_guide_finds_what_a_search_finds_at_every_boundary(kind: int) -> None:
    weights = uneven(5000)[kind]
    guided = ExactCategorical(weights)
    assert guided._guide is not None
    floors, random = guided._floor64, np.random.default_rng(1)
    edges = [np.array([0, ALL_ONES], np.uint64), random.integers(0, ALL_ONES, 3000, np.uint64)]
    words = np.concatenate([floors, floors - np.uint64(1), floors + np.uint64(1), *edges])
    expected = np.searchsorted(floors, words, side="right")
    assert np.array_equal(guided._below(words), expected)
    assert guided.draws_by([3 * weight for weight in weights])


@pytest.mark.parametrize("by", [-1, 1])
def test_a_guide_that_is_off_by_one_somewhere_is_seen(by: int) -> None:
    weights = uneven(5000)[1]
    guided = ExactCategorical(weights)
    assert guided._guide is not None
    moved = np.flatnonzero(np.diff(guided._guide))[[0, 700, -1]]
    for place in moved.tolist():
        guided._guide[place] += by
        assert not guided.draws_by(weights)
        guided._guide[place] -= by
    assert guided.draws_by(weights)


def test_a_draw_within_a_quarter_is_decided_by_the_quarter_and_then_by_bits() -> None:
    # Four distributions of total 12: of two, of three, of one, and of four outcomes.
    weights = [9, 3, 4, 4, 4, 12, 1, 2, 3, 6]
    table = ExactCategorical(weights, prefix_bits=8)
    prefixes = np.tile(np.arange(256, dtype=np.uint8), 4)
    quarter = np.repeat(np.arange(4, dtype=np.uint8), 256)
    tail = 0x5A << 56
    undecided, expected = 0, []
    for q, prefix in zip(quarter.tolist(), prefixes.tolist(), strict=True):
        u = Fraction(q << 6 | prefix >> 2, 256)
        outcome = outcome_of_interval(weights, u, u + Fraction(1, 256))
        if outcome is None:
            undecided += 1
            u += Fraction(tail >> 8, 1 << 64)
            outcome = outcome_of_interval(weights, u, u + Fraction(1, 1 << 64))
        expected.append(outcome)
    assert undecided
    source = ScriptedBits((np.uint8, prefixes.tolist()), (np.uint64, [tail] * undecided))
    assert table.draw(1024, source, quarter).tolist() == expected
    starts = np.array([0, 2, 5, 6, 10])
    for prefix_bits in (8, 16):
        long = np.tile(quarter, 70)
        drawn = ExactCategorical(weights, prefix_bits=prefix_bits).draw(
            len(long), SeededRandomness(1), long
        )
        assert np.array_equal(np.searchsorted(starts, drawn, side="right") - 1, long)
    many = ExactCategorical([1] * 8192).draw(len(quarter), SeededRandomness(1), quarter)
    assert np.array_equal(many >> 11, quarter)


def test_uniform_integers_are_those_that_equal_weights_draw_from_the_same_bits() -> None:
    for limit in (2, 3, 5, 12, 40, 100, 999):
        drawn = uniform_below(limit, 20_000, SeededRandomness(limit))
        expected = ExactCategorical([1] * limit).draw(20_000, SeededRandomness(limit))
        assert np.array_equal(drawn, expected)
    assert not uniform_below(1, 100, SeededRandomness(1)).any()
    words = SeededRandomness(1).bits(np.uint16, 100)
    assert np.array_equal(uniform_below(1 << 16, 100, SeededRandomness(1)), words)


@pytest.mark.parametrize("limit", [2, 3, 5, 7, 100, 999, 40_000, (1 << 16) - 1, 1 << 16])
@pytest.mark.parametrize("tail", [0, ALL_ONES])
def test_after_every_prefix_a_uniform_integer_is_the_whole_part_and_takes_no_bits_in_vain(
    limit: int, tail: int
) -> None:
    """U begins with 16 bits t; as many more are drawn as it takes to tell the whole part of U·n."""
    prefixes = range(1 << 16)
    open_at = [t for t in prefixes if t * limit >> 16 != ((t + 1) * limit - 1) >> 16]
    source = ScriptedBits((np.uint16, prefixes), (np.uint64, [tail] * len(open_at)))
    if not open_at:
        source._requests.pop()
    # U is 0.t000… or 0.t111…, to 64 bits, which settle all but the whole multiples.
    first_64 = [t << 48 | tail >> 16 for t in prefixes]
    still_open = [u for u in first_64 if u * limit >> 64 != ((u + 1) * limit - 1) >> 64]
    source._requests += [(np.dtype(np.uint64), [tail])] * len(still_open)
    expected = [(u << 64 | tail) * limit >> 128 for u in first_64]
    assert uniform_below(limit, 1 << 16, source).tolist() == expected
    assert source.used_up


@pytest.mark.parametrize("limit", [3, 5, 7, 999, (1 << 16) - 1])
@pytest.mark.parametrize("beyond", [-1, 1, 2])
def test_after_64_bits_a_uniform_integer_is_open_where_the_next_multiple_is_in_reach(
    limit: int, beyond: int
) -> None:
    u = (beyond - limit) * pow(limit, -1, 1 << 64) % (1 << 64)  # U·n is so far from a whole number
    assert (u * limit + limit - beyond) % (1 << 64) == 0
    more = [(np.uint64, [ALL_ONES])] * (beyond > 0)
    source = ScriptedBits((np.uint16, [u >> 48]), (np.uint64, [u << 16 & ALL_ONES | 0xFFFF]), *more)
    expected = (u << 64 | ALL_ONES) * limit >> 128
    assert uniform_below(limit, 1, source).tolist() == [expected]
    assert source.used_up


@pytest.mark.parametrize("more", [[0], [ALL_ONES], [(1 << 64) // 3, 0], [(1 << 64) // 3, ALL_ONES]])
def test_a_uniform_integer_looks_as_far_as_it_must(more: list[int]) -> None:
    # U = 0.010101… in binary is a third as far as it goes: what follows decides.
    third = (1 << 64) // 3
    source = ScriptedBits((np.uint16, [third >> 48]), (np.uint64, [third << 16 & ALL_ONES]), *(
        (np.uint64, [each]) for each in more
    ))  # fmt: skip
    bits = (third << 64 * len(more)) + sum(each << 64 * i for i, each in enumerate(more[::-1]))
    expected = 3 * bits >> 64 * (len(more) + 1)
    assert uniform_below(3, 1, source).tolist() == [expected]


@pytest.mark.parametrize("total", [1, 3, 1000, (1 << 32) - 1, 1 << 32, (1 << 47) - 115])
def test_an_event_happens_where_the_whole_part_of_the_product_is_below_its_weight(
    total: int,
) -> None:
    edges = [0, 1, (1 << 32) - 1, 1 << 32, ALL_ONES - 1, ALL_ONES]
    first = np.array([*edges, *SeededRandomness(total).bits(np.uint64, 200).tolist()], np.uint64)
    weights = np.array([int(u) * total >> 64 for u in first], dtype=np.int64)
    for above, expected in ((0, False), (1, True)):
        more = [ALL_ONES] * sum((int(u) * total) % (1 << 64) > (1 << 64) - total for u in first)
        source = ScriptedBits((np.uint64, first.tolist()), *((np.uint64, [bits]) for bits in more))
        carried = [int(u) * total % (1 << 64) > (1 << 64) - total for u in first]
        # All further bits are ones: the product then reaches the next whole number.
        drawn = happens(weights + above + carried, total, source)
        assert drawn.tolist() == [expected] * len(first)
        assert source.used_up


def test_events_of_weights_zero_and_total_are_certain() -> None:
    weights = np.array([0, 7] * 100_000)
    assert happens(weights, 7, SeededRandomness(1)).tolist() == [False, True] * 100_000


def test_a_single_outcome_needs_no_bits_and_no_draws_need_none() -> None:
    assert ExactCategorical([9]).draw(4, ScriptedBits()).tolist() == [0, 0, 0, 0]
    for table in (ExactCategorical([1, 2]), ExactCategorical([1] * 5000)):
        assert table.draw(0, SystemRandomness()).shape == (0,)


@pytest.mark.parametrize("n", [2, 254, 255, 256, 257, 4096])
def test_the_sentinel_of_an_undecided_prefix_is_never_an_outcome(n: int) -> None:
    # With n outcomes the table holds the number n too; both must fit the type.
    table = ExactCategorical([1] * (n - 1) + [2])
    drawn = table.draw(20_000, SeededRandomness(3))
    assert int(drawn.max()) < n
    assert int(np.iinfo(drawn.dtype).max) >= n


@given(st.lists(st.integers(0, 1 << 100), min_size=1, max_size=8).filter(any))
def test_the_stated_probabilities_are_the_weights_over_their_sum(weights: list[int]) -> None:
    table = ExactCategorical(weights)
    for outcome, weight in enumerate(weights):
        assert table.probability(outcome) == Fraction(weight, sum(weights))


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [1, -1], [-1]])
def test_weights_that_are_no_distribution_are_refused(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one of them positive"):
        ExactCategorical(weights)


@pytest.mark.parametrize("prefix_bits", [0, 4, 12, 32])
def test_other_prefix_widths_are_refused(prefix_bits: int) -> None:
    with pytest.raises(ValueError, match="prefix_bits must be 8 or 16"):
        ExactCategorical([1, 1], prefix_bits=prefix_bits)


@given(st.integers(0, 1 << 63))
@example(255)
@example(256)
@example(65_535)
@example(65_536)
@example((1 << 32) - 1)
@example(1 << 32)
def test_the_smallest_unsigned_type_holds_the_number_and_no_smaller_one_does(largest: int) -> None:
    kind = smallest_unsigned(largest)
    assert kind.kind == "u"
    assert int(np.iinfo(kind).max) >= largest
    if kind.itemsize > 1:
        assert largest >= 1 << (4 * kind.itemsize)


# --- orders --------------------------------------------------------------------------------------


def test_an_order_follows_the_keys_and_equal_keys_are_drawn_again() -> None:
    source = ScriptedBits((np.uint64, [5, 9, 5]), (np.uint64, [1, 1, 2]), (np.uint64, [30, 10, 20]))
    assert permutation(3, source).tolist() == [1, 2, 0]
    assert source.used_up


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_an_order_contains_every_position_once(count: int) -> None:
    assert sorted(permutation(count, SystemRandomness()).tolist()) == list(range(count))


# --- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 3, 65_536, 100_001])
def test_bits_come_in_the_type_and_number_asked_for_and_can_be_written_to(
    kind: type, count: int
) -> None:
    drawn = SystemRandomness().bits(kind, count)
    assert drawn.dtype == kind
    assert drawn.shape == (count,)
    drawn += kind(1)


def test_the_seeded_stream_is_aes_256_in_counter_mode_keyed_from_the_seed() -> None:
    import hashlib

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    digest = hashlib.sha512(b"deniable test keystream 42").digest()
    cipher = Cipher(algorithms.AES(digest[:32]), modes.CTR(digest[32:48]))
    expected = cipher.encryptor().update(bytes(70_000))
    assert SeededRandomness(42).bits(np.uint8, 70_000).tobytes() == expected


def test_a_new_key_is_drawn_when_the_old_one_has_made_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(randomness, "_REKEY_AFTER", 64)
    drawn: list[int] = []

    def recorded(count: int) -> bytes:
        drawn.append(count)
        return bytes([len(drawn)]) * count

    monkeypatch.setattr(randomness.os, "urandom", recorded)
    source = SystemRandomness()
    assert drawn == [32, 16]
    source.bits(np.uint64, 7)
    source.bits(np.uint64, 1)
    assert drawn == [32, 16]  # 64 bytes made: the key has served
    source.bits(np.uint64, 1)
    assert drawn == [32, 16, 32, 16]


def test_after_a_fork_parent_and_child_draw_different_bits() -> None:
    source = SystemRandomness()
    source.bits(np.uint64, 3)
    read, write = os.pipe()
    child = forked(lambda: os.write(write, source.bits(np.uint64, 4).tobytes()))
    assert finished(child)
    theirs = np.frombuffer(os.read(read, 32), dtype=np.uint64)
    assert len(np.unique([*theirs, *source.bits(np.uint64, 4)])) == 8


# --- each bit once -------------------------------------------------------------------------------

# NIST SP 800-38A, F.5.5: CTR-AES256.Encrypt.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
NIST_PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST_CIPHER = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)


def keystream(count: int) -> np.ndarray:
    return randomness._Keystream(NIST_KEY, NIST_COUNTER).bits(np.uint8, count)


def test_the_keystream_is_the_one_that_the_standard_prints() -> None:
    expected = bytes(a ^ b for a, b in zip(NIST_PLAIN, NIST_CIPHER, strict=True))
    assert keystream(64).tobytes() == expected


@pytest.mark.parametrize("secure", [True, False])
def test_bits_of_any_requests_are_one_keystream_in_order_each_bit_once(
    secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source: randomness.BitSource
    if secure:
        keys = iter([NIST_KEY, NIST_COUNTER])
        monkeypatch.setattr(randomness.os, "urandom", lambda _size: next(keys))
        source, whole = SystemRandomness(), keystream(1 << 20).tobytes()
    else:
        whole = SeededRandomness(3).bits(np.uint8, 1 << 20).tobytes()
        source = SeededRandomness(3)
    asked = np.random.default_rng(5)
    place = 0
    for kind in [np.uint8, np.uint16, np.uint32, np.uint64] * 5:
        count = int(asked.integers(0, 12_000))
        piece = source.bits(kind, count)
        size = count * np.dtype(kind).itemsize
        assert (
            piece.astype(np.dtype(kind).newbyteorder("<")).tobytes()
            == (whole[place : place + size])
        )
        place += size
    assert place > 1 << 18


def drawn_by(source: randomness.BitSource) -> bytes:
    return source.bits(np.uint8, 32).tobytes()


def test_no_copy_of_a_source_repeats_its_bits() -> None:
    source = SystemRandomness()
    copies = [
        source,
        copy.copy(source),
        copy.deepcopy(source),
        pickle.loads(pickle.dumps(source)),
        pickle.loads(pickle.dumps(source)),
    ]
    with ThreadPoolExecutor(4) as threads:
        in_threads = list(threads.map(drawn_by, [source] * 40))
    drawn = [*map(drawn_by, copies), *in_threads, drawn_by(source)]
    assert len(set(drawn)) == len(drawn)
    assert all(one.secure for one in copies)


def test_a_thread_has_a_key_of_its_own() -> None:
    source = SystemRandomness()
    encryptors = {id(source._encryptor)}
    thread = threading.Thread(target=lambda: encryptors.add(id(source._encryptor)))
    thread.start()
    thread.join()
    assert len(encryptors) == 2


def test_a_seeded_keystream_is_neither_copied_nor_shared() -> None:
    source = SeededRandomness(1)
    assert not source.secure
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="would repeat it"):
            make(source)
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(RuntimeError, match="process and thread"),
    ):
        threads.submit(drawn_by, source).result()
    assert not finished(forked(lambda: drawn_by(source)))
