"""A method at one budget: against draws, formulas and brute force."""

import math

import numpy as np
import pytest

from deniable.design.design import design
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.beyond.budgets import (
    FORMS,
    FORMS_SHARES,
    RSFD,
    RSFD_STATED,
    SMP,
    SUBSETS,
    Budget,
    most_attenuation,
    parts_of_cost,
    point,
    saved,
)


def test_attenuations_are_those_of_the_records_that_are_drawn() -> None:
    budget, n = Budget(3, 3, 4.0), 400_000
    optimal = point(budget, "optimal")
    mechanism = design(Schema.anonymous([3, 3, 3]), epsilon=4.0, method="optimal").mechanism
    true = [np.zeros(n, dtype=np.uint8)] * 3
    drawn = Randomizer(mechanism, SeededRandomness(5)).randomize(true)
    signs = [np.where(column == 0, 1.0, -1 / 2) for column in drawn]
    # The standard deviation of a product of signs is at most 1.
    assert optimal.marginal == pytest.approx(signs[0].mean(), abs=4 / n**0.5)
    assert optimal.pair == pytest.approx((signs[0] * signs[1]).mean(), abs=4 / n**0.5)


def test_the_kronecker_product_of_a_budget_is_independent_responses() -> None:
    kronecker = point(Budget(4, 5, 3.0), "kronecker")
    level = 3.0 / 5
    phi = math.expm1(level) / (math.exp(level) + 3)
    assert kronecker.marginal == pytest.approx(phi, rel=1e-9)
    assert kronecker.pair == pytest.approx(phi**2, rel=1e-9)
    assert kronecker.given_rest == pytest.approx(level, rel=1e-9)


def test_baselines_keep_the_level_they_are_compared_at() -> None:
    honest, stated, sampled = (point(Budget(5, 10, 2.0), m) for m in (RSFD, RSFD_STATED, SMP))
    assert honest.epsilon == sampled.epsilon == 2.0
    assert stated.epsilon == pytest.approx(math.log(10 * math.expm1(2.0) + 1))
    assert stated.given_rest == pytest.approx(2.0)
    assert honest.pair == stated.pair == 0.0
    assert sampled.pair is None


def test_subset_selection_and_forms_are_worth_what_brute_force_says() -> None:
    budget = Budget(6, 2, 1.0)
    best = 0.0
    for size in range(1, 6):
        # Column of the set {0, …, s − 1}, and what it tells of the share of category 0.
        column = np.where(np.arange(6) < size, math.e, 1.0)
        density = column / column.mean()
        best = max(best, float(((density - 1) ** 2).mean()) / 5)
    assert point(budget, SUBSETS).marginal == pytest.approx(math.sqrt(best / 2))
    single = point(Budget(3, 3, 2.0), FORMS_SHARES)
    assert most_attenuation(Budget(3, 3, 2.0)) >= single.marginal
    assert single.pair is None
    both = point(Budget(3, 3, 2.0), FORMS)
    law = design(Schema.anonymous((3, 3, 3)), epsilon=2.0, method="forms").mechanism.forms
    assert law is not None
    told = law.pair_information()
    assert both.marginal == pytest.approx(math.sqrt(told[0, 0]), rel=0.05)
    assert both.pair == pytest.approx(math.sqrt(told[0, 1]), rel=0.1)


def test_what_cap_and_floor_cost_is_told_apart() -> None:
    by_floor = point(Budget(5, 2, 1.0), "balanced")
    cap, floor = parts_of_cost(by_floor)
    assert cap == pytest.approx(0, abs=1e-6)
    assert 0.2 < floor < by_floor.cost
    by_cap = point(Budget(2, 10, 3.0), "balanced")
    cap, floor = parts_of_cost(by_cap)
    assert cap == pytest.approx(by_cap.cost, rel=0.05)  # the rest is for tables of two
    assert floor == pytest.approx(0, abs=1e-6)


def test_nothing_is_saved_where_nothing_is_left() -> None:
    assert saved(0.2, 0.1) == pytest.approx(4)
    assert saved(-0.2, 0.1) == pytest.approx(4)
    assert saved(0.0, 0.1) is saved(None, 0.1) is None
