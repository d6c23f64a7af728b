"""Parts: every person once, whatever dies; what is complete and unaltered gets its name."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.errors import InputError, Notice
from deniable.ledger import Ledger, Population
from deniable.randomness import SeededRandomness
from deniable.release.job import Job, begin, open_job
from deniable.release.parts import do, finish, prepare, work
from deniable.release.record import verify
from deniable.release.release import Options, job_folder, share
from deniable.tables import open_table
from deniable.tables.files import files_of
from killing import finished, forked, killed, moments
from marked import slow_after
from unit.release.tables_in_parts import DESIGN, OPTIONS, content, released_rows, write_parts

SIZES = (7, 4, 6)
PART_KILLS = int(os.environ.get("PART_KILLS", "3"))
"""Moments at which a release is killed; just parts tries twenty."""


def started(
    folder: Path, options: Options = OPTIONS, kind: str = "csv", seed: int | None = None
) -> Job:
    """A job whose units have been looked at."""
    people = folder / "people"
    if not people.exists():
        write_parts(people, SIZES, kind, person=options.person is not None)
    files = files_of(people)
    assert files is not None
    job = begin(files, DESIGN, folder / "release", options, seed)
    work(job, "look", job.remaining("look"))
    return open_job(job.folder)


def through(job: Job) -> dict[str, object]:
    """Do all that is left of a job, as a process that knows nothing but its folder."""
    job = open_job(job.folder)
    for stage in job.stages:
        work(job, stage, job.remaining(stage))
    return finish(job)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_release_in_parts_has_every_row_once_and_its_record_is_true(tmp_path, kind):
    record = through(started(tmp_path, kind=kind))
    release = tmp_path / "release"
    assert sorted(content(release)) == [
        "codebook.csv",
        *(f"data/part-0000{n}.{kind}" for n in range(3)),
        "record.json",
        "report.html",
    ]
    assert released_rows(release) == [str(n) for n in range(sum(SIZES))]
    assert [part["rows"] for part in record["release"]["parts"]] == list(SIZES)
    assert record["release"]["row_order"] == "kept"
    assert not (tmp_path / ".release.job").exists()
    verify(release)


def test_a_seeded_part_holds_what_a_single_file_would_draw(tmp_path):
    """The law that parts draw by is that of share: with the bits of a unit, the same rows."""
    through(started(tmp_path, seed=3))
    for number in range(3):
        table = tmp_path / "people" / f"people-{number}.csv"
        bits = SeededRandomness(3, f"draw {number}")
        share(table, DESIGN, tmp_path / f"single{number}", OPTIONS, bits)
        single = (tmp_path / f"single{number}" / "data.csv").read_bytes()
        assert single == (tmp_path / "release" / "data" / f"part-0000{number}.csv").read_bytes()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", slow_after(1, ["csv", "parquet"]))
def test_rows_of_a_person_are_counted_over_all_parts(tmp_path, kind, shuffle, monkeypatch):
    options = replace(OPTIONS, person="who", person_epsilon=99.0, shuffle=shuffle)
    monkeypatch.setattr("deniable.tables.buckets._HELD_PERSONS", 2)
    job = started(tmp_path, options, kind)
    record = through(job)
    assert record["guarantee"]["person"]["most_rows"] == 2
    assert record["guarantee"]["person"]["epsilon"] == pytest.approx(6, abs=1e-6)
    assert "who" not in record["release"]["columns"]


def test_shuffled_rows_are_all_there_in_an_order_that_has_any_first_row(tmp_path, monkeypatch):
    monkeypatch.setattr("deniable.release.job.UNIT_CELLS", 20)
    first = set()
    for seed in range(5):
        job = started(tmp_path, replace(OPTIONS, shuffle=True), seed=seed)
        record = through(job)
        rows = released_rows(tmp_path / "release")
        assert sorted(map(int, rows)) == list(range(sum(SIZES)))
        assert len(record["release"]["parts"]) == 4
        assert record["release"]["row_order"] == "shuffled"
        verify(tmp_path / "release")
        first.add(rows[0])
        (tmp_path / "release").rename(tmp_path / f"release{seed}")
    assert len(first) > 2  # of five draws from seventeen, seeded


def test_rows_that_are_drawn_are_shuffled_without_a_look_at_the_source(tmp_path, monkeypatch):
    job = started(tmp_path, replace(OPTIONS, shuffle=True))
    work(job, "draw", range(3))
    monkeypatch.setattr("deniable.release.job.identity_of", lambda _: pytest.fail("read again"))
    assert work(job, "gather", [0]) == 1


def test_the_result_does_not_depend_on_who_does_what(tmp_path):
    results = []
    for order in ([0, 1, 2], [2, 0, 1]):
        folder = tmp_path / f"in-{order[0]}"
        folder.mkdir()
        job = started(folder, seed=5)
        for number in order:
            work(open_job(job.folder), "draw", [number])
        finish(open_job(job.folder))
        results.append(content(folder / "release"))
    assert results[0] == results[1]


# --- what dies ------------------------------------------------------------------------------------


def kill_and_look(folder: Path, count: int, *, shuffle: bool) -> None:
    """Kill a release at moments spread over its course; each time the next run ends it."""
    options = replace(OPTIONS, shuffle=shuffle)
    through(started(folder / "0", options))  # what is loaded once is no moment of the others
    begun = started(folder / "1", options)
    total = moments(lambda: finish_copy(begun.folder))
    for turn in range(count):
        place = folder / f"{turn + 2}"
        job = started(place, options)
        died = killed(lambda f=job.folder: finish_copy(f), total * turn // count)  # type: ignore[misc]
        data = job.folder / "release" / "data"
        before = content(data) if data.is_dir() else {}
        if (place / "release").exists():
            before = content(place / "release" / "data")
            assert died or turn == count - 1
        else:
            through(job)
        after = content(place / "release" / "data")
        assert before.items() <= after.items(), turn
        rows = released_rows(place / "release")
        assert sorted(map(int, rows)) == list(range(sum(SIZES))), turn
        verify(place / "release")
        assert shuffle or rows == [str(n) for n in range(sum(SIZES))]


def finish_copy(job: Path) -> None:
    through(open_job(job))


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for turn in range(2 + PART_KILLS):
        (tmp_path / f"{turn}").mkdir()
    return tmp_path


@pytest.mark.parametrize("shuffle", slow_after(1, [True, False]))
def test_whatever_moment_it_is_killed_every_row_is_released_once(places, shuffle):
    kill_and_look(places, PART_KILLS, shuffle=shuffle)


@pytest.mark.slow
def test_of_three_attempts_at_one_part_at_once_one_stays(tmp_path):
    for turn in range(3):
        (tmp_path / str(turn)).mkdir()
        job = started(tmp_path / str(turn))
        read, go = os.pipe()
        answers, answer = os.pipe()

        def attempt(job: Job = job, read: int = read, answer: int = answer) -> None:
            os.read(read, 1)  # all begin when the pipe is closed
            os.write(answer, b"1" if do(job, "draw", 1) else b"0")

        def child(attempt=attempt, go: int = go) -> None:
            os.close(go)
            attempt()

        children = [forked(child) for _ in range(3)]
        os.close(go)
        assert all(map(finished, children))
        os.close(answer)
        with os.fdopen(answers) as text:
            assert sorted(text.read()) == ["0", "0", "1"]
        os.close(read)
        through(job)
        assert released_rows(tmp_path / str(turn) / "release") == [str(n) for n in range(17)]


def test_an_interrupted_part_was_seen_by_nobody(tmp_path, monkeypatch):
    job = started(tmp_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("deniable.release.parts.Job.note", interrupt)
        with pytest.raises(KeyboardInterrupt):
            work(job, "draw", [0])
    assert content(job.folder / "release") == content(job.folder / "attempts") == {}
    assert work(job, "draw", range(3)) == 3


# --- what is altered ------------------------------------------------------------------------------


def drawn(folder: Path) -> Job:
    job = started(folder)
    work(job, "draw", range(3))
    return job


def test_parts_that_are_not_there_yet_are_counted(tmp_path):
    job = started(tmp_path)
    work(job, "draw", [0])
    with pytest.raises(InputError, match=r"2 of 3 parts are missing \(the first is number 2"):
        finish(job)
    assert not (tmp_path / "release").exists()


def test_a_part_that_was_made_and_is_gone_is_never_drawn_again(tmp_path):
    job = drawn(tmp_path)
    (job.folder / "release" / "data" / "part-00001.csv").unlink()
    for what in (lambda: work(job, "draw", range(3)), lambda: finish(job)):
        with pytest.raises(InputError, match=r"part-00001\.csv was made and is missing"):
            what()


def test_a_part_that_was_altered_or_put_there_by_hand_is_named(tmp_path):
    job = drawn(tmp_path)
    part = job.folder / "release" / "data" / "part-00001.csv"
    true = part.read_bytes()
    part.write_bytes(true.replace(b"x", b"y", 1) if b"x" in true else true + b"9,x,no\n")
    with (
        pytest.warns(Notice, match="stays"),
        pytest.raises(InputError, match=r"part-00001\.csv is not a file drawn for this release"),
    ):
        finish(job)
    part.write_bytes(true)
    stray = job.folder / "release" / "data" / "part-00003.csv"
    stray.write_bytes(true)
    with (
        pytest.warns(Notice, match="stays"),
        pytest.raises(InputError, match=r"part-00003\.csv does not belong to this release"),
    ):
        finish(job)
    stray.unlink()
    (job.folder / "release" / "notes.txt").touch()
    with (
        pytest.warns(Notice, match="stays"),
        pytest.raises(InputError, match=r"notes\.txt does not belong to this release"),
    ):
        finish(job)
    (job.folder / "release" / "notes.txt").unlink()
    finish(job)


def test_a_finished_release_is_refused_if_a_part_is_altered_added_or_gone(tmp_path):
    through(started(tmp_path))
    release = tmp_path / "release"
    part = release / "data" / "part-00001.csv"
    true = part.read_bytes()
    part.write_bytes(true + b"9,x,no\n")
    with pytest.raises(InputError, match=r"part-00001\.csv is not the file"):
        verify(release)
    part.unlink()
    with pytest.raises(InputError, match=r"part-00001\.csv: cannot be read"):
        verify(release)
    part.write_bytes(true)
    (release / "data" / "part-7.csv").write_bytes(true)
    with pytest.raises(InputError, match=r"part-7\.csv is no part of the release"):
        verify(release)
    (release / "data" / "part-7.csv").unlink()
    verify(release)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"parts.0.rows": 8}, "do not add up"),
        ({"parts.0.rows": 8, "parts.1.rows": 3}, "number of rows differs from that of"),
        ({"parts.1.file": "data/part-00000.csv"}, "listed twice"),
        ({"sha256": "0" * 64}, "digest of all parts"),
        ({"parts": []}, "parts are listed if and only if"),
        ({"parts.0.file": "data/../../people/people-0.csv"}, "altered"),
        ({"parts": "all"}, "altered"),
    ],
)
def test_what_a_record_says_of_its_parts_is_checked(tmp_path, changes, problem):
    through(started(tmp_path))
    file = tmp_path / "release" / "record.json"
    record = json.loads(file.read_text())
    for place, value in changes.items():
        *steps, last = place.split(".")
        part = record["release"]
        for step in steps:
            part = part[int(step) if isinstance(part, list) else step]
        part[last] = value
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=problem):
        verify(tmp_path / "release")


def test_a_disk_without_space_for_the_largest_part_stops_before_it_is_drawn(tmp_path):
    import resource

    job = started(tmp_path)

    def work_without_space() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))
        with pytest.raises(InputError, match="the disk is full"):
            work(job, "draw", range(3))

    assert finished(forked(work_without_space))
    assert content(job.folder / "release") == content(job.folder / "attempts") == {}
    through(job)


def test_an_unreadable_part_is_named_and_the_others_stay(tmp_path):
    job = started(tmp_path, kind="parquet")
    path = tmp_path / "people" / "people-1.parquet"
    whole, then = path.read_bytes(), path.stat()
    path.write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])  # its footer is as it was
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    with pytest.raises(InputError, match=r"people-1\.parquet: the file is not readable as Parquet"):
        work(job, "draw", range(3))
    made = content(job.folder / "release" / "data")
    assert (len(made), job.remaining("draw")) == (1, [1, 2])
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"people-1\.parquet"):
        begin(files_of(tmp_path / "people") or [], DESIGN, tmp_path / "other", OPTIONS)
    assert not job_folder(tmp_path / "other").exists()
    path.write_bytes(whole)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert work(job, "draw", range(3)) == 2
    assert made.items() <= content(job.folder / "release" / "data").items()


@pytest.mark.parametrize("change", ["a row more", "a value"])
def test_a_source_that_changes_while_it_is_read_is_no_part(tmp_path, monkeypatch, change):
    job = started(tmp_path)
    path = tmp_path / "people" / "people-2.csv"
    opened = Job.open

    def changed(self: Job, unit: object, **bits: object) -> object:
        reader = opened(self, unit, **bits)
        text, then = path.read_text(), path.stat()
        if change == "a value":  # and the time as before
            path.write_text(text.replace("x", "y", 1))
            os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
        else:
            path.write_text(text + "99,x,no\n")
        return reader

    monkeypatch.setattr(Job, "open", changed)
    with pytest.raises(
        InputError, match=r"people-2\.csv has changed since the release was started"
    ):
        work(job, "draw", [2])
    assert job.remaining("draw") == [0, 1, 2]


def test_a_row_of_nobody_is_named_before_anything_is_drawn(tmp_path):
    people = write_parts(tmp_path / "people", SIZES, person=True)
    path = people / "people-1.csv"
    path.write_text(path.read_text().replace(",p4", ","))
    with pytest.raises(InputError, match=r"people-1\.csv, the first in data row 2, column 'who'"):
        started(tmp_path, replace(OPTIONS, person="who", person_epsilon=99.0))


def test_a_persons_file_that_is_gone_is_named(tmp_path):
    job = started(tmp_path, replace(OPTIONS, person="who", person_epsilon=99.0))
    work(job, "draw", range(3))
    job.persons(1).unlink()
    with (
        pytest.warns(Notice, match="stays"),
        pytest.raises(InputError, match="00001, the numbers of rows per person, is missing"),
    ):
        finish(job)


@pytest.mark.parametrize("ledger", [False, True])
def test_a_refused_finish_names_the_folder_that_holds_all_rows(tmp_path, ledger):
    # Failed before: a complete release stayed there, and nothing said so.
    whose = Population(Ledger(tmp_path / "l")) if ledger else None
    if whose is not None:
        whose.ledger.set_budget("everybody", 9.0)
    job = started(tmp_path, replace(OPTIONS, people=whose))
    work(job, "draw", range(3))
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "mine.txt").touch()
    said = r"\.release\.job holds all parts of the randomized rows"
    said += ", which the ledger counts, and stays" if ledger else " and stays"
    with pytest.warns(Notice, match=said), pytest.raises(InputError, match="exists already"):
        finish(job)


def test_an_empty_part_is_one(tmp_path):
    write_parts(tmp_path / "people", (0, 3, 0))
    record = through(started(tmp_path))
    assert [part["rows"] for part in record["release"]["parts"]] == [0, 3, 0]
    with open_table(tmp_path / "release" / "data", [], ["row"], other_columns="drop") as reader:
        assert sum(batch.n_rows for batch in reader) == 3


def test_an_output_that_has_come_meanwhile_stays(tmp_path):
    job = drawn(tmp_path)
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "mine.txt").touch()
    with pytest.warns(Notice, match="stays"), pytest.raises(InputError, match="exists already"):
        finish(job)
    assert content(tmp_path / "release") == {"mine.txt": b""}


def test_parts_with_several_rows_of_a_person_are_refused_before_anything_is_drawn(tmp_path):
    files = files_of(write_parts(tmp_path / "people", SIZES, person=True)) or []
    options = replace(OPTIONS, person="who")
    with pytest.raises(InputError, match="one person has 2 rows of ε = 3 each, 6 together"):
        prepare(
            *(files, DESIGN, tmp_path / "release", options),
            lambda job: work(job, "look", job.remaining("look")) and None,
        )
    assert not (tmp_path / ".release.job").exists()
    job = started(tmp_path, options)  # as after a kill between looking and entering
    work(job, "draw", job.remaining("draw"))
    with pytest.warns(Notice, match="stays"), pytest.raises(InputError, match="one person has"):
        finish(job)
