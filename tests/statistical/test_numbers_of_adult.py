"""Numbers of Adult in releases by the default design: means without bias, valid intervals."""

import csv
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import deniable
from deniable import Attribute, Schema
from statistical.budget import BUDGET
from statistical.coverage import LEVEL, SLACK

ROOT = Path(__file__).parents[2]
RELEASES = 200
NUMBERS = {"age": (0, 17, 90), "hours": (12, 1, 99), "education": (4, 1, 16)}
CATEGORIES = {"race": 8, "sex": 9, "income": 14}


def adult() -> tuple[pa.Table, Schema]:
    with (ROOT / "examples" / "adult.data").open(newline="") as file:
        rows = list(csv.reader(file, skipinitialspace=True)) * 4
    texts = {name: [row[place] for row in rows] for name, place in CATEGORIES.items()}
    numbers = {name: [int(row[place]) for row in rows] for name, (place, _, _) in NUMBERS.items()}
    ranges = (Attribute(name, range=(low, high)) for name, (_, low, high) in NUMBERS.items())
    domains = (Attribute(name, tuple(sorted({*values}))) for name, values in texts.items())
    return pa.table(numbers | texts), Schema((*ranges, *domains))


@pytest.mark.weekly  # two hundred releases of 12,000 rows
@pytest.mark.parametrize("method", ["balanced", "kronecker"])
def test_means_of_adults_numbers_have_no_bias_and_valid_intervals(method: str) -> None:
    table, schema = adult()
    plan = deniable.design(schema, epsilon=4, method=method)
    share = BUDGET.spend(f"numbers of Adult: {method}") / (8 * (len(NUMBERS) + 1))
    frame = {name: np.array(table[name]) for name in NUMBERS}
    truths = [*(float(values.mean()) for values in frame.values())]
    truths.append(float(np.corrcoef(frame["age"], frame["hours"])[0, 1]))
    found = []
    for _ in range(RELEASES):
        opened = deniable.open(deniable.randomize(table, plan), plan)
        (correlated,) = opened.correlation("age,hours")
        found.append([*(opened.mean(name)[0] for name in NUMBERS), correlated])
    for place, truth in enumerate(truths):
        mine = [one[place] for one in found]
        estimates = np.array([one.estimate for one in mine])
        errors = np.array([one.standard_error for one in mine])
        hits = sum(one.low <= truth <= one.high for one in mine)
        off = float((estimates.mean() - truth) / (errors.mean() / RELEASES**0.5))
        limit = NormalDist().inv_cdf(1 - share)
        if place < len(NUMBERS):
            # The bound of the rounding in the standard error is above the truth.
            assert abs(off) < limit
            assert limit < RELEASES**0.5 * 0.8  # a bias of a standard error would be seen
        assert binom.cdf(hits, RELEASES, LEVEL - SLACK) > share
        halved = sum(abs(one.estimate - truth) < one.standard_error for one in mine)
        assert binom.cdf(halved, RELEASES, LEVEL - SLACK) < share
