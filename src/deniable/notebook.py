"""Plain tables in HTML, for notebooks, and in text."""

from collections.abc import Sequence
from html import escape


def html_table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table with escaped texts."""
    head = "".join(f"<th>{escape(name)}</th>" for name in headers)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def text_table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in aligned columns under its caption.

    >>> print(text_table("Shares", ["sex", "share"], [["f", "0.5"]]))
    Shares
    sex  share
    f    0.5
    """
    lines = [list(headers), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join([caption, *aligned])
