"""The page as a whole: its order, the short sections, and the frame around them."""

from collections.abc import Mapping
from decimal import ROUND_CEILING
from importlib.resources import files
from typing import Any

from deniable.report import wording
from deniable.report.attributes import attributes
from deniable.report.buying import buying
from deniable.report.contents import UNKNOWN, Contents, Instead, Method, read_contents
from deniable.report.estimating import estimating
from deniable.report.markup import (
    Row,
    bullets,
    code,
    definitions,
    escape,
    notice,
    paragraph,
    section,
    table,
)
from deniable.report.promise import adversaries, promise, warnings

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
    title = contents.title or f"Release of {contents.release.file}"
    sections = [
        _opening(contents, title),
        warnings(contents),
        promise(contents),
        adversaries(contents),
        attributes(contents, method),
        _strata(contents),
        buying(contents),
        _not_protected(contents),
        estimating(contents),
        _citing(contents),
        section("The small print", bullets(contents.small_print)) if contents.small_print else "",
        _provenance(contents, method),
    ]
    body = "\n".join(part for part in sections if part)
    style = files("deniable.report").joinpath("page.css").read_text(encoding="utf-8")
    # The policy forbids the page to load or run anything, whatever its texts contain.
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _opening(contents: Contents, title: str) -> str:
    release = contents.release
    n_protected = sum(1 for _ in contents.protected())
    facts = [
        (f"{release.rows:,}", "row" if release.rows == 1 else "rows"),
        (f"{n_protected:,}", "attribute protected" if n_protected == 1 else "attributes protected"),
        (wording.epsilon_text(contents.guarantee.epsilon), "ε of a row, in nats"),
        (
            wording.factor_text(contents.guarantee.epsilon),
            "the most that a row changes the odds of anything about it",
        ),
    ]
    if contents.guarantee.person is not None:
        level = wording.epsilon_text(contents.guarantee.person.epsilon)
        facts.append((level, "ε of a person with all rows, in nats"))
    if release.randomness == "seeded":
        facts = facts[:2]
    cards = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for value, name in facts)
    return (
        f"<header>\n<h1>{escape(title)}</h1>\n"
        '<p class="soft">Randomized records about people: many values in the file are not the true '
        f'ones, on purpose.</p>\n<ul class="facts">{cards}</ul>\n</header>'
    )


_SHOWN_STRATA = 100


def _strata(contents: Contents) -> str:
    if contents.expost is None or contents.expost.strata is None:
        return ""
    strata = contents.expost.strata
    columns = [
        (strata.column, ""),
        ("Rows", ""),
        ("ε of a row", ""),
        ("Strength", "entropy of a released record over its maximum"),
    ]
    rows = [
        Row(
            escape(part.stratum),
            (
                f"{part.rows:,}",
                wording.epsilon_text(part.mechanism.epsilon),
                "–"
                if part.mechanism.strength is None
                else wording.percent_text(part.mechanism.strength),
            ),
        )
        for part in strata.mechanisms[:_SHOWN_STRATA]
    ]
    more = len(strata.mechanisms) - len(rows)
    return section(
        "Stratum by stratum",
        paragraph(
            f"The values of {strata.column} form strata, each randomized by a mechanism of its "
            "own. The table above has the largest ε of all strata, and other numbers where all "
            "strata agree on them. Estimates are made within strata and added up."
        ),
        f'<div class="box">{table(columns, rows)}</div>',
        paragraph(f"and {more:,} more, in record.json." if more else ""),
    )


