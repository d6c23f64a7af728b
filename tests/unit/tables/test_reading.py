import gzip
import io
import subprocess
import sys
import threading
import time
import tomllib
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute, FileFormat
from deniable.tables import csv_source, open_table, reading
from deniable.tables.reading import column_names

A = Attribute("a", ("x", "y", "z"))
B = Attribute("b", ("no", "yes"), missing="NA")
SECRET = "secret-value"
CSV = "a,b,k\nx,no,1\ny,,2\nz,yes,3\n"


def rows(source, attributes=(A, B), keep=("k",), **options):
    with open_table(source, attributes, keep, **options) as reader:
        batches = list(reader)
    codes = [
        np.concatenate([b.codes[i] for b in batches]).tolist() if batches else []
        for i in range(len(attributes))
    ]
    kept = {name: [v for b in batches for v in b.kept[name].to_pylist()] for name in keep}
    first = 1
    for batch in batches:
        assert batch.first_row == first
        assert all(len(c) == batch.n_rows for c in batch.codes)
        first += batch.n_rows
    return codes, kept


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(source, attributes=(A, B), keep=("k",), **options) -> str:
    with pytest.raises(InputError) as caught:
        rows(source, attributes, keep, **options)
    message = str(caught.value)
    assert "\n" not in message
    if not options.get("show_values"):
        assert SECRET not in message
    return message


def test_csv_gives_codes_in_the_order_asked_and_kept_columns_as_text(tmp_path):
    path = written(tmp_path, CSV)
    assert rows(path, (B, A)) == ([[0, 2, 1], [0, 1, 2]], {"k": ["1", "2", "3"]})


def test_only_the_empty_field_is_missing_in_csv(tmp_path):
    words = ["NA", "null", "NULL", "nan", "NaN", "None", "N/A", "#N/A", "-", "true", "1"]
    attribute = Attribute("a", tuple(words), missing="gone")
    path = written(tmp_path, "a,k\n" + "".join(f"{w},{w}\n" for w in words) + ',\n"",""\n')
    codes, kept = rows(path, (attribute,))
    assert codes == [[*range(len(words)), len(words), len(words)]]
    assert kept["k"] == [*words, None, None]


def test_numbers_stay_text_in_csv_whatever_comes_before_them(tmp_path):
    lines = "".join(f"{i % 2},00{i}\n" for i in range(5000)) + "x,1e5\n"
    codes, kept = rows(written(tmp_path, "a,k\n" + lines), (Attribute("a", ("0", "1", "x")),))
    assert codes[0][-1] == 2
    assert kept["k"][:2] == ["000", "001"]
    assert kept["k"][-1] == "1e5"


def test_blank_lines_are_missing_values_in_a_table_of_one_column(tmp_path):
    attribute = Attribute("b", ("no", "yes"), missing="NA")
    assert rows(written(tmp_path, "b\nno\n\nyes\n"), (attribute,), ()) == ([[0, 2, 1]], {})
    assert rows(written(tmp_path, "b\n\n"), (attribute,), ()) == ([[2]], {})


@pytest.mark.parametrize("text", ["a,b,k\n", "a,b,k", "a,b,k\n\n\n"])
def test_a_header_without_rows_is_an_empty_table(tmp_path, text):
    assert rows(written(tmp_path, text)) == ([[], []], {"k": []})


def test_rows_keep_their_numbers_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 100)
    path = written(tmp_path, "a,b,k\n" + "x,no,1\n" * 999 + f"{SECRET},no,1\n")
    assert refusal(path).startswith(f"{path}, data row 1000, column 'a': the value is not one of")
    path = written(tmp_path, "a,b,k\n" + "x,no,1\n" * 999 + f"x,no,1,{SECRET}\n")
    assert refusal(path).startswith(f"{path}, data row 1000: 4 fields instead of 3")
    assert len(rows(written(tmp_path, "a,b,k\n" + "x,no,1\n" * 999))[0][0]) == 999


