"""From a table to a folder to publish.

The folder holds the randomized rows and files derived from these and the mechanism: `record.json`,
and the report and codebook, which are functions of the record. No file in it depends on the true
values in another way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.atomic_files import (
    FileLock,
    explain_write_errors,
    leaves_nothing,
    refuse_existing,
    refuse_foreign_folder,
    remove_locked_folder,
    replaced_folder,
)
from deniable.errors import InputError, notify
from deniable.laws import InvariantChannel, Law
from deniable.ledger import Entry, Population, Spending, remembered
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.randomness import BitSource, SystemRandomness, permutation
from deniable.release import signing
from deniable.release.by_attribute import companion_digests, write_by_attribute
from deniable.release.entered import give_back, is_entered, undrawn
from deniable.release.persons import columns_of_persons, propose_person, refuse_rows_of_person
from deniable.release.publication import Publication, key_of, ledger_of
from deniable.release.record import Released, explained, release_to_plain
from deniable.report.codebook import render_codebook
from deniable.report.page import render_report
from deniable.schema import FileFormat, Schema
from deniable.statement.account import Design
from deniable.statement.methods import METHODS
from deniable.statement.record import to_json
from deniable.statement.stored import read_json
from deniable.statement.strata import Designs
from deniable.tables import (
    FORMATS,
    Batch,
    Column,
    Forms,
    TableReader,
    TableWriter,
    is_fileset,
    open_table,
    released_columns,
)
from deniable.tables.arrays import taken
from deniable.tables.files import digest_of
from deniable.tables.plink import holds_genotypes
from deniable.tables.reading import AS_FOUND, BATCH_ROWS, Reader, as_it_was, can_be_read_again
from deniable.tables.rows import Repeats, concatenated, count_rows
from deniable.tables.survey_writing import COPIES, refuse_copies, refuse_values, write_copy

BESIDE_ROWS = {"record.json", "codebook.csv", "report.html", *signing.FILES}
"""Files of a release besides its rows."""

_FILES = {
    *BESIDE_ROWS,
    "data",
    *(f"data.{kind}" for kind in (*FORMATS, *COPIES, "bed", "bim", "fam")),
}
"""Files of a release."""

Progress = Callable[[float | None], None]
Rows = tuple[list[NDArray[Any]], dict[str, Any]]
"""Released codes per attribute, shape (n,), and the other columns by name."""


@dataclass(frozen=True, kw_only=True)
class Options(Publication):
    """Options of a release, with ledger and key opened.

    ``command``: the command that repeats the release, with the input's name only. ``people``: the
    population in its ledger.
    """

    command: str = ""
    file_format: FileFormat = AS_FOUND
    people: Population | None = None
    signer: signing.Signer | None = None


def opened(publication: Publication | None, command: str) -> Options:
    """Return options with the ledger and the key opened."""
    publication = publication or Publication()
    return Options(
        **vars(publication),
        command=command,
        people=ledger_of(publication),
        signer=key_of(publication),
    )


def share(
    source: Any,
    design: Design,
    output: Path,
    options: Options,
    bits: BitSource,
    progress: Progress = lambda _fraction: None,
) -> dict[str, Any]:
    """Randomize a table and write the folder to publish, which appears complete or not at all."""
    check_output(output, overwrite=options.overwrite)
    check_ledger(output, options.people)
    remove_unfinished(output)
    mechanism = design.mechanism
    layout = Layout.of(mechanism)
    designs = Designs.one(design)
    # Slow work without rows comes first: rows in the hidden folder would survive a kill.
    design.account.comparison_to_plain()
    spending = Spending.of(designs.strata)
    traceless = leaves_nothing(output)
    randomizer = Randomizer(mechanism, bits)

    def randomized(batches: Iterator[Batch], _table: str) -> Iterator[Rows]:
        for batch in batches:
            yield randomizer.randomize(batch.codes), batch.kept

    with (
        remembered(options.people, spending, "share", traceless=traceless) as entry,
        replaced_folder(output, overwrite=options.overwrite) as folder,
    ):

        def count(rows_of: Counter[Any]) -> None:
            count_release(entry, spending, rows_of, options)

        released = write_rows(
            source, layout, folder, options, bits, progress, randomized, count, randomizer
        )
        return write_statements(designs, released, folder, options.signer, entry)


def check_budget(
    mechanism: Mechanism, population: Population | None, output: Path | None = None
) -> None:
    """Raise, before any row is read, if the population's budget does not allow the release."""
    if population is not None:
        population.check(Spending.of(Strata.one(mechanism)), given_back(output, population))


