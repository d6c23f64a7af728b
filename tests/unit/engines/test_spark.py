"""Spark: the real one by `just engines`, since it takes most of a minute to start."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import deniable
from deniable.atomic_files import FileLock
from deniable.engines import spark
from deniable.engines.processes import make, resumed
from deniable.errors import InputError, Notice
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.release.parts import finish
from deniable.release.publication import Publication
from deniable.release.release import job_folder
from unit.engines.test_units import ALL, SIZES, Read, check_each_person_once, read_release
from unit.release.tables_in_parts import DESIGN, SCHEMA, write_parts

real = pytest.mark.skipif(
    "ENGINES" not in os.environ, reason="starts an engine, which takes a while: just engines"
)


class Context:
    """Spark's context, whose executors are this process, and run everything again."""

    def parallelize(self, numbers, slices):
        assert len(numbers) == slices
        self.numbers = numbers
        return self

    def map(self, task):
        self.task = task
        return self

    def collect(self):
        return [self.task(number) for number in [*self.numbers, *self.numbers]]


class Column:
    def __init__(self, values):
        self.values = values

    def select(self, name):
        assert name == "`row`"
        return self

    def distinct(self):
        return Column(list(dict.fromkeys(self.values)))

    def count(self):
        return len(self.values)


class Session:
    version = "4.3.0"

    def __init__(self, values=ALL):
        self.sparkContext = Context()
        self.read = self
        self._values = values

    def parquet(self, path):
        assert Path(path.removeprefix("file://")).is_dir()
        return Column(self._values)


class Frame(Column):
    """A frame of Spark's, written as it is or with faults."""

    columns = ("row", "a", "b")

    def __init__(self, folder, written=ALL):
        super().__init__(ALL)
        self.folder = folder
        self.sparkSession = Session(written)
        self.write = self

    def parquet(self, path):
        rows = Path(path.removeprefix("file://"))
        assert rows.parent.stat().st_mode & 0o777 == 0o700
        shutil.copytree(self.folder, rows)
        (rows / "_SUCCESS").touch()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_parts(tmp_path / "people", SIZES)


def test_units_are_tasks_of_a_session(tmp_path: Path) -> None:
    def adapter(people: Path, output: Path) -> Read:
        record = spark.share(Session(), people, DESIGN, output)
        assert record["command"] == "deniable.engines.spark.share(…)"
        return lambda: read_release(output)

    check_each_person_once(adapter, tmp_path)


def test_a_frame_is_files_before_anything_is_drawn(tmp_path: Path) -> None:
    def adapter(people: Path, output: Path) -> Read:
        spark.share_frame(Frame(people), DESIGN, output, row_id="row")
        return lambda: read_release(output)

    check_each_person_once(adapter, tmp_path)
    assert names(tmp_path) == ["people", "release"]


def test_the_options_of_a_release_are_handed_on(tmp_path: Path) -> None:
    people = write_parts(tmp_path / "people", (6, 5), person=True)
    for function, source in ((spark.share, [Session(), people]), (spark.share_frame, None)):
        record = function(
            *(source or [Frame(people)]),
            *(DESIGN, tmp_path / "release"),
            Publication(
                shuffle=True,
                person="who",
                person_epsilon=99.0,
                drop_other_columns=True,
                overwrite=source is None,
            ),
        )
        assert record["release"]["row_order"] == "shuffled"
        assert record["guarantee"]["person"]["most_rows"] == 2


@pytest.mark.parametrize("written", [ALL[1:], [*ALL, "3"], [*ALL[1:], "3"]])
def test_rows_that_spark_lost_or_repeated_are_refused(people, tmp_path, written) -> None:
    with pytest.raises(InputError, match="Spark lost or repeated some"):
        spark.share_frame(Frame(people, written), DESIGN, tmp_path / "release", row_id="row")
    assert names(tmp_path) == ["people"]


def test_a_frame_is_refused_before_it_is_written(people, tmp_path) -> None:
    frame = Frame(people)
    with pytest.raises(InputError, match="the frame has no column 'number'"):
        spark.share_frame(frame, DESIGN, tmp_path / "release", row_id="number")
    frame.sparkSession.version = "4.1.2"
    with pytest.raises(InputError, match=r"Spark 4\.1\.2 can lose or repeat rows.*row_id"):
        spark.share_frame(frame, DESIGN, tmp_path / "release")
    del frame.sparkSession.sparkContext
    for share in (
        lambda: spark.share_frame(frame, DESIGN, tmp_path / "release"),
        lambda: spark.share(frame.sparkSession, people, DESIGN, tmp_path / "release"),
    ):
        with pytest.raises(InputError, match="Spark Connect session cannot run tasks"):
            share()
    assert names(tmp_path) == ["people"]


def test_true_rows_go_with_the_job_that_needs_them(people, tmp_path, monkeypatch) -> None:
    job = job_folder(tmp_path / "release")
    monkeypatch.setattr(
        Context,
        "collect",
        lambda self: [self.task(n) for n in self.numbers] if self.task.args[1] == "look" else [],
    )
    with (
        pytest.warns(Notice, match="0 of 3 parts made.* deniable share --resume"),
        pytest.raises(InputError, match="continue with `deniable share --resume`"),
    ):
        spark.share_frame(Frame(people), DESIGN, tmp_path / "release")
    monkeypatch.undo()
    with pytest.raises(InputError, match="an unfinished release exists"):
        spark.share_frame(Frame(people), DESIGN, tmp_path / "release")
    assert len(list((job / "source").glob("*.csv"))) == 3
    shutil.rmtree(people)
    again = resumed(tmp_path / "release")
    make(again, 1)
    finish(again)
    assert [row[0] for row in read_release(tmp_path / "release")] == ALL
    assert names(tmp_path) == ["release"]


