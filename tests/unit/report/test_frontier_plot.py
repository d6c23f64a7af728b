"""The plot: what is drawn, and the same bytes for the same numbers."""

from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from deniable.frontier.methods import METHODS
from deniable.report.frontier_plot import Curve, draw, excluded
from deniable.solvers.matrices import frontier
from deniable.solvers.matrices.certificate import average_limits

CURVES = (
    Curve(METHODS["warner"].style, [(0.2, 2e-4), (0.3, 4e-4)]),
    Curve(METHODS["search"].style, [(0.2, 1.5e-4)]),
    Curve(METHODS["bound"].style, [(0.2, 1e-4), (0.3, 2e-4)], attains_bound=True),
)
BOUNDS = [(0.2, 1e-4), (0.3, 2e-4)]


def drawn(
    curves: Sequence[Curve] = CURVES, exact: bool = True, silent: float | None = 0.5
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


@pytest.fixture(scope="module")
def plain() -> tuple[bytes, str]:
    return drawn()


def test_it_is_a_png_and_well_formed_svg_that_say_what_they_show(plain: tuple[bytes, str]) -> None:
    png, svg = plain
    assert png.startswith(b"\x89PNG")
    ElementTree.fromstring(svg)
    # Letters are drawn as shapes; the texts stand beside them as comments.
    for text in ("how private", "how wrong", "an attribute", "no mechanism can be here"):
        assert f"<!-- {text} -->" in svg
    for text in ("Warner", "evolutionary search", "least error possible, attained"):
        assert f"<!-- {text} -->" in svg


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes_and_others_do_not() -> None:
    assert drawn() == drawn()
    other = (
        *CURVES[:-1],
        Curve(METHODS["bound"].style, [(0.2, 1e-4), (0.3, 2.1e-4)], attains_bound=True),
    )
    assert drawn(other) != drawn()
    assert "<dc:date>" not in drawn()[1]


def excluded_below(edge: list[tuple[float, float]], x: float) -> float:
    """Return how high grey reaches at x: the edge is made of steps."""
    return next(
        y for (left, y), (right, _) in zip(edge[::2], edge[1::2], strict=True) if left <= x <= right
    )


def test_no_mechanism_that_exists_lies_in_what_is_called_out_of_reach() -> None:
    prior = [0.5, 0.3, 0.2]
    levels = [0.1, 0.45]
    bounds = [(p, frontier.solve(average_limits(prior, privacy=p)).record_mse) for p in levels]
    edge = excluded(bounds, 0.5)
    assert [x for x, _ in edge] == [0.1, 0.45, 0.45, 0.5]
    for p in (0.15, 0.25, 0.35, 0.44, 0.46, 0.48):
        exists = frontier.solve(average_limits(prior, privacy=p)).record_mse
        assert excluded_below(edge, p) <= exists


def test_over_epsilon_a_bound_holds_for_every_smaller_epsilon() -> None:
    assert excluded([(0.5, 4.0), (1.0, 2.0), (2.0, 1.0)], None) == [
        (0.5, 2.0), (1.0, 2.0), (1.0, 1.0), (2.0, 1.0),
    ]  # fmt: skip


def test_a_bound_that_is_only_proven_is_not_called_attained() -> None:
    svg = drawn(CURVES[:1], exact=False)[1]
    assert "<!-- proven lower bound -->" in svg
    assert "attained" not in svg


def test_over_epsilon_the_axis_is_logarithmic_and_nobody_is_silent(
    plain: tuple[bytes, str],
) -> None:
    svg = drawn(silent=None)[1]
    assert "no answer at all" not in svg
    assert "no answer at all" in plain[1]


def test_every_method_can_be_drawn_and_is_named() -> None:
    points = [(0.2, 2e-4), (0.3, 4e-4)]
    _, svg = drawn(tuple(Curve(spec.style, points) for spec in METHODS.values()))
    for spec in METHODS.values():
        assert f"<!-- {spec.style.label} -->" in svg


def test_no_two_methods_look_alike() -> None:
    looks = {(spec.style.colour, spec.style.marker, spec.style.line) for spec in METHODS.values()}
    names = {spec.style.label for spec in METHODS.values()}
    assert len(looks) == len(names) == len(METHODS)


def test_a_single_level_can_be_drawn() -> None:
    png, _ = draw(
        [Curve(METHODS["bound"].style, [(0.2, 1e-4)], attains_bound=True)],
        [(0.2, 1e-4)],
        x_label="x",
        y_label="y",
        title="t",
        exact=True,
        silent=0.5,
    )
    assert png.startswith(b"\x89PNG")
