"""test: are two attributes independent, asked of a randomized table."""

from typing import Annotated

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import (
    AsJson,
    Counts,
    ReleaseMechanism,
    ReleaseSource,
    ShowValues,
    Where,
)
from deniable.schema.names import split_names


@app.command(name="test")
def independence(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Two attributes, a,b; one may be a kept column.")],
    by: Annotated[
        str | None, Parameter(help="Kept columns; every group of rows is tested by itself.")
    ] = None,
    mechanism: ReleaseMechanism = None,
    counts: Counts = None,
    where: Where = None,
    level: Annotated[float, Parameter(help="Probability that the interval of V holds.")] = 0.95,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Test whether two attributes are independent (χ²), and how strongly they go together (V).

    The p-value is right under every randomization, also where the released
    table by itself misleads. It is about the population that the rows were
    drawn from.

    Example: deniable test release --of race,hhi
    """
    from deniable.cli import console, options
    from deniable.estimate.independence import Independence
    from deniable.estimate.source import open_release

    question = Independence(
        tuple(split_names(of)),
        by=tuple(split_names(by or "")),
        where=options.pairs(where or [], "--where"),
        level=level,
    )
    answers = question.ask(open_release(source, mechanism, counts, show_values=show_values))
    if as_json:
        print_json(question.to_plain(answers))
    else:
        console.show_answers(answers, level)
