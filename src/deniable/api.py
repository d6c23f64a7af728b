"""The Python interface to tables: as short as the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.design.strength import StrengthRequest
from deniable.engines.processes import parts_of, share_parts
from deniable.engines.units import Publishing, Releasing, options_of
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement, FormAgreement
from deniable.estimate.columns import Answers, Tabular
from deniable.estimate.covariance import Covariance, CovarianceEstimate
from deniable.estimate.independence import Independence, IndependenceTest
from deniable.estimate.leverage import Leverage, LeverageOfLiars
from deniable.estimate.ordered import Mean, Quantile, Summary
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.trend import Trend, TrendTests
from deniable.laws.bistochastic import bistochastic_channel
from deniable.ledger import Spending, remembered
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.models.model import Model
from deniable.models.question import ModelQuestion
from deniable.opened import (
    Asked,
    CovarianceAsked,
    IndependenceAsked,
    LeverageAsked,
    MeanAsked,
    ModelAsked,
    Names,
    OpenedRelease,
    Plan,
    QuantileAsked,
    SharesAsked,
    TrendAsked,
    mechanism_of,
    open_release,
    spelled_out,
)
from deniable.planning.sample_size import plan, smallest_epsilon
from deniable.planning.trend_power import plan_trend
from deniable.randomness import SystemRandomness
from deniable.release.checking import Check, Problems
from deniable.release.curator import Treatment
from deniable.release.curator import check_budget as check_budget_of_treatment
from deniable.release.curator import pram as write_treated
from deniable.release.release import (
    Layout,
    Options,
    check_budget,
    open_rows,
    refuse_drafted,
    refuse_other_tables,
    with_all_mismatches,
)
from deniable.release.release import share as write_release
from deniable.schema import Attribute, Schema
from deniable.solvers.patterns.birkhoff import Decomposition, decompose
from deniable.statement.account import Design
from deniable.statement.expected_tables import expected_tables
from deniable.statement.record import read_design
from deniable.synthesis.combining import combine
from deniable.synthesis.folder import synthesize
from deniable.tables.frames import EagerFrame, marked, randomize_frame

__all__ = [
    "Attribute",
    "Design",
    "Estimate",
    "InputError",
    "Mechanism",
    "Model",
    "OpenedRelease",
    "Schema",
    "StrengthRequest",
    "birkhoff",
    "combine",
    "design",
    "estimate",
    "estimate_covariance",
    "estimate_groups",
    "estimate_mean",
    "estimate_quantile",
    "expected_tables",
    "form_agreement",
    "independence_test",
    "leverage",
    "model",
    "open_release",
    "plan",
    "plan_trend",
    "pram",
    "randomize",
    "read_design",
    "share",
    "smallest_epsilon",
    "synthesize",
    "trend_test",
]


_Answer = TypeVar("_Answer", bound=Tabular)


def _design(plan: Any) -> Design:
    """Return a design, also of the file or folder that has it."""
    if isinstance(plan, str | Path):
        return read_design(plan)
    if isinstance(plan, Design):
        return plan
    mechanism_of(plan)
    raise InputError("a bare mechanism has no record to write; give the design that it is of")


_Frame = TypeVar("_Frame", bound=EagerFrame)


@overload
def randomize(frame: _Frame, plan: Plan, **told: Unpack[Releasing]) -> _Frame: ...


@overload
def randomize(frame: Any, plan: Plan, **told: Unpack[Releasing]) -> Any: ...


@spelled_out(Options, options_of)
def randomize(frame: Any, plan: Plan, **told: Unpack[Releasing]) -> Any:
    """Randomize a dataframe.

    All arguments but these are as of :func:`share`.

    Args:
        frame: a pandas, Polars or pyarrow table (or another frame known to narwhals), a DuckDB
            relation, a pyarrow dataset, or a stream of record batches.
        plan: a design or its mechanism, or the file or folder that has it.

    Returns:
        A frame of the same kind, its columns in the same order; kept columns are untouched. What
        is fetched by record batches comes back as a pyarrow table, a lazy Polars frame as one that
        is not lazy.

    Raises:
        InputError: if the frame does not fit the schema; the sentence names row and column.

    Examples:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> deniable.randomize(frame, plan).shape
        (3, 1)
    """
    mechanism = mechanism_of(plan)
    refuse_other_tables(block.law for block in mechanism.blocks)
    schema = mechanism.schema
    options = options_of("deniable.randomize(…)", **told)
    refuse_drafted(schema, options)
    check_budget(mechanism, options.population)
    with open_rows(frame, schema, options) as reader:
        columns = Layout.of(mechanism).columns(reader)
        draw = Randomizer(mechanism, SystemRandomness()).randomize
        spending = Spending.of(Strata.one(mechanism))
        with remembered(options.population, spending, "randomize") as entry:
            rows = with_all_mismatches(reader, frame, schema, options)
            released = marked(randomize_frame(frame, columns, rows, draw), mechanism.digest)
            if entry is not None:
                entry.count()
        return released


@spelled_out(Options, options_of)
def share(
    table: Any,
    plan: Design | str | Path,
    output: str | Path,
    *,
    jobs: int | None = None,
    **told: Unpack[Publishing],
) -> dict[str, Any]:
    """Randomize a table and write a folder to publish.

    Several tables, or a Parquet file of several units (docs/scale.md), are released in parts by
    several processes. What is interrupted is continued by ``deniable share --resume``.

    Args:
        table: a path; several, as a list, a folder or a pattern; a dataframe, or what else
            :func:`randomize` takes.
        plan: a design, or the file or folder that has it.
        output: the folder to make.
        shuffle: release the rows in random order.
        person: a column that says whose row it is; it is dropped, and ε per person is reported.
        person_epsilon: the most ε of all rows of one person, in nats; by default the ε of one row,
            so that a table with several rows of a person is refused.
        also: as which kinds of files the rows are written too: "sav", "dta", "parquet", "csv".
        drop_other_columns: leave out columns that the schema neither declares nor keeps, instead
            of refusing them.
        accept_drafted: release attributes whose categories or edges were read off the data.
        overwrite: replace an existing release.
        sign: private Ed25519 key (PEM or OpenSSH) to sign the release with; its pass phrase stands
            in the environment variable DENIABLE_SIGN_PASSPHRASE.
        ledger: the file in which releases are counted (docs/howto/ledger.md); by default the one
            that the environment variable DENIABLE_LEDGER names, if there is one.
        population: whose data these are, for the ledger.
        new_population: whether it is not in the ledger yet, which is asked where that has budgets.
        new_ledger: whether the file of the ledger may not exist yet and is begun then; by default
            only one that ``ledger`` names.
        jobs: processes that work on parts; by default one for every core.

    Returns:
        All that is told of the release: the record as in ``record.json``, and sentences.

    Raises:
        InputError: if the table does not fit the schema, or the folder cannot be made.

    Examples:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> record = deniable.share(frame, plan, "release", shuffle=True)
        >>> record["release"]["rows"], sorted(path.name for path in Path("release").iterdir())
        (3, ['codebook.csv', 'data.parquet', 'record.json', 'report.html'])
    """
    options = options_of("deniable.share(…)", **told)
    made = _design(plan)
    schema, spending = made.mechanism.schema, Spending.of(Strata.one(made.mechanism))
    check = Check(schema, Path(output), options, Problems(), spending)
    check.refuse_before_rows(table)
    if (parts := parts_of(table)) is not None:
        return share_parts(parts, made, Path(output), options, jobs=jobs)
    check.look(table)
    check.problems.refuse()
    return write_release(table, made, Path(output), options, SystemRandomness())


@spelled_out(Options, options_of)
def pram(
    table: Any,
    schema: Schema,
    output: str | Path,
    *,
    request: StrengthRequest | None = None,
    by: str | None = None,
    per_stratum: Mapping[str, StrengthRequest] | None = None,
    invariant: bool = False,
    alpha: float = 1.0,
    numeric: Mapping[str, float] | None = None,
    **told: Unpack[Publishing],
) -> dict[str, Any]:
    """Randomize a whole collected table (post-randomization) and write a folder to publish.

    All arguments but these are as of :func:`share`.

    Args:
        table: a path or a dataframe; it is held in memory.
        schema: the attributes, and the columns released as they are.
        request: how strongly to randomize, by λ, strength, covariances or matrices.
        by: a kept column whose values form strata.
        per_stratum: how strongly to randomize single strata, instead of ``request``.
        invariant: keep the table's frequencies in expectation; no differential privacy.
        alpha: with ``invariant``, a value is left as it is with probability 1 − alpha.
        numeric: λ by column of numbers to pull towards its mean; no differential privacy.

    Returns:
        All that is told of the release: the record as in ``record.json``, and sentences; its
        guarantee says what holds instead where ε does not.

    Raises:
        InputError: if the table does not fit the schema, a stratum has no rows or no strength,
            or the folder cannot be made.

    Examples:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> request = deniable.StrengthRequest(attenuation=0.8)
        >>> deniable.pram(frame, schema, "pram", request=request)["release"]["rows"]
        3
    """
    treatment = Treatment(
        schema,
        request or StrengthRequest(),
        by=by,
        strata=per_stratum or {},
        invariant=invariant,
        alpha=alpha,
        numeric=numeric or {},
    )
    options = options_of("deniable.pram(…)", **told)
    check = Check(schema, Path(output), options, Problems(), numeric=list(treatment.numeric))
    with check.problems.at("ledger"):
        check_budget_of_treatment(treatment, options, Path(output))
    check.refuse_before_rows(table)
    check.look(table)
    check.problems.refuse()
    return write_treated(table, treatment, Path(output), options, SystemRandomness())


def birkhoff(matrix: NDArray[np.float64]) -> Decomposition:
    """Write a bistochastic matrix as a mixture of permutations, the identity as heavy as can be.

    Source: Ruiz, "λ-randomization", Theorem 3 and Corollary 1. A subject can then randomize
    without tables: draw a permutation with its weight, and answer the category to which it sends
    the truth.

    Args:
        matrix: square, entries above 0, rows and columns adding up to 1; ``matrix[y, x]`` =
            Pr[output y | input x].

    Returns:
        Permutations and weights in integers; ``rebuild()`` gives the matrix back exactly.

    Raises:
        InputError: if the matrix is not bistochastic; the sentence names the row or column.

    Examples:
        >>> mixture = birkhoff(np.array([[0.75, 0.25], [0.25, 0.75]]))
        >>> mixture.permutations, [weight / mixture.total for weight in mixture.weights]
        (((0, 1), (1, 0)), [0.75, 0.25])
        >>> mixture.rebuild() == [[3 * 2**62, 2**62], [2**62, 3 * 2**62]]
        True
    """
    return decompose(bistochastic_channel(matrix).weights)


@spelled_out(Shares)
def estimate(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[SharesAsked],
) -> Estimate:
    """Estimate a marginal, a joint table, or shares within subgroups.

    Args:
        released: a folder made by :func:`share`, one or several paths, or a dataframe.
        plan: what randomized it, or the file that says so; may be left out for a folder.
        of: the attributes of the table: names, or one text as for a shell (``"race,hhi"``).
        by: attributes that form subgroups, likewise; for kept columns see :func:`estimate_groups`.
        where: conditions on kept columns that select rows: values by column (``{"region": "south",
            "wave": [1, 2]}``), or texts such as ``["age>=18", "region!=south"]``.
        weights: a kept column with a weight per row. Rows without one, or without a value in a kept
            column among ``by``, are left out; ``.selection`` of the answer has their number.
        level: probability that an interval holds; 0.95 by default.
        method: ``inversion`` (the default), ``em`` or ``projected``.
        target: ``table`` (the default) or ``population``, what the standard errors are for.
        known: a CSV file of shares known exactly, which the answer then has.
        answered: count only people who answered: whose true value is the declared missing category
            in none of the attributes.
        anyway: go on with a table that the mechanism cannot have released (p-value below 1e-6).
        randomized: confirms that ``plan`` randomized the table, as of :func:`open_release`, which
            warns of a table that nothing identifies as a release.

    Returns:
        The estimate, with ``.table()`` and ``.confidence_interval(level)``; ``.interval_method``
        names the kind of intervals.

    Raises:
        InputError: if the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=1)
        >>> released = pyarrow.table({"smokes": ["no"] * 620 + ["yes"] * 380})
        >>> for cell in deniable.estimate(released, plan, of=["smokes"]).table():
        ...     print(f"{cell['smokes']:4}{cell['estimate']:6.3f} ± {cell['standard_error']:.3f}")
        no   0.760 ± 0.030
        yes  0.240 ± 0.030
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).shares(of, **asked)
    )


