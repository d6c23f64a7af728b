"""Every law's sampler against its exact law, at every position; and the defects this must see.

A planted defect is tested with the same function, on the same number of draws, as the sampler
itself. The chance that it goes unnoticed is bounded beforehand and taken from the budget as well.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.laws import (
    Identity,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
)
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema
from laws import brute_force as oracle
from marked import slow_after
from statistical.budget import BUDGET, SHARE
from statistical.channels import (
    CORRELATED,
    EXCHANGED,
    Columns,
    Defect,
    Randomize,
    as_drawn,
    attribute_by_attribute,
    count_cells,
    count_patterns,
    count_shifts,
    exact_channel,
    single_attribute_defects,
)
from statistical.counting import Expectation, expectation


def one_block(law: Law) -> Mechanism:
    order = tuple(range(len(law.n_categories)))
    return Mechanism(Schema.anonymous(law.n_categories), (Block(order, law),))


def blocks_out_of_order() -> Mechanism:
    schema = Schema.anonymous((3, 2, 2, 3))
    schema = Schema(schema.attributes, keep=("a2",))
    return Mechanism(
        schema,
        (
            Block((3, 0), PatternTable((3, 3), 8, (120, 70, 40, 26))),
            Block((1,), Identity((2,))),
            Block((2,), MatrixChannel((2,), 4, ((11, 3), (5, 13)))),
        ),
    )


def dithered_vote(n_categories: tuple[int, ...]) -> GatedSum:
    """A vote with dither and retention, all attributes of some weight."""
    k = len(n_categories)
    numbers = np.arange(k)
    return GatedSum(
        n_categories,
        5 + numbers % 4,
        np.where(numbers % 3 == 1, 0.4, 0.0),
        "vote",
        2.4 * k,
        1.0,
        3.0,
        np.where(numbers % 2 == 0, 0.85, 1.0),
    )


def ramp(n_categories: tuple[int, ...]) -> GatedSum:
    """A ramp with dither, clipped at both ends."""
    k = len(n_categories)
    numbers = np.arange(k)
    dither = np.where(numbers % 2 == 0, 0.7, 0.0)
    shape = (1.0 * k, 2.5 * k, 2.5)
    return GatedSum(n_categories, 4 + numbers % 3, dither, "ramp", *shape, np.ones(k))


def blend(n_categories: tuple[int, ...]) -> VoteBlend:
    """Two soft votes of different weights, and retention."""
    k = len(n_categories)
    numbers, none = np.arange(k), np.ones(k)
    first = GatedSum(n_categories, 3 + numbers % 4, 0.3 * none, "vote", 1.9 * k, 2.0, 3.0, none)
    second = replace(first, weights=2 + numbers[::-1] % 3, start=1.2 * k, width=1.0)
    retention = np.where(numbers % 3 == 2, 0.8, 1.0)
    return VoteBlend((first, second), np.array([1.0, 0.6]), retention)


MECHANISMS = {
    "blended votes": one_block(blend((3, 2, 3))),
    "dithered vote": one_block(dithered_vote((3, 2, 3))),
    "ramp": one_block(ramp((3, 2, 3))),
    "product": one_block(ProductLaw.from_levels((3, 2, 3), (1.0, 0.7, 1.0))),
    "product of one binary attribute": one_block(ProductLaw((2,), 5, (25,))),
    "product of one attribute": one_block(ProductLaw.from_levels((5,), (2.0,))),
    "pattern table": one_block(PatternTable((3, 2, 3), 8, (90, 40, 30, 20, 25, 11, 10, 30))),
    "pattern table of one attribute": one_block(PatternTable((4,), 5, (20, 12))),
    "scores": one_block(ScoreTable((3, 2, 3), (1, 2, 1), (9, 5, 4, 2, 1))),
    "single-change mixture": one_block(SingleChangeMixture((3, 2, 3), 8, 90, 80, (20, 36, 30))),
    "mixture of one attribute": one_block(SingleChangeMixture((4,), 8, 90, 80, (86,))),
    "square matrix": one_block(MatrixChannel((3,), 4, ((9, 2, 1), (3, 8, 4), (4, 6, 11)))),
    "blocks out of order": blocks_out_of_order(),
}
TALL = {
    "tall matrix": one_block(
        MatrixChannel((3,), 4, ((7, 2, 1), (2, 7, 0), (1, 2, 9), (5, 1, 5), (1, 4, 1)))
    ),
    "tall matrix of 40 categories": one_block(
        MatrixChannel.from_probabilities(
            np.full((64, 40), 0.3 / 64) + np.eye(64, 40) * 0.5 + np.eye(64, 40, -24) * 0.2
        )
    ),
}
REPEATS = 20_000


@cache
def channel(name: str) -> NDArray[np.float64]:
    return exact_channel((MECHANISMS | TALL)[name])


@pytest.mark.parametrize("name", MECHANISMS | TALL)
@pytest.mark.parametrize(
    ("way", "repeats"), [(as_drawn, REPEATS), (attribute_by_attribute, REPEATS // 10)]
)
def test_every_output_of_every_input_is_as_likely_as_the_law_says(
    way: Callable[[Mechanism], Randomize], repeats: int, name: str
) -> None:
    mechanism = (MECHANISMS | TALL)[name]
    sizes, n_outputs = mechanism.schema.n_categories, mechanism.n_outputs
    share = BUDGET.spend(f"cells of {name}, {way.__name__}")
    counts = count_cells(way(mechanism), sizes, n_outputs, repeats)
    assert expectation(repeats, channel(name), share).alarms(counts).size == 0


@cache
def planted(name: str) -> list[Defect]:
    """Every defect, wherever it is one: not where it leaves the channel as it is."""
    sizes = MECHANISMS[name].schema.n_categories
    defects = single_attribute_defects(len(sizes))
    if len(sizes) > 2:
        defects += [CORRELATED, EXCHANGED]
    exact = channel(name)
    return [d for d in defects if np.abs(d.channel(exact, sizes) - exact).max() > 1e-12]


@pytest.mark.parametrize("name", slow_after(4, MECHANISMS))
def test_every_planted_defect_is_seen_in_the_cells(name: str) -> None:
    # In one draw every defect is planted: chances of missing them add up all the same.
    mechanism = MECHANISMS[name]
    sizes, n_outputs = mechanism.schema.n_categories, mechanism.n_outputs
    expected = expectation(REPEATS, channel(name), SHARE)
    released: list[Columns] = []

    def drawn_once(columns: Columns) -> Columns:
        if not released:
            released.append(as_drawn(mechanism)(columns))
        return released[0]

    for defect in planted(name):
        miss = expected.miss_probability(defect.channel(channel(name), sizes))
        assert miss <= SHARE
        BUDGET.spend(f"{defect.name} in cells of {name}", max(miss, 1e-300))
        counts = count_cells(defect.planted_in(drawn_once, sizes), sizes, n_outputs, REPEATS)
        assert expected.alarms(counts).size > 0, defect.name


@pytest.mark.parametrize(
    "name",
    [
        *("product", "pattern table", "single-change mixture"),
        *("dithered vote", "blended votes"),
    ],
)
def test_every_kind_of_defect_was_planted_in_every_kind_of_law(name: str) -> None:
    seen = {defect.name for defect in planted(name)}
    assert {kind.split(",")[0] for kind in seen} >= {
        "the lie may be the truth",
        "the shift is off by one",
        "the last category is never chosen",
        "one category is never changed",
        "the attribute is left untouched",
        "two attributes move together",
    }
    if name == "pattern table":
        assert {f"the attribute is left untouched, attribute {i}" for i in range(3)} <= seen


# --- attribute by attribute ----------------------------------------------------------------------


def shift_probabilities(law: Law) -> list[NDArray[np.float64]]:
    """Per attribute the probability of moving by 0 … a−1."""
    return [
        np.array([keep] + [(1 - keep) / (n - 1)] * (n - 1))
        for n, keep in zip(law.n_categories, law.keep_probabilities(), strict=True)
    ]


def check_attributes(randomize: Randomize, law: Law, count: int, false_alarm: float) -> list[int]:
    """The attributes of which some shift is too frequent or too rare."""
    counts = count_shifts(randomize, law.n_categories, count)
    expected = expectation(count, np.concatenate(shift_probabilities(law)), false_alarm)
    attribute = np.repeat(np.arange(len(counts)), law.n_categories)
    return np.unique(attribute[expected.alarms(np.concatenate(counts))]).tolist()


def miss_at(law: Law, i: int, count: int, defective: NDArray[np.float64]) -> float:
    """A bound of the chance that :func:`check_attributes` misses a defect of attribute i; its share
    of the false alarms is that of its cells."""
    exact = shift_probabilities(law)[i]
    share = SHARE * len(exact) / sum(law.n_categories)
    return expectation(count, exact, share).miss_probability(defective)


MANY = 600
WIDE = {
    "awkward numbers of categories": ProductLaw.from_levels(
        (2, 127, 128, 129, 255, 256, 257, 5000), (0.5, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 8.0)
    ),
    "a table over awkward numbers": PatternTable(
        (256, 2, 257, 128), 8, (100, 20, 10, 17, 5, 6, 8, 9, 30, 4, 3, 12, 7, 8, 9, 8)
    ),
    "a mixture over awkward numbers": SingleChangeMixture(
        (256, 2, 257, 128), 8, 60, 100, (20, 30, 40, 6)
    ),
    "scores of kinds": ScoreTable.from_densities(
        [2 + i % 5 for i in range(60)],
        [1 + i % 4 for i in range(60)],
        np.exp(-np.minimum(np.arange(151) / 20, 5)),
    ),
    "a vote of hundreds": dithered_vote(tuple(2 + i % 5 for i in range(MANY))),
    "hundreds of attributes": ProductLaw.from_levels(
        [2 + i % 4 for i in range(MANY)], [0.3 + i % 5 for i in range(MANY)]
    ),
}
WIDE_COUNT = {"hundreds of attributes": 20_000, "a vote of hundreds": 20_000}


@pytest.mark.parametrize("name", slow_after(1, WIDE))
def test_every_attribute_moves_by_every_shift_as_often_as_it_should(name: str) -> None:
    law = WIDE[name]
    share = BUDGET.spend(f"shifts of {name}")
    assert (
        check_attributes(as_drawn(one_block(law)), law, WIDE_COUNT.get(name, 500_000), share) == []
    )


@pytest.mark.parametrize("position", slow_after(1, [0, MANY - 1]))
def test_one_untouched_attribute_among_hundreds_is_seen(position: int) -> None:
    law = WIDE["hundreds of attributes"]
    count = WIDE_COUNT["hundreds of attributes"]
    (defect,) = [
        d
        for d in single_attribute_defects(MANY)
        if d.name == f"the attribute is left untouched, attribute {position}"
    ]
    miss = miss_at(law, position, count, np.eye(law.n_categories[position])[0])
    assert miss <= SHARE
    BUDGET.spend(f"untouched attribute {position} among hundreds", max(miss, 1e-300))
    wrong = defect.planted_in(as_drawn(one_block(law)), law.n_categories)
    assert check_attributes(wrong, law, count, SHARE) == [position]


def nudged(law: Law, i: int) -> Law:
    """The same family with attribute i kept 1 % more often than it should be."""
    n = law.n_categories
    if isinstance(law, ProductLaw):
        weights = list(law.keep_weights)
        weights[i] += weights[i] // 100
        return ProductLaw(n, law.bits, tuple(weights))
    if isinstance(law, PatternTable):
        table = np.array(law.weights, dtype=object).reshape((2,) * len(n))
        kept, changed = np.moveaxis(table, i, 0)
        moved = kept // 100
        kept += moved
        changed -= moved
        return PatternTable(n, law.bits, tuple(int(w) for w in table.ravel()))
    assert isinstance(law, SingleChangeMixture)
    keep = float(law.keep_probabilities()[i])
    moved = int(keep / 100 * (1 << law.bits))
    changes = [c - moved * (j == i) for j, c in enumerate(law.change_weights)]
    return SingleChangeMixture(
        n, law.bits, law.uniform_weight, law.unchanged_weight + moved, tuple(changes)
    )


TABLE_WEIGHTS = (4000, 1500, 1400, 700, 1100, 500, 600)
NUDGED: dict[str, Law] = {
    "product": ProductLaw.from_levels((3, 2, 4), (1.0, 0.5, 2.0)),
    "pattern table": PatternTable((3, 2, 4), 14, (*TABLE_WEIGHTS, (1 << 14) - sum(TABLE_WEIGHTS))),
    "mixture": SingleChangeMixture((3, 2, 4), 14, 6384, 4000, (2000, 2000, 2000)),
}


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("name", slow_after(1, NUDGED))
def test_a_keep_probability_one_per_cent_off_is_seen(name: str, position: int) -> None:
    law, count = NUDGED[name], 4_000_000
    wrong = nudged(law, position)
    keep, wrong_keep = law.keep_probabilities()[position], wrong.keep_probabilities()[position]
    assert wrong_keep == pytest.approx(1.01 * keep, rel=1e-3)
    miss = miss_at(law, position, count, shift_probabilities(wrong)[position])
    assert miss <= SHARE
    BUDGET.spend(f"keep probability of {name} off at {position}", max(miss, 1e-300))
    assert position in check_attributes(as_drawn(one_block(wrong)), law, count, SHARE)


@pytest.mark.parametrize("name", slow_after(1, NUDGED))
def test_the_same_check_accepts_the_right_keep_probabilities(name: str) -> None:
    share = BUDGET.spend(f"keep probabilities of {name}")
    law = NUDGED[name]
    assert check_attributes(as_drawn(one_block(law)), law, 4_000_000, share) == []


# --- pattern by pattern --------------------------------------------------------------------------


def patterned(k: int, bits: int) -> PatternTable:
    """A table with weights of many sizes."""
    weights = [1 + (7919 * s * s) % 1009 for s in range(1 << k)]
    weights[0] += (1 << bits) - sum(weights)
    return PatternTable((2, 3, 5, 2) * (k // 4) + (3,) * (k % 4), bits, tuple(weights))


PATTERNS: dict[str, Law] = {
    "product of eight": ProductLaw.from_levels((3, 2, 5, 2, 4, 3, 2, 3), (1.0,) * 8),
    "table of eight": patterned(8, 18),
    "table of thirteen, by its guide": patterned(13, 24),
    "dithered vote of eight": dithered_vote((3, 2, 5, 2, 4, 3, 2, 3)),
    "ramp of eight": ramp((3, 2, 5, 2, 4, 3, 2, 3)),
    "blended votes of eight": blend((3, 2, 5, 2, 4, 3, 2, 3)),
    "mixture of eight": SingleChangeMixture(
        (3, 2, 5, 2, 4, 3, 2, 3), 10, 400, 300, (20, 30, 40, 50, 60, 70, 24, 30)
    ),
}


def check_patterns(randomize: Randomize, law: Law, expected: Expectation) -> NDArray[np.intp]:
    return expected.alarms(count_patterns(randomize, law.n_categories, int(expected.draws)))


@cache
def pattern_law(name: str) -> NDArray[np.float64]:
    return np.array([float(q) for q in oracle.pattern_probabilities(PATTERNS[name]).values()])


@pytest.mark.parametrize("name", slow_after(2, PATTERNS))
def test_every_pattern_of_changes_is_as_frequent_as_the_law_says(name: str) -> None:
    law = PATTERNS[name]
    share = BUDGET.spend(f"patterns of {name}")
    expected = expectation(1_000_000, pattern_law(name), share)
    assert check_patterns(as_drawn(one_block(law)), law, expected).size == 0


@pytest.mark.parametrize("name", ["product of eight", "table of eight", "mixture of eight"])
def test_attributes_that_move_together_are_seen_in_the_patterns(name: str) -> None:
    law = PATTERNS[name]
    exact = pattern_law(name).reshape((2,) * 8)
    # The last attribute changes when the first one does, whatever its own draw was.
    wrong = np.zeros_like(exact)
    together = exact.sum(axis=-1)
    wrong[0, ..., 0], wrong[1, ..., 1] = together[0], together[1]
    expected = expectation(1_000_000, pattern_law(name), SHARE)
    miss = expected.miss_probability(wrong.ravel())
    assert miss <= SHARE
    BUDGET.spend(f"moving together in {name}", max(miss, 1e-300))
    defective = CORRELATED.planted_in(as_drawn(one_block(law)), law.n_categories)
    assert law.n_categories[0] == law.n_categories[-1]
    assert check_patterns(defective, law, expected).size > 0


@pytest.mark.slow
def test_thousands_of_attributes_change_alone_as_often_as_the_mixture_says() -> None:
    k, count = 4200, 4000
    changes = [(1 << 40) + i * (1 << 28) for i in range(k)]
    bits = 54
    uniform = 1 << 52
    unchanged = (1 << bits) - uniform - sum(changes)
    law = SingleChangeMixture((3,) * k, bits, uniform, unchanged, tuple(changes))
    share = BUDGET.spend("a mixture of thousands")
    true = [np.full(count, i % 3) for i in range(k)]
    released = as_drawn(one_block(law))(true)
    moved = np.array([r != t for t, r in zip(true, released, strict=True)])
    how_many = moved.sum(axis=0)
    alone = np.bincount(moved[:, how_many == 1].argmax(axis=0), minlength=k)
    counts = [int((how_many == 0).sum()), *alone.tolist(), int((how_many > 1).sum())]
    # That a uniform record has fewer than two changes has probability below 3^-4000.
    weights = [unchanged, *changes, uniform]
    expected = expectation(count, [w / (1 << bits) for w in weights], share)
    assert expected.alarms(counts).size == 0
