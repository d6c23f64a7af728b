"""Dask: a task is a unit of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable._checks import typed
from deniable.engines.units import Task, share_by
from deniable.errors import InputError
from deniable.release.publication import Publication
from deniable.statement.account import Design


@typed
def share(
    client: Any,
    source: Any,
    plan: Design | str | Path,
    output: str | Path,
    publication: Publication | None = None,
) -> dict[str, Any]:
    """Randomize tables by the workers of a Dask cluster, and write a folder to publish.

    The workers need this package, and access to the tables and the output's folder under the same
    paths as this process.

    Args:
        client: a ``distributed.Client``.
        source: the path of a table; several, as a list, a folder or a pattern.
        plan: a design, or the file or folder that contains it.
        output: the folder to make.
        publication: options of the release.

    Returns:
        The record with its derived sentences; the release itself is in the folder.

    Raises:
        InputError: as :func:`deniable.share`.

    Examples:
        >>> import deniable
        >>> from deniable.engines import dask
        >>> class Client:  # as distributed.Client, and everything in this process
        ...     def map(self, task, numbers, **_):
        ...         return [task(number) for number in numbers]
        ...     def gather(self, futures):
        ...         return futures
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> for name in ("1.csv", "2.csv"):
        ...     _ = Path(name).write_text("smokes\\nno\\nyes\\n")
        >>> plan = deniable.design(schema, epsilon=2)
        >>> record = dask.share(Client(), ["1.csv", "2.csv"], plan, "release")
        >>> record["release"]["rows"]
        4
    """

    if not callable(getattr(client, "gather", None)):
        raise InputError(f"client must be a distributed.Client, not {type(client).__name__}")

    def run(task: Task, numbers: Sequence[int]) -> Sequence[str]:
        # Not pure: Dask must not reuse one task's result for another.
        futures = client.map(task, list(numbers), pure=False, retries=3)
        return list(client.gather(futures))

    return share_by(run, source, plan, output, "deniable.engines.dask.share(…)", publication)
