"""From λ, strengths, covariances and matrices to laws: who gets which, and on which side it is
rounded; what is refused."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.design.design import design
from deniable.design.request import StrengthRequest
from deniable.design.strength import (
    choose,
    joint_blocks,
    merged,
    product_law,
    strong_law,
)
from deniable.errors import InputError
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts
from deniable.laws import MatrixChannel, ProductLaw, ScoreTable
from deniable.laws.response import Response
from deniable.mechanism import privacy
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strength import mechanism_strength
from deniable.schema import Attribute, Schema
from deniable.statement.record import design_to_plain, mechanism_from_plain, mechanism_to_plain

SCHEMA = Schema.anonymous((3, 4, 5))
CYCLE = 0.6 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, 0) + 0.1 / 3


def test_a_common_value_goes_to_all_that_have_no_wish_of_their_own() -> None:
    made = design(SCHEMA, attenuation={"a1": 0.9}, strength=0.5)
    found = mechanism_strength(made.mechanism)
    assert made.method == "lambda"
    assert found.attenuation[0] == 0.9
    assert found.attribute_strength[1:] == pytest.approx((0.5, 0.5), rel=1e-12)
    # … nor to those whose covariance is to be preserved.
    made = design(SCHEMA, attenuation=0.3, preserve={("a1", "a2"): 0.4})
    found = mechanism_strength(made.mechanism)
    assert found.attenuation[2] == 0.3
    assert math.prod(found.attenuation[:2]) == pytest.approx(0.4, rel=1e-12)
    assert "a1, a2" in made.notes[0]


def test_a_matrix_stands_beside_lambda_for_the_others() -> None:
    made = design(SCHEMA, attenuation=0.5, matrices={"a1": CYCLE})
    law, place = made.mechanism.block_of(0)
    assert isinstance(law.law, MatrixChannel)
    assert place == 0
    np.testing.assert_allclose(law.law.matrix(), CYCLE, atol=1e-15)
    plain = design_to_plain(made)["attributes"]
    assert [row["lambda"] for row in plain] == [None, 0.5, 0.5]
    assert plain[0]["strength"] == pytest.approx(
        mechanism_strength(made.mechanism).attribute_strength[0]
    )
    # The bound is about pattern laws, which this is not.
    assert made.epsilon_lower_bound is None
    assert mechanism_from_plain(mechanism_to_plain(made)) == made


def test_matrices_alone_are_a_design_too() -> None:
    made = design(Schema.anonymous((3,)), matrices={"a1": CYCLE})
    assert math.isfinite(made.epsilon)


def test_a_matrix_of_the_lambda_class_has_a_lambda() -> None:
    made = design(Schema.anonymous((3,)), matrices={"a1": 0.4 * np.eye(3) + 0.2})
    assert design_to_plain(made)["attributes"][0]["lambda"] == pytest.approx(0.4)


def test_the_bound_on_lambda_is_not_mistaken_for_one_on_all_laws() -> None:
    request = {("a1", "a2"): 0.4, ("a2", "a3"): 0.5}
    made = design(SCHEMA, preserve=request)
    among_products = chosen(SCHEMA, preserve=request)[1]
    assert among_products == pytest.approx(made.epsilon, abs=1e-9)
    # Joint laws with the same levels are better, and the record must not deny that.
    better = design(SCHEMA, attribute_epsilon=made.mechanism.attribute_epsilon, method="lp")
    assert made.epsilon_lower_bound <= better.epsilon < made.epsilon - 0.1


def test_kept_columns_stay_as_they_are() -> None:
    schema = Schema(SCHEMA.attributes, keep=("a2",))
    made = design(schema, attenuation=0.5)
    assert made.mechanism.unprotected == ("a2",)
    row = design_to_plain(made)["attributes"][1]
    assert (row["lambda"], row["strength"]) == (None, 0.0)


def test_the_joint_law_can_be_asked_for_in_three_ways() -> None:
    by_epsilon = design(SCHEMA, method="joint", epsilon=3)
    assert by_epsilon.epsilon <= 3 <= by_epsilon.epsilon + 1e-12
    assert by_epsilon.budget == 3.0
    assert set(by_epsilon.mechanism.epsilon_given_rest) == {by_epsilon.epsilon}
    by_lambda = design(SCHEMA, method="joint", attenuation=0.25)
    assert set(mechanism_strength(by_lambda.mechanism).attenuation) == {0.25}
    for strength in (1e-3, 0.5, 0.999):
        by_strength = design(SCHEMA, method="joint", strength=strength)
        found = mechanism_strength(by_strength.mechanism).strength
        assert found is not None
        assert strength <= found <= strength * (1 + 1e-9)
    levels = [design(SCHEMA, method="joint", strength=s).epsilon for s in (0.2, 0.4, 0.6, 0.8)]
    assert all(a > b for a, b in pairwise(levels))


def test_a_large_joint_table_under_the_joint_law_is_inverted_cell_by_cell() -> None:
    sizes = (10,) * 6
    made = design(Schema.anonymous(sizes), method="joint", attenuation=0.5)
    counts = np.random.default_rng(0).poisson(3, size=sizes)
    (found,) = Shares(made.mechanism.schema.names).answer(Counts.of(made.mechanism, counts))
    # P = λI + (1 − λ)P* on whole records: its inverse needs no transform.
    frequencies = counts / counts.sum()
    np.testing.assert_allclose(found.values, (frequencies - 0.5 / 10**6) / 0.5, atol=1e-15)


def test_a_joint_design_repeats_from_its_record() -> None:
    made = design(SCHEMA, method="joint", epsilon=2.5)
    assert isinstance(made.mechanism.blocks[0].law, ScoreTable)
    assert mechanism_from_plain(mechanism_to_plain(made)) == made


KEEPING = Schema(SCHEMA.attributes, keep=("a2", "region"))
LEVELS = Schema(tuple(Attribute(n, ("x", "y"), epsilon=1.0) for n in "ab"))


@pytest.mark.parametrize(
    ("schema", "stated", "words"),
    [
        (SCHEMA, {"attenuation": 0.5, "strength": 0.5}, "one λ and one strength"),
        (SCHEMA, {"attenuation": {"a1": 0.5}}, "'a2' has no λ and no strength"),
        (SCHEMA, {"attenuation": {"b": 0.5}, "strength": 0.5}, "no attribute 'b'"),
        (SCHEMA, {"attenuation": 1.0}, "between 0 and 1"),
        (SCHEMA, {"strength": 1.2}, "between 0 and 1"),
        (
            SCHEMA,
            {"attenuation": 0.5, "preserve": {("a1", "a2"): 0.4, ("a2", "a3"): 0.4}},
            "every attribute has one; leave it out",
        ),
        (SCHEMA, {"attenuation": 0.5, "matrices": {"b": CYCLE}}, "no attribute 'b'"),
        (SCHEMA, {"attenuation": 0.5, "matrices": {"a2": CYCLE}}, "4 categories, .* for 3"),
        (
            SCHEMA,
            {"attenuation": {"a1": 0.5}, "strength": 0.5, "matrices": {"a1": CYCLE}},
            "'a1' has a response matrix",
        ),
        (
            Schema(SCHEMA.attributes, keep=("a1",)),
            {"attenuation": 0.5, "matrices": {"a1": CYCLE}},
            "'a1' is released unchanged",
        ),
        (SCHEMA, {"method": "lambda"}, "needs the strength of the randomization"),
        (SCHEMA, {"method": "lambda", "epsilon": 3}, "takes no total"),
        (SCHEMA, {"attenuation": 0.5, "attribute_epsilon": (1, 1, 1)}, "no level per attribute"),
        (LEVELS, {"attenuation": 0.5}, "no level per attribute"),
        (SCHEMA, {"attenuation": 0.5, "given_rest": "2x"}, "needs method"),
        (SCHEMA, {"attenuation": 0.5, "method": "kronecker"}, "for methods lambda and joint"),
        (SCHEMA, {"method": "invariant"}, "no method 'invariant'"),
        (SCHEMA, {"method": "joint"}, "one parameter"),
        (SCHEMA, {"method": "joint", "epsilon": 1, "attenuation": 0.5}, "one parameter"),
        (SCHEMA, {"method": "joint", "attenuation": {"a1": 0.5}}, "as one number"),
        (SCHEMA, {"method": "joint", "attribute_epsilon": (1, 1, 1)}, "decides them all"),
        (SCHEMA, {"method": "joint", "preserve": {("a1", "a2"): 0.5}}, "one λ"),
        (SCHEMA, {"method": "joint", "epsilon": -1}, "above 0"),
        (
            SCHEMA,
            {"attenuation": {"a1": 0.5, "a2": 0.5}},
            "'a3' has no λ and no strength; give one of them$",
        ),
        (SCHEMA, {"preserve": {("a1", "a2"): 0.5}}, "'a3' .* to preserve"),
        (SCHEMA, {"preserve": {("a1", "b"): 0.5}}, "no attribute 'b'"),
        (
            SCHEMA,
            {"attenuation": {"a1": 0.5, "a2": 0.5, "a3": 0.5}, "strength": {"a2": 0.5}},
            "'a2' has both",
        ),
        (
            SCHEMA,
            {"attenuation": {"a1": 1.0, "a2": 0.5, "a3": 0.5}},
            "'a1': λ must lie between 0 and 1",
        ),
        (SCHEMA, {"strength": {"a1": 0.5, "a2": 0.0, "a3": 0.5}}, "'a2': the strength must lie"),
        (SCHEMA, {"strength": {"a1": 0.5, "a2": 1e-310, "a3": 0.5}}, "'a2': .* out of reach"),
        (
            SCHEMA,
            {"attenuation": {"a1": 0.5}, "preserve": {("a2", "a2"): 0.5, ("a2", "a3"): 0.5}},
            "'a2' is paired with itself",
        ),
        (
            SCHEMA,
            {"attenuation": {"a3": 0.5}, "preserve": {("a1", "a2"): 0.5, ("a2", "a1"): 0.4}},
            "'a2' and 'a1' is given twice",
        ),
        (
            SCHEMA,
            {"attenuation": {"a3": 0.5}, "preserve": {("a1", "a2"): 1.0}},
            "'a1' and 'a2' .* between 0 and 1",
        ),
        (
            SCHEMA,
            {"attenuation": {"a3": 0.5, "a1": 0.3}, "preserve": {("a1", "a2"): 0.4}},
            "at most 0.3 of the covariance of 'a1' and 'a2'",
        ),
        (
            KEEPING,
            {"attenuation": {"a1": 0.5, "a2": 0.5, "a3": 0.25}},
            "'a2' is released unchanged",
        ),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_in_one_sentence(
    schema: Schema, stated: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        design(schema, **stated)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_blocks_cover_the_schema_in_any_mixture() -> None:
    schema = Schema(Schema.anonymous((3, 4, 5, 2)).attributes, keep=("a3",))
    made = design(schema, attenuation=0.5, matrices={"a1": CYCLE})
    product = next(b for b in made.mechanism.blocks if isinstance(b.law, ProductLaw))
    assert product.attributes == (1, 3)
    joint = joint_blocks(schema, StrengthRequest(attenuation=0.5))
    assert joint.blocks[0].attributes == (0, 1, 3)


shares = st.one_of(
    st.floats(1e-9, 1 - 1e-9),
    st.floats(1, 15).map(lambda d: 10**-d),
    st.floats(1, 15).map(lambda d: 1 - 10**-d),
)


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


def chosen(schema: Schema, **requests: dict[Any, float]) -> tuple[ProductLaw, float | None]:
    """The law of the protected attributes, and the bound."""
    kinds = ("attenuation", "strength", "preserve")
    sizes = {schema.names[i]: schema.n_categories[i] for i in schema.protected}
    return choose(sizes, *(requests.get(kind, {}) for kind in kinds))


def test_lambda_strength_and_covariances_are_wished_for_side_by_side() -> None:
    schema = Schema.anonymous((3, 4, 5, 2, 6))
    law, bound = chosen(
        schema,
        attenuation={"a1": 0.9, "a3": 0.2},
        strength={"a2": 0.5},
        preserve={("a4", "a5"): 0.4, ("a5", "a1"): 0.7},
    )
    found = mechanism_strength(Mechanism(schema, (Block(schema.protected, law),)))
    assert found.attenuation[0] == pytest.approx(0.9, rel=1e-15)
    assert found.attribute_strength[1] == pytest.approx(0.5, rel=1e-12)
    exact = [exact_attenuation(law, i) for i in range(5)]
    assert exact[3] * exact[4] >= Fraction(0.4)
    assert exact[0] * exact[4] >= Fraction(0.7)
    assert bound is not None
    assert bound <= privacy.record_epsilon(law) <= bound + 1e-9


@given(shares.filter(lambda share: share < 1 - 1e-9), st.integers(2, 20), st.integers(2, 20))
def test_a_covariance_to_be_kept_is_kept_by_the_integers(share: float, a: int, b: int) -> None:
    law, _ = chosen(Schema.anonymous((a, b)), preserve={("a1", "a2"): share})
    assert exact_attenuation(law, 0) * exact_attenuation(law, 1) >= Fraction(share)


def test_without_covariances_there_is_no_bound_and_lambda_is_rounded_down() -> None:
    law, bound = chosen(SCHEMA, attenuation={"a1": 0.9, "a2": 0.5, "a3": 0.4})
    assert bound is None
    for i, value in enumerate((0.9, 0.5, 0.4)):
        assert exact_attenuation(law, i) <= Fraction(value)


def test_a_common_strength_is_the_joint_strength() -> None:
    # Theorem 2: with one strength s everywhere Σ H = s Σ log₂ r.
    found = mechanism_strength(design(SCHEMA, strength=0.5).mechanism)
    assert found.strength == pytest.approx(0.5, rel=1e-12)
    assert min(*found.attribute_strength, found.strength) >= 0.5


def test_merging_laws_of_different_widths_leaves_every_probability_as_it_was() -> None:
    narrow, wide = ProductLaw((2, 3), 4, (11, 9)), ProductLaw((5,), 70, ((1 << 69) + 1,))
    law = merged([narrow, wide])
    assert law.n_categories == (2, 3, 5)
    assert [Fraction(w, 1 << law.bits) for w in law.keep_weights] == [
        Fraction(11, 16),
        Fraction(9, 16),
        Fraction((1 << 69) + 1, 1 << 70),
    ]


def test_both_lambda_of_a_pair_may_be_given_if_they_keep_enough() -> None:
    schema = Schema.anonymous((3, 4))
    request = {"a1": 0.8, "a2": 0.5}
    law, _ = chosen(schema, attenuation=request, preserve={("a1", "a2"): 0.4})
    exact = [exact_attenuation(law, i) for i in range(2)]
    assert exact[0] * exact[1] >= Fraction(0.4)
    with pytest.raises(InputError, match=r"at most 0\.4 of"):
        chosen(schema, attenuation=request, preserve={("a1", "a2"): 0.41})


def test_a_level_is_reported_for_the_paper_s_example() -> None:
    # Section 3: kept with 0.9 and 0.7, two categories each: λ = 0.8 and 0.4.
    law = product_law([2, 2], [0.8, 0.4])
    assert law.keep_probabilities() == pytest.approx([0.9, 0.7], rel=1e-15)
    assert privacy.record_epsilon(law) == pytest.approx(math.log(9) + math.log(7 / 3), rel=1e-14)
