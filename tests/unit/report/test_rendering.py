"""The shared templates: plain text cannot become markup, and nothing is left out unnoticed."""

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateNotFound, UndefinedError

from deniable.report import rendering
from deniable.report.plots import Bar, Group, Line, Plot
from deniable.report.rendering import _environment, render

MACROS = {
    "notice": "{% call m.notice(text, stop=true) %}<b>{{ text }}</b>{% endcall %}",
    "bullets": "{{ m.bullets([text]) }}",
    "code": "{{ m.code(text) }}",
    "table": "{% call m.table([('', ''), (text, text)], caption=text) %}"
    "{% call m.row([('', ''), (text, '')], [text]) %}{{ text }}{% endcall %}{% endcall %}",
    "bars": "{{ m.bars(plot, text, text) }}",
}


@pytest.mark.parametrize("macro", MACROS)
@given(text=st.text("<>&\"'ab/ =", min_size=1, max_size=60))
def test_any_text_comes_out_as_that_text_and_adds_no_element(macro: str, text: str) -> None:
    source = '{% import "deniable.report/macros.html.j2" as m %}' + MACROS[macro]
    made = _environment().from_string(source)

    def shown(text: str) -> ElementTree.Element:
        plot = Plot([Group(text, (Bar(1.0, text, "alone"),))], Line(1.0, text))
        return ElementTree.fromstring(made.render(text=text, plot=plot).strip())

    root = shown(text)
    # A name that is cut stands whole in an element of its own.
    assert [e.tag for e in root.iter()] == [e.tag for e in shown("a" * len(text)).iter()]
    held = [*(e.text for e in root.iter()), *(v for e in root.iter() for v in e.attrib.values())]
    assert held.count(text) >= (2 if macro in ("table", "notice", "bars") else 1)


def test_what_a_page_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        render("deniable.report/layout.html.j2", style="", policy="")
    with pytest.raises((TemplateNotFound, FileNotFoundError)):
        render("deniable.report/nothing.html.j2")


def test_compiled_templates_are_stored_unless_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page(*, write: bool = True) -> str:
        monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
        monkeypatch.setattr(sys, "dont_write_bytecode", not write)
        layout = _environment.__wrapped__().get_template("deniable.report/layout.html.j2")
        return layout.render(title="A", style="", policy="")

    shown = page()  # into a folder that does not exist
    stored = Path(cache_from_source(rendering.__file__)).parent
    stored.mkdir(parents=True)
    assert page(write=False) == shown
    assert [*stored.iterdir()] == []
    assert page() == shown
    (kept,) = stored.iterdir()
    written = kept.stat().st_mtime_ns
    assert page() == shown
    assert kept.stat().st_mtime_ns == written


def test_templates_are_compiled_only_for_a_page() -> None:
    program = (
        "import sys, deniable.report.page, deniable.cli.app; "
        "assert 'jinja2' not in sys.modules, 'imported before it is needed'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
