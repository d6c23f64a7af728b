"""A mechanism that does not fit its schema or breaks its claim cannot be built."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.laws import Identity, MatrixChannel, PatternTable, ProductLaw, PublishedForms
from deniable.mechanism.mechanism import Block, Claim, Mechanism
from deniable.schema import Schema

SCHEMA = Schema.anonymous((2, 3))
FIRST, SECOND = ProductLaw((2,), 4, (12,)), ProductLaw((3,), 4, (10,))
BLOCKS = (Block((0,), FIRST), Block((1,), SECOND))
KEEPING = Schema(SCHEMA.attributes, keep=("a2", "id"))


@pytest.mark.parametrize(
    "blocks",
    [
        (),
        BLOCKS[:1],
        (*BLOCKS, BLOCKS[0]),
        (*BLOCKS, Block((2,), FIRST)),
        (Block((0, 1, 1), ProductLaw((2, 3, 3), 4, (12, 10, 10))),),
        (Block((-1,), SECOND), BLOCKS[0]),
    ],
)
def test_blocks_must_cover_every_attribute_exactly_once(blocks: tuple[Block, ...]) -> None:
    with pytest.raises(InputError, match="every attribute of the schema must be in exactly one"):
        Mechanism(SCHEMA, blocks)


def test_a_law_for_other_numbers_of_categories_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="disagree on the number of categories of 'a2'"):
        Mechanism(SCHEMA, (BLOCKS[0], Block((1,), ProductLaw((4,), 4, (10,)))))
    with pytest.raises(InputError, match="disagree on the number of categories of 'a2', 'a1'"):
        Mechanism(SCHEMA, (Block((1, 0), ProductLaw((2, 3), 4, (12, 10))),))


@pytest.mark.parametrize(
    ("schema", "blocks"),
    [
        (KEEPING, BLOCKS),  # a kept attribute is randomized
        (KEEPING, (Block((0, 1), ProductLaw((2, 3), 4, (12, 10))),)),  # in one block with another
        (KEEPING, (Block((0, 1), Identity((2, 3))),)),  # a protected one released with a kept one
        (SCHEMA, (BLOCKS[0], Block((1,), Identity((3,))))),  # a protected one released as it is
    ],
)
def test_exactly_the_kept_attributes_are_released_as_they_are(
    schema: Schema, blocks: tuple[Block, ...]
) -> None:
    with pytest.raises(InputError, match="exactly the columns under keep"):
        Mechanism(schema, blocks)


def test_a_kept_attribute_is_unprotected_and_not_part_of_the_records_level() -> None:
    mechanism = Mechanism(KEEPING, (BLOCKS[0], Block((1,), Identity((3,)))))
    assert mechanism.epsilon == Mechanism(SCHEMA, BLOCKS).attribute_epsilon[0]
    assert mechanism.attribute_epsilon[1] == math.inf
    assert mechanism.unprotected == ("a2", "id")
    assert mechanism.keep_probability == (0.75, 1.0)
    assert mechanism.subset_epsilon(["a2"]) == 0
    assert mechanism.subset_epsilon(["a2", "a1"]) == mechanism.epsilon


def test_an_attribute_with_an_impossible_answer_is_listed_as_unprotected() -> None:
    certain = MatrixChannel((2,), 1, ((2, 1), (0, 1)))
    mechanism = Mechanism(SCHEMA, (Block((0,), certain), BLOCKS[1]))
    assert mechanism.epsilon == math.inf
    assert mechanism.unprotected == ("a1",)
    assert mechanism.subset_epsilon(["a2"]) < math.inf


def test_a_claim_that_holds_is_accepted_up_to_the_last_bit() -> None:
    mechanism = Mechanism(SCHEMA, BLOCKS)
    claim = mechanism.promise()
    assert Mechanism(SCHEMA, BLOCKS, claim).claim == claim
    looser = Claim(claim.epsilon + 1, (9.0, math.inf), (9.0, 9.0))
    assert Mechanism(SCHEMA, BLOCKS, looser).promise() == claim


def lowered(value: float) -> float:
    return math.nextafter(value, 0)


def test_a_claim_one_bit_below_the_truth_is_refused_and_says_which() -> None:
    claim = Mechanism(SCHEMA, BLOCKS).promise()
    cases = {
        "the whole record": replace(claim, epsilon=lowered(claim.epsilon)),
        "attribute 'a1' alone": replace(
            claim, attribute_epsilon=(lowered(claim.attribute_epsilon[0]), 9.0)
        ),
        "attribute 'a2' alone": replace(
            claim, attribute_epsilon=(9.0, lowered(claim.attribute_epsilon[1]))
        ),
        "attribute 'a1' given the rest": replace(
            claim, epsilon_given_rest=(lowered(claim.epsilon_given_rest[0]), 9.0)
        ),
        "attribute 'a2' given the rest": replace(
            claim, epsilon_given_rest=(9.0, lowered(claim.epsilon_given_rest[1]))
        ),
    }
    for what, false_claim in cases.items():
        with pytest.raises(InputError, match=f"breaks its claim: ε of {what}"):
            Mechanism(SCHEMA, BLOCKS, false_claim)


def test_a_claim_that_is_not_a_number_is_not_kept_by_anything() -> None:
    claim = Mechanism(SCHEMA, BLOCKS).promise()
    with pytest.raises(InputError, match="breaks its claim: ε of the whole record"):
        Mechanism(SCHEMA, BLOCKS, replace(claim, epsilon=math.nan))
    with pytest.raises(InputError, match="breaks its claim: ε of attribute 'a2' alone"):
        Mechanism(SCHEMA, BLOCKS, replace(claim, attribute_epsilon=(9.0, math.nan)))


@pytest.mark.parametrize("levels", [(), (9.0,), (9.0, 9.0, 9.0)])
def test_a_claim_with_the_wrong_number_of_levels_is_refused(levels: tuple[float, ...]) -> None:
    for claim in (Claim(9.0, levels, (9.0, 9.0)), Claim(9.0, (9.0, 9.0), levels)):
        with pytest.raises(InputError, match="two levels for each of the 2 attributes"):
            Mechanism(SCHEMA, BLOCKS, claim)


def test_subsets_are_asked_for_by_name() -> None:
    mechanism = Mechanism(SCHEMA, BLOCKS)
    assert mechanism.subset_epsilon([]) == 0
    assert mechanism.subset_epsilon(["a2"]) == mechanism.attribute_epsilon[1]
    with pytest.raises(InputError, match="no attribute 'b'"):
        mechanism.subset_epsilon(["b"])
    with pytest.raises(InputError, match="'a1' is named twice"):
        mechanism.subset_epsilon(["a1", "a1"])


def test_the_block_of_an_attribute_and_its_place_in_it_are_found() -> None:
    table = PatternTable((2, 3), 4, (10, 2, 2, 2))
    schema = Schema.anonymous((3, 4, 2))
    mechanism = Mechanism(schema, (Block((1,), ProductLaw((4,), 4, (9,))), Block((2, 0), table)))
    assert mechanism.block_of(0) == (mechanism.blocks[1], 1)
    assert mechanism.block_of(1) == (mechanism.blocks[0], 0)
    assert mechanism.block_of(2) == (mechanism.blocks[1], 0)
    for position in (3, -1):
        with pytest.raises(IndexError):
            mechanism.block_of(position)


def test_outputs_that_are_no_categories_have_no_keep_probability() -> None:
    tall = MatrixChannel((2,), 3, ((6, 1), (1, 1), (1, 6)))
    mechanism = Mechanism(SCHEMA, (Block((0,), tall), BLOCKS[1]))
    assert mechanism.n_outputs == (3, 3)
    assert np.isnan(mechanism.keep_probability[0])
    assert mechanism.keep_probability[1] == 10 / 16


def test_tables_that_are_not_the_laws_are_noticed(monkeypatch):
    law = ProductLaw.from_levels((2, 3), (1.0, 2.0))
    other = ProductLaw.from_levels((2, 3), (1.0, 2.1))
    mechanism = Mechanism.of(law)
    mechanism.check_samplers()
    tables = other.sampler()
    monkeypatch.setattr(ProductLaw, "sampler", lambda _self: tables)
    with pytest.raises(InputError, match="sampler's table of 'a1', 'a2' differs"):
        mechanism.check_samplers()


def test_a_person_s_form_follows_from_text_and_salt_as_often_as_its_share() -> None:
    halves = [((0,), np.array([0.7, 0.3])), ((1,), np.array([0.6, 0.4]))]
    law = PublishedForms.from_probabilities((2, 2), [0.25, 0.75], halves)
    mechanism = Mechanism.of(law)
    forms = [mechanism.form_for(f"code {i}", "spring") for i in range(4000)]
    assert set(forms) == {1, 2}
    assert abs(forms.count(1) / 4000 - 0.25) < 0.03  # fixed texts: this does not vary
    again = [mechanism.form_for(f"code {i}", "spring") for i in range(50)]
    other = [mechanism.form_for(f"code {i}", "autumn") for i in range(50)]
    assert again == forms[:50] != other
    # The salt's end and the text's start cannot be moved.
    moved = [mechanism.form_for(f"e{i}", "cod") for i in range(50)]
    assert moved != [mechanism.form_for(f"{i}", "code") for i in range(50)]


def test_a_mechanism_without_forms_assigns_none() -> None:
    mechanism = design(Schema.anonymous((2, 2)), epsilon=1).mechanism
    with pytest.raises(InputError, match="no forms"):
        mechanism.form_for("code", "salt")
