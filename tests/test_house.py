"""The walls of docs/architecture.md, held up by reading the source.

The tables below are the whole of what is allowed. A new module gets a line here and in
docs/architecture.md; a test fails until it has one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "deniable"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# A module or package at the top of deniable/ may import those on lower floors only.
FLOORS: list[set[str]] = [
    {"errors"},
    {"_checks", "randomness", "tabulate", "options"},
    {"laws"},
    {"outputs", "schema", "solvers"},
    {"privacy"},
    {"mechanism", "tables", "report", "post_randomization"},
    {"best_guess"},
    {"channel", "randomizer", "statements", "drafting", "strength"},
    {"simplex", "inference", "lambda_protocol", "audit", "engines"},
    {"strata", "chi_square", "intervals"},
    {"methods", "estimation", "lambda_design", "association"},
    {"plan", "strength_options"},
    {"dividing"},
    {"designing", "covariance", "ordered", "counting", "independence"},
    {"record"},
    {"strata_record", "response_design", "testing"},
    {"analysis"},
    {"comparison"},
    {"release_record"},
    {"release", "console", "frontier"},
    {"expost"},
    {"api"},
    {"studies"},
    {"web", "cli"},
    {"__init__", "__main__"},
]

# Of those lower floors, these may use even less.
ONLY: dict[str, set[str]] = {
    "randomness": {"errors"},
    "schema": {"_checks", "errors"},
    "laws": {"errors", "randomness"},  # randomness for its protocol, not its bits
    "solvers": {"_checks", "errors", "laws"},
    "privacy": {"errors", "laws"},
    "mechanism": {"errors", "laws", "privacy", "schema"},
    "tables": {"_checks", "errors", "laws", "outputs", "randomizer", "schema"},
    "report": {"errors", "schema"},  # a pure function of the record: it sees no law and no data
    "channel": {"errors", "laws", "mechanism", "schema"},
    "randomizer": {"errors", "mechanism", "randomness"},
}

# Libraries, and names in the standard library and numpy, that belong behind one door.
DOORS: dict[str, set[str]] = {
    "os.urandom": {"randomness"},
    "os.getrandom": {"randomness"},
    "secrets": {"randomness"},
    "random": {"randomness"},
    # A search may be random; a release never.
    "numpy.random": {"randomness", "solvers", "frontier", "studies"},
    "cryptography": {"randomness"},
    "pyarrow": {"tables", "record", "engines"},
    "narwhals": {"tables", "record", "engines"},
    "pandas": set(),
    "polars": set(),
    "highspy": {"solvers"},
    "scipy": {"solvers"},
    "clarabel": {"solvers"},
    "matplotlib": {"report", "studies"},
    "cyclopts": {"cli"},
    "rich": {"console", "cli"},
    "starlette": {"web"},
    "sqlalchemy": {"web"},
}

MAY_PRINT = {"cli", "console"}
MOST_LINES = 450
NO_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
# Modules of solvers/ that check proofs; they must not reach a library that searches.
CERTIFICATES = "certificate"
SEARCHING = {"highspy", "clarabel", "scipy"}


def dotted_imports(tree: ast.AST, module: str) -> Iterator[str]:
    """Every module or name that is imported anywhere in a file, with its full dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: -node.level]
                base = ".".join([*parents, base] if base else parents)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in {"import_module", "__import__"} and node.args:
                argument = node.args[0]
                yield str(argument.value) if isinstance(argument, ast.Constant) else "?"


