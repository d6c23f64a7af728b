"""The Python interface to tables: as short as the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.design.account import Design
from deniable.design.design import design
from deniable.design.record import read_design
from deniable.design.strength import StrengthWishes
from deniable.errors import InputError
from deniable.estimate.covariance import Covariance, CovarianceEstimate, PairScores
from deniable.estimate.independence import Independence, IndependenceTest
from deniable.estimate.ordered import Mean, Quantile, Summary
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.shares import Method as EstimationMethod
from deniable.estimate.source import Release, open_release
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from deniable.release.curator import Treatment
from deniable.release.curator import pram as write_treated
from deniable.release.release import Options, refuse_other_tables
from deniable.release.release import share as write_release
from deniable.schema import Attribute, Schema
from deniable.solvers.patterns.birkhoff import Decomposition, decompose
from deniable.tables import open_table, randomize_frame, released_columns

__all__ = [
    "Attribute",
    "Design",
    "Estimate",
    "InputError",
    "Mechanism",
    "Schema",
    "StrengthWishes",
    "birkhoff",
    "design",
    "estimate",
    "estimate_covariance",
    "estimate_mean",
    "estimate_quantile",
    "independence_test",
    "pram",
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

    Example:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> deniable.randomize(frame, plan).shape
        (3, 1)
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

    Example:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> record = deniable.share(frame, plan, "release", shuffle=True)
        >>> record["release"]["rows"], sorted(path.name for path in Path("release").iterdir())
        (3, ['codebook.csv', 'data.parquet', 'record.json', 'report.html'])
    """
    options = Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=overwrite,
        command="deniable.share(…)",
    )
    return write_release(table, plan, Path(output), options, SystemRandomness())


