"""estimate: from a release back to shares, joint tables, means, quantiles and covariances."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import AsJson, ReleaseSource, RowOptions, ShowValues
from deniable.errors import InputError
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.estimate.question import Question
    from deniable.estimate.source import Release


@app.command
def estimate(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Attributes of the table to estimate: a or a,b.")],
    by: Annotated[
        str | None, Parameter(help="Attributes or kept columns that form subgroups.")
    ] = None,
    rows: RowOptions | None = None,
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
    from deniable.estimate.inference import target_named

    rows = rows or RowOptions()
    common: dict[str, Any] = {
        "by": tuple(split_names(by or "")),
        "where": rows.selected(),
        "weights": weights,
        "level": level,
        "target": target_named(target),
    }
    question = _question(
        tuple(split_names(of)),
        common,
        method=method,
        mean=mean,
        quantile=quantile,
        covariance=covariance,
        scores=scores,
    )
    print_answers(question, rows.open(source, show_values=show_values), level, as_json)


def print_answers(
    question: "Question[Any]", release: "Release", level: float, as_json: bool
) -> None:
    """Ask a question of a release, and print the answers as JSON or as tables."""
    from deniable.cli import console

    answers = question.ask(release)
    if as_json:
        print_json(question.to_plain(answers))
    else:
        console.show_answers(answers, level)


def _question(
    of: tuple[str, ...],
    common: dict[str, Any],
    *,
    method: str,
    mean: bool,
    quantile: float | None,
    covariance: bool,
    scores: str | None,
) -> "Question[Any]":
    """Return the question that the options ask; ``common`` is what all questions are told."""
    from deniable.cli import options
    from deniable.estimate.covariance import Covariance
    from deniable.estimate.ordered import Mean, Quantile
    from deniable.estimate.shares import Shares, method_named

    if covariance:
        if mean or quantile is not None:
            raise InputError("ask for the covariance, the mean or a quantile, not for two at once")
        if method != "inversion":
            raise InputError("covariances are estimated by method inversion only")
        return Covariance(of, **common, scores=_pair_scores(scores))
    if not mean and quantile is None:
        if scores is not None:
            raise InputError("scores are for a mean; ask for the mean too")
        return Shares(of, **common, method=method_named(method))
    if mean and quantile is not None:
        raise InputError("ask for the mean or for a quantile, not for both at once")
    if method != "inversion":
        raise InputError("means and quantiles are estimated by method inversion only")
    if quantile is not None:
        return Quantile(of, **common, probability=quantile)
    given = None if scores is None else options.numbers(scores, "--scores")
    return Mean(of, **common, scores=given)


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
