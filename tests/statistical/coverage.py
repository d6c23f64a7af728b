"""Do intervals cover what they say they cover? Simulated releases, and the decision about them.

Every release is drawn by the production sampler with fresh randomness from the operating system.
For the target ``table`` one fixed table is randomized again and again; for ``population`` its rows
are drawn anew each time, with replacement, and the table itself is the population.

An interval's true coverage is not exactly its level: the normal approximation and the estimated
variance are off by a little. So the hypothesis tested is "within a slack of the level in every
cell", and a failure is an alarm whose probability under it is at most the share of the folder's
budget that the test has taken. A defect's chance to slip through is bounded and taken beforehand.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.estimate.inference import Inference
from deniable.estimate.intervals import share_variance
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation, Tabulator
from deniable.laws import MatrixChannel, PatternTable, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.schema import Schema
from statistical.budget import BUDGET

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
SLACK = 0.01
FEWEST = 200
"""Cells with fewer true records have a test of their own: counts of a handful of records come in
steps that no interval can divide."""

ROWS = 1 << 16
"""Rows randomized in one call: many releases of a small table at once, which are independent."""

Columns = list[NDArray[np.unsignedinteger]]
Answer = Callable[[int, Tabulation], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""The interval's ends for a question, by its number, from its counts."""


