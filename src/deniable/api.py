"""The Python interface to tables: as short as the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from deniable._checks import typed
from deniable.design.design import design
from deniable.design.request import DesignRequest, StrengthRequest
from deniable.engines.processes import parts_of, share_parts
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement
from deniable.estimate.comparing import Comparison
from deniable.estimate.correlation import Correlation
from deniable.estimate.covariance import Covariance
from deniable.estimate.distribution import Distribution
from deniable.estimate.honesty import Honesty
from deniable.estimate.independence import Independence
from deniable.estimate.leverage import Leverage
from deniable.estimate.ordered import Deviation, Mean, Quantile
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.trend import Trend
from deniable.laws.bistochastic import bistochastic_channel
from deniable.ledger import Spending, remembered
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.models.model import Model
from deniable.models.query import ModelQuery
from deniable.models.smoothing import Smooth
from deniable.opened import (
    OpenedRelease,
    Plan,
    mechanism_of,
    open,  # noqa: A004 - called as deniable.open
)
from deniable.planning.sample_size import plan
from deniable.planning.trend_power import plan_trend
from deniable.randomness import SystemRandomness
from deniable.release.checking import Check, Problems
from deniable.release.curator import Treatment
from deniable.release.curator import check_budget as check_budget_of_treatment
from deniable.release.curator import pram as write_treated
from deniable.release.publication import Publication, refuse_folder
from deniable.release.release import (
    Layout,
    check_budget,
    open_rows,
    opened,
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
from deniable.synthesis.estimators import Classifier, Regressor
from deniable.synthesis.folder import synthesize
from deniable.tables.frames import EagerFrame, marked, randomize_frame

__all__ = [
    "Agreement",
    "Attribute",
    "Classifier",
    "Comparison",
    "Correlation",
    "Covariance",
    "Design",
    "DesignRequest",
    "Deviation",
    "Distribution",
    "Estimate",
    "Honesty",
    "Independence",
    "InputError",
    "Leverage",
    "Mean",
    "Mechanism",
    "Model",
    "ModelQuery",
    "OpenedRelease",
    "Publication",
    "Quantile",
    "Regressor",
    "Schema",
    "Shares",
    "Smooth",
    "StrengthRequest",
    "Trend",
    "birkhoff",
    "combine",
    "design",
    "expected_tables",
    "open",
    "plan",
    "plan_trend",
    "pram",
    "randomize",
    "read_design",
    "share",
    "synthesize",
]


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
def randomize(frame: _Frame, plan: Plan, publication: Publication | None = None) -> _Frame: ...


@overload
def randomize(frame: Any, plan: Plan, publication: Publication | None = None) -> Any: ...


@typed
def randomize(frame: Any, plan: Plan, publication: Publication | None = None) -> Any:
    """Randomize a dataframe.

    Args:
        frame: a pandas, Polars or pyarrow table (or another frame known to narwhals), a DuckDB
            relation, a pyarrow dataset, or a stream of record batches.
        plan: a design or its mechanism, or the file or folder that has it.
        publication: options of the release, other than those of a folder.

    Returns:
        A frame of the same kind with its columns in the same order, kept columns unchanged; a
        pyarrow table for a source of record batches, an eager Polars frame for a lazy one.

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
    refuse_folder(publication or Publication())
    options = opened(publication, "deniable.randomize(…)")
    refuse_drafted(schema, options)
    check_budget(mechanism, options.people)
    bits = SystemRandomness()
    with open_rows(frame, schema, options, bits=bits) as reader:
        columns = Layout.of(mechanism).columns(reader)
        draw = Randomizer(mechanism, bits).randomize
        spending = Spending.of(Strata.one(mechanism))
        with remembered(options.people, spending, "randomize") as entry:
            rows = with_all_mismatches(reader, frame, schema, options)
            released = marked(randomize_frame(frame, columns, rows, draw), mechanism.digest)
            if entry is not None:
                entry.count()
        return released


@typed
def share(
    table: Any,
    plan: Design | str | Path,
    output: str | Path,
    publication: Publication | None = None,
    *,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Randomize a table and write a folder to publish.

    Several tables, or a Parquet file of several units (docs/scale.md), are released in parts by
    several processes; ``deniable share --resume`` resumes them after an interruption.

    Args:
        table: a path; several, as a list, a folder or a pattern; a dataframe or another argument
            of :func:`randomize`.
        plan: a design, or the file or folder that has it.
        output: the folder to make.
        publication: options of the release.
        jobs: processes that work on parts; by default one for every core.

    Returns:
        The record as in ``record.json``, and sentences.

    Raises:
        InputError: if the table does not fit the schema, or the folder cannot be made.

    Examples:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> shuffled = deniable.Publication(shuffle=True)
        >>> record = deniable.share(frame, plan, "release", shuffled)
        >>> record["release"]["rows"], sorted(path.name for path in Path("release").iterdir())
        (3, ['codebook.csv', 'data.parquet', 'record.json', 'report.html'])
    """
    options = opened(publication, "deniable.share(…)")
    made = _design(plan)
    schema, spending = made.mechanism.schema, Spending.of(Strata.one(made.mechanism))
    check = Check(schema, Path(output), options, Problems(), spending)
    check.refuse_before_rows(table)
    if (parts := parts_of(table)) is not None:
        return share_parts(parts, made, Path(output), options, jobs=jobs)
    check.look(table)
    check.problems.refuse()
    return write_release(table, made, Path(output), options, SystemRandomness())


@typed
def pram(
    table: Any,
    schema: Schema,
    output: str | Path,
    publication: Publication | None = None,
    *,
    request: StrengthRequest | None = None,
    by: str | None = None,
    per_stratum: Mapping[str, StrengthRequest] | None = None,
    invariant: bool = False,
    alpha: float = 1.0,
    numeric: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Randomize a whole collected table (post-randomization) and write a folder to publish.

    Args:
        table: a path or a dataframe; it is held in memory.
        schema: the attributes and the kept columns.
        publication: options of the release.
        request: how strongly to randomize, by λ, strength, covariances or matrices.
        by: a kept column whose values form strata.
        per_stratum: how strongly to randomize single strata, instead of ``request``.
        invariant: keep the table's frequencies in expectation; no differential privacy.
        alpha: with ``invariant``, a value is unchanged with probability 1 − alpha.
        numeric: λ by column of numbers to pull towards its mean; no differential privacy.

    Returns:
        The record as in ``record.json``, and sentences; its guarantee states the protection of
        columns without ε.

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
    options = opened(publication, "deniable.pram(…)")
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
