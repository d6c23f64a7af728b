"""The project's Jinja2 environment.

A template is named by its package and its file in the package's folder ``templates``:
``deniable.report/layout.html.j2`` is the base of every page, ``macros.html.j2`` has tables, notices
and lists. Text is escaped; an undefined name is an error.
"""

import sys
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.numerals import count_text, number_text, p_text, significant
from deniable.readable import RULE
from deniable.report import wording

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

_FILTERS = (
    count_text,
    number_text,
    p_text,
    wording.epsilon_text,
    wording.factor_text,
    wording.listed,
    wording.lower_bound_text,
    wording.percent_text,
    wording.plain_number,
    wording.points_text,
    wording.posterior_text,
    wording.rounded_up,
    significant,
)
"""Jinja2 filters for numbers and lists."""


def render(template: str, **values: Any) -> str:
    """Return a page, or a part of one."""
    return _environment().get_template(template).render(values)


def read(package: str, *path: str) -> str:
    """Return the text of a file that a package brings along."""
    return files(package).joinpath(*path).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    # Imported here: commands that make no page do without it.
    from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined

    class Compiled(FileSystemBytecodeCache):
        """Compiled templates, stored with Python's bytecode if that can be written: compiling those
        of a report takes a third of a second."""

        def dump_bytecode(self, bucket: "Bucket") -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):
                    super().dump_bytecode(bucket)

    environment = Environment(
        bytecode_cache=Compiled(str(Path(cache_from_source(__file__)).parent)),
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_source),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({write.__name__: write for write in _FILTERS})
    environment.tests["fits_command"] = wording.fits_command
    environment.globals["wording"] = wording
    environment.globals["readable_rule"] = RULE
    return environment


def _source(template: str) -> tuple[str, str, None]:
    """Return a template's text, and its name in error messages."""
    package, file = template.split("/")
    return read(package, "templates", file), template, None
