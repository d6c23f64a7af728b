"""Read and count the rows of a released table."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.survey import NO_SAMPLE, SampleColumns, Survey
from deniable.estimate.tabulate import Counts, Floats, Tabulation, Tabulator, refuse_randomized
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, WrongFormError, channel_of
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute
from deniable.tables import Batch, open_table
from deniable.tables.reading import as_it_was, column_names
from deniable.tables.rows import groups_of, numbers_and_gaps, numbers_of
from deniable.tables.selection import Selection, Selector, Where, conditions_of

NOT_AS_ASKED = (
    "the cell is empty though the row's form includes the column, or filled though it does not, or "
    "has a set of categories in place of one, or one in place of a set"
)

MAX_GROUPS = 10_000
"""Most groups of rows; each has a table and a result of its own."""


def released_attributes(
    strata: Strata, names: Sequence[str], gaps: Collection[int] = ()
) -> list[Attribute]:
    """Return attributes whose categories are the texts of released values. Attributes released
    unchanged are read like the original; the merged attribute in place of its parts; under forms
    its columns one by one, with a category for "not asked". ``gaps``: positions of attributes that
    get a category for empty cells."""
    schema = strata.schema
    places = dict.fromkeys(variable.position for variable in schema.variables(names))
    positions = _under_forms(strata)
    released = {p: _released(strata, p, under_forms=p in positions) for p in places}
    for place in released.keys() & {*gaps}:
        (own,) = released[place]
        empty = _text_beside(own.categories)
        released[place] = [
            Attribute(own.name, (*own.categories, empty), missing=empty, labels=own.labels)
        ]
    return [attribute for own in released.values() for attribute in own]


def _under_forms(strata: Strata) -> set[int]:
    mechanism = next(iter(strata.mechanisms.values()))
    return {*mechanism.positions_under_forms}


def _released(strata: Strata, position: int, *, under_forms: bool) -> list[Attribute]:
    attribute = strata.schema.attributes[position]
    if under_forms:  # an empty cell means "not asked"; a missing answer has a text
        whole = strata.output_labels[position]
        return [
            Attribute(
                c.name,
                (*labels, empty),
                missing=empty,
                labels={text: label for text, label in c.labels.items() if text in labels},
            )
            for c in attribute.columns
            for labels in [c.categories if attribute.parts else whole]
            for empty in [_text_beside(labels)]
        ]
    if attribute.name in strata.schema.keep:
        return [attribute]
    if attribute.answers or strata.n_outputs[position] != attribute.n_categories:
        labels = strata.output_labels[position]
        missing = attribute.missing if attribute.missing in labels else None
        return [Attribute(attribute.name, labels, missing=missing)]
    columns = [
        c if c.range else Attribute(c.name, c.categories, missing=c.missing, labels=c.labels)
        for c in attribute.columns
    ]
    return [Attribute(attribute.name, parts=tuple(columns))] if attribute.parts else columns


class Cells:
    """Codes of the released cells of some attributes.

    Under forms an empty cell means "not asked"; its code is the number of the attribute's released
    values. ``complete_cases``: read empty cells of randomized attributes without a missing
    category, too, by the same code.
    """

    def __init__(
        self, strata: Strata, names: Sequence[str], *, complete_cases: bool = False
    ) -> None:
        mechanism = next(iter(strata.mechanisms.values()))
        self.form_column = mechanism.form_column
        self._n_forms = 0 if mechanism.forms is None else len(mechanism.forms.forms)
        self._schema = strata.schema
        self._places = list(dict.fromkeys(v.position for v in strata.schema.variables(names)))
        self._under_forms = _under_forms(strata)
        schema = strata.schema
        self._empty = {
            place: strata.n_outputs[place]
            for place in self._places
            for attribute in [schema.attributes[place]]
            if complete_cases and place in schema.protected and place not in self._under_forms
            if not (attribute.parts or attribute.range or attribute.missing)
        }
        self.attributes = released_attributes(strata, names, self._empty)

    def codes(self, batch: Batch, table: str) -> dict[int, NDArray[Any]]:
        """Return the codes of a batch by the attributes' positions, and the forms of its rows, from
        0, under the number of all attributes."""
        columns = iter(batch.codes)
        codes: dict[int, NDArray[Any]] = {}
        for place in self._places:
            attribute = self._schema.attributes[place]
            if place not in self._under_forms or not attribute.parts:
                codes[place] = next(columns)
                continue
            parts = [next(columns) for _ in attribute.parts]
            empty = np.array(
                [p == a.n_categories for p, a in zip(parts, attribute.parts, strict=True)]
            )
            if (mixed := empty.any(axis=0) & ~empty.all(axis=0)).any():
                raise InputError(
                    f"{table}, data row {batch.first_row + int(np.argmax(mixed))}: a part of "
                    f"'{attribute.name}' is empty and another is not, so the row is not of this "
                    "release"
                )
            whole = sum(
                p.astype(np.int64) * stride
                for p, stride in zip(parts, attribute.strides, strict=True)
            )
            codes[place] = np.where(empty[0], attribute.n_categories, whole)
        if self.form_column is not None:
            codes[len(self._schema.attributes)] = self._forms(batch, table)
        return codes

    def gaps(self, codes: Mapping[int, NDArray[Any]]) -> dict[str, NDArray[np.bool_]]:
        """Return the empty cells of incomplete cases by attribute, shape (n,)."""
        found = {self._schema.names[p]: codes[p] == empty for p, empty in self._empty.items()}
        return {name: gaps for name, gaps in found.items() if gaps.any()}

    def _forms(self, batch: Batch, table: str) -> NDArray[np.int64]:
        numbers = {str(number + 1): number for number in range(self._n_forms)}
        codes, labels = groups_of(batch.kept[str(self.form_column)], table, str(self.form_column))
        forms = np.array([numbers.get(label.removesuffix(".0"), -1) for label in labels])[codes]
        if len(forms) and forms.min() < 0:
            raise InputError(
                f"{table}, data row {batch.first_row + int(np.argmin(forms))}: column "
                f"'{self.form_column}' holds no form of this release (1 to {self._n_forms})"
            )
        return forms


def _text_beside(categories: Sequence[str]) -> str:
    """Return a text for an empty cell that is no category."""
    text = "(not asked)"
    while text in categories:
        text = f"({text})"
    return text


def count_tables(
    source: Any,
    strata: Strata,
    tables: Sequence[Sequence[str]],
    *,
    by: Sequence[str] = (),
    where: Where = None,
    weights: str | None = None,
    numbers: Sequence[str] = (),
    show_values: bool = False,
    counted: bool = False,
    by_form: bool = False,
    sample: SampleColumns = NO_SAMPLE,
    complete_cases: bool = False,
) -> list[list[Counts]]:
    """Count a released table by several sets of attributes in one pass, streaming.

    ``tables``: of each the attributes to count by, in the order of its axes. ``complete_cases``:
    leave out rows with an empty randomized cell, which is an error otherwise.
    """
    clusters = sample.reader
    if counted and clusters is not None:
        raise InputError("errors of a survey need the released rows, not counts of them")
    schema = strata.schema
    conditions = conditions_of(where, schema.keep)
    refuse_randomized(schema, [condition.column for condition in conditions])
    grouping = list(dict.fromkeys([*by, *([] if strata.column is None else [strata.column])]))
    selector = Selector(
        conditions,
        missing=_missing(strata),
        numbers=[*([weights] if weights else []), *numbers],
        texts=[
            *(name for name in by if name not in numbers and name != strata.column),
            *sample.names,
        ],
        decimal=schema.file.decimal or ".",
        show_values=show_values,
    )
    kept = list(dict.fromkeys([*grouping, *selector.columns]))
    _refuse_unkept(strata, kept)
    more = ["count", *([f"{weights}_squared"] if weights else [])] if counted else []
    tallies = [
        _Tally(strata, names, grouping, weighted=weights is not None, by_form=by_form)
        for names in tables
    ]
    every = list(dict.fromkeys(name for names in tables for name in names))
    cells = Cells(strata, every, complete_cases=complete_cases)
    with open_table(
        source,
        cells.attributes,
        [*kept, *more, *([] if cells.form_column is None else [cells.form_column])],
        other_columns="drop",
        show_values=show_values,
    ) as reader:
        for batch in reader:
            records, squares = (
                numbers_of(batch.kept[name], name, reader.table, batch.first_row)
                if name in more
                else None
                for name in ("count", f"{weights}_squared")
            )
            codes = cells.codes(batch, reader.table)
            chosen, found = selector.choose(batch, reader.table, records, cells.gaps(codes))
            weight = found[weights] if weights else None
            cluster = None if clusters is None else clusters.clusters(batch, weights)
            try:
                for values, rows in _groups(batch, grouping, chosen):
                    for tally in tallies:
                        tally.add(
                            *(values, codes, rows, weight, records, squares, cluster, reader.table)
                        )
            except WrongFormError as error:
                raise _wrong_form(error, rows, batch, reader.table) from None
        selection = selector.selection()
        if not tallies[0].tabulators:
            left = f" ({selection.text()})" if selection.text() else ""
            raise InputError(f"{reader.table}: there is no row to estimate from{left}")
    stratum = None if clusters is None else clusters.stratum
    return [tally.counts(by, selection, stratum) for tally in tallies]


def _missing(strata: Strata) -> dict[str, str]:
    """Return the declared missing categories of the schema's columns."""
    columns = (column for a in strata.schema.attributes for column in a.columns)
    return {column.name: column.missing for column in columns if column.missing is not None}


