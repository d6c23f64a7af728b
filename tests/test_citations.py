"""Every page, theorem and name that the project cites is there to be read.

A citation is `docs/….md`, with or without what to look for in it: `docs/proofs/optimal.md,
Theorem 10` or `(docs/proofs/clipped.md, section 5)`.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CITING = ("src", "studies", "tests", "benchmarks", "docs", "README.md", "CONTRIBUTING.md")
KINDS = "Theorem|Lemma|Proposition|Corollary"
PAGE = re.compile(r"docs/[\w/-]+\.md")
PLACE = re.compile(rf",?\s+(?P<kind>{KINDS}|section)s?\s+(?P<number>\d+)(?P<more>( and \d+)?)")
LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(#[\w-]+)?\)")
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.py)`")
PAPER = re.compile(r"(?!ISCC)\b([A-Z]\w+)(?: et al\.|, for|,)? \(?((?:19|20)\d\d)\b")
DOTTED = re.compile(r"`(deniable(?:_studies)?(?:\.\w+)+)`")
# What was cited when the mathematics lay outside the repository.
NOWHERE = re.compile(r"[Tt]heory of (?!types)|\(theory|project's theory|design note|[Tt]heory:")


def texts() -> dict[Path, str]:
    """Every file that may cite, by path from the root."""
    files = []
    for place in CITING:
        path = ROOT / place
        files += [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
        files += [] if path.is_file() else path.rglob("*.toml")
    return {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for path in sorted(files)
        if path.name != Path(__file__).name
    }


def joined(text: str) -> str:
    """Text whose lines are joined, so that a citation may run over the end of one."""
    return re.sub(r"\s*\n\s*(?:#|>)?\s*", " ", text)


@cache
def stated(page: str) -> set[tuple[str, str]]:
    """What a page holds that can be cited: ("Theorem", "3"), ("section", "2")."""
    held = set(re.findall(rf"\*\*({KINDS}) (\d+)", page))
    return held | {("section", number) for number in re.findall(r"^## (\d+)\.", page, re.MULTILINE)}


def broken(text: str) -> list[str]:
    """The citations in a text that lead nowhere."""
    found = []
    flat = joined(text)
    for match in PAGE.finditer(flat):
        path = ROOT / match.group()
        if not path.is_file():
            found.append(match.group())
            continue
        place = PLACE.match(flat, match.end())
        if place is None:
            continue
        numbers = [place["number"], *re.findall(r"\d+", place["more"])]
        missing = {(place["kind"], number) for number in numbers} - stated(path.read_text("utf-8"))
        found += [f"{match.group()}, {kind} {number}" for kind, number in sorted(missing)]
    found += NOWHERE.findall(flat)
    return found


@pytest.fixture(scope="module")
def cited() -> dict[Path, str]:
    return texts()


def test_every_page_and_theorem_that_is_cited_exists(cited: dict[Path, str]) -> None:
    found = {str(path): broken(text) for path, text in cited.items()}
    assert {path: lost for path, lost in found.items() if lost} == {}


def test_links_between_pages_lead_to_pages(cited: dict[Path, str]) -> None:
    lost = [
        f"{path}: {match['target']}"
        for path, text in cited.items()
        if path.suffix == ".md"
        for match in LINK.finditer(text)
        if "://" not in match["target"] and not (ROOT / path.parent / match["target"]).is_file()
    ]
    assert lost == []


def test_modules_that_pages_name_exist(cited: dict[Path, str]) -> None:
    for path, text in cited.items():
        if path.suffix != ".md":
            continue
        for name in DOTTED.findall(text):
            module, _, rest = name.rpartition(".")
            try:
                import_module(name)
            except ModuleNotFoundError:
                assert hasattr(import_module(module), rest), f"{path}: {name}"


def test_files_that_pages_name_exist(cited: dict[Path, str]) -> None:
    places = (ROOT, ROOT / "src" / "deniable", ROOT / "studies" / "src" / "deniable_studies")
    lost = [
        f"{path}: {name}"
        for path, text in cited.items()
        if path.suffix == ".md"
        for name in FILE.findall(text)
        if not re.search(r"[A-Z]{4}", name)  # NAME.py stands for any
        if not any((place / name).is_file() for place in (*places, ROOT / path.parent))
    ]
    assert lost == []


def test_papers_that_are_cited_by_year_are_among_the_references(cited: dict[Path, str]) -> None:
    page = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    references = page.partition("## References")[2].split("\n* ")
    lost = {
        f"{path}: {name} {year}"
        for path, text in cited.items()
        if path.parts[0] == "src"
        for name, year in PAPER.findall(joined(text))
        if not any(name in reference and year in reference for reference in references)
    }
    assert lost == set()


def test_theorems_are_numbered_in_order() -> None:
    for path in (ROOT / "docs" / "proofs").glob("*.md"):
        numbers = [
            int(n) for n in re.findall(rf"^\*\*(?:{KINDS}) (\d+)", path.read_text(), re.MULTILINE)
        ]
        assert numbers == list(range(1, len(numbers) + 1)), path.name


def test_a_citation_that_leads_nowhere_is_noticed() -> None:
    assert broken("see docs/proofs/optimal.md, Theorem 10") == []
    assert broken("see docs/proofs/optimal.md, Theorem\n    # 10, and docs/guarantees.md") == []
    assert broken("(docs/proofs/clipped.md, section 5)") == []
    assert broken("docs/proofs/optimal.md, Theorem 99") == ["docs/proofs/optimal.md, Theorem 99"]
    assert broken("docs/proofs/optimal.md, section 99") == ["docs/proofs/optimal.md, section 99"]
    assert broken("docs/proofs/nothing.md") == ["docs/proofs/nothing.md"]
    assert broken("which loses nothing (theory, section 4)") != []
