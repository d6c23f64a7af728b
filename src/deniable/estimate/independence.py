"""Whether two attributes of a randomized table are independent, and how strongly they go together.

The test is that of :mod:`deniable.estimate.chi_square`, the strength that of
:mod:`deniable.estimate.association`. Both are about the population from which the rows were drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.association import Association, association
from deniable.estimate.chi_square import (
    ChiSquare,
    Chosen,
    CovarianceOf,
    chi_square,
    independent_covariance,
    randomized_together,
    released_chi_square,
    survey_chi_square,
)
from deniable.estimate.columns import Answers, Presented, target_text, where_text
from deniable.estimate.inference import UNCERTAIN_ERRORS, normal_quantile
from deniable.estimate.query import SampleQuery, refuse_randomized_groups
from deniable.estimate.source import Release
from deniable.estimate.survey import ClusterCells, SampleColumns, cell_variance
from deniable.estimate.tabulate import Counts, Floats, Tabulation, less_mean
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.numerals import count_text

MOST_CELLS = 4096
"""Pairs with more cells are refused: V holds a square matrix of that size; of more released values
than cells, one of that many entries."""

FEW_EXPECTED = 5.0
"""Below this expected count in some cell the χ² limit is a rough guide (the usual rule)."""


@dataclass(frozen=True)
class IndependenceTest(Presented):
    """Whether two attributes are independent in the population, and how strongly they go
    together."""

    attributes: tuple[str, str]
    n_records: int
    test: ChiSquare
    released: ChiSquare | None
    together: bool
    cramers_v: Association | None
    without_v: str
    group: tuple[tuple[str, str], ...] = ()
    level: float = 0.95

    @property
    def p_value(self) -> float:
        """Probability of so large a corrected X² if the attributes are independent."""
        return self.test.p_value

    @property
    def few_expected(self) -> bool:
        """Whether some released cell expects fewer than five rows: the p-value is then rough."""
        return self.test.least_expected < FEW_EXPECTED

    target: ClassVar[Target] = "population"

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row of plain values."""
        plain = self.to_plain(level)
        names = [
            *("statistic", "degrees_of_freedom"),
            *([] if self.test.denominator is None else ["denominator_degrees_of_freedom"]),
            "p_value",
            *("cramers_v", "cramers_v_low", "cramers_v_high", "detectable_v"),
        ]
        return [
            dict(self.group)
            | {"first": self.attributes[0], "second": self.attributes[1]}
            | {name: plain[name] for name in names}
        ]

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        return (
            f"Independence of {' and '.join(self.attributes)}{where_text(self.group)}: "
            f"{count_text(self.n_records, 'row')}, of {target_text('population')}; "
            f"{100 * self._level(level):g} % interval of V"
        )

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        quantile = normal_quantile(self._level(level))
        strength = self.cramers_v
        low, high = (None, None) if strength is None else strength.interval(quantile)
        return {
            "attributes": list(self.attributes),
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "statistic": self.test.statistic,
            "degrees_of_freedom": self.test.degrees_of_freedom,
            "denominator_degrees_of_freedom": self.test.denominator,
            "p_value": self.test.p_value,
            "least_expected": self.test.least_expected,
            "level": self._level(level),
            "cramers_v": None if strength is None else strength.value,
            "cramers_v_low": low,
            "cramers_v_high": high,
            "detectable_v": None if strength is None else strength.detectable,
            "squared_v": None if strength is None else strength.square,
            "squared_v_standard_error": None if strength is None else strength.standard_error,
            "without_v": self.without_v or None,
            "randomized_together": self.together,
            "released": None
            if self.released is None
            else {
                "statistic": self.released.statistic,
                "degrees_of_freedom": self.released.degrees_of_freedom,
                "p_value": self.released.p_value,
            },
        }


