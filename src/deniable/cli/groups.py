"""The groups in which a command's help lists its options, and how a group is drawn.

What nine users in ten need is in the first group and fits the first screen, 24 lines of 80
characters; everything else is in groups that say what it is about.
"""

from typing import TYPE_CHECKING

from cyclopts import Group

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_NAMES = 24
"""Characters of the names of options, which leaves 52 for what they are."""

START = Group("To start with", sort_key=1)
BEFORE = Group("Before the data", sort_key=2)
RELEASE = Group("Other ways to release", sort_key=3)
READING = Group("Other questions to a release", sort_key=4)
CHECKING = Group("To check and to count", sort_key=5)
HELP = Group("Help", sort_key=6)
COMMANDS = Group("Commands", sort_key=2)

SHARED = Group("What is shared", sort_key=1)
ASKED = Group("What is asked", sort_key=1)
SHOWN = Group("What is shown", sort_key=2)
LEFT_OUT = Group("What is left out, replaced or accepted", sort_key=3)
DESIGNED = Group("How it is designed", sort_key=4)
STRENGTH = Group("How it is designed, in terms other than ε", sort_key=5)
ESTIMATED = Group("How it is estimated", sort_key=5)
READ = Group("What it is read from", sort_key=6)
FILE = Group("How the file is written", sort_key=7)
COUNTED = Group("Keeping count", sort_key=8)
LARGE = Group("Large tables", sort_key=9)
SEARCH = Group("The search", sort_key=9)
TREND = Group("A study of genotypes", sort_key=9)
TESTS = Group("For tests", sort_key=10)


class Drawn:
    """Help in which a group is its title and a line or two an option, without frames."""

    def render_usage(self, console: "Console", _options: "ConsoleOptions", usage: object) -> None:
        """Print the line that says in which order words come."""
        console.print(f"Usage: {usage}", style="bold", highlight=False)

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print a group of options or commands."""
        from cyclopts.help.specs import DescriptionRenderer, NameRenderer
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        if not panel.entries:
            return
        table = Table.grid(padding=(0, 2, 0, 0))
        names = [NameRenderer(_NAMES)(entry) for entry in panel.entries]
        table.add_column(min_width=0 if panel.format == "command" else _NAMES)
        table.add_column()
        for name, entry in zip(names, panel.entries, strict=True):
            # That a flag is not set is its default everywhere.
            default = None if entry.default == "False" else entry.default
            # Lines of a docstring end where the source's do, not the terminal's.
            said = " ".join(str(getattr(entry.description, "primary_renderable", "")).split())
            told = entry.copy(default=default, description=Text(said))
            table.add_row(name, DescriptionRenderer()(told))
        console.print(panel.title, style="bold")
        console.print(Padding(table, (0, 0, 1, 2), expand=False), width=options.max_width)
