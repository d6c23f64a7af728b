"""The command line. It parses arguments and calls what the Python interface calls."""

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
