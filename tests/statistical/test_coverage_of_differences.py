"""Differences and ratios hold the truth as often as they say, by releasing again and again."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.estimate.comparing import Comparison
from deniable.estimate.tabulate import Counts
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from statistical.budget import BUDGET
from statistical.coverage import ROWS, Columns, check_coverage, synthetic, tables

RELEASES = 300
TARGETS: tuple[Target, ...] = ("table", "population")


def questions(target: Target) -> list[Comparison]:
    return [
        Comparison(("a1", "a2"), column="a2", values=("0", "2"), target=target),
        Comparison(("a2",), column="a1", values=("0", "1"), target=target),
        Comparison(("a2",), column="a2", values=("1", "3"), by=("a1",), target=target),
        Comparison(
            ("a2",), column="a1", values=("1", "0"), mean=True, scores=(0, 1, 4, 9), target=target
        ),
    ]


def truths(question: Comparison, table: NDArray[np.float64]) -> list[tuple[float, float]]:
    """The true difference and ratio of everything that a question compares, of a1 by a2."""
    places = [int(value) for value in question.values]
    if question.mean:
        means = [table[p] @ np.array([0, 1, 4, 9]) / table[p].sum() for p in places]
        return [(means[0] - means[1], means[0] / means[1])]
    if question.column == "a1":
        first, second = (table[p] / table[p].sum() for p in places)
    elif question.by:
        within = table / table.sum(axis=1, keepdims=True)
        first, second = (within[:, p] for p in places)
    else:
        first, second = (table[:, p] / table.sum() for p in places)
    return list(zip(first - second, first / second, strict=True))


def covered(columns: Columns, law: str, shown: Target, drawn: Target) -> list[NDArray[np.bool_]]:
    """By question whether the intervals of a target held the truth when rows were drawn for
    another, shape (releases, two for each difference)."""
    _, mechanism = synthetic(law)
    names = ("a1", "a2")
    n = len(columns[0])
    truth = np.zeros((2, 4))
    np.add.at(truth, (columns[0], columns[1]), 1)
    asked = questions(shown)
    expected = [truths(question, truth) for question in asked]
    held: list[list[list[bool]]] = [[] for _ in asked]
    randomizer = Randomizer(mechanism, SystemRandomness())
    again = np.random.default_rng()
    together = ROWS // n
    for start in range(0, RELEASES, together):
        count = min(together, RELEASES - start)
        chosen = np.tile(np.arange(n), count)
        if drawn == "population":
            chosen = again.integers(0, n, count * n)
        out = randomizer.randomize([column[chosen] for column in columns])
        for table in tables(out, mechanism, names, count):
            for j, question in enumerate(asked):
                ordered = table if question.of[0] == "a1" else table.T
                counts = Counts.of(mechanism, ordered)
                rows = [row for found in question.answer(counts) for row in found.table()]
                held[j].append(
                    [
                        inside
                        for row, (difference, ratio) in zip(rows, expected[j], strict=True)
                        for inside in (
                            row["low"] <= difference <= row["high"],
                            row["ratio_low"] <= ratio <= row["ratio_high"],
                        )
                    ]
                )
    return [np.array(one) for one in held]


@pytest.mark.weekly  # thousands of differences; their arithmetic has quick tests elsewhere
@pytest.mark.parametrize("law", ["product", "little noise"])
def test_intervals_of_differences_and_ratios_hold_the_truth(law: str) -> None:
    columns, _ = synthetic(law)
    share = BUDGET.spend(f"coverage: differences, {law}") / (2 * 4)
    for target in TARGETS:
        for hits in covered(columns, law, target, target):
            check_coverage(hits, share)


@pytest.mark.slow
def test_intervals_for_the_wrong_truth_are_seen_not_to_hold_it() -> None:
    columns, _ = synthetic("little noise")
    share = BUDGET.spend("coverage: differences for the wrong truth")
    first, *_ = covered(columns, "little noise", "table", "population")
    with pytest.raises(AssertionError, match="covers only"):
        check_coverage(first, share)
