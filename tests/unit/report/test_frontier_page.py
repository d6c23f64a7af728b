"""The page of a frontier: every point in percentage points, unbounded ones in red."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from deniable.report.frontier_page import render_frontier

PNG = b"\x89PNG\r\n\x1a\n"


def point(method: str, mse: float | None, epsilon: float | None) -> dict[str, Any]:
    return {
        "method": method,
        "level": 0.4,
        "privacy": None if mse is None else 0.41,
        "mse": mse,
        "lower_bound": 0.000025,
        "worst_posterior": None if mse is None else 0.7501,
        "epsilon": epsilon,
    }


ROWS = [point("warner", 0.0001, 1.5), point("square", 0.00004, None), point("bound", None, None)]
ABOUT = {
    "attribute": {"name": "a <b>"},
    "records": 12_345,
    "levels_are": "privacy",
    "disclosure": None,
    "notes": ["It was short."],
}


def cells(page: str) -> list[tuple[str | None, list[str]]]:
    root = ElementTree.fromstring(page[page.index("<body>") : page.index("</html>")])
    rows = [row for row in root.iter("tr") if row.find("td") is not None]
    return [(row.get("class"), ["".join(cell.itertext()) for cell in row]) for row in rows]


@pytest.mark.parametrize("levels", ["privacy", "epsilon"])
def test_points_are_in_percentage_points_and_unbounded_ones_red(levels: str) -> None:
    about = ABOUT | {"levels_are": levels}
    page = render_frontier(ROWS, about, PNG, {"warner": "Warner"}, "three categories")
    (bounded, warner), (unbounded, square), (absent, bound) = cells(page.replace("\xa0", " "))
    assert warner[2:] == ["41.0 %", "1.00", "0.500", "75.1 %", "1.5"]
    assert square[2:] == ["41.0 %", "0.632", "0.500", "75.1 %", "unbounded"]
    assert bound[2:] == ["–", "none found", "0.500", "–", "–"]
    assert (bounded, unbounded, absent) == (None, "bare", None)
    assert [warner[0], square[0]] == ["Warner", "square"]
    assert warner[1] == ("40.0 %" if levels == "privacy" else "0.4")
    assert "UNBOUNDED" in page
    assert "12,345 records" in page
    assert "It was short." in page
    assert "a &lt;b&gt;" in page
    assert "UNBOUNDED" not in render_frontier(ROWS[:1], about, PNG, {}, "")


def test_a_page_has_its_picture_in_it_and_asks_nobody() -> None:
    page = render_frontier(ROWS, ABOUT | {"disclosure": "Read off the data."}, PNG, {}, "three")
    assert re.findall(r'src="([^"]*)"', page) == ["data:image/png;base64,iVBORw0KGgo="]
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    assert "A DISCLOSURE:" in page
