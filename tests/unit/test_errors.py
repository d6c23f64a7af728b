"""What messages call options: as they are typed, or what they are in Python."""

import ast
import dataclasses
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import deniable
from deniable import errors
from deniable.schema import FileFormat

SOURCE = Path(errors.__file__).parent
ONLY_COMMANDS = {"cli", "collect", "frontier"}
OTHER_PROGRAMS = {"set-all-var-ids", "make-bed", "pmerge-list"}
NO_MESSAGES = {
    *("estimating.py", "promise.py", "appendix.py"),  # of a page, which shows commands
    "drafting.py",  # writes comments into a draft
}


def messages(path: Path) -> Iterator[str]:
    """The texts in a file's code that are not documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            yield str(node.value)


def test_every_option_that_a_message_names_is_known_in_python() -> None:
    named = {
        option
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in ONLY_COMMANDS and path.name not in NO_MESSAGES
        for text in messages(path)
        for option in re.findall(r"(?:^|[ ('])--([a-z-]+)", text)
    }
    assert {"separator", "force", "drop-other-columns"} <= named
    unknown = named - set(errors._IN_PYTHON) - OTHER_PROGRAMS
    assert unknown == {"json", "output"}  # `design --json`, and the options of --resume


def test_what_an_option_is_in_python_is_there() -> None:
    arguments = {
        argument
        for name in deniable.__all__
        if inspect.isfunction(function := getattr(deniable, name))
        for argument in inspect.signature(function).parameters
    }
    fields = {field.name for field in dataclasses.fields(FileFormat)}
    for option, words in errors._IN_PYTHON.items():
        if words.startswith("schema.file."):
            assert words.split()[0].removeprefix("schema.file.") in fields
        elif words.startswith("deniable "):
            assert words.endswith(f" --{option}")
        else:
            assert words in arguments


def test_a_message_names_what_one_can_do_where_one_is() -> None:
    error = errors.InputError("a--force.csv: say with --separator which, or --no-header")
    in_python = "a--force.csv: say with schema.file.separator which, or schema.file.header = False"
    assert str(error) == in_python
    with errors.options_as_typed():
        assert "say with --separator which" in str(error)
        with pytest.raises(KeyError), errors.options_as_typed():
            raise KeyError
        assert "--separator" in str(error)
    assert str(error) == in_python
    with pytest.warns(errors.Notice, match="^continue with deniable share --resume$"):
        warnings.warn("continue with deniable share --resume", errors.Notice, stacklevel=1)


def test_python_and_the_command_line_tell_the_same_fault_each_in_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a;b,c\n1;2,3\n4;5,6\n")
    schema = deniable.Schema((deniable.Attribute("x", ("1", "2")),))
    plan = deniable.design(schema, epsilon=1)
    with pytest.raises(deniable.InputError, match=r"say with schema\.file\.separator which"):
        deniable.share(table, plan, tmp_path / "r")
    schema_file = tmp_path / "s.toml"
    schema_file.write_text('[[attribute]]\nname = "x"\ncategories = ["1", "2"]\n')
    from deniable.cli import main

    words = ["share", str(table), "--schema", str(schema_file), "--epsilon", "1"]
    with pytest.raises(SystemExit):
        main([*words, "--output", str(tmp_path / "r")])
    assert "say with --separator which" in capsys.readouterr().err