def _only(answers: Answers[_Answer]) -> _Answer:
    """Return the one answer that there is."""
    if len(answers) != 1:
        raise InputError(
            f"a column that is released as it is forms {len(answers)} groups of rows, with an "
            "answer each; ask an opened release for all of them (deniable.open_release), or for "
            "one group of rows at a time with where={'column': 'value'}"
        )
    return answers[0]


@spelled_out(Shares)
def estimate_groups(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[SharesAsked],
) -> Answers[Estimate]:
    """Estimate as :func:`estimate` does, a table for each group of rows.

    All arguments are as there; a kept column among ``by`` that the schema does not declare forms a
    group of rows for each of its values.

    Returns:
        One estimate per group, whose ``.group`` says which; one without such columns.

    Raises:
        InputError: as :func:`estimate`.

    Examples:
        >>> import deniable, pyarrow
        >>> smokes = deniable.Attribute("smokes", ("no", "yes"))
        >>> plan = deniable.design(deniable.Schema((smokes,), keep=("town",)), epsilon=1)
        >>> table = {"smokes": ["no", "yes"] * 500, "town": ["A"] * 600 + ["B"] * 400}
        >>> found = deniable.estimate_groups(pyarrow.table(table), plan, of="smokes", by="town")
        >>> [(dict(table.group), table.n_records) for table in found]
        [({'town': 'A'}, 600), ({'town': 'B'}, 400)]
    """
    return open_release(released, plan, anyway=anyway, randomized=randomized).shares(of, **asked)


