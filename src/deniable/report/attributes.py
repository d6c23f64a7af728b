"""What holds and what can be expected for each attribute: a table and two plots."""

from deniable.report import wording
from deniable.report.contents import AttributeStatement, Contents, Method
from deniable.report.markup import Row, escape, paragraph, section, table
from deniable.report.plots import Bar, Group, Line, horizontal_bars, line_fits

PLOTTED = 24
"""Most attributes in a plot; beyond them the table is easier to read."""

_NOTHING = "–"


def attributes(contents: Contents, method: Method) -> str:
    """Return the table of all attributes and the plots.

    Args:
        contents: the record.
        method: the words for its method.
    """
    errors = contents.standard_errors()
    forms = contents.forms() is not None
    columns = [*_COLUMNS[:2], _ASKED if forms else _KEPT, *_COLUMNS[2:]]
    parts = [
        '<div class="box">'
        + table(columns, (_row(a, errors.get(a.name)) for a in contents.mechanism.attributes))
        + "</div>",
        paragraph(
            (
                "Asked: the share of people whose form asks it. "
                if forms
                else "Kept: the probability that a released value is the true one; otherwise it is "
                "drawn evenly from the other categories. "
            )
            + "ε alone: against someone who sees only that column. "
            "ε given the rest: against someone who sees the whole released row and knows all its "
            "other true values. Error: the standard error of one share of the "
            f"{wording.count_text(contents.release.rows, 'row', 'rows')} of this table, estimated "
            "from the release (for the category and the truth at which it is largest); about "
            "95 % of estimates are within twice that.",
            "soft small",
        ),
    ]
    if contents.by_matrix():
        parts.append(
            paragraph(
                "Under a response matrix “kept” is the average over the categories.", "soft small"
            )
        )
    if method.remark:
        parts.append(paragraph(method.remark, "soft small"))
    return section("Attribute by attribute", *parts, _level_plot(contents), _error_plot(contents))


_KEPT = ("Kept", "")
_ASKED = ("Asked", "of the others nothing is left")
_COLUMNS = [
    ("Attribute", ""),
    ("Categories", ""),
    ("ε alone", "against someone who sees only that column"),
    ("ε given the rest", "against someone who knows all other true values of the row"),
    ("Error, percentage points", ""),
]


def _row(attribute: AttributeStatement, standard_error: float | None) -> Row:
    unbounded = attribute.epsilon is None
    share = attribute.keep_probability if attribute.asked is None else attribute.asked
    name = escape(attribute.name)
    if unbounded:
        guess = attribute.best_guess
        name += (
            " (not protected)"
            if guess is None
            else _small(
                f"no ε; best guess right for {wording.rounded_up(guess.success)}, "
                + (
                    "some released values give it away"
                    if guess.worst_posterior >= 1.0
                    else f"nobody surer than {wording.rounded_up(guess.worst_posterior)}"
                )
                + ", if its prior is true"
                + ("; single columns are easier to guess, see below" if attribute.parts else "")
            )
        )
    if attribute.parts:
        name += _small(f"merged from {', '.join(attribute.parts)}")
    return Row(
        name,
        (
            f"{attribute.categories:,}",
            _NOTHING if share is None else wording.percent_text(share),
            wording.epsilon_text(attribute.epsilon),
            wording.epsilon_text(attribute.epsilon_given_rest),
            _NOTHING if standard_error is None else wording.points_text(standard_error),
        ),
        "bare" if unbounded else "",
    )


def _small(text: str) -> str:
    return f'<br><span class="soft small">{escape(text)}</span>'


def _level_plot(contents: Contents) -> str:
    shown = list(contents.protected())
    if not shown:
        return ""
    worst_first = sorted(shown, key=_given_rest, reverse=True)
    chosen = {a.name for a in worst_first[:PLOTTED]}
    groups = [
        Group(
            a.name,
            (
                Bar(a.epsilon, wording.epsilon_text(a.epsilon), "alone"),
                Bar(a.epsilon_given_rest, wording.epsilon_text(a.epsilon_given_rest), "rest"),
            ),
        )
        for a in shown
        if a.name in chosen
    ]
    epsilon = contents.guarantee.epsilon
    line = None
    remark = ""
    if epsilon is not None:
        line = Line(epsilon, f"whole record {wording.epsilon_text(epsilon)}")
        if not line_fits(groups, line):
            remark = (
                f"The ε of the whole record, {wording.epsilon_text(epsilon)}, lies outside the "
                "plot."
            )
    return (
        "<h3>Privacy of each attribute, ε in nats: shorter is more private</h3>\n"
        '<ul class="key"><li><i class="alone"></i>seen alone</li>'
        '<li><i class="rest"></i>given the rest of the row</li></ul>\n'
        + paragraph(_limited(len(shown), "ε given the rest"), "soft small")
        + paragraph(remark, "soft small")
        + horizontal_bars(
            groups,
            axis="ε in nats",
            description="ε of each attribute, seen alone and given the rest; the numbers are in "
            "the table above",
            line=line,
        )
    )


def _given_rest(attribute: AttributeStatement) -> float:
    level = attribute.epsilon_given_rest
    return float("inf") if level is None else level


def _error_plot(contents: Contents) -> str:
    shown = contents.expected_error
    if not shown:
        return ""
    largest_first = sorted(shown, key=lambda row: row.standard_error, reverse=True)
    chosen = {row.attribute for row in largest_first[:PLOTTED]}
    groups = [
        Group(
            row.attribute,
            (Bar(100 * row.standard_error, wording.points_text(row.standard_error), "error"),),
        )
        for row in shown
        if row.attribute in chosen
    ]
    return (
        "<h3>Expected standard error of one share: shorter is more accurate</h3>\n"
        + paragraph(_limited(len(shown), "error"), "soft small")
        + horizontal_bars(
            groups,
            axis="percentage points",
            description="expected standard error of one share of each attribute; the numbers are "
            "in the table above",
        )
    )


def _limited(count: int, key: str) -> str:
    if count <= PLOTTED:
        return ""
    return f"The {PLOTTED} of {count:,} attributes with the largest {key}; the table has all."
