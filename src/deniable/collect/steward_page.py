"""The steward's page: plain HTML made anew for every look, without a script."""

import html
from collections.abc import Sequence

from deniable.collect.collector import today
from deniable.collect.page import source_hash
from deniable.collect.scripts import read
from deniable.collect.store import Totals
from deniable.collect.study import Study
from deniable.collect.watching import Shown
from deniable.estimate.consistency import REFUSED_BELOW, WARNED_BELOW, Origin

STYLE = read("page.css") + read("steward.css")

POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {source_hash(STYLE)}",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""The page's Content Security Policy: nothing runs, and nothing is loaded."""

_OFTEN = (
    "Fix the number of records before the study begins, and stop there. Looking often and stopping "
    "when it pleases spoils the intervals: they then miss the truth more often than one time in "
    "twenty."
)
_TARGETS = {"population": "whom they stand for", "table": "those who answered"}
_BAR = (
    '<svg class="interval" viewBox="0 0 104 14" aria-hidden="true">'
    '<line class="axis" x1="2" x2="102" y1="7" y2="7"/>'
    '<line x1="{low:.1f}" x2="{high:.1f}" y1="7" y2="7"/>'
    '<circle cx="{share:.1f}" cy="7" r="3"/></svg>'
)


def steward_page(
    study: Study,
    totals: Totals,
    *,
    of: Sequence[str],
    target: str,
    precision: str,
    shown: Shown | None,
    origin: Origin | None,
    problem: str = "",
) -> bytes:
    """Return the page.

    Args:
        study: that is looked at.
        totals: what its store holds.
        of: the one or two attributes that are asked for.
        target: ``population`` or ``table``.
        precision: the wished precision in percentage points, as it was typed.
        shown: their table; None if there is none yet, or a problem.
        origin: whether the records can come from honest draws.
        problem: what could not be done.
    """
    language = study.plain["languages"][0]
    title = html.escape(study.plain["texts"][language]["title"])
    parts = [
        f"<h1>{title}</h1>",
        _so_far(study, totals),
        f'<p class="note">{_OFTEN}</p>',
        _form(study, of, target, precision),
        f'<p class="note" role="alert">{html.escape(problem)}</p>' if problem else "",
        _table(shown, target, precision) if shown is not None else "",
        _honest(totals, origin),
    ]
    body = "\n".join(part for part in parts if part)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}: steward</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
""".encode()


def _so_far(study: Study, totals: Totals) -> str:
    is_open = not totals.closed and today() <= study.closes
    lines = [
        ("Records", f"{totals.records:,}"),
        ("Taken back", f"{totals.withdrawn:,}"),
        ("Study", f"open until {study.closes}" if is_open else "closed"),
        ("ε of a record", f"{study.design.epsilon:.4g}"),
    ]
    if not study.open_to_all:
        lines.insert(2, ("Invitations used", f"{totals.spent:,} of {totals.invitations:,}"))
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{sentence}</td></tr>' for name, sentence in lines
    )
    return (
        f"<h2>So far</h2>\n<table><tbody>{rows}</tbody></table>\n"
        f'<p class="code">Code of the study: <code>{study.identity}</code></p>'
    )


def _form(study: Study, of: Sequence[str], target: str, precision: str) -> str:
    language = study.plain["languages"][0]
    asked = {
        question["column"]: f"{question['column']}: {question['texts'][language]['text']}"
        for question in study.plain["questions"]
    }
    second = {"": "nothing else"} | asked
    return f"""<h2>What to look at</h2>
<form method="get" action="/">
{_select("of", "Shares of", asked, of[0])}
{_select("and", "together with", second, of[1] if len(of) > 1 else "")}
{_select("target", "among", _TARGETS, target)}
<p><label for="precision">Wished precision, ± percentage points</label>
<input type="text" inputmode="decimal" id="precision" name="precision" autocomplete="off"
value="{html.escape(precision)}"></p>
<p><button>Look</button></p>
</form>"""


def _select(name: str, label: str, options: dict[str, str], chosen: str) -> str:
    listed = "".join(
        f'<option value="{html.escape(value)}"{" selected" * (value == chosen)}>'
        f"{html.escape(text)}</option>"
        for value, text in options.items()
    )
    return (
        f'<p><label for="{name}">{label}</label> '
        f'<select id="{name}" name="{name}">{listed}</select></p>'
    )


def _table(shown: Shown, target: str, precision: str) -> str:
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in shown.attributes)
    rows = []
    for cell in shown.cells:
        names = "".join(f'<th scope="row">{html.escape(label)}</th>' for label in cell.labels)
        low, high = (max(0.0, min(1.0, end)) for end in (cell.low, cell.high))
        bar = _BAR.format(
            low=2 + 100 * low, high=2 + 100 * high, share=2 + 100 * max(0.0, min(1.0, cell.share))
        )
        rows.append(
            f'<tr>{names}<td class="number">{100 * cell.share:.1f} %</td>'
            f'<td class="number">{100 * low:.1f} to {100 * high:.1f} %</td><td>{bar}</td>'
            f'<td class="number">{100 * cell.leverage / shown.n_records:.2g}</td></tr>'
        )
    needed = shown.needed(float(precision) / 100)
    more = needed - shown.n_records
    enough = f"{_about(more)} more" if more > 0 else "no more"
    return f"""<h2>Estimates</h2>
<p>{shown.n_records:,} records; shares among {_TARGETS[target]}, each with an interval that holds
the truth 95 times of 100.</p>
<div class="wide" tabindex="0" role="region" aria-label="Table of estimates">
<table>
<thead><tr>{heads}<th scope="col" class="number">Share</th>
<th scope="col" class="number">Interval</th><th scope="col">0 to 100 %</th>
<th scope="col" class="number">Leverage</th></tr></thead>
<tbody>{"".join(rows)}</tbody>
</table>
</div>
<p>For ± {html.escape(precision)} percentage points in every row it takes {_about(needed)} records:
<strong>{enough}</strong>.</p>
<p><em>Leverage</em>: by how many percentage points at most one invented record can move the share;
a hundred, a hundred times as much. Whoever answers many times has it many times: invitations bound
that.</p>"""


def _about(count: int) -> str:
    """Say a number with two digits that count, rounded up.

    >>> _about(7), _about(87_223)
    ('about 7', 'about 88,000')
    """
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"about {-(-count // unit) * unit:,}"


def _honest(totals: Totals, origin: Origin | None) -> str:
    if origin is None:
        sentence = "Nothing can be told" + (" yet." if not totals.records else " under this law.")
    elif origin.p_value < REFUSED_BELOW:
        sentence = f"<strong>No</strong>: {html.escape(origin.sentence())}."
    elif origin.p_value < WARNED_BELOW:
        sentence = f"<strong>It is unlikely</strong>: {html.escape(origin.sentence())}."
    else:
        sentence = (
            f"Yes: counts as those of {origin.rows:,} records can be drawn from honest answers "
            f"(p-value {origin.p_value:.2g}). Lies that look like answers cannot be told."
        )
    return f"<h2>Can these be honest draws?</h2>\n<p>{sentence}</p>"
