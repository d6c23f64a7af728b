"""The instructions: what they tell people to do gives the estimator's answer."""

import ast
import re
import shlex
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.design.design import design
from deniable.design.record import mechanism_from_plain
from deniable.estimate.shares import estimate_table
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.report.contents import read_contents
from deniable.report.estimating import invert, python_example, worked_example
from deniable.report.page import render_report
from deniable.schema import Schema
from unit.report.release_records import (
    attribute,
    joint_law,
    kept_columns,
    matrix_with_more_outputs,
    one_attribute,
    release_record,
    sixty_attributes,
    three_attributes,
    visible,
)


def shown(record: dict[str, Any]) -> str:
    return visible(render_report(record))


@given(
    phi=st.floats(1e-4, 1) | st.floats(-0.5, -1e-4),
    n_categories=st.integers(2, 50),
)
def test_the_worked_example_comes_out_at_its_printed_result(phi: float, n_categories: int) -> None:
    example = worked_example(phi, n_categories)
    f, printed_phi = float(example.observed), float(example.attenuation)
    by_hand = (f - (1 - printed_phi) / n_categories) / printed_phi
    assert by_hand == pytest.approx(float(example.estimate), abs=6e-4)
    assert by_hand == pytest.approx(0.3, abs=1e-3)


def test_the_formula_for_one_attribute_gives_the_estimators_answer() -> None:
    record = three_attributes()
    mechanism = mechanism_from_plain(record["mechanism"]).mechanism
    rng = np.random.default_rng(5)
    for row in record["mechanism"]["attributes"]:
        counts = rng.integers(50, 500, row["categories"]).astype(float)
        estimated = estimate_table(
            Counts.of(mechanism, Tabulation.from_counts(counts)), [row["name"]]
        )
        phi = record["attenuation"]["single"][row["name"]]
        by_hand = [invert(f, phi, row["categories"]) for f in counts / counts.sum()]
        np.testing.assert_allclose(by_hand, estimated.values, rtol=0, atol=1e-12)


def test_the_formula_for_two_attributes_gives_the_estimators_answer() -> None:
    record = release_record(joint_law())
    mechanism = mechanism_from_plain(record["mechanism"]).mechanism
    categories = {a["name"]: a["categories"] for a in record["mechanism"]["attributes"]}
    tried = 0
    for pair in record["attenuation"]["pairs"]:
        if abs(pair["attenuation"]) < 1e-9:  # this law loses the pair of b and c
            continue
        tried += 1
        names = pair["attributes"]
        a1, a2 = (categories[name] for name in names)
        counts = np.random.default_rng(7).integers(50, 500, (a1, a2)).astype(float)
        f = counts / counts.sum()
        f1, f2 = f.sum(axis=1, keepdims=True), f.sum(axis=0, keepdims=True)
        single = record["attenuation"]["single"]
        p1, p2 = invert(f1, single[names[0]], a1), invert(f2, single[names[1]], a2)
        interaction = (f - f1 / a2 - f2 / a1 + 1 / (a1 * a2)) / pair["attenuation"]
        by_hand = p1 / a2 + p2 / a1 - 1 / (a1 * a2) + interaction
        estimated = estimate_table(Counts.of(mechanism, Tabulation.from_counts(counts)), names)
        np.testing.assert_allclose(by_hand, estimated.values, rtol=0, atol=1e-10)
    assert tried == 2


def test_the_standard_error_by_hand_is_that_for_a_population() -> None:
    record = three_attributes()
    mechanism = mechanism_from_plain(record["mechanism"]).mechanism
    counts = np.array([7000.0, 9000.0, 6272.0])
    estimated = estimate_table(
        Counts.of(mechanism, Tabulation.from_counts(counts)), ["b"], target="population"
    )
    f, phi = counts / counts.sum(), record["attenuation"]["single"]["b"]
    by_hand = np.sqrt(f * (1 - f) / counts.sum()) / phi
    np.testing.assert_allclose(by_hand, estimated.standard_error, rtol=1e-9)


def test_the_page_prints_the_records_attenuations_in_its_examples() -> None:
    record = release_record(joint_law())
    text = shown(record)
    assert "a has a = 2 and φ = 0.333333." in text
    assert "For a and b, φ = 0.166667." in text


def test_the_command_names_the_pair_that_comes_through_best() -> None:
    assert "deniable estimate . --of a,b" in shown(release_record(joint_law()))
    assert "deniable estimate . --of sex" in shown(one_attribute())
    # region is released as it is: it is no example of a randomized attribute.
    assert "deniable estimate . --of hours,race" in shown(kept_columns())


def test_commands_survive_a_shell_and_leave_out_names_that_a_list_cannot_hold() -> None:
    schema = Schema((attribute("it's a; b"), attribute("c $HOME"), attribute("d")))
    record = release_record(design(schema, attribute_epsilon=[2, 2, 0.1], method="kronecker"))
    text = shown(record)
    (command,) = re.findall(r"deniable estimate .*?(?= or in Python)", text)
    assert shlex.split(command) == ["deniable", "estimate", ".", "--of", "it's a; b,c $HOME"]
    listed = Schema((attribute("a,b"), attribute("--c")))
    text = shown(release_record(design(listed, epsilon=2.0, method="kronecker")))
    assert "deniable estimate" not in text
    assert "deniable inspect" not in text


def test_the_python_example_is_two_lines_of_python_whatever_the_names() -> None:
    names = ["it's", 'a "name"', "line\nbreak", "back\\slash"]
    lines = python_example(read_contents(three_attributes()), names)
    assert len(lines.splitlines()) == 2
    tree = ast.parse(lines)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert set(texts) == {"data.csv", ".", *names}


def test_raw_cross_tables_of_a_joint_law_are_warned_of() -> None:
    assert "associations that are not there" in shown(release_record(joint_law()))
    product = shown(three_attributes())
    assert "associations that are not there" not in product
    assert "associations weaker than they are" in product


def test_pairs_that_the_law_loses_are_named() -> None:
    text = shown(release_record(joint_law()))
    assert "1 of 3 pairs come through with less than 10 %" in text
    assert "b × c: 0.0 % of it" in text
    assert "Joint tables that will be poor" not in shown(three_attributes())


def test_unlisted_pairs_are_explained_according_to_the_law() -> None:
    assert "is the product of the two" in shown(sixty_attributes())
    record = release_record(joint_law())
    record["attenuation"]["pairs"] = None
    assert "Use the software for joint tables." in shown(record)


def test_a_response_matrix_has_its_own_instruction_and_no_attenuation() -> None:
    text = shown(matrix_with_more_outputs())
    assert "By hand: a response matrix" in text
    assert "By hand: one attribute" not in text
    assert "deniable estimate . --of test" in text
    assert "By hand: a response matrix" not in shown(three_attributes())
