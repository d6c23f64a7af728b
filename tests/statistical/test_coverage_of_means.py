"""Means and quantiles of binned columns hold the truth of the raw numbers, not of their bins.

Strictly: at least as often as they say. Scores are of other surveys, and each may be off by its
margin; that is what the promise rests on, and is looked at here too, without drawing anything.

The example's columns are released at the levels that they have in it at ε = 4 for the record
(method balanced). Only the counts of each column are drawn, bin by bin: a mean sees nothing else.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.estimate.ordered import Mean, Quantile, Summary
from deniable.estimate.scores import Scores
from deniable.estimate.tabulate import Counts
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from statistical.budget import BUDGET
from statistical.coverage import LEVEL

ROOT = Path(__file__).parents[2]
ALONE = {
    "hours": 1.014, "experience": 0.967, "kidslt6": 0.848, "kids618": 0.914, "husband_income": 1.055
}  # fmt: skip
"""ε of the example's columns of numbers, alone, in nats."""

PROBABILITIES = (0.25, 0.5, 0.9)
RELEASES = 400


def releases(
    attribute: Attribute, numbers: NDArray[np.float64], level: float | None = None
) -> list[Counts]:
    """Counts of ``RELEASES`` releases of one column of raw numbers."""
    level = level or ALONE[attribute.name]
    law = ProductLaw.from_levels((attribute.n_categories,), (level,))
    mechanism = Mechanism.of(law, Schema((attribute,)))
    assert attribute.bins is not None
    place = np.searchsorted(attribute.bins, numbers, side="right") - 1
    true = np.bincount(np.minimum(place, attribute.n_categories - 1))  # the last bin is closed
    stay = float(np.exp(level) / (np.exp(level) + attribute.n_categories - 1))
    rows = np.full((len(true), len(true)), (1 - stay) / (len(true) - 1))
    np.fill_diagonal(rows, stay)
    draw = np.random.default_rng()
    return [Counts.of(mechanism, sum(map(draw.multinomial, true, rows))) for _ in range(RELEASES)]


def holds(summary: Summary, truth: float) -> bool:
    low, high = summary.bounds or (summary.low, summary.high)
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low <= truth <= high


def mean_hits(found: list[Counts], truth: float, scores: Scores = None) -> int:
    name = found[0].schema.names[0]
    return sum(holds(Mean((name,), scores=scores).answer(c)[0], truth) for c in found)


def too_few(hits: int, share: float) -> bool:
    """Whether so many intervals of all releases cannot be ``LEVEL`` of them."""
    return bool(binom.cdf(hits, RELEASES, LEVEL) < share)


def example() -> tuple[Schema, dict[str, NDArray[np.float64]]]:
    with (ROOT / "examples" / "insurance.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {name: np.array([float(row[name]) for row in rows]) for name in ALONE}
    return Schema.from_toml(ROOT / "examples" / "insurance.toml"), numbers


def raw_quantile(numbers: NDArray[np.float64], probability: float) -> float:
    return float(np.sort(numbers)[int(np.ceil(probability * len(numbers))) - 1])


def test_the_means_of_the_examples_bins_are_within_the_margins_of_their_scores() -> None:
    schema, columns = example()
    for name, numbers in columns.items():
        attribute = schema.attributes[schema.position(name)]
        ranges = attribute.score_ranges()
        assert ranges is not None
        assert attribute.bins is not None
        place = np.searchsorted(attribute.bins, numbers, side="right") - 1
        place = np.minimum(place, len(ranges) - 1)
        for code, within in enumerate(ranges):
            assert within is not None
            low, high = within
            assert low <= numbers[place == code].mean() <= high, (name, code)


@pytest.mark.weekly  # hundreds of estimates; their arithmetic has quick tests elsewhere
def test_means_of_the_examples_columns_hold_the_raw_means_and_middles_would_not() -> None:
    schema, columns = example()
    share = BUDGET.spend("coverage: raw means of the example") / (3 * len(ALONE))
    for name, numbers in columns.items():
        attribute = schema.attributes[schema.position(name)]
        truth = float(numbers.mean())
        found = releases(attribute, numbers)
        assert not too_few(mean_hits(found, truth), share), name
        bare = releases(Attribute(name, bins=attribute.bins), numbers)
        assert not too_few(mean_hits(bare, truth), share), name
        # The defect that was: the interval of the middles, as if it were that of the numbers.
        assert too_few(mean_hits(bare, truth, "middle"), share), name


@pytest.mark.weekly
def test_quantiles_of_the_examples_columns_hold_the_raw_quantiles() -> None:
    schema, columns = example()
    share = BUDGET.spend("coverage: raw quantiles of the example")
    share /= len(ALONE) * len(PROBABILITIES)
    for name, numbers in columns.items():
        found = releases(schema.attributes[schema.position(name)], numbers)[:100]
        for probability in PROBABILITIES:
            truth = raw_quantile(numbers, probability)
            hits = [holds(Quantile((name,), q=probability).answer(c)[0], truth) for c in found]
            assert binom.cdf(sum(hits), len(hits), LEVEL) >= share, (name, probability)


@pytest.mark.weekly
def test_means_of_adults_gains_and_hours_hold_the_raw_means_without_any_score() -> None:
    with (ROOT / "examples" / "adult.data").open(newline="") as file:
        records = list(csv.reader(file, skipinitialspace=True)) * 16
    share = BUDGET.spend("coverage: raw means of Adult") / 4
    # Equal steps from the smallest to the largest value, as somebody without a codebook makes them.
    bins = {10: ("capital-gain", np.linspace(0, 100_000, 6)), 12: ("hours", np.linspace(0, 99, 6))}
    for column, (name, edges) in bins.items():
        numbers = np.array([float(record[column]) for record in records])
        truth = float(numbers.mean())
        found = releases(Attribute(name, bins=tuple(edges)), numbers, 1.0)
        assert not too_few(mean_hits(found, truth), share), name
        assert too_few(mean_hits(found, truth, "middle"), share), name
