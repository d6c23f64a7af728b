import datetime
import zipfile

import pyarrow as pa
import pytest
import xlsxwriter

from deniable.errors import InputError, Notice
from deniable.schema import Attribute, FileFormat
from deniable.tables import open_table, sheet_source
from deniable.tables.reading import column_names

BORN = datetime.date(1969, 12, 31)


def workbook(folder, sheets, name="t.xlsx"):
    """Write cells by sheet: of each row what stands in its columns."""
    path = folder / name
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for place, row in enumerate(rows):
                for column, cell in enumerate(row):
                    if isinstance(cell, tuple):
                        sheet.write_formula(place, column, cell[0], None, cell[1])
                    elif cell is not None:
                        sheet.write(place, column, cell)
    return path


PEOPLE = [
    ["age", "sex", "born", "seen", "score", "code", "ok"],
    [30, "f", BORN, datetime.datetime(2020, 1, 2, 3, 4), 1.5, 1, True],
    [41, None, BORN, None, ("=1+1", 2), "A7", False],
    [None, "m", None, datetime.datetime(2021, 1, 1), 3, 2.0, None],
]


def columns(path, **options):
    names = column_names(path, options.get("file_format", FileFormat()))
    with open_table(path, [], names, **options) as reader:
        batches = [batch.kept for batch in reader]
        assert reader.fraction == 1
    return {name: pa.chunked_array([b[name] for b in batches]).to_pylist() for name in names}


def refusal(path, **options):
    with pytest.raises(InputError) as caught:
        columns(path, **options)
    return str(caught.value)


def test_cells_keep_their_types(tmp_path):
    found = columns(workbook(tmp_path, {"People": PEOPLE}))
    assert found == {
        "age": [30, 41, None],
        "sex": ["f", None, "m"],
        "born": [BORN, BORN, None],
        "seen": [
            datetime.datetime(2020, 1, 2, 3, 4),
            None,
            datetime.datetime(2021, 1, 1),
        ],
        "score": [1.5, 2.0, 3.0],
        "code": ["1", "A7", "2"],
        "ok": [True, False, None],
    }


def test_formulas_come_by_their_values_and_dates_beside_moments_as_moments(tmp_path):
    rows = [["n", "d"], [("=2*3", 6), BORN], [7, datetime.datetime(2020, 1, 1, 12)]]
    found = columns(workbook(tmp_path, {"S": rows}))
    assert found["n"] == [6, 7]
    assert found["d"][1] == datetime.datetime(2020, 1, 1, 12)
    assert found["d"][0] == datetime.datetime(1969, 12, 31)


def test_titles_above_the_names_are_left_out_and_told_once(tmp_path):
    rows = [["Survey of 2025"], [], ["made by hand", "draft"], *PEOPLE, []]
    path = workbook(tmp_path, {"People": rows})
    with pytest.warns(Notice, match="row 4 is taken as the header; the rows above") as told:
        found = columns(path)
    assert len(told) == 1
    assert found["sex"] == ["f", None, "m"]
    with pytest.warns(Notice, match="row 2 is taken as the header"):
        columns(workbook(tmp_path, {"S": [["title"], ["a", "b"], [1, 2]]}, "one.xlsx"))


def test_the_sheet_is_named_where_there_are_several(tmp_path):
    path = workbook(tmp_path, {"Notes": [["x"], [1]], "People": PEOPLE})
    said = refusal(path)
    assert "2 sheets, 'Notes', 'People'" in said
    assert "schema.file.sheet" in said
    assert columns(path, file_format=FileFormat(sheet="People"))["age"] == [30, 41, None]
    assert "no sheet 'Peple'" in refusal(path, file_format=FileFormat(sheet="Peple"))


