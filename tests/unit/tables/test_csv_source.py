"""What a text table leaves behind when it has been read."""

import io
import weakref

import pytest

from deniable.errors import InputError
from deniable.schema import FileFormat
from deniable.tables import csv_source
from deniable.tables.csv_source import CsvSource


@pytest.mark.slow
def test_no_thread_has_the_stream_once_the_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a thread, when Python ends meanwhile, aborts the process; one in ten tables had one.
    lent: list[weakref.ref[object]] = []

    class Watched(csv_source._Lent):
        def __init__(self, file: io.RawIOBase) -> None:
            super().__init__(file)
            lent.append(weakref.ref(self))

    monkeypatch.setattr(csv_source, "_Lent", Watched)
    # A busy machine may stop such a thread for long.
    monkeypatch.setattr(csv_source._wait_until_gone, "__defaults__", (60.0,))
    for rows in [1, 20_000] * 12:
        table = io.BytesIO(b"a,b\n" + b"1,2\n" * rows)
        batches = CsvSource(table, "t", FileFormat()).batches(["a", "b"])
        if rows == 1:
            assert sum(batch.num_rows for batch in batches) == rows
        else:
            next(batches)
            batches.close()
        assert [one for one in lent if one() is not None] == []
    assert len(lent) == 24
    # Nor once the first block has been refused, which is looked at while the table is opened.
    for _ in range(16):
        ragged = CsvSource(io.BytesIO(b"a,b\n1\n"), "t", FileFormat())
        with pytest.raises(InputError, match="1 field instead of 2"):
            next(ragged.batches(["a", "b"]))
        assert [one for one in lent if one() is not None] == []


def test_waiting_for_what_never_goes_ends() -> None:
    thing = io.BytesIO()
    csv_source._wait_until_gone(weakref.ref(thing), seconds=0.01)
    assert not thing.closed
