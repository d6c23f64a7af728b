"""What messages call arguments: what they are in Python, and on the command line as typed."""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import deniable
from deniable import errors
from deniable.cli.app import app
from deniable.cli.queries import QUERIES
from deniable.cli.typed import as_typed
from deniable.schema import FileFormat

SOURCE = Path(errors.__file__).parent
ONLY_COMMANDS = {"cli", "collect", "frontier", "studio"}
_MARKED = re.compile(r"`((?:deniable )?[a-z_.]+[ =A-Za-z-]*)`")
OTHER_PROGRAMS = {"--set-all-var-ids", "--make-bed", "--pmerge-list"}
SHOWN_AS_COMMANDS = {
    *("estimating.py", "promise.py", "appendix.py"),  # of a page, which shows commands
    "drafting.py",  # what only `deniable schema init` makes
}


@cache
def messages(path: Path) -> list[str]:
    """The texts in a file's code that are not documentation."""
    found, documentation = [], set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # a parent before its child
        if isinstance(node, ast.Expr):
            documentation.add(id(node.value))
        elif isinstance(node, ast.Constant) and id(node) not in documentation:
            found.append(str(node.value))
    return found


def sources() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] != "cli":
            yield path


def options(known: set[str]) -> set[str]:
    estimate = app["estimate"]
    commands = [app[name] for name in ("share", "estimate", "design", "plan", "pram")]
    for command in [*commands, *(estimate[name] for name in estimate if name[0] != "-")]:
        arguments = command.assemble_argument_collection()
        known |= {option for argument in arguments for option in argument.names}
    return known


def test_what_is_marked_is_there_in_python_and_on_the_command_line() -> None:
    marked = {m for p in sources() for t in messages(p) for m in _MARKED.findall(t)}
    assert {"overwrite", "schema.file.separator", "deniable share --resume"} <= marked
    arguments = {
        argument
        for name in deniable.__all__
        if inspect.isfunction(function := getattr(deniable, name))
        for argument in inspect.signature(function).parameters
    }
    queries = [kind for kind, *_ in QUERIES.values()]
    for kind in (*queries, deniable.Publication, deniable.StrengthRequest):
        arguments |= {field.name for field in dataclasses.fields(kind)}
    arguments |= {f"schema.file.{field.name}" for field in dataclasses.fields(FileFormat)}
    in_python = {name.split(" ")[0] for name in marked if not name.startswith("deniable ")}
    assert in_python <= arguments
    typed = {as_typed(f"`{name}`") for name in marked}
    assert typed <= options(set())


def test_no_message_that_python_shows_names_an_option() -> None:
    named = {
        option
        for path in sources()
        if path.relative_to(SOURCE).parts[0] not in ONLY_COMMANDS
        and path.name not in SHOWN_AS_COMMANDS
        for text in messages(path)
        for option in re.findall(
            r"(?:^|[ ('])(--[a-z-]+)", re.sub(r"deniable [a-z ]+--.*", "", text)
        )
    }
    assert named - OTHER_PROGRAMS <= {"--json", "--output", "--matrix"}


def test_python_and_the_command_line_tell_the_same_fault_each_in_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a;b,c\n1;2,3\n4;5,6\n")
    schema = deniable.Schema((deniable.Attribute("x", ("1", "2")),))
    plan = deniable.design(schema, epsilon=1)
    with pytest.raises(deniable.InputError, match=r"set `schema\.file\.separator` to"):
        deniable.share(table, plan, tmp_path / "r")
    schema_file = tmp_path / "s.toml"
    schema_file.write_text('[[attribute]]\nname = "x"\ncategories = ["1", "2"]\n')
    from deniable.cli import main

    words = ["share", str(table), "--schema", str(schema_file), "--epsilon", "1"]
    with pytest.raises(SystemExit):
        main([*words, "--output", str(tmp_path / "r")])
    assert "set --separator to" in capsys.readouterr().err


def test_a_missing_category_is_said_as_a_schemas_file_has_it() -> None:
    # Failed before: Python was told missing = "category:NA", which an Attribute takes literally.
    said = 'declare `missing="NA"` for this attribute'
    assert as_typed(said) == 'declare missing = "category:NA" for this attribute'
