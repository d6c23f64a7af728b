"""What the tests of several studies share."""

from collections.abc import Callable

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
