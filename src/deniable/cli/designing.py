"""design, plan, inspect, schema init: commands that release no table."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from deniable.cli import console, groups
from deniable.cli.arguments import (
    SHARED,
    SHOWN,
    TABLES,
    TREND,
    Anyway,
    AsJson,
    Assume,
    FileOrStream,
    Force,
    SchemaPath,
    ShowValues,
    TargetOption,
    check_inputs,
    collected,
    is_study,
    refuse_two_outputs,
    write_mechanism,
)
from deniable.cli.fields import Typed, from_fields
from deniable.cli.responses import with_matrices
from deniable.design.request import DesignRequest
from deniable.errors import InputError
from deniable.numerals import count_text
from deniable.schema.file_format import FileFormat
from deniable.schema.names import split_names

if TYPE_CHECKING:
    from deniable.collect.study import Study
    from deniable.statement.account import Design


@from_fields
def design(
    *,
    schema: SchemaPath = None,
    categories: Annotated[str | None, SHARED] = None,
    request: Typed[DesignRequest],
    rows: Annotated[int | None, SHOWN] = None,
    tables: Annotated[list[str] | None, SHOWN] = None,
    assume: Assume = None,
    target: TargetOption = "table",
    within: Annotated[str | None, SHOWN] = None,
    output: Annotated[FileOrStream | None, SHOWN] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        categories: Numbers of categories, 5,5,3, in place of a schema.
        rows: Number of rows: also print the tables readable from a release of them.
        tables: Also print the expected error of this table, a or a,b or a,b,c, with --rows; may be
            repeated.
        within: Half-width of --tables, 2pt: also print the rows that it takes.
        output: Mechanism file to write; - for standard output, without other output.
    """
    from deniable.cli import options
    from deniable.design.statements import design_statements
    from deniable.schema import kept_undeclared_text

    refuse_two_outputs(output, as_json)
    if tables and rows is None:
        raise InputError("--tables needs --rows, on which errors depend")
    if within is not None and not tables:
        raise InputError("--within is the half-width of --tables; give --tables too")
    assumed = options.assumed(assume, tables)
    result = find_design(_schema(schema, categories), request)
    if output == "-":
        write_mechanism(result, output, force=force)
        return
    with console.working("Computing expected errors"):
        stated = design_statements(
            result,
            rows=rows,
            tables=tables or (),
            assume=assumed,
            target=target,
            within=None if within is None else options.share(within, "--within"),
        )
    if output is not None:
        write_mechanism(result, output, force=force)
    if as_json:
        console.print_json(stated)
        return
    console.show_design(stated)
    console.show_readable(stated.get("readable"), stated["epsilon"])
    console.show_means(stated.get("means", ()))
    if tables:
        console.show_expected_tables(stated["tables"], stated["independent_tables"])
    if "expected" in stated:
        console.show_outlook(stated)
    console.show_matrices(stated.get("matrices", ()))
    if result.mechanism.schema.kept_undeclared:
        console.say(kept_undeclared_text(result.mechanism.schema) + ".")
    if output is not None:
        console.note(f"The mechanism is in {output}")


def _schema(schema: Path | None, categories: str | None) -> Any:
    """Return the schema that a file or numbers of categories declare."""
    from deniable.cli import options
    from deniable.schema import Schema

    if (schema is None) == (categories is None):
        raise InputError("give either --schema FILE or --categories 5,5,3")
    if schema is not None:
        return Schema.from_toml(schema)
    return Schema.anonymous(options.whole_numbers(categories or "", "--categories"))


@Parameter(name="*", group=groups.TREND)
@dataclass(frozen=True, kw_only=True)
class GenotypeOptions:
    """Study of genotypes for ``plan --trend``.

    Args:
        people: Number of people.
        snps: Number of SNPs of a person.
        allele: Share of the allele among controls.
        cases: Share of cases among the people.
        coding: Presence of the allele in a person (carrier), or its number (additive).
        odds_ratio: Odds ratio per allele, to compute the people or ε.
        top: Find the K associated SNPs as the K most associated, with probability 0.9.
    """

    people: int | None = None
    snps: int | None = None
    allele: float = 0.3
    cases: float = 0.5
    coding: Literal["carrier", "additive"] = "carrier"
    odds_ratio: float | None = None
    top: int | None = None


