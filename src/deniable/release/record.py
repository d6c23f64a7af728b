"""Statements of a release's `record.json`, and their verification.

A record states numbers; readers see sentences derived from these (:func:`explained`), which are
never compared as text.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from deniable.design.outlook import outlook_to_plain
from deniable.errors import InputError, notify
from deniable.estimate.counting import Cells
from deniable.estimate.source import check_columns, layout_of, released_files
from deniable.ledger import StoredRelease
from deniable.mechanism.prediction import expected_error
from deniable.mechanism.privacy import compose, finite_or_none, or_infinite
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.release import signing
from deniable.release.statements import guarantee_sentence, holds_instead, small_print
from deniable.report.codebook import render_codebook
from deniable.report.contents import (
    FORMAT,
    Attenuation,
    Comparison,
    ExpectedError,
    Guarantee,
    Instead,
    Part,
    Population,
    ReleasedFile,
)
from deniable.report.page import render_report
from deniable.statement.expected_accuracy import expected_accuracy_of_strata
from deniable.statement.methods import METHODS
from deniable.statement.record import design_to_plain, mechanism_to_plain
from deniable.statement.stored import FORMAT as MECHANISM_FORMAT
from deniable.statement.stored import check_version, decoded, fields_of, read_json
from deniable.statement.strata import Designs, read_designs, strata_to_plain
from deniable.strict_json import Rows, Software
from deniable.tables import open_table
from deniable.tables.reading import AS_RELEASED
from deniable.tables.rows import groups_of
from deniable.tables.survey_writing import holds_rows, metadata_texts

FORMAT_VERSION = 2


def digest_of_parts(parts: Sequence[Part]) -> str:
    """Return the common digest of all parts: that of their ``sha256sum`` lines.

    >>> digest_of_parts([Part("data/part-00000.csv", 3, "00" * 32)])[:8]
    '06acda6f'
    """
    lines = "".join(f"{part.sha256}  {part.file}\n" for part in parts)
    return hashlib.sha256(lines.encode()).hexdigest()


@dataclass(frozen=True)
class Released:
    """The released rows.

    ``secure``: whether the random bits were unpredictable. ``standing``: number of releases of the
    population including this one, and ε in nats of a person in all of them, inf for no bound; None
    without a ledger.
    """

    file: str
    sha256: str
    columns: tuple[str, ...]
    n_rows: int
    shuffled: bool
    secure: bool
    person: str | None
    most_rows: int | None
    command: str
    expost: bool = False
    numeric: tuple[str, ...] = ()
    standing: tuple[int, float] | None = None
    parts: tuple[Part, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)


def release_to_plain(designs: Designs, released: Released) -> dict[str, Any]:
    """Return the record of a release: numbers derived from the mechanism and the released rows, and
    statements only its maker can know (``UNCHECKED``)."""
    how: dict[str, Any] = {}
    if released.expost:
        strata = None if designs.column is None else strata_to_plain(designs)
        how["expost"] = {"numeric": list(released.numeric), "strata": strata}
    if designs.column is None:
        (design,) = designs.designs.values()
        how["mechanism"] = mechanism_to_plain(design)
    if released.standing is not None:
        number, epsilon = released.standing
        how["population"] = {"release": number, "epsilon": finite_or_none(epsilon)}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        **_statements(designs, released),
        "command": released.command,
        **how,
    }


def explained(record: Mapping[str, Any], designs: Designs, released: Released) -> dict[str, Any]:
    """Return a record with its derived sentences and the request, for pages and screens; not
    published itself."""
    strata, numeric = designs.strata, released.numeric
    more: dict[str, Any] = {
        "guarantee": record["guarantee"]
        | {
            "sentence": guarantee_sentence(
                strata,
                _of_person(strata, released),
                numeric,
                of_person=released.person is not None,
            ),
            "instead": holds_instead(strata, numeric),
        },
        "small_print": small_print(
            strata,
            shuffled=released.shuffled,
            person=released.person,
            secure=released.secure,
            numeric=numeric,
        ),
    }
    if designs.column is None:
        (design,) = designs.designs.values()
        more["mechanism"] = record["mechanism"] | design_to_plain(design)
        more["outlook"] = outlook_to_plain(design)
    else:
        parts = record["expost"]["strata"]["mechanisms"]
        asked = [
            part | {"mechanism": part["mechanism"] | design_to_plain(design)}
            for part, design in zip(parts, designs.designs.values(), strict=True)
        ]
        of_strata = record["expost"]["strata"] | {"mechanisms": asked}
        more["expost"] = record["expost"] | {"strata": of_strata}
    return {**record, **more}


def _statements(designs: Designs, released: Released) -> dict[str, Any]:
    """Return the statements of a record that :func:`verify` can recompute."""
    strata = designs.strata
    stated: dict[str, Any] = {
        "title": strata.schema.title,
        "release": {
            "file": released.file,
            "sha256": released.sha256,
            "rows": released.n_rows,
            "columns": list(released.columns),
            "row_order": "shuffled" if released.shuffled else "kept",
            "randomness": "operating system" if released.secure else "seeded",
            **({"parts": msgspec.to_builtins(list(released.parts))} if released.parts else {}),
            **({"beside": dict(released.beside)} if released.beside else {}),
        },
        "guarantee": _guarantee(strata, released),
        "attenuation": _attenuations(designs),
        "expected_error": expected_errors(strata, designs.sizes or {"": released.n_rows}),
        "readable": expected_accuracy_of_strata(designs).to_plain(released.n_rows),
    }
    if designs.column is None:
        (design,) = designs.designs.values()
        stated["comparison"] = design.account.comparison_to_plain()
    return stated


def _attenuations(designs: Designs) -> dict[str, Any]:
    names = designs.strata.schema.names
    if designs.column is not None:  # every stratum has its own
        return {"single": dict.fromkeys(names), "pairs": None}
    (design,) = designs.designs.values()
    singles = design.account.strength.attenuation
    return {
        "single": dict(zip(names, singles, strict=True)),
        "pairs": design.account.pairs_to_plain(),
    }


def expected_errors(strata: Strata, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the standard error of an estimated share per protected attribute: the worst category
    at the least favourable truth."""
    schema, n_records = strata.schema, sum(sizes.values())

    def error(stratum: str, name: str) -> float:
        channel = channel_of(strata.mechanism_of(stratum), (name,))
        return expected_error(channel, sizes[stratum]).worst

    # The strata's errors are independent, weighted by the strata's fractions of the rows.
    names = [schema.names[i] for i in schema.protected]
    errors = (math.hypot(*(n / n_records * error(s, a) for s, n in sizes.items())) for a in names)
    return [{"attribute": a, "standard_error": e} for a, e in zip(names, errors, strict=True)]


