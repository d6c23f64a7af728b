"""The estimated table: methods, intervals, marks, plain values and refusals."""

import json

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.shares import Method, Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import Identity, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.readability import is_readable
from deniable.schema import Schema
from unit.dense import MECHANISMS, NAMES, dense_channel

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)


def released(mechanism: Mechanism, n: int = 5000, seed: int = 1) -> Counts:
    """All attributes of a table that was drawn and randomized."""
    names = mechanism.schema.names
    matrix = dense_channel(mechanism, names)
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.full(matrix.shape[1], 2.0))
    counts = random.multinomial(n, matrix @ truth)
    return Counts.of(mechanism, counts.reshape(Channel(mechanism, names).n_outputs))


STRONG = Mechanism.of(ProductLaw.from_levels((2, 3), (4.0, 4.0)))
"""Two attributes with little noise."""


@every_mechanism
@pytest.mark.parametrize("method", ["em", "projected"])
def test_em_and_projection_are_distributions_with_the_inversions_errors(
    mechanism: Mechanism, method: Method
) -> None:
    counted, names = released(mechanism, n=300), mechanism.schema.names
    (inversion,) = Shares(names).answer(counted)
    (estimate,) = Shares(names, method=method).answer(counted)
    assert estimate.values.min() >= 0
    assert estimate.values.sum() == pytest.approx(1)
    np.testing.assert_array_equal(estimate.standard_error, inversion.standard_error)
    for mine, theirs in zip(
        estimate.confidence_interval(0.9), inversion.confidence_interval(0.9), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert estimate.converged


def test_shares_within_subgroups_add_up_to_one_with_every_method() -> None:
    counted = released(STRONG)
    for method in ("inversion", "em", "projected"):
        (estimate,) = Shares(("a1",), by=("a2",), method=method).answer(counted)
        np.testing.assert_allclose(estimate.values.sum(axis=0), 1.0)
        (joint,) = Shares(("a1", "a2"), method=method).answer(counted)
        np.testing.assert_allclose(estimate.values, joint.values / joint.values.sum(axis=0))
        assert (estimate.attributes, estimate.by) == (("a1", "a2"), ("a2",))


def test_a_cell_is_uncertain_exactly_when_it_is_not_two_errors_above_zero() -> None:
    counts = np.array([[3000, 40, 2], [1500, 3, 800]])
    (estimate,) = Shares(("a1", "a2")).answer(Counts.of(STRONG, counts))
    expected = estimate.values < 2 * estimate.standard_error
    np.testing.assert_array_equal(estimate.uncertain, expected)
    assert expected.any()
    assert not expected.all()


def test_a_share_that_cannot_be_or_whose_half_width_is_above_ten_points_is_uncertain() -> None:
    shares = np.array([1.5, 1.5, 1.05, 0.4, 0.4, 0.1, -0.2, np.nan])
    errors = np.array([0.6, 0.1, 0.04, 0.051, 0.05, 0.06, 0.01, np.nan])
    np.testing.assert_array_equal(
        ~is_readable(shares, errors), [True, True, False, True, False, True, True, True]
    )
    # A hundred people and strong noise: nothing can be read, whatever the estimate.
    law = ProductLaw.from_levels((2, 3, 2), (0.5, 0.5, 0.5))
    mechanism = Mechanism.of(law)
    counts = np.zeros((2, 3, 2))
    counts[0, 0, 0], counts[1, 2, 1] = 60, 40
    (estimate,) = Shares(("a1", "a2", "a3")).answer(Counts.of(mechanism, counts))
    assert estimate.values.max() > 1.5
    assert estimate.values.max() > 2 * estimate.standard_error.flat[estimate.values.argmax()]
    assert estimate.uncertain.all()


def test_a_subgroup_of_uncertain_size_marks_all_its_shares() -> None:
    counts = np.array([[3000, 70, 700], [1500, 40, 800]])
    (estimate,) = Shares(("a1",), by=("a2",)).answer(Counts.of(STRONG, counts))
    (size,) = Shares(("a2",)).answer(Counts.of(STRONG, counts.sum(axis=0)))
    np.testing.assert_array_equal(size.uncertain, [False, True, False])
    np.testing.assert_array_equal(estimate.uncertain, [[False, True, False]] * 2)


def test_shares_of_a_subgroup_without_people_are_null_in_strict_json() -> None:
    # Fewer rows show a2 = 1 than lies alone would give: its estimated size is negative.
    counts = np.array([[3000, 0, 700], [1500, 0, 800]])
    for method in ("inversion", "em", "projected"):
        (estimate,) = Shares(("a1",), by=("a2",), method=method).answer(Counts.of(STRONG, counts))
        plain = json.loads(json.dumps(estimate.to_plain(), allow_nan=False))
        missing = [cell for cell in plain["cells"] if cell["values"][1] == "1"]
        assert len(missing) == 2
        for cell in missing:
            assert cell["standard_error"] is cell["low"] is cell["high"] is None
            assert cell["uncertain"] is True
        others = [cell for cell in plain["cells"] if cell["values"][1] != "1"]
        assert all(isinstance(cell["estimate"], float) for cell in others)
        assert not any(cell["uncertain"] for cell in others)


def test_plain_values_keep_the_contract_and_say_what_was_estimated() -> None:
    counted = released(STRONG)
    (estimate,) = Shares(("a1",), by=("a2",), target="population").answer(counted)
    plain = json.loads(json.dumps(estimate.to_plain(0.9), allow_nan=False))
    assert plain["attributes"] == ["a1", "a2"]
    assert plain["by"] == ["a2"]
    assert plain["interval_method"] == "normal"
    assert Shares(("a1", "a2")).answer(counted)[0].to_plain()["interval_method"] == "score"
    assert plain["n"] == 5000
    assert plain["condition"] == pytest.approx(estimate.condition)
    assert (plain["target"], plain["method"], plain["level"]) == ("population", "inversion", 0.9)
    assert plain["converged"] is True
    low, high = estimate.confidence_interval(0.9)
    assert len(plain["cells"]) == 6
    # Strict encoders take no numbers of numpy's.
    assert {type(cell["estimate"]) for cell in estimate.to_plain()["cells"]} == {float}
    for cell in plain["cells"]:
        index = tuple(int(value) for value in cell["values"])
        assert cell["estimate"] == estimate.values[index]
        assert cell["standard_error"] == estimate.standard_error[index]
        assert (cell["low"], cell["high"]) == (low[index], high[index])
        assert cell["uncertain"] == estimate.uncertain[index]


def with_kept_column() -> Mechanism:
    schema = Schema.anonymous((2, 3))
    return Mechanism(
        Schema(schema.attributes, keep=("a2", "region")),
        (Block((0,), ProductLaw.from_levels((2,), (1.0,))), Block((1,), Identity((3,)))),
    )


def test_a_group_of_selected_rows_is_named_in_the_result() -> None:
    mechanism = with_kept_column()
    counts = Tabulation.from_counts(np.array([40, 60]))
    (estimate,) = Shares(("a1",)).answer(Counts.of(mechanism, counts, [("region", "south")]))
    assert estimate.to_plain()["group"] == {"region": "south"}
    assert estimate.table()[0]["region"] == "south"
    with pytest.raises(InputError, match="cannot be selected by 'a1'"):
        Shares(("a1",)).answer(Counts.of(mechanism, counts, [("a1", "0")]))


def test_subgroups_by_a_kept_column_are_the_same_as_selecting_its_rows() -> None:
    mechanism = with_kept_column()
    counts = np.array([[40, 50, 600], [60, 70, 500]])
    (by,) = Shares(("a1",), by=("a2",)).answer(Counts.of(mechanism, counts))
    for value in range(3):
        (alone,) = Shares(("a1",)).answer(Counts.of(mechanism, counts[:, value]))
        np.testing.assert_allclose(by.values[:, value], alone.values, rtol=1e-12)
        np.testing.assert_allclose(by.standard_error[:, value], alone.standard_error, rtol=1e-9)


def test_what_cannot_be_asked_is_refused_in_one_sentence() -> None:
    counts = Tabulation.from_counts(np.ones((2, 3)))
    mechanism = STRONG
    with pytest.raises(InputError, match="'a1' is named twice"):
        Shares(("a1",), by=("a1",)).answer(Counts.of(mechanism, counts))
    (estimate,) = Shares(("a1", "a2")).answer(Counts.of(mechanism, counts))
    for level in (0, 1, 95, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            estimate.confidence_interval(level)
    with pytest.raises(InputError, match="a number between 0 and 1, not '95 %'"):
        estimate.confidence_interval("95 %")  # type: ignore[arg-type]


def test_a_lost_component_is_refused_whatever_the_method() -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((2, 2), (1e-4, 1e-4)))
    counts = Tabulation.from_counts(np.full((2, 2), 1000))
    for method in ("inversion", "em", "projected"):
        with pytest.raises(InputError, match="'a1', 'a2' cannot be estimated"):
            Shares(("a1", "a2"), method=method).answer(Counts.of(mechanism, counts))
    assert Shares(("a1",)).answer(Counts.of(mechanism, counts.margin([0])))[0].uncertain.all()
