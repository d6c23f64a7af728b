"""Who is asked what: the forms of a release, as a questionnaire would show them."""

from deniable.report import wording
from deniable.report.contents import Contents
from deniable.report.markup import Row, escape, paragraph, section, table

LISTED = 40
"""Most forms in the table; the codebook lists all."""

_COLUMNS = [("Form", "and what it asks"), ("People who get it", "")]


def who_is_asked(contents: Contents) -> str:
    """Return the section, or nothing if every row answers everything."""
    content = contents.forms()
    if content is None:
        return ""
    asked = [a for a in contents.mechanism.attributes if a.asked is not None]
    rows = [
        Row(f"<b>{number}</b> {escape(', '.join(form.asked))}", (wording.percent_text(form.share),))
        for number, form in enumerate(content.forms[:LISTED], start=1)
    ]
    more = len(content.forms) - len(rows)
    example = ""
    if asked:
        least = min(asked, key=lambda a: a.asked or 0.0)
        example = (
            f" Of {least.name}, for example: {wording.percent_text(least.asked or 0.0)} of people "
            f"are asked, at up to {wording.epsilon_text(least.epsilon_given_rest)}; of the others "
            "nothing is left."
        )
    return section(
        "Who is asked what",
        paragraph(
            f"Different people were asked different questions: every row has one of "
            f"{wording.count_text(len(content.forms), 'form', 'forms')}, drawn without looking at "
            f"the record and released with it, in the column {content.column}. What a form does "
            "not ask is an empty cell, which tells nothing."
        ),
        paragraph(
            "All that is promised holds for the form that is least favourable: whoever is asked "
            f"one question alone spends all of the row's ε on it.{example}"
        ),
        f'<div class="box">{table(_COLUMNS, rows, style="who")}</div>',
        paragraph(f"and {more:,} more, in codebook.csv." if more else ""),
    )
