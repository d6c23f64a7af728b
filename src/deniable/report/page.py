"""The page as a whole: its order, the short sections, and the frame around them."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from deniable.report import wording, worth
from deniable.report.appendix import statisticians
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
from deniable.report.who_is_asked import who_is_asked


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
        _worth(contents),
        promise(contents),
        adversaries(contents),
        _decisions(contents),
        attributes(contents, method),
        who_is_asked(contents),
        _strata(contents),
        buying(contents),
        _not_protected(contents),
        estimating(contents),
        _citing(contents),
        section("The small print", bullets(contents.small_print)) if contents.small_print else "",
        _provenance(contents, method),
        statisticians(contents),
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
        f'ones, on purpose.</p>\n<ul class="facts">{cards}</ul>\n{_standing(contents)}</header>'
    )


def _standing(contents: Contents) -> str:
    """Return the line that says what this release comes to together with the earlier ones."""
    known = contents.population
    if known is None:
        return ""
    total = (
        "with no bound on what all of them reveal"
        if known.epsilon is None
        else f"an ε of {wording.epsilon_text(known.epsilon)} in all"
    )
    return paragraph(f"Release {known.release:,} of this population, {total}.") + "\n"


def _worth(contents: Contents) -> str:
    """Return what can be read from the release, and boxes where that, or what is protected, is
    nothing."""
    epsilon = contents.guarantee.epsilon
    boxes = [("NEXT TO NOTHING IS PROTECTED.", worth.unprotected(epsilon))]
    paragraphs: list[str] = []
    if contents.worth is not None:
        boxes.insert(0, ("NOTHING CAN BE READ.", worth.verdict(contents.worth, epsilon)))
        paragraphs = [paragraph(line) for line in worth.lines(contents.worth)]
        paragraphs.append(paragraph(_limit(contents)))
    shown = [notice(head, text, stop=True) for head, text in boxes if text]
    if not paragraphs:
        return "\n".join(shown)
    paragraphs.append(
        paragraph(
            "The standard error is how far an estimate is typically off on account of the "
            "randomization; 95 % of estimates are within twice that.",
            "soft small",
        )
    )
    return section("What can be read from it", *shown, *paragraphs)


def _limit(contents: Contents) -> str:
    """Return how near the release comes to what any mechanism could do; empty where that is not
    known."""
    outlook, rows = contents.outlook, contents.release.rows
    if outlook is None or outlook.limit is None or outlook.limit.times is None or not rows:
        return ""
    pairs = outlook.expected.pairs
    reached, least, both = (
        wording.points_text(((variance or 0.0) / rows) ** 0.5)
        for variance in (outlook.expected.shares, outlook.limit.shares, pairs)
    )
    return (
        "On average over all attributes, and as estimates of a population in which all categories "
        f"are equally frequent, shares have a standard error of {reached} points"
        + ("" if pairs is None else f", cells of two attributes one of {both}")
        + f". No method whatever has less than {least} for shares at this ε, so none needs fewer "
        f"than 1/{wording.significant(outlook.limit.times, 3)} of the rows."
    )


def _decisions(contents: Contents) -> str:
    """Return what has to be decided before the release is published, and by whom."""
    epsilon = contents.guarantee.epsilon
    level = (
        "that some columns have no bound at all"
        if epsilon is None
        else f"that the odds of anything about a row may change by a factor of "
        f"{wording.factor_text(epsilon)} (ε = {wording.epsilon_text(epsilon)})"
    )
    officer = [
        f"Whether it is acceptable {level}, for these people and these questions. No method can "
        "decide that: it is the one number of this page that is chosen, and the others follow.",
        "Whether the people in the table are in earlier releases too: ε of all of them adds up.",
    ]
    if kept := contents.kept():
        officer.insert(
            1,
            f"Whether {wording.listed(kept)} may be published as they are: nothing protects them, "
            "and they may tell whose row it is.",
        )
    steward = [
        "That categories and bin edges come from a codebook and not from the data.",
        "That every person has one row, or that the rows of a person were counted.",
        "That the estimates are exact enough for their purpose.",
    ]
    if contents.release.row_order == "kept":
        steward.append("That the order of the rows tells nothing; otherwise shuffle them.")
    return section(
        "Who decides what",
        paragraph("The data protection officer, or whoever answers for the people in the table:"),
        bullets(officer),
        paragraph("The steward, who knows the table:"),
        bullets(steward),
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
