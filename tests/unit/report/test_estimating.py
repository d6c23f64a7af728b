"""The instructions: what they tell people to do gives the estimator's answer."""

import ast
import re
import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimate.inference import Inference
from deniable.estimate.tabulate import Counts
from deniable.report.contents import read_contents
from deniable.report.estimating import invert, python_example, worked_example
from deniable.report.page import render_report
from deniable.statement.account import Design
from unit.report.release_records import (
    independent,
    joint,
    joint_law,
    kept_columns,
    matrix_with_more_outputs,
    one_attribute,
    release_record,
    sixty_attributes,
    three,
    three_attributes,
    visible,
)


@given(phi=st.floats(1e-4, 1) | st.floats(-0.5, -1e-4), n_categories=st.integers(2, 50))
def test_the_worked_example_comes_out_at_its_printed_result(phi: float, n_categories: int) -> None:
    example = worked_example(phi, n_categories)
    f, printed_phi = float(example.observed), float(example.attenuation)
    by_hand = (f - (1 - printed_phi) / n_categories) / printed_phi
    assert by_hand == pytest.approx(float(example.estimate), abs=6e-4)
    assert by_hand == pytest.approx(0.3, abs=1e-3)


def estimated(made: Design, names: list[str], counts: np.ndarray) -> Inference:
    tabulated = Counts.of(made.mechanism, counts)
    return Inference(tabulated, tuple(names), "population")


@pytest.mark.parametrize(("name", "size"), [("a", 2), ("b", 3), ("c", 5)])
def test_the_formulas_for_one_attribute_give_the_estimators_answer(name: str, size: int) -> None:
    phi = three_attributes()["attenuation"]["single"][name]
    counts = np.random.default_rng(5).integers(3000, 3300, size).astype(float)
    found, n = estimated(three(), [name], counts), int(counts.sum())
    f = counts / n
    by_hand = [invert(share, phi, size) for share in f]
    np.testing.assert_allclose(by_hand, found.values, rtol=0, atol=1e-12)
    by_hand = np.sqrt(f * (1 - f) / n) / phi
    np.testing.assert_allclose(by_hand, found.standard_error, rtol=1e-9)
    example = worked_example(phi, size)
    f, phi = float(example.observed), float(example.attenuation)
    assert example.standard_error(n) == pytest.approx((f * (1 - f) / n) ** 0.5 / phi)


def test_the_formula_for_two_attributes_gives_the_estimators_answer() -> None:
    record, sizes = joint(), {"a": 2, "b": 3, "c": 5}
    single = record["attenuation"]["single"]
    pairs = [p for p in record["attenuation"]["pairs"] if abs(p["attenuation"]) > 1e-9]
    assert len(pairs) == 2  # this law loses the pair of b and c
    for pair in pairs:
        names = pair["attributes"]
        a1, a2 = (sizes[name] for name in names)
        counts = np.random.default_rng(7).integers(50, 500, (a1, a2)).astype(float)
        f = counts / counts.sum()
        f1, f2 = f.sum(axis=1, keepdims=True), f.sum(axis=0, keepdims=True)
        p1, p2 = invert(f1, single[names[0]], a1), invert(f2, single[names[1]], a2)
        interaction = (f - f1 / a2 - f2 / a1 + 1 / (a1 * a2)) / pair["attenuation"]
        by_hand = p1 / a2 + p2 / a1 - 1 / (a1 * a2) + interaction
        found = estimated(joint_law(), names, counts).values
        np.testing.assert_allclose(by_hand, found, rtol=0, atol=1e-10)


def odd_names(*names: str) -> Callable[[], dict[str, Any]]:
    levels = [2.0, 2.0, 0.1][: len(names)]
    return lambda: release_record(independent("", dict.fromkeys(names, 2), levels))


def without_pairs() -> dict[str, Any]:
    record = joint()
    record["attenuation"]["pairs"] = None
    return record


SAYS: list[tuple[Callable[[], dict[str, Any]], list[str], list[str]]] = [
    (
        joint,
        [
            "a has a = 2 and φ = 0.333333.",
            "For a and b, φ = 0.166667.",
            "deniable estimate . --of a,b",  # the pair that comes through best
            "false associations",
            "1 of 3 pairs have an attenuation below 10 %",
            "b × c: 0.0 %",
        ],
        [],
    ),
    (one_attribute, ["deniable estimate . --of sex"], []),
    # region is released as it is: it is no example of a randomized attribute.
    (kept_columns, ["deniable estimate . --of hours,race"], []),
    (odd_names("a,b", "--c"), [], ["deniable estimate", "deniable inspect"]),
    (
        three_attributes,
        ["associations weaker than they are"],
        ["false associations", "Inaccurate joint tables", "a response matrix"],
    ),
    (sixty_attributes, ["is the product of the two"], []),
    (without_pairs, ["Use the software for joint tables."], []),
    (
        matrix_with_more_outputs,
        ["By hand: a response matrix", "deniable estimate . --of test"],
        ["By hand: one attribute"],
    ),
]


@pytest.mark.parametrize(("make", "said", "unsaid"), SAYS)
def test_the_instructions_are_those_of_the_law(
    make: Callable[[], dict[str, Any]], said: list[str], unsaid: list[str]
) -> None:
    text = visible(render_report(make()))
    assert [sentence for sentence in said if sentence not in text] == []
    assert [sentence for sentence in unsaid if sentence in text] == []


def test_what_is_to_be_pasted_survives_a_shell_and_python() -> None:
    text = visible(render_report(odd_names("it's a; b", "c $HOME", "d")()))
    (command,) = re.findall(r"deniable estimate .*?(?= or in Python)", text)
    assert shlex.split(command) == ["deniable", "estimate", ".", "--of", "it's a; b,c $HOME"]
    names = ["it's", 'a "name"', "line\nbreak", "back\\slash"]
    lines = python_example(read_contents(one_attribute()), names)
    assert len(lines.splitlines()) == 2
    tree = ast.parse(lines)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert set(texts) == {"data.csv", ".", *names}
