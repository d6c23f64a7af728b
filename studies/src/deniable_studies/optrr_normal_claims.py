"""What is stated about Figure 4 of Huang and Du, judged; and the tables that go with it."""

import math
from collections.abc import Sequence

import numpy as np

from deniable_studies.optrr import Comparison, Effort, warner_front
from deniable_studies.study import Cell, Claim, Table, judge

SOURCE = "Huang and Du, section VI.C.1, Figure 4"

PRINTED: tuple[tuple[float, float, float], ...] = (
    (0.6, 0.6, 0.4),
    (0.7, 0.5, 0.3),
    (0.8, 0.4, 0.22),
    (0.9, 0.22, 0.17),
)
"""δ, and the least privacy of Warner and of the search as the text of section VI has them."""

_CUTS = (2.0, 2.5, 3.0, 4.0)


def normal_shares(deviations: float, *, tails: bool, n_categories: int = 10) -> list[float]:
    """Return a normal distribution cut into bins of equal width within so many deviations.

    Args:
        deviations: the outer edges, in standard deviations from the mean.
        tails: whether what lies beyond belongs to the outer bins; otherwise it is left out.
        n_categories: how many bins.
    """
    edges = np.linspace(-deviations, deviations, n_categories + 1)
    below = [0.5 * (1.0 + math.erf(edge / math.sqrt(2.0))) for edge in edges]
    if tails:
        below[0], below[-1] = 0.0, 1.0
    shares = np.diff(below)
    return list((shares / shares.sum()).tolist())


def warner_claim(found: Sequence[Comparison]) -> Claim:
    """Judge the printed least privacy of Warner's matrices."""
    ours = [float(c.warner.privacy[0]) for c in found]
    worst = max(abs(value - row[1]) for value, row in zip(ours, PRINTED, strict=True))
    return Claim(
        "Warner “cannot find an RR matrix with privacy less than 0.6, 0.5, 0.4, 0.22” for δ = 0.6, "
        "0.7, 0.8, 0.9",
        SOURCE,
        "all four within 0.02; partly: within 0.05",
        ", ".join(f"{value:.3f}" for value in ours),
        judge(worst <= 0.02, partly=worst <= 0.05),
        "With other cuts of the normal distribution other values come out; see the table of cuts.",
    )


def search_claim(
    found: Sequence[Comparison],
    squares: Sequence[tuple[float, float]],
    others: Sequence[float],
    spent: Effort,
) -> Claim:
    """Judge the printed least privacy of the search.

    Args:
        found: at each δ.
        squares: as :func:`least_privacy_table`.
        others: what other runs reach at the first δ.
        spent: on each of the other runs.
    """
    ours = [float(c.search.privacy[0]) for c in found]
    worst = max(abs(value - row[2]) for value, row in zip(ours, PRINTED, strict=True))
    reached = max(abs(p - (1.0 - row[0])) for (p, _), row in zip(squares, PRINTED, strict=True))
    exist = (
        "and square matrices that have it exist: the interior-point method finds one at each δ"
        if reached <= 1e-4
        else "and the interior-point method did not find a square matrix there either"
    )
    return Claim(
        "“our scheme can find an RR matrix with privacy close to 0.4, 0.3, 0.22, 0.17”",
        SOURCE,
        "all four within 0.02; partly: within 0.05",
        ", ".join(f"{value:.3f}" for value in ours),
        judge(worst <= 0.02, partly=worst <= 0.05),
        ""
        if worst <= 0.02
        else "Nothing that keeps δ has privacy below 1 − δ (0.4, 0.3, 0.2, 0.1): there every "
        f"answer must be exactly as telling as δ allows, {exist}. Where the search stops depends "
        f"on its draws: at δ = {PRINTED[0][0]:g}, {len(others)} other runs of "
        f"{spent.generations:,} generations with a population of "
        f"{spent.population} stopped between {min(others):.3f} and "
        f"{max(others):.3f}. How the paper's run came to 0.4 is not known: it states no sizes, no "
        "rates, and not what it does where its repair fails.",
    )


def range_claim(found: Sequence[Comparison]) -> Claim:
    """Judge whether the search's range is the larger."""
    wider = [float(c.warner.privacy[0] - c.search.privacy[0]) for c in found]
    good = all(value > 0 for value in wider)
    return Claim(
        "“the Pareto fronts of our results cover a larger range of the privacy than the Warner "
        "scheme”",
        SOURCE,
        "the search's least privacy is below Warner's at every δ; partly: at two of four",
        "below Warner's by " + ", ".join(f"{value:.3f}" for value in wider),
        judge(good, partly=sum(value > 0 for value in wider) >= 2),
        "" if good else "In this run the search did not get below Warner's least privacy.",
    )


def least_privacy_table(
    found: Sequence[Comparison], squares: Sequence[tuple[float, float]]
) -> Table:
    """Return the least privacy of both fronts, printed and found.

    Args:
        found: at each δ.
        squares: privacy and worst posterior of a square matrix that is asked for privacy 1 − δ.
    """
    rows: list[list[Cell]] = []
    for c, (delta, warner, search), (privacy, posterior) in zip(
        found, PRINTED, squares, strict=True
    ):
        rows.append(
            [
                delta,
                warner,
                float(c.warner.privacy[0]),
                search,
                float(c.search.privacy[0]),
                1.0 - delta,
                privacy,
                posterior,
            ]
        )
    return Table(
        "least-privacy",
        "The least privacy of each front, printed and found; 1 − δ, below which nothing keeps δ; "
        "and the privacy and worst posterior of the square matrix that the interior-point method "
        "finds when it is asked for 1 − δ.",
        [
            "delta", "warner_printed", "warner", "search_printed", "search", "floor", "square",
            "square_worst_posterior",
        ],
        rows,
    )  # fmt: skip


def other_runs_table(others: Sequence[float], spent: Effort) -> Table:
    """Return what other runs of the search reach at the first δ."""
    return Table(
        "other-runs",
        f"The least privacy that other runs of the search reach at δ = {PRINTED[0][0]:g}: "
        f"{spent.generations:,} generations with a population and an archive of "
        f"{spent.population}, other draws each.",
        ["run", "search_least_privacy"],
        [[i + 1, value] for i, value in enumerate(others)],
    )


def cuts_table() -> Table:
    """Return Warner's least privacy if the normal distribution is cut otherwise."""
    rows: list[list[Cell]] = []
    for deviations in _CUTS:
        for tails in (False, True):
            shares = np.array(normal_shares(deviations, tails=tails))
            least = [float(warner_front(shares, row[0]).privacy[0]) for row in PRINTED]
            off = max(abs(value - row[1]) for value, row in zip(least, PRINTED, strict=True))
            rows.append([deviations, "outer bins" if tails else "left out", *least, off])
    return Table(
        "cuts",
        "Warner's least privacy at each δ if the normal distribution is cut otherwise: ten bins of "
        "equal width within so many standard deviations, the tails left out or in the outer bins; "
        "and the largest distance from the printed values.",
        ["deviations", "tails", *(f"delta_{row[0]:g}" for row in PRINTED), "farthest_from_printed"],
        rows,
    )
