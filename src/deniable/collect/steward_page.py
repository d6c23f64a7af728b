"""The steward's page: plain HTML without scripts, rendered for every request."""

from collections.abc import Sequence

from deniable.collect.collector import today
from deniable.collect.page import source_hash
from deniable.collect.scripts import read
from deniable.collect.study import Study
from deniable.collect.watching import BATCH, Batch, Shown
from deniable.estimate.consistency import REFUSED_BELOW, WARNED_BELOW
from deniable.report import verdict
from deniable.report.rendering import render

STYLE = read("page.css") + read("steward.css")

POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {source_hash(STYLE)}",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""The page's Content Security Policy: no scripts, no external resources."""


def steward_page(
    study: Study,
    batch: Batch | None,
    *,
    is_closed: bool,
    token: str,
    of: Sequence[str],
    target: str,
    precision: str,
    shown: Shown | None,
    problem: str = "",
) -> bytes:
    """Return the page."""
    language = study.plain["languages"][0]
    questions = [
        (asked["column"], f"{asked['column']}: {asked['texts'][language]['text']}")
        for asked in study.plain["questions"]
    ]
    texts = study.plain["texts"][language]
    return render(
        "deniable.collect/steward.html.j2",
        title=f"{texts['title']}: steward",
        style=STYLE,
        policy="",  # sent as a header
        study=study,
        texts=texts,
        questions=questions,
        batch=batch,
        token=token,
        least=BATCH,
        is_open=not is_closed and today() <= study.closes,
        of=of,
        target=target,
        precision=precision,
        shown=shown,
        problem=problem,
        refused_below=REFUSED_BELOW,
        warned_below=WARNED_BELOW,
        verdict=verdict,
        within=lambda share: max(0.0, min(1.0, share)),
    ).encode()
