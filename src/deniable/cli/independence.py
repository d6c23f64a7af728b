"""test: whether attributes are independent, go with a status, or are told alike by all forms."""

from typing import TYPE_CHECKING, Annotated, Any

from deniable.cli import groups
from deniable.cli.app import app
from deniable.cli.arguments import (
    ASKED,
    AnswerFile,
    AsJson,
    ForceFiles,
    Level,
    ReleaseSource,
    RowOptions,
    ShowValues,
)
from deniable.cli.estimating import comparison, print_answers, write_answers
from deniable.errors import InputError
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.estimate.question import Question


@app.command(name="test", group=groups.READING)
def independence(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[str | None, ASKED] = None,
    trend: Annotated[bool, ASKED] = False,
    all_pairs: Annotated[str | None, ASKED] = None,
    scores: Annotated[str | None, ASKED] = None,
    compare: Annotated[str | None, ASKED] = None,
    agreement: Annotated[bool, ASKED] = False,
    answered: Annotated[bool, ASKED] = False,
    by: Annotated[str | None, ASKED] = None,
    rows: RowOptions | None = None,
    level: Level = 0.95,
    output: AnswerFile = None,
    force: ForceFiles = False,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Test whether two attributes are independent (χ²), and how strongly they go together (V).

    The p-value is right under every randomization, also where the released
    table by itself misleads. It is about the population that the rows were
    drawn from. With --trend or --agreement another question is answered.

    Example: deniable test release --of race,hhi

    Args:
        of: Two attributes, a,b; one may be a kept column. With --trend the last is the status; with
            --agreement any.
        trend: Test instead whether scores, such as numbers of alleles, go with a status of two
            values (Cochran–Armitage).
        all_pairs: With --trend: this status against all attributes, with p-values adjusted for
            their number.
        scores: With --trend: one number per category, 0,1,2. Default: the schema's.
        compare: With --trend: the two values of the status, status=case,control.
        agreement: Test instead whether all forms tell of one population.
        answered: Only people who answered: whose true value is a declared missing category in
            neither attribute.
        by: Kept columns; every group of rows is tested by itself.
    """
    rows = rows or RowOptions()
    common: dict[str, Any] = {
        "by": tuple(split_names(by or "")),
        "where": rows.where,
        "level": level,
    }
    names = split_names(of or "")
    question: Question[Any]
    if trend and agreement:
        raise InputError("--trend and --agreement are two questions; ask one at a time")
    if answered and (trend or agreement):
        raise InputError("--answered is for the test of independence, without --trend, --agreement")
    if not trend and not (all_pairs is None and scores is None and compare is None):
        raise InputError("--all-pairs, --scores and --compare are for a trend; say --trend too")
    if trend:
        question = _trend(names, all_pairs, scores, compare, common)
    elif agreement:
        from deniable.estimate.agreement import Agreement

        question = Agreement(tuple(names), **common)
    elif not names:
        raise InputError("name the two attributes to test with --of a,b")
    else:
        from deniable.estimate.independence import Independence

        question = Independence(tuple(names), answered=answered, **common)
    with rows.open(source, show_values=show_values) as release:
        answers = print_answers(question, release, level, as_json)
    if output is not None:
        write_answers(answers, output, level, force=force)


def _trend(
    names: list[str],
    all_pairs: str | None,
    scores: str | None,
    compare: str | None,
    common: dict[str, Any],
) -> "Question[Any]":
    """Return the question of --trend."""
    from deniable.cli import options
    from deniable.estimate.trend import Trend

    if all_pairs is not None:
        if names:
            raise InputError("give either --of snp,status or --all-pairs status")
        names = [all_pairs]
    elif len(names) < 2:
        raise InputError("a trend is of an attribute with a status: --of snp,status")
    *tested, status = names
    compared = None
    if compare is not None:
        column, compared = comparison(compare)
        if column != status:
            raise InputError(f"--compare: the status is '{status}', not '{column}'")
    numbers = None if scores is None else options.numbers(scores, "--scores")
    return Trend(tuple(tested), **common, status=status, scores=numbers, compared=compared)
