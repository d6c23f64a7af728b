"""design, inspect, schema init: what needs no table, or makes none."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from deniable.cli.app import app, print_json, schema_app
from deniable.cli.arguments import INPUT, AsJson, Curve, DesignOptions, Force, SchemaPath
from deniable.cli.responses import split_responses
from deniable.errors import InputError
from deniable.schema.names import split_names


@app.command
def design(
    *,
    schema: SchemaPath = None,
    categories: Annotated[
        str | None, Parameter(help="Numbers of categories, 5,5,3, when there is no schema yet.")
    ] = None,
    request: DesignOptions | None = None,
    curve: Curve = False,
    output: Annotated[Path | None, Parameter(help="Where to write the mechanism.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find a mechanism. Needs no data.

    Example: deniable design --categories 5,5,3 --epsilon 4 --output mechanism.json
    """
    from deniable.cli import console, options
    from deniable.design import record
    from deniable.outputs import write_file
    from deniable.schema import Schema

    if (schema is None) == (categories is None):
        raise InputError("give either --schema FILE or --categories 5,5,3")
    chosen = (
        Schema.from_toml(schema)
        if schema is not None
        else Schema.anonymous(options.whole_numbers(categories or "", "--categories"))
    )
    result = find_design(chosen, request)
    statements = record.design_to_plain(result)
    if output is not None:
        write_file(output, record.to_json(record.mechanism_to_plain(result)), overwrite=force)
    comparison = account_of(result, curve=True).comparison_to_plain() if curve else None
    if as_json:
        shown = {"comparison": comparison} if curve else {}
        print_json(statements | {"certificate": record.proof_to_plain(result)} | shown)
        return
    console.show_design(statements)
    console.show_curve({"comparison": comparison})
    if output is not None:
        console.note(f"The mechanism is in {output}")


def account_of(result: Any, *, curve: bool) -> Any:
    """Return the account of a design, with the curve of caps if ``curve``."""
    from deniable.cli import console
    from deniable.design.account import account
    from deniable.design.design import cap_curve

    if not curve:
        return result.account
    with console.working("Designing with other caps"):
        return account(result, curve=cap_curve(result))


def find_design(schema: Any, request: DesignOptions | None) -> Any:
    """Return the design that the options of ``design`` and ``share`` ask for."""
    from deniable.cli import console, options
    from deniable.design.design import design as find

    schema, responses, request = split_responses(schema, request or DesignOptions())
    if responses:
        from deniable.design.matrices import with_responses, without

        rest = without(schema, responses)
        if rest is None and request != DesignOptions():
            raise InputError(
                "every attribute has a matrix of its own, so there is no level, total or method "
                "to choose; leave them out"
            )
        return with_responses(
            schema, None if rest is None else find_design(rest, request), responses
        )
    if request.order not in ("given", "descending"):
        raise InputError(f"--order is given or descending, not '{request.order}'")
    names = [schema.names[i] for i in schema.protected]
    strengths = request.wishes(names)
    levels = (
        None
        if request.attribute_epsilon is None
        else options.numbers_per_attribute(request.attribute_epsilon, names, "--attribute-epsilon")
    )
    with console.working("Finding the law"):
        result = find(
            schema,
            epsilon=request.epsilon,
            attribute_epsilon=levels,
            method=request.method,
            given_rest=None
            if request.given_rest is None
            else options.caps(request.given_rest, names),
            pair_floor=None if request.pair_floor is None else options.floor(request.pair_floor),
            importance=options.some_numbers(request.importance, names, "--importance"),
            at_most=options.some_numbers(request.at_most, names, "--at-most"),
            order=request.order,  # type: ignore[arg-type]  # checked above
            allow_changed_levels=request.allow_changed_levels,
            attenuation=strengths.attenuation,
            strength=strengths.strength,
            preserve=strengths.preserve,
            matrices=strengths.matrices,
        )
    for sentence in result.notes:
        console.note(sentence)
    return result


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
    covariance: Annotated[
        str | None, Parameter(help="Also what is left of the covariance of two attributes: a,b.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every number from the law, and check what the file states.

    Example: deniable inspect mechanism.json --subset a1,a2
    """
    from deniable.cli import console
    from deniable.design import record
    from deniable.design.strata import read_designs
    from deniable.release.record import verify

    designs = read_designs(source)
    verify(source)
    if designs.column is not None:
        _inspect_strata(designs, subset, covariance, as_json)
        return
    (design,) = designs.designs.values()
    statements = {**record.design_to_plain(design), "verified": True}
    if as_json:
        statements["certificate"] = record.proof_to_plain(design)
    if subset is not None:
        names = split_names(subset)
        statements["subset"] = names
        statements["subset_epsilon"] = record.finite_or_none(design.mechanism.subset_epsilon(names))
    if covariance is not None:
        prediction = _prediction(design.mechanism, split_names(covariance))
        statements["covariance"] = prediction.to_plain()
    if as_json:
        print_json(statements)
        return
    console.show_design(statements)
    if covariance is not None:
        console.show_covariance_prediction(prediction)
    if subset is not None:
        _say_subset(statements["subset"], statements["subset_epsilon"])
    console.say(_VERIFIED)


_VERIFIED = "Verified: every number was recomputed from the law and agrees with the file."


def _say_subset(names: list[str], epsilon: float | None) -> None:
    from deniable.cli import console

    level = "no bound" if epsilon is None else console.six_digits(epsilon)
    console.say(f"ε against someone who sees only {', '.join(names)}: {level}")


def _inspect_strata(
    designs: Any, subset: str | None, covariance: str | None, as_json: bool
) -> None:
    """Print what was recomputed for every stratum of an ex-post release."""
    from deniable.cli import console
    from deniable.design import record

    parts = []
    for stratum, design in designs.designs.items():
        part = {
            "stratum": stratum,
            "rows": designs.sizes[stratum],
            **record.design_to_plain(design),
        }
        if subset is not None:
            epsilon = design.mechanism.subset_epsilon(split_names(subset))
            part["subset_epsilon"] = record.finite_or_none(epsilon)
        if covariance is not None:
            prediction = _prediction(design.mechanism, split_names(covariance))
            part["covariance"] = prediction.to_plain()
        parts.append(part)
    if as_json:
        print_json({"column": designs.column, "strata": parts, "verified": True})
        return
    for part in parts:
        console.say(f"Stratum {designs.column} = {part['stratum']}, {part['rows']} rows")
        console.show_design(part)
        if subset is not None:
            _say_subset(split_names(subset), part["subset_epsilon"])
        if covariance is not None:
            design = designs.designs[part["stratum"]]
            console.show_covariance_prediction(
                _prediction(design.mechanism, split_names(covariance))
            )
    console.say(_VERIFIED)


def _prediction(mechanism: Any, names: list[str]) -> Any:
    from deniable.mechanism.prediction import predict_covariance

    if len(names) != 2:
        raise InputError("--covariance: name two attributes, a,b")
    return predict_covariance(mechanism, *names)


@schema_app.command
def init(
    source: Annotated[str, Parameter(name="TABLE", allow_leading_hyphen=True, help=INPUT)],
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
    from deniable.cli import console
    from deniable.outputs import write_file
    from deniable.tables.drafting import WARNING, draft_schema

    text = draft_schema(source)
    if output == "-":
        sys.stdout.write(text)
    else:
        write_file(Path(output), text.encode(), overwrite=force)
    console.note(WARNING)
