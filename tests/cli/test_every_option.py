"""Every option of every command is used in a test or on a page whose commands are run."""

import re
from collections.abc import Iterator
from pathlib import Path

from cyclopts import App

from deniable.cli.app import app

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).resolve()


def commands(of: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """All commands that do something, with the words that call them."""
    for word in of:
        if not word.startswith("-"):
            yield from commands(of[word], (*words, word))
    if words and of.default_command:
        yield words, of


def options(command: App) -> list[str]:
    """The long options of a command, aliases too, without the negations cyclopts adds."""
    arguments = command.assemble_argument_collection()
    return [name for argument in arguments for name in argument.names if name.startswith("--")]


EVERY = [(words, name) for words, command in commands(app) for name in options(command)]


def pages_that_run() -> list[str]:
    """Tests as they are written, and of the documents what stands between fences."""
    tests = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "studies" / "tests").rglob("*.py")]
    found = [path.read_text() for path in tests if path.resolve() != HERE]
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        lines = page.read_text().replace("\\\n", " ").splitlines()
        found += [line for line in lines if line.lstrip().startswith(("deniable ", ".venv/bin/"))]
    return found


def arguments(text: str) -> frozenset[str]:
    """Everything in a text that can be an argument."""
    return frozenset(re.findall(r"[\w-]+", text))


PAGES = [arguments(page) for page in pages_that_run()]


def uses(page: frozenset[str], words: tuple[str, ...], option: str) -> bool:
    """Whether a page holds the command and the option as arguments."""
    return page.issuperset((*words, option))


def test_the_walk_finds_the_commands_and_their_options() -> None:
    found = {words for words, _ in EVERY}
    assert {("share",), ("schema", "init"), ("frontier",), ("frontier", "pick")} <= found
    assert (("share",), "--epsilon") in EVERY
    assert (("frontier", "pick"), "--privacy") in EVERY


def test_an_option_that_nobody_uses_is_seen() -> None:
    assert not any(uses(page, ("share",), "--epsilo") for page in PAGES)
    assert uses(arguments("share t.csv --epsilon=4"), ("share",), "--epsilon")
    assert not uses(arguments("share --epsilon-ldp"), ("share",), "--epsilon")


def test_every_option_of_every_command_is_used() -> None:
    assert [
        (*words, option)
        for words, option in EVERY
        if not any(uses(page, words, option) for page in PAGES)
    ] == []
