"""Intervals of cells of hundreds of records cover what they say, for shares and means too."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.estimate.ordered import Mean
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.prediction import Target
from statistical.budget import BUDGET
from statistical.coverage import (
    LEVEL,
    check_both_targets,
    check_coverage,
    frequencies,
    simulate,
    synthetic,
)

# Hundreds of releases a case: many seconds by nature.
pytestmark = pytest.mark.weekly


@pytest.mark.parametrize("law_name", ["product", "table", "matrix"])
def test_intervals_of_a_synthetic_table_cover_for_both_targets(law_name: str) -> None:
    columns, mechanism = synthetic(law_name)
    check_both_targets(law_name, columns, mechanism, [("a1", "a2"), ("a3",), ("a3", "a1")], 2000)


@pytest.mark.parametrize("target", ["table", "population"])
def test_intervals_of_shares_and_means_of_subgroups_cover(target: Target) -> None:
    share = BUDGET.spend(f"coverage: shares and means, {target}")
    columns, mechanism = synthetic("table")
    scores = [1.0, 2.0, 4.0, 8.0]
    true = frequencies(columns, mechanism, ("a2", "a1"))
    truth = np.concatenate([(true / true.sum(axis=0)).ravel(), scores @ true / true.sum(axis=0)])
    inside = []

    def answer(_: int, counted: Tabulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counts = Counts.of(mechanism, counted)
        (estimate,) = Shares(("a2",), by=("a1",), target=target).answer(counts)
        means = Mean(("a2",), by=("a1",), scores=scores, target=target).answer(counts)
        low, high = (end.ravel() for end in estimate.confidence_interval(LEVEL))
        low = np.concatenate([low, [float(mean.low or 0) for mean in means]])
        high = np.concatenate([high, [float(mean.high or 0) for mean in means]])
        inside.append((low <= truth) & (truth <= high))
        return np.zeros((4, 2)), np.ones((4, 2))

    simulate(columns, mechanism, 2000, target, [("a2", "a1")], answer)
    check_coverage(np.array(inside), share)
