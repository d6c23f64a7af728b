"""Pieces of HTML. Every function takes plain text and escapes it, unless it says otherwise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as _escape


def escape(text: str) -> str:
    """Return text that is safe inside elements and quoted attributes."""
    return _escape(text, quote=True)


def section(heading: str, *parts: str) -> str:
    """Return a section; the parts are HTML."""
    body = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{escape(heading)}</h2>\n{body}\n</section>"


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of plain text; empty text gives nothing."""
    if not text:
        return ""
    return f'<p class="{style}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"


def notice(headline: str, text: str, *, stop: bool = False) -> str:
    """Return a box that cannot be overlooked; red if ``stop``."""
    style = "notice stop" if stop else "notice"
    return (
        f'<div class="{style}" role="note"><p><strong>{escape(headline)}</strong> '
        f"{escape(text)}</p></div>"
    )


def bullets(items: Iterable[str]) -> str:
    """Return a list; nothing if it is empty."""
    rows = "\n".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<ul>\n{rows}\n</ul>" if rows else ""


def code(text: str) -> str:
    """Return text to be copied."""
    return f"<pre><code>{escape(text)}</code></pre>"


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        head: HTML of the row's own heading.
        cells: plain texts, one per column after the first.
        style: a class of the style sheet.
    """

    head: str
    cells: Sequence[str]
    style: str = ""


def table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Row], *, caption: str = "", style: str = ""
) -> str:
    """Return a table.

    Args:
        columns: heading and explanation per column, the first for the rows' headings. On a narrow
            screen the headings are repeated beside the cells, and the explanations are left out.
        rows: with one cell per column after the first.
        caption: a sentence above it.
        style: a class of the style sheet.
    """
    heads = "".join(
        f'<th scope="col">{escape(name)}{f"<span>{escape(more)}</span>" if more else ""}</th>'
        for name, more in columns
    )
    body = "\n".join(_row(row, [name for name, _ in columns[1:]]) for row in rows)
    top = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    opening = f'<table class="{style}">' if style else "<table>"
    return f"{opening}\n{top}<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(row: Row, names: Sequence[str]) -> str:
    opening = f'<tr class="{row.style}">' if row.style else "<tr>"
    cells = "".join(
        f'<td data-name="{escape(name)}">{escape(cell)}</td>'
        for name, cell in zip(names, row.cells, strict=True)
    )
    return f'{opening}<th scope="row">{row.head}</th>{cells}</tr>'


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Return terms with what they are."""
    rows = "\n".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in pairs)
    return f"<dl>\n{rows}\n</dl>"
