"""Crafted workbooks are one sentence, and take the memory of a child process only."""

import gzip
import re
import zipfile

import pytest
import xlsxwriter

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import open_table
from marked import slow_after

AGE = Attribute("age", bins=(0, 18, 65, 120), missing="NA", missing_codes=("#DIV/0!",))
SEX = Attribute("sex", ("f", "m"))


def workbook(path, *cells):
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for row, column, value in [(2, 1, "age"), (2, 2, "sex"), (3, 1, 30), (3, 2, "f"), *cells]:
            if isinstance(value, tuple):
                sheet.write_formula(row, column, value[0], None, value[1])
            else:
                sheet.write(row, column, value)
    return path


def changed(path, part, pattern, new):
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts[part] = re.sub(pattern, new, parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, content)
    return path


def codes(path, keep=()):
    with open_table(path, [AGE, SEX], keep, other_columns="drop") as reader:
        return [tuple(map(int, row)) for b in reader for row in zip(*b.codes, strict=True)]


def refusal(path, keep=()):
    with pytest.raises(InputError) as caught:
        codes(path, keep)
    return str(caught.value)


@pytest.mark.slow
def test_a_workbook_that_wants_too_much_memory_is_refused(tmp_path):
    far = workbook(tmp_path / "far.xlsx", (1048575, 16383, 1))
    counted = changed(
        workbook(tmp_path / "counted.xlsx"),
        "xl/sharedStrings.xml",
        rb'uniqueCount="\d+"',
        b'uniqueCount="99999999999999999"',
    )
    for path in (far, counted):
        assert "cannot be read within 2 GiB of memory" in refusal(path)


@pytest.mark.slow
def test_error_values_are_refused_unless_declared_missing(tmp_path):
    divided = (4, 1, ("=1/0", "#DIV/0!")), (4, 2, "m")
    assert codes(workbook(tmp_path / "good.xlsx", *divided)) == [(1, 0), (3, 1)]
    lacking = (5, 1, ("=NA()", "#N/A")), (5, 2, "m")
    said = refusal(workbook(tmp_path / "bad.xlsx", *divided, *lacking))
    assert "row 6, column 'age': the cell holds the error value #N/A" in said
    kept = workbook(tmp_path / "kept.xlsx", (2, 3, "n"), (4, 3, ("=NA()", "#N/A")), *divided)
    assert "row 5, column 'n'" in refusal(kept, ["n"])
    # A row of which nothing is left but the error is a row too.
    alone = workbook(tmp_path / "alone.xlsx", (4, 1, ("=NA()", "#N/A")))
    assert "row 5, column 'age'" in refusal(alone)


@pytest.mark.parametrize(
    ("parts", "said"),
    slow_after(
        1,
        [
            ([b"," * (1 << 20)] * 48, "a row is longer than 4 MiB"),
            ([b'"' + b"a" * (1 << 20)] * 49, "a row is longer than 4 MiB"),
            ([b"age,sex\n", *[b"a" * (1 << 20)] * 48], "a row is longer than 2 MiB"),
            (
                [b"age,sex", *[b",%d" % i for i in range(99)], b"\n", *[b"a" * (1 << 20)] * 48],
                "4 MiB",
            ),
            ([b",".join(b"%d" % i for i in range(200_000)), b"\n"], "at most 131,072 columns"),
        ],
    ),
)
def test_a_packed_text_of_few_long_rows_is_refused(tmp_path, parts, said):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.writelines(parts)
    assert said in refusal(path)
