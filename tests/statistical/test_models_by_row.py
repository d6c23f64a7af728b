"""Regressions by row of fresh answers: intervals hold the truth as often as they state.

Answers are drawn through the matrix of a forced response, of Warner's design and of Kuk's with
several draws. A planted defect that has to be seen: a channel with other probabilities of a forced
answer.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from deniable.estimate.counting import KeptRows
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strata import Strata
from deniable.models.by_row import RowFit, RowVariables, fit_by_row, number_axis
from deniable.models.cells import Axis
from deniable.models.formula import read_formula
from deniable.schema import Attribute, Schema
from statistical.budget import BUDGET
from statistical.coverage import LEVEL

ROWS, RUNS = 5_000, 500
TRUTH = np.array([-0.5, 0.5, -0.3])
SCHEMA = Schema((Attribute("y", ("no", "yes")),))
Z = float(norm.ppf(0.5 + LEVEL / 2))


def kuk(yes: float, no: float, draws: int) -> NDArray[np.float64]:
    """Number of red cards among several: with chance ``yes`` each of those who have the trait."""
    return np.column_stack([binom.pmf(range(draws + 1), draws, p) for p in (no, yes)])


DESIGNS = {
    "forced": np.array([[5, 1], [1, 5]]) / 6,
    "Warner": np.array([[0.75, 0.25], [0.25, 0.75]]),
    "Kuk": kuk(0.7, 0.3, 3),
}


def fitted(drawn: NDArray[np.float64], matrix: NDArray[np.float64]) -> RowFit:
    """A fit through a matrix of answers that another one drew."""
    random = np.random.default_rng()
    x, z = random.normal(size=ROWS), random.uniform(-2, 2, ROWS)
    yes = random.random(ROWS) < 1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * x + TRUTH[2] * z)))
    chances = drawn.T[yes.astype(int)].cumsum(axis=1)
    codes = (random.random(ROWS)[:, None] > chances).sum(axis=1)
    mechanism = Mechanism(SCHEMA, (Block((0,), MatrixChannel.from_probabilities(matrix)),))
    clean = {"x": x, "z": z}
    axes = {name: number_axis(name, values) for name, values in clean.items()}
    return fit_by_row(
        read_formula("y ~ x + z"),
        RowVariables(Axis("y", ("no", "yes")), (), axes, clean, None),
        KeptRows({0: codes}, {}, clean),
        Strata.one(mechanism),
        ordered=False,
        prior=False,
        weights=None,
        errors="observed",
        most_listed=0,
    )


def hits(fits: list[RowFit]) -> NDArray[np.int64]:
    """How many intervals of each coefficient hold the truth."""
    off = [abs(fit.parameters - TRUTH) / np.sqrt(np.diag(fit.covariance)) for fit in fits]
    return (np.array(off) <= Z).sum(axis=0)


@pytest.mark.weekly
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_by_row_hold_the_truth_as_often_as_they_state(name: str) -> None:
    share = BUDGET.spend(f"intervals of a regression by row, {name}", 2e-9)
    found = hits([fitted(DESIGNS[name], DESIGNS[name]) for _ in range(RUNS)])
    assert (binom.cdf(found, RUNS, LEVEL) >= share / 6).all()
    assert (binom.sf(found - 1, RUNS, LEVEL) >= share / 6).all()


@pytest.mark.slow
def test_another_probability_of_a_forced_answer_is_seen() -> None:
    share = BUDGET.spend("another forced response is missed")
    wrong = np.array([[0.95, 0.15], [0.05, 0.85]])
    found = hits([fitted(DESIGNS["forced"], wrong) for _ in range(30)])
    assert (binom.cdf(found, 30, LEVEL) < share / 3).any()
