"""What a study is: a question, a run, and findings that are numbers, figures and verdicts.

A study is a function from a :class:`Setting` to :class:`Findings`. It draws nothing on a screen and
writes no file: ``deniable_studies.folder`` does. Its verdicts are computed from its numbers by
rules that stand in the claims and were written down before the result was seen.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

Cell = str | int | float | None
"""A table's cell; None is an empty one. Numbers are written with ten significant digits."""


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT = "not reproduced"


def judge(fully: bool, *, partly: bool = False) -> Verdict:
    """Return the verdict: what holds fully, else partly, else not."""
    if fully:
        return Verdict.REPRODUCED
    return Verdict.PARTLY if partly else Verdict.NOT


@dataclass(frozen=True)
class Claim:
    """Something that is said, and what came out.

    Args:
        statement: what the paper (or, beyond the papers, this project) says, near its own words.
        source: where, such as "Yamamoto and Shibuya, section V-A, Figure 1".
        rule: what counts as reproduced, and what as partly; fixed before the result was seen.
        found: what came out, with its numbers.
        verdict: by that rule.
        why: the reason, where the claim was not reproduced in full; otherwise may be empty.
    """

    statement: str
    source: str
    rule: str
    found: str
    verdict: Verdict
    why: str = ""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.REPRODUCED and not self.why:
            raise ValueError(f"a claim that is {self.verdict} needs a reason: {self.statement}")


@dataclass(frozen=True)
class Table:
    """Numbers, written as ``NAME.csv``; on the page if they are few.

    Args:
        name: the file's name without ``.csv``.
        caption: one sentence: what a row is, units, number of draws.
        columns: names in snake_case, with the unit if there is one: ``epsilon_nats``.
        rows: one cell per column.
        measured: whether it holds times, which differ from run to run. Every other table is the
            same, byte for byte, for the same seed on the same machine.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    measured: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row of {len(row)} cells")


@dataclass(frozen=True)
class Figure:
    """A figure, written as ``NAME.png`` and ``NAME.svg``.

    Args:
        name: the files' name without extension.
        caption: what is shown: axes with units, number of draws, what an interval covers.
        draw: draws into an empty figure of matplotlib with constrained layout; see
            :mod:`deniable_studies.drawing` for how methods look.
        size: width and height in inches.
    """

    name: str
    caption: str
    draw: "Callable[[MatplotlibFigure], None]"
    size: tuple[float, float] = (7.0, 4.6)


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Args:
        claims: with their verdicts.
        figures: in the order of the page.
        tables: in the order of the page; every number in a figure is in one of them.
        choices: what the source leaves open (a discretisation, a range, a seed) and what was
            chosen, one sentence each.
        remarks: what else a reader has to know: errors of the source, what a guarantee does not
            cover.
    """

    claims: Sequence[Claim]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    choices: Sequence[str] = ()
    remarks: Sequence[str] = ()


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

        return Setting(self.quick, self.seed, self.adult, advance)

    @contextmanager
    def step(self, done: int, of: int) -> Iterator[None]:
        """Report progress when a step of a loop is done."""
        yield
        self.advance((done + 1) / of)


@dataclass(frozen=True)
class Study:
    """A study, as the catalogue lists it.

    Args:
        name: as typed after ``deniable reproduce``.
        title: one line.
        source: the paper and the table or figures, or "beyond the papers".
        question: one or two sentences: what is asked.
        seconds: about how long it runs in full, measured on two cores.
        run: does the work.
        needs_adult: whether it needs the Adult data.
    """

    name: str
    title: str
    source: str
    question: str
    seconds: float
    run: Callable[[Setting], Findings]
    needs_adult: bool = False
