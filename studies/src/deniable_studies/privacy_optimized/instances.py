"""Instances of section V-A of Yamamoto and Shibuya: each method's ε for the whole record.

Their heuristic changes some of the requested levels. The authors compare it with the
optimum at the levels that it *achieved*, and put those on the axis; here the optimum at the levels
*requested* stands beside it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import linregress

from deniable.design.design import design
from deniable.schema import Schema
from deniable.statement.account import EXACT_WITHIN
from deniable_studies.drawing import grid, legend, letter, scatter_method
from deniable_studies.study import Rows, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

ATTRIBUTES = (3, 5, 7, 10)
"""The numbers of attributes of the panels (a) to (d)."""

NEAR_OPTIMAL = 1.01
"""A law is "almost exactly optimal" if its ε is at most this multiple of the optimum's."""

NEARLY_ALL = 0.95


@dataclass(frozen=True)
class Instance:
    """One draw and its designs; every level in nats.

    Args:
        n_categories: a_i, shape (k,).
        requested: ε_i as requested, shape (k,).
        achieved: ε_i under the heuristic's law, shape (k,).
        heuristic: ε of the record under the heuristic.
        optimum_requested: ε of the record under method ``optimal`` at the requested levels.
        optimum_achieved: the same at the levels that the heuristic achieved.
        gap: of the certificates, the larger of the two optima's.
        linear_program: ε of the record by the linear program at the requested levels; None if it
            was not solved.
        given_rest: largest ratio of an attribute's ε against someone who knows the rest of the
            record to its own ε, under the optimum at the requested levels.
    """

    n_categories: tuple[int, ...]
    requested: tuple[float, ...]
    achieved: tuple[float, ...]
    heuristic: float
    optimum_requested: float
    optimum_achieved: float
    gap: float
    linear_program: float | None
    given_rest: float

    @property
    def sum_requested(self) -> float:
        """Σ ε_i as requested: ε of the record under the Kronecker product."""
        return sum(self.requested)

    @property
    def sum_achieved(self) -> float:
        """Σ ε_i as the heuristic achieved them."""
        return sum(self.achieved)

    @property
    def sum_categories(self) -> int:
        """Σ a_i."""
        return sum(self.n_categories)

    @property
    def excess_achieved(self) -> float:
        """ε of the heuristic over the optimum at the levels it achieved; at least 1."""
        return self.heuristic / self.optimum_achieved

    @property
    def excess_requested(self) -> float:
        """ε of the heuristic over the optimum at the levels requested; below 1 where it lowered."""
        return self.heuristic / self.optimum_requested

    @property
    def raised_by(self) -> float:
        """By how many nats the level that was raised most is above the request; 0 if none is."""
        pairs = zip(self.requested, self.achieved, strict=True)
        return max(0.0, *(achieved - requested for requested, achieved in pairs))

    @property
    def n_raised(self) -> int:
        """How many attributes got a larger ε, that is less protection, than requested."""
        pairs = zip(self.requested, self.achieved, strict=True)
        return sum(achieved > requested for requested, achieved in pairs)

    @property
    def n_lowered(self) -> int:
        """How many attributes got a smaller ε than requested."""
        pairs = zip(self.requested, self.achieved, strict=True)
        return sum(achieved < requested - EXACT_WITHIN for requested, achieved in pairs)

    @property
    def kept(self) -> bool:
        """Whether the heuristic reached every requested level."""
        return not (self.n_raised or self.n_lowered)

    @property
    def near_achieved(self) -> bool:
        """Whether the heuristic is near the optimum at the levels it achieved."""
        return self.excess_achieved <= NEAR_OPTIMAL

    @property
    def near_requested(self) -> bool:
        """The same at the levels requested, if none was raised."""
        return self.excess_requested <= NEAR_OPTIMAL and self.n_raised == 0


Draws = Mapping[int, Sequence[Instance]]
"""Instances by the number of attributes k."""


def solve_instance(
    n_categories: Sequence[int], levels: Sequence[float], *, linear_program: bool
) -> Instance:
    """Design an instance by the heuristic and at its optimum.

    Args:
        n_categories: a_i, shape (k,).
        levels: requested ε_i in nats, shape (k,).
        linear_program: whether the linear program is solved too.
    """
    schema = Schema.anonymous(n_categories)
    rough = design(schema, attribute_epsilon=levels, method="heuristic", allow_changed_levels=True)
    achieved = rough.mechanism.attribute_epsilon
    optimum = design(schema, attribute_epsilon=levels, method="optimal")
    elsewhere = (
        design(schema, attribute_epsilon=achieved, method="optimal") if rough.changed else optimum
    )
    check = design(schema, attribute_epsilon=levels, method="lp") if linear_program else None
    rest = optimum.mechanism.epsilon_given_rest
    return Instance(
        tuple(n_categories),
        tuple(levels),
        achieved,
        rough.epsilon,
        optimum.epsilon,
        elsewhere.epsilon,
        max(math.inf if d.gap is None else d.gap for d in (optimum, elsewhere)),
        None if check is None else check.epsilon,
        max(known / own for known, own in zip(rest, levels, strict=True)),
    )


