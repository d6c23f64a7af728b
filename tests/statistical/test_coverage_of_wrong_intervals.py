"""Wrong intervals of large cells are found to be wrong, by the check the right ones pass."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.estimate.inference import Inference
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from statistical.budget import BUDGET
from statistical.coverage import (
    FEWEST,
    LEVEL,
    Answer,
    Z,
    check_coverage,
    frequencies,
    intervals,
    miss_probability,
    simulate,
    synthetic,
)

DEFECT_RELEASES = 2500
PAIR = ("a1", "a2")


def check_that_a_defect_is_caught(
    name: str,
    law_name: str,
    drawn: Target,
    answer: Answer,
    errors: NDArray[np.float64],
    message: str,
) -> None:
    """Intervals that are wrong must be found to be wrong, by the check the right ones pass.

    Args:
        errors: half widths of the wrong intervals for a typical release, in true standard
            errors of each cell.
    """
    columns, mechanism = synthetic(law_name)
    share = BUDGET.spend(f"coverage: false alarms about {name}")
    # The defect's coverage by the normal distribution, moved towards the right one by 0.002.
    coverage = norm.cdf(errors) - norm.cdf(-errors)
    coverage += np.where(coverage < LEVEL, 0.002, -0.002)
    missed = BUDGET.spend(f"coverage: missing {name}")
    assert miss_probability(coverage, DEFECT_RELEASES, share) <= missed
    (covered,) = simulate(columns, mechanism, DEFECT_RELEASES, drawn, [PAIR], answer)
    with pytest.raises(AssertionError, match=message):
        check_coverage(covered, share)


def typical_errors(law_name: str, target: Target) -> NDArray[np.float64]:
    """Standard errors of the cells counted, from released frequencies exactly as expected."""
    columns, mechanism = synthetic(law_name)
    true = frequencies(columns, mechanism, PAIR)
    channel = Channel(mechanism, PAIR)
    n = len(columns[0])
    expected = Tabulation(n * channel.forward.apply(true), None, n)
    inference = Inference(Counts.of(mechanism, expected), PAIR, target)
    return inference.standard_error[n * true >= FEWEST]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drawn", "claimed", "message"),
    [
        ("table", "population", "covers as much as"),
        ("population", "table", "covers only"),
    ],
)
def test_intervals_for_the_other_target_are_caught(
    drawn: Target, claimed: Target, message: str
) -> None:
    law_name = "little noise"
    _, mechanism = synthetic(law_name)
    answer = intervals(mechanism, [PAIR], claimed)
    errors = Z * typical_errors(law_name, claimed) / typical_errors(law_name, drawn)
    check_that_a_defect_is_caught(
        f"{claimed} for {drawn}", law_name, drawn, answer, errors, message
    )


@pytest.mark.slow
def test_intervals_that_forget_the_randomization_are_caught() -> None:
    law_name = "product"
    columns, mechanism = synthetic(law_name)
    true = frequencies(columns, mechanism, PAIR)
    n = len(columns[0])

    def naive(_: int, counted: Tabulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = Inference(Counts.of(mechanism, counted), PAIR, "population").values
        clipped = np.clip(values, 0, 1)
        half = Z * np.sqrt(clipped * (1 - clipped) / n)
        return values - half, values + half

    sampling = np.sqrt(true * (1 - true) / n)[n * true >= FEWEST]
    errors = Z * sampling / typical_errors(law_name, "population")
    check_that_a_defect_is_caught("no noise", law_name, "population", naive, errors, "covers only")
