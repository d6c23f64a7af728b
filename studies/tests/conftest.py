"""What the tests of several studies share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure as MatplotlibFigure

from deniable.report.method_styles import SETTINGS
from deniable_studies.study import Findings


@pytest.fixture(scope="session")
def draw_all() -> Callable[[Findings], None]:
    """Draw every figure of a study, without making it an image, and look whether it says enough."""

    def draw(findings: Findings) -> None:
        for figure in findings.figures:
            canvas = MatplotlibFigure(figsize=figure.size, layout="constrained")
            with rc_context(SETTINGS):
                figure.draw(canvas)
            shown = [axes for axes in canvas.axes if axes.axison]
            assert shown, figure.name
            assert all(axes.lines or axes.collections or axes.patches for axes in shown)
            assert any(axes.get_legend_handles_labels()[1] for axes in shown)

    return draw


# Whole studies in their quick forms: four to sixteen seconds each. Their tests are slow; those of
# their parts, and of the studies that are quicker, are in the default run.
LONG = {
    *("test_normal", "test_adult_columns", "test_distributions", "test_iterative"),
    *(
        "test_adult_release",
        "test_category_counts",
        "test_coverage",
        "test_levels",
        "test_foreign_tables",
        "test_record_budget",
        "test_rare",
    ),
}
WHOLE = {"quick", "findings", "numbers", "of_levels", "of_counts", "trial"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        below = str(item.path).startswith(here)
        if below and item.path.stem in LONG and WHOLE & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
