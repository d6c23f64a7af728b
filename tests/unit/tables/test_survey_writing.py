import datetime as dt
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.tables import open_table, survey_writing
from deniable.tables.columns import Column, Forms, released_columns
from deniable.tables.reading import AS_RELEASED
from deniable.tables.survey_writing import (
    FILE_LABEL,
    coded,
    holds_rows,
    refuse_copies,
    refuse_values,
    write_copy,
)
from deniable.tables.writing import TableWriter
from marked import slow_after

SCHEMA = Schema(
    (
        Attribute(
            "happy", ("1", "2", "3"), ordered=True, labels={"1": "not", "NA": "refused"},
            missing="NA", question="How happy are you?",
        ),
        Attribute("sex", ("m", "f"), labels={"m": "male"}),
        Attribute("age", bins=(0, 30, 60, float("inf")), labels={"[0,30)": "young"}, missing="NA"),
        Attribute("half", ("0.5", "1", "1.5"), labels={"0.5": "half"}),
        Attribute("odd", ("2", "1", "1x")),
        Attribute("swapped", ("a", "b", "c"), labels={"a": "b", "b": "same", "c": "same"}),
        Attribute("weeks", ("0", "10"), missing="-9", labels={"-9": "refused"}),
        Attribute("both", parts=(Attribute("p", ("0", "1")), Attribute("q", ("x", "y")))),
    ),
    keep=("town", "weight"),
)  # fmt: skip
N = 500


@pytest.fixture(autouse=True)
def _no_probe(monkeypatch):
    """Files that the tests write are sound; a process for each would take half a second."""
    monkeypatch.setattr("deniable.tables.survey_source.tried", lambda *_: "")


