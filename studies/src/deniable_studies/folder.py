"""A study's folder: page, figures and numbers, written whole or not at all."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deniable.atomic_files import (
    explain_write_errors,
    refuse_foreign_folder,
    replaced_folder,
    write_file,
)
from deniable.statement.record import to_json
from deniable_studies.drawing import render
from deniable_studies.page import index_page, study_page
from deniable_studies.study import Findings, Setting, Study

PAGE, VERDICTS = "index.html", "verdicts.json"


def check_output(path: Path, *, overwrite: bool) -> None:
    """Stop before any work if a folder exists and is not to be, or must not be, replaced.

    Raises:
        InputError: as :func:`deniable.atomic_files.refuse_foreign_folder`.
    """
    refuse_foreign_folder(
        path, "a study", lambda present: {PAGE, VERDICTS} <= present, overwrite=overwrite
    )


def write_study(
    path: Path, study: Study[Any], findings: Findings, setting: Setting, *, overwrite: bool
) -> None:
    """Write a study's folder: ``index.html``, ``verdicts.json``, figures and tables.

    Raises:
        InputError: if it exists and ``overwrite`` is false, or it cannot be written.
    """
    check_output(path, overwrite=overwrite)
    with replaced_folder(path, overwrite=overwrite) as folder:
        images = {}
        for figure in findings.figures:
            images[figure.name], svg = render(figure)
            (folder / f"{figure.name}.png").write_bytes(images[figure.name])
            (folder / f"{figure.name}.svg").write_bytes(svg)
        for table in findings.tables:
            (folder / f"{table.name}.csv").write_text(table.csv_text(), encoding="utf-8")
        page = study_page(study, findings, images, quick=setting.quick, seed=setting.seed)
        (folder / PAGE).write_text(page, encoding="utf-8")
        (folder / VERDICTS).write_bytes(to_json(verdicts_to_plain(study, findings, setting)))


def verdicts_to_plain(study: Study[Any], findings: Findings, setting: Setting) -> dict[str, Any]:
    """Return a study's verdicts as in ``verdicts.json``."""
    return {
        "study": study.name,
        "quick": setting.quick,
        "seed": setting.seed,
        "claims": [asdict(claim) | {"verdict": str(claim.verdict)} for claim in findings.claims],
    }


def make_collection(path: Path, *, overwrite: bool) -> None:
    """Make the folder that several studies are written into.

    Raises:
        InputError: if it exists and ``overwrite`` is false, or cannot be made.
    """
    check_output(path, overwrite=overwrite)
    with explain_write_errors(path):
        path.mkdir(exist_ok=True)


def write_index(
    path: Path,
    finished: Sequence[Study[Any]],
    skipped: Sequence[tuple[Study[Any], str]],
    plain: Sequence[dict[str, Any]],
    *,
    quick: bool,
) -> None:
    """Write the page that leads to every study of a collection, and all verdicts in one file.

    Args:
        path: the collection's folder.
        finished: the studies that were run.
        skipped: those that were not, and why.
        plain: the verdicts of the finished ones, see :func:`verdicts_to_plain`.
        quick: whether they were quick runs.

    Raises:
        InputError: if they cannot be written.
    """
    verdicts = [[claim["verdict"] for claim in run["claims"]] for run in plain]
    page = index_page(list(zip(finished, verdicts, strict=True)), skipped, quick=quick)
    write_file(path / PAGE, page.encode(), overwrite=True)
    write_file(path / VERDICTS, to_json(collection_to_plain(plain, skipped)), overwrite=True)


def collection_to_plain(
    plain: Sequence[dict[str, Any]], skipped: Sequence[tuple[Study[Any], str]]
) -> dict[str, Any]:
    """Return the verdicts of several studies as in ``verdicts.json``."""
    return {
        "studies": list(plain),
        "skipped": [{"study": study.name, "why": why} for study, why in skipped],
    }
