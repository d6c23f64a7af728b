"""estimate: a subcommand for each query of a release, an option for each field of the query."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from deniable.cli import console, groups, options
from deniable.cli.arguments import (
    ASKED,
    SHOWN,
    AnswerFile,
    AsJson,
    ForceFiles,
    ReleaseSource,
    RowOptions,
    ShowValues,
)
from deniable.cli.fields import READERS, Reader, parameters, read_values
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement
from deniable.estimate.comparing import Comparison
from deniable.estimate.correlation import Correlation
from deniable.estimate.covariance import Covariance, PairScores
from deniable.estimate.distribution import Distribution
from deniable.estimate.honesty import Honesty
from deniable.estimate.independence import Independence
from deniable.estimate.known import Known
from deniable.estimate.leverage import Leverage
from deniable.estimate.ordered import Deviation, Mean, Quantile
from deniable.estimate.scores import Scores
from deniable.estimate.shares import Shares
from deniable.estimate.trend import Trend
from deniable.models.query import ModelQuery
from deniable.models.smoothing import Smooth

if TYPE_CHECKING:
    from deniable.estimate.query import Query
    from deniable.estimate.source import Release

QUERIES: dict[str, tuple[type[Any], str, str]] = {
    "shares": (
        Shares,
        "Shares, a joint table, or shares within subgroups.",
        "release --of race,hhi",
    ),
    "mean": (
        Mean,
        "Mean score of an attribute, or its total.",
        "release --of hours --by race",
    ),
    "quantile": (
        Quantile,
        "Quantiles of an ordered attribute.",
        "release --of hours --q 0.25,0.5,0.75",
    ),
    "distribution": (
        Distribution,
        "Distribution function of a number, with a band.",
        "release --of age",
    ),
    "deviation": (
        Deviation,
        "Standard deviation of a number.",
        "release --of age --by sex",
    ),
    "correlation": (
        Correlation,
        "Original correlations of all pairs of some attributes.",
        "release --of age,hours,sex",
    ),
    "covariance": (
        Covariance,
        "Original covariance of two attributes.",
        "release --of hours,income",
    ),
    "compare": (
        Comparison,
        "Differences and ratios of shares or means between two values of a column, or one and all.",
        "release --of race --column sex --values f,m",
    ),
    "smooth": (
        Smooth,
        "Table of three attributes or more by the model of all pairs, for small groups.",
        "release --of race,hhi,whi",
    ),
    "independence": (
        Independence,
        "Test of independence of two attributes (χ²), and their association (Cramér's V).",
        "release --of race,hhi",
    ),
    "trend": (
        Trend,
        "Test of trend in scores: against a status of two values (Cochran–Armitage), or of pairs.",
        "release --of rs1 --status PHENO1",
    ),
    "agreement": (
        Agreement,
        "Test of whether all forms fit one population.",
        "release",
    ),
    "leverage": (
        Leverage,
        "How far one liar in a hundred can move each share.",
        "release --of race",
    ),
    "honesty": (
        Honesty,
        "Test of whether groups with different designs follow their instructions.",
        "answers.csv --of contact --mechanism A=a.json --mechanism B=b.json --mechanism-by card",
    ),
    "model": (
        ModelQuery,
        "Fit a logistic, multinomial, linear or log-linear model through the known randomization.",
        'release "insured ~ sex + race"',
    ),
}
"""Of each query its class, its help and an example. The first is the query of ``estimate`` alone;
:class:`~deniable.opened.OpenedRelease` has a method of each name."""

_SEVERAL = ("shares", "leverage")
"""Queries of several tables from one reading of the rows."""
_ONLY = {
    "pairs": ("shares",),
    "wide": ("shares", "smooth"),
    "plot": (
        *("shares", "mean", "quantile", "distribution", "deviation", "correlation", "covariance"),
        *("compare", "model"),
    ),
    **dict.fromkeys(("formula", "odds_ratios", "predict"), ("model",)),
}
"""Options that are no fields, by the queries that have them; the others are common to all."""
_HOW = (
    *("weights", "cluster", "strata", "errors", "level", "method", "target", "known", "scores"),
    *("prior", "interpolate"),
)
"""Fields that the help lists under how it is estimated."""

_READERS: dict[Any, Reader] = READERS | {
    Sequence[str]: (str, lambda text, *_: text, ""),
    Sequence[str] | None: (str, lambda text, *_: text, ""),
    Sequence[float] | None: (str, lambda text, _, option: options.numbers(text, option), ""),
    float | Sequence[float]: (str, lambda text, _, option: options.numbers(text, option), ""),
    Mapping[str, str]: (list[str], lambda texts, _, option: options.pairs(texts, option), ""),
    Known: (Path, lambda path, *_: path, ""),
    Scores: (str, lambda text, *_: _scores(text), ""),
    PairScores: (str, lambda text, *_: _pair_scores(text), ""),
}

estimate_app = App(name="estimate", group_commands=groups.COMMANDS)


def _left_out(kind: type[Any]) -> set[str]:
    """Return the fields that are no options: ``where``, which RowOptions has, and those that the
    query refuses."""
    left_out = {"where"}
    left_out |= set() if getattr(kind, "takes_answered", True) else {"answered"}
    return left_out | (set() if getattr(kind, "takes_weights", True) else {"weights"})


def _group(name: str) -> Group:
    return groups.ESTIMATED if name in _HOW else groups.ASKED


def _command(name: str) -> Callable[..., None]:
    """Return the command of a query, with a signature made of the query's fields."""
    kind = QUERIES[name][0]
    shown = [one for one in parameters(kind, _READERS, _group) if one.name not in _left_out(kind)]
    if name in _SEVERAL:
        text = "Attributes of a table: a or a,b; may be repeated for several tables."
        several = Annotated[list[str] | None, ASKED, Parameter(help=text)]
        shown[0] = shown[0].replace(annotation=several, default=None)
    common = list(inspect.signature(_run).parameters.values())[1:-1]
    common = [one for one in common if name in _ONLY.get(one.name, QUERIES)]
    own = {one.name for one in common}
    shown = [one for one in shown if one.name not in own]
    first = [one for one in common if one.kind is one.POSITIONAL_ONLY]

    def command(*words: Any, **given: Any) -> None:
        _run(name, *words, **given)

    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*first, *shown, *common[len(first) :]]
    )
    return command


