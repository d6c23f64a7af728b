"""A release that is opened once and asked many questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.design.account import Design
from deniable.design.record import read_design
from deniable.errors import InputError
from deniable.estimate.columns import Answers
from deniable.estimate.consistency import check_origin
from deniable.estimate.covariance import Covariance, CovarianceEstimate, PairScores
from deniable.estimate.independence import Independence, IndependenceTest
from deniable.estimate.known import read_margins
from deniable.estimate.ordered import Mean, Quantile, Summary
from deniable.estimate.scores import Scores
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.shares import Method as EstimationMethod
from deniable.estimate.source import Release
from deniable.estimate.source import open_release as find_release
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.strata import Strata
from deniable.models.model import Model
from deniable.models.question import ModelQuestion
from deniable.models.smoothing import Smooth, Smoothed
from deniable.schema import Schema
from deniable.schema.names import split_names

Plan = Design | Mechanism | str | Path
"""What randomized a table: a design, its mechanism, or the file or folder that has it."""

Names = str | Sequence[str]
"""Names of columns: one, several, or several as one text with commas, as in a shell."""


def names_of(given: Any, argument: str, schema: Schema) -> tuple[str, ...]:
    """Return names of columns: several, or one or several as they would be typed in a shell.

    Raises:
        InputError: if it is something else.
    """
    if isinstance(given, str):
        known = given in schema.names or given in schema.columns or given in schema.keep
        return (given,) if known else tuple(split_names(given))
    try:
        names = tuple(given)
    except TypeError:
        names = (None,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{argument} is the name of a column or a list of names, not {given!r}")
    return names


def texts_of(given: Any, argument: str, example: str) -> dict[str, str]:
    """Return a dictionary of texts; empty for None.

    Raises:
        InputError: if it is something else.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{argument} is a dictionary of {example}")
    return {str(name): str(value) for name, value in given.items()}


def mechanism_of(plan: Plan) -> Mechanism:
    """Return the mechanism of a plan.

    Raises:
        InputError: if it is none, or a file that cannot be read.
    """
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


@dataclass(frozen=True, repr=False)
class OpenedRelease:
    """A release, and what randomized it, to ask questions of; :func:`open_release` makes one.

    Every question takes ``by`` (columns that form subgroups), ``where`` (the value that selects
    rows, by kept column), ``weights`` (a kept column with a weight per row) and ``level`` (of the
    intervals) where they mean something; what does not fit is refused.

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

    def shares(
        self,
        of: Names,
        *,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
        method: EstimationMethod = "inversion",
        target: Target = "table",
        known: str | Path | None = None,
    ) -> Answers[Estimate]:
        """Return shares, a joint table, or shares within subgroups; one answer for every group of
        rows that a kept column forms. See :func:`deniable.estimate`. ``known`` is a CSV file of
        shares known exactly, which the answer then has.

        Raises:
            InputError: if the question does not fit the release.
        """
        margins = None if known is None else read_margins(known)
        told = {"method": method, "target": target, "known": margins}
        return self._ask(Shares, of, by, where, weights, level, **told)

    def smooth(
        self,
        of: Names,
        *,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
        known: str | Path | None = None,
    ) -> Answers[Smoothed]:
        """Return a joint table of three attributes or more by the model of all pairs, beside the
        unbiased one: for small groups.

        Raises:
            InputError: if the question does not fit the release.
        """
        margins = None if known is None else read_margins(known)
        return self._ask(Smooth, of, by, where, weights, level, known=margins)

    def mean(
        self,
        of: Names,
        *,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
        scores: Scores = None,
        target: Target = "table",
    ) -> Answers[Summary]:
        """Return the mean score of an attribute. See :func:`deniable.estimate_mean`.

        Raises:
            InputError: if the question does not fit the release.
        """
        return self._ask(Mean, of, by, where, weights, level, scores=scores, target=target)

    def quantile(
        self,
        of: Names,
        *,
        probability: float = 0.5,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
        interpolate: bool = False,
        target: Target = "table",
    ) -> Answers[Summary]:
        """Return a quantile of an ordered attribute. See :func:`deniable.estimate_quantile`.

        Raises:
            InputError: if the question does not fit the release.
        """
        told = {"probability": probability, "interpolate": interpolate, "target": target}
        return self._ask(Quantile, of, by, where, weights, level, **told)

    def covariance(
        self,
        of: Names,
        *,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
        scores: PairScores = (None, None),
        target: Target = "table",
    ) -> Answers[CovarianceEstimate]:
        """Return the covariance of two attributes. See :func:`deniable.estimate_covariance`.

        Raises:
            InputError: if the question does not fit the release.
        """
        return self._ask(Covariance, of, by, where, weights, level, scores=scores, target=target)

    def test(
        self,
        of: Names,
        *,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
    ) -> Answers[IndependenceTest]:
        """Return the test of independence of two attributes. See
        :func:`deniable.independence_test`.

        Raises:
            InputError: if the question does not fit the release; it takes no weights.
        """
        return self._ask(Independence, of, by, where, weights, level)

    def model(
        self,
        formula: str,
        *,
        collapse: Mapping[str, str] | None = None,
        prior: bool = True,
        against: str | None = None,
        known: str | Path | None = None,
        by: Names = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
        level: float = 0.95,
    ) -> Answers[Model]:
        """Return a fitted model for every group of rows. See :func:`deniable.model`.

        Raises:
            InputError: if the formula does not fit the release, or the release cannot bear it.
        """
        question = ModelQuestion(
            formula,
            collapse=texts_of(collapse, "collapse", "levels by attribute, {'race': 'White|*'}"),
            prior=prior,
            against=against,
            known=None if known is None else read_margins(known),
            by=names_of(by, "by", self.schema),
            where=_where(where),
            weights=weights,
            level=level,
        )
        return question.ask(self.source)

    def _ask(
        self,
        kind: Callable[..., Any],
        of: Names,
        by: Names,
        where: Mapping[str, str] | None,
        weights: str | None,
        level: float,
        **more: Any,
    ) -> Answers[Any]:
        schema = self.schema
        answers: Answers[Any] = kind(
            names_of(of, "of", schema),
            by=names_of(by, "by", schema),
            where=_where(where),
            weights=weights,
            level=level,
            **more,
        ).ask(self.source)
        return answers


def _where(given: Mapping[str, str] | None) -> dict[str, str]:
    return texts_of(given, "where", "a value by kept column, {'region': 'south'}")


def open_release(released: Any, plan: Plan | None = None, *, anyway: bool = False) -> OpenedRelease:
    """Open a release, to ask it any number of questions.

    Args:
        released: a folder made by :func:`deniable.share`, one or several paths, or a dataframe.
        plan: what randomized it, or the file that says so; may be left out for a folder.
        anyway: go on with a table that the mechanism cannot have released (p-value below 1e-6).

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
    if plan is None or isinstance(plan, str | Path):
        release = find_release(released, plan)
    else:
        rows = plan.released_rows if isinstance(plan, Design) else None
        release = find_release(released, Strata.one(mechanism_of(plan)), n_released=rows)
    check_origin(release, anyway=anyway)
    return OpenedRelease(release)
