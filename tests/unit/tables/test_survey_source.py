import datetime
import importlib.util
import subprocess
import sys
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from deniable.errors import InputError
from deniable.randomness import SystemRandomness
from deniable.schema import Attribute, FileFormat, Schema
from deniable.tables import open_table, survey_source
from deniable.tables.codebook import Entry
from deniable.tables.drafting import draft_schema
from deniable.tables.reading import column_names
from deniable.tables.survey_source import is_encrypted, survey_program

PROBE = survey_source.tried
LABELS = {
    "sex": {1: "Männlich", 2: "Weiblich", 3: "divers"},
    "happy": {1: "not", 2: "very", -9: "refused", -8: "don't know", 98: "other"},
    "half": {0.5: "half", 1: "one"},
    "region": {"n": "north", "s": "south"},
}


@pytest.fixture(autouse=True)
def _no_probe(monkeypatch):
    """Files that the tests write are sound; a process for each would take half a second."""
    monkeypatch.setattr("deniable.tables.survey_source.tried", lambda *_: "")


def frame(n=6):
    return pd.DataFrame(
        {
            "sex": np.resize([1.0, 2.0, np.nan], n),
            "happy": np.resize([1.0, -9.0, -8.0, 98.0, 2.0, 97.0], n),
            "half": np.resize([0.5, 1.0], n),
            "region": np.resize(["n", "s", ""], n),
            "income": np.resize([1000.5, np.nan, 3.0], n),
            "born": [datetime.date(1969, 12, 31)] * n,
            "asked": [datetime.datetime(2020, 2, 29, 12, 30)] * n,
            "words": ["ü" * 300] * n,
        }
    )


def spss(folder, data=None, name="study.sav", **options):
    path = folder / name
    said = {
        "column_labels": {"sex": "Your sex?"},
        "variable_value_labels": LABELS,
        "missing_ranges": {"happy": [{"lo": 97, "hi": 99}, -9], "region": ["x"]},
        "variable_measure": {"happy": "ordinal"},
    }
    pyreadstat.write_sav(frame() if data is None else data, path, **(said | options))
    return path


def stata(folder, **options):
    data = frame().drop(columns=["half"])
    data["happy"] = np.array([1, "a", "b", 2, None, "c"], dtype=object)
    said = {
        "variable_value_labels": {
            "sex": LABELS["sex"],
            "happy": {1: "not", 2: "very", "a": "refused", "b": "don't know"},
        },
        "missing_user_values": {"happy": ["a", "b", "c"]},
        "column_labels": {"sex": "Your sex?"},
    }
    path = folder / "study.dta"
    pyreadstat.write_dta(data, path, **(said | options))
    return path


def columns(path, **options):
    names = column_names(path)
    with open_table(path, [], names, **options) as reader:
        batches = [batch.kept for batch in reader]
    return {name: pa.chunked_array([b[name] for b in batches]).to_pylist() for name in names}


def refusal(path, **options):
    with pytest.raises(InputError) as caught:
        columns(path, **options)
    return str(caught.value)


@pytest.mark.parametrize("name", ["study.sav", "study.zsav"])
def test_a_file_of_spss_gives_values_and_its_codebook(tmp_path, name):
    path = spss(tmp_path, name=name, compress=name.endswith("zsav"))
    found = columns(path)
    assert found["sex"] == ["1", "2", None] * 2
    assert found["happy"] == ["1", "-9", "-8", "98", "2", "97"]
    assert found["half"] == ["0.5", "1"] * 3
    assert found["region"] == ["n", "s", None] * 2
    assert found["income"] == [1000.5, None, 3.0] * 2
    assert found["born"] == [datetime.date(1969, 12, 31)] * 6
    assert found["asked"] == [datetime.datetime(2020, 2, 29, 12, 30)] * 6
    assert found["words"] == ["ü" * 300] * 6
    with open_table(path, [], ["sex"], other_columns="drop") as reader:
        book = reader.source.codebook
    assert book["sex"] == Entry(
        {"1": "Männlich", "2": "Weiblich", "3": "divers"}, question="Your sex?"
    )
    assert book["happy"].labels == {"1": "not", "2": "very", "-8": "don't know"}
    assert book["happy"].missing == {"-9": "refused", "98": "other"}
    assert book["happy"].ordered
    assert book["happy"].is_missing("97")
    assert book["half"].labels == {"0.5": "half", "1": "one"}
    assert book["region"] == Entry({"n": "north", "s": "south"}, {"x": ""})
    assert book["income"] == Entry()