@spelled_out(Mean)
def estimate_mean(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[MeanAsked],
) -> Answers[Summary]:
    """Estimate the mean score of an attribute, for everybody or per subgroup.

    All arguments but these are as of :func:`estimate`.

    Args:
        of: the attribute.
        scores: one number per category; ``middle`` for the middles of bins, whose mean is not that
            of the numbers that were binned; by default the schema's. Without any, the mean of bins
            is between ``low`` and ``high`` of its summary, and ``estimate`` is None.

    Raises:
        InputError: if the attribute has no scores, or the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
        >>> released = pyarrow.table({"age": ages})
        >>> (mean,) = deniable.estimate_mean(released, plan, of="age", scores=(19, 42, 70))
        >>> print(f"{mean.estimate:.1f} ± {mean.standard_error:.1f}")
        32.5 ± 0.7
        >>> (mean,) = deniable.estimate_mean(released, plan, of="age")
        >>> print(f"between {mean.low:.1f} and {mean.high:.1f}")
        between 15.1 and 48.4
    """
    return open_release(released, plan, anyway=anyway, randomized=randomized).mean(of, **asked)


@spelled_out(Quantile)
def estimate_quantile(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[QuantileAsked],
) -> Answers[Summary]:
    """Estimate a quantile of an ordered attribute, for everybody or per subgroup.

    All arguments but these are as of :func:`estimate`.

    Args:
        of: the attribute.
        probability: 0.5, the default, for the median.
        interpolate: of bins, answer by a number, as if values were spread evenly within each. By
            default the answer is the category, or the bin, that contains the quantile.

    Raises:
        InputError: if the attribute has no order, or the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
        >>> (median,) = deniable.estimate_quantile(pyarrow.table({"age": ages}), plan, of="age")
        >>> print(f"{median.estimate} with probability {median.confidence:.3f}")
        [0,30) with probability 1.000
    """
    return open_release(released, plan, anyway=anyway, randomized=randomized).quantile(of, **asked)


