"""Drafts to try the studio on."""

from typing import Any

from deniable.studio.draft import Draft

ODD = ('he said "no"', "<b>bold</b>&amp;", "😀 ok", "\u200fימין", "a,b;c", "it's = so")
"""Names that a page, a file or a list of names could take for something else."""

SPLIT = ("a\tb", "two\nlines", "\\t\u2028")
"""Names that hold what stands between names in lists."""


def attribute(name: str, n: int = 2, **more: Any) -> dict[str, Any]:
    return {"name": name, "categories": [str(i) for i in range(n)], **more}


def draft(*attributes: dict[str, Any], keep: tuple[str, ...] = (), **typed: str) -> Draft:
    """A draft of some attributes, by default a, b and c, with some texts in controls."""
    declared = list(attributes) or [attribute("a"), attribute("b", 3), attribute("c", 2)]
    schema = {"attribute": declared} | ({"keep": list(keep)} if keep else {})
    named = {"epsilon": "4"} | {name.replace("__", "."): text for name, text in typed.items()}
    return Draft(schema).with_controls(**named)
