"""Response matrices next to a law for the other attributes."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deniable.design.design import design
from deniable.design.matrices import (
    laws_given,
    merged_for,
    response_from_file,
    with_responses,
    without,
)
from deniable.errors import InputError
from deniable.laws import DesignedChannel, Identity, MatrixChannel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from deniable.statement import record
from deniable.statement.account import Design

AGE = Attribute("age", ("young", "old"))
SCHEMA = Schema(
    (Attribute("sex", ("f", "m")), AGE, Attribute("blood", ("A", "B", "0"))), keep=("region",)
)
BLANK = DesignedChannel((2,), 1, ((1, 0), (0, 1), (1, 1)), (0.5, 0.5))


def test_the_others_keep_their_law_and_the_whole_has_no_epsilon() -> None:
    rest = without(SCHEMA, {"age": BLANK})
    assert rest is not None
    alone = design(rest, attribute_epsilon=[1.0, 2.0], method="kronecker")
    whole = with_responses(SCHEMA, alone, {"age": BLANK})
    assert whole.mechanism.schema == SCHEMA
    assert whole.mechanism.attribute_epsilon == (
        alone.mechanism.attribute_epsilon[0],
        math.inf,
        alone.mechanism.attribute_epsilon[1],
    )
    assert whole.epsilon == math.inf
    assert whole.requested_epsilon == (1.0, None, 2.0)
    assert whole.method == "kronecker"
    assert whole.epsilon_lower_bound is None
    assert whole.mechanism.unprotected == ("region", "age")
    back = record.mechanism_from_plain(json.loads(record.to_json(record.mechanism_to_plain(whole))))
    assert back.mechanism == whole.mechanism


def test_with_a_bounded_matrix_the_levels_add_up() -> None:
    warner = MatrixChannel((2,), 2, ((3, 1), (1, 3)))
    rest = without(SCHEMA, {"age": warner})
    assert rest is not None
    alone = design(rest, attribute_epsilon=[1.0, 2.0], method="kronecker")
    whole = with_responses(SCHEMA, alone, {"age": warner})
    assert whole.epsilon == pytest.approx(alone.epsilon + math.log(3))


def test_a_schema_of_matrices_alone_needs_no_other_design() -> None:
    schema = Schema((AGE, Attribute("kept", ("1", "2"))), keep=("kept",))
    assert without(schema, {"age": BLANK}) is None
    whole = with_responses(schema, None, {"age": BLANK})
    assert whole.method == "matrix"
    assert {type(block.law) for block in whole.mechanism.blocks} == {DesignedChannel, Identity}


def test_an_attribute_that_cannot_have_a_matrix_is_named() -> None:
    kept = Schema((AGE, Attribute("sex", ("f", "m"))), keep=("age",))
    level = Schema((Attribute("age", ("young", "old"), epsilon=1.0), Attribute("b", ("1", "2"))))
    both = Schema((Attribute("age", ("young", "old"), response="warner:0.7"),))
    half = Schema((Attribute("age", ("young", "old"), response="warner:0.5"),))
    for schema, matrices, said in (
        (kept, {"age": BLANK}, "'age' is released unchanged"),
        (SCHEMA, {"weight": BLANK}, "no attribute 'weight'"),
        (level, {"age": BLANK}, "both a matrix and, in the schema, an epsilon"),
        (both, {"age": BLANK}, "both a matrix and a response"),
        (half, {}, "'age': the response matrix is singular .rank 1, below its 2 categories"),
        (SCHEMA, {"blood": BLANK}, "'blood' has 3 categories, and its matrix is for 2"),
        (SCHEMA, {"age": np.ones((2, 2))}, "'age': column 1 of the response matrix adds up to 2"),
    ):
        with pytest.raises(InputError, match=said):
            laws_given(schema, matrices)


def test_a_declared_response_and_a_given_matrix_are_laws_next_to_the_others() -> None:
    forced = replace(AGE, response="forced:1/2,1/8,3/8")
    schema = replace(SCHEMA, attributes=(SCHEMA.attributes[0], forced, SCHEMA.attributes[2]))
    own = np.array([[0.8, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.0, 0.8]])
    made = design(schema, matrices={"blood": own}, attribute_epsilon={"sex": 1.0})
    laws = {block.attributes: block.law for block in made.mechanism.blocks}
    assert laws[1,] == MatrixChannel((2,), 3, ((7, 3), (1, 5)))
    assert np.allclose(laws[2,].matrix(), own)  # type: ignore[attr-defined]
    assert made.mechanism.attribute_epsilon[1:] == (pytest.approx(math.log(5)), math.inf)
    assert made.method == "balanced"
    for requests, said in (
        ({"attribute_epsilon": {"age": 1.0}}, "'age' has a response matrix"),
        ({"preserve": {("sex", "age"): 0.5}}, "leave it out of `preserve`"),
    ):
        with pytest.raises(InputError, match=said):
            design(schema, **requests)  # type: ignore[arg-type]


def test_a_design_by_responses_alone_has_their_name_and_takes_no_level() -> None:
    alone = Schema((replace(AGE, response="kuk:0.75,0.25,2"),))
    made = design(alone)
    assert (made.method, made.mechanism.output_labels) == ("kuk", (("0", "1", "2"),))
    two = Schema((*alone.attributes, Attribute("b", ("0", "1"), response="warner:0.75")))
    assert design(two).method == "matrix"
    with pytest.raises(InputError, match="follows from it; leave out `epsilon`, `method`"):
        design(alone, epsilon=1.0, method="optimal")
    plain = json.loads(record.to_json(record.mechanism_to_plain(made)))
    assert record.mechanism_from_plain(plain).mechanism == made.mechanism
    with pytest.raises(InputError, match="does not declare warner"):
        record.mechanism_from_plain(plain | {"method": "warner"})
    plain["schema"]["attribute"][0]["response"] = "kuk:0.8,0.25,2"
    with pytest.raises(InputError, match=r"declares the response .* and the mechanism has another"):
        record.mechanism_from_plain(plain)


def test_declared_answers_need_a_matrix_with_their_number() -> None:
    named = Schema((replace(AGE, answers=("red", "black")),))
    made = design(named, matrices={"age": np.array([[0.9, 0.2], [0.1, 0.8]])})
    assert made.mechanism.output_labels == (("red", "black"),)
    assert math.isnan(made.mechanism.keep_probability[0])
    assert (
        made.mechanism.digest
        != design(
            Schema((AGE,)), matrices={"age": np.array([[0.9, 0.2], [0.1, 0.8]])}
        ).mechanism.digest
    )
    for arguments in ({"epsilon": 1.0}, {"matrices": {"age": BLANK}}):
        with pytest.raises(InputError, match="2 answers of 'age', which need a response matrix"):
            design(named, **arguments)  # type: ignore[arg-type]


def test_rows_are_read_as_distributions_of_the_answers_to_one_category(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text("[[0.5, 0.25, 0.25], [0, 0.5, 0.5]]")
    law, attribute = response_from_file(path, AGE)
    assert (law.bits, law.weights) == (2, ((2, 0), (1, 2), (1, 2)))
    assert attribute == AGE
    path.write_text('{"answers": ["a", "b", "c"], "rows": [["1/2", "1/4", 0.25], [0, 0.5, 0.5]]}')
    assert response_from_file(path, AGE) == (law, replace(AGE, answers=("a", "b", "c")))


def test_a_mechanism_lends_its_matrix_and_its_prior(tmp_path: Path) -> None:
    mechanism = Mechanism(Schema((AGE,)), (Block((0,), BLANK),))
    plan = Design(mechanism, "matrix", (None,), None)
    path = tmp_path / "m.json"
    path.write_bytes(record.to_json(record.mechanism_to_plain(plan)))
    other = Attribute("other", ("1", "2"))
    assert response_from_file(path, other) == (BLANK, other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "not JSON"),
        ("[1, 2]", "list of rows"),
        ("[[0.5, 0.5], [1]]", "same number of entries"),
        ("[[0.5, 0.4], [0.5, 0.5]]", "row 1 is no distribution"),
        ("[[0.7, 0.4], [0.3, 0.6]]", "row 1 .* 1.1; the columns do, so transpose the matrix"),
        ('[["1/0", 1], [0, 1]]', "neither a decimal nor a fraction"),
        ("[[0.5, 1e300], [0, 1]]", "no probability"),
        ('{"rows": [[0, 1], [1, 0]], "answers": 3}', "answers are a list of texts"),
        ("[[0.5, 0.5], [1.5, -0.5]]", "row 2 is no distribution"),
        ("[[0.5, 0.5], [0.5, 0.5]]", "singular"),
        ("{}", "not a mechanism"),
    ],
)
def test_a_file_that_holds_no_matrix_for_it_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as refusal:
        response_from_file(path, AGE)
    assert "m.json" in str(refusal.value)
    with pytest.raises(InputError, match="cannot be read"):
        response_from_file(tmp_path / "none.json", AGE)


def test_a_mechanism_of_another_kind_lends_nothing(tmp_path: Path) -> None:
    plan = design(Schema((AGE,)), attribute_epsilon=[1.0], method="kronecker")
    path = tmp_path / "m.json"
    path.write_bytes(record.to_json(record.mechanism_to_plain(plan)))
    with pytest.raises(InputError, match="not one response matrix"):
        response_from_file(path, AGE)


def merged_file(path: Path) -> Path:
    """A mechanism for blood and age as one attribute."""
    whole = Attribute.merged((SCHEMA.attributes[2], AGE))
    law = DesignedChannel.for_prior(0.4 * np.eye(6) + 0.1, (1 / 6,) * 6)
    plan = Design(Mechanism(Schema((whole,)), (Block((0,), law),)), "matrix", (None,), None)
    (path / "m.json").write_bytes(record.to_json(record.mechanism_to_plain(plan)))
    return path / "m.json"


@pytest.mark.parametrize("name", ["blood+age", "blood,age", "age,blood", " blood , age "])
def test_attributes_with_one_matrix_are_merged_in_the_matrixs_order(
    tmp_path: Path, name: str
) -> None:
    schema, found = merged_for(SCHEMA, name, merged_file(tmp_path))
    assert found == "blood+age"
    assert schema.names == ("sex", "blood+age")
    assert [part.name for part in schema.attributes[1].parts] == ["blood", "age"]
    assert schema.keep == ("region",)


def test_rows_for_several_attributes_are_in_the_order_in_which_these_are_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps((0.4 * np.eye(6) + 0.1).tolist()))
    schema, found = merged_for(SCHEMA, "age,blood", path)
    assert found == "age+blood"
    assert response_from_file(path, schema.attributes[1])[0].n_categories == (6,)


def test_a_single_attribute_or_one_that_is_merged_already_stays(tmp_path: Path) -> None:
    path = merged_file(tmp_path)
    assert merged_for(SCHEMA, "sex", path) == (SCHEMA, "sex")
    schema, name = merged_for(SCHEMA, "blood,age", path)
    assert merged_for(schema, name, path) == (schema, name)


def test_attributes_that_cannot_be_merged_are_named(tmp_path: Path) -> None:
    path = merged_file(tmp_path)
    ratio = Schema((*SCHEMA.attributes[:2], Attribute("blood", ("A", "B", "0"), ratio=2.0)))
    assert merged_for(ratio, "blood,age", path)[1] == "blood+age"
    level = Schema((*SCHEMA.attributes[:2], Attribute("blood", ("A", "B", "0"), epsilon=2.0)))
    for words, schema, names, file in (
        ("no attribute 'weight'", SCHEMA, "blood,weight", path),
        ("no attribute 'weight'", SCHEMA, "weight", tmp_path / "nowhere.json"),
        ("for 3 categories of 'sex', and it has 2", SCHEMA, "sex,age", path),
        ("'blood' has both a matrix and", level, "blood,age", path),
        (
            "'age' is released unchanged",
            Schema(SCHEMA.attributes, keep=("age",)),
            "blood,age",
            path,
        ),
    ):
        with pytest.raises(InputError, match=words):
            merged_for(schema, names, file)
