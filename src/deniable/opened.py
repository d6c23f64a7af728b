"""An opened release, and a method for each query of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from deniable._checks import check_type
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement, FormAgreement
from deniable.estimate.columns import Answers, Tabular
from deniable.estimate.comparing import Comparison, Difference
from deniable.estimate.consistency import check_origin
from deniable.estimate.correlation import Correlation, CorrelationEstimate
from deniable.estimate.covariance import Covariance, CovarianceEstimate, PairScores
from deniable.estimate.distribution import Distribution, EstimatedDistribution
from deniable.estimate.honesty import Honesty, HonestyTest
from deniable.estimate.independence import Independence, IndependenceTest
from deniable.estimate.known import Known
from deniable.estimate.leverage import Leverage, LeverageOfLiars
from deniable.estimate.ordered import Deviation, Mean, Quantile, Summary
from deniable.estimate.query import Where
from deniable.estimate.scores import Scores
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.shares import Method as EstimationMethod
from deniable.estimate.source import Release, open_release
from deniable.estimate.trend import Trend, TrendTests
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.strata import Strata
from deniable.models.by_row import Errors
from deniable.models.model import Model
from deniable.models.query import ModelQuery
from deniable.models.smoothing import Smooth, Smoothed
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.record import read_design
from deniable.tables.frames import mark_of

Plan = Design | Mechanism | str | Path
"""A design, its mechanism, or the file or folder that has it."""


def mechanism_of(plan: Plan) -> Mechanism:
    """Return the mechanism of a plan."""
    if isinstance(plan, str | Path):
        return read_design(plan).mechanism
    if isinstance(plan, Design):
        return plan.mechanism
    if isinstance(plan, Mechanism):
        return plan
    if isinstance(plan, Schema):
        raise InputError(
            "plan: a schema has no mechanism; make a design with deniable.design(schema, epsilon=…)"
        )
    raise InputError(f"plan: expected a design or a path, not {type(plan).__name__}")


_Answer_co = TypeVar("_Answer_co", bound=Tabular, covariant=True)
_Answer = TypeVar("_Answer", bound=Tabular)


class AnyQuery(Protocol[_Answer_co]):
    """A query of a release: :class:`deniable.Shares`, :class:`deniable.ModelQuery` and others."""

    def run(self, release: Release) -> Sequence[_Answer_co]:
        """Return an answer for every group of rows."""


@dataclass(frozen=True, repr=False)
class OpenedRelease:
    """A release with its mechanism; made by :func:`deniable.open`.

    Each query is a dataclass, which :meth:`query` takes, and has a method with the same options.
    Answers are a list with an item for every group of rows that kept columns among ``by`` form (one
    without these), and ``.to_pandas()``, ``.to_polars()``, ``.plot()`` of all together.

    Raises:
        InputError: from every query that does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes"), scores=(0, 1)),))
        >>> plan = deniable.design(schema, epsilon=1)
        >>> table = pyarrow.table({"smokes": ["no"] * 620 + ["yes"] * 380})
        >>> release = deniable.open(table, plan)
        >>> release
        <release of smokes; ε = 1 for the record>
        >>> (mean,) = release.mean("smokes", level=0.9)
        >>> (same,) = release.query(deniable.Mean(of="smokes", level=0.9))
        >>> round(mean.estimate, 3), mean == same
        (0.24, True)
    """

    source: Release

    def __repr__(self) -> str:
        strata = self.source.strata
        names = [strata.schema.names[i] for i in strata.schema.protected]
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return f"<release of {listed}; ε = {strata.epsilon:.4g} for the record>"

    @property
    def schema(self) -> Schema:
        """Schema of the release."""
        return self.source.strata.schema

    def query(self, query: AnyQuery[_Answer]) -> Answers[_Answer]:
        """Return the answers to a query, one for every group of rows."""
        if isinstance(query, type) or not hasattr(query, "run"):
            raise InputError(
                f"query is a query such as deniable.Mean(of='age'), not {type(query).__name__}"
            )
        return cast(Answers[_Answer], query.run(self.source))

    def _answers(
        self, kind: Callable[..., AnyQuery[_Answer]], given: Mapping[str, Any]
    ) -> Answers[_Answer]:
        """Return the answers to a query with the arguments of its method."""
        return self.query(kind(**{name: given[name] for name in given if name != "self"}))

    def shares(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        method: EstimationMethod = "inversion",
        target: Target = "table",
        known: Known = None,
    ) -> Answers[Estimate]:
        """Return shares, a joint table, or shares within subgroups; see :class:`deniable.Shares`.

        Examples:
            >>> import deniable, pyarrow
            >>> smokes = deniable.Attribute("smokes", ("no", "yes"))
            >>> plan = deniable.design(deniable.Schema((smokes,), keep=("town",)), epsilon=1)
            >>> table = {"smokes": ["no"] * 620 + ["yes"] * 380, "town": ["A", "B"] * 500}
            >>> release = deniable.open(pyarrow.table(table), plan)
            >>> for row in release.shares("smokes").table():
            ...     print(f"{row['smokes']:4}{row['estimate']:6.3f} ± {row['standard_error']:.3f}")
            no   0.760 ± 0.030
            yes  0.240 ± 0.030
            >>> [(dict(a.group), a.n_records) for a in release.shares("smokes", by="town")]
            [({'town': 'A'}, 500), ({'town': 'B'}, 500)]
        """
        return self._answers(Shares, locals())

    def mean(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        target: Target = "table",
        scores: Scores = None,
        total: bool = False,
    ) -> Answers[Summary]:
        """Return the mean score of an attribute, or its total, of all rows or per subgroup; see
        :class:`deniable.Mean`.

        Examples:
            >>> import deniable, pyarrow
            >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
            >>> plan = deniable.design(schema, epsilon=2)
            >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
            >>> release = deniable.open(pyarrow.table({"age": ages}), plan)
            >>> (mean,) = release.mean("age", scores=(19, 42, 70))
            >>> print(f"{mean.estimate:.1f} ± {mean.standard_error:.1f}")
            32.5 ± 0.7
            >>> (mean,) = release.mean("age")
            >>> print(f"between {mean.low:.1f} and {mean.high:.1f}")
            between 15.1 and 48.4
        """
        return self._answers(Mean, locals())

    def deviation(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        target: Target = "table",
        scores: Scores = None,
    ) -> Answers[Summary]:
        """Return the standard deviation of a number; see :class:`deniable.Deviation`.

        Examples:
            >>> import deniable, pyarrow
            >>> age = deniable.Attribute("age", range=(0, 80), grid=9)
            >>> plan = deniable.design(deniable.Schema((age,)), epsilon=8, method="balanced")
            >>> released = pyarrow.table({"age": [20] * 300 + [30] * 500 + [60] * 200})
            >>> (found,) = deniable.open(released, plan).deviation("age")
            >>> print(f"{found.estimate:.1f}, between {found.low:.1f} and {found.high:.1f}")
            13.5, between 13.0 and 14.3
        """
        return self._answers(Deviation, locals())

    def correlation(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        target: Target = "table",
    ) -> Answers[CorrelationEstimate]:
        """Return the original correlations of all pairs; see :class:`deniable.Correlation`.

        Examples:
            >>> import deniable, pyarrow
            >>> schema = deniable.Schema(
            ...     (
            ...         deniable.Attribute("age", range=(0, 80), grid=9),
            ...         deniable.Attribute("sex", ("f", "m")),
            ...     )
            ... )
            >>> plan = deniable.design(schema, epsilon=8)
            >>> released = pyarrow.table({"age": [20, 30, 30, 60] * 250, "sex": [*"ffmm"] * 250})
            >>> (found,) = deniable.open(released, plan).correlation("age,sex")
            >>> found.names, round(found.estimate, 1)
            (('age', 'sex = m'), 0.7)
        """
        return self._answers(Correlation, locals())

    def quantile(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        target: Target = "table",
        q: float | Sequence[float] = 0.5,
        interpolate: bool = False,
    ) -> Answers[Summary]:
        """Return quantiles of an ordered attribute; see :class:`deniable.Quantile`.

        Examples:
            >>> import deniable, pyarrow
            >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
            >>> plan = deniable.design(schema, epsilon=2)
            >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
            >>> (median,) = deniable.open(pyarrow.table({"age": ages}), plan).quantile("age")
            >>> print(f"{median.estimate} with probability {median.confidence:.3f}")
            [0,30) with probability 1.000
        """
        return self._answers(Quantile, locals())

    def distribution(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        at: Sequence[float] | None = None,
        target: Target = "table",
    ) -> Answers[EstimatedDistribution]:
        """Return the distribution function of a number; see :class:`deniable.Distribution`.

        Examples:
            >>> import deniable, pyarrow
            >>> age = deniable.Attribute("age", range=(0, 80), grid=9)
            >>> plan = deniable.design(deniable.Schema((age,)), epsilon=8, method="balanced")
            >>> released = pyarrow.table({"age": [20] * 300 + [30] * 500 + [40] * 200})
            >>> (found,) = deniable.open(released, plan).distribution("age", at=[30, 60])
            >>> [round(row["estimate"], 1) for row in found.table()]
            [0.6, 1.0]
        """
        return self._answers(Distribution, locals())

    def covariance(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        target: Target = "table",
        scores: PairScores = (None, None),
    ) -> Answers[CovarianceEstimate]:
        """Return the original covariance of two attributes; see :class:`deniable.Covariance`.

        Examples:
            >>> import deniable, pyarrow
            >>> scored = [deniable.Attribute(name, ("no", "yes"), scores=(0, 1)) for name in "ab"]
            >>> plan = deniable.design(deniable.Schema(tuple(scored)), epsilon=3)
            >>> a, b = ["no"] * 500 + ["yes"] * 500, ["no"] * 300 + ["yes"] * 500 + ["no"] * 200
            >>> (found,) = deniable.open(pyarrow.table({"a": a, "b": b}), plan).covariance("a,b")
            >>> low, high = found.confidence_interval(0.95)
            >>> print(f"{found.estimate:.3f}, between {low:.3f} and {high:.3f}")
            0.060, between 0.050 and 0.071
        """
        return self._answers(Covariance, locals())

    def independence(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
    ) -> Answers[IndependenceTest]:
        """Return χ², p-value and Cramér's V of two attributes; see :class:`deniable.Independence`.

        Examples:
            >>> import deniable, pyarrow
            >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(2, 2))
            >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 270 + ["1"] * 500 + ["0"] * 230
            >>> release = deniable.open(pyarrow.table({"a1": first, "a2": second}), plan)
            >>> (test,) = release.independence("a1,a2")
            >>> print(f"p = {test.p_value:.3f}, V = {test.to_plain()['cramers_v']:.2f}")
            p = 0.011, V = 0.10
        """
        return self._answers(Independence, locals())

    def trend(
        self,
        of: Sequence[str] = (),
        *,
        status: str | None = None,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        scores: Sequence[float] | None = None,
        compare: Sequence[str] | None = None,
        top: int | None = None,
    ) -> Answers[TrendTests]:
        """Return the tests whether scores go with a status of two values, or with each other; see
        :class:`deniable.Trend`.

        Examples:
            >>> import deniable, pyarrow
            >>> snp = deniable.Attribute("rs1", ("0", "1", "2"), scores=(0, 1, 2))
            >>> plan = deniable.design(deniable.Schema((snp,), keep=("status",)), epsilon=2)
            >>> copies = [*"0" * 300, *"1" * 150, *"2" * 50, *"0" * 230, *"1" * 190, *"2" * 80]
            >>> table = pyarrow.table({"rs1": copies, "status": ["0"] * 500 + ["1"] * 500})
            >>> (found,) = deniable.open(table, plan).trend(status="status")
            >>> print(f"z = {found.tests[0].z:.2f}, p = {found.tests[0].p_value:.1e}")
            z = 4.47, p = 7.8e-06
        """
        return self._answers(Trend, locals())

    def agreement(
        self,
        of: Sequence[str] = (),
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
    ) -> Answers[FormAgreement]:
        """Return the test whether all forms fit one population; see :class:`deniable.Agreement`.

        Examples:
            >>> import deniable, pyarrow
            >>> plan = deniable.design(
            ...     deniable.Schema.anonymous((3, 4)), epsilon=2, method="forms"
            ... )
            >>> table = pyarrow.table({"a1": ["0", "1"] * 500, "a2": ["1", "3"] * 500})
            >>> (found,) = deniable.open(deniable.randomize(table, plan), plan).agreement()
            >>> 0 <= found.p_value <= 1
            True
        """
        return self._answers(Agreement, locals())

    def leverage(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        target: Target = "table",
    ) -> Answers[LeverageOfLiars]:
        """Return how far one liar in a hundred moves each share; see :class:`deniable.Leverage`.

        Examples:
            >>> import deniable, pyarrow
            >>> plan = deniable.design(deniable.Schema.anonymous((2,)), epsilon=1)
            >>> table = pyarrow.table({"a1": ["0", "1"] * 500})
            >>> (found,) = deniable.open(table, plan).leverage("a1")
            >>> [round(row["moved"], 4) for row in found.table()], round(found.floor, 4)
            ([0.0108, 0.0108], 2.164)
        """
        return self._answers(Leverage, locals())

    def honesty(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        evasive: str | None = None,
    ) -> Answers[HonestyTest]:
        """Return the test whether groups with different designs follow their instructions; see
        :class:`deniable.Honesty`.

        Examples:
            >>> import deniable, pyarrow
            >>> def plan(response):
            ...     smokes = deniable.Attribute("smokes", ("no", "yes"), response=response)
            ...     return deniable.design(deniable.Schema((smokes,), keep=("card",)))
            >>> plans = {"A": plan("warner:0.75"), "B": plan("warner:0.25")}
            >>> answers = ["yes"] * 350 + ["no"] * 650 + ["yes"] * 550 + ["no"] * 450
            >>> table = pyarrow.table({"smokes": answers, "card": ["A"] * 1000 + ["B"] * 1000})
            >>> release = deniable.open(table, plans, plan_by="card", randomized=True)
            >>> (found,) = release.honesty("smokes")  # a tenth answers no without the device
            >>> round(found.estimate, 9), found.p_value < 1e-5, found.allowed[0] > 0.04
            (0.1, True, True)
        """
        return self._answers(Honesty, locals())

    def compare(
        self,
        of: Sequence[str],
        *,
        column: str,
        values: Sequence[str],
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        cluster: str | None = None,
        strata: str | None = None,
        mean: bool = False,
        scores: Scores = None,
        target: Target = "table",
    ) -> Answers[Difference]:
        """Return differences and ratios between two values of a column; see
        :class:`deniable.Comparison`.

        Examples:
            >>> import deniable, pyarrow
            >>> smokes = deniable.Attribute("smokes", ("no", "yes"))
            >>> plan = deniable.design(deniable.Schema((smokes,), keep=("town",)), epsilon=3)
            >>> table = {"smokes": ["no"] * 620 + ["yes"] * 380, "town": ["A"] * 500 + ["B"] * 500}
            >>> release = deniable.open(pyarrow.table(table), plan)
            >>> rows = release.compare("smokes", column="town", values="B,A").table()
            >>> [round(row["estimate"], 2) for row in rows]
            [-0.84, 0.84]
        """
        return self._answers(Comparison, locals())

    def smooth(
        self,
        of: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        level: float = 0.95,
        answered: bool = False,
        known: Known = None,
    ) -> Answers[Smoothed]:
        """Return a table of three attributes or more by the model of all pairs, next to the
        unbiased one: for small groups; see :class:`deniable.Smooth`.

        Examples:
            >>> import deniable, pyarrow
            >>> plan = deniable.design(deniable.Schema.anonymous((2, 2, 2)), epsilon=6)
            >>> rows = {"a1": ["0", "1"] * 90, "a2": ["0", "1", "1"] * 60, "a3": ["1", "0"] * 90}
            >>> len(deniable.open(pyarrow.table(rows), plan).smooth("a1,a2,a3")[0].table())
            8
        """
        return self._answers(Smooth, locals())

    def model(
        self,
        formula: str,
        *,
        collapse: Mapping[str, str] | None = None,
        prior: bool | None = None,
        ordered: bool = False,
        against: str | None = None,
        known: Known = None,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        cluster: str | None = None,
        strata: str | None = None,
        errors: Errors = "observed",
        level: float = 0.95,
        answered: bool = False,
    ) -> Answers[Model]:
        """Return a regression or a log-linear model; see :class:`deniable.ModelQuery`.

        Examples:
            >>> import deniable, pyarrow
            >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(3, 3))
            >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 300 + ["1"] * 500 + ["0"] * 200
            >>> release = deniable.open(pyarrow.table({"a1": first, "a2": second}), plan)
            >>> row = release.model("a2 ~ a1")[0].odds_ratios()[0]
            >>> print(f"{row['odds_ratio']:.2f}, from {row['low']:.2f} to {row['high']:.2f}")
            2.45, from 1.85 to 3.24
        """
        given = locals() | {"collapse": {} if collapse is None else collapse}
        return self._answers(ModelQuery, given)


def open(  # noqa: A001 - called as deniable.open
    released: Any,
    plan: Plan | Mapping[str, Plan] | None = None,
    *,
    plan_by: str | None = None,
    anyway: bool = False,
    randomized: bool = False,
) -> OpenedRelease:
    """Open a release for queries.

    Args:
        released: a folder made by :func:`deniable.share`, one or several paths, or a dataframe.
        plan: the design or mechanism, or the file or folder with it; not needed for a folder. With
            ``plan_by``, one for each value of that column.
        plan_by: kept column whose values have different mechanisms.
        anyway: accept a table that the mechanism cannot have released (p-value below 1e-6).
        randomized: confirms that ``plan`` randomized the table. Without it there is a warning,
            unless the release is identified: by its folder, by a file's digest in the record of
            ``plan``, by the column of forms, or by the mark of a frame that
            :func:`deniable.randomize` returned (pandas, pyarrow, Polars).

    Raises:
        InputError: if it cannot be read, has no known mechanism, or cannot have come from it.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 3)), attribute_epsilon=(2, 2))
        >>> table = pyarrow.table({"a1": ["0", "1"] * 9, "a2": ["0", "2"] * 9})
        >>> release = deniable.open(table, plan)
        >>> release.schema.names
        ('a1', 'a2')
    """
    # Not @typed: warnings name the line that called.
    check_type("anyway", anyway, bool)
    check_type("randomized", randomized, bool)
    if isinstance(plan, Mapping) or plan_by is not None:
        if not isinstance(plan, Mapping) or plan_by is None:
            raise InputError(
                "`plan_by` names the column whose values have a `plan` each; give both"
            )
        mechanisms = {value: mechanism_of(one) for value, one in plan.items()}
        release = open_release(released, Strata.by_value(mechanisms, plan_by))
    elif plan is None or isinstance(plan, str | Path):
        release = open_release(released, plan)
    else:
        rows = plan.released_rows if isinstance(plan, Design) else None
        release = open_release(released, Strata.one(mechanism_of(plan)), n_released=rows)
    if (mark := mark_of(released)) is not None:
        own = {mechanism.digest for mechanism in release.strata.mechanisms.values()}
        if mark not in own and not anyway:
            raise InputError(
                "another mechanism randomized this table; give its plan, or `anyway` to accept it"
            )
        release = replace(release, identified=release.identified or mark in own)
    check_origin(release, anyway=anyway, randomized=randomized)
    return OpenedRelease(release)
