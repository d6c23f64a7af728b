"""Combined intervals of several synthetic copies hold the truth as often as they state.

Every release is of fresh people, randomized by the production sampler. An ordinary logistic
regression and the shares of two attributes are computed on each of 20 copies and combined.
"""

from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import deniable
from deniable.estimate.source import Release
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from deniable.synthesis.combining import combine
from deniable.synthesis.pairs import PairsModel
from deniable.synthesis.rows import ReleasedRows
from deniable.synthesis.tree import TreeModel
from statistical.budget import BUDGET
from unit.models.cases import COEFFICIENTS, NAMES, SHAPE, laws, people, truth

RELEASES, ROWS, COPIES = 200, 3000, 20
DESIGN = np.array([[1, a == 1, a == 2, b] for a in range(3) for b in range(2)], float)
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def logistic(table: NDArray[np.float64]) -> Pair:
    """Coefficients of y on a and b and their variances, by Newton's method."""
    n, yes = table.sum(axis=0).ravel(), table[1].ravel()
    beta = np.zeros(4)
    for _ in range(12):
        share = 1 / (1 + np.exp(-DESIGN @ beta))
        information = (DESIGN * (n * share * (1 - share))[:, None]).T @ DESIGN
        beta = beta + np.linalg.solve(information, DESIGN.T @ (yes - n * share))
    return beta, np.diag(np.linalg.inv(information))


def analyses(model: PairsModel | TreeModel) -> tuple[Pair, Pair]:
    """The regressions, and the shares of y and a together, of all copies, with variances."""
    codes = model.synthetic(COPIES, ROWS, SystemRandomness()).astype(np.int64)
    cells = [np.ravel_multi_index(tuple(copy), SHAPE[:3]) for copy in codes]
    tables = [np.bincount(each, minlength=prod(SHAPE)).reshape(SHAPE[:3]) * 1.0 for each in cells]
    fits = [np.array(each) for each in zip(*map(logistic, tables), strict=True)]
    shares = np.array([table.sum(axis=2).ravel() / ROWS for table in tables])
    return (fits[0], fits[1]), (shares, shares * (1 - shares) / ROWS)


def held(of: Pair, true: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which combined intervals hold the truth, and which of those that the first copy states."""
    rows = combine(*of, kind="synthetic").table()
    own = [row["low"] <= t <= row["high"] for row, t in zip(rows, true, strict=True)]
    return np.array([own, abs(of[0][0] - true) <= 1.96 * np.sqrt(of[1][0])])


def coverage(name: str, law: str) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """How many intervals of each coefficient and share hold the truth: combined, and of one
    copy."""
    mechanism, shares, found = laws()[law], truth().sum(axis=2).ravel(), []
    for _ in range(RELEASES):
        seed = int(np.random.default_rng().integers(1 << 31))
        frame = deniable.randomize(people(ROWS, seed), mechanism)
        rows = ReleasedRows.read(Release(Strata.one(mechanism), frame), NAMES, {})
        model = PairsModel.fitted(rows, NAMES) if name == "pairs" else TreeModel.fitted(rows, NAMES)
        both = zip(analyses(model), (np.array(COEFFICIENTS), shares), strict=True)
        found.append(np.concatenate([held(of, true) for of, true in both], axis=1))
    combined, single = np.sum(found, axis=0)
    return combined, single


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["pairs", "tree"])
def test_combined_intervals_hold_the_truth_and_those_of_one_copy_do_not(name: str) -> None:
    # The shrinkage of a tree may cost five points.
    share = BUDGET.spend(f"copies: {name}", 2e-9) / 2
    combined, single = coverage(name, "ramp")

    def too_few(hits: NDArray[np.int_]) -> bool:
        return bool((binom.cdf(hits, RELEASES, 0.9) < share / len(hits)).any())

    assert not too_few(combined), f"{combined / RELEASES}"
    assert too_few(single), f"{single / RELEASES}"
