"""A release that is made in parts: what is to be done, and what has been done so far.

A part is drawn with bits of its own and committed once; one that is there is never drawn again,
and one that is not was seen by nobody. So any number of workers may work on a job, any number of
times, and whatever dies, the next goes on with what is left
(docs/decisions/0019-parts-without-a-key.md).

A job is a private folder beside the output::

    job.json              what is to be done: never changed
    mechanism.json        what randomizes
    looked/00000.json     rows of a unit that were compared with the schema
    drawn/00000           with --shuffle: randomized rows of a unit, by buckets
    release/data/         the parts
    notes/                of every attempt, by the digest of what it wrote: its rows
    persons/              with --person: rows of every person in a unit
    made/                 a mark for everything that was committed
    entry.json            with --ledger: which entry it is (deniable.release.entered)
    claims/               locked: a file per unit of work and per worker, and the door
    attempts/             files under way
    source/               the true rows, if they were written for this release alone
    lock                  held by who begins, makes or finishes it
"""

import hashlib
import math
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from deniable.atomic_files import (
    FileLock,
    explain_write_errors,
    remove_locked_folder,
    write_file,
)
from deniable.errors import InputError
from deniable.ledger import Ledger, Population
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import BitSource, SeededRandomness, SystemRandomness
from deniable.release.release import (
    CLAIMS,
    Layout,
    Options,
    alone,
    check_budget,
    check_ledger,
    check_output,
    door_of,
    format_like,
    job_folder,
    refuse_drafted,
    refuse_other_tables,
    refuse_person,
    remove_unfinished,
)
from deniable.schema import FileFormat
from deniable.statement.account import Design
from deniable.statement.record import mechanism_to_plain, read_design, to_json
from deniable.statement.stored import Digest, check_version, decoded, read_json
from deniable.tables import Column, is_fileset
from deniable.tables.files import UNIT_CELLS, Identity, Unit, identity_of, units_of
from deniable.tables.reading import TableReader, open_unit, refuse_other_columns

FORMAT = "deniable job"
FORMAT_VERSION = 1

Stage = Literal["look", "draw", "gather"]
"""A job's units are compared with the schema and drawn; with ``shuffle``, buckets are gathered."""

_FOLDERS = {"looked", "drawn", "notes", "persons", "made", CLAIMS, "attempts", "release"}

_PATIENCE = 60.0
"""Seconds to wait at the door; a worker passes it in milliseconds."""


class StoredSource(msgspec.Struct, forbid_unknown_fields=True):
    """A file and by what it is known again."""

    path: str
    identity: Identity


class StoredOptions(msgspec.Struct, forbid_unknown_fields=True):
    """How the release is made."""

    shuffle: bool
    person: str | None
    drop_other_columns: bool
    overwrite: bool
    show_values: bool
    command: str
    accept_drafted: bool
    file_format: FileFormat
    ledger: str | None
    population: str | None
    person_epsilon: float | None = None


_SAME_OPTIONS = [
    name for name in StoredOptions.__struct_fields__ if name not in ("ledger", "population")
]
"""The options that are stored under the name and with the value that :class:`Options` has."""