@spelled_out(Covariance)
def estimate_covariance(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[CovarianceAsked],
) -> CovarianceEstimate:
    """Estimate the original covariance of two attributes, without bias.

    All arguments but these are as of :func:`estimate`.

    Args:
        of: the two attributes.
        scores: one number per category for each of the two, or ``middle`` for the middles of bins;
            None takes the schema's.

    Returns:
        The estimate, with ``.confidence_interval(level)`` and what the mechanism left of it.

    Raises:
        InputError: if an attribute has no scores, or the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> scored = [deniable.Attribute(name, ("no", "yes"), scores=(0, 1)) for name in "ab"]
        >>> plan = deniable.design(deniable.Schema(tuple(scored)), epsilon=3)
        >>> a, b = ["no"] * 500 + ["yes"] * 500, ["no"] * 300 + ["yes"] * 500 + ["no"] * 200
        >>> covariance = deniable.estimate_covariance(
        ...     pyarrow.table({"a": a, "b": b}), plan, of=("a", "b")
        ... )
        >>> low, high = covariance.confidence_interval(0.95)
        >>> print(f"{covariance.estimate:.3f}, between {low:.3f} and {high:.3f}")
        0.060, between 0.050 and 0.071
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).covariance(of, **asked)
    )


@spelled_out(Independence)
def independence_test(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[IndependenceAsked],
) -> IndependenceTest:
    """Test whether two attributes are independent in the population the rows were drawn from.

    All arguments but these are as of :func:`estimate`.

    Args:
        of: the two attributes; one may be a kept column.
        answered: test among people who answered: whose true value is the declared missing category
            in neither attribute.

    Returns:
        χ², p-value and Cramér's V, corrected for the randomization; ``.to_plain(level)`` has the
        interval of V.

    Raises:
        InputError: if the question does not fit the release, or the randomization left nothing of
            how the two go together.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(2, 2))
        >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 270 + ["1"] * 500 + ["0"] * 230
        >>> released = pyarrow.table({"a1": first, "a2": second})
        >>> test = deniable.independence_test(released, plan, of=("a1", "a2"))
        >>> print(f"p = {test.p_value:.3f}, V = {test.to_plain()['cramers_v']:.2f}")
        p = 0.011, V = 0.10
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).test(of, **asked)
    )