def _of_person(strata: Strata, released: Released) -> float:
    """Return ε in nats of all rows of a person."""
    return compose([strata.epsilon], times=released.most_rows or 1)


def _guarantee(strata: Strata, released: Released) -> dict[str, Any]:
    drafted = list(strata.schema.drafted)
    person = None
    if released.person is not None:
        person = {
            "column": released.person,
            "most_rows": released.most_rows,
            "epsilon": finite_or_none(_of_person(strata, released)),
        }
    instead = holds_instead(strata, released.numeric)
    return {
        **({"drafted": drafted} if drafted else {}),
        "epsilon": finite_or_none(strata.epsilon),
        "person": person,
        "unprotected": [*strata.unprotected, *released.numeric],
        "instead": [fields_of(Instead, one) for one in instead],
    }


UNCHECKED_MECHANISM = {
    "software": "version of the program",
    "method": "method of the design",
    "schema": "title, labels and questions",
}
"""Statements of a mechanism's file that only its maker can know, with their descriptions."""

UNCHECKED = {
    "software": UNCHECKED_MECHANISM["software"],
    "mechanism.method": UNCHECKED_MECHANISM["method"],
    "expost.strata.mechanisms": "methods of the strata's matrices",
    "command": "command",
    "release.row_order": "order of the rows",
    "release.randomness": "source of the random bits",
    "guarantee.person": "rows per person",
    "title": UNCHECKED_MECHANISM["schema"],
    "worth": "readability by an older version",
    "population": "other releases of the population (ledger check)",
}
"""Statements of a record that only its maker can know, with their descriptions."""

