"""estimate: from a release back to shares, joint tables, means, quantiles and covariances."""

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from deniable.cli import console, groups
from deniable.cli.app import app
from deniable.cli.arguments import (
    ASKED,
    ESTIMATED,
    SHOWN,
    AnswerFile,
    AsJson,
    ForceFiles,
    Level,
    ReleaseSource,
    RowOptions,
    ShowValues,
    Weights,
)
from deniable.errors import InputError
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.estimate.question import Question
    from deniable.estimate.source import Release


@app.command(group=groups.START)
def estimate(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[list[str] | None, ASKED] = None,
    pairs: Annotated[bool, ASKED] = False,
    by: Annotated[str | None, ASKED] = None,
    rows: RowOptions | None = None,
    weights: Weights = None,
    mean: Annotated[bool, ASKED] = False,
    quantile: Annotated[float | None, ASKED] = None,
    covariance: Annotated[bool, ASKED] = False,
    leverage: Annotated[bool, ASKED] = False,
    scores: Annotated[str | None, ESTIMATED] = None,
    interpolate: Annotated[bool, ESTIMATED] = False,
    compare: Annotated[str | None, ASKED] = None,
    answered: Annotated[bool, ASKED] = False,
    method: Annotated[str, ESTIMATED] = "inversion",
    known: Annotated[Path | None, ESTIMATED] = None,
    smooth: Annotated[str | None, ESTIMATED] = None,
    target: Annotated[str, ESTIMATED] = "table",
    level: Level = 0.95,
    output: AnswerFile = None,
    wide: Annotated[bool, SHOWN] = False,
    plot: Annotated[Path | None, SHOWN] = None,
    force: ForceFiles = False,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Recover a marginal, a joint table, a mean, a quantile or a covariance, with error bars.

    Example: deniable estimate release --of race,hhi

    Args:
        of: Attributes of the table to estimate: a or a,b; may be repeated for several tables from
            one reading of the rows.
        pairs: Also the tables of all pairs of randomized attributes.
        by: Attributes or kept columns that form subgroups.
        mean: Estimate the mean score instead.
        quantile: Estimate a quantile instead: 0.5 is the median.
        covariance: Estimate the covariance of two attributes instead.
        leverage: Beside shares, how far one liar in a hundred can move each; without --of of all
            randomized attributes.
        scores: One number per category, for --mean: 0,1,2; or middle, for the middles of bins; for
            --covariance one of these per attribute: '0,1;middle'. Default: the schema's; without
            them a mean of bins is given by its least and its largest possible value.
        interpolate: With --quantile of bins: a number, as if values were spread evenly within bins.
        compare: Differences and ratios between two values of a column, sex=f,m: of its shares if it
            is among --of, else of what is asked for within the two groups.
        answered: Only people who answered: whose true value is a declared missing category in none
            of the attributes.
        method: inversion, em or projected.
        known: CSV file of shares known exactly, which then hold: columns sex,share.
        smooth: pairs: of three attributes or more, the table of the model of all pairs beside the
            unbiased one, with its test; for small groups.
        target: table: the truth of this table; population: of what it was drawn from.
        wide: With --output: a column per category of the last attribute.
        plot: Also draw the answer: a .png or .svg file.
    """
    from deniable.estimate.columns import plot_of
    from deniable.estimate.inference import TARGETS, one_of
    from deniable.estimate.known import read_margins

    rows = rows or RowOptions()
    common: dict[str, Any] = {
        "by": tuple(split_names(by or "")),
        "where": rows.where,
        "weights": weights,
        "level": level,
        "answered": answered,
        "target": one_of(target, TARGETS, "target"),
    }
    if wide and output is None:
        raise InputError("--wide is about the file to write; name it with --output")
    tables = [tuple(split_names(names)) for names in of or ()]

    plain = not (mean or covariance or compare or quantile is not None or method != "inversion")
    if (smooth or known) and not plain:
        raise InputError("--known and --smooth are for shares, by method inversion; nothing else")
    margins = None if known is None else read_margins(known)
    if smooth not in (None, "pairs"):
        raise InputError(f"--smooth is by the model of all pairs: --smooth pairs, not '{smooth}'")

    def question(names: tuple[str, ...]) -> "Question[Any]":
        if smooth == "pairs":
            from deniable.models.smoothing import Smooth

            asked = {key: value for key, value in common.items() if key != "target"}
            return Smooth(names, **asked, known=margins)
        return _question(
            names,
            common if margins is None else common | {"known": margins},
            method=method,
            mean=mean,
            quantile=quantile,
            covariance=covariance,
            leverage=leverage,
            scores=scores,
            interpolate=interpolate,
            compare=compare,
        )

    if len(tables) == 1 and not pairs:
        asked = question(tables[0])  # what is wrong with it is said before any file is opened
        with rows.open(source, show_values=show_values) as release:
            answers = print_answers(asked, release, level, as_json)
    else:
        if compare is not None or wide or plot is not None:
            raise InputError(
                "--compare, --wide and --plot are for one table; ask for one with --of"
            )
        if not tables and not pairs and not leverage:
            raise InputError("name the attributes to estimate with --of, or ask for all --pairs")
        with rows.open(source, show_values=show_values) as release:
            schema = release.strata.schema
            if leverage and not tables:
                tables += [(schema.names[i],) for i in schema.protected]
            if pairs:
                tables += combinations([schema.names[i] for i in schema.protected], 2)
            answers = _print_tables([question(names) for names in tables], release, level, as_json)
    picture = drawn(lambda: plot_of(answers, level), plot, force=force)
    if output is not None:
        write_answers(answers, output, level, wide=wide, force=force)
    write_plot(plot, picture, force=force)
    _note_readable(answers)


def _print_tables(
    questions: "Sequence[Question[Any]]", release: "Release", level: float, as_json: bool
) -> Sequence[Any]:
    """Ask several questions at once, print all answers, and return them."""
    from deniable.cli.answers import show_answers
    from deniable.estimate.question import ask_together

    if not questions:
        raise InputError("there are no two randomized attributes, so there are no pairs")
    results = ask_together(questions, release)
    if as_json:
        both = zip(questions, results, strict=True)
        plain = [q.to_plain(answers) | answers.selection.to_plain() for q, answers in both]
        console.print_json({"tables": plain})
    else:
        said: set[str] = set()
        for answers in results:
            show_answers(answers, level, said)
    return [answer for answers in results for answer in answers]


def write_answers(
    answers: Sequence[Any], output: Path, level: float, *, wide: bool = False, force: bool
) -> None:
    """Write answers as one table."""
    from deniable.estimate.columns import caption_of_all, columns_of

    columns = columns_of(answers, level, wide=wide)
    columns.write(output, caption_of_all(answers, level), overwrite=force)
    console.note(f"The answer is in {output}")


def drawn(draw: Callable[[], Any], path: Path | None, *, force: bool) -> bytes:
    """Return a plot, if a file is named, or say why there is none before anything is written."""
    from deniable.atomic_files import refuse_existing
    from deniable.report.method_styles import figure_bytes

    if path is None:
        return b""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("png", "svg"):
        raise InputError(f"{path}: a plot is a file ending in .png or .svg")
    refuse_existing(path, overwrite=force)
    return figure_bytes(draw(), kind)


def write_plot(path: Path | None, picture: bytes, *, force: bool) -> None:
    """Write what :func:`drawn` returned, if a file is named."""
    from deniable.atomic_files import write_file

    if path is not None:
        write_file(path, picture, overwrite=force)
        console.note(f"The plot is in {path}")


def print_answers(
    question: "Question[Any]", release: "Release", level: float, as_json: bool
) -> Sequence[Any]:
    """Ask a question of a release, print the answers as JSON or as tables, and return them."""
    from deniable.cli.answers import show_answers

    answers = question.ask(release)
    if as_json:
        console.print_json(question.to_plain(answers) | answers.selection.to_plain())
    else:
        show_answers(answers, level)
    return answers


def _note_readable(answers: Sequence[Any]) -> None:
    """Say on standard error how much can be read of the tables among some answers."""
    from deniable.estimate.shares import Estimate
    from deniable.report.verdict import estimated

    found = [answer.readability.to_plain() for answer in answers if isinstance(answer, Estimate)]
    if found:
        console.note(estimated(found))


def _question(
    of: tuple[str, ...],
    common: dict[str, Any],
    *,
    method: str,
    mean: bool,
    quantile: float | None,
    covariance: bool,
    leverage: bool,
    scores: str | None,
    interpolate: bool,
    compare: str | None,
) -> "Question[Any]":
    """Return the question that the options ask; ``common`` is what all questions are told."""
    from deniable.estimate.comparing import Comparison
    from deniable.estimate.covariance import Covariance
    from deniable.estimate.inference import one_of
    from deniable.estimate.leverage import Leverage
    from deniable.estimate.ordered import Mean, Quantile
    from deniable.estimate.shares import METHODS, Shares

    if leverage:
        if mean or covariance or quantile is not None or method != "inversion" or compare or scores:
            raise InputError("leverage is told of shares by method inversion; ask for nothing else")
        return Leverage(of, **common)
    if interpolate and quantile is None:
        raise InputError("--interpolate is for a quantile; ask for one with --quantile")
    if compare is not None:
        if covariance or quantile is not None or method != "inversion":
            raise InputError("shares and means are compared, by method inversion; nothing else")
        if scores is not None and not mean:
            raise InputError("scores are for a mean; ask for the mean too")
        column, values = comparison(compare)
        told = {"column": column, "values": values, "mean": mean, "scores": _scores(scores)}
        return Comparison(of, **common, **told)
    if covariance:
        if mean or quantile is not None:
            raise InputError("ask for the covariance, the mean or a quantile, not for two at once")
        if method != "inversion":
            raise InputError("covariances are estimated by method inversion only")
        return Covariance(of, **common, scores=_pair_scores(scores))
    if not mean and quantile is None:
        if scores is not None:
            raise InputError("scores are for a mean; ask for the mean too")
        return Shares(of, **common, method=one_of(method, METHODS, "method"))
    if mean and quantile is not None:
        raise InputError("ask for the mean or for a quantile, not for both at once")
    if method != "inversion":
        raise InputError("means and quantiles are estimated by method inversion only")
    if quantile is not None:
        if scores is not None:
            raise InputError(
                "a quantile goes by the order of the categories and uses no scores; leave --scores "
                "out (of bins, --interpolate gives a number)"
            )
        return Quantile(of, **common, probability=quantile, interpolate=interpolate)
    return Mean(of, **common, scores=_scores(scores))


def comparison(text: str) -> tuple[str, tuple[str, str]]:
    """Return the column that --compare names, and the two values."""
    column, equals, values = text.partition("=")
    named = split_names(values)
    if not equals or not column or len(named) != 2:
        raise InputError("--compare: expected a column and two of its values, sex=f,m")
    return column.strip(), (named[0], named[1])


def _scores(text: str | None) -> Any:
    """Return what --scores means for one attribute: numbers, "middle", or None for no text."""
    from deniable.cli import options

    if text is None or text.strip() in ("", "middle"):
        return (text or "").strip() or None
    return options.numbers(text, "--scores")


def _pair_scores(text: str | None) -> Any:
    """Return what --scores means for --covariance: one for either, or None for the schema's."""
    if text is None:
        return None, None
    parts = text.split(";")
    if len(parts) != 2:
        raise InputError(
            "--scores: a covariance needs two lists with a semicolon between them, such as "
            "'0,1;0,1,2'"
        )
    return tuple(map(_scores, parts))
