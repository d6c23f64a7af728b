"""A release made in parts: its request and its state.

A part is drawn with bits of its own and committed once; a committed part is never drawn again, and
an uncommitted one was never visible. So any number of workers may work on a job at any time, and
after a crash the next continues with the remaining parts
(docs/decisions/0019-parts-without-a-key.md).

A job is a private folder next to the output: ``job.json``, its request, never changed, and
``mechanism.json``; by unit the rows compared (``looked/``), those drawn, by buckets (``drawn/``),
and the rows of every person (``persons/``); the parts (``release/data/``), the rows of every
attempt by its digest (``notes/``), a mark for everything committed (``made/``), unfinished files
(``attempts/``), locks (``claims/``, ``lock``), and ``source/``, true rows that were written for
this release only.
"""

import hashlib
import math
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields
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
from deniable.release.publication import Publication
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
from deniable.statement.stored import check_version, decoded, read_json
from deniable.strict_json import Digest
from deniable.tables import Column, is_fileset
from deniable.tables.files import UNIT_CELLS, Identity, Unit, identity_of, units_of
from deniable.tables.reading import TableReader, open_unit, refuse_other_columns

FORMAT = "deniable job"
FORMAT_VERSION = 1

Stage = Literal["look", "draw", "gather"]
"""A job's units are compared with the schema and drawn; with ``shuffle``, buckets are gathered."""

_FOLDERS = {"looked", "drawn", "notes", "persons", "made", CLAIMS, "attempts", "release"}

_OPENED = ("ledger", "population", "new_population", "new_ledger", "sign")
"""Fields of a publication that are stored as opened, or not stored: the key is private."""

_PATIENCE = 60.0
"""Seconds to wait at the door; a worker passes in milliseconds."""


class StoredSource(msgspec.Struct, forbid_unknown_fields=True):
    """A source file with its size, time of change and digest."""

    path: str
    identity: Identity


class StoredJob(msgspec.Struct, forbid_unknown_fields=True):
    """Request of a release in parts."""

    format: Literal["deniable job"]
    format_version: Literal[1]
    software: str
    output: str
    mechanism: Digest
    kind: Literal["csv", "csv.gz", "parquet"]
    columns: list[str]
    sources: Annotated[list[StoredSource], msgspec.Meta(min_length=1)]
    units: Annotated[list[Unit], msgspec.Meta(min_length=1)]
    command: str
    file_format: FileFormat
    options: dict[str, str | bool | float | None]
    seed: int | None