def test_a_file_of_stata_has_tagged_missing_values(tmp_path):
    path = stata(tmp_path)
    found = columns(path)
    assert found["happy"] == ["1", ".a", ".b", "2", None, ".c"]
    assert found["born"] == [datetime.date(1969, 12, 31)] * 6
    assert found["asked"] == [datetime.datetime(2020, 2, 29, 12, 30)] * 6
    assert found["income"] == [1000.5, None, 3.0] * 2
    with open_table(path, [], ["sex"], other_columns="drop") as reader:
        book = reader.source.codebook
    assert book["happy"].labels == {"1": "not", "2": "very"}
    assert book["happy"].missing == {".a": "refused", ".b": "don't know"}


def test_tags_of_numbers_without_labels_are_missing(tmp_path):
    data = pd.DataFrame({"income": np.array([1.5, "a", None], dtype=object)})
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(data, path, missing_user_values={"income": ["a"]})
    assert columns(path)["income"] == [1.5, None, None]


def test_a_transport_file_of_sas_is_read(tmp_path):
    path = tmp_path / "t.xpt"
    data = pd.DataFrame({"SEX": [1.0, 2.0], "BORN": [datetime.date(1960, 1, 2)] * 2})
    pyreadstat.write_xport(data, path, file_format_version=5, table_name="T")
    assert columns(path) == {"SEX": [1.0, 2.0], "BORN": [datetime.date(1960, 1, 2)] * 2}


def test_rows_come_in_pieces_and_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(survey_source, "_MOST_ROWS", 7)
    data = pd.DataFrame({"a": np.arange(50.0), "b": [f"t{i}" for i in range(50)]})
    path = spss(tmp_path, data, variable_value_labels={}, missing_ranges={}, variable_measure={})
    with open_table(path, [], ["b", "a"]) as reader:
        batches = list(reader)
        assert reader.fraction == 1
    assert [batch.n_rows for batch in batches] == [7] * 7 + [1]
    assert [x for batch in batches for x in batch.kept["a"].to_pylist()] == list(range(50))
    assert batches[-1].kept["b"].to_pylist() == ["t49"]


def test_a_value_is_the_category_that_it_is_or_else_its_label(tmp_path):
    path = spss(tmp_path)
    codes = Attribute("sex", ("1", "2", "3"), missing="NA")
    by_label = Attribute("sex", ("Weiblich", "Männlich", "divers"), missing="NA")
    crossed = Attribute("sex", ("1", "Männlich", "Weiblich"), missing="NA")
    readable = Attribute("sex", ("f", "m"), labels={"f": "Weiblich", "m": "Männlich"}, missing="NA")
    for attribute, expected in [
        (codes, [0, 1, 3]),
        (by_label, [1, 0, 3]),
        (crossed, [0, 2, 3]),
        (readable, [1, 0, 2]),
    ]:
        with open_table(path, [attribute], other_columns="drop") as reader:
            (batch,) = reader
        assert batch.codes[0].tolist() == expected * 2


def test_missing_codes_become_the_category_of_missing_values(tmp_path):
    happy = Attribute(
        "happy", ("1", "2"), missing="NA", missing_codes=("-9", "-8", "97", "98"), ordered=True
    )
    with open_table(spss(tmp_path), [happy], other_columns="drop") as reader:
        (batch,) = reader
    assert batch.codes[0].tolist() == [0, 2, 2, 2, 1, 2]
    tagged = Attribute("happy", ("1", "2"), missing="NA", missing_codes=(".a", ".b", ".c"))
    with open_table(stata(tmp_path), [tagged], other_columns="drop") as reader:
        (batch,) = reader
    assert batch.codes[0].tolist() == [0, 2, 2, 1, 2, 2]


