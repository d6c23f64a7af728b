"""A release that is opened once and asked many questions."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import (
    Any,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_type_hints,
)

from deniable._checks import check_type
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement, FormAgreement
from deniable.estimate.columns import Answers
from deniable.estimate.consistency import check_origin
from deniable.estimate.covariance import Covariance, CovarianceEstimate, PairScores
from deniable.estimate.independence import Independence, IndependenceTest
from deniable.estimate.known import read_margins
from deniable.estimate.leverage import Leverage, LeverageOfLiars
from deniable.estimate.ordered import Mean, Quantile, Summary
from deniable.estimate.question import Where
from deniable.estimate.scores import Scores
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.shares import Method as EstimationMethod
from deniable.estimate.source import Release
from deniable.estimate.source import open_release as find_release
from deniable.estimate.trend import Trend, TrendTests
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.strata import Strata
from deniable.models.model import Model
from deniable.models.question import ModelQuestion
from deniable.models.smoothing import Smooth, Smoothed
from deniable.schema import Schema
from deniable.schema.names import split_names
from deniable.statement.account import Design
from deniable.statement.record import read_design
from deniable.tables.frames import mark_of

Plan = Design | Mechanism | str | Path
"""What randomized a table: a design, its mechanism, or the file or folder that has it."""

Names = str | Sequence[str]
"""Names of columns: one, several, or several as one text with commas, as in a shell."""


def names_of(given: Any, argument: str, schema: Schema) -> tuple[str, ...]:
    """Return names of columns: several, or one or several as they would be typed in a shell."""
    if isinstance(given, str):
        known = given in schema.names or given in schema.columns or given in schema.keep
        return (given,) if known else tuple(split_names(given))
    try:
        names = tuple(given)
    except TypeError:
        names = (None,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{argument} is the name of a column or a list of names, not {type(given).__name__}"
        )
    return names


def texts_of(given: Any, argument: str, example: str) -> dict[str, str]:
    """Return a dictionary of texts; empty for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{argument} is a dictionary of {example}")
    if any(hasattr(value, "__len__") and not isinstance(value, str) for value in given.values()):
        raise InputError(f"{argument} is a dictionary of {example}; its values are single ones")
    return {str(name): str(value) for name, value in given.items()}


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
            "a schema says what a table contains, not how to randomize it; make a design of it: "
            "deniable.design(schema, epsilon=…)"
        )
    raise InputError(f"plan is what deniable.design returns, or a path, not {type(plan).__name__}")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def spelled_out(*makers: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Return what makes a function's help show one by one what its ``**asked`` may be, and refuse
    anything else."""
    defaults = {
        one.name: one.default
        for maker in makers
        for one in (fields(maker) if is_dataclass(maker) else _parameters(maker))
        if one.default is not MISSING
    }

    def spelled(function: _Function) -> _Function:
        *own, asked = _parameters(function)
        (entries,) = get_args(asked.annotation)
        for name, hint in get_type_hints(entries).items():
            default = asked.empty if name in entries.__required_keys__ else defaults.get(name)
            entry = asked.replace(kind=asked.KEYWORD_ONLY, annotation=hint)
            own.append(entry.replace(name=name, default=default))
        hints = {one.name: one.annotation for one in own}

        @wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            for name, value in given.items():
                if name == "seed":
                    raise TypeError(f"{function.__name__}() {_NO_SEED}")
                if name not in hints:
                    has = ", ".join(one for one in hints if one != "self")
                    raise TypeError(f"{function.__name__}() has no argument '{name}'; it has {has}")
                check_type(name, value, hints[name])
            if missing := sorted(entries.__required_keys__ - given.keys()):
                raise TypeError(f"{function.__name__}() needs the argument '{missing[0]}'")
            for (name, hint), value in zip(hints.items(), arguments, strict=False):
                check_type(name, value, hint)
            return function(*arguments, **given)

        shown = inspect.signature(function).replace(parameters=own)
        checked.__signature__ = shown  # type: ignore[attr-defined]
        return cast(_Function, checked)

    return spelled


_NO_SEED = (
    "takes no seed: noise that can be repeated can be subtracted, and protects nobody. Tests that "
    "need repeatable draws give deniable.mechanism.randomizer.Randomizer a bit source of their own"
)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


class Asked(TypedDict, total=False):
    """What every question takes: of which rows, by which groups, at which level."""

    by: Names
    where: Where
    weights: str | None
    level: float


class IndependenceAsked(Asked, total=False):
    """What is asked with a test of independence."""

    answered: bool


class SmoothAsked(Asked, total=False):
    """What is asked with a smoothed table."""

    known: str | Path | None


class SharesAsked(SmoothAsked, total=False):
    """What is asked with shares."""

    method: EstimationMethod
    target: Target
    answered: bool


class LeverageAsked(Asked, total=False):
    """What is asked with the leverage of liars."""

    target: Target


class MeanAsked(LeverageAsked, total=False):
    """What is asked with a mean."""

    scores: Scores
    answered: bool


class QuantileAsked(LeverageAsked, total=False):
    """What is asked with a quantile."""

    probability: float
    interpolate: bool
    answered: bool


class CovarianceAsked(LeverageAsked, total=False):
    """What is asked with a covariance."""

    scores: PairScores
    answered: bool


class TrendAsked(Asked, total=False):
    """What is asked with a trend."""

    status: Required[str]
    scores: Sequence[float] | None
    compare: tuple[str, str] | None


class ModelAsked(SmoothAsked, total=False):
    """What is asked with a model."""

    collapse: Mapping[str, str] | None
    prior: bool
    against: str | None
    answered: bool


@dataclass(frozen=True, repr=False)
class OpenedRelease:
    """A release, and what randomized it, to ask questions of; :func:`open_release` makes one.

    Every question takes ``by`` (columns that form subgroups), ``where`` (conditions on kept
    columns: ``{"region": "south"}``, ``{"wave": [1, 2]}``, ``["age>=18", "region!=south"]``),
    ``weights`` (a kept column with a weight per row) and ``level`` (of the intervals) where they
    mean something. Rows without a value in one of these columns are left out; ``.selection`` of an
    answer has their number.

    Raises:
        InputError: from every question, if it does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes"), scores=(0, 1)),))
        >>> plan = deniable.design(schema, epsilon=1)
        >>> table = pyarrow.table({"smokes": ["no"] * 620 + ["yes"] * 380})
        >>> release = deniable.open_release(table, plan)
        >>> release
        <release of smokes; ε = 1 for the record>
        >>> (shares,) = release.shares("smokes")
        >>> [round(row["estimate"], 3) for row in shares.table()]
        [0.76, 0.24]
        >>> (mean,) = release.mean("smokes", level=0.9)
        >>> round(mean.estimate, 3)
        0.24
        >>> scored = [deniable.Attribute(x, ("0", "1"), ordered=True, scores=(0, 1)) for x in "abc"]
        >>> plan = deniable.design(deniable.Schema(tuple(scored)), epsilon=6)
        >>> rows = {"a": ["0", "1"] * 90, "b": ["0", "1", "1"] * 60, "c": ["1", "1", "0"] * 60}
        >>> release = deniable.open_release(pyarrow.table(rows), plan)
        >>> [len(ask("a,b")) for ask in (release.shares, release.covariance, release.test)]
        [1, 1, 1]
        >>> release.quantile("a")[0].estimate, release.model("a ~ b")[0].kind
        ('0', 'logistic')
        >>> len(release.smooth("a,b,c")[0].table())
        8
        >>> release.trend("a,b", status="c")[0].compared
        ('1', '0')
        >>> plan = deniable.design(deniable.Schema.anonymous((3, 4)), epsilon=2, method="forms")
        >>> rows = pyarrow.table({"a1": ["0", "1"] * 500, "a2": ["1", "3"] * 500})
        >>> len(deniable.open_release(deniable.randomize(rows, plan), plan).agreement())
        1
    """

    source: Release

    def __repr__(self) -> str:
        strata = self.source.strata
        names = [strata.schema.names[i] for i in strata.schema.protected]
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return f"<release of {listed}; ε = {strata.epsilon:.4g} for the record>"

    @property
    def schema(self) -> Schema:
        """What the release contains."""
        return self.source.strata.schema

    @spelled_out(Shares)
    def shares(self, of: Names, **asked: Unpack[SharesAsked]) -> Answers[Estimate]:
        """Return shares, a joint table, or shares within subgroups, as :func:`deniable.estimate`,
        for every group of rows that a kept column forms."""
        return Shares(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Smooth)
    def smooth(self, of: Names, **asked: Unpack[SmoothAsked]) -> Answers[Smoothed]:
        """Return a joint table of three attributes or more by the model of all pairs, beside the
        unbiased one: for small groups. ``known`` is as of :func:`deniable.estimate`."""
        return Smooth(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Mean)
    def mean(self, of: Names, **asked: Unpack[MeanAsked]) -> Answers[Summary]:
        """Return the mean score of an attribute, as :func:`deniable.estimate_mean`."""
        return Mean(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Quantile)
    def quantile(self, of: Names, **asked: Unpack[QuantileAsked]) -> Answers[Summary]:
        """Return a quantile of an attribute, as :func:`deniable.estimate_quantile`."""
        return Quantile(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Covariance)
    def covariance(
        self, of: Names, **asked: Unpack[CovarianceAsked]
    ) -> Answers[CovarianceEstimate]:
        """Return the covariance of two attributes, as :func:`deniable.estimate_covariance`."""
        return Covariance(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Independence)
    def test(self, of: Names, **asked: Unpack[IndependenceAsked]) -> Answers[IndependenceTest]:
        """Return the test of independence, as :func:`deniable.independence_test`."""
        return Independence(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Trend)
    def trend(self, of: Names = (), **asked: Unpack[TrendAsked]) -> Answers[TrendTests]:
        """Return the tests of trend, as :func:`deniable.trend_test`."""
        return Trend(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Agreement)
    def agreement(self, of: Names = (), **asked: Unpack[Asked]) -> Answers[FormAgreement]:
        """Return the test whether all forms agree, as :func:`deniable.form_agreement`."""
        return Agreement(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(Leverage)
    def leverage(self, of: Names, **asked: Unpack[LeverageAsked]) -> Answers[LeverageOfLiars]:
        """Return how far liars can move shares, as :func:`deniable.leverage`."""
        return Leverage(self._names(of), **self._told(**asked)).ask(self.source)

    @spelled_out(ModelQuestion)
    def model(self, formula: str, **asked: Unpack[ModelAsked]) -> Answers[Model]:
        """Return a model fitted to every group of rows, as :func:`deniable.model`."""
        return ModelQuestion(formula, **self._told(**asked)).ask(self.source)

    def _names(self, of: Names, argument: str = "of") -> tuple[str, ...]:
        return names_of(of, argument, self.schema)

    def _told(self, **asked: Any) -> dict[str, Any]:
        """Return what a question is told: names as tuples, dictionaries checked, files read."""
        if "by" in asked:
            asked["by"] = self._names(asked["by"], "by")
        if asked.get("known") is not None:
            asked["known"] = read_margins(asked["known"])
        if "collapse" in asked:
            example = "levels by attribute, {'race': 'White|*'}"
            asked["collapse"] = texts_of(asked["collapse"], "collapse", example)
        if "compare" in asked:
            asked["compared"] = asked.pop("compare")
        return asked


def open_release(
    released: Any, plan: Plan | None = None, *, anyway: bool = False, randomized: bool = False
) -> OpenedRelease:
    """Open a release, to ask it any number of questions.

    Args:
        released: a folder made by :func:`deniable.share`, one or several paths, or a dataframe.
        plan: what randomized it, or the file that says so; may be left out for a folder.
        anyway: go on with a table that the mechanism cannot have released (p-value below 1e-6).
        randomized: confirms that ``plan`` randomized the table. Without it there is a warning,
            unless something identifies the release: its folder, a file whose digest the record of
            ``plan`` has, the column of forms, or the mark of a frame that
            :func:`deniable.randomize` returned (pandas, pyarrow, Polars).

    Raises:
        InputError: if it cannot be read, nothing says what randomized it, or it cannot have come
            from there.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(2, 2))
        >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 270 + ["1"] * 500 + ["0"] * 230
        >>> release = deniable.open_release(pyarrow.table({"a1": first, "a2": second}), plan)
        >>> (test,) = release.test("a1,a2")
        >>> f"{test.p_value:.3f}"
        '0.011'
    """
    # Not @typed: warnings name the line that called.
    check_type("anyway", anyway, bool)
    check_type("randomized", randomized, bool)
    if plan is None or isinstance(plan, str | Path):
        release = find_release(released, plan)
    else:
        rows = plan.released_rows if isinstance(plan, Design) else None
        release = find_release(released, Strata.one(mechanism_of(plan)), n_released=rows)
    if (mark := mark_of(released)) is not None:
        own = {mechanism.digest for mechanism in release.strata.mechanisms.values()}
        if mark not in own and not anyway:
            raise InputError(
                "another mechanism randomized this table; give the plan that it was randomized "
                "with, or `anyway` to go on all the same"
            )
        release = replace(release, identified=release.identified or mark in own)
    check_origin(release, anyway=anyway, randomized=randomized)
    return OpenedRelease(release)
