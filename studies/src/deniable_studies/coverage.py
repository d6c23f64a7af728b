"""How often intervals hold the truth, by how many people are in a cell: numbers of ``coverage``.

People are drawn from one made-up population; they are released by the sampler that releases use;
every marginal, every table of two attributes and the table of all three is estimated; and each
cell's interval holds its truth or does not. For target ``table`` the same people are released again
and again, for ``population`` they are drawn anew each time.

The shipped intervals are score intervals (:mod:`deniable.estimate.intervals`). Beside them plain
ones are measured, estimate ± z standard errors: these take the variance at the estimate through the
released counts; where these are few, a count that is too low gives an estimate and a variance that
are both too low, and the interval misses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.inference import UNCERTAIN_ERRORS, Inference, normal_quantile
from deniable.estimate.intervals import share_variance
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.adult_release import OURS, mechanism_for
from deniable_studies.study import Setting

N_CATEGORIES = (3, 5, 8)
LEVELS = (0.5, 0.8, 0.95)
TARGETS: tuple[Target, ...] = ("table", "population")
KINDS = ("marginal", "pair", "joint")
EDGES = (0.5, 2.5, 5.5, 10.5, 30.5, 199.5)
"""Groups of cells by the number of true records, the expected one for target ``population``."""
GROUPS = ("0", "1–2", "3–5", "6–10", "11–30", "31–199", "200+")
LARGE = len(GROUPS) - 1
AT_LEAST_ELEVEN = 4
CONCENTRATION = 0.4
"""Of the Dirichlet distribution that the population's 120 shares are drawn from: few common
combinations, many rare ones."""

Names = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """What is released, and what is asked of it.

    Args:
        method: how.
        epsilon: of the record, in nats.
        n_people: n.
        target: whose shares the intervals are for.
    """

    method: str
    epsilon: float
    n_people: int
    target: Target


@dataclass(frozen=True)
class Group:
    """Cells of one kind of table with about equally many true records, over the releases of a case.

    Args:
        case: which.
        kind: ``marginal``, ``pair`` or ``joint``.
        group: place in ``GROUPS``.
        n_cells: how many cells.
        shipped: share of the shipped intervals that hold the truth, one per level.
        standard_error: of each, from the differences between releases; at least what cells that
            are right and independent would have, for these may happen to be all covered.
        plain: the same for plain intervals.
        worst: the least coverage of a single cell's shipped interval at the highest level.
        worst_plain: the same for plain intervals.
        width: mean width of the shipped intervals over that of the plain ones, highest level.
        uncertain: share of estimates marked as uncertain.
        mistaken: for target ``table``, coverage of the intervals made for the population, highest
            level; NaN for target ``population``.
    """

    case: Case
    kind: str
    group: int
    n_cells: int
    shipped: tuple[float, ...]
    standard_error: tuple[float, ...]
    plain: tuple[float, ...]
    worst: float
    worst_plain: float
    width: float
    uncertain: float
    mistaken: float


def population(setting: Setting) -> NDArray[np.float64]:
    """Return the population's shares, shape ``N_CATEGORIES``."""
    cells = int(np.prod(N_CATEGORIES))
    shares = setting.generator(20).dirichlet(np.full(cells, CONCENTRATION))
    return np.asarray(shares.reshape(N_CATEGORIES))


def cases(*, quick: bool) -> Iterator[Case]:
    """Yield the cases of the study."""
    for epsilon in (8.0,) if quick else (4.0, 8.0):
        for n in (300, 3000) if quick else (300, 3000, 30_000):
            for method in OURS:
                for target in TARGETS:
                    yield Case(method, epsilon, n, target)


def sweep(setting: Setting) -> list[Group]:
    """Return what came out for every case."""
    chosen = list(cases(quick=setting.quick))
    n_releases = releases(quick=setting.quick)
    found: list[Group] = []
    for place, case in enumerate(chosen):
        part = setting.part(place / len(chosen), (place + 1) / len(chosen))
        found += cover(case, n_releases, part, place)
    return found


def releases(*, quick: bool) -> int:
    """Return how many releases every case has."""
    return 40 if quick else 500


