"""Units as tasks of an engine: whatever it does with them, every person once."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deniable.design.record import mechanism_to_plain, to_json
from deniable.engines.units import Run, Task, do_unit, share_by
from deniable.errors import InputError
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.release.job import job_folder, open_job
from deniable.tables import open_table
from unit.release.tables_in_parts import DESIGN, OPTIONS, SCHEMA, content, write_parts

SIZES = (40, 30, 20)
ALL = [str(n) for n in range(sum(SIZES))]

Read = Callable[[], list[tuple[str, ...]]]
"""An action on what an adapter returned."""


def read_release(folder: Path) -> list[tuple[str, ...]]:
    with open_table(folder / "data", [], ["row", "a", "b"], other_columns="drop") as reader:
        return [
            row
            for batch in reader
            for row in zip(*(batch.kept[n].to_pylist() for n in ("row", "a", "b")), strict=True)
        ]


def of_share(run: Run) -> Callable[[Path, Path], Read]:
    def adapter(people: Path, output: Path) -> Read:
        share_by(run, people, DESIGN, output, OPTIONS)
        return lambda: read_release(output)

    return adapter


def lazily(people: Path, _output: Path) -> Read:
    """A planted adapter: what it returns is drawn when it is asked for."""

    def read() -> list[tuple[str, ...]]:
        found = []
        draw = Randomizer(DESIGN.mechanism, SystemRandomness()).randomize
        with open_table(people, SCHEMA.attributes, SCHEMA.keep) as reader:
            for batch in reader:
                codes = [column.tolist() for column in draw(batch.codes)]
                found += zip(batch.kept["row"].to_pylist(), *map(str, codes), strict=False)
        return found

    return read


def check_each_person_once(adapter: Callable[[Path, Path], Read], folder: Path) -> None:
    """What every adapter has to pass: each person once, and one draw, however often one reads."""
    read = adapter(write_parts(folder / "people", SIZES), folder / "release")
    first, second = read(), read()
    assert [row[0] for row in first] == ALL
    assert first == second, "a second action drew the same people again"


def once(task: Task, numbers: Sequence[int]) -> list[str]:
    return [task(number) for number in numbers]


def twice(task: Task, numbers: Sequence[int]) -> list[str]:
    return once(task, [*numbers, *numbers])


def out_of_order(task: Task, numbers: Sequence[int]) -> list[str]:
    return once(task, list(numbers)[::-1])


def losing(task: Task, numbers: Sequence[int]) -> list[str]:
    """An engine that loses most of its workers: only the first task is done."""
    return once(task, numbers[:1])


@pytest.mark.parametrize("run", [once, twice, out_of_order, losing])
def test_whatever_an_engine_does_every_person_is_released_once(tmp_path, run):
    check_each_person_once(of_share(run), tmp_path)


def test_an_adapter_that_hands_out_what_is_drawn_on_demand_fails(tmp_path):
    with pytest.raises(AssertionError):
        check_each_person_once(lazily, tmp_path)


def test_what_is_not_done_in_the_end_is_said_and_can_be_continued(tmp_path):
    people = write_parts(tmp_path / "people", SIZES)

    def idle(task: Task, numbers: Sequence[int]) -> list[str]:
        return once(task, numbers) if task.args[1] == "look" else []  # type: ignore[attr-defined]

    with pytest.raises(InputError, match="other processes work on 3 units; continue with --resume"):
        share_by(idle, people, DESIGN, tmp_path / "release", OPTIONS)
    assert open_job(job_folder(tmp_path / "release")).left("draw") == [0, 1, 2]


def test_what_goes_wrong_in_a_task_is_one_sentence(tmp_path):
    people = write_parts(tmp_path / "people", SIZES)
    plan = tmp_path / "mechanism.json"
    plan.write_bytes(to_json(mechanism_to_plain(DESIGN)))
    (people / "people-1.csv").write_text("row,a,b\n1,x,perhaps\n")
    with pytest.raises(InputError, match=r"people-1\.csv, data row 1, column 'b'"):
        share_by(once, str(people), plan, tmp_path / "release", OPTIONS)
    assert not job_folder(tmp_path / "release").exists()
    single = people / "people-0.csv"
    record = share_by(once, single, plan, tmp_path / "release", OPTIONS)
    assert record["release"]["rows"] == SIZES[0]
    assert "no release" in do_unit(str(tmp_path / "nowhere"), "draw", 0)
    assert sorted(content(tmp_path / "release"))[1].startswith("data/part-00000")
    assert os.listdir(tmp_path / "release" / "data") == ["part-00000.csv"]  # noqa: PTH208
