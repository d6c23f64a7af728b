"""The Python interface to tables: as short as the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable.analysis import Answer, Question, answer
from deniable.covariance import CovarianceEstimate, PairScores
from deniable.designing import design
from deniable.errors import InputError
from deniable.estimation import Estimate
from deniable.estimation import Method as EstimationMethod
from deniable.inference import Target
from deniable.mechanism import Mechanism
from deniable.ordered import Summary
from deniable.plan import Design
from deniable.pram import refuse_other_tables
from deniable.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.record import read_design
from deniable.release import Options
from deniable.release import share as write_release
from deniable.schema import Attribute, Schema
from deniable.tables import open_table, randomize_frame, released_columns

__all__ = [
    "Attribute",
    "Design",
    "Estimate",
    "InputError",
    "Mechanism",
    "Schema",
    "design",
    "estimate",
    "estimate_covariance",
    "estimate_mean",
    "estimate_quantile",
    "randomize",
    "read_design",
    "share",
]


def _mechanism(plan: Design | Mechanism) -> Mechanism:
    return plan.mechanism if isinstance(plan, Design) else plan


def randomize(frame: Any, plan: Design | Mechanism, *, drop_other_columns: bool = False) -> Any:
    """Randomize a dataframe.

    Args:
        frame: a pandas, Polars or pyarrow table (or another eager frame known to narwhals).
        plan: a design or its mechanism.
        drop_other_columns: leave out columns that the schema neither declares nor keeps, instead
            of refusing them.

    Returns:
        A frame of the same kind, its columns in the same order; kept columns are untouched.

    Raises:
        InputError: if the frame does not fit the schema; the sentence names row and column.
    """
    mechanism = _mechanism(plan)
    refuse_other_tables(block.law for block in mechanism.blocks)
    schema = mechanism.schema
    with open_table(
        frame,
        schema.attributes,
        schema.keep,
        other_columns="drop" if drop_other_columns else "refuse",
    ) as reader:
        columns = released_columns(
            reader.columns, schema.attributes, schema.keep, mechanism.output_labels
        )
        draw = Randomizer(mechanism, SystemRandomness()).randomize
        return randomize_frame(frame, columns, iter(reader), draw)


def share(
    table: Any,
    plan: Design,
    output: str | Path,
    *,
    shuffle: bool = False,
    person: str | None = None,
    drop_other_columns: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Randomize a table and write a folder to publish.

    Args:
        table: a path or a dataframe.
        plan: a design.
        output: the folder to make.
        shuffle: release the rows in random order.
        person: a column that says whose row it is; it is dropped, and ε per person is reported.
        drop_other_columns: leave out columns that the schema neither declares nor keeps.
        overwrite: replace an existing release.

    Returns:
        The record, as in ``record.json``.

    Raises:
        InputError: if the table does not fit the schema, or the folder cannot be made.
    """
    options = Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=overwrite,
        command="deniable.share(…)",
    )
    return write_release(table, plan, Path(output), options, SystemRandomness())


def estimate(
    released: Any,
    plan: Design | Mechanism | None = None,
    *,
    of: Sequence[str],
    by: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    weights: str | None = None,
    method: EstimationMethod = "inversion",
    target: Target = "table",
) -> Estimate:
    """Estimate a marginal, a joint table, or shares within subgroups.

    Args:
        released: a folder made by :func:`share`, a path, or a dataframe.
        plan: what randomized it; may be left out for a folder.
        of: the attributes of the table.
        by: attributes that form subgroups.
        where: kept columns and the value that selects rows; group by a kept column with this.
        weights: a kept column with a weight per row.
        method: ``inversion``, ``em`` or ``projected``.
        target: ``table`` or ``population``; decides the standard errors.

    Returns:
        The estimate, with ``.table()`` and ``.confidence_interval(level)``.

    Raises:
        InputError: if the question does not fit the release.
    """
    _refuse_kept(plan, by)
    question = Question(
        tuple(of), tuple(by), dict(where or {}), weights, method=method, target=target
    )
    (found,) = _answers(question, released, plan)
    if not isinstance(found, Estimate):
        raise TypeError("a table was asked for")
    return found


def estimate_mean(
    released: Any,
    plan: Design | Mechanism | None = None,
    *,
    of: str,
    by: Sequence[str] = (),
    scores: Sequence[float] | None = None,
    target: Target = "table",
    level: float = 0.95,
) -> list[Summary]:
    """Estimate the mean score of an attribute, for everybody or per subgroup.

    Args:
        released: a folder made by :func:`share`, a path, or a dataframe.
        plan: what randomized it; may be left out for a folder.
        of: the attribute.
        by: attributes or kept columns that form subgroups.
        scores: one number per category; by default the schema's, or the middles of the bins.
        target: ``table`` or ``population``.
        level: of the intervals.

    Raises:
        InputError: if the attribute has no scores, or the question does not fit the release.
    """
    question = Question((of,), tuple(by), target=target, level=level, mean=True, scores=scores)
    return [s for s in _answers(question, released, plan) if isinstance(s, Summary)]


def estimate_quantile(
    released: Any,
    plan: Design | Mechanism | None = None,
    *,
    of: str,
    probability: float = 0.5,
    by: Sequence[str] = (),
    target: Target = "table",
    level: float = 0.95,
) -> list[Summary]:
    """Estimate a quantile of an ordered attribute, for everybody or per subgroup.

    Args:
        released: a folder made by :func:`share`, a path, or a dataframe.
        plan: what randomized it; may be left out for a folder.
        of: the attribute.
        probability: 0.5 for the median.
        by: attributes or kept columns that form subgroups.
        target: ``table`` or ``population``.
        level: of the intervals.

    Raises:
        InputError: if the attribute has no order, or the question does not fit the release.
    """
    question = Question((of,), tuple(by), target=target, level=level, quantile=probability)
    return [s for s in _answers(question, released, plan) if isinstance(s, Summary)]


def estimate_covariance(
    released: Any,
    plan: Design | Mechanism | None = None,
    *,
    of: tuple[str, str],
    scores: PairScores = (None, None),
    where: Mapping[str, str] | None = None,
    weights: str | None = None,
    target: Target = "table",
) -> CovarianceEstimate:
    """Estimate the original covariance of two attributes, without bias.

    Args:
        released: a folder made by :func:`share`, a path, or a dataframe.
        plan: what randomized it; may be left out for a folder.
        of: the two attributes.
        scores: one number per category of either; None takes the schema's, or the middles of bins.
        where: kept columns and the value that selects rows.
        weights: a kept column with a weight per row.
        target: ``table`` or ``population``; decides the standard error.

    Returns:
        The estimate, with ``.confidence_interval(level)`` and what the mechanism left of it.

    Raises:
        InputError: if an attribute has no scores, or the question does not fit the release.
    """
    question = Question(
        tuple(of),
        where=dict(where or {}),
        weights=weights,
        target=target,
        covariance=True,
        pair_scores=scores,
    )
    (found,) = _answers(question, released, plan)
    if not isinstance(found, CovarianceEstimate):
        raise TypeError("a covariance was asked for")
    return found


def _answers(question: Question, released: Any, plan: Design | Mechanism | None) -> list[Answer]:
    return answer(question, released, None if plan is None else _mechanism(plan))


def _refuse_kept(plan: Design | Mechanism | None, by: Sequence[str]) -> None:
    if plan is None:
        return
    schema = _mechanism(plan).schema
    if kept := [name for name in by if name in schema.keep and name not in schema.names]:
        raise InputError(
            f"'{kept[0]}' is a kept column without declared categories; select one group of rows "
            f"at a time with where={{'{kept[0]}': …}}"
        )
