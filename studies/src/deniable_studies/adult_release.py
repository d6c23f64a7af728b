"""Adult released again and again: the numbers of study ``adult-release``.

Forty-five tables of nine attributes (nine marginals, 36 pairs) are estimated from every release.
The squared error of a table is averaged over its cells, then over tables. The truth is the table
that was randomized: only the randomization is random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.errors import InputError
from deniable.estimate.inference import Inference
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws.patterns import attenuation
from deniable.laws.response import Response
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import expected_error
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies import peers
from deniable_studies.baselines import amplified_epsilon, fake_data_given_rest, fake_data_law
from deniable_studies.study import Setting

DESIGNED: dict[str, str] = {
    "optimal": "optimal",
    "balanced": "balanced",
    "kronecker": "kronecker",
}
OURS = (*DESIGNED, "lambda")
RSFD, RSFD_STATED = "rsfd", "rsfd-as-stated"
DRAWN = (*OURS, RSFD, RSFD_STATED)
SMP = "smp"
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
    if method == "lambda":
        strength = equal_attenuation(sizes, epsilon)
        return design(schema, method="lambda", attenuation=strength).mechanism
    if method in (RSFD, RSFD_STATED):
        answer = epsilon if method == RSFD else amplified_epsilon(len(sizes), epsilon)
        block = Block(tuple(range(len(sizes))), fake_data_law(sizes, answer))
        return Mechanism(schema, (block,))
    return design(schema, epsilon=epsilon, method=DESIGNED[method]).mechanism


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
        asked: the total that was asked for, in nats.
        given_rest: largest ``epsilon_given_rest``, in nats.
        marginals, pairs: their errors; None if no such table can be estimated.
        refused: pairs that cannot be estimated at all.
    """

    method: str
    epsilon: float
    asked: float
    given_rest: float
    marginals: Errors | None
    pairs: Errors | None
    refused: tuple[tuple[str, str], ...]


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
    channels = {names: Channel(mechanism, names) for names in tables}
    refused = []
    for pair in combinations(schema.names, 2):
        channel = Channel(mechanism, pair)
        try:
            channel.check(n)
        except InputError:
            refused.append(pair)
            continue
        tables.append(pair)
        channels[pair] = channel
    truths = {names: _counts(columns, schema, names) / n for names in tables}
    errors = np.zeros((n_releases, len(tables)))
    simplex = np.zeros((n_releases, len(tables)))
    randomizer = Randomizer(mechanism, SeededRandomness(setting.release_seed(*stream)))
    for release in range(n_releases):
        with setting.step(release, n_releases):
            released = randomizer.randomize(columns)
            for place, names in enumerate(tables):
                counted = Tabulation.from_counts(_counts(released, schema, names))
                estimate = Inference(
                    Counts.of(channels[names].mechanism, counted), channels[names].attributes
                ).values
                errors[release, place] = np.mean((estimate - truths[names]) ** 2)
                projected = project_to_simplex(estimate)
                simplex[release, place] = np.mean((projected - truths[names]) ** 2)
    k = len(schema.names)
    expected = [expected_error(channels[names], n).mean_variance for names in tables]
    return Released(
        method,
        mechanism.epsilon,
        epsilon,
        max(mechanism.epsilon_given_rest),
        _errors(expected[:k], errors[:, :k], simplex[:, :k]),
        _errors(expected[k:], errors[:, k:], simplex[:, k:]),
        tuple(refused),
    )


def _counts(columns: Sequence[NDArray[Any]], schema: Schema, names: Names) -> NDArray[np.float64]:
    positions = schema.positions(names)
    sizes = [schema.n_categories[i] for i in positions]
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for i, size in zip(positions, sizes, strict=True):
        cells = cells * size + columns[i]
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


def sampling_error(
    n_categories: Sequence[int], concentration: Sequence[float], epsilon: float, n_records: int
) -> float:
    """Return the predicted error of SMP with k-ary randomized response, mean over attributes.

    As an estimate of this table's shares, averaged over the cells of an attribute: about m = n/k
    people answer for it. The randomization adds (1 − 1/a)(1/φ² − 1)/(a m), and which people answer
    adds (1 − Σπ²)(1/m − 1/n)/a, drawn without replacement. The number of answers is taken at its
    mean.

    Args:
        n_categories: of the attributes, shape (k,).
        concentration: Σπ² of every marginal, shape (k,).
        epsilon: the total, in nats.
        n_records: n.
    """
    answers = n_records / len(n_categories)
    return fmean(
        (1 - 1 / a) / a * (1 / attenuation(a, epsilon) ** 2 - 1) / answers
        + (1 - square) / a * (1 / answers - 1 / n_records)
        for a, square in zip(n_categories, concentration, strict=True)
    )


@dataclass(frozen=True)
class PeerRun:
    """A baseline as the public package runs it.

    Args:
        method: ``spl``, ``smp``, ``rsfd`` (asked for so that the record's level is the total) or
            ``rsfd-as-stated`` (asked for the total, so that the record's level is above it).
        asked: the total, in nats.
        measured: mean squared error of marginals (negative estimates set to 0, then divided by the
            sum).
        standard_error: of it; NaN from one release.
        n_releases: how many.
    """

    method: str
    asked: float
    measured: float
    standard_error: float
    n_releases: int


def run_peers(
    columns: Sequence[NDArray[Any]],
    n_categories: Sequence[int],
    epsilon: float,
    n_releases: int,
    setting: Setting,
) -> list[PeerRun]:
    """Return the errors of the public package's methods, which has to be installed.

    Args:
        columns: codes per attribute, shape (n,) each.
        n_categories: shape (k,).
        epsilon: the total, in nats.
        n_releases: of each method.
        setting: for seed and progress.
    """
    truths = [
        np.bincount(c, minlength=a) / len(c) for c, a in zip(columns, n_categories, strict=True)
    ]
    # Asked for ln(1 + (e^ε − 1)/k) RS+FD answers at ε, which is then the record's level.
    nominal = fake_data_given_rest(len(n_categories), epsilon)
    runs = [
        (peers.SPL, peers.SPL, epsilon),
        (peers.SMP, peers.SMP, epsilon),
        (RSFD, peers.RSFD, nominal),
        (RSFD_STATED, peers.RSFD, epsilon),
    ]
    found = []
    for place, (method, name, asked) in enumerate(runs):
        peers.seed(setting.release_seed(9, place))
        errors = []
        for release in range(n_releases):
            with setting.step(place * n_releases + release, len(runs) * n_releases):
                estimates = peers.shares(name, columns, n_categories, asked)
                squares = [np.mean((e - t) ** 2) for e, t in zip(estimates, truths, strict=True)]
                errors.append(float(np.mean(squares)))
        spread = float(np.std(errors, ddof=1)) if n_releases > 1 else float("nan")
        found.append(PeerRun(method, epsilon, fmean(errors), spread / n_releases**0.5, n_releases))
    return found


def population_marginal(mechanism: Mechanism, n_records: int) -> float:
    """Return the mean over attributes of the averaged variance of a share, as an estimate of the
    population, where the true table is uniform."""
    return fmean(
        expected_error(Channel(mechanism, (name,)), n_records, "population").mean_variance
        for name in mechanism.schema.names
    )


def population_sampling(n_categories: Sequence[int], epsilon: float, n_records: int) -> float:
    """Return the same for SMP: (1 − 1/a) k/(a φ² n)."""
    k = len(n_categories)
    return fmean(
        (1 - 1 / a) / a * k / (attenuation(a, epsilon) ** 2 * n_records) for a in n_categories
    )