def _refuse_unkept(strata: Strata, columns: Sequence[str]) -> None:
    if unknown := [name for name in columns if name not in strata.schema.keep]:
        raise InputError(
            f"'{unknown[0]}' is not a kept column of the release"
            + (f" ({', '.join(strata.schema.keep)})" if strata.schema.keep else "")
        )


class _Tally:
    """The tables of all groups of rows while they are counted."""

    def __init__(
        self,
        strata: Strata,
        names: Sequence[str],
        grouping: Sequence[str],
        *,
        weighted: bool,
        by_form: bool,
    ) -> None:
        self.tabulators: dict[tuple[str, ...], Tabulator] = {}
        self._strata = strata
        self._names = tuple(names)
        self._grouping = list(grouping)
        self._weighted = weighted
        self._by_form = by_form
        self._channels: dict[str, Channel | PublishedChannel] = {}

    def add(
        self,
        values: tuple[str, ...],
        codes: Mapping[int, NDArray[Any]],
        rows: NDArray[np.intp] | slice,
        weight: Floats | None,
        records: Floats | None,
        squares: Floats | None,
        cluster: NDArray[np.int64] | None,
        table: str,
    ) -> None:
        """Count some rows of a batch, all of one group."""
        channel = self._channel(self._stratum(values))
        if values not in self.tabulators:
            if len(self.tabulators) == MAX_GROUPS:
                raise InputError(
                    f"{table}: there are more than {MAX_GROUPS} groups of "
                    f"{', '.join(self._grouping)}; group by something coarser"
                )
            self.tabulators[values] = Tabulator(channel.n_outputs, weighted=self._weighted)
        chosen = {i: column[rows] for i, column in codes.items()}
        self.tabulators[values].add(
            channel.released_codes(chosen),
            None if weight is None else weight[rows],
            records=None if records is None else records[rows],
            squares=None if squares is None else squares[rows],
            clusters=None if cluster is None else cluster[rows],
        )

    def counts(
        self, by: Sequence[str], selection: Selection, stratum: NDArray[np.int64] | None
    ) -> list[Counts]:
        """Return the counts by group, the strata of a group together."""
        groups: dict[tuple[tuple[str, str], ...], list[tuple[Mechanism, Tabulation]]] = {}
        for values in sorted(self.tabulators):
            known = dict(zip(self._grouping, values, strict=True))
            group = (*selection.group, *((name, known[name]) for name in by))
            mechanism = self._strata.mechanism_of(self._stratum(values))
            groups.setdefault(group, []).append((mechanism, self.tabulators[values].tabulation()))
        column = self._strata.column
        return [
            Counts(tuple(of), group, column, selection, stratum) for group, of in groups.items()
        ]

    def _stratum(self, values: tuple[str, ...]) -> str:
        column = self._strata.column
        return "" if column is None else values[self._grouping.index(column)]

    def _channel(self, stratum: str) -> Channel | PublishedChannel:
        if stratum not in self._channels:
            channel = channel_of(self._strata.mechanism_of(stratum), self._names)
            if self._by_form and isinstance(channel, PublishedChannel):
                channel = channel.of_every_form()
            self._channels[stratum] = channel
        return self._channels[stratum]


