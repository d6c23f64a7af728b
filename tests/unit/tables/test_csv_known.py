"""Rows that are known are read as the parser reads them, and what is not known is left to it."""

import io
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute, FileFormat
from deniable.tables import csv_source, open_table
from deniable.tables.csv_known import KnownRows
from deniable.tables.csv_source import CsvSource

BLOCK = 256


@pytest.fixture(autouse=True)
def short_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "BLOCK_BYTES", BLOCK)
        yield


def read(text: bytes, columns: list[str], *, lessons: int = 8) -> tuple[list[object], int]:
    """The rows, or the message with which they are refused, and how many were known."""
    known = 0
    rows: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "_LESSONS", lessons)
        try:
            source = CsvSource(io.BytesIO(text), "t", FileFormat(separator=","))
            for batch in source.batches(columns):
                if any(pa.types.is_dictionary(kind) for kind in batch.schema.types):
                    known += batch.num_rows
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except InputError as error:
            rows = [str(error)]
    return rows, known


def as_parsed(text: bytes, columns: list[str]) -> int:
    rows, known = read(text, columns)
    parsed, none = read(text, columns, lessons=0)
    assert none == 0
    if rows != parsed:  # a table that is refused is refused either way, if not for the same row
        assert len(rows) == len(parsed) == 1
        assert isinstance(rows[0], str)
        assert isinstance(parsed[0], str)
    return known


TEXTS = st.text(alphabet="ab0-é", max_size=6)
# A quote that is never closed is refused for one reason or another, by where blocks end: below.
ODD = ['"x,y"', "x,y", 'a"b', " a", "a ", "", '""', '"a\nb"', '"a""b"', "new", "\r", "é"]


@settings(max_examples=20)
@given(
    st.lists(st.lists(TEXTS, min_size=1, max_size=9, unique=True), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.randoms(use_true_random=False),
    st.lists(st.tuples(st.sampled_from(ODD), st.floats(0, 1)), max_size=2),
)
def test_any_table_is_read_as_it_is_parsed(texts, quotes, end, ended, random, odd) -> None:
    def written(text: str, *, quoted: bool) -> str:
        return f'"{text}"' if quoted and text else text

    names = [f"c{place}" for place in range(len(texts))]
    fields = [
        [written(text, quoted=quoted) for text in own]
        for own, quoted in zip(texts, quotes, strict=False)
    ]
    rows = [[random.choice(own) for own in fields] for _ in range(150)]
    for text, at in odd:
        rows[int(at * 149)][random.randrange(len(names))] = text
    lines = [",".join(row) for row in [names, *rows]]
    text = (end.join(lines) + (end if ended else "")).encode()
    as_parsed(text, names)
    as_parsed(text, names[-1:])


def table(rows: int = 200, *, quoted: bool = False, after: bytes = b"") -> bytes:
    own = [["yes", "no"], ["0-17", "18-29", "30-44", ""], ["a", "ab", "abc"]]
    lines = [[texts[(row * row + row) % len(texts)] for texts in own] for row in range(rows)]
    text = "\n".join(",".join(f'"{t}"' if quoted and t else t for t in line) for line in lines)
    return b"x,y,z\n" + text.encode() + b"\n" + after


@pytest.mark.parametrize("quoted", [False, True])
def test_few_texts_are_learned_from_the_first_rows(quoted: bool) -> None:
    text = table(quoted=quoted)
    assert as_parsed(text, ["x", "y", "z"]) > 150
    assert as_parsed(text, ["z", "x"]) > 150
    assert as_parsed(text.replace(b"\n", b"\r\n"), ["x", "y", "z"]) > 150
    empty = b'"yes",,"a"\n' if quoted else b"yes,,a\n"  # first: with quotes, as its neighbours
    assert as_parsed(text.replace(b"z\n", b"z\n" + empty, 1), ["x", "y", "z"]) > 150


def test_texts_that_are_new_are_learned_and_too_many_are_not() -> None:
    late = table(after=b"yes,65+,ab\n" * 100)
    assert as_parsed(late, ["x", "y", "z"]) > 250
    many = b"x,y\n" + b"".join(b"%d,a\n" % row for row in range(2000))
    assert as_parsed(many, ["x", "y"]) < 500


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (b"yes,0-17\n", "data row 201: 2 fields instead of 3"),
        (b"yes,0-17,a,b\n" + b"yes,0-17,a\n" * 99, "data row 201: 4 fields instead of 3"),
        (b"yes,0-17,\xff\n" + b"yes,0-17,a\n" * 99, "line 202: not UTF-8 text"),
        (b'yes,0-17,"a\n' + b"yes,0-17,a\n" * 9, "a quote is opened and never closed"),
    ],
)
def test_what_is_wrong_behind_known_rows_is_named_with_its_row(after: bytes, message: str) -> None:
    text = table(after=after)
    as_parsed(text, ["x", "y", "z"])
    assert message in str(read(text, ["x", "y", "z"])[0])


