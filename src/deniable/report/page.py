"""Page of a release, from ``templates/report.html.j2``."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deniable.report import estimating, figures, verdict, wording
from deniable.report.contents import UNKNOWN, Method, largest, read_contents
from deniable.report.rendering import read, render
from deniable.schema import Attribute, Schema
from deniable.schema.attribute import edge_text

_OPTIMAL_WITHIN = 1e-6
"""Below this distance from the lower bound, in nats, a law is shown as optimal."""


def render_report(record: Mapping[str, Any], method: Method = UNKNOWN) -> str:
    """Return a release's page: one self-contained HTML file; equal records give equal bytes.

    Sections: guarantee and observers, attributes, limits, estimation, citation, production.
    """
    contents = read_contents(record)
    schema = contents.schema
    singles = estimating.singles(contents)
    example = next(iter(singles), None)

    page = render(
        "deniable.report/report.html.j2",
        title=contents.title or f"Release of {contents.release.file}",
        style=read("deniable.report", "page.css"),
        policy="default-src 'none'; style-src 'unsafe-inline'",
        contents=contents,
        schema=schema,
        method=method,
        verdict=verdict,
        largest=largest,
        range_text=range_text,
        contents_mark=_CONTENTS,
        no_mean=verdict.without_mean(schema),
        questions={a.name: a.question for a in schema.attributes},
        spelled=spelled(schema),
        level_plot=figures.level_plot(contents),
        error_plot=figures.error_plot(contents),
        numbers=figures.number_pictures(contents),
        optimal_within=_OPTIMAL_WITHIN,
        singles=singles,
        example=None if example is None else schema.attributes[schema.position(example)],
        examples=estimating.example_names(contents),
        pair=estimating.example_pair(contents),
        weak=estimating.weak_pairs(contents),
        weak_pair=estimating.WEAK_PAIR,
        worked_example=estimating.worked_example,
        python_example=estimating.python_example,
    )
    return with_table_of_contents(page)


class Spelled(NamedTuple):
    """An attribute in words: its question, and the meaning of each code of the released file."""

    name: str
    question: str
    codes: list[tuple[str, str]]


def spelled(schema: Schema) -> list[Spelled]:
    """Return the columns of a schema that hold categories, merged ones by their parts."""
    return [
        Spelled(
            column.name,
            column.question,
            [(category, meaning(column, category)) for category in column.categories],
        )
        for attribute in schema.attributes
        for column in attribute.columns
    ]


def meaning(attribute: Attribute, category: str) -> str:
    """Return the meaning of a category: its label, an interval in words, or itself."""
    if category in attribute.labels:
        return attribute.label(category)
    if category == attribute.missing:
        return "missing"
    if attribute.bins is None:
        return category
    place = attribute.categories.index(category)
    low, high = attribute.bins[place : place + 2]
    first, last = (edge_text(edge, dates=attribute.dates) for edge in (low, high))
    if low == -math.inf:
        return f"under {first if high == math.inf else last}"
    if high == math.inf:
        return f"{first} and {'later' if attribute.dates else 'more'}"
    return f"{first} to {last}" if place == len(attribute.bins) - 2 else f"{first} to under {last}"


_CONTENTS = "\N{WHITE RIGHT-POINTING TRIANGLE} contents"
"""Placeholder of the table of contents, which is made from the headings."""


def with_table_of_contents(page: str) -> str:
    """Return a page with a link to every section at its top."""
    start, *sections = re.split(r"<section>(?=\s*<h2>)", page)
    headings = [re.findall(r"<h2>(.*?)</h2>", section)[0] for section in sections]
    numbered = enumerate(sections, 1)
    page = start + "".join(f'<section id="s{number}">{section}' for number, section in numbered)
    links = "".join(f'<li><a href="#s{n}">{text}</a></li>' for n, text in enumerate(headings, 1))
    listed = f'<nav aria-label="Contents"><ol class="contents">{links}</ol></nav>'
    return page.replace(_CONTENTS, listed, 1)


def range_text(levels: Sequence[float | None]) -> str:
    """Return the least and the largest of some levels, or one if they read alike."""
    least = min((level for level in levels if level is not None), default=None)
    texts = dict.fromkeys((wording.epsilon_text(least), wording.epsilon_text(largest(levels))))
    return " to ".join(texts)
