"""Releases by Spark: a task is a unit of rows; a frame is first written to files.

Spark may run any part of a plan again (an executor dies, a task is slow, a frame is used twice), so
its plans never contain draws.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable._checks import typed
from deniable.engines.units import Run, Task, share_by
from deniable.errors import InputError
from deniable.release.publication import Publication
from deniable.statement.account import Design
from deniable.tables.files import files_of


@typed
def share(
    session: Any,
    source: Any,
    plan: Design | str | Path,
    output: str | Path,
    publication: Publication | None = None,
) -> dict[str, Any]:
    """Randomize files by the executors of Spark, and write a folder to publish.

    The executors need this package, and access to the tables and the output's folder under the same
    paths as this process.

    Args:
        session: a ``pyspark.sql.SparkSession``.
        source: the path of a table; several, as a list, a folder or a pattern.
        plan: a design, or the file or folder that contains it.
        output: the folder to make.
        publication: options of the release.

    Returns:
        The record with its derived sentences; the release itself is in the folder.

    Raises:
        InputError: as :func:`deniable.share`; or if the session is a remote one (Spark Connect),
            which cannot run tasks.

    Examples:
        >>> import deniable
        >>> from deniable.engines import spark
        >>> class Tasks(list):  # as Spark's, and everything in this process
        ...     def map(self, task):
        ...         return Tasks(task(number) for number in self)
        ...     collect = list.copy
        >>> class Session:
        ...     class sparkContext:
        ...         parallelize = staticmethod(lambda numbers, slices: Tasks(numbers))
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> for name in ("1.csv", "2.csv"):
        ...     _ = Path(name).write_text("smokes\\nno\\nyes\\n")
        >>> plan = deniable.design(schema, epsilon=2)
        >>> spark.share(Session, ["1.csv", "2.csv"], plan, "release")["release"]["rows"]
        4
    """
    command = "deniable.engines.spark.share(…)"
    return share_by(_on(session), source, plan, output, command, publication)


@typed
def share_frame(
    frame: Any,
    plan: Design | str | Path,
    output: str | Path,
    publication: Publication | None = None,
    *,
    row_id: str | None = None,
) -> dict[str, Any]:
    """Randomize a Spark frame, and write a folder to publish.

    The true rows are written once, as Parquet, into a private folder next to the output, from which
    the release is made; they are removed when it is complete. The executors need this package, and
    access to that folder under the same path as this process.

    Args:
        frame: a ``pyspark.sql.DataFrame``.
        plan: a design, or the file or folder that contains it.
        output: the folder to make.
        publication: options of the release.
        row_id: a column of distinct values, by which rows are checked before
            any draw. Required below Spark 4.2, which can lose or repeat rows of a frame
            with a shuffle of its own when an executor dies.

    Returns:
        The record with its derived sentences; the release itself is in the folder.

    Raises:
        InputError: as :func:`share`; or if rows were lost or repeated.

    Examples:
        >>> import deniable
        >>> from deniable.engines import spark
        >>> class Frame:  # as one of an older Spark
        ...     class sparkSession:
        ...         sparkContext, version = "", "3.5.9"
        >>> plan = deniable.design(deniable.Schema.anonymous((2,)), epsilon=2)
        >>> spark.share_frame(Frame, plan, "release")
        Traceback (most recent call last):
        deniable.errors.InputError: Spark 3.5.9 can lose or repeat rows of a frame unnoticed; name \
a column whose values are all different (row_id)
    """
    session = getattr(frame, "sparkSession", None)
    if session is None:
        raise InputError(f"frame must be a pyspark.sql.DataFrame, not {type(frame).__name__}")
    run = _on(session)
    if row_id is None and tuple(map(int, re.findall(r"\d+", session.version)[:2])) < (4, 2):
        raise InputError(
            f"Spark {session.version} can lose or repeat rows of a frame unnoticed; name a column "
            "whose values are all different (row_id)"
        )
    if row_id is not None and row_id not in frame.columns:
        raise InputError(f"the frame has no column '{row_id}' (row_id)")

    def written(rows: Path) -> list[Path]:
        frame.write.parquet(f"file://{rows}")
        if row_id is not None:
            _refuse_lost(frame, session.read.parquet(f"file://{rows}"), row_id)
        return files_of(rows) or []

    return share_by(
        run, written, plan, output, "deniable.engines.spark.share_frame(…)", publication
    )


def _on(session: Any) -> Run:
    """Return the function that runs tasks on a session's executors."""
    context = getattr(session, "sparkContext", None)  # a remote session raises AttributeError
    if context is None:
        raise InputError(
            "a Spark Connect session cannot run tasks; use a session with its driver in this "
            "process"
        )

    def run(task: Task, numbers: Sequence[int]) -> Sequence[str]:
        return list(context.parallelize(list(numbers), len(numbers)).map(task).collect())

    return run


def _refuse_lost(frame: Any, written: Any, row_id: str) -> None:
    """Raise if the written rows are not those of the frame."""
    name = "`" + row_id.replace("`", "``") + "`"
    own, counts = frame.select(name), written.select(name)
    if len({own.distinct().count(), counts.distinct().count(), counts.count()}) > 1:
        raise InputError(
            f"the frame's rows were not written once each, by column '{row_id}': Spark lost or "
            "repeated some, or its values repeat; no row was drawn: try again"
        )
