"""Differences and ratios of shares or means between two values, with their covariance.

Both sides are ratios of linear functions of one estimated table, and so have errors that are, to
first order, linear functions c₁·(π̂ − π) and c₂·(π̂ − π) of the same table. The difference errs by
(c₁ − c₂)·(π̂ − π), the logarithm of the ratio R₁/R₂ by (c₁/R₁ − c₂/R₂)·(π̂ − π), which includes
the covariance of the two sides. Groups of rows by a kept column are independent, so variances add;
in a survey the contributions to a cluster add. In place of the second value may be all rows: of a
kept column with the groups' fractions f of the rows, R = Σ f N/Σ f D of their numerators and
denominators; in a survey, where f is an estimate, from all rows together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import exp, isfinite, log
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.estimate.columns import Answers, Presented, target_text
from deniable.estimate.inference import Inference, joint_error, normal_quantile
from deniable.estimate.query import SampleQuery
from deniable.estimate.scores import SOURCE_TEXT, Scores, ScoreSource, scores_of
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.prediction import Target
from deniable.mechanism.privacy import finite_or_none
from deniable.numerals import count_text
from deniable.tables.selection import value_among


@dataclass(frozen=True)
class Difference(Presented):
    """Two shares or means, and how they differ.

    ``estimates``: of the two, NaN where a group's estimated size is not positive. ``ratio``: the
    first over the second; None unless both are positive.
    """

    statistic: str
    of: tuple[tuple[str, str], ...]
    column: str
    values: tuple[str, str]
    estimates: tuple[float, float]
    difference: float
    standard_error: float
    ratio: float | None
    ratio_error: float | None
    n_records: int
    target: Target
    group: tuple[tuple[str, str], ...] = ()
    scores: ScoreSource | None = None
    leaves_out: bool = False

    @property
    def axis(self) -> str:
        """Label of a plot's horizontal axis."""
        return f"{self.values[0]} less {self.values[1]}"

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return one row of plain values: ``estimate`` is the difference, ``low`` and ``high`` its
        interval; the ratio's interval is normal in its logarithm."""
        z = normal_quantile(level)
        known = isfinite(self.difference)
        half = z * self.standard_error
        low, high = self.difference - half, self.difference + half
        useless = not known or low <= 0 <= high
        if self.statistic == "share":
            low, high = (min(max(end, -1.0), 1.0) for end in (low, high))
        row: dict[str, Any] = {
            **dict(self.group),
            **{name: value for name, value in self.of if value},
            "compared": f"{self.column}: {self.values[0]} less {self.values[1]}",
            "first": finite_or_none(self.estimates[0]),
            "second": finite_or_none(self.estimates[1]),
            "estimate": finite_or_none(self.difference),
            "standard_error": finite_or_none(self.standard_error),
            "low": finite_or_none(low),
            "high": finite_or_none(high),
            "uncertain": useless,
            "ratio": self.ratio,
            "ratio_low": None,
            "ratio_high": None,
        }
        if self.ratio is not None and self.ratio_error is not None:
            row["ratio_low"] = self.ratio * exp(-min(z * self.ratio_error, 700.0))
            row["ratio_high"] = self.ratio * exp(min(z * self.ratio_error, 700.0))
        return [row]

    def caption(self, level: float = 0.95) -> str:
        """Return a caption."""
        names = ", ".join(name for name, _ in self.of)
        what = "Mean of" if self.statistic == "mean" else "Shares of"
        made = (
            ""
            if self.scores is None
            else SOURCE_TEXT[self.scores]
            + ("; " if self.scores == "grid" else ", taken as exact; ")
        )
        return (
            f"{what} {names}, {self.column} {self.values[0]} less {self.values[1]}: "
            f"{count_text(self.n_records, 'row')}, of {target_text(self.target)}; "
            f"{made}{100 * level:g} % "
            "normal intervals; the ratio is the first over the second"
            + ("; people without a value are left out" if self.leaves_out else "")
        )


_Side = Sequence[tuple[float, Inference, Floats, Floats]]
"""One side of a comparison: estimated tables with their fractions of the rows, and the weights of a
numerator and a denominator, which broadcast to their shape."""

ALL = "all"
"""Name of the second side of a comparison with all."""


