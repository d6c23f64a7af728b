"""What a release promises, and against whom: the part of the page that must not say too much.

The promise (see :mod:`deniable.mechanism.privacy`): for any two records that agree on the columns
released as they are, every released row has probabilities under the two that differ by a factor of
at most e^ε. By Bayes' rule, the odds between any two possible true records change by at most that
factor on account of the released row; so do the odds of any statement about the record against its
opposite, since each side is a mixture of records.
"""

from collections.abc import Sequence

from deniable.report import wording
from deniable.report.contents import AttributeStatement, Contents, largest
from deniable.report.markup import Row, escape, notice, paragraph, section, table

_SUSPICION = 0.1


def warnings(contents: Contents) -> str:
    """Return what a reader must see before anything else; empty if there is nothing."""
    boxes = []
    if contents.release.randomness == "seeded":
        boxes.append(
            notice(
                "NOT PRIVATE.",
                "The randomness of this release came from a seed. Whoever has or guesses the seed "
                "can undo the randomization. It is for tests only: the numbers below describe the "
                "method, and none of the promises holds for this file.",
                stop=True,
            )
        )
    guessable = contents.guessable()
    if bare := [name for name in contents.guarantee.unprotected if name not in guessable]:
        boxes.append(
            notice(
                "NOT PROTECTED:",
                f"{wording.listed(bare)}. Nothing is promised for {_these(len(bare))}; see below.",
                stop=True,
            )
        )
    if drafted := contents.guarantee.drafted:
        boxes.append(
            notice(
                "READ OFF THE DATA:",
                f"of {wording.listed(drafted)}, categories and bin edges were read off the data: "
                "they are a disclosure of their own, which the promise does not cover.",
                stop=True,
            )
        )
    if guessable:
        boxes.append(
            notice(
                "NO ε-DIFFERENTIAL PRIVACY:",
                f"{wording.listed(guessable)}. What holds instead rests on an assumption; see "
                "below.",
                stop=True,
            )
        )
    if changed := contents.mechanism.changed_levels:
        boxes.append(
            notice(
                "Levels differ from what was requested:",
                f"{wording.listed(changed)}. What holds is in the tables below.",
            )
        )
    return "\n".join(boxes)


def _these(count: int) -> str:
    return "this column" if count == 1 else "these columns"


def promise(contents: Contents) -> str:
    """Return the promise in plain words."""
    if contents.release.randomness == "seeded":
        return section(
            "What is promised",
            paragraph("Nothing: the randomness came from a seed.", "promise"),
            paragraph("With secret randomness, the same method would promise this:"),
            *_sentences(contents),
        )
    return section("What is promised", *_sentences(contents))


def _sentences(contents: Contents) -> list[str]:
    epsilon = contents.guarantee.epsilon
    if epsilon is None:
        why = (
            "some released values are possible for some true values only"
            if contents.unbounded() or contents.guessable()
            else "the matrices were made from the table itself"
        )
        return [
            paragraph(f"For a row as a whole, nothing: {why}.", "promise"),
            paragraph("What holds for single attributes is in the tables below."),
        ]
    kept = contents.agreed()
    agree = f" that agree on {wording.listed(kept)}" if kept else ""
    same = f" with the same {wording.listed(kept, 3)}" if kept else ""
    another = f"that of another{same}" if kept else "another's"
    factor = wording.factor_text(epsilon)
    very_weak = epsilon > wording.VERY_WEAK_EPSILON
    parts = [
        paragraph(
            f"{_size(epsilon)} any released row is at most {factor} times likelier to come from "
            f"one person's data than from {another}.",
            "promise",
        ),
        paragraph(
            f"This holds for any released row and any two possible records{agree}, whatever an "
            "observer knows or will find out: also if they know every other record and which "
            f"released row is whose. {'The' if very_weak else _NO_PROOF} odds of anything that an "
            f"observer believes about a record change by a factor of at most {factor} on account "
            f"of its released row: a belief of 50{wording.PERCENT} can become "
            f"{_at_most(0.5, epsilon)}, one of 1{wording.PERCENT} {_at_most(0.01, epsilon)}. "
            f"(The record's ε is {wording.epsilon_text(epsilon)}; the factor is e to the power ε. "
            "The smaller, the stronger.)"
        ),
        paragraph(
            "What holds for single columns and single attributes is in the tables below."
            if epsilon > wording.WEAK_EPSILON
            else ""
        ),
    ]
    person = contents.guarantee.person
    if person is None:
        parts.append(
            paragraph(
                "The promise is for a row. It is a promise for a person if everyone has one row; "
                "for a person with several rows the ε of the rows add up."
            )
        )
    else:
        alike = f"{same} and" if kept else " with"
        parts.append(
            paragraph(
                f"For a person: the column {person.column} said whose row it is (it is not "
                "released), and nobody has more than "
                f"{wording.count_text(person.most_rows, 'row', 'rows')}. All released rows of a "
                f"person together are at most {wording.factor_text(person.epsilon)} times likelier "
                f"to come from one person's data than from that of another{alike} as many rows "
                f"(ε of a person: {wording.epsilon_text(person.epsilon)})."
                + _size_of_a_person(person.epsilon)
            )
        )
    return parts


