"""A study's page: each claim beside what came out, the figures, the numbers. One HTML file."""

import base64
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from deniable.report.markup import Row, bullets, escape, notice, paragraph, section, table
from deniable_studies.study import Cell, Claim, Findings, Study, Table, Verdict

_SHOWN_ROWS = 40
_SHOWN_COLUMNS = 9

_STYLE = """
figure { margin: 1.4rem 0 2rem; }
figure img { width: 100%; height: auto; background: #fff; border: 1px solid var(--rule); border-radius: .5rem; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin-top: .4rem; }
.claim { margin: 1rem 0; padding: .6rem 1.1rem .7rem; background: var(--card); border: 1px solid var(--rule); border-left: .3rem solid var(--rule); border-radius: .4rem; }
.claim p { margin: .35rem 0; max-width: none; }
.claim.yes { border-left-color: var(--error); }
.claim.partly { border-left-color: var(--warn-rule); }
.claim.no { border-left-color: var(--stop-rule); }
.claim .verdict { font-weight: 600; }
.scroll { overflow-x: auto; }
a { color: var(--link); }
th .soft { font-weight: 400; }
"""  # noqa: E501

_CLASSES = {
    Verdict.REPRODUCED: "yes",
    Verdict.PARTLY: "partly",
    Verdict.NOT: "no",
    Verdict.UNDECIDED: "",
    Verdict.UNTESTED: "",
}


def study_page(
    study: Study[Any], findings: Findings, images: Mapping[str, bytes], *, quick: bool, seed: int
) -> str:
    """Return a study's page.

    Args:
        study: which.
        findings: what it found.
        images: each figure as PNG, by its name.
        quick: whether it was a quick run.
        seed: the seed of the run.
    """
    command = f"deniable reproduce {study.name}{' --quick' if quick else ''} --seed {seed}"
    header = (
        f"<header>\n<h1>{escape(study.text.title)}</h1>\n"
        f'<p class="soft">{escape(study.text.source)}</p>\n{paragraph(study.text.question)}\n'
        f'<p class="soft small">Made by <code>{escape(command)} --output …</code></p>\n</header>'
    )
    sections = [
        header,
        notice(
            "A quick run.",
            "Fewer draws and smaller sizes than the study proper: verdicts can differ from it.",
        )
        if quick
        else "",
        section("What is claimed, and what came out", *map(_claim, findings.claims))
        if findings.claims
        else "",
        section("Figures", *(_figure(f.name, f.caption, images[f.name]) for f in findings.figures))
        if findings.figures
        else "",
        section("What was left open, and what was chosen", bullets(findings.choices))
        if findings.choices
        else "",
        section("To be kept in mind", bullets(findings.remarks)) if findings.remarks else "",
        section("Numbers", *map(_table, findings.tables)) if findings.tables else "",
    ]
    return _frame(study.text.title, sections)


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
    counts = {v: sum(list(found).count(v) for _, found in finished) for v in Verdict}
    cards = "".join(
        f"<li><b>{count}</b>{escape(verdict)}</li>" for verdict, count in counts.items()
    )
    rows = [
        Row(
            f'<a href="{escape(study.name)}/index.html">{escape(study.text.title)}</a>'
            f'<br><span class="soft small">{escape(study.text.source)}</span>',
            [str(list(found).count(v)) for v in Verdict],
        )
        for study, found in finished
    ]
    header = (
        "<header>\n<h1>The studies</h1>\n"
        '<p class="soft">What the papers state, and what this project states, recomputed.</p>\n'
        f'<ul class="facts">{cards}</ul>\n</header>'
    )
    sections = [
        header,
        notice("Quick runs.", "Fewer draws and smaller sizes than the studies proper.")
        if quick
        else "",
        section(
            "Verdicts",
            table([("study", ""), *((str(verdict), "claims") for verdict in Verdict)], rows),
        ),
        section("Skipped", bullets(f"{study.name}: {why}" for study, why in skipped))
        if skipped
        else "",
    ]
    return _frame("The studies", sections)


def _claim(claim: Claim) -> str:
    parts = [
        f'<p>{escape(claim.statement)} <span class="soft">({escape(claim.source)})</span></p>',
        f'<p class="small soft">Counts as reproduced: {escape(claim.rule)}</p>',
        f"<p>Found: {escape(claim.found)}</p>",
        f'<p><span class="verdict">{escape(claim.verdict.capitalize())}.</span> '
        f"{escape(claim.why)}</p>",
    ]
    return f'<div class="claim {_CLASSES[claim.verdict]}">\n' + "\n".join(parts) + "\n</div>"


def _figure(name: str, caption: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    return (
        f'<figure>\n<img src="data:image/png;base64,{data}" alt="{escape(caption)}">\n'
        f'<figcaption>{escape(caption)} <a href="{escape(name)}.svg">SVG</a>, '
        f'<a href="{escape(name)}.png">PNG</a></figcaption>\n</figure>'
    )


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


def _table(found: Table) -> str:
    file = f'<a href="{escape(found.name)}.csv">{escape(found.name)}.csv</a>'
    if len(found.rows) > _SHOWN_ROWS or len(found.columns) > _SHOWN_COLUMNS:
        return f"<p>{escape(found.caption)} {len(found.rows):,} rows in {file}.</p>"
    shown = table(
        [(name.replace("_", " "), "") for name in found.columns],
        [Row(escape(cell_text(row[0])), [cell_text(c) for c in row[1:]]) for row in found.rows],
        caption=found.caption,
    )
    return f'<div class="scroll">{shown}</div>\n<p class="small soft">{file}</p>'


def _frame(title: str, sections: Sequence[str]) -> str:
    body = "\n".join(part for part in sections if part)
    style = files("deniable.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
