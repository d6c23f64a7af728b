"""estimate: from a release back to shares, joint tables, means, quantiles and covariances."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import (
    AsJson,
    Counts,
    ReleaseMechanism,
    ReleaseSource,
    ShowValues,
    Where,
)
from deniable.errors import InputError
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.estimate.question import Question


@app.command
def estimate(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Attributes of the table to estimate: a or a,b.")],
    by: Annotated[
        str | None, Parameter(help="Attributes or kept columns that form subgroups.")
    ] = None,
    mechanism: ReleaseMechanism = None,
    counts: Counts = None,
    where: Where = None,
    weights: Annotated[str | None, Parameter(help="Kept column with a weight per row.")] = None,
    mean: Annotated[bool, Parameter(negative=(), help="Estimate the mean score instead.")] = False,
    quantile: Annotated[
        float | None, Parameter(help="Estimate a quantile instead: 0.5 is the median.")
    ] = None,
    covariance: Annotated[
        bool, Parameter(negative=(), help="Estimate the covariance of two attributes instead.")
    ] = False,
    scores: Annotated[
        str | None,
        Parameter(
            help="One number per category, for --mean: 0,1,2; for --covariance one such list per "
            "attribute: '0,1;0,1,2'. Default: the schema's, or bin middles."
        ),
    ] = None,
    method: Annotated[str, Parameter(help="inversion, em or projected.")] = "inversion",
    target: Annotated[
        str,
        Parameter(help="table: the truth of this table; population: of what it was drawn from."),
    ] = "table",
    level: Annotated[float, Parameter(help="Probability that an interval holds.")] = 0.95,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Recover a marginal, a joint table, a mean, a quantile or a covariance, with error bars.

    Example: deniable estimate release --of race,hhi
    """
    from deniable.cli import console, options
    from deniable.estimate.inference import target_named
    from deniable.estimate.source import open_release

    rows: dict[str, Any] = {
        "by": tuple(split_names(by or "")),
        "where": options.pairs(where or [], "--where"),
        "weights": weights,
        "level": level,
        "target": target_named(target),
    }
    question = _question(
        tuple(split_names(of)),
        rows,
        method=method,
        mean=mean,
        quantile=quantile,
        covariance=covariance,
        scores=scores,
    )
    answers = question.ask(open_release(source, mechanism, counts, show_values=show_values))
    if as_json:
        print_json(question.to_plain(answers))
    else:
        console.show_answers(answers, level)


def _question(
    of: tuple[str, ...],
    rows: dict[str, Any],
    *,
    method: str,
    mean: bool,
    quantile: float | None,
    covariance: bool,
    scores: str | None,
) -> "Question[Any]":
    """Return the question that the options ask; ``rows`` is what all questions have in common."""
    from deniable.cli import options
    from deniable.estimate.covariance import Covariance
    from deniable.estimate.ordered import Mean, Quantile
    from deniable.estimate.shares import Shares, method_named

    if covariance:
        if mean or quantile is not None:
            raise InputError("ask for the covariance, the mean or a quantile, not for two at once")
        if method != "inversion":
            raise InputError("covariances are estimated by method inversion only")
        return Covariance(of, **rows, scores=_pair_scores(scores))
    if not mean and quantile is None:
        if scores is not None:
            raise InputError("scores are for a mean; ask for the mean too")
        return Shares(of, **rows, method=method_named(method))
    if mean and quantile is not None:
        raise InputError("ask for the mean or for a quantile, not for both at once")
    if method != "inversion":
        raise InputError("means and quantiles are estimated by method inversion only")
    if quantile is not None:
        return Quantile(of, **rows, probability=quantile)
    given = None if scores is None else options.numbers(scores, "--scores")
    return Mean(of, **rows, scores=given)


def _pair_scores(text: str | None) -> Any:
    """Return what --scores means for --covariance: two lists, or None for the schema's."""
    from deniable.cli import options

    if text is None:
        return None, None
    parts = text.split(";")
    if len(parts) != 2:
        raise InputError(
            "--scores: a covariance needs two lists with a semicolon between them, such as "
            "'0,1;0,1,2'"
        )
    first, second = (options.numbers(part, "--scores") if part.strip() else None for part in parts)
    return first, second
