"""Spark: a task is a unit of rows; a frame is written to files first, and they are the rows.

Nothing is drawn inside a plan of Spark's, which may run any part of it again: when an executor
dies, when a task is slow, when a frame is used twice.
"""

import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deniable.design.account import Design
from deniable.engines.units import Task, share_by
from deniable.errors import InputError, Notice
from deniable.outputs import FileLock, explain_write_errors
from deniable.release.job import job_folder
from deniable.release.release import Options, check_output


def share(
    session: Any,
    source: Any,
    plan: Design | str | Path,
    output: str | Path,
    *,
    shuffle: bool = False,
    person: str | None = None,
    drop_other_columns: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Randomize files by the executors of Spark, and write a folder to publish.

    The executors see the tables and the folder of the output under the same names as this process,
    and have this package.

    Args:
        session: a ``pyspark.sql.SparkSession``.
        source: the path of a table; several, as a list, a folder or a pattern.
        plan: a design, or the file or folder that has it.
        output: the folder to make.
        shuffle: release the rows in random order.
        person: a column that says whose row it is; it is dropped, and ε per person is reported.
        drop_other_columns: leave out columns that the schema neither declares nor keeps.
        overwrite: replace an existing release.

    Returns:
        All that is told of the release; what was released is in the folder.

    Raises:
        InputError: as :func:`deniable.share`; or if the session is a remote one (Spark Connect),
            which hands out no tasks.

    Example:
        >>> import deniable
        >>> from deniable.engines import spark
        >>> class Context:  # as Spark's, and everything in this process
        ...     def parallelize(self, numbers, slices):
        ...         self.numbers = numbers
        ...         return self
        ...     def map(self, task):
        ...         self.task = task
        ...         return self
        ...     def collect(self):
        ...         return [self.task(number) for number in self.numbers]
        >>> class Session:
        ...     sparkContext = Context()
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> for name in ("1.csv", "2.csv"):
        ...     _ = Path(name).write_text("smokes\\nno\\nyes\\n")
        >>> plan = deniable.design(schema, epsilon=2)
        >>> spark.share(Session(), ["1.csv", "2.csv"], plan, "release")["release"]["rows"]
        4
    """

    context = _context(session)

    def run(task: Task, numbers: Sequence[int]) -> Sequence[str]:
        return list(context.parallelize(list(numbers), len(numbers)).map(task).collect())

    options = Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=overwrite,
        command="deniable.engines.spark.share(…)",
    )
    return share_by(run, source, plan, output, options)


def share_frame(
    frame: Any,
    plan: Design | str | Path,
    output: str | Path,
    *,
    row_id: str | None = None,
    shuffle: bool = False,
    person: str | None = None,
    drop_other_columns: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Randomize a frame of Spark's, and write a folder to publish.

    The true rows are written once, as Parquet, into a private folder beside the output, and the
    release is made of these files; they are removed when it has its name. The executors see that
    folder under the same name as this process, and have this package.

    Args:
        frame: a ``pyspark.sql.DataFrame``.
        plan: a design, or the file or folder that has it.
        output: the folder to make.
        row_id: a column whose values are all different, by which the rows are counted before
            anything is drawn. Required below Spark 4.2, which can lose or repeat rows of a frame
            with a shuffle of its own when an executor dies.
        shuffle, person, drop_other_columns, overwrite: as of :func:`share`.

    Returns:
        All that is told of the release; what was released is in the folder.

    Raises:
        InputError: as :func:`share`; or if rows were lost or repeated; or if such a release was
            begun before and is not finished.

    Example:
        >>> import deniable, pyarrow, pyarrow.parquet
        >>> from deniable.engines import spark
        >>> class Frame:  # as Spark's, and everything in this process
        ...     @property
        ...     def write(self):
        ...         return self
        ...     def parquet(self, folder):
        ...         folder = Path(folder.removeprefix("file://"))
        ...         folder.mkdir()
        ...         rows = pyarrow.table({"smokes": ["no", "yes"]})
        ...         pyarrow.parquet.write_table(rows, folder / "part-0.parquet")
        ...     class sparkSession:
        ...         version = "4.3.0"
        ...         class sparkContext:
        ...             def parallelize(numbers, slices):
        ...                 return type("Tasks", (), {"map": lambda _, task: type("Done", (), {
        ...                     "collect": lambda _: list(map(task, numbers))})()})()
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> spark.share_frame(Frame(), plan, "release")["release"]["rows"]
        2
    """
    output = Path(output).absolute()
    check_output(output, overwrite=overwrite)
    session = frame.sparkSession
    _context(session)
    if row_id is None and _version(session) < (4, 2):
        raise InputError(
            f"Spark {session.version} can lose or repeat rows of a frame unnoticed; name a column "
            "whose values are all different (row_id)"
        )
    if row_id is not None and row_id not in frame.columns:
        raise InputError(f"the frame has no column '{row_id}' (row_id)")
    if job_folder(output).exists():
        raise InputError(
            f"{output}: this release was begun and is not finished; continue with deniable "
            f"share --resume --output {output}, or remove {job_folder(output)} to begin anew"
        )
    with _private(output) as rows:
        frame.write.parquet(f"file://{rows}")
        if row_id is not None:
            _refuse_lost(frame, rows, row_id)
        return share(
            session,
            rows,
            plan,
            output,
            shuffle=shuffle,
            person=person,
            drop_other_columns=drop_other_columns,
            overwrite=overwrite,
        )


def _context(session: Any) -> Any:
    context = getattr(session, "sparkContext", None)  # an AttributeError if it is a remote one
    if context is None:
        raise InputError(
            "a session of Spark Connect hands out no tasks; use one whose driver is this process"
        )
    return context


def _version(session: Any) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", session.version)[:2]))


@contextmanager
def _private(output: Path) -> Iterator[Path]:
    """Hold a private folder for the true rows of an output; it goes, unless a job needs them."""
    private = output.with_name(f".{output.name}.rows")
    with explain_write_errors(private):
        private.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(private / "lock")
    if not lock.claim() or not lock.path.exists():  # or the one who held it has removed it
        raise InputError(f"{output}: another process is making this release; wait until it is done")
    try:
        shutil.rmtree(private / "rows", ignore_errors=True)  # of a run that died before it drew
        yield private / "rows"
    finally:
        if job_folder(output).exists():
            warnings.warn(
                f"{private} has the true rows, which --resume needs; remove it when the release is "
                "finished",
                Notice,
                stacklevel=4,
            )
        else:
            shutil.rmtree(private, ignore_errors=True)
        lock.release()


def _refuse_lost(frame: Any, rows: Path, row_id: str) -> None:
    """Stop if the rows that were written are not those of the frame."""
    name = "`" + row_id.replace("`", "``") + "`"
    written = frame.sparkSession.read.parquet(f"file://{rows}").select(name)
    counts = {frame.select(name).distinct().count(), written.distinct().count(), written.count()}
    if len(counts) > 1:
        raise InputError(
            f"the frame's rows were not written once each, by column '{row_id}': Spark lost or "
            "repeated some, or its values are not all different; nothing was drawn, so try again"
        )