@spelled_out(Trend)
def trend_test(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names = (),
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[TrendAsked],
) -> Answers[TrendTests]:
    """Test whether scores, such as numbers of alleles, go with a status of two values.

    All arguments but these are as of :func:`estimate`.

    Args:
        status: an attribute, or a kept column, that makes cases and controls.
        of: attributes with scores; by default all but the status.
        by: kept columns; every group of rows is tested by itself.
        scores: one number per category of each of them; by default the schema's.
        compare: the two values of the status; by default the two that it has, second less first.

    Returns:
        The tests of every group, with p-values adjusted for their number.

    Raises:
        InputError: if the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> snp = deniable.Attribute("rs1", ("0", "1", "2"), scores=(0, 1, 2))
        >>> plan = deniable.design(deniable.Schema((snp,), keep=("status",)), epsilon=2)
        >>> copies = ["0"] * 300 + ["1"] * 150 + ["2"] * 50 + ["0"] * 230 + ["1"] * 190 + ["2"] * 80
        >>> table = pyarrow.table({"rs1": copies, "status": ["0"] * 500 + ["1"] * 500})
        >>> (found,) = deniable.trend_test(table, plan, status="status")
        >>> print(f"z = {found.tests[0].z:.2f}, p = {found.tests[0].p_value:.1e}")
        z = 4.47, p = 7.8e-06
    """
    return open_release(released, plan, anyway=anyway, randomized=randomized).trend(of, **asked)