@from_fields
def plan(
    *,
    schema: SchemaPath = None,
    categories: Annotated[str | None, SHARED] = None,
    rows: Annotated[int | None, SHARED] = None,
    error: Annotated[str | None, SHARED] = None,
    tables: Annotated[list[str] | None, SHARED] = None,
    within: Annotated[str | None, SHARED] = None,
    mean: Annotated[list[str] | None, SHARED] = None,
    assume: Assume = None,
    target: TargetOption = "table",
    epsilon: Annotated[float | None, SHARED] = None,
    request: Annotated[
        Typed[DesignRequest],
        "method given_rest pair_floor importance at_most pairs max_questions allow_changed_levels",
    ],
    trend: Annotated[bool, TREND] = False,
    genotypes: GenotypeOptions | None = None,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        categories: Numbers of categories, 5,5,3, in place of a schema.
        rows: Number of rows.
        error: Largest standard error of a share instead of --within: 2pt, which is 2% or 0.02.
        tables: Table with this error, a or a,b or a,b,c; may be repeated.
        within: Largest half-width of an interval of 95 %: 4pt.
        mean: Largest standard error of the mean of a number, in its unit: income=500; may be
            repeated.
        epsilon: Total for the whole record, in nats.
        trend: Study of genotypes: by default the smallest odds ratio per allele that it detects.
    """
    from deniable.cli import options
    from deniable.planning import sample_size

    if trend:
        if any(
            each is not None for each in (schema, categories, rows, error, tables, within, mean)
        ):
            raise InputError(
                "--schema, --categories, --rows, --error, --tables, --within and --mean are for "
                "shares and means; a trend is planned with --snps and two of --people, --epsilon "
                "and --odds-ratio"
            )
        if request.values.keys() - {"method"} or assume is not None:
            raise InputError("a trend is planned with --epsilon and --method; leave the rest out")
        method = request.read().method
        _plan_trend(genotypes or GenotypeOptions(), epsilon, method, as_json=as_json)
        return
    if genotypes is not None and genotypes != GenotypeOptions():
        raise InputError(
            "--people, --snps, --allele, --cases, --coding, --odds-ratio and --top need --trend"
        )
    declared = _schema(schema, categories)

    def make(total: float) -> "Design":
        return requested_design(
            declared, replace(request, values={**request.values, "epsilon": total})
        )

    with console.progress("Trying totals") as advance:
        planned = sample_size.plan(
            declared,
            rows=rows,
            error=None if error is None else options.share(error, "--error"),
            within=None if within is None else options.share(within, "--within"),
            epsilon=epsilon,
            tables=tables or (),
            means={
                name: options.number(value, f"--mean, '{name}'")
                for name, value in options.pairs(mean or (), "--mean", "name=number").items()
            },
            assume=options.assumed(assume, tables),
            target=target,
            make=make,
            progress=advance,
        )
    plain = planned.to_plain()
    if as_json:
        console.print_json(plain)
        return
    total = planned.design.epsilon if epsilon is None else epsilon
    console.say(
        f"{count_text(planned.rows, 'row', 'rows')} at ε = {console.six_digits(total)} for the "
        f"whole record (method {planned.design.method})"
        + (
            f", {'the smallest at which' if epsilon is None else 'with which'} every "
            f"{'table' if tables else 'attribute'} has half-widths within "
            f"{100 * planned.within:.3g} points; {', '.join(planned.deciding.attributes)} decides."
            if planned.within
            else ", the smallest with these errors of means:"
            if epsilon is None
            else ":"
        )
    )
    console.show_expected_tables(plain["tables"])
    console.show_means(plain["means"])
    console.show_readable(None, planned.design.epsilon)
    if target == "table":
        console.say(
            "For shares of a larger population that these rows are a sample of (a survey), use "
            "--target population."
        )


def _plan_trend(
    of: GenotypeOptions, epsilon: float | None, method: str | None, *, as_json: bool
) -> None:
    from deniable.planning.trend_power import SENTENCE, plan_trend, without_privacy

    if of.snps is None or [of.people, epsilon, of.odds_ratio].count(None) != 1:
        raise InputError(
            "a trend is planned with --snps and two of --people, --epsilon and --odds-ratio"
        )
    with console.working("Finding the law"):
        found = plan_trend(**asdict(of), epsilon=epsilon, method=method)
    if as_json:
        console.print_json(found.to_plain())
        return
    ratio, tested = _or_none(found.odds_ratio, ".2f"), f", Bonferroni at {100 * found.level:g} %"
    wanted = f"found with {100 * found.power:g} % power"
    if found.top is not None:
        wanted, tested = f"to rank the right {found.top} first with probability {found.power:g}", ""
    people, total = _or_none(found.people, ","), _or_none(found.epsilon, ".6g")
    if of.odds_ratio is None:
        usual = _or_none(without_privacy(found), ".2f")
        answer = f"odds ratio per allele {wanted}: {ratio} (without privacy {usual})."
    elif of.people is None:
        answer = f"number of people {wanted}: {people}."
    else:
        answer = f"ε {wanted}: {total}."
    console.say(f"Smallest {answer}")
    console.say(
        f"{people} people, {100 * found.cases:g} % of them cases, whose status is kept; "
        f"{count_text(found.snps, 'SNP', 'SNPs')} at ε = {total} for the whole record "
        f"(method {found.method}, coding {found.coding}){tested}; odds ratio {ratio}; "
        f"the allele's share among controls is {found.allele:g}."
    )
    console.say(f"For one SNP they equal {found.worth:,.0f} people without randomization.")
    console.say(SENTENCE)


def _or_none(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)


def find_design(schema: Any, request: Typed[DesignRequest]) -> "Design":
    """Return the design of the options, and print its notes."""
    with console.working("Finding the law"):
        result = requested_design(schema, request)
    for sentence in result.notes:
        console.note(sentence)
    return result


def requested_design(schema: Any, request: Typed[DesignRequest]) -> "Design":
    """Return the design of the options."""
    from deniable.design.design import design_of

    schema, matrices, request = with_matrices(schema, request)
    own = {*matrices, *request.read_one("response")}
    protected = [schema.attributes[i] for i in schema.protected]
    names = [a.name for a in protected if a.name not in own and not a.response]
    return design_of(schema, request.read(names, matrices=matrices))


def inspect(
    source: Annotated[Path, Parameter(name="MECHANISM")],
    /,
    *,
    subset: str | None = None,
    covariance: str | None = None,
    signed_by: Path | None = None,
    anyway: Anyway = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        source: mechanism.json, record.json, or its folder.
        subset: Also print ε against an observer of only these columns: a,b.
        covariance: Also print the attenuation of the covariance of two attributes: a,b.
        signed_by: Public key: raise unless it signed the release with all files unchanged.
    """
    from deniable.estimate.consistency import check_origin
    from deniable.estimate.source import Release, released_files
    from deniable.mechanism.privacy import finite_or_none
    from deniable.release.record import FILE, UNCHECKED_MECHANISM, verify
    from deniable.release.signing import is_signed
    from deniable.statement import record
    from deniable.statement.strata import Designs, read_designs

    folder = source if source.is_dir() else source.parent
    signature = _signature(source, signed_by)
    study = _study(source)
    with console.working("Recomputing from the law"):
        designs = read_designs(source) if study is None else Designs.one(study.design)
    unchecked = verify(source, designs) if study is None else dict(UNCHECKED_MECHANISM)
    if signature is not None:
        unchecked = {p: words for p, words in unchecked.items() if not p.startswith(FILE)}
    elif is_signed(folder):
        unchecked["signature"] = "the signature (--signed-by)"
    origin = None
    rows_checked = "guarantee.person" in unchecked and "release.rows" not in unchecked
    if study is None and (source.is_dir() or rows_checked):
        files = released_files(folder, designs.strata)
        origin = check_origin(Release(designs.strata, files, identified=True), anyway=anyway)
    if source.is_dir() and study is not None:
        origin = check_origin(collected(source), anyway=anyway)
    with console.working("Checking the samplers"):
        for one in designs.designs.values():
            one.mechanism.check_samplers()
    names = None if subset is None else split_names(subset)
    parts: dict[str, dict[str, Any]] = {}
    predictions = {}
    for stratum, design in designs.designs.items():
        part = parts[stratum] = record.design_to_plain(design)
        if names is not None:
            part["subset_epsilon"] = finite_or_none(design.mechanism.subset_epsilon(names))
        if covariance is not None:
            predictions[stratum] = _prediction(design.mechanism, split_names(covariance))
            part["covariance"] = predictions[stratum].to_plain()
    stated = (row.get("best_guess", {}) for part in parts.values() for row in part["attributes"])
    if any("prior_source" in guess for guess in stated):
        unchecked["prior_source"] = "the source of the prior of a response matrix"
    if as_json:
        checked = {"verified": True, "unchecked": sorted(unchecked), "signed_by": signature}
        checked["origin"] = None if origin is None else asdict(origin)
        if designs.column is None:
            shown = part | {"certificate": record.proof_to_plain(design)}
            shown |= {} if names is None else {"subset": names}
        else:
            sizes = designs.sizes
            strata = [{"stratum": s, "rows": sizes[s]} | part for s, part in parts.items()]
            shown = {"column": designs.column, "strata": strata}
        console.print_json(shown | checked)
        return
    for stratum, part in parts.items():
        if designs.column is not None:
            rows = count_text(designs.sizes[stratum], "row", "rows")
            console.say(f"Stratum {designs.column} = {stratum}, {rows}")
        console.show_design(part, method_known=False)
        if covariance is not None:
            console.show_covariance_prediction(predictions[stratum])
        if names is not None:
            epsilon = part["subset_epsilon"]
            level = "no bound" if epsilon is None else console.six_digits(epsilon)
            console.say(f"ε against an observer of only {', '.join(names)}: {level}")
    if signature is not None:
        console.say(f"Signed, and not altered since, by the key {signature}.")
    console.say(f"Not checked: {', '.join(unchecked.values())}.")
    console.say("Verified: every number was recomputed from the law and agrees with the file.")


def _study(source: Path) -> "Study | None":
    """Return the verified study in a file or folder; None for another file."""
    from deniable.collect.study import FORMAT, read_study
    from deniable.statement.stored import read_json

    file = source / "study.json" if is_study(source) else source
    if not file.is_file() or read_json(file).get("format") != FORMAT:
        return None
    return read_study(file)


def _signature(source: Path, signed_by: Path | None) -> str | None:
    """Return the key of a release's signature; None without ``signed_by``."""
    from deniable.release.signing import check_signature

    if signed_by is None:
        return None
    folder = source.parent if source.name == "record.json" else source
    if not (folder / "record.json").is_file():
        raise InputError(f"{source}: only a release is signed; name its folder")
    return check_signature(folder, signed_by)


def _prediction(mechanism: Any, names: list[str]) -> Any:
    from deniable.mechanism.prediction import predict_covariance

    if len(names) != 2:
        raise InputError("--covariance: name two attributes, a,b")
    return predict_covariance(mechanism, *names)


schema_app = App(name="schema", group_commands=groups.COMMANDS)


@schema_app.command
@from_fields
def init(
    source: Annotated[
        str,
        Parameter(
            name="TABLE",
            allow_leading_hyphen=True,
            validator=check_inputs,
            help=f"A table, in a file that is read twice: {TABLES}.",
        ),
    ],
    /,
    *,
    output: FileOrStream = "-",
    codebook: Path | None = None,
    show_values: ShowValues = False,
    force: Annotated[bool, Parameter(negative=())] = False,
    coding: Literal["additive", "carrier"] | None = None,
    file: Typed[FileFormat],
) -> None:
    """Draft a schema from a table, to be replaced by the public codebook.

    Categories, labels and question texts are taken from the labels of a survey file, or from a
    codebook; only the rest is computed from the data.

    Example: deniable schema init insurance.csv --output draft.toml

    Args:
        output: Schema file to write, or - for the screen.
        codebook: Codebook: CSV with columns name, value, label (and question, missing), or
            DDI-Codebook 2.5 XML.
        force: Replace an existing file.
        coding: Of genotypes: number of the allele in a person (additive), or its presence
            (carrier), which gives a test of trend more power.
    """
    from deniable.atomic_files import write_file
    from deniable.tables import is_fileset
    from deniable.tables.codebook import read_codebook
    from deniable.tables.drafting import NOT_DECLARED, OF_GENOTYPES, WARNING, draft_schema

    with console.progress("Reading") as advance:
        text = draft_schema(
            source,
            file.read(),
            advance,
            None if codebook is None else read_codebook(codebook),
            coding=coding,
            show_values=show_values,
        )
    if output == "-":
        console.write_data(text.encode())
    else:
        write_file(Path(output), text.encode(), overwrite=force, private=True)
    if is_fileset(source):
        console.note(OF_GENOTYPES)
        return
    lines = text.splitlines()
    if "drafted = true" in lines:
        console.note(WARNING)
    for place, line in enumerate(lines):
        if line.startswith(f"# {NOT_DECLARED}"):
            further = lines[place + 1] if line.endswith(":") else ""
            console.note(f"{line[2:]} {further[2:]}".rstrip())
