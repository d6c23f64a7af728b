"""What is expected of a table is what comes out if every output is enumerated."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.design.matrices import with_responses
from deniable.errors import InputError
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target, expected_error
from deniable.mechanism.published import channel_of
from deniable.mechanism.readability import Readability
from deniable.schema import Attribute, Schema
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import expected_accuracy
from deniable.statement.expected_tables import expected_tables, sampling_half_width
from unit.dense import (
    MECHANISMS,
    NAMES,
    anonymous,
    dense_channel,
    dense_inverse,
    random_matrix,
)

ROWS = 400


def of(mechanism: Mechanism) -> Design:
    return Design(mechanism, "", (None,) * len(mechanism.schema.names), None)


def enumerated(
    channel: NDArray[np.float64], inverse: NDArray[np.float64], truth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ_y L(x, y)² Pr[y] − π(x) of every cell, from one record."""
    return np.asarray(inverse**2 @ (channel @ truth) - truth)


def error(variances: NDArray[np.float64]) -> float:
    return math.sqrt(float(variances.mean()) / ROWS)


def readable(variances: NDArray[np.float64], shares: NDArray[np.float64]) -> int:
    half = 2 * np.sqrt(variances / ROWS)
    return int(((half <= 0.1) & (half <= shares * (1 + 1e-12))).sum())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_errors_are_those_of_all_outputs(mechanism: Mechanism) -> None:
    names = [mechanism.schema.names[i] for i in mechanism.schema.protected]
    rare = {n: mechanism.schema.attributes[mechanism.schema.position(n)] for n in names[:2]}
    typed = {n: np.arange(1, a.n_categories + 1) / math.comb(a.n_categories + 1, 2)
             for n, a in rare.items()}  # fmt: skip
    tables = [(name,) for name in names] + list(combinations(names, 2))
    made = of(mechanism)
    for assume in ("uniform", "worst", {n: v.tolist() for n, v in typed.items()}):
        for names_of, found in zip(
            tables, expected_tables(made, tables, ROWS, assume), strict=True
        ):
            channel = dense_channel(mechanism, names_of)
            inverse = dense_inverse(mechanism, names_of)
            cells = channel.shape[1]
            assert found.cells == cells
            if assume == "worst":  # linear in the truth: at a table of one cell
                points = np.array([enumerated(channel, inverse, x) for x in np.eye(cells)])
                largest = np.full(cells, points.max())
                assert found.standard_error == pytest.approx(error(largest))
                assert found.readable == readable(largest, np.full(cells, 1 / cells))
                continue
            truth = np.ones(1)
            for name in names_of:
                n = mechanism.schema.n_categories[mechanism.schema.position(name)]
                even = np.full(n, 1 / n)
                truth = np.kron(truth, even if assume == "uniform" else typed.get(name, even))
            variances = enumerated(channel, inverse, truth)
            assert found.standard_error == pytest.approx(error(variances))
            assert found.readable == readable(variances, truth)


@pytest.mark.parametrize("names", [("a1",), ("a2", "a1"), ("a3", "a2")])
def test_under_forms_too_every_answer_is_counted(names: tuple[str, ...]) -> None:
    made = design(Schema.anonymous((16, 2, 3)), epsilon=3, method="forms")
    channel = channel_of(made.mechanism, names)
    shape = channel.n_categories
    (outputs,) = channel.n_outputs
    inverse = np.array([channel.inverse.apply(one).ravel() for one in np.eye(outputs)]).T
    share = np.array([0.9, 0.1])
    truth = np.ones(())
    for name, n in zip(names, shape, strict=True):
        truth = np.multiply.outer(truth, share if name == "a2" else np.full(n, 1 / n))
    released = channel.forward.apply(truth)
    variances = inverse**2 @ released - truth.ravel()
    (found,) = expected_tables(made, [names], ROWS, {"a2": share.tolist()})
    assert found.standard_error == pytest.approx(error(variances))
    assert found.readable == readable(variances, truth.ravel())
    # Under pattern laws the mean square error does not depend on the truth.
    (even,) = expected_tables(made, [names], ROWS)
    assert even.standard_error == pytest.approx(found.standard_error)


