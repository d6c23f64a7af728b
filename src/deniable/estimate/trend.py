"""Tests of trend: does the mean score of an attribute, such as the number of alleles at a SNP,
differ between cases and controls?

Without randomization this is the test of Cochran (1954) and Armitage (1955). With scores s of the
attribute and z = 0, 1 of the status, s̄ and z̄ their means in the estimated table π̂ = Lθ, and
c = (s − s̄)(z − z̄),

    U = c·π̂ = ℓ·θ, ℓ = Lᵀc,      Z = U √(n − 1)/√Var ℓ, the variance under θ⁰ = M(α̂ ⊗ β̂),

α̂ and β̂ the margins of π̂; n − 1 makes it the variance given both margins (Mantel 1963). U has no
first-order error from s̄ and z̄: both derivatives of c·π are 0 at the means. Rows whose attribute or
status does not count (missing ones, a third status) are no part of the means, and θ⁰ is independent
among the others only: π⁰ = α̂β̂ᵀ there, and π̂ elsewhere.

If the status is kept and one pattern law made the attribute, θ⁰ is the product of the *released*
margins and ℓ is linear in the released score, so Z is the usual test of the released genotypes,
with their own variance: E[s(y) | x] = φ s(x) + const. If the status is randomized too, ℓ inverts
the law on the pair (φ_ij in place of φ_i φ_j).

Under forms the variance is taken within forms, whose numbers of rows are known; if the status is
kept, ℓ itself is centred within forms, so that cases and controls are compared within forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import erfc, sqrt
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.estimate.chi_square import less_mean
from deniable.estimate.columns import Answers, Presented, target_text, where_text
from deniable.estimate.independence import one_stratum
from deniable.estimate.inference import normal_quantile
from deniable.estimate.query import Query, refuse_randomized_groups
from deniable.estimate.scores import scores_of
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.numerals import count_text
from deniable.schema import Attribute
from deniable.tables.selection import value_among


@dataclass(frozen=True)
class TrendTest:
    """Whether the mean score of an attribute differs between two groups of a population.

    ``z``: the statistic, standard normal if there is no trend; its square is χ² with one degree of
    freedom.
    """

    attribute: str
    n_records: int
    difference: float
    standard_error: float
    z: float

    @property
    def p_value(self) -> float:
        """Probability of a z so far from 0 if there is no trend."""
        return erfc(abs(self.z) / sqrt(2))


@dataclass(frozen=True)
class TrendTests(Presented):
    """Tests of trend of some attributes against one status."""

    status: str
    compared: tuple[str, str]
    tests: tuple[TrendTest, ...]
    untested: tuple[tuple[str, str], ...]
    n_records: int
    group: tuple[tuple[str, str], ...] = ()

    target: ClassVar[Target] = "population"

    @property
    def p_values(self) -> Floats:
        """Of every test, not adjusted."""
        return np.array([test.p_value for test in self.tests])

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row per test: p-values, and of several tests adjusted ones too, by Bonferroni
        and by Benjamini and Hochberg (false discovery rate)."""
        quantile = normal_quantile(level)
        rows: list[dict[str, Any]] = []
        for test in self.tests:
            margin = quantile * test.standard_error
            rows.append(
                dict(self.group)
                | {
                    "attribute": test.attribute,
                    "difference": test.difference,
                    "standard_error": test.standard_error,
                    "low": test.difference - margin,
                    "high": test.difference + margin,
                    "z": test.z,
                    "p_value": test.p_value,
                }
            )
        if len(rows) > 1:
            discovery = benjamini_hochberg(self.p_values)
            for row, adjusted in zip(rows, discovery.tolist(), strict=True):
                row["p_bonferroni"] = min(1.0, row["p_value"] * len(rows))
                row["p_benjamini_hochberg"] = adjusted
        return rows

    def caption(self, level: float = 0.95) -> str:
        """Return a caption."""
        first, second = self.compared
        return (
            f"Trend against {self.status}{where_text(self.group)}: mean score of '{first}' less "
            f"that of '{second}'; {count_text(self.n_records, 'row')}, of "
            f"{target_text('population')}; "
            f"{100 * level:g} % intervals"
        )

    def remarks(self) -> list[str]:
        """Return remarks on the table, one sentence each."""
        return [f"Not tested: '{name}': {why}." for name, why in self.untested]

    def to_plain(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "status": self.status,
            "compared": list(self.compared),
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "level": level,
            "tests": self.table(level),
            "untested": [{"attribute": name, "reason": why} for name, why in self.untested],
        }


