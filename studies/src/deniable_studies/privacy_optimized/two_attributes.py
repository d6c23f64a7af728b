"""Two attributes: equations (10) and (11) of Yamamoto and Shibuya, and the trends read off them.

For two attributes with m and n categories the optimum has four cases. Equation (10) is its ε in
case I, equation (11) in case III; II and IV are their mirror images.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from deniable.solvers.patterns import closed_form, linear
from deniable_studies.drawing import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

BIG, SMALL = ("I", "II"), ("III", "IV")
"""The cases of large, and of small, levels for given numbers of categories."""

LEVELS = tuple(0.25 * i for i in range(1, 33))
"""ε_1 and ε_2 in nats, 0.25 to 8."""

SIZES = tuple(range(2, 16))
"""m and n."""


def equation_10(m: int, n: int, first: float, second: float) -> float:
    """Return ε of the record in case I, in nats, as printed (its first line)."""
    e1, e2 = math.exp(first), math.exp(second)
    return math.log((n * e1 * e2 + (m - 1) * (n - 1) * (e2 - 1)) / (e2 + n - 1))


def equation_11(m: int, n: int, first: float, second: float) -> float:
    """Return ε of the record in case III, in nats, as printed (its first line)."""
    e1, e2 = math.exp(first), math.exp(second)
    return math.log((n - 1) * (e1 + m - 1) * e2 / (-(e1 - 1) * e2 + m * (n - 1)))


@dataclass(frozen=True)
class Agreement:
    """How far the printed equations are from the linear program's optimum.

    Args:
        worst: largest relative difference.
        n_instances: how many were compared in cases I and III.
    """

    worst: float
    n_instances: int


def compare_with_linear_program(generator: np.random.Generator, n_instances: int) -> Agreement:
    """Compare equations (10) and (11) with the linear program on random instances.

    m and n are uniform in 2 to 15, the levels uniform in 0.1 to 8; instances in cases II and IV are
    turned round, the paper's "similarly".
    """
    worst = 0.0
    for _ in range(n_instances):
        m, n = generator.integers(2, 16, 2).tolist()
        # Small levels too often fall into case I; half of the draws are small.
        top = 8.0 if generator.random() < 0.5 else 2.0
        first, second = generator.uniform(0.1, top, 2).tolist()
        case = closed_form.solve([m, n], [first, second]).case
        if case in ("II", "IV"):
            m, n, first, second = n, m, second, first
        printed = (equation_10 if case in BIG else equation_11)(m, n, first, second)
        optimum = linear.solve([m, n], [first, second]).epsilon
        worst = max(worst, abs(printed / optimum - 1))
    return Agreement(worst, n_instances)


@dataclass(frozen=True)
class Trend:
    """How often a quantity falls and rises along steps within the same kind of cases.

    Args:
        n_steps: steps whose both ends lie in these cases.
        falls: fraction of the steps along which it falls.
        rises: fraction along which it rises.
    """

    n_steps: int
    falls: float
    rises: float


Point = tuple[int, int, float, float]
"""m, n, ε_1, ε_2."""


def optimal_level(point: Point) -> tuple[float, str]:
    """Return ε of the optimum in nats, and the case."""
    m, n, first, second = point
    optimum = closed_form.solve([m, n], [first, second])
    return optimum.epsilon, optimum.case


def ratio_to_sum(point: Point) -> tuple[float, str]:
    """Return ε of the optimum over ε_1 + ε_2, and the case."""
    level, case = optimal_level(point)
    return level / (point[2] + point[3]), case


def trend(
    steps: Iterable[tuple[Point, Point]],
    quantity: Callable[[Point], tuple[float, str]],
    cases: Sequence[str],
) -> Trend:
    """Return how a quantity moves along the steps that stay within the cases."""
    falls = rises = n_steps = 0
    for start, end in steps:
        before, first_case = quantity(start)
        after, last_case = quantity(end)
        if first_case not in cases or last_case not in cases:
            continue
        n_steps += 1
        falls += after < before - 1e-12
        rises += after > before + 1e-12
    return Trend(n_steps, falls / max(1, n_steps), rises / max(1, n_steps))


def level_steps(
    m: int, n: int, *, both: bool, levels: Sequence[float] = LEVELS
) -> list[tuple[Point, Point]]:
    """Return the steps of one grid width in both levels at once, or in one of them."""
    width = levels[1] - levels[0]
    moves = [(width, width)] if both else [(width, 0.0), (0.0, width)]
    return [
        ((m, n, first, second), (m, n, first + up, second + over))
        for first in levels[:-1]
        for second in levels[:-1]
        for up, over in moves
    ]


def size_steps(
    level: float, *, both: bool, sizes: Sequence[int] = SIZES
) -> list[tuple[Point, Point]]:
    """Return the steps of one category in both attributes at once, or in one, at equal levels."""
    moves = [(1, 1)] if both else [(1, 0), (0, 1)]
    return [
        ((m, n, level, level), (m + up, n + over, level, level))
        for m in sizes[:-1]
        for n in sizes[:-1]
        for up, over in moves
    ]


def mean_rise(level: float, largest: int) -> float:
    """Return by how many nats (10) rises on average when m and n both grow by one, m, n < largest.

    Args:
        level: ε_1 = ε_2 in nats; large enough that all these are in cases I and II.
        largest: sizes from 2 to this.
    """
    rises = []
    for start, end in size_steps(level, both=True, sizes=tuple(range(2, largest + 1))):
        (before, first), (after, last) = optimal_level(start), optimal_level(end)
        if first not in BIG or last not in BIG:
            raise ValueError(f"level {level} is too small for {largest} categories")
        rises.append(after - before)
    return fmean(rises)


def draw_two_attributes(canvas: "MatplotlibFigure") -> None:
    """Draw the optimum's ratio to the sum for two attributes at equal levels."""
    axes = canvas.subplots()
    for (m, n), line in (((2, 2), ":"), ((5, 5), "-"), ((5, 10), "-."), ((15, 15), "--")):
        meeting = math.log((m - 1) * (n - 1)) / 2
        levels = np.sort([*np.linspace(0.02, 8, 400), *([meeting] if meeting > 0 else [])])
        ratio = [ratio_to_sum((m, n, level, level))[0] for level in levels.tolist()]
        axes.plot(levels, ratio, line, color="#000000", lw=1.2, label=f"{m} × {n} categories")
        if meeting > 0:
            axes.plot(meeting, 1.0, "o", color="#D55E00", markersize=4)
    axes.set_xlabel("ε_1 = ε_2 (nats)")
    axes.set_ylabel("ε of the optimum / (ε_1 + ε_2)")
    axes.set_ylim(0.5, 1.02)
    canvas.legend(loc="outside lower center", ncols=4, fontsize=8)
    grid(axes)
