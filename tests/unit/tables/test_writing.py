import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import Column, TableWriter, released_columns, table_format
from deniable.tables import csv_text as csv_text_module
from deniable.tables.columns import Decoder
from deniable.tables.csv_text import CsvText

A = Attribute("a", ("x", "y, z", 'say "w"'))
N = Attribute("n", ("1", "2", "30"))
F = Attribute("f", ("false", "true"), missing="NA")


def layout(types: dict[str, pa.DataType], attributes=(A, N, F), keep=("k",), **options):
    return released_columns(types.items(), attributes, keep, **options)


TEXT = {"n": pa.string(), "k": pa.string(), "a": pa.string(), "f": pa.string()}
CODES = [np.array([0, 1, 2]), np.array([2, 1, 0]), np.array([0, 1, 2])]
KEPT = {"k": pa.array(["p", None, 'q,"\n'])}
LINES = 'n,k,a,f\n30,p,x,false\n2,,"y, z",true\n1,"q,""\n","say ""w""",NA\n'


def test_csv_has_the_inputs_order_and_quotes_only_where_needed(tmp_path):
    with TableWriter(tmp_path / "o.csv", layout(TEXT)) as writer:
        writer.write(CODES, KEPT)
        writer.write([c[:0] for c in CODES], {"k": pa.array([], pa.string())})
        writer.write([c[:1] for c in CODES], {"k": KEPT["k"][:1]})
    assert writer.n_rows == 4
    assert (tmp_path / "o.csv").read_bytes().decode() == LINES + "30,p,x,false\n"


def test_gzip_holds_the_same_text_and_neither_time_nor_name(tmp_path):
    for name in ("o.csv.gz", "other.csv.gz"):
        with TableWriter(tmp_path / name, layout(TEXT)) as writer:
            writer.write(CODES, KEPT)
    packed = (tmp_path / "o.csv.gz").read_bytes()
    assert gzip.decompress(packed).decode() == LINES
    assert packed == (tmp_path / "other.csv.gz").read_bytes()


def test_an_open_file_gets_csv():
    file = io.BytesIO()
    with TableWriter(file, layout(TEXT)) as writer:
        writer.write(CODES, KEPT)
    assert file.getvalue().decode() == LINES