@dataclass(frozen=True)
class Trend(Query[TrendTests]):
    """Tests of association between scores of attributes and a status of two values.

    Args:
        of: the attributes with scores; none for all of the schema but the status. Of several those
            that cannot be tested are named with the reason.
        status: an attribute, or a kept column that the schema does not declare.
        scores: one number per category of every attribute of ``of``; by default the schema's, and
            0, 1 for two categories.
        compare: the two values of the status; by default the two that it has (missing ones left
            out), the second less the first.

    Raises:
        InputError: if weights are given, the status is also an attribute to test or forms groups,
            it has not two values, an attribute that is tested alone cannot be, or rows tested
            together were randomized by different mechanisms.
    """

    takes_weights: ClassVar[bool] = False
    of_all: ClassVar[bool] = True
    lists: ClassVar[tuple[str, ...]] = ("compare",)

    of: Sequence[str] = ()
    _: KW_ONLY
    status: str
    scores: Sequence[float] | None = None
    compare: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compare is not None and len(self.compare) != 2:
            raise InputError("`compare` names two values of the status")
        for names, what in ((self.of, "is tested"), (self.by, "forms the groups")):
            if self.status in names:
                raise InputError(f"'{self.status}' is the status and {what} too; name it once")

    def run(self, release: Release) -> Answers[TrendTests]:
        """Return the tests of every group of rows, in the order of the groups' values."""
        schema = release.strata.schema
        declared = self.status in schema.names or self.status in schema.columns
        if not declared and self.status not in schema.keep:
            schema.variable(self.status)
        refuse_randomized_groups(schema, self.by, "trends are")
        names = self.of or tuple(name for name in schema.names if name != self.status)
        schema.variables([*names, self.status] if declared else names)
        if declared:
            tables = [[name, self.status] for name in names]
            counted = release.count_tables(tables, by=self.by, where=self.where)
            tested = (
                self.tested(dict(zip(names, by_name, strict=True)))
                for by_name in ([[counts] for counts in of] for of in zip(*counted, strict=True))
            )
            return Answers(tested, counted[0][0].selection)
        counted = release.count_tables(
            [[name] for name in names], by=[*self.by, self.status], where=self.where
        )
        groups: dict[tuple[tuple[str, str], ...], dict[str, list[Counts]]] = {}
        for name, parts in zip(names, counted, strict=True):
            for counts in parts:
                groups.setdefault(counts.group[:-1], {}).setdefault(name, []).append(counts)
        tested = (self.tested(by_name) for by_name in groups.values())
        return Answers(tested, counted[0][0].selection)

    def answer(self, counts: Counts) -> list[TrendTests]:
        """Return the test of one attribute from counts by it and by the status, an attribute."""
        (name,) = self.of
        return [self.tested({name: [counts]})]

    def tested(self, counted: Mapping[str, list[Counts]]) -> TrendTests:
        """Return the tests of one group of rows."""
        some = next(iter(counted.values()))
        mechanism, _ = one_stratum(some[0])
        if any(one_stratum(each)[0] != mechanism for each in some[1:]):
            raise InputError(
                f"rows with different values of '{self.status}' were randomized by mechanisms of "
                "their own, which one test cannot cover"
            )
        schema = mechanism.schema
        kept = self.status not in schema.names and self.status not in schema.columns
        if kept:
            values, missing = [each.group[-1][1] for each in some], None
        else:
            attribute = schema.variable(self.status).attribute
            values, missing = list(attribute.categories), attribute.missing
        first, second = self._groups_of(values, missing)
        tests, untested = [], []
        for name, parts in counted.items():
            table = np.stack([one_stratum(part)[1].counts for part in parts], axis=-1)
            try:
                scores, counts = _scores(schema.variable(name).attribute, self.scores)
                status = np.array([float(value == first) for value in values])
                counts = counts[:, None] * [value in (first, second) for value in values]
                pair = _Pair.of(
                    mechanism, name, self.status, table if kept else table[..., 0], kept
                )
                tests.append(pair.tested(name, scores, status, counts))
            except InputError as error:
                if len(self.of) == 1:
                    raise
                untested.append((name, str(error)))
        group = some[0].group[:-1] if kept else some[0].group
        return TrendTests(
            self.status,
            (first, second),
            tuple(tests),
            tuple(untested),
            sum(each.n_records for each in some),
            group,
        )

    def _groups_of(self, values: Sequence[str], missing: str | None) -> tuple[str, str]:
        if self.compare is not None:
            first, second = (value_among(value, values) for value in self.compare)
            for value, found in zip(self.compare, (first, second), strict=True):
                if found is None:
                    raise InputError(f"'{self.status}' has no value '{value}' to compare")
            if first == second or first is None or second is None:
                raise InputError("name two different values to compare")
            return first, second
        two = [value for value in values if value != missing]
        if len(two) != 2:
            raise InputError(
                f"a trend is between two groups, and '{self.status}' has {len(two)} "
                f"{'value' if len(two) == 1 else 'values'}; name two to `compare`"
            )
        return two[1], two[0]


