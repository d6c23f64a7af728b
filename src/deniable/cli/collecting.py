"""collect: studies in which every respondent's browser randomizes the record."""

import shlex
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from deniable.cli import console, groups
from deniable.cli.arguments import AsJson, Check, Force, open_ledger, read_key
from deniable.cli.fields import Typed, from_fields
from deniable.cli.typed import as_typed
from deniable.collect import check_installed
from deniable.errors import InputError
from deniable.numerals import count_text, number_text
from deniable.release.publication import Publication

if TYPE_CHECKING:
    from deniable.collect.folder import StudyFolder

collect_app = App(name="collect", group_commands=groups.COMMANDS)

_ADDRESSES = {
    "respondents": "Respondents",
    "steward": "Steward, on this machine alone",
    "study": "Code of the study",
}

_Study = Annotated[Path, Parameter(name="STUDY", help="The folder that collect open made.")]


def _folder(path: Path) -> "StudyFolder":
    check_installed()
    from deniable.collect.folder import StudyFolder

    return StudyFolder(path)


@collect_app.command(name="open")
@from_fields
def open_study(
    *,
    mechanism: Annotated[Path, Parameter(help="Mechanism file, written by deniable design.")],
    questionnaire: Annotated[Path, Parameter(help="Questionnaire file (TOML).")],
    output: Annotated[Path, Parameter(help="Folder to make.")],
    store: Annotated[
        str | None,
        Parameter(help="Database instead of a file in the folder: postgresql+psycopg://…"),
    ] = None,
    publish: Annotated[Typed[Publication], "ledger population new_population new_ledger"],
    check: Check = False,
    as_json: AsJson = False,
) -> None:
    """Freeze a study: law, questions and texts, an empty store, the steward's secret.

    Example: deniable collect open --mechanism mechanism.json \\
    --questionnaire questions.toml --output study
    """
    check_installed()
    from deniable.atomic_files import refuse_existing
    from deniable.collect.folder import StudyFolder
    from deniable.collect.page import page_bytes
    from deniable.collect.releasing import remembered_study
    from deniable.collect.study import new_study
    from deniable.ledger import Spending
    from deniable.mechanism.strata import Strata
    from deniable.release import release
    from deniable.release.checking import Problems

    problems = Problems()
    population = study = outlook = None
    with problems.at("ledger"):
        population = open_ledger(publish.read())
        release.check_ledger(output, population)
    with problems.at("output"):
        refuse_existing(output, overwrite=False)
    with problems.at("questionnaire"):
        study = new_study(mechanism, questionnaire, date.today())
    if study is not None and population is not None:
        with problems.at("ledger"):
            release.check_budget(study.design.mechanism, population)
        with problems.at("ledger"):
            outlook = population.outlook(Spending.of(Strata.one(study.design.mechanism)))
    if check:
        plain = {
            "output": str(output),
            "ledger": outlook,
            "problems": [
                {"at": problem.at, "sentence": as_typed(problem.sentence)}
                for problem in problems.found
            ],
        }
        if as_json:
            console.print_json(plain)
        else:
            console.show_check(plain)
    problems.refuse()
    if check:
        return
    assert study is not None
    page = len(page_bytes(study))
    StudyFolder.make(output, study, store)
    if population is not None:
        remembered_study(study, population)
    epsilon = study.design.epsilon
    console.answer(
        {"study": study.identity, "epsilon": epsilon, "page_bytes": page},
        f"Opened {output}. Code of the study: {study.identity}",
        f"ε of a record is {number_text(epsilon)}; it closes on {study.closes}. Next: "
        f"deniable collect serve {shlex.quote(str(output))}",
        as_json=as_json,
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Listening:
    """Addresses, TLS and limits of a served study.

    Args:
        port: Port of the page; 0 for any that is free.
        host: Address to listen at.
        certificate: TLS certificate (PEM).
        key: The certificate's key (PEM).
        behind_proxy: Number of your reverse proxies; the first has TLS.
        per_minute: Largest number of requests of an address per minute; a school may share one.
        steward_port: Port of the steward's page, on this machine; 0 for any that is free.
        listen: Serve respondents, the steward, or both.
    """

    port: int = 8000
    host: str = "127.0.0.1"
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: int = 0
    per_minute: int = 600
    steward_port: int = 0
    listen: Literal["both", "public", "steward"] = "both"


@collect_app.command
def serve(
    study: _Study,
    /,
    *,
    listening: Listening | None = None,
    as_json: AsJson = False,
) -> None:
    """Serve the page and store the randomized records. Keeps no log of respondents.

    Prints two addresses: the respondents', and the steward's, which works on this machine only and
    gives access without a password.

    Example: deniable collect serve study --port 8000
    """
    check_installed()
    from deniable.collect.serving import check_listening

    at = listening or Listening()
    check_listening(at.host, at.certificate, at.key, at.behind_proxy)
    if at.per_minute < 1:
        raise InputError("--per-minute: expected a number of at least 1")
    _serve(_folder(study), at, as_json=as_json)


def _serve(
    folder: "StudyFolder", at: Listening, *, browse: bool = False, as_json: bool = False
) -> None:
    from deniable.collect.collector import Collector
    from deniable.collect.serving import bound_socket, run, server_for
    from deniable.collect.steward import Steward

    with ExitStack() as open_until_the_end:
        store = open_until_the_end.enter_context(folder.opened())
        servers, addresses = [], {}
        if at.listen != "steward":
            bound = open_until_the_end.enter_context(bound_socket(at.host, at.port))
            limits = {"hops": at.behind_proxy, "per_minute": at.per_minute}
            collector = Collector(folder.study, store, folder=folder.path, **limits)
            server = server_for(collector.app(), certificate=at.certificate, key=at.key)
            servers.append((server, bound))
            scheme = "https" if at.certificate else "http"
            shown = f"[{at.host}]" if ":" in at.host else at.host
            addresses["respondents"] = f"{scheme}://{shown}:{bound.getsockname()[1]}/"
        if at.listen != "public":
            bound = bound_socket("127.0.0.1", at.steward_port, "--steward-port")
            open_until_the_end.enter_context(bound)
            own = bound.getsockname()[1]
            servers.append((server_for(Steward(folder, store, own).app()), bound))
            addresses["steward"] = f"http://127.0.0.1:{own}/enter/{folder.secret}"
        addresses["study"] = folder.study.identity

        def ready() -> None:
            lines = (f"{_ADDRESSES[name]}: {address}" for name, address in addresses.items())
            console.answer(addresses, *lines, as_json=as_json)
            sys.stdout.flush()
            if browse:
                import webbrowser

                webbrowser.open(addresses["respondents"])

        run(servers, ready)


@collect_app.command
def invite(
    study: _Study,
    /,
    *,
    count: Annotated[int, Parameter(help="Number of links.")],
    url: Annotated[str, Parameter(help="Address of the served study.")] = "http://127.0.0.1:8000/",
    output: Annotated[Path, Parameter(help="Links, one a line (CSV).")],
    qr: Annotated[Path | None, Parameter(help="Folder for a QR image (SVG) of each link.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an invitation link for each person. The study stores only hashes of the links.

    Example: deniable collect invite study --count 500 --url https://study.example/ \\
    --output links.csv
    """
    folder = _folder(study)
    from deniable.collect import inviting

    inviting.invite(folder, count, url, output, qr)
    console.answer(
        {"invitations": count, "output": str(output)},
        f"{count} links are in {output}; hand out each once, then delete the file",
        as_json=as_json,
    )


@collect_app.command
def page(
    study: _Study,
    /,
    *,
    output: Annotated[Path, Parameter(help="File to write (HTML).")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the page with the bytes that are served; it also works offline from a file.

    Example: deniable collect page study --output page.html
    """
    folder = _folder(study)
    import hashlib

    from deniable.atomic_files import write_file
    from deniable.collect.page import page_bytes

    content = page_bytes(folder.study)
    write_file(output, content, overwrite=force)
    digest = hashlib.sha256(content).hexdigest()
    console.answer(
        {"sha256": digest, "bytes": len(content), "study": folder.study.identity},
        f"{output} has {len(content):,} bytes, SHA-256 {digest}",
        as_json=as_json,
    )


@collect_app.command
def verify(
    where: Annotated[str, Parameter(name="URL-OR-FILE", help="A served or saved page.")],
    /,
    *,
    study: Annotated[Path, Parameter(help="The published study.json.")],
    as_json: AsJson = False,
) -> None:
    """Check that a page is a study's own, and recompute the study's ε.

    Exits with status 0 if it is, with 1 otherwise.

    Example: deniable collect verify http://127.0.0.1:8000/ --study study.json
    """
    check_installed()
    import hashlib

    from deniable.collect.client import page_at
    from deniable.collect.page import page_bytes
    from deniable.collect.study import read_study

    frozen = read_study(study / "study.json" if study.is_dir() else study)
    content = page_at(where)
    same = content == page_bytes(frozen)
    facts = {
        "same": same,
        "study": frozen.identity,
        "page_sha256": hashlib.sha256(content).hexdigest(),
        "epsilon": frozen.design.epsilon,
    }
    if as_json:
        console.print_json(facts)
    elif same:
        console.say(
            f"The page is that of study {frozen.identity}",
            f"its SHA-256: {facts['page_sha256']}",
            f"ε of a record, computed from its law: {number_text(frozen.design.epsilon, 6)}",
        )
    else:
        console.note(
            f"ANOTHER PAGE: {where.split('#')[0]} differs from the page of study "
            f"{frozen.identity} in this version of deniable; do not answer there"
        )
    if not same:
        sys.exit(1)


@collect_app.command
def answer(
    url: Annotated[str, Parameter(name="URL", help="The study's address, or an invitation.")],
    /,
    *,
    answers: Annotated[Path, Parameter(help="JSON object of answers by question.")],
    as_json: AsJson = False,
) -> None:
    """Answer a study without a browser: randomize here, send the record, print the receipt.

    Example: deniable collect answer http://127.0.0.1:8000/ --answers answers.json
    """
    check_installed()
    from deniable.collect import client
    from deniable.statement.stored import read_json

    sent = client.answer(url, read_json(answers))
    console.answer(
        {"receipt": sent.receipt, "sent": sent.answers},
        "Sent record, in which some answers are yours and some are random:",
        *(f"  {name}: {value}" for name, value in sent.called.items()),
        f"Receipt: {sent.receipt}",
        "With the receipt you can withdraw the record",
        as_json=as_json,
    )


@collect_app.command
def add(
    study: _Study,
    files: Annotated[list[Path], Parameter(name="RECORDS", help="Files that the page saved.")],
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """Add records that respondents saved to files without a network.

    Example: deniable collect add study record.json
    """
    folder = _folder(study)
    from deniable.collect.collector import today
    from deniable.collect.releasing import add as add_files

    counts = add_files(folder, files, today())
    lines = (f"{count}: {outcome}" for outcome, count in counts.items())
    console.answer(counts, *lines, as_json=as_json)


@collect_app.command
@from_fields
def export(
    study: _Study,
    /,
    *,
    output: Annotated[Path, Parameter(help="Folder to make.")],
    publish: Annotated[
        Typed[Publication], "overwrite ledger population new_population new_ledger sign"
    ],
    as_json: AsJson = False,
) -> None:
    """Write the collected records as a release, as share does: shuffled rows, record, report.

    Example: deniable collect export study --output release
    """
    folder = _folder(study)
    from deniable.cli.releasing import bits_from
    from deniable.collect.releasing import export as write_release

    command = f"deniable collect export {study.name} --output {output.name}"
    publication = publish.read()
    population, signer = open_ledger(publication), read_key(publication)
    record = write_release(
        folder,
        output,
        bits_from(None),
        overwrite=publication.overwrite,
        command=command,
        signer=signer,
        population=population,
    )
    if as_json:
        console.print_json(record)
        return
    console.show_release(record)
    console.show_standing(record, population)
    console.say(f"Read {output / 'report.html'} before you publish {output}")


@collect_app.command
def close(study: _Study, /, *, as_json: AsJson = False) -> None:
    """Close a study to new records. Records can still be withdrawn.

    Example: deniable collect close study
    """
    with _folder(study).opened() as store:
        store.close()
        _show_totals(store.totals(), as_json)


@collect_app.command
def status(study: _Study, /, *, as_json: AsJson = False) -> None:
    """Print the number of records of a study.

    Example: deniable collect status study --json
    """
    with _folder(study).opened() as store:
        _show_totals(store.totals(), as_json)


def _show_totals(totals: Any, as_json: bool) -> None:
    used = f"; {totals.spent} of {totals.invitations} invitations used"
    console.answer(
        asdict(totals),
        f"{'Closed' if totals.closed else 'Open'}: "
        f"{count_text(totals.records, 'record', 'records')}, {totals.withdrawn} "
        f"taken back{used if totals.invitations else ''}",
        as_json=as_json,
    )


@collect_app.command
def demo(
    *,
    files: Annotated[
        Path | None,
        Parameter(help="Only write the example's schema and questionnaire into this folder."),
    ] = None,
    port: Annotated[int, Parameter(help="Port of the page; 0 for any that is free.")] = 0,
    browser: Annotated[bool, Parameter(help="Show the page in a browser.")] = True,
    as_json: AsJson = False,
) -> None:
    """Open the shipped example, serve it on this machine and show it in a browser.

    Example: deniable collect demo --files example
    """
    check_installed()
    import tempfile
    from importlib.resources import files as resources

    from deniable.atomic_files import replaced_folder
    from deniable.collect.folder import StudyFolder
    from deniable.collect.study import new_study
    from deniable.design.design import design
    from deniable.schema import Schema
    from deniable.statement.record import mechanism_to_plain, to_json

    example = resources("deniable.collect").joinpath("example")
    names = ("schema.toml", "questionnaire.toml")
    if files is not None:
        with replaced_folder(files, overwrite=False) as made:
            for name in names:
                (made / name).write_bytes(example.joinpath(name).read_bytes())
        console.answer(
            {"files": [str(files / name) for name in names]},
            f"The example is in {files}; deniable design makes its mechanism",
            as_json=as_json,
        )
        return
    with tempfile.TemporaryDirectory(prefix="deniable-demo-") as place:
        for name in names:
            Path(place, name).write_bytes(example.joinpath(name).read_bytes())
        plan = design(Schema.from_toml(Path(place, names[0])), epsilon=2.3)
        Path(place, "mechanism.json").write_bytes(to_json(mechanism_to_plain(plan)))
        study = new_study(Path(place, "mechanism.json"), Path(place, names[1]), date.today())
        folder = StudyFolder.make(Path(place, "study"), study)
        console.note("Ctrl-C stops the example and deletes the collected records")
        _serve(folder, Listening(port=port), browse=browser, as_json=as_json)
