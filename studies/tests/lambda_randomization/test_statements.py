"""Statements of the λ-randomization paper: each judge, with a planted defect."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.mechanism.prediction import expected_error
from deniable_studies.lambda_randomization import statements
from deniable_studies.lambda_randomization.statements import Cost, Statements
from deniable_studies.study import Verdict


@pytest.fixture(scope="module")
def found() -> Statements:
    costs = [Cost(way, m, 5.0**m) for way in ("equation (8)", "axes") for m in (2, 3)]
    costs += [Cost("elimination", m, 125.0**m) for m in (2, 3)]
    made = statements.measure_statements(np.random.default_rng(1), quick=True, timed=costs)
    assert made.n_cases == 20
    return made


def test_theorems_hold_and_a_wrong_one_would_be_noticed(found: Statements) -> None:
    assert statements.property_1(found).verdict is Verdict.REPRODUCED
    assert statements.property_1(replace(found, property_1=1e-9)).verdict is Verdict.NOT
    assert statements.equation_9(found).verdict is Verdict.REPRODUCED
    assert statements.equation_9(replace(found, expected=0.1)).verdict is Verdict.PARTLY
    assert statements.corollary_1(found).verdict is Verdict.REPRODUCED
    assert statements.corollary_1(replace(found, identity=0.5)).verdict is Verdict.PARTLY


def test_the_loss_is_that_of_the_expected_errors(found: Statements) -> None:
    for m in (1, 2):
        error = expected_error(statements._channel(m), 1_000, "population").uniform
        share = 5.0**-m
        assert error / np.sqrt(share * (1 - share) / 1_000) == pytest.approx(found.losses[m - 1])
    assert statements.accuracy(found).verdict is Verdict.NOT
    assert statements.accuracy(replace(found, losses=[2.0, 3.0])).verdict is Verdict.REPRODUCED


def test_cost_is_judged_by_the_factor_of_one_attribute(found: Statements) -> None:
    assert statements.cost_as_printed(found).verdict is Verdict.REPRODUCED
    slow = [replace(c, seconds=50.0**c.n_attributes) if c.way != "elimination" else c
            for c in found.costs]  # fmt: skip
    steep = replace(found, costs=slow)
    assert statements.cost_as_printed(steep).verdict is Verdict.PARTLY
    slowest = replace(found, costs=[c if c.way != "elimination" else replace(c, seconds=0)
                                    for c in slow])  # fmt: skip
    assert statements.cost_as_printed(slowest).verdict is Verdict.NOT
    assert statements.cost_along_axes(found, 0.0).verdict is Verdict.REPRODUCED
    assert statements.cost_along_axes(found, 1e-9).verdict is Verdict.NOT
    assert statements.cost_along_axes(steep, 0.0).verdict is Verdict.NOT


@pytest.mark.slow
def test_times_are_taken_of_every_way() -> None:
    assert {cost.way for cost in statements.costs(quick=True)} == {
        "equation (8)", "elimination", "axes",
    }  # fmt: skip
