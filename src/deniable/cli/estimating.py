"""estimate: from a release back to marginals, joint tables, means and quantiles."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import AsJson, ShowValues


@app.command
def estimate(
    source: Annotated[
        str | None,
        Parameter(
            name="RELEASE",
            allow_leading_hyphen=True,
            help="A folder made by share, or a randomized table.",
        ),
    ] = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Attributes of the table to estimate: a or a,b.")],
    by: Annotated[
        str | None, Parameter(help="Attributes or kept columns that form subgroups.")
    ] = None,
    mechanism: Annotated[
        Path | None, Parameter(help="The mechanism, if RELEASE is a table or there are counts.")
    ] = None,
    counts: Annotated[
        Path | None, Parameter(help="A table of counts (column count) instead of rows.")
    ] = None,
    where: Annotated[
        list[str] | None,
        Parameter(
            negative=(), help="Only rows with column=value; kept columns only; may be repeated."
        ),
    ] = None,
    weights: Annotated[str | None, Parameter(help="Kept column with a weight per row.")] = None,
    mean: Annotated[bool, Parameter(negative=(), help="Estimate the mean score instead.")] = False,
    quantile: Annotated[
        float | None, Parameter(help="Estimate a quantile instead: 0.5 is the median.")
    ] = None,
    scores: Annotated[
        str | None, Parameter(help="One number per category, for --mean; default: bin middles.")
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
    """Recover a marginal, a joint table, a mean or a quantile, with error bars.

    Example: deniable estimate release --of race,hhi
    """
    from deniable import analysis, console, options

    question = analysis.Question(
        of=tuple(options.split_names(of)),
        by=tuple(options.split_names(by or "")),
        where=options.pairs(where or [], "--where"),
        weights=weights,
        method=method,
        target=target,
        level=level,
        mean=mean,
        quantile=quantile,
        scores=None if scores is None else options.numbers(scores, "--scores"),
        show_values=show_values,
    )
    answers = analysis.answer(question, source, mechanism, counts)
    if as_json:
        print_json(analysis.to_plain(answers, level))
    else:
        console.show_answers(answers, level)
