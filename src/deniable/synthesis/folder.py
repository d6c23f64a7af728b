"""Folder of synthetic copies: tables, their accuracy, and instructions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable._checks import typed
from deniable.atomic_files import refuse_foreign_folder, replaced_folder
from deniable.errors import InputError
from deniable.estimate.counting import released_attributes
from deniable.estimate.inference import one_of
from deniable.estimate.shares import Shares
from deniable.estimate.source import Release
from deniable.mechanism.privacy import finite_or_none
from deniable.opened import Plan
from deniable.opened import open as open_release
from deniable.randomness import BitSource, SystemRandomness
from deniable.release.record import verify
from deniable.report.rendering import read, render
from deniable.schema.names import names_of
from deniable.statement.record import to_json
from deniable.statement.stored import read_json
from deniable.synthesis.combining import FEWEST_COPIES, KINDS, Kind
from deniable.synthesis.numbers import drawn_numbers
from deniable.synthesis.pairs import MOST_CELLS, PairsModel
from deniable.synthesis.rows import ReleasedRows
from deniable.synthesis.tree import WIDTH, TreeModel
from deniable.tables import open_table
from deniable.tables.columns import Column, number_column, released_columns, text_columns
from deniable.tables.selection import Where
from deniable.tables.writing import FORMATS, TableWriter, table_format

FORMAT, FORMAT_VERSION = "deniable synthesis", 1
ABOUT, PAGE = "about.json", "about.html"
MARK = "no_row_is_a_person"
"""First column of every copy, and part of every file name."""

LEVEL = 0.95
TablesModel = Literal["pairs", "tree"]
_RULES = {
    "synthetic": "Raghunathan, Reiter and Rubin 2003: T = (1 + 1/m)B - U, at least U",
    "imputed": "Rubin 1987: T = U + (1 + 1/m)B",
}


@dataclass(frozen=True)
class SynthesisRequest:
    """A request for copies of a release; arguments as of :func:`synthesize`."""

    of: tuple[str, ...] = ()
    about: str | None = None
    tables: TablesModel | None = None
    rows: Kind = "synthetic"
    copies: int = 20
    where: Where = None
    file_format: str | None = None

    def __post_init__(self) -> None:
        one_of(self.rows, KINDS, "rows")
        if self.tables is not None:
            one_of(self.tables, ("pairs", "tree"), "tables")
        if self.file_format is not None:
            one_of(self.file_format, FORMATS, "file_format")
        if self.about is not None and (self.tables == "pairs" or self.rows == "imputed"):
            raise InputError(
                "an outcome (about) is for synthetic rows of a tree; leave out tables and rows"
            )
        if self.copies < FEWEST_COPIES:
            raise InputError(
                f"{self.copies} copies are too few: at least {FEWEST_COPIES} are needed to "
                "measure the error from the drawing; make 20, and combine their results"
            )

    def names(self, release: Release) -> tuple[str, ...]:
        """Return the names of the attributes to synthesize."""
        schema = release.strata.schema
        names = self.of or tuple(schema.names[i] for i in schema.protected)
        for name in names:
            if name in schema.keep:
                raise InputError(
                    f"'{name}' is released unchanged: imputed rows include it, and "
                    "synthetic rows have no column of it; leave it out"
                )
            if name not in schema.names:
                schema.variables([name])
                raise InputError(f"'{name}' is a part of a merged attribute; name the whole")
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError("name at least two attributes to synthesize, each once")
        if self.about is not None and self.about not in names:
            raise InputError(f"the outcome '{self.about}' is not synthesized; name it in of, too")
        return names


@typed
def synthesize(
    released: Any,
    output: str | Path,
    plan: Plan | None = None,
    *,
    of: Sequence[str] = (),
    about: str | None = None,
    tables: TablesModel | None = None,
    rows: Kind = "synthetic",
    copies: int = 20,
    where: Where = None,
    file_format: str | None = None,
    overwrite: bool = False,
    anyway: bool = False,
    randomized: bool = False,
) -> dict[str, Any]:
    """Draw tables for any tool from a model of a release; no row is a person's.

    Args:
        released: a folder made by :func:`deniable.share`, one or several paths, or a dataframe.
        output: the folder to make.
        plan: its design, or the file of it; may be left out for a folder.
        of: attributes; by default all randomized ones.
        about: outcome to predict; every other attribute is associated with it.
        tables: ``pairs``, ``tree``, or by default pairs up to 100,000 cells without an outcome,
            else a tree.
        rows: ``synthetic``, new rows, or ``imputed``, true values of the released ones.
        copies: number of copies, at least five.
        where: conditions on unchanged columns: ``{'region': 'south'}``, or ``['age>=18']``.
        file_format: ``csv``, ``csv.gz`` or ``parquet``; by default as the release's rows are.
        overwrite: replace an older folder of copies.
        anyway: accept a table that the mechanism cannot have released.
        randomized: confirms that ``plan`` randomized the table, as of :func:`deniable.open`.

    Returns:
        Content of ``about.json``: files, model, guarantee, tables of one and two attributes.

    Raises:
        InputError: if the model is not estimable from the release, or the folder cannot be made.

    Examples:
        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 2)), attribute_epsilon=(3, 3))
        >>> table = pyarrow.table({"a1": ["0", "1"] * 500, "a2": ["0"] * 500 + ["1"] * 500})
        >>> about = deniable.synthesize(table, "synthetic", plan, copies=5)
        >>> len(about["files"]), about["n_rows"], about["model"]["kind"]
        (5, 1000, 'pairs')
    """
    opened = open_release(released, plan, anyway=anyway, randomized=randomized)
    request = SynthesisRequest(
        names_of(of, "of"),
        about,
        tables,
        rows,
        copies,
        where,
        file_format,
    )
    claim = claim_of(released if plan is None else plan, opened.source)
    return write_copies(
        opened.source, request, Path(output), claim, SystemRandomness(), overwrite=overwrite
    )


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise, before any work, if the folder exists and may not be replaced."""

    def is_ours(names: set[str]) -> bool:
        return all(name in (ABOUT, PAGE) or MARK in name for name in names)

    refuse_foreign_folder(output, "a folder of synthetic copies", is_ours, overwrite=overwrite)