def test_numbers_with_labels_for_some_fit_bins(tmp_path):
    data = pd.DataFrame({"income": [100.0, -9.0, 3000.5]})
    path = spss(
        tmp_path,
        data,
        variable_value_labels={"income": {-9: "refused"}},
        missing_ranges={"income": [-9]},
        variable_measure={},
    )
    income = Attribute("income", bins=(0, 1000, float("inf")), missing="-9")
    with open_table(path, [income]) as reader:
        (batch,) = reader
    assert batch.codes[0].tolist() == [0, 2, 1]


@pytest.mark.parametrize("declared", [[], [-9, -8]], ids=["labels alone", "declared missing"])
@pytest.mark.parametrize("empty", [False, True])
def test_labels_of_missing_codes_become_the_missing_category_of_a_drafted_range(
    tmp_path, declared, empty
):
    labels = {-9: "Refused", -8: "Don't know", 0: "none", 97: "97 or more"}
    hours = [*map(float, range(98)), 5.0, -9.0, -8.0, -9.0]
    data = pd.DataFrame({"hours": hours, "a": [1.0, 2.0] * 51})
    if empty:
        data.loc[3, "hours"] = None
    missing = {"missing_ranges": {"hours": declared}} if declared else {}
    pyreadstat.write_sav(
        data, tmp_path / "t.sav", variable_value_labels={"hours": labels}, **missing
    )
    schema = Schema.from_plain(tomllib.loads(draft_schema(tmp_path / "t.sav")))
    hours = schema.attributes[0]
    assert hours.range == (0, 100)
    assert (hours.missing, set(hours.missing_codes)) == ("NA", {"-9", "-8"})
    assert set(hours.labels["NA"].split("; ")) == {"Refused", "Don't know"}
    bits = SystemRandomness()
    with open_table(tmp_path / "t.sav", schema.attributes, [], rounding=bits) as reader:
        (batch,) = reader
    assert (batch.codes[0] == 3).sum() == 3 + empty


def test_labels_in_an_old_code_page_are_read_with_its_name(tmp_path):
    data = pd.DataFrame({"sex": [1.0, 2.0]})
    path = tmp_path / "old.dta"
    labels = {"sex": {1: "Manxlich", 2: "Weiblich"}}
    pyreadstat.write_dta(data, path, version=12, variable_value_labels=labels)
    path.write_bytes(path.read_bytes().replace(b"Manxlich", "Männlich".encode("cp1252")))
    for form in (FileFormat(), FileFormat(encoding="windows-1252")):
        with open_table(path, [], ["sex"], file_format=form) as reader:
            assert reader.source.codebook["sex"].labels == {"1": "Männlich", "2": "Weiblich"}
    cyrillic = FileFormat(encoding="windows-1251")
    with open_table(path, [], ["sex"], file_format=cyrillic) as reader:
        assert reader.source.codebook["sex"].labels["1"] == "Mдnnlich"
    assert "schema.file.encoding" in refusal(path, file_format=FileFormat(encoding="utf-8"))


def test_damaged_files_are_refused_in_one_sentence(tmp_path):
    whole = spss(tmp_path).read_bytes()
    cut = tmp_path / "cut.sav"
    for length in (40, 200, 900, len(whole) - 8):
        cut.write_bytes(whole[:length])
        assert "damaged" in refusal(cut) or "cut off" in refusal(cut)
    wrong = tmp_path / "wrong.sav"
    wrong.write_text("a,b\n1,2\n")
    assert "this is no SPSS file" in refusal(wrong)
    locked = tmp_path / "locked.sav"
    locked.write_bytes(bytes([0x1C, 0, 0, 0, 0, 0, 0, 0]) + b"ENCRYPTEDSAV" + bytes(100))
    assert "encrypted" in refusal(locked)
    assert is_encrypted(locked.read_bytes()[:64])