def independence(
    counts: Counts,
    of: Sequence[str],
    *,
    kept_values: Sequence[str] = (),
    answered: bool = False,
) -> IndependenceTest:
    """Test whether two attributes are independent, from counts of released pairs."""
    _refuse_but_two(of)
    mechanism, tabulation = one_stratum(counts)
    first, second = of
    if kept_values:
        channel = channel_of(mechanism, (first,), tabulation.counts.sum(axis=-1))
    else:
        channel = channel_of(mechanism, (first, second), tabulation.counts)
    channel.check(tabulation.n_effective)
    shape = channel.n_outputs
    labels = [variable.attribute.categories for variable in channel.variables]
    if kept_values:
        shape = (*shape, len(kept_values))
        labels.append(tuple(kept_values))
    table = tabulation.counts
    if table.shape != shape:
        raise InputError(
            f"the counts have shape {table.shape}, but the released values of {first}, {second} "
            f"make a table of shape {shape}"
        )
    if table.size * prod(map(len, labels)) > MOST_CELLS**2:
        raise InputError(
            f"'{first}' and '{second}' make a table of {table.size} cells, more than "
            f"{MOST_CELLS**2 // prod(map(len, labels))}; merge categories"
        )
    forward: TableMap | StackedMap | None
    inverse: TableMap | StackedMap = channel.inverse
    clusters = tabulation.clusters
    if isinstance(channel, PublishedChannel):
        forward, released = channel.forward, None
    else:
        _refuse_one_value(table, (first, second))
        for axis in range(2):
            if _as_it_is(channel.inverse, axis):
                seen = np.flatnonzero(table.sum(axis=1 - axis))
                if clusters is not None:
                    cells = np.arange(table.size).reshape(table.shape).take(seen, axis=axis)
                    cell = np.searchsorted(cells.ravel(), clusters.cell)
                    clusters = replace(clusters, cell=cell)
                table = table.take(seen, axis=axis)
                labels[axis] = tuple(labels[axis][i] for i in seen)
        sizes = tuple(map(len, labels))
        inverse = replace(channel.inverse, n_categories=sizes)
        forward = replace(channel.forward, n_categories=sizes) if channel.complete else None
        released = None if channel.shared_matrices else released_chi_square(table)
    chosen = None
    if answered:
        released = None
        missing = [variable.attribute.missing for variable in channel.variables]
        rows, columns = (
            np.array([label != gap for label in own])
            for own, gap in zip(labels, [*missing, None], strict=False)
        )
        chosen = rows, columns
        for name, own in zip(of, chosen, strict=True):
            if own.sum() < 2:
                raise InputError(
                    f"all respondents with a value have the same value of '{name}', so no test is "
                    "possible"
                )
    n, frequencies = tabulation.n_records, table / table.sum()
    if clusters is None or counts.cluster_strata is None:
        covariance_of = independent_covariance(frequencies, inverse, n)
        test = chi_square(table, forward, inverse, chosen)
    else:
        of_totals = partial(_in_survey, clusters, counts.cluster_strata, table, inverse)
        covariance_of, released = of_totals, None
        test = survey_chi_square(
            *(frequencies, forward, inverse, n, covariance_of, counts.survey_degrees_of_freedom),
            chosen,
        )
    strength, reason = _association(
        frequencies, inverse, n, covariance_of, (first, second), labels, chosen
    )
    return IndependenceTest(
        attributes=(first, second),
        n_records=tabulation.n_records,
        test=test,
        released=released,
        together=not isinstance(forward, TableMap) or randomized_together(forward),
        cramers_v=strength,
        without_v=reason,
        group=counts.group,
    )


@dataclass(frozen=True, kw_only=True)
class Independence(SampleQuery[IndependenceTest]):
    """A test of independence of two attributes in the population that the rows were drawn from.

    Of the two one may be a kept column that the schema does not declare. Groups of rows are formed
    by kept columns only. With weights, clusters or strata it is the F test of Rao and Scott (second
    order).

    Raises:
        InputError: if it is not of two attributes, both of the two are
            undeclared kept columns, a group is formed by a randomized attribute, rows tested
            together were randomized by different mechanisms, or as :func:`independence`.
    """

    takes_answered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_but_two(self.of)

    @property
    def sample(self) -> SampleColumns:
        """The columns that describe the sample; rows with weights are one."""
        return replace(super().sample, rows=self.weights is not None)

    def run(self, release: Release) -> Answers[IndependenceTest]:
        """Return the test of every group of rows, in the order of the groups' values."""
        if release.counts is not None:
            return super().run(release)
        schema = release.strata.schema
        refuse_randomized_groups(schema, self.by, "independence is")
        for name in self.by:
            if name in self.of:
                raise InputError(f"'{name}' is tested and forms the groups too; name it only once")
        undeclared = [name for name in self.of if name in schema.keep and name not in schema.names]
        declared = [name for name in self.of if name not in undeclared]
        if not declared:
            raise InputError(
                f"'{self.of[0]}' and '{self.of[1]}' are both released unchanged; test them in any "
                "statistics package"
            )
        groups = release.count(
            declared,
            by=[*self.by, *undeclared],
            where=self.where,
            weights=self.weights,
            sample=self.sample,
        )
        if not undeclared:
            tests = (test for counts in groups for test in self.answer(counts))
            return Answers(tests, self.selection(groups[0]))
        # Counts of every value of the undeclared column: side by side they are the table of the
        # pair.
        gathered: dict[tuple[tuple[str, str], ...], list[Counts]] = {}
        for counts in groups:
            gathered.setdefault(counts.group[:-1], []).append(counts)
        pair = (declared[0], undeclared[0])
        return Answers(
            (
                replace(_side_by_side(pair, parts, self.answered), level=self.level)
                for parts in gathered.values()
            ),
            self.selection(groups[0]),
        )

    def answer(self, counts: Counts) -> list[IndependenceTest]:
        """Return the test of one group of rows."""
        test = independence(counts, self.of, answered=self.answered)
        return [replace(test, level=self.level)]


