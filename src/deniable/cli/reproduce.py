"""reproduce: studies that repeat tables and figures of papers, and further ones."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from deniable.cli import console
from deniable.cli.arguments import AsJson
from deniable.errors import InputError


def _studies() -> Any:
    """Return the module of the studies, a separate distribution."""
    from importlib.metadata import entry_points

    for point in entry_points(group="deniable.studies"):
        return point.load()
    raise InputError(
        "the studies are not installed; install deniable-studies "
        "(from a checkout: sh scripts/setup)"
    )


def reproduce(
    study: Annotated[str | None, Parameter(name="STUDY")] = None,
    /,
    *,
    quick: Annotated[bool, Parameter(negative=())] = False,
    adult: Path | None = None,
    seed: int = 0,
    output: Path | None = None,
    force: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        study: A study's name, or all; without one, the list of them.
        quick: Fewer draws and smaller sizes: seconds, not minutes.
        adult: adult.data of the UCI repository, or its folder, for the Adult studies.
        seed: Of everything random; same seed, same numbers.
        output: Folder to make.
        force: Replace the folder of an earlier run.
    """
    studies = _studies()
    if study is None:
        if output is not None:
            raise InputError("name a study to write into the folder, or all")
        _list(studies, as_json)
        return
    chosen = None if study == "all" else studies.catalogue.find(study)
    if output is None:
        raise InputError("give --output, the folder to make")
    if seed < 0:
        raise InputError("--seed: expected a whole number of at least 0")
    if adult is not None and not adult.exists():
        raise InputError(f"--adult: there is no file or folder {adult}")
    if chosen is None:
        _run_all(studies, quick, adult, seed, output, force, as_json)
        return
    if why := studies.catalogue.reason_to_skip(chosen, adult=adult is not None):
        raise InputError(f"{chosen.name} cannot be run: {why}")
    plain = _run_one(studies, chosen, quick, adult, seed, output, force)
    if as_json:
        console.print_json(plain)
    else:
        _show([plain], output)


def _list(studies: Any, as_json: bool) -> None:
    texts = [study.text for study in studies.catalogue.STUDIES]
    if as_json:
        plain = ("title", "source", "seconds", "needs_adult")
        console.print_json(
            [{"study": t.name} | {name: getattr(t, name) for name in plain} for t in texts]
        )
        return
    console.show_table(
        ["study", "in full", "content"],
        [[t.name, _duration(t.seconds), f"{t.title} ({t.source})"] for t in texts],
        text_columns=3,
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _run_one(
    studies: Any, study: Any, quick: bool, adult: Path | None, seed: int, output: Path, force: bool
) -> dict[str, Any]:
    studies.folder.check_output(output, overwrite=force)
    if not quick:
        console.note(
            f"{study.name} takes about {_duration(study.text.seconds)} in full on two cores"
        )
    with console.progress(study.name) as advance:
        setting = studies.Setting(quick, seed, adult, advance)
        findings = study.run(setting)
        studies.folder.write_study(output, study, findings, setting, overwrite=force)
    plain: dict[str, Any] = studies.folder.verdicts_to_plain(study, findings, setting)
    return plain


def _run_all(
    studies: Any,
    quick: bool,
    adult: Path | None,
    seed: int,
    output: Path,
    force: bool,
    as_json: bool,
) -> None:
    studies.folder.make_collection(output, overwrite=force)
    skipped = []
    chosen = []
    for study in studies.catalogue.STUDIES:
        if why := studies.catalogue.reason_to_skip(study, adult=adult is not None):
            skipped.append((study, why))
        else:
            chosen.append(study)
    if not quick:
        total = _duration(sum(study.text.seconds for study in chosen))
        console.note(f"All studies take about {total} in full on two cores")
    done = []
    for study in chosen:
        done.append(_run_one(studies, study, quick, adult, seed, output / study.name, force))
        studies.folder.write_index(output, chosen[: len(done)], skipped, done, quick=quick)
    if as_json:
        console.print_json(studies.folder.collection_to_plain(done, skipped))
        return
    _show(done, output)
    for study, why in skipped:
        console.note(f"Skipped {study.name}: {why}")


def _show(done: list[dict[str, Any]], output: Path) -> None:
    console.show_table(
        ["study", "verdict", "claim"],
        [[run["study"], c["verdict"], c["statement"]] for run in done for c in run["claims"]],
        text_columns=3,
    )
    console.say(f"The page is {output / 'index.html'}")
