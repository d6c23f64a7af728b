"""The door to entropy, and exact draws through every branch, bit by bit.

Whether the bits and the draws are distributed as they should be is asked in tests/statistical.
"""

import copy
import pickle
import subprocess
import sys
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
    for weights in small_weights():
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
    some = small_weights()[:: 1 if prefix_bits == 8 else 8]
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


bits_of_u = st.integers(0, (1 << 16) - 1)


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
    # Aim U at a boundary, as closely as 64, 128 or 192 bits allow.
    total_bits = 256
    boundary = sum(weights[: near % len(weights)])
    u = ((boundary << at_bits) // sum(weights) + offset) % (1 << at_bits)
    u <<= total_bits - at_bits
    words = [(u >> (total_bits - 64 * j)) & ALL_ONES for j in range(1, 5)]
    script: list[tuple[type, list[int]]] = []
    known = 0
    for known in (prefix_bits, 64, 128, 192, 256):
        if known == prefix_bits:
            script.append((prefix_type(prefix_bits), [u >> (total_bits - known)]))
        elif known == 64:
            # The second look takes 64 new bits, of which those after the prefix are used.
            rest = (words[0] << prefix_bits) & ALL_ONES
            script.append((np.uint64, [rest | 1]))
        else:
            script.append((np.uint64, [words[known // 64 - 1]]))
        low = Fraction(u >> (total_bits - known), 1 << known)
        expected = outcome_of_interval(weights, low, low + Fraction(1, 1 << known))
        if expected is not None:
            break
    if expected is None:
        return  # a boundary that is not a multiple of 2^-256, met to the last bit
    source = ScriptedBits(*script)
    assert ExactCategorical(weights, prefix_bits=prefix_bits).draw(1, source).tolist() == [expected]
    assert source.used_up


def test_a_tie_at_64_bits_with_an_exact_boundary_is_decided_at_once() -> None:
    # The boundary is 2^63 + 1 of 2^64: an integer, so U at or above it is the second outcome.
    weights = [(1 << 63) + 1, (1 << 63) - 1]
    for word, outcome in (((1 << 48) - 1) << 16, 1), (1 << 16, 1), (0, 0):
        source = ScriptedBits((np.uint16, [1 << 15]), (np.uint64, [word]))
        assert ExactCategorical(weights).draw(1, source).tolist() == [outcome]
        assert source.used_up


def test_a_tie_at_64_bits_with_an_inexact_boundary_looks_further_as_long_as_it_must() -> None:
    # 1/3 = 0.010101…: U follows it for 64, 128 or 192 bits before it leaves.
    thirds = int("01" * 32, 2)
    for repeats in range(3):
        for last, outcome in ((thirds - 1, 0), (thirds + 1, 1)):
            source = ScriptedBits(
                (np.uint16, [thirds >> 48]),
                (np.uint64, [(thirds << 16) & ALL_ONES]),
                *[(np.uint64, [thirds])] * repeats,
                (np.uint64, [last]),
            )
            assert ExactCategorical([1, 2]).draw(1, source).tolist() == [outcome]
            assert source.used_up


def test_weights_far_below_what_64_bits_can_tell_are_neither_lost_nor_enlarged() -> None:
    weights = [1, 1 << 200, 1]  # probabilities of 2^-200 at both ends
    table = ExactCategorical(weights)
    assert sum(table.probability(j) for j in range(3)) == 1
    assert table.probability(0) == Fraction(1, (1 << 200) + 2)
    zeros, ones = (np.uint64, [0]), (np.uint64, [ALL_ONES])
    # Only 200 zero bits in a row give the first outcome; a one in the 200th already does not.
    source = ScriptedBits((np.uint16, [0]), zeros, zeros, zeros, zeros)
    assert table.draw(1, source).tolist() == [0]
    assert source.used_up
    source = ScriptedBits((np.uint16, [0]), zeros, zeros, zeros, (np.uint64, [1 << 57]))
    assert table.draw(1, source).tolist() == [1]
    source = ScriptedBits((np.uint16, [65535]), ones, ones, ones, ones)
    assert table.draw(1, source).tolist() == [2]
    assert source.used_up


@pytest.mark.parametrize("prefix_bits", [8, 16])
def test_outcomes_of_weight_zero_are_never_drawn_wherever_they_stand(prefix_bits: int) -> None:
    for weights in ([0, 0, 3, 0, 1, 0], [0, 1], [1, 0], [5, 0, 0], [0, 0, 7, 0]):
        table = ExactCategorical(weights, prefix_bits=prefix_bits)
        size = 1 << prefix_bits
        for tail in (0, ALL_ONES):
            source = ScriptedBits((prefix_type(prefix_bits), range(size)))
            undecided = int(np.count_nonzero(table._table == len(weights)))
            if undecided:
                source._requests += [(np.dtype(np.uint64), [tail] * undecided)]
                source._requests += [(np.dtype(np.uint64), [tail])] * 3
            drawn = table.draw(size, source)
            assert all(weights[outcome] for outcome in np.unique(drawn).tolist())


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


def test_the_two_prefix_widths_and_the_direct_path_agree_on_the_same_u() -> None:
    weights = [3, 1 << 66, 12345, 0, 1 << 65, 77]
    generator = np.random.default_rng(5)
    u = generator.integers(0, 1 << 63, 500, dtype=np.uint64) * np.uint64(2)
    u[:250] >>= np.uint64(40)  # many near 0, where the small weights are
    direct = ExactCategorical(weights)
    expected = direct._decide(u, ScriptedBits(*EXTENSION * 50))
    for prefix_bits in (8, 16):
        table = ExactCategorical(weights, prefix_bits=prefix_bits)
        for value, outcome in zip(u.tolist(), expected.tolist(), strict=True):
            prefix = value >> (64 - prefix_bits)
            source = ScriptedBits(
                (prefix_type(prefix_bits), [prefix]),
                (np.uint64, [(value << prefix_bits) & ALL_ONES]),
                *EXTENSION,
            )
            assert table.draw(1, source).tolist() == [outcome]


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


@pytest.mark.parametrize("limit", [3, 12, 999, 40_000, (1 << 16) - 1])
@pytest.mark.parametrize("rest", [0, ALL_ONES])
def test_every_prefix_of_a_uniform_integer_is_undecided_only_if_the_rest_decides(
    limit: int, rest: int
) -> None:
    prefixes = np.arange(1 << 16, dtype=np.uint64)
    least, most = prefixes * np.uint64(limit), (prefixes + np.uint64(1)) * np.uint64(limit)
    undecided = int(((most - np.uint64(1)) >> np.uint64(16) != least >> np.uint64(16)).sum())
    source = ScriptedBits((np.uint16, range(1 << 16)), (np.uint64, [rest] * undecided))
    words = [(t << 48) + (rest >> 16) for t in range(1 << 16)]
    assert uniform_below(limit, 1 << 16, source).tolist() == [w * limit >> 64 for w in words]
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


def test_a_seeded_source_repeats_itself_and_depends_on_the_seed() -> None:
    first, again, other = SeededRandomness(1), SeededRandomness(1), SeededRandomness(2)
    draws = [(np.uint16, 7), (np.uint64, 70_000), (np.uint8, 0), (np.uint8, 33)]
    for kind, count in draws:
        np.testing.assert_array_equal(first.bits(kind, count), again.bits(kind, count))
    assert not np.array_equal(first.bits(np.uint64, 4), other.bits(np.uint64, 4))


def test_a_seeded_source_goes_on_where_it_stopped_and_is_not_secure() -> None:
    whole = SeededRandomness(7).bits(np.uint8, 150_000)
    pieces = SeededRandomness(7)
    parts = [pieces.bits(np.uint8, n) for n in (1, 15, 16, 65_536, 17, 84_415)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert SeededRandomness.secure is False
    assert SystemRandomness.secure is True


def test_the_seeded_stream_is_aes_256_in_counter_mode_keyed_from_the_seed() -> None:
    import hashlib

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    digest = hashlib.sha512(b"deniable test keystream 42").digest()
    cipher = Cipher(algorithms.AES(digest[:32]), modes.CTR(digest[32:48]))
    expected = cipher.encryptor().update(bytes(70_000))
    assert SeededRandomness(42).bits(np.uint8, 70_000).tobytes() == expected


def test_two_sources_share_no_word_and_neither_repeats_one() -> None:
    # 40,000 words of 64 bits: a chance of 4e-11 that two agree.
    words = np.concatenate([SystemRandomness().bits(np.uint64, 20_000) for _ in range(2)])
    assert np.unique(words).size == words.size


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
    script = """
import os, numpy as np
from deniable.randomness import SystemRandomness
source = SystemRandomness()
source.bits(np.uint64, 3)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, source.bits(np.uint64, 4).tobytes())
    os._exit(0)
mine = source.bits(np.uint64, 4)
os.waitpid(child, 0)
theirs = np.frombuffer(os.read(reader, 32), dtype=np.uint64)
print(len(set(mine.tolist()) | set(theirs.tolist())))
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "8"


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
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="would repeat it"):
            make(source)
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(RuntimeError, match="process and thread"),
    ):
        threads.submit(drawn_by, source).result()
    assert not finished(forked(lambda: drawn_by(source)))


@pytest.mark.parametrize("prefix_bits", [8, 16])
@pytest.mark.parametrize("n", [2, 4, 256, 512])
def test_first_bits_are_what_the_table_says_of_equally_likely_outcomes(
    n: int, prefix_bits: int
) -> None:
    weights = ExactCategorical([3] * n, prefix_bits=prefix_bits)
    assert (weights._shift is None) == (n > 1 << prefix_bits)
    looked_up = ExactCategorical([3] * n, prefix_bits=prefix_bits)
    looked_up._shift = None
    drawn, same = (w.draw(5000, SeededRandomness(4)) for w in (weights, looked_up))
    assert drawn.dtype == same.dtype
    assert np.array_equal(drawn, same)
    assert weights.draws_by([1] * n)


def test_first_bits_that_are_one_too_few_are_seen() -> None:
    assert ExactCategorical([1, 1, 1])._shift is None
    assert ExactCategorical([1, 2])._shift is None
    weights = ExactCategorical([1] * 4)
    assert weights._shift == 14
    weights._shift = 15
    assert not weights.draws_by([1] * 4)
