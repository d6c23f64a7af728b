"""A plain table in HTML, as notebooks show it."""

from collections.abc import Sequence
from html import escape


def html_table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all texts are escaped.

    >>> html_table("Shares", ["sex", "share"], [["f", "0.5"]])[:38]
    '<table><caption>Shares</caption><thead'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headers)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