def _not_protected(contents: Contents) -> str:
    release = contents.release
    items = [
        "Whether a person is in the table, and how many rows it has.",
        "What is true of people in general: finding that out is what the release is for, and it "
        "may apply to anyone.",
    ]
    if release.row_order == "kept":
        items.append("The order of the rows, which is that of the original table.")
    boxes = []
    if kept := contents.kept():
        boxes.append(
            notice(
                "Columns with true values:",
                f"{wording.listed(kept, 100)}. Nothing is promised for them, and they may tell "
                "whose row it is. Everything promised here compares records that agree on them.",
                stop=True,
            )
        )
    boxes += [_instead(one) for one in contents.guarantee.instead]
    if unbounded := contents.unbounded():
        boxes.append(
            notice(
                "Randomized, but not protected:",
                f"{wording.listed(unbounded, 100)}. Some released values are impossible for some "
                "true values, so that they can give the true one away.",
                stop=True,
            )
        )
    opening = paragraph(
        "Further, the release does not protect:"
        if boxes
        else "Every column of the file is randomized. What the release does not protect:"
    )
    return section("What is not protected", *boxes, opening, bullets(items))


def _instead(one: Instead) -> str:
    text = one.statement
    if one.if_frequencies_known is not None:
        known = one.if_frequencies_known
        levels = ", ".join(f"{n} {wording.epsilon_text(e)}" for n, e in known.attributes.items())
        text += (
            f" (ε if the frequencies are known: {levels}; of the whole record "
            f"{wording.epsilon_text(known.epsilon)}.)"
        )
    return notice(f"{wording.listed(one.columns, 100)}:", text, stop=True)


def _citing(contents: Contents) -> str:
    quote = f"<blockquote><p>{escape(contents.guarantee.sentence)}</p></blockquote>"
    if contents.release.randomness == "seeded":
        return section(
            "How to cite the guarantee",
            paragraph(
                "There is none to cite: this release is not private. With secret randomness it "
                "would be:"
            ),
            quote,
        )
    return section("How to cite the guarantee", quote)


def _provenance(contents: Contents, method: Method) -> str:
    release = contents.release
    mechanism = contents.mechanism
    return section(
        "How it was made",
        definitions(
            [
                ("Software", contents.software),
                ("Method", method.description or mechanism.method),
                ("How near the optimum", _optimality(contents)),
                *(_strength(contents) if method.by_strength else []),
                (
                    "Randomness",
                    "the operating system's, through AES-256 in counter mode"
                    if release.randomness == "operating system"
                    else "a seed: NOT PRIVATE",
                ),
                (
                    "Released file",
                    f"{release.file}, {wording.count_text(release.rows, 'row', 'rows')}",
                ),
                (
                    "Row order",
                    "that of the original table" if release.row_order == "kept" else "shuffled",
                ),
                ("Its columns", ", ".join(release.columns)),
                ("SHA-256 of it", release.sha256),
            ]
        ),
        paragraph("Command (it draws afresh: another release of the same people adds up):"),
        code(contents.command),
        paragraph(
            "In the same folder: record.json (schema, law and all numbers on this page, for "
            "programs) and codebook.csv (the categories of every column).",
            "soft",
        ),
    )


def _strength(contents: Contents) -> list[tuple[str, str]]:
    strength = contents.mechanism.strength
    if strength is None:
        return []
    return [
        (
            "Strength",
            f"{wording.percent_text(strength)}: the entropy of a released record given the true "
            "one, over the most it could be",
        )
    ]


def _optimality(contents: Contents) -> str:
    epsilon = contents.mechanism.epsilon
    bound = contents.mechanism.epsilon_lower_bound
    if epsilon is None or bound is None:
        return "not known"
    gap = max(epsilon - bound, 0.0)
    law = (
        "(A pattern law draws, whatever the record is, which attributes change, and changes each "
        "to an evenly drawn other category.)"
    )
    if gap < _OPTIMAL_WITHIN:
        return (
            f"no pattern law with these ε alone has a record's ε more than {_OPTIMAL_WITHIN:f} "
            f"below this one's. {law}"
        )
    return (
        "no pattern law with these ε alone has a record's ε below "
        f"{wording.lower_bound_text(bound)}; this one's is {wording.epsilon_text(epsilon)}, at "
        f"most {wording.significant(gap, 2, ROUND_CEILING)} above that. {law}"
    )
