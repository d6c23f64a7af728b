"""Dataframes and Arrow objects in memory: in, and the same kind out."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.tables.columns import Column, Decoder, label_values

_TABLE = "the dataframe"


class FrameSource:
    """A dataframe, or a stream of Arrow record batches.

    Args:
        data: an eager dataframe known to narwhals, or an object with ``__arrow_c_stream__``.
        batch_rows: rows at a time.

    Raises:
        InputError: if it is neither, or its columns are not named by texts.
    """

    table = _TABLE

    def __init__(self, data: Any, batch_rows: int) -> None:
        self._batch_rows = batch_rows
        self._done = 0
        self._columns: dict[str, Any] = {}
        self._stream: Any = None
        self._frame: Any = None
        if isinstance(data, pa.RecordBatch):
            data = pa.table(data)
        if _is_frame(data):
            _check_names(data)
            self._frame = nw.from_native(data, eager_only=True)
            self.names = tuple(self._frame.columns)
        elif hasattr(data, "__arrow_c_stream__"):
            self._stream = pa.RecordBatchReader.from_stream(data)
            self.names = tuple(self._stream.schema.names)
        else:
            raise InputError(
                f"{type(data).__name__} is no table that can be read; give a path, or a pandas, "
                "Polars or pyarrow table, or collect a lazy frame first"
            )

    @property
    def fraction(self) -> float | None:
        """How much has been read, from 0 to 1; None if the length is not known."""
        if self._frame is None:
            return None
        return self._done / max(1, len(self._frame))

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns."""
        if self._stream is not None:
            return [self._stream.schema.field(name).type for name in columns]
        return [self._arrow(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        if self._stream is not None:
            for batch in self._stream:
                chosen = batch.select(list(columns))
                for start in range(0, chosen.num_rows, self._batch_rows):
                    yield chosen.slice(start, self._batch_rows)
            return
        arrays = [self._arrow(name) for name in columns]
        for start in range(0, len(self._frame), self._batch_rows):
            pieces = [array.slice(start, self._batch_rows) for array in arrays]
            self._done = start + len(pieces[0])
            yield pa.RecordBatch.from_arrays(pieces, names=list(columns))

    def _arrow(self, name: str) -> Any:
        if name not in self._columns:
            try:
                array = self._frame[name].to_arrow()
            except (pa.ArrowException, TypeError, ValueError):
                # Their texts show the value they stumble over.
                raise InputError(
                    f"{_TABLE}, column '{name}': its values are of several types; convert the "
                    "column to text"
                ) from None
            if isinstance(array, pa.ChunkedArray):
                array = array.combine_chunks()
            self._columns[name] = array
        return self._columns[name]


def _is_frame(data: Any) -> bool:
    try:
        nw.from_native(data, eager_only=True)
    except TypeError:
        return False
    except Exception as error:
        # narwhals refuses duplicate names with an exception of its own.
        if "uplicate" in f"{type(error).__name__} {error}" or "unique" in str(error):
            _check_names(data)
        raise
    return True


def _check_names(data: Any) -> None:
    names = data.column_names if isinstance(data, pa.Table) else list(data.columns)
    if any(not isinstance(name, str) for name in names):
        raise InputError(
            f"{_TABLE}: a column's name is not text; rename the columns as in the schema"
        )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{_TABLE}: two columns are called '{twice}'; rename one of them")


def released_frame(data: Any, columns: Sequence[Column], codes: Sequence[NDArray[Any]]) -> Any:
    """Return a dataframe of the same kind with randomized columns put in.

    A pandas index and kept columns stay as they are. A pandas column of plain numbers or booleans
    that now needs a null becomes ``Int64`` or ``boolean``.

    Args:
        data: the frame that was randomized; it is not changed.
        columns: the release's columns.
        codes: the released codes, one array of shape (n,) per attribute.
    """
    if isinstance(data, pa.Table | pa.RecordBatch):
        arrays = [
            data.column(c.name) if c.position is None else Decoder(c).decode(c.codes(codes))
            for c in columns
        ]
        kind = type(data)
        return kind.from_arrays(arrays, names=[c.name for c in columns])
    frame = nw.from_native(data, eager_only=True)
    build = _pandas_column if frame.implementation.is_pandas_like() else _column
    released = frame.select([c.replaces for c in columns])
    return (
        released.with_columns(
            *(
                build(frame, c, c.codes(codes)).alias(c.replaces)
                for c in columns
                if c.position is not None
            )
        )
        .rename({c.source: c.name for c in columns if c.source})
        .to_native()
    )


def _column(frame: Any, column: Column, codes: NDArray[Any]) -> Any:
    old = frame[column.replaces].dtype
    values = label_values(column.labels, column.kind)
    if column.source:
        kind: Any = nw.String()
    elif isinstance(old, nw.Enum):
        kind = old if set(values) <= set(old.categories) else nw.Enum(column.labels)
    elif old == nw.Categorical or not isinstance(values[0], str):
        kind = old
    else:
        kind = nw.String()
    labels = nw.new_series(column.name, values, kind, backend=frame.implementation)
    return labels[codes.astype(np.int64)]


def _pandas_column(frame: Any, column: Column, codes: NDArray[Any]) -> Any:
    # The natural dtypes of pandas are more than narwhals' types tell apart (object or str, int64
    # or Int64), so the column's own decides.
    old = frame[column.replaces].to_native()
    values = label_values(column.labels, column.kind)
    first = next(value for value in values if value is not None)
    kind: Any = old.dtype
    if pa.types.is_dictionary(column.kind):
        kind = old.iloc[:0].cat.set_categories([v for v in values if v is not None]).dtype
    elif isinstance(first, str):
        kind = kind if _holds_text(old) else str
    elif isinstance(kind, np.dtype) and None in values and kind.kind != "O":
        kind = "boolean" if isinstance(first, bool) else "Int64"
    labels = type(old)(values, dtype=object).astype(kind)
    new = labels.take(codes.astype(np.int64))
    new.index = old.index
    return nw.from_native(new, series_only=True)


def _holds_text(series: Any) -> bool:
    return bool(
        series.dtype == object or nw.from_native(series, series_only=True).dtype == nw.String
    )


def randomize_frame(
    data: Any,
    columns: Sequence[Column],
    batches: Iterator[Any],
    randomize: Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]],
) -> Any:
    """Randomize a dataframe and return one of the same kind.

    Args:
        data: the dataframe.
        columns: the release's columns.
        batches: the dataframe's batches, as :func:`~deniable.tables.open_table` yields them.
        randomize: codes in, released codes out.
    """
    pieces = [randomize(batch.codes) for batch in batches]
    if not pieces:
        width = 1 + max((c.position for c in columns if c.position is not None), default=-1)
        return released_frame(data, columns, [np.zeros(0, dtype=np.uint8)] * width)
    joined = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
    return released_frame(data, columns, joined)