def test_an_open_file_and_a_bytes_buffer_are_read_as_csv(tmp_path):
    expected = rows(written(tmp_path, CSV))
    with written(tmp_path, CSV).open("rb") as file:
        assert rows(file) == expected
    assert rows(io.BytesIO(CSV.encode())) == expected
    assert rows(io.BytesIO(gzip.compress(CSV.encode()))) == expected


@pytest.mark.slow
def test_a_dash_reads_a_real_pipe_on_standard_input():
    script = (
        "from deniable.tables import open_table; from deniable.schema import Attribute\n"
        "A = Attribute('a', ('x', 'y'))\n"
        "with open_table('-', [A]) as r: print(sum(int(b.codes[0].sum()) for b in r), r.fraction)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"a\n" + b"x\ny\n" * 200_000,
        capture_output=True,
        check=False,
    )
    assert done.stdout.split() == [b"200000", b"None"], done.stderr
    done = subprocess.run(
        [sys.executable, "-c", script], input=b"a\nx\nsecret\n", capture_output=True, check=False
    )
    assert b"InputError: standard input, data row 2, column 'a'" in done.stderr
    assert b"secret" not in done.stderr


def test_parquet_is_recognised_by_content_and_read_in_small_batches(tmp_path):
    table = pa.table({"a": ["x", "y"] * 50, "n": list(range(100)), "drop": [SECRET] * 100})
    pq.write_table(table, tmp_path / "t.csv", row_group_size=33)
    number = Attribute("n", bins=(0, 50, 99))
    with open_table(tmp_path / "t.csv", [number, A], other_columns="drop", batch_rows=10) as reader:
        seen = [(b.first_row, b.n_rows, reader.fraction) for b in reader]
        assert reader.fraction == 1
    assert max(n for _, n, _ in seen) <= 10
    assert sum(n for _, n, _ in seen) == 100
    codes, _ = rows(tmp_path / "t.csv", (number, A), (), other_columns="drop")
    assert codes == [[0] * 50 + [1] * 50, [0, 1] * 50]


def test_columns_with_dots_in_their_names_are_not_confused(tmp_path):
    pq.write_table(pa.table({"a": ["x"], "a.b": ["y"]}), tmp_path / "t.parquet")
    dotted = Attribute("a.b", ("x", "y"))
    assert rows(tmp_path / "t.parquet", (dotted,), (), other_columns="drop") == ([[1]], {})
    assert rows(tmp_path / "t.parquet", (A,), (), other_columns="drop") == ([[0]], {})
    assert "'a.b'" in refusal(tmp_path / "t.parquet", (A,), ())


def test_an_error_in_parquet_says_the_row_over_all_batches(tmp_path):
    pq.write_table(pa.table({"a": ["x"] * 70 + [SECRET]}), tmp_path / "t.parquet")
    message = refusal(tmp_path / "t.parquet", (A,), (), batch_rows=8)
    assert "t.parquet, data row 71, column 'a'" in message


# --- bad input, one test each -------------------------------------------------------------------


def test_an_unknown_category_names_file_row_and_column_and_no_value(tmp_path):
    path = written(tmp_path, f"a,b,k\nx,no,1\nx,{SECRET},2\n")
    message = refusal(path)
    assert message.startswith(f"{path}, data row 2, column 'b':")
    assert "add it to the categories in the schema, or correct the table" in message
    assert SECRET in refusal(path, show_values=True)


def test_a_ragged_row_is_refused_with_its_number_and_not_its_text(tmp_path):
    for row in (f"{SECRET},no", f"{SECRET},no,1,2"):
        path = written(tmp_path, f"a,b,k\nx,no,1\n\nx,no,1\n{row}\nx,no,1\n")
        message = refusal(path)
        assert message.startswith(f"{path}, data row 3: {row.count(',') + 1} field")


