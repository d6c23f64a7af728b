"""Table I of Yamamoto and Shibuya: seconds to find a law, by method and number of attributes."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.design.methods import Found, Solve, Task, method_named
from deniable.design.plan import EXACT_WITHIN, Plan
from deniable.schema import Schema
from deniable.solvers.patterns import heuristic
from deniable_studies.printed_heuristic import run_as_printed
from deniable_studies.study import Setting

_T = TypeVar("_T")

FEWEST_CATEGORIES, MOST_CATEGORIES = 2, 5
LOWEST, HIGHEST = 1.0, 10.0
USEFUL = 2.5
"""Levels "for a useful record" are uniform in [1, 2)·USEFUL/√k: ε of the record is about 5."""

MODERATE, PAPER = "moderate", "paper"
"""Names of the two ranges of levels."""

AS_PRINTED = "printed"
"""The name of Algorithm 3 in plain loops, as the paper prints it."""

MOST_ACCOUNTED = 1_000
"""Largest k for which the accounts of the law are timed as well."""


@dataclass(frozen=True)
class Scale:
    """What is timed.

    Args:
        sizes: numbers of attributes by method and range of levels.
        runs: instances per size.
        least_runs: instances per size in any case.
        patience: processor seconds per size after which no run is begun beyond the least.
        effect_runs: runs for each setting of the comparison of settings.
    """

    sizes: dict[tuple[str, str], Sequence[int]]
    runs: int
    least_runs: int
    patience: float
    effect_runs: int


FULL = Scale(
    {
        ("closed-form", PAPER): (2,),
        ("lp", PAPER): (3, 5, 8, 10, 12),
        ("optimal", PAPER): (3, 5, 8, 10, 12, 20, 50, 100, 1_000),
        ("balanced", PAPER): (3, 5, 8, 10),
        ("heuristic", PAPER): (3, 5, 10, 100, 500, 1_000, 10_000, 100_000, 1_000_000),
        (AS_PRINTED, PAPER): (3, 5, 10, 100, 500, 1_000),
        ("optimal", MODERATE): (3, 5, 10, 30, 100, 1_000),
        ("balanced", MODERATE): (3, 5, 10, 30, 100, 1_000),
    },
    runs=10,
    least_runs=3,
    patience=12.0,
    effect_runs=7,
)
QUICK = Scale(
    {
        ("closed-form", PAPER): (2,),
        ("lp", PAPER): (3, 5, 10, 12),
        ("optimal", PAPER): (3, 5, 10, 12),
        ("balanced", PAPER): (3, 5),
        ("heuristic", PAPER): (3, 10, 100, 1_000, 10_000, 100_000),
        (AS_PRINTED, PAPER): (3, 10, 100, 700),
        ("optimal", MODERATE): (3, 10, 30, 100),
        ("balanced", MODERATE): (3, 5, 30),
    },
    runs=3,
    least_runs=2,
    patience=1.0,
    effect_runs=3,
)


@dataclass
class Timing:
    """One method at one size.

    Args:
        method: a method, or ``AS_PRINTED``.
        levels: ``PAPER`` or ``MODERATE``.
        n_attributes: k.
        seconds: processor time of finding the law, one per run.
        design_seconds: the same with the law's accounts and the lower bound; None if not timed.
        epsilon: ε of the record of the first ``least_runs`` instances, in nats.
        total: Σ ε_i as requested of the same.
        gap: proved gap of the same, in nats; None if there is no bound.
        changed: attributes of the same whose level is not the requested one.
        not_finite: for the printed algorithm, the steps at which its numbers ceased to be finite.
    """

    method: str
    levels: str
    n_attributes: int
    seconds: list[float] = field(default_factory=list)
    design_seconds: list[float] = field(default_factory=list)
    epsilon: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    gap: list[float | None] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)


def instance(generator: np.random.Generator, k: int, levels: str) -> tuple[list[int], list[float]]:
    """Return (a_i, ε_i): a_i uniform in 2 to 5; ε_i uniform in [1, 10), or moderate."""
    counts = generator.integers(FEWEST_CATEGORIES, MOST_CATEGORIES + 1, k).tolist()
    if levels == MODERATE:
        return counts, (generator.uniform(1, 2, k) * USEFUL / k**0.5).tolist()
    return counts, generator.uniform(LOWEST, HIGHEST, k).tolist()


def measure(setting: Setting, scale: Scale) -> list[Timing]:
    """Time every method at every size, on one thread.

    All methods get the same instances: those of a size and range have a generator of their own.
    """
    found = []
    cells = [(method, levels, k) for (method, levels), ks in scale.sizes.items() for k in ks]
    with threadpool_limits(1):
        for method, levels in scale.sizes:  # imports, and whatever else a first call does
            smallest = min(scale.sizes[method, levels])
            warm = instance(setting.generator(smallest, 3), smallest, levels)
            _time_one(Timing(method, levels, smallest), *warm, keep=True)
        for place, (method, levels, k) in enumerate(cells):
            generator = setting.generator(k, levels == MODERATE)
            timing = Timing(method, levels, k)
            spent = 0.0
            while len(timing.seconds) < scale.runs and (
                len(timing.seconds) < scale.least_runs or spent < scale.patience
            ):
                counts, wanted = instance(generator, k, levels)
                keep = len(timing.seconds) < scale.least_runs
                spent += _time_one(timing, counts, wanted, keep=keep)
            found.append(timing)
            setting.advance((place + 1) / len(cells))
    return found


def _time_one(timing: Timing, counts: list[int], wanted: list[float], *, keep: bool) -> float:
    """Time one instance; return all processor seconds spent on it.

    Args:
        timing: filled.
        counts, wanted: a_i and ε_i.
        keep: whether the law's levels are wanted, too.
    """
    begin = time.process_time()
    if timing.method == AS_PRINTED:
        seconds, printed = timed(lambda: run_as_printed(counts, wanted))
        timing.seconds.append(seconds)
        if printed.first_not_finite is not None:
            timing.not_finite.append(printed.first_not_finite)
        return seconds
    task = task_of(timing.method, counts)
    seconds, found = timed(partial(solve_of(timing.method), task, wanted))
    timing.seconds.append(seconds)
    if keep:
        if timing.n_attributes <= MOST_ACCOUNTED:
            _account(timing, task, found, wanted)
        else:
            rough = heuristic.solve(counts, wanted)
            timing.epsilon.append(rough.epsilon)
            timing.gap.append(None)
            timing.changed.append(int(rough.changed.sum()))
        timing.total.append(math.fsum(wanted))
    return time.process_time() - begin


def _account(timing: Timing, task: Task, found: Found, wanted: list[float]) -> None:
    schema = Schema.anonymous(task.n_categories)
    plan = Plan(schema, method_named(timing.method), task)
    seconds, designed = timed(lambda: plan.of(found))
    got = designed.mechanism.attribute_epsilon
    timing.design_seconds.append(timing.seconds[-1] + seconds)
    timing.epsilon.append(designed.epsilon)
    timing.gap.append(designed.gap)
    timing.changed.append(
        sum(
            not asked - EXACT_WITHIN <= level <= asked
            for asked, level in zip(wanted, got, strict=True)
        )
    )


def task_of(method: str, counts: Sequence[int]) -> Task:
    """Return what a method is told beside the levels; its defaults."""
    spec = method_named(method)
    return Task(tuple(counts), spec.given_rest, spec.pair_floor)


def solve_of(method: str) -> Solve:
    """Return the function that turns levels into a law."""
    solve = method_named(method).solve
    assert solve is not None
    return solve


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """Return the processor seconds of a call, and what it returned."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


