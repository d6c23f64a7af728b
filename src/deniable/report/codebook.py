"""Codebook of a release: the texts in its columns and their meaning."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from deniable.report.contents import read_contents
from deniable.schema.attribute import edge_text
from deniable.schema.names import set_mark

COLUMNS = ("attribute", "position", "category", "label", "lower", "upper", "released as")

RANDOMIZED = "randomized value"
ROUNDED = "randomized point, to which a number is rounded at random"
VALUE = "randomized value of a number; without missing values their average estimates the mean"
FORM = "form, drawn without looking at the record"
TRUE_VALUE = "true value, not protected"
CONTRACTED = "number pulled towards the mean, not protected"


def render_codebook(record: Mapping[str, Any]) -> str:
    """Return the codebook as CSV text, one row per category, lines ending in a line feed.

    Columns: attribute; the category's position, from 1; the category as it is written in the
    released file; its readable label; for binned attributes the interval's edges (the upper one
    belongs to the next interval, except in the last); and whether the file holds a randomized or
    the true value, or answers that are no categories. A number under its own matrix has a row per
    released value. A column that is not declared has one row,
    without a category. The column of forms has one row per form: its share of people and its
    attributes; cells of other attributes are empty. Where answers name sets of categories, the
    attribute has a row for each list of steps, with its meaning.
    """
    contents = read_contents(record)
    schema = contents.schema
    kept = set(schema.keep)
    numeric = () if contents.expost is None else contents.expost.numeric
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    answers = contents.answers()
    # Merged columns appear by themselves, unless one column of answers stands for all of them.
    declared = [
        column
        for attribute in schema.attributes
        for column in ((attribute,) if attribute.name in answers else attribute.columns)
    ]
    forms = contents.forms()
    lists = {} if forms is None else {sets.attribute: sets.lists for sets in forms.sets}
    for attribute in declared:
        edges = [edge_text(edge, dates=attribute.dates) for edge in attribute.bins or ()]
        points = 0 if attribute.number_grid is None else attribute.number_grid.n_points
        released_as = TRUE_VALUE if attribute.name in kept else ROUNDED if points else RANDOMIZED
        if points and attribute.answers:
            for position, value in enumerate(attribute.answers, start=1):
                label = attribute.label(value)
                writer.writerow((attribute.name, position, value, label, "", "", VALUE))
            continue
        if attribute.name in answers:
            released_as = f"{answers[attribute.name]}, which are no categories"
        for position, category in enumerate(attribute.categories, start=1):
            # A category for missing values comes after the intervals and has no edges.
            lower, upper = edges[position - 1 : position + 1] if position < len(edges) else ("", "")
            if position <= points:
                # A number is rounded to one of the two points next to it.
                near = max(position - 2, 0), min(position, points - 1)
                lower, upper = (attribute.categories[place] for place in near)
            writer.writerow(
                (
                    attribute.name,
                    position,
                    category,
                    attribute.label(category),
                    lower,
                    upper,
                    released_as,
                )
            )
        mark = set_mark(attribute.categories) if attribute.name in lists else ""
        for number, steps in enumerate(lists.get(attribute.name, ()), start=1):
            writer.writerow(
                (attribute.name, "", f"{number}{mark}…", _set_text(steps), "", "", released_as)
            )
    if forms is not None:
        for number, form in enumerate(forms.forms, start=1):
            people = f"{100 * form.share:.1f} % of people: {', '.join(form.asked)}"
            writer.writerow((forms.column, number, number, people, "", "", FORM))
    for name in contents.release.columns:
        if forms is not None and name == forms.column:
            continue
        if name not in schema.columns and name not in schema.names:
            released_as = CONTRACTED if name in numeric else TRUE_VALUE
            writer.writerow((name, "", "", "", "", "", released_as))
    return text.getvalue()


def _set_text(steps: Sequence[int]) -> str:
    """Return which categories an answer names that is made of a list of steps and a category."""
    itself = "the one named, and " if steps[0] == 0 else ""
    places = ", ".join(str(step) for step in steps if step)
    return (
        f"a set of {len(steps)} categories: {itself}those {places} places after it, starting over "
        "after the last"
    )