def claim_of(stated: Any, release: Release) -> dict[str, Any]:
    """Return the guarantee stated in the release's record, unchanged, after checking it."""
    if isinstance(stated, str | Path):
        path = Path(stated) / "record.json" if Path(stated).is_dir() else Path(stated)
        if path.suffix == ".json" and path.is_file():
            guarantee = read_json(path).get("guarantee")
            if isinstance(guarantee, dict):
                verify(path)
                return guarantee
    return {"epsilon": finite_or_none(release.strata.epsilon)}


def write_copies(
    release: Release,
    request: SynthesisRequest,
    output: Path,
    claim: Mapping[str, Any],
    bits: BitSource,
    *,
    overwrite: bool = False,
    advance: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Fit a model, draw copies and write them to a folder, all or nothing.

    ``advance``: called with the fraction done, from 0 to 1.
    """
    check_output(output, overwrite=overwrite)
    names = request.names(release)
    rows = ReleasedRows.read(release, names, request.where)
    model = _fitted(rows, names, request)
    advance(0.2)
    draw = model.synthetic if request.rows == "synthetic" else model.imputed
    codes = draw(request.copies, rows.n_rows, bits)
    advance(0.6)
    kept = tuple(release.strata.schema.keep) if request.rows == "imputed" else ()
    kind, text, columns, batches = _layout(release, names, kept, rows.chosen, request.file_format)
    places = [release.strata.schema.position(name) for name in names]
    attributes = [release.strata.schema.attributes[place] for place in places]
    kinds = {column.name: column.kind for column in columns}
    width = len(str(request.copies))
    about: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        "warning": "No row is a person's: all values in these tables were drawn from a model.",
        "rows": request.rows,
        "copies": request.copies,
        "n_rows": rows.n_rows,
        "where": list(map(str, rows.selection.conditions)),
        "left_out_rows": dict(rows.selection.left_out),
        "files": [
            f"{request.rows}_copy_{copy:0{width}}_{MARK}.{kind}"
            for copy in range(1, request.copies + 1)
        ],
        "kept": list(kept),
        "left_out": [] if kept else list(release.strata.schema.keep),
        "combining": _RULES[request.rows],
        "guarantee": dict(claim),
        "model": model.to_plain(),
        "level": LEVEL,
        "tables": _compared(rows, names, codes),
    }
    with replaced_folder(output, overwrite=overwrite) as folder:
        for copy, name in enumerate(about["files"]):
            said = (f"{request.rows} copy {copy + 1}",)
            first = Column(MARK, text, len(release.strata.schema.names), said)
            numbers = {
                attribute.name: number_column(values, attribute, kinds[attribute.name])
                for attribute, values in drawn_numbers(codes[copy], attributes, bits)
            }
            with TableWriter(folder / name, (first, *columns)) as writer:
                start = 0
                for batch in batches or [{}]:
                    n = len(next(iter(batch.values()))) if batch else rows.n_rows
                    arrays: list[Any] = [None] * len(release.strata.schema.names)
                    for place, column in zip(places, codes[copy], strict=True):
                        arrays[place] = column[start : start + n]
                    own = {name: whole.slice(start, n) for name, whole in numbers.items()}
                    writer.write([*arrays, np.zeros(n, dtype=np.uint8)], batch | own)
                    start += n
            advance(0.7 + 0.3 * (copy + 1) / request.copies)
        (folder / ABOUT).write_bytes(to_json(about))
        (folder / PAGE).write_text(rendered(about), encoding="utf-8", newline="")
    return about


def _fitted(
    rows: ReleasedRows, names: Sequence[str], request: SynthesisRequest
) -> PairsModel | TreeModel:
    sizes = [v.attribute.n_categories for v in rows.strata.schema.variables(names)]
    tables = request.tables
    if tables is None:
        small = request.about is None and np.prod(sizes, dtype=float) <= MOST_CELLS
        tables = "pairs" if small else "tree"
    if tables == "pairs":
        return PairsModel.fitted(rows, names)
    width = 1 if request.rows == "imputed" else WIDTH
    return TreeModel.fitted(rows, names, request.about, width)


def _layout(
    release: Release,
    names: Sequence[str],
    kept: Sequence[str],
    chosen: NDArray[np.bool_],
    file_format: str | None,
) -> tuple[str, Any, tuple[Column, ...], list[dict[str, Any]]]:
    """Return the format of the copies, the type of text, their columns, and the unchanged columns
    batch by batch."""
    schema = release.strata.schema
    attributes = [schema.attributes[schema.position(name)] for name in names]
    shown = released_attributes(release.strata, names)
    batches = []
    with open_table(release.rows, shown if not kept else [], kept, other_columns="drop") as reader:
        types = dict(reader.columns)
        first = 0
        for batch in reader if kept else ():
            mine = np.flatnonzero(chosen[first : first + batch.n_rows])
            batches.append({name: column.take(mine) for name, column in batch.kept.items()})
            first += batch.n_rows
    text = text_columns(attributes, [a.categories for a in attributes])[0].kind
    wanted = [(c.name, types.get(c.name, text)) for a in attributes for c in a.columns]
    left_out = [name for name in schema.names if name not in names]
    columns = released_columns(
        [*wanted, *((name, types[name]) for name in kept)], schema.attributes, [*kept, *left_out]
    )
    of_numbers = {attribute.name for attribute in attributes if attribute.range is not None}
    columns = tuple(c.of_values if c.name in of_numbers else c for c in columns)
    source = release.rows if not isinstance(release.rows, list) else release.rows[0]
    if file_format is None:
        try:
            file_format = table_format(Path(source))
        except (InputError, TypeError):
            file_format = "csv"
    return file_format, text, columns, batches


def _compared(
    rows: ReleasedRows, names: Sequence[str], codes: NDArray[Any]
) -> list[dict[str, Any]]:
    """Return the shares of every table of one and two attributes: of the copies, and estimated
    directly with an interval. Cells disagree where the simultaneous 95 % interval does not contain
    the copies' share."""
    schema = rows.strata.schema
    sizes = [v.attribute.n_categories for v in schema.variables(names)]
    chosen = [(i,) for i in range(len(names))] + list(combinations(range(len(names)), 2))
    together = 1 - (1 - LEVEL) / sum(int(np.prod([sizes[i] for i in axes])) for axes in chosen)
    tables = []
    for axes in chosen:
        of, shape = tuple(names[i] for i in axes), tuple(sizes[i] for i in axes)
        cells = np.ravel_multi_index(tuple(codes[:, i].astype(np.int64) for i in axes), shape)
        shares = np.bincount(cells.ravel(), minlength=int(np.prod(shape))) / cells.size
        try:
            (direct,) = Shares(of, level=LEVEL, target="population").answer(rows.counts(of))
        except InputError:  # never in one form, or not estimable
            direct = None
        found = direct and (direct.unbiased, *direct.confidence_interval(LEVEL))
        wide = direct and direct.confidence_interval(together)
        table = []
        for place, share in zip(np.ndindex(shape), shares.tolist(), strict=True):
            low, high = (wide[0][place], wide[1][place]) if wide else (0.0, 1.0)
            table.append(
                {
                    "categories": [
                        schema.variables([name])[0].attribute.categories[i]
                        for name, i in zip(of, place, strict=True)
                    ],
                    "share": share,
                    "direct": float(found[0][place]) if found else None,
                    "low": float(found[1][place]) if found else None,
                    "high": float(found[2][place]) if found else None,
                    "disagrees": not bool(low - 1e-12 <= share <= high + 1e-12),
                }
            )
        tables.append({"attributes": list(of), "cells": table})
    return tables


def rendered(about: Mapping[str, Any]) -> str:
    """Return the page of a folder as one self-contained HTML file."""
    disagreeing = [
        (table["attributes"], cell)
        for table in about["tables"]
        for cell in table["cells"]
        if cell["disagrees"]
    ]
    return render(
        "deniable.synthesis/about.html.j2",
        title=f"{about['copies']} {about['rows']} copies: no row is a person's",
        style=read("deniable.report", "page.css"),
        policy="default-src 'none'; style-src 'unsafe-inline'",
        about=about,
        disagreeing=disagreeing,
    )