def test_names_may_be_given(tmp_path):
    path = workbook(tmp_path, {"S": [[1, "f"], [2, "m"]]})
    found = columns(path, file_format=FileFormat(columns=("age", "sex")))
    assert found == {"age": [1, 2], "sex": ["f", "m"]}
    said = refusal(path, file_format=FileFormat(columns=("age",)))
    assert "has 2 columns and 1 name given" in said
    assert columns(path, file_format=FileFormat(header=False))["column 2"] == ["f", "m"]


def test_what_is_no_workbook_is_refused(tmp_path):
    good = workbook(tmp_path, {"S": PEOPLE}).read_bytes()
    bad = tmp_path / "bad.xlsx"
    for content, said in [
        (good[:500], "no readable Excel or OpenDocument workbook"),
        (b"PK\x03\x04" + bytes(200), "no readable Excel or OpenDocument workbook"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000), "encrypted"),
        (b"a,b\n1,2\n", "this is no Excel or OpenDocument file"),
    ]:
        bad.write_bytes(content)
        assert said in refusal(bad)
    assert "is empty" in refusal(workbook(tmp_path, {"S": []}, "empty.xlsx"))


def test_a_damaged_sheet_is_refused(tmp_path):
    path = workbook(tmp_path, {"S": PEOPLE})
    broken = tmp_path / "broken.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[:300] if "sheet1.xml" in name else content)
    assert "damaged" in refusal(broken)


ODS = """<?xml version="1.0"?><office:document-content
xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2">
<office:body><office:spreadsheet><table:table table:name="Blatt">
<table:table-row><table:table-cell office:value-type="string"><text:p>größe</text:p>
</table:table-cell><table:table-cell office:value-type="string"><text:p>born</text:p>
</table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="float" office:value="1.5"/>
<table:table-cell office:value-type="date" office:date-value="1969-12-31"/></table:table-row>
</table:table></office:spreadsheet></office:body></office:document-content>"""


MANIFEST = """<?xml version="1.0"?><manifest:manifest
xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry
manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/>
</manifest:manifest>"""


def opendocument(path, content):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", MANIFEST)
        file.writestr("content.xml", content.replace(">\n<", "><"))
    return path


def test_an_opendocument_sheet_is_read(tmp_path):
    found = columns(opendocument(tmp_path / "t.ods", ODS))
    assert found["größe"] == [1.5]
    assert str(found["born"][0])[:10] == "1969-12-31"


def test_an_error_value_of_opendocument_is_no_number(tmp_path):
    cell = '<table:table-cell office:value-type="float" office:value="1.5"'
    wrong = (
        f'<table:table-cell table:number-columns-repeated="1"/></table:table-row><table:table-row>'
        f'{cell} calcext:value-type="error" xmlns:calcext="urn:calcext"><text:p>#N/A</text:p>'
        "</table:table-cell>"
    )
    path = opendocument(tmp_path / "t.ods", ODS.replace(f"{cell}/>", wrong))
    with pytest.raises(
        InputError, match="row 3, column 'größe': the cell holds the error value #N/A"
    ):
        open_table(path, [Attribute("größe", bins=(0, 1, 2))], ["born"])
    assert columns(path)["größe"] == ["#N/A"]  # as a draft sees it


def test_the_command_that_installs_the_library_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path, {"S": PEOPLE})
    monkeypatch.setattr("deniable.tables.survey_source.find_spec", lambda _: None)
    assert "pip install 'deniable[survey]'" in refusal(path)
    assert sheet_source.is_workbook(path.read_bytes()[:8])


@pytest.mark.parametrize("categories", [("TRUE", "FALSE"), ("true", "False")])
def test_booleans_among_texts_are_the_categories_written_so_in_any_case(tmp_path, categories):
    path = workbook(tmp_path, {"s": [["ok", "n"], [True, 1], ["unknown", 2], [False, 3]]})
    with open_table(path, [Attribute("ok", (*categories, "unknown"))], ["n"]) as reader:
        (batch,) = reader
    assert batch.codes[0].tolist() == [0, 2, 1]
