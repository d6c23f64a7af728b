"""The expected errors of a design are those that estimates turn out to have."""

import math

import numpy as np
import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import expected_error
from deniable.mechanism.published import channel_of
from deniable.schema import Attribute, Schema
from deniable.statement.expected_accuracy import (
    ExpectedAccuracy,
    Shares,
    expected_accuracy,
    expected_accuracy_of_strata,
    mean_variance,
)
from deniable.statement.strata import Designs
from marked import slow_after
from unit.dense import dense_inverse

SCHEMA = Schema.anonymous((2, 3, 5))


@pytest.mark.parametrize("method", ["kronecker", "balanced", "optimal"])
def test_variances_are_those_of_the_dense_inverse_for_even_shares(method: str) -> None:
    made = design(SCHEMA, epsilon=3, method=method)
    found = expected_accuracy(made.account)
    assert [one.attributes for one in found.shares] == [("a1",), ("a2",), ("a3",)]
    assert found.pairs is not None
    for one in (*found.shares, *found.pairs):
        inverse = dense_inverse(made.mechanism, one.attributes)
        cells = len(inverse)
        # Even shares are released evenly: Var of cell x from one record is Σ_y L(x,y)²/N − 1/N.
        expected = np.mean(np.sum(inverse**2, axis=1)) / cells - 1 / cells
        assert one.variance == pytest.approx(expected)
        assert one.cells == cells
        predicted = expected_error(Channel(made.mechanism, one.attributes), 1).mean_variance
        assert one.variance == pytest.approx(predicted)


def test_a_large_domain_does_not_outvote_the_others() -> None:
    """Failed before: the median over all cells said of 18, 2, 430 and 13 categories that nothing
    can be read."""
    made = design(Schema.anonymous((18, 2, 430, 13)), epsilon=6)
    plain = expected_accuracy(made.account).to_plain(120_000)
    assert [(one["readable"], one["cells"]) for one in plain["attributes"]] == [
        *((18, 18), (2, 2), (0, 430), (13, 13)),
    ]
    assert plain["pairs"]["tables"] == 6


def test_from_the_rows_that_are_told_on_all_is_readable() -> None:
    one = Shares(("b",), 10, 4.0)
    needed = one.readability(1).readable_from
    assert needed == 1600  # 2 √(4/n) ≤ 1/10
    assert one.readability(needed).readable == 10
    assert one.readability(needed - 1).readable == 0


def test_what_is_wiped_out_needs_no_number_of_rows() -> None:
    found = ExpectedAccuracy((Shares(("a",), 2, math.inf),), None)
    (plain,) = found.to_plain(10)["attributes"]
    assert plain["readable_from"] is plain["standard_error"] is plain["half_width"] is None
    assert plain["readable"] == 0
    with pytest.raises(InputError, match="at least 1"):
        found.to_plain(0)


def test_errors_of_strata_add_up_by_their_rows() -> None:
    schema = Schema(SCHEMA.attributes, keep=("s",))
    weak, strong = (design(schema, epsilon=e, method="kronecker") for e in (6, 2))
    both = expected_accuracy_of_strata(Designs({"x": weak, "y": strong}, "s", {"x": 300, "y": 100}))
    first, second = (
        expected_accuracy(weak.account).shares[0],
        expected_accuracy(strong.account).shares[0],
    )
    # (n_x/n)² v_x/n_x + (n_y/n)² v_y/n_y
    expected = (0.75**2 / 300 * first.variance + 0.25**2 / 100 * second.variance) ** 0.5
    assert both.shares[0].readability(400).standard_error == pytest.approx(expected)
    assert both.pairs is None


@pytest.mark.slow
def test_what_forms_are_worth_is_what_their_channel_predicts_of_shares_and_pairs() -> None:
    made = design(Schema.anonymous((16, 5, 3)), epsilon=1, method="forms")
    assert made.mechanism.forms
    assert made.mechanism.forms.sets
    found = expected_accuracy(made.account)
    assert found.pairs is not None
    assert [one.attributes for one in found.pairs] == [("a1", "a2"), ("a1", "a3"), ("a2", "a3")]
    for one in (*found.shares, *found.pairs):
        predicted = expected_error(channel_of(made.mechanism, one.attributes), 1).mean_variance
        assert one.variance == pytest.approx(predicted)
    alone = design(Schema.anonymous((16, 5, 3)), epsilon=1, method="forms", pairs=0)
    plain = expected_accuracy(alone.account).to_plain(1000)
    assert plain["pairs"] == {"tables": 3, "readable": 0}
    assert all(one["half_width"] is not None for one in plain["attributes"])


@pytest.mark.parametrize(("points", "missing"), slow_after(1, [(3, "NA"), (2, None), (5, None)]))
@pytest.mark.parametrize("method", ["kronecker", "forms"])
def test_the_error_of_a_mean_is_that_of_numbers_spread_evenly(
    points: int, missing: str | None, method: str
) -> None:
    """Against the variance of the estimate's rows, number by number, over 2,000 numbers."""
    attribute = Attribute("x", range=(2, 10), grid=points, missing=missing)
    schema = Schema((attribute, Attribute("sex", ("f", "m"))))
    mechanism = design(schema, epsilon=2, method=method).mechanism  # type: ignore[arg-type]
    channel = channel_of(mechanism, ("x",))
    numbers = (np.arange(2000) + 0.5) * 8 / 2000 + 2
    places = np.linspace(2, 10, points)
    hats = np.maximum(0, 1 - np.abs(numbers[:, None] - places) * (points - 1) / 8)
    hats = np.pad(hats, ((0, 0), (0, attribute.n_categories - points)))
    centred = np.pad(places - 6, (0, attribute.n_categories - points))
    influence = channel.inverse.transposed().apply(centred)
    squares = [float((channel.forward.apply(row) * influence**2).sum()) for row in hats]
    means = [float((channel.forward.apply(row) * influence).sum()) for row in hats]
    np.testing.assert_allclose(means, numbers - 6, atol=1e-9)
    table = np.mean(squares) - np.mean((numbers - 6) ** 2)
    assert mean_variance(mechanism, "x") == pytest.approx(table, rel=1e-5)
    whole = mean_variance(mechanism, "x", "population")
    assert whole == pytest.approx(np.mean(squares), rel=1e-5)
