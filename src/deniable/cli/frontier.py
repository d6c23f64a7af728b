"""frontier, frontier pick: how private and how accurate one attribute's matrix can be."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import AsJson, Force, SchemaPath
from deniable.errors import InputError
from deniable.frontier.methods import METHODS
from deniable.schema.names import split_names

frontier_app = App(
    name="frontier",
    help="Trade privacy against accuracy for one attribute, beside what is possible.\n\n"
    "Example: deniable frontier --distribution normal,10 \\\n--delta 0.75 --output frontier",
)
app.command(frontier_app)

_SHOWN_LEVELS = 10
"""So many levels, evenly spread, are printed; the files have them all."""

Levels = Annotated[
    str | None,
    Parameter(help="Levels of privacy, 0.3,0.4: how often the best guess of an answer is wrong."),
]
LocalLevels = Annotated[
    str | None,
    Parameter(
        name="--epsilon-ldp", help="Levels of ε-local differential privacy in nats instead, 0.5,1."
    ),
]


@frontier_app.default
def frontier(
    *,
    prior: Annotated[
        list[Path] | None,
        Parameter(
            negative=(),
            help="JSON list of shares, or object of shares by category; several files merge "
            "attributes taken as independent.",
        ),
    ] = None,
    column: Annotated[
        str | None,
        Parameter(
            help="Read the shares from a table, data.csv:age; data.csv:sex,age merges two columns, "
            "which are then randomized as one."
        ),
    ] = None,
    distribution: Annotated[
        str | None, Parameter(help="normal,10 or gamma,10 or uniform,10.")
    ] = None,
    schema: SchemaPath = None,
    delta: Annotated[
        float | None,
        Parameter(help="Worst posterior: no answer may make anyone surer than that."),
    ] = None,
    privacy: Levels = None,
    epsilon_ldp: LocalLevels = None,
    methods: Annotated[
        str,
        Parameter(help=f"Some of {','.join(METHODS)}."),
    ] = "warner,square,bound",
    records: Annotated[int, Parameter(help="Number of records N that errors are for.")] = 10_000,
    simulations: Annotated[
        int, Parameter(help="Also try the iterative estimate on so many simulated tables.")
    ] = 0,
    starts: Annotated[int, Parameter(help="Starts of the search for square matrices.")] = 20,
    generations: Annotated[int, Parameter(help="Generations of the search, at most.")] = 20_000,
    stall: Annotated[
        int | None, Parameter(help="Stop the search after so many generations without a gain.")
    ] = None,
    population: Annotated[int, Parameter(help="Population of the search.")] = 100,
    archive: Annotated[int, Parameter(help="Archive of the search.")] = 100,
    optimal_set: Annotated[
        int, Parameter(help="Levels of privacy that the search tells apart.")
    ] = 1000,
    crossover: Annotated[float, Parameter(help="Rate of crossover of the search.")] = 1.0,
    mutation: Annotated[float, Parameter(help="Rate of mutation of the search.")] = 1.0,
    seed: Annotated[int, Parameter(help="Of the searches; same seed, same frontier.")] = 0,
    output: Annotated[Path, Parameter(help="Folder to make.")],
    force: Annotated[bool, Parameter(negative=(), help="Replace an existing folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods for one attribute, and draw the bound that no mechanism can cross."""
    from deniable.cli import console, options
    from deniable.frontier import folder
    from deniable.frontier.tracing import Request, trace
    from deniable.solvers.matrices.search import Options

    folder.check_output(output, overwrite=force)
    if privacy is not None and epsilon_ldp is not None:
        raise InputError("give either --privacy or --epsilon-ldp: one is the axis of the frontier")
    levels = None
    if privacy is not None:
        levels = tuple(options.numbers(privacy, "--privacy"))
    elif epsilon_ldp is not None:
        levels = tuple(options.numbers(epsilon_ldp, "--epsilon-ldp"))
    request = Request(
        _prior(prior, column, distribution, schema),
        levels,
        epsilon_ldp is not None,
        delta,
        tuple(split_names(methods)),
        records,
        starts,
        Options(
            population_size=population,
            archive_size=archive,
            optimal_set_size=optimal_set,
            crossover_rate=crossover,
            mutation_rate=mutation,
            max_generations=generations,
            max_stall=stall,
        ),
        seed,
        simulations,
    )
    with console.progress("Tracing the frontier") as advance:
        found = trace(request, advance)
    folder.write(output, found, overwrite=force)
    for note in found.notes:
        console.note(note)
    rows = [folder.row_to_plain(row) for row in found.rows]
    if as_json:
        print_json(rows)
        return
    _show(rows, request.local)
    if (left_out := len({row["level"] for row in rows}) - _SHOWN_LEVELS) > 0:
        console.say(f"… {left_out} more levels in {output / 'frontier.csv'}")
    console.say(f"{output / 'frontier.png'} is the plot; frontier pick {output} picks a point")


