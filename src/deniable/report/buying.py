"""What randomizing attributes together buys, and what protection against those who know costs."""

from deniable.report.contents import CapCost, Comparison, Contents
from deniable.report.markup import paragraph, section
from deniable.report.plots import Bar, Group, Line, horizontal_bars
from deniable.report.wording import epsilon_text, significant


def buying(contents: Contents) -> str:
    """Return the section, or nothing if the record has no comparison."""
    comparison = contents.comparison
    if comparison is None:
        return ""
    return section(
        "What randomizing together buys",
        *([_saving(comparison)] if comparison.saving is not None else []),
        *([_curve(contents, comparison)] if comparison.curve else []),
    )


def _saving(comparison: Comparison) -> str:
    assert comparison.saving is not None
    text = (
        "To estimate shares as accurately from attributes randomized independently of each other, "
        "at the same ε for the whole row, a table would need "
        f"{_times(comparison.saving.marginals)} as many rows"
    )
    if comparison.saving.pairs is not None:
        text += f", and for tables of two attributes {_times(comparison.saving.pairs)} as many"
    return paragraph(text + " (medians over attributes and pairs).")


def _times(factor: float) -> str:
    return f"{significant(factor, 2)} times"


def _curve(contents: Contents, comparison: Comparison) -> str:
    free = next((p for p in comparison.curve or [] if p.cap == "none"), None)
    if free is not None and free.shares is not None:
        return _curve_of_forms(comparison, free)
    groups = []
    for point in comparison.curve or []:
        chosen = point.cap == comparison.chosen_cap
        name = "no cap" if point.cap == "none" else f"at most {point.cap} its own ε"
        groups.append(
            Group(
                name + (" (this release)" if chosen else ""),
                (Bar(point.epsilon, epsilon_text(point.epsilon), "rest" if chosen else "alone"),),
            )
        )
    bound = contents.mechanism.epsilon_lower_bound
    line = None if bound is None else Line(bound, f"smallest possible {epsilon_text(bound)}")
    return (
        "<h3>ε of the whole row, by the cap on what someone learns of an attribute who knows the "
        "rest</h3>\n"
        + horizontal_bars(
            groups,
            axis="ε in nats",
            description="ε of the whole row for several caps on the level of each attribute "
            "against someone who knows the rest of the row",
            line=line,
        )
    )


def _curve_of_forms(comparison: Comparison, free: CapCost) -> str:
    groups = []
    for point in comparison.curve or []:
        chosen = point.cap == comparison.chosen_cap
        of_record = point.cap.endswith("e") and point.cap != "none"
        bars = []
        for what, value, least, style in (
            ("shares", point.shares, free.shares, "alone"),
            ("tables of two", point.pairs, free.pairs, "rest"),
        ):
            if value is not None and least is not None:
                bars.append(Bar(value / least, f"{what}: {_times(value / least)}", style))
        name = f"at most {point.cap}" + (" (e: ε of the row)" if of_record else " nats")
        name = "no cap" if point.cap == "none" else name
        groups.append(Group(name + (" (this release)" if chosen else ""), tuple(bars)))
    return (
        "<h3>Rows needed, by the cap on what someone learns of an attribute who knows the rest</h3>"
        "\n"
        + horizontal_bars(
            groups,
            axis="times as many rows as without a cap",
            description="how many times as many rows are needed for the same errors of shares and "
            "of tables of two attributes, for several caps on the level of each attribute against "
            "someone who knows the rest of the row",
        )
    )
