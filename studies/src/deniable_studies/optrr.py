"""Fronts of square matrices and the exact bound: what the studies of Huang and Du's VI share.

A point of a front is a matrix's privacy (how often the best guess of one answer is wrong) and the
mean squared error of the shares that are estimated from its answers, both at one prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.frontier.priors import Prior
from deniable.frontier.tracing import Request, trace
from deniable.solvers.matrices import response, schemes, search, spea2
from deniable.solvers.matrices.search import Matrices
from deniable.solvers.problem import FloatArray
from deniable_studies.study import Setting

N_RECORDS = 10_000
"""Huang and Du, section VI.C."""

WARNER_STEPS = 1_000
"""p from 0 to 1 by 0.001 (section VI.B)."""

LEVEL_OF_OMEGA = 1e-3
"""The search keeps one matrix for each thousandth of privacy (section V.H)."""

# Privacy is a sum of products: of two values nearer than this none is the more private.
_EQUAL = 1e-12
# Levels of the bound keep off the ends of what is possible by this share of it.
_MARGIN = 0.02


@dataclass(frozen=True)
class Effort:
    """How much is spent on one prior and one δ.

    Args:
        generations: of the search.
        population: its population and its archive.
        n_levels: levels of privacy at which the bound is computed.
        n_starts: of the search for the best square matrix at each level.
    """

    generations: int
    population: int
    n_levels: int
    n_starts: int

    def sentence(self) -> str:
        """Say it, as a choice the paper leaves open."""
        return (
            f"The search runs {self.generations:,} generations with a population and an archive of "
            f"{self.population}, once for each front. The paper states 20,000 generations and no "
            "sizes. Every pair of parents mates and every child is mutated, by at most 0.3; the "
            "paper states no rates."
        )


@dataclass(frozen=True)
class Case:
    """A prior and a worst posterior.

    Args:
        name: for tables and titles.
        prior: of the attribute.
        delta: δ, the worst posterior allowed.
    """

    name: str
    prior: Prior
    delta: float

    @property
    def shares(self) -> FloatArray:
        """p, shape (n,)."""
        return np.array(self.prior.shares)

    @property
    def most_private(self) -> float:
        """1 − max p: nobody can be guessed worse than from the prior alone."""
        return 1.0 - max(self.prior.shares)


@dataclass(frozen=True)
class Level:
    """The least errors at one level of privacy, per record (N·MSE); None where there is no matrix.

    Args:
        privacy: at least so much is asked for.
        bound: no mechanism of any number of answers has a smaller error.
        warner, search, square: of the best matrix of each that is private enough.
    """

    privacy: float
    bound: float
    warner: float | None
    search: float | None
    square: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both fronts and the bound for one case.

    Args:
        case: of what.
        warner: Warner's front, by rising privacy.
        search: the front of the search, by rising privacy.
        levels: by rising privacy.
    """

    case: Case
    warner: Matrices
    search: Matrices
    levels: Sequence[Level]


@dataclass(frozen=True)
class Beaten:
    """How many points of Warner's front the search's front beats.

    Args:
        n_points: of Warner's front.
        n_beaten: a matrix of the search is at least as private and errs less.
        n_beyond: of the others, those more private than any matrix of the search.
        lost: least and most privacy of those that are neither, or None if there are none.
        ends: the most privacy that a matrix of the search has, and Warner's front.
        n_by_a_level: of the others, those that a matrix beats which is at most one level of Ω less
            private.
        median_ratio: median over the points that are not beyond the search of the search's error
            over Warner's; None if there are none.
        geometric_mean: the geometric mean of the same.
    """

    n_points: int
    n_beaten: int
    n_beyond: int
    lost: tuple[float, float] | None
    ends: tuple[float, float]
    n_by_a_level: int
    median_ratio: float | None
    geometric_mean: float | None

    @property
    def share(self) -> float:
        """Of Warner's points, those that are beaten."""
        return self.n_beaten / self.n_points


def warner_front(prior: FloatArray, delta: float) -> Matrices:
    """Return the matrices of Warner's sweep that keep δ and that no other dominates.

    Source: Huang and Du, section VI.B. p = 1/n, a uniform answer, is left out: nothing can be
    estimated from it.
    """
    n = len(prior)
    truths = [k / WARNER_STEPS for k in range(WARNER_STEPS + 1)]
    matrices = np.stack([schemes.warner(n, p) for p in truths if abs(n * p - 1.0) > 1e-9])
    matrices = matrices[response.worst_posterior(matrices, prior) <= delta + _EQUAL]
    return _front(matrices, prior)


