"""The example of Ruiz, "λ-randomization", section 6, and the paper's statements.

Strength under three choices of λ, three attributes with five categories each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deniable.design.design import design
from deniable.laws.entropy import entropy_rate
from deniable.laws.response import Response
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import expected_error
from deniable.schema import Schema
from deniable_studies.drawing import grid
from deniable_studies.lambda_randomization.statements import (
    N_CATEGORIES,
    Statements,
    accuracy,
    corollary_1,
    cost_along_axes,
    cost_as_printed,
    equation_9,
    expansion,
    kronecker,
    matrix,
    measure_statements,
    property_1,
)
from deniable_studies.study import Judged, Rows, Setting, Study
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

PRINTED: tuple[tuple[tuple[float, float, float], tuple[int, int, int], int], ...] = (
    ((0.9, 0.8, 0.7), (25, 41, 56), 31),
    ((0.3, 0.2, 0.1), (92, 96, 99), 72),
    ((0.6, 0.7, 0.4), (68, 52, 85), 51),
)
"""λ, strength per attribute and joint strength in per cent, as the table has them."""

IN_THE_TEXT = (0.9, 0.5, 0.4)
"""λ of the first scenario in section 6; the table has (0.9, 0.8, 0.7)."""


@dataclass(frozen=True)
class Scenario:
    """One row, printed and computed; strengths in per cent.

    Args:
        lambdas: shape (3,).
        printed_attributes, printed_joint: as printed; None where the paper prints none.
        attributes: H(P)/log₂ 5 from equation (6), shape (3,).
        joint: Σ H/Σ log₂ r (Theorem 2): with equal category counts the mean of the three.
    """

    lambdas: tuple[float, ...]
    printed_attributes: tuple[int, ...] | None
    printed_joint: int | None
    attributes: tuple[float, ...]
    joint: float

    @property
    def printed_sum_over_four(self) -> float | None:
        """A quarter of the sum of the printed strengths: the printed joint column."""
        return None if self.printed_attributes is None else sum(self.printed_attributes) / 4


def table_1() -> list[Scenario]:
    """Return the three scenarios of the table, then the first as the text of section 6 has it."""
    scenarios = [Scenario(row[0], row[1], row[2], *_strengths(row[0])) for row in PRINTED]
    return [*scenarios, Scenario(IN_THE_TEXT, None, None, *_strengths(IN_THE_TEXT))]


def _strengths(lambdas: Sequence[float]) -> tuple[tuple[float, ...], float]:
    responses = [Response.from_attenuation(N_CATEGORIES, value) for value in lambdas]
    entropy = sum(response.entropy for response in responses)
    most = len(responses) * math.log2(N_CATEGORIES)
    return tuple(100 * response.strength for response in responses), 100 * entropy / most


@dataclass(frozen=True)
class Inverse:
    """The inverse of the third scenario's matrix of 125 × 125, three ways.

    Args:
        largest_difference: largest difference of an entry between the paper's four groups of terms
            and the inverse found by elimination, over the largest entry.
        channel_difference: the same for the transform that this project estimates with.
        condition: the matrix's condition number.
        standard_error: of a cell's share (root mean square over cells), estimated from
            ``N_PEOPLE`` randomized records.
    """

    largest_difference: float
    channel_difference: float
    condition: float
    standard_error: float


N_PEOPLE = 100
"""The paper's number of simulated people."""


def inverse_of_125() -> Inverse:
    """Return how well the paper's expansion (section 6, from its equation (8)) inverts."""
    lambdas = PRINTED[2][0]
    whole = kronecker([matrix(value) for value in lambdas])
    eliminated = np.linalg.inv(whole)
    names = ("a1", "a2", "a3")
    schema = Schema.anonymous([N_CATEGORIES] * len(names))
    request = dict(zip(names, lambdas, strict=True))
    channel = Channel(design(schema, method="lambda", attenuation=request).mechanism, names)
    cells = N_CATEGORIES**3
    units = np.eye(cells).reshape(cells, *[N_CATEGORIES] * 3)
    ours = np.stack([channel.inverse.apply(unit).ravel() for unit in units], axis=1)
    largest = float(np.abs(eliminated).max())
    return Inverse(
        float(np.abs(expansion(lambdas) - eliminated).max()) / largest,
        float(np.abs(ours - eliminated).max()) / largest,
        float(np.linalg.cond(whole)),
        expected_error(channel, N_PEOPLE).uniform,
    )


@dataclass(frozen=True)
class Numbers:
    """All numbers of the study; only the cases of the statements are random."""

    scenarios: Sequence[Scenario]
    inverse: Inverse
    statements: Statements

    @property
    def printed(self) -> list[Scenario]:
        """The scenarios of the table, without that of the text."""
        return [row for row in self.scenarios if row.printed_joint is not None]


def measure(setting: Setting) -> Numbers:
    """Compute the table, the inverse and the statements."""
    statements = measure_statements(setting.generator(1), quick=setting.quick)
    setting.advance(0.9)
    return Numbers(table_1(), inverse_of_125(), statements)


