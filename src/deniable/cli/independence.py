"""test: whether two attributes are independent, from a randomized table."""

from typing import Annotated

from cyclopts import Parameter

from deniable.cli import groups
from deniable.cli.app import app
from deniable.cli.arguments import AsJson, ReleaseSource, RowOptions, ShowValues
from deniable.cli.estimating import print_answers
from deniable.schema.names import split_names


@app.command(name="test", group=groups.READING)
def independence(
    source: ReleaseSource = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Two attributes, a,b; one may be a kept column.")],
    by: Annotated[
        str | None, Parameter(help="Kept columns; every group of rows is tested by itself.")
    ] = None,
    rows: RowOptions | None = None,
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
    from deniable.estimate.independence import Independence

    rows = rows or RowOptions()
    question = Independence(
        tuple(split_names(of)),
        by=tuple(split_names(by or "")),
        where=rows.selected(),
        level=level,
    )
    with rows.open(source, show_values=show_values) as release:
        print_answers(question, release, level, as_json)