def given_back(output: Path | None, population: Population) -> int | None:
    """Return the number of the ledger entry of an unfinished release in parts with this output and
    without draws, which is withdrawn when the folder is made; None without one."""
    entry = None if output is None else undrawn(job_folder(output))
    if entry is None or entry.ledger.path.resolve() != population.ledger.path.resolve():
        return None
    return entry.number


def check_ledger(output: Path, population: Population | None) -> None:
    """Raise, before any work, if the ledger lies in the folder to publish, or is missing although
    the release to replace was counted in it."""
    if population is None:
        return
    ledger = population.ledger.path
    if ledger.resolve().is_relative_to(output.resolve()):
        raise InputError(
            f"{ledger}: the ledger lies in the folder of a release, which is published; move it "
            "next to the data"
        )
    if not population.ledger.exists and (
        is_entered(job_folder(output)) or _was_counted(output / "record.json")
    ):
        raise InputError(
            f"{ledger}: there is no such ledger, and {output} was counted in one; restore it, or "
            "start a new one with deniable ledger budget"
        )


def _was_counted(record: Path) -> bool:
    with suppress(InputError):
        return "population" in read_json(record)
    return False


def count_release(
    entry: Entry | None, spending: Spending, rows_of: Mapping[Any, int], options: Options
) -> None:
    """Count the release in its ledger, if it has one, before the rows are complete."""
    most = max(rows_of.values(), default=1)
    refuse_rows_of_person(most, spending.epsilon, *options.rows_of_person)
    if entry is not None:
        entry.count(spending, rows_of_person=most, people=rows_of or None)


def write_statements(
    designs: Designs,
    released: Released,
    folder: Path,
    signer: signing.Signer | None = None,
    entry: Entry | None = None,
) -> dict[str, Any]:
    """Write the record, the codebook and the report, and with a key the signature of all files;
    then enter into the ledger, if there is one, that the folder is complete."""
    if entry is not None:
        released = replace(released, standing=entry.standing)
    record = release_to_plain(designs, released)
    page = explained(record, designs, released)
    (folder / "record.json").write_bytes(to_json(record))
    (folder / "codebook.csv").write_text(render_codebook(page), encoding="utf-8", newline="")
    (folder / "report.html").write_text(
        render_report(page, METHODS[method_of(record)]), encoding="utf-8", newline=""
    )
    if signer is not None:
        signer.sign(folder)
    if entry is not None:
        entry.publish(released.sha256)
    return page


def method_of(record: Mapping[str, Any]) -> str:
    """Return the name of a release's method, the same in all strata."""
    if "mechanism" in record:
        return str(record["mechanism"]["method"])
    return str(record["expost"]["strata"]["mechanisms"][0]["mechanism"]["method"])


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise, before any work, if the folder to make exists or is being made in parts and may not be
    replaced."""
    refuse_other_folder(output, overwrite=overwrite)
    job = job_folder(output)
    if _is_unfinished(output) and not overwrite:
        with alone(job):
            raise InputError(
                f"{output}: an unfinished release exists; continue with `deniable share "
                f"--resume`, or start again with `overwrite`, which removes {job} (its draws "
                "remain counted in the ledger, if there is one)"
            )


def refuse_other_folder(output: Path, *, overwrite: bool) -> None:
    """Raise if the folder to make exists and may not be replaced."""
    refuse_foreign_folder(
        output,
        "a release",
        lambda present: "record.json" in present and present <= _FILES,
        overwrite=overwrite,
    )


def job_folder(output: Path) -> Path:
    """Return the private folder of an unfinished release in parts (deniable.release.job).

    >>> job_folder(Path("out/release")).as_posix()
    'out/.release.job'
    """
    return output.parent / f".{output.name}.job"


CLAIMS = "claims"
"""Folder of the workers' locks in that folder."""

_AT_IT = "{}: another process is making this release; wait until it is done"


