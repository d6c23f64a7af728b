"""Units as tasks of an engine: whatever it does with them, every person once."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from deniable import Design, Schema, design
from deniable.engines.units import Run, Task, do_unit, share_by
from deniable.errors import InputError, Notice
from deniable.ledger import Ledger
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.release import job
from deniable.release.job import open_job
from deniable.release.publication import Publication
from deniable.release.release import job_folder
from deniable.release.signing import is_signed
from deniable.statement.record import mechanism_to_plain, read_design, to_json
from deniable.tables import open_table
from unit.release.tables_in_parts import DESIGN, SCHEMA, content, write_parts

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
        share_by(run, people, DESIGN, output, "…")
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


def test_a_worker_reads_the_mechanism_once(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(job, "read_design", lambda file: read.append(file) or read_design(file))
    check_each_person_once(of_share(twice), tmp_path)
    assert len(read) == 1


def test_what_is_not_done_in_the_end_is_said_and_can_be_continued(tmp_path):
    people = write_parts(tmp_path / "people", SIZES)

    def idle(task: Task, numbers: Sequence[int]) -> list[str]:
        return once(task, numbers) if task.args[1] == "look" else []  # type: ignore[attr-defined]

    with (
        pytest.warns(Notice, match="0 of 3 parts made"),
        pytest.raises(InputError, match="other processes work on 3 units; continue with `deniable"),
    ):
        share_by(idle, people, DESIGN, tmp_path / "release", "…")
    assert open_job(job_folder(tmp_path / "release")).remaining("draw") == [0, 1, 2]


def test_what_goes_wrong_in_a_task_is_one_sentence(tmp_path):
    people = write_parts(tmp_path / "people", SIZES)
    plan = tmp_path / "mechanism.json"
    plan.write_bytes(to_json(mechanism_to_plain(DESIGN)))
    (people / "people-1.csv").write_text("row,a,b\n1,x,perhaps\n")
    with pytest.raises(InputError, match=r"people-1\.csv, data row 1, column 'b'"):
        share_by(once, str(people), plan, tmp_path / "release", "…")
    assert not job_folder(tmp_path / "release").exists()
    single = people / "people-0.csv"
    record = share_by(once, single, plan, tmp_path / "release", "…")
    assert record["release"]["rows"] == SIZES[0]
    assert "no unfinished release" in do_unit(str(tmp_path / "nowhere"), "draw", 0)
    assert sorted(content(tmp_path / "release"))[1].startswith("data/part-00000")
    assert os.listdir(tmp_path / "release" / "data") == ["part-00000.csv"]  # noqa: PTH208


def test_an_engine_asks_as_share_does(tmp_path, monkeypatch):
    people = write_parts(tmp_path / "people", SIZES)
    key = tmp_path / "key"
    key.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
    )
    key.chmod(0o600)
    ledger = Ledger(tmp_path / "ledger")
    ledger.set_budget("everybody", 5.0)
    monkeypatch.setenv("DENIABLE_LEDGER", str(ledger.path))
    drafted = design(
        Schema(tuple(replace(a, drafted=True) for a in SCHEMA.attributes), keep=("row",)),
        epsilon=3,
    )

    def shared(plan: Design, name: str, **asked: Any) -> dict[str, Any]:
        return share_by(once, people, plan, tmp_path / name, "…", Publication(**asked))

    with pytest.raises(InputError, match="accept that with `accept_drafted`"):
        shared(drafted, "first")
    record = shared(drafted, "first", accept_drafted=True, sign=key)
    assert record["population"]["release"] == 1
    assert is_signed(tmp_path / "first")
    with pytest.raises(InputError, match="the budget of population 'everybody' does not allow"):
        shared(DESIGN, "second")
    with pytest.raises(TypeError, match="seed"):
        shared(DESIGN, "second", seed=1)
    monkeypatch.delenv("DENIABLE_LEDGER")
    with pytest.raises(
        InputError, match="`population` needs a ledger; name its file with `ledger`"
    ):
        shared(DESIGN, "second", population="us")
    write_parts(tmp_path / "nobody", (0, 0))
    with pytest.raises(InputError, match="has no rows"):
        share_by(once, tmp_path / "nobody", DESIGN, tmp_path / "second", "…")
    assert {p.name for p in tmp_path.iterdir()} == {"people", "nobody", "key", "ledger", "first"}
