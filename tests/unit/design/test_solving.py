"""What methods answer: caps in nats, laws, and what is said where attributes answer apart."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.laws import ScoreTable
from deniable.proofs.problem import SolverError
from deniable.schema import Schema
from deniable.solvers.patterns import balanced, least_error, optimal
from deniable.solvers.patterns.ramps.one_law import CommonLaw
from deniable.statement.caps import cap_text, caps_of_text, resolve_caps
from marked import weekly_after


def test_caps_mean_the_same_as_text_and_in_nats() -> None:
    assert resolve_caps("2x", [1.0, 0.5]) == (2.0, 1.0)
    assert resolve_caps(1.5, [1.0, 0.5]) == (1.5, 1.5)
    assert resolve_caps([None, 3.0], [1.0, 0.5]) == (None, 3.0)
    assert resolve_caps("none", [1.0]) is None
    assert [cap_text(c) for c in ("2x", 1.5, [None, 3.0], "none")] == ["2x", "1.5", "none,3", None]
    with pytest.raises(InputError, match="at least 1x"):
        resolve_caps("0.5x", [1.0])
    assert caps_of_text("none,0.7", [1.0, 0.5]) == (None, 0.7)
    with pytest.raises(InputError, match="is not one that is written"):
        caps_of_text("1.5,?", [1.0, 0.5])


@pytest.mark.slow
def test_the_default_law_at_a_total_is_a_table_of_scores() -> None:
    made = design(Schema.anonymous([2, 3, 4, 5, 6, 7] * 2), epsilon=2.0)
    (block,) = made.mechanism.blocks
    assert isinstance(block.law, ScoreTable)
    assert 2.0 * (1 - 1e-6) <= made.epsilon <= 2.0
    assert not made.notes


def test_levels_that_are_solved_apart_are_named_with_what_they_cost(monkeypatch) -> None:
    solve = balanced.solve

    def overwhelmed(n_categories, levels, *rest, **named):
        if max(levels) > 5:
            raise SolverError("out of reach")
        return solve(n_categories, levels, *rest, **named)

    monkeypatch.setattr(balanced, "solve", overwhelmed)
    made = design(Schema.anonymous([3, 3, 3, 3]), attribute_epsilon=[1.0, 9.0, 1.0, 1.0])
    (note,) = made.notes
    assert note.startswith("'a2' answers independently of the rest: the solver's arithmetic")
    assert note.endswith(f"; ε is {made.gap:.3g} nats above the proven minimum of any law.")


def test_independent_responses_are_named_where_nothing_common_was_found(monkeypatch) -> None:
    monkeypatch.setattr(balanced, "capped_table", lambda *_, **__: None)
    monkeypatch.setattr(CommonLaw, "law", lambda *_, **__: None)
    made = design(Schema.anonymous([3] * 4), attribute_epsilon=[1.0] * 4)
    assert made.epsilon == pytest.approx(4.0)
    assert made.optimal_epsilon is not None
    (note,) = made.notes
    assert note.startswith("All attributes answer independently of each other: no common law")


def test_blocks_that_answer_independently_are_named_with_what_they_cost(monkeypatch) -> None:
    halves = [optimal.solve([3] * 2, levels).parts[0] for levels in ([1.0, 1.1], [0.9, 1.2])]
    parts = tuple(
        replace(part, attributes=at) for part, at in zip(halves, [(0, 1), (2, 3)], strict=True)
    )
    answer = optimal.OptimalSolution(parts, np.ones(4), 2.0, "blocks")
    monkeypatch.setattr(optimal, "solve", lambda *_, **__: answer)
    made = design(Schema.anonymous([3] * 4), attribute_epsilon=[1, 1.1, 0.9, 1.2], method="optimal")
    assert made.notes == (
        "The attributes answer in 2 blocks, independently of each other: no single law was found "
        f"for their levels; ε is {made.gap:.3g} nats above the proven minimum of any law.",
    )


def test_attributes_that_answer_apart_for_their_caps_are_named() -> None:
    made = design(
        Schema.anonymous([3] * 4),
        attribute_epsilon=[1.0, 1.2, 0.4, 0.9],
        given_rest=[2.0, 2.4, 0.4, 1.8],
    )
    (note,) = made.notes
    assert note.startswith("'a3' answers independently of the rest: no common law was found that")
    assert "keeps cap and floor and costs less; ε is" in note


def test_the_smallest_epsilon_known_is_given_where_a_solver_is_out_of_reach() -> None:
    made = design(Schema.anonymous([2, 2, 2]), attribute_epsilon=[600.0, 600.0, 600.0])
    assert "arithmetic does not reach" in made.notes[0]
    assert made.optimal_epsilon is not None
    assert made.epsilon_lower_bound <= made.optimal_epsilon <= made.epsilon


@pytest.mark.parametrize(
    ("levels", "most"),
    [
        pytest.param([600.0] + [1e-6] * 3, 600.1, marks=pytest.mark.slow),
        *weekly_after(0, [([500.0, 300, 1, 1], 802.0), ([600.0] + [1e-6] * 20, 600.1)]),
    ],
)
def test_beside_levels_of_hundreds_of_nats_a_law_is_found(levels, most) -> None:
    # Gates narrower than a unit of their sum, and λ below every double, were errors of the user's.
    made = design(Schema.anonymous([2] * len(levels)), attribute_epsilon=levels)
    assert made.epsilon < most


def test_a_cap_of_the_own_level_leaves_independent_responses() -> None:
    made = design(Schema.anonymous([2, 10]), epsilon=1.0, given_rest="1x")
    assert made.notes[0].startswith("All attributes answer independently of each other: no common")
    assert made.mechanism.epsilon_given_rest == made.mechanism.attribute_epsilon
    assert 1.0 * (1 - 1e-6) <= made.epsilon <= 1.0


@pytest.mark.parametrize(
    ("counts", "total", "caps", "level"),
    [
        ((2, 3, 4, 5), 2.0, 0.9, None),
        ((2, 3, 4, 5), 2.0, (0.9, None, 1.2, 5.0), None),
        pytest.param((2, 3, 4, 5) * 4, 4.0, 0.7, None, marks=pytest.mark.slow),
        ((3,) * 4, 4.0, 0.3, 0.3),  # the total allows what the caps forbid
        ((3,) * 4, 1.19, 0.3, None),
    ],
)
def test_a_total_is_divided_under_caps_in_nats(counts, total, caps, level) -> None:
    made = design(Schema.anonymous(counts), epsilon=total, given_rest=caps)
    limits = [caps] * len(counts) if isinstance(caps, float) else caps
    rests = zip(made.mechanism.epsilon_given_rest, limits, strict=True)
    assert all(cap is None or rest <= cap for rest, cap in rests)
    if level is None:
        assert total * (1 - 1e-6) <= made.epsilon <= total
    else:
        assert made.mechanism.attribute_epsilon == pytest.approx([level] * len(counts))
        assert made.epsilon <= total


def test_a_total_that_the_search_fails_on_is_divided_among_independent_responses(
    monkeypatch,
) -> None:
    monkeypatch.setattr(least_error, "solve", lambda *_, **__: None)
    made = design(Schema.anonymous([3, 3, 9, 9]), epsilon=2.0, at_most={"a1": 0.1})
    assert 2.0 * (1 - 1e-6) <= made.epsilon <= 2.0
    assert made.mechanism.attribute_epsilon[0] <= 0.1
    assert made.notes[0].startswith("All attributes answer independently of each other")


def test_a_looser_cap_on_a_total_costs_no_accuracy() -> None:
    errors = [
        least_error.solve((3, 4, 5, 6), 2.0, multiple=multiple).objective
        for multiple in (1.2, 2.0, 3.0, math.inf)
    ]
    assert all(loose <= tight + 1e-6 for tight, loose in pairwise(errors))
