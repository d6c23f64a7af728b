"""A question about a release, answered: counts from the right rows, then the right estimate."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deniable.design.record import read_json
from deniable.design.strata import read_designs
from deniable.errors import InputError
from deniable.estimate.counting import Count, count_rows, read_counts
from deniable.estimate.covariance import CovarianceEstimate, PairScores, estimate_covariance
from deniable.estimate.independence import IndependenceTest
from deniable.estimate.ordered import Summary, estimate_mean, estimate_quantile
from deniable.estimate.shares import Estimate, estimate_table
from deniable.estimate.strata import AnyMechanism
from deniable.estimate.testing import independence_of_counts, independence_of_rows
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.strata import Strata


@dataclass(frozen=True)
class Question:
    """What to estimate.

    Args:
        of: the attributes of the table, or the one attribute of a mean or quantile; parts of
            merged attributes count as attributes.
        by: attributes or kept columns that form subgroups.
        where: kept columns and the value that selects rows.
        weights: kept column with a weight per row.
        method: ``inversion``, ``em`` or ``projected``.
        target: ``table`` or ``population``.
        level: of the intervals.
        mean: whether the mean score is asked for.
        quantile: the probability of a quantile, if one is asked for.
        covariance: whether the covariance of two attributes is asked for.
        pair_scores: one number per category of either attribute, for a covariance.
        independence: whether a test of independence of two attributes is asked for; one of them may
            be a kept column that the schema does not declare.
        scores: one number per category, for a mean.
        show_values: let error messages show values of the table.
    """

    of: tuple[str, ...]
    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    weights: str | None = None
    method: str = "inversion"
    target: str = "table"
    level: float = 0.95
    mean: bool = False
    quantile: float | None = None
    scores: Sequence[float] | None = None
    covariance: bool = False
    pair_scores: PairScores = (None, None)
    independence: bool = False
    show_values: bool = False


Answer = Estimate | Summary | CovarianceEstimate | IndependenceTest


def answer(
    question: Question,
    source: Any = None,
    mechanism: Path | Mechanism | None = None,
    counts: Path | None = None,
) -> list[Answer]:
    """Answer a question about released rows or counts.

    Args:
        question: what to estimate.
        source: a release's folder, a randomized table, or a dataframe.
        mechanism: what randomized it; may be left out for a folder.
        counts: a file of counts instead of rows.

    Returns:
        One estimate per group of kept columns; several summaries if there are subgroups.

    Raises:
        InputError: if the question does not fit the release.
    """
    if not question.of:
        raise InputError("no attribute is named whose shares are wanted; name one or more")
    chosen, table = _find(source, mechanism, counts)
    if question.independence and counts is None:
        if question.weights is not None:
            raise InputError("the test of independence takes no weights; leave them out")
        return [
            *independence_of_rows(
                table,
                chosen,
                question.of,
                by=question.by,
                where=question.where,
                show_values=question.show_values,
            )
        ]
    known = {*chosen.schema.names, *chosen.schema.columns}
    attributes = [name for name in question.by if name in known]
    kept = [name for name in question.by if name not in attributes]
    names = [*question.of, *attributes]
    if counts is not None:
        if isinstance(chosen, Strata) and chosen.column is not None:
            raise InputError(
                f"the strata of '{chosen.column}' have a mechanism each, so counts are not enough; "
                "give the released rows"
            )
        if kept or question.where or question.weights:
            raise InputError(
                "counts have no rows to group, select or weigh; count each group by itself"
            )
        groups = [Count((), read_counts(counts, _only(chosen), names))]
    else:
        groups = count_rows(
            table,
            chosen,
            names,
            by=kept,
            where=question.where,
            weights=question.weights,
            show_values=question.show_values,
        )
    return [part for group in groups for part in _answers(question, chosen, attributes, group)]


def _answers(
    question: Question, mechanism: AnyMechanism, by: Sequence[str], count: Count
) -> Sequence[Answer]:
    if question.independence:
        return [independence_of_counts(count.tabulation, mechanism, question.of, count.group)]
    if question.covariance:
        return [_covariance(question, mechanism, by, count)]
    if not question.mean and question.quantile is None:
        if question.scores is not None:
            raise InputError("scores are for a mean; ask for the mean too")
        return [
            estimate_table(
                count.tabulation,
                mechanism,
                question.of,
                by,
                method=question.method,  # type: ignore[arg-type]  # checked there
                target=question.target,  # type: ignore[arg-type]  # checked there
                group=count.group,
            )
        ]
    if question.mean and question.quantile is not None:
        raise InputError("ask for the mean or for a quantile, not for both at once")
    if len(question.of) != 1:
        raise InputError("a mean or a quantile is of one attribute; use by for subgroups")
    if question.method != "inversion":
        raise InputError("means and quantiles are estimated by method inversion only")
    if question.mean:
        summaries = estimate_mean(
            count.tabulation,
            mechanism,
            question.of[0],
            by,
            scores=question.scores,
            target=question.target,  # type: ignore[arg-type]  # checked there
            level=question.level,
        )
    elif question.quantile is not None:
        summaries = estimate_quantile(
            count.tabulation,
            mechanism,
            question.of[0],
            question.quantile,
            by,
            target=question.target,  # type: ignore[arg-type]  # checked there
            level=question.level,
        )
    return [replace(summary, group=count.group + summary.group) for summary in summaries]


def _covariance(
    question: Question, mechanism: AnyMechanism, by: Sequence[str], count: Count
) -> CovarianceEstimate:
    if question.mean or question.quantile is not None:
        raise InputError("ask for the covariance, the mean or a quantile, not for two at once")
    if len(question.of) != 2:
        raise InputError("a covariance is of two attributes; name both of them, as in a,b")
    if by:
        raise InputError(
            f"a covariance is not estimated within subgroups of '{by[0]}', which is randomized; "
            "group by a column released as it is"
        )
    if question.method != "inversion":
        raise InputError("covariances are estimated by method inversion only")
    first, second = question.of
    found = estimate_covariance(
        count.tabulation,
        mechanism,
        (first, second),
        scores=question.pair_scores,
        target=question.target,  # type: ignore[arg-type]  # checked there
    )
    return replace(found, group=count.group)


def _only(mechanism: AnyMechanism) -> Mechanism:
    return mechanism if isinstance(mechanism, Mechanism) else mechanism.mechanism_of("")


def _find(
    source: Any, mechanism: Path | Mechanism | None, counts: Path | None
) -> tuple[AnyMechanism, Any]:
    if isinstance(mechanism, Mechanism):
        return mechanism, source
    is_path = isinstance(source, str | Path)
    folder = Path(source) if is_path and Path(source).is_dir() else None
    if is_path and str(source) != "-" and not Path(source).exists():
        raise InputError(f"{source}: there is no such file or folder")
    if mechanism is None and folder is None:
        raise InputError(
            "name a folder made by share, or say with --mechanism what randomized the table"
        )
    chosen = read_designs(mechanism or folder or Path()).strata
    if counts is not None:
        if source is not None and folder is None:
            raise InputError("give either rows or counts, not both")
        return chosen, None
    if source is None:
        raise InputError("name the randomized table, or a file of counts with --counts")
    return chosen, source if folder is None else released_file(folder)


def released_file(folder: Path) -> Path:
    """Return the rows of a release, after checking that they are the ones its record speaks of.

    Raises:
        InputError: if the file is missing or its digest is another.
    """
    release = read_json(folder / "record.json").get("release")
    if not isinstance(release, dict):
        raise InputError(f"{folder / 'record.json'}: this is not the record of a release")
    path = folder / str(release.get("file"))
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    if digest != release.get("sha256"):
        raise InputError(
            f"{path} is not the file that {folder / 'record.json'} was made for (its SHA-256 "
            "differs); get both from the same release"
        )
    return path


def to_plain(answers: Sequence[Answer], level: float) -> dict[str, Any]:
    """Return answers for strict JSON: one estimate, covariance or test as such, several under
    ``groups``, means and quantiles under ``summaries``."""
    if len(answers) == 1 and not isinstance(answers[0], Summary):
        return answers[0].to_plain(level)
    tables = [a.to_plain(level) for a in answers if not isinstance(a, Summary)]
    if tables:
        return {"groups": tables}
    return {
        "level": level,
        "summaries": [a.to_plain() for a in answers if isinstance(a, Summary)],
    }
