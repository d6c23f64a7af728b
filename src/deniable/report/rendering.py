"""The one environment of Jinja2: every page of the project is rendered here, from templates.

A template is named by its package and its file in that package's folder ``templates``, as in
``deniable.report/layout.html.j2``: that is the frame that every page extends, and beside it
``macros.html.j2`` has tables, notices and lists. Text is escaped, and a name that a template does
not get is an error.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from deniable.numerals import count_text, significant
from deniable.report import wording

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS = (
    count_text,
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
"""What templates write numbers and lists by."""


def render(template: str, **values: Any) -> str:
    """Return a page, or a part of one.

    >>> render("deniable.report/layout.html.j2", title="A & B", style="", policy="").splitlines()[5]
    '<title>A &amp; B</title>'
    """
    return _environment().get_template(template).render(values)


def read(package: str, *path: str) -> str:
    """Return the text of a file that a package brings along."""
    return files(package).joinpath(*path).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    # Imported here: commands that make no page do without it.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
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
    return environment


def _source(template: str) -> tuple[str, str, None]:
    """Return a template's text, and what an error calls it."""
    package, file = template.split("/")
    return read(package, "templates", file), template, None
