"""A release in parts in its ledger: entered at its beginning, spent when a part is drawn."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.errors import InputError, Notice
from deniable.ledger import Ledger, Population, balances, stored_releases
from deniable.release.job import Job, begin, open_job
from deniable.release.parts import finish, make, prepare, work
from deniable.release.release import remove_unfinished
from deniable.tables.files import files_of
from unit.release.tables_in_parts import DESIGN, OPTIONS, content, write_parts
from unit.release.test_parts import SIZES, started, through


def counted(folder: Path, name: str, ledger: Ledger) -> Job:
    """A release in parts that is begun, looked at and entered, with up to two rows of a person."""
    (folder / name).mkdir()
    if not ledger.exists:
        ledger.set_budget("us", 12.0)
    people = write_parts(folder / name / "people", SIZES, person=True)
    options = replace(OPTIONS, people=Population(ledger, "us"), person="who", person_epsilon=99.0)
    return prepare(
        files_of(people) or [],
        DESIGN,
        folder / name / "release",
        options,
        lambda job: work(job, "look", job.remaining("look")) and None,
    )


def test_a_release_is_entered_at_begin_and_spent_when_its_first_part_is_drawn(tmp_path):
    # Failed before: the ledger heard of it when all was drawn, and too late to refuse.
    ledger = Ledger(tmp_path / "ledger")
    ledger.set_budget("us", 7.0)
    job = counted(tmp_path, "first", ledger)
    (entered,) = stored_releases(ledger.events())
    assert (entered.rows_of_person, entered.counted) == (2, False)
    assert balances(ledger.events())["us"].left == pytest.approx(1, abs=1e-6)
    with pytest.raises(InputError, match="the budget of population 'us' does not allow"):
        counted(tmp_path, "second", ledger)
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["people"]
    work(open_job(job.folder), "draw", [1])
    (entered,) = stored_releases(ledger.events())
    assert (entered.rows_of_person, entered.counted, entered.published) == (2, True, None)
    record = through(job)
    (entered,) = stored_releases(ledger.events())
    assert entered.published == record["release"]["sha256"]
    assert entered.of_person.epsilon == record["guarantee"]["person"]["epsilon"]
    assert record["population"]["release"] == 1
    assert [e.kind for e in ledger.events()].count("counted") == 1


@pytest.mark.parametrize("drawn_parts", [[], [2]])
def test_a_job_that_is_given_up_is_withdrawn_unless_a_part_was_drawn(tmp_path, drawn_parts):
    ledger = Ledger(tmp_path / "ledger")
    job = counted(tmp_path, "first", ledger)
    work(job, "draw", drawn_parts)
    remove_unfinished(job.output)
    assert not job.folder.exists()
    (entered,) = stored_releases(ledger.events())
    assert entered.withdrawn == (not drawn_parts)


def test_a_job_whose_part_was_taken_away_goes_on_counting(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    job = counted(tmp_path, "first", ledger)
    work(job, "draw", [0])
    shutil.rmtree(job.folder / "made")
    shutil.rmtree(job.folder / "release")
    remove_unfinished(job.output)
    assert not stored_releases(ledger.events())[0].withdrawn


def test_what_was_drawn_is_not_drawn_again_for_one_entry(tmp_path):
    # Failed before: parts that were taken away with their marks, or were in a copy of the job that
    # was made before, were drawn a second time and counted once.
    ledger = Ledger(tmp_path / "ledger")
    job = counted(tmp_path, "first", ledger)
    copy = shutil.copytree(job.folder, tmp_path / "copy")
    work(job, "draw", [0])
    for folder in ("made", "release"):
        shutil.move(job.folder / folder, tmp_path / folder)
    for other in (copy, job.folder):
        for _ in range(2):
            with pytest.raises(InputError, match="rows of this release were drawn, and they are"):
                work(open_job(other), "draw", [0])
    shutil.rmtree(job.folder / "made")
    for folder in ("made", "release"):
        shutil.move(tmp_path / folder, job.folder / folder)
    second = shutil.copytree(job.folder, tmp_path / "second")
    (tmp_path / "aside").mkdir()
    for folder in (job.folder, second):  # both go on from the first part
        again = open_job(folder)
        work(again, "draw", again.remaining("draw"))
    finish(open_job(second))
    shutil.move(job.output, tmp_path / "aside")
    with pytest.warns(Notice, match="stays"), pytest.raises(InputError, match="with other rows"):
        finish(open_job(job.folder))


def test_a_job_that_drew_nothing_is_begun_anew_within_its_own_budget(tmp_path):
    # Failed before: the budget was asked before the entry was given back.
    ledger = Ledger(tmp_path / "ledger")
    ledger.set_budget("us", 6.0)
    job = counted(tmp_path, "first", ledger)
    with pytest.raises(InputError, match="does not allow"):
        begin([], DESIGN, tmp_path / "other", job.options)
    for _ in range(2):
        job = prepare(
            [Path(source.path) for source in job.stored.sources],
            DESIGN,
            job.output,
            replace(job.options, overwrite=True),
            lambda job: work(job, "look", job.remaining("look")) and None,
        )
    assert [r.withdrawn for r in stored_releases(ledger.events())] == [True, True, False]
    work(job, "draw", [0])
    with pytest.raises(InputError, match="does not allow"):
        begin([], DESIGN, job.output, replace(job.options, overwrite=True))
    assert job.made("draw", 0)


def test_a_ledger_that_is_gone_is_not_begun_anew_by_what_was_counted_in_it(tmp_path):
    # Failed before: a new ledger, in which nothing had been spent.
    ledger = Ledger(tmp_path / "ledger")
    ledger.set_budget("us", 12.0)
    job = counted(tmp_path, "first", ledger)
    again = replace(job.options, overwrite=True)
    ledger.path.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"the ledger of .* is missing"):
        work(job, "draw", [0])
    with pytest.raises(InputError, match=r"no such ledger, and .*release was counted in one"):
        begin([], DESIGN, job.output, again)
    (tmp_path / "moved").rename(ledger.path)
    through(job)
    ledger.path.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"no such ledger, and .*release was counted in one"):
        begin([], DESIGN, job.output, again)
    assert not ledger.exists


def test_a_job_of_which_rows_were_drawn_is_not_entered_again(tmp_path):
    # Failed before: a second entry, which was never counted, and a traceback at the end.
    job = counted(tmp_path, "first", Ledger(tmp_path / "ledger"))
    work(job, "draw", job.remaining("draw"))
    (job.folder / "entry.json").unlink()
    with (
        pytest.warns(Notice, match="stays"),
        pytest.raises(InputError, match="json is missing"),
    ):
        finish(job)


def test_a_job_is_not_removed_between_two_pieces_of_work(tmp_path):
    # Failed before: only what was drawn at the moment was held.
    job = counted(tmp_path, "first", Ledger(tmp_path / "ledger"))
    with job.working(), job.working(), pytest.raises(InputError, match="another process"):
        remove_unfinished(job.output)
    remove_unfinished(job.output)
    assert not job.folder.exists()


def test_a_job_that_died_before_it_was_entered_is_entered_before_a_row_is_drawn(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    job = started(tmp_path, replace(OPTIONS, people=Population(ledger, "us")))
    assert not ledger.exists
    with pytest.warns(Notice, match="is a new ledger"):
        make(job, lambda job, stage: work(job, stage, job.remaining(stage)) and None)
    (entered,) = stored_releases(ledger.events())
    assert entered.counted
    other = Ledger(tmp_path / "other")
    other.set_budget("us", 9.0)
    ledger.path.unlink()
    other.path.rename(ledger.path)
    with pytest.warns(Notice, match="stays"), pytest.raises(InputError, match="another ledger"):
        finish(open_job(job.folder))


def test_a_budget_that_is_lowered_meanwhile_stops_before_a_row_is_drawn(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    ledger.set_budget("us", 7.0)
    job = counted(tmp_path, "first", ledger)
    ledger.set_budget("us", 5.0)
    with pytest.raises(InputError, match="does not allow"):
        work(job, "draw", [0])
    assert content(job.folder / "release") == {}


def test_what_is_left_of_a_finished_release_takes_nothing_back(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger")
    job = counted(tmp_path, "first", ledger)
    with monkeypatch.context() as patch:
        patch.setattr(Job, "remove", lambda _: None)  # it died before that
        through(job)
    for mark in (job.folder / "made").glob("draw-*"):
        mark.unlink()
    remove_unfinished(job.output)
    assert not job.folder.exists()
    assert not stored_releases(ledger.events())[0].withdrawn


def test_a_job_is_removed_although_its_ledger_is_gone(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    job = counted(tmp_path, "first", ledger)
    ledger.path.unlink()
    remove_unfinished(job.output)
    assert not job.folder.exists()
