"""The only source of random bits, and exact draws from integer weights.

No other module may use ``os.urandom``, ``secrets``, ``random`` or the cipher; a test checks this.
Random bits are an AES-256-CTR keystream whose key and counter come from the operating system: as
fast as memory, and indistinguishable from uniform bits unless AES is broken.

A draw never compares rounded floating-point numbers. A probability is a ratio of integers; the
uniform number U in [0, 1) is revealed bit by bit, most significant first, until its side of every
boundary is certain. Sixteen bits nearly always suffice; otherwise, and with thousands of outcomes,
64 are used, and then Python's integers for as long as needed. Given uniform bits, the outcome has
exactly the stated probability (docs/proofs/accounting.md, Theorem 7).

The number of bits used depends on U alone, never on a person's row.
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Unsigned = np.dtype[np.unsignedinteger[Any]] | type[np.unsignedinteger[Any]]

_CHUNK = 1 << 16
"""Bytes of keystream made at a time: large enough to amortise the call, small enough for cache."""

_ZEROS = bytes(_CHUNK)

_REKEY_AFTER = 1 << 40
"""Bytes under one key. AES in counter mode never repeats a block, so a keystream of N blocks is
distinguishable from random with advantage about N²/2¹²⁹: at 2³⁶ blocks, 2⁻⁵⁷."""

_PIECE = 1 << 16
"""Draws made at a time, so that intermediate arrays stay in the second-level cache."""

_DIRECT_OUTCOMES = 4096
"""Beyond this number of outcomes a 16-bit prefix leaves too many draws undecided for a table."""

_GUIDE_BITS, _STEPS = 18, 4
"""With more outcomes, the number of first bits of a word that select a starting boundary, and the
number of steps from it that find nearly every outcome."""


_forks = 0
"""Number of forks between the first process and this one."""


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # missing on systems without fork
    os.register_at_fork(after_in_child=_count_fork)


class BitSource(Protocol):
    """A supply of uniform random bits."""

    secure: bool
    """Whether the bits are unpredictable; a release's record states if they were not."""

    def bits(self, dtype: Unsigned, count: int) -> NDArray[Any]:
        """Return ``count`` independent uniform values of an unsigned integer type."""
        ...