def alarms(
    hits: NDArray[np.int_], releases: int, share: float, slack: float = SLACK
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which counts of covering intervals are too low and which too high.

    Two exact binomial tails for each cell share the false alarms equally (Bonferroni).
    """
    each = share / (2 * hits.size)
    too_low = binom.cdf(hits, releases, LEVEL - slack) < each
    too_high = binom.sf(hits - 1, releases, LEVEL + slack) < each
    return too_low, too_high


def check_coverage(covered: NDArray[np.bool_], share: float, slack: float = SLACK) -> None:
    """Fail if some cell's coverage cannot be within ``slack`` of the level.

    Args:
        covered: whether the interval held the truth, shape (releases, cells). Releases are
            independent; cells need not be.
        share: the most probable that failing may be if all coverages are within the slack.
        slack: see there.
    """
    releases, cells = covered.shape
    assert cells >= 2
    hits = covered.sum(axis=0)
    too_low, too_high = alarms(hits, releases, share, slack)
    assert not too_low.any(), f"covers only {hits[too_low] / releases}, not {LEVEL}"
    assert not too_high.any(), f"covers as much as {hits[too_high] / releases}, not {LEVEL}"


def miss_probability(
    coverage: NDArray[np.float64], releases: int, share: float, slack: float = SLACK
) -> float:
    """The chance that a defect with these coverages goes unnoticed is at most that of its most
    conspicuous cell."""
    counts = np.arange(releases + 1)
    # The thresholds are those of check_coverage: a Bonferroni share for each of the cells.
    too_low, too_high = alarms(counts, releases, share * counts.size / coverage.size, slack)
    quiet = ~(too_low | too_high)
    return float(min(binom.pmf(counts[quiet], releases, c).sum() for c in coverage))


def simulate(
    columns: Columns,
    mechanism: Mechanism,
    releases: int,
    target: Target,
    questions: Sequence[tuple[str, ...]],
    answer: Answer,
) -> list[NDArray[np.bool_]]:
    """Release again and again; for each question, whether (low, high) held the truth.

    Args:
        questions: attributes counted for each question.
        answer: gives the intervals.
    """
    randomizer = Randomizer(mechanism, SystemRandomness())
    redraw = np.random.default_rng()
    truths = [frequencies(columns, mechanism, names) for names in questions]
    inside: list[list[NDArray[np.bool_]]] = [[] for _ in questions]
    n = len(columns[0])
    together = max(1, ROWS // n)
    for start in range(0, releases, together):
        count = min(together, releases - start)
        chosen = np.tile(np.arange(n), count)
        if target == "population":
            chosen = redraw.integers(0, n, count * n)
        out = randomizer.randomize([column[chosen] for column in columns])
        for j, names in enumerate(questions):
            for table in tables(out, mechanism, names, count):
                low, high = answer(j, Tabulation.from_counts(table))
                inside[j].append(((low <= truths[j]) & (truths[j] <= high)).ravel())
    kept = [(n * truth >= FEWEST).ravel() for truth in truths]
    return [np.array(rows)[:, keep] for rows, keep in zip(inside, kept, strict=True)]


def tables(
    columns: Columns, mechanism: Mechanism, names: Sequence[str], count: int
) -> NDArray[np.float64]:
    """Counts of each of ``count`` releases of equal length that stand below each other; the
    releases are the first axis."""
    positions = mechanism.schema.positions(names)
    shape = (count, *(mechanism.n_outputs[i] for i in positions))
    release = np.repeat(np.arange(count), len(columns[0]) // count)
    cells = np.ravel_multi_index((release, *(columns[i] for i in positions)), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def frequencies(
    columns: Columns, mechanism: Mechanism, names: Sequence[str]
) -> NDArray[np.float64]:
    """The true table."""
    chosen = mechanism.schema.positions(names)
    tabulator = Tabulator([mechanism.schema.n_categories[i] for i in chosen])
    tabulator.add([columns[i] for i in chosen])
    return tabulator.tabulation().frequencies


def intervals(mechanism: Mechanism, questions: Sequence[tuple[str, ...]], target: Target) -> Answer:
    """The intervals of the joint table, as users get them: at the first release of a question both
    are compared."""
    compared: set[int] = set()

    def answer(j: int, counted: Tabulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counts = Counts.of(mechanism, counted)
        inference = Inference(counts, questions[j], target)
        ends = share_variance(inference).interval(inference.values, LEVEL)
        if j not in compared:
            compared.add(j)
            (estimate,) = Shares(questions[j], target=target).answer(counts)
            assert np.array_equal(ends, estimate.confidence_interval(LEVEL))
        return ends

    return answer


def check_both_targets(
    name: str,
    columns: Columns,
    mechanism: Mechanism,
    questions: list[tuple[str, ...]],
    releases: int,
) -> None:
    share = BUDGET.spend(f"coverage: {name}")
    targets: list[Target] = ["table", "population"]
    for target in targets:
        answer = intervals(mechanism, questions, target)
        for covered in simulate(columns, mechanism, releases, target, questions, answer):
            check_coverage(covered, share / (len(targets) * len(questions)))


def synthetic(law_name: str) -> tuple[Columns, Mechanism]:
    random = np.random.default_rng(7)
    sizes = (2, 4, 3)
    joint = random.dirichlet(np.full(24, 2.0))
    cells = random.choice(24, size=4000, p=joint)
    columns = [c.astype(np.uint8) for c in np.unravel_index(cells, sizes)]
    if law_name == "product":
        blocks: tuple[Block, ...] = (
            Block((0, 1, 2), ProductLaw.from_levels(sizes, (2.0, 3.0, 2.5))),
        )
    elif law_name == "little noise":
        blocks = (Block((0, 1, 2), ProductLaw.from_levels(sizes, (4.0, 5.0, 4.0))),)
    elif law_name == "table":
        law = np.array([[[0.6, 0.05], [0.08, 0.02]], [[0.07, 0.03], [0.01, 0.14]]])
        blocks = (Block((0, 1, 2), PatternTable.from_probabilities(sizes, law)),)
    else:
        matrix = np.array([[0.8, 0.1, 0.1], [0.05, 0.7, 0.2], [0.05, 0.1, 0.6], [0.1, 0.1, 0.1]])
        blocks = (
            Block((2,), MatrixChannel.from_probabilities(matrix)),
            Block((1, 0), ProductLaw.from_levels((4, 2), (3.0, 2.0))),
        )
    return columns, Mechanism(Schema.anonymous(sizes), blocks)
