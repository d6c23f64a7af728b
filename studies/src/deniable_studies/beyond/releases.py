"""One table released again and again by one method, and the errors of its estimates.

Every table of one attribute and of two is estimated from every release. The squared error of a
table is averaged over its cells, then over tables. The truth is the table that was randomized: only
the randomization is random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.errors import InputError
from deniable.estimate.inference import Inference
from deniable.estimate.intervals import share_variance
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Counts
from deniable.laws.response import Response
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import expected_error, expected_variance
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.beyond.baselines import RSFD, RSFD_STATED, amplified_epsilon, fake_data_law
from deniable_studies.study import Setting

DESIGNED = ("optimal", "balanced", "kronecker")
OURS = (*DESIGNED, "lambda")
FORMS = {"forms": 0.5, "forms-shares": 0.0}
"""Published forms, by the importance of pairs θ."""
DRAWN = (*OURS, *FORMS, RSFD, RSFD_STATED)
LEVEL = 0.95
"""Of intervals."""

RARE = 0.01
"""A share below this is rare."""

Names = tuple[str, ...]


def mechanism_for(method: str, schema: Schema, epsilon: float) -> Mechanism:
    """Return a method's mechanism for a total.

    Args:
        method: one of ``DRAWN``. ``kronecker`` gives every attribute the level ε/k, ``lambda``
            every attribute the same λ; ``rsfd`` answers at ε, ``rsfd-as-stated`` at its authors'
            ε', so that the record's level is above the total.
        schema: the attributes.
        epsilon: of the record, in nats.
    """
    sizes = schema.n_categories
    if method in FORMS:
        return design(schema, epsilon=epsilon, method="forms", pairs=FORMS[method]).mechanism
    if method == "lambda":
        strength = equal_attenuation(sizes, epsilon)
        return design(schema, method="lambda", attenuation=strength).mechanism
    if method in (RSFD, RSFD_STATED):
        answer = epsilon if method == RSFD else amplified_epsilon(len(sizes), epsilon)
        block = Block(tuple(range(len(sizes))), fake_data_law(sizes, answer))
        return Mechanism(schema, (block,))
    return design(schema, epsilon=epsilon, method=method).mechanism


def equal_attenuation(n_categories: Sequence[int], epsilon: float) -> float:
    """Return the λ that, the same for all attributes, has Σ ln(1 + a_i λ/(1 − λ)) = ε, to 1e-12
    and never above it."""
    low, high = 0.0, 1.0
    while high - low > 1e-15:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        total = sum(Response.from_attenuation(a, middle).epsilon for a in n_categories)
        low, high = (middle, high) if total <= epsilon * (1 - 1e-13) else (low, middle)
    return low


@dataclass(frozen=True)
class Errors:
    """Squared errors of one kind of table under one method, averaged.

    Args:
        n_tables: tables that were estimated; the rest was refused.
        expected: the mean over cells and tables that the formulas predict.
        expected_median: the median over tables of the predicted mean over cells.
        measured: the same as ``expected`` over the releases drawn.
        standard_error: of ``measured``, from the differences between releases.
        simplex: ``measured`` after projection to the simplex (no negative shares).
    """

    n_tables: int
    expected: float
    expected_median: float
    measured: float
    standard_error: float
    simplex: float

    @property
    def deviation(self) -> float:
        """Measured less expected, in standard errors."""
        return (self.measured - self.expected) / self.standard_error


@dataclass(frozen=True)
class Released:
    """A method at a level.

    Args:
        method: one of ``DRAWN``.
        epsilon: of the record as drawn, in nats.
        asked: the requested total, in nats.
        given_rest: largest ``epsilon_given_rest``, in nats.
        marginals, pairs: their errors; None if no such table can be estimated.
        refused: pairs that cannot be estimated at all.
        exact: the variance of a share, and of a cell of two attributes, where the true table is
            uniform, as estimates of a population; None for pairs if one cannot be estimated.
        covered: under forms, the share of 95 % intervals that cover the truth, by kind of number.
    """

    method: str
    epsilon: float
    asked: float
    given_rest: float
    marginals: Errors | None
    pairs: Errors | None
    refused: tuple[tuple[str, str], ...]
    exact: tuple[float | None, float | None]
    covered: Mapping[str, float]

    @property
    def kinds(self) -> dict[str, Errors]:
        """The errors by kind of number."""
        both = {"marginals": self.marginals, "pairs": self.pairs}
        return {kind: errors for kind, errors in both.items() if errors is not None}


def release_again(
    columns: Sequence[NDArray[Any]],
    schema: Schema,
    method: str,
    epsilon: float,
    n_releases: int,
    setting: Setting,
    stream: Sequence[int],
) -> Released:
    """Draw releases of one table with the real sampler, and measure the errors of their estimates.

    Args:
        columns: codes per attribute, shape (n,) each.
        schema: the attributes.
        method: one of ``DRAWN``.
        epsilon: of the record, in nats.
        n_releases: how many.
        setting: for seed and progress.
        stream: of the seed.
    """
    mechanism = mechanism_for(method, schema, epsilon)
    n = len(columns[0])
    tables: list[Names] = [(name,) for name in schema.names]
    channels = {names: channel_of(mechanism, names) for names in tables}
    refused = []
    for pair in combinations(schema.names, 2):
        channel = channel_of(mechanism, pair)
        try:
            channel.check(n)
        except InputError:
            refused.append(pair)
            continue
        tables.append(pair)
        channels[pair] = channel
    truths = {names: cell_counts(columns, schema, names) / n for names in tables}
    errors = np.zeros((n_releases, len(tables)))
    simplex = np.zeros((n_releases, len(tables)))
    tally = _Covered(truths)
    randomizer = Randomizer(mechanism, SeededRandomness(setting.release_seed(*stream)))
    for release in range(n_releases):
        with setting.step(release, n_releases):
            released = randomizer.randomize(columns)
            for place, names in enumerate(tables):
                counts = _released_counts(released, channels[names], schema)
                counted = Counts.of(mechanism, counts)
                inference = Inference(counted, names)
                estimate = inference.values
                errors[release, place] = np.mean((estimate - truths[names]) ** 2)
                projected = project_to_simplex(estimate)
                simplex[release, place] = np.mean((projected - truths[names]) ** 2)
                if method in FORMS:
                    tally.add(names, inference)
    k = len(schema.names)
    expected = [expected_square(channels[names], truths[names], n) for names in tables]
    exact = expected_variance(mechanism)
    return Released(
        method,
        mechanism.epsilon,
        epsilon,
        max(mechanism.epsilon_given_rest),
        _errors(expected[:k], errors[:, :k], simplex[:, :k]),
        _errors(expected[k:], errors[:, k:], simplex[:, k:]),
        tuple(refused),
        (_over(exact.shares, n), _over(exact.pairs, n)),
        tally.shares,
    )


def _over(value: float | None, n: int) -> float | None:
    return None if value is None else value / n


class _Covered:
    """How many intervals of one table's shares and pairs hold the truth."""

    def __init__(self, truths: Mapping[Names, NDArray[np.float64]]) -> None:
        self._truths = truths
        self._held: dict[str, list[int]] = {}

    def add(self, names: Names, inference: Inference) -> None:
        """Look at a table's intervals."""
        truth = self._truths[names]
        low, high = share_variance(inference).interval(inference.values, LEVEL)
        held = (low <= truth) & (truth <= high)
        kinds = {"pairs": held} if len(names) == 2 else {"marginals": held}
        if len(names) == 1 and (truth < RARE).any():
            kinds["rare"] = held[truth < RARE]
        for kind, cells in kinds.items():
            both = self._held.setdefault(kind, [0, 0])
            both[0] += int(cells.sum())
            both[1] += cells.size

    @property
    def shares(self) -> dict[str, float]:
        """Coverage by kind of number."""
        return {kind: held / n for kind, (held, n) in self._held.items()}