@pytest.mark.slow
def test_a_file_of_which_the_library_dies_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(survey_source, "tried", PROBE)
    path = spss(tmp_path)
    assert columns(path)["sex"] == ["1", "2", None] * 2
    content = bytearray(path.read_bytes())
    content[182] = 36  # the width of the first variable, 2,359,296 characters
    path.write_bytes(content)
    assert "damaged" in refusal(path)


def test_codes_of_missing_dates_are_nulls(tmp_path):
    unknown = datetime.date(1900, 1, 1)
    data = pd.DataFrame({"born": [datetime.date(1969, 12, 31), unknown]})
    seconds = (unknown - datetime.date(1582, 10, 14)).days * 86400.0
    said = {"column_labels": {"born": "Born when?"}, "variable_measure": {}}
    labels = {"born": {unknown: "unknown"}}
    path = spss(tmp_path, data, variable_value_labels=labels, missing_ranges={}, **said)
    assert columns(path)["born"] == [datetime.date(1969, 12, 31), unknown]
    missing = {"born": [seconds]}
    path = spss(tmp_path, data, variable_value_labels=labels, missing_ranges=missing, **said)
    assert columns(path)["born"] == [datetime.date(1969, 12, 31), None]
    with open_table(path, [], ["born"]) as reader:
        assert reader.source.codebook["born"] == Entry(question="Born when?")


def test_a_file_without_rows_has_none(tmp_path):
    path = spss(tmp_path, frame().iloc[:0].drop(columns=["born", "asked"]), missing_ranges={})
    with open_table(path, [], ["sex"], other_columns="drop") as reader:
        assert list(reader) == []


@pytest.mark.slow
def test_five_thousand_variables_are_read(tmp_path):
    data = pd.DataFrame(np.ones((3, 5000)), columns=[f"v{i}" for i in range(5000)])
    path = spss(tmp_path, data, variable_value_labels={}, missing_ranges={}, variable_measure={})
    found = columns(path)
    assert len(found) == 5000
    assert found["v4999"] == [1.0] * 3


def test_what_a_file_is_is_told_by_its_first_bytes():
    assert survey_program(b"$FL3".ljust(64)) == "spss"
    assert survey_program(b"<stata_dta><header>".ljust(64)) == "stata"
    assert survey_program(bytes([114, 2, 1, 0]).ljust(64)) == "stata"
    assert survey_program(survey_source._SAS_MAGIC.ljust(64)) == "sas"
    assert survey_program(b"HEADER RECORD*******LIBRARY".ljust(64)) == "xport"
    assert survey_program(b"race,sex\n1,2\n") is None
    assert survey_program(b"") is None


def test_the_command_that_installs_the_library_is_named(tmp_path, monkeypatch):
    path = spss(tmp_path)
    monkeypatch.setattr(survey_source, "find_spec", lambda _: None)
    assert "pip install 'deniable[survey]'" in refusal(path)
    assert importlib.util.find_spec("pyreadstat") is not None


@pytest.mark.slow
def test_many_rows_are_read_in_flat_memory(tmp_path):
    """What is behind the first 100,000 rows is a hole in the file, which is read as zeros."""
    few, many, width = 1000, 450_000, 100
    columns = {f"v{i}": np.zeros(few) for i in range(width)}
    path = spss(
        tmp_path,
        pd.DataFrame(columns),
        variable_value_labels={},
        missing_ranges={},
        variable_measure={},
        column_labels={},
    )
    peaks = []
    for n_rows in (100_000, many):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + (n_rows - few) * width * 8)
            file.seek(80)  # the number of cases, in the header
            file.write(n_rows.to_bytes(4, "little"))
        few = n_rows
        code = (
            "import resource\nfrom deniable.schema import Attribute\n"
            "from deniable.tables import open_table\n"
            "two = [Attribute(f'v{i}', ('0', '1')) for i in (0, 99)]\n"
            f"with open_table({str(path)!r}, two, other_columns='drop') as reader:\n"
            "    print(sum(batch.n_rows for batch in reader))\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        read, peak = map(int, done.stdout.split())
        assert read == n_rows
        peaks.append(peak / 1024)
    assert path.stat().st_size > 3 * 10**8
    assert peaks[1] < peaks[0] + 100, "MB"
