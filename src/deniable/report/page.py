"""The page of a release. Its words stand in ``templates/report.html.j2``."""

from collections.abc import Mapping, Sequence
from typing import Any

from deniable.report import estimating, figures, wording, worth
from deniable.report.contents import UNKNOWN, Method, largest, read_contents
from deniable.report.rendering import read, render

_OPTIMAL_WITHIN = 1e-6
"""Below this distance from the lower bound, in nats, a law is shown as optimal."""


def render_report(record: Mapping[str, Any], method: Method = UNKNOWN) -> str:
    """Return a release's page: one HTML file that needs nothing else, not even a network.

    It says what is promised and against whom, what holds for each attribute, what is not
    protected, how to estimate, how to cite, and how the release was made. Equal records give equal
    bytes.

    Args:
        record: the release's record (``record.json``) as plain values.
        method: the words for the method that the record names; by default only its name is shown.

    Raises:
        InputError: if the record is not that of a release.
    """
    contents = read_contents(record)
    schema = contents.schema()
    comparison = contents.comparison
    singles = estimating.singles(contents)
    example = next(iter(singles), None)

    def of_variance(variance: float | None) -> str:
        return wording.points_text(((variance or 0.0) / contents.release.rows) ** 0.5)

    return render(
        "deniable.report/report.html.j2",
        title=contents.title or f"Release of {contents.release.file}",
        style=read("deniable.report", "page.css"),
        policy="default-src 'none'; style-src 'unsafe-inline'",
        contents=contents,
        schema=schema,
        method=method,
        worth=worth,
        largest=largest,
        range_text=range_text,
        of_variance=of_variance,
        level_plot=figures.level_plot(contents),
        error_plot=figures.error_plot(contents),
        cost_plot=figures.cost_plot(contents),
        costs_rows=comparison is not None and figures.without_cap(comparison) is not None,
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


def range_text(levels: Sequence[float | None]) -> str:
    """Return the least and the largest of some levels, or one if they read alike."""
    least = min((level for level in levels if level is not None), default=None)
    texts = dict.fromkeys((wording.epsilon_text(least), wording.epsilon_text(largest(levels))))
    return " to ".join(texts)
