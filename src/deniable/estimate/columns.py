"""Results as dataframes, files, plots and notebook tables.

Every result has rows of plain values and a caption, which states the rows, the target and the
method; all output is made from these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import check_between
from deniable.mechanism.prediction import Target
from deniable.notebook import html_table, text_table
from deniable.numerals import count_text, number_text
from deniable.tables.answers import Columns
from deniable.tables.selection import Selection

SHOWN = 40
"""Rows up to which a table is shown whole on a screen or in a notebook."""


class Tabular(Protocol):
    """Interface of all results."""

    @property
    def n_records(self) -> int:
        """Number of rows."""

    @property
    def target(self) -> Target:
        """``table`` or ``population``."""

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return rows of plain values by column."""

    def caption(self, level: float = 0.95) -> str:
        """Return a caption."""


_Answer = TypeVar("_Answer", bound=Tabular)


class Presented:
    """Output of results: dataframes, plots and notebook tables.

    Attributes:
        selection: conditions on the rows, and the numbers of rows left out.
    """

    selection: Selection = Selection()

    def _shown(self) -> "Sequence[Tabular]":
        return [cast(Tabular, self)]

    def to_pandas(self, level: float | None = None) -> Any:
        """Return the rows as a pandas dataframe, with categorical text columns.

        Args:
            level: of the intervals; by default that of the query, or 0.95.

        Raises:
            InputError: if pandas is not installed, or an answer was made for another level.
        """
        return columns_of(self._shown(), self._level(level)).frame("pandas")

    def to_polars(self, level: float | None = None) -> Any:
        """Return the rows as a Polars dataframe, with categorical text columns; cast them to String
        to join them with texts.

        Raises:
            InputError: if Polars is not installed, or as :meth:`to_pandas`.
        """
        return columns_of(self._shown(), self._level(level)).frame("polars")

    def plot(self, level: float | None = None) -> Any:
        """Plot estimates with their intervals: shares of one attribute as bars, of two as a heat
        map.

        Returns:
            A matplotlib figure: ``figure.savefig("shares.png")``.

        Raises:
            InputError: if there is no estimate, there are more than two attributes, or as
                :meth:`to_pandas`.
        """
        return plot_of(self._shown(), self._level(level))

    def _repr_html_(self) -> str:
        return drawn_as(html_table, self._shown(), self._level(None))

    def __str__(self) -> str:
        return drawn_as(text_table, self._shown(), self._level(None))

    def _level(self, level: float | None) -> float:
        if level is None:
            level = next((getattr(answer, "level", None) for answer in self._shown()), None)
        level = 0.95 if level is None else level
        check_between(level, "the confidence level is")
        return level


class Answers(list[_Answer], Presented):
    """Answers to one question, one for each group of rows or subgroup, also as one table.

    Examples:
        >>> import deniable, pyarrow
        >>> schema = deniable.Schema((deniable.Attribute("age", bins=(0, 30, 60, 90)),))
        >>> plan = deniable.design(schema, epsilon=2)
        >>> ages = ["[0,30)"] * 500 + ["[30,60)"] * 300 + ["[60,90]"] * 200
        >>> released = pyarrow.table({"age": ages})
        >>> means = deniable.open(released, plan).mean("age", scores="middle")
        >>> len(means.to_pandas()) == len(means.to_polars()) == len(means) == 1
        True
        >>> means.plot().axes[0].get_xlabel()
        'age'
    """

    def __init__(self, answers: Iterable[_Answer] = (), selection: Selection | None = None) -> None:
        super().__init__(answers)
        if selection is not None:
            self.selection = selection
            for answer in self:
                if isinstance(answer, Presented):  # frozen, and not yet handed out
                    object.__setattr__(answer, "selection", selection)

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return the rows of all answers, in order, with the number of rows behind each as
        ``n``."""
        level = self._level(level)
        return [row | {"n": answer.n_records} for answer in self for row in answer.table(level)]

    def _shown(self) -> "Sequence[Tabular]":
        return self


def caption_of(answer: Tabular, level: float) -> str:
    """Return an answer's caption, and in sentences which rows it is about."""
    selection: Selection = getattr(answer, "selection", Selection())
    caption = answer.caption(level)
    return f"{caption}. {text}" if (text := selection.text()) else caption


def caption_of_all(answers: Sequence[Tabular], level: float) -> str:
    """Return one caption for answers that are shown in one table; where the groups differ in size,
    it gives the range of their rows."""
    return caption_of(answers[0], level).replace(*_range(answers[0], answers), 1)


def _range(answer: Tabular, answers: Sequence[Tabular]) -> tuple[str, str]:
    """Return an answer's number of rows as its caption has it, and the range of all in its place,
    where they differ."""
    of_one = f": {count_text(answer.n_records, 'row')}"
    sizes = sorted(each.n_records for each in answers)
    alike = not sizes_differ(answers)
    return of_one, of_one if alike else f": {sizes[0]:,} to {sizes[-1]:,} rows per group"


def sizes_differ(answers: Sequence[Tabular]) -> bool:
    """Whether answers that are shown in one table are of groups of different size."""
    return len({answer.n_records for answer in answers}) > 1


def where_text(group: Sequence[tuple[str, str]]) -> str:
    """Return the condition on a group's rows in words; empty without one."""
    return ", where " * bool(group) + ", ".join(f"{name} = {value}" for name, value in group)


def target_text(target: Target) -> str:
    """Return the target in words."""
    return "these rows" if target == "table" else "the population they were drawn from"


