"""Help at 80 columns: groups with what is common first, and every command's as it was last read.

After a change: python tests/cli/test_help.py, and read what has changed in help.txt.
"""

import io
import os
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from cyclopts import App

from deniable.cli import groups, main
from deniable.cli.app import app

RECORDED = Path(__file__).with_name("help.txt")
SCREEN = 24


def commands(of: App, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and every group of commands, the program first."""
    found = [words]
    for name in of:
        if not name.startswith("-"):
            found += commands(of[name], (*words, name))
    return found


def session() -> str:
    """The help of every command, as a terminal of 80 columns shows it."""
    parts = []
    for words in commands(app):
        out = io.StringIO()
        with patch.dict(os.environ, COLUMNS="80"), redirect_stdout(out):
            main([*words, "--help"])
        lines = [line.rstrip() for line in out.getvalue().rstrip().splitlines()]
        parts.append("\n".join([f"$ {' '.join(('deniable', *words))} --help", *lines]))
    return "\n\n".join(parts) + "\n"


def test_the_help_of_every_command_is_as_recorded():
    assert session() == RECORDED.read_text()


def test_what_most_people_need_of_share_is_on_the_first_screen():
    first = RECORDED.read_text().split("$ deniable share --help\n")[1].splitlines()[:SCREEN]
    group = first[first.index(groups.SHARED.name) + 1 :]
    options = [line.split()[0] for line in group if line.startswith("  ") and line[2] != " "]
    assert options == [
        "INPUT", "--schema", "--output", "--mechanism", "--epsilon", "--attribute-epsilon",
        "--method", "--shuffle", "--person",
    ]  # fmt: skip
    assert any("docs/howto/steward.md" in line for line in first)


def test_no_option_of_a_long_command_is_without_a_group():
    for text in RECORDED.read_text().split("$ ")[1:]:
        options = [line for line in text.splitlines() if line.startswith("  --")]
        assert len(options) <= SCREEN // 2 or "\nParameters\n" not in text, text.splitlines()[0]


if __name__ == "__main__":
    RECORDED.write_text(session())
