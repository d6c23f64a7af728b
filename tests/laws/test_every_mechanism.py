"""Mechanisms of several blocks against brute force, in schema order and out of it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws import Identity, MatrixChannel, PatternTable, ProductLaw, SingleChangeMixture
from deniable.mechanism import privacy
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema
from laws import brute_force as oracle
from laws import strategies


def anonymous(sizes: tuple[int, ...], kept: tuple[int, ...] = ()) -> Schema:
    schema = Schema.anonymous(sizes)
    return Schema(schema.attributes, keep=tuple(schema.names[i] for i in kept))


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    """Attributes dealt to blocks in a random order, one of them perhaps kept."""
    sizes = draw(strategies.sizes())
    k = len(sizes)
    kept = draw(st.sampled_from([(), (), *((i,) for i in range(k))])) if k > 1 else ()
    order = draw(st.permutations([i for i in range(k) if i not in kept]))
    blocks = [Block(kept, Identity(tuple(sizes[i] for i in kept)))] if kept else []
    while order:
        length = draw(st.integers(1, len(order)))
        chosen, order = tuple(order[:length]), order[length:]
        n = tuple(sizes[i] for i in chosen)
        kinds = [
            strategies.product_laws(n),
            strategies.pattern_tables(n),
            strategies.single_change_mixtures(n),
        ]
        if len(n) == 1 and n[0] <= 4:
            kinds.append(strategies.matrix_channels(n[0]))
        blocks.append(Block(chosen, draw(st.one_of(kinds))))
    return Mechanism(anonymous(sizes, kept), tuple(draw(st.permutations(blocks))))


FIXED = Mechanism(
    anonymous((3, 2, 2, 3), kept=(2,)),
    (
        Block((3, 1), PatternTable((3, 2), 8, (200, 30, 20, 6))),
        Block((2,), Identity((2,))),
        Block((0,), MatrixChannel((3,), 4, ((8, 2, 1), (4, 8, 1), (2, 4, 4), (2, 2, 10)))),
    ),
)


def rounded_up_from_parts(epsilon: float, ratio: Fraction | None, n_blocks: int) -> bool:
    """ε of several blocks is a sum of rounded-up levels: one more unit in the last place each."""
    if ratio is None or ratio == 1:
        return oracle.is_rounded_up(epsilon, ratio)
    true = oracle.true_logarithm(ratio)
    return float(true) * (1 - 1e-15) <= epsilon <= float(true) * (1 + 3e-16 * (n_blocks + 1)) and (
        epsilon >= true
    )


def check_mechanism(mechanism: Mechanism) -> None:
    channel = oracle.channel_of_mechanism(mechanism)
    schema = mechanism.schema
    kept = [schema.position(name) for name in schema.keep]
    n_blocks = len(mechanism.blocks)
    assert all(sum(row.values()) == 1 for row in channel.values())
    ratios = oracle.scaled(channel)
    whole = oracle.record_ratio(ratios, kept=kept)
    assert rounded_up_from_parts(mechanism.epsilon, whole, n_blocks)
    for chosen in oracle.subsets(len(schema.names)):
        expected = oracle.record_ratio(ratios, chosen, kept=kept)
        for order in (chosen, chosen[::-1]):
            level = mechanism.subset_epsilon([schema.names[i] for i in order])
            assert rounded_up_from_parts(level, expected, n_blocks)
    for i in range(len(schema.names)):
        alone = oracle.record_ratio(ratios, (i,))
        assert oracle.is_rounded_up(mechanism.attribute_epsilon[i], alone)
        rest = oracle.given_rest_ratio(ratios, i)
        assert oracle.is_rounded_up(mechanism.epsilon_given_rest[i], rest)
        outputs = {y[i] for row in channel.values() for y in row}
        assert mechanism.n_outputs[i] == len(outputs)
        if len(outputs) == schema.n_categories[i]:
            keep = float(oracle.keep_probability(channel, i))
            assert mechanism.keep_probability[i] == pytest.approx(keep, rel=1e-14)
        else:
            assert np.isnan(mechanism.keep_probability[i])


@given(mechanisms())
def test_levels_of_random_mechanisms_equal_brute_force_at_every_position(
    mechanism: Mechanism,
) -> None:
    check_mechanism(mechanism)


def test_levels_of_a_mechanism_out_of_schema_order_equal_brute_force() -> None:
    check_mechanism(FIXED)
    assert FIXED.unprotected == ("a3",)


def test_all_families_in_one_mechanism_equal_brute_force() -> None:
    check_mechanism(
        Mechanism(
            anonymous((2, 3, 2, 2)),
            (
                Block((2,), ProductLaw((2,), 4, (13,))),
                Block((3, 1), SingleChangeMixture((2, 3), 6, 20, 30, (4, 10))),
                Block((0,), PatternTable((2,), 4, (12, 4))),
            ),
        )
    )


@given(mechanisms())
def test_the_tightest_claim_of_a_mechanism_can_be_made_and_nothing_below_it(
    mechanism: Mechanism,
) -> None:
    claim = mechanism.promise()
    assert Mechanism(mechanism.schema, mechanism.blocks, claim).promise() == claim
    assert claim.epsilon == privacy.compose(
        privacy.record_epsilon(b.law) for b in mechanism.blocks if not isinstance(b.law, Identity)
    )
