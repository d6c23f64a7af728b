"""A whole table through, batch by batch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

from numpy.typing import NDArray

from deniable.schema import Attribute
from deniable.tables.columns import released_columns
from deniable.tables.reading import open_table
from deniable.tables.writing import TableWriter

Randomize = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]


def randomize_table(
    source: Any,
    destination: str | Path | BinaryIO,
    attributes: Sequence[Attribute],
    randomize: Randomize,
    keep: Sequence[str] = (),
    *,
    output_labels: Sequence[Sequence[str]] | None = None,
    other_columns: Literal["refuse", "drop"] = "refuse",
    show_values: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, float | None], None] | None = None,
) -> int:
    """Read a table, randomize it and write the result; return the number of rows.

    Args:
        source: see :func:`~deniable.tables.open_table`.
        destination: see :class:`~deniable.tables.TableWriter`.
        attributes: the attributes, in the order in which ``randomize`` wants their codes.
        randomize: codes in, released codes out; called once per batch.
        keep: columns released as they are; attributes among them are released untouched.
        output_labels: per attribute the texts of the released codes; by default its categories.
        other_columns: whether other columns are refused or left out.
        show_values: whether error messages may contain values of the table.
        overwrite: whether an existing file may be replaced.
        progress: called after each batch with the rows so far and the fraction of the input read,
            None where its size is not known.

    Raises:
        InputError: if the table cannot be read or used, or the result cannot be written; then no
            part of the result is left, and a file that was to be replaced is untouched.
    """
    with open_table(
        source, attributes, keep, other_columns=other_columns, show_values=show_values
    ) as reader:
        columns = released_columns(reader.columns, attributes, keep, output_labels)
        with TableWriter(destination, columns, overwrite=overwrite) as writer:
            for batch in reader:
                writer.write(randomize(batch.codes), batch.kept)
                if progress is not None:
                    progress(writer.n_rows, reader.fraction)
            return writer.n_rows