def expected_square(
    channel: Channel | PublishedChannel, truth: NDArray[np.float64], n_records: int
) -> float:
    """Return the variance of a cell as an estimate of the table, averaged over its cells.

    Under one pattern law it does not depend on the truth. Under forms it does: from what one row
    adds on average, forms differ (docs/proofs/forms.md, section 1).
    """
    if isinstance(channel, Channel):
        return expected_error(channel, n_records).mean_variance
    cells = np.zeros(truth.shape)
    parts = zip(channel.rows, channel.moments, channel.means, strict=True)
    for fraction, moment, mean in parts:
        cells = cells + fraction * (moment.apply(truth) - mean.apply(truth) ** 2)
    return float((cells - truth + truth**2).mean()) / n_records


def _released_counts(
    released: Sequence[NDArray[Any]], channel: Channel | PublishedChannel, schema: Schema
) -> NDArray[np.float64]:
    if isinstance(channel, Channel):
        return cell_counts(released, schema, channel.attributes)
    (places,) = channel.released_codes(dict(enumerate(released)))
    return np.bincount(places, minlength=channel.n_outputs[0]).astype(np.float64)


def cell_counts(
    columns: Sequence[NDArray[Any]], schema: Schema, names: Names
) -> NDArray[np.float64]:
    positions = schema.positions(names)
    sizes = [schema.n_categories[i] for i in positions]
    cells = np.ravel_multi_index([columns[i].astype(np.intp) for i in positions], sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes).astype(np.float64)


def _errors(
    expected: Sequence[float], errors: NDArray[np.float64], simplex: NDArray[np.float64]
) -> Errors | None:
    if not expected:
        return None
    per_release = errors.mean(axis=1)
    return Errors(
        len(expected),
        fmean(expected),
        median(expected),
        float(per_release.mean()),
        float(per_release.std(ddof=1) / len(per_release) ** 0.5),
        float(simplex.mean()),
    )
