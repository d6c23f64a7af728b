"""What a study is: numbers that are measured once, and what is judged, drawn and listed from them.

A study draws nothing on a screen and writes no file: ``deniable_studies.folder`` does. Verdicts are
computed from its numbers by rules that stand beside the claims in its TOML and were written down
before the result was seen.
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
    """What became of a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT = "not reproduced"
    UNDECIDED = "undecided"
    UNTESTED = "not tested"

    @property
    def short(self) -> str:
        """What heads its column of counts."""
        return {"partly reproduced": "partly", "not reproduced": "not"}.get(self, str(self))


class Judged(NamedTuple):
    """What a judge returns: ``(found, fully, partly)`` and, where needed, more.

    Nothing is reproduced by a rule that nothing could have broken, nor by draws too few to tell.

    Args:
        found: what came out, with its numbers.
        fully: whether the claim holds by its rule.
        partly: whether it holds in part by its rule.
        why: the name of the reason, where the claim's text has several.
        values: what its rule and its reasons are filled with.
        tested: whether there was anything that the claim is about; a rule that holds of no case at
            all is not tested.
        decided: whether so many draws can tell whether it holds.
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
        """The strongest that holds, if it was tested and can be told."""
        if not self.tested:
            return Verdict.UNTESTED
        if not self.decided:
            return Verdict.UNDECIDED
        if self.fully:
            return Verdict.REPRODUCED
        return Verdict.PARTLY if self.partly else Verdict.NOT


@dataclass(frozen=True)
class Claim:
    """Something that is said, and what came out; see :class:`~deniable_studies.text.ClaimText`."""

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
    if judged.verdict is Verdict.UNTESTED:
        why = "There was no case that the claim is about."
    elif judged.verdict is Verdict.UNDECIDED:
        why = "So many draws cannot tell; more of them can."
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
        caption: what is shown.
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
    """What a study found, in the order of its page."""

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
        seed: of everything that is random in the study. Nothing here is a release.
        adult: the file ``adult.data`` of the UCI repository, or the folder that holds it.
        advance: told the fraction of the work that is done, 0 to 1.
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
    """A study: its text, and what makes the text's claims, figures and tables of its numbers.

    Args:
        text: all that it says.
        measure: does the work; returns its numbers.
        judges: of every claim, by the claim's id.
        figures: draw into an empty figure, by the figure's name.
        tables: return the rows, by the table's name.
        values: returns what captions, choices and remarks are filled with.

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
        for what, stated, made in (
            ("claim", [claim.id for claim in self.text.claim], self.judges),
            ("figure", self.text.figure, self.figures),
            ("table", self.text.table, self.tables),
        ):
            if sorted(stated) != sorted(made):
                apart = ", ".join(sorted(set(stated) ^ set(made))) or "one of them twice"
                raise ValueError(f"{self.name}: text and code differ in a {what}: {apart}")

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
        """Return one claim with what its judge says."""
        return make_claim(next(claim for claim in self.text.claim if claim.id == name), judged)