def _wrong_form(
    error: WrongFormError, rows: NDArray[np.intp] | slice, batch: Batch, table: str
) -> InputError:
    row = error.row if isinstance(rows, slice) else int(rows[error.row])
    return InputError(
        f"{table}, data row {batch.first_row + row}, column '{error.name}': {NOT_AS_ASKED}; the "
        "row is not of this release"
    )


def _groups(
    batch: Batch, by: Sequence[str], chosen: NDArray[np.bool_] | None
) -> Iterator[tuple[tuple[str, ...], NDArray[np.intp] | slice]]:
    """Yield the values of every group in a batch, and its rows."""
    if not by and chosen is None:
        yield (), slice(None)
        return
    selected = np.ones(batch.n_rows, dtype=bool) if chosen is None else chosen
    if not selected.any():
        return
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


@dataclass(frozen=True)
class Rows:
    """Released codes of rows, shape (n,) per attribute.

    ``counts``: number of rows that each represents, shape (n,); None for one each. ``forms``: the
    form of each, from 0, shape (n,); None without forms.
    """

    names: tuple[str, ...]
    codes: list[NDArray[Any]]
    counts: Floats | None = None
    forms: NDArray[np.int64] | None = None

    def where(self, chosen: NDArray[np.bool_] | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(
            self.names,
            [column[chosen] for column in self.codes],
            None if self.counts is None else self.counts[chosen],
            None if self.forms is None else self.forms[chosen],
        )


def first_rows(
    source: Any,
    strata: Strata,
    names: Sequence[str],
    most: int,
    count: str | None = None,
    *,
    complete_cases: bool = False,
) -> dict[str, Rows]:
    """Read the first rows of a released table."""
    with as_it_was(source):
        present = set(column_names(source))
    schema = strata.schema
    own = {a.name: {column.name for column in a.columns} for a in schema.attributes}
    present_names = tuple(name for name in names if own[name] <= present)
    form_column = next(iter(strata.mechanisms.values())).form_column
    kept = [name for name in (strata.column, count, form_column) if name is not None]
    if not present_names or not present.issuperset(kept):
        return {}
    cells = Cells(strata, present_names, complete_cases=complete_cases)
    pieces: dict[str, list[list[NDArray[Any]]]] = {}
    n_rows = 0
    with (
        as_it_was(source),
        open_table(source, cells.attributes, kept, other_columns="drop") as reader,
    ):
        for batch in reader:
            codes = cells.codes(batch, reader.table)
            complete = np.ones(batch.n_rows, dtype=bool)
            for gaps in cells.gaps(codes).values():
                complete &= ~gaps
            columns = [*codes.values()]
            if count is not None:
                values = numbers_of(batch.kept[count], count, reader.table, batch.first_row)
                columns.append(values)
            stratum = np.zeros(batch.n_rows, dtype=np.int64)
            labels = [""]
            if strata.column is not None:
                stratum, labels = groups_of(batch.kept[strata.column])
            for place, label in enumerate(labels):
                chosen = [column[complete & (stratum == place)] for column in columns]
                pieces.setdefault(label, []).append(chosen)
            n_rows += batch.n_rows
            if n_rows >= most and count is None:
                break
    rows = {}
    for label, parts in pieces.items():
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        counts = None if count is None else joined.pop()
        forms = None if form_column is None else joined.pop()
        rows[label] = Rows(present_names, joined, counts, forms)
    return rows


@dataclass(frozen=True)
class KeptRows:
    """Released rows with kept columns.

    ``codes``: released codes by the attributes' positions, shape (n,) each; under forms also the
    forms, under the number of all attributes. ``texts``: kept columns as codes, shape (n,), and
    labels. ``numbers``: kept columns as numbers, shape (n,). ``chosen``: the places of these rows
    among those that were read, shape (rows read,), if known. ``survey``: clusters and strata.
    """

    codes: dict[int, NDArray[Any]]
    texts: dict[str, tuple[NDArray[np.int64], list[str]]]
    numbers: dict[str, Floats]
    chosen: NDArray[np.bool_] | None = None
    selection: Selection = field(default=Selection())
    survey: Survey | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter([*self.codes.values(), *self.numbers.values()])))

    def batches(self, n_rows: int) -> "Iterator[KeptRows]":
        """Yield the rows in batches."""
        for start in range(0, self.n_rows, n_rows):
            yield self.where(slice(start, start + n_rows))

    def where(self, chosen: NDArray[np.bool_] | slice) -> "KeptRows":
        """Return some of the rows."""
        return KeptRows(
            {place: codes[chosen] for place, codes in self.codes.items()},
            {name: (codes[chosen], labels) for name, (codes, labels) in self.texts.items()},
            {name: values[chosen] for name, values in self.numbers.items()},
            selection=self.selection,
            survey=None if self.survey is None else self.survey.where(chosen),
        )


