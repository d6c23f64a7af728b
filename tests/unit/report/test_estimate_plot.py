"""Figures of estimates show every estimate with its interval, in the units they say."""

from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from deniable.errors import InputError
from deniable.report.estimate_plot import DRAWN, draw_heat_map, draw_intervals


def row(estimate: float | None, low: float, high: float, uncertain: bool = False) -> dict[str, Any]:
    return {"estimate": estimate, "low": low, "high": high, "uncertain": uncertain}


def test_bars_are_in_per_cent_and_intervals_end_where_they_end() -> None:
    rows = [row(0.25, 0.2, 0.3), row(0.05, 0.0, 0.1, True)]
    figure = draw_intervals(
        ["a", "b"], rows, caption="Shares", axis="share", in_percent=True, bars=True
    )
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [25, 5]
    assert [list(line.get_xdata()) for line in axes.lines[:2]] == [[20, 30], [0, 10]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_xlabel() == "share, %"
    assert axes.get_title(loc="left") == "Shares"


def test_a_mean_known_between_two_numbers_is_drawn_as_a_bar_without_a_point() -> None:
    rows = [row(None, 20.0, 30.0), row(25.0, 24.0, 26.0)]
    figure = draw_intervals(
        ["a", "b"], rows, caption="", axis="hours", in_percent=False, bars=False
    )
    (axes,) = figure.axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[20, 30], [25], [24, 26]]
    assert axes.get_xlabel() == "hours"


def test_a_heat_map_writes_every_share_and_brackets_the_uncertain() -> None:
    cells = [("f", "no", 0.5, False), ("f", "yes", 0.1, False)]
    cells += [("m", "no", 0.39, False), ("m", "yes", None, True)]
    rows = [
        {"sex": a, "smokes": b, "estimate": share, "uncertain": doubt}
        for a, b, share, doubt in cells
    ]
    figure = draw_heat_map(rows, "sex", "smokes", caption="Shares")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["50.0", "10.0", "39.0", "(–)"]
    assert "In brackets: uncertain" in axes.get_title(loc="left").replace("\n", " ")


def test_what_cannot_be_told_apart_or_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="at most 60"):
        draw_intervals(
            [""] * (DRAWN + 1), [row(0, 0, 0)] * (DRAWN + 1), caption="", axis="",
            in_percent=True, bars=True,
        )  # fmt: skip
    words = {"estimate": "[0,1)", "low": "[0,1)", "high": "[1,2)", "uncertain": False}
    with pytest.raises(InputError, match="cannot be drawn as numbers"):
        draw_intervals([""], [words], caption="", axis="", in_percent=False, bars=False)
    many = [{"a": str(i), "b": "x", "estimate": 0.0, "uncertain": False} for i in range(DRAWN + 1)]
    with pytest.raises(InputError, match="at most 60 categories"):
        draw_heat_map(many, "a", "b", caption="")


@pytest.mark.slow
@pytest.mark.parametrize("length", [39, 12, 3])
def test_no_two_names_of_categories_overlap_in_a_heat_map(length: int) -> None:
    down = [f"{i} {'row, wide M' * 4}"[:length] for i in range(7)]
    across = [f"{i} {'column MMM' * 4}"[:length] for i in range(8)]
    rows = [
        {"a": one, "b": two, "estimate": 0.02, "uncertain": True} for one in down for two in across
    ]
    figure = draw_heat_map(rows, "a", "b", caption="Shares of a, b: 1,000 rows")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes = figure.axes[0]
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts, axes.xaxis.label]
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
    for i, one in enumerate(boxes):
        assert not [j for j, two in enumerate(boxes) if i != j and one.overlaps(two)]
        assert figure.bbox.x0 <= one.x0 <= one.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= one.y0 <= one.y1 <= figure.bbox.y1
