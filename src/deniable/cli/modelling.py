"""Models of a release as a terminal shows them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.cli import console
from deniable.errors import InputError
from deniable.numerals import number_text, p_text

if TYPE_CHECKING:
    from deniable.estimate.source import Release
    from deniable.models.model import Model
    from deniable.models.query import ModelQuery


def run_model(
    query: "ModelQuery",
    release: "Release",
    *,
    odds_ratios: bool,
    predict: bool,
    output: Path | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print the models of a release, and write them to files."""
    from deniable.cli.answers import drawn, write_plot
    from deniable.estimate.columns import caption_of
    from deniable.tables.answers import Columns

    models, level = query.run(release), query.level
    if plot is not None and len(models) > 1:
        raise InputError("a plot is of one model; select a group of rows with --where")
    picture = b"" if plot is None else drawn(models[0].plot, plot, force=force)
    if predict:
        tables = [each.predict() for each in models]
    else:
        tables = [each.odds_ratios() if odds_ratios else each.table() for each in models]
    if as_json:
        console.print_json(query.to_plain(models) | models.selection.to_plain())
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
    if plot is not None:
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
