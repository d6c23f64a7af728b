"""audit: test a program's claims on its input and output rows."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deniable.cli import console
from deniable.cli.arguments import AsJson
from deniable.errors import InputError


def audit(
    source: Annotated[Path, Parameter(name="MECHANISM")],
    /,
    *,
    draws: int = 1_000_000,
    error: float = 1e-6,
    command: str | None = None,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        source: mechanism.json, record.json, or its folder.
        draws: Rows to draw.
        error: Largest probability of refuting an honest mechanism.
        command: Program to audit instead of deniable randomize: reads CSV with a header from
            standard input and writes a row for each.
    """
    from deniable.audit import Plan, command_box
    from deniable.audit import audit as examine
    from deniable.statement.record import read_design

    if draws < 1000:
        raise InputError(f"--draws: {draws} rows are too few; draw at least 1000")
    if not 0 < error < 1:
        raise InputError(f"--error: expected a probability above 0 and below 1, not {error:g}")
    words = shlex.split(command) if command is not None else []
    if command is not None and not words:
        raise InputError("--command: name a program")
    mechanism = read_design(source).mechanism
    plan = Plan(mechanism, draws, error, rounds=True)
    if not plan.responses:
        raise InputError(f"{source}: an audit needs a randomized attribute, and there is none")
    ours = [sys.executable, "-m", "deniable", "randomize", "-", "--mechanism", str(source)]
    if not as_json:
        console.show_power(plan)
    with console.progress("Drawing") as advance:
        result = examine(plan, command_box(mechanism, words or ours), advance)
    if as_json:
        console.print_json(result.to_plain())
    else:
        console.show_audit(result)
    if result.refuted:
        sys.stdout.flush()
        sys.exit(1)
