"""synthesize, combine: tables drawn from a model of a release, and combined analyses of them."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from deniable.cli import console
from deniable.cli.arguments import (
    ASKED,
    ESTIMATED,
    FILE,
    TESTS,
    AnswerFile,
    AsJson,
    ForceFiles,
    Level,
    ReleaseSource,
    RowOptions,
    ShowValues,
)
from deniable.numerals import count_text, number_text, p_text
from deniable.schema.names import split_names


def synthesize(
    source: ReleaseSource = None,
    /,
    *,
    output: Annotated[Path, ASKED],
    of: Annotated[str | None, ASKED] = None,
    about: Annotated[str | None, ASKED] = None,
    tables: Annotated[Literal["pairs", "tree"] | None, ESTIMATED] = None,
    rows: Annotated[Literal["synthetic", "imputed"], ASKED] = "synthetic",
    copies: Annotated[int, ASKED] = 20,
    chosen: RowOptions | None = None,
    file_format: Annotated[
        Literal["csv", "csv.gz", "parquet"] | None, FILE, Parameter(name="--as")
    ] = None,
    force: ForceFiles = False,
    show_values: ShowValues = False,
    seed: Annotated[int | None, TESTS, Parameter(name="--insecure-seed")] = None,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        output: Folder to make.
        of: Attributes; by default all that are randomized.
        about: Outcome to predict; it depends on every other attribute.
        tables: The model: all pairs (default up to 100,000 cells), or a tree of associations.
        rows: New rows, or imputed true values of the released rows, with their kept columns.
        copies: Number of copies, at least 5; analyse all.
        file_format: Format of the files (default: the release's).
        seed: Draw the same on every run.
    """
    from deniable.randomness import SeededRandomness, SystemRandomness
    from deniable.synthesis import folder

    options, names = chosen or RowOptions(), tuple(split_names(of or ""))
    request = folder.SynthesisRequest(
        names, about, tables, rows, copies, options.where, file_format
    )
    folder.check_output(output, overwrite=force)
    bits = SystemRandomness() if seed is None else SeededRandomness(seed)
    with options.open(source, show_values=show_values) as release:
        claim = folder.claim_of(options.mechanism or source, release)
        with console.progress("Drawing") as advance:
            written = folder.write_copies(
                release, request, output, claim, bits, overwrite=force, advance=advance
            )
    if as_json:
        console.print_json(written)
        return
    _show(written, output)


def _show(about: dict[str, Any], output: Path) -> None:
    model, cells = about["model"], [c for t in about["tables"] for c in t["cells"]]
    console.say(
        f"{about['copies']} {about['rows']} copies of {count_text(about['n_rows'], 'row')}, by "
        + ("the model of all pairs." if model["kind"] == "pairs" else "a tree of associations:")
    )
    if model["kind"] == "tree":
        console.say(
            "; ".join(" - ".join(pair) for pair in model["pairs"]) or "none is above its noise"
        )
    off = sum(cell["disagrees"] for cell in cells)
    console.say(
        f"{off} of {len(cells):,} shares of one and two attributes disagree with the release."
    )
    console.say(
        "No row belongs to a person. Analyse every copy, and combine: a single one is wrong."
    )
    console.say(f"Read {output / 'about.html'} first.")


def combine(
    results: Annotated[Path, ASKED],
    /,
    *,
    rows: Annotated[Literal["synthetic", "imputed"] | None, ASKED] = None,
    level: Level = 0.95,
    output: AnswerFile = None,
    force: ForceFiles = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        results: CSV: copy, term, estimate, std_error.
        rows: Kind of the copies, if the folder has no about.json.
    """
    from deniable.synthesis.combining import combine_file

    combined = combine_file(results, rows, level)
    table = combined.table()
    if as_json:
        console.print_json({"rows": combined.kind, "copies": combined.copies, "terms": table})
    else:
        console.say(combined.caption())
        names = ["estimate", "std_error", "df", "p_value", "low", "high"]
        heads = ["estimate", "std error", "df", "p value", f"{100 * level:g}% from", "to", "remark"]
        console.show_table(
            ["term", *heads],
            [
                [
                    row["term"],
                    *("-" if row[n] is None else _text(n, row[n]) for n in names),
                    row["remark"].partition(":")[0],
                ]
                for row in table
            ],
            text_columns=1,
            most=200,
            framed=False,
        )
    if output is not None:
        from deniable.tables.answers import Columns

        Columns.of_rows(table).write(output, combined.caption(), overwrite=force)
        console.note(f"The answer is in {output}")


def _text(name: str, value: float) -> str:
    return p_text(value) if name == "p_value" else number_text(value)
