"""Plots: bars as long as their numbers, whatever the names."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.report.plots import Bar, Group, Line, horizontal_bars, shortened, ticks


def drawn(groups: list[Group], line: Line | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(
        horizontal_bars(groups, axis="nats", description="a < b", line=line)
    )


def widths(plot: ElementTree.Element) -> list[float]:
    return [float(r.get("width", "").removesuffix("%")) for r in plot.iter("rect")]


def test_bars_are_in_proportion_to_their_values() -> None:
    plot = drawn([Group("a", (Bar(1.0, "1", "alone"), Bar(4.0, "4", "rest"))), Group("b", ())])
    short, long = widths(plot)
    assert long == pytest.approx(4 * short, rel=1e-4)
    assert long <= 100


def test_the_scale_reaches_the_line_if_it_is_near_and_ignores_it_if_it_is_far() -> None:
    groups = [Group("a", (Bar(1.0, "1", "alone"),))]
    assert widths(drawn(groups, Line(2.0, "whole")))[0] == pytest.approx(40)
    assert [e.get("class") for e in drawn(groups, Line(2.0, "whole")).iter("line")].count("line")
    far = drawn(groups, Line(50.0, "whole"))
    assert widths(far)[0] == pytest.approx(80)
    assert "line" not in [e.get("class") for e in far.iter("line")]


def test_a_value_without_a_limit_takes_the_whole_width_and_looks_different() -> None:
    plot = drawn([Group("a", (Bar(1.0, "1", "alone"), Bar(None, "no limit", "rest")))])
    assert [r.get("class") for r in plot.iter("rect")] == ["alone", "rest endless"]
    assert widths(plot) == [80.0, 80.0]


def test_bars_of_nothing_but_zeros_can_be_drawn() -> None:
    assert widths(drawn([Group("a", (Bar(0.0, "0", "error"),))])) == [0.0]


def test_names_and_descriptions_are_escaped_and_long_names_are_cut() -> None:
    name = "<script>&" + "x" * 60
    plot = drawn([Group(name, (Bar(1.0, "1", "alone"),))])
    assert plot.get("aria-label") == "a < b"
    (text,) = [t for t in plot.iter("text") if t.get("class") == "name"]
    assert "".join(text.itertext()) == name + shortened(name)
    assert shortened(name).endswith("…")
    assert shortened("漢" * 21) == "漢" * 20 + "…"
    assert shortened("short") == "short"


@given(st.floats(1e-6, 1e6))
def test_marks_on_the_axis_are_round_few_and_within_the_range(largest: float) -> None:
    marks = ticks(largest)
    assert marks[0] == 0
    assert 2 <= len(marks) <= 7
    assert marks[-1] <= largest * (1 + 1e-9)
    assert largest - marks[-1] < marks[1] * (1 + 1e-9)
    assert f"{marks[1]:e}"[0] in "125"
