"""Choosing λ by name, by strength and by covariance, and the side to which the law is rounded."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.design.lambda_protocol import LambdaChoice, choose, merged, product_law, strong_law
from deniable.errors import InputError
from deniable.laws import ProductLaw
from deniable.laws.response import Response
from deniable.mechanism import privacy
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strength import mechanism_strength
from deniable.schema import Schema

shares = st.one_of(
    st.floats(1e-9, 1 - 1e-9),
    st.floats(1, 15).map(lambda d: 10**-d),
    st.floats(1, 15).map(lambda d: 1 - 10**-d),
)
SCHEMA = Schema.anonymous((3, 4, 5))
KEEPING = Schema(Schema.anonymous((3, 4, 5)).attributes, keep=("a2", "region"))


def exact_attenuation(law: ProductLaw, i: int = 0) -> Fraction:
    """λ of the integers."""
    n = law.n_categories[i]
    return (n * Fraction(law.keep_weights[i], 1 << law.bits) - 1) / (n - 1)


@given(st.integers(2, 100_000), shares)
def test_a_law_from_lambda_errs_on_the_side_asked_for_and_by_rounding_only(
    n: int, attenuation: float
) -> None:
    down = exact_attenuation(product_law([n], [attenuation]))
    up = exact_attenuation(product_law([n], [attenuation], "up"))
    asked = Fraction(attenuation)
    assert down <= asked <= up
    assert (up - down) <= Fraction(2) ** -50 * min(asked, 1 - asked)


@given(st.integers(2, 100_000), shares)
def test_the_level_of_a_law_from_lambda_is_the_formulas(n: int, attenuation: float) -> None:
    (level,) = privacy.attribute_epsilon(product_law([n], [attenuation]))
    assert level == pytest.approx(Response.from_attenuation(n, attenuation).epsilon, rel=1e-12)


@given(st.integers(2, 100_000), shares)
def test_a_strong_law_reaches_its_strength_as_accounted_and_hardly_more(
    n: int, strength: float
) -> None:
    mechanism = Mechanism(Schema.anonymous((n,)), (Block((0,), strong_law(n, strength)),))
    found = mechanism_strength(mechanism).strength
    assert found is not None
    assert strength <= found <= strength * (1 + 1e-12)


def mechanism_of(schema: Schema, choice: LambdaChoice) -> Mechanism:
    return Mechanism(schema, (Block(schema.protected, choice.law),))


def test_lambda_strength_and_covariances_are_wished_for_side_by_side() -> None:
    schema = Schema.anonymous((3, 4, 5, 2, 6))
    choice = choose(
        schema,
        attenuation={"a1": 0.9, "a3": 0.2},
        strength={"a2": 0.5},
        preserve={("a4", "a5"): 0.4, ("a5", "a1"): 0.7},
    )
    found = mechanism_strength(mechanism_of(schema, choice))
    assert choice.attenuation[0] == 0.9
    assert found.attenuation[0] == pytest.approx(0.9, rel=1e-15)
    assert found.attribute_strength[1] == pytest.approx(0.5, rel=1e-12)
    exact = [exact_attenuation(choice.law, i) for i in range(5)]
    assert exact[3] * exact[4] >= Fraction(0.4)
    assert exact[0] * exact[4] >= Fraction(0.7)
    assert choice.epsilon_lower_bound is not None
    total = privacy.record_epsilon(choice.law)
    assert choice.epsilon_lower_bound <= total <= choice.epsilon_lower_bound + 1e-9


@given(shares.filter(lambda share: share < 1 - 1e-9), st.integers(2, 20), st.integers(2, 20))
def test_a_covariance_to_be_kept_is_kept_by_the_integers(share: float, a: int, b: int) -> None:
    law = choose(Schema.anonymous((a, b)), preserve={("a1", "a2"): share}).law
    assert exact_attenuation(law, 0) * exact_attenuation(law, 1) >= Fraction(share)


def test_without_covariances_there_is_no_bound_and_lambda_is_rounded_down() -> None:
    choice = choose(SCHEMA, attenuation={"a1": 0.9, "a2": 0.5, "a3": 0.4})
    assert choice.epsilon_lower_bound is None
    for i, value in enumerate((0.9, 0.5, 0.4)):
        assert exact_attenuation(choice.law, i) <= Fraction(value)


def test_a_common_strength_is_the_joint_strength() -> None:
    # Theorem 2: with one strength s everywhere Σ H = s Σ log₂ r.
    choice = choose(SCHEMA, strength=dict.fromkeys(SCHEMA.names, 0.5))
    found = mechanism_strength(mechanism_of(SCHEMA, choice))
    assert found.strength == pytest.approx(0.5, rel=1e-12)
    assert min(*found.attribute_strength, found.strength) >= 0.5


def test_attributes_released_as_they_are_need_no_wish_and_bear_none() -> None:
    choice = choose(KEEPING, attenuation={"a1": 0.5, "a3": 0.25})
    assert choice.law.n_categories == (3, 5)
    with pytest.raises(InputError, match="'a2' is released as it is"):
        choose(KEEPING, attenuation={"a1": 0.5, "a2": 0.5, "a3": 0.25})


def test_merging_laws_of_different_widths_leaves_every_probability_as_it_was() -> None:
    narrow, wide = ProductLaw((2, 3), 4, (11, 9)), ProductLaw((5,), 70, ((1 << 69) + 1,))
    law = merged([narrow, wide])
    assert law.n_categories == (2, 3, 5)
    assert [Fraction(w, 1 << law.bits) for w in law.keep_weights] == [
        Fraction(11, 16),
        Fraction(9, 16),
        Fraction((1 << 69) + 1, 1 << 70),
    ]


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"attenuation": {"a1": 0.5, "a2": 0.5}}, "'a3'; give its λ or its strength$"),
        ({"preserve": {("a1", "a2"): 0.5}}, "'a3'; .* to preserve"),
        ({"attenuation": {"b": 0.5}}, "no attribute 'b'"),
        ({"preserve": {("a1", "b"): 0.5}}, "no attribute 'b'"),
        (
            {"attenuation": {"a1": 0.5, "a2": 0.5, "a3": 0.5}, "strength": {"a2": 0.5}},
            "'a2' has both",
        ),
        ({"attenuation": {"a1": 1.0, "a2": 0.5, "a3": 0.5}}, "'a1': λ must lie between 0 and 1"),
        ({"strength": {"a1": 0.5, "a2": 0.0, "a3": 0.5}}, "'a2': the strength must lie"),
        ({"strength": {"a1": 0.5, "a2": 1e-310, "a3": 0.5}}, "'a2': .* out of reach"),
        (
            {"attenuation": {"a1": 0.5}, "preserve": {("a2", "a2"): 0.5, ("a2", "a3"): 0.5}},
            "'a2' is paired with itself",
        ),
        (
            {"attenuation": {"a3": 0.5}, "preserve": {("a1", "a2"): 0.5, ("a2", "a1"): 0.4}},
            "'a2' and 'a1' is asked for twice",
        ),
        (
            {"attenuation": {"a3": 0.5}, "preserve": {("a1", "a2"): 1.0}},
            "'a1' and 'a2' .* between 0 and 1",
        ),
        (
            {"attenuation": {"a3": 0.5, "a1": 0.3}, "preserve": {("a1", "a2"): 0.4}},
            "at most 0.3 of the covariance of 'a1' and 'a2'",
        ),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused_in_one_sentence_that_names_the_attribute(
    wishes: dict[str, dict[str, float]], words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        choose(SCHEMA, **wishes)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_both_lambda_of_a_pair_may_be_given_if_they_keep_enough() -> None:
    schema = Schema.anonymous((3, 4))
    wish = {"a1": 0.8, "a2": 0.5}
    choice = choose(schema, attenuation=wish, preserve={("a1", "a2"): 0.4})
    exact = [exact_attenuation(choice.law, i) for i in range(2)]
    assert exact[0] * exact[1] >= Fraction(0.4)
    with pytest.raises(InputError, match=r"at most 0\.4 of"):
        choose(schema, attenuation=wish, preserve={("a1", "a2"): 0.41})


def test_a_level_is_reported_for_the_paper_s_example() -> None:
    # Section 3: kept with 0.9 and 0.7, two categories each: λ = 0.8 and 0.4.
    law = product_law([2, 2], [0.8, 0.4])
    assert law.keep_probabilities() == pytest.approx([0.9, 0.7], rel=1e-15)
    assert privacy.record_epsilon(law) == pytest.approx(math.log(9) + math.log(7 / 3), rel=1e-14)
