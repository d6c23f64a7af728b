"""Page of a frontier, from ``templates/frontier.html.j2``."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from deniable.numerals import significant
from deniable.report import wording
from deniable.report.rendering import read, render


def render_frontier(
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
    picture: bytes,
    labels: Mapping[str, str],
    title: str,
) -> str:
    """Return a frontier's page: one self-contained HTML file."""
    return render(
        "deniable.report/frontier.html.j2",
        title=f"Privacy against accuracy: {about['attribute']['name']}",
        subtitle=title,
        style=read("deniable.report", "page.css"),
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        picture=f"data:image/png;base64,{b64encode(picture).decode()}",
        about=about,
        local=about["levels_are"] == "epsilon",
        points=[_point(row, labels) for row in rows],
    )


def _point(row: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a point in display units: errors in percentage points, privacy in per cent."""
    found, posterior = row["mse"] is not None, row["worst_posterior"]
    return {
        "method": labels.get(row["method"], row["method"]),
        "found": found,
        "level": row["level"],
        "privacy": _percent(row["privacy"]),
        "error": _points(row["mse"]) if found else "none found",
        "bound": _points(row["lower_bound"]),
        "posterior": "–" if posterior is None else wording.rounded_up(posterior),
        "unbounded": found and row["epsilon"] is None,
        "epsilon": wording.epsilon_text(row["epsilon"]) if found else "–",
    }


def _points(square: float) -> str:
    return significant(100 * sqrt(square), 3, trailing_zeros=True)


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.1f}{wording.PERCENT}"
