"""Intervals of cells of one to ten records cover what they say, exactly; plain ones do not."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.estimate.inference import Inference
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from statistical.coverage import (
    LEVEL,
    Answer,
    Columns,
    Z,
    intervals,
)

FEW = (0.5, 10.5)
SMALL_SLACK = 0.035
"""Counts come in steps, and intervals are long enough for the worst of them."""


def few_people() -> tuple[Columns, Mechanism]:
    """300 people and one attribute with ten rare categories."""
    sizes = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 45, 200)
    column = np.repeat(np.arange(12, dtype=np.uint8), sizes)
    law = ProductLaw.from_levels((12,), (6.0,))
    return [column], Mechanism.of(law)


def plain(mechanism: Mechanism, names: tuple[str, ...], target: Target) -> Answer:
    """Estimates and so many standard errors to either side."""

    def answer(_: int, counted: Tabulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        inference = Inference(Counts.of(mechanism, counted), names, target)
        half = Z * inference.standard_error
        return inference.values - half, inference.values + half

    return answer


def exact_coverage(
    mechanism: Mechanism, columns: Columns, answer: Answer, target: Target
) -> NDArray[np.float64]:
    """The chance that a cell's interval holds its truth, for the small cells of attribute a1.

    Under a pattern law the estimate of a category depends on its own released count alone, which is
    a sum of draws with two probabilities: that of the people who have it, and of the others.
    """
    n, a = len(columns[0]), mechanism.schema.n_categories[0]
    keep, change = Channel(mechanism, ("a1",)).forward.apply(np.eye(a)[0])[:2]
    low, high = np.empty(n + 1), np.empty(n + 1)
    for seen in range(n + 1):
        counts = np.zeros(a)
        counts[:2] = seen, n - seen
        ends = answer(0, Tabulation.from_counts(counts))
        low[seen], high[seen] = (end[0] for end in ends)
    found = []
    for people in np.bincount(columns[0]):
        if FEW[0] <= people <= FEW[1]:
            chance = binom.pmf(np.arange(n + 1), n, (people * keep + (n - people) * change) / n)
            if target == "table":
                chance = np.convolve(
                    binom.pmf(np.arange(people + 1), people, keep),
                    binom.pmf(np.arange(n - people + 1), n - people, change),
                )
            found.append(chance[(low <= people / n) & (people / n <= high)].sum())
    return np.array(found)


@pytest.mark.parametrize("target", ["table", "population"])
def test_the_exact_coverage_of_small_cells_is_as_said_and_of_plain_ones_is_not(
    target: Target,
) -> None:
    columns, mechanism = few_people()
    answer = intervals(mechanism, [("a1",)], target)
    coverage = exact_coverage(mechanism, columns, answer, target)
    assert coverage.size == 10
    assert coverage.min() > 0.94
    assert coverage.max() < LEVEL + SMALL_SLACK
    if target == "population":
        wrong = exact_coverage(mechanism, columns, plain(mechanism, ("a1",), target), target)
        assert wrong.min() < 0.82
