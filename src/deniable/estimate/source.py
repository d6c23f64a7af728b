"""Releases: released rows, or counts of them, and the mechanisms that randomized them."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.errors import InputError, Notice
from deniable.estimate.counting import (
    KeptColumn,
    KeptRows,
    Rows,
    count_tables,
    first_rows,
    kept_columns,
    read_rows,
)
from deniable.estimate.survey import NO_SAMPLE, SampleColumns
from deniable.estimate.tabulate import Counts
from deniable.mechanism.strata import Strata
from deniable.statement.record import released_rows
from deniable.statement.stored import FORMAT as MECHANISM_FORMAT
from deniable.statement.stored import read_json
from deniable.statement.strata import read_designs
from deniable.tables import Column, Forms, is_fileset
from deniable.tables.columns import text_columns
from deniable.tables.files import digest_of, files_of
from deniable.tables.plink import check_people
from deniable.tables.reading import AS_RELEASED, as_it_was, can_be_read_again, column_names
from deniable.tables.selection import Where


@dataclass(frozen=True)
class Release:
    """Released rows, or counts of them, with the mechanisms of their strata.

    ``identified``: whether the mechanism is known to have released the rows; of others an empty
    answer is left out, which is an error in a release.
    """

    strata: Strata
    rows: Any = None
    counts: Path | None = None
    show_values: bool = False
    n_released: int | None = None
    identified: bool = False

    def count(
        self,
        names: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        numbers: Sequence[str] = (),
        sample: SampleColumns = NO_SAMPLE,
    ) -> list[Counts]:
        """Return the rows counted by some attributes, one for each group of rows."""
        (counted,) = self.count_tables(
            [names], by=by, where=where, weights=weights, numbers=numbers, sample=sample
        )
        return counted

    def count_tables(
        self,
        tables: Sequence[Sequence[str]],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        numbers: Sequence[str] = (),
        by_form: bool = False,
        sample: SampleColumns = NO_SAMPLE,
    ) -> list[list[Counts]]:
        """Return the rows counted by several sets of attributes, in one pass."""
        counted = count_tables(
            self.rows if self.counts is None else self.counts,
            self.strata,
            tables,
            by=by,
            where=where,
            weights=weights,
            numbers=numbers,
            show_values=self.show_values,
            counted=self.counts is not None,
            by_form=by_form,
            sample=sample,
            complete_cases=not self.identified,
        )
        if not where:
            left_out = sum(count for _, count in counted[0][0].selection.left_out)
            self._warn_of_selection(left_out + sum(counts.n_records for counts in counted[0]))
        return counted

    @property
    def can_be_read_again(self) -> bool:
        """Whether reading the rows once leaves them there to be read."""
        return self.counts is not None or can_be_read_again(self.rows)

    def kept_columns(self, names: Sequence[str], where: Where = None) -> dict[str, KeptColumn]:
        """Return whether kept columns hold numbers or categories, see
        :func:`~deniable.estimate.counting.kept_columns`."""
        with as_it_was(self.rows):
            source = self.rows if self.counts is None else self.counts
            return kept_columns(source, self.strata, names, where)

    def read_rows(
        self,
        names: Sequence[str],
        *,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        sample: SampleColumns = NO_SAMPLE,
    ) -> KeptRows:
        """Return attributes' codes and kept columns of rows, see
        :func:`~deniable.estimate.counting.read_rows`."""
        if self.counts is not None:
            raise InputError("this query needs the released rows, not counts of them")
        return read_rows(
            self.rows,
            self.strata,
            names,
            texts=texts,
            numbers=numbers,
            where=where,
            weights=weights,
            sample=sample,
            complete_cases=not self.identified,
            show_values=self.show_values,
        )

    def first_rows(self, names: Sequence[str], most: int) -> dict[str, Rows]:
        """Return the first rows' released codes of those attributes that have columns."""
        source, count = (self.rows, None) if self.counts is None else (self.counts, "count")
        cases = not self.identified
        return first_rows(source, self.strata, names, most, count, complete_cases=cases)

    def _warn_of_selection(self, n_records: int) -> None:
        if self.n_released is None or n_records >= self.n_released:
            return
        warnings.warn(
            f"the table has {n_records:,} of the {self.n_released:,} rows that were released: if "
            "they were selected by a randomized column, the rows that show a value are not the "
            "people who have it, and estimates from them are wrong; use subgroups (by) instead",
            Notice,
            stacklevel=2,
        )


def open_release(
    source: Any = None,
    mechanism: str | Path | Strata | None = None,
    counts: Path | None = None,
    *,
    show_values: bool = False,
    n_released: int | None = None,
) -> Release:
    """Return a release from a folder, a file or a dataframe."""
    if isinstance(mechanism, Strata):
        known = counts is None and _has_forms(mechanism)
        return Release(mechanism, source, counts, show_values, n_released, identified=known)
    is_path = isinstance(source, str | Path)
    folder = Path(source) if is_path and Path(source).is_dir() else None
    is_file = is_path and folder is None and str(source) != "-"
    if is_file and not files_of(source) and not Path(source).exists():
        raise InputError(f"{source}: there is no such file or folder")
    if folder is not None and mechanism is not None and not (folder / "record.json").exists():
        folder = None  # of parts, next to their mechanism
    if mechanism is None and folder is None:
        raise InputError("name a folder made by share, or the table's mechanism with `plan`")
    stated = mechanism or folder or Path()
    strata = read_designs(stated).strata
    file = Path(stated)
    record = file / "record.json" if file.is_dir() else file
    plain = read_json(record)
    check_columns(plain, strata, record)
    if mechanism is not None or counts is not None:
        n_released = released_rows(record)
    if counts is not None:
        if source is not None and folder is None:
            raise InputError("give either rows or counts, not both")
        known = folder is not None
        return Release(strata, None, counts, show_values, n_released, known)
    if source is None:
        raise InputError(
            "name the randomized table, or a file of counts with `deniable estimate --counts`"
        )
    rows = source if folder is None else released_files(folder, strata)
    known = folder is not None or _has_forms(strata) or (is_file and _is_listed(source, plain))
    return Release(strata, rows, None, show_values, n_released, known)