@contextmanager
def alone(job: Path) -> Iterator[FileLock]:
    """Lock the folder of a release in parts; yield its lock."""
    lock = FileLock(job / "lock")
    with explain_write_errors(job):
        if not lock.claim():
            raise InputError(_AT_IT.format(job))
    try:
        yield lock
    finally:
        lock.release()


def door_of(job: Path) -> FileLock:
    """Return the lock held by a process while it starts work on a release in parts or removes
    one."""
    return FileLock(job / CLAIMS / "working")


def remove_unfinished(output: Path) -> None:
    """Remove the unfinished parts of a release that is started again."""
    folder = job_folder(output)
    if folder.exists():
        with alone(folder) as lock:
            door = door_of(folder)
            if door.path.parent.exists():
                with explain_write_errors(folder):
                    if not door.claim(patience=1.0):
                        raise InputError(_AT_IT.format(folder))
            try:
                for claim in {*(folder / CLAIMS).glob("*")} - {door.path}:  # locks of workers
                    lock_of_worker = FileLock(claim)
                    if not lock_of_worker.take_over() and claim.exists():
                        raise InputError(_AT_IT.format(folder))
                    lock_of_worker.remove()
                give_back(folder)
                (folder / "job.json").unlink(missing_ok=True)  # without it, it is no job
                remove_locked_folder(folder / CLAIMS, door)
            finally:
                door.release()
            remove_locked_folder(folder, lock)


def _is_unfinished(output: Path) -> bool:
    """Return whether an unfinished release in parts exists. Remains of one that was not started, or
    is finished, are removed."""
    job = job_folder(output)
    if not job.exists():
        return False
    named = output.exists() and not (job / "release").is_dir()  # it died in finishing
    if (job / "job.json").exists() and not named:
        return True
    remove_unfinished(output)
    notify(
        f"a killed run had left {job} without any needed file; it has been removed",
    )
    return False


@dataclass(frozen=True)
class Layout:
    """Columns of the released table."""

    schema: Schema
    output_labels: Sequence[Sequence[str]]
    numeric: tuple[str, ...] = ()
    forms: Forms | None = None

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Layout":
        """Return the layout of a table randomized by a mechanism."""
        given = mechanism.forms
        forms = None if given is None else Forms(given.column, len(given.forms))
        return cls(mechanism.schema, mechanism.output_labels, forms=forms)

    def columns(self, reader: Reader) -> tuple[Column, ...]:
        """Return the columns of the release of a table."""
        return released_columns(
            reader.columns,
            self.schema.attributes,
            self.schema.keep,
            self.output_labels,
            self.numeric,
            self.forms,
        )


def open_rows(
    source: Any,
    schema: Schema,
    options: Options,
    numeric: Sequence[str] = (),
    more: Sequence[str] = (),
    bits: BitSource | None = None,
) -> Reader:
    """Open the rows to release; arguments as of :func:`look_at`, with further columns to read and
    the bits for the rounding of numbers; by default, for a check, others."""
    return open_table(
        source,
        schema.attributes,
        list(dict.fromkeys([*schema.keep, *numeric, *options.persons, *more])),
        other_columns="drop" if options.drop_other_columns else "refuse",
        show_values=options.show_values,
        file_format=schema.file.with_changes(options.file_format),
        rounding=bits or SystemRandomness(),
    )


def refuse_drafted(schema: Schema, options: Options) -> None:
    """Raise before a release with a domain that was read off the data."""
    if schema.drafted and not options.accept_drafted:
        names = ", ".join(f"'{name}'" for name in schema.drafted[:8])
        more = f" and {len(schema.drafted) - 8} more" if len(schema.drafted) > 8 else ""
        raise InputError(
            f"the categories or ranges of {names}{more} were read off the data and are "
            "themselves a disclosure: replace them by the public codebook and remove drafted = "
            "true, or accept that with `accept_drafted`"
        )


