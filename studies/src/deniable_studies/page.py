"""A study's page: claims with results, figures, numbers. One HTML file."""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from deniable.report.rendering import read, render
from deniable_studies.study import Cell, Findings, Study, Table, Verdict

_CLASSES = {Verdict.REPRODUCED: "yes", Verdict.PARTLY: "partly", Verdict.NOT: "no"}
"""Of the style sheet, by verdict."""


def study_page(
    study: Study[Any], findings: Findings, images: Mapping[str, bytes], *, quick: bool, seed: int
) -> str:
    """Return a study's page.

    Args:
        study: which.
        findings: its results.
        images: each figure as PNG, by its name.
        quick: whether it was a quick run.
        seed: the seed of the run.
    """
    command = f"deniable reproduce {study.name}{' --quick' if quick else ''} --seed {seed}"
    return _rendered(
        "study",
        study.text.title,
        study=study,
        findings=findings,
        images={name: base64.b64encode(png).decode() for name, png in images.items()},
        quick=quick,
        command=command,
        classes=_CLASSES,
        headings=_headings,
        texts=_texts,
    )


def index_page(
    finished: Sequence[tuple[Study[Any], Sequence[str]]],
    skipped: Sequence[tuple[Study[Any], str]],
    *,
    quick: bool,
) -> str:
    """Return the page that leads to every study.

    Args:
        finished: the studies that were run, each with the verdicts on its claims.
        skipped: those that were not, and why.
        quick: whether they were quick runs.
    """
    counted = [(study, [list(found).count(v) for v in Verdict]) for study, found in finished]
    return _rendered(
        "index",
        "The studies",
        counts={v: sum(list(found).count(v) for _, found in finished) for v in Verdict},
        verdicts=[(str(verdict), "claims") for verdict in Verdict],
        finished=[(study.text, study.name, cells) for study, cells in counted],
        skipped=[f"{study.name}: {why}" for study, why in skipped],
        quick=quick,
    )


def _rendered(template: str, title: str, **values: Any) -> str:
    return render(
        f"deniable_studies/{template}.html.j2",
        title=title,
        style=read("deniable.report", "page.css") + "\n" + read("deniable_studies", "page.css"),
        policy="default-src 'none'; img-src data:; style-src 'unsafe-inline'",
        **values,
    )


def _headings(found: Table) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), "") for name in found.columns]


def _texts(cells: Sequence[Cell]) -> list[str]:
    return [cell_text(cell) for cell in cells]


def cell_text(cell: Cell) -> str:
    """Return a cell for people: four significant digits."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell == 0 or 1e-3 <= abs(cell) < 1e6:
        return f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return f"{cell:.3e}"
