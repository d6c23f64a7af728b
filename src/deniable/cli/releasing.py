"""share, work, finish, randomize: release of a randomized table."""

import os
import shlex
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from deniable.atomic_files import as_text
from deniable.cli import console, groups
from deniable.cli.arguments import (
    LARGE,
    SHARED,
    SHOWN,
    AsJson,
    Check,
    FileOrStream,
    InputTable,
    InputTables,
    InsecureSeed,
    SchemaPath,
    read_key,
    read_options,
)
from deniable.cli.designing import find_design
from deniable.cli.fields import Typed, from_fields
from deniable.cli.typed import as_typed
from deniable.design.request import DesignRequest
from deniable.errors import InputError
from deniable.numerals import count_text
from deniable.release.publication import Publication
from deniable.schema.file_format import FileFormat

if TYPE_CHECKING:
    from deniable.release import checking
    from deniable.statement.account import Design


@from_fields
def share(
    sources: InputTables = None,
    /,
    *,
    schema: SchemaPath = None,
    output: Annotated[Path, SHARED],
    mechanism: Annotated[Path | None, SHARED] = None,
    request: Typed[DesignRequest],
    publish: Typed[Publication],
    file: Typed[FileFormat],
    insecure_seed: InsecureSeed = None,
    jobs: Annotated[int | None, LARGE] = None,
    resume: Annotated[bool, LARGE] = False,
    only_begin: Annotated[bool, LARGE] = False,
    check: Check = False,
    verbose: Annotated[bool, SHOWN] = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        output: Folder to make.
        mechanism: Existing mechanism, in place of a schema.
        jobs: Number of processes for the parts (default: one per core).
        resume: Resume an interrupted release in parts: finished parts are used. Repeat the command
            with --resume, or give --output only.
        only_begin: Check the tables and prepare the parts, for deniable work.
        verbose: Also print the table of attributes and the cost of other methods, as in the
            report.
    """
    from deniable.engines import processes
    from deniable.ledger import Spending
    from deniable.mechanism.strata import Strata
    from deniable.release import checking, release
    from deniable.release.parts import finish
    from deniable.tables.reading import read_twice

    if resume and check:
        raise InputError("--check is for a new release; leave out --resume")
    if resume:
        more = bool(request or file or insecure_seed is not None)
        _resume(sources, schema, mechanism, output, publish, jobs, more=more, as_json=as_json)
        return
    source, files = _tables(sources)
    if only_begin and files is None:
        raise InputError("--only-begin is for a release in parts; these rows are not divided")
    problems = checking.Problems()
    command = repeatable(sources or [], schema or mechanism or Path(), output)
    seeded = insecure_seed is not None
    options = read_options(publish, file, problems, command, seeded=seeded)
    if schema is None and mechanism is None and files is None and source != "-":
        with problems.at("output"):
            release.check_output(output, overwrite=options.overwrite)
        problems.refuse()
        _show_draft(source, file.read())
    declared, result = _given(schema, mechanism, request)
    plan = checking.Check(declared, output, options, problems)
    if options.people is not None or options.persons or check:
        with problems.at("epsilon"):
            result = result or find_design(declared, request)
            plan.spending = Spending.of(Strata.one(result.mechanism))
    if check:
        _show_check(plan, source, as_json=as_json)
        return
    plan.refuse_before_rows(source)
    if files is None:
        with read_twice(source) as table:
            with console.progress("Looking at the data") as advance:
                plan.look(table, advance)
            problems.refuse()
            result = result or find_design(declared, request)
            _note_replacing(output, force=options.overwrite)
            bits = bits_from(insecure_seed)
            with console.progress("Randomizing") as advance:
                record = release.share(table, result, output, options, bits, advance)
    else:
        result = result or find_design(declared, request)
        _note_replacing(output, force=options.overwrite)
        _warn_of_seed(insecure_seed)
        job = processes.prepare(
            files,
            result,
            output,
            options,
            seed=insecure_seed,
            jobs=jobs,
            bar=console.progress,
        )
        if only_begin:
            _say_begun(job, as_json=as_json)
            return
        processes.make(job, jobs, console.progress)
        record = finish(job, options.signer)
    advice = [] if as_json else _advice(result, record, request, schema)
    _show(record, output, options.people, advice, verbose=verbose, as_json=as_json)


def _show_check(check: "checking.Check", source: Any, *, as_json: bool) -> None:
    """Check the rows, and print the planned output and all errors."""
    from deniable.tables.reading import read_twice

    check.request()
    with read_twice(source) as table, console.progress("Looking at the data") as advance:
        check.columns(table)
        check.look(table, advance)
    plain = check.to_plain()
    for problem in plain["problems"]:
        problem["sentence"] = as_typed(problem["sentence"])
    if as_json:
        console.print_json(plain)
    else:
        console.show_check(plain)
    check.problems.refuse()


def _show_draft(source: str, file_format: "FileFormat") -> None:
    """Print a draft schema of the table, and raise."""
    from deniable.schema import Schema
    from deniable.tables.drafting import draft_schema
    from deniable.tables.reading import column_names

    with console.progress("Reading") as advance:
        plain = tomllib.loads(draft_schema(source, file_format, advance))
    if "attribute" not in plain:  # only identifiers and texts
        return
    draft = Schema.from_plain(plain)
    rows = [
        [
            name,
            str(one.n_categories),
            ", ".join(map(one.label, one.categories)),
            "yes" if one.drafted else "no",
        ]
        for name, one in zip(draft.names, draft.attributes, strict=True)
    ]
    left_out = set(column_names(source, file_format)) - set(draft.columns)
    rows += [[name, "", "left out: an identifier, or text", ""] for name in sorted(left_out)]
    headers = ["column", "number", "categories", "read off the data"]
    console.show_table(headers, rows, text_columns=3, most=40, elsewhere="the draft", framed=False)
    raise InputError(
        "there is no schema, so nothing was released. Above is a draft; categories from the data "
        "disclose information on the people in them. Either write it with deniable schema init "
        f"{shlex.quote(source)} --output draft.toml, replace them by those of the public codebook, "
        "and share with --schema draft.toml; or add --codebook codebook.csv to that command "
        "(docs/howto/survey.md)"
    )


def _note_replacing(output: Path, *, force: bool) -> None:
    if force and output.exists():
        console.note(
            f"Replacing {output}: releases of the same people add up, and copies of the old one "
            "still count"
        )


def _tables(sources: list[str] | None) -> tuple[Any, list[Path] | None]:
    """Return a table, and its files if they are released in parts."""
    from deniable.engines.processes import parts_of
    from deniable.tables.files import files_of

    if not sources:
        raise InputError("name the table to release, or several (deniable share --help shows how)")
    source: Any = sources[0] if len(sources) == 1 else sources
    files = parts_of(source)
    single = files_of(source)
    return (source if not single else str(single[0])), files


def _advice(
    result: "Design", record: dict[str, Any], request: Typed[DesignRequest], schema: Path | None
) -> list[str]:
    """Return advice on an unreadable release: forms, if the request has only a total and
    importances, and the command that finds an ε."""
    from deniable.design.design import design_of
    from deniable.planning.alternatives import forms_instead
    from deniable.report import verdict as words

    expected = record["readable"]
    if all(one["readable"] for one in expected["attributes"]):
        return []
    mechanism = result.mechanism
    names = [mechanism.schema.names[i] for i in mechanism.schema.protected]

    def again(method: str) -> "Design":
        return design_of(mechanism.schema, replace(request.read(names), method=method))

    free = request.values.keys() <= {"epsilon", "method", "importance"}
    free = free and result.budget is not None
    rows = record["release"]["rows"]
    with console.working("Designing forms"):
        forms = forms_instead(result, rows, again if free else None)
    file = "SCHEMA" if schema is None else shlex.quote(str(schema))
    plan = f"deniable plan --schema {file} --rows {rows} --tables {{table}} --within {{within}}pt"
    return words.advice(expected, forms, plan)


def _show(
    record: Any,
    output: Path,
    population: Any,
    advice: Sequence[str] = (),
    *,
    verbose: bool = False,
    as_json: bool,
) -> None:
    """Print the statements on a release, and advice."""
    if as_json:
        console.print_json(record)
        return
    from deniable.report import verdict as words
    from deniable.schema import Schema

    console.show_release(record, briefly=not verbose)
    promised = record["guarantee"]
    console.show_readable(record["readable"], promised["epsilon"], promised["person"])
    if no_mean := words.without_mean(Schema.from_plain(record["mechanism"]["schema"])):
        console.say(no_mean)
    if verbose:
        console.show_saving(record)
    console.show_standing(record, population)
    for sentence in advice:
        console.say(as_typed(sentence))
    if record["release"]["file"] == "data.bed":
        console.say(_people(record["release"]["columns"]))
    console.say(f"Read {output / 'report.html'} before you publish {output}")


def _people(columns: list[str]) -> str:
    """Return the sentence on people in a released .fam file."""
    from deniable.tables.plink import PEOPLE

    named = [name for name in PEOPLE if name in columns]
    if {"FID", "IID"} & set(named):
        return f"Columns on people in the .fam file: {', '.join(named)}"
    return (
        'People are numbered in the .fam file; keep = ["IID"] in the schema would name them there'
    )


def _say_begun(job: Any, *, as_json: bool) -> None:
    if as_json:
        console.print_json({"job": str(job.folder), "units": len(job.units), "rows": sum(job.rows)})
        return
    console.say(
        f"Prepared: {count_text(len(job.units), 'unit')} with {count_text(sum(job.rows), 'row')}. "
        "In any number of processes "
        f"run deniable work {job.folder} --part 1/{len(job.units)} and so on, then "
        f"deniable finish {job.folder}"
    )


def _resume(
    sources: list[str] | None,
    schema: Path | None,
    mechanism: Path | None,
    output: Path,
    publish: Typed[Publication],
    jobs: int | None,
    *,
    more: bool,
    as_json: bool,
) -> None:
    """Resume a release in parts."""
    from deniable.engines import processes
    from deniable.release.job import refuse_other_request
    from deniable.release.parts import finish
    from deniable.statement.record import read_design

    job = processes.resumed(output)
    anything = sources or schema or mechanism or more or publish.values.keys() - {"sign"}
    files = None
    if sources:
        source, files = _tables(sources)
        files = files or [Path(source)]
    refuse_other_request(
        job,
        files,
        None if mechanism is None else read_design(mechanism),
        repeatable(sources or [], schema or mechanism or Path(), output) if anything else None,
    )
    processes.make(job, jobs, console.progress)
    record = finish(job, read_key(publish.read()))
    _show(record, output, job.options.people, as_json=as_json)


JobPath = Annotated[
    Path,
    Parameter(
        group=groups.LARGE,
        name="JOB",
        help="Job folder printed by deniable share --only-begin, or the output's name.",
    ),
]


def work(
    path: JobPath,
    /,
    *,
    part: Annotated[str, LARGE] = "1/1",
    as_json: AsJson = False,
) -> None:
    """
    Args:
        part: Part of the units: 3/40 is the third of 40, for array jobs.
    """
    from deniable.engines.processes import resumed
    from deniable.release import parts

    job = resumed(path)
    share_of = _share_of(part)
    done, stage = 0, job.stages[0]
    for stage in job.stages:
        if stage == "gather" and (left := job.remaining("draw")):
            console.note(
                f"{len(left):,} units are not drawn yet, so no rows can be shuffled; run this "
                "again when all are"
            )
            stage = "draw"
            break
        mine = range(job.size(stage))[share_of[0] - 1 :: share_of[1]]
        with console.progress("Working") as advance:
            seen = 0

            def more(rows: int) -> None:
                nonlocal seen
                seen += rows
                advance(seen * share_of[1] / max(1, sum(job.rows)))

            done += parts.work(job, stage, mine, more)
    left = job.remaining(stage)
    if as_json:
        console.print_json({"done": done, "left": len(left)})
        return
    rest = f"{len(left):,} of {job.size(stage):,} are left" if left else "all units are drawn"
    console.say(f"{done:,} pieces of work done; {rest}")


def _share_of(text: str) -> tuple[int, int]:
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise InputError("--part: expected two numbers such as 3/40, the third of 40")


@from_fields
def finish_(
    path: JobPath,
    /,
    *,
    publish: Annotated[Typed[Publication], "sign"],
    as_json: AsJson = False,
) -> None:
    from deniable.engines.processes import resumed
    from deniable.release.parts import finish

    job = resumed(path)
    output = job.output
    record = finish(job, read_key(publish.read()))
    _show(record, output, job.options.people, as_json=as_json)


def _given(
    schema: Path | None, mechanism: Path | None, request: Typed[DesignRequest]
) -> tuple[Any, Any]:
    """Return the schema, and the design if there is one already."""
    from deniable.schema import Schema
    from deniable.statement.record import read_design

    if (schema is None) == (mechanism is None):
        raise InputError(
            "give either --schema FILE, the public codebook of the table (deniable schema init "
            "drafts one), or --mechanism FILE"
        )
    if schema is not None:
        return Schema.from_toml(schema), None
    assert mechanism is not None
    if request:
        raise InputError(
            "--mechanism is a finished design; leave out levels, strengths and the method"
        )
    design = read_design(mechanism)
    return design.mechanism.schema, design


def repeatable(sources: Sequence[str], schema: Path, output: Path) -> str:
    """Return the command line with file names in place of paths, without options of ledger and
    processes."""
    names = {str(path): path.name for path in (*map(Path, sources), schema, output)}
    names |= {source: Path(source).name for source in sources}

    def without_path(word: str) -> str:
        if "=" in word:
            option, _, value = word.partition("=")
            return f"{option}={without_path(value)}"
        if word.startswith("@"):
            return f"@{Path(word[1:]).name}"
        if os.sep in word and Path(word).exists():
            return Path(word).name
        return names.get(word, word)

    return as_text(shlex.join(["deniable", *map(without_path, _without_asides(sys.argv[1:]))]))


_ASIDES = (
    *("--resume", "--only-begin", "--check", "--new-population"),
    *("--new-ledger", "--no-new-ledger"),
)


def _without_asides(words: list[str]) -> list[str]:
    """Return the command without options of the ledger, which is private, and of processes."""
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        if word in _ASIDES:
            continue
        if not {before, word.partition("=")[0]} & {"--ledger", "--population", "--jobs"}:
            shown.append(word)
    return shown


@from_fields
def randomize(
    source: InputTable,
    /,
    *,
    mechanism: Annotated[Path, SHARED],
    output: Annotated[FileOrStream, SHARED] = "-",
    publish: Annotated[
        Typed[Publication],
        "drop_other_columns accept_drafted overwrite show_values ledger population new_population "
        "new_ledger",
    ],
    file: Typed[FileFormat],
    insecure_seed: InsecureSeed = None,
) -> None:
    """
    Args:
        mechanism: mechanism.json, record.json, or its folder.
        output: Output table, or - for CSV on standard output.
    """
    from deniable.release import release
    from deniable.release.checking import Problems
    from deniable.statement import record

    design = record.read_design(mechanism)
    problems = Problems()
    options = read_options(publish, file, problems, seeded=insecure_seed is not None)
    problems.refuse()
    bits = bits_from(insecure_seed)
    with console.progress("Randomizing") as advance:
        release.randomize_table(source, design.mechanism, output, options, bits, advance)


def bits_from(insecure_seed: int | None) -> Any:
    """Return the source of random bits; warn of a seed."""
    from deniable.randomness import SeededRandomness, SystemRandomness

    if insecure_seed is None:
        return SystemRandomness()
    _warn_of_seed(insecure_seed)
    return SeededRandomness(insecure_seed)


def _warn_of_seed(insecure_seed: int | None) -> None:
    if insecure_seed is not None:
        console.note("NOT PRIVATE: the randomness comes from a seed, which reveals the true values")
