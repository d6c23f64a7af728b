"""Laws of votes: what they promise, against the exact law as drawn; and their records."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import law_from_plain
from deniable.laws.patterns import FloatArray
from deniable.laws.product import ProductLaw
from deniable.laws.votes import vote_law
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sums import BLOCK, UNIT, SumLaw
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism import privacy
from deniable.mechanism.mechanism import Block, Claim, Mechanism
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable.solvers.patterns import optimal
from marked import slow_after
from unit.laws.votes import whole_law as oracle
from unit.laws.votes.test_sampling import Drawn, drawn


def as_drawn(law: VoteLaw) -> Drawn:
    """Pr of every pattern with retention, exactly, from the samplers' tables."""
    out = drawn(law)
    for i, (a, kept) in enumerate(zip(law.n_categories, law.retention, strict=True)):
        keep, r = Fraction(float(kept)), Fraction(1, a)
        after: Drawn = {}
        for row, mass in out.items():
            for changed, share in ((0, r), (1, 1 - r)):
                to = (*row[:i], changed, *row[i + 1 :])
                after[to] = after.get(to, Fraction(0)) + (1 - keep) * share * mass
            after[row] = after.get(row, Fraction(0)) + keep * mass
        out = after
    return out


def log(ratio: Fraction) -> float:
    excess = ratio - 1
    return math.log1p(float(excess)) if abs(excess) < 1 else math.log(ratio)


LAWS = [oracle.random_sum(seed, 5) for seed in range(24)]
LAWS_AND_BLENDS: list[VoteLaw] = [*LAWS, *(oracle.random_blend(seed, 5) for seed in range(24))]


@pytest.mark.parametrize("law", LAWS_AND_BLENDS, ids=range(48))
def test_no_promise_is_below_the_exact_law_as_drawn_and_none_far_above(law: VoteLaw) -> None:
    k, a = law.n_attributes, law.n_categories
    found, promised = as_drawn(law), law.account
    each = {
        row: mass / math.prod(n - 1 for n, changed in zip(a, row, strict=True) if changed)
        for row, mass in found.items()
    }
    whole = log(max(each.values()) / min(each.values()))
    assert promised.epsilon >= whole * (1 - 1e-15)
    for i in range(k):
        keep = sum(mass for row, mass in found.items() if not row[i])
        exact = log(keep * (a[i] - 1) / (1 - keep))
        slack = 1e-15 * (1 + abs(exact))
        assert promised.attribute_epsilon[i] >= exact - slack
        assert promised.attribute_epsilon[i] <= exact + 1e-12
        assert promised.attribute_epsilon_floor[i] <= exact + slack
        assert promised.attribute_epsilon_floor[i] >= exact - 1e-12
        steps = [
            abs(log(each[row] / each[(*row[:i], 1, *row[i + 1 :])])) for row in each if not row[i]
        ]
        assert promised.epsilon_given_rest[i] >= max(steps) * (1 - 1e-15)
    for size in range(1, k + 1):
        for subset in itertools.combinations(range(k), size):
            seen: dict[tuple[int, ...], Fraction] = {}
            for row, mass in found.items():
                key = tuple(row[i] for i in subset)
                seen[key] = seen.get(key, Fraction(0)) + mass
            values = [
                mass
                / math.prod(a[i] - 1 for i, changed in zip(subset, key, strict=True) if changed)
                for key, mass in seen.items()
            ]
            exact = log(max(values) / min(values))
            bound = law.record_level(subset)
            assert bound >= exact * (1 - 1e-15)
            assert bound <= exact + 1e-11
    assert law.record_level(()) == 0.0


