"""The command line. It parses arguments and calls what the Python interface calls."""

import shlex
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from deniable.errors import InputError

app = App(
    name="deniable",
    help="Share or collect sensitive records about people, with plausible deniability for each.",
    version=lambda: f"deniable {version('deniable')}",
    help_format="plaintext",
)
schema_app = App(name="schema", help="Work with schema files.")
app.command(schema_app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the process ends with status 0, or 2 after one sentence on stderr."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app(
            sys.argv[1:] if arguments is None else list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except InputError as error:
        _stop(str(error))
    except CycloptsError as error:
        _stop(f"{_one_line(str(error))} (deniable --help shows how)")
    except BrokenPipeError:
        # Whoever read our output has gone, as in "deniable … | head": not an error of ours.
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        _stop("interrupted; nothing was left half-written", status=130)


def _terminate(number: int, _frame: object) -> None:
    # As an exception, so that what was half-written is removed on the way out.
    raise SystemExit(128 + number)


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _stop(sentence: str, status: int = 2) -> None:
    print(f"deniable: {sentence}", file=sys.stderr)
    sys.exit(status)


# Options that several commands share.
SchemaPath = Annotated[Path | None, Parameter(help="Schema file (TOML).")]
Epsilon = Annotated[
    float | None, Parameter(help="Total for the whole record, in nats, divided by the method.")
]
AttributeEpsilon = Annotated[
    str | None,
    Parameter(help="Level per attribute, in nats: 1,2,1.5 or name=1,other=2 or @file."),
]
MethodName = Annotated[
    str | None, Parameter(help="lp, kronecker, closed-form or heuristic; chosen if left out.")
]
GivenRestCap = Annotated[
    str | None,
    Parameter(
        help="Cap on ε against someone who knows the rest of the record: 2x, nats, or per "
        "attribute (method lp)."
    ),
]
HeuristicOrder = Annotated[
    str, Parameter(help="Order in which the heuristic takes attributes: given or descending.")
]
AllowChanged = Annotated[
    bool, Parameter(negative=(), help="Accept a law that misses requested levels; they are listed.")
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for scripts.")]
Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Replace an existing output. Releases of the same people add up: an old copy that "
        "someone has still counts.",
    ),
]


