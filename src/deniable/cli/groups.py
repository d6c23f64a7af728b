"""Groups of options in the help, and their rendering.

The first group has the most frequent options and fits a screen of 24 lines of 80 characters.
"""

from typing import TYPE_CHECKING

from cyclopts import Group

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_NAMES = 24
"""Width of the names of options in characters, which leaves 52 for their texts."""

START = Group("First steps", sort_key=1)
BEFORE = Group("Planning", sort_key=2)
RELEASE = Group("Other releases", sort_key=3)
READING = Group("Analysis of a release", sort_key=4)
CHECKING = Group("Checks and accounting", sort_key=5)
HELP = Group("Help", sort_key=6)
COMMANDS = Group("Commands", sort_key=2)

SHARED = Group("Main options", sort_key=1)
ASKED = Group("Query", sort_key=1)
SHOWN = Group("Output", sort_key=2)
LEFT_OUT = Group("Exclusions and overrides", sort_key=3)
DESIGNED = Group("Design", sort_key=4)
STRENGTH = Group("Strength in terms other than ε", sort_key=5)
ESTIMATED = Group("Estimation", sort_key=5)
READ = Group("Input", sort_key=6)
FILE = Group("File format", sort_key=7)
COUNTED = Group("Ledger and signature", sort_key=8)
LARGE = Group("Large tables", sort_key=9)
SEARCH = Group("Search", sort_key=9)
TREND = Group("Genotype study", sort_key=9)
TESTS = Group("Tests", sort_key=10)


class Drawn:
    """Help in which a group is its title and a line or two an option, without frames."""

    def render_usage(self, console: "Console", _options: "ConsoleOptions", usage: object) -> None:
        """Print the usage line."""
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
            # Every flag is off by default.
            default = None if entry.default == "False" else entry.default
            # Lines of a docstring end where the source's do, not the terminal's.
            text = " ".join(str(getattr(entry.description, "primary_renderable", "")).split())
            shown = entry.copy(default=default, description=Text(text))
            table.add_row(name, DescriptionRenderer()(shown))
        console.print(panel.title, style="bold")
        console.print(Padding(table, (0, 0, 1, 2), expand=False), width=options.max_width)
