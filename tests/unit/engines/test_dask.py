"""Dask: the real one by `just engines`, since it takes seconds to start."""

import os
from pathlib import Path

import pytest

from deniable.engines import dask
from deniable.release.publication import Publication
from unit.engines.test_units import Read, check_each_person_once, read_release
from unit.release.tables_in_parts import DESIGN, write_parts

real = pytest.mark.skipif(
    "ENGINES" not in os.environ, reason="starts an engine, which takes a while: just engines"
)


class Here:
    """A client whose workers are this process, and run everything again."""

    def map(self, task, numbers, *, pure, retries):
        assert not pure
        return [task(number) for _ in range(retries - 1) for number in numbers]

    def gather(self, futures):
        return futures


def test_units_are_mapped_over_a_client(tmp_path: Path) -> None:
    def adapter(people: Path, output: Path) -> Read:
        record = dask.share(Here(), people, DESIGN, output)
        assert record["command"] == "deniable.engines.dask.share(…)"
        return lambda: read_release(output)

    check_each_person_once(adapter, tmp_path)


def test_the_options_of_a_release_are_handed_on(tmp_path: Path) -> None:
    people = write_parts(tmp_path / "people", (6, 5), person=True)
    for overwrite in (False, True):
        record = dask.share(
            *(Here(), people, DESIGN, tmp_path / "release"),
            Publication(
                shuffle=True,
                person="who",
                person_epsilon=99.0,
                drop_other_columns=True,
                overwrite=overwrite,
            ),
        )
        assert record["release"]["row_order"] == "shuffled"
        assert record["guarantee"]["person"]["most_rows"] == 2


@real
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_leaves_every_person_once(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    killed = tmp_path / "killed"
    killed.touch()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):

        class Dying:
            def map(self, task, numbers, **how):
                return client.map(dies_once(task, killed), numbers, **how)

            def gather(self, futures):
                return client.gather(futures)

        def adapter(people: Path, output: Path) -> Read:
            dask.share(Dying(), people, DESIGN, output)
            return lambda: read_release(output)

        check_each_person_once(adapter, tmp_path)
    assert not killed.exists()


def dies_once(task, killed):
    def work(number):
        if number == 1 and killed.exists():
            task(number)  # what it has committed stays
            killed.unlink()
            os.kill(os.getpid(), 9)
        return task(number)

    return work
