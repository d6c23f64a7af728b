"""Combination of estimates from several synthetic copies, with errors that include the drawing.

With Ū the mean of the variances stated by the copies' analyses and B the variance of their
estimates, m copies: for imputed copies T = Ū + (1 + 1/m)B with (m − 1)(1 + 1/r)² degrees of freedom
(Rubin 1987), for synthetic ones T = (1 + 1/m)B − Ū with (m − 1)(1 − 1/r)² (Raghunathan, Reiter and
Rubin 2003), r = (1 + 1/m)B/Ū. No copy holds more information than as many true rows, so the second
is held at Ū or above, which is r = 2.

Both assume a normal estimate and a stated variance that hardly varies from copy to copy. For a rare
category of share p both fail: the variance of its share is about p/n, that of its log odds 1/(np),
and both spread as p itself does. So a term whose stated variances spread by more than
:data:`SPREAD` of their mean is marked: its category is not three standard errors from empty, and
its interval is unusable.
"""

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._checks import typed
from deniable.errors import InputError, Notice
from deniable.estimate.columns import text_of
from deniable.estimate.inference import check_between, one_of
from deniable.statement.stored import read_json

Kind = Literal["synthetic", "imputed"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LARGEST = 1e100
"""Largest estimate and standard error whose squares are finite."""

FEWEST_COPIES = 5
"""With fewer copies the variance between them is too uncertain."""


SPREAD = 0.35
"""Standard deviation over mean of the stated variances beyond which a term is marked."""
UNREAD = "not to be read: rare next to the noise"


@dataclass(frozen=True)
class Combined:
    """Combined estimates.

    ``terms``: names of the estimates, shape (q,). ``estimates``: means over the copies, shape (q,).
    ``standard_errors``: shape (q,). ``degrees_of_freedom``: of Student's law, shape (q,).
    ``spreads``: of the stated variances, standard deviation over mean, shape (q,).
    """

    terms: tuple[str, ...]
    kind: Kind
    copies: int
    estimates: NDArray[np.float64] = field(repr=False)
    standard_errors: NDArray[np.float64] = field(repr=False)
    degrees_of_freedom: NDArray[np.float64] = field(repr=False)
    spreads: NDArray[np.float64] = field(repr=False)
    level: float = 0.95

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row per estimate: ``term``, ``estimate``, ``std_error``, ``statistic``,
        ``df``, ``p_value``, ``low``, ``high`` and ``remark``."""
        from scipy.special import stdtr, stdtrit  # only here: slow to load

        level = self.level if level is None else level
        check_between(level, "the confidence level is")
        rows = []
        for term, value, error, df, spread in zip(
            self.terms,
            self.estimates.tolist(),
            self.standard_errors.tolist(),
            self.degrees_of_freedom.tolist(),
            self.spreads.tolist(),
            strict=True,
        ):
            statistic = value / error if error > 0 else None
            wide = error * float(stdtrit(df, 0.5 + level / 2))
            p_value = None if statistic is None else 2 * float(stdtr(df, -abs(statistic)))
            numbers = {"estimate": value, "std_error": error, "statistic": statistic, "df": df}
            ends = {"p_value": p_value, "low": value - wide, "high": value + wide}
            remark = UNREAD if spread > SPREAD else ""
            rows.append({"term": term} | numbers | ends | {"remark": remark})
        return rows

    def __str__(self) -> str:
        return text_of(self.caption(), self.table())

    def caption(self, level: float | None = None) -> str:
        """Return a caption: copies, rule and level."""
        rule = "Raghunathan, Reiter and Rubin's" if self.kind == "synthetic" else "Rubin's"
        shown = 100 * (self.level if level is None else level)
        return f"{self.copies} {self.kind} copies, {rule} rule; {shown:g} % intervals"


@typed
def combine(
    estimates: ArrayLike,
    variances: ArrayLike,
    *,
    kind: Kind,
    terms: Sequence[str] | None = None,
    level: float = 0.95,
) -> Combined:
    """Combine the results of one analysis on every copy from ``synthesize``.

    Args:
        estimates: a row per copy, shape (copies, q), or (copies,) of one estimate.
        variances: squared standard errors as each analysis states them, the same shape.
        kind: kind of the copies, ``synthetic`` or ``imputed``.
        terms: names of the estimates, shape (q,).
        level: of the intervals.

    Raises:
        InputError: if there are fewer than five copies, or an entry is not a number.

    Examples:
        >>> import deniable
        >>> values, squares = [1.0, 1.2, 0.8, 1.1, 0.9], [0.04] * 5
        >>> row = deniable.combine(values, squares, kind="imputed").table()[0]
        >>> print(f"{row['estimate']:.2f} ± {row['std_error']:.3f}, {row['df']:.0f} df")
        1.00 ± 0.265, 22 df
    """
    one_of(kind, KINDS, "kind")
    try:
        values, squares = (np.asarray(given, dtype=np.float64) for given in (estimates, variances))
    except (TypeError, ValueError):
        raise InputError(
            "estimates and variances must be lists of numbers, one row per copy"
        ) from None
    if values.shape != squares.shape or values.ndim not in (1, 2):
        raise InputError(
            "estimates and variances need one row per copy, and equal numbers of columns"
        )
    if values.ndim == 1:
        values, squares = values[:, None], squares[:, None]
    m, q = values.shape
    _refuse_few(m)
    for name, given, least, most in (
        ("estimate", values, -LARGEST, LARGEST),
        ("variance", squares, 0, LARGEST**2),
    ):
        if (wrong := ~((given >= least) & (given <= most))).any():
            copy, term = (int(place) + 1 for place in np.argwhere(wrong)[0])
            raise InputError(
                f"copy {copy}, {name} {term}: the value is not a number between {least:g} and "
                f"{most:g}"
            )
    terms = tuple(map(str, range(1, q + 1))) if terms is None else tuple(terms)
    if len(terms) != q:
        raise InputError(f"the number of names ({len(terms)}) differs from that of estimates ({q})")
    within, between = squares.mean(axis=0), (1 + 1 / m) * values.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0, between / within, 0.0)
        if kind == "imputed":
            total, free = within + between, (m - 1) * (1 + 1 / ratio) ** 2
        else:
            total = np.maximum(between - within, within)
            free = (m - 1) * (1 - 1 / np.maximum(ratio, 2.0)) ** 2
    free = np.minimum(free, 1e9)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A stated error of zero comes from an empty category.
        spread = np.where(squares.min(axis=0) > 0, squares.std(axis=0, ddof=1) / within, np.inf)
    return Combined(terms, kind, m, values.mean(axis=0), np.sqrt(total), free, spread, level)


def _refuse_few(copies: int) -> None:
    if copies < FEWEST_COPIES:
        raise InputError(
            f"there are {copies} copies; at least {FEWEST_COPIES} are needed to estimate the "
            "error from the drawing (20 are usual)"
        )


_ERRORS = {"variance": 1, "std_error": 2, "std.error": 2}
"""Columns of precision, with the power that makes them variances."""


def read_results(
    path: str | Path,
) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Read a CSV file with a row per copy and estimate: columns ``copy``, ``term``, ``estimate``,
    and ``std_error`` or ``variance``; others are ignored."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            head, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a CSV file in UTF-8"
        raise InputError(f"{path}: cannot be read ({why})") from None
    error_column = next((name for name in _ERRORS if name in head), "std_error")
    for name in ("copy", "term", "estimate", error_column):
        if head.count(name) != 1:
            raise InputError(
                f"{path}: the header needs the columns copy, term, estimate, and std_error or "
                f"variance, once each; '{name}' is missing or repeated"
            )
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for place, row in enumerate(rows, start=1):
        cells = dict(zip(head, row, strict=False))
        where, key = f"{path}, data row {place}", (cells.get("copy", ""), cells.get("term", ""))
        if key in found:
            raise InputError(f"{where}: copy {key[0]} has '{key[1]}' twice")
        numbers = [_number(cells.get(name, ""), name, where) for name in ("estimate", error_column)]
        found[key] = numbers[0], numbers[1] ** _ERRORS[error_column]
    copies, terms = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    for copy in copies:
        if lost := [term for term in terms if (copy, term) not in found]:
            raise InputError(f"{path}: copy {copy} has no row for '{lost[0]}'")
    values = np.array([[found[copy, term] for term in terms] for copy in copies]).reshape(
        len(copies), len(terms), 2
    )
    return tuple(terms), values[..., 0], values[..., 1]


def _number(text: str, column: str, where: str) -> float:
    """Return a cell as a number whose square is finite; errors must not be negative."""
    least, power = (0.0 if column in _ERRORS else -LARGEST), _ERRORS.get(column, 2)
    most = LARGEST ** (2 / power)
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{where}, column '{column}': the value is not a number") from None
    if not least <= number <= most:
        raise InputError(
            f"{where}, column '{column}': the value is not a number between {least:g} and {most:g}"
        )
    return number


def combine_file(path: Path, kind: Kind | None, level: float) -> Combined:
    """Return the combination of a file of results."""
    terms, estimates, variances = read_results(path)
    about = path.parent / "about.json"
    if about.is_file():
        stated = read_json(about)
        if kind is not None and kind != stated.get("rows"):
            raise InputError(f"{about} states {stated.get('rows')} copies, not {kind}")
        kind = one_of(str(stated.get("rows")), KINDS, "rows")
        if stated.get("copies") != len(estimates):
            raise InputError(
                f"{path} has results of {len(estimates)} copies, and {about} lists "
                f"{stated.get('copies')}; analyse all of them"
            )
        if outcome := dict(stated.get("model") or {}).get("about"):
            warnings.warn(
                f"these copies are for predicting '{outcome}', and intervals combined from them "
                "are too narrow; for intervals make copies without an outcome",
                Notice,
                stacklevel=2,
            )
    if kind is None:
        raise InputError(
            f"{path}: about.json, which states the kind of the copies, is missing next to it; set "
            "`rows`"
        )
    return combine(estimates, variances, kind=kind, terms=terms, level=level)