class CellTable(Presented):
    """A result with one row per combination of categories."""

    attributes: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    group: tuple[tuple[str, str], ...]

    def columns(self, level: float | None = None) -> Columns:
        """Return the rows of :meth:`table` as columns.

        >>> import deniable, pyarrow
        >>> plan = deniable.design(deniable.Schema.anonymous((2,)), epsilon=1)
        >>> table = pyarrow.table({"a1": ["0", "1"] * 50})
        >>> (found,) = deniable.open(table, plan, randomized=True).shares("a1")
        >>> found.columns().names[:2]
        ['a1', 'estimate']
        """
        return self._cells(len(self.attributes), self._numbers(self._level(level)))

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row per cell: a category per attribute, then numbers; None where one cannot
        be estimated.

        Raises:
            InputError: if the level is not between 0 and 1.
        """
        return self.columns(level).rows()

    def _wide(self, level: float) -> Columns:
        """Return the estimates with the categories of the last attribute as columns."""
        *others, last = self.attributes
        estimates = self._numbers(level)["estimate"]
        assert estimates is not None
        return self._cells(
            len(others),
            {f"{last}={name}": estimates[..., j] for j, name in enumerate(self.categories[-1])},
        )

    def _numbers(self, level: float) -> Mapping[str, NDArray[Any] | None]:
        """Return the number columns by name, of the table's shape; None for a column without."""
        raise NotImplementedError

    def _cells(self, n_axes: int, numbers: Mapping[str, NDArray[Any] | None]) -> Columns:
        axes: dict[str, tuple[str, ...]] = {name: (value,) for name, value in self.group}
        axes |= dict(zip(self.attributes[:n_axes], self.categories, strict=False))
        return Columns.of_cells(axes, numbers)


def columns_of(answers: Sequence[Tabular], level: float, *, wide: bool = False) -> Columns:
    """Return answers as columns of one table, with their rows, target and level."""
    cells = [answer for answer in answers if isinstance(answer, CellTable)]
    if wide and (len(cells) < len(answers) or any(len(each.attributes) < 2 for each in cells)):
        raise InputError("a wide table is one of shares of two attributes or more")
    if not answers or len(cells) < len(answers):
        rows = [row | _about(answer, level) for answer in answers for row in answer.table(level)]
        return Columns.of_rows(rows)
    return Columns.joined(
        (each._wide(level) if wide else each.columns(level)).with_constants(**_about(each, level))
        for each in cells
    )


def _about(answer: Tabular, level: float) -> dict[str, Any]:
    return {"n": answer.n_records, "target": answer.target, "level": level}


_NUMBERS = frozenset({"estimate", "standard_error", "low", "high", "uncertain", "count"}) | {
    "unbiased",
    "unbiased_standard_error",
}


def drawn_as(
    draw: Callable[[str, Sequence[str], Sequence[Sequence[str]]], str],
    answers: Sequence[Tabular],
    level: float,
) -> str:
    """Return answers as a table with their captions, in HTML or as text."""
    columns = columns_of(answers, level).without("target", "level")
    if not sizes_differ(answers):
        columns = columns.without("n")
    more = len(columns) - SHOWN
    caption = " ".join(
        dict.fromkeys(
            caption_of(answer, level).replace(*_range(answer, answers), 1) for answer in answers[:3]
        )
    )
    return draw(
        caption + (f" (and {more:,} rows more: .table())" if more > 0 else ""),
        columns.names,
        [[shown(value) for value in row.values()] for row in columns.rows(slice(SHOWN))],
    )


def text_of(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of plain values as an aligned table under a caption."""
    return text_table(caption, list(rows[0]), [[shown(v) for v in row.values()] for row in rows])


def shown(value: Any) -> str:
    """Return a value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else ""
    return number_text(value) if isinstance(value, float) else str(value)


def plot_of(answers: Sequence[Tabular], level: float) -> Any:
    """Return answers as a matplotlib figure: points or bars with intervals, or a heat map."""
    from deniable.report.estimate_plot import (
        check_size,
        draw_distributions,
        draw_heat_map,
        draw_intervals,
    )

    if not answers:
        raise InputError("there are no estimates to plot")
    first = answers[0]
    if isinstance(first, CellTable):
        if len(first.attributes) > 2 or (len(first.attributes) == 2 and len(answers) > 1):
            raise InputError("a plot shows shares of one attribute or two; name fewer")
        if len(first.attributes) == 2:
            check_size(first.categories)
            down, across = first.attributes
            return draw_heat_map(first.table(level), down, across, caption=caption_of(first, level))
    rows: list[Mapping[str, Any]] = [row for answer in answers for row in answer.table(level)]
    if not rows or "estimate" not in rows[0]:
        raise InputError("the result has no estimates to plot")
    if getattr(first, "is_curve", False):
        names = [", ".join(v for _, v in getattr(answer, "group", ())) for answer in answers]
        tables = [answer.table(level) for answer in answers]
        return draw_distributions(
            dict(zip(names, tables, strict=True)),
            caption=caption_of_all(answers, level),
            axis=getattr(first, "attribute", ""),
        )
    labels = [
        ", ".join(str(v) for k, v in row.items() if k not in _NOT_LABELS and isinstance(v, str))
        for row in rows
    ]
    return draw_intervals(
        labels,
        rows,
        caption=caption_of_all(answers, level),
        axis=getattr(first, "axis", "share"),
        in_percent=getattr(first, "statistic", getattr(first, "axis", "share")) == "share",
        bars=isinstance(first, CellTable),
    )


_NOT_LABELS = _NUMBERS | {"statistic", "attribute", "scores", "target", "compared"}
