"""Samplers bit by bit: which bits lead to which output."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws import (
    Identity,
    InvariantChannel,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    SingleChangeMixture,
)
from deniable.laws.product import _MANY
from deniable.randomness import ExactCategorical, SeededRandomness
from laws import strategies
from unit.scripted import ScriptedBits, outcome_of_interval

ALL_ONES = (1 << 64) - 1


def column(law: MatrixChannel, x: int) -> list[int]:
    return [row[x] for row in law.weights]


@given(
    strategies.sizes(most=1).flatmap(lambda n: strategies.matrix_channels(n[0])),
    st.data(),
)
def test_a_matrix_sampler_lands_where_u_lies_for_every_category(
    law: MatrixChannel, data: st.DataObject
) -> None:
    x = data.draw(st.integers(0, law.n_categories[0] - 1))
    weights = column(law, x)
    below = sum(weights[: data.draw(st.integers(0, len(weights)))])
    at_bits = data.draw(st.sampled_from([64, 128, 192]))
    offset = data.draw(st.integers(-2, 2))
    u = (((below << at_bits) >> law.bits) + offset) % (1 << at_bits) << (256 - at_bits)
    script = []
    expected = None
    for known in (64, 128, 192, 256):
        script.append((np.uint64, [(u >> (256 - known)) & ALL_ONES]))
        low = Fraction(u >> (256 - known), 1 << known)
        expected = outcome_of_interval(weights, low, low + Fraction(1, 1 << known))
        if expected is not None:
            break
    assert expected is not None  # at most 150 bits wide
    source = ScriptedBits(*script)
    (drawn,) = law.sampler().randomize([np.array([x], dtype=np.uint8)], source)
    assert drawn.tolist() == [expected]
    assert source.used_up


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8, 9])
def test_a_matrix_sampler_maps_equal_shares_of_the_first_byte_to_every_output(m: int) -> None:
    # Column x gives output y the weight (x + y) mod m + 1, then the rest to output 0.
    n, bits = 2, 8
    columns = []
    for x in range(n):
        weights = [(x * 5 + 3 * y) % 7 + 1 for y in range(m)]
        weights[x] += (1 << bits) - sum(weights)
        columns.append(weights)
    law = MatrixChannel((n,), bits, tuple(zip(*columns, strict=True)))
    for x in range(n):
        words = [first << 56 for first in range(256)]
        source = ScriptedBits((np.uint64, words))
        (drawn,) = law.sampler().randomize([np.full(256, x, dtype=np.uint8)], source)
        assert np.bincount(drawn, minlength=m).tolist() == columns[x]
        assert source.used_up


def test_impossible_outputs_of_a_matrix_channel_are_never_drawn_at_the_ends_of_u() -> None:
    law = MatrixChannel((2,), 2, ((0, 0), (2, 1), (0, 3), (2, 0), (0, 0)))
    for word in (0, 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, ALL_ONES):
        source = ScriptedBits((np.uint64, [word] * 2))
        drawn = law.sampler().randomize([np.array([0, 1], dtype=np.uint8)], source)[0]
        assert drawn[0] in (1, 3)
        assert drawn[1] in (1, 2)


def test_a_matrix_sampler_treats_rows_of_a_batch_apart() -> None:
    law = MatrixChannel((3,), 2, ((2, 1, 1), (1, 2, 1), (1, 1, 2)))
    codes = np.array([0, 1, 2, 2, 0], dtype=np.uint8)
    words = [1 << 62, 1 << 62, 1 << 62, 0, 3 << 62]
    (drawn,) = law.sampler().randomize([codes], ScriptedBits((np.uint64, words)))
    assert drawn.tolist() == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("n", [2, 3, 5, 256, 257])
def test_a_product_sampler_gives_every_shift_its_exact_share_of_the_prefixes(n: int) -> None:
    bits = 16
    keep = (1 << bits) - (n - 1) * 7
    law = ProductLaw((n,), bits, (keep,))
    (drawn,) = law.sampler().walk(1 << 16, ScriptedBits((np.uint16, range(1 << 16))))
    assert np.bincount(drawn).tolist() == [keep] + [7] * (n - 1)


def test_a_pattern_table_sampler_changes_exactly_the_attributes_of_the_pattern() -> None:
    sizes = (2, 4, 3)
    weights = tuple(range(1, 9))
    law = PatternTable(sizes, 8, (*weights[:-1], 256 - sum(weights[:-1])))
    prefixes = [p << 8 for p in range(256)]
    source = ScriptedBits(
        (np.uint16, prefixes),  # the pattern
        # two categories: the one other category needs no bits
        (np.uint16, [(100, 30000, 60000)[p % 3] for p in range(256)]),  # four: among three
        (np.uint16, [(p % 2) << 15 for p in range(256)]),  # three: among two
    )
    shifts = list(law.sampler().walk(256, source))
    assert source.used_up
    changed = np.array([shift != 0 for shift in shifts]).T
    counts = [int((changed == pattern).all(axis=1).sum()) for pattern in product((0, 1), repeat=3)]
    assert counts == list(law.weights)
    for shift, n in zip(shifts, sizes, strict=True):
        assert set(shift.tolist()) == set(range(n))


def test_a_single_change_sampler_draws_its_pieces_with_their_exact_weights() -> None:
    law = SingleChangeMixture((2, 3), 8, 100, 56, (60, 40))
    prefixes = [p << 8 for p in range(256)]
    # In the uniform piece both attributes shift by 1; else only the attribute of the piece.
    source = ScriptedBits(
        (np.uint16, prefixes),
        (np.uint16, [1 << 15] * 256),  # attribute 0, uniform of two: shift 1
        (np.uint16, [30000] * 256),  # attribute 1, uniform of three: shift 1
        (np.uint16, [1 << 15] * 256),  # attribute 1, among two others: the second, shift 2
    )
    shifts = [shift.tolist() for shift in law.sampler().walk(256, source)]
    assert source.used_up
    pairs = list(zip(*shifts, strict=True))
    assert [pairs.count(pair) for pair in ((1, 1), (0, 0), (1, 0), (0, 2))] == [100, 56, 60, 40]


def test_an_identity_hands_codes_through_without_bits() -> None:
    codes = [np.array([0, 2, 1]), np.array([299, 0, 5])]
    released = Identity((3, 300)).sampler().randomize(codes, ScriptedBits())
    assert [r.tolist() for r in released] == [[0, 2, 1], [299, 0, 5]]
    assert [r.dtype for r in released] == [np.uint8, np.uint16]


def test_thousands_of_attributes_share_small_tables() -> None:
    k = _MANY + 3
    law = ProductLaw.from_levels([3] * k, [1.0] * k)
    sampler = law.sampler()
    assert len({id(table) for table in sampler._tables}) == 1
    assert sampler._tables[0]._table.size == 256
    shifts = list(sampler.walk(50, SeededRandomness(1)))
    assert len(shifts) == k
    assert {int(s) for shift in shifts for s in np.unique(shift)} == {0, 1, 2}


INVARIANT = InvariantChannel(MatrixChannel((2,), 2, ((3, 1), (1, 3))), (30, 10), 0.5)
NEIGHBOURS: list[tuple[Law, Law]] = [
    (ProductLaw((2, 3), 4, (12, 9)), ProductLaw((2, 3), 4, (12, 10))),
    (PatternTable((2, 3), 4, (9, 3, 3, 1)), PatternTable((2, 3), 4, (9, 3, 2, 2))),
    (
        SingleChangeMixture((2, 3), 4, 5, 5, (3, 3)),
        SingleChangeMixture((2, 3), 4, 5, 5, (4, 2)),
    ),
    (MatrixChannel((2,), 2, ((3, 1), (1, 3))), MatrixChannel((2,), 2, ((2, 1), (2, 3)))),
    (INVARIANT, replace(INVARIANT, alpha=0.25)),
    (INVARIANT, replace(INVARIANT, counts=(31, 10))),
    (Identity((2, 3)), Identity((2,))),
]


@pytest.mark.parametrize(("law", "neighbour"), NEIGHBOURS)
def test_tables_are_told_from_those_of_a_neighbouring_law(law: Law, neighbour: Law) -> None:
    assert law.sampler().draws(law)
    assert not law.sampler().draws(neighbour)


@pytest.mark.parametrize("law", [law for law, _ in NEIGHBOURS[:5]])
def test_any_entry_of_a_table_that_changed_in_memory_is_noticed(law: Law) -> None:
    def tables(value: object) -> Iterator[object]:
        if isinstance(value, ExactCategorical):
            yield value
        elif isinstance(value, list | tuple):
            for item in value:
                yield from tables(item)
        elif isinstance(value, dict):
            yield from tables(list(value.values()))

    first = law.sampler()
    n_tables = sum(1 for value in vars(first).values() for _ in tables(value))
    for place in range(n_tables):
        sampler = law.sampler()
        table = [found for value in vars(sampler).values() for found in tables(value)][place]
        assert isinstance(table, ExactCategorical)
        assert table._table is not None
        table._table[len(table._table) // 3] ^= 1
        assert not sampler.draws(law)
    if isinstance(law, MatrixChannel):
        sampler = law.sampler()
        sampler._boundary[0] += np.uint64(1)
        assert not sampler.draws(law)