@pytest.mark.slow
def test_a_dash_writes_to_a_real_pipe_and_a_full_one_is_one_sentence(tmp_path):
    script = (
        "import numpy as np; from deniable.tables import *; from deniable.schema import Attribute\n"
        "import pyarrow as pa\n"
        "A = Attribute('a', ('x', 'y'))\n"
        "with TableWriter('-', released_columns([('a', pa.string())], [A])) as w:\n"
        "    w.write([np.zeros(300_000, np.uint8)])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"a\n" + b"x\n" * 300_000
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert b"InputError: standard output cannot be written: the disk is full" in done.stderr


def test_a_table_without_rows_has_a_header(tmp_path):
    for name in ("o.csv", "o.parquet"):
        with TableWriter(tmp_path / name, layout(TEXT)):
            pass
    assert (tmp_path / "o.csv").read_text() == "n,k,a,f\n"
    assert pq.read_table(tmp_path / "o.parquet").schema.names == ["n", "k", "a", "f"]


@given(
    cells=st.lists(
        st.tuples(
            st.one_of(st.none(), st.text(alphabet='ab,"\r\n é=')),
            st.integers(0, 2),
            st.integers(0, 299),
        ),
        max_size=20,
    ),
    offset=st.integers(0, 3),
)
def test_what_is_written_is_what_a_csv_reader_reads(cells, offset):
    many = Attribute("m", tuple(f"c{i}" for i in range(300)))
    awkward = Attribute("w,", ("in side", 'q"', "new\nline"))
    columns = released_columns(
        [("w,", pa.string()), ("k", pa.string()), ("m", pa.string())], (awkward, many), ["k"]
    )
    kept = pa.array([c[0] for c in cells], pa.string())
    codes = [np.array([c[i] for c in cells], np.uint16) for i in (1, 2)]
    file = io.BytesIO()
    with TableWriter(file, columns) as writer:
        writer.write([c[offset:] for c in codes], {"k": kept.slice(offset)})
    read = list(csv.reader(io.StringIO(file.getvalue().decode(), newline=""), strict=True))
    assert read == [["w,", "k", "m"]] + [
        [awkward.categories[w], k or "", f"c{m}"] for k, w, m in cells[offset:]
    ]


@pytest.mark.parametrize("limit", [1, 7, 4096])
def test_grouping_columns_does_not_change_the_text(limit, monkeypatch):
    monkeypatch.setattr(csv_text_module, "_PIECES", limit)
    generator = np.random.default_rng(3)
    sizes = [2, 3, 5, 300, 2, 4]
    attributes = [
        Attribute(f"a{i}", tuple(f"{i}.{c}" for c in range(n))) for i, n in enumerate(sizes)
    ]
    codes = [generator.integers(0, n, 500).astype(np.uint16) for n in sizes]
    kept = pa.array([f"k{r}" for r in range(500)])
    for place in (0, 3, 6, None):
        types = [(a.name, pa.string()) for a in attributes]
        if place is not None:
            types.insert(place, ("k", pa.string()))
        columns = released_columns(types, attributes, [] if place is None else ["k"])
        lines = bytes(CsvText(columns).render(codes, {"k": kept})).decode().split("\n")
        for r in (0, 1, 250, 499):
            cells = [f"{i}.{c[r]}" for i, c in enumerate(codes)]
            if place is not None:
                cells.insert(place, f"k{r}")
            assert lines[r] == ",".join(cells)
        assert len(lines) == 501


KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.int8(),
    pa.uint64(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
    pa.dictionary(pa.uint32(), pa.string()),
    pa.dictionary(pa.int16(), pa.int64()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_keeps_its_type_where_every_label_fits(tmp_path, kind):
    columns = released_columns([("n", kind)], (N,))
    assert columns == (Column("n", kind, 0, N.categories),)
    with TableWriter(tmp_path / "o.parquet", columns) as writer:
        writer.write([np.array([2, 0, 1])])
        writer.write([np.array([1])])
    table = pq.read_table(tmp_path / "o.parquet")
    # pyarrow does not restore every categorical type; ours is what its own writer comes back as.
    values = Decoder(columns[0]).decode(np.array([2, 0, 1, 1]))
    assert values.type == kind
    pq.write_table(pa.table({"n": values}), tmp_path / "reference.parquet")
    assert table.schema == pq.read_table(tmp_path / "reference.parquet").schema
    assert [str(v) for v in table["n"].to_pylist()] == ["30", "1", "2", "2"]
    with TableWriter(tmp_path / "o.csv", columns) as writer:
        writer.write([np.array([2, 0, 1])])
    assert (tmp_path / "o.csv").read_text() == "n\n30\n1\n2\n"


def test_booleans_stay_booleans_and_missing_is_null_again(tmp_path):
    columns = released_columns(
        [("f", pa.bool_()), ("n", pa.int64())], (F, Attribute("n", ("1", "2"), missing="NA"))
    )
    codes = [np.array([0, 1, 2]), np.array([2, 1, 0])]
    with TableWriter(tmp_path / "o.parquet", columns) as writer:
        writer.write(codes)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table.to_pydict() == {"f": [False, True, None], "n": [None, 2, 1]}
    assert table.schema.types == [pa.bool_(), pa.int64()]
    with TableWriter(tmp_path / "o.csv", columns) as writer:
        writer.write(codes)
    assert (tmp_path / "o.csv").read_text() == "f,n\nfalse,\ntrue,2\n,1\n"


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (pa.int8(), ("1", "2", "300")),
        (pa.int64(), ("[0,1)", "[1,2]")),
        (pa.bool_(), ("true", "maybe")),
        (pa.float64(), ("[0,1)", "[1,2]")),
        (pa.null(), ("x", "y")),
    ],
    ids=str,
)
def test_a_column_becomes_text_where_a_label_does_not_fit(kind, labels):
    (column,) = released_columns([("n", kind)], (Attribute("n", labels),))
    assert column.kind == pa.string()
    (column,) = released_columns([("n", pa.dictionary(pa.int8(), kind))], (Attribute("n", labels),))
    assert column.kind == pa.dictionary(pa.int8(), pa.string())


def test_more_outputs_than_categories_have_labels_of_their_own(tmp_path):
    labels = [f"answer {i}" for i in range(1, 5)]
    columns = released_columns([("n", pa.int64())], (N,), output_labels=[labels])
    with TableWriter(tmp_path / "o.csv", columns) as writer:
        writer.write([np.array([3, 0])])
    assert (tmp_path / "o.csv").read_text() == "n\nanswer 4\nanswer 1\n"


def test_a_categorical_column_with_a_small_index_gets_a_larger_one_when_needed():
    many = Attribute("m", tuple(map(str, range(200))))
    (column,) = released_columns([("m", pa.dictionary(pa.int8(), pa.string()))], (many,))
    assert column.kind == pa.dictionary(pa.int32(), pa.string())


def test_kept_columns_of_any_type_pass_through_parquet_exactly(tmp_path):
    kept = {
        "t": pa.array([1, None], pa.timestamp("us", "Europe/Paris")),
        "l": pa.array([[1, 2], []]),
        "d": pa.array(["u", "v"]).dictionary_encode(),
        "b": pa.array([b"\xff", None]),
        "x": pa.array([1.25, float("nan")]),
    }
    columns = released_columns(
        [("n", pa.int8()), *((c, v.type) for c, v in kept.items())], (N,), list(kept)
    )
    with TableWriter(tmp_path / "o.parquet", columns) as writer:
        writer.write([np.array([0, 1])], kept)
        other = {**kept, "d": pa.array(["w", "u"]).dictionary_encode()}
        writer.write([np.array([0, 1])], other)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table.schema.types[1:] == [v.type for v in kept.values()]
    assert table["d"].to_pylist() == ["u", "v", "w", "u"]
    assert table["t"].to_pylist()[:2] == kept["t"].to_pylist()
    assert table["b"].to_pylist()[:2] == [b"\xff", None]
    assert table["l"].to_pylist()[:2] == [[1, 2], []]


def test_kept_numbers_and_dates_are_written_to_csv_as_text(tmp_path):
    kept = {
        "i": pa.array([1, None]),
        "x": pa.array([0.1, 1e300]),
        "d": pa.array([0, 1], pa.date32()),
        "c": pa.array(["a,b", None]).dictionary_encode(),
    }
    columns = released_columns(
        [(c, v.type) for c, v in kept.items()] + [("n", pa.int8())], (N,), list(kept)
    )
    with TableWriter(tmp_path / "o.csv", columns) as writer:
        writer.write([np.array([0, 1])], kept)
    assert (tmp_path / "o.csv").read_text() == (
        'i,x,d,c,n\n1,0.1,1970-01-01,"a,b",1\n,1e+300,1970-01-02,,2\n'
    )


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.binary(), pa.struct([])], ids=str)
def test_a_kept_column_without_text_is_refused_for_csv_and_leaves_nothing(tmp_path, kind):
    columns = released_columns([("n", pa.int8()), ("k", kind)], (N,), ["k"])
    with pytest.raises(InputError, match=r"column 'k' of type .* write Parquet"):
        TableWriter(tmp_path / "o.csv", columns).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_parquet_row_groups_are_bounded_and_metadata_of_the_input_is_not_copied(tmp_path):
    columns = released_columns([("n", pa.string()), ("k", pa.string())], (N,), ["k"])
    with TableWriter(tmp_path / "o.parquet", columns) as writer:
        for i in range(10):
            writer.write([np.full(60_000, i % 2, np.uint8)], {"k": pa.array([str(i)] * 60_000)})
    metadata = pq.ParquetFile(tmp_path / "o.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(2)] == [1 << 19, 75_712]
    back = pq.read_table(tmp_path / "o.parquet")
    assert np.array_equal(back["k"].to_numpy(), np.repeat([str(i) for i in range(10)], 60_000))
    assert np.array_equal(back["n"].to_numpy(), np.repeat(["1", "2"] * 5, 60_000))
    assert set(metadata.metadata) == {b"ARROW:schema"}


def test_the_format_is_read_from_the_name():
    for name, kind in {"a.csv": "csv", "A.CSV.GZ": "csv.gz", "x.y.parquet": "parquet"}.items():
        assert table_format(Path(name)) == kind
    for name in ("a.txt", "csv", "a.parquet.gz", "a"):
        with pytest.raises(InputError, match=r"name a table \.csv, \.csv\.gz or \.parquet"):
            table_format(Path(name))


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.parquet"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_mid_write_leaves_the_old_file_or_none(tmp_path, name, error):
    path = tmp_path / name

    def interrupted() -> None:
        with TableWriter(path, layout(TEXT), overwrite=True) as writer:
            writer.write(CODES, KEPT)
            raise error

    for old in (None, b"old"):
        if old is not None:
            path.write_bytes(old)
        with pytest.raises(error):
            interrupted()
        assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


def test_pieces_of_text_are_bounded_and_shared_by_columns_alike(monkeypatch):
    """Columns alike have the pieces of one group; where all differ, groups are smaller."""
    kinds = {f"c{i}": pa.string() for i in range(40)}
    alike = [Attribute(name, ("0", "1", "2")) for name in kinds]
    differ = [Attribute(name, (f"{i}a", f"{i}b", f"{i}c")) for i, name in enumerate(kinds)]
    codes = [np.arange(9) * (i + 1) % 3 for i in range(40)]
    for attributes, few in ((alike, 2187 + 243), (differ, 500)):
        monkeypatch.setattr(csv_text_module, "_ALL_PIECES", 1 << 18)
        text = CsvText(released_columns(kinds.items(), attributes))
        expected = bytes(text.render(codes, {}))
        rows = [
            ",".join(a.categories[c[r]] for a, c in zip(attributes, codes, strict=True))
            for r in range(9)
        ]
        assert expected.decode() == "\n".join(rows) + "\n"
        monkeypatch.setattr(csv_text_module, "_ALL_PIECES", few + 2187)
        bounded = CsvText(released_columns(kinds.items(), attributes))
        assert len(bounded._parts[0]._pieces) <= few + 2187
        assert bytes(bounded.render(codes, {})) == expected
    monkeypatch.setattr(csv_text_module, "_ALL_PIECES", 1)
    least = CsvText(released_columns(kinds.items(), differ))
    assert len(least._parts[0]._pieces) == 120
    assert bytes(least.render(codes, {})) == expected
