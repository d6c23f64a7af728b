"""Estimates with known margins, such as those of a census or a register.

With C the sums that are known, m their values, π̂ the estimate and V its covariance,

    π̃ = π̂ − V Cᵀ (C V Cᵀ)⁻¹ (C π̂ − m),    Ṽ = V − V Cᵀ (C V Cᵀ)⁻¹ C V,

the table nearest to π̂ in the metric of its errors that has the known shares, unbiased if they are
right (generalized least squares under linear constraints; as in calibration, Deville and Särndal
1992).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from deniable.errors import InputError
from deniable.estimate.tabulate import Floats
from deniable.numerals import count_text

SUM_TOLERANCE = 1e-3
"""Largest distance of a margin's sum from 1, for rounded shares; they are scaled to 1."""


@dataclass(frozen=True)
class Margins:
    """Tables of shares that are known exactly."""

    tables: Mapping[tuple[str, ...], Mapping[tuple[str, ...], float]]
    source: str = "known"

    def applied(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return in words those margins that are of some attributes."""
        return tuple(" by ".join(margin) for margin in self.tables if set(margin) <= set(names))


def read_margins(path: str | Path) -> Margins:
    """Read known shares from a CSV file: columns named like attributes, and ``share`` or ``count``.

    A row gives the share of a combination of categories; where a cell is empty, of any category of
    that attribute. Rows that fill the same columns make one margin.
    """
    import csv

    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is no CSV file in UTF-8"
        raise InputError(f"{path}: cannot be read ({why})") from None
    head = [name.strip() for name in rows[0]] if rows else []
    number = [i for i, name in enumerate(head) if name in ("share", "count")]
    if len(number) != 1 or len(head) < 2 or len(set(head)) < len(head):
        raise InputError(
            f"{path}: the first row names attributes, each once, and one column share or count"
        )
    tables: dict[tuple[str, ...], dict[tuple[str, ...], float]] = {}
    for place, row in enumerate(rows[1:], start=1):
        where = f"{path}, data row {place}"
        if len(row) != len(head):
            raise InputError(
                f"{where}: it has {count_text(len(row), 'cell')}, and the first row {len(head)}"
            )
        filled = [i for i, cell in enumerate(row) if i != number[0] and cell.strip()]
        names = tuple(head[i] for i in filled)
        categories = tuple(row[i].strip() for i in filled)
        try:
            value = float(row[number[0]])
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise InputError(f"{where}, column '{head[number[0]]}': it is not a number above 0")
        if not names:
            raise InputError(f"{where}: it names no category")
        if categories in tables.setdefault(names, {}):
            raise InputError(f"{where}: this combination is listed twice")
        tables[names][categories] = value
    if not tables:
        raise InputError(f"{path}: there are no shares in it")
    for names, table in tables.items():
        total = sum(table.values())
        if head[number[0]] == "share" and abs(total - 1) > SUM_TOLERANCE:
            raise InputError(
                f"{path}: the shares of {', '.join(names)} sum to {total:.6g}, not to 1"
            )
        tables[names] = {key: value / total for key, value in table.items()}
    return Margins(tables, str(path))


Known = Margins | str | Path | None
"""Known shares, or the CSV file that :func:`read_margins` reads."""


def margins_of(known: Known) -> Margins | None:
    """Return known shares, read from their file if they are given as a path."""
    return read_margins(known) if isinstance(known, str | Path) else known


def margin_members(
    known: Margins, categories: Mapping[str, Sequence[str]]
) -> list[tuple[Floats, Floats]]:
    """Return the margins that are of some attributes as sums of cells.

    ``categories``: of the attributes, by name, in the order of the table's axes.

    Of each margin which cells every share adds up, zeros and ones, shape (shares, cells), and the
    shares.
    """
    names = list(categories)
    shape = tuple(map(len, categories.values()))
    found = []
    for margin, table in known.tables.items():
        if not set(margin) <= set(names):
            continue
        wanted = list(product(*(categories[name] for name in margin)))
        if strange := [key for key in table if key not in wanted]:
            name = next(
                n for n, c in zip(margin, strange[0], strict=True) if c not in categories[n]
            )
            raise InputError(
                f"{known.source}: a category of '{name}' is not in this release "
                f"({', '.join(categories[name])})"
            )
        if missing := [key for key in wanted if key not in table]:
            raise InputError(
                f"{known.source}: the share of {', '.join(missing[0])} is missing; a margin has "
                "all combinations"
            )
        indices = np.indices(shape)
        place = np.zeros(shape, dtype=np.int64)
        for name in margin:
            place = place * len(categories[name]) + indices[names.index(name)]
        members = np.arange(len(wanted))[:, None] == place.ravel()
        found.append((members.astype(np.float64), np.array([table[key] for key in wanted])))
    if not found:
        raise InputError(
            f"{known.source}: no known margin is of {', '.join(names)} alone; name the "
            "attributes of a margin"
        )
    return found


def imposed(
    values: Floats, covariance: Floats, members: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return an estimate with known sums, and its covariance.

    ``values``: π̂, shape (cells,). ``covariance``: V, shape (cells, cells). ``members``: C, shape
    (sums, cells). ``shares``: m, shape (sums,).
    """
    gain = (
        covariance
        @ members.T
        @ np.linalg.pinv(members @ covariance @ members.T, rcond=1e-10, hermitian=True)
    )
    left = covariance - gain @ members @ covariance
    return values - gain @ (members @ values - shares), (left + left.T) / 2
