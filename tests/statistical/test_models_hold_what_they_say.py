"""Models of fresh releases: intervals hold the truth as often as they say, tests keep their level.

Only counts are drawn: form by form the answers of so many people, by the channel's own law. Planted
defects that have to be seen: a channel that is transposed, pairs taken as if attributes were
randomized independently, and a prior whose information is counted as the data's.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

import deniable
from deniable.estimate.source import open_release
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.mechanism.table_map import TableMap
from deniable.models.cells import Axis, Cells
from deniable.models.formula import design_of, read_formula
from deniable.models.likelihood import Likelihood, LogLinearFit, Observed, fit_log_linear
from deniable.models.query import ModelQuery
from statistical.budget import BUDGET
from statistical.coverage import LEVEL
from unit.models.cases import CATEGORIES, COEFFICIENTS, NAMES, SCHEMA, SHAPE, laws, people, truth

ROWS, RELEASES = 20_000, 150
LAWS = laws()
COLUMNS = design_of(read_formula("y ~ a + b"), Cells(tuple(map(Axis, NAMES, CATEGORIES)), 3))
NONE = np.zeros(len(COLUMNS.names))
Z = float(norm.ppf(0.5 + LEVEL / 2))


def drawn(law: Mechanism, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The counts of a fresh release of a fresh sample."""
    channel = channel_of(law, NAMES)
    chances = channel.forward.apply(table)
    counts = np.random.default_rng().multinomial(ROWS, (chances / chances.sum()).ravel())
    return counts.reshape(chances.shape).astype(float)


def fitted(
    law: Mechanism, counts: NDArray[np.float64], precision: NDArray[np.float64] = NONE
) -> LogLinearFit:
    channel = channel_of(law, NAMES, counts)
    likelihood = Likelihood(SHAPE, (Observed(channel.forward, counts),))
    return fit_log_linear(likelihood, COLUMNS.values, COLUMNS.names, precision)


def hits(fits: list[LogLinearFit], true: tuple[float, ...] = COEFFICIENTS) -> NDArray[np.int64]:
    """How many intervals of each coefficient hold the truth."""
    off = np.array([abs(f.parameters[:4] - true) / f.standard_errors[:4] for f in fits])
    return (off <= Z).sum(axis=0)


def too_few(found: NDArray[np.int64], share: float) -> bool:
    """Whether some intervals hold less often than they say, four coefficients together."""
    return bool((binom.cdf(found, RELEASES, LEVEL) < share / 4).any())


def too_many(found: NDArray[np.int64], share: float) -> bool:
    return bool((binom.sf(found - 1, RELEASES, LEVEL) < share / 4).any())


@pytest.mark.weekly
@pytest.mark.parametrize("law", ["matrix", "ramp", "forms"])
def test_intervals_hold_the_truth_as_often_as_they_say(law: str) -> None:
    share = BUDGET.spend(f"intervals of a logistic regression, {law}", 2e-9)
    found = hits([fitted(LAWS[law], drawn(LAWS[law], truth())) for _ in range(RELEASES)])
    assert not too_few(found, share / 2)
    assert not too_many(found, share / 2)


@pytest.mark.weekly
def test_a_term_that_is_nothing_is_rarely_found() -> None:
    share = BUDGET.spend("likelihood-ratio test of nothing")
    table = truth(0.0)
    kept = np.array([name != "b[T.m]" for name in COLUMNS.names])
    found = 0
    for _ in range(RELEASES):
        larger = fitted(LAWS["ramp"], drawn(LAWS["ramp"], table))
        smaller = fit_log_linear(
            larger.likelihood, larger.design[:, kept], np.array(larger.names)[kept], NONE[kept]
        )
        found += 2 * (larger.objective - smaller.objective) > Z**2
    assert binom.sf(found - 1, RELEASES, 1 - LEVEL) >= share


def test_a_transposed_channel_is_seen() -> None:
    share = BUDGET.spend("a transposed channel is missed")
    matrix = np.array([[0.9, 0.3], [0.1, 0.7]])
    wrong = TableMap(SHAPE[:3], (), np.ones(()), {0: matrix.T / matrix.sum(axis=1)})
    chances = np.tensordot(matrix, truth(), (1, 0))
    fits = []
    for _ in range(RELEASES):
        counts = np.random.default_rng().multinomial(ROWS, chances.ravel()).reshape(SHAPE[:3])
        likelihood = Likelihood(SHAPE, (Observed(wrong, counts.astype(float)),))
        fits.append(fit_log_linear(likelihood, COLUMNS.values, COLUMNS.names, NONE))
    assert too_few(hits(fits), share)


@pytest.mark.slow
def test_pairs_as_if_attributes_were_randomized_independently_are_seen() -> None:
    share = BUDGET.spend("pairs as of independent attributes are missed")
    law = LAWS["ramp"]
    alone = law.attribute_epsilon
    wrong = Mechanism.of(ProductLaw.from_levels(SHAPE[:3], alone), SCHEMA)
    counts = [drawn(law, truth()) for _ in range(RELEASES)]
    found = hits([fitted(wrong, each) for each in counts])
    assert too_few(found, share)


@pytest.mark.slow
def test_a_prior_that_is_counted_as_data_is_seen() -> None:
    share = BUDGET.spend("a prior counted as data is missed")
    strong = np.full(len(NONE), 1 / 0.15**2)
    fits = [fitted(LAWS["ramp"], drawn(LAWS["ramp"], truth()), strong) for _ in range(RELEASES)]
    assert too_few(hits(fits), share)
    assert all(fit.data_share[:4].min() < 0.9 for fit in fits)  # and the fit itself says so


@pytest.mark.weekly
def test_least_squares_of_a_kept_number_holds_the_truth() -> None:
    share, law = BUDGET.spend("intervals of least squares", 2e-9), "forms"
    true, found = np.array([30.0, 4.0, 0.0, -6.0]), np.zeros(4, dtype=np.int64)
    random = np.random.default_rng()
    for _ in range(RELEASES):
        rows = deniable.randomize(people(8000, int(random.integers(1 << 31))), LAWS[law])
        (model,) = ModelQuery("hours ~ a + b").run(open_release(rows, Strata.one(LAWS[law])))
        found += abs(model.coefficients - true) <= Z * model.standard_errors
    assert not too_few(found, share / 2)
    assert not too_many(found, share / 2)