def pram(
    table: Any,
    schema: Schema,
    output: str | Path,
    *,
    wishes: StrengthWishes | None = None,
    by: str | None = None,
    per_stratum: Mapping[str, StrengthWishes] | None = None,
    invariant: bool = False,
    alpha: float = 1.0,
    numeric: Mapping[str, float] | None = None,
    shuffle: bool = False,
    person: str | None = None,
    drop_other_columns: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Randomize a whole collected table (post-randomization) and write a folder to publish.

    Args:
        table: a path or a dataframe; it is held in memory.
        schema: the attributes, and the columns released as they are.
        wishes: how strongly to randomize, by λ, strength, covariances or matrices.
        by: a kept column whose values form strata.
        per_stratum: how strongly to randomize single strata, instead of ``wishes``.
        invariant: keep the table's frequencies in expectation; no differential privacy.
        alpha: with ``invariant``, a value is left as it is with probability 1 − alpha.
        numeric: λ by column of numbers to pull towards its mean; no differential privacy.
        shuffle: release the rows in random order.
        person: a column that says whose row it is; it is dropped, and ε per person is reported.
        drop_other_columns: leave out columns that the schema neither declares nor keeps.
        overwrite: replace an existing release.

    Returns:
        The record, as in ``record.json``; its guarantee says what holds instead where ε does not.

    Raises:
        InputError: if the table does not fit the schema, a stratum has no rows or no strength,
            or the folder cannot be made.

    Example:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"]})
        >>> wishes = deniable.StrengthWishes(attenuation=0.8)
        >>> deniable.pram(frame, schema, "pram", wishes=wishes)["release"]["rows"]
        3
    """
    treatment = Treatment(
        schema,
        wishes or StrengthWishes(),
        by=by,
        strata=per_stratum or {},
        invariant=invariant,
        alpha=alpha,
        numeric=numeric or {},
    )
    options = Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=overwrite,
        command="deniable.pram(…)",
    )
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

    Example:
        >>> mixture = birkhoff(np.array([[0.75, 0.25], [0.25, 0.75]]))
        >>> mixture.permutations, [weight / mixture.total for weight in mixture.weights]
        (((0, 1), (1, 0)), [0.75, 0.25])
        >>> mixture.rebuild() == [[3 * 2**62, 2**62], [2**62, 3 * 2**62]]
        True
    """
    return decompose(bistochastic_channel(matrix).weights)


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
        where: the value that selects rows, by kept column; to group by one, call once a value.
        weights: a kept column with a weight per row.
        method: ``inversion``, ``em`` or ``projected``.
        target: ``table`` or ``population``, what the standard errors are for.

    Returns:
        The estimate, with ``.table()`` and ``.confidence_interval(level)``; ``.interval_method``
        names the kind of intervals.

    Raises:
        InputError: if the question does not fit the release.

    Example:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=1)
        >>> released = pyarrow.table({"smokes": ["no"] * 620 + ["yes"] * 380})
        >>> for cell in deniable.estimate(released, plan, of=["smokes"]).table():
        ...     print(f"{cell['smokes']:4}{cell['estimate']:6.3f} ± {cell['standard_error']:.3f}")
        no   0.760 ± 0.030
        yes  0.240 ± 0.030
    """
    question = Shares(
        tuple(of), by=tuple(by), where=where or {}, weights=weights, method=method, target=target
    )
    release = _release(released, plan)
    schema = release.strata.schema
    if kept := [name for name in by if name in schema.keep and name not in schema.names]:
        raise InputError(
            f"'{kept[0]}' is a kept column without declared categories; select one group of rows "
            f"at a time with where={{'{kept[0]}': …}}"
        )
    (table,) = question.ask(release)
    return table


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
        level: probability that an interval holds.

    Raises:
        InputError: if the attribute has no scores, or the question does not fit the release.

    Example:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
        >>> (mean,) = deniable.estimate_mean(pyarrow.table({"age": ages}), plan, of="age")
        >>> print(f"{mean.estimate:.1f} ± {mean.standard_error:.1f}")
        31.8 ± 0.8
    """
    question = Mean((of,), by=tuple(by), target=target, level=level, scores=scores)
    return question.ask(_release(released, plan))


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
        level: probability that an interval holds.

    Raises:
        InputError: if the attribute has no order, or the question does not fit the release.

    Example:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
        >>> (median,) = deniable.estimate_quantile(pyarrow.table({"age": ages}), plan, of="age")
        >>> print(f"{median.estimate:.1f}, between {median.low:.1f} and {median.high:.1f}")
        25.9, between 24.5 and 27.5
    """
    question = Quantile((of,), by=tuple(by), target=target, level=level, probability=probability)
    return question.ask(_release(released, plan))


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
        scores: one number per category for each of the two; None takes the schema's, or the middles
            of bins.
        where: the value that selects rows, by kept column.
        weights: a kept column with a weight per row.
        target: ``table`` or ``population``, what the standard error is for.

    Returns:
        The estimate, with ``.confidence_interval(level)`` and what the mechanism left of it.

    Raises:
        InputError: if an attribute has no scores, or the question does not fit the release.

    Example:
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
    question = Covariance(
        tuple(of), where=where or {}, weights=weights, target=target, scores=scores
    )
    (covariance,) = question.ask(_release(released, plan))
    return covariance


def independence_test(
    released: Any,
    plan: Design | Mechanism | None = None,
    *,
    of: tuple[str, str],
    where: Mapping[str, str] | None = None,
) -> IndependenceTest:
    """Test whether two attributes are independent in the population the rows were drawn from.

    Args:
        released: a folder made by :func:`share`, a path, or a dataframe.
        plan: what randomized it; may be left out for a folder.
        of: the two attributes; one may be a kept column.
        where: the value that selects rows, by kept column.

    Returns:
        χ², p-value and Cramér's V, corrected for the randomization; ``.to_plain(level)`` has the
        interval of V.

    Raises:
        InputError: if the question does not fit the release, or the randomization left nothing of
            how the two go together.

    Example:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(2, 2))
        >>> first, second = ["0"] * 500 + ["1"] * 500, ["0"] * 270 + ["1"] * 500 + ["0"] * 230
        >>> released = pyarrow.table({"a1": first, "a2": second})
        >>> test = deniable.independence_test(released, plan, of=("a1", "a2"))
        >>> print(f"p = {test.p_value:.3f}, V = {test.to_plain()['cramers_v']:.2f}")
        p = 0.011, V = 0.10
    """
    (test,) = Independence(tuple(of), where=where or {}).ask(_release(released, plan))
    return test


def _release(released: Any, plan: Design | Mechanism | None) -> Release:
    return open_release(released, None if plan is None else Strata.one(_mechanism(plan)))