@pytest.mark.parametrize("target", ["table", "population"])
def test_even_shares_are_those_that_a_design_is_said_to_have(target: Target) -> None:
    made = design(Schema.anonymous((2, 3, 5)), epsilon=2)
    expected = expected_accuracy(made.account)
    assert expected.pairs is not None
    both = (*expected.shares, *expected.pairs)
    found = expected_tables(made, [one.attributes for one in both], ROWS, target=target)
    assert found == tuple(one.readability(ROWS, target) for one in both)
    plain = expected.to_plain(ROWS, target)
    assert plain["attributes"] == [table.to_plain() for table in found[:3]]
    assert plain["pairs"] == {"tables": 3, "readable": sum(t.is_readable for t in found[3:])}


@pytest.mark.parametrize("assume", ["uniform", "worst", {"a2": [0.7, 0.2, 0.1]}])
def test_sampling_adds_what_a_table_drawn_at_random_varies(assume: Any) -> None:
    """The unbiased estimate of a share of a population is that of the table's share, which varies
    by p(1 − p)/n around it."""
    made = design(Schema.anonymous((2, 3)), epsilon=2)
    for names in ("a2", "a1,a2"):
        (table,) = expected_tables(made, [names], ROWS, assume)
        (population,) = expected_tables(made, [names], ROWS, assume, "population")
        alone = sampling_half_width(made.mechanism.schema, names, ROWS, assume) / 1.959964
        assert table.standard_error is not None
        assert population.standard_error is not None
        both = math.hypot(table.standard_error, alone)
        if assume == "worst":  # the shares with the largest errors of either kind are not the same
            assert table.standard_error <= population.standard_error <= both * (1 + 1e-6)
        else:
            assert population.standard_error == pytest.approx(both)
    assert sampling_half_width(Schema.anonymous((2,)), "a1", 800, "uniform") == pytest.approx(
        0.0346, abs=1e-4
    )


def test_parts_of_a_merged_attribute_have_tables() -> None:
    parts = (Attribute("a", ("0", "1")), Attribute("b", ("0", "1", "2")))
    schema = Schema((Attribute.merged(parts), Attribute("c", ("0", "1"))))
    made = design(schema, epsilon=4)
    whole, part = expected_tables(made, ["a+b", "b,c"], ROWS)
    assert (whole.cells, part.cells) == (6, 6)
    law = random_matrix(6, 6, 1)
    by_matrix = with_responses(Schema((schema.attributes[0],)), None, {"a+b": law})
    for name, sums, truth in (
        ("a", np.kron(np.eye(2), np.ones(3)), np.array([0.8, 0.2])),
        ("b", np.kron(np.ones(2), np.eye(3)), np.array([0.6, 0.3, 0.1])),
    ):
        of_whole = np.kron(truth, np.full(3, 1 / 3)) if name == "a" else np.kron([0.5, 0.5], truth)
        left = sums @ np.linalg.inv(law.matrix())
        variances = left**2 @ law.matrix() @ of_whole - truth
        (found,) = expected_tables(by_matrix, [name], ROWS, {name: truth.tolist()})
        assert found.standard_error == pytest.approx(error(variances))
    (pair,) = expected_tables(by_matrix, ["b,a"], ROWS, {"b": [0.6, 0.3, 0.1]})
    truth = np.kron([0.5, 0.5], [0.6, 0.3, 0.1])
    variances = enumerated(law.matrix(), np.linalg.inv(law.matrix()), truth)
    assert pair.standard_error == pytest.approx(error(variances))