def test_a_missing_column_is_named_and_those_that_the_schema_does_not_know_are_counted(tmp_path):
    path = written(tmp_path, f"a,k,{SECRET}\nx,1,2\n")
    message = refusal(path)
    assert "there is no column 'b'" in message
    assert "2 of the schema's columns and 1 that the schema lacks" in message
    assert f"'a', 'k', '{SECRET}'" in refusal(path, show_values=True)
    assert "'a', 'k'" in refusal(pa.table({"a": ["x"], "k": [1]}))


def test_a_duplicate_name_is_refused_even_for_a_column_not_asked_for(tmp_path):
    message = refusal(written(tmp_path, "a,b,k,n,n\n"), other_columns="drop")
    assert "two columns are called 'n'" in message
    table = pa.table([["x"], ["x"]], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table):
        assert "two columns are called 'a'" in refusal(source, (A,), ())


def test_undeclared_columns_are_refused_by_name_or_left_out(tmp_path):
    path = written(tmp_path, f"id,a,b,k,note\n{SECRET},x,no,1,{SECRET}\n")
    message = refusal(path)
    assert "'id', 'note'" in message
    assert "drop_other_columns" in message
    assert rows(path, other_columns="drop") == ([[0], [0]], {"k": ["1"]})


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path, monkeypatch, capfd):
    header = written(tmp_path, "a,b,é\n".encode("latin-1"))
    assert "line 1: not UTF-8 text; set `schema.file.encoding`" in refusal(header)
    body = b"a,b,k\n" + b"x,no,1\n" * 500 + b"x,no,\xe9\n"
    for bytes_read in (100, csv_source.BLOCK_BYTES):
        monkeypatch.setattr(csv_source, "BLOCK_BYTES", bytes_read)
        assert "line 502: not UTF-8 text" in refusal(written(tmp_path, body))
    # A row with a wrong letter and too many fields made the parser print a traceback.
    refusal(written(tmp_path, b"a,b,k\nx,no,1\nx,no,\xe9,\xe9,\n"))
    wide = CSV.encode("utf-16-le")
    assert "UTF-16 without a byte order mark" in refusal(written(tmp_path, wide))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_says_the_encoding(tmp_path, encoding, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 101)
    path = written(tmp_path, CSV.replace("x", "ü").encode(encoding))
    assert rows(path, (Attribute("a", ("ü", "y", "z")), B))[0] == rows(written(tmp_path, CSV))[0]


def test_any_other_encoding_is_read_where_it_is_told(tmp_path):
    path = written(tmp_path, "a,b,k\nü,no,1\n".encode("latin-1"))
    u, told = Attribute("a", ("ü", "y")), FileFormat(encoding="latin-1")
    assert rows(path, (u, B), file_format=told) == ([[0], [0]], {"k": ["1"]})
    told = FileFormat(encoding="ascii")
    assert "line 2: not ascii text" in refusal(path, (u, B), file_format=told)


def test_a_separator_that_cannot_be_told_is_asked_for_and_can_be_told(tmp_path):
    path = written(tmp_path, "x,no;1\ny,no;2\n")
    told = FileFormat(columns=("a", "b"), header=False)
    with pytest.raises(
        InputError, match=r"semicolon and comma both fit .* `schema.file.separator`"
    ):
        column_names(path, told)
    with pytest.raises(InputError, match="3 columns are named, and the first row has 2 fields"):
        column_names(path, FileFormat(separator=",", columns=("a", "b", "c")))
    told = FileFormat(separator=";", columns=("a", "b"))
    assert rows(path, (Attribute("a", ("x,no", "y,no")),), ("b",), file_format=told) == (
        [[0, 1]],
        {"b": ["1", "2"]},
    )


def test_a_decimal_comma_is_no_separator_and_is_read_where_it_is_told(tmp_path):
    path = written(tmp_path, "1,5;0,25\n2,5;10\n")
    told = FileFormat(decimal=",", columns=("h", "w"))
    hours = Attribute("h", bins=(0, 2, 4))
    assert rows(path, (hours,), ("w",), file_format=told) == ([[0, 1]], {"w": ["0,25", "10"]})
    point = written(tmp_path, "h;w\n1.500;1\n")
    assert "neither a number" in refusal(point, (hours,), ("w",), file_format=told.with_changes(
        FileFormat(header=True)))  # fmt: skip
    assert "neither a number" in refusal(written(tmp_path, "h;w\n1,5;1\n"), (hours,), ("w",))


