"""Studies: numbers measured once; claims, figures and tables computed from them.

A study writes no file: ``deniable_studies.folder`` does. Verdicts follow from the numbers by the
rules in the study's TOML, which were fixed before the results were seen.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from deniable_studies.text import ClaimText, Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

Cell = str | int | float | None
"""A table's cell; None is an empty one. Numbers are written with ten significant digits."""

Rows = Sequence[Sequence[Cell]]
Values = Mapping[str, object]

N = TypeVar("N")


class Verdict(StrEnum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT = "not reproduced"
    UNDECIDED = "undecided"
    UNTESTED = "not tested"

    @property
    def short(self) -> str:
        """Header of its column of counts."""
        return {"partly reproduced": "partly", "not reproduced": "not"}.get(self, str(self))


class Judged(NamedTuple):
    """Result of a judge: ``(found, fully, partly)`` and, where needed, more.

    A claim without a testable case, or with too few draws to decide, is not reproduced.

    Args:
        found: the result, with its numbers.
        fully: whether the claim holds by its rule.
        partly: whether it holds in part by its rule.
        why: the name of the reason, where the claim's text has several; an untested claim without
            one gets a general reason.
        values: for the placeholders of its rule and reasons.
        tested: whether the run had a case of the claim.
        decided: whether the draws suffice for a decision.
    """

    found: str
    fully: bool
    partly: bool = False
    why: str = ""
    values: Values = MappingProxyType({})
    tested: bool = True
    decided: bool = True

    @property
    def verdict(self) -> Verdict:
        """The strongest that holds, if tested and decided."""
        if not self.tested:
            return Verdict.UNTESTED
        if not self.decided:
            return Verdict.UNDECIDED
        if self.fully:
            return Verdict.REPRODUCED
        return Verdict.PARTLY if self.partly else Verdict.NOT


@dataclass(frozen=True)
class Claim:
    """A claim with its result; see :class:`~deniable_studies.text.ClaimText`."""

    statement: str
    source: str
    rule: str
    found: str
    verdict: Verdict
    why: str = ""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.REPRODUCED and not self.why:
            raise ValueError(f"a claim that is {self.verdict} needs a reason: {self.statement}")


def make_claim(text: ClaimText, judged: Judged) -> Claim:
    """Return a claim with its verdict, its rule and its reason filled in."""
    why = ""
    if judged.verdict is Verdict.UNTESTED and not judged.why:
        why = "The run had no case of the claim."
    elif judged.verdict is Verdict.UNDECIDED:
        why = "The draws are too few for a decision."
    elif text.always or not judged.fully:
        why = text.why if isinstance(text.why, str) else text.why[judged.why]
    rule, why = (words.format(**judged.values) for words in (text.rule, why))
    return Claim(text.statement, text.source, rule, judged.found, judged.verdict, why)


@dataclass(frozen=True)
class Table:
    """Numbers, written as ``NAME.csv``; on the page if they are few."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Rows
    measured: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row of {len(row)} cells")

    def csv_text(self) -> str:
        """Return it as CSV: numbers with ten significant digits; None and NaN are empty cells."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(cell) for cell in row] for row in self.rows)
        return text.getvalue()

    def column(self, name: str) -> list[Cell]:
        """Return a column's cells."""
        place = list(self.columns).index(name)
        return [row[place] for row in self.rows]


def _written(cell: Cell) -> str:
    if cell is None or cell != cell:  # NaN is not itself
        return ""
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class Figure:
    """A figure, written as ``NAME.png`` and ``NAME.svg``.

    Args:
        name: the files' name without extension.
        caption: below the figure.
        draw: draws into an empty figure of matplotlib with constrained layout; see
            :mod:`deniable_studies.drawing` for how methods look.
        size: width and height in inches.
    """

    name: str
    caption: str
    draw: "Callable[[MatplotlibFigure], None]"
    size: tuple[float, float]


@dataclass(frozen=True)
class Findings:
    """Results of a study, in the order of its page."""

    claims: Sequence[Claim]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    choices: Sequence[str] = ()
    remarks: Sequence[str] = ()

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        return next(table for table in self.tables if table.name == name)


def _no_progress(_fraction: float | None, /) -> None:
    return None


@dataclass(frozen=True)
class Setting:
    """How a study is run.

    Args:
        quick: fewer draws and smaller sizes, a few seconds; the page says so.
        seed: of all random numbers of the study, which releases no data.
        adult: the file ``adult.data`` of the UCI repository, or the folder that holds it.
        advance: called with the completed fraction of the work, 0 to 1.
    """

    quick: bool = False
    seed: int = 0
    adult: Path | None = None
    advance: Callable[[float | None], None] = field(default=_no_progress, compare=False)

    def generator(self, *stream: int) -> np.random.Generator:
        """Return a generator for simulated people and parameters; another for every stream.

        Draws that a mechanism makes come from :mod:`deniable.randomness`, seeded with
        :meth:`release_seed`.
        """
        return np.random.default_rng([self.seed, *stream])

    def release_seed(self, *stream: int) -> int:
        """Return a seed for a mechanism's draws; another for every stream."""
        return int(np.random.SeedSequence([self.seed, 1, *stream]).generate_state(2, np.uint64)[0])

    def part(self, start: float, end: float) -> "Setting":
        """Return this setting with its progress squeezed into a part of the whole."""

        def advance(fraction: float | None) -> None:
            self.advance(None if fraction is None else start + fraction * (end - start))

        return replace(self, advance=advance)

    @contextmanager
    def step(self, done: int, of: int) -> Iterator[None]:
        """Report progress when a step of a loop is done."""
        yield
        self.advance((done + 1) / of)


def _nothing(_numbers: object) -> Values:
    return {}


@dataclass(frozen=True)
class Study(Generic[N]):
    """A study: its text, and functions from its numbers to claims, figures and tables.

    Args:
        text: its words.
        measure: computes its numbers.
        judges: of every claim, by the claim's id.
        figures: draw into an empty figure, by the figure's name.
        tables: return the rows, by the table's name.
        values: returns the placeholders of captions, choices and remarks.

    Raises:
        ValueError: if claims and judges, or the names of figures or tables, are not the same.
    """

    text: Text
    measure: Callable[[Setting], N]
    judges: Mapping[str, Callable[[N], Judged]]
    figures: "Mapping[str, Callable[[MatplotlibFigure, N], None]]"
    tables: Mapping[str, Callable[[N], Rows]]
    values: Callable[[N], Values] = _nothing

    def __post_init__(self) -> None:
        for kind, stated, made in (
            ("claim", [claim.id for claim in self.text.claim], self.judges),
            ("figure", self.text.figure, self.figures),
            ("table", self.text.table, self.tables),
        ):
            if sorted(stated) != sorted(made):
                apart = ", ".join(sorted(set(stated) ^ set(made))) or "one of them twice"
                raise ValueError(f"{self.name}: text and code differ in a {kind}: {apart}")

    @property
    def name(self) -> str:
        """As typed after ``deniable reproduce``."""
        return self.text.name

    def run(self, setting: Setting) -> Findings:
        """Measure, and find."""
        return self.findings(self.measure(setting), setting)

    def findings(self, numbers: N, setting: Setting) -> Findings:
        """Judge the claims by the numbers, and fill the text with them."""
        text, values = self.text, dict(self.values(numbers))

        def drawn(name: str) -> "Callable[[MatplotlibFigure], None]":
            return lambda canvas: self.figures[name](canvas, numbers)

        def filled(sentences: Sequence[str]) -> list[str]:
            return [words for sentence in sentences if (words := sentence.format(**values))]

        return Findings(
            [
                make_claim(claim, self.judges[claim.id](numbers))
                for claim in text.claim
                if not (claim.full_only and setting.quick)
            ],
            [
                Figure(name, figure.caption.format(**values), drawn(name), figure.size)
                for name, figure in text.figure.items()
            ],
            [
                Table(
                    name,
                    table.caption.format(**values),
                    table.columns,
                    self.tables[name](numbers),
                    table.measured,
                )
                for name, table in text.table.items()
            ],
            filled(text.choices),
            filled(text.remarks),
        )

    def claim(self, name: str, judged: Judged) -> Claim:
        """Return one claim with its judge's result."""
        return make_claim(next(claim for claim in self.text.claim if claim.id == name), judged)