class StoredJob(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be done."""

    format: Literal["deniable job"]
    format_version: Literal[1]
    software: str
    output: str
    mechanism: Digest
    kind: Literal["csv", "csv.gz", "parquet"]
    columns: list[str]
    sources: Annotated[list[StoredSource], msgspec.Meta(min_length=1)]
    units: Annotated[list[Unit], msgspec.Meta(min_length=1)]
    options: StoredOptions
    seed: int | None


@dataclass(frozen=True)
class Job:
    """A release in parts; made by :func:`begin`, opened again by :func:`open_job`."""

    folder: Path
    stored: StoredJob
    known: Design | None = None

    @property
    def output(self) -> Path:
        """The folder to publish."""
        return Path(self.stored.output)

    @cached_property
    def options(self) -> Options:
        """How the release is made."""
        given = msgspec.structs.asdict(self.stored.options)
        ledger, name = given.pop("ledger"), given.pop("population")
        population = None if ledger is None else Population(Ledger(ledger), name)
        return Options(**given, population=population)

    @cached_property
    def design(self) -> Design:
        """What randomizes the rows."""
        if self.known is not None:
            return self.known
        file = self.folder / "mechanism.json"
        with suppress(OSError):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if digest == self.stored.mechanism:
                return _design_of(file, digest)
        raise InputError(
            f"{file} is not the mechanism that the job was begun with, and parts by two mechanisms "
            f"are no release; put it back, or remove {self.folder} and begin anew"
        )

    @cached_property
    def randomizer(self) -> Randomizer:
        """What draws the rows; every piece of work gives it bits of its own."""
        return Randomizer(self.design.mechanism, SystemRandomness())

    @cached_property
    def layout(self) -> Layout:
        """What the released table consists of."""
        return Layout.of(self.design.mechanism)

    @property
    def units(self) -> list[Unit]:
        """The units of the sources."""
        return self.stored.units

    def size(self, stage: Stage) -> int:
        """How many pieces of work a stage has."""
        return self.buckets if stage == "gather" else len(self.units)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is done one after the other, after the rows were looked at."""
        return ("draw", "gather") if self.options.shuffle else ("draw",)

    @property
    def n_parts(self) -> int:
        """How many parts the release has."""
        return self.size(self.stages[-1])

    @cached_property
    def rows(self) -> list[int]:
        """Rows of each unit."""
        files = [self.place("look", number) for number in range(len(self.units))]
        if missing := [number for number, file in enumerate(files) if not file.exists()]:
            raise InputError(
                f"{self.folder}: {len(missing)} of {len(files)} units have not been compared with "
                "the schema yet; continue with `deniable share --resume`"
            )
        return [int(read_json(file)["rows"]) for file in files]

    @property
    def repeating(self) -> list[str]:
        """Columns that are named as if they said whose row it is, and repeat within a unit."""
        looked = [read_json(self.place("look", number)) for number in range(len(self.units))]
        return sorted({name for one in looked for name in one.get("repeats", ())})

    @cached_property
    def buckets(self) -> int:
        """How many parts rows in random order are dealt to, a power of 2."""
        cells = sum(self.rows) * max(1, len(self.stored.columns))
        return 1 << max(0, math.ceil(math.log2(max(1, cells / UNIT_CELLS))))

    def place(self, stage: Stage, number: int) -> Path:
        """Return the file that a piece of work makes."""
        if stage == "look":
            return self.folder / "looked" / f"{number:05}.json"
        if stage == self.stages[-1]:
            return self.folder / "release" / "data" / f"part-{number:05}.{self.stored.kind}"
        return self.folder / "drawn" / f"{number:05}"

    def made(self, stage: Stage, number: int) -> bool:
        """Whether a piece of work is done."""
        file = self.place(stage, number)
        there = file.exists()
        if not there and self._mark(stage, number).exists():
            raise InputError(
                f"{file} was made and is gone, and whoever took it may have seen its rows; put it "
                f"back, or remove {self.folder} and begin anew"
            )
        return there

    def left(self, stage: Stage) -> list[int]:
        """Return what of a stage is not done yet."""
        return [number for number in range(self.size(stage)) if not self.made(stage, number)]

    @property
    def attempts(self) -> Path:
        """Where files are under way."""
        return self.folder / "attempts"

    def mark(self, stage: Stage, number: int) -> None:
        """Note that a piece of work is done, so that it is missed if it goes."""
        with explain_write_errors(self.folder):
            self._mark(stage, number).touch()

    def _mark(self, stage: Stage, number: int) -> Path:
        return self.folder / "made" / f"{stage}-{number:05}"

    def note(self, name: str, digest: str, rows: int) -> None:
        """Note the rows of what an attempt has written, before it gets its name."""
        write_file(
            self.folder / "notes" / f"{name}.{digest}.json",
            to_json({"rows": rows}),
            overwrite=True,
            beside=self.attempts,
        )

    def noted(self, file: Path, digest: str) -> int:
        """Return the rows of what was committed."""
        note = self.folder / "notes" / f"{file.name}.{digest}.json"
        if not note.exists():
            raise InputError(
                f"{file} is not what was drawn: it was altered or put there by hand; remove "
                f"{self.folder} and begin anew"
            )
        return int(read_json(note)["rows"])

    def persons(self, number: int) -> Path:
        """Return the file with the rows of every person in a unit."""
        return self.folder / "persons" / f"{number:05}"

    def claim(self, stage: Stage, number: int) -> FileLock | None:
        """Hold a piece of work, unless another process on this machine does."""
        lock = FileLock(self.folder / CLAIMS / f"{stage}-{number:05}")
        with explain_write_errors(self.folder):
            return lock if lock.claim() else None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold the job with other workers, so that it is not removed."""
        own = FileLock(self.folder / CLAIMS / f"worker-{uuid.uuid4().hex}")
        with explain_write_errors(self.folder):
            door = door_of(self.folder)
            if not door.claim(patience=_PATIENCE):
                raise InputError(f"{self.folder}: another process removes this job")
            try:
                if open_job(self.folder).stored != self.stored:
                    raise InputError(f"{self.folder}: this job was removed, and another begun")
                own.claim()
            finally:
                door.release()
        try:
            yield
        finally:
            own.remove()

    def alone(self) -> AbstractContextManager[FileLock]:
        """Hold the job as a whole; see :func:`~deniable.release.release.alone`."""
        return alone(self.folder)

    def bits(self, stage: Stage, number: int) -> BitSource:
        """Return where the random bits of a piece of work come from: its own, whoever does it."""
        if self.stored.seed is None:
            return SystemRandomness()
        return SeededRandomness(self.stored.seed, f"{stage} {number}")

    def open(self, unit: Unit, *, read: bool = True, more: Sequence[str] = ()) -> TableReader:
        """Open the rows of a unit."""
        self.refuse_changed(unit.file, read=read)
        path = Path(self.stored.sources[unit.file].path)
        return _opened(path, self.design, self.options, unit, more)

    def open_first(self) -> TableReader:
        """Open the first table to see its columns, whatever it is now."""
        return _opened(Path(self.stored.sources[0].path), self.design, self.options, Unit(0))

    def status(self, number: int) -> tuple[int, ...]:
        """Return what the system says of a source; it says something else as soon as somebody
        writes to it."""
        path = Path(self.stored.sources[number].path)
        try:
            now = path.stat()
        except OSError:
            raise InputError(
                f"{path} is gone since the release was begun; put it back, or remove {self.folder} "
                "and begin anew"
            ) from None
        return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino

    def refuse_changed(self, number: int, *, read: bool = True) -> None:
        """Stop if a source is not what it was when the job was begun."""
        known = self.stored.sources[number]
        path = Path(known.path)
        size, changed, *_ = self.status(number)
        actual = identity_of(path) if read else Identity(size, changed, known.identity.digest)
        if actual != known.identity:
            raise InputError(
                f"{path} has changed since the release was begun, and its rows may be other "
                f"people's; put back the file as it was, or remove {self.folder} and begin anew"
            )

    def columns(self, reader: TableReader) -> list[Column]:
        """Return the columns of the release, in its order, with the types of a unit's rows."""
        own = {c.name: c for c in self.layout.columns(reader)}
        return [own[name] for name in self.stored.columns]

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _design_of(file: Path, digest: str) -> Design:  # noqa: ARG001 - by which a file is known
    """Read a design once in a process that works on many units: checking it can take a second."""
    return read_design(file)


def _opened(
    path: Path, design: Design, options: Options, unit: Unit, more: Sequence[str] = ()
) -> TableReader:
    """Open the rows of a unit of a file, as it is now."""
    schema = design.mechanism.schema
    return open_unit(
        path,
        schema.attributes,
        list(dict.fromkeys([*schema.keep, *options.persons, *more])),
        unit,
        other_columns="drop" if options.drop_other_columns else "refuse",
        show_values=options.show_values,
        file_format=schema.file.with_changes(options.file_format),
    )


Source = Sequence[Path] | Callable[[Path], Sequence[Path]]
"""The tables of a release in parts; or what writes them into a private folder that is yet to be
made, and returns their names: they are removed with the job."""


def begin(
    source: Source, design: Design, output: Path, options: Options, seed: int | None = None
) -> Job:
    """Begin a release in parts: nothing is drawn yet.

    ``seed``: repeatable bits, for tests.
    """
    output = output.absolute()
    folder = job_folder(output)
    check_output(output, overwrite=options.overwrite)
    check_ledger(output, options.population)
    mechanism = design.mechanism
    check_budget(mechanism, options.population, output)
    refuse_other_tables(block.law for block in mechanism.blocks)
    refuse_drafted(mechanism.schema, options)
    refuse_person(options, Layout.of(mechanism))
    remove_unfinished(output)
    with explain_write_errors(folder):
        folder.mkdir(mode=0o700)
    with alone(folder) as lock:
        try:
            files = source(folder / "source") if callable(source) else source
            stored = _stored(files, design, output, options, seed)
            with explain_write_errors(folder):
                for name in sorted(_FOLDERS):
                    (folder / name).mkdir()
                (folder / "release" / "data").mkdir()
            write_file(folder / "mechanism.json", _plan(design), overwrite=False)
            # Last: a folder without it was never begun.
            write_file(folder / "job.json", to_json(msgspec.to_builtins(stored)), overwrite=False)
        except BaseException:
            remove_locked_folder(folder, lock)
            raise
    return Job(folder, stored, design)


def _plan(design: Design) -> bytes:
    return to_json(mechanism_to_plain(design))


def _stored(
    files: Sequence[Path], design: Design, output: Path, options: Options, seed: int | None
) -> StoredJob:
    kind, columns = _alike(files, design, options)
    sources = [StoredSource(str(path.absolute()), identity_of(path)) for path in files]
    population = options.population
    return StoredJob(
        format="deniable job",
        format_version=1,
        software=f"deniable {version('deniable')}",
        output=str(output),
        mechanism=hashlib.sha256(_plan(design)).hexdigest(),
        kind=kind,
        columns=columns,
        sources=sources,
        units=units_of(files),
        options=StoredOptions(
            **{name: getattr(options, name) for name in _SAME_OPTIONS},
            ledger=None if population is None else str(population.ledger.path.absolute()),
            population=None if population is None else population.name,
        ),
        seed=seed,
    )


def _alike(files: Sequence[Path], design: Design, options: Options) -> tuple[Any, list[str]]:
    """Return the format and the columns of a release of several tables."""
    layout = Layout.of(design.mechanism)
    first: TableReader | None = None
    for path in files:
        if len(files) > 1 and is_fileset(path):
            raise InputError(
                f"{path}: filesets are not released together, since each counts alleles of its "
                "own; join them first (plink2 --pmerge-list)"
            )
        with _opened(path, design, options, Unit(0)) as reader:
            if first is None:
                first, columns = reader, [c.name for c in layout.columns(reader)]
            elif type(reader.source) is not type(first.source):
                raise InputError(
                    f"{path} is of another format than {files[0]}; tables that go together are all "
                    "CSV or all Parquet"
                )
            refuse_other_columns(first.columns, reader, files[0])
    assert first is not None
    return format_like(first), columns


def open_job(folder: Path) -> Job:
    """Open a job that was begun."""
    file = folder / "job.json"
    if not file.exists():
        raise InputError(f"{folder}: there is no release that was begun and is not finished")
    try:
        plain = read_json(file)
        check_version(plain, FORMAT, FORMAT_VERSION)
        return Job(folder, decoded(plain, StoredJob, "the job"))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def refuse_other_request(
    job: Job, files: Sequence[Path] | None, design: Design | None, command: str | None
) -> None:
    """Stop if a job is to be continued with something else than it was begun with."""
    known = [source.path for source in job.stored.sources]
    if files is not None and [str(path.absolute()) for path in files] != known:
        others = sorted({str(path.absolute()) for path in files} ^ set(known))
        what = others[0] if others else "the order of the tables"
        raise InputError(
            f"{job.output}: the release was begun with other tables ({what}); continue with the "
            f"same, or remove {job.folder} and begin anew"
        )
    if design is not None:
        digest = hashlib.sha256(_plan(design)).hexdigest()
        if digest != job.stored.mechanism:
            raise InputError(
                f"{job.output}: the release was begun with another mechanism, and parts by two "
                f"mechanisms are no release; give the same, or remove {job.folder} and begin anew"
            )
    if command is not None and _asked(command) != _asked(job.stored.options.command):
        raise InputError(
            f"{job.output}: the release was begun by another command ({job.stored.options.command})"
            "; continue with the same, or with nothing but `deniable share --resume` and its output"
        )


def _asked(command: str) -> list[str]:
    """Return a command without what is about the screen."""
    return [word for word in command.split() if word != "--json"]
