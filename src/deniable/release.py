"""The main job: a table in, a folder to publish out.

The folder holds the randomized rows and, beside them, only what follows from the mechanism and from
those rows: `record.json`, and the report and the codebook, which are functions of the record.
Nothing else in it can depend on the true values.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.channel import Channel
from deniable.design import Design
from deniable.errors import InputError
from deniable.inference import expected_error
from deniable.mechanism import Mechanism
from deniable.outputs import replaced_folder
from deniable.privacy import compose
from deniable.randomize import Randomizer
from deniable.randomness import BitSource, permutation
from deniable.record import finite_or_none, mechanism_to_plain, single_attenuations, to_json
from deniable.report import render_codebook, render_report
from deniable.statements import guarantee_sentence, small_print
from deniable.tables import TableWriter, open_table, released_columns, table_format
from deniable.tables.rows import concatenated, count_rows

FORMAT = "deniable release"
FORMAT_VERSION = 1
_BATCH_ROWS = 1 << 16
PAIRS_UP_TO = 50
"""Up to this many protected attributes the record lists the attenuation of every pair."""


def pair_attenuations(mechanism: Mechanism) -> list[dict[str, Any]] | None:
    """Return φ of every pair of attributes under pattern laws, or None beyond 50 attributes.

    With the single attenuations these are what is needed to invert any table of two attributes
    without this software.
    """
    schema = mechanism.schema
    if len(schema.protected) > PAIRS_UP_TO:
        return None
    invertible = [
        name
        for name, single in zip(schema.names, single_attenuations(mechanism), strict=True)
        if single is not None
    ]
    return [
        {
            "attributes": [a, b],
            "attenuation": float(Channel(mechanism, (a, b)).forward.eigenvalues[1, 1]),
        }
        for a, b in combinations([n for n in invertible if n not in schema.keep], 2)
    ]


def expected_errors(mechanism: Mechanism, n_records: int) -> list[dict[str, Any]]:
    """Return, per protected attribute, the standard error of an estimated share: the worst
    category at the least favourable truth, for a table of this many rows."""
    schema = mechanism.schema
    return [
        {
            "attribute": schema.names[i],
            "standard_error": expected_error(
                Channel(mechanism, (schema.names[i],)), n_records
            ).worst,
        }
        for i in schema.protected
    ]


@dataclass(frozen=True)
class Options:
    """How a table is released.

    Args:
        shuffle: release the rows in random order (holds the table in memory).
        person: a column that says whose row it is; it is dropped, and ε per person is reported.
        drop_other_columns: drop columns that the schema does not mention instead of refusing them.
        overwrite: replace an existing release.
        show_values: let error messages show the offending value.
        command: the command that repeats the release, with the input's name only.
    """

    shuffle: bool = False
    person: str | None = None
    drop_other_columns: bool = False
    overwrite: bool = False
    show_values: bool = False
    command: str = ""


def share(
    source: Any,
    design: Design,
    output: Path,
    options: Options,
    bits: BitSource,
    progress: Callable[[int], None] = lambda _rows: None,
) -> dict[str, Any]:
    """Randomize a table and write the folder to publish.

    The folder appears when it is complete, or not at all.

    Args:
        source: what :func:`deniable.tables.open_table` reads.
        design: the mechanism and what is known about it.
        output: the folder to make.
        options: see :class:`Options`.
        bits: where random bits come from.
        progress: called with the number of rows of every batch.

    Returns:
        The record, as it is in ``record.json``.

    Raises:
        InputError: if the table does not fit the schema, or the folder cannot be made.
    """
    with replaced_folder(output, overwrite=options.overwrite) as folder:
        written = _write_rows(source, design.mechanism, folder, options, bits, progress)
        record = _record(design, options, bits, written)
        (folder / "record.json").write_bytes(to_json(record))
        (folder / "codebook.csv").write_text(render_codebook(record), encoding="utf-8", newline="")
        (folder / "report.html").write_text(render_report(record), encoding="utf-8")
    return record


@dataclass(frozen=True)
class _Written:
    file: str
    sha256: str
    columns: tuple[str, ...]
    n_rows: int
    most_rows_of_a_person: int | None


def _write_rows(
    source: Any,
    mechanism: Mechanism,
    folder: Path,
    options: Options,
    bits: BitSource,
    progress: Callable[[int], None],
) -> _Written:
    schema = mechanism.schema
    person = [] if options.person is None else [options.person]
    if options.person in (*schema.names, *schema.keep):
        raise InputError(
            f"column '{options.person}' says whose row it is and is dropped; the schema must not "
            "declare or keep it too"
        )
    rows_of: Counter[Any] = Counter()
    with open_table(
        source,
        schema.attributes,
        [*schema.keep, *person],
        other_columns="drop" if options.drop_other_columns else "refuse",
        show_values=options.show_values,
    ) as reader:
        columns = released_columns(
            reader.columns, schema.attributes, schema.keep, mechanism.output_labels
        )
        file = folder / f"data.{_format_like(source)}"
        randomizer = Randomizer(mechanism, bits)

        def released() -> Iterator[tuple[list[NDArray[Any]], dict[str, Any]]]:
            for batch in reader:
                for name in person:
                    count_rows(batch.kept.pop(name), rows_of, reader.table, batch.first_row)
                yield randomizer.randomize(batch.codes), batch.kept
                progress(batch.n_rows)

        batches = _shuffled(released(), bits) if options.shuffle else released()
        with TableWriter(file, columns) as writer:
            for codes, kept in batches:
                writer.write(codes, kept)
    if not writer.n_rows:
        raise InputError(f"{reader.table} has no rows; there is nothing to release")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return _Written(
        file.name,
        digest,
        tuple(column.name for column in columns),
        writer.n_rows,
        max(rows_of.values(), default=None) if person else None,
    )


def _format_like(source: Any) -> str:
    """Return the format of the released rows: the input's; Parquet for dataframes, whose types a
    text file would lose."""
    if source == "-":
        return "csv"
    return table_format(Path(source)) if isinstance(source, str | Path) else "parquet"


def _shuffled(
    batches: Iterable[tuple[list[NDArray[Any]], dict[str, Any]]], bits: BitSource
) -> Iterator[tuple[list[NDArray[Any]], dict[str, Any]]]:
    """Yield all rows in one random order; codes take a byte or two a cell while they are held."""
    held = list(batches)
    if not held:
        return
    codes = [np.concatenate(parts) for parts in zip(*(c for c, _ in held), strict=True)]
    kept = concatenated([k for _, k in held])
    order = permutation(len(codes[0]), bits)
    for start in range(0, len(order), _BATCH_ROWS):
        rows = order[start : start + _BATCH_ROWS]
        yield [column[rows] for column in codes], {n: c.take(rows) for n, c in kept.items()}


def _record(design: Design, options: Options, bits: BitSource, written: _Written) -> dict[str, Any]:
    mechanism = design.mechanism
    most = written.most_rows_of_a_person
    per_person = compose([mechanism.epsilon] * (most or 1))
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        "title": mechanism.schema.title,
        "release": {
            "file": written.file,
            "sha256": written.sha256,
            "rows": written.n_rows,
            "columns": list(written.columns),
            "row_order": "shuffled" if options.shuffle else "kept",
            "randomness": "operating system" if bits.secure else "seeded",
        },
        "guarantee": {
            "epsilon": finite_or_none(mechanism.epsilon),
            "person": None
            if most is None
            else {
                "column": options.person,
                "most_rows": most,
                "epsilon": finite_or_none(per_person),
            },
            "unprotected": list(mechanism.unprotected),
            "sentence": guarantee_sentence(mechanism, per_person),
        },
        "attenuation": {
            "single": dict(
                zip(mechanism.schema.names, single_attenuations(mechanism), strict=True)
            ),
            "pairs": pair_attenuations(mechanism),
        },
        "expected_error": expected_errors(mechanism, written.n_rows),
        "command": options.command,
        "small_print": small_print(
            mechanism, shuffled=options.shuffle, person=options.person, secure=bits.secure
        ),
        "mechanism": mechanism_to_plain(design),
    }