def read_rows(
    source: Any,
    strata: Strata,
    names: Sequence[str],
    *,
    texts: Sequence[str] = (),
    numbers: Sequence[str] = (),
    where: Where = None,
    weights: str | None = None,
    sample: SampleColumns = NO_SAMPLE,
    complete_cases: bool = False,
    show_values: bool = False,
) -> KeptRows:
    """Read attributes' released codes and kept columns of rows, in memory. Rows without a value in
    one of the kept columns are left out; ``complete_cases``: of the randomized ones, too.

    ``weights``: the one of the numbers that is a weight.
    """
    numbers = [*numbers, *([] if weights is None else [weights])]
    conditions = conditions_of(where, strata.schema.keep)
    refuse_randomized(strata.schema, [condition.column for condition in conditions])
    selector = Selector(
        conditions,
        missing=_missing(strata),
        numbers=numbers,
        texts=[*(name for name in texts if name != strata.column), *sample.names],
        decimal=strata.schema.file.decimal or ".",
        show_values=show_values,
    )
    kept = list(dict.fromkeys([*texts, *selector.columns]))
    _refuse_unkept(strata, kept)
    cells = Cells(strata, names, complete_cases=complete_cases)
    columns = [*kept, *([] if cells.form_column is None else [cells.form_column])]
    codes: dict[int, list[NDArray[Any]]] = {}
    chosen: list[NDArray[np.bool_]] = []
    found: dict[str, list[NDArray[np.int64]]] = {name: [] for name in texts}
    labels: dict[str, dict[str, int]] = {name: {} for name in texts}
    values: dict[str, list[Floats]] = {name: [] for name in numbers}
    sampled = sample.reader
    cluster: list[NDArray[np.int64]] = []
    with open_table(
        source, cells.attributes, columns, other_columns="drop", show_values=show_values
    ) as reader:
        for batch in reader:
            of_batch = cells.codes(batch, reader.table)
            some, read = selector.choose(batch, reader.table, None, cells.gaps(of_batch))
            rows = np.ones(batch.n_rows, dtype=bool) if some is None else some
            chosen.append(rows)
            for place, column in of_batch.items():
                codes.setdefault(place, []).append(column[rows])
            for name in texts:
                own, shown = groups_of(batch.kept[name], reader.table, name)
                places = [labels[name].setdefault(text, len(labels[name])) for text in shown]
                found[name].append(np.array(places, dtype=np.int64)[own[rows]])
            for name in numbers:
                values[name].append(read[name][rows])
            if sampled is not None:
                cluster.append(sampled.clusters(batch, weights)[rows])
        selection = selector.selection()
        if not any(rows.any() for rows in chosen):
            left = f" ({selection.text()})" if selection.text() else ""
            raise InputError(f"{reader.table}: there is no row to estimate from{left}")
    return KeptRows(
        {place: np.concatenate(pieces) for place, pieces in codes.items()},
        {name: (np.concatenate(found[name]), list(labels[name])) for name in texts},
        {name: np.concatenate(pieces) for name, pieces in values.items()},
        np.concatenate(chosen),
        selection,
        None if sampled is None else Survey(np.concatenate(cluster), sampled.stratum),
    )


