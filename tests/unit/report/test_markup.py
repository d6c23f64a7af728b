"""Pieces of HTML: plain text cannot become markup, and what is put together is well formed."""

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.report import markup

PIECES: dict[str, Callable[[str], str]] = {
    "section": lambda text: markup.section(text, markup.paragraph("x")),
    "paragraph": markup.paragraph,
    "notice": lambda text: markup.notice(text, text),
    "bullets": lambda text: markup.bullets([text]),
    "code": markup.code,
    "heading of a column": lambda text: markup.table([("", ""), (text, text)], []),
    "cell": lambda text: markup.table(
        [("", ""), (text, "")], [markup.Row(markup.escape(text), (text,))], caption=text
    ),
    "definitions": lambda text: markup.definitions([(text, text)]),
}


@pytest.mark.parametrize("piece", PIECES)
@given(text=st.text("<>&\"'ab/ =", min_size=1))
def test_any_text_comes_out_as_that_text_and_adds_no_element(piece: str, text: str) -> None:
    make = PIECES[piece]
    root, plain = ElementTree.fromstring(make(text)), ElementTree.fromstring(make("a"))
    assert [e.tag for e in root.iter()] == [e.tag for e in plain.iter()]
    held = [*(e.text for e in root.iter()), *(v for e in root.iter() for v in e.attrib.values())]
    assert text in held


def test_a_table_has_a_cell_for_every_column_named_after_it() -> None:
    columns = [("who", ""), ("ε", "in nats"), ("factor", "")]
    rows = [markup.Row("<b>all</b>", ("1", "2.72")), markup.Row("one", ("2", "7.39"), "bare")]
    root = ElementTree.fromstring(markup.table(columns, rows))
    body = root.findall("tbody/tr")
    assert [row.get("class") for row in body] == [None, "bare"]
    assert [[c.get("data-name") for c in row.findall("td")] for row in body] == [
        ["ε", "factor"]
    ] * 2
    assert [[c.text for c in row.findall("td")] for row in body] == [["1", "2.72"], ["2", "7.39"]]
    with pytest.raises(ValueError, match="zip"):
        markup.table(columns, [markup.Row("short", ("1",))])


def test_what_is_empty_leaves_no_element() -> None:
    assert markup.paragraph("") == markup.bullets([]) == ""
    section = ElementTree.fromstring(markup.section("heading", "", markup.paragraph("x"), ""))
    assert [e.tag for e in section] == ["h2", "p"]


def test_only_a_warning_that_stops_is_red() -> None:
    assert 'class="notice stop"' in markup.notice("a", "b", stop=True)
    assert "stop" not in markup.notice("a", "b")