def search_front(
    prior: FloatArray,
    delta: float,
    effort: Effort,
    generator: np.random.Generator,
    setting: Setting | None = None,
) -> Matrices:
    """Return the front of the evolutionary search of Huang and Du, by rising privacy.

    Args:
        prior: p, shape (n,).
        delta: δ.
        effort: generations and sizes.
        generator: draws everything.
        setting: told of progress.
    """
    options = search.Options(
        population_size=effort.population,
        archive_size=effort.population,
        max_generations=effort.generations,
    )

    def advance(generation: search.Generation) -> None:
        if setting is not None and generation.number % 25 == 0:
            setting.advance(generation.number / effort.generations)

    with threadpool_limits(1):
        found = search.search(
            prior, generator, most_posterior=delta, options=options, on_generation=advance
        )
    return _front(found.front.matrices, prior)


def _front(matrices: FloatArray, prior: FloatArray) -> Matrices:
    privacy = np.round(response.privacy(matrices, prior), 12)
    errors = response.record_mse(matrices, prior)
    return Matrices(matrices, privacy, errors).take(spea2.non_dominated(privacy, errors))


def at_level(front: Matrices, privacy: float) -> int | None:
    """Return which matrix of a front errs least among those that are private enough, or None."""
    enough = np.flatnonzero(front.privacy >= privacy - _EQUAL)
    return int(enough[np.argmin(front.record_mse[enough])]) if len(enough) else None


def beaten(warner: Matrices, found: Matrices) -> Beaten:
    """Compare the search's front with each point of Warner's."""
    best = np.array([_least(found, level) for level in warner.privacy])
    near = np.array([_least(found, level - LEVEL_OF_OMEGA) for level in warner.privacy])
    wins = best < warner.record_mse
    reached = np.isfinite(best)
    lost = warner.privacy[~wins & reached]
    ratios = best[reached] / warner.record_mse[reached]
    return Beaten(
        len(warner),
        int(wins.sum()),
        int((~reached).sum()),
        (float(lost.min()), float(lost.max())) if len(lost) else None,
        (float(found.privacy[-1]), float(warner.privacy[-1])),
        int((~wins & (near < warner.record_mse)).sum()),
        float(np.median(ratios)) if len(ratios) else None,
        float(np.exp(np.log(ratios).mean())) if len(ratios) else None,
    )


def _least(front: Matrices, privacy: float) -> float:
    place = at_level(front, privacy)
    return float("inf") if place is None else float(front.record_mse[place])


def levels_of(case: Case, n_levels: int) -> tuple[float, ...]:
    """Return levels from 1 − δ to 1 − max p, a fiftieth off both ends."""
    low, high = 1.0 - case.delta, case.most_private
    margin = _MARGIN * (high - low)
    return tuple(np.linspace(low + margin, high - margin, n_levels).tolist())


def compare(
    case: Case, effort: Effort, generator: np.random.Generator, setting: Setting
) -> Comparison:
    """Compute both fronts and the bound.

    Args:
        case: prior and δ.
        effort: how much to spend; without starts no square matrix is looked for.
        generator: draws for the search.
        setting: seed and progress.
    """
    prior = case.shares
    found = search_front(prior, case.delta, effort, generator, setting.part(0.0, 0.7))
    methods = ("warner", "square", "bound") if effort.n_starts else ("warner", "bound")
    request = Request(
        case.prior,
        levels_of(case, effort.n_levels),
        most_posterior=case.delta,
        methods=methods,
        n_records=N_RECORDS,
        n_starts=max(1, effort.n_starts),
        seed=setting.seed,
    )
    traced = trace(request, setting.part(0.7, 1.0).advance)
    errors = {(row.method, row.level): row.mse for row in traced.rows}
    levels = []
    for row in traced.rows:
        if row.method != "bound":
            continue
        place = at_level(found, row.level)
        levels.append(
            Level(
                row.level,
                row.lower_bound * N_RECORDS,
                _per_record(errors.get(("warner", row.level))),
                None if place is None else float(found.record_mse[place]),
                _per_record(errors.get(("square", row.level))),
            )
        )
    return Comparison(case, warner_front(prior, case.delta), found, levels)


def _per_record(error: float | None) -> float | None:
    return None if error is None else error * N_RECORDS


def ratios(levels: Sequence[Level], method: str) -> list[float]:
    """Return a method's error over the bound at the levels where it has a matrix."""
    errors = [(getattr(level, method), level.bound) for level in levels]
    return [error / bound for error, bound in errors if error is not None]