def look_at(
    source: Any,
    schema: Schema,
    options: Options,
    numeric: Sequence[str] = (),
    progress: Progress = lambda _fraction: None,
    rows_of: Counter[Any] | None = None,
) -> int | None:
    """Compare all rows of a table with a schema, before anything is designed or released."""
    refuse_drafted(schema, options)
    if not can_be_read_again(source):
        return None
    among: list[str] = []
    if options.person is None:
        with as_it_was(source), open_rows(source, schema, options, numeric) as reader:
            among = columns_of_persons(schema, reader.all_names)
    whose = {name: Repeats() for name in among}
    tally: dict[str, Callable[[Any], None]] = {n: repeats.add for n, repeats in whose.items()}
    if rows_of is not None:
        counts = rows_of
        tally |= dict.fromkeys(options.persons, lambda rows: count_rows(rows, counts, "", 1))

    def check_kept(table: str, kept: dict[str, Any], first_row: int) -> None:
        refuse_values(options.also, table, {n: kept[n] for n in schema.keep}, first_row)

    with as_it_was(source), open_rows(source, schema, options, numeric, among) as reader:
        columns = released_columns(reader.columns, schema.attributes, schema.keep)
        refuse_copies(options.also, columns, schema)
        n_rows = reader.look(options.persons, progress, tally, check_kept if options.also else None)
    note_outside(reader.outside)
    if not n_rows:
        raise InputError(f"{reader.table} has no rows; a release needs some")
    propose_person([name for name, repeats in whose.items() if repeats.found])
    return n_rows


def note_outside(outside: Mapping[str, int]) -> None:
    """Issue a notice for each column of numbers with values outside its range."""
    for name, count in outside.items():
        if count:
            values = "1 value was" if count == 1 else f"{count:,} values were"
            notify(f"'{name}': {values} outside the range and set to its nearer end")


def with_all_mismatches(
    reader: Reader, source: Any, schema: Schema, options: Options
) -> Iterator[Batch]:
    """Yield a table's rows; at a misfit compare the whole table first, to report all misfits.

    Used without :func:`look_at`, since most tables fit.
    """
    try:
        yield from reader
        note_outside(reader.outside)
    except InputError:
        if not hasattr(source, "read"):  # an open file has been partly read
            look_at(source, schema, options)
        raise


def write_rows(
    source: Any,
    layout: Layout,
    folder: Path,
    options: Options,
    bits: BitSource,
    progress: Progress,
    transform: Callable[[Iterator[Batch], str], Iterator[Rows]],
    count: Callable[[Counter[Any]], None],
    randomizer: Randomizer | None = None,
) -> Released:
    """Write the rows of a release into its folder."""
    schema = layout.schema
    refuse_person(options, layout)
    refuse_drafted(schema, options)
    rows_of: Counter[Any] = Counter()
    copies: dict[str, str] = {}
    with open_rows(source, schema, options, layout.numeric, bits=bits) as reader:
        columns = layout.columns(reader)
        # A .bed file has no genotype for empty cells or carriers.
        by_attribute = is_fileset(source) and layout.forms is None and holds_genotypes(columns)
        if randomizer is not None and isinstance(reader, TableReader) and by_attribute:
            file = folder / "data.bed"
            for name in options.persons:
                count_rows(reader.whole_column(name), rows_of, reader.table, 1)
            if options.also:
                raise InputError("a PLINK fileset has no copies; leave out `also`")
            n_rows = write_by_attribute(
                reader,
                columns,
                randomizer,
                file,
                shuffle=options.shuffle,
                before_seen=lambda: count(rows_of),
                progress=progress,
            )
        else:
            file = folder / f"data.{format_like(reader)}"
            also = [kind for kind in dict.fromkeys(options.also) if file.name != f"data.{kind}"]
            refuse_copies(also, columns, schema)

            def counted() -> Iterator[Batch]:
                for batch in reader:
                    for name in options.persons:
                        count_rows(batch.kept.pop(name), rows_of, reader.table, batch.first_row)
                    kept = {name: batch.kept[name] for name in schema.keep}
                    refuse_values(also, reader.table, kept, batch.first_row)
                    yield batch
                    if (done := reader.fraction) is not None:
                        progress(done / 2 if options.shuffle else done)

            batches = transform(counted(), reader.table)
            if options.shuffle:
                batches = _shuffled(batches, bits, lambda done: progress((1 + done) / 2))

            def complete() -> None:
                if not writer.n_rows:
                    raise InputError(f"{reader.table} has no rows; a release needs some")
                count(rows_of)

            with TableWriter(file, columns, before_seen=complete) as writer:
                for codes, kept in batches:
                    writer.write(codes, kept)
            n_rows = writer.n_rows
            for kind in also:
                write_copy(file, folder / f"data.{kind}", columns, schema)
                copies[f"data.{kind}"] = digest_of(folder / f"data.{kind}")
    return Released(
        file=file.name,
        sha256=digest_of(file),
        columns=tuple(column.name for column in columns),
        n_rows=n_rows,
        shuffled=options.shuffle,
        secure=bits.secure,
        person=options.person,
        most_rows=max(rows_of.values()) if options.persons else None,
        command=options.command,
        beside=companion_digests(file) | copies,
    )