def test_blanks_around_fields_do_not_count_whichever_block_they_stand_in(tmp_path, monkeypatch):
    plain = "a,b,k\n" + "x,no,1\ny,yes,\n" * 200
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 103)
    wide = plain.replace(",", " , ").replace("\nx", "\n  x") + "x,no, \n"
    expected = rows(written(tmp_path, plain + "x,no,\n"))
    of_wide, kept = rows(written(tmp_path, wide))
    assert of_wide == expected[0]
    assert kept["k"] == [" 1", " "] * 200 + [" "]  # a kept column is released unchanged
    late = plain + "x ,no,\n"
    assert rows(written(tmp_path, late)) == expected
    inside = Attribute("a", ("x x", "y"))
    assert rows(written(tmp_path, "a,b,k\nx x,no,1\n"), (inside, B))[0] == [[0], [0]]


def test_a_byte_order_mark_in_the_first_cell_of_data_is_kept(tmp_path):
    path = written(tmp_path, "k,a,b\n\ufeff1 ,x,no\n\ufeff2,y,yes\n")
    assert rows(path)[1]["k"] == ["\ufeff1 ", "\ufeff2"]


def test_a_file_without_a_header_is_read_under_the_names_given_for_it(tmp_path):
    path = written(tmp_path, CSV.partition("\n")[2])
    told = FileFormat(columns=("a", "b", "k"))
    assert rows(path, file_format=told) == rows(written(tmp_path, CSV, "u.csv"))
    assert column_names(path, FileFormat(header=False)) == ("column1", "column2", "column3")
    with pytest.raises(InputError, match="the first row already has these names"):
        column_names(tmp_path / "u.csv", told)
    renamed = FileFormat(header=True, columns=("a", "b", "c"))
    assert column_names(tmp_path / "u.csv", renamed) == ("a", "b", "c")


def test_names_that_may_be_somebodys_values_are_not_shown_where_they_are_alike(tmp_path):
    path = written(tmp_path, f"{SECRET},{SECRET},1\nx,no,2\n")
    with pytest.raises(
        InputError, match=r"\(1 and 2\) have one name.*schema.file.header = False"
    ) as caught:
        column_names(path)
    assert SECRET not in str(caught.value)


def test_what_is_not_a_table_is_refused(tmp_path):
    assert "this is no Parquet file" in refusal(written(tmp_path, CSV, "t.parquet"))
    assert "not readable as Parquet" in refusal(written(tmp_path, b"PAR1" + b"x" * 99))
    assert "Excel" in refusal(written(tmp_path, b"PK\x03\x04" + b"x" * 99 + b"\n", "t.xlsx"))
    assert "no such file" in refusal(tmp_path / "nowhere.csv")
    (tmp_path / "empty").mkdir()
    assert "this folder has no tables" in refusal(tmp_path / "empty")
    assert "in it is no table" in refusal(tmp_path)
    assert "no readable table" in refusal(3)