FILE = "files/"
"""Prefix of a file's name in the result of :func:`verify`."""

UNCHECKED_WITHOUT_ROWS = {
    "release.rows": "number of rows",
    "release.columns": "columns",
    "release.sha256": "digest of the rows",
    "expost.strata": "names and sizes of the strata",
    "expost.numeric": "columns of numbers contracted to their mean",
}
"""Statements that cannot be checked without the released rows, with their descriptions."""


def verify(path: Path, designs: Designs | None = None) -> dict[str, str]:
    """Recompute a release's record from its mechanism and its released rows, if present; return the
    unchecked statements with their descriptions. A bare mechanism has only those of its maker.
    ``designs``: those of the file, if they have been read."""
    file = path / "record.json" if path.is_dir() else path
    plain = read_json(file)
    if plain.get("format") == MECHANISM_FORMAT:
        return dict(UNCHECKED_MECHANISM)
    stored = _stored(plain, file)
    designs = designs or read_designs(file)
    released = stored.released()
    if designs.sizes and sum(designs.sizes.values()) != released.n_rows:
        raise InputError(f"{file}: the sizes of the strata do not add up to the number of rows")
    if released.most_rows is not None and released.most_rows > released.n_rows:
        raise InputError(f"{file}: a person has more rows than the release")
    check_columns(plain, designs.strata, file)
    _refuse_understated(stored, designs.strata, file)
    current = msgspec.to_builtins(stored)
    for key, true in _statements(designs, released).items():
        if key == "readable" and stored.readable is None:
            continue  # stored differently by an older version
        if not _agree(current[key], true):
            raise InputError(
                f"{file}: the record's {key.replace('_', ' ')} differs from the one recomputed "
                "from its mechanism and rows; the record was altered"
            )
    total = None if stored.population is None else stored.population.epsilon
    if total is not None and total < _level_of_person(stored):
        raise InputError(f"{file}: the total of its population is less than this release alone")
    unchecked = dict(UNCHECKED)
    _check_parts(released, file)
    unknown: list[str] = []
    if file.name == "record.json" and (file.parent / released.file).exists():
        _check_rows(released_files(file.parent, designs.strata), released, designs, file)
        unknown = _unknown_files(file.parent, plain, released, designs)
        unchecked |= _metadata_of(file.parent, released, designs)
    else:
        unchecked |= UNCHECKED_WITHOUT_ROWS
    always = {"guarantee.person", "title"}  # also if absent
    found = {
        w: words
        for w, words in unchecked.items()
        if w in always or w.startswith(FILE) or _has(current, w)
    }
    return found | {f"{FILE}{name}": f"content of {name}" for name in unknown}


def _unknown_files(
    folder: Path, record: Mapping[str, Any], released: Released, designs: Designs
) -> list[str]:
    """Return the files in a release's folder that do not follow from its record and rows, after
    checking those that do."""
    columns = {column.name: column for column in layout_of(designs.strata, released.numeric)}
    known = {"record.json", released.file, *(signing.FILES if signing.is_signed(folder) else ())}
    if released.file == "data.bed":
        known |= {"data.bim", "data.fam"}
    page = explained(record, designs, released)
    unknown = []
    for path in sorted(folder.iterdir()):
        name = path.name
        if name in known:
            continue
        if name in released.beside:
            rows = [columns[column] for column in released.columns]
            same = holds_rows(path, folder / released.file, rows, designs.strata.schema)
            if same is False:
                raise InputError(
                    f"{path}: its columns, cells or labels differ from those of {released.file}"
                )
            if same:
                continue
        if name == "codebook.csv":
            if _holds(path, render_codebook(page)):
                continue
            if record["software"] == f"deniable {version('deniable')}":
                raise InputError(
                    f"{path}: this codebook differs from the one recomputed from the record"
                )
        words = METHODS[next(iter(designs.designs.values())).method]
        if name == "report.html" and _holds(path, render_report(page, words)):
            continue
        unknown.append(name if name.isprintable() else ascii(name))
    return unknown


