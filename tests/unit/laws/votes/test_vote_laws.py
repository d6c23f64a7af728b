"""Laws of votes as families: read back, refused, privately bounded, drawn."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import (
    BlendedVotesLaw,
    GatedSumLaw,
    MixedVotesLaw,
    ProductLaw,
    law_from_plain,
    law_of_votes,
)
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.independent import IndependentResponses
from deniable.mechanism import privacy
from deniable.mechanism.mechanism import Block, Claim, Mechanism
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable.solvers.patterns import optimal
from unit.laws.votes import whole_law as oracle

SUM = GatedSumLaw(oracle.random_sum(3, 4))
MIXTURE = MixedVotesLaw(oracle.random_mixture(3, 4))
BLEND = BlendedVotesLaw(oracle.random_blend(3, 4))
LAWS = [SUM, MIXTURE, BLEND]


@pytest.mark.parametrize("law", LAWS, ids=["sum", "mixture", "blend"])
def test_a_law_survives_json_and_is_another_if_a_number_is(law: GatedSumLaw) -> None:
    plain = json.loads(json.dumps(law.to_plain()))
    again = law_from_plain(plain, law.n_categories)
    assert again == law
    assert hash(again) == hash(law)
    assert again.to_plain() == law.to_plain()
    plain["retention"][0] = (0.5).hex()
    assert law_from_plain(plain, law.n_categories) != law


def test_a_thousand_attributes_fit_into_two_megabytes() -> None:
    random = np.random.default_rng(1)
    k = 1000
    numbers = GatedSum(
        random.integers(2, 9, k),
        random.integers(100, 2000, k),
        random.random(k),
        "vote",
        500_000.25,
        1.75,
        8.0,
        random.uniform(0.9, 1.0, k),
    )
    text = json.dumps(GatedSumLaw(numbers).to_plain())
    assert len(text) < 2_000_000
    assert law_from_plain(json.loads(text), tuple(numbers.n_categories.tolist())).numbers == numbers


@pytest.mark.parametrize(
    ("law", "field", "value", "sentence"),
    [
        (SUM, "gate", "step", "gate"),
        (SUM, "gate", None, "gate"),
        (SUM, "start", None, "gate"),
        (SUM, "width", "zero", "gate"),
        (SUM, "height", "inf", "height"),
        (SUM, "height", 3.5, "height hold"),
        (SUM, "weights", ["1"], "weights should be a list"),
        (SUM, "weights", "1", "weights should be a list"),
        (SUM, "weights", ["f" * 40] * 4, "too large"),
        (SUM, "dither", ["nan"] * 4, "add up"),
        (SUM, "retention", [1.0] * 4, "retention hold"),
        (MIXTURE, "votes", [], "at least one vote"),
        (MIXTURE, "votes", None, "at least one vote"),
        (MIXTURE, "votes", [["1"]], "votes should be a list"),
        (MIXTURE, "thresholds", "0", "thresholds should be a list"),
        (BLEND, "votes", None, "votes should be a list"),
        (BLEND, "votes", ["1"], "votes should be a list"),
        (BLEND, "votes", [{}], "gate should be a list|gate hold"),
        (BLEND, "shares", None, "shares should be a list"),
        (MIXTURE, "multipliers", None, "multipliers should be a list"),
    ],
)
def test_an_edited_record_of_a_law_is_refused(
    law: GatedSumLaw, field: str, value: Any, sentence: str
) -> None:
    if isinstance(value, list) and len(value) == 4:
        value = value[:1] * len(law.n_categories)
    plain = law.to_plain() | {field: value}
    with pytest.raises(InputError, match=sentence):
        law_from_plain(plain, law.n_categories)


def test_a_missing_field_is_refused() -> None:
    for law in LAWS:
        for field in set(law.to_plain()) - {"family"}:
            plain = law.to_plain()
            del plain[field]
            with pytest.raises(InputError):
                law_from_plain(plain, law.n_categories)


def test_what_a_search_finds_becomes_a_law() -> None:
    assert law_of_votes(SUM.numbers) == SUM
    assert law_of_votes(MIXTURE.numbers) == MIXTURE
    found = law_of_votes(IndependentResponses(np.array([3, 5]), np.array([0.5, 1.0])))
    assert found == ProductLaw.from_levels((3, 5), (0.5, 1.0))


@pytest.mark.parametrize("k", [5, 40])
def test_a_designed_mechanism_keeps_its_own_promise_and_breaks_a_smaller_one(k: int) -> None:
    random = np.random.default_rng(k)
    counts, levels = random.integers(2, 9, k).tolist(), random.uniform(0.2, 1.0, k).tolist()
    (part,) = optimal.solve(counts, levels).parts
    law = law_of_votes(part.law)
    block = Block(tuple(range(k)), law)
    mechanism = Mechanism(Schema.anonymous(tuple(counts)), (block,))
    promise = mechanism.promise()
    Mechanism(mechanism.schema, mechanism.blocks, promise)
    assert np.all(np.array(promise.attribute_epsilon) <= np.array(levels))
    assert part.account.epsilon <= promise.epsilon <= part.account.epsilon * (1 + 1e-15)
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


def test_the_ratios_of_a_bounded_law_are_its_bounds_rounded_up() -> None:
    for law in LAWS:
        bound = law.record_epsilon_bound()
        (ratio,) = law.record_ratio()
        assert math.log(Fraction(*ratio)) == pytest.approx(bound, rel=1e-12)
        assert bound <= privacy.record_epsilon(law) <= math.nextafter(bound, math.inf)
    assert SUM.record_ratio(()) == ((1, 1),)


@pytest.mark.parametrize("law", [SUM, MIXTURE], ids=["sum", "mixture"])
def test_the_bits_that_a_sampler_uses_do_not_depend_on_the_pattern(law: GatedSumLaw) -> None:
    class Counting(SeededRandomness):
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.requests: list[tuple[Any, int]] = []

        def bits(self, dtype: Any, count: int) -> Any:
            self.requests.append((np.dtype(dtype), count))
            return super().bits(dtype, count)

    sampler = law.sampler()
    used = []
    for seed in range(5):
        source = Counting(seed)
        sampler.shifts(100, source)
        # A 16-bit prefix that decides nothing is followed by a longer word: not of the pattern.
        used.append([request for request in source.requests if request[1] == 100])
    assert all(requests == used[0] for requests in used)


def test_pairs_agree_however_they_are_asked_for() -> None:
    law = SUM if len(SUM.n_categories) > 1 else GatedSumLaw(oracle.random_sum(5, 6))
    every = law.eigenvalues(range(len(law.n_categories)))
    pair = law.eigenvalues((1, 0))
    rest = (0,) * (len(law.n_categories) - 2)
    for index in np.ndindex(2, 2):
        assert pair[index] == pytest.approx(every[(index[1], index[0], *rest)], abs=1e-13)
