"""Claims about fronts that several of Huang and Du's experiments make."""

from collections.abc import Sequence

from deniable_studies.optrr import Beaten, Comparison, beaten, ratios
from deniable_studies.study import Claim, judge

# A bound holds to rounding; the mechanism that attains it comes as near as this.
_ROUNDING = 1e-9
_MOST_OF = 0.9


def always_better(comparisons: Sequence[Comparison], statement: str, source: str) -> Claim:
    """Judge whether the search beats Warner everywhere."""
    counts = [beaten(c.warner, c.search) for c in comparisons]
    names = [c.case.name for c in comparisons]
    every = all(b.n_beaten == b.n_points for b in counts)
    most = all(b.share >= _MOST_OF for b in counts)
    found = "; ".join(
        f"{name}: {b.n_beaten} of {b.n_points} ({100 * b.share:.1f} %)"
        for name, b in zip(names, counts, strict=True)
    )
    return Claim(
        statement,
        source,
        "a point of Warner's front is beaten if a matrix of the search is at least as private and "
        "errs less; reproduced: every point, in every case; partly: 90 % of them, in every case",
        f"beaten: {found}",
        judge(every, partly=most),
        "" if every else _where_warner_stands(names, counts),
    )


def _where_warner_stands(names: Sequence[str], counts: Sequence[Beaten]) -> str:
    return " ".join(
        f"{name}: {_not_beaten(b)}."
        for name, b in zip(names, counts, strict=True)
        if b.n_beaten < b.n_points
    )


def _not_beaten(b: Beaten) -> str:
    parts = []
    if b.n_beyond:
        parts.append(
            f"{_count(b.n_beyond)} more private than any matrix that the search kept (its front "
            f"ends at privacy {b.ends[0]:.4f}, Warner's at {b.ends[1]:.4f}, where errors grow "
            "without end)"
        )
    if b.lost is not None:
        parts.append(
            f"{_count(b.n_points - b.n_beaten - b.n_beyond)} between privacy {b.lost[0]:.4f} and "
            f"{b.lost[1]:.4f}, where the matrices of the search that are as private err no less"
        )
    if b.n_by_a_level:
        parts.append(
            f"{b.n_by_a_level} of {b.n_points - b.n_beaten} would be beaten by a matrix that is "
            "less private by at most a thousandth, the resolution of the search's set Ω"
        )
    return "; ".join(parts)


def _count(points: int) -> str:
    return f"{points} point is" if points == 1 else f"{points} points are"


def lower_on_average(comparisons: Sequence[Comparison], statement: str, source: str) -> Claim:
    """Judge whether the search errs less than Warner's matrices on average over the range."""
    counts = {c.case.name: beaten(c.warner, c.search) for c in comparisons}
    means = {n: b.geometric_mean for n, b in counts.items() if b.geometric_mean is not None}
    lower = sum(mean < 1 for mean in means.values())
    every = lower == len(means)
    apart = [name for name in counts if name not in means]
    return Claim(
        statement,
        source,
        "over the points of Warner's front that some matrix of the search is as private as, the "
        "geometric mean of the search's error over Warner's is below 1 in every case that has such "
        "points; partly: in half of them",
        "; ".join(f"{name}: {mean:.2f}" for name, mean in means.items())
        + (f"; no such points for {', '.join(apart)}" if apart else ""),
        judge(every and lower > 0, partly=lower > 0 and lower >= len(means) / 2),
        ""
        if every and lower
        else "In the other cases the matrices of this run of the search err more than Warner's "
        "over the part of the range that weighs more; see the table of levels.",
    )


def nearest_to_the_bound(comparisons: Sequence[Comparison], source: str) -> Claim:
    """Judge whether the search is nearer to what is possible than Warner at each level."""
    pairs = [
        (level.search / level.bound, level.warner / level.bound)
        for c in comparisons
        for level in c.levels
        if level.search is not None and level.warner is not None
    ]
    nearer = sum(found < warner for found, warner in pairs)
    searched = [ratio for c in comparisons for ratio in ratios(c.levels, "search")]
    warners = [ratio for c in comparisons for ratio in ratios(c.levels, "warner")]
    squares = [ratio for c in comparisons for ratio in ratios(c.levels, "square")]
    all_nearer = nearer == len(pairs)
    best = (
        f", the best square matrix {min(squares):.2f} to {max(squares):.2f} times"
        if squares
        else ""
    )
    return Claim(
        "“Although we cannot claim that the RR matrices obtained from our scheme are optimal in "
        "the entire search space, our results do indicate that our scheme approaches the optimal "
        "RR matrices closer than any other existing RR schemes”",
        source,
        "at every level of privacy that both reach the search's error is nearer to the least "
        "possible than Warner's (which UP and FRAPP share, by their Theorem 2); partly: at 90 % of "
        "the levels",
        f"nearer at {nearer} of {len(pairs)} levels; over the least possible the search errs "
        f"{min(searched):.2f} to {max(searched):.2f} times, Warner {min(warners):.2f} to "
        f"{max(warners):.2f} times{best}",
        judge(all_nearer, partly=nearer >= _MOST_OF * len(pairs)),
        ""
        if all_nearer
        else "At the other levels Warner's matrix is as near or nearer; the table of levels shows "
        "which.",
    )


def nothing_below_the_bound(comparisons: Sequence[Comparison]) -> Claim:
    """Judge this project's own promise about the bound."""
    least = min(
        ratio
        for c in comparisons
        for method in ("warner", "search", "square")
        for ratio in ratios(c.levels, method)
    )
    holds = least >= 1.0 - _ROUNDING
    return Claim(
        "No mechanism within the same limits has a smaller error than the exact bound",
        "this project, docs/frontier.md",
        "no matrix of any method is below the bound, at any level, by more than rounding",
        f"the smallest error over the bound is {least:.4f}",
        judge(holds),
        "" if holds else "A bound that is beaten is wrong: this is a fault of the project.",
    )
