"""model: regressions and log-linear models of a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

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
from deniable.numerals import number_text, p_text
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.models.model import Model


@app.command(group=groups.READING)
def model(
    source: ReleaseSource = None,
    formula: Annotated[str | None, ASKED, Parameter(name="FORMULA")] = None,
    /,
    *,
    collapse: Annotated[list[str] | None, ASKED] = None,
    against: Annotated[str | None, ASKED] = None,
    answered: Annotated[bool, ASKED] = False,
    prior: Annotated[bool, ESTIMATED, Parameter(negative="--no-prior")] = True,
    known: Annotated[Path | None, ESTIMATED] = None,
    by: Annotated[str | None, ASKED] = None,
    rows: RowOptions | None = None,
    weights: Weights = None,
    level: Level = 0.95,
    odds_ratios: Annotated[bool, SHOWN] = False,
    predict: Annotated[bool, SHOWN] = False,
    output: AnswerFile = None,
    plot: Annotated[Path | None, SHOWN] = None,
    force: ForceFiles = False,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Fit a logistic, multinomial, linear or log-linear model to randomized rows.

    Response and covariates may all be randomized; the fit goes through the known
    randomization, so that coefficients and intervals are those of the population.
    A column of numbers that is released as it is, as response, gives least squares.

    Example: deniable model release "insured ~ sex + race"

    Args:
        formula: As in R and statsmodels: 'income ~ sex + race'; '~ sex*income' is log-linear.
        collapse: Merge categories in the model: 'race=White|*', levels with | between them, the
            reference first, * for all others; may be repeated.
        against: Another formula, to test against; one has to hold the other.
        answered: Only people who answered: whose true value is a declared missing category in no
            variable of the formula.
        prior: Use the weak prior, N(0, 3²) on main effects and N(0, 2.5²) on associations.
        known: CSV file of shares known exactly, of a census: columns sex,share.
        by: Kept columns; a model is fitted to every group of rows.
        odds_ratios: Odds ratios instead of their logarithms.
        predict: Instead of coefficients what is predicted for every combination of covariates.
        plot: Also draw the odds ratios with their intervals: a .png or .svg file.
    """
    from deniable.cli import options
    from deniable.cli.estimating import drawn, write_plot
    from deniable.estimate.columns import caption_of
    from deniable.estimate.known import read_margins
    from deniable.models.question import ModelQuestion
    from deniable.tables.answers import Columns

    if formula is None and source is not None and "~" in source:
        source, formula = None, source
    if formula is None:
        raise InputError('name a release and a formula: deniable model release "y ~ x"')
    if odds_ratios and predict:
        raise InputError("ask for odds ratios or for predictions, not for both at once")
    rows = rows or RowOptions()
    question = ModelQuestion(
        formula,
        collapse=options.pairs(collapse, "--collapse"),
        prior=prior,
        against=against,
        known=None if known is None else read_margins(known),
        by=tuple(split_names(by or "")),
        where=rows.where,
        weights=weights,
        level=level,
        answered=answered,
    )
    _ = question.formulas  # what is wrong with them is said before any file is opened
    with rows.open(source, show_values=show_values) as release:
        models = question.ask(release)
    if plot is not None and len(models) > 1:
        raise InputError("a plot is of one model; select a group of rows with --where")
    picture = drawn(models[0].plot, plot, force=force)
    if predict:
        tables = [each.predict() for each in models]
    else:
        tables = [each.odds_ratios() if odds_ratios else each.table() for each in models]
    if as_json:
        console.print_json(question.to_plain(models) | models.selection.to_plain())
    else:
        for each, table in zip(models, tables, strict=True):
            _show(each, table, level)
    if output is not None:
        rows_of_all = [
            row | {"n": each.n_records, "level": level}
            for each, table in zip(models, tables, strict=True)
            for row in table
        ]
        columns = Columns.of_rows(rows_of_all)
        columns.write(output, caption_of(models[0], level), overwrite=force)
        console.note(f"The answer is in {output}")
    write_plot(plot, picture, force=force)


def _show(model: "Model", rows: list[dict[str, Any]], level: float) -> None:
    from deniable.estimate.columns import caption_of

    shown = {"low": f"{100 * level:g}% from", "high": "to", "data_share": "data's share"}
    names = [name for name in rows[0] if name not in dict(model.group)]
    console.say(caption_of(model, level))
    texts = sum(isinstance(rows[0][name], str) and name != "remark" for name in names)
    console.show_table(
        [shown.get(name, name.replace("_", " ")) for name in names],
        [[_text(name, row[name]) for name in names] for row in rows],
        text_columns=texts,
        most=200,
        framed=False,
    )
    for remark in model.remarks():
        console.say(remark)


def _text(name: str, value: Any) -> str:
    from deniable.models.model import UNDETERMINED

    if value is None:
        return "-"
    if isinstance(value, str):
        return "cannot say" if value == UNDETERMINED else value
    if name == "data_share":
        return f"{100 * value:.0f} %"
    return p_text(value) if name == "p_value" else number_text(value)
