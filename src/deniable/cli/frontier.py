"""frontier, frontier pick: how private and how accurate one attribute's matrix can be."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from deniable.cli import console
from deniable.cli.app import app
from deniable.cli.arguments import (
    AsJson,
    FileOptions,
    FileOrStream,
    Force,
    SchemaPath,
    refuse_two_outputs,
    write_mechanism,
)
from deniable.errors import InputError
from deniable.frontier.methods import METHODS
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.solvers.matrices.search import Options

frontier_app = App(
    name="frontier",
    help="Trade privacy against accuracy for one attribute, beside what is possible.\n\n"
    "Example: deniable frontier --distribution normal,10 \\\n--delta 0.75 --output frontier",
)
app.command(frontier_app)

_SHOWN_LEVELS = 10
"""The number of levels printed, evenly spread; the files have all of them."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PriorOptions(FileOptions):
    """Where the shares of the categories come from."""

    prior: Annotated[
        list[Path] | None,
        Parameter(
            negative=(),
            help="JSON list of shares, or object of shares by category; several files merge "
            "attributes taken as independent.",
        ),
    ] = None
    column: Annotated[
        str | None,
        Parameter(
            help="Read the shares from a table, data.csv:age; data.csv:sex,age merges two columns, "
            "which are then randomized as one."
        ),
    ] = None
    distribution: Annotated[str | None, Parameter(help="normal,10 or gamma,10 or uniform,10.")] = (
        None
    )
    schema: SchemaPath = None

    def read(self) -> Any:
        """Return the prior.

        Raises:
            InputError: if none is given, or several, or it cannot be read.
        """
        from deniable.frontier import priors
        from deniable.schema import FileFormat, Schema

        file_format = self.file_format()

        given = (self.prior or None, self.column, self.distribution)
        if sum(option is not None for option in given) != 1:
            raise InputError(
                "give one prior: --prior FILE, --column data.csv:age or --distribution normal,10"
            )
        if self.column is not None:
            schema = None if self.schema is None else Schema.from_toml(self.schema)
            return priors.from_column(self.column, schema, file_format)
        if self.schema is not None:
            raise InputError("--schema declares the categories of --column, and there is none")
        if file_format != FileFormat():
            raise InputError("how a file holds its table is asked of --column, and there is none")
        if self.distribution is not None:
            return priors.from_distribution(self.distribution)
        return priors.outer([priors.from_file(file) for file in self.prior or []])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LevelOptions:
    """The levels of privacy at which matrices are sought."""

    privacy: Annotated[
        str | None,
        Parameter(
            help="Levels of privacy, 0.3,0.4: how often the best guess of an answer is wrong."
        ),
    ] = None
    epsilon_ldp: Annotated[
        str | None,
        Parameter(
            name="--epsilon-ldp",
            help="Levels of ε-local differential privacy in nats instead, 0.5,1.",
        ),
    ] = None

    def read(self) -> tuple[float, ...] | None:
        """Return the levels; None to have them chosen.

        Raises:
            InputError: if both kinds are given, or one is not a list of numbers.
        """
        from deniable.cli import options

        if self.privacy is not None and self.epsilon_ldp is not None:
            raise InputError(
                "give either --privacy or --epsilon-ldp: one is the axis of the frontier"
            )
        if self.privacy is not None:
            return tuple(options.numbers(self.privacy, "--privacy"))
        if self.epsilon_ldp is not None:
            return tuple(options.numbers(self.epsilon_ldp, "--epsilon-ldp"))
        return None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How long and how widely the search for matrices goes on."""

    starts: Annotated[int, Parameter(help="Starts of the search for square matrices.")] = 20
    generations: Annotated[int, Parameter(help="Generations of the search, at most.")] = 20_000
    stall: Annotated[
        int | None, Parameter(help="Stop the search after so many generations without a gain.")
    ] = None
    population: Annotated[int, Parameter(help="Population of the search.")] = 100
    archive: Annotated[int, Parameter(help="Archive of the search.")] = 100
    optimal_set: Annotated[
        int, Parameter(help="Levels of privacy that the search tells apart.")
    ] = 1000
    crossover: Annotated[float, Parameter(help="Rate of crossover of the search.")] = 1.0
    mutation: Annotated[float, Parameter(help="Rate of mutation of the search.")] = 1.0
    seed: Annotated[int, Parameter(help="Of the searches; same seed, same frontier.")] = 0

    def read(self) -> "Options":
        """Return what the search is told, less the starts and the seed."""
        from deniable.solvers.matrices.search import Options

        return Options(
            population_size=self.population,
            archive_size=self.archive,
            optimal_set_size=self.optimal_set,
            crossover_rate=self.crossover,
            mutation_rate=self.mutation,
            max_generations=self.generations,
            max_stall=self.stall,
        )


@frontier_app.default
def frontier(
    *,
    prior: PriorOptions | None = None,
    delta: Annotated[
        float | None,
        Parameter(help="Worst posterior: no answer may make anyone surer than that."),
    ] = None,
    levels: LevelOptions | None = None,
    methods: Annotated[
        str,
        Parameter(help=f"Some of {','.join(METHODS)}."),
    ] = "warner,square,bound",
    records: Annotated[int, Parameter(help="Number of records N that errors are for.")] = 10_000,
    simulations: Annotated[
        int, Parameter(help="Also try the iterative estimate on so many simulated tables.")
    ] = 0,
    search: SearchOptions | None = None,
    output: Annotated[Path, Parameter(help="Folder to make.")],
    force: Annotated[bool, Parameter(negative=(), help="Replace an existing folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods for one attribute, and draw the bound that no mechanism can cross."""
    from deniable.frontier import folder
    from deniable.frontier.tracing import Request, trace

    folder.check_output(output, overwrite=force)
    levels = levels or LevelOptions()
    search = search or SearchOptions()
    values = levels.read()
    request = Request(
        (prior or PriorOptions()).read(),
        values,
        levels.epsilon_ldp is not None,
        delta,
        tuple(split_names(methods)),
        records,
        search.starts,
        search.read(),
        search.seed,
        simulations,
    )
    with console.progress("Tracing the frontier") as advance:
        traced = trace(request, advance)
    folder.write(output, traced, overwrite=force)
    for note in traced.notes:
        console.note(note)
    rows = [folder.row_to_plain(row) for row in traced.rows]
    if as_json:
        console.print_json(rows)
        return
    _show(rows, request.local)
    if (left_out := len({row["level"] for row in rows}) - _SHOWN_LEVELS) > 0:
        console.say(f"… {left_out} more levels in {output / 'frontier.csv'}")
    console.say(f"{output / 'frontier.png'} is the plot; frontier pick {output} picks a point")