def draw_instances(
    setting: Setting,
    attributes: Sequence[int],
    n_draws: int,
    draw: Callable[[np.random.Generator, int], tuple[list[int], list[float]]],
    *,
    linear_program_up_to: int = 0,
    stream: int = 0,
) -> dict[int, list[Instance]]:
    """Draw and solve instances.

    Args:
        setting: of the study; its generator (stream, k) draws the instances with k attributes.
        attributes: the numbers of attributes k.
        n_draws: instances for each.
        draw: returns (a_i, ε_i) from a generator and k.
        linear_program_up_to: largest k at which the linear program is solved as well.
        stream: another for every set of instances.

    Returns:
        The instances by k.
    """
    draws: dict[int, list[Instance]] = {}
    done, total = 0, n_draws * sum(attributes)
    for k in attributes:
        generator = setting.generator(stream, k)
        draws[k] = []
        for _ in range(n_draws):
            solved = solve_instance(*draw(generator, k), linear_program=k <= linear_program_up_to)
            draws[k].append(solved)
            done += k
            setting.advance(done / total)
    return draws


# Statistics of draws. "Above" means at and above.


def threshold_above(x: ArrayLike, good: ArrayLike) -> float | None:
    """Return the smallest x_j such that ``NEARLY_ALL`` of the draws at and above it are good.

    Args:
        x: shape (n,).
        good: shape (n,), booleans.

    Returns:
        None if there is no such draw.
    """
    x, good = np.asarray(x, dtype=np.float64), np.asarray(good, dtype=bool)
    order = np.argsort(-x, kind="stable")
    fraction = np.cumsum(good[order]) / np.arange(1, len(x) + 1)
    # Equal x stand or fall together: only the last of them sees them all.
    last = np.append(x[order][1:] != x[order][:-1], True)
    places = np.flatnonzero(last & (fraction >= NEARLY_ALL))
    return None if len(places) == 0 else float(x[order][places[-1]])


def threshold_below(x: ArrayLike, good: ArrayLike) -> float | None:
    """Return the largest x_j such that ``NEARLY_ALL`` of the draws at and below it are good."""
    above = threshold_above(-np.asarray(x, dtype=np.float64), good)
    return None if above is None else -above


def slope(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Return the slope of a straight line by least squares and its standard error."""
    line = linregress(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return float(line.slope), float(line.stderr)


def third(x: ArrayLike, *, upper: bool) -> NDArray[np.intp]:
    """Return the places of the smallest (or largest) third of the values."""
    order = np.argsort(np.asarray(x, dtype=np.float64), kind="stable")
    n = len(order) // 3
    return order[-n:] if upper else order[:n]


def scatter_about_trend(x: ArrayLike, y: ArrayLike) -> float:
    """Return the standard deviation of y about a parabola in x fitted by least squares."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    residual = y - np.polynomial.Polynomial.fit(x, y, 2)(x)
    return float(np.sqrt((residual**2).sum() / (len(x) - 3)))


def instance_rows(draws: Draws) -> Rows:
    """Return every draw as a row."""
    return [
        [
            *(k, number, " ".join(map(str, i.n_categories))),
            *(" ".join(f"{level:.10g}" for level in i.requested), i.sum_categories),
            *(i.sum_requested, i.sum_achieved, i.n_raised, i.n_lowered),
            *(i.heuristic, i.optimum_requested, i.optimum_achieved),
            # The last digits of a gap are rounding of the search; its size is what counts.
            *(float(f"{i.gap:.1e}"), i.linear_program, i.given_rest),
        ]
        for k, instances in draws.items()
        for number, i in enumerate(instances, start=1)
    ]


def draw_levels(
    canvas: "MatplotlibFigure", draws: Draws, x: Callable[[Instance], float], label: str
) -> None:
    """Draw Figure 1 or 3: ε of the record over Σ ε_i, both at the levels achieved."""
    panels = canvas.subplots(2, 2, sharey=True).ravel()
    for panel, k in zip(panels, ATTRIBUTES, strict=True):
        places = [x(i) for i in draws[k]]
        optimum = [i.optimum_achieved / i.sum_achieved for i in draws[k]]
        heuristic = [i.heuristic / i.sum_achieved for i in draws[k]]
        scatter_method(panel, "optimal", places, optimum, facecolors="none", size=16)
        scatter_method(panel, "heuristic", places, heuristic, size=4)
        panel.axhline(1, color="#000000", linewidth=1.3, label="independent (Kronecker)")
    finish(panels, label, "ε of the record / Σ ε_i")
    panels[0].set_ylim(0, 1.12)
    legend(canvas, panels[0], ncols=3)


def draw_excess(
    canvas: "MatplotlibFigure",
    draws: Draws,
    achieved: Callable[[Instance], float],
    requested: Callable[[Instance], float],
    label: str,
) -> None:
    """Draw Figure 2 or 4: ε of the heuristic over the optimum, at both sets of levels."""
    panels = canvas.subplots(2, 2).ravel()
    for panel, k in zip(panels, ATTRIBUTES, strict=True):
        for kept, name in ((False, "requested, some changed"), (True, "requested, all kept")):
            chosen = [i for i in draws[k] if i.kept is kept]
            scatter_method(
                panel,
                "heuristic-requested",
                [requested(i) for i in chosen],
                [i.excess_requested for i in chosen],
                label=name,
                size=12,
                **({} if kept else {"facecolors": "none"}),
            )
        places = [achieved(i) for i in draws[k]]
        excess = [i.excess_achieved for i in draws[k]]
        scatter_method(panel, "heuristic", places, excess, label="achieved", size=5)
        panel.axhline(1, color="#000000", linewidth=0.8, zorder=0)
    finish(panels, label, "ε of the heuristic / optimum")
    legend(canvas, panels[0], ncols=3, title="heuristic over the optimum at the levels …")


def finish(panels: "Sequence[Axes]", xlabel: str, ylabel: str) -> None:
    """Letter the four panels and label their axes."""
    for panel in panels:
        panel.set_xlabel(xlabel)
        grid(panel)
    for panel in panels[::2]:
        panel.set_ylabel(ylabel)
    letter(panels, [f"k = {k}" for k in ATTRIBUTES])
