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


# Fixtures that run a whole study in its quick form, in up to sixteen seconds: their tests are slow,
# or weekly where they take a minute; those of a study's parts are in the default run.
WHOLE = {"quick", "findings", "numbers", "of_levels", "of_counts", "small", "timings", "trial"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here) and WHOLE & set(getattr(item, "fixturenames", ())):
            item.add_marker("weekly" if item.path.name == "test_foreign_tables.py" else "slow")
