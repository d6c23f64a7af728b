"""The plot: what is drawn, and the same bytes for the same numbers."""

from typing import Any
from xml.etree import ElementTree

import pytest

from deniable.frontier.methods import METHODS
from deniable.proofs.rows import average_limits
from deniable.report.frontier_plot import Curve, draw, excluded
from deniable.solvers.matrices import frontier
from marked import slow_after

BOUNDS = [(0.2, 1e-4), (0.3, 2e-4)]
POINTS = [(0.2, 2e-4), (0.3, 4e-4)]
WARNER = Curve(METHODS["warner"].style, POINTS)
CURVES = (
    WARNER,
    Curve(METHODS["search"].style, [(0.2, 1.5e-4)]),
    Curve(METHODS["bound"].style, BOUNDS, attains_bound=True),
)


def drawn(**changes: Any) -> tuple[bytes, str]:
    what = {"curves": CURVES, "bounds": BOUNDS, "exact": True, "silent": 0.5} | changes
    labels = {"x_label": "how private", "y_label": "how wrong", "title": "an attribute"}
    png, svg = draw(**what, **labels)
    return png, svg.decode()


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    slow_after(
        2,
        [
            (
                {},
                [
                    *("how private", "how wrong", "an attribute", "no mechanism can be here"),
                    *("Warner", "evolutionary search", "least error possible, attained"),
                    "no answer at all",
                ],
                ["proven lower bound"],
            ),
            (
                {"curves": CURVES[:1], "exact": False},
                ["proven lower bound"],
                ["least error possible, attained"],
            ),
            ({"silent": None}, [], ["no answer at all"]),  # over ε nobody is silent
            (
                {"curves": [Curve(spec.style, POINTS) for spec in METHODS.values()]},
                [spec.style.label for spec in METHODS.values()],
                [],
            ),
            ({"curves": CURVES[1:2], "bounds": BOUNDS[:1]}, ["evolutionary search"], []),
        ],
    ),
)
def test_a_png_and_well_formed_svg_say_what_they_show(
    changes: dict[str, Any], said: list[str], unsaid: list[str]
) -> None:
    png, svg = drawn(**changes)
    assert png.startswith(b"\x89PNG")
    ElementTree.fromstring(svg)
    # Letters are drawn as shapes; the texts stand beside them as comments.
    assert [text for text in said if f"<!-- {text} -->" not in svg] == []
    assert [text for text in unsaid if f"<!-- {text} -->" in svg] == []


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes_and_others_do_not() -> None:
    assert drawn() == drawn()
    other = Curve(METHODS["bound"].style, [(0.2, 1e-4), (0.3, 2.1e-4)], attains_bound=True)
    assert drawn(curves=(*CURVES[:-1], other)) != drawn()
    assert "<dc:date>" not in drawn()[1]


def test_no_mechanism_that_exists_lies_in_what_is_called_out_of_reach() -> None:
    prior = [0.5, 0.3, 0.2]
    levels = [0.1, 0.45]
    bounds = [(p, frontier.solve(average_limits(prior, privacy=p)).record_mse) for p in levels]
    edge = excluded(bounds, 0.5)
    assert [x for x, _ in edge] == [0.1, 0.45, 0.45, 0.5]
    steps = list(zip(edge[::2], edge[1::2], strict=True))
    for p in (0.15, 0.25, 0.35, 0.44, 0.46, 0.48):
        exists = frontier.solve(average_limits(prior, privacy=p)).record_mse
        assert next(y for (left, y), (right, _) in steps if left <= p <= right) <= exists


def test_over_epsilon_a_bound_holds_for_every_smaller_epsilon() -> None:
    assert excluded([(0.5, 4.0), (1.0, 2.0), (2.0, 1.0)], None) == [
        (0.5, 2.0), (1.0, 2.0), (1.0, 1.0), (2.0, 1.0),
    ]  # fmt: skip


def test_no_two_methods_look_alike() -> None:
    looks = {(spec.style.colour, spec.style.marker, spec.style.line) for spec in METHODS.values()}
    names = {spec.style.label for spec in METHODS.values()}
    assert len(looks) == len(names) == len(METHODS)