def _prior(
    files: list[Path] | None, column: str | None, distribution: str | None, schema: Path | None
) -> Any:
    from deniable.frontier import priors
    from deniable.schema import Schema

    if sum(given is not None for given in (files or None, column, distribution)) != 1:
        raise InputError(
            "give one prior: --prior FILE, --column data.csv:age or --distribution normal,10"
        )
    if column is not None:
        return priors.from_column(column, None if schema is None else Schema.from_toml(schema))
    if schema is not None:
        raise InputError("--schema declares the categories of --column, and there is none")
    if distribution is not None:
        return priors.from_distribution(distribution)
    return priors.outer([priors.from_file(file) for file in files or []])


def _show(rows: list[dict[str, Any]], local: bool) -> None:
    from deniable.cli import console

    levels = sorted({row["level"] for row in rows})
    if len(levels) > _SHOWN_LEVELS:
        step = (len(levels) - 1) / (_SHOWN_LEVELS - 1)
        levels = [levels[round(j * step)] for j in range(_SHOWN_LEVELS)]
    rows = [row for row in rows if row["level"] in levels]

    def text(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    console.show_table(
        ["method", "ε asked" if local else "privacy asked", "privacy", "mean squared error",
         "over the bound", "worst posterior", "ε", "answers"],
        [
            [
                row["method"],
                f"{row['level']:.4f}",
                text(row["privacy"], ".4f"),
                text(row["mse"], ".4e") or f"above {row['lower_bound']:.4e}",
                text(row["ratio"], ".3f"),
                text(row["worst_posterior"], ".4f"),
                text(row["epsilon"], ".4f") or ("unbounded" if row["mse"] is not None else ""),
                text(row["outputs"], "d"),
            ]
            for row in rows
        ],
    )  # fmt: skip


@frontier_app.command
def pick(
    source: Annotated[Path, Parameter(name="FOLDER", help="A folder made by frontier.")],
    /,
    *,
    privacy: Annotated[float | None, Parameter(help="Least privacy of the mechanism.")] = None,
    epsilon_ldp: Annotated[
        float | None, Parameter(name="--epsilon-ldp", help="Largest ε, if the levels are ε.")
    ] = None,
    method: Annotated[str | None, Parameter(help="Only matrices of this method.")] = None,
    name: Annotated[
        str | None,
        Parameter(help="The column that it is for; of merged columns all, as in a,b."),
    ] = None,
    schema: SchemaPath = None,
    output: Annotated[Path, Parameter(help="Where to write the mechanism.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Take one point of a frontier as a mechanism, after checking its matrix and its proof.

    Example: deniable frontier pick frontier --privacy 0.5 --output picked.json
    """
    from deniable.cli import console
    from deniable.design import record
    from deniable.frontier.picking import pick as take
    from deniable.outputs import write_file
    from deniable.schema import Schema

    design, sentence = take(
        source,
        privacy=privacy,
        epsilon=epsilon_ldp,
        method=method,
        name=name,
        schema=None if schema is None else Schema.from_toml(schema),
    )
    write_file(output, record.to_json(record.mechanism_to_plain(design)), overwrite=force)
    statements = record.design_to_plain(design)
    if as_json:
        print_json({**statements, "choice": sentence})
        return
    console.say(sentence)
    console.show_design(statements)
    console.note(f"The mechanism is in {output}")