def test_true_rows_of_a_driver_that_died_are_cleared_by_the_next_run(
    people, tmp_path, monkeypatch
) -> None:
    job = job_folder(tmp_path / "release")
    (job / "source").mkdir(parents=True)
    held = FileLock(job / "lock")
    assert held.claim()
    with pytest.raises(InputError, match="another process is making this release"):
        spark.share_frame(Frame(people), DESIGN, tmp_path / "release")
    held.release()
    with pytest.warns(Notice, match=r"a killed run had left .*\.release\.job"):
        deniable.share(people / "people-0.csv", DESIGN, tmp_path / "release")
    assert names(tmp_path) == ["people", "release"]


@pytest.fixture(scope="module")
def session() -> Iterator:
    """A driver and two executors in processes of their own."""
    sql = pytest.importorskip("pyspark.sql", reason="the extra spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    here = "127.0.0.1"  # else by the name of the machine, which need not lead to it
    # By the name that pytest has given to this module, too.
    modules = [str(Path(__file__).parents[3]), *sys.path]
    os.environ |= {"SPARK_LOCAL_IP": here, "PYSPARK_PYTHON": sys.executable}
    made = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.driver.bindAddress", here)
        .config("spark.driver.host", here)
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, modules)))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield made
    made.stop()


def by_row(output: Path) -> Read:
    return lambda: sorted(read_release(output), key=lambda row: int(row[0]))


@real
@pytest.mark.filterwarnings("ignore")
def test_an_executor_that_is_killed_leaves_every_person_once(session, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.touch()

    class Dying:
        def __init__(self):
            self.sparkContext = self

        def parallelize(self, numbers, slices):
            self.made = session.sparkContext.parallelize(numbers, slices)
            return self

        def map(self, task):
            return self.made.map(dies_once(task, killed))

    def adapter(people: Path, output: Path) -> Read:
        spark.share(Dying(), people, DESIGN, output)
        return lambda: read_release(output)

    check_each_person_once(adapter, tmp_path)
    assert not killed.exists()


@real
@pytest.mark.filterwarnings("ignore")
def test_a_frame_is_released_once_though_an_executor_is_killed_behind_its_shuffle(
    session, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    killed.touch()

    def adapter(people: Path, output: Path) -> Read:
        frame = session.read.csv(str(people), header=True).repartition(5, "row")
        frame = frame.mapInArrow(kills_once(killed), frame.schema)
        spark.share_frame(frame, DESIGN, output, row_id="row")
        return by_row(output)

    check_each_person_once(adapter, tmp_path)
    assert not killed.exists()
    assert names(tmp_path) == ["people", "release"]


@real
@pytest.mark.filterwarnings("ignore")
def test_a_frame_that_falls_out_otherwise_each_time_is_released_once_or_refused(
    session, people, tmp_path: Path
) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    killed = tmp_path / "killed"
    killed.touch()
    frame = session.read.csv(str(people), header=True)
    frame = frame.mapInArrow(anywhere, "row string, a string, b string, place int")
    frame = frame.repartition(5, "place").drop("place")
    frame = frame.mapInArrow(kills_once(killed), frame.schema)
    try:
        spark.share_frame(frame, DESIGN, tmp_path / "release", row_id="row")
    except (InputError, PySparkException, Py4JJavaError) as refused:
        print(f"refused by Spark {session.version}: {str(refused)[:300]}")
        assert names(tmp_path) == ["people"]
    else:
        print(f"released by Spark {session.version}")
        assert [row[0] for row in by_row(tmp_path / "release")()] == ALL
    assert not killed.exists()


@real
@pytest.mark.filterwarnings("ignore")
def test_a_frame_that_is_drawn_on_demand_fails(session, tmp_path: Path) -> None:
    def lazily(people: Path, _output: Path) -> Read:
        frame = session.read.csv(str(people), header=True)
        frame = frame.mapInArrow(draws, "row string, a int, b int")
        return lambda: sorted(map(tuple, frame.collect()), key=lambda row: int(row[0]))

    with pytest.raises(AssertionError, match="a second action drew the same people again"):
        check_each_person_once(lazily, tmp_path)


def kill_the_executor() -> None:
    daemon = os.getppid()  # of the Python workers; its parent is the executor
    with open(f"/proc/{daemon}/stat") as file:  # noqa: PTH123
        executor = int(file.read().rsplit(")", 1)[1].split()[1])
    os.kill(executor, 9)


def dies_once(task, killed) -> Callable[[int], str]:
    def work(number: int) -> str:
        if number == 1 and killed.exists():
            task(number)  # what it has committed stays
            killed.unlink()
            kill_the_executor()
        return task(number)

    return work


def kills_once(killed) -> Callable:
    def work(batches):
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().partitionId() == 3 and killed.exists():
                killed.unlink()
                kill_the_executor()
            yield batch

    return work


def anywhere(batches):
    import pyarrow as pa

    for batch in batches:
        places = [os.urandom(1)[0] for _ in range(batch.num_rows)]
        yield pa.record_batch(
            [*batch.columns, pa.array(places, pa.int32())], [*batch.schema.names, "place"]
        )


def draws(batches):
    import numpy as np
    import pyarrow as pa

    draw = Randomizer(DESIGN.mechanism, SystemRandomness()).randomize
    for batch in batches:
        codes = [
            np.array([attribute.categories.index(v) for v in batch[attribute.name].to_pylist()])
            for attribute in SCHEMA.attributes
        ]
        drawn = [pa.array(column.tolist(), pa.int32()) for column in draw(codes)]
        yield pa.record_batch([batch["row"], *drawn], ["row", "a", "b"])
