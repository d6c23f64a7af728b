"""Options of commands from the fields of dataclasses."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from cyclopts import App

from deniable.cli.fields import Typed, from_fields, parameters
from deniable.cli.typed import option_of
from deniable.design.request import DesignRequest, PerAttribute
from deniable.errors import InputError
from deniable.release.publication import Publication
from deniable.schema.file_format import FileFormat


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request.

    Args:
        count: number of rows,
            in all; see `overwrite`.
        weights: weight by name.
        overwrite: replace the output.
        each: ε of each.
    """

    count: int = 3
    weights: Mapping[str, float] = field(default_factory=dict)
    overwrite: bool = False
    each: PerAttribute = None


def run(words: Sequence[str], only: str = "") -> Typed[Request]:
    found: list[Typed[Request]] = []
    kind = Annotated[Typed[Request], only] if only else Typed[Request]

    def command(name: str, /, *, request: Typed[Request], extra: bool = False) -> None:
        """Run."""
        found.append(request)
        assert (name, extra) == ("x", "--extra" in words)

    command.__annotations__["request"] = kind
    app = App(result_action="return_value")
    app.default(from_fields(command))
    app(["x", *words], exit_on_error=False, print_error=False)
    return found[0]


def test_only_what_was_typed_is_read() -> None:
    assert not run([])
    assert run([]).read() == Request()
    typed = run(["--weights", "a=2,b=3", "--force", "--each", "0.5,1", "--extra"])
    assert set(typed.values) == {"weights", "overwrite", "each"}
    read = typed.read(["a", "b"])
    assert read == Request(weights={"a": 2, "b": 3}, overwrite=True, each={"a": 0.5, "b": 1})
    assert run(["--count", "3"]).values == {"count": 3}  # typed, although it is the default


def test_errors_name_the_option() -> None:
    with pytest.raises(InputError, match=r"^--weights: expected name=number pairs"):
        run(["--weights", "2"]).read()
    with pytest.raises(InputError, match=r"^--each: there is no protected attribute 'c'"):
        run(["--each", "c=1"]).read(["a"])


def test_a_command_takes_the_fields_that_it_names() -> None:
    assert run(["--count", "4"], only="count each").read() == Request(count=4)
    with pytest.raises(Exception, match="weights"):
        run(["--weights", "a=1"], only="count each")


def test_the_help_is_that_of_the_fields() -> None:
    count, weights, overwrite, each = parameters(Request)
    texts = [one.annotation.__metadata__[0].help for one in (count, weights, overwrite, each)]
    assert texts[0] == "Number of rows, in all; see --force."
    assert texts[1] == "Weight by name: name=3,other=1."
    assert texts[3].startswith("ε of each: 0.5 for all")
    assert (count.default, weights.default) == (3, None)


@pytest.mark.parametrize("kind", [DesignRequest, Publication, FileFormat])
def test_every_field_has_a_text_and_an_option(kind: type) -> None:
    for one in parameters(kind):
        assert one.kind is inspect.Parameter.KEYWORD_ONLY
        assert one.annotation.__metadata__[0].help.endswith((".", "…")), one.name
        assert one.annotation.__metadata__[0].name == (option_of(one.name),)
