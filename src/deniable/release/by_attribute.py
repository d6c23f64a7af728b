"""Randomization of a fileset variant by variant.

A biobank's table is wider than memory and stored by columns. The codes of one attribute of all
people are read, randomized and written, then those of the next; only codes needed by later
attributes stay in memory.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import permutation
from deniable.tables import Column, FilesetWriter, TableReader
from deniable.tables.files import digest_of
from deniable.tables.plink import COMPANIONS, Fileset


def write_by_attribute(
    reader: TableReader,
    columns: tuple[Column, ...],
    randomizer: Randomizer,
    path: Path,
    *,
    shuffle: bool = False,
    overwrite: bool = False,
    before_seen: Callable[[], None] = lambda: None,
    progress: Callable[[float | None], None] = lambda _fraction: None,
) -> int:
    """Randomize a fileset into another; return its number of people."""
    source = reader.source
    assert isinstance(source, Fileset)
    order = permutation(source.n_rows, randomizer.source) if shuffle else None
    shown: dict[int, list[Column]] = {}
    for column in columns:
        if column.position is not None:
            shown.setdefault(column.position, []).append(column)

    def codes_of(place: int) -> NDArray[Any]:
        codes = reader.genotypes(place)
        return codes if order is None else codes[order]

    with FilesetWriter(
        path, source, columns, overwrite=overwrite, before_seen=before_seen
    ) as writer:
        for column in columns:
            if column.position is None:
                writer.copy(column, order)
        drawn = randomizer.by_attribute(source.n_rows, codes_of)
        for done, (place, codes) in enumerate(drawn, 1):
            for column in shown.get(place, []):
                writer.write(column, {place: codes})
            progress(done / len(reader.attributes))
    return source.n_rows


def companion_digests(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a released file's companions by name, empty without companions."""
    if path.suffix != ".bed":
        return {}
    return {
        beside.name: digest_of(beside)
        for beside in (path.with_suffix(suffix) for suffix in COMPANIONS)
    }
