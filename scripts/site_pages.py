"""What the site needs beyond the pages in docs/: a hook of mkdocs (see mkdocs.yml).

The README, the changelog and their like stay where a reader of the repository looks for them and
are pages of the site too; their links are turned to where they lead there.

Formulas, `$…$` and `$$…$$`, become MathML here, which browsers lay out by themselves: the site
needs no script for them. The one font it brings, STIX Two Math, is from the package ziamath.
"""

import posixpath
import re
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "example.md",
}
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([.,;:)]*)', re.DOTALL
)
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: Any) -> Any:
    """A folder in the table of contents stands for its pages."""
    for number, entry in enumerate(config["nav"]):
        for title, value in entry.items():
            config["nav"][number] = {title: _expanded(value, Path(config["docs_dir"]))}
    return config


def _expanded(value: Any, docs: Path) -> Any:
    if isinstance(value, list):
        return [{key: _expanded(below, docs) for key, below in part.items()} for part in value]
    if not value.endswith("/"):
        return value
    return [str(page.relative_to(docs)) for page in sorted((docs / value).glob("*.md"))]


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that lie outside docs/, and the font for formulas."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relinked(text, source, page, config)))
    font = find_spec("ziamath").submodule_search_locations[0] + "/fonts/STIXTwoMath-Regular.ttf"
    files.append(File.generated(config, "fonts/math.ttf", abs_src_path=font))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turn links that leave docs/ to the page they are on the site, or to the repository."""
    place = page.file.src_uri
    if place in PAGES.values():
        return markdown
    return _relinked(markdown, f"docs/{place}", place, config)


def _relinked(text: str, source: str, page: str, config: Any) -> str:
    """Return a page's text with links that lead where they do in the repository."""

    def turned(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.group(1)))
        anchor = link.group(2) or ""
        if target in PAGES:
            goal = PAGES[target]
        elif target.startswith("docs/") and (ROOT / target).is_file():
            goal = target.removeprefix("docs/")
        elif target.startswith("docs/") and (ROOT / target).is_dir():
            first = sorted((ROOT / target).glob("*.md"))[0]
            goal = str(first.relative_to(ROOT / "docs"))
        elif (ROOT / target).exists():
            return f"{config['extra']['repository']}/blob/main/{target}{anchor}"
        else:
            return link.group()  # a broken link: mkdocs says so
        return posixpath.relpath(goal, posixpath.dirname(page) or ".") + anchor

    return LINK.sub(turned, text)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """Typeset formulas; a command that is not known is an error."""

    def typeset(formula: re.Match[str]) -> str:
        kind, source, after = formula.groups()
        # The converter needs the braces of \\mathbb{R}, which may be left out.
        braced = re.sub(r"(\\math(?:bb|cal|rm)) (\w)", r"\1{\2}", unescape(source))
        mathml = convert(braced, display="block" if kind == "div" else "inline")
        if unknown := re.search(r"<m[a-z]+>(\\[A-Za-z]+|&amp;|&)</m", mathml):
            raise PluginError(f"{page.file.src_uri}: {unknown[1]} in {source}")
        mathml = mathml.replace("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>')
        mathml = mathml.replace("<mo>&#x02205;</mo>", "<mi>&#x02205;</mi>")
        if kind == "div":
            return f'<div class="formula">{mathml}</div>{after}'
        return f'<span class="inline-formula">{mathml}{after}</span>'

    return FORMULA.sub(typeset, html)


# --- nothing from other hosts --------------------------------------------------------------------


FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Sources(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "prev", "next", "edit"):
            return
        source = values.get(FETCHED.get(tag, ""))
        if source:
            self.found.append(source)


def fetched(path: Path) -> list[str]:
    """Return what a file of the site fetches from other hosts."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        reader = _Sources()
        reader.feed(text)
        found = [*reader.found, *re.findall(r"url\(([^)]*)\)", text)]
    else:
        found = re.findall(r"url\(([^)]*)\)|@import\s+[\"']([^\"']+)", text)
        found = ["".join(pair) for pair in found]
    return [s for s in map(unescape, found) if re.match(r"[\"']?\s*(https?:)?//", s)]


def on_post_build(*, config: Any) -> None:
    """Refuse a site that asks another host for a script, a font or a picture."""
    site = Path(config["site_dir"])
    wrong = [
        f"{path.relative_to(site)} fetches {source}"
        for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")])
        for source in fetched(path)
    ]
    if wrong:
        raise PluginError("\n".join(wrong))
