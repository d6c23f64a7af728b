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


# Fixtures that run a whole study in its quick form: their tests are slow, and weekly in the files
# below, where the form takes between five seconds and a minute; those of a study's parts are in the
# default run.
WHOLE = {"quick", "findings", "numbers", "of_levels", "of_counts", "small", "timings", "trial"}
WEEKLY = {
    "test_adult_columns.py",
    "test_adult_release.py",
    "test_category_counts.py",
    "test_coverage.py",
    "test_distributions.py",
    "test_foreign_tables.py",
    "test_iterative.py",
    "test_normal.py",
    "test_rare.py",
    "test_record_budget.py",
    "test_top_snps.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here) and WHOLE & set(getattr(item, "fixturenames", ())):
            item.add_marker("weekly" if item.path.name in WEEKLY else "slow")