def test_a_truncated_file_is_refused(tmp_path):
    packed = gzip.compress(("a,b,k\n" + "x,no,1\n" * 99_999).encode())
    assert "cut off, damaged" in refusal(written(tmp_path, packed[:-300], "t.csv.gz"))
    for end in (2, 9, 12, 40):  # before a first row can be read: that was a traceback
        assert "cut off, damaged" in refusal(written(tmp_path, packed[:end], "t.csv.gz"))
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 255
    assert "cut off, damaged" in refusal(written(tmp_path, bytes(damaged), "t.csv.gz"))
    pq.write_table(pa.table({"a": ["x"] * 1000}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    assert "not readable as Parquet" in refusal(written(tmp_path, whole[:-9], "t.parquet"))


def test_a_quote_that_is_never_closed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 1000)
    path = written(tmp_path, "a,b,k\nx,no,1\n" + f'x,no,"{SECRET}\n' + "x,no,1\n" * 999)
    assert "a quote is opened and never closed" in refusal(path)
    path = written(tmp_path, f'a,b,"k\nx,no,{SECRET}\n')
    assert "header" in refusal(path)


def test_wrong_column_types_are_refused_before_any_row_is_read(tmp_path):
    pq.write_table(pa.table({"a": [1.5]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="declare bins"):
        open_table(tmp_path / "t.parquet", [A])


def test_files_are_closed_and_threads_end_when_reading_stops_early(tmp_path):
    path = written(tmp_path, "a,b,k\n" + "x,no,1\n" * 500_000)
    opened = Path("/proc/self/fd")
    before = len(list(opened.iterdir())) if opened.exists() else 0
    with open_table(path, (A, B), ("k",)) as reader:
        batches = iter(reader)
        next(batches)
        batches.close()
    assert not [t for t in threading.enumerate() if t.name == "deniable-read-ahead"]
    with pytest.raises(InputError):
        open_table(path, (A,))
    assert (len(list(opened.iterdir())) if opened.exists() else 0) == before


@pytest.mark.parametrize("width", [3, 40])
def test_columns_alike_with_dictionaries_of_their_own_are_looked_at_as_if_each_were_alone(
    width, tmp_path
):
    random = np.random.default_rng(width)
    codes = random.integers(0, 3, (width, 500))
    codes[0] = 2  # its dictionary has one text
    names = [f"a{i}" for i in range(width)]
    texts = {name: np.array(["x", "y", "z"])[own] for name, own in zip(names, codes, strict=True)}
    pq.write_table(pa.table(texts), tmp_path / "t.parquet")
    attributes = [Attribute(name, ("x", "y", "z")) for name in names]
    assert rows(tmp_path / "t.parquet", attributes, ())[0] == codes.tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_batch_is_read_while_one_is_worked_on_and_no_other_held(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 10_000)
    path = written(tmp_path, "a,b,k\n" + "x,no,1\n" * 20_000)
    if kind == "parquet":
        table = pa.table({"a": ["x"] * 20_000, "b": ["no"] * 20_000, "k": ["1"] * 20_000})
        pq.write_table(table, path := tmp_path / "t.parquet")
    held, most = [], []

    def counted(batch):
        held.append(weakref.ref(batch))
        most.append(sum(one() is not None for one in held))
        return batch

    with open_table(path, (A, B), ("k",), batch_rows=1000) as reader:
        original = reader.source.batches
        monkeypatch.setattr(reader.source, "batches", lambda names: map(counted, original(names)))
        for _ in reader:
            until = time.monotonic() + 20
            while len(most) < 2:  # while the first is worked on
                assert time.monotonic() < until, "nothing is read ahead"
                time.sleep(0.001)
    assert len(most) > 10
    assert max(most) <= 2


@pytest.mark.parametrize("first", [f"{SECRET},no,1\n", f"{SECRET},{SECRET},1\n"])
def test_the_values_of_a_table_without_a_header_row_are_not_shown(first, tmp_path):
    with pytest.raises(InputError, match="needs a header row") as caught:
        open_table(written(tmp_path, first + CSV), [A, B], ["k"])
    assert SECRET not in str(caught.value)


def test_wide_tables_come_in_batches_of_cells(tmp_path, monkeypatch):
    names = [f"c{i}" for i in range(70)]
    lines = [",".join(names), *[",".join("xyz"[(r + i) % 3] for i in range(70)) for r in range(90)]]
    path = written(tmp_path, "\n".join(lines) + "\n")
    attributes = [Attribute(name, ("x", "y", "z")) for name in names]
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 200)
    monkeypatch.setattr(csv_source, "_WIDE_CELLS", 70 * 30)
    monkeypatch.setattr(reading, "_BATCH_CELLS", 70 * 30)
    monkeypatch.setattr(reading, "_LEAST_ROWS", 5)
    table = pa.table(
        {name: [line.split(",")[i] for line in lines[1:]] for i, name in enumerate(names)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (path, tmp_path / "t.parquet", table):
        with open_table(source, attributes) as reader:
            batches = list(reader)
        assert [b.n_rows for b in batches] == [30, 30, 30]
        assert [c for b in batches for c in b.codes[69]] == [r % 3 for r in range(90)]


def test_a_header_row_longer_than_what_is_looked_at_first_is_read_whole(tmp_path: Path) -> None:
    names = [f"{'x' * 100}{i}" for i in range(700)]
    path = written(tmp_path, ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    with path.open("rb") as file, open_table(file, [], names) as reader:
        assert list(reader.all_names) == names
        assert [batch.n_rows for batch in reader] == [1]


def test_a_parquet_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"zzname": ["x"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"zzname", b"zz\xe7ame"))
    with pytest.raises(InputError, match=r"t\.parquet"):
        column_names(path)


def test_a_first_column_without_a_name_holds_the_names_of_rows(tmp_path):
    plain = "a,b,k\n" + "x,no,1\ny,yes,\n" * 30
    lines = plain.splitlines()
    numbered = "\n".join(
        ['"",' + lines[0], *(f'"{i}",{line}' for i, line in enumerate(lines[1:], 1))]
    )
    assert rows(written(tmp_path, numbered + "\n")) == rows(written(tmp_path, plain))
    # Whoever says that the first row holds the names is told that one is none.
    told = FileFormat(header=True)
    assert "column 1 has no name" in refusal(
        written(tmp_path, ",a\n1,x\n"), (A,), (), file_format=told
    )


def test_single_blanks_between_fields_are_found_out_where_nothing_else_can_be_meant(tmp_path):
    plain = "a,b,k\n" + "x,no,1\ny,yes,2\n" * 30
    assert rows(written(tmp_path, plain.replace(",", " "))) == rows(written(tmp_path, plain))
    two = "a,k\nx,1\ny,2\n"
    assert rows(written(tmp_path, two.replace(",", " ")), (A,)) == rows(
        written(tmp_path, two), (A,)
    )
    # Two words in every row may be one column of first and second names.
    doubtful = written(tmp_path, "given family\nJane Doe\nJohn Roe\n")
    assert "every row has 2 words and no separator" in refusal(doubtful, (A,))
    aligned = written(tmp_path, "a  b   k\nx  no  1\ny  yes 2\n")
    assert "every row has 3 words and no separator" in refusal(aligned, (A,))


def test_what_write_table_of_r_writes_has_a_name_before_each_row(tmp_path):
    plain = "a,b,k\n" + "x,no,1\ny,yes,2\n" * 30
    lines = plain.splitlines()
    body = [f'"{number}",{line}' for number, line in enumerate(lines[1:], 1)]
    for separator in " \t":
        named = "\n".join([lines[0], *body, ""]).replace(",", separator)
        assert rows(written(tmp_path, named)) == rows(written(tmp_path, plain))
    # Words that anybody may have written are no table.
    free = written(tmp_path, "your words\nvery good indeed\nso so well\n")
    with open_table(free, [], ["your words"]) as reader:
        assert [b.kept["your words"].to_pylist() for b in reader] == [
            ["very good indeed", "so so well"]
        ]
    # Between commas the field too many may be half a number.
    assert "3 fields instead of 2" in refusal(
        written(tmp_path, "a,k\n1,5,2\n1,6,2\n"), (A,), ("k",)
    )


def test_all_columns_that_are_not_declared_are_listed_to_be_pasted(tmp_path):
    names = [f"c{i}" for i in range(12)]
    path = tmp_path / "t.csv"
    path.write_text(",".join(["sex", *names]) + "\n" + ",".join(["f", *["1"] * 12]) + "\n")
    with pytest.raises(InputError) as caught:
        open_table(path, [Attribute("sex", ("f", "m"))])
    (line,) = str(caught.value).partition("schema: ")[2:]
    assert tomllib.loads(line) == {"keep": names}
