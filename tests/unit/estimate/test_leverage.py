"""How far liars can move a share: against the largest entries of the dense inverse."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable
from deniable.errors import InputError
from deniable.estimate.leverage import Leverage, moves
from deniable.estimate.source import open_release
from deniable.laws import ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.strata import Strata
from deniable.schema import Schema
from unit.dense import MECHANISMS, NAMES, dense_inverse, square_matrix_among_blocks
from unit.estimate import releases
from unit.mechanism.test_published import BROAD, ONE, dense


def table_of(rows: dict[str, Any]) -> Any:
    return pa.table({name: [str(value) for value in column] for name, column in rows.items()})


ADULT = (7, 16, 7, 14, 6, 5, 2, 41, 2)


@pytest.mark.parametrize("names", [("a1",), ("a1", "a2")])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_a_row_moves_a_share_by_what_it_adds(mechanism: Mechanism, names: tuple[str, ...]) -> None:
    channel = Channel(mechanism, names)
    found, inverse = moves(channel), dense_inverse(mechanism, names)
    shape = channel.n_categories
    most, least = inverse.max(axis=1).reshape(shape), inverse.min(axis=1).reshape(shape)
    assert np.allclose(np.broadcast_to(found.up, shape), most - 1 / inverse.shape[0])
    assert np.allclose(np.broadcast_to(found.span, shape), most - least)
    assert np.array_equal(found.up, found.up_chosen)


def test_rows_with_another_kept_value_add_nothing_to_a_cell() -> None:
    mechanism = square_matrix_among_blocks()
    found = moves(Channel(mechanism, ("a1", "a3")))
    inverse = dense_inverse(mechanism, ("a1", "a3"))
    assert np.allclose(np.broadcast_to(found.span, (2, 2)).ravel(), np.ptp(inverse, axis=1))
    assert np.allclose(moves(Channel(mechanism, ("a3",))).span, 1.0)


@pytest.mark.parametrize("mechanism", [ONE, BROAD], ids=["single", "sets"])
@pytest.mark.parametrize("names", [("a1",), ("a2",)])
def test_under_forms_the_mean_form_counts_if_assigned_and_the_worst_if_chosen(
    mechanism: Mechanism, names: tuple[str, ...]
) -> None:
    channel = PublishedChannel(mechanism, names)
    found, (_, inverse) = moves(channel), dense(channel)
    ends = np.cumsum([int(np.prod(shape)) for shape in channel.shapes])[:-1]
    pieces = np.split(inverse, ends, axis=1)
    even, fractions = 1 / len(inverse), np.array(channel.rows)
    most = np.array([piece.max(axis=1) for piece in pieces])
    least = np.array([piece.min(axis=1) for piece in pieces])
    shape = (len(inverse),)
    assert np.allclose(np.broadcast_to(found.up, shape), fractions @ most - even)
    assert np.allclose(np.broadcast_to(found.span, shape), fractions @ (most - least))
    assert np.allclose(np.broadcast_to(found.up_chosen, shape), most.max(axis=0) - even)
    spans = most.max(axis=0) - least.min(axis=0)
    assert np.allclose(np.broadcast_to(found.span_chosen, shape), spans)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("method", ["kronecker", "balanced", "forms"])
def test_no_range_is_below_the_floor_and_warner_is_at_it(epsilon: float, method: str) -> None:
    floor = (np.exp(epsilon) + 1) / (np.exp(epsilon) - 1)
    plan = deniable.design(Schema.anonymous((2, 3, 6)), epsilon=epsilon, method=method)
    for name in ("a1", "a2", "a3"):
        assert moves(channel_of(plan.mechanism, (name,))).span.min() >= floor * (1 - 1e-9)
    warner = Mechanism.of(ProductLaw.from_levels((2,), (epsilon,)))
    assert moves(Channel(warner, ("a1",))).span.max() == pytest.approx(floor, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "assigned", "chosen"),
    [
        ("kronecker", 12, 12),
        pytest.param("balanced", 3.5, 3.5, marks=pytest.mark.slow),
        pytest.param("forms", 1.3, 8.1, marks=pytest.mark.slow),
    ],
)
def test_liars_on_adult_move_a_median_share_as_far_as_is_said(
    method: str, assigned: float, chosen: float
) -> None:
    plan = deniable.design(Schema.anonymous(ADULT), epsilon=4, method=method)
    found = [moves(channel_of(plan.mechanism, (name,))) for name in plan.mechanism.schema.names]
    assert np.median([of.up.max() for of in found]) == pytest.approx(assigned, rel=0.1)
    assert np.median([of.up_chosen.max() for of in found]) == pytest.approx(chosen, rel=0.1)


def test_the_estimates_stand_beside_their_leverage_and_strata_count_by_their_rows() -> None:
    columns = releases.rows()
    rows = table_of(columns)
    one = open_release(rows, Strata.one(releases.mechanism()))
    (answer,) = Leverage(("smokes",)).run(one)
    row = answer.table()[1]
    assert row["smokes"] == "yes"
    assert set(row) == {"smokes", "estimate", "standard_error", "moved", "range"}
    assert row["moved"] == pytest.approx(0.005 / np.tanh(1.5))
    towns, mechanisms = np.array(columns["town"]), releases.by_town()
    (both,) = Leverage(("smokes",)).run(open_release(rows, mechanisms))
    shares = {town: np.mean(towns == town) for town in "ab"}
    expected = 0.005 * (shares["a"] / np.tanh(1.5) + shares["b"] / np.tanh(0.5))
    assert both.table()[1]["moved"] == pytest.approx(expected)
    assert both.floor == pytest.approx(1 / np.tanh(2.5))
    assert both.to_plain()["least_range"] == pytest.approx(0.01 * both.floor)
    assert "at least 1.01 %" in both.remarks()[0]
    assert "are not distinguishable" in both.remarks()[1]
    assert "one liar in a hundred" in both.caption()


def test_under_forms_the_answer_has_both_kinds_of_liars() -> None:
    plan = deniable.design(Schema.anonymous((3, 4)), epsilon=2, method="forms")
    table = pa.table({"a1": ["0", "1"] * 500, "a2": ["1", "3"] * 500})
    found = deniable.open(deniable.randomize(table, plan), plan).leverage("a1")[0]
    assert found.table()[0]["moved_chosen"] > found.table()[0]["moved"]
    assert "can choose a form" in found.remarks()[0]


def test_questions_that_leverage_does_not_answer_are_refused() -> None:
    release = open_release(table_of(releases.rows()), Strata.one(releases.mechanism()))
    with pytest.raises(InputError, match="takes no weights"):
        Leverage(("smokes",), weights="weight")
    with pytest.raises(InputError, match="within subgroups of 'sex', an attribute"):
        Leverage(("smokes",), by=("sex",)).run(release)
