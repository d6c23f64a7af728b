"""Work on a job: units are compared and drawn, shuffled rows gathered, and the complete release
named."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.atomic_files import (
    Digesting,
    atomic_output,
    explain_write_errors,
    put_folder,
    remove_locked_folder,
    write_file,
)
from deniable.errors import InputError, notify
from deniable.ledger import Spending
from deniable.numerals import count_text
from deniable.randomness import permutation
from deniable.release.entered import enter, entry_of, give_back, is_entered, spend
from deniable.release.job import Job, Source, Stage, begin
from deniable.release.persons import columns_of_persons, propose_person, refuse_rows_of_person
from deniable.release.record import Released, digest_of_parts
from deniable.release.release import (
    BESIDE_ROWS,
    Options,
    note_outside,
    refuse_other_folder,
    write_statements,
)
from deniable.release.signing import Signer
from deniable.report.contents import Part
from deniable.statement.account import Design
from deniable.statement.record import to_json
from deniable.statement.strata import Designs
from deniable.tables import TableWriter
from deniable.tables.arrays import taken
from deniable.tables.buckets import PersonTally, Scatter, gathered, most_rows
from deniable.tables.files import UNIT_CELLS, digest_of
from deniable.tables.reading import BATCH_ROWS
from deniable.tables.rows import Repeats
from deniable.tables.writing import largest_size

Advance = Callable[[int], None]
"""Called with the number of further rows done."""


def prepare(
    source: Source,
    design: Design,
    output: Path,
    options: Options,
    look: Callable[[Job], None],
    seed: int | None = None,
) -> Job:
    """Start a release in parts, compare all rows with the schema, and enter the release into its
    ledger; leaves no trace if a row does not fit."""
    job = begin(source, design, output, options, seed)
    try:
        with job.alone():
            look(job)
            if not sum(job.rows):
                raise InputError(f"{job.stored.sources[0].path} has no rows; a release needs some")
            propose_person(job.repeating)
            note_outside(job.outside())
            _enter(job)
    except BaseException:
        give_back(job.folder)
        job.remove()
        raise
    return job


def make(job: Job, do_stage: Callable[[Job, Stage], None]) -> None:
    """Do the remaining work of a job; an interruption prints how to continue."""
    with job.alone():
        try:
            for stage in ("look", *job.stages):
                if stage == "draw":
                    _spend(job)
                do_stage(job, stage)
        except BaseException:
            with suppress(InputError):
                done = job.n_parts - len(job.remaining(job.stages[-1]))
                notify(
                    f"{done:,} of {count_text(job.n_parts, 'part')} made and stored; continue "
                    f"with deniable share --resume --output {job.output}",
                )
            raise


def work(
    job: Job, stage: Stage, numbers: Sequence[int], advance: Advance = lambda _rows: None
) -> int:
    """Do the remaining of some pieces of work, except those locked by others; return how many."""
    done = 0
    with job.working():
        for number in numbers:
            if job.made(stage, number):
                job.mark(stage, number)
                continue
            claim = job.claim(stage, number)
            if claim is None:
                continue
            try:
                if not job.made(stage, number):
                    if stage == "draw":
                        _spend(job)
                    done += do(job, stage, number, advance)
            finally:
                claim.remove()
    return done


def _enter(job: Job) -> None:
    """Enter the release into its ledger, if it has one, with the largest number of rows per
    person."""
    spending = Spending.of(Designs.one(job.design).strata)
    most = most_rows_of_person(job) or 1
    refuse_rows_of_person(most, spending.epsilon, *job.options.rows_of_person)
    enter(job.folder, job.options.people, spending, most)


def _spend(job: Job) -> None:
    """Count the release in its ledger, if it has one, before a row is drawn."""
    if job.options.people is not None:
        if not is_entered(job.folder):  # it died between start and entry
            _enter(job)
        spend(job.folder)


def most_rows_of_person(job: Job) -> int | None:
    """Return the largest number of rows per person in all tables; None without a person column."""
    if job.options.person is None:
        return None
    files = [job.persons(number) for number in range(len(job.units))]
    for file in files:
        if not file.exists():
            raise InputError(
                f"{file}, the numbers of rows per person, is missing; restore it, or remove "
                f"{job.folder} and start again"
            )
    return most_rows(files)


def do(job: Job, stage: Stage, number: int, advance: Advance = lambda _rows: None) -> bool:
    """Do one piece of work, possibly at the same time as others; return whether this attempt was
    committed."""
    if stage == "look":
        _look(job, number, advance)
        return True
    attempt = {"draw": _draw, "gather": _gather}[stage]
    place = job.place(stage, number)
    try:
        attempt(job, number, place, advance)
    except InputError:
        if not place.exists():
            raise
        return False  # another attempt was first; this one was never visible
    job.mark(stage, number)
    return True


def _look(job: Job, number: int, advance: Advance) -> None:
    place, persons, unit = job.place("look", number), job.persons(number), job.units[number]
    noted: dict[str, Any] = {}
    if job.options.person is None:
        with job.open_first() as reader:
            among = columns_of_persons(job.layout.schema, reader.all_names)
        whose = {name: Repeats() for name in among}
        # The source is compared before it is drawn.
        with job.open(unit, read=False, more=among) as reader:
            rows = reader.look(tally={name: one.add for name, one in whose.items()})
        noted = {"repeats": [name for name, one in whose.items() if one.found]}
    else:
        # Two processes at one unit count the same; either file may stay.
        with (
            atomic_output(persons, overwrite=True, beside=job.attempts) as file,
            job.open(unit, read=False) as reader,
        ):
            tally = PersonTally(file)
            rows = reader.look(job.options.persons, tally={job.options.person: tally.add})
            tally.finish()
    noted["outside"] = dict(reader.outside)
    write_file(place, to_json({"rows": rows, **noted}), overwrite=True, beside=job.attempts)
    advance(rows)


@contextmanager
def _committed(job: Job, place: Path, reserve: int) -> Iterator[tuple[Any, list[int]]]:
    """Yield a file, named at the end unless another attempt was first, and a list for its numbers
    of rows, which are stored before."""
    rows: list[int] = []

    def note() -> None:
        job.note(place.name, file.hexdigest(), sum(rows))

    with atomic_output(place, before_named=note, beside=job.attempts, reserve=reserve) as handle:
        file = Digesting(handle)
        yield file, rows


def _draw(job: Job, number: int, place: Path, advance: Advance) -> None:
    """Randomize a unit, into a part or, if rows are shuffled, into buckets."""
    expected = job.rows[number]
    file_number = job.units[number].file
    status = job.status(file_number)
    bits = job.bits("draw", number)
    randomizer = job.randomizer.with_bits(bits)
    with job.open(job.units[number], bits=bits) as reader:
        columns = job.columns(reader)
        reserve = largest_size(columns, job.stored.kind, expected)

        def randomized() -> Iterator[tuple[list[NDArray[Any]], dict[str, Any]]]:
            for batch in reader:
                for name in job.options.persons:
                    del batch.kept[name]
                yield randomizer.randomize(batch.codes), batch.kept
                advance(batch.n_rows)

        with _committed(job, place, reserve) as (file, rows):
            if job.options.shuffle:
                held = max(BATCH_ROWS, UNIT_CELLS // max(1, len(columns)))
                scatter = Scatter(file, job.buckets, held)
                for codes, kept in randomized():
                    places = bits.bits(np.uint32, len(codes[0])) & np.uint32(job.buckets - 1)
                    scatter.write(codes, kept, places)
                scatter.finish()
                rows.append(scatter.n_rows)
            else:
                with TableWriter(file, columns, kind=job.stored.kind) as writer:
                    for codes, kept in randomized():
                        writer.write(codes, kept)
                rows.append(writer.n_rows)
            if rows != [expected]:
                raise _changed(job, number)
            if job.status(file_number) != status:
                job.refuse_changed(file_number)


def _changed(job: Job, number: int) -> InputError:
    path = job.stored.sources[job.units[number].file].path
    return InputError(
        f"{path} has changed since the release was started: its number of rows differs; restore "
        f"the file, or remove {job.folder} and start again"
    )


def _gather(job: Job, number: int, place: Path, advance: Advance) -> None:
    """Write the rows of one bucket in random order into a part."""
    drawn = [job.place("draw", unit) for unit in range(len(job.units))]
    with job.open_first() as reader:
        columns = job.columns(reader)
    codes, kept = gathered(drawn, number)
    count = len(codes[0]) if codes else 0
    order = permutation(count, job.bits("gather", number))
    reserve = largest_size(columns, job.stored.kind, count)
    with _committed(job, place, reserve) as (file, rows):
        with TableWriter(file, columns, kind=job.stored.kind) as writer:
            for start in range(0, count, BATCH_ROWS):
                chosen = order[start : start + BATCH_ROWS]
                others = {name: taken(column, chosen) for name, column in kept.items()}
                writer.write([column[chosen] for column in codes], others)
                advance(len(chosen))
        rows.append(writer.n_rows)


def finish(job: Job, signer: Signer | None = None) -> dict[str, Any]:
    """Name a release whose parts are complete and remove its job."""
    with job.alone() as lock:
        try:
            refuse_other_folder(job.output, overwrite=job.options.overwrite)
            released = _released(job)
            _spend(job)
            entry = entry_of(job.folder)
            new = job.folder / "release"
            designs = Designs.one(job.design)
            page = write_statements(designs, released, new, signer, entry)
            with explain_write_errors(job.output):
                put_folder(new, job.output, job.folder / "old", overwrite=job.options.overwrite)
        except BaseException:
            _warn_of_unnamed(job)
            raise
        remove_locked_folder(job.folder, lock)
    return page


def _warn_of_unnamed(job: Job) -> None:
    """Warn of a complete release without its name."""
    with suppress(InputError):
        if not job.remaining(job.stages[-1]):
            counts = "" if job.options.people is None else ", which the ledger counts,"
            notify(
                f"{job.folder} holds all parts of the randomized rows{counts} and stays; continue "
                "with `deniable share --resume`, or remove it to discard them",
            )


def _released(job: Job) -> Released:
    """Return the released rows after checking that they are complete and unaltered."""
    final = job.stages[-1]
    for stage in job.stages:
        if left := job.remaining(stage):
            raise InputError(
                f"{job.output}: {len(left):,} of {count_text(job.size(stage), 'part')} are "
                f"missing (the first is number {left[0] + 1}); continue with `deniable share "
                "--resume`"
            )
    files = [job.place(final, number) for number in range(job.n_parts)]
    known = [*files, *(job.folder / "release" / name for name in BESIDE_ROWS)]
    for entry in sorted((job.folder / "release").rglob("*")):
        if entry not in known and entry != files[0].parent:
            raise InputError(f"{entry} does not belong to this release; remove it")
    parts = []
    for file in files:
        digest = digest_of(file)
        parts.append(Part(f"data/{file.name}", job.noted(file, digest), digest))
    most = most_rows_of_person(job)
    epsilon = Designs.one(job.design).strata.epsilon
    # The process may have died before the entry.
    refuse_rows_of_person(most or 1, epsilon, *job.options.rows_of_person)
    n_rows = sum(part.rows for part in parts)
    if n_rows != sum(job.rows):
        raise InputError(
            f"{job.output}: the parts have {count_text(n_rows, 'row')} instead of {sum(job.rows):,}"
        )
    return Released(
        file="data",
        sha256=digest_of_parts(parts),
        columns=tuple(job.stored.columns),
        n_rows=n_rows,
        shuffled=job.options.shuffle,
        secure=job.stored.seed is None,
        person=job.options.person,
        most_rows=most,
        command=job.options.command,
        parts=tuple(parts),
    )
