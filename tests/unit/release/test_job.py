"""A job: what is begun, what is left, and what it refuses to go on with."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deniable import Attribute, Design, Schema, design
from deniable.errors import InputError, Notice
from deniable.ledger import Ledger, Population
from deniable.randomness import SystemRandomness
from deniable.release.job import (
    Job,
    begin,
    open_job,
    refuse_other_request,
)
from deniable.release.parts import work
from deniable.release.release import door_of, job_folder, share
from deniable.tables.files import files_of
from unit.release.tables_in_parts import DESIGN, OPTIONS, write_parts


@pytest.fixture
def begun(tmp_path: Path) -> Job:
    files = files_of(write_parts(tmp_path / "people", (5, 4, 3)))
    assert files is not None
    return begin(files, DESIGN, tmp_path / "release", OPTIONS)


def kronecker(schema: Schema, *levels: float) -> Design:
    return design(schema, attribute_epsilon=levels, method="kronecker")


def sources(job: Job) -> list[Path]:
    return [Path(source.path) for source in job.stored.sources]


def test_a_job_is_private_and_says_what_is_to_be_done(begun, tmp_path):
    assert begun.folder == tmp_path / ".release.job" == job_folder(tmp_path / "release")
    assert begun.folder.stat().st_mode & 0o777 == 0o700
    again = open_job(begun.folder)
    assert again.stored == begun.stored
    assert again.options == OPTIONS
    assert again.design.mechanism == DESIGN.mechanism
    assert again.stored.columns == ["row", "a", "b"]
    assert (again.stages, again.remaining("draw")) == (("draw",), [0, 1, 2])
    assert work(again, "look", again.remaining("look")) == 3
    assert (again.rows, again.remaining("look")) == ([5, 4, 3], [])
    (begun.folder / "looked" / "00000.json").unlink()
    with pytest.raises(InputError, match="1 of 3 units are not yet compared with the schema"):
        _ = begun.rows
    begun.remove()
    with pytest.raises(InputError, match="no unfinished release"):
        open_job(begun.folder)


def test_every_option_of_a_release_is_kept(tmp_path):
    files = [write_parts(tmp_path / "people", (5,), person=True) / "people-0.csv"]
    ledger = Ledger(tmp_path / "ledger")
    options = replace(
        OPTIONS,
        shuffle=True,
        person="who",
        person_epsilon=99.0,
        drop_other_columns=True,
        show_values=True,
        people=Population(ledger, "us"),
        file_format=replace(OPTIONS.file_format, separator=","),
        accept_drafted=True,
    )
    job = open_job(begin(files, DESIGN, tmp_path / "release", options).folder)
    assert job.options.people is not None
    assert job.options.people.ledger.path == ledger.path
    assert replace(job.options, people=None) == replace(options, people=None)
    assert job.stages == ("draw", "gather")


def test_a_second_release_of_the_name_is_refused_while_one_is_unfinished(begun, tmp_path):
    files = sources(begun)
    with pytest.raises(
        InputError, match="an unfinished release exists; continue with `deniable share --resume`"
    ):
        begin(files, DESIGN, tmp_path / "release", OPTIONS)
    with begun.alone(), pytest.raises(InputError, match="another process is making this release"):
        begin(files, DESIGN, tmp_path / "release", OPTIONS)
    replacing = replace(OPTIONS, overwrite=True)
    drawing = begun.claim("draw", 0)
    with pytest.raises(InputError, match="another process is making this release"):
        begin(files, DESIGN, tmp_path / "release", replacing)
    drawing.release()
    assert begun.folder.exists()
    forced = begin(files, DESIGN, tmp_path / "release", replacing)
    assert forced.options.overwrite
    with pytest.raises(InputError, match="an unfinished release exists"):
        share(files[0], DESIGN, tmp_path / "release", OPTIONS, SystemRandomness())
    share(files[0], DESIGN, tmp_path / "release", replacing, SystemRandomness())
    assert not forced.folder.exists()


@pytest.mark.parametrize("left", ["job.json", "release"])
def test_what_is_left_of_a_job_that_was_never_begun_or_is_finished_is_cleared(
    begun, tmp_path, left
):
    path, output, options = begun.folder / left, tmp_path / "release", OPTIONS
    path.rename(output if left == "release" else tmp_path / "away")
    if left == "release":
        (output / "record.json").write_text("{}")
        options = replace(OPTIONS, overwrite=True)
    with pytest.warns(Notice, match=r"had left .*\.release\.job"):
        begin(sources(begun), DESIGN, output, options)


def test_a_job_whose_parts_were_removed_is_not_taken_for_a_finished_one(begun, tmp_path):
    # Failed before: it was removed without --force.
    (begun.folder / "release").rename(tmp_path / "away")
    with pytest.raises(InputError, match="an unfinished release exists"):
        begin(sources(begun), DESIGN, tmp_path / "release", OPTIONS)
    assert begun.folder.exists()


def test_a_job_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    files = files_of(write_parts(tmp_path / "people", (5, 4)))
    monkeypatch.setattr("deniable.release.job.to_json", lambda _plain: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begin(files, DESIGN, tmp_path / "release", OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["people"]


def test_tables_that_do_not_go_together_are_refused(tmp_path):
    folder = write_parts(tmp_path / "people", (5, 4))
    write_parts(tmp_path / "more", (5,), "parquet")
    both = [folder / "people-0.csv", tmp_path / "more" / "people-0.parquet"]
    with pytest.raises(InputError, match="has another format than"):
        begin(both, DESIGN, tmp_path / "release", OPTIONS)
    with pytest.raises(InputError, match="filesets cannot be released together"):
        begin([Path("1.bed"), Path("2.bed")], DESIGN, tmp_path / "release", OPTIONS)
    with pytest.raises(InputError, match="no such file"):
        begin([folder / "gone.csv"], DESIGN, tmp_path / "release", OPTIONS)
    with pytest.raises(InputError, match="column 'row' identifies persons and is dropped"):
        begin(both[:1], DESIGN, tmp_path / "release", replace(OPTIONS, person="row"))
    drafted = Schema(
        (Attribute("a", ("x", "y", "z"), drafted=True), DESIGN.mechanism.schema.attributes[1])
    )
    with pytest.raises(InputError, match="were read off the data"):
        begin(both[:1], design(drafted, epsilon=1), tmp_path / "release", OPTIONS)
    assert not job_folder(tmp_path / "release").exists()


def test_a_source_that_has_changed_or_is_gone_is_named(begun):
    work(begun, "look", range(3))
    path = sources(begun)[1]
    then = path.stat()
    text = path.read_text()
    path.write_text(text.replace("x", "y", 1))
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))  # as a careful editor might
    with pytest.raises(
        InputError, match=r"people-1\.csv has changed since the release was started"
    ):
        work(begun, "draw", range(3))
    assert begun.remaining("draw") == [1, 2]
    path.unlink()
    with pytest.raises(InputError, match=r"people-1\.csv is missing since the release was started"):
        work(begun, "draw", [1])
    path.write_text(text)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert work(begun, "draw", range(3)) == 2


def test_another_mechanism_is_refused(begun):
    file = begun.folder / "mechanism.json"
    file.write_text(file.read_text() + " ")
    other = open_job(begun.folder)
    with pytest.raises(InputError, match="not the mechanism that the job was started with"):
        _ = other.design
    file.unlink()
    with pytest.raises(InputError, match="not the mechanism that the job was started with"):
        _ = open_job(begun.folder).design


def test_a_job_goes_on_only_with_what_it_was_begun_with(begun):
    refuse_other_request(begun, None, None, None)
    refuse_other_request(begun, sources(begun), DESIGN, OPTIONS.command)
    with pytest.raises(InputError, match=r"with other tables \(.*people-1\.csv\)"):
        refuse_other_request(begun, [sources(begun)[0], sources(begun)[2]], None, None)
    with pytest.raises(InputError, match="the order of the tables"):
        refuse_other_request(begun, sources(begun)[::-1], None, None)
    other = kronecker(DESIGN.mechanism.schema, 1.0, 1.0)
    with pytest.raises(InputError, match="started with another mechanism"):
        refuse_other_request(begun, None, other, None)
    with pytest.raises(InputError, match="started by another command"):
        refuse_other_request(begun, None, None, "deniable share --shuffle")


def test_an_altered_job_is_refused(begun):
    file = begun.folder / "job.json"
    plain = json.loads(file.read_text())
    file.write_text(json.dumps(plain | {"extra": 1}))
    with pytest.raises(InputError, match=r"job\.json: the job has been altered"):
        open_job(begun.folder)
    file.write_text(json.dumps(plain | {"format_version": 99}))
    with pytest.raises(InputError, match="version 99 of the format"):
        open_job(begun.folder)


def test_a_piece_of_work_is_held_by_one_process(begun):
    claim = begun.claim("draw", 0)
    assert claim is not None
    assert begun.claim("draw", 0) is None
    assert begun.claim("draw", 1) is not None
    claim.remove()
    assert begun.claim("draw", 0) is not None


def test_nobody_works_on_a_job_that_is_being_removed_or_was_replaced(begun, tmp_path, monkeypatch):
    monkeypatch.setattr("deniable.release.job._PATIENCE", 0.1)
    door = door_of(begun.folder)
    assert door.claim()
    with pytest.raises(InputError, match="another process is removing this job"), begun.working():
        pass
    door.release()
    with begun.working(), begun.working():
        assert len([*(begun.folder / "claims").glob("worker-*")]) == 2
    assert not [*(begun.folder / "claims").glob("worker-*")]
    begin(sources(begun)[:1], DESIGN, tmp_path / "release", replace(OPTIONS, overwrite=True))
    with pytest.raises(InputError, match="this job was removed and another started"):
        work(begun, "draw", [0])


def test_every_piece_of_work_has_bits_of_its_own(tmp_path):
    files = files_of(write_parts(tmp_path / "people", (5, 4)))
    jobs = [
        begin(files, DESIGN, tmp_path / f"release{seed}", OPTIONS, seed) for seed in (1, 2, None)
    ]
    streams = [
        job.bits(stage, number).bits(np.uint64, 4000)
        for job in (*jobs, jobs[2])
        for stage in ("draw", "gather")
        for number in (0, 1, 10, 11, 110)
    ]
    # No 64 bits of any stream are found in another: 1.6e5 words, of which two are alike with
    # probability below 1e-9.
    everything = np.concatenate(streams)
    assert len(np.unique(everything)) == len(everything)
    again = jobs[0].bits("draw", 11).bits(np.uint64, 4000)
    assert np.array_equal(again, streams[3])


def test_rows_in_random_order_are_dealt_to_enough_buckets(tmp_path, monkeypatch):
    files = files_of(write_parts(tmp_path / "people", (30, 20)))
    job = begin(files, DESIGN, tmp_path / "release", replace(OPTIONS, shuffle=True))
    work(job, "look", [0, 1])
    assert job.buckets == 1
    monkeypatch.setattr("deniable.release.job.UNIT_CELLS", 40)
    assert open_job(job.folder).buckets == 4  # of 150 cells at most 40 each, to a power of 2
