"""Tests of trend: does the mean score of an attribute, such as the number of alleles at a SNP,
differ between cases and controls, or rise with the score of another attribute (Mantel 1963)?

Without randomization this is the test of Cochran (1954) and Armitage (1955). With scores s of the
attribute and z of the other (0, 1 of a status), s̄ and z̄ their means in the estimated table
π̂ = Lθ, and c = (s − s̄)(z − z̄),

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

The K attributes most associated are those of the largest correlations |r|, r = c/√(v w), with c, v
and w the estimated covariance and variances of scores and status: the χ² of Cochran and Armitage
without randomization is n r² (to a factor 1 − 1/n). A released row contributes

    (s − s̄)(z − z̄)/√(v w) − r/2 ((s − s̄)²/v + (z − z̄)²/w),

seen through L, to n r; the products of these contributions, added up over the rows, are the joint
covariance of all r.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import combinations
from math import erfc, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import Answers, Presented, target_text, where_text
from deniable.estimate.counting import KeptRows
from deniable.estimate.independence import one_stratum
from deniable.estimate.inference import normal_quantile
from deniable.estimate.query import Query, refuse_randomized_groups
from deniable.estimate.ranking import in_largest
from deniable.estimate.scores import scores_of
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Floats, less_mean
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.numerals import count_text
from deniable.schema import Attribute, Schema
from deniable.tables.selection import Selection, value_among

_Counted = Mapping[tuple[str, str], list[Counts]]
"""Counts of one group of rows by pair of attributes; of a kept status, one for each value."""


@dataclass(frozen=True)
class TrendTest:
    """Whether the mean score of an attribute differs between two groups of a population, or with
    the score of the attribute ``other``: ``difference`` is then per unit of the latter.

    ``z``: the statistic, standard normal if there is no trend; its square is χ² with one degree of
    freedom. With ``top``: the ``correlation`` of score and status, its error, and the probability
    that it is among the K largest in absolute value.
    """

    attribute: str
    n_records: int
    difference: float
    standard_error: float
    z: float
    other: str | None = None
    correlation: float | None = None
    correlation_error: float | None = None
    probability_of_top: float | None = None

    @property
    def p_value(self) -> float:
        """Probability of a z so far from 0 if there is no trend."""
        return erfc(abs(self.z) / sqrt(2))


@dataclass(frozen=True)
class TrendTests(Presented):
    """Tests of trend of some attributes against one status, or of pairs of attributes.

    With ``top`` they are sorted by correlation, and tables show the first K; ``all_right`` is the
    probability that these are the K largest.
    """

    status: str | None
    compared: tuple[str, str] | None
    tests: tuple[TrendTest, ...]
    untested: tuple[tuple[str, str], ...]
    n_records: int
    group: tuple[tuple[str, str], ...] = ()
    top: int | None = None
    all_right: float | None = None

    target: ClassVar[Target] = "population"

    @property
    def p_values(self) -> Floats:
        """Of every test, not adjusted."""
        return np.array([test.p_value for test in self.tests])

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row per test: p-values, and of several tests adjusted ones too, by Bonferroni
        and by Benjamini and Hochberg (false discovery rate), for all tests, also those that
        ``top`` leaves out."""
        quantile = normal_quantile(level)
        rows: list[dict[str, Any]] = []
        for test in self.tests:
            margin = quantile * test.standard_error
            rows.append(
                dict(self.group)
                | {"attribute": test.attribute}
                | ({} if test.other is None else {"other": test.other})
                | {
                    "difference": test.difference,
                    "standard_error": test.standard_error,
                    "low": test.difference - margin,
                    "high": test.difference + margin,
                    "z": test.z,
                    "p_value": test.p_value,
                }
            )
            if self.top is not None:
                names = ("correlation", "correlation_error", "probability_of_top")
                rows[-1] |= {name: getattr(test, name) for name in names}
        if len(rows) > 1:
            discovery = benjamini_hochberg(self.p_values)
            for row, adjusted in zip(rows, discovery.tolist(), strict=True):
                row["p_bonferroni"] = min(1.0, row["p_value"] * len(rows))
                row["p_benjamini_hochberg"] = adjusted
        return rows[: self.top]

    def caption(self, level: float = 0.95) -> str:
        """Return a caption."""
        if self.compared is None:
            head = f"Trend between attributes{where_text(self.group)}: mean score per unit of other"
        else:
            first, second = self.compared
            head = f"Trend against {self.status}{where_text(self.group)}: mean score of '{first}' "
            head += f"less that of '{second}'"
        return (
            f"{head}; {count_text(self.n_records, 'row')}, of "
            f"{target_text('population')}; "
            f"{100 * level:g} % intervals"
        )

    def remarks(self) -> list[str]:
        """Return remarks on the table, one sentence each."""
        remarks = [f"Not tested: '{name}': {why}." for name, why in self.untested]
        if self.all_right is not None:
            remarks.append(
                f"The {self.top} shown are the {self.top} most associated of {len(self.tests)} "
                f"with probability {self.all_right:.2f}, if associations scatter around 0."
            )
        return remarks

    def to_plain(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        plain = {} if self.top is None else {"top": self.top, "all_right": self.all_right}
        return plain | {
            "status": self.status,
            "compared": self.compared and list(self.compared),
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "level": level,
            "tests": self.table(level),
            "untested": [{"attribute": name, "reason": why} for name, why in self.untested],
        }


@dataclass(frozen=True)
class Trend(Query[TrendTests]):
    """Tests of association between scores of attributes and a status of two values, or of all pairs
    of attributes.

    Args:
        of: the attributes with scores; none for all of the schema but the status. Of several those
            that cannot be tested are named with the reason.
        status: an attribute, or a kept column that the schema does not declare; none for the scores
            of every pair of the attributes.
        scores: one number per category of every attribute of ``of``; by default the schema's, and
            0, 1 for two categories.
        compare: the two values of the status; by default the two that it has (missing ones left
            out), the second less the first.
        top: show the K attributes (or pairs) most associated by the correlation of score and
            status, and the probability that each is one of the true K; the rows are read twice.

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
    status: str | None = None
    scores: Sequence[float] | None = None
    compare: Sequence[str] | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compare is not None and len(self.compare) != 2:
            raise InputError("`compare` names two values of the status")
        if self.top is not None and self.top < 1:
            raise InputError("`top` is the number of attributes to show, at least 1")
        if self.status is None and self.compare is not None:
            raise InputError("`compare` names two values of a status; name the status")
        for names, what in ((self.of, "is tested"), (self.by, "forms the groups")):
            if self.status in names:
                raise InputError(f"'{self.status}' is the status and {what} too; name it once")

    def run(self, release: Release) -> Answers[TrendTests]:
        """Return the tests of every group of rows, in the order of the groups' values."""
        schema = release.strata.schema
        kept = self._is_kept(schema)
        if kept and self.status not in schema.keep:
            schema.variable(str(self.status))
        refuse_randomized_groups(schema, self.by, "trends are")
        if self.top is not None and not release.can_be_read_again:
            raise InputError("`top` reads the rows twice; give a file in place of a stream")
        names = self.of or tuple(name for name in schema.names if name != self.status)
        schema.variables(names if kept or self.status is None else [*names, self.status])
        pairs = [*self._pairs(names)]
        if not kept:
            counted = release.count_tables(
                [[*pair] for pair in pairs], by=self.by, where=self.where
            )
            groups = [
                dict(zip(pairs, ([counts] for counts in of), strict=True))
                for of in zip(*counted, strict=True)
            ]
            return self._answers(groups, counted[0][0].selection, release)
        counted = release.count_tables(
            [[name] for name in names], by=[*self.by, str(self.status)], where=self.where
        )
        by_group: dict[tuple[tuple[str, str], ...], dict[tuple[str, str], list[Counts]]] = {}
        for pair, parts in zip(pairs, counted, strict=True):
            for counts in parts:
                by_group.setdefault(counts.group[:-1], {}).setdefault(pair, []).append(counts)
        return self._answers([*by_group.values()], counted[0][0].selection, release)

    def _pairs(self, names: Sequence[str]) -> Sequence[tuple[str, str]]:
        if self.status is not None:
            return [(name, self.status) for name in names]
        if len(names) < 2:
            raise InputError("name a status, or two attributes or more, whose pairs are tested")
        return [*combinations(names, 2)]

    def _is_kept(self, schema: Schema) -> bool:
        return self.status is not None and self.status not in {*schema.names, *schema.columns}

    def _answers(
        self, groups: "Sequence[_Counted]", selection: Selection, release: Release
    ) -> Answers[TrendTests]:
        tested = [self.tested(counted) for counted in groups]
        if self.top is None:
            return Answers((tests for tests, _ in tested), selection)
        kept = [self.status] if self.status and self._is_kept(release.strata.schema) else []
        names = {name: None for _, pairs in tested for pair in pairs for name in pair.names}
        rows = release.read_rows(
            [name for name in names if name not in kept], texts=[*self.by, *kept], where=self.where
        )
        ranked = []
        for tests, pairs in tested:
            own = np.ones(rows.n_rows, dtype=bool)
            for name in self.by:
                codes, labels = rows.texts[name]
                own &= codes == labels.index(dict(tests.group)[name])
            ranked.append(_ranked(tests, pairs, rows.where(own), self.top))
        return Answers(ranked, selection)

    def answer(self, counts: Counts) -> list[TrendTests]:
        """Return the test of one pair from its counts."""
        (pair,) = self._pairs(self.of)
        return [self.tested({pair: [counts]})[0]]

    def tested(self, counted: "_Counted") -> tuple[TrendTests, "list[_Pair]"]:
        """Return the tests of one group of rows, and their pairs."""
        some = next(iter(counted.values()))
        mechanism, _ = one_stratum(some[0])
        if any(one_stratum(each)[0] != mechanism for each in some[1:]):
            raise InputError(
                f"rows with different values of '{self.status}' were randomized by mechanisms of "
                "their own, which one test cannot cover"
            )
        schema = mechanism.schema
        kept, values, compared = self._is_kept(schema), [""], None
        if kept:
            values = [each.group[-1][1] for each in some]
            compared = self._groups_of(values, None)
        elif self.status is not None:
            attribute = schema.variable(self.status).attribute
            values = list(attribute.categories)
            compared = self._groups_of(values, attribute.missing)
        tests, pairs, untested = [], [], []
        for (name, other), parts in counted.items():
            table = np.stack([one_stratum(part)[1].counts for part in parts], axis=-1)
            try:
                scores, counts = _scores(schema.variable(name).attribute, self.scores)
                if compared is None:
                    status, seen = _scores(schema.variable(other).attribute, self.scores)
                else:
                    status = np.array([float(value == compared[0]) for value in values])
                    seen = np.array([float(value in compared) for value in values])
                counts = np.outer(counts, seen)
                own = table if kept else table[..., 0]
                pair = _Pair.of(mechanism, name, other, own, values if kept else None)
                test = pair.tested(scores, status, counts)
                if self.status is None:
                    test = replace(test, other=other)
                if self.top is not None:
                    test, pair = pair.correlated(test, scores, status, counts)
                tests.append(test)
                pairs.append(pair)
            except InputError as error:
                if len(counted) == 1:
                    raise
                untested.append((name if self.status else f"{name}, {other}", str(error)))
        group = some[0].group[:-1] if kept else some[0].group
        found = TrendTests(
            self.status,
            compared,
            tuple(tests),
            tuple(untested),
            sum(each.n_records for each in some),
            group,
        )
        return found, pairs

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


_NUMBERS = 1 << 23
"""Contributions of rows to correlations that are in memory together."""

MOST_RANKED = 5_000
"""Correlations that are ranked together: their joint covariance takes 200 MB."""


def _ranked(tests: TrendTests, pairs: "Sequence[_Pair]", rows: KeptRows, top: int) -> TrendTests:
    """Return the tests sorted by correlation, with the probabilities of the K largest."""
    tested = "attributes" if tests.status is not None else "pairs of attributes"
    if top > len(pairs):
        raise InputError(f"`top` is {top}, and {len(pairs)} {tested} can be tested")
    if len(pairs) > MOST_RANKED:
        raise InputError(
            f"`top` ranks at most {MOST_RANKED:,} {tested}, and these are {len(pairs):,}; name "
            "fewer attributes"
        )
    products = np.zeros((len(pairs), len(pairs)))
    for some in rows.batches(max(1, _NUMBERS // len(pairs))):
        influence = np.stack([pair.moves[pair.cells(some)] for pair in pairs], axis=1)
        products += influence.T @ influence
    found = np.array([test.correlation for test in tests.tests], dtype=np.float64)
    chances, all_right = in_largest(found, products / rows.n_rows**2, top)
    sorted_tests = tuple(
        replace(tests.tests[j], probability_of_top=float(chances[j]))
        for j in np.argsort(-np.abs(found), kind="stable")
    )
    return replace(tests, tests=sorted_tests, top=top, all_right=all_right)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Released rows by two attributes, or an attribute and a kept status, and the maps between them
    and the true table.

    ``frequencies``: θ, the outputs' shape; the last axis is the status if that is kept. ``values``:
    of a kept status, in the order of that axis, or None. ``moves``: contribution of a released
    cell to n times the correlation, flat.
    """

    names: tuple[str, str]
    frequencies: Floats
    n: float
    forward: TableMap | StackedMap | None
    channel: Channel | PublishedChannel
    values: Sequence[str] | None
    moves: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        name: str,
        status: str,
        table: Floats,
        values: Sequence[str] | None,
    ) -> "_Pair":
        """Return the pair from counts of rows; ``values`` are those of a kept status."""
        randomized = (name, status) if values is None else (name,)
        channel = channel_of(mechanism, randomized, table if values is None else table.sum(axis=-1))
        n = float(table.sum())
        channel.check(n)
        complete = isinstance(channel, PublishedChannel) or channel.complete
        forward = channel.forward if complete else None
        return cls((name, status), table / n, n, forward, channel, values)

    @property
    def inverse(self) -> TableMap | StackedMap:
        """L, from released to true tables."""
        return self.channel.inverse

    def cells(self, rows: KeptRows) -> NDArray[np.intp]:
        """Return the place of each row among the released cells, shape (n,)."""
        codes, shape = self.channel.released_codes(rows.codes), self.channel.n_outputs
        if self.values is not None:
            seen, labels = rows.texts[self.names[1]]
            places = np.array([self.values.index(label) for label in labels])
            codes, shape = [*codes, places[seen]], (*shape, len(self.values))
        return np.asarray(np.ravel_multi_index([c.astype(np.intp) for c in codes], shape))

    def correlated(
        self, test: TrendTest, scores: Floats, status: Floats, counts: Floats
    ) -> "tuple[TrendTest, _Pair]":
        """Return the test with the correlation, and the pair with its contributions; the arguments
        are those of :meth:`tested`."""
        inside = counts * self.inverse.apply(self.frequencies)
        inside /= (total := float(inside.sum()))
        first, second = inside.sum(axis=1), inside.sum(axis=0)
        away = counts * (scores - float(scores @ first))[:, None]
        apart = status - float(status @ second)
        variance, other = float((inside * away**2).sum()), float(second @ apart**2)
        if not variance > 0:
            raise InputError("the estimated variance of its scores is not above 0; it has no rank")
        root = sqrt(variance * other)
        influence = self._influence(away, apart, counts) / root
        correlation = float((self.frequencies * influence).sum()) / total
        squares = counts * (away**2 / variance + apart**2 / other)
        influence = (influence - correlation / 2 * self._image(squares)) / total
        flat = self.frequencies.ravel()
        moves = less_mean(influence.reshape(1, -1), flat, self.inverse)[0]
        error = sqrt(float(flat @ moves**2) / self.n)
        test = replace(test, correlation=correlation, correlation_error=error)
        return test, replace(self, moves=moves)

    def tested(self, scores: Floats, status: Floats, counts: Floats) -> TrendTest:
        """Return the test.

        ``scores``: shape (a,). ``status``: scores of the other attribute, 1 in the first of two
        groups, shape (b,). ``counts``: 1 where a
        true cell counts, shape (a, b).
        """
        table = self.inverse.apply(self.frequencies)
        inside = counts * table
        total = float(inside.sum())
        first, second = inside.sum(axis=1), inside.sum(axis=0)
        apart = status - (float(status @ second) / total if total > 0 else 0.0)
        spread = float(second @ apart**2)
        if not (total > 0 and spread > 0):
            raise InputError(
                f"the rows show no two groups to compare '{self.names[0]}': the estimated variance "
                f"of '{self.names[1]}' is 0 or less"
            )
        away = counts * (scores - float(scores @ first) / total)[:, None]
        influence = self._influence(away, apart, counts)
        # To first order; total is 1 less the share that does not count.
        null = np.outer(first, second) / total + (1 - counts) * table
        expected = self.frequencies if self.forward is None else self.forward.apply(null)
        variance = variance_within(influence, expected, self.inverse)
        if not variance > 1e-12 * float((influence**2).max(initial=0.0)):
            raise InputError(
                f"all rows show the same value of '{self.names[0]}', so there is no trend"
            )
        score = float((self.frequencies * influence).sum())
        difference = score / spread
        moved = influence - difference * self._image(counts * apart**2)
        variance_of_moved = variance_within(moved, self.frequencies, self.inverse)
        error = sqrt(variance_of_moved / self.n) / spread
        z = score * sqrt(max(self.n - 1 / total, 0.0) / variance)
        return TrendTest(self.names[0], round(self.n), difference, error, z)

    def _influence(self, away: Floats, apart: Floats, counts: Floats) -> Floats:
        """Return ℓ, the contribution of a released row to n U."""
        if self.values is None:
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
