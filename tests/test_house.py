"""The walls of docs/architecture.md, held up by reading the source.

The table of rooms is the whole of what is allowed; the picture in docs/architecture.md is made
from it: `python tests/test_house.py` puts it into the page and prints it.
"""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "deniable"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# Every room of the house, lowest first, and the only other rooms it may import. A new room gets a
# line here, and the picture in docs/architecture.md is drawn anew: python tests/test_house.py
ROOMS: dict[str, set[str]] = {
    room: set(others.split())
    for room, others in {
        "errors": "",
        "strict_json": "",
        "_checks": "errors",
        "randomness": "",
        "notebook": "",
        "numerals": "",
        "readable": "",
        "atomic_files": "errors",
        "schema": "numerals _checks errors notebook",
        # of randomness its protocol, not its bits
        "laws": "errors randomness",
        # no library that searches
        "proofs": "errors laws",
        # of laws the names of array types
        "solvers": "laws",
        "solvers.patterns": "errors laws proofs solvers",
        "solvers.matrices": "errors laws proofs solvers",
        "mechanism": "readable numerals errors laws randomness schema",
        "tables": "numerals _checks atomic_files errors laws schema randomness",
        # a function of the record: it reads no law and no data
        "report": "readable numerals errors schema strict_json",
        # a stored mechanism: no search, no solver
        "statement": "readable _checks errors laws mechanism notebook proofs schema strict_json",
        "design": (
            "numerals _checks errors laws mechanism proofs schema solvers.matrices "
            "solvers.patterns statement strict_json"
        ),
        "ledger": "numerals atomic_files errors mechanism randomness strict_json",
        # of report its figures: a result draws itself from its plain rows
        "estimate": (
            "_checks readable numerals errors laws mechanism notebook report schema statement "
            "tables"
        ),
        "planning": (
            "readable numerals _checks design errors estimate laws mechanism proofs schema "
            "statement"
        ),
        # counts and channels to regressions
        "models": "_checks numerals errors estimate mechanism report schema tables",
        "frontier": (
            "numerals atomic_files errors estimate laws mechanism proofs report schema "
            "solvers.matrices statement strict_json tables"
        ),
        "release": (
            "_checks atomic_files design errors estimate laws ledger mechanism numerals "
            "randomness report schema statement strict_json tables"
        ),
        # a release in parts: processes and schedulers
        "engines": "_checks errors ledger release statement tables",
        "collect": (
            "_checks atomic_files errors estimate laws ledger mechanism randomness release "
            "report schema statement strict_json tables"
        ),
        # of laws and proofs the limits of numbers, shown next to their controls
        "studio": (
            "_checks atomic_files collect design errors laws planning proofs report schema "
            "statement tables"
        ),
        "audit": "numerals errors estimate laws mechanism randomness tables",
        # one release and all its questions
        "opened": "_checks errors estimate mechanism models schema statement tables",
        # rows from a model
        "synthesis": (
            "_checks atomic_files errors estimate mechanism models opened randomness release "
            "report schema statement tables"
        ),
        "api": (
            "_checks design engines errors estimate laws ledger mechanism models opened planning "
            "randomness release schema solvers.patterns statement synthesis tables"
        ),
        "cli": (
            "readable numerals atomic_files audit collect design engines errors estimate frontier "
            "laws ledger mechanism models planning randomness release report schema "
            "solvers.matrices statement strict_json studio synthesis tables"
        ),
        "__init__": "api",
        "__main__": "cli",
    }.items()
}

