"""The page's code: modules in `browser/`, joined into one script in a fixed order."""

import re
from functools import cache
from importlib.resources import files

DRAWING = ("randomness", "numbers", "categorical", "votes", "scores", "sampler")
"""Modules of the draw, in the order of imports."""

CHECKING = ("account",)
"""Modules of the check of a law, which may take logarithms."""

PAGE = (*DRAWING, *CHECKING, "storage", "texts", "elements", "typed", "form", "page")

_IMPORT = re.compile(r'^import [^;]+ from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^ *(//.*|/\*\*(?s:.*?)\*/)\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(class|const|function))", re.MULTILINE)


def read(name: str) -> str:
    """Return a file of `browser/`."""
    return files(__package__).joinpath("browser", name).read_text(encoding="utf-8")


@cache
def joined(modules: tuple[str, ...]) -> str:
    """Return modules as one script, without comments and indents; all names share one scope, so
    they differ.
    """
    texts = [_COMMENT.sub("", _IMPORT.sub("", read(f"{module}.js"))) for module in modules]
    return re.sub(r"\n[\n ]*", "\n", "\n".join(_EXPORT.sub("", text) for text in texts))