@app.command
def design(
    *,
    schema: SchemaPath = None,
    categories: Annotated[
        str | None, Parameter(help="Numbers of categories, 5,5,3, when there is no schema yet.")
    ] = None,
    epsilon: Epsilon = None,
    attribute_epsilon: AttributeEpsilon = None,
    method: MethodName = None,
    given_rest: GivenRestCap = None,
    order: HeuristicOrder = "given",
    allow_changed_levels: AllowChanged = False,
    output: Annotated[Path | None, Parameter(help="Where to write the mechanism.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find a mechanism. Needs no data.

    Example: deniable design --categories 5,5,3 --attribute-epsilon 1,2,1.5 --method lp
    """
    from deniable import console, options, record
    from deniable.outputs import write_file
    from deniable.schema import Schema

    if (schema is None) == (categories is None):
        raise InputError("give either --schema FILE or --categories 5,5,3")
    chosen = (
        Schema.from_toml(schema)
        if schema is not None
        else Schema.anonymous(options.whole_numbers(categories or "", "--categories"))
    )
    result = _design(
        chosen, epsilon, attribute_epsilon, method, given_rest, order, allow_changed_levels
    )
    statements = record.design_to_plain(result)
    if output is not None:
        write_file(output, record.to_json(record.mechanism_to_plain(result)), overwrite=force)
    if as_json:
        _print_json(statements)
        return
    console.show_design(statements)
    if output is not None:
        console.note(f"The mechanism is in {output}")


def _design(
    schema: Any,
    epsilon: float | None,
    attribute_epsilon: str | None,
    method: str | None,
    given_rest: str | None,
    order: str,
    allow_changed_levels: bool,
) -> Any:
    from deniable import console, options
    from deniable.design import default_method
    from deniable.design import design as find

    if order not in ("given", "descending"):
        raise InputError(f"--order is given or descending, not '{order}'")
    names = [schema.names[i] for i in schema.protected]
    if method is None:
        console.note(
            f"Method {default_method(len(names))} (for {len(names)} protected attributes; "
            "--method chooses another)"
        )
    levels = (
        None
        if attribute_epsilon is None
        else options.numbers_per_attribute(attribute_epsilon, names, "--attribute-epsilon")
    )
    return find(
        schema,
        epsilon=epsilon,
        attribute_epsilon=levels,
        method=method,  # type: ignore[arg-type]  # design() checks it
        given_rest=None if given_rest is None else options.caps(given_rest, names),
        order=order,  # type: ignore[arg-type]  # checked above
        allow_changed_levels=allow_changed_levels,
    )


def _print_json(plain: Any) -> None:
    from deniable.record import to_json

    sys.stdout.write(to_json(plain).decode())


def _bits(insecure_seed: int | None) -> Any:
    from deniable import console
    from deniable.randomness import SeededRandomness, SystemRandomness

    if insecure_seed is None:
        return SystemRandomness()
    console.note(
        "NOT PRIVATE: the randomness comes from a seed; whoever knows it can undo the release"
    )
    return SeededRandomness(insecure_seed)


_INPUT = "A .csv, .csv.gz or .parquet table, or - for CSV on standard input."
DropOthers = Annotated[
    bool,
    Parameter(negative=(), help="Leave out columns that the schema neither declares nor keeps."),
]
ShowValues = Annotated[
    bool, Parameter(negative=(), help="Let error messages show the offending (sensitive) value.")
]
InsecureSeed = Annotated[
    int | None,
    Parameter(help="NOT PRIVATE. Repeatable randomness for tests; the record says so."),
]


@app.command
def share(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True, help=_INPUT)],
    /,
    *,
    schema: Annotated[Path, Parameter(help="Schema file (TOML).")],
    output: Annotated[Path, Parameter(help="Folder to make.")],
    epsilon: Epsilon = None,
    attribute_epsilon: AttributeEpsilon = None,
    method: MethodName = None,
    given_rest: GivenRestCap = None,
    order: HeuristicOrder = "given",
    allow_changed_levels: AllowChanged = False,
    shuffle: Annotated[
        bool,
        Parameter(
            negative=(), help="Release the rows in random order; the table is held in memory."
        ),
    ] = False,
    person: Annotated[
        str | None,
        Parameter(help="Column that says whose row it is: dropped, and ε is given per person."),
    ] = None,
    drop_other_columns: DropOthers = False,
    force: Force = False,
    show_values: ShowValues = False,
    insecure_seed: InsecureSeed = None,
    as_json: AsJson = False,
) -> None:
    """Randomize a table and write a folder to publish: rows, record, codebook, report.

    Example: deniable share insurance.csv --schema insurance.toml --epsilon 4 --output release
    """
    from deniable import console, release
    from deniable.outputs import refuse_existing
    from deniable.schema import Schema

    refuse_existing(output, overwrite=force)
    chosen = Schema.from_toml(schema)
    result = _design(
        chosen, epsilon, attribute_epsilon, method, given_rest, order, allow_changed_levels
    )
    if force and output.exists():
        console.note(
            f"Replacing {output}: releases of the same people add up, and a copy of the old one "
            "that someone has still counts"
        )
    options = release.Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=force,
        show_values=show_values,
        command=_repeatable(source, schema, output),
    )
    with console.progress("Randomizing") as advance:
        record = release.share(source, result, output, options, _bits(insecure_seed), advance)
    if as_json:
        _print_json(record)
        return
    console.show_design(record["mechanism"])
    console.say(record["guarantee"]["sentence"])
    console.say(f"Read {output / 'report.html'} before you publish {output}")


def _repeatable(source: str, schema: Path, output: Path) -> str:
    """Return the command line as typed, with the names of files instead of their paths."""
    names = {source: Path(source).name, str(schema): schema.name, str(output): output.name}
    words = [names.get(word, word) for word in sys.argv[1:]]
    return shlex.join(["deniable", *words])


@app.command
def randomize(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True, help=_INPUT)],
    /,
    *,
    mechanism: Annotated[Path, Parameter(help="mechanism.json, record.json, or its folder.")],
    output: Annotated[
        str,
        Parameter(allow_leading_hyphen=True, help="Output table, or - for CSV on standard output."),
    ] = "-",
    drop_other_columns: DropOthers = False,
    force: Force = False,
    show_values: ShowValues = False,
    insecure_seed: InsecureSeed = None,
) -> None:
    """Randomize a table, or a single row, with a mechanism. Streams.

    Example: deniable randomize insurance.csv --mechanism mechanism.json --output out.csv
    """
    from deniable import console, record, release

    design = record.read_design(mechanism)
    with console.progress("Randomizing") as advance:
        release.randomize_table(
            source,
            design.mechanism,
            output,
            release.Options(
                drop_other_columns=drop_other_columns, overwrite=force, show_values=show_values
            ),
            _bits(insecure_seed),
            advance,
        )


@app.command
def estimate(
    source: Annotated[
        str | None,
        Parameter(
            name="RELEASE",
            allow_leading_hyphen=True,
            help="A folder made by share, or a randomized table.",
        ),
    ] = None,
    /,
    *,
    of: Annotated[str, Parameter(help="Attributes of the table to estimate: a or a,b.")],
    by: Annotated[
        str | None, Parameter(help="Attributes or kept columns that form subgroups.")
    ] = None,
    mechanism: Annotated[
        Path | None, Parameter(help="The mechanism, if RELEASE is a table or there are counts.")
    ] = None,
    counts: Annotated[
        Path | None, Parameter(help="A table of counts (column count) instead of rows.")
    ] = None,
    where: Annotated[
        list[str] | None,
        Parameter(
            negative=(), help="Only rows with column=value; kept columns only; may be repeated."
        ),
    ] = None,
    weights: Annotated[str | None, Parameter(help="Kept column with a weight per row.")] = None,
    mean: Annotated[bool, Parameter(negative=(), help="Estimate the mean score instead.")] = False,
    quantile: Annotated[
        float | None, Parameter(help="Estimate a quantile instead: 0.5 is the median.")
    ] = None,
    scores: Annotated[
        str | None, Parameter(help="One number per category, for --mean; default: bin middles.")
    ] = None,
    method: Annotated[str, Parameter(help="inversion, em or projected.")] = "inversion",
    target: Annotated[
        str,
        Parameter(help="table: the truth of this table; population: of what it was drawn from."),
    ] = "table",
    level: Annotated[float, Parameter(help="Probability that an interval holds.")] = 0.95,
    show_values: ShowValues = False,
    as_json: AsJson = False,
) -> None:
    """Recover a marginal, a joint table, a mean or a quantile, with error bars.

    Example: deniable estimate release --of race,hhi
    """
    from deniable import analysis, console, options

    question = analysis.Question(
        of=tuple(options.split_names(of)),
        by=tuple(options.split_names(by or "")),
        where=options.pairs(where or [], "--where"),
        weights=weights,
        method=method,
        target=target,
        level=level,
        mean=mean,
        quantile=quantile,
        scores=None if scores is None else options.numbers(scores, "--scores"),
        show_values=show_values,
    )
    answers = analysis.answer(question, source, mechanism, counts)
    if as_json:
        _print_json(analysis.to_plain(answers, level))
    else:
        console.show_answers(answers, level)


@app.command
def inspect(
    source: Annotated[
        Path, Parameter(name="MECHANISM", help="mechanism.json, record.json, or its folder.")
    ],
    /,
    *,
    subset: Annotated[
        str | None, Parameter(help="Also ε against someone who sees only these columns: a,b.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every number from the law, and check what the file states.

    Example: deniable inspect mechanism.json --subset a1,a2
    """
    from deniable import console, options, record
    from deniable.release_record import verify

    design = record.read_design(source)
    verify(source)
    statements = {**record.design_to_plain(design), "verified": True}
    if subset is not None:
        names = options.split_names(subset)
        statements["subset"] = names
        statements["subset_epsilon"] = record.finite_or_none(design.mechanism.subset_epsilon(names))
    if as_json:
        _print_json(statements)
        return
    console.show_design(statements)
    if subset is not None:
        console.say(
            f"ε against someone who sees only {', '.join(statements['subset'])}: "
            f"{statements['subset_epsilon']:.6g}"
        )
    console.say("Verified: every number was recomputed from the law and agrees with the file.")


@schema_app.command
def init(
    source: Annotated[str, Parameter(name="TABLE", allow_leading_hyphen=True, help=_INPUT)],
    /,
    *,
    output: Annotated[
        str,
        Parameter(allow_leading_hyphen=True, help="Schema file to write, or - for the screen."),
    ] = "-",
    force: Annotated[bool, Parameter(negative=(), help="Replace an existing file.")] = False,
) -> None:
    """Draft a schema from a table, to be replaced by the public codebook.

    Example: deniable schema init insurance.csv --output draft.toml
    """
    from deniable import console
    from deniable.drafting import WARNING, draft_schema
    from deniable.outputs import write_file

    text = draft_schema(source)
    if output == "-":
        sys.stdout.write(text)
    else:
        write_file(Path(output), text.encode(), overwrite=force)
    console.note(WARNING)
