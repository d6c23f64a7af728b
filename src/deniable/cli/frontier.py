"""frontier, frontier pick: privacy against accuracy of response matrices of one attribute."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from deniable.cli import console, groups
from deniable.cli.arguments import (
    SEARCH,
    SHARED,
    AsJson,
    FileOrStream,
    Force,
    SchemaPath,
    refuse_two_outputs,
    write_mechanism,
)
from deniable.cli.fields import Typed, from_fields
from deniable.errors import InputError
from deniable.frontier.methods import METHODS
from deniable.numerals import count_text, number_text
from deniable.schema.file_format import FileFormat
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.solvers.matrices.search import Options

frontier_app = App(name="frontier", group_commands=groups.COMMANDS)

_SHOWN_LEVELS = 10
"""The number of levels printed, evenly spread; the files have all of them."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PriorOptions:
    """Prior: shares of the categories.

    Args:
        prior: JSON list of shares, or object of shares by category, nested for the joint prior of
            several attributes; several files merge attributes taken as independent.
        column: Read the shares from a table, data.csv:age; data.csv:sex,age merges two columns,
            which are then randomized as one.
        distribution: normal,10 or uniform,10 or gamma,10, also with its shape, gamma,10,2.5.
    """

    prior: Annotated[list[Path] | None, SHARED] = None
    column: Annotated[str | None, SHARED] = None
    distribution: Annotated[str | None, SHARED] = None
    schema: SchemaPath = None

    def read(self, file: Typed[FileFormat]) -> Any:
        """Return the prior."""
        from deniable.frontier import priors
        from deniable.schema import Schema

        given = (self.prior or None, self.column, self.distribution)
        if sum(option is not None for option in given) != 1:
            raise InputError(
                "give one prior: --prior FILE, --column data.csv:age or --distribution normal,10"
            )
        if self.column is not None:
            schema = None if self.schema is None else Schema.from_toml(self.schema)
            return priors.from_column(self.column, schema, file.read())
        if self.schema is not None:
            raise InputError("--schema declares the categories of --column; give --column too")
        if file:
            raise InputError("CSV options describe the file of --column; give --column too")
        if self.distribution is not None:
            return priors.from_distribution(self.distribution)
        return priors.outer([priors.from_file(file) for file in self.prior or []])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LevelOptions:
    """Levels of privacy of the matrices.

    Args:
        privacy: Levels of privacy, 0.3,0.4: how often the best guess of an answer is wrong.
        epsilon_ldp: Levels of ε-local differential privacy in nats instead, 0.5,1.
    """

    privacy: Annotated[str | None, SHARED] = None
    epsilon_ldp: Annotated[str | None, SHARED, Parameter(name="--epsilon-ldp")] = None

    def read(self) -> tuple[float, ...] | None:
        """Return the levels; None for the default ones."""
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
    """Parameters of the searches for matrices.

    Args:
        starts: Starts of the search for square matrices.
        generations: Generations of the search, at most.
        stall: Stop the search after this number of generations without a gain.
        population: Population of the search.
        archive: Archive of the search.
        optimal_set: Number of levels of privacy that the search distinguishes.
        crossover: Rate of crossover of the search.
        mutation: Rate of mutation of the search.
        seed: Of the searches; same seed, same frontier.
    """

    starts: Annotated[int, SEARCH] = 20
    generations: Annotated[int, SEARCH] = 20_000
    stall: Annotated[int | None, SEARCH] = None
    population: Annotated[int, SEARCH] = 100
    archive: Annotated[int, SEARCH] = 100
    optimal_set: Annotated[int, SEARCH] = 1000
    crossover: Annotated[float, SEARCH] = 1.0
    mutation: Annotated[float, SEARCH] = 1.0
    seed: Annotated[int, SEARCH] = 0

    def read(self) -> "Options":
        """Return the options of the evolutionary search."""
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
@from_fields
def frontier(
    *,
    prior: PriorOptions | None = None,
    file: Typed[FileFormat],
    delta: Annotated[float | None, SHARED] = None,
    levels: LevelOptions | None = None,
    methods: Annotated[
        str, SHARED, Parameter(help=f"Some of {','.join(METHODS)}.")
    ] = "warner,square,bound",
    records: Annotated[int, SHARED] = 10_000,
    search: SearchOptions | None = None,
    output: Annotated[Path, SHARED],
    force: Annotated[bool, SHARED] = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods for one attribute, and draw the bound that no mechanism can cross.

    Args:
        delta: Largest posterior probability of a category given an answer.
        records: Number of records N that errors are for.
        output: Folder to make.
        force: Replace an existing folder.
    """
    from deniable.frontier import folder
    from deniable.frontier.tracing import Request, trace

    folder.check_output(output, overwrite=force)
    levels = levels or LevelOptions()
    search = search or SearchOptions()
    values = levels.read()
    request = Request(
        (prior or PriorOptions()).read(file),
        values,
        levels.epsilon_ldp is not None,
        delta,
        tuple(split_names(methods)),
        records,
        search.starts,
        search.read(),
        search.seed,
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
        console.say(f"… {count_text(left_out, 'more level')} in {output / 'frontier.csv'}")
    console.say(
        f"{output / 'frontier.html'} has the plot and all points; frontier pick {output} picks one"
    )


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
                "above " * (row["mse"] is None) + number_text(row["mse"] or row["lower_bound"], 5),
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
    source: Annotated[Path, Parameter(name="FOLDER")],
    /,
    *,
    privacy: Annotated[float | None, SHARED] = None,
    epsilon_ldp: Annotated[float | None, SHARED, Parameter(name="--epsilon-ldp")] = None,
    method: str | None = None,
    name: str | None = None,
    schema: SchemaPath = None,
    output: Annotated[FileOrStream, SHARED],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Take one point of a frontier as a mechanism, after checking its matrix and its proof.

    Example: deniable frontier pick frontier --privacy 0.5 --output picked.json

    Args:
        source: A folder made by frontier.
        privacy: Least privacy of the mechanism.
        epsilon_ldp: Largest ε, if the levels are ε.
        method: Only matrices of this method.
        name: Column of the mechanism; of merged columns all, as in a,b.
        output: Mechanism file to write; - for standard output, without other output.
    """
    from deniable.frontier.picking import pick as picked
    from deniable.schema import Schema
    from deniable.statement import record

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
