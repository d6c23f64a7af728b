"""Shared settings, and one budget of false alarms for all workers of a run."""

import atexit
import gc
import os
import sys
from copy import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App
from hypothesis import HealthCheck, settings

from statistical.budget import BUDGET, TOTAL

# What is about signals, permissions and forks of Unix, or about the database and the browser of the
# gate's machine, is not tested on Windows.
if sys.platform == "win32":
    collect_ignore = [
        *("cli/test_faults.py", "cli/test_ledger.py", "test_fuzzing.py", "unit/collect"),
        *(
            "unit/ledger/test_book.py",
            "unit/mechanism/test_randomizer.py",
            "unit/release/test_parts.py",
        ),
        *("statistical/test_collected_answers.py", "unit/studio/test_in_a_browser.py"),
        *("unit/studio/test_making.py", "unit/test_randomness.py"),
    ]

# One thread a process, also in those that tests start: the systems solved here are small, and
# threads that wait for one another take ten times as long on a busy machine. The library reads it
# when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Workers, and the commands that their tests start, read the same modules, which are compiled once
# also where Python was told to keep nothing.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

# No deadline: a slow machine is not a defect. Fresh examples in every run but the gate's (.ci/run),
# also where continuous integration would have hypothesis repeat the same ones; the weekly run
# takes ten times as many.
for profile, examples in (("deniable", 20), ("weekly", 200)):
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("deniable")

# What a command takes is read from its function once, not in every call, of which it is a third.
_assemble = App.assemble_argument_collection
_ASSEMBLED: dict[Any, Any] = {}


def _arguments_of(app: App, **how: bool) -> Any:
    key = (id(app), app.default_command, *how.items())
    if key not in _ASSEMBLED:
        _ASSEMBLED[key] = _assemble(app, **how)
    fresh = {id(one): copy(one) for one in _ASSEMBLED[key]}
    for one in fresh.values():
        one.tokens = []
        one.children = type(one.children)(fresh[id(child)] for child in one.children)
    return type(_ASSEMBLED[key])(fresh.values())


App.assemble_argument_collection = _arguments_of

STATISTICAL = f"{Path(__file__).parent / 'statistical'}/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(STATISTICAL):
            item.add_marker("statistical")


def pytest_collection_finish() -> None:
    gc.freeze()  # what all modules made stays: no search for garbage goes through it again


def pytest_unconfigure() -> None:
    # Commands that ran in this process would spare its end, and DuckDB takes that for a leak.
    atexit.unregister(gc.freeze)
    gc.unfreeze()


@pytest.fixture
def no_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier is written without its picture, which takes half a second and has tests of its
    own."""
    monkeypatch.setattr("deniable.frontier.folder.draw", lambda *_, **__: (b"PNG", b"SVG"))


# Every worker has a budget of its own. Together they keep to the same total: each reports what it
# spent, and the process that leads them adds up. A module that several workers import and that
# spends on import spends once.

_SPENT: dict[str, Fraction] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        spent = {name: str(part) for name, part in BUDGET.spent.items()}
        session.config.workeroutput["spent"] = spent
        return
    _SPENT.update(BUDGET.spent)
    if sum(_SPENT.values()) > TOTAL:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    spent = getattr(node, "workeroutput", {}).get("spent", {})
    _SPENT.update({name: Fraction(part) for name, part in spent.items()})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _SPENT:
        total = sum(_SPENT.values(), Fraction(0))
        terminalreporter.write_line(
            f"{len(_SPENT)} statistical checks raise a false alarm or miss a defect with "
            f"probability at most {float(total):.1e}; at most {float(TOTAL):.1e} is declared"
        )
