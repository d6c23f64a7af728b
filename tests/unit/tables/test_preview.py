"""The first rows of a table, as they are read under some options."""

from pathlib import Path

from deniable.schema import FileFormat
from deniable.tables.preview import LIKELY_ENCODING, preview
from unit.tables.test_sheet_source import PEOPLE, workbook

LATIN = "Größe;Stadt\n1,7;Köln\n;Würzburg\n"


def test_a_text_that_is_not_utf_8_is_shown_in_a_proposal_and_its_problem_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(LATIN, encoding="latin-1")
    shown = preview(path, FileFormat())
    assert "not UTF-8 text" in shown.problem
    assert shown.names == ("Größe", "Stadt")
    assert shown.rows == (("1,7", "Köln"), (None, "Würzburg"))
    assert (shown.encoding, shown.separator, shown.is_text) == (LIKELY_ENCODING, ";", True)
    said = preview(path, FileFormat(encoding="latin-1", header=False), 1)
    assert (said.problem, said.names) == ("", ("column1", "column2"))
    assert said.rows == (("Größe", "Stadt"),)
    wrong = preview(path, FileFormat(encoding="latin-1", separator=","))
    assert "instead of" in wrong.problem
    assert (wrong.rows, wrong.is_text) == ((), True)


def test_a_workbook_of_several_sheets_names_them(tmp_path: Path) -> None:
    path = workbook(tmp_path, {"About": [["x"], ["y"]], "People": PEOPLE})
    asked = preview(path, FileFormat())
    assert "the workbook has 2 sheets" in asked.problem
    assert (asked.sheets, asked.is_text) == (("About", "People"), False)
    shown = preview(path, FileFormat(sheet="People"))
    assert (shown.problem, shown.names) == ("", tuple(PEOPLE[0]))
    assert shown.rows[0][:3] == ("30", "f", "1969-12-31")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert "no such file" in preview(tmp_path / "none.csv", FileFormat()).problem.lower()
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    assert "t.parquet" in preview(tmp_path / "t.parquet", FileFormat()).problem