class _Tally:
    """Counts of one table's cells over releases."""

    def __init__(self, truth: NDArray[np.float64], n_releases: int) -> None:
        self.truth = truth
        shape = (n_releases, truth.size)
        self.shipped = np.zeros((len(LEVELS), *shape), dtype=bool)
        self.plain = np.zeros((len(LEVELS), *shape), dtype=bool)
        self.uncertain = np.zeros(shape, dtype=bool)
        self.mistaken = np.zeros(shape, dtype=bool)
        self.width = np.zeros(shape)
        self.plain_width = np.zeros(shape)

    def add(self, release: int, inference: Inference) -> None:
        """Look at one release's estimate of the table."""
        values, error = inference.values, inference.standard_error
        variance, z = share_variance(inference), 0.0
        for place, level in enumerate(LEVELS):
            z = normal_quantile(level)
            low, high = variance.interval(values, z)
            self.shipped[place, release] = self._hold(low, high)
            self.plain[place, release] = self._hold(values - z * error, values + z * error)
            self.width[release] = (high - low).ravel()
            self.plain_width[release] = (2 * z * error).ravel()
        self.uncertain[release] = (values < UNCERTAIN_ERRORS * error).ravel()
        if inference.target == "table":
            other = share_variance(replace(inference, target="population"))
            self.mistaken[release] = self._hold(*other.interval(values, z))

    def _hold(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ((low <= self.truth) & (self.truth <= high)).ravel()


def cover(case: Case, n_releases: int, setting: Setting, stream: int) -> list[Group]:
    """Release again and again, and count the intervals that hold the truth.

    Args:
        case: what.
        n_releases: how often.
        setting: for seeds and progress.
        stream: of the seeds.
    """
    schema = Schema.anonymous(N_CATEGORIES)
    mechanism = mechanism_for(case.method, schema, case.epsilon)
    randomizer = Randomizer(mechanism, SeededRandomness(setting.release_seed(21, stream)))
    shares = population(setting)
    columns = _draw_people(shares, case.n_people, setting.generator(22, case.n_people))
    people = setting.generator(23, stream)
    kinds: list[tuple[str, Names]] = [("marginal", (name,)) for name in schema.names]
    kinds += [("pair", pair) for pair in combinations(schema.names, 2)]
    kinds.append(("joint", schema.names))
    truth = shares if case.target == "population" else _count(columns) / case.n_people
    channels = [Channel(mechanism, names) for _, names in kinds]
    axes = [tuple(i for i, name in enumerate(schema.names) if name not in n) for _, n in kinds]
    tallies = [_Tally(truth.sum(axis=a), n_releases) for a in axes]
    for release in range(n_releases):
        with setting.step(release, n_releases):
            if case.target == "population":
                columns = _draw_people(shares, case.n_people, people)
            counts = _count(randomizer.randomize(columns))
            for channel, summed, tally in zip(channels, axes, tallies, strict=True):
                counted = Tabulation.from_counts(counts.sum(axis=summed))
                tally.add(
                    release,
                    Inference(
                        Counts.of(channel.mechanism, counted), channel.attributes, case.target
                    ),
                )
    found = []
    for kind in KINDS:
        chosen = [t for (k, _), t in zip(kinds, tallies, strict=True) if k == kind]
        found += _groups(case, kind, chosen)
    return found


def _draw_people(
    shares: NDArray[np.float64], n_people: int, generator: np.random.Generator
) -> list[NDArray[Any]]:
    cells = generator.choice(shares.size, size=n_people, p=shares.ravel())
    return [codes.astype(np.uint8) for codes in np.unravel_index(cells, shares.shape)]


def _count(columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    cells = np.ravel_multi_index([c.astype(np.intp) for c in columns], N_CATEGORIES)
    counts = np.bincount(cells, minlength=int(np.prod(N_CATEGORIES)))
    return counts.reshape(N_CATEGORIES).astype(np.float64)


def _groups(case: Case, kind: str, tallies: Sequence[_Tally]) -> list[Group]:
    truth = np.concatenate([t.truth.ravel() for t in tallies])
    place = np.digitize(case.n_people * truth, EDGES)
    shipped = np.concatenate([t.shipped for t in tallies], axis=2)
    plain = np.concatenate([t.plain for t in tallies], axis=2)
    uncertain = np.concatenate([t.uncertain for t in tallies], axis=1)
    mistaken = np.concatenate([t.mistaken for t in tallies], axis=1)
    width = np.concatenate([t.width for t in tallies], axis=1)
    plain_width = np.concatenate([t.plain_width for t in tallies], axis=1)
    n_releases = len(uncertain)
    found = []
    for group in range(len(GROUPS)):
        cells = place == group
        if not cells.any():
            continue
        per_release = shipped[:, :, cells].mean(axis=2)
        error = per_release.std(axis=1, ddof=1) / n_releases**0.5
        levels = np.array(LEVELS)
        error = np.maximum(error, np.sqrt(levels * (1 - levels) / (cells.sum() * n_releases)))
        found.append(
            Group(
                case,
                kind,
                group,
                int(cells.sum()),
                tuple(map(float, per_release.mean(axis=1))),
                tuple(map(float, error)),
                tuple(map(float, plain[:, :, cells].mean(axis=(1, 2)))),
                float(shipped[-1][:, cells].mean(axis=0).min()),
                float(plain[-1][:, cells].mean(axis=0).min()),
                float(width[:, cells].mean() / plain_width[:, cells].mean()),
                float(uncertain[:, cells].mean()),
                float(mistaken[:, cells].mean()) if case.target == "table" else float("nan"),
            )
        )
    return found
