"""Correlations of numbers, scores and categories before randomization.

ρ = C/√(V_s V_t) of the scores s, t of two attributes, with C, V_s and V_t estimated without bias
from their joint table: a plug-in moment is off by the covariance of the estimated means, which is
added. A category without a score has the indicator as its score. Of a number V_s includes E r, the
rounding's part, between 0 and h²/4 for a distance h of the points (docs/proofs/numbers.md,
section 2), and C does not. By the delta method ρ̂ errs by

    dC/√(V_s V_t) − ρ/2 (dV_s/V_s + dV_t/V_t),

a linear function of the table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import copysign, isfinite, sqrt
from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.estimate.columns import Answers, Presented, target_text
from deniable.estimate.inference import Inference, normal_quantile
from deniable.estimate.query import SampleQuery
from deniable.estimate.scores import EVENLY, rounding_variance, scores_of
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.prediction import Target
from deniable.numerals import count_text
from deniable.schema import Attribute


@dataclass(frozen=True)
class CorrelationEstimate(Presented):
    """An estimated correlation of two attributes, or of their categories.

    ``estimate``: NaN where an estimated variance is not positive.
    """

    names: tuple[str, str]
    n_records: int
    target: Target
    estimate: float
    standard_error: float
    low: float
    high: float
    group: tuple[tuple[str, str], ...] = ()
    level: float = 0.95

    axis = "correlation"

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row of plain values."""
        if level not in (None, self.level):
            raise InputError(f"the interval was made for the level {self.level:g}; estimate again")
        known = isfinite(self.estimate)
        row: dict[str, Any] = dict(self.group)
        row |= {"first": self.names[0], "second": self.names[1]}
        return [
            row
            | {
                "estimate": self.estimate if known else None,
                "standard_error": self.standard_error if known else None,
                "low": self.low,
                "high": self.high,
                "uncertain": self.low <= 0 <= self.high,
            }
        ]

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        return (
            f"Correlations: {count_text(self.n_records, 'row')}, of {target_text(self.target)}; "
            "estimates take numbers as spread evenly between the points of their grid, and the "
            f"{100 * self._level(level):g} % intervals hold for any numbers; people without a "
            "value are left out"
        )


@dataclass(frozen=True, kw_only=True)
class Correlation(SampleQuery[CorrelationEstimate]):
    """Correlations of all pairs of some attributes before randomization.

    Numbers have their values, scored categories their scores, and an attribute without scores the
    indicator of each category (of the last of two). Respondents without a value of either are left
    out. Intervals of numbers include all that the rounding may add to a variance.

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.

    Raises:
        InputError: if fewer than two attributes are named, one has bins, or one is to form
            subgroups.
    """

    target: Target = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.of) < 2:
            raise InputError("correlations are of two attributes or more; name them, as in a,b")

    def run(self, release: Release) -> Answers[CorrelationEstimate]:
        """Return the correlations of all pairs, for every group of rows."""
        schema = release.strata.schema
        if by := self.subgroups(schema):
            raise InputError(
                f"correlations are not estimated within subgroups of '{by[0]}', which is "
                "randomized; group by a kept column"
            )
        for name in self.of:
            _scored(schema.variable(name).attribute)
        pairs = list(combinations(self.of, 2))
        counted = release.count_tables(
            pairs, by=self.by, where=self.where, weights=self.weights, sample=self.sample
        )
        found = (
            one
            for of_group in zip(*counted, strict=True)
            for pair, counts in zip(pairs, of_group, strict=True)
            for one in self._of_pair(pair, counts)
        )
        return Answers(found, self.selection(counted[0][0]))

    def answer(self, counts: Counts) -> list[CorrelationEstimate]:
        """Return the correlations of two attributes from their table."""
        first, second = self.of
        return list(self._of_pair((first, second), counts))

    def to_plain(self, answers: Sequence[CorrelationEstimate]) -> dict[str, Any]:
        """Return all correlations as rows under ``correlations``."""
        return {
            "level": self.level,
            "target": self.target,
            "correlations": [
                row | {"n": answer.n_records} for answer in answers for row in answer.table()
            ],
        }

    def _of_pair(self, pair: tuple[str, str], counts: Counts) -> Iterator[CorrelationEstimate]:
        inference = Inference(counts, pair, self.target)
        z, included = normal_quantile(self.level), inference.answered
        attributes = [variable.attribute for variable in inference.channel.variables]
        rounding = zip(*map(rounding_variance, attributes), strict=True)
        parts_of_variance = list(rounding)  # none, spread evenly, the largest
        for (one, s), (other, t) in product(*map(_scored, attributes)):
            moments = (s[:, None], t[None, :], np.outer(s, t), s[:, None] ** 2, t[None, :] ** 2)
            means, along = zip(
                *(inference.linearized(each * included, included) for each in moments), strict=True
            )
            of_means = inference.covariance(np.array(along[:2]))
            moved = [
                along[i] - means[a] * along[b] - means[b] * along[a]
                for i, a, b in ((2, 0, 1), (3, 0, 0), (4, 1, 1))
            ]
            covariance, *variances = (
                means[i] - means[a] * means[b] + float(of_means[a, b])
                for i, a, b in ((2, 0, 1), (3, 0, 0), (4, 1, 1))
            )
            sure = abs(covariance) > z * inference.error_of(moved[0])
            ends, estimate, error = [], float("nan"), float("nan")
            for place, parts in enumerate(parts_of_variance):
                first, second = (v - r for v, r in zip(variances, parts, strict=True))
                if not (first > 0 and second > 0):  # as large as can be, if its sign is known
                    ends += [copysign(1.0, covariance), copysign(1.0, covariance if sure else -1)]
                    ends += [] if sure else [1.0]
                    continue
                rho = covariance / sqrt(first * second)
                change = moved[0] / sqrt(first * second)
                change = change - rho / 2 * (moved[1] / first + moved[2] / second)
                deviation = inference.error_of(change)
                ends += [rho - z * deviation, rho + z * deviation]
                if place == EVENLY:
                    estimate, error = rho, deviation
            low, high = (min(max(end, -1.0), 1.0) for end in (min(ends), max(ends)))
            yield CorrelationEstimate(
                (one, other),
                counts.n_records,
                self.target,
                estimate,
                error,
                low,
                high,
                counts.group,
                self.level,
            )


def _scored(attribute: Attribute) -> list[tuple[str, Floats]]:
    """Return the scores to correlate with others, by name: its own, or indicators of categories."""
    if attribute.bins is not None and attribute.scores is None:
        raise InputError(
            f"'{attribute.name}' has bins and no scores, so its correlations are unknown; declare "
            "scores = [...] in the schema"
        )
    if attribute.category_scores() is not None:
        values = scores_of(attribute).values
        assert values is not None
        return [(attribute.name, values)]
    names = [name for name in attribute.categories if name != attribute.missing]
    return [
        (
            f"{attribute.name} = {name}",
            np.array([float(each == name) for each in attribute.categories]),
        )
        for name in (names[-1:] if len(names) == 2 else names)
    ]