def test_a_field_without_quotes_is_never_taken_for_two() -> None:
    # The text "a,b" is known, from where it stands in quotes; without them it is two fields.
    text = b"x,y\n" + b'c,1\n"a,b",1\n' * 40 + b"a,b,1\n" * 80
    rows, _ = read(text, ["x", "y"])
    assert "data row 81: 3 fields instead of 2" in str(rows)
    as_parsed(text, ["x", "y"])


def test_columns_are_kept_as_text_and_codes_are_those_of_the_texts() -> None:
    attribute = Attribute("y", ("0-17", "18-29", "30-44", "NA"), missing="NA")
    found: list[list[object]] = [[], []]
    with open_table(io.BytesIO(table()), [attribute], ["z"], other_columns="drop") as reader:
        for batch in reader:
            assert batch.kept["z"].type == pa.string()
            found[0] += [attribute.categories[code] for code in batch.codes[0]]
            found[1] += batch.kept["z"].to_pylist()
    rows, _ = read(table(), ["y", "z"], lessons=0)
    assert list(zip(*found, strict=True)) == [(y or "NA", z) for y, z in rows]


def test_what_bytes_between_are_is_looked_at_too() -> None:
    # "18-29" is told from the others by one byte; texts that agree there are not taken for it.
    lines = b"0-17\n18-29\n30-44\n"
    rows = pa.table({"y": ["0-17", "18-29", "30-44"]})
    known = KnownRows(rows, lines, ",")
    assert known.batch(pa.py_buffer(lines * 2), ["y"], ["y"]).num_rows == 6
    for wrong in (b"0-17\n18-20\n", b"0-17\n18-29", b"0-17\n\n", b"1-17\n", b"0-17\n18-29 \n"):
        assert known.batch(pa.py_buffer(wrong), ["y"], ["y"]) is None


def test_what_follows_a_short_text_does_not_matter() -> None:
    # "bcd" and "bce" are told apart by a byte that lies behind the end of "a".
    lines = b"bcd\nbce\na\nbcd\na\na\nbce\n"
    texts = lines.decode().split()
    known = KnownRows(pa.table({"y": texts}), lines, ",")
    assert known.batch(pa.py_buffer(lines), ["y"], ["y"])["y"].to_pylist() == texts


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([str(i) for i in range(256)], "too many texts"),
        (["a" * 70], "too long"),
        ([f"{i:08b}".replace("0", "x" * (i % 3)) for i in range(200)], "differ in too many places"),
        (["a,b"], "another spelling"),
    ],
)
def test_columns_that_cannot_be_known_are_refused(texts: list[str], why: str) -> None:
    lines = "".join(f"{text}\n" for text in texts).encode()
    with pytest.raises(ValueError, match=why):
        KnownRows(pa.table({"y": texts}), lines, ",")