def _has_forms(strata: Strata) -> bool:
    """Whether released rows have a column that true rows lack: the number of the form."""
    return any(mechanism.forms is not None for mechanism in strata.mechanisms.values())


def _is_listed(file: Any, record: Mapping[str, Any]) -> bool:
    """Whether the record of a release lists the digest of a file."""
    release = record.get("release")
    if not isinstance(release, Mapping) or not Path(file).is_file():
        return False
    parts, beside = release.get("parts") or (), release.get("beside") or {}
    digests = {release.get("sha256"), *(part["sha256"] for part in parts), *beside.values()}
    return digest_of(Path(file)) in digests


def layout_of(strata: Strata, numeric: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns of a release in the schema's order: attributes, kept columns, numbers
    that are pulled towards their mean, and the form."""
    forms = next(iter(strata.mechanisms.values())).forms
    return text_columns(
        strata.schema.attributes,
        strata.output_labels,
        (*strata.schema.keep, *numeric),
        None if forms is None else Forms(forms.column, len(forms.forms)),
    )


def check_columns(record: Mapping[str, Any], strata: Strata, file: Path) -> None:
    """Refuse the record of a release with a column that its mechanism neither randomizes nor keeps,
    or whose guarantee does not list the columns that have none.

    Every verdict on a release rests on this rule, and on :func:`released_files`, by which the rows
    have these columns and no other.
    """
    if record.get("format") == MECHANISM_FORMAT:
        return
    columns, unprotected = (
        _names(record, place, file) for place in ("release.columns", "guarantee.unprotected")
    )
    numeric = _names(record, "expost.numeric", file) if record.get("expost") else []
    schema = strata.schema
    true = Counter(column.name for column in layout_of(strata, numeric))
    if twice := {*numeric} & {*schema.names, *schema.columns, *schema.keep}:
        raise InputError(f"{file}: '{min(twice)}' is an attribute or kept, and also among numbers")
    if missing := true - Counter(columns):
        raise InputError(
            f"{file}: the mechanism releases '{min(missing)}', and the record does not"
        )
    if more := Counter(columns) - true:
        raise InputError(
            f"{file}: the record releases '{min(more)}', and the mechanism neither randomizes nor "
            "keeps such a column, or it is listed twice"
        )
    if other := {*unprotected} ^ {*strata.unprotected, *numeric}:
        raise InputError(
            f"{file}: guarantee and mechanism do not agree whether '{min(other)}' is unprotected"
        )


def _names(record: Mapping[str, Any], place: str, file: Path) -> list[str]:
    value: Any = record
    for key in place.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{file}: the record has been altered: {place} is not a list of columns")
    return value


def released_files(folder: Path, strata: Strata) -> list[Path]:
    """Return the rows of a release, one file or several parts in order, after checking that they
    are the ones its record speaks of, and all of them, with the columns that it states."""
    record = folder / "record.json"
    plain = read_json(record)
    files = _listed_files(folder, plain)
    check_columns(plain, strata, record)
    columns = _names(plain, "release.columns", record)
    for file in files:
        found = column_names(file, AS_RELEASED, columns)
        if list(found) != columns:
            other = sorted({*found} ^ {*columns})
            raise InputError(
                f"{record}: the record's columns are not those of {file}"
                + (f": '{other[0]}' is in one of them only" if other else ", or in another order")
            )
        if is_fileset(file):
            check_people(file, columns)
    return files


def _listed_files(folder: Path, plain: Mapping[str, Any]) -> list[Path]:
    record = folder / "record.json"
    release = plain.get("release")
    if not isinstance(release, dict):
        raise InputError(f"{record}: this is not the record of a release")
    parts = release.get("parts")
    if not parts:
        beside = release.get("beside")
        for name, digest in (beside if isinstance(beside, dict) else {}).items():
            _of_digest(folder / name, digest, record)
        return [_of_digest(folder / str(release.get("file")), release.get("sha256"), record)]
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{record}: the record has been altered: its parts are not a list")
    data = folder / "data"
    if not data.is_dir():
        raise InputError(f"{data}: cannot be read (No such file or directory)")
    listed = {str(part.get("file")) for part in parts}
    for entry in sorted(data.iterdir()):
        if f"data/{entry.name}" not in listed:
            raise InputError(
                f"{entry} is no part of the release that {record} was made for; remove it, or get "
                "both from the same release"
            )
    return [
        _of_digest(folder / str(part.get("file")), part.get("sha256"), record) for part in parts
    ]


def _of_digest(path: Path, digest: Any, record: Path) -> Path:
    if digest_of(path) != digest:
        raise InputError(
            f"{path} is not the file that {record} was made for (its SHA-256 "
            "differs); get both from the same release"
        )
    return path
