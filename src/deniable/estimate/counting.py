"""From a released table to counts: what an estimate starts from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.shares import check_filter
from deniable.estimate.strata import Counts, StratifiedTabulation
from deniable.estimate.tabulate import Tabulation, Tabulator
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute
from deniable.tables import Batch, open_table
from deniable.tables.rows import groups_of, numbers_of

MAX_GROUPS = 10_000


@dataclass(frozen=True)
class Count:
    """The counts of one group of rows.

    Args:
        group: kept columns and the values that the rows have in them; empty for all rows.
        tabulation: the rows, counted by the released values of the attributes asked for; stratum
            by stratum if strata were randomized by mechanisms of their own.
    """

    group: tuple[tuple[str, str], ...]
    tabulation: Counts


def released_attributes(mechanism: Mechanism | Strata, names: Sequence[str]) -> list[Attribute]:
    """Return how the released values of some attributes are read back: as the texts they are
    written with. Attributes released as they are are read like the original; of parts the merged
    attribute is read, once.

    Raises:
        InputError: if a name is unknown or given twice.
    """
    schema = mechanism.schema
    places = dict.fromkeys(variable.position for variable in schema.variables(names))
    return [_released(mechanism, place) for place in places]


def _released(mechanism: Mechanism | Strata, position: int) -> Attribute:
    attribute = mechanism.schema.attributes[position]
    if attribute.name in mechanism.schema.keep:
        return attribute
    if mechanism.n_outputs[position] != attribute.n_categories:
        return Attribute(attribute.name, mechanism.output_labels[position])
    columns = [Attribute(c.name, c.categories, missing=c.missing) for c in attribute.columns]
    return Attribute(attribute.name, parts=tuple(columns)) if attribute.parts else columns[0]


def count_rows(
    source: Any,
    mechanism: Mechanism | Strata,
    names: Sequence[str],
    *,
    by: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    weights: str | None = None,
    show_values: bool = False,
) -> list[Count]:
    """Count a released table, streaming.

    Args:
        source: what :func:`deniable.tables.open_table` reads.
        mechanism: what randomized it.
        names: the attributes to count by, in the order of the table's axes.
        by: kept columns; every combination of their values that occurs is counted by itself.
        where: kept columns and the one value to select rows by.
        weights: a kept column with one weight per row.
        show_values: let error messages show the offending value.

    Returns:
        One count per group, in the order of the groups' values; one for all rows without ``by``.

    Raises:
        InputError: if a column is unknown or randomized where a kept one is needed, a value cannot
            be read, or no row is left.
    """
    where = dict(where or {})
    asked = by
    strata = mechanism if isinstance(mechanism, Strata) and mechanism.column else None
    if strata is not None and strata.column is not None and strata.column not in by:
        by = [*by, strata.column]
    check_filter(mechanism, list(where))
    columns = list(dict.fromkeys([*by, *where, *([weights] if weights else [])]))
    if unknown := [c for c in columns if c not in mechanism.schema.keep]:
        raise InputError(
            f"column '{unknown[0]}' is not among the columns released as they are"
            + (f" ({', '.join(mechanism.schema.keep)})" if mechanism.schema.keep else "")
        )
    places = list(dict.fromkeys(v.position for v in mechanism.schema.variables(names)))
    channels: dict[str, Channel] = {}
    tabulators: dict[tuple[str, ...], Tabulator] = {}
    counted: dict[tuple[str, ...], Channel] = {}
    attributes = released_attributes(mechanism, names)
    with open_table(
        source, attributes, columns, other_columns="drop", show_values=show_values
    ) as reader:
        for batch in reader:
            weight = (
                None
                if weights is None
                else numbers_of(batch.kept[weights], weights, reader.table, batch.first_row)
            )
            for values, rows in _groups(batch, by, where):
                if values not in tabulators:
                    if len(tabulators) == MAX_GROUPS:
                        raise InputError(
                            f"{reader.table}: there are more than {MAX_GROUPS} groups of "
                            f"{', '.join(by)}; group by something coarser"
                        )
                    stratum = "" if strata is None else values[by.index(str(strata.column))]
                    if stratum not in channels:
                        channels[stratum] = Channel(_of_stratum(mechanism, stratum), tuple(names))
                    counted[values] = channels[stratum]
                    tabulators[values] = Tabulator(
                        counted[values].n_outputs, weighted=weights is not None
                    )
                codes = {i: column[rows] for i, column in zip(places, batch.codes, strict=True)}
                tabulators[values].add(
                    counted[values].released_codes(codes), None if weight is None else weight[rows]
                )
        if not tabulators:
            raise InputError(f"{reader.table}: there is no row to estimate from")
    groups: dict[tuple[str, ...], list[tuple[str, Tabulation]]] = {}
    for values in sorted(tabulators):
        # The strata come last, if they were not asked for.
        stratum = values[by.index(str(strata.column))] if strata is not None else ""
        tabulation = tabulators[values].tabulation()
        groups.setdefault(values[: len(asked)], []).append((stratum, tabulation))
    return [
        Count(
            (*where.items(), *zip(asked, values, strict=True)),
            parts[0][1] if strata is None else _stratified(strata, parts),
        )
        for values, parts in groups.items()
    ]


def _stratified(mechanism: Strata, parts: Sequence[tuple[str, Tabulation]]) -> StratifiedTabulation:
    return StratifiedTabulation(
        tuple((mechanism.mechanisms[stratum], tabulation) for stratum, tabulation in parts)
    )


def _of_stratum(mechanism: Mechanism | Strata, stratum: str) -> Mechanism:
    return mechanism if isinstance(mechanism, Mechanism) else mechanism.mechanism_of(stratum)


def _groups(
    batch: Batch, by: Sequence[str], where: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], NDArray[np.intp] | slice]]:
    """Yield the values of every group in a batch, and its rows."""
    if not by and not where:
        yield (), slice(None)
        return
    selected = np.ones(batch.n_rows, dtype=bool)
    for name, value in where.items():
        codes, labels = groups_of(batch.kept[name])
        wanted = [place for place, label in enumerate(labels) if label == value]
        selected &= np.isin(codes, wanted)
    if not by:
        yield (), np.flatnonzero(selected)
        return
    encoded = [groups_of(batch.kept[name]) for name in by]
    shape = tuple(len(labels) for _, labels in encoded)
    combined = np.ravel_multi_index([codes for codes, _ in encoded], shape)
    for group in np.unique(combined[selected]):
        places = np.unravel_index(group, shape)
        values = (labels[int(p)] for (_, labels), p in zip(encoded, places, strict=True))
        yield tuple(values), np.flatnonzero(selected & (combined == group))


def read_counts(path: Path | str, mechanism: Mechanism, names: Sequence[str]) -> Tabulation:
    """Read a file of counts: one row per released combination, with a column ``count``.

    Combinations that are not listed count 0; one that is listed twice is added up.

    Raises:
        InputError: if a column is missing or a value cannot be read.
    """
    channel = Channel(mechanism, tuple(names))
    places = list(dict.fromkeys(channel.positions))
    counts = np.zeros(channel.n_outputs)
    attributes = released_attributes(mechanism, names)
    with open_table(path, attributes, ["count"], other_columns="drop") as reader:
        for batch in reader:
            values = numbers_of(batch.kept["count"], "count", reader.table, batch.first_row)
            codes = channel.released_codes(dict(zip(places, batch.codes, strict=True)))
            np.add.at(counts, tuple(codes), values)
    return Tabulation.from_counts(counts)