def _run(
    name: str,
    source: ReleaseSource = None,
    formula: Annotated[
        str | None,
        ASKED,
        Parameter(
            name="FORMULA",
            help="As in R and statsmodels: 'income ~ sex + race'; '~ sex*income' is log-linear.",
        ),
    ] = None,
    /,
    *,
    pairs: Annotated[
        bool, ASKED, Parameter(help="Also the tables of all pairs of randomized attributes.")
    ] = False,
    rows: RowOptions | None = None,
    odds_ratios: Annotated[
        bool, SHOWN, Parameter(help="Odds ratios instead of their logarithms.")
    ] = False,
    predict: Annotated[
        bool, SHOWN, Parameter(help="Predictions for every combination of covariates.")
    ] = False,
    output: AnswerFile = None,
    wide: Annotated[
        bool, SHOWN, Parameter(help="With --output: a column per category of the last attribute.")
    ] = False,
    plot: Annotated[
        Path | None, SHOWN, Parameter(help="Also write a plot: a .png or .svg file.")
    ] = None,
    force: ForceFiles = False,
    show_values: ShowValues = False,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Answer a query of a release: print it, and write it to files.

    ``given``: the options of the query's fields.
    """
    rows, kind = rows or RowOptions(), QUERIES[name][0]
    typed = {key: value for key, value in given.items() if value is not None and key != "of"}
    values = read_values(kind, typed, readers=_READERS)
    level = values.get("level", 0.95)

    def made(of: Any) -> Any:
        return kind(of, where=rows.where, **values)

    if wide and output is None:
        raise InputError("--wide is the form of the output file; give --output too")
    if source is None and name != "shares" and Path(name).is_dir():
        raise InputError(f"{name} is a query here; the release in that folder is ./{name}")
    if name == "model":
        from deniable.cli.answers import run_model

        if formula is None and source is not None and "~" in source:
            source, formula = None, source
        if formula is None:
            raise InputError('name a release and a formula: estimate model release "y ~ x"')
        if odds_ratios and predict:
            raise InputError("--odds-ratios and --predict print one table each; give one of them")
        model = made(formula)
        _ = model.formulas  # checked before a file is opened
        with rows.open(source, show_values=show_values) as release:
            run_model(
                model,
                release,
                odds_ratios=odds_ratios,
                predict=predict,
                output=output,
                plot=plot,
                force=force,
                as_json=as_json,
            )
        return
    of = given.get("of")
    tables = list(of or ()) if name in _SEVERAL else [of or ()]
    if name == "shares" and not (tables or pairs):
        raise InputError("name the attributes to estimate with --of, or take all --pairs")
    queries = [made(names) for names in tables]  # checked before any file is opened
    with rows.open(source, show_values=show_values) as release:
        schema = release.strata.schema
        attributes = [schema.names[i] for i in schema.protected]
        if name == "leverage" and not queries:
            queries = [made([each]) for each in attributes]
        if pairs:
            queries += [made(pair) for pair in combinations(attributes, 2)]
        several = len(queries) > 1 or pairs
        if several and (wide or plot is not None):
            raise InputError("--wide and --plot are for one table; name one with --of")
        if several or not queries:
            answers = _print_tables(queries, release, level, as_json)
        else:
            answers = _print_answers(queries[0], release, level, as_json)
    if plot is not None:
        from deniable.cli.answers import drawn, write_plot
        from deniable.estimate.columns import plot_of

        picture = drawn(lambda: plot_of(answers, level), plot, force=force)
    if output is not None:
        write_answers(answers, output, level, wide=wide, force=force)
    if plot is not None:
        write_plot(plot, picture, force=force)
    _note_readable(answers)


def _print_tables(
    queries: "Sequence[Query[Any]]", release: "Release", level: float, as_json: bool
) -> Sequence[Any]:
    """Print and return the answers to several queries of the same rows."""
    from deniable.cli.answers import show_answers
    from deniable.estimate.query import run_together

    if not queries:
        raise InputError("there are no two randomized attributes, so there are no pairs")
    results = run_together(queries, release)
    if as_json:
        both = zip(queries, results, strict=True)
        plain = [q.to_plain(answers) | answers.selection.to_plain() for q, answers in both]
        console.print_json({"tables": plain})
    else:
        said: set[str] = set()
        for answers in results:
            show_answers(answers, level, said)
    return [answer for answers in results for answer in answers]


def _print_answers(
    query: "Query[Any]", release: "Release", level: float, as_json: bool
) -> Sequence[Any]:
    """Print the answers to a query as JSON or as tables, and return them."""
    from deniable.cli.answers import show_answers

    answers = query.run(release)
    if as_json:
        console.print_json(query.to_plain(answers) | answers.selection.to_plain())
    else:
        show_answers(answers, level)
    return answers


def write_answers(
    answers: Sequence[Any], output: Path, level: float, *, wide: bool = False, force: bool
) -> None:
    """Write answers as one table."""
    from deniable.estimate.columns import caption_of_all, columns_of

    columns = columns_of(answers, level, wide=wide)
    columns.write(output, caption_of_all(answers, level), overwrite=force)
    console.note(f"The answer is in {output}")


def _note_readable(answers: Sequence[Any]) -> None:
    """Print the readability of the tables among results on standard error."""
    from deniable.estimate.shares import Estimate
    from deniable.report.verdict import estimated

    found = [answer.readability.to_plain() for answer in answers if isinstance(answer, Estimate)]
    if found:
        console.note(estimated(found))


def _scores(text: str) -> Any:
    """Return the scores of one attribute: numbers, "middle", or None for no text."""
    if text.strip() in ("", "middle"):
        return text.strip() or None
    return options.numbers(text, "--scores")


def _pair_scores(text: str) -> Any:
    """Return the scores of two attributes."""
    parts = text.split(";")
    if len(parts) != 2:
        raise InputError(
            "--scores: a covariance needs two lists with a semicolon between them, such as "
            "'0,1;0,1,2'"
        )
    return tuple(map(_scores, parts))


estimate_app.default(_command("shares"))
for _name, (_, _about, _words) in list(QUERIES.items())[1:]:
    _about += f"\n\nExample: deniable estimate {_name} {_words}"
    estimate_app.command(_command(_name), name=_name, help=_about)
