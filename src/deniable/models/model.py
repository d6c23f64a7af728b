"""A fitted model of a release: coefficients, tests, predictions, and how far to trust them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import Presented, caption_of, target_text, where_text
from deniable.estimate.inference import normal_quantile
from deniable.estimate.simplex import maximum_likelihood
from deniable.mechanism.prediction import Target
from deniable.models.by_row import RowFit
from deniable.models.cells import Cells, Columns
from deniable.models.everybody import UNANSWERED_PRECISION, inside_of, with_unanswered
from deniable.models.formula import (
    INTERCEPT,
    WEAK_PRIOR,
    Formula,
    Term,
    design_of,
    independent,
    restrictions,
    symmetric_precision,
    terms_of,
)
from deniable.models.hypotheses import MOST_SATURATED, Test, goodness_of_fit, wald_test
from deniable.models.likelihood import At, LogLinearFit, errors_along, fit_log_linear
from deniable.models.merging import CoefficientMap, coefficients_of_levels, of_levels, shares_within
from deniable.models.new_rows import columns_for, read_covariates
from deniable.models.profile import FAR, UNREAD, Interval, Number, Profiles
from deniable.models.row_likelihood import cumulative_shares
from deniable.numerals import count_text, number_text
from deniable.schema import Attribute

Kind = Literal["logistic", "multinomial", "proportional odds", "log-linear", "linear"]

UNDETERMINED = "the release cannot say"
HALF, NOTHING = 0.5, 0.01
"""Below the first share of the data in a coefficient's information it is not shown; below the
second a model with it is refused."""

RIDGE = 1e-8
"""Without a prior, the precision on the covariates' joint distribution: empty cells have finite
logarithms, and other parameters change by less than 1e-9."""

PREDICTED_AT_ONCE = 10_000
"""Rows of a table whose predictions are computed at a time."""

DROPPED = "dropped"
"""The remark on a column that is, or cannot be distinguished from, a combination of the others."""

MOST_TESTED = 1_000_000
"""Cells times parameters up to which every term is tested, each by another fit."""


@dataclass(frozen=True)
class Model(Presented):
    """A regression or log-linear model, fitted to a release.

    Coefficients are log odds ratios (of a linear model, units of the response). Intervals are
    normal, and of the profile likelihood where that disagrees; an end that is infinite is None. A
    coefficient with more than half of its information from the prior, or without limits, has no
    numbers and the remark "the release cannot say".

    Args:
        formula: as written.
        parsed: as it was read.
        cells: the table that the formula is about.
        everybody: the table that was fitted, with the missing categories.
        kind: ``logistic``, ``multinomial``, ``proportional odds``, ``log-linear`` or ``linear``.
        names: of the coefficients, shape (q,).
        terms: of the formula that each belongs to.
        coefficients: shape (q,).
        covariance: of the coefficients, shape (q, q).
        data_share: the data's part of the information on each, 0 to 1; the rest is the prior's.
            Of a column that was dropped coefficient, errors and share are 0.
        levels: the table of the formula, with merged categories.
        design: Z, the columns of the coefficients on it, shape (cells of levels, q).
        response: its axis; None for a log-linear model, and a linear one.
        n_records: number of rows.
        n_effective: effective number of rows under weights.
        group: kept columns and the values by which rows were selected.
        level: default level of the intervals.
        prior: whether the weak prior was used.
        known: known margins, in words.
        fit: the log-linear model behind it; None for a linear model, and a model by row.
        columns: of that model's design.
        coefficient_map: from the parameters of ``fit`` to the coefficients and their derivatives,
            shape (q, p); None for a linear model.
        against: the test against another formula, if any.
        merged: whether categories were merged after the fit.
        empty: attributes and categories with an estimated share of 0, which were left out.
        attributes: of the first axes of ``cells``.
        by_row: the fit of a model by row.
        unread: places of a linear model's coefficients whose column is within three standard errors
            of a combination of the others, so that they have no valid interval.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(3, 3))
        >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 300 + ["1"] * 500 + ["0"] * 200
        >>> release = deniable.open(pyarrow.table({"a1": first, "a2": second}), plan)
        >>> (model,) = release.model("a2 ~ a1")
        >>> for row in model.table():
        ...     print(f"{row['term']:12}{row['estimate']:6.2f} ± {row['std_error']:.2f}")
        Intercept    -0.45 ± 0.10
        a1[T.1]       0.90 ± 0.14
        >>> model.odds_ratios()[0]["odds_ratio"].__round__(2), len(model.predict())
        (2.45, 4)
        >>> model.probabilities(pyarrow.table({"a1": ["0", "1"]})).round(2).tolist()
        [[0.61, 0.39], [0.39, 0.61]]
        >>> rows = model.predict(pyarrow.table({"a1": ["1", "0"]}))
        >>> print(" ".join(f"{row['row']}: {row['a2']} {row['estimate']:.2f}" for row in rows))
        0: 0 0.39 0: 1 0.61 1: 0 0.61 1: 1 0.39
        >>> model.summary().splitlines()[-1] == model.remarks()[-1]
        True
        >>> model.tidy().shape, model.covariance.shape, model.plot().axes[0].get_xscale()
        ((2, 9), (2, 2), 'log')
        >>> table = {"a1": first, "a2": second, "hours": list(range(1000))}
        >>> schema = deniable.Schema(deniable.Schema.anonymous((2, 2)).attributes, keep=("hours",))
        >>> plan = deniable.design(schema, attribute_epsilon=(3, 3))
        >>> release = deniable.open(pyarrow.table(table), plan)
        >>> one, two = (release.model(f"hours ~ {x}")[0] for x in ("a1", "a1 + a2"))
        >>> one.tested_against(two).against.degrees_of_freedom
        1
    """

    formula: str
    parsed: Formula = field(repr=False)
    cells: Cells = field(repr=False)
    everybody: Cells = field(repr=False)
    kind: Kind
    names: tuple[str, ...]
    terms: tuple[str, ...]
    coefficients: NDArray[np.float64] = field(repr=False)
    covariance: NDArray[np.float64] = field(repr=False)
    data_share: NDArray[np.float64] = field(repr=False)
    levels: Cells = field(repr=False)
    design: NDArray[np.float64] = field(repr=False)
    response: int | None
    n_records: int
    n_effective: float
    group: tuple[tuple[str, str], ...] = ()
    level: float = 0.95
    prior: bool = True
    known: tuple[str, ...] = ()
    fit: LogLinearFit | None = field(default=None, repr=False)
    coefficient_map: CoefficientMap | None = field(default=None, repr=False)
    columns: Columns | None = field(default=None, repr=False)
    against: Test | None = None
    merged: bool = False
    empty: tuple[tuple[str, str], ...] = ()
    attributes: tuple[Attribute, ...] = field(default=(), repr=False)
    by_row: RowFit | None = field(default=None, repr=False)
    unread: tuple[int, ...] = ()

    target: ClassVar[Target] = "population"

    @property
    def axis(self) -> str:
        """Label of a plot's horizontal axis."""
        return "coefficient" if self.kind == "linear" else "odds ratio"

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Of the coefficients, shape (q,)."""
        return np.sqrt(np.diag(self.covariance))

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row per coefficient: ``term``, ``estimate``, ``std_error``, ``statistic``,
        ``p_value``, ``low``, ``high``, ``data_share`` and ``remark``.

        Raises:
            InputError: if the level is not between 0 and 1.
        """
        value, error, dropped = self.coefficients, self.standard_errors, set(self.dropped)
        found = self._intervals("coefficients", self._level(level))
        rows: list[dict[str, Any]] = []
        for place, (name, share) in enumerate(
            zip(self.names, self.data_share.tolist(), strict=True)
        ):
            made, remark = found[place], DROPPED if name in dropped else UNDETERMINED
            numbers: list[float | None] = [None] * 6
            if share >= HALF and not (math.isinf(made.low) and math.isinf(made.high)):
                remark = made.remark
                numbers = [float(value[place]), float(error[place])]
                if made.kind == "unread":
                    numbers += [None] * 4
                else:
                    p_value = math.erfc(abs(made.root) / math.sqrt(2))
                    numbers += [made.root, p_value, _end(made.low), _end(made.high)]
            row = {"term": name} | dict(zip(_NUMBERS, numbers, strict=True))
            rows.append(dict(self.group) | row | {"data_share": share, "remark": remark})
        return rows

    @cached_property
    def _made(self) -> dict[tuple[str, float], list[Interval]]:
        return {}

    @cached_property
    def _in_design(self) -> NDArray[np.int64]:
        """The places of the columns that were not dropped."""
        return np.flatnonzero(~np.isin(np.array(self.names, dtype=object), self.dropped))

    def _intervals(
        self, what: Literal["coefficients", "predictions"], level: float
    ) -> list[Interval]:
        """Return the intervals of coefficients, or of the log odds of predicted shares."""
        if self.fit is None or self.coefficient_map is None:
            z, error = normal_quantile(level), self.standard_errors
            with np.errstate(divide="ignore", invalid="ignore"):
                columns = (self.coefficients, error, self.coefficients / error)
            numbers = enumerate(zip(*(column.tolist() for column in columns), strict=True))
            return [
                Interval(v - z * e, v + z * e, "unread" if i in self.unread else "normal", s)
                for i, (v, e, s) in numbers
            ]
        if (what, level) not in self._made:
            if what == "coefficients":
                scales = abs(self.design[:, self._in_design]).max(axis=0, initial=0.0)
                chosen = [
                    Number(partial(self._coefficient, place), FAR / (scale or 1.0), True)
                    for place, scale in enumerate(scales.tolist())
                ]
                made = [Interval(math.nan, math.nan, "normal", math.nan)] * len(self.names)
                found = Profiles(self.fit).intervals(chosen, level)
                for place, interval in zip(self._in_design.tolist(), found, strict=True):
                    made[place] = interval
            else:
                group = self.levels.covariates(self.response)
                rows = range(len(self.design))
                chosen = [Number(partial(self._log_odds, self.design, group, i)) for i in rows]
                made = Profiles(self.fit).intervals(chosen, level)
            self._made[what, level] = made
        return self._made[what, level]

    def _coefficient(self, place: int, parameters: NDArray[np.float64]) -> At:
        assert self.coefficient_map is not None
        value, change = self.coefficient_map(parameters)
        return At(float(value[place]), change[place])

    def _log_odds(
        self,
        design: NDArray[np.float64],
        group: NDArray[np.int64],
        place: int,
        parameters: NDArray[np.float64],
    ) -> At:
        """Return the log odds of a predicted share; ``design`` and ``group`` as for
        :meth:`_predicted`."""
        assert self.coefficient_map is not None
        value, change = self.coefficient_map(parameters)
        share, centred = shares_within(design[:, self._in_design], value, group)
        others = group == group[place]
        others[place] = False  # not 1 less the share, which has no digits left near 1
        rest = max(float(share[others].sum()), 1e-300)
        odds = math.log(max(float(share[place]), 1e-300)) - math.log(rest)
        return At(odds, centred[place] / rest @ change)

    def odds_ratios(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return ``term``, ``odds_ratio``, ``low``, ``high`` and ``p_value`` of every coefficient
        but the intercepts.

        Raises:
            InputError: if the model is linear and has none, or as :meth:`table`.
        """
        if self.kind == "linear":
            raise InputError("a linear model has no odds ratios; its coefficients are differences")
        return [
            dict(self.group)
            | {"term": row["term"]}
            | {
                new: None if row[old] is None else float(np.exp(min(row[old], 700.0)))
                for new, old in (("odds_ratio", "estimate"), ("low", "low"), ("high", "high"))
            }
            | {"p_value": row["p_value"], "remark": row["remark"]}
            for row in self._without_intercepts(level)
        ]

    def _without_intercepts(self, level: float | None) -> list[dict[str, Any]]:
        rows = zip(self.table(level), self.terms, strict=True)
        return [row for row, term in rows if term != INTERCEPT]

    def tidy(self, level: float | None = None) -> Any:
        """Return the coefficients as a pandas dataframe, with the columns of :meth:`table`."""
        import pandas

        return pandas.DataFrame(self.table(level))

    def predict(self, frame: Any = None, *, level: float | None = None) -> list[dict[str, Any]]:
        """Return predictions: the share of each level of the response, or the mean of a linear
        model, with ``estimate``, ``std_error``, ``low``, ``high`` and ``remark``. Intervals of
        shares are normal on the scale of log odds, or of the profile likelihood.

        Args:
            frame: rows with true covariates to predict for: a dataframe or a file. Results have
                the row's place, from 0, as ``row``. By default all combinations of covariates; of
                a log-linear model the share of every cell.
            level: of the intervals; by default that of the model.

        Raises:
            InputError: if the level is not between 0 and 1, a row has a value that the model was
                not fitted to, or there are too many combinations to list.
        """
        level = self._level(level)
        if frame is not None:
            return self._predict_rows(self._columns_of(frame), level)
        if self.by_row is not None and (listed := self.by_row.listed) is not None:
            return self._predict_listed(listed, level)
        if not len(self.design):
            raise InputError(
                "the covariates have too many combinations to list them all; give the rows to "
                "predict for in the frame"
            )
        group = self.levels.covariates(self.response)
        found = self._predicted(self.design, group, level, partial(self._intervals, "predictions"))
        names = (*self.levels.categories, *found)
        places = product(*self.levels.categories.values())
        return [
            dict(self.group) | dict(zip(names, (*place, *row), strict=True))
            for place, row in zip(places, zip(*found.values(), strict=True), strict=True)
        ]

    def _predict_listed(self, listed: Sequence[NDArray[Any]], level: float) -> list[dict[str, Any]]:
        """Return predictions of a model by row for combinations of levels and numbers."""
        places = self._covariates
        if not places:
            columns = np.ones((1, 1))
        else:
            columns = columns_for(self.parsed, self.levels, places, listed)
        axes = [self.levels.axes[i] for i in places]
        shown = [
            values.tolist() if axis.numbers is not None else [axis.levels[i] for i in values]
            for axis, values in zip(axes, listed, strict=True)
        ]
        names = [axis.name for axis in axes]
        made = []
        for row in self._predict_rows(columns, level):
            of = dict(zip(names, (values[row["row"]] for values in shown), strict=True))
            made.append({key: v for key, v in row.items() if key not in _PREDICTED} | of | row)
            del made[-1]["row"]
        return made

    @property
    def _covariates(self) -> list[int]:
        """Places of the formula's covariates among the axes."""
        return [i for i, axis in enumerate(self.cells.axes) if axis.name in self.parsed.names]

    def _predict_rows(self, columns: NDArray[np.float64], level: float) -> list[dict[str, Any]]:
        """Return predictions for rows of :meth:`_columns_of`."""
        answers = self.answers
        rows: list[dict[str, Any]] = []
        for start in range(0, len(columns), PREDICTED_AT_ONCE):
            distinct, place = np.unique(
                columns[start : start + PREDICTED_AT_ONCE], axis=0, return_inverse=True
            )
            design, group = self._design_of(distinct)
            found = self._predicted(
                design, group, level, partial(self._intervals_of_rows, design, len(answers))
            )
            made = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
            for row, i in enumerate(place.ravel().tolist(), start=start):
                for k, answer in enumerate(answers):
                    of = {} if self.response is None else {self._response: answer}
                    rows.append(dict(self.group) | {"row": row} | of | made[i * len(answers) + k])
        return rows

    def probabilities(self, frame: Any) -> NDArray[np.float64]:
        """Return the predicted share of each level of the response (:attr:`answers`), shape
        (rows, levels), for rows with true covariates: a dataframe or a file.

        Raises:
            InputError: as :meth:`predict`; if the model is linear or log-linear.
        """
        if self.response is None:
            raise InputError(f"a {self.kind} model has no probabilities; use predict")
        columns = self._columns_of(frame)
        estimate, _ = self._shares(*self._design_of(columns))
        return estimate.reshape(len(columns), -1)

    @property
    def answers(self) -> tuple[str, ...]:
        """Levels of the response, in the order of :meth:`probabilities`; one empty text for a
        linear model."""
        return ("",) if self.response is None else self.levels.axes[self.response].levels

    @property
    def _response(self) -> str:
        return str(self.parsed.response)

    def _columns_of(self, frame: Any) -> NDArray[np.float64]:
        """Return the formula's columns for rows with true covariates: a dataframe or a file; shape
        (rows, columns).

        Raises:
            InputError: as :meth:`predict`.
        """
        if self.kind == "log-linear":
            raise InputError("a log-linear model has no response to predict; use predict()")
        if not (places := self._covariates):
            raise InputError("the model has no covariates; use predict()")
        axes = [self.cells.axes[i] for i in places]
        attributes = [a for a in self.attributes if a.name in self.parsed.names]
        return columns_for(
            self.parsed, self.levels, places, read_covariates(frame, axes, attributes)
        )

    def _design_of(
        self, columns: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the design and groups of rows' shares, as :meth:`_predicted` takes them: for each
        row of columns one row per level of the response."""
        n, k = len(columns), len(self.answers)
        if self.response is None:
            return columns, np.arange(n)
        if self.kind == "proportional odds":  # thresholds less Xβ, and 0 of the last level
            whole = columns[:, int(() in self.parsed.right.terms) :]
            design = np.zeros((n, k, k - 1 + whole.shape[1]))
            design[:, :-1, : k - 1], design[:, :-1, k - 1 :] = np.eye(k - 1), -whole[:, None]
            return design.reshape(n * k, -1), np.repeat(np.arange(n), k)
        blocks = columns[:, None, None, :] * np.eye(k)[:, 1:, None]
        return blocks.reshape(n * k, -1), np.repeat(np.arange(n), k)

    def _shares(
        self, design: NDArray[np.float64], group: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return predicted shares and the derivatives of their log odds by the coefficients."""
        if self.kind == "proportional odds":
            k = len(self.answers)
            shaped = design.reshape(-1, k, design.shape[1])
            share = cumulative_shares(shaped[:, :-1] @ self.coefficients)
            below = np.cumsum(share, axis=1)
            slopes = (below * (1 - below))[..., None] * shaped
            change = np.diff(slopes, axis=1, prepend=0.0)
            odds = change / np.maximum(share * (1 - share), 1e-12)[..., None]
            return share.ravel(), odds.reshape(design.shape)
        share, centred = shares_within(design, self.coefficients, group)
        return share, centred / np.maximum(1 - share, 1e-12)[:, None]

    def _intervals_of_rows(
        self, design: NDArray[np.float64], n_answers: int, level: float
    ) -> list[Interval]:
        assert self.fit is not None
        group = np.zeros(n_answers, dtype=np.int64)
        chosen = [
            Number(partial(self._log_odds, design[i - i % n_answers :][:n_answers], group, k))
            for i in range(len(design))
            for k in [i % n_answers]
        ]
        return Profiles(self.fit).intervals(chosen, level)

    def _predicted(
        self,
        design: NDArray[np.float64],
        group: NDArray[np.int64],
        level: float,
        intervals: Callable[[float], list[Interval]],
    ) -> dict[str, list[Any]]:
        """Return columns of predictions.

        ``design``: shape (rows, q). ``group``: of rows whose shares sum to 1. ``intervals``: of
        their log odds at a level, for a model with a likelihood of cells.
        """
        z = normal_quantile(level)
        if self.kind == "linear":
            estimate, error = design @ self.coefficients, errors_along(design, self.covariance)
            unread = (design[:, list(self.unread)] != 0).any(axis=1)
            remarks = [UNREAD if one else "" for one in unread]
            low, high = (
                [None if one else end for one, end in zip(unread, ends.tolist(), strict=True)]
                for ends in (estimate - z * error, estimate + z * error)
            )
        else:
            estimate, of_log_odds = self._shares(design, group)
            on_scale = errors_along(of_log_odds, self.covariance)
            error = on_scale * estimate * (1 - estimate)
            if self.fit is None:
                odds = np.log(np.maximum(estimate, 1e-300) / np.maximum(1 - estimate, 1e-300))
                half = z * on_scale
                ends = zip((odds - half).tolist(), (odds + half).tolist(), strict=True)
                found = [Interval(low, high, "normal", 0.0) for low, high in ends]
            else:
                found = intervals(level)
            remarks = [UNREAD if each.kind == "unread" else "" for each in found]
            low, high = (
                [None if end is None else _share_of(end) for end in ends]
                for ends in zip(*(each.ends for each in found), strict=True)
            )
        columns = (estimate.tolist(), error.tolist(), low, high, remarks)
        return dict(zip(_PREDICTED, columns, strict=True))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of columns left out of the design, as they are, or cannot be distinguished from,
        combinations of the others; and of terms without columns."""
        gone = zip(self.names, np.diag(self.covariance), self.data_share, strict=True)
        empty = {self.parsed.named(term) for term in self.parsed.right.terms if term}
        return (
            *(name for name, variance, share in gone if variance == share == 0),
            *sorted(empty - set(self.terms)),
        )

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        """A test of every term of the formula, without it and all terms that contain it; so it does
        not depend on which categories are the references. By the ratio of likelihoods; of merged
        categories and of a linear model by the coefficients' covariance (Wald). The prior is
        :func:`~deniable.models.formula.symmetric_precision`. Empty for a model so large that it
        would take long."""
        if self.fit is not None and self.fit.design.size > MOST_TESTED:
            return ()
        terms = [term for term in dict.fromkeys(self.terms) if term != INTERCEPT]
        tests = (self._test(term, *self.parsed.without(term)) for term in terms)
        return tuple(test for test in tests if test is not None and test.degrees_of_freedom)

    def _test(self, of: str, without: tuple[str, ...], smaller: Formula) -> Test | None:
        """Return the test against a smaller formula; None if this one does not contain it."""
        if self.fit is not None and not self.merged:
            small = self._symmetric(smaller)
            statistic = max(0.0, 2 * (self._symmetric_fit.objective - small.objective))
            freedom = len(self._symmetric_fit.names) - len(small.names)
            return Test(of, statistic, freedom, "likelihood ratio", without)
        if self.by_row is not None:
            names = {*self.parsed.right.terms} - {*smaller.right.terms}
            gone = {self.parsed.named(term) for term in names}
            tested = (np.diag(self.covariance) > 0) & np.isin(np.array(self.terms, object), [*gone])
            matrix = np.eye(len(self.names))[tested]
            return wald_test(of, matrix, self.coefficients, self.covariance, without)
        larger, left = (terms_of(each, self.levels) for each in (self.parsed, smaller))
        constant: list[Term] = []
        if self.kind == "log-linear":  # which has a constant in any case
            larger = [term for term in larger if term.name != INTERCEPT]
            constant = [Term(INTERCEPT, ("",), (), np.ones(1))]
        kept = np.diag(self.covariance) > 0
        ends = np.cumsum([len(term.names) for term in larger])
        own = [
            replace(
                term, names=tuple(np.array(term.names)[chosen]), values=term.values[..., chosen]
            )
            for term, chosen in zip(larger, np.split(kept[: ends[-1]], ends[:-1]), strict=True)
            if chosen.any()
        ]
        values, covariance = self.coefficients[kept], self.covariance[kept][:, kept]
        if self.fit is not None and self.prior:
            design = self.design[:, kept]
            fit, inside = self._symmetric_fit, inside_of(self.cells, self.everybody)
            coefficient_map = partial(
                coefficients_of_levels, fit.design, self.cells, design, self.response, inside
            )
            values, covariance, _ = of_levels(fit, coefficient_map)
        own, left = [*constant, *own], [*constant, *left]
        if not without and len(restrictions(left, own, self.levels)):
            return None
        matrix = restrictions(own, left, self.levels)[:, len(constant) :]
        if len(matrix):
            of_every_answer = np.eye(len(values) // matrix.shape[1])
            matrix = np.asarray(np.kron(of_every_answer, matrix), dtype=np.float64)
        return wald_test(of, matrix, values, covariance, without)

    @cached_property
    def _symmetric_fit(self) -> LogLinearFit:
        return self._symmetric(self.parsed)

    def _symmetric(self, formula: Formula) -> LogLinearFit:
        """Return the fit of a formula with the prior that does not depend on the references."""
        assert self.fit is not None
        likelihood = self.fit.likelihood
        columns = design_of(formula, self.cells)
        keep = independent(columns, self.cells, self.response, likelihood.occurring)
        gone = np.isin(np.array(columns.names, dtype=object), self.dropped)
        columns = columns.where(keep & ~gone)
        precision = symmetric_precision(columns, self.cells, self.response)
        scale = 1 / np.sqrt(np.diag(precision))
        values, vectors = np.linalg.eigh(precision * np.outer(scale, scale))
        some = values > 1e-10
        change = scale[:, None] * vectors[:, some] / np.sqrt(values[some])
        n = change.shape[1]
        own = Columns(columns.values @ change, ("a term",) * n, (1,) * n, ("",) * n)
        whole, _ = with_unanswered(own, self.cells, self.everybody)
        unit = np.full(len(whole.names), 1.0 if self.prior else RIDGE)
        unit[n:] = UNANSWERED_PRECISION if self.prior else RIDGE
        return fit_log_linear(likelihood, whole.values, whole.names, unit)

    def tested_against(self, other: "Model") -> "Model":
        """Return the model with its test against another of the same rows that contains it or is
        contained in it.

        Raises:
            InputError: if neither formula contains the other.
        """
        if not isinstance(other, Model):
            raise InputError(f"a model is tested against another, not a {type(other).__name__}")
        larger, smaller = (self, other) if len(self.names) >= len(other.names) else (other, self)
        big, small, nested = larger.fit, smaller.fit, True
        if larger.by_row is not None:
            nested = {*smaller.names} <= {*larger.names} and larger.kind == smaller.kind
        if big is not None and small is not None and not self.merged:
            found, *_ = np.linalg.lstsq(big.design, small.design, rcond=None)
            nested = abs(big.design @ found - small.design).max(initial=0.0) < 1e-6
        test = larger._test(other.formula, (), smaller.parsed) if nested else None
        if test is not None and test.degrees_of_freedom > 0:
            return replace(self, against=test)
        raise InputError(
            f"neither of '{self.formula}' and '{other.formula}' contains the other, so no test "
            "compares them; name a formula with more terms, or with fewer"
        )

    @cached_property
    def deviance(self) -> float | None:
        """2 (ℓ − ℓ of the fit), ℓ the largest log-likelihood that any table of the cells has
        (saturated, by EM, to 0.1 or so); None for a linear model, or more than 1,000 cells."""
        if self.fit is None or self.fit.design.shape[0] > MOST_SATURATED:
            return None
        best = 0.0
        for each in self.fit.likelihood.observed:
            weight = float(each.counts.sum()) / self.fit.likelihood.total
            if weight > 0:
                n, some = self.fit.n_records * weight, each.counts > 0
                frequencies = each.counts / each.counts.sum()
                found = maximum_likelihood(frequencies, each.forward, n, tolerance=0.05)
                expected = weight * each.forward.apply(found.values)
                best += n * float(frequencies[some] @ np.log(expected[some]))
        return max(0.0, 2 * (best - self.fit.log_likelihood))

    @cached_property
    def goodness_of_fit(self) -> Test | None:
        """The score test against the saturated model (:func:`goodness_of_fit`); None for a linear
        model, a saturated one, or more than 1,000 cells. The deviance has no χ² law: the largest
        likelihood of any table most often lies where some shares are 0."""
        return None if self.fit is None else goodness_of_fit(self.fit)

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        prior = f"weak prior {WEAK_PRIOR}"
        fitted = "least squares" if self.kind == "linear" else prior if self.prior else "no prior"
        known = f"; known exactly: {', '.join(self.known)}" if self.known else ""
        return (
            f"{self.kind.capitalize()} model {self.formula}{where_text(self.group)}: "
            f"{count_text(self.n_records, 'row')}, of {target_text('population')}; "
            f"{fitted}{known}; "
            f"{100 * self._level(level):g} % intervals"
        )

    def __str__(self) -> str:
        return self.summary()

    def summary(self, level: float | None = None) -> str:
        """Return all of it as text to read."""
        rows = self.tidy(level).drop(columns=[name for name, _ in self.group])
        shown = rows.to_string(index=False, na_rep="", float_format=number_text)
        return "\n".join([caption_of(self, self._level(level)), "", shown, "", *self.remarks()])

    def remarks(self) -> list[str]:
        """Return remarks, one sentence each: tests, deviance, coefficients from the prior."""
        sentences = []
        if self.dropped:
            them = "it" if len(self.dropped) == 1 else "them"
            sentences.append(
                f"Dropped from the design: {', '.join(self.dropped)}; the release cannot "
                f"separate {them} from the other columns."
            )
        if self.empty:
            listed = ", ".join(f"'{category}' of '{name}'" for name, category in self.empty)
            sentences.append(f"Left out, as their estimated share is 0: {listed}.")
        for test in self.tests:
            more = test.without[1:]
            contain = "which contains it" if len(more) == 1 else "which contain it"
            also = f" (and {', '.join(more)}, {contain})" if more else ""
            sentences.append(
                test.sentence(f"{test.kind.capitalize()} test without {test.of}{also}")
            )
        if self.against is not None:
            kind = self.against.kind.capitalize()
            sentences.append(self.against.sentence(f"{kind} test against {self.against.of}"))
        if (fit := self.goodness_of_fit) is not None:
            tested = fit.sentence("Score test against the saturated model")
            sentences.append(f"{tested} The deviance is {self.deviance:.1f}.")
        if any(row["remark"] == UNDETERMINED for row in self.table(level=0.5)):
            sentences.append(
                f"{UNDETERMINED}: the prior has more than half of the information on it; collapse "
                "categories or leave out terms."
            )
        return sentences

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        fit = self.goodness_of_fit
        listed = len(self.design) or (self.by_row is not None and self.by_row.listed is not None)
        predicted = self.predict(level=level) if listed else []
        return {
            "formula": self.formula,
            "kind": self.kind,
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "level": self._level(level),
            "prior": {"main": 3.0, "association": 2.5} if self.prior else None,
            "known": list(self.known),
            "coefficients": [_without(row, self.group) for row in self.table(level)],
            "covariance": self.covariance.tolist(),
            "dropped": list(self.dropped),
            "empty": [list(one) for one in self.empty],
            "tests": [test.to_plain() for test in self.tests],
            "against": None if self.against is None else self.against.to_plain(),
            "deviance": self.deviance,
            "goodness_of_fit": None if fit is None else fit.to_plain(),
            "predictions": [_without(row, self.group) for row in predicted],
        }

    def plot(self, level: float | None = None) -> Any:
        """Draw the coefficients with their intervals, odds ratios on a logarithmic scale (a forest
        plot); of a linear model the coefficients. Intercepts are left out.

        Returns:
            A matplotlib figure.

        Raises:
            InputError: if no coefficient is determined, or there are more than 60.
        """
        from deniable.report.estimate_plot import draw_intervals

        ratios = self.kind != "linear"
        rows = self.odds_ratios(level) if ratios else self._without_intercepts(level)
        one_sided = {"low": None}  # plotted as a name without an interval
        rows = [
            row | {"uncertain": False} | (one_sided if row["high"] is None else {})
            for row in rows
            if row["p_value"] is not None
        ]
        if not rows:
            raise InputError("the release determines no coefficient to plot")
        return draw_intervals(
            [str(row["term"]) for row in rows],
            [row | {"estimate": row["odds_ratio"]} for row in rows] if ratios else rows,
            caption=self.caption(level),
            axis=self.axis,
            in_percent=False,
            bars=False,
            logarithmic=ratios,
        )


_PREDICTED = ("estimate", "std_error", "low", "high", "remark")
_NUMBERS = ("estimate", "std_error", "statistic", "p_value", "low", "high")


def _end(value: float) -> float | None:
    return None if math.isinf(value) else value


def _share_of(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def _without(row: Mapping[str, Any], group: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in dict(group)}


def spread_out(
    kept: NDArray[np.bool_],
    values: NDArray[np.float64],
    covariance: NDArray[np.float64],
    share: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients, covariance and data's share with 0 for columns that were dropped."""
    of_all, squares = np.zeros((2, len(kept))), np.zeros((len(kept), len(kept)))
    of_all[:, kept] = values, share
    squares[np.ix_(kept, kept)] = covariance
    return of_all[0], squares, of_all[1]