MOST_VALUES = 10_000
"""Most distinct values of a kept column that are listed."""

NEARLY_ALL = 0.9
"""A kept column is one of numbers if this part of its values are, gaps aside."""


@dataclass(frozen=True)
class KeptColumn:
    """The values of a kept column in the rows that fulfil the conditions, gaps aside."""

    is_number: bool
    is_binary: bool
    values: tuple[str, ...] | None

    @property
    def count(self) -> str:
        """Number of distinct values, in words."""
        return f"more than {MOST_VALUES:,}" if self.values is None else f"{len(self.values):,}"


def kept_columns(
    source: Any, strata: Strata, names: Sequence[str], where: Where = None
) -> dict[str, KeptColumn]:
    """Return, by name, whether kept columns hold numbers or categories, from all their rows."""
    selector = Selector(
        conditions_of(where, strata.schema.keep),
        missing=_missing(strata),
        decimal=strata.schema.file.decimal or ".",
    )
    _refuse_unkept(strata, [*names, *selector.columns])
    seen: dict[str, dict[str, None]] = {name: {} for name in names}
    anywhere: dict[str, set[str]] = {name: set() for name in names}
    counts = {name: [0, 0] for name in names}  # of numbers, and of other values that are no gap
    columns = list(dict.fromkeys([*names, *selector.columns]))
    with open_table(source, [], columns, other_columns="drop") as reader:
        for batch in reader:
            chosen, _ = selector.choose(batch, reader.table)
            for name in names:
                column = batch.kept[name]
                numbers, gaps = numbers_and_gaps(column, strata.schema.file.decimal or ".")
                here = ~gaps if chosen is None else chosen & ~gaps
                finite = int(np.isfinite(numbers[here]).sum())
                counts[name][0] += finite
                counts[name][1] += int(here.sum()) - finite
                if len(anywhere[name]) > 2 and len(seen[name]) > MOST_VALUES:
                    continue
                codes, labels = groups_of(column, reader.table, name)
                if len(anywhere[name]) <= 2:
                    anywhere[name].update(labels[i] for i in np.unique(codes[~gaps])[:3])
                if len(seen[name]) <= MOST_VALUES:
                    seen[name].update(dict.fromkeys(labels[i] for i in np.unique(codes[here])))
    return {
        name: KeptColumn(
            numbers > 0 and numbers >= NEARLY_ALL * (numbers + others),
            len(anywhere[name]) <= 2,
            tuple(seen[name]) if len(seen[name]) <= MOST_VALUES else None,
        )
        for name, (numbers, others) in counts.items()
    }


def released_codes(source: Any, mechanism: Mechanism) -> list[NDArray[Any]]:
    """Return the codes of all rows of a released table, shape (n,): one array per attribute of the
    schema, and with forms one array more, the rows' forms, from 0."""
    cells = Cells(Strata.one(mechanism), mechanism.schema.names)
    kept = [] if cells.form_column is None else [cells.form_column]
    with open_table(source, cells.attributes, kept, other_columns="drop") as reader:
        pieces = [[*cells.codes(batch, reader.table).values()] for batch in reader]
    if not pieces:
        return [np.zeros(0, dtype=np.int64) for _ in [*mechanism.schema.names, *kept]]
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]
