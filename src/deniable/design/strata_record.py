"""Designs per stratum as they are stored in the record of an ex-post release, and read back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from deniable.design.plan import Design
from deniable.design.record import mechanism_from_plain, mechanism_to_plain, read_design, read_json
from deniable.errors import InputError
from deniable.mechanism.mechanism import StratifiedMechanism


@dataclass(frozen=True)
class StratifiedDesign:
    """A design for each stratum of one table.

    Args:
        column: the column that forms the strata.
        designs: by stratum.
        sizes: rows per stratum.

    Raises:
        InputError: as :class:`~deniable.mechanism.mechanism.StratifiedMechanism`.
    """

    column: str
    designs: Mapping[str, Design]
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        _ = self.mechanism  # checked where it is built

    @cached_property
    def mechanism(self) -> StratifiedMechanism:
        """The mechanisms of the strata."""
        mechanisms = {stratum: design.mechanism for stratum, design in self.designs.items()}
        return StratifiedMechanism(self.column, mechanisms, self.sizes)


AnyDesign = Design | StratifiedDesign


def strata_to_plain(design: StratifiedDesign) -> dict[str, Any]:
    """Return designs as plain values, readable by :func:`read_plan`."""
    return {
        "column": design.column,
        "mechanisms": [
            {
                "stratum": stratum,
                "rows": design.sizes[stratum],
                "mechanism": mechanism_to_plain(found),
            }
            for stratum, found in design.designs.items()
        ],
    }


def strata_from_plain(plain: Any) -> StratifiedDesign:
    """Rebuild designs from their plain values, and check every statement against its law.

    Raises:
        InputError: if something is missing, or does not hold together.
    """
    try:
        stored = msgspec.convert(plain, _Strata)
    except msgspec.ValidationError as error:
        raise InputError(f"the strata have been altered: {error}") from None
    designs = {part.stratum: mechanism_from_plain(part.mechanism) for part in stored.mechanisms}
    if len(designs) != len(stored.mechanisms):
        raise InputError("the strata have been altered: one of them is listed twice")
    sizes = {part.stratum: part.rows for part in stored.mechanisms}
    return StratifiedDesign(stored.column, designs, sizes)


def read_plan(path: str | Path) -> AnyDesign:
    """Read a mechanism as :func:`~deniable.design.record.read_design` does, or those of all strata.

    Raises:
        InputError: if there is none, or it does not hold together; the sentence names the file.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "record.json"
    expost = read_json(file).get("expost")
    if not isinstance(expost, dict) or not isinstance(expost.get("strata"), dict):
        return read_design(file)
    try:
        return strata_from_plain(expost["strata"])
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


class _Stratum(msgspec.Struct):
    stratum: str
    rows: int
    mechanism: dict[str, Any]


class _Strata(msgspec.Struct):
    column: str
    mechanisms: list[_Stratum]