@dataclass(frozen=True)
class Job:
    """A release in parts, made by :func:`begin`, reopened by :func:`open_job`."""

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
        given: dict[str, Any] = dict(self.stored.options)
        ledger, name = given.pop("ledger", None), given.pop("population", "")
        try:
            return Options(
                **given,
                command=self.stored.command,
                file_format=self.stored.file_format,
                people=None if ledger is None else Population(Ledger(ledger), name),
            )
        except TypeError as error:
            raise InputError(f"{self.folder}/job.json was altered by hand ({error})") from None

    @cached_property
    def design(self) -> Design:
        """The design of the mechanism."""
        if self.known is not None:
            return self.known
        file = self.folder / "mechanism.json"
        with suppress(OSError):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if digest == self.stored.mechanism:
                return _design_of(file, digest)
        raise InputError(
            f"{file} is not the mechanism that the job was started with; parts by two mechanisms "
            f"are not one release; restore it, or remove {self.folder} and start again"
        )

    @cached_property
    def randomizer(self) -> Randomizer:
        """The randomizer; every piece of work gives it bits of its own."""
        return Randomizer(self.design.mechanism, SystemRandomness())

    @cached_property
    def layout(self) -> Layout:
        """Columns of the released table."""
        return Layout.of(self.design.mechanism)

    @property
    def units(self) -> list[Unit]:
        """Units of the sources."""
        return self.stored.units

    def size(self, stage: Stage) -> int:
        """Return the number of pieces of work in a stage."""
        return self.buckets if stage == "gather" else len(self.units)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages after the comparison of all rows with the schema."""
        return ("draw", "gather") if self.options.shuffle else ("draw",)

    @property
    def n_parts(self) -> int:
        """Number of parts of the release."""
        return self.size(self.stages[-1])

    @cached_property
    def rows(self) -> list[int]:
        """Rows of each unit."""
        files = [self.place("look", number) for number in range(len(self.units))]
        if missing := [number for number, file in enumerate(files) if not file.exists()]:
            raise InputError(
                f"{self.folder}: {len(missing)} of {len(files)} units are not yet compared with "
                "the schema; continue with `deniable share --resume`"
            )
        return [int(read_json(file)["rows"]) for file in files]

    @property
    def repeating(self) -> list[str]:
        """Columns named like person identifiers that repeat within a unit."""
        looked = [read_json(self.place("look", number)) for number in range(len(self.units))]
        return sorted({name for one in looked for name in one.get("repeats", ())})

    def outside(self) -> Counter[str]:
        """Numbers that are set to an end of their range, by column."""
        looked = [read_json(self.place("look", number)) for number in range(len(self.units))]
        return sum((Counter(one.get("outside", {})) for one in looked), Counter())

    @cached_property
    def buckets(self) -> int:
        """Number of parts for rows in random order, a power of 2."""
        cells = sum(self.rows) * max(1, len(self.stored.columns))
        return 1 << max(0, math.ceil(math.log2(max(1, cells / UNIT_CELLS))))

    def place(self, stage: Stage, number: int) -> Path:
        """Return the file of a piece of work."""
        if stage == "look":
            return self.folder / "looked" / f"{number:05}.json"
        if stage == self.stages[-1]:
            return self.folder / "release" / "data" / f"part-{number:05}.{self.stored.kind}"
        return self.folder / "drawn" / f"{number:05}"

    def made(self, stage: Stage, number: int) -> bool:
        """Return whether a piece of work is done."""
        file = self.place(stage, number)
        there = file.exists()
        if not there and self._mark(stage, number).exists():
            raise InputError(
                f"{file} was made and is missing; its rows may have been seen; restore it, or "
                f"remove {self.folder} and start again"
            )
        return there

    def remaining(self, stage: Stage) -> list[int]:
        """Return the undone pieces of work of a stage."""
        return [number for number in range(self.size(stage)) if not self.made(stage, number)]

    @property
    def attempts(self) -> Path:
        """Folder of unfinished files."""
        return self.folder / "attempts"

    def mark(self, stage: Stage, number: int) -> None:
        """Mark a piece of work as done, so that its loss is detected."""
        with explain_write_errors(self.folder):
            self._mark(stage, number).touch()

    def _mark(self, stage: Stage, number: int) -> Path:
        return self.folder / "made" / f"{stage}-{number:05}"

    def note(self, name: str, digest: str, rows: int) -> None:
        """Store the number of rows of an attempt, before its file gets its name."""
        write_file(
            self.folder / "notes" / f"{name}.{digest}.json",
            to_json({"rows": rows}),
            overwrite=True,
            beside=self.attempts,
        )

    def noted(self, file: Path, digest: str) -> int:
        """Return the number of rows of a committed file."""
        note = self.folder / "notes" / f"{file.name}.{digest}.json"
        if not note.exists():
            raise InputError(
                f"{file} is not a file drawn for this release: it was altered or added by hand; "
                f"remove {self.folder} and start again"
            )
        return int(read_json(note)["rows"])

    def persons(self, number: int) -> Path:
        """Return the file with the rows of every person in a unit."""
        return self.folder / "persons" / f"{number:05}"

    def claim(self, stage: Stage, number: int) -> FileLock | None:
        """Lock a piece of work; None if another process on this machine holds it."""
        lock = FileLock(self.folder / CLAIMS / f"{stage}-{number:05}")
        with explain_write_errors(self.folder):
            return lock if lock.claim() else None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold the job with other workers against its removal."""
        own = FileLock(self.folder / CLAIMS / f"worker-{uuid.uuid4().hex}")
        with explain_write_errors(self.folder):
            door = door_of(self.folder)
            if not door.claim(patience=_PATIENCE):
                raise InputError(
                    f"{self.folder}: another process is removing this job; wait until it is done"
                )
            try:
                if open_job(self.folder).stored != self.stored:
                    raise InputError(
                        f"{self.folder}: this job was removed and another started; open it again"
                    )
                own.claim()
            finally:
                door.release()
        try:
            yield
        finally:
            own.remove()

    def alone(self) -> AbstractContextManager[FileLock]:
        """Lock the whole job; see :func:`~deniable.release.release.alone`."""
        return alone(self.folder)

    def bits(self, stage: Stage, number: int) -> BitSource:
        """Return the random bits of a piece of work, the same for every worker."""
        if self.stored.seed is None:
            return SystemRandomness()
        return SeededRandomness(self.stored.seed, f"{stage} {number}")

    def open(
        self,
        unit: Unit,
        *,
        read: bool = True,
        more: Sequence[str] = (),
        bits: BitSource | None = None,
    ) -> TableReader:
        """Open the rows of a unit; ``bits`` round its numbers, by default for a check."""
        self.refuse_changed(unit.file, read=read)
        path = Path(self.stored.sources[unit.file].path)
        return _opened(path, self.design, self.options, unit, more, bits)

    def open_first(self) -> TableReader:
        """Open the first table, for its columns only."""
        return _opened(Path(self.stored.sources[0].path), self.design, self.options, Unit(0))

    def status(self, number: int) -> tuple[int, ...]:
        """Return a source's size, times and inode, which change at every write."""
        path = Path(self.stored.sources[number].path)
        try:
            now = path.stat()
        except OSError:
            raise InputError(
                f"{path} is missing since the release was started; restore it, or remove "
                f"{self.folder} and start again"
            ) from None
        return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino

    def refuse_changed(self, number: int, *, read: bool = True) -> None:
        """Raise if a source has changed since the job was started."""
        known = self.stored.sources[number]
        path = Path(known.path)
        size, changed, *_ = self.status(number)
        actual = identity_of(path) if read else Identity(size, changed, known.identity.digest)
        if actual != known.identity:
            raise InputError(
                f"{path} has changed since the release was started; its rows may be other "
                f"people's; restore the file, or remove {self.folder} and start again"
            )

    def columns(self, reader: TableReader) -> list[Column]:
        """Return the columns of the release, in order, with the types of a unit's rows."""
        own = {c.name: c for c in self.layout.columns(reader)}
        return [own[name] for name in self.stored.columns]

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _design_of(file: Path, digest: str) -> Design:  # noqa: ARG001 - a key of the cache
    """Read a design once per process: checking it can take a second."""
    return read_design(file)