def _scores(attribute: Attribute, wanted: Sequence[float] | None) -> tuple[Floats, Floats]:
    """Return a number for every category, shape (a,), and 1 where it counts, else 0."""
    if wanted is None and attribute.scores is None:
        counted = np.array([category != attribute.missing for category in attribute.categories])
        if counted.sum() == 2:
            return np.where(counted, np.cumsum(counted) - 1.0, 0.0), counted.astype(float)
    found = scores_of(attribute, wanted)
    if found.values is None:
        raise InputError(f"'{attribute.name}' has bins and no scores; give one number per category")
    return found.values, found.counted


@dataclass(frozen=True)
class _Pair:
    """Released rows by an attribute and the status, and the maps between them and the true table.

    ``frequencies``: θ, the outputs' shape; the last axis is the status if that is kept. ``kept``:
    whether the last axis is a kept status.
    """

    frequencies: Floats
    n: float
    forward: TableMap | StackedMap | None
    inverse: TableMap | StackedMap
    kept: bool

    @classmethod
    def of(cls, mechanism: Mechanism, name: str, status: str, table: Floats, kept: bool) -> "_Pair":
        """Return the pair of an attribute and the status from counts of rows."""
        names = (name,) if kept else (name, status)
        channel = channel_of(mechanism, names, table.sum(axis=-1) if kept else table)
        n = float(table.sum())
        channel.check(n)
        complete = isinstance(channel, PublishedChannel) or channel.complete
        forward = channel.forward if complete else None
        return cls(table / n, n, forward, channel.inverse, kept)

    def tested(self, name: str, scores: Floats, status: Floats, counts: Floats) -> TrendTest:
        """Return the test.

        ``scores``: shape (a,). ``status``: 1 in the first group, shape (b,). ``counts``: 1 where a
        true cell counts, shape (a, b).
        """
        table = self.inverse.apply(self.frequencies)
        inside = counts * table
        total = float(inside.sum())
        first, second = inside.sum(axis=1), inside.sum(axis=0)
        share = float(status @ second) / total if total > 0 else 0.0
        if not 0 < share < 1:
            raise InputError(
                f"the rows show no two groups to compare by '{name}': one has an estimated share "
                "of 0 or less"
            )
        away = counts * (scores - float(scores @ first) / total)[:, None]
        apart = status - share
        influence = self._influence(away, apart, counts)
        # To first order; total is 1 less the share that does not count.
        null = np.outer(first, second) / total + (1 - counts) * table
        expected = self.frequencies if self.forward is None else self.forward.apply(null)
        variance = variance_within(influence, expected, self.inverse)
        if not variance > 1e-12 * float((influence**2).max(initial=0.0)):
            raise InputError(f"all rows show the same value of '{name}', so there is no trend")
        score = float((self.frequencies * influence).sum())
        spread = total * share * (1 - share)
        difference = score / spread
        moved = influence - difference * self._image(counts * apart**2)
        variance_of_moved = variance_within(moved, self.frequencies, self.inverse)
        error = sqrt(variance_of_moved / self.n) / spread
        z = score * sqrt(max(self.n - 1 / total, 0.0) / variance)
        return TrendTest(name, round(self.n), difference, error, z)

    def _influence(self, away: Floats, apart: Floats, counts: Floats) -> Floats:
        """Return ℓ, the contribution of a released row to n U."""
        if not self.kept:
            return self._image(away * apart)
        along = self._image(away)
        compared = counts.any(axis=0)
        seen = (self.frequencies * compared).sum(axis=-1)
        columns = [
            less_mean(column.reshape(1, -1), seen.ravel(), self.inverse).reshape(seen.shape)
            for column in np.moveaxis(along, -1, 0)
        ]
        return np.stack(columns, axis=-1) * (apart * compared)

    def _image(self, weights: Floats) -> Floats:
        return self.inverse.transposed().apply(weights)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return p-values adjusted for the false discovery rate (1995), in the same order.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(-p_values)
    ranks = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum.accumulate(p_values[order] * len(p_values) / ranks)
    return adjusted


def variance_within(
    influence: Floats, frequencies: Floats, inverse: TableMap | StackedMap
) -> float:
    """Return the variance of a released row's contribution to a linear function, within forms if
    any.

    ``influence``: contribution of each released value, shape of the outputs. ``frequencies``: of
    the released values, the same shape.
    """
    flat = frequencies.ravel()
    centred = less_mean(influence.reshape(1, -1), flat, inverse)
    return float((flat * centred[0] ** 2).sum())
