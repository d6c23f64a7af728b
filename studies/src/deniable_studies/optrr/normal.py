"""Figure 4 of Huang and Du: a normal prior and four worst posteriors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from deniable.frontier.priors import from_distribution
from deniable.proofs.rows import average_limits
from deniable.solvers.matrices import response, square
from deniable_studies.optrr.fronts import (
    Case,
    Comparison,
    Effort,
    always_better,
    better_within_range,
    draw_panels,
    fronts_rows,
    levels_rows,
    nearest_to_the_bound,
    nothing_below_the_bound,
    search_and_compare,
    search_front,
    summary_rows,
    warner_front,
)
from deniable_studies.study import Judged, Rows, Setting, Study
from deniable_studies.text import read_text

PRINTED: tuple[tuple[float, float, float], ...] = (
    (0.6, 0.6, 0.4),
    (0.7, 0.5, 0.3),
    (0.8, 0.4, 0.22),
    (0.9, 0.22, 0.17),
)
"""δ, and the least privacy of Warner and of the search as the text of section VI has them."""

_CUTS = (2.0, 2.5, 3.0, 4.0)

FULL, QUICK = Effort(20_000, 100, 24, 20), Effort(300, 40, 4, 2)

OTHER_RUNS = {False: (8, Effort(2_000, 40, 0, 0)), True: (3, Effort(300, 40, 0, 0))}
"""Quick or not: how many more runs of the search at the first δ, and how long each is."""

_STREAM = 4


@dataclass(frozen=True)
class Cut:
    """Warner's least privacy, shape (4,), under one way to cut the normal distribution."""

    deviations: float
    tails: bool
    least: Sequence[float]

    @property
    def off(self) -> float:
        """Largest distance from the printed values."""
        return max(abs(value - row[1]) for value, row in zip(self.least, PRINTED, strict=True))


@dataclass(frozen=True, eq=False)
class Numbers:
    """Everything that the study rests on.

    Args:
        effort: spent on each front.
        fronts: both fronts and the bound, at each δ.
        squares: privacy and worst posterior of a square matrix for requested privacy 1 − δ, at
            each δ.
        cuts: Warner's least privacy under other cuts of the distribution.
        others: the least privacy that further, shorter runs of the search reach at the first δ.
        spent: on each of these.
    """

    effort: Effort
    fronts: Sequence[Comparison]
    squares: Sequence[tuple[float, float]]
    cuts: Sequence[Cut]
    others: Sequence[float]
    spent: Effort


def measure(setting: Setting) -> Numbers:
    """Compute the four panels of Figure 4, with the bound."""
    effort = QUICK if setting.quick else FULL
    prior = from_distribution("normal,10")
    fronts = []
    for i, (delta, _, _) in enumerate(PRINTED):
        part = setting.part(0.95 * i / len(PRINTED), 0.95 * (i + 1) / len(PRINTED))
        case = Case(f"δ = {delta:g}", prior, delta)
        fronts.append(search_and_compare(case, effort, setting.generator(_STREAM, i), part))
    squares = [
        least_private_square(delta, effort.n_starts, setting.generator(_STREAM, 9, i))
        for i, (delta, _, _) in enumerate(PRINTED)
    ]
    others = other_runs(setting.part(0.95, 1.0))
    return Numbers(effort, fronts, squares, every_cut(), others, OTHER_RUNS[setting.quick][1])


def normal_shares(deviations: float, *, tails: bool, n_categories: int = 10) -> list[float]:
    """Return a normal distribution cut into bins of equal width within a number of deviations.

    Args:
        deviations: the outer edges, in standard deviations from the mean.
        tails: whether the outer bins include the tails; otherwise these are left out.
        n_categories: how many bins.
    """
    edges = np.linspace(-deviations, deviations, n_categories + 1)
    below = norm.cdf(edges)
    if tails:
        below[0], below[-1] = 0.0, 1.0
    shares = np.diff(below)
    return list((shares / shares.sum()).tolist())


def every_cut() -> list[Cut]:
    """Return Warner's least privacy under every cut of the table."""
    found = []
    for deviations in _CUTS:
        for tails in (False, True):
            shares = np.array(normal_shares(deviations, tails=tails))
            least = [float(warner_front(shares, row[0]).privacy[0]) for row in PRINTED]
            found.append(Cut(deviations, tails, least))
    return found