def released(folder, kind="csv", schema=SCHEMA, forms=None):
    """Write random codes as a release has them; return the file, its columns and the codes."""
    rng = np.random.default_rng(1)
    names = [c.name for a in schema.attributes for c in a.columns]
    columns = released_columns(
        [(name, pa.string()) for name in names] + [("town", pa.string()), ("weight", pa.float64())],
        schema.attributes,
        schema.keep,
        forms=forms,
    )
    codes = [rng.integers(0, a.n_categories, N).astype(np.uint8) for a in schema.attributes]
    if forms is not None:
        codes = [np.where(rng.random(N) < 0.3, a.n_categories, c).astype(np.uint8)
                 for a, c in zip(schema.attributes, codes, strict=True)]  # fmt: skip
        codes.append(rng.integers(0, forms.number, N).astype(np.uint8))
    kept = {"town": pa.array(["Köln", "Ulm"] * (N // 2)), "weight": pa.array(np.arange(N) / 4)}
    path = folder / f"data.{kind}"
    with TableWriter(path, columns) as writer:
        writer.write(codes, kept)
    return path, columns, codes


def read_back(path, schema=SCHEMA):
    with open_table(path, schema.attributes, schema.keep, file_format=AS_RELEASED) as reader:
        batches = list(reader)
    codes = [np.concatenate(c) for c in zip(*(b.codes for b in batches), strict=True)]
    kept = {n: [x for b in batches for x in b.kept[n].to_pylist()] for n in schema.keep}
    return codes, kept


@pytest.mark.parametrize("kind", ["sav", "dta", "parquet"])
@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_every_code_comes_back(tmp_path, kind, backend, monkeypatch):
    monkeypatch.setattr(survey_writing, "_backend", lambda: backend)
    path, columns, codes = released(tmp_path)
    target = tmp_path / f"data.{kind}"
    refuse_copies([kind], columns, SCHEMA)
    write_copy(path, target, columns, SCHEMA)
    assert holds_rows(target, path, columns, SCHEMA)
    found, kept = read_back(target)
    for attribute, own, wrote in zip(SCHEMA.attributes, found, codes, strict=True):
        assert own.tolist() == wrote.tolist(), attribute.name
    assert kept["town"] == ["Köln", "Ulm"] * (N // 2)
    assert np.allclose(np.array(kept["weight"], dtype=float), np.arange(N) / 4)


def test_text_is_written_from_parquet(tmp_path):
    path, columns, codes = released(tmp_path, "parquet")
    write_copy(path, tmp_path / "data.csv", columns, SCHEMA)
    assert holds_rows(tmp_path / "data.csv", path, columns, SCHEMA)
    found, _ = read_back(tmp_path / "data.csv")
    assert all((a == b).all() for a, b in zip(found, codes, strict=True))
    write_copy(path, tmp_path / "data.sav", columns, SCHEMA)
    found, _ = read_back(tmp_path / "data.sav")
    assert all((a == b).all() for a, b in zip(found, codes, strict=True))


def test_a_number_that_is_none_is_the_same_in_text(tmp_path):
    # Failed before: CSV's "nan" was not the NaN of the released rows, and a sound copy was refused.
    columns = [Column("weight", pa.float64())]
    pq.write_table(pa.table({"weight": [1.5, float("nan"), None]}), tmp_path / "data.parquet")
    write_copy(tmp_path / "data.parquet", tmp_path / "data.csv", columns, SCHEMA)
    assert holds_rows(tmp_path / "data.csv", tmp_path / "data.parquet", columns, SCHEMA)


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_no_digit_of_a_long_number_is_lost(tmp_path, kind):
    # Failed before: text became the nearest float, and integers ended in a traceback.
    columns = [Column("id", pa.string())]
    rows, copy = tmp_path / "data.csv", tmp_path / f"data.{kind}"
    rows.write_text("id\n9007199254740993\n9007199254740992\n")
    write_copy(rows, copy, columns, SCHEMA)
    read = pyreadstat.read_sav if kind == "sav" else pyreadstat.read_dta
    found, _ = read(copy, output_format="dict")
    assert list(found["id"]) == ["9007199254740993", "9007199254740992"]
    pq.write_table(pa.table({"id": [2**53 + 1]}), tmp_path / "data.parquet")
    with pytest.raises(InputError, match="beyond 2\\^53"):
        write_copy(tmp_path / "data.parquet", copy, [Column("id", pa.int64())], SCHEMA)


def test_a_file_says_what_it_is_and_what_was_asked(tmp_path):
    path, columns, _ = released(tmp_path)
    for kind in ("sav", "dta", "parquet"):
        write_copy(path, tmp_path / f"data.{kind}", columns, SCHEMA)
    _, sav = pyreadstat.read_sav(tmp_path / "data.sav", output_format="dict", user_missing=True)
    _, dta = pyreadstat.read_dta(tmp_path / "data.dta", output_format="dict")
    assert sav.file_label == dta.file_label == FILE_LABEL
    assert "record.json" in " ".join(sav.notes)
    for about in (sav, dta):
        assert about.column_names_to_labels["happy"] == "How happy are you?"
        assert about.variable_value_labels["happy"] == {1: "not", 4: "refused"}
        assert about.variable_value_labels["sex"] == {1: "male", 2: "f"}
        assert about.variable_value_labels["age"][1] == "young"
    assert sav.variable_measure["happy"] == "ordinal"
    assert sav.variable_measure["sex"] == "nominal"
    assert sav.missing_ranges["weeks"] == [{"lo": -9.0, "hi": -9.0}]
    assert sav.missing_ranges["happy"] == [{"lo": 4.0, "hi": 4.0}]
    schema = pq.read_schema(tmp_path / "data.parquet")
    assert schema.metadata[b"note"].decode() == FILE_LABEL
    about = schema.field("happy").metadata
    assert about[b"question"] == b"How happy are you?"
    assert json.loads(about[b"labels"]) == {"1": "not", "NA": "refused"}


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_cells_that_were_not_asked_stay_empty(tmp_path, kind):
    schema = Schema(SCHEMA.attributes[:2], keep=SCHEMA.keep)
    path, columns, codes = released(tmp_path, schema=schema, forms=Forms("form", 3))
    target = tmp_path / f"data.{kind}"
    write_copy(path, target, columns, schema)
    assert holds_rows(target, path, columns, schema)
    read = pyreadstat.read_sav if kind == "sav" else pyreadstat.read_dta
    found, _ = read(target, output_format="dict")
    asked = codes[1] < 2
    assert [value is not None and value == value for value in found["sex"]] == asked.tolist()
    given = [value is not None and value == value for value in found["happy"]]
    if kind == "dta":  # the reader of .sav takes the missing category for empty
        assert given == (codes[0] < 4).tolist()
    else:
        assert given == (codes[0] < 3).tolist()
    assert found["form"] == (codes[2] + 1).tolist()


def test_no_number_is_mistaken_for_another_category():
    odd = coded(released_columns([("odd", pa.string())], [SCHEMA.attributes[4]])[0], None)
    assert odd.values == {"2": 1001, "1": 1002, "1x": 1003}
    half = released_columns([("half", pa.string())], [SCHEMA.attributes[3]])[0]
    assert coded(half, SCHEMA.attributes[3]).values == {"0.5": 0.5, "1": 1.0, "1.5": 1.5}
    assert set(coded(half, SCHEMA.attributes[3], "dta").values.values()) == {1001, 1002, 1003}


def one(name, **how):
    attribute = Attribute(name, **({"categories": ("a", "b")} | how))
    return released_columns([(name, pa.string())], [attribute]), Schema((attribute,))


@pytest.mark.parametrize(
    ("kind", "name", "how", "said"),
    [
        ("sav", "a b", {}, "no valid name for a .sav file"),
        ("sav", "to", {}, "no valid name for a .sav file"),
        ("sav", "x" * 65, {}, "no valid name for a .sav file"),
        ("dta", "sepal.length", {}, "no valid name for a .dta file"),
        ("dta", "long", {}, "no valid name for a .dta file"),
        ("dta", "x" * 33, {}, "no valid name for a .dta file"),
        ("dta", "str12", {}, "cannot be written"),  # what the library knows
        ("sav", "x", {"labels": {"a": "ü" * 61}}, "120 bytes"),
        ("pdf", "x", {}, "not as 'pdf'"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_anything_is_drawn(kind, name, how, said):
    with pytest.raises(InputError) as caught:
        refuse_copies([kind], *one(name, **how))
    assert said in str(caught.value)


def test_two_names_that_spss_does_not_tell_apart_are_refused():
    attributes = (Attribute("Age", ("1", "2")), Attribute("age", ("1", "2")))
    columns = released_columns([(a.name, pa.string()) for a in attributes], attributes)
    with pytest.raises(InputError, match="columns 'Age' and 'age' have one name"):
        refuse_copies(["sav"], columns, Schema(attributes))
    refuse_copies(["dta", "csv", "parquet"], columns, Schema(attributes))


def test_the_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(survey_writing, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pandas or Polars"):
        refuse_copies(["sav"], *one("x"))


@pytest.mark.parametrize(
    ("values", "in_sav", "in_dta"),
    [
        (["a", "b" * 32768], "a text of more than 32,767 bytes", ""),
        (["a", "b\0"], "a text with a NUL", "a text with a NUL"),
        ([1, 2**53 + 1], "a number of more digits", "a number of more digits"),
        ([1, -(2**53) - 1], "a number of more digits", "a number of more digits"),
        ([1.0, float("inf")], "infinite or too large", "infinite or too large"),
        ([1.0, 1e308], "", "infinite or too large"),
        ([1.0, None], "", ""),
        ([dt.date(2000, 1, 1), dt.date(1500, 1, 1)], "a date before 1582-10-15", ""),
        ([dt.datetime(2000, 1, 1), dt.datetime(99, 1, 1)], "a date before", "before 0100-01-01"),
    ],
)
def test_kept_values_that_a_file_cannot_hold_are_refused(values, in_sav, in_dta):
    for kind, said in (("sav", in_sav), ("dta", in_dta)):
        if said:
            with pytest.raises(InputError, match=rf"t, data row 12, column 'k': .*{said}.*{kind}"):
                refuse_values([kind], "t", {"k": pa.array(values)}, 11)
        else:
            refuse_values([kind], "t", {"k": pa.array(values)}, 11)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.binary(), pa.timestamp("s", "UTC"), pa.duration("s")]
)
def test_kept_types_that_a_file_cannot_hold_are_refused(kind):
    columns = released_columns([("sex", pa.string()), ("k", kind)], SCHEMA.attributes[1:2], ["k"])
    for file in ("sav", "dta"):
        with pytest.raises(InputError, match=f"of type .* cannot be written to a .{file} file"):
            refuse_copies([file], columns, SCHEMA)


def test_numbers_of_many_digits_stay_texts(tmp_path):
    columns = released_columns(
        [("sex", pa.string()), ("k", pa.string())], SCHEMA.attributes[1:2], ["k"]
    )
    with TableWriter(tmp_path / "data.csv", columns) as writer:
        kept = {"k": pa.array(["12345678901234567890", "2"])}
        writer.write([np.zeros(2, np.uint8)], kept)
    write_copy(tmp_path / "data.csv", tmp_path / "data.sav", columns, SCHEMA)
    read, _ = pyreadstat.read_sav(tmp_path / "data.sav", output_format="dict")
    assert read["k"] == kept["k"].to_pylist()


def test_long_questions_are_cut(tmp_path):
    columns, schema = one("x", question="Why? " * 100)
    path = tmp_path / "data.csv"
    with TableWriter(path, columns) as writer:
        writer.write([np.zeros(3, dtype=np.uint8)])
    for kind, read in (("sav", pyreadstat.read_sav), ("dta", pyreadstat.read_dta)):
        write_copy(path, tmp_path / f"d.{kind}", columns, schema)
        _, about = read(tmp_path / f"d.{kind}", output_format="dict")
        assert about.column_names_to_labels["x"].endswith("…")


def test_other_types_that_are_kept_are_written(tmp_path):
    kinds = {
        "yes": pa.array([True, False]),
        "n": pa.array([1, None]),
        "day": pa.array([0, 1], pa.date32()),
        "word": pa.array(["a", "b"]).dictionary_encode(),
        "blanks": pa.array([" a ", ""]),
        "moment": pa.array([1_600_000_000_123_456, None], pa.timestamp("us")),
    }
    schema = Schema((Attribute("x", ("a", "b")),), keep=tuple(kinds))
    columns = released_columns(
        [("x", pa.string()), *((n, a.type) for n, a in kinds.items())],
        schema.attributes,
        schema.keep,
    )
    with TableWriter(tmp_path / "data.parquet", columns) as writer:
        writer.write([np.array([0, 1], dtype=np.uint8)], kinds)
    for kind in ("sav", "dta", "csv"):
        write_copy(tmp_path / "data.parquet", tmp_path / f"data.{kind}", columns, schema)
        assert holds_rows(tmp_path / f"data.{kind}", tmp_path / "data.parquet", columns, schema)
    with open_table(tmp_path / "data.sav", [], list(kinds), other_columns="drop") as reader:
        (batch,) = reader
    assert batch.kept["yes"].to_pylist() == [1, 0]
    assert batch.kept["n"].to_pylist() == [1, None]
    assert batch.kept["day"].to_pylist() == kinds["day"].to_pylist()
    assert batch.kept["word"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("kind", slow_after(1, ["sav", "dta", "parquet"]))
def test_a_copy_with_another_cell_column_row_or_label_is_not_one_of_the_rows(tmp_path, kind):
    path, columns, _ = released(tmp_path)
    target = tmp_path / f"data.{kind}"
    lines = path.read_text().splitlines()
    first, town = lines[-1].split(","), lines[-1].replace("Ulm", "Bonn")
    first[0] = "1" if first[0] != "1" else "2"
    for rows in ([*lines[:-1], ",".join(first)], [*lines[:-1], town], lines[:-1], lines * 2):
        other = tmp_path / "other.csv"
        other.write_text("\n".join(row for i, row in enumerate(rows) if not i or row != lines[0]))
        write_copy(other, target, columns, SCHEMA)
        assert holds_rows(target, path, columns, SCHEMA) is False
    other.write_text("".join(f"{row.rpartition(',')[0]}\n" for row in lines))
    write_copy(other, target, columns[:-1], SCHEMA)
    assert holds_rows(target, path, columns, SCHEMA) is False
    if kind != "parquet":
        named = (replace(SCHEMA.attributes[1], labels={"f": "male", "m": "female"}),)
        write_copy(path, target, columns, Schema((*SCHEMA.attributes[:1], *named)))
        assert holds_rows(target, path, columns, SCHEMA) is False
