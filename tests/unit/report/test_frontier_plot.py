"""The plot: what is drawn, and the same bytes for the same numbers."""

from xml.etree import ElementTree

import pytest

from deniable.report.frontier_plot import Curve, draw

CURVES = [
    Curve("warner", [(0.2, 2e-4), (0.3, 4e-4)]),
    Curve("search", [(0.2, 1.5e-4)]),
    Curve("bound", [(0.2, 1e-4), (0.3, 2e-4)]),
]
BOUNDS = [(0.2, 1e-4), (0.3, 2e-4)]


def drawn(
    curves: list[Curve] = CURVES, exact: bool = True, silent: float | None = 0.5
) -> tuple[bytes, str]:
    png, svg = draw(
        curves,
        BOUNDS,
        x_label="how private",
        y_label="how wrong",
        title="an attribute",
        exact=exact,
        silent=silent,
    )
    return png, svg.decode()


def test_it_is_a_png_and_well_formed_svg_that_say_what_they_show() -> None:
    png, svg = drawn()
    assert png.startswith(b"\x89PNG")
    ElementTree.fromstring(svg)
    # Letters are drawn as shapes; the texts stand beside them as comments.
    for text in ("how private", "how wrong", "an attribute", "no mechanism can be here"):
        assert f"<!-- {text} -->" in svg
    for text in ("Warner", "evolutionary search", "least error possible, attained"):
        assert f"<!-- {text} -->" in svg


def test_the_same_numbers_give_the_same_bytes_and_others_do_not() -> None:
    assert drawn() == drawn()
    other = [*CURVES[:-1], Curve("bound", [(0.2, 1e-4), (0.3, 2.1e-4)])]
    assert drawn(other) != drawn()
    assert "<dc:date>" not in drawn()[1]


def test_a_closed_form_is_not_called_attained() -> None:
    svg = drawn(CURVES[:1], exact=False)[1]
    assert "<!-- lower bound in closed form -->" in svg
    assert "attained" not in svg


def test_over_epsilon_the_axis_is_logarithmic_and_nobody_is_silent() -> None:
    svg = drawn(silent=None)[1]
    assert "no answer at all" not in svg
    assert "no answer at all" in drawn()[1]


@pytest.mark.parametrize("method", ["up", "frapp", "subset", "blank", "square"])
def test_every_method_has_a_style(method: str) -> None:
    assert drawn([Curve(method, [(0.2, 2e-4), (0.3, 4e-4)])])[0]


def test_a_single_level_can_be_drawn() -> None:
    png, _ = draw(
        [Curve("bound", [(0.2, 1e-4)])],
        [(0.2, 1e-4)],
        x_label="x",
        y_label="y",
        title="t",
        exact=True,
        silent=0.5,
    )
    assert png.startswith(b"\x89PNG")
