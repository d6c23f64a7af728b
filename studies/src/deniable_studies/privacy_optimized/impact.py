"""Study ``impact``: the last sentence of section V-B of Yamamoto and Shibuya.

The heuristic against the Kronecker product at the same ε of the record, for larger levels and for
fewer categories than in their Figure 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.schema import Schema
from deniable_studies.privacy_optimized.genome import N_COPIES
from deniable_studies.privacy_optimized.levels import falling
from deniable_studies.study import Judged, Setting, Study
from deniable_studies.text import read_text

N_ATTRIBUTES = 10
RANGES = ((1.0, 3.0), (3.0, 5.0), (5.0, 7.0))
"""Of the levels requested of the heuristic, in nats; the second is that of Figure 5."""

N_ROWS = (5, 3, 2)
"""Alleles or genotypes of an attribute, which has twice as many categories; Figure 5 has 2."""

STATUS_SHARES = (0.6, 0.4)
"""Share of the first status in the odd and the even rows; the paper's binomials have these."""


@dataclass(frozen=True)
class Setup:
    """One range of levels and number of categories: mean ε of the record, and mean absolute
    difference of the released χ² from the original."""

    levels: tuple[float, float]
    n_categories: int
    total: float
    heuristic: float
    kronecker: float

    @property
    def ratio(self) -> float:
        """The heuristic's difference over Kronecker's: smaller is a larger impact."""
        return self.heuristic / self.kronecker


@dataclass(frozen=True)
class Impact:
    """Setups by rising levels at four categories, and by fewer categories at 3 to 5 nats."""

    by_level: Sequence[Setup]
    by_size: Sequence[Setup]
    n_runs: int


def measure(setting: Setting) -> Impact:
    """Simulate, randomize, and compare χ² in all setups."""
    n_runs = 4 if setting.quick else 40
    setups = [(levels, 2) for levels in RANGES] + [(RANGES[1], rows) for rows in N_ROWS]
    found = []
    for place, (levels, rows) in enumerate(setups):
        with setting.step(place, len(setups)):
            found.append(_setup(setting.generator(place), levels, rows, n_runs))
    return Impact(found[: len(RANGES)], found[len(RANGES) :], n_runs)


def _setup(
    generator: np.random.Generator, levels: tuple[float, float], rows: int, n_runs: int
) -> Setup:
    totals: list[float] = []
    differences: dict[str, list[float]] = {"heuristic": [], "kronecker": []}
    schema = Schema.anonymous([2 * rows] * N_ATTRIBUTES)
    for _ in range(n_runs):
        requested = generator.uniform(*levels, N_ATTRIBUTES).tolist()
        rough = design(
            schema, attribute_epsilon=requested, method="heuristic", allow_changed_levels=True
        )
        achieved = np.array(rough.mechanism.attribute_epsilon, dtype=np.float64)
        shared = (achieved * rough.epsilon / achieved.sum()).tolist()
        totals.append(rough.epsilon)
        tables = [simulate(generator, rows) for _ in range(N_ATTRIBUTES)]
        for method, own in (("heuristic", achieved.tolist()), ("kronecker", shared)):
            differences[method].append(
                fmean(
                    abs(statistic(randomized(table, level, generator)) - statistic(table))
                    for table, level in zip(tables, own, strict=True)
                )
            )
    means = {method: fmean(values) for method, values in differences.items()}
    return Setup(levels, 2 * rows, fmean(totals), means["heuristic"], means["kronecker"])


def simulate(generator: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Return counts (row, status) of an attribute, shape (rows, 2)."""
    first = np.array([STATUS_SHARES[row % 2] for row in range(rows)])
    shares = np.stack([first, 1 - first], axis=1) / rows
    return generator.multinomial(N_COPIES, shares.ravel()).reshape(rows, 2)


def randomized(
    table: NDArray[np.int64], level: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return the counts after a k-ary response on the cells at a level, in nats."""
    n = table.size
    weights = np.full((n, n), 1.0)
    np.fill_diagonal(weights, np.exp(level))
    weights /= weights.sum(axis=1, keepdims=True)
    moved = generator.multinomial(table.ravel(), weights)
    return np.asarray(moved.sum(axis=0).reshape(table.shape))


def statistic(table: NDArray[np.int64]) -> float:
    """Return χ²."""
    rows, columns, n = table.sum(axis=1), table.sum(axis=0), table.sum()
    return float(n * ((table**2 / np.outer(rows, columns)).sum() - 1))


def judge(setups: Sequence[Setup], name: str) -> Judged:
    """Judge whether the ratio falls from setup to setup."""
    fully, partly = falling([setup.ratio for setup in setups])
    values = ", ".join(
        f"{s.ratio:.2f} ({s.levels[0]:g} to {s.levels[1]:g} nats)"
        if name == "levels"
        else f"{s.ratio:.2f} ({s.n_categories} categories)"
        for s in setups
    )
    return Judged(f"the heuristic's difference over Kronecker's: {values}", fully, partly)


STUDY = Study(
    read_text("privacy_optimized/impact.toml"),
    measure,
    judges={
        "larger-levels": lambda n: judge(n.by_level, "levels"),
        "fewer-categories": lambda n: judge(n.by_size, "categories"),
    },
    figures={},
    tables={
        "setups": lambda n: [
            [*s.levels, s.n_categories, s.total, s.heuristic, s.kronecker, s.ratio]
            for s in (*n.by_level, *n.by_size)
        ]
    },
    values=lambda n: {"n_runs": n.n_runs},
)