def refuse_person(options: Options, layout: Layout) -> None:
    """Raise if the person column is also released."""
    if options.person in (*layout.schema.columns, *layout.schema.keep, *layout.numeric):
        raise InputError(
            f"column '{options.person}' identifies persons and is dropped; remove it from the "
            "schema's attributes and keep"
        )


def format_like(reader: Reader) -> Literal["csv", "csv.gz", "parquet"]:
    """Return the format of the released rows: CSV for files of text, surveys and workbooks, else
    Parquet, which preserves types."""
    if reader.source.released_as == "csv" and reader.table.lower().endswith(".gz"):
        return "csv.gz"
    return reader.source.released_as


def _shuffled(
    batches: Iterable[Rows], bits: BitSource, progress: Callable[[float], None]
) -> Iterator[Rows]:
    """Yield all rows in one random order; codes take a byte or two per cell in memory. ``progress``
    is called with the fraction written."""
    held = list(batches)
    if not held:
        return
    codes = [np.concatenate(parts) for parts in zip(*(c for c, _ in held), strict=True)]
    kept = concatenated([k for _, k in held])
    order = permutation(len(codes[0]), bits)
    for start in range(0, len(order), BATCH_ROWS):
        rows = order[start : start + BATCH_ROWS]
        yield [column[rows] for column in codes], {n: taken(c, rows) for n, c in kept.items()}
        progress(min(1.0, (start + BATCH_ROWS) / len(order)))


def refuse_other_tables(laws: Iterable[Law]) -> None:
    """Raise if a law was made from another table."""
    if any(isinstance(law, InvariantChannel) for law in laws):
        raise InputError(
            "this mechanism is invariant PRAM, made from the frequencies of one table; it cannot "
            "randomize another: use pram on that table"
        )


def randomize_table(
    source: Any,
    mechanism: Mechanism,
    output: str | Path,
    options: Options,
    bits: BitSource,
    progress: Progress = lambda _fraction: None,
) -> int:
    """Randomize a table into another file, streaming, without record or report; return its number
    of rows."""
    refuse_other_tables(block.law for block in mechanism.blocks)
    files = [Path(name) for name in (source, output) if isinstance(name, str | Path)]
    if len(files) == 2 and all(file.exists() for file in files) and files[0].samefile(files[1]):
        raise InputError(
            f"{output} is the input table, whose true values would be lost; choose another name"
        )
    path = None if str(output) == "-" else Path(output)
    if path is not None:
        refuse_existing(path, overwrite=options.overwrite)
        check_ledger(path, options.people)
    schema = mechanism.schema
    refuse_drafted(schema, options)
    spending = Spending.of(Strata.one(mechanism))
    traceless = path is None or leaves_nothing(path)
    randomizer = Randomizer(mechanism, bits)
    with (
        remembered(options.people, spending, "randomize", traceless=traceless) as entry,
        open_rows(source, schema, options, bits=bits) as reader,
    ):

        def count() -> None:
            if entry is not None:
                entry.count()

        columns = Layout.of(mechanism).columns(reader)
        how: Any = {"overwrite": options.overwrite, "before_seen": count}
        if path is not None and is_fileset(path):
            if not (is_fileset(source) and isinstance(reader, TableReader)):
                raise InputError(
                    f"{output}: only a PLINK fileset becomes a .bed file; name the output "
                    ".parquet or .csv"
                )
            return write_by_attribute(reader, columns, randomizer, path, progress=progress, **how)
        with TableWriter(output, columns, **how) as writer:
            for batch in with_all_mismatches(reader, source, schema, options):
                writer.write(randomizer.randomize(batch.codes), batch.kept)
                progress(reader.fraction)
    return writer.n_rows