Effects = dict[str, dict[str, list[float]]]
"""Seconds by method and size, and by setting."""

EFFECT_SIZES: tuple[tuple[str, int], ...] = (("lp", 10), ("heuristic", 10_000), ("optimal", 10))


def measure_effects(setting: Setting, runs: int) -> Effects:
    """Time three methods where all a_i or all ε_i are small or large.

    Args:
        setting: of the study.
        runs: instances for each; the same numbers of runs in turn, so that a slow moment of the
            machine falls on all of them.
    """
    ranges: dict[str, tuple[tuple[int, int], tuple[float, float]]] = {
        "as the paper": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (LOWEST, HIGHEST)),
        "a_i = 2": ((2, 2), (LOWEST, HIGHEST)),
        "a_i = 5": ((5, 5), (LOWEST, HIGHEST)),
        "ε_i in [1, 2)": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (1.0, 2.0)),
        "ε_i in [9, 10)": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (9.0, 10.0)),
    }
    found: Effects = {}
    with threadpool_limits(1):
        for place, (method, k) in enumerate(EFFECT_SIZES):
            generator = setting.generator(k, 2)
            taken: dict[str, list[float]] = {name: [] for name in ranges}
            for _ in range(runs):
                for name, ((fewest, most), levels) in ranges.items():
                    counts = generator.integers(fewest, most + 1, k).tolist()
                    wanted = generator.uniform(*levels, k).tolist()
                    task = task_of(method, counts)
                    seconds, _law = timed(partial(solve_of(method), task, wanted))
                    taken[name].append(seconds)
            found[f"{method}, k = {k:,}"] = taken
            setting.advance((place + 1) / len(EFFECT_SIZES))
    return found