# Libraries, and names in the standard library and numpy, that belong behind one door.
DOORS: dict[str, set[str]] = {
    "os.urandom": {"randomness"},
    "os.getrandom": {"randomness"},
    "secrets": {"randomness"},
    "random": {"randomness"},
    # A search, or an integral of an estimate, may be random; a release never.
    "numpy.random": {"randomness", "solvers.patterns", "solvers.matrices", "frontier", "estimate"},
    "cryptography": {"randomness", "release"},  # release signs with it
    "pyarrow": {"tables", "design"},  # design writes the digest of a table's bytes
    "narwhals": {"tables"},
    "pandas": {"models"},  # formulaic reads its frames
    "formulaic": {"models"},
    "polars": set(),
    "highspy": {"solvers", "solvers.patterns", "solvers.matrices"},
    "clarabel": {"solvers", "solvers.patterns", "solvers.matrices"},
    "scipy": {
        "frontier",
        "planning",
        "solvers",
        "solvers.patterns",
        "solvers.matrices",
        "estimate",
        "audit",
        "models",
        "synthesis",
    },
    "sqlite3": {"ledger"},
    "dask": {"engines"},
    "distributed": {"engines"},
    "pyspark": {"engines"},
    "matplotlib": {"report"},
    "jinja2": {"collect", "report"},
    "xlsxwriter": {"tables"},
    "pyreadstat": {"tables"},
    "python_calamine": {"tables"},
    "starlette": {"collect", "studio"},
    "uvicorn": {"collect"},
    "sqlalchemy": {"collect"},
    "tomli_w": {"studio"},
    "cyclopts": {"cli"},
    "rich": {"cli"},
    "filelock": {"atomic_files"},
    # Of what Windows lacks, and where the package does without it there.
    "os.O_TMPFILE": {"atomic_files"},
    "os.fchmod": {"atomic_files"},
    "os.posix_fallocate": {"atomic_files"},
    "os.register_at_fork": {"randomness"},
    "os.sched_getaffinity": {"engines"},
    "resource": {"tables"},
    **{
        name: set()
        for name in (
            *("fcntl", "grp", "pty", "pwd", "select", "selectors", "termios", "tty"),
            *("os.fork", "os.geteuid", "os.getuid", "os.killpg", "os.setsid"),
            *("signal.SIGALRM", "signal.SIGHUP", "signal.SIGKILL"),
        )
    },
}

# The one import upwards, made when it is called: users look for `Schema.from_frame` next to
# `Schema.from_toml`, and a draft is read off a table. Nothing else of schemas needs it.
UPWARDS = ("schema.schema", "tables.frame_draft")

MAY_PRINT = {"cli"}
LOOK_AGAIN = 800  # lines: a file is as long as its one subject, and here one looks again
NO_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
# Neither proofs nor estimates may reach a search: no such library, no such room.
WITHOUT_SEARCH = {"proofs", "statement", "estimate", "models"}
SEARCHING = {"highspy", "clarabel"}


def dotted_imports(nodes: Iterable[ast.AST], module: str) -> Iterator[str]:
    """Every module or name that is imported anywhere in a file, with its full dotted name; the one
    import upwards aside."""
    below, above = (f"{PACKAGE}.{name}" for name in UPWARDS)
    for node in nodes:
        if module == below and isinstance(node, ast.ImportFrom) and node.module == above:
            continue
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


def dotted_uses(nodes: Iterable[ast.AST], module: str) -> Iterator[str]:
    """What is imported, and every attribute such as os.urandom or numpy.random of an import."""
    yield from dotted_imports(nodes, module)
    short = {"np": "numpy", "pa": "pyarrow"}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{short.get(node.value.id, node.value.id)}.{node.attr}"


def room_of(module: str) -> str:
    """The room a module stands in: deniable.tables.reading → tables, and of two names the longer:
    deniable.solvers.patterns.linear → solvers.patterns."""
    parts = module.split(".")[1:] or ["__init__"]
    inner = ".".join(parts[:2])
    return inner if inner in ROOMS else parts[0]


