"""Releases of a store, and records from files into the store."""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.atomic_files import replaced_folder
from deniable.collect.collector import GROUP, RefusedError, submission_of
from deniable.collect.folder import StudyFolder
from deniable.collect.store import ALTERED, Outcome
from deniable.collect.study import Study
from deniable.errors import InputError
from deniable.laws.patterns import code_type
from deniable.ledger import (
    Population,
    Spending,
    StoredRelease,
    compared,
    remembered,
    stored_releases,
)
from deniable.mechanism.strata import Strata
from deniable.randomness import BitSource, permutation
from deniable.release.record import Released
from deniable.release.release import check_ledger, check_output, write_statements
from deniable.release.signing import Signer
from deniable.statement.strata import Designs
from deniable.strict_json import from_json
from deniable.tables import TableWriter
from deniable.tables.columns import text_columns
from deniable.tables.files import digest_of

_ROWS = 1 << 16
"""Rows per write."""


def unpacked(
    study: Study, packed: NDArray[np.uint8], positions: Collection[int] | None = None
) -> dict[int, NDArray[Any]]:
    """Return the codes of packed records, one array of shape (n,) per attribute, by its position.

    ``packed``: two hexadecimal digits a byte, shape (n, bytes).
    """
    codes, at = {}, 0
    for position, (width, n_outputs) in enumerate(
        zip(study.digits, study.design.mechanism.n_outputs, strict=True)
    ):
        if positions is None or position in positions:
            code = np.zeros(len(packed), dtype=np.int64)
            for place in range(at, at + width):
                byte = packed[:, place // 2]
                code = 16 * code + (byte & 15 if place % 2 else byte >> 4)
            if len(code) and code.max() >= n_outputs:
                raise InputError(ALTERED)
            codes[position] = code.astype(code_type(n_outputs))
        at += width
    return codes


def export(
    folder: StudyFolder,
    output: Path,
    bits: BitSource,
    *,
    overwrite: bool = False,
    command: str = "",
    signer: Signer | None = None,
    population: Population | None = None,
) -> dict[str, Any]:
    """Write a release of the collected records, as ``share`` does, always shuffled."""
    check_output(output, overwrite=overwrite)
    check_ledger(output, population)
    study = folder.study
    design = study.design
    mechanism = design.mechanism
    with folder.opened() as store:
        batches = [unpacked(study, packed) for packed in store.records()]
    if not batches:
        raise InputError(f"{folder.path}: the study has no records yet")
    codes = [np.concatenate([batch[i] for batch in batches]) for i in batches[0]]
    known = None if population is None else remembered_study(study, population)
    order = permutation(len(codes[0]), bits)
    columns = text_columns(mechanism.schema.attributes, mechanism.output_labels)
    with replaced_folder(output, overwrite=overwrite) as made:
        file = made / "data.csv"
        with TableWriter(file, columns) as writer:
            for start in range(0, len(order), _ROWS):
                writer.write([column[order[start : start + _ROWS]] for column in codes])
        released = Released(
            file=file.name,
            sha256=digest_of(file),
            columns=tuple(column.name for column in columns),
            n_rows=len(order),
            shuffled=True,
            secure=bits.secure,
            person=None,
            most_rows=None,
            command=command,
        )
        if known is not None:
            assert population is not None
            standing = population.ledger.publish_again(known, released.sha256)
            released = replace(released, standing=standing)
        return write_statements(Designs.one(design), released, made, signer=signer)


def remembered_study(study: Study, population: Population) -> StoredRelease:
    """Enter a study into the ledger unless it is there: its records are drawn once, by the
    respondents, and every export contains the same draws."""
    ledger, what = population.ledger, f"collect {study.identity}"

    def found() -> StoredRelease | None:
        known = stored_releases(ledger.events()) if ledger.exists else []
        return next((r for r in known if r.what == what and r.counted and not r.withdrawn), None)

    if (before := found()) is None:
        spending = Spending.of(Strata.one(study.design.mechanism))
        with remembered(population, spending, what) as entry:
            assert entry is not None
            entry.count()
        before = found()
        assert before is not None
    if compared(before.population) != compared(population.name):
        raise InputError(
            f"the ledger has this study under population '{before.population}', not "
            f"'{population.name}'; give that one as `population`"
        )
    return before


def add(folder: StudyFolder, files: list[Path], today: date) -> dict[str, int]:
    """Store records from files that the page saved; return the number of each outcome."""
    study = folder.study
    records = []
    for path in files:
        for line, body in enumerate(_bodies(path), start=1):
            try:
                records.append(submission_of(study, body))
            except RefusedError as refusal:
                raise InputError(f"{path}, record {line}: {refusal.sentence}") from None
    counts = Counter[str]()
    with folder.opened() as store:
        for start in range(0, len(records), GROUP):
            group = records[start : start + GROUP]
            counts.update(outcome.value for outcome in store.submit(group, today))
    return {outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]}


def _bodies(path: Path) -> list[bytes]:
    """Return the records in a file: one object, or a list of them."""
    try:
        content = from_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not a record that the page saved ({error})") from None
    return [
        json.dumps(each).encode() for each in (content if isinstance(content, list) else [content])
    ]