class _Keystream:
    """AES-256-CTR keystream as numpy arrays."""

    secure = False

    def __init__(self, key: bytes, counter: bytes) -> None:
        self._start(key, counter)

    def _start(self, key: bytes, counter: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        self._left = _REKEY_AFTER

    def bits(self, dtype: Unsigned, count: int) -> NDArray[Any]:
        item = np.dtype(dtype)
        size = count * item.itemsize
        buffer = np.empty(size + 16, dtype=np.uint8)  # the cipher needs room for one more block
        view = buffer.data
        for start in range(0, size, _CHUNK):
            step = min(_CHUNK, size - start)
            plain = _ZEROS if step == _CHUNK else _ZEROS[:step]
            self._encryptor.update_into(plain, view[start : start + step + 16])
        self._left -= size
        return buffer[:size].view(item.newbyteorder("<")).astype(item, copy=False)


class SystemRandomness(_Keystream, threading.local):
    """Unpredictable bits: a keystream keyed from the operating system's generator.

    No two copies of an object use the same bits: every thread has its own key, a child draws a new
    key after a fork, and a copy, pickled ones included, is a new object with a new key.
    """

    secure = True

    def __init__(self) -> None:  # threading.local calls it in every thread
        super().__init__(os.urandom(32), os.urandom(16))
        self._forks = _forks

    def __reduce__(self) -> tuple[type["SystemRandomness"], tuple[()]]:
        return SystemRandomness, ()

    def bits(self, dtype: Unsigned, count: int) -> NDArray[Any]:
        if self._left <= 0 or self._forks != _forks:
            self._start(os.urandom(32), os.urandom(16))
            self._forks = _forks
        return super().bits(dtype, count)


class SeededRandomness(_Keystream):
    """Repeatable bits for tests and for reproducing a study. NOT PRIVATE.

    An observer who knows or guesses the seed can undo the randomization; a release from this source
    is marked in its record. An object belongs to the process and thread that made it and cannot be
    copied: elsewhere its bits would be used twice.

    ``stream``: name of one of many streams of bits; no two names share any.
    """

    def __init__(self, seed: int, stream: str = "") -> None:
        text = f"deniable test keystream {int(seed)}" + (f" {stream}" if stream else "")
        digest = hashlib.sha512(text.encode()).digest()
        super().__init__(digest[:32], digest[32:48])
        self._owner = (_forks, threading.get_ident())

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a copy of a seeded keystream would repeat it; make one from another seed")

    def bits(self, dtype: Unsigned, count: int) -> NDArray[Any]:
        if self._owner != (_forks, threading.get_ident()):
            raise RuntimeError(
                "a seeded keystream belongs to the process and thread that made it; make another"
            )
        return super().bits(dtype, count)


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the narrowest unsigned type that holds ``largest``."""
    return np.min_scalar_type(largest)


class ExactCategorical:
    """Draws from a distribution given by integer weights, with exact probabilities.

    Outcome j has probability ``weights[j] / sum(weights)``; weights may have any width.

    ``weights``: non-negative integers, at least one positive; shape (n,).
    """

    def __init__(self, weights: Sequence[int], *, prefix_bits: int = 16) -> None:
        if not weights or min(weights) < 0 or max(weights) == 0:
            raise ValueError("weights must be non-negative integers, at least one of them positive")
        if prefix_bits not in (8, 16):
            raise ValueError("prefix_bits must be 8 or 16")
        self.n_outcomes = len(weights)
        # Outcome j is drawn when c_j <= U·total < c_{j+1}; the inner boundaries c_1 … c_{n-1}
        # separate the n outcomes.
        cumulative = list(accumulate(weights))
        self._total = cumulative.pop()
        self._boundaries = cumulative
        self._dtype = smallest_unsigned(self.n_outcomes)
        self._floor64 = np.array([(c << 64) // self._total for c in cumulative], dtype=object)
        # A boundary at 1.0 (before trailing outcomes of weight zero) exceeds every 64-bit value.
        self._reachable = sum(1 for c in cumulative if c < self._total)
        self._floor64 = self._floor64[: self._reachable].astype(np.uint64)
        self._inexact = {
            (c << 64) // self._total
            for c in cumulative[: self._reachable]
            if (c << 64) % self._total
        }
        self._prefix_bits = prefix_bits
        self._table: NDArray[Any] | None = None
        self._guide: NDArray[np.int32] | None = None
        if self.n_outcomes <= _DIRECT_OUTCOMES:
            self._table = self._prefix_table(prefix_bits)
        else:
            self._guide_bits = min(_GUIDE_BITS, self.n_outcomes.bit_length() + 1)
            self._guide = np.searchsorted(self._floor64, self._guided()).astype(np.int32)

    def _prefix_table(self, bits: int) -> NDArray[Any]:
        # For prefix t, U ∈ [t, t+1)/2^bits. With b_j = c_j·2^bits/total, the number of boundaries
        # at or below U is at least #{b_j <= t} and at most #{b_j < t+1}. If both are equal the
        # outcome is known; otherwise the table holds n_outcomes, "undecided".
        scaled = [c << bits for c in self._boundaries]
        floor = np.array([s // self._total for s in scaled], dtype=np.int64)
        ceiling = np.array([-(-s // self._total) for s in scaled], dtype=np.int64)
        prefixes = np.arange(1 << bits)
        least = np.searchsorted(ceiling, prefixes, side="right")
        most = np.searchsorted(floor, prefixes, side="right")
        return np.where(least == most, least, self.n_outcomes).astype(self._dtype)

    def _guided(self) -> NDArray[np.uint64]:
        """Return the least word with each prefix in the guide."""
        prefixes = np.arange(1 << self._guide_bits, dtype=np.uint64)
        return prefixes << np.uint64(64 - self._guide_bits)

    def draw(
        self, count: int, source: BitSource, quarter: NDArray[np.uint8] | None = None
    ) -> NDArray[Any]:
        """Return ``count`` independent outcomes, shape (count,), in the narrowest unsigned type.

        ``quarter``: for draws from four distributions, the quarter of [0, 1) that contains each U,
        0 to 3, shape (count,).
        """
        if self._table is None:
            value = source.bits(np.uint64, count)
            return self._decide(value if quarter is None else _within(value, quarter), source)
        if self.n_outcomes == 1:
            return np.zeros(count, dtype=self._dtype)
        if count > _PIECE:
            drawn = []
            for start in range(0, count, _PIECE):
                within = None if quarter is None else quarter[start : start + _PIECE]
                drawn.append(self.draw(min(_PIECE, count - start), source, within))
            return np.concatenate(drawn)
        prefix = source.bits(np.uint16 if self._prefix_bits == 16 else np.uint8, count)
        if quarter is not None:
            prefix = _within(prefix, quarter)
        outcome = self._table.take(prefix, mode="clip")
        undecided = np.flatnonzero(outcome == self.n_outcomes)
        if undecided.size:
            shift = np.uint64(64 - self._prefix_bits)
            value = prefix[undecided].astype(np.uint64) << shift
            value |= source.bits(np.uint64, undecided.size) >> np.uint64(self._prefix_bits)
            outcome[undecided] = self._decide(value, source)
        return outcome

    def _decide(self, value: NDArray[np.uint64], source: BitSource) -> NDArray[Any]:
        # value holds the first 64 bits of U. A boundary with floor(b_j) < value is below U and one
        # with floor(b_j) > value above; equality decides only if b_j is an integer.
        outcome = self._below(value)
        touching = (
            np.flatnonzero((outcome > 0) & (self._floor64.take(outcome - 1, mode="clip") == value))
            if self._reachable
            else np.empty(0, dtype=np.intp)
        )
        result = outcome.astype(self._dtype)
        for row in touching:
            if int(value[row]) in self._inexact:
                result[row] = self._extend(int(value[row]), source)
        return result

    def _below(self, value: NDArray[np.uint64]) -> NDArray[Any]:
        """Return how many of the boundaries' first 64 bits are at most each value, shape (n,).

        From the guide it takes mostly no step or one; a search from the beginning is ten times
        slower. If steps do not settle it, also past the last boundary, it is searched for.
        """
        if self._guide is None or not self._reachable:
            return np.searchsorted(self._floor64, value, side="right")
        place = self._guide.take(value >> np.uint64(64 - self._guide_bits))
        rows = np.flatnonzero(self._floor64.take(place, mode="clip") <= value)
        for _ in range(_STEPS):
            place[rows] += 1
            rows = rows[self._floor64.take(place[rows], mode="clip") <= value[rows]]
        place[rows] = np.searchsorted(self._floor64, value[rows], side="right")
        return place

    def _extend(self, value: int, source: BitSource) -> int:
        bits = 64
        while True:
            value = (value << 64) | int(source.bits(np.uint64, 1)[0])
            bits += 64
            low = value * self._total
            # U·total ∈ [low, low + total) / 2^bits
            least = sum(1 for c in self._boundaries if c << bits <= low)
            most = sum(1 for c in self._boundaries if c << bits < low + self._total)
            if least == most:
                return least

    def draws_by(self, weights: Sequence[int]) -> bool:
        """Return whether every look-up table gives the outcomes these probabilities."""
        edges, total = [0, *accumulate(weights)], sum(weights)
        stored = [0, *self._boundaries, self._total]
        if len(edges) != len(stored) or any(
            c * total != edge * self._total for c, edge in zip(stored, edges, strict=True)
        ):
            return False
        below_one = [c for c in edges[1:-1] if c < total]
        exact = [divmod(c << 64, total) for c in below_one]
        if self._floor64.tolist() != [floor for floor, _ in exact]:
            return False
        if self._inexact != {floor for floor, rest in exact if rest}:
            return False
        if self._guide is not None:
            # This many boundaries, and no more, are below every word with the prefix.
            around = np.pad(self._floor64, 1)
            below, above = around[self._guide], around[self._guide + 1]
            none, all_of_them = self._guide == 0, self._guide == self._reachable
            words = self._guided()
            return bool(np.all(none | (below < words)) and np.all(all_of_them | (above >= words)))
        assert self._table is not None
        # Outcome j is certain after a prefix t if all of [t, t + 1)/2^bits lies within its edges.
        expected = np.full(1 << self._prefix_bits, self.n_outcomes)
        for j, (low, high) in enumerate(pairwise(edges)):
            first = -(-(low << self._prefix_bits) // total)
            expected[first : max(first, (high << self._prefix_bits) // total)] = j
        return bool(np.array_equal(self._table, expected))

    def probability(self, outcome: int) -> Fraction:
        """Return the exact probability of one outcome."""
        edges = [0, *self._boundaries, self._total]
        return Fraction(edges[outcome + 1] - edges[outcome], self._total)


def uniform_below(limit: int, count: int, source: BitSource) -> NDArray[np.uint16]:
    """Return ``count`` independent uniform integers from 0 to ``limit`` − 1, shape (count,).

    Equal to the draws of :class:`ExactCategorical` with equal weights from the same bits, without a
    table: the whole part of U times the limit.
    """
    # With t the first 16 bits, U·limit lies in [t·limit, (t + 1)·limit)/2^16. Its whole part is
    # known unless the next multiple of 2^16 is within reach.
    if limit == 1:
        return np.zeros(count, dtype=np.uint16)
    scaled = source.bits(np.uint16, count) * np.uint32(limit)
    low_half = scaled.astype(np.uint16)
    scaled >>= np.uint32(16)
    drawn = scaled.astype(np.uint16)
    undecided = np.flatnonzero(low_half > (1 << 16) - limit)
    if len(undecided):
        # 48 further bits; their product carries if the sum wraps.
        more = (source.bits(np.uint64, len(undecided)) >> np.uint64(16)) * np.uint64(limit)
        low = low_half[undecided].astype(np.uint64) << np.uint64(48)
        total = low + more
        drawn[undecided] += total < low
        for place in np.flatnonzero(total > np.uint64((1 << 64) - limit)):
            drawn[undecided[place]] += _carries(int(total[place]), limit, source)
    return drawn


def happens(weights: NDArray[np.int64], total: int, source: BitSource) -> NDArray[np.bool_]:
    """Return independent events with probabilities ``weights / total``, shape (n,).

    ``weights``: integers from 0 to ``total``, shape (n,); ``total`` below 2⁴⁸.
    """
    drawn = np.empty(len(weights), dtype=np.bool_)
    for start in range(0, len(weights), _PIECE):
        piece = weights[start : start + _PIECE]
        # The event is U·total < weight, so the whole part of U·total decides. With t the first 64
        # bits, U·total lies in [t·total, (t + 1)·total)/2^64; with t = t₁·2^32 + t₀ and
        # total = m₁·2^32 + m₀ no product below has more than 64 bits.
        first = source.bits(np.uint64, len(piece))
        half, mask = np.uint64(32), np.uint64((1 << 32) - 1)
        high, low = first >> half, first & mask
        large, small = np.uint64(total >> 32), np.uint64(total & ((1 << 32) - 1))
        middle = high * small + (low * small >> half)
        carried = (middle & mask) + low * large
        whole = high * large + (middle >> half) + (carried >> half)
        rest = first * np.uint64(total)  # modulo 2^64
        for place in np.flatnonzero(rest > np.uint64((1 << 64) - total)):
            whole[place] += np.uint64(_carries(int(rest[place]), total, source))
        drawn[start : start + _PIECE] = whole < piece.astype(np.uint64)
    return drawn


def _carries(low: int, limit: int, source: BitSource) -> int:
    """Return 1 if further bits bring a fraction with these first 64 bits to 1 or more, else 0."""
    bits = 64
    while low + limit > 1 << bits:
        low, bits = (low << 64) + limit * int(source.bits(np.uint64, 1)[0]), bits + 64
        if low >= 1 << bits:
            return 1
    return 0


def _within(value: NDArray[Any], quarter: NDArray[np.uint8]) -> NDArray[Any]:
    """Return the first bits of numbers in given quarters of [0, 1), the rest as drawn; shape
    (n,)."""
    kind = value.dtype.type
    first = quarter.astype(kind) << kind(8 * value.itemsize - 2)
    return np.asarray(value >> kind(2) | first)


def permutation(count: int, source: BitSource) -> NDArray[np.intp]:
    """Return a uniformly random order of ``range(count)``, shape (count,).

    Sorting by independent uniform keys gives every order the same probability if all keys differ,
    so keys are drawn again until they do.
    """
    while True:
        keys = source.bits(np.uint64, count)
        order = np.argsort(keys, kind="stable")
        if count < 2 or not np.any(np.diff(keys[order]) == 0):
            return order
