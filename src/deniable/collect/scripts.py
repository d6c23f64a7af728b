"""The page's own code: plain modules in `browser/`, joined into one script in a fixed order."""

import re
from functools import cache
from importlib.resources import files

DRAWING = ("randomness", "numbers", "categorical", "votes", "scores", "sampler")
"""What draws, each after what it imports."""

CHECKING = ("account",)
"""What checks a law: it may take logarithms."""

PAGE = (*DRAWING, *CHECKING, "storage", "texts", "elements", "typed", "form", "page")

_IMPORT = re.compile(r'^import [^;]+ from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^ *(//.*|/\*\*(?s:.*?)\*/)\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(class|const|function))", re.MULTILINE)


def read(name: str) -> str:
    """Return a file of `browser/`.

    >>> read("randomness.js").startswith("// The only door")
    True
    """
    return files(__package__).joinpath("browser", name).read_text(encoding="utf-8")


@cache
def joined(modules: tuple[str, ...]) -> str:
    """Return modules as one script, without comments and indents; all their names are in one scope,
    so they differ.

    >>> "import" in joined(DRAWING), "class Sampler" in joined(DRAWING)
    (False, True)
    """
    texts = [_COMMENT.sub("", _IMPORT.sub("", read(f"{module}.js"))) for module in modules]
    return re.sub(r"\n[\n ]*", "\n", "\n".join(_EXPORT.sub("", text) for text in texts))
