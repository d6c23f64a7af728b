"""Figures 5(a) and 5(b) of Huang and Du: a gamma and a uniform prior at δ = 0.75."""

from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from deniable.frontier.priors import from_distribution
from deniable.solvers.matrices.search import Matrices
from deniable_studies.optrr.fronts import (
    Case,
    Comparison,
    Effort,
    always_better,
    at_level,
    better_within_range,
    compare,
    draw_panels,
    fronts_rows,
    levels_rows,
    nearest_to_the_bound,
    nothing_below_the_bound,
    search_and_compare,
    search_front,
    summary_rows,
)
from deniable_studies.study import Judged, Setting, Study
from deniable_studies.text import read_text

DELTA = 0.75
FULL, QUICK = Effort(20_000, 100, 24, 20), Effort(300, 40, 4, 2)

_STREAM = 5
_MUCH_BETTER_ABOVE = 0.62
_TITLES = ("Gamma(1, 2), δ = 0.75", "uniform, δ = 0.75")


def gamma_case() -> Case:
    """Return Gamma(1, 2) in ten bins, at δ = 0.75."""
    return Case("gamma", from_distribution("gamma,10"), DELTA)


def effort(setting: Setting) -> Effort:
    """Return the effort for each prior."""
    return QUICK if setting.quick else FULL


@lru_cache(maxsize=1)
def gamma_front(setting: Setting) -> Matrices:
    """Return the search's front under the gamma prior; searched once for all studies that need it.

    Settings that differ only in their progress callback are equal.
    """
    generator = setting.generator(_STREAM, 0)
    return search_front(gamma_case().shares, DELTA, effort(setting), generator, setting)


@dataclass(frozen=True, eq=False)
class Numbers:
    """All numbers of the study: effort and results for each prior."""

    effort: Effort
    gamma: Comparison
    uniform: Comparison

    @property
    def both(self) -> tuple[Comparison, Comparison]:
        """In the order of the panels."""
        return self.gamma, self.uniform


def measure(setting: Setting) -> Numbers:
    """Compute both panels, with the bound."""
    spent = effort(setting)
    front = gamma_front(setting.part(0.0, 0.35))
    gamma = compare(gamma_case(), spent, front, setting.part(0.35, 0.5))
    case = Case("uniform", from_distribution("uniform,10"), DELTA)
    draws = setting.generator(_STREAM, 1)
    uniform = search_and_compare(case, spent, draws, setting.part(0.5, 1.0))
    return Numbers(spent, gamma, uniform)


def span(front: Matrices) -> str:
    """Return a front's least and most privacy."""
    return f"{front.privacy[0]:.3f} to {front.privacy[-1]:.3f}"


def width(front: Matrices) -> float:
    """Return a front's privacy range."""
    return float(front.privacy[-1] - front.privacy[0])


def error_ratios(found: Comparison, above: float = 0.0) -> tuple[list[float], int]:
    """Return Warner's error over the search's at Warner's points, and how many it cannot reach.

    Args:
        found: both fronts.
        above: only points of more privacy than this.
    """
    values, missing = [], 0
    for privacy, error in zip(found.warner.privacy, found.warner.record_mse, strict=True):
        if privacy <= above:
            continue
        place = at_level(found.search, float(privacy))
        if place is None:
            missing += 1
        else:
            values.append(float(error / found.search.record_mse[place]))
    return values, missing


def _range(gamma: Comparison) -> Judged:
    ratio = width(gamma.search) / width(gamma.warner)
    return Judged(
        f"{ratio:.2f} times: {span(gamma.search)} against {span(gamma.warner)}",
        1.5 <= ratio <= 2.5,
        ratio > 1.25,
    )


def _much_better(gamma: Comparison) -> Judged:
    high, missing = error_ratios(gamma, _MUCH_BETTER_ABOVE)
    above, overall = median(high) if high else 0.0, median(error_ratios(gamma)[0])
    return Judged(
        f"{above:.2f} times in the median above 0.62 ({len(high)} points, and {missing} more "
        f"private than any of the search), {overall:.2f} times over all",
        above >= 2 and above > overall,
        above >= 1.2,
    )


def _uniform_better(uniform: Comparison) -> Judged:
    values, missing = error_ratios(uniform)
    middle = median(values)
    return Judged(
        f"{middle:.2f} times in the median, from {min(values):.2f} to {max(values):.2f} over "
        f"{len(values)} points; {missing} points are more private than any of the search",
        middle >= 1.5,
        middle > 1,
    )


def _same_range(uniform: Comparison) -> Judged:
    least = float(uniform.search.privacy[0] - uniform.warner.privacy[0])
    most = float(uniform.warner.privacy[-1] - uniform.search.privacy[-1])
    off = max(abs(least), abs(most))
    return Judged(
        f"{span(uniform.search)} against {span(uniform.warner)}",
        off <= 0.02,
        off <= 0.05,
        "above" if most > 0.02 else "below",
    )


STUDY = Study(
    read_text("optrr/optrr-distributions.toml"),
    measure,
    judges={
        "gamma-always-better": lambda n: always_better([n.gamma]),
        "gamma-better-within-range": lambda n: better_within_range([n.gamma]),
        "gamma-range": lambda n: _range(n.gamma),
        "gamma-much-better": lambda n: _much_better(n.gamma),
        "uniform-always-better": lambda n: always_better([n.uniform]),
        "uniform-better-within-range": lambda n: better_within_range([n.uniform]),
        "uniform-better": lambda n: _uniform_better(n.uniform),
        "uniform-same-range": lambda n: _same_range(n.uniform),
        "nearest-to-the-bound": lambda n: nearest_to_the_bound(n.both),
        "nothing-below-the-bound": lambda n: nothing_below_the_bound(n.both),
    },
    figures={
        "fronts": lambda canvas, n: draw_panels(
            canvas, n.both, _TITLES, (1, 2), 4, as_ratios=False
        ),
        "ratios": lambda canvas, n: draw_panels(canvas, n.both, _TITLES, (1, 2), 4, as_ratios=True),
    },
    tables={
        "summary": lambda n: summary_rows(n.both),
        "levels": lambda n: levels_rows(n.both),
        "fronts": lambda n: fronts_rows(n.both),
    },
    values=lambda n: {"effort": n.effort},
)
