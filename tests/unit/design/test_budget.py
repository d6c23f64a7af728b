"""Dividing a total: it is spent, never exceeded, and not in a worse way than by brute force."""

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deniable.design.budget import _largest, within_budget
from deniable.design.design import design
from deniable.design.level_designs import LevelDesigns
from deniable.design.solving import Task
from deniable.errors import InputError
from deniable.mechanism.prediction import expected_variance
from deniable.schema import Attribute, Schema
from deniable.statement.methods import METHODS


def plan_of(schema: Schema, method: str = "balanced") -> LevelDesigns:
    spec = METHODS[method]
    return LevelDesigns(schema, spec, Task(schema.n_categories, spec.given_rest, spec.pair_floor))


@pytest.mark.slow
def test_the_division_by_importance_is_not_beaten_by_other_ratios() -> None:
    schema = Schema.anonymous((2, 3, 6))
    made = within_budget(plan_of(schema, "optimal"), 2.0, {}, {})

    def cost(found) -> float:
        sizes = np.array(schema.n_categories)
        phi = np.array(found.account.strength.attenuation)
        return float(((1 - 1 / sizes) / sizes / phi**2).sum())

    levels = np.array(made.mechanism.attribute_epsilon)
    for i in range(3):
        for factor in (0.9, 1.1):
            ratios = levels.copy()
            ratios[i] *= factor
            rival = Schema(
                tuple(
                    Attribute(a.name, a.categories, ratio=float(r))
                    for a, r in zip(schema.attributes, ratios, strict=True)
                )
            )
            assert cost(made) <= cost(design(rival, epsilon=2.0, method="optimal")) * (1 + 1e-6)


@pytest.mark.parametrize("method", ["balanced", "optimal"])
def test_a_largest_level_binds_and_the_others_take_what_it_leaves(method: str) -> None:
    schema, pairs = Schema.anonymous((3,) * 4), 0.0 if method == "balanced" else None
    free = design(schema, epsilon=2.0, method=method, pairs=pairs)
    held = design(schema, epsilon=2.0, method=method, pairs=pairs, at_most={"a1": 0.2})
    assert held.mechanism.attribute_epsilon[0] <= 0.2
    assert held.mechanism.attribute_epsilon[1] > free.mechanism.attribute_epsilon[1]
    assert 2.0 * (1 - 1e-6) <= held.epsilon <= 2.0


