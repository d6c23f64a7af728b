"""What would make a release tell more: every figure against a design made for it."""

import math

import pytest

import deniable
from deniable.design.account import Design
from deniable.design.alternatives import TWO_POINTS, alternatives
from deniable.design.expected_accuracy import expected_accuracy
from deniable.schema import Schema

SCHEMA = Schema.anonymous((5, 5, 3, 2, 2, 2))


def again(schema: Schema, epsilon: float, method: str | None) -> Design:
    return deniable.design(schema, epsilon=epsilon, method=method)


def error(made: Design, rows: int, pair: bool = False) -> float:
    accuracy = expected_accuracy(made.account)
    shares = accuracy.median_pair if pair else accuracy.median
    assert shares is not None
    return math.sqrt(shares.variance / rows)


def test_of_what_can_be_read_the_total_for_two_points_is_told():
    made = again(SCHEMA, 4.0, None)
    told = alternatives(made, 20_000, {}, again)
    assert (told["of"], told["ways"]) == (None, [])
    assert 0.94 <= error(again(SCHEMA, told["two_points"], None), 20_000) / TWO_POINTS <= 1
    less = again(SCHEMA, 0.9 * told["two_points"], None)
    assert error(less, 20_000) > TWO_POINTS


@pytest.mark.parametrize(("epsilon", "rows", "of"), [(1.5, 600, "share"), (3.0, 1000, "pair")])
def test_where_nothing_can_be_read_every_way_has_the_figures_of_its_design(epsilon, rows, of):
    importance = {"a1": 5.0}
    told = alternatives(again(SCHEMA, epsilon, None), rows, importance, again)
    assert told["of"] == of
    assert told["two_points"] is None
    ways = {way["kind"]: way for way in told["ways"]}
    assert set(ways) == {"forms", "fewer", "epsilon"}
    order = [(not way["readable"], ["forms", "fewer", "epsilon"].index(way["kind"]))
             for way in told["ways"]]  # fmt: skip
    assert order == sorted(order)
    pair = of == "pair"
    # a1 matters most, so it stays; of the others those of many categories cost most.
    fewer = ways["fewer"]
    assert fewer["left_out"] == ["a2", "a3", "a4"][: len(fewer["left_out"])]
    left = Schema(tuple(a for a in SCHEMA.attributes if a.name not in fewer["left_out"]))
    assert fewer["standard_error"] == pytest.approx(error(again(left, epsilon, None), rows, pair))
    larger = again(SCHEMA, ways["epsilon"]["epsilon"], None)
    assert ways["epsilon"]["standard_error"] == pytest.approx(error(larger, rows, pair), rel=1e-6)
    assert ways["epsilon"]["readable"]
    forms = error(again(SCHEMA, epsilon, "forms"), rows, pair)
    assert ways["forms"]["standard_error"] == pytest.approx(forms, rel=0.08)


def test_where_more_than_a_total_was_asked_for_only_forms_are_told():
    told = alternatives(again(SCHEMA, 1.0, None), 300, {}, None)
    assert told["forms_rows"] > 1.1
    assert (told["two_points"], told["of"], told["ways"]) == (None, None, [])


def test_no_total_is_told_where_none_is_found():
    made = again(Schema.anonymous((2, 2)), 1.0, None)
    assert alternatives(made, 10**9, {}, lambda *_: made)["two_points"] is None