def _attribute(rows: Sequence[Scenario]) -> Judged:
    off = [
        abs(p - c)
        for row in rows
        for p, c in zip(row.printed_attributes or (), row.attributes, strict=True)
    ]
    return Judged(
        f"{sum(each <= 0.5 for each in off)} of {len(off)} within half a point, the farthest "
        f"{max(off):.1f} points off",
        max(off) <= 0.5,
    )


def _joint(rows: Sequence[Scenario]) -> Judged:
    worst = max(abs((row.printed_joint or 0) - row.joint) for row in rows)
    quarters = all(
        abs((row.printed_sum_over_four or 0) - (row.printed_joint or 0)) <= 0.5 for row in rows
    )
    found = ", ".join(f"{row.joint:.0f} %" for row in rows)
    return Judged(found, worst <= 0.5, why="quarters" if quarters else "unknown")


def _theorem(rows: Sequence[Scenario]) -> Judged:
    most = 3 * math.log2(N_CATEGORIES)
    direct = [entropy_rate(kronecker([matrix(v) for v in row.lambdas])) / most for row in rows]
    worst = max(abs(a - row.joint / 100) for a, row in zip(direct, rows, strict=True))
    return Judged(f"they differ by {worst:.1e} at most", worst <= 1e-12)


def _inverse(inverse: Inverse) -> Judged:
    return Judged(
        f"the expansion differs by {inverse.largest_difference:.1e}, the transform that this "
        f"project estimates with by {inverse.channel_difference:.1e}; condition "
        f"{inverse.condition:.3g}",
        inverse.largest_difference <= 1e-12,
    )


def _strength_rows(scenarios: Sequence[Scenario]) -> Rows:
    rows: list[list[str | float | None]] = []
    for name, row in zip(("1", "2", "3", "1, as in the text"), scenarios, strict=True):
        printed = row.printed_attributes or (None,) * 3
        levels = [Response.from_attenuation(N_CATEGORIES, v).epsilon for v in row.lambdas]
        rows += [
            [name, f"attribute {i + 1}", value, printed[i], row.attributes[i], levels[i]]
            for i, value in enumerate(row.lambdas)
        ]
        rows.append([name, "joint", None, row.printed_joint, row.joint, sum(levels)])
    return rows


def _inverse_rows(inverse: Inverse) -> Rows:
    return [
        ["expansion against elimination, relative", inverse.largest_difference],
        ["transform against elimination, relative", inverse.channel_difference],
        ["condition number", inverse.condition],
        ["standard error of a share", inverse.standard_error],
    ]


def _draw(canvas: "MatplotlibFigure", rows: Sequence[Scenario]) -> None:
    left, right = canvas.subplots(1, 2, width_ratios=[2, 1])
    values = np.linspace(0, 1, 202)[1:-1]
    curve = [100 * Response.from_attenuation(N_CATEGORIES, v).strength for v in values]
    left.plot(values, curve, color="#000000", linewidth=1.3, label="equation (6)")
    left.plot(
        [v for row in rows for v in row.lambdas],
        [p for row in rows for p in row.printed_attributes or ()],
        "x",
        color="#D55E00",
        label="printed",
    )
    left.set_xlabel("λ")
    left.set_ylabel("strength, % of the largest possible")
    left.legend(loc="lower left")
    grid(left)
    places = range(1, len(rows) + 1)
    right.bar(places, [row.joint for row in rows], color="#DDDDDD", edgecolor="#000000", width=0.6)
    right.plot(places, [row.printed_joint or 0 for row in rows], "x", color="#D55E00")
    right.plot(places, [row.printed_sum_over_four or 0 for row in rows], "_k", markersize=22)
    right.set_xticks(list(places))
    right.set_xlabel("scenario")
    right.set_ylabel("joint strength, %")
    right.set_ylim(0, 100)
    grid(right)


STUDY = Study(
    read_text("lambda_randomization/lambda.toml"),
    measure,
    judges={
        "attributes": lambda n: _attribute(n.printed),
        "joint": lambda n: _joint(n.printed),
        "theorem-2": lambda n: _theorem(n.scenarios),
        "inverse": lambda n: _inverse(n.inverse),
        "property-1": lambda n: property_1(n.statements),
        "corollary-1": lambda n: corollary_1(n.statements),
        "equation-9": lambda n: equation_9(n.statements),
        "cost-as-printed": lambda n: cost_as_printed(n.statements),
        "cost-along-axes": lambda n: cost_along_axes(n.statements, n.inverse.channel_difference),
        "accuracy": lambda n: accuracy(n.statements),
    },
    figures={"strength": lambda canvas, n: _draw(canvas, n.printed)},
    tables={
        "table-1": lambda n: _strength_rows(n.scenarios),
        "inverse-125": lambda n: _inverse_rows(n.inverse),
        "costs": lambda n: [[c.way, c.n_attributes, c.seconds] for c in n.statements.costs],
    },
    values=lambda n: {"inverse": n.inverse},
)