def test_what_is_wiped_out_has_no_error_and_no_number_of_rows() -> None:
    made = design(Schema.anonymous((2, 3, 4, 5)), epsilon=1, method="forms", pairs=0)
    lost = expected_tables(made, ["a2,a4"], ROWS)[0]
    assert lost.standard_error is lost.half_width is lost.rows_for(0.02) is None
    assert (lost.readable, lost.cells) == (0, 15)
    for assume in ("worst", {"a2": [0.2, 0.3, 0.5]}):
        assert expected_tables(made, ["a2,a4"], ROWS, assume) == (lost,)


def test_rows_reach_a_half_width() -> None:
    table = Readability(("a",), 2, 2, 0.02, 1000, "table")
    assert table.half_width == pytest.approx(0.0392, abs=1e-4)
    assert table.rows_for(0.0392) == pytest.approx(1000, abs=1)
    assert table.to_plain()["half_width"] == table.half_width


@pytest.mark.slow
def test_every_pair_of_a_hundred_attributes_is_looked_at_at_once() -> None:
    made = design(Schema.anonymous((2, 3, 4, 5) * 25), epsilon=8, method="kronecker")
    names = made.mechanism.schema.names
    found = expected_tables(made, list(combinations(names, 2)), 10**6)
    assert len(found) == 4950
    assert_same_by_channel(made, names[-2:], found[-1])


def assert_same_by_channel(made: Design, names: Sequence[str], found: Readability) -> None:
    predicted = expected_error(channel_of(made.mechanism, names), found.n_records)
    assert found.standard_error == pytest.approx(predicted.uniform)


@pytest.mark.slow
def test_pairs_under_a_law_of_votes_are_what_its_channel_predicts() -> None:
    made = design(Schema.anonymous((2,) * 20), epsilon=4, method="optimal")
    assert isinstance(made.mechanism.blocks[0].law, VoteLaw)
    for names in (("a3", "a8"), ("a20", "a19")):
        assert_same_by_channel(made, names, *expected_tables(made, [names], ROWS))


def test_attributes_in_blocks_apart_are_told_apart() -> None:
    mechanism = anonymous((2, 3, 2, 2), *MECHANISMS[4].blocks)
    made = of(mechanism)
    (found,) = expected_tables(made, ["a1,a2"], ROWS)
    inverse = dense_inverse(mechanism, ("a1", "a2"))
    channel = dense_channel(mechanism, ("a1", "a2"))
    assert found.standard_error == pytest.approx(
        error(enumerated(channel, inverse, np.full(6, 1 / 6)))
    )


@pytest.mark.parametrize(
    ("tables", "rows", "assume", "words"),
    [
        (["a9"], 10, "uniform", "no attribute 'a9'"),
        (["a1,a1"], 10, "uniform", "'a1' is named twice"),
        (["a1,a2,a3,a4"], 10, "uniform", "one to 3 attributes, and 4 were named"),
        ([""], 10, "uniform", "0 were named"),
        (["a2,a3,a4"], 10, "uniform", "more than 1,000,000; use tables of fewer"),
        (["a1"], 0, "uniform", "at least 1"),
        (["a1"], 10, "even", "uniform, worst or shares by attribute"),
        (["a1"], 10, {"a9": [1]}, "no attribute 'a9'"),
        (["a1"], 10, {"a1": [1]}, "'a1' has 2 categories, and 1 shares"),
        (["a1"], 10, {"a1": [0.5, 0.4]}, "add up to 0.9"),
        (["a1"], 10, {"a1": [1.5, -0.5]}, "0 or more"),
        (["a1"], 10, {"a1": [math.nan, 1]}, "add up to"),
        (["a1"], 10, {"a1": ["x", 1]}, "with str in it"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    tables: list[str], rows: int, assume: object, words: str
) -> None:
    made = design(Schema.anonymous((2, 101, 100, 100)), epsilon=2, method="kronecker")
    with pytest.raises(InputError, match=words):
        expected_tables(made, tables, rows, assume)  # type: ignore[arg-type]
