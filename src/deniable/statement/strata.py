"""The designs of a table's strata: writing to and reading from a record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from deniable.errors import InputError
from deniable.mechanism.strata import Strata
from deniable.statement.account import Design
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain, read_design
from deniable.statement.stored import decoded, read_json
from deniable.strict_json import Rows


@dataclass(frozen=True)
class Designs:
    """A design for each stratum of a table; an undivided table is one (:meth:`one`)."""

    designs: Mapping[str, Design]
    column: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.strata  # checked where it is built
        if self.sizes and set(self.sizes) != set(self.designs):
            raise InputError("every stratum needs a mechanism and a number of rows")

    @classmethod
    def one(cls, design: Design, n_rows: int | None = None) -> "Designs":
        """Return the design of an undivided table, with the number of its rows if it is known."""
        return cls({"": design}, None, {} if n_rows is None else {"": n_rows})

    @cached_property
    def strata(self) -> Strata:
        """The mechanisms of the strata."""
        mechanisms = {stratum: design.mechanism for stratum, design in self.designs.items()}
        return Strata(mechanisms, self.column)


def strata_to_plain(designs: Designs) -> dict[str, Any]:
    """Return the designs of several strata as plain values, readable by :func:`read_designs`."""
    return {
        "column": designs.column,
        "mechanisms": [
            {
                "stratum": stratum,
                "rows": designs.sizes[stratum],
                "mechanism": mechanism_to_plain(design),
            }
            for stratum, design in designs.designs.items()
        ],
    }


def strata_from_plain(plain: Any) -> Designs:
    """Rebuild designs from their plain values, and check every statement against its law."""
    stored = decoded(plain, StoredStrata, "the record of the strata")
    designs = {part.stratum: mechanism_from_plain(part.mechanism) for part in stored.mechanisms}
    if len(designs) != len(stored.mechanisms):
        raise InputError("the strata have been altered: one of them is listed twice")
    sizes = {part.stratum: part.rows for part in stored.mechanisms}
    return Designs(designs, stored.column, sizes)


def read_designs(path: str | Path) -> Designs:
    """Read the designs of all strata from a record; a file with one mechanism holds one stratum."""
    file = Path(path)
    if file.is_dir():
        file = file / "record.json"
    expost = read_json(file).get("expost")
    if not isinstance(expost, dict) or not isinstance(expost.get("strata"), dict):
        return Designs.one(read_design(file))
    try:
        return strata_from_plain(expost["strata"])
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


class StoredStratum(msgspec.Struct, forbid_unknown_fields=True):
    """One value of the column that forms the strata, and the mechanism of its rows."""

    stratum: str
    rows: Rows
    mechanism: dict[str, Any]


class StoredStrata(msgspec.Struct, forbid_unknown_fields=True):
    """The strata by the values of an unchanged column."""

    column: str
    mechanisms: list[StoredStratum]