def least_private_square(
    delta: float, n_starts: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Return privacy and worst posterior of a square matrix for requested privacy 1 − δ."""
    prior = np.array(from_distribution("normal,10").shares)
    limits = average_limits(prior, 1.0 - delta, delta)
    with threadpool_limits(1):
        found = square.solve(limits, generator, n_starts=n_starts)
    return (
        float(response.privacy(found.matrix, prior)),
        float(response.worst_posterior(found.matrix, prior)),
    )


def other_runs(setting: Setting) -> list[float]:
    """Return the least privacy that further, shorter runs of the search reach at the first δ."""
    n_runs, effort = OTHER_RUNS[setting.quick]
    prior = np.array(from_distribution("normal,10").shares)
    least = []
    for i in range(n_runs):
        with setting.step(i, n_runs):
            generator = setting.generator(_STREAM, 8, i)
            least.append(float(search_front(prior, PRINTED[0][0], effort, generator).privacy[0]))
    return least


_NEAR = 0.02


def _warner(cuts: Sequence[Cut]) -> Judged:
    near = sum(cut.off <= _NEAR for cut in cuts)
    return Judged(
        f"all four within {_NEAR} under {near} of {len(cuts)} cuts; the farthest is "
        f"{min(cut.off for cut in cuts):.3f} to {max(cut.off for cut in cuts):.3f} off",
        near == len(cuts),
        why="cut",
        tested=near in (0, len(cuts)),
    )


def _search(n: Numbers) -> Judged:
    found = [float(c.search.privacy[0]) for c in n.fronts]
    worst = max(abs(value - row[2]) for value, row in zip(found, PRINTED, strict=True))
    judged = Judged(", ".join(f"{v:.3f}" for v in found), worst <= _NEAR, worst <= 0.05)
    off = [abs(p - (1.0 - row[0])) for (p, _), row in zip(n.squares, PRINTED, strict=True)]
    exist = (
        "and square matrices that have it exist: the interior-point method finds one at each δ"
        if max(off) <= 1e-4
        else "and the interior-point method did not find a square matrix there either"
    )
    return judged._replace(
        values={
            "exist": exist,
            "n_others": len(n.others),
            "spent": n.spent,
            "least": min(n.others),
            "most": max(n.others),
        }
    )


def _wider_range(fronts: Sequence[Comparison]) -> Judged:
    wider = [float(c.warner.privacy[0] - c.search.privacy[0]) for c in fronts]
    below = [value > 0 for value in wider]
    return Judged(
        "below Warner's by " + ", ".join(f"{value:.3f}" for value in wider),
        all(below),
        sum(below) >= 2,
    )


def _least_privacy_rows(n: Numbers) -> Rows:
    return [
        [
            *(delta, warner, float(c.warner.privacy[0]), search, float(c.search.privacy[0])),
            *(1.0 - delta, privacy, posterior),
        ]
        for c, (delta, warner, search), (privacy, posterior) in zip(
            n.fronts, PRINTED, n.squares, strict=True
        )
    ]


STUDY = Study(
    read_text("optrr/optrr-normal.toml"),
    measure,
    judges={
        "warner": lambda n: _warner(n.cuts),
        "search": _search,
        "range": lambda n: _wider_range(n.fronts),
        "better-within-range": lambda n: better_within_range(n.fronts),
        "always-better": lambda n: always_better(n.fronts),
        "nearest-to-the-bound": lambda n: nearest_to_the_bound(n.fronts),
        "nothing-below-the-bound": lambda n: nothing_below_the_bound(n.fronts),
    },
    figures={
        "fronts": lambda canvas, n: draw_panels(
            canvas, n.fronts, [c.case.name for c in n.fronts], (2, 2), 4, as_ratios=False
        ),
        "ratios": lambda canvas, n: draw_panels(
            canvas, n.fronts, [c.case.name for c in n.fronts], (2, 2), 3, as_ratios=True
        ),
    },
    tables={
        "least-privacy": _least_privacy_rows,
        "summary": lambda n: summary_rows(n.fronts),
        "other-runs": lambda n: [[i + 1, least] for i, least in enumerate(n.others)],
        "cuts": lambda n: [
            [c.deviations, "outer bins" if c.tails else "left out", *c.least, c.off] for c in n.cuts
        ],
        "levels": lambda n: levels_rows(n.fronts),
        "fronts": lambda n: fronts_rows(n.fronts),
    },
    values=lambda n: {"effort": n.effort, "spent": n.spent},
)