def dotted_uses(tree: ast.AST, module: str) -> Iterator[str]:
    """What is imported, and every attribute such as os.urandom or numpy.random of an import."""
    yield from dotted_imports(tree, module)
    short = {"np": "numpy", "pa": "pyarrow"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{short.get(node.value.id, node.value.id)}.{node.attr}"


def unit_of(module: str) -> str:
    """The part of the house that a module belongs to: deniable.tables.reading → tables."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def floor_of(unit: str) -> int | None:
    return next((floor for floor, units in enumerate(FLOORS) if unit in units), None)


def violations(module: str, text: str) -> list[str]:
    """What is wrong with the source text of a module, one sentence each."""
    tree = ast.parse(text)
    unit = unit_of(module)
    floor = floor_of(unit)
    found = []
    if floor is None:
        return [f"{module} has no place in FLOORS"]
    for name in dotted_imports(tree, module):
        if name == "?":
            found.append(f"{module} imports what cannot be read off the source")
        if name.split(".")[0] != PACKAGE:
            continue
        target = unit_of(name)
        if target == unit:
            continue
        target_floor = floor_of(target)
        if target_floor is None or target_floor >= floor:
            found.append(f"{module} imports {target}, which is not below it")
        elif unit in ONLY and target not in ONLY[unit]:
            found.append(f"{module} imports {target}, which it has no business with")
    for name in dotted_uses(tree, module):
        for door, units in DOORS.items():
            if (name == door or name.startswith(f"{door}.")) and unit not in units:
                found.append(f"{module} uses {name}, which belongs in {sorted(units)}")
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if called and node.func.id == "print" and unit not in MAY_PRINT:
            found.append(f"{module} prints")
    if len(text.splitlines()) > MOST_LINES:
        found.append(f"{module} has more than {MOST_LINES} lines")
    if NO_NAMES & {part for name in module.split(".") for part in name.strip("_").split("_")}:
        found.append(f"{module} has a name that says nothing")
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def sources() -> dict[str, Path]:
    return {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("module", sources())
def test_a_module_keeps_to_its_place(module: str) -> None:
    path = sources()[module]
    name = f"{module}.__init__" if path.name == "__init__.py" else module
    assert violations(name, path.read_text(encoding="utf-8")) == []


def reached(module: str, graph: dict[str, set[str]]) -> set[str]:
    """Everything that a module imports, directly or not."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for name in graph.get(waiting.pop(), set()) - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def imports_between(texts: dict[str, str]) -> dict[str, set[str]]:
    """Which modules and libraries each module imports."""
    graph = {}
    for module, text in texts.items():
        targets = set()
        for name in dotted_imports(ast.parse(text), module):
            # "from deniable.solvers import highs" names a module; otherwise its last part is a
            # function or a class.
            known = name if name in texts else name.rpartition(".")[0]
            targets.add(known if known in texts else name.split(".")[0])
        graph[module] = targets
    return graph


def certificates_that_search(texts: dict[str, str]) -> list[str]:
    """Modules that check a proof and yet reach a library that finds one."""
    graph = imports_between(texts)
    return [
        module
        for module in texts
        if CERTIFICATES in module.rpartition(".")[2] and reached(module, graph) & SEARCHING
    ]


def test_proofs_are_checked_without_a_solver() -> None:
    texts = {
        module: path.read_text(encoding="utf-8")
        for module, path in sources().items()
        if unit_of(module) == "solvers"
    }
    assert certificates_that_search(texts) == []


# --- and the walls would notice ------------------------------------------------------------------

BAD: list[tuple[str, str, str]] = [
    ("privacy", "from deniable.mechanism import Mechanism", "imports mechanism"),
    ("privacy", "import deniable.estimation", "imports estimation"),
    ("privacy", "from deniable import schema", "no business with"),
    ("laws.law", "from ..mechanism import Block", "imports mechanism"),
    ("laws.law", "def f():\n    from deniable import privacy", "imports privacy"),
    ("solvers.linear", "from deniable.schema import Schema", "imports schema"),
    ("report.page", "from deniable.mechanism import Mechanism", "imports mechanism"),
    ("estimation", "from deniable.nowhere import x", "imports nowhere"),
    ("designing", "import importlib\nimportlib.import_module('deniable.cli')", "imports cli"),
    ("designing", "__import__(name)", "cannot be read off"),
    ("schema", "import os\nkey = os.urandom(3)", "uses os.urandom"),
    ("schema", "from os import urandom", "uses os.urandom"),
    ("schema", "import secrets", "uses secrets"),
    ("designing", "from random import shuffle", "uses random"),
    ("designing", "import numpy as np\nr = np.random.default_rng(1)", "uses numpy.random"),
    ("designing", "from numpy import random", "uses numpy.random"),
    ("designing", "from numpy.random import default_rng", "uses numpy.random"),
    ("tables.reading", "from cryptography.hazmat import x", "uses cryptography"),
    ("schema", "import pyarrow.csv as pc", "uses pyarrow"),
    ("schema", "import narwhals", "uses narwhals"),
    ("tables.frames", "import pandas as pd", "uses pandas"),
    ("designing", "import highspy", "uses highspy"),
    ("estimation", "from scipy.stats import norm", "uses scipy"),
    ("estimation", "def f():\n    from scipy import stats", "uses scipy"),
    ("designing", "import clarabel", "uses clarabel"),
    ("cli", "import matplotlib.pyplot", "uses matplotlib"),
    ("estimation", "print('so far')", "prints"),
    ("schema", "\n" * (MOST_LINES + 1), "more than 450 lines"),
    ("tables.utils", "", "a name that says nothing"),
    ("tables.csv_helpers", "", "a name that says nothing"),
    ("utils", "", "no place in FLOORS"),
]


@pytest.mark.parametrize(("module", "text", "problem"), BAD)
def test_a_planted_fault_is_noticed(module: str, text: str, problem: str) -> None:
    found = violations(f"{PACKAGE}.{module}", text)
    assert any(problem in sentence for sentence in found), found


GOOD: list[tuple[str, str]] = [
    ("mechanism", "from deniable import privacy\nfrom deniable.schema import Schema"),
    ("laws.law", "from deniable.laws.matrix import MatrixChannel"),
    ("solvers.linear", "import highspy\nfrom deniable.errors import InputError"),
    ("randomness", "import os, secrets\nkey = os.urandom(32)"),
    ("tables.reading", "import pyarrow as pa\nimport os\nos.unlink('x')"),
    ("cli", "print('done')\nfrom deniable.release import share"),
    ("schema", "randomly = 1\n" * MOST_LINES),
    ("report.plots", "from matplotlib.figure import Figure"),
    ("estimation", '"""import scipy; print(1)"""\nconsole.print(2)'),
]


@pytest.mark.parametrize(("module", "text"), GOOD)
def test_what_is_allowed_is_not_complained_about(module: str, text: str) -> None:
    assert violations(f"{PACKAGE}.{module}", text) == []


def test_a_certificate_that_reaches_a_solver_by_a_detour_is_noticed() -> None:
    texts = {
        "deniable.solvers.certificate": "from deniable.solvers import rows",
        "deniable.solvers.rows": "from deniable.solvers.search import start",
        "deniable.solvers.search": "import highspy",
        "deniable.solvers.frontier_certificate": "import numpy",
    }
    assert certificates_that_search(texts) == ["deniable.solvers.certificate"]


def test_every_module_was_read() -> None:
    names = set(sources())
    assert {"deniable.randomness", "deniable.laws.law", "deniable.solvers"} <= names
    assert len(names) == len(list(SOURCE.rglob("*.py")))


def test_no_unit_stands_on_two_floors_and_every_rule_is_about_one_that_is_known() -> None:
    units = [unit for floor in FLOORS for unit in floor]
    assert len(units) == len(set(units))
    known = set(units)
    assert set(ONLY) | set().union(*ONLY.values(), *DOORS.values()) | MAY_PRINT <= known