KINDS = [oracle.random_sum, oracle.random_blend]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", slow_after(4, range(15)))
def test_every_answer_equals_the_enumerated_law(kind: Callable[[int], VoteLaw], seed: int) -> None:
    law = kind(seed)
    q = oracle.pattern_law(law)
    k, a = law.n_attributes, law.n_categories
    table, moments = oracle.patterns(k), law.moments()
    np.testing.assert_allclose(moments.keep, q @ (1 - table), rtol=1e-11)
    np.testing.assert_allclose(moments.change, q @ table, rtol=1e-11)
    np.testing.assert_allclose(moments.gain, moments.keep - law.uniform_keep, atol=1e-13)
    levels = np.log(moments.keep * (law.counts - 1) / moments.change)
    np.testing.assert_allclose(moments.levels(law.counts), levels, atol=1e-12)
    assert moments.relative_error < 1e-11
    mu, f = oracle.uniform_law(a), oracle.density(law)
    assert moments.log_normalizer == pytest.approx(np.log(mu @ f), rel=1e-12, abs=1e-13)
    assert np.all(law.given_rest() >= oracle.given_rest(a, q) - 1e-11)
    assert np.log(f.max() / f.min()) <= law.ideal_epsilon + 1e-12
    pairs, _ = law.bounded_pair_attenuations()
    for size in range(1, k + 1):
        for subset in itertools.combinations(range(k), size):
            exact = oracle.subset_level(a, q, subset)
            assert law.subset_level(subset)[0] == pytest.approx(exact, abs=1e-12)
            found = law.eigenvalues(subset[::-1])
            for index in np.ndindex(found.shape):
                chosen = [i for i, inside in zip(subset[::-1], index, strict=True) if inside]
                exact = oracle.attenuation(a, q, chosen)
                assert found[index] == pytest.approx(exact, abs=1e-13)
            if size == 2:
                assert pairs[subset] == pytest.approx(found[1, 1], rel=1e-9, abs=1e-12)
                assert law.pair_attenuation(*subset) == pytest.approx(pairs[subset], abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", slow_after(4, range(10)))
def test_the_least_pair_ratio_equals_the_enumerated_law(
    kind: Callable[[int], VoteLaw], seed: int
) -> None:
    law = kind(seed)
    a, k, q = law.n_categories, law.n_attributes, oracle.pattern_law(law)
    single = [oracle.attenuation(a, q, (i,)) for i in range(k)]
    if np.min(np.abs(single)) < 1e-6:
        return
    ratios = [
        oracle.attenuation(a, q, (i, j)) / (single[i] * single[j])
        for i, j in itertools.combinations(range(k), 2)
    ]
    least = law.least_pair_ratio()
    assert least == pytest.approx(min(ratios, default=1.0), rel=1e-6, abs=1e-6)
    assert law.keeps_pair_floor(least - 1e-6)
    assert not law.keeps_pair_floor(least + 1e-6)


WIDE = GatedSum(
    (2, 3, 5, 4, 2),
    np.array([4001, 5003, 3999, 6007, 4507]),
    np.zeros(5),
    "ramp",
    6000.0,
    15_000.0,
    4.0,
    np.ones(5),
)


@pytest.mark.parametrize("law", [WIDE, oracle.random_blend(4, 5)])
def test_a_floor_counts_as_kept_only_if_no_rounding_could_have_lifted_a_pair_above_it(
    law: VoteLaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounded_up(_: SumLaw, rows: FloatArray, mass: FloatArray) -> FloatArray:
        """As far up as products added in any order, block by block, may end."""
        exact = np.array([math.fsum(row) for row in rows * mass])
        return exact + (BLOCK + len(mass) / BLOCK) * UNIT * (np.abs(rows) @ mass)

    monkeypatch.setattr(SumLaw, "_dot_rows", rounded_up)
    a, q = law.n_categories, oracle.pattern_law(law)
    single = [oracle.attenuation(a, q, (i,)) for i in range(law.n_attributes)]
    places = list(itertools.combinations(range(law.n_attributes), 2))
    exact = [oracle.attenuation(a, q, (i, j)) / (single[i] * single[j]) for i, j in places]
    floors = law.pair_ratio_floors
    assert all(floors[at] <= ratio for at, ratio in zip(places, exact, strict=True))
    assert law.keeps_pair_floor(min(exact) - 1e-8)
    assert not law.keeps_pair_floor(min(exact))


def test_attributes_that_hardly_change_keep_a_floor_without_a_look_at_their_pairs(
    monkeypatch,
) -> None:
    weights, ones = np.array([9, 10, 11]), np.ones(3)
    law = oracle.GatedSum((2, 3, 5), weights, np.zeros(3), "ramp", 0.0, 30.0, 24.0, ones)
    least = law.least_pair_ratio()
    assert 0.99 < least < 1.0
    monkeypatch.setattr(vote_law.VoteLaw, "least_pair_ratio", lambda _: -1.0)
    assert law.keeps_pair_floor(0.99)
    assert not law.keeps_pair_floor(0.5 + 0.5 * least)


def test_very_many_attributes_are_represented_by_their_extremes(monkeypatch) -> None:
    random = np.random.default_rng(1)
    k = 70
    law = oracle.GatedSum(
        tuple(random.integers(2, 9, k).tolist()),
        np.sort(random.integers(50, 200, k)),
        np.zeros(k),
        "vote",
        3500.0,
        1.0,
        6.0,
        np.ones(k),
    )
    every = law.least_pair_ratio()
    monkeypatch.setattr(vote_law, "MAX_ALL_PAIRS", 64)
    assert law.least_pair_ratio() == pytest.approx(every, rel=0.02)


SUM = oracle.random_sum(3, 4)
BLEND = oracle.random_blend(3, 4)
BOTH = [SUM, BLEND]


def test_a_thousand_attributes_fit_into_two_megabytes() -> None:
    random = np.random.default_rng(1)
    k = 1000
    law = GatedSum(
        tuple(random.integers(2, 9, k).tolist()),
        random.integers(100, 2000, k),
        random.random(k),
        "vote",
        500_000.25,
        1.75,
        8.0,
        random.uniform(0.9, 1.0, k),
    )
    text = json.dumps(law.to_plain())
    assert len(text) < 2_000_000
    assert law_from_plain(json.loads(text), law.n_categories) == law


@pytest.mark.parametrize(
    ("law", "field", "value", "sentence"),
    [
        (SUM, "gate", "step", "Invalid enum"),
        (SUM, "gate", None, "Expected `str`"),
        (SUM, "start", None, "Expected `str`"),
        (SUM, "width", "zero", "matching regex"),
        (SUM, "height", "inf", "matching regex"),
        (SUM, "height", 3.5, "Expected `str`"),
        (SUM, "weights", ["1"], "weights should be a list"),
        (SUM, "weights", "1", "Expected `array`"),
        (SUM, "weights", ["f" * 40] * 4, "too large"),
        (SUM, "dither", ["nan"] * 4, "matching regex"),
        (SUM, "retention", [1.0] * 4, "Expected `str`"),
        (BLEND, "votes", None, "Expected `array`"),
        (BLEND, "votes", ["1"], "Expected `object`"),
        (BLEND, "votes", [{}], "missing required field"),
        (BLEND, "shares", None, "Expected `array`"),
    ],
)
def test_an_edited_record_of_a_law_is_refused(
    law: VoteLaw, field: str, value: Any, sentence: str
) -> None:
    if isinstance(value, list) and len(value) == 4:
        value = value[:1] * len(law.n_categories)
    plain = law.to_plain() | {field: value}
    with pytest.raises(InputError, match=sentence):
        law_from_plain(plain, law.n_categories)


def test_a_missing_field_is_refused() -> None:
    for law in BOTH:
        for field in set(law.to_plain()) - {"family"}:
            plain = law.to_plain()
            del plain[field]
            with pytest.raises(InputError):
                law_from_plain(plain, law.n_categories)


@pytest.mark.parametrize("k", [24, 40])
def test_a_designed_mechanism_keeps_its_own_promise_and_breaks_a_smaller_one(k: int) -> None:
    random = np.random.default_rng(k)
    counts, levels = random.integers(2, 9, k).tolist(), random.uniform(0.2, 1.0, k).tolist()
    (part,) = optimal.solve(counts, levels).parts
    law = part.law
    block = Block(tuple(range(k)), law)
    mechanism = Mechanism(Schema.anonymous(tuple(counts)), (block,))
    promise = mechanism.promise()
    Mechanism(mechanism.schema, mechanism.blocks, promise)
    assert np.all(np.array(promise.attribute_epsilon) <= np.array(levels))
    assert promise.epsilon == part.account.epsilon
    # Another machine's last place is tolerated, a billionth is not.
    near = Claim(promise.epsilon - 1e-13, promise.attribute_epsilon, promise.epsilon_given_rest)
    Mechanism(mechanism.schema, mechanism.blocks, near)
    less = Claim(promise.epsilon - 1e-9, promise.attribute_epsilon, promise.epsilon_given_rest)
    with pytest.raises(InputError, match="breaks its claim: ε of the whole record"):
        Mechanism(mechanism.schema, mechanism.blocks, less)
    floors = mechanism.attribute_epsilon_floor
    assert all(a < b for a, b in zip(floors, promise.attribute_epsilon, strict=True))
    assert floors == privacy.attribute_epsilon_floor(law)


def test_exact_laws_are_tolerated_nothing() -> None:
    law = ProductLaw.from_levels((3, 5), (0.5, 1.0))
    mechanism = Mechanism(Schema.anonymous((3, 5)), (Block((0, 1), law),))
    promise = mechanism.promise()
    below = math.nextafter(promise.epsilon, 0.0)
    with pytest.raises(InputError, match="breaks its claim"):
        Mechanism(
            mechanism.schema,
            mechanism.blocks,
            Claim(below, promise.attribute_epsilon, promise.epsilon_given_rest),
        )


def test_the_stated_levels_of_a_bounded_law_are_its_bounds() -> None:
    for law in BOTH:
        assert privacy.record_epsilon(law) == law.record_level() == law.account.epsilon
        assert privacy.epsilon_given_rest(law) == tuple(law.account.epsilon_given_rest)
    assert SUM.record_level(()) == 0.0


def test_the_bits_that_a_sampler_uses_do_not_depend_on_the_pattern() -> None:
    class Counting(SeededRandomness):
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.requests: list[tuple[Any, int]] = []

        def bits(self, dtype: Any, count: int) -> Any:
            self.requests.append((np.dtype(dtype), count))
            return super().bits(dtype, count)

    sampler = SUM.sampler()
    used = []
    for seed in range(5):
        source = Counting(seed)
        list(sampler.walk(100, source))
        # A 16-bit prefix that decides nothing is followed by a longer word: not of the pattern.
        used.append([request for request in source.requests if request[1] == 100])
    assert all(requests == used[0] for requests in used)


@pytest.mark.parametrize("law", BOTH)
def test_other_own_responses_leave_what_is_known_of_the_votes(law: VoteLaw) -> None:
    law.moments()
    retention = np.linspace(0.5, 1.0, law.n_attributes)
    other, fresh = law.with_retention(retention), replace(law, retention=retention)
    assert other == fresh
    assert set(law.of_votes) >= set(other.__dict__) & set(law.__dict__) - set(fresh.__dict__)
    for mine, its in zip(
        (*other.attribute_bounds(), other.moments().gain),
        (*fresh.attribute_bounds(), fresh.moments().gain),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)
