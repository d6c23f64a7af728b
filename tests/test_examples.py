"""Every example in a docstring runs, and every public name has one."""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import deniable
from deniable.cli.queries import QUERIES

SOURCE = Path(__file__).parents[1] / "src"
PROMPT = ">>>"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_ONLY_FIRST_FAILURE

WITHOUT: dict[str, str] = {
    **{kind.__name__: "the method of an opened release has one" for kind, _, _ in QUERIES.values()},
    "InputError": "an exception without methods of its own; examples of others raise it",
}
"""Public names that have no example, and why."""


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_with_examples() -> list[str]:
    return [module_of(p) for p in sorted(SOURCE.rglob("*.py")) if PROMPT in p.read_text()]


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [found for found in finder.find(module, name, module=module) if found.examples]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module_print_what_they_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = examples(name)
    assert found, "none is in a docstring"
    for example in found:
        desk = tmp_path / example.name
        desk.mkdir()
        monkeypatch.chdir(desk)
        printed: list[str] = []
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=printed.append)
        assert result.failed == 0, "".join(printed)


def test_an_example_that_prints_something_else_is_seen() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    printed: list[str] = []
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(wrong, out=printed.append).failed == 1
    assert "Expected:" in "".join(printed)


def public_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Methods that the package's own classes define, not what a dataclass or a base outside adds;
    fields and properties are shown by the class."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("deniable"):
            continue
        for name, member in vars(owner).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not name.startswith("_") and isinstance(function, FunctionType):
                yield name, function


def public_callables() -> list[str]:
    """Functions of the package, and methods of its classes as Class.method."""
    names = []
    for name in deniable.__all__:
        thing = getattr(deniable, name)
        if name in WITHOUT:
            continue
        if inspect.isclass(thing):
            names += sorted({f"{name}.{method}" for method, _ in public_methods(thing)})
        else:
            names.append(name)
    return names


def called_in_examples() -> set[str]:
    """Every function or method, by its last name, that some example of the package calls."""
    called = set()
    for module in modules_with_examples():
        for example in examples(module):
            for part in example.examples:
                for node in ast.walk(ast.parse(part.source)):
                    if isinstance(node, ast.Call):
                        called.add(ast.unparse(node.func).rpartition(".")[2])
    return called


def test_every_public_function_and_method_is_called_in_an_example() -> None:
    called = called_in_examples()
    assert not [name for name in public_callables() if name.rpartition(".")[2] not in called]


def test_every_public_function_and_class_shows_an_example_itself() -> None:
    missing = [
        name
        for name in deniable.__all__
        if name not in WITHOUT and PROMPT not in (inspect.getdoc(getattr(deniable, name)) or "")
    ]
    assert not missing


def test_reasons_are_given_in_words() -> None:
    assert all(re.search(r"\w+ \w+ \w+", reason) for reason in WITHOUT.values())