@spelled_out(Agreement)
def form_agreement(
    released: Any,
    plan: Plan | None = None,
    *,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[Asked],
) -> FormAgreement:
    """Test whether all forms of a release tell of one population.

    All arguments are as of :func:`estimate`.

    Returns:
        χ² of every attribute, with p-values adjusted by Holm; ``.p_value`` of all together.

    Raises:
        InputError: if the release has no forms, or its rows cannot be read.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((3, 4)), epsilon=2, method="forms")
        >>> table = pyarrow.table({"a1": ["0", "1"] * 500, "a2": ["1", "3"] * 500})
        >>> released = deniable.randomize(table, plan)
        >>> 0 <= deniable.form_agreement(released, plan).p_value <= 1
        True
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).agreement(**asked)
    )


@spelled_out(Leverage)
def leverage(
    released: Any,
    plan: Plan | None = None,
    *,
    of: Names,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[LeverageAsked],
) -> LeverageOfLiars:
    """Tell how far one liar in a hundred can move each share of a table.

    All arguments but these are as of :func:`estimate`.

    Args:
        of: the attributes of the table.

    Returns:
        A row per share, with forms assigned and chosen; ``.floor`` is what no range is below.

    Raises:
        InputError: if the question does not fit the release.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2,)), epsilon=1)
        >>> released = pyarrow.table({"a1": ["0", "1"] * 500})
        >>> found = deniable.leverage(released, plan, of="a1")
        >>> [round(row["moved"], 4) for row in found.table()], round(found.floor, 4)
        ([0.0108, 0.0108], 2.164)
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).leverage(of, **asked)
    )


@spelled_out(ModelQuestion)
def model(
    released: Any,
    formula: str,
    plan: Plan | None = None,
    *,
    anyway: bool = False,
    randomized: bool = False,
    **asked: Unpack[ModelAsked],
) -> Model:
    """Fit a regression or a log-linear model, through the known randomization.

    All arguments but these are as of :func:`estimate`.

    Args:
        formula: as in R and statsmodels: ``income ~ sex + race`` is a logistic regression, or a
            multinomial one if the response has more than two categories, or least squares if it is
            a column of numbers that is released as it is; ``~ sex*income`` is a log-linear model.
        collapse: how the model merges categories, by attribute, ``{"race": "White|*"}``: levels
            with ``|`` between them, the reference first; ``*`` for all others.
        prior: use the weak prior, N(0, 3²) on main effects and N(0, 2.5²) on associations; true
            by default.
        against: another formula, to test against; one has to hold the other.

    Returns:
        The fitted model; to fit one to every group of rows, ``open_release(…).model(…, by=…)``.

    Raises:
        InputError: if the formula does not fit the release, or the release cannot bear it.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(3, 3))
        >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 300 + ["1"] * 500 + ["0"] * 200
        >>> table = pyarrow.table({"a1": first, "a2": second})
        >>> row = deniable.model(table, "a2 ~ a1", plan).odds_ratios()[0]
        >>> print(f"{row['term']}: {row['odds_ratio']:.2f}, {row['low']:.2f} to {row['high']:.2f}")
        a1[T.1]: 2.45, 1.85 to 3.24
    """
    return _only(
        open_release(released, plan, anyway=anyway, randomized=randomized).model(formula, **asked)
    )