@dataclass(frozen=True, kw_only=True)
class Comparison(SampleQuery[Difference]):
    """How do shares, or a mean, differ between two values of a column?

    If the column is in ``of``, compares the shares of its two values, with any categories of the
    others; otherwise the shares, or means, within its two groups. Within each subgroup of ``by``.

    Args:
        column: an attribute or a kept column.
        values: two of its values, or one to compare with all.
        mean: compare the mean of the only attribute, instead of shares.
        scores: for a mean, as in :class:`~deniable.estimate.ordered.Mean`.
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.

    Raises:
        InputError: if a value is unknown, the two are one, or a mean has no scores.
    """

    takes_answered: ClassVar[bool] = True

    lists: ClassVar[tuple[str, ...]] = ("values",)

    column: str
    values: Sequence[str]
    mean: bool = False
    scores: Scores = None
    target: Target = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.values) <= 2:
            raise InputError(
                "`values` names two values of the column that is compared, or one to compare with "
                "all"
            )
        if len(self.values) == 1 and self.column in self.of:
            raise InputError(
                f"`values` names one value, and '{self.column}' is in `of`; name a second value"
            )
        if self.scores is not None and not self.mean:
            raise InputError("scores are for a mean; give `mean` too")
        if self.values[0] == self.values[-1] and len(self.values) > 1:
            raise InputError(f"'{self.values[0]}' is compared with itself; name two values")
        if self.mean and (len(self.of) != 1 or self.column in self.of):
            raise InputError(
                "means are compared of one attribute, between two groups that another column forms"
            )

    def run(self, release: Release) -> Answers[Difference]:
        """Return the differences for every group of rows."""
        schema = release.strata.schema
        if self.column in self.by:
            raise InputError(
                f"'{self.column}' forms the groups that are compared; leave it out of those within "
                "which they are"
            )
        subgroups = self.subgroups(schema)
        kept = not {self.column} & {*self.of, *schema.names, *schema.columns}
        counted = release.count(
            [*self._names(kept=kept), *subgroups],
            by=[*(name for name in self.by if name not in subgroups), *[self.column] * kept],
            where=self.where,
            weights=self.weights,
            sample=self.sample,
        )
        if not kept:
            found = (difference for counts in counted for difference in self.answer(counts))
            return Answers(found, self.selection(counted[0]))
        return Answers(self._between_groups(counted), self.selection(counted[0]))

    def _names(self, *, kept: bool) -> tuple[str, ...]:
        """Return the attributes of the table, before those that form subgroups."""
        return (*self.of, *[self.column] * (not kept and self.column not in self.of))

    def answer(self, counts: Counts) -> list[Difference]:
        """Return the differences in one group of rows."""
        inside = self.column in self.of
        names = self._names(kept=False)
        inference = Inference(counts, (*names, *self.subgroups(counts.schema)), self.target)
        axis = names.index(self.column)
        categories = inference.channel.variables[axis].attribute.categories
        for value in self.values:
            if value not in categories:
                raise InputError(
                    f"'{value}' is no category of '{self.column}'; it has "
                    f"{', '.join(categories[:12])}{', …' if len(categories) > 12 else ''}"
                )
        shape = inference.values.shape
        included = inference.answered if self.answered else np.ones(shape)
        differences = []
        for subgroup, member in inference.subgroups(len(names)):
            if not (included * member).any():
                continue
            for of, weights, counted in self._functionals(inference, skip=axis if inside else None):
                sides = []
                for value in (*self.values, ALL)[:2]:
                    group = np.ones(shape[axis])
                    if value in self.values:
                        group = np.arange(shape[axis]) == categories.index(value)
                    along = group.reshape([-1 if j == axis else 1 for j in range(len(shape))])
                    below = member if inside else counted * along * member
                    above = weights * along * member * included
                    sides.append([(1.0, inference, above, below * included)])
                group_of = (*counts.group, *subgroup)
                differences.append(self._difference(of, sides, counts.n_records, group_of))
        return differences

    def _between_groups(self, counted: Sequence[Counts]) -> Iterator[Difference]:
        gathered: dict[tuple[tuple[str, str], ...], dict[str, Counts]] = {}
        for counts in counted:
            groups = dict(counts.group)
            value = groups.pop(self.column)
            gathered.setdefault(tuple(groups.items()), {})[value] = counts
        for group, by_value in gathered.items():
            tables = []
            for value in self.values:
                if (label := value_among(value, [*by_value])) is None:
                    raise InputError(f"no row has the value '{value}' in '{self.column}'")
                tables.append(by_value.pop(label))
            in_survey = tables[0].cluster_strata is not None
            if one_value := len(tables) == 1:  # compared with all: itself and the others
                if not by_value:
                    raise InputError(f"all rows have the value '{label}' in '{self.column}'")
                together = [*by_value.values(), *tables * in_survey]
                parts_of_all = tuple(part for counts in together for part in counts.parts)
                tables.append(replace(tables[0], parts=parts_of_all))
            names = (*self.of, *self.subgroups(tables[0].schema))
            inferences = [Inference(counts, names, self.target) for counts in tables]
            rows = sum(counts.n_records for counts in tables[in_survey and one_value :])
            weight = sum(counts.total for counts in tables)
            fractions = [counts.total / weight for counts in tables]
            # The groups have the same attributes, and so the same weights.
            included = inferences[0].answered if self.answered else np.ones(())
            for subgroup, member in inferences[0].subgroups(len(self.of)):
                if not (included * member).any():
                    continue
                for of, weights, below in self._functionals(inferences[0], skip=None):
                    both = weights * member * included, below * member * included
                    parts = [(f, i, *both) for f, i in zip(fractions, inferences, strict=True)]
                    second = parts if one_value and not in_survey else parts[1:]
                    yield self._difference(of, [parts[:1], second], rows, (*group, *subgroup))

    def _functionals(
        self, inference: Inference, skip: int | None
    ) -> Iterator[tuple[tuple[tuple[str, str], ...], Floats, Floats]]:
        """Yield each comparison: its name, and the weights of numerator and denominator."""
        shape = inference.values.shape
        variables = inference.channel.variables
        if self.mean:
            scored = scores_of(variables[0].attribute, self.scores)
            if scored.values is None:
                raise InputError(
                    f"'{self.of[0]}' has bins and no scores, so its means are not known; give "
                    "scores, or use the middles of the bins with the score 'middle'"
                )
            tail = [1] * (len(shape) - 1)
            yield (
                ((self.of[0], ""),),
                (scored.values * scored.counted).reshape(-1, *tail),
                scored.counted.reshape(-1, *tail),
            )
            return
        axes = [axis for axis in range(len(self.of)) if axis != skip]
        for cell in product(*(range(shape[axis]) for axis in axes)):
            weights = np.zeros([shape[a] if a in axes else 1 for a in range(len(shape))])
            index = [0] * len(shape)
            for axis, code in zip(axes, cell, strict=True):
                index[axis] = code
            weights[tuple(index)] = 1.0
            if not axes:
                weights[...] = 1.0
            if self.answered and any(
                variables[axis].attribute.categories[code] == variables[axis].attribute.missing
                for axis, code in zip(axes, cell, strict=True)
            ):
                continue
            names = tuple(
                (self.of[axis], variables[axis].attribute.categories[code])
                for axis, code in zip(axes, cell, strict=True)
            )
            yield names or ((self.column, ""),), weights, np.ones([1] * len(shape))

    def _difference(
        self,
        of: tuple[tuple[str, str], ...],
        sides: Sequence[_Side],
        n_records: int,
        group: tuple[tuple[str, str], ...],
    ) -> Difference:
        source, leaves_out = None, False
        if self.mean:
            attribute = sides[0][0][1].channel.variables[0].attribute
            scored = scores_of(attribute, self.scores)
            source, leaves_out = scored.source, not scored.counted.all()
        (first, of_first), (second, of_second) = map(_linearized, sides)

        def error(scale_first: float, scale_second: float) -> float:
            moved: dict[int, tuple[Inference, Floats]] = {}
            for scale, parts in ((scale_first, of_first), (-scale_second, of_second)):
                for inference, weights in parts:
                    _, before = moved.get(id(inference), (inference, np.zeros(())))
                    moved[id(inference)] = inference, before + scale * weights
            return joint_error([*moved.values()])

        both = first > 0 and second > 0
        return Difference(
            statistic="mean" if self.mean else "share",
            of=of,
            column=self.column,
            values=(self.values[0], (*self.values, ALL)[1]),
            estimates=(first, second),
            difference=first - second,
            standard_error=error(1.0, 1.0),
            ratio=exp(log(first) - log(second)) if both else None,
            ratio_error=error(1 / first, 1 / second) if both else None,
            n_records=n_records,
            target=self.target,
            group=group,
            scores=source,
            leaves_out=leaves_out,
        )

    def to_plain(self, answers: Sequence[Difference]) -> dict[str, Any]:
        """Return all differences as rows under ``differences``."""
        return {
            "column": self.column,
            "values": list(self.values),
            "statistic": "mean" if self.mean else "share",
            "scores": next((answer.scores for answer in answers), None),
            "n": max((answer.n_records for answer in answers), default=0),
            "target": self.target,
            "level": self.level,
            "differences": [row for answer in answers for row in answer.table(self.level)],
        }


def _linearized(side: _Side) -> tuple[float, list[tuple[Inference, Floats]]]:
    """Return a side's ratio and, by table, the weights of its error; NaN if the denominator is not
    positive."""
    above = sum(f * float((over * i.values).sum()) for f, i, over, _ in side)
    below = sum(f * float((under * i.values).sum()) for f, i, _, under in side)
    value = above / below if below > 0 else float("nan")
    return value, [
        (
            inference,
            np.broadcast_to(fraction * (over - value * under) / below, inference.values.shape),
        )
        for fraction, inference, over, under in side
    ]
