"""What people see in a terminal: tables, notes and progress. No colour and no bars in pipes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 120
_SHOWN_ROWS = 40

ADVERSARIES = (
    "ε alone: against someone who sees that column only.\n"
    "ε given rest: against someone who sees the whole released record and knows all the other "
    "true values. Both in nats."
)


def stdout() -> "Console":
    """Return the console for results."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def note(text: str) -> None:
    """Say something beside the result, on stderr, as plain text."""
    print(text, file=sys.stderr)


class Advance(Protocol):
    """Reports work done."""

    def __call__(self, amount: int, /) -> None: ...


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Advance]:
    """Show a bar on a terminal while the work runs; nothing otherwise.

    Args:
        label: what is being done.
        total: the amount of work in the units of the calls, or None if it is not known.
    """
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)


def show_design(statements: Mapping[str, Any]) -> None:
    """Print a design's statements (see :func:`deniable.record.design_to_plain`) as a table."""
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    console.print(_headline(statements), markup=False, soft_wrap=True)
    table = Table()
    table.add_column("attribute", overflow="fold")
    for header in ("categories", "requested ε", "ε alone", "ε given rest", "kept", "attenuation"):
        table.add_column(header, justify="right")
    rows = statements["attributes"]
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(
            Text(row["name"]),
            str(row["categories"]),
            _level(row["requested_epsilon"], "none"),
            _level(row["epsilon"]),
            _level(row["epsilon_given_rest"]),
            "" if row["keep_probability"] is None else f"{row['keep_probability']:.1%}",
            "" if row["attenuation"] is None else f"{row['attenuation']:.4g}",
        )
    if len(rows) > _SHOWN_ROWS:
        table.add_row(f"… {len(rows) - _SHOWN_ROWS} more (--json lists all)", *[""] * 6)
    console.print(table)
    console.print(ADVERSARIES, markup=False, soft_wrap=True)
    if statements["changed_levels"]:
        changed = statements["changed_levels"]
        console.print(
            f"CHANGED: {len(changed)} attributes do not have the requested level: "
            + ", ".join(changed[:10])
            + (", …" if len(changed) > 10 else ""),
            markup=False,
        )
    if statements["unprotected"]:
        console.print(
            "NOT PROTECTED, released as they are: " + ", ".join(statements["unprotected"]),
            markup=False,
        )


def _headline(statements: Mapping[str, Any]) -> str:
    bound = statements["epsilon_lower_bound"]
    text = f"Method {statements['method']}: ε of the whole record {statements['epsilon']:.6g} nats"
    if bound is not None:
        text += f"; no law with these levels is below {bound:.6g}"
    return text


def _level(value: float | None, unbounded: str = "unbounded") -> str:
    return unbounded if value is None else f"{value:.4f}"


def show_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1
) -> None:
    """Print rows of texts; the first ``text_columns`` are left-aligned, the others are numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for position, header in enumerate(headers):
        table.add_column(
            header, justify="left" if position < text_columns else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(Text, row))
    stdout().print(table)


def say(text: str) -> None:
    """Print a line of the result on stdout, as plain text."""
    stdout().print(text, markup=False, highlight=False, soft_wrap=True)