def _metadata_of(folder: Path, released: Released, designs: Designs) -> dict[str, str]:
    """Return, by file, that a Parquet file has unexpected metadata."""
    files = sorted([*folder.glob("data/*.parquet"), *folder.glob("data.parquet")])
    if not files:
        return {}
    from deniable.tables.parquet_source import has_further_metadata

    layout = layout_of(designs.strata, released.numeric)
    of_copy = metadata_texts(layout, designs.strata.schema)
    names = [
        f"{path.relative_to(folder)}"
        for path in files
        if has_further_metadata(path, of_copy if path.name in released.beside else ())
    ]
    return {f"{FILE}{name}": f"the metadata in {ascii(name)[1:-1]}" for name in names}


def _holds(path: Path, text: str) -> bool:
    content = text.encode()
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content


def _refuse_understated(stored: "StoredRecord", strata: Strata, file: Path) -> None:
    """Raise if the guarantee is below that of its mechanism, by however little.

    A level is rounded up once, in the mechanism's account. The mechanism's stated level has been
    verified and is compared with the guarantee: both are equal to the last bit on every machine.
    """
    guarantee = stored.guarantee
    own = strata.epsilon
    if stored.mechanism is not None:
        own = or_infinite(stored.mechanism["epsilon"])
    levels = [("ε of the record", guarantee.epsilon, own)]
    if guarantee.person is not None:
        of_person = compose([own], times=guarantee.person.most_rows)
        levels.append(("ε of a person", guarantee.person.epsilon, of_person))
    for one, true in zip(guarantee.instead, holds_instead(strata), strict=False):
        if one.if_frequencies_known is not None and true["if_frequencies_known"] is not None:
            known = true["if_frequencies_known"]
            what = "if the frequencies are known"
            levels.append((f"ε {what}", one.if_frequencies_known.epsilon, known["epsilon"]))
            stated = one.if_frequencies_known.attributes
            levels += [
                (f"ε of '{name}' {what}", stated.get(name, 0.0), level)
                for name, level in known["attributes"].items()
            ]
    for what, level, true_level in levels:
        if or_infinite(level) < true_level:
            raise InputError(
                f"{file}: the guarantee states {what} as {level!r}, and the mechanism gives "
                f"{true_level!r}"
            )


def _has(current: Any, place: str) -> bool:
    for key in place.split("."):
        current = current.get(key) if isinstance(current, dict) else None
    return current not in (None, [], "")


def _stored(plain: Mapping[str, Any], file: Path) -> "StoredRecord":
    try:
        check_version(plain, FORMAT, FORMAT_VERSION)
        stored = decoded(plain, StoredRecord, "the record")
        in_strata = stored.expost is not None and stored.expost.strata is not None
        if in_strata == (stored.mechanism is not None):
            raise InputError("a release has either one mechanism or one for every stratum")
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return stored


def in_ledger(folder: Path, releases: Sequence[StoredRelease]) -> StoredRelease:
    """Return the ledger entry of a published release."""
    if unknown := [words for place, words in verify(folder).items() if place.startswith(FILE)]:
        notify(f"{folder}: not checked: {', '.join(unknown)}")
    file = folder / "record.json"
    stored = _stored(read_json(file), file)
    for release in releases:
        published = (release.published, *release.published_before)
        if stored.release.sha256 in published and not release.withdrawn:
            if _level_of_person(stored) > release.of_person.epsilon:
                raise InputError(f"{folder}: the ledger has this release with a smaller level")
            return release
    raise InputError(
        f"{folder}: the ledger does not contain this release; it was made without a ledger, or "
        "with another one"
    )


def _level_of_person(stored: "StoredRecord") -> float:
    """Return ε in nats of all rows of a person; inf for no bound."""
    person = stored.guarantee.person
    return or_infinite(stored.guarantee.epsilon if person is None else person.epsilon)


def _check_parts(released: Released, file: Path) -> None:
    """Check that the statements on the parts agree with those on all rows."""
    parts = released.parts
    if bool(parts) != (released.file == "data"):
        raise InputError(f"{file}: parts are listed if and only if the rows are a folder")
    if not parts:
        return
    if len({part.file for part in parts}) != len(parts):
        raise InputError(f"{file}: a part is listed twice")
    if sum(part.rows for part in parts) != released.n_rows:
        raise InputError(f"{file}: the parts do not add up to the number of rows")
    if digest_of_parts(parts) != released.sha256:
        raise InputError(f"{file}: the digest of all parts differs from that of the listed ones")


