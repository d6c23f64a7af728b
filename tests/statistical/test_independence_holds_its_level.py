"""The corrected χ² test rejects independence as often as it says, and the interval of V covers.

Rows are drawn anew each time from a population in which two attributes are independent (or, for V,
go together), and released by the production sampler with fresh randomness. The hypothesis tested is
"within ``SLACK`` of the nominal probability", since χ² is a limit.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.estimate.association import Association, association
from deniable.estimate.chi_square import chi_square, released_chi_square
from deniable.laws import MatrixChannel, PatternTable, ProductLaw, joint_of_attenuation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.schema import Schema
from statistical.budget import BUDGET

RELEASES = 1000
ROWS = 1000
SLACK = 0.012
LEVELS = np.array([0.01, 0.05, 0.2, 0.5, 0.8])
FIRST, SECOND = np.array([0.6, 0.25, 0.15]), np.array([0.45, 0.25, 0.15, 0.15])
INDEPENDENT = np.outer(FIRST, SECOND)


def joint() -> tuple[Block, ...]:
    return (Block((0, 1), joint_of_attenuation((3, 4), 0.5)),)


def table() -> tuple[Block, ...]:
    # Both attributes tend to change together: φ_ij is over twice φ_i φ_j.
    law = np.array([[0.55, 0.05], [0.05, 0.35]])
    return (Block((1, 0), PatternTable.from_probabilities((4, 3), law)),)


def product() -> tuple[Block, ...]:
    return (Block((0, 1), ProductLaw.from_levels((3, 4), (1.5, 2.0))),)


def more_outputs() -> tuple[Block, ...]:
    matrix = np.array(
        [[0.6, 0.1, 0.1], [0.1, 0.6, 0.1], [0.1, 0.1, 0.6], [0.15, 0.15, 0], [0.05, 0.05, 0.2]]
    )
    return (
        Block((0,), MatrixChannel.from_probabilities(matrix)),
        Block((1,), ProductLaw.from_levels((4,), (2.0,))),
    )


LAWS = {"joint": joint, "table": table, "product": product, "more outputs": more_outputs}
# Where the two are randomized together, the maximum of the likelihood is searched for every table.
TOGETHER = {"joint", "table"}


def mechanism_of(name: str) -> Mechanism:
    return Mechanism(Schema.anonymous((3, 4)), LAWS[name]())


def released(mechanism: Mechanism, population: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts of RELEASES releases of ROWS rows each, shape (RELEASES, outputs)."""
    cells = np.random.default_rng().choice(12, size=RELEASES * ROWS, p=population.ravel())
    columns = [codes.astype(np.uint8) for codes in np.unravel_index(cells, (3, 4))]
    codes = Randomizer(mechanism, SystemRandomness()).randomize(columns)
    outputs = mechanism.n_outputs
    places = np.ravel_multi_index([each.astype(np.intp) for each in codes], outputs)
    size = int(np.prod(outputs))
    places += np.repeat(np.arange(RELEASES), ROWS) * size
    counts = np.bincount(places, minlength=RELEASES * size)
    return counts.reshape(RELEASES, *outputs).astype(np.float64)


def alarms(
    hits: NDArray[np.int_], nominal: NDArray[np.float64], share: float, slack: float = SLACK
) -> NDArray[np.bool_]:
    """Which counts cannot be those of probabilities within ``slack`` of the nominal ones: two exact
    binomial tails for each, which share the false alarms equally."""
    each = share / (2 * hits.size)
    low, high = np.maximum(nominal - slack, 0), np.minimum(nominal + slack, 1)
    return (binom.cdf(hits, RELEASES, low) < each) | (binom.sf(hits - 1, RELEASES, high) < each)


def rejections(p_values: list[float]) -> NDArray[np.int_]:
    return np.sum(np.array(p_values)[:, None] < LEVELS, axis=0)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.weekly] * (n in TOGETHER)) for n in LAWS]
)
def test_p_values_are_uniform_under_independence(name: str) -> None:
    share = BUDGET.spend(f"independence: p-values, {name}")
    mechanism = mechanism_of(name)
    channel = Channel(mechanism, ("a1", "a2"))
    counts = released(mechanism, INDEPENDENT)
    hits = rejections([chi_square(c, channel.forward, channel.inverse).p_value for c in counts])
    assert not alarms(hits, LEVELS, share).any(), f"{hits / RELEASES} at {LEVELS}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint", "table"])
def test_the_released_table_read_as_it_stands_would_be_noticed(name: str) -> None:
    # Under these laws it rejects at 5 % with probability over 0.2; were it 0.2, the chance that
    # this goes unnoticed would be below the share taken here.
    share = BUDGET.spend(f"independence: naive test, {name}", 2e-9)
    quiet = [h for h in range(RELEASES) if not alarms(np.full(5, h), LEVELS, share)[1]]
    assert binom.cdf(max(quiet), RELEASES, 0.2) < share
    counts = released(mechanism_of(name), INDEPENDENT)
    hits = rejections([released_chi_square(c).p_value for c in counts])
    assert alarms(hits, LEVELS, share)[1], f"{hits / RELEASES} at {LEVELS}"


def intervals_that_hold(found: list[Association], truth: float) -> NDArray[np.int_]:
    ends = np.array([each.interval(1.959964) for each in found])
    return np.array([np.sum((ends[:, 0] <= truth) & (truth <= ends[:, 1]))])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint", "product"])
@pytest.mark.parametrize("dependence", [0.0, 0.35])
def test_the_interval_of_v_covers_and_one_without_randomization_would_not(
    name: str, dependence: float
) -> None:
    share = BUDGET.spend(f"independence: V, {name}, {dependence}", 2e-9) / 2
    # From independent rows towards rows in which the second attribute follows the first.
    tied = np.array([[0.45, 0.15, 0, 0], [0, 0.1, 0.15, 0], [0, 0, 0, 0.15]])
    population = (1 - dependence) * INDEPENDENT + dependence * tied
    truth = float((((population - INDEPENDENT) ** 2 / INDEPENDENT).sum() / 2) ** 0.5)
    mechanism = mechanism_of(name)
    inverse = Channel(mechanism, ("a1", "a2")).inverse
    counts = released(mechanism, population)
    found = [association(c / ROWS, inverse, ROWS) for c in counts]
    hits = intervals_that_hold(found, truth)
    # The shape of V̂² is approximated by its mean and variance: 95 % may be 92.5 to 97.5 %.
    assert not alarms(hits, np.array([0.95]), share, 0.025).any(), f"{hits / RELEASES}"
    if dependence:
        # Deviations of a third, as if randomization added nothing, cover less than 0.75.
        quiet = [h for h in range(RELEASES) if not alarms(np.array([h]), np.array([0.95]), share)]
        assert binom.sf(min(quiet) - 1, RELEASES, 0.75) < share
        short = [Association(a.square, a.slope / 9, a.floor / 9, a.detectable) for a in found]
        assert alarms(intervals_that_hold(short, truth), np.array([0.95]), share).all()