@pytest.mark.parametrize(
    ("method", "request_", "sentence"),
    [
        ("lp", {"importance": {"a1": 2.0}}, "under methods balanced, optimal and forms, not lp"),
        ("balanced", {"importance": {"b": 2.0}}, "no protected attribute 'b'"),
        ("balanced", {"at_most": {"a1": -1.0}}, "largest level of 'a1'"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(method, request_, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        design(Schema.anonymous((2, 3)), epsilon=1.0, method=method, **request_)


def test_a_search_ends_where_its_totals_are_found_no_more_exactly() -> None:
    """The law found at a scale may be a hair off either way; closing in on that never ends."""
    scales = []

    def at(scale: float) -> Any:
        scales.append(scale)
        return SimpleNamespace(epsilon=2.07 * scale + 1e-4 * math.sin(1e12 * scale), gap=1e-3)

    result = _largest(at, 2.0, 1.0, 1.0, lambda found: found.gap / 4)
    assert 2.0 - 2.5e-4 <= result.epsilon <= 2.0
    assert len(scales) < 8


@pytest.mark.parametrize(("k", "size", "total"), [(28, 2, 2.4638), (46, 2, 0.32865)])
def test_a_total_over_attributes_that_are_alike_is_spent(k: int, size: int, total: float) -> None:
    made = design(Schema.anonymous((size,) * k), epsilon=total, method="optimal")
    assert total * (1 - 1e-6) <= made.epsilon <= total
    assert not made.notes


def objective(made: Any, theta: float) -> float:
    """Return J: the logarithms of the mean variances of shares and of pairs, weighted."""
    expected = expected_variance(made.mechanism)
    return (1 - theta) * math.log(expected.shares) + theta * math.log(expected.pairs)


def variance(made: Any, importance: Sequence[float]) -> float:
    """Return Σ importance · averaged variance of shares, but for a common factor."""
    sizes = np.array(made.mechanism.schema.n_categories)
    phi = np.array(made.account.strength.attenuation)
    return float(((1 - 1 / sizes) / sizes / phi**2) @ np.array(importance))


@pytest.mark.parametrize(
    ("counts", "total", "request_"),
    [
        ((25, 9), 0.25, {}),
        ((2, 40), 0.25, {}),
        ((10_000, 3), 1.0, {}),
        ((10_000, 3, 3), 0.25, {}),
        ((2, 2, 2, 40), 0.5, {}),
        ((5, 5), 1.0, {}),
        ((5, 5), 1.0, {"pairs": 0.5}),
        ((25, 9), 4.0, {"pairs": 0.0}),
        ((2, 3, 7), 1.0, {"given_rest": "3x"}),
        ((2, 3, 5, 7, 9), 4.0, {}),
        pytest.param((15, 4, 4, 6, 3, 10_000, 3, 16), 0.36, {}, marks=pytest.mark.weekly),
    ],
)
def test_a_total_never_buys_less_than_independent_responses(counts, total, request_) -> None:
    schema = Schema.anonymous(counts)
    made = design(schema, epsilon=total, **request_)
    apart = design(schema, epsilon=total, method="kronecker")
    assert total * (1 - 1e-6) <= made.epsilon <= total
    theta = request_.get("pairs", 0.2)
    assert objective(made, theta) <= objective(apart, theta) + 1e-8


def test_a_total_that_rises_steeply_is_spent_to_the_last_digit() -> None:
    # The bracket is within a hundredth soon, and its upper end more than that above the budget.
    made = _largest(
        lambda scale: SimpleNamespace(epsilon=scale**3),
        1.0,
        1.004,
        10.0,
        lambda _: 1e-10,
    )
    assert made is not None
    assert 1.0 - 1e-10 <= made.epsilon <= 1.0


def test_a_total_that_no_law_reaches_is_neared_as_far_as_laws_are_found() -> None:
    # The search once ended at the first scale for which there was none: at 72 nats.
    made = design(Schema.anonymous([5] * 31), epsilon=163.0, method="optimal")
    level = made.mechanism.attribute_epsilon[0]
    assert made.epsilon > 85.0
    assert any("no larger levels were found" in note for note in made.notes)
    above = [1.02 * level] * 31
    beyond = design(Schema.anonymous([5] * 31), attribute_epsilon=above, method="optimal")
    assert beyond.epsilon > 163.0


@pytest.mark.slow
def test_with_importances_no_division_among_independent_responses_is_better() -> None:
    schema, weight = Schema.anonymous((25, 9, 2)), {"a1": 5.0, "a3": 0.2}
    importance = [5.0, 1.0, 0.2]
    made = design(schema, epsilon=0.5, importance=weight, pairs=0)
    for parts in itertools.product(range(1, 11), repeat=3):
        if sum(parts) == 12:
            levels = [part / 24 for part in parts]
            apart = design(schema, attribute_epsilon=levels, method="kronecker")
            assert variance(made, importance) <= variance(apart, importance)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", range(15))
def test_drawn_totals_never_buy_less_than_independent_responses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 17))
    counts = np.rint(np.exp(rng.uniform(math.log(2), math.log(30), k))).astype(int)
    if seed % 3 == 0:
        counts[int(rng.integers(k))] = int(rng.choice([100, 1000, 10_000]))
    total = float(np.exp(rng.uniform(math.log(0.25), math.log(8.0))))
    test_a_total_never_buys_less_than_independent_responses(tuple(counts.tolist()), total, {})


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            {"epsilon": 1.0, "pair_floor": 0.5},
            "levels or ratios only; for a total give `pairs`",
        ),
        ({"attribute_epsilon": [1.0, 1.0], "pairs": 0.1}, "`pairs` is for a total without ratios"),
        ({"epsilon": 1.0, "pairs": 1.5}, "0 to 1, not 1.5"),
        ({"epsilon": 1.0, "pairs": 0.1, "method": "optimal"}, "methods balanced and forms, not"),
    ],
)
def test_pairs_count_by_weight_at_a_total_and_by_floor_at_levels(request_, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        design(Schema.anonymous((2, 3)), **request_)


def test_ratios_divide_a_total_in_proportion() -> None:
    attributes = [
        Attribute("a", ("0", "1"), ratio=1.0),
        Attribute("b", tuple("012"), ratio=2.0),
        Attribute("c", tuple("0123"), ratio=2.0),
    ]
    made = design(Schema(tuple(attributes)), epsilon=2.0)
    one, two, three = made.mechanism.attribute_epsilon
    assert two == pytest.approx(three, abs=1e-8) == pytest.approx(2 * one, abs=1e-8)
    assert 2.0 * (1 - 1e-6) <= made.epsilon <= 2.0
