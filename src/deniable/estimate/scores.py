"""Scores of categories for means and covariances, and their sources.

Of a binned attribute only the bin of each value was randomized. Its scores are the means of bins in
the schema, or those that the analyst gives; without either, only the edges of bins are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.estimate.tabulate import Floats
from deniable.schema import Attribute

Scores = Sequence[float] | Literal["middle"] | None
"""One number per category; ``middle`` for the middles of bins; None for the schema's scores, or
else the edges of bins."""

ScoreSource = Literal["schema", "grid", "given", "middle", "edges"]
"""Sources of scores; ``edges`` if there are none for bins."""


SOURCE_TEXT: dict[ScoreSource, str] = {
    "schema": "by the scores of the schema",
    "grid": "unbiased, since numbers are rounded at random",
    "given": "by the scores given",
    "middle": "by the MIDDLES of bins, which are not the means of the values in them",
    "edges": "only the bin of each value is known, so the mean is given by its least and its "
    "largest possible value",
}
"""Sources of scores, in words."""


@dataclass(frozen=True)
class CategoryScores:
    """Scores of an attribute's categories.

    ``values``: the score of each category, shape (a,); None if only ``edges`` are known. 0 where a
    category does not count. ``least, most``: bounds on the mean of each category, shape (a,): the
    edges of bins, or scores less and plus their margins, if any. ``counted``: 1 where the category
    counts, 0 for missing values without a score, shape (a,).
    """

    source: ScoreSource
    values: Floats | None
    least: Floats
    most: Floats
    counted: Floats


def scores_of(attribute: Attribute, wanted: Scores = None) -> CategoryScores:
    """Return the scores of an attribute's categories."""
    if isinstance(wanted, str):
        if wanted != "middle":
            raise InputError(
                f"scores are one number per category, or 'middle' for the middles of bins, not "
                f"'{wanted}'"
            )
        if (middles := attribute.middles()) is None:
            raise InputError(f"attribute '{attribute.name}' has no bins, so it has no middles")
        return _exact("middle", middles)
    if (scores := attribute.category_scores(wanted)) is not None:
        declared: ScoreSource = "schema" if attribute.range is None else "grid"
        exact = _exact(declared if wanted is None else "given", scores)
        if wanted is None and (ranges := attribute.score_ranges()) is not None:
            return replace(exact, least=_ends(ranges, 0), most=_ends(ranges, 1))
        return exact
    if (bounds := attribute.bounds()) is None:
        raise InputError(
            f"attribute '{attribute.name}' has no scores, so it has no mean or covariance; "
            "give one number per category, here or as scores = [...] in the schema"
        )
    least, most = _ends(bounds, 0), _ends(bounds, 1)
    if not np.all(np.isfinite([least, most])):
        raise InputError(
            f"attribute '{attribute.name}' has an open interval, whose mean has no bounds; "
            "give one score per interval, here or as scores = [...] in the schema"
        )
    return CategoryScores("edges", None, least, most, _counted(bounds))


EVENLY = 1
"""Place in :func:`rounding_variance` of numbers spread evenly between points."""


def rounding_variance(attribute: Attribute) -> tuple[float, float, float]:
    """Return the rounding's part of the variance of a number: the least, that of numbers spread
    evenly between points, and the largest; zeros for other attributes.

    E r(x) with r(x) = (x − t_j)(t_{j+1} − x) for a distance h of the points: 0, h²/6 and h²/4
    (docs/proofs/numbers.md, section 2).
    """
    if attribute.number_grid is None:
        return 0.0, 0.0, 0.0
    low, high, *_ = attribute.number_grid.points
    return 0.0, (high - low) ** 2 / 6, (high - low) ** 2 / 4


def single_scores(
    attribute: Attribute, wanted: Scores = None, *, answered: bool = False
) -> tuple[ScoreSource, Floats]:
    """Return one number for every category, shape (a,), and where they are from; ``answered``: a
    missing category needs none."""
    scored = scores_of(attribute, wanted)
    if scored.values is None:
        raise InputError(
            f"'{attribute.name}' has bins and no scores; give one number per category, here or as "
            "scores = [...] in the schema, or use the middles of the bins with the score 'middle'"
        )
    if not (answered or scored.counted.all()):
        raise InputError(
            f"missing values of '{attribute.name}' have no score; give one number per category"
        )
    return scored.source, scored.values


def _exact(source: ScoreSource, scores: Sequence[float | None]) -> CategoryScores:
    values = np.array([score or 0.0 for score in scores])
    return CategoryScores(source, values, values, values, _counted(scores))


def _ends(ranges: Sequence[tuple[float, float] | None], end: Literal[0, 1]) -> Floats:
    return np.array([0.0 if one is None else one[end] for one in ranges])


def _counted(values: Sequence[object]) -> Floats:
    return np.array([value is not None for value in values], dtype=float)
