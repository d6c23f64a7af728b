"""What a question is asked of: released rows, or counts of them, and what randomized them."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.design.record import released_rows
from deniable.design.stored import read_json
from deniable.design.strata import read_designs
from deniable.errors import InputError, Notice
from deniable.estimate.counting import count_rows, read_counts
from deniable.estimate.tabulate import Counts
from deniable.mechanism.strata import Strata


@dataclass(frozen=True)
class Release:
    """Released rows, or counts of them, and what randomized them.

    Args:
        strata: what randomized the rows.
        rows: what :func:`deniable.tables.open_table` reads; not looked at if there are counts.
        counts: a file of counts instead of rows.
        show_values: let error messages show the offending value.
        n_released: rows that were released, if the record says so: fewer were selected by somebody.
    """

    strata: Strata
    rows: Any = None
    counts: Path | None = None
    show_values: bool = False
    n_released: int | None = None

    def count(
        self,
        names: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
    ) -> list[Counts]:
        """Return the rows counted, as :func:`~deniable.estimate.counting.count_rows` does.

        Raises:
            InputError: as there; or if there are counts only, and they do not say enough.
        """
        if self.counts is None:
            counted = count_rows(
                self.rows,
                self.strata,
                names,
                by=by,
                where=where,
                weights=weights,
                show_values=self.show_values,
            )
            if not where:
                self._warn_of_selection(sum(counts.n_records for counts in counted))
            return counted
        if self.strata.column is not None:
            raise InputError(
                f"the strata of '{self.strata.column}' have a mechanism each, so counts are not "
                "enough; give the released rows"
            )
        if by or where or weights:
            raise InputError(
                "counts have no rows to group, select or weigh; count each group by itself"
            )
        (mechanism,) = self.strata.mechanisms.values()
        return [Counts.of(mechanism, read_counts(self.counts, mechanism, names))]

    def _warn_of_selection(self, n_records: int) -> None:
        if self.n_released is None or n_records >= self.n_released:
            return
        warnings.warn(
            f"the table has {n_records:,} of the {self.n_released:,} rows that were released: if "
            "they were selected by a randomized column, the rows that show a value are not the "
            "people who have it, and estimates from them are wrong; ask for subgroups instead",
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
    """Find what a question is asked of.

    Args:
        source: a release's folder, a randomized table, or a dataframe.
        mechanism: what randomized it, or the file that says so; may be left out for a folder.
        counts: a file of counts instead of rows.
        show_values: let error messages show the offending value.
        n_released: rows that were released, where ``mechanism`` is no file that says so.

    Raises:
        InputError: if something is missing, there is more than one thing to ask, or a file does not
            belong to its record.
    """
    if isinstance(mechanism, Strata):
        return Release(mechanism, source, counts, show_values, n_released)
    is_path = isinstance(source, str | Path)
    folder = Path(source) if is_path and Path(source).is_dir() else None
    if is_path and str(source) != "-" and not Path(source).exists():
        raise InputError(f"{source}: there is no such file or folder")
    if mechanism is None and folder is None:
        raise InputError(
            "name a folder made by share, or say with --mechanism what randomized the table"
        )
    strata = read_designs(mechanism or folder or Path()).strata
    if counts is not None:
        if source is not None and folder is None:
            raise InputError("give either rows or counts, not both")
        return Release(strata, None, counts, show_values)
    if source is None:
        raise InputError("name the randomized table, or a file of counts with --counts")
    if mechanism is not None:
        file = Path(mechanism)
        n_released = released_rows(file / "record.json" if file.is_dir() else file)
    rows = source if folder is None else released_file(folder)
    return Release(strata, rows, None, show_values, n_released)


def released_file(folder: Path) -> Path:
    """Return the rows of a release, after checking that they are the ones its record speaks of.

    Raises:
        InputError: if the file is missing or its digest is another.
    """
    release = read_json(folder / "record.json").get("release")
    if not isinstance(release, dict):
        raise InputError(f"{folder / 'record.json'}: this is not the record of a release")
    path = folder / str(release.get("file"))
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    if digest != release.get("sha256"):
        raise InputError(
            f"{path} is not the file that {folder / 'record.json'} was made for (its SHA-256 "
            "differs); get both from the same release"
        )
    return path