_NO_PROOF = "So no released row proves what the true one is, and the"


def _size(epsilon: float) -> str:
    if epsilon > wording.VERY_WEAK_EPSILON:
        return "Next to nothing for a record as a whole:"
    if epsilon > wording.WEAK_EPSILON:
        return "Weak deniability for every record:"
    return "Plausible deniability for every record:"


def _size_of_a_person(epsilon: float | None) -> str:
    if epsilon is None or epsilon > wording.VERY_WEAK_EPSILON:
        return " That is next to nothing for a person with so many rows."
    return " That is weak." if epsilon > wording.WEAK_EPSILON else ""


def _at_most(prior: float, epsilon: float) -> str:
    most = wording.posterior_text(prior, epsilon)
    return most if most == wording.NEAR_CERTAINTY else f"at most {most}"


def adversaries(contents: Contents) -> str:
    """Return the table of who sees what, and the number that holds against each of them."""
    columns = [
        ("Observer", "and what they could learn about"),
        ("ε", ""),
        ("Odds change by a factor of at most", ""),
        (f"A suspicion of {wording.percent_text(_SUSPICION)} becomes at most", ""),
    ]
    guarantee = contents.guarantee
    rows = [
        _row(
            "Anyone, whatever they know",
            "about anything in a person's row, from the whole released row",
            [guarantee.epsilon],
        )
    ]
    if guarantee.person is not None:
        rows.append(
            _row(
                "Anyone, whatever they know",
                f"about a person, from all their rows (at most {guarantee.person.most_rows:,})",
                [guarantee.person.epsilon],
            )
        )
    shown = list(contents.protected())
    # One attribute without a bound is the least protected one, and must not be left out of a range.
    randomized = set(contents.randomized())
    ranged = [a for a in contents.mechanism.attributes if a.name in randomized]
    several = len(contents.mechanism.attributes) - len(contents.kept_attributes()) > 1
    if shown and several:
        rows += [
            _row(
                "Someone who sees one column of the release",
                "and nothing else of it that bears on the person, about that attribute",
                [a.epsilon for a in ranged],
            ),
            _row(
                "Someone who sees the whole released row and knows all the other true values",
                "of the person, about the remaining attribute",
                [a.epsilon_given_rest for a in ranged],
            ),
            _subset_row(shown, guarantee.epsilon),
        ]
    box = f'<div class="box">{table(columns, rows, style="who")}</div>'
    if not several:
        alone = paragraph("With one randomized attribute, all observers are in the same position.")
        return section("Who sees what", box, alone)
    return section(
        "Who sees what",
        box,
        paragraph(
            "Ranges run from the best to the least protected attribute; the columns after them are "
            "for the least protected.",
            "soft small",
        ),
        paragraph(
            "Someone who sees the whole released row, knows none of the other true values for "
            "certain, and reasons from how answers usually go together, is covered by the first "
            "line only."
        ),
    )


def _row(who: str, about: str, levels: Sequence[float | None]) -> Row:
    worst = largest(levels)
    return Row(
        f"<b>{escape(who)}</b> {escape(about)}",
        (
            _range(levels),
            wording.factor_text(worst),
            wording.posterior_text(_SUSPICION, worst),
        ),
    )


def _subset_row(shown: Sequence[AttributeStatement], epsilon: float | None) -> Row:
    # ε of a set of columns grows with the set: it is never below that of one of its columns, and
    # never above the record's.
    names = [a.name for a in shown if wording.fits_command(a.name)][:2]
    example = (
        f" {escape(', '.join(names))}, for example: <code>"
        f"{escape(wording.command('inspect', '--subset', names))}</code>"
        if len(names) == 2
        else ""
    )
    least = min((a.epsilon for a in shown if a.epsilon is not None), default=None)
    return Row(
        "<b>Someone who sees only some of the columns</b> about those columns: at least the "
        "largest ε of one of them seen alone, at most the record's."
        f'<span class="soft small">{example}</span>',
        (
            f"{wording.epsilon_text(least)} to {wording.epsilon_text(epsilon)}",
            wording.factor_text(epsilon),
            wording.posterior_text(_SUSPICION, epsilon),
        ),
    )


def _range(levels: Sequence[float | None]) -> str:
    bounded = [level for level in levels if level is not None]
    texts = [wording.epsilon_text(min(bounded))] if bounded else []
    texts.append(wording.epsilon_text(largest(levels)))
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