def _check_rows(files: Sequence[Path], released: Released, designs: Designs, file: Path) -> None:
    """Compare the released rows with their statements: number, values and strata."""
    column = designs.column
    cells = Cells(designs.strata, designs.strata.schema.names)
    kept = [name for name in (column, cells.form_column) if name is not None]
    sizes: Counter[str] = Counter()
    n_rows = 0
    for number, data in enumerate(files):
        before = n_rows
        with open_table(
            data, cells.attributes, kept, other_columns="drop", file_format=AS_RELEASED
        ) as reader:
            for batch in reader:
                cells.codes(batch, reader.table)
                n_rows += batch.n_rows
                if column is not None:
                    codes, labels = groups_of(batch.kept[column])
                    counts = np.bincount(codes, minlength=len(labels))
                    for label, count in zip(labels, counts.tolist(), strict=True):
                        sizes[label] += count
        rows = released.parts[number].rows if released.parts else released.n_rows
        if n_rows - before != rows:
            raise InputError(f"{file}: the record's number of rows differs from that of {data}")
    if column is not None and sizes != Counter(designs.sizes):
        raise InputError(f"{file}: the strata or their sizes differ from those of {files[0]}")


def _agree(stated: Any, true: Any) -> bool:
    """Return whether two plain values are equal, numbers up to rounding."""
    if isinstance(true, dict):
        return (
            isinstance(stated, dict)
            and stated.keys() == true.keys()
            and all(_agree(stated[key], value) for key, value in true.items())
        )
    if isinstance(true, list | tuple):
        return (
            isinstance(stated, list | tuple)
            and len(stated) == len(true)
            and all(_agree(*both) for both in zip(stated, true, strict=True))
        )
    if isinstance(true, float) and isinstance(stated, int | float):
        return math.isclose(stated, true, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == true)


class StoredReadability(msgspec.Struct, forbid_unknown_fields=True):
    """Readable share of a table, from the released rows."""

    attributes: list[str]
    cells: Rows
    readable: int
    standard_error: float | None
    half_width: float | None
    rows: Rows
    readable_from: int | None
    target: Literal["table", "population"]


class StoredPairs(msgspec.Struct, forbid_unknown_fields=True):
    """Tables of two attributes, and the number of them with at least half of the cells readable."""

    tables: Rows
    readable: int


class StoredReadabilities(msgspec.Struct, forbid_unknown_fields=True):
    """Readability of the released rows."""

    attributes: list[StoredReadability]
    pairs: StoredPairs | None


class StoredExPost(msgspec.Struct, forbid_unknown_fields=True):
    """Treatment of the table as a whole by a curator."""

    numeric: tuple[str, ...]
    strata: dict[str, Any] | None


class StoredRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A release: its rows, its mechanism and all derived numbers."""

    format: Literal["deniable release"]
    format_version: Literal[2]
    software: Software
    title: str
    release: ReleasedFile
    guarantee: Guarantee
    attenuation: Attenuation
    expected_error: list[ExpectedError]
    command: Annotated[str, msgspec.Meta(max_length=1 << 16)]
    readable: StoredReadabilities | None = None
    worth: dict[str, Any] | None = None
    comparison: Comparison | None = None
    expost: StoredExPost | None = None
    mechanism: dict[str, Any] | None = None
    population: Population | None = None

    def released(self) -> Released:
        """Return the released rows."""
        release, person = self.release, self.guarantee.person
        return Released(
            file=release.file,
            sha256=release.sha256,
            columns=release.columns,
            n_rows=release.rows,
            shuffled=release.row_order == "shuffled",
            secure=release.randomness == "operating system",
            person=None if person is None else person.column,
            most_rows=None if person is None else person.most_rows,
            command="",
            expost=self.expost is not None,
            numeric=() if self.expost is None else self.expost.numeric,
            parts=release.parts,
            beside={str(name): digest for name, digest in release.beside.items()},
        )