def _opened(
    path: Path,
    design: Design,
    options: Options,
    unit: Unit,
    more: Sequence[str] = (),
    bits: BitSource | None = None,
) -> TableReader:
    """Open the rows of a unit of a file."""
    schema = design.mechanism.schema
    return open_unit(
        path,
        schema.attributes,
        list(dict.fromkeys([*schema.keep, *options.persons, *more])),
        unit,
        other_columns="drop" if options.drop_other_columns else "refuse",
        show_values=options.show_values,
        file_format=schema.file.with_changes(options.file_format),
        rounding=bits or SystemRandomness(),
    )


Source = Sequence[Path] | Callable[[Path], Sequence[Path]]
"""Tables of a release in parts, or a function that writes them into a given private folder, which
is removed with the job, and returns their names."""


def begin(
    source: Source, design: Design, output: Path, options: Options, seed: int | None = None
) -> Job:
    """Start a release in parts, without draws.

    ``seed``: repeatable bits, for tests.
    """
    output = output.absolute()
    folder = job_folder(output)
    check_output(output, overwrite=options.overwrite)
    check_ledger(output, options.people)
    mechanism = design.mechanism
    check_budget(mechanism, options.people, output)
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
            # Last: a folder without it is no job.
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
    people = options.people
    changed = {
        one.name: getattr(options, one.name)
        for one in fields(Publication)
        if one.name not in _OPENED and getattr(options, one.name) != one.default
    }
    if people is not None:
        changed |= {"ledger": str(people.ledger.path.absolute()), "population": people.name}
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
        command=options.command,
        file_format=options.file_format,
        options=changed,
        seed=seed,
    )


def _alike(files: Sequence[Path], design: Design, options: Options) -> tuple[Any, list[str]]:
    """Return the format and the columns of a release of several tables."""
    layout = Layout.of(design.mechanism)
    first: TableReader | None = None
    for path in files:
        if len(files) > 1 and is_fileset(path):
            raise InputError(
                f"{path}: filesets cannot be released together, since each counts its own first "
                "alleles; join them first (plink2 --pmerge-list)"
            )
        with _opened(path, design, options, Unit(0)) as reader:
            if first is None:
                first, columns = reader, [c.name for c in layout.columns(reader)]
            elif type(reader.source) is not type(first.source):
                raise InputError(
                    f"{path} has another format than {files[0]}; use CSV tables only, or Parquet "
                    "tables only"
                )
            refuse_other_columns(first.columns, reader, files[0])
    assert first is not None
    return format_like(first), columns


def open_job(folder: Path) -> Job:
    """Open an existing job."""
    file = folder / "job.json"
    if not file.exists():
        raise InputError(
            f"{folder}: there is no unfinished release; start one without `deniable share --resume`"
        )
    try:
        plain = read_json(file)
        check_version(plain, FORMAT, FORMAT_VERSION)
        return Job(folder, decoded(plain, StoredJob, "the job"))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def refuse_other_request(
    job: Job, files: Sequence[Path] | None, design: Design | None, command: str | None
) -> None:
    """Raise if a job is continued with a request other than its own."""
    known = [source.path for source in job.stored.sources]
    if files is not None and [str(path.absolute()) for path in files] != known:
        others = sorted({str(path.absolute()) for path in files} ^ set(known))
        what = others[0] if others else "the order of the tables"
        raise InputError(
            f"{job.output}: the release was started with other tables ({what}); continue with "
            f"these, or remove {job.folder} and start again"
        )
    if design is not None:
        digest = hashlib.sha256(_plan(design)).hexdigest()
        if digest != job.stored.mechanism:
            raise InputError(
                f"{job.output}: the release was started with another mechanism, and parts by two "
                f"are not one release; use that one, or remove {job.folder} and start again"
            )
    if command is not None and _without_json(command) != _without_json(job.stored.command):
        raise InputError(
            f"{job.output}: the release was started by another command "
            f"({job.stored.command}); continue with that, or with `deniable share "
            "--resume` and its output only"
        )


def _without_json(command: str) -> list[str]:
    """Return a command without options about the screen."""
    return [word for word in command.split() if word != "--json"]
