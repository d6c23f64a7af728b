"""Dataframes and Arrow objects in memory: read, and released as the same kind."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.tables.arrays import plain_array, plain_type
from deniable.tables.columns import Column, Decoder, label_values

_TABLE = "the dataframe"


def open_frame(
    data: Any, batch_rows: int, dates: str | None = None
) -> "FrameSource | StreamSource":
    """Open a table held, or fetched, by a library."""
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    if _is_frame(data):
        return FrameSource(data, batch_rows, dates)
    try:
        stream = _stream_of(data, batch_rows)
    except Exception as error:
        # The library's error text may show a row.
        if isinstance(error, InputError):
            raise
        raise _not_fetched() from None
    if stream is None:
        raise InputError(
            f"{type(data).__name__} is no readable table; give a path, a pandas, Polars or "
            "pyarrow table, a DuckDB relation, or another source of Arrow record batches"
        )
    return StreamSource(stream, batch_rows, dates)


def named_frame(data: Any, names: Sequence[str], column: tuple[str, Any] | None = None) -> Any:
    """Return a dataframe or array as a frame with named columns.

    ``names``: of an array's columns. ``column``: name and values of a further column.
    """
    if _is_frame(data):
        if column is None:
            return data
        table = nw.from_native(data, eager_only=True).to_arrow()
    else:
        rows = np.asarray(data)
        if rows.ndim != 2 or rows.shape[1] != len(names):
            raise InputError(
                f"the array has shape {rows.shape}; it needs two dimensions with the columns "
                f"{', '.join(names)}"
            )
        table = pa.table({name: pa.array(rows[:, i].tolist()) for i, name in enumerate(names)})
    if column is not None:
        name, values = column
        if name in table.column_names:
            raise InputError(f"the rows have a column '{name}' already; leave it or y out")
        values = np.asarray(values)
        if values.shape != (table.num_rows,):
            raise InputError(f"y has shape {values.shape} for {table.num_rows} rows")
        table = table.append_column(name, pa.array(values.tolist()))
    return table


def frame_can_be_read_again(data: Any) -> bool:
    """Return whether a table in memory gives its rows each time it is opened."""
    return _is_frame(data) or _is_lazy(data) or hasattr(data, "scanner")


def _stream_of(data: Any, batch_rows: int) -> Any:
    """Return a reader of record batches; None if the object provides none."""
    if hasattr(data, "scanner"):  # a pyarrow dataset
        return data.scanner(batch_size=batch_rows).to_reader()
    if hasattr(data, "to_reader"):  # a scanner
        return data.to_reader()
    for fetch in ("to_arrow_reader", "fetch_record_batch"):  # DuckDB, and before 1.5
        if hasattr(data, fetch):
            return getattr(data, fetch)(batch_rows)
    if _is_lazy(data):
        table = nw.from_native(data).collect("pyarrow").to_native()
        return table.to_reader(batch_rows)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None


def _is_lazy(data: Any) -> bool:
    try:
        return isinstance(nw.from_native(data), nw.LazyFrame)
    except TypeError:
        return False


def _not_fetched() -> InputError:
    return InputError(
        "the table: fetching its rows failed; fetch them with the library that holds it to see "
        "its error"
    )


class StreamSource:
    """A stream of Arrow record batches."""

    table = "the table"
    decimal = "."
    surely_named = True
    released_as: Literal["csv", "parquet"] = "parquet"
    fraction = None

    def __init__(self, stream: Any, batch_rows: int, dates: str | None = None) -> None:
        self.dates = dates
        self._stream = stream
        self._batch_rows = batch_rows
        self.names = tuple(stream.schema.names)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns."""
        return [plain_type(self._stream.schema.field(name).type) for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        try:
            for batch in self._stream:
                arrays = [plain_array(batch.column(name)) for name in columns]
                chosen = pa.RecordBatch.from_arrays(arrays, names=list(columns))
                for start in range(0, batch.num_rows if columns else 0, self._batch_rows):
                    yield chosen.slice(start, self._batch_rows)
        except (pa.ArrowException, OSError):
            raise _not_fetched() from None


class FrameSource:
    """A dataframe in memory."""

    table = _TABLE
    decimal = "."
    surely_named = True
    released_as: Literal["csv", "parquet"] = "parquet"

    def __init__(self, data: Any, batch_rows: int, dates: str | None = None) -> None:
        self.dates = dates
        self._batch_rows = batch_rows
        self._done = 0
        self._columns: dict[str, Any] = {}
        _check_names(data)
        self._frame = nw.from_native(data, eager_only=True)
        self.names = tuple(self._frame.columns)

    @property
    def fraction(self) -> float | None:
        """How much has been read, from 0 to 1."""
        return self._done / max(1, len(self._frame))

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns."""
        return [self._arrow(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        arrays = [self._arrow(name) for name in columns]
        for start in range(0, len(self._frame), self._batch_rows):
            pieces = [array.slice(start, self._batch_rows) for array in arrays]
            self._done = min(start + self._batch_rows, len(self._frame))
            yield pa.RecordBatch.from_arrays(pieces, names=list(columns))

    def _arrow(self, name: str) -> Any:
        if name not in self._columns:
            series = _dense(self._frame[name])
            try:
                # Polars would return addresses of objects, not values.
                objects = series.dtype == nw.Object and series.implementation.is_polars()
                array = None if objects else series.to_arrow()
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                array = None  # the error text shows the value
            if array is None:
                raise InputError(
                    f"{_TABLE}, column '{name}': {_of_types(series)}; convert the column to text"
                )
            if isinstance(array, pa.ChunkedArray):
                array = array.combine_chunks()
            self._columns[name] = plain_array(array)
        return self._columns[name]


def _dense(series: Any) -> Any:
    """Return a column in dense form; pandas columns may be sparse."""
    native = series.to_native()
    if type(getattr(native, "dtype", None)).__name__ != "SparseDtype":
        return series
    return nw.from_native(native.sparse.to_dense(), series_only=True)


def _of_types(series: Any) -> str:
    """Return a description of the types in an unreadable column, without values."""
    values = series.drop_nulls().to_native()
    if series.dtype == nw.Categorical:
        values = values.cat.categories
    elif series.dtype != nw.Object:
        return f"its values are of type {values.dtype}, which is not read"
    types = sorted({type(value).__name__ for value in values})
    if types == ["int"]:
        return "its values are whole numbers of more than 64 bits"
    several = "several types" if len(types) > 1 else "a type that is not read"
    return f"its values are of {several} ({', '.join(types[:4])})"


def _is_frame(data: Any) -> bool:
    try:
        nw.from_native(data, eager_only=True)
    except TypeError:
        return False
    except Exception as error:
        # narwhals has its own exception for duplicate names.
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

    A pandas index and unchanged columns are retained. A pandas column of plain numbers or booleans
    that now needs a null becomes ``Int64`` or ``boolean``.

    ``codes``: the released codes, one array of shape (n,) per attribute.
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
    released = frame.select([c.replaces for c in columns if not c.added])
    return (
        released.with_columns(
            *(
                (_added_column if c.added else build)(frame, c, c.codes(codes)).alias(c.replaces)
                for c in columns
                if c.position is not None
            )
        )
        .rename({c.source: c.name for c in columns if c.source})
        .to_native()
    )


class EagerFrame(Protocol):
    """Interface of dataframes in memory (pandas, Polars, pyarrow). Lazy frames, DuckDB relations
    and datasets lack it and come back as another kind."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        ...

    def drop(self, *arguments: Any, **given: Any) -> Any:
        """Return the frame without some columns."""
        ...


_MARK = "deniable_mechanism"
"""Key of a released frame's metadata: the digest of its mechanism."""

_WITHOUT_METADATA: dict[int, tuple[Any, str]] = {}
"""Marks of frames without metadata (Polars), by id, with a weak reference."""


def marked(frame: Any, digest: str) -> Any:
    """Return a released frame with its mechanism's digest, in the metadata of pandas (``attrs``)
    and pyarrow; for other kinds stored here while the object exists."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame.replace_schema_metadata({**(frame.schema.metadata or {}), _MARK: digest})
    if isinstance(getattr(frame, "attrs", None), dict):
        frame.attrs[_MARK] = digest
        return frame
    key = id(frame)
    with suppress(TypeError):
        gone = weakref.ref(frame, lambda _ref: _WITHOUT_METADATA.pop(key, None))
        _WITHOUT_METADATA[key] = gone, digest
    return frame


def mark_of(frame: Any) -> str | None:
    """Return the digest that :func:`marked` set on a frame or its original; None without one."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        mark = (frame.schema.metadata or {}).get(_MARK.encode())
        return None if mark is None else mark.decode(errors="replace")
    if isinstance(attrs := getattr(frame, "attrs", None), dict):
        return attrs.get(_MARK)
    reference, digest = _WITHOUT_METADATA.get(id(frame), (lambda: None, None))
    return digest if frame is not None and reference() is frame else None


def _column(frame: Any, column: Column, codes: NDArray[Any]) -> Any:
    old = frame[column.replaces].dtype
    values = _with_empty(column)
    if column.source:
        kind: Any = nw.String()
    elif isinstance(old, nw.Enum):
        kind = old if {*column.labels} <= {*old.categories} else nw.Enum(column.labels)
    elif pa.types.is_floating(column.kind):
        kind = nw.Float64()
    elif pa.types.is_date(column.kind):
        kind = old
    elif old == nw.Categorical or old.is_integer() or old == nw.Boolean:
        kind = old if old == nw.Categorical or not isinstance(values[0], str) else nw.String()
    elif not isinstance(values[0], str):
        kind = nw.Int64()
    else:
        kind = nw.String()
    labels = nw.new_series(column.name, values, kind, backend=frame.implementation)
    return labels[codes.astype(np.int64)]


def _added_column(frame: Any, column: Column, codes: NDArray[Any]) -> Any:
    numbers = np.asarray(label_values(column.labels, column.kind), dtype=np.int32)[codes]
    new = nw.new_series(column.name, numbers, nw.Int32(), backend=frame.implementation)
    if frame.implementation.is_pandas_like():
        native = new.to_native()
        native.index = frame.to_native().index
        new = nw.from_native(native, series_only=True)
    return new


def _with_empty(column: Column) -> list[Any]:
    """Return the value of each code, that of an empty cell last."""
    values = label_values(column.labels, column.kind)
    return values if column.empty is None else [*values, None]


def _pandas_column(frame: Any, column: Column, codes: NDArray[Any]) -> Any:
    # pandas has more dtypes than narwhals distinguishes (object or str, int64 or Int64): the
    # column's own decides.
    old = _dense(frame[column.replaces]).to_native()
    values = _with_empty(column)
    first = next(value for value in values if value is not None)
    kind: Any = old.dtype
    if pa.types.is_dictionary(column.kind):
        kind = old.iloc[:0].cat.set_categories([v for v in values if v is not None]).dtype
    elif isinstance(first, float):
        kind = "float64"
    elif isinstance(first, str):
        kind = kind if _holds_text(old) else object if None in values else str
    elif isinstance(kind, np.dtype) and None in values and kind.kind != "O":
        kind = "boolean" if isinstance(first, bool) else "Int64"
    labels = type(old)(values, dtype=object).astype(kind)
    if isinstance(first, int) and any(a != b for a, b in zip(labels, values, strict=True) if b):
        labels = type(old)(values, dtype="Int64")  # numbers that the column would round
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

    A source of record batches (a DuckDB relation, a dataset, a stream) comes back as a pyarrow
    table, and a lazy Polars frame as an eager one: releases are never lazy
    (docs/decisions/0019-parts-without-a-key.md).
    """
    if not (_is_frame(data) or isinstance(data, pa.RecordBatch)):
        released = _released_table(columns, batches, randomize)
        lazy = _is_lazy(data) and nw.from_native(data).implementation.is_polars()
        return nw.from_arrow(released, backend="polars").to_native() if lazy else released
    pieces = [randomize(batch.codes) for batch in batches]
    if not pieces:
        width = 1 + max((c.position for c in columns if c.position is not None), default=-1)
        return released_frame(data, columns, [np.zeros(0, dtype=np.uint8)] * width)
    joined = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
    return released_frame(data, columns, joined)


def _released_table(
    columns: Sequence[Column],
    batches: Iterator[Any],
    randomize: Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]],
) -> Any:
    """Return the release of a source of record batches as a pyarrow table."""
    decoders = [None if c.position is None else Decoder(c) for c in columns]
    schema = pa.schema([(c.name, c.kind) for c in columns])
    released = []
    for batch in batches:
        codes = randomize(batch.codes)
        arrays = [
            batch.kept[c.name] if d is None else d.decode(c.codes(codes))
            for c, d in zip(columns, decoders, strict=True)
        ]
        released.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(released, schema=schema)
