"""Plots: bars as long as their numbers, whatever the names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.report.plots import Bar, Group, Line, Plot, shortened, ticks

ONE = [Group("a", (Bar(1.0, "1", "alone"),))]


@pytest.mark.parametrize(
    ("groups", "line", "widths", "drawn"),
    [
        ([Group("a", (Bar(1.0, "", "x"), Bar(4.0, "", "y")))], None, ["20.000%", "80.000%"], False),
        (ONE, Line(2.0, "near"), ["40.000%"], True),
        (ONE, Line(50.0, "far"), ["80.000%"], False),
        ([Group("a", (Bar(1.0, "1", "x"), Bar(None, "∞", "y")))], None, ["80.000%"] * 2, False),
        ([Group("a", (Bar(0.0, "0", "x"),))], None, ["0"], False),
    ],
)  # fmt: skip
def test_bars_are_in_proportion_and_leave_room_for_a_line_that_is_near(
    groups: list[Group], line: Line | None, widths: list[str], drawn: bool
) -> None:
    plot = Plot(groups, line)
    assert [plot.at(bar.value) for group in groups for bar in group.bars] == widths
    assert plot.drawn_line == drawn


def test_no_bar_lies_on_another() -> None:
    bar = Bar(1.0, "1", "alone")
    plot = Plot([Group("a", (bar, bar)), Group("b", (bar,)), Group("c", ())])
    tops = [y for group, top in plot.placed for y in (top, *(at for _, at in group.placed(top)))]
    assert all(later - y >= 10 for y, later in zip(tops, [*tops[1:], plot.bottom], strict=True))


def test_long_names_are_cut() -> None:
    assert shortened("x" * 60) == "x" * 40 + "…"
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