def _show(rows: list[dict[str, Any]], local: bool) -> None:
    levels = sorted({row["level"] for row in rows})
    if len(levels) > _SHOWN_LEVELS:
        step = (len(levels) - 1) / (_SHOWN_LEVELS - 1)
        levels = [levels[round(j * step)] for j in range(_SHOWN_LEVELS)]
    rows = [row for row in rows if row["level"] in levels]

    def text(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    console.show_table(
        ["method", "ε requested" if local else "privacy requested", "privacy", "mean squared error",
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
    output: Annotated[
        FileOrStream,
        Parameter(help="Where to write the mechanism; with -, nothing else is on standard output."),
    ],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Take one point of a frontier as a mechanism, after checking its matrix and its proof.

    Example: deniable frontier pick frontier --privacy 0.5 --output picked.json
    """
    from deniable.design import record
    from deniable.frontier.picking import pick as picked
    from deniable.schema import Schema

    refuse_two_outputs(output, as_json)

    design, sentence = picked(
        source,
        privacy=privacy,
        epsilon=epsilon_ldp,
        method=method,
        name=name,
        schema=None if schema is None else Schema.from_toml(schema),
    )
    write_mechanism(design, output, force=force)
    if output == "-":
        console.note(sentence)
        return
    statements = record.design_to_plain(design)
    if as_json:
        console.print_json({**statements, "choice": sentence})
        return
    console.say(sentence)
    console.show_design(statements)
    console.note(f"The mechanism is in {output}")