def _refuse_but_two(of: Sequence[str]) -> None:
    if len(of) != 2 or of[0] == of[1]:
        raise InputError("independence is of two attributes; name both of them, as in a,b")


def one_stratum(counts: Counts) -> tuple[Mechanism, Tabulation]:
    if len(counts.parts) > 1:
        raise InputError(
            f"the strata of '{counts.column}' were randomized by mechanisms of their own, which "
            f"one test cannot cover; test within each of them (by '{counts.column}')"
        )
    return counts.parts[0]


def _side_by_side(of: Sequence[str], parts: Sequence[Counts], answered: bool) -> IndependenceTest:
    # Rows that differ in the last column of their groups, which is the second of the pair.
    singles = [one_stratum(part) for part in parts]
    mechanism = singles[0][0]
    if any(each != mechanism for each, _ in singles):
        raise InputError(
            f"rows with different values of '{of[1]}' were randomized by mechanisms of their own, "
            "which one test cannot cover"
        )
    table = np.stack([tabulation.counts for _, tabulation in singles], axis=1)
    own = [tabulation.clusters for _, tabulation in singles]
    moved = [
        replace(each, cell=each.cell * len(own) + i)
        for i, each in enumerate(own)
        if each is not None
    ]
    tabulation = Tabulation(
        table,
        None,
        sum(part.n_records for part in parts),
        ClusterCells.of(moved) if moved else None,
    )
    counts = replace(
        Counts.of(mechanism, tabulation, parts[0].group[:-1]),
        cluster_strata=parts[0].cluster_strata,
    )
    values = [part.group[-1][1] for part in parts]
    return independence(counts, of, kept_values=values, answered=answered)


def _as_it_is(channel: TableMap | StackedMap, axis: int) -> bool:
    if isinstance(channel, StackedMap):
        channel = channel.parts[0]
    shared = any(axis in joint.axes for joint in channel.joint.values())
    return not (shared or axis in channel.pattern_axes or axis in channel.matrices)


def _refuse_one_value(counts: Floats, names: Sequence[str]) -> None:
    for axis, name in enumerate(names):
        seen = np.count_nonzero(counts.sum(axis=1 - axis))
        if seen < 2 and (counts.shape[axis] > 1 or counts.size == 1):
            raise InputError(
                f"all rows have the same released value of '{name}', so no test is possible"
            )


def _in_survey(
    clusters: ClusterCells,
    cluster_strata: NDArray[np.int64],
    counts: Floats,
    inverse: TableMap | StackedMap,
    columns: Floats,
) -> Floats:
    """Return the covariance in a survey of estimates with some contributions, (m, outputs)."""
    total = counts.sum()
    centred = less_mean(columns, counts.ravel() / total, inverse) / total
    return cell_variance([(clusters, centred)], cluster_strata)


def _association(
    frequencies: Floats,
    inverse: TableMap | StackedMap,
    n_records: int,
    covariance_of: CovarianceOf,
    names: Sequence[str],
    labels: Sequence[Sequence[str]],
    chosen: Chosen | None,
) -> tuple[Association | None, str]:
    table = inverse.apply(frequencies)
    counted = np.ones(table.shape) if chosen is None else np.multiply.outer(*chosen)
    for axis, name in enumerate(names):
        if chosen is None and _as_it_is(inverse, axis):
            continue  # its margin is positive, and no cell is larger
        for category in np.flatnonzero(counted.any(axis=1 - axis)).tolist():
            weights = np.zeros(table.shape)
            np.moveaxis(weights, axis, 0)[category] = 1.0
            weights *= counted
            frequency = float((weights * table).sum())
            influence = inverse.transposed().apply(weights).reshape(1, -1)
            error = sqrt(covariance_of(influence)[0, 0])
            if frequency <= UNCERTAIN_ERRORS * error:
                return None, (
                    f"the share of '{labels[axis][category]}' in '{name}' is not clearly above "
                    "zero, and V divides by it"
                )
    return association(frequencies, inverse, n_records, chosen, covariance_of), ""