def text_by_the_system(node: ast.Call) -> bool:
    """Whether a call reads or writes text in the encoding, or with the line ends, of the system."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    owner = getattr(getattr(node.func, "value", None), "id", "")
    given = {keyword.arg for keyword in node.keywords}
    if name in {"run", "Popen", "check_output"}:
        return bool(given & {"text", "universal_newlines"}) and "encoding" not in given
    if name == "read_text":
        return not node.args and "encoding" not in given
    if name == "write_text":
        return not {"encoding", "newline"} <= given
    if name not in {"open", "fdopen"} or f"{owner}.{name}" in {"os.open", "webbrowser.open"}:
        return False
    after = node.args[1:] if name == "fdopen" or isinstance(node.func, ast.Name) else node.args
    mode = next((k.value for k in node.keywords if k.arg == "mode"), after[0] if after else None)
    if mode is not None and not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return False  # another kind of opening
    written = "r" if mode is None else mode.value
    wanted = {"encoding", "newline"} if set(written) & set("wxa") else {"encoding"}
    return "b" not in written and not wanted <= given


@cache
def imported(module: str, text: str) -> tuple[str, ...]:
    """Dotted names that a source text imports."""
    return tuple(dotted_imports(ast.walk(ast.parse(text)), module))


def violations(module: str, text: str) -> list[str]:
    """What is wrong with the source text of a module, one sentence each."""
    nodes = list(ast.walk(ast.parse(text)))
    room = room_of(module)
    found = []
    if room not in ROOMS:
        return [f"{module} has no place in ROOMS"]
    for name in dotted_imports(nodes, module):
        if name == "?":
            found.append(f"{module} imports what cannot be read off the source")
        if name.split(".")[0] != PACKAGE:
            continue
        target = room_of(name)
        if target != room and target not in ROOMS[room]:
            found.append(f"{module} imports {target}, which it has no business with")
    for name in dotted_uses(nodes, module):
        parts = name.split(".")
        doors = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        found += [
            f"{module} uses {name}, which belongs in {sorted(DOORS[door])}"
            for door in doors
            if room not in DOORS.get(door, {room})
        ]
    for node in nodes:
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if called and node.func.id == "print" and room not in MAY_PRINT:
            found.append(f"{module} prints")
        if isinstance(node, ast.Call) and text_by_the_system(node):
            found.append(f"{module}, line {node.lineno}: no encoding, or for writing no newline")
    if len(text.splitlines()) > LOOK_AGAIN:
        found.append(f"{module} has more than {LOOK_AGAIN} lines: is it still one subject?")
    if NO_NAMES & {part for name in module.split(".") for part in name.strip("_").split("_")}:
        found.append(f"{module} has a name that says nothing")
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


@cache
def sources() -> dict[str, Path]:
    return {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def test_every_module_keeps_to_its_place() -> None:
    found = []
    for module, path in sources().items():
        name = f"{module}.__init__" if path.name == "__init__.py" else module
        found += violations(name, path.read_text(encoding="utf-8"))
    assert found == []


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
        for name in imported(module, text):
            # "from deniable.solvers import highs" names a module; otherwise its last part is a
            # function or a class.
            known = name if name in texts else name.rpartition(".")[0]
            targets.add(known if known in texts else name.split(".")[0])
        graph[module] = targets
    return graph


def searches(texts: dict[str, str]) -> list[str]:
    """Modules of rooms without search that reach a solver, late imports included."""
    graph = imports_between(texts)
    return [
        module
        for module in texts
        if room_of(module) in WITHOUT_SEARCH
        and any(
            name in SEARCHING
            or (name in texts and room_of(name).split(".")[0] in ("design", "solvers"))
            for name in reached(module, graph)
        )
    ]


def test_proofs_are_checked_and_estimates_made_without_a_search() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in sources().items()}
    assert searches(texts) == []


def circles(texts: dict[str, str]) -> list[list[str]]:
    """Modules that import each other, directly or by a detour, also where only types are needed."""
    graph = imports_between(texts)
    above = {module: reached(module, graph) for module in texts}
    found = {
        tuple(sorted(other for other in texts if other in above[module] and module in above[other]))
        for module in texts
    }
    return sorted(list(names) for names in found if names)


def test_no_modules_import_each_other() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in sources().items()}
    assert circles(texts) == []


# --- and the walls would notice ------------------------------------------------------------------

BAD: list[tuple[str, str, str]] = [
    ("mechanism.privacy", "from deniable.design.level_designs import Design", "imports design"),
    ("mechanism.privacy", "import deniable.estimate.shares", "imports estimate"),
    ("mechanism.privacy", "from deniable import report", "no business with"),
    ("laws.law", "from ..mechanism.mechanism import Block", "imports mechanism"),
    ("laws.law", "def f():\n    from deniable.mechanism import privacy", "imports mechanism"),
    ("solvers.patterns.linear", "from deniable.schema import Schema", "imports schema"),
    ("solvers.matrices.square", "import deniable.solvers.patterns.linear", "solvers.patterns"),
    ("proofs.problem", "import deniable.solvers.patterns.linear", "imports solvers.patterns"),
    ("report.page", "from deniable.mechanism.mechanism import Mechanism", "imports mechanism"),
    ("estimate.shares", "from deniable.nowhere import x", "imports nowhere"),
    (
        "design.level_designs",
        "import importlib\nimportlib.import_module('deniable.cli')",
        "imports cli",
    ),
    ("design.budget", "__import__(name)", "cannot be read off"),
    ("schema", "import os\nkey = os.urandom(3)", "uses os.urandom"),
    ("schema", "from os import urandom", "uses os.urandom"),
    ("schema", "import secrets", "uses secrets"),
    ("design.budget", "from random import shuffle", "uses random"),
    (
        "design.level_designs",
        "import numpy as np\nr = np.random.default_rng(1)",
        "uses numpy.random",
    ),
    ("design.budget", "from numpy import random", "uses numpy.random"),
    ("design.budget", "from numpy.random import default_rng", "uses numpy.random"),
    ("tables.reading", "from cryptography.hazmat import x", "uses cryptography"),
    ("schema", "import pyarrow.csv as pc", "uses pyarrow"),
    ("schema", "import narwhals", "uses narwhals"),
    ("tables.frames", "import pandas as pd", "uses pandas"),
    ("design.budget", "import highspy", "uses highspy"),
    ("laws.law", "from scipy.stats import norm", "uses scipy"),
    ("laws.law", "def f():\n    from scipy import stats", "uses scipy"),
    ("design.budget", "import clarabel", "uses clarabel"),
    ("cli", "import matplotlib.pyplot", "uses matplotlib"),
    ("estimate.shares", "print('so far')", "prints"),
    ("estimate.shares", "from matplotlib.figure import Figure", "uses matplotlib"),
    ("tables.files", "import fcntl", "uses fcntl"),
    ("release.job", "from os import fork", "uses os.fork"),
    ("studio.making", "os.killpg(1, signal.SIGINT)", "uses os.killpg"),
    ("release.job", "path.read_text()", "no encoding"),
    ("release.job", "(folder / 'a').open()", "no encoding"),
    ("release.job", "path.open(newline='')", "no encoding"),
    ("release.job", "open('a')", "no encoding"),
    ("release.job", "path.write_text(text, encoding='utf-8')", "no newline"),
    ("release.job", "path.open('w', encoding='utf-8')", "no newline"),
    ("release.job", "os.fdopen(descriptor, 'w')", "no newline"),
    ("release.job", "subprocess.run(words, text=True)", "no encoding"),
    ("schema", "\n" * (LOOK_AGAIN + 1), "still one subject"),
    ("tables.utils", "", "a name that says nothing"),
    ("tables.csv_helpers", "", "a name that says nothing"),
    ("utils", "", "no place in ROOMS"),
]


def test_every_planted_fault_is_noticed() -> None:
    for module, text, problem in BAD:
        found = violations(f"{PACKAGE}.{module}", text)
        assert any(problem in sentence for sentence in found), (module, text, found)


GOOD: list[tuple[str, str]] = [
    ("mechanism.mechanism", "from deniable.mechanism import privacy\nimport deniable.schema"),
    ("laws.law", "from deniable.laws.matrix import MatrixChannel"),
    ("solvers.patterns.linear", "import highspy\nfrom deniable.errors import InputError"),
    ("randomness", "import os, secrets\nkey = os.urandom(32)"),
    ("tables.reading", "import pyarrow as pa\nimport os\nos.unlink('x')"),
    ("cli", "print('done')\nfrom deniable.release.release import share"),
    ("release.job", "path.open('rb')\nos.open(path, os.O_RDONLY)\nos.fdopen(descriptor, 'wb')"),
    ("release.job", "path.open(encoding='utf-8')\nrows.open(source)\nparts.open(part)"),
    ("release.job", "path.write_text(text, encoding='utf-8', newline='')"),
    ("schema", "randomly = 1\n" * LOOK_AGAIN),
    ("report.plots", "from matplotlib.figure import Figure"),
    ("estimate.shares", '"""import pyarrow; print(1)"""\nconsole.print(2)'),
]


def test_what_is_allowed_is_not_complained_about() -> None:
    for module, text in GOOD:
        assert violations(f"{PACKAGE}.{module}", text) == []


def test_a_search_below_an_estimate_is_noticed_by_a_detour() -> None:
    texts = {
        "deniable.estimate.source": "from deniable.statement import record",
        "deniable.statement.record": "def f():\n    from deniable.proofs.rows import start",
        "deniable.proofs.rows": "import highspy",
        "deniable.proofs.certificate": "import numpy",
        "deniable.models.model": "from deniable.design import budget",
        "deniable.design.budget": "import numpy",
    }
    *found, _, design = texts
    del design
    assert searches(texts) == [*found[:3], "deniable.models.model"]


def test_a_circle_of_imports_is_noticed_by_whatever_detour() -> None:
    texts = {
        "deniable.laws.a": "from deniable.laws import b",
        "deniable.laws.b": "def f():\n    from deniable.laws.c import g",
        "deniable.laws.c": "if TYPE_CHECKING:\n    from deniable.laws.a import A",
        "deniable.laws.d": "from deniable.laws.a import A",
        "deniable.laws.e": "import deniable.laws.f",
        "deniable.laws.f": "from .e import E",
    }
    a, b, c, _, e, f = texts
    assert circles(texts) == [[a, b, c], [e, f]]


def test_the_one_import_upwards_is_there_and_inside_a_function() -> None:
    below, above = (f"{PACKAGE}.{name}" for name in UPWARDS)
    tree = ast.parse(sources()[below].read_text(encoding="utf-8"))
    upwards = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == above
    ]
    assert len(upwards) == 1
    assert upwards[0] not in tree.body
    assert violations(f"{PACKAGE}.schema.attribute", f"from {above} import draft_frame") != []
    assert violations(below, "from deniable.tables.reading import open_table") != []


def test_every_module_was_read() -> None:
    names = set(sources())
    assert {"deniable.randomness", "deniable.laws.law", "deniable.solvers"} <= names
    assert len(names) == len(list(SOURCE.rglob("*.py")))


def test_rooms_import_one_way_and_every_rule_is_about_a_room_that_exists() -> None:
    order = list(ROOMS)
    for place, (room, below) in enumerate(ROOMS.items()):
        assert below <= set(order[:place]), room
    assert set().union(*DOORS.values()) | MAY_PRINT <= set(order)
    for room in ROOMS:
        where = SOURCE.joinpath(*room.split("."))
        assert where.is_dir() or where.with_suffix(".py").is_file(), room


# --- the picture ---------------------------------------------------------------------------------

PAGE = SOURCE.parents[1] / "docs" / "architecture.md"
IN_PAGE = re.compile(r"(?<=<!-- rooms -->\n```text\n).*?(?=```)", re.DOTALL)


def floors() -> dict[str, int]:
    """How many rooms lie below each, one under the other."""
    height: dict[str, int] = {}
    for room, below in ROOMS.items():
        height[room] = 1 + max((height[other] for other in below), default=-1)
    return height


def picture() -> str:
    """The rooms from the top floor down, and what each may import, as text."""
    height, lines = floors(), []
    width = max(map(len, ROOMS))
    for room in sorted(ROOMS, key=height.__getitem__, reverse=True):
        used = [other for other in ROOMS if other in ROOMS[room]]
        start = f"{height[room]:2}  {room:{width}}  "
        lines += textwrap.wrap(
            start + ("→ " + " ".join(used) if used else ""),
            width=88,
            subsequent_indent=" " * (len(start) + 2),
        )
    return "\n".join(lines) + "\n"


def test_the_picture_in_the_architecture_page_is_that_of_the_rooms() -> None:
    assert IN_PAGE.findall(PAGE.read_text(encoding="utf-8")) == [picture()], (
        "the rooms have changed; draw them anew with: python tests/test_house.py"
    )


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(IN_PAGE.sub(lambda _: picture(), text), encoding="utf-8")
    print(picture(), end="")
