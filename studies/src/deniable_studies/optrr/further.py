"""Priors and bounds that Huang and Du mention without a figure, and their set Ω left out.

The searches here are shorter than those of the figures.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import geometric_mean

import numpy as np
from scipy.stats import gamma

from deniable.frontier.priors import Prior, from_distribution
from deniable.laws.patterns import FloatArray
from deniable.schema import Attribute
from deniable.solvers.matrices import search, spea2
from deniable.solvers.matrices.search import Matrices
from deniable_studies.optrr.distributions import DELTA
from deniable_studies.optrr.fronts import (
    Case,
    Comparison,
    Effort,
    at_level,
    beaten,
    better_within_range,
    common_range,
    search_front,
    warner_front,
)
from deniable_studies.optrr.iterative import (
    Point,
    Size,
    outperforms,
    pairs_of,
    points_of,
    points_rows,
)
from deniable_studies.study import Judged, Setting, Study
from deniable_studies.text import read_text

EFFORTS = {False: Effort(1_000, 40, 0, 0), True: Effort(60, 20, 0, 0)}
SIZES = {False: Size(10, 100), True: Size(3, 20)}
"""Quick or not."""

SHAPES = (0.5, 2.0, 5.0)
DELTAS = (0.6, 0.7, 0.8, 0.9)
DISTRIBUTIONS = ("gamma", "uniform")
OTHER_DATA = ("normal", "uniform")
N_PAIRS = {False: 4, True: 1}
"""Quick or not: pairs of runs with Ω and without."""

_STREAM = 11
_WIDER = 1.25
_MORE, _SLOWER = 2.0, 1.25


def gamma_prior(shape: float, n_categories: int = 10) -> Prior:
    """Return Gamma(shape, any scale) in bins of equal width up to its mean and three deviations."""
    edges = np.linspace(0, shape + 3 * shape**0.5, n_categories + 1)
    shares = np.diff(gamma.cdf(edges, shape))
    attribute = Attribute("a1", tuple(str(i) for i in range(n_categories)))
    return Prior(attribute, tuple((shares / shares.sum()).tolist()), f"Gamma({shape:g})")


def _cases() -> Iterator[Case]:
    for shape in SHAPES:
        yield Case(f"shape {shape:g}", gamma_prior(shape), DELTA)
    for name in DISTRIBUTIONS:
        for delta in DELTAS:
            yield Case(f"{name}, δ = {delta:g}", from_distribution(f"{name},10"), delta)


@dataclass(frozen=True)
class Pair:
    """Two runs of the search with the same start, with Ω and without it.

    Args:
        sizes: matrices on either front.
        seconds: of processor time.
        ratio: geometric mean, over the front without Ω in the range that both reach, of the error
            with Ω over that without.
    """

    sizes: tuple[int, int]
    seconds: tuple[float, float]
    ratio: float


@dataclass(frozen=True, eq=False)
class Further:
    """Fronts of further priors and bounds (without levels), runs without Ω, and simulations."""

    fronts: Sequence[Comparison]
    pairs: Sequence[Pair]
    points: dict[str, Sequence[Point]]
    quick: bool = False

    def of(self, name: str) -> list[Comparison]:
        """Return the comparisons whose name starts so."""
        return [c for c in self.fronts if c.case.name.startswith(name)]


def measure(setting: Setting) -> Further:
    """Search with every further prior and bound, and without Ω."""
    effort, n_pairs = EFFORTS[setting.quick], N_PAIRS[setting.quick]
    cases, fronts = list(_cases()), []
    steps = len(cases) + n_pairs + len(OTHER_DATA)
    for i, case in enumerate(cases):
        with setting.step(i, steps):
            found = search_front(case.shares, case.delta, effort, setting.generator(_STREAM, i))
            fronts.append(Comparison(case, warner_front(case.shares, case.delta), found, []))
    pairs = []
    for i in range(n_pairs):
        with setting.step(len(cases) + i, steps):
            pairs.append(_pair(setting, effort, i))
    points: dict[str, Sequence[Point]] = {}
    for i, name in enumerate(OTHER_DATA):
        with setting.step(len(cases) + n_pairs + i, steps):
            prior = np.array(from_distribution(f"{name},10").shares)
            generator = setting.generator(_STREAM, 100, i)
            found = search_front(prior, DELTA, effort, generator)
            both = {"warner": warner_front(prior, DELTA), "search": found}
            plain = Setting(seed=setting.seed)
            points[name] = points_of(both, prior, SIZES[setting.quick], plain, 2 * i + 2)
    return Further(fronts, pairs, points, setting.quick)


class _WithoutOmega(search._Run):
    """The search as plain SPEA2: no exchange with Ω."""

    def exchange(self, members: Matrices) -> tuple[Matrices, bool]:
        """Return the members unchanged."""
        return members, False


def archive_front(
    prior: FloatArray, delta: float, effort: Effort, generator: np.random.Generator
) -> Matrices:
    """Return the non-dominated part of the last archive of a search without Ω."""
    options = search.Options(effort.population, effort.population)
    run = _WithoutOmega(prior, generator, delta, options)
    last = next(islice(run.generations(), effort.generations - 1, None)).archive
    return last.take(spea2.non_dominated(last.privacy, last.record_mse))


def _pair(setting: Setting, effort: Effort, number: int) -> Pair:
    prior = np.array(from_distribution("gamma,10").shares)
    fronts, seconds = [], []
    for search_with in (search_front, archive_front):
        start = time.process_time()
        generator = setting.generator(_STREAM, 50, number)
        fronts.append(search_with(prior, DELTA, effort, generator))
        seconds.append(time.process_time() - start)
    return compare_pair(fronts[0], fronts[1], (seconds[0], seconds[1]))


def compare_pair(omega: Matrices, archive: Matrices, seconds: tuple[float, float]) -> Pair:
    """Compare a front with Ω and one without."""
    low, high = common_range(archive, omega)
    ratios = []
    for privacy, error in zip(archive.privacy, archive.record_mse, strict=True):
        if low <= privacy <= high and (place := at_level(omega, privacy)) is not None:
            ratios.append(float(omega.record_mse[place] / error))
    return Pair((len(omega), len(archive)), seconds, geometric_mean(ratios) if ratios else 1.0)


# Judges.


def other_gammas(found: Further) -> Judged:
    """Judge gamma distributions of other shapes."""
    fronts = found.of("shape")
    within = better_within_range(fronts)
    widths = [tuple(float(np.ptp(f.privacy)) for f in (c.search, c.warner)) for c in fronts]
    return Judged(
        f"{within.found}; ranges "
        + ", ".join(f"{ours:.3f} against {theirs:.3f}" for ours, theirs in widths),
        within.fully and all(ours >= _WIDER * theirs for ours, theirs in widths),
        within.partly and all(ours > theirs for ours, theirs in widths),
        tested=within.tested,
    )


def other_deltas(found: Further) -> Judged:
    """Judge the trends with δ under other distributions."""
    fronts = [found.of(name) for name in DISTRIBUTIONS]
    within = better_within_range([c for each in fronts for c in each])
    least = [[float(c.search.privacy[0]) for c in each] for each in fronts]
    falls = all(a > b for each in least for a, b in pairwise(each))
    texts = [
        f"{name} " + ", ".join(f"{value:.3f}" for value in each)
        for name, each in zip(DISTRIBUTIONS, least, strict=True)
    ]
    return Judged(
        f"least privacy of the search: {'; '.join(texts)}; {within.found}",
        within.fully and falls,
        within.partly and falls,
        tested=within.tested,
    )


def omega_keeps_more(pairs: Sequence[Pair]) -> Judged:
    """Judge the size of the front and the time with Ω."""
    more = [pair.sizes[0] / pair.sizes[1] for pair in pairs]
    times = [sum(pair.seconds[i] for pair in pairs) for i in (0, 1)]
    return Judged(
        f"{min(more):.1f} to {max(more):.1f} times as many matrices in {len(pairs)} pairs of runs, "
        f"{times[0] / times[1]:.2f} times the processor time",
        min(more) >= _MORE and times[0] <= _SLOWER * times[1],
        min(more) > 1,
    )


def omega_errs_less(pairs: Sequence[Pair]) -> Judged:
    """Judge the errors of the front with Ω."""
    less = sum(pair.ratio < 1 for pair in pairs)
    return Judged(
        "error with Ω over that without: " + ", ".join(f"{pair.ratio:.2f}" for pair in pairs),
        less == len(pairs),
        2 * less > len(pairs),
    )


def further_rows(found: Further) -> list[list[str | float]]:
    """Return ranges and beaten points of every further case."""
    rows: list[list[str | float]] = []
    for c in found.fronts:
        counts = beaten(c.warner, c.search)
        ends = [float(f.privacy[end]) for f in (c.warner, c.search) for end in (0, -1)]
        rows.append([c.case.name, c.case.delta, *ends, counts.n_common, counts.n_common_beaten])
    return rows


STUDY = Study(
    read_text("optrr/optrr-further.toml"),
    measure,
    judges={
        "other-gammas": other_gammas,
        "other-deltas": other_deltas,
        "omega-keeps-more": lambda n: omega_keeps_more(n.pairs),
        "omega-errs-less": lambda n: omega_errs_less(n.pairs),
        "other-data": lambda n: outperforms(
            [pair for points in n.points.values() for pair in pairs_of(points)]
        ),
    },
    figures={},
    tables={
        "further": further_rows,
        "other-data": lambda n: [
            [name, *row] for name, points in n.points.items() for row in points_rows(points)
        ],
    },
    values=lambda n: {"effort": EFFORTS[n.quick], "size": SIZES[n.quick]},
)
