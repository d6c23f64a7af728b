"""The methods: from levels to a law, each in one function.

A new method is a function here and an entry in ``METHODS``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from deniable._checks import check_level
from deniable.errors import InputError
from deniable.laws import PatternLaw, PatternTable, ProductLaw, SingleChangeMixture

_Solution = TypeVar("_Solution")

Method = Literal[
    "balanced",
    "optimal",
    "kronecker",
    "lp",
    "closed-form",
    "heuristic",
    "lambda",
    "joint",
    "invariant",
    "matrix",
]

LP_MAX_ATTRIBUTES = 12
"""Largest number of attributes for which the linear program is solved: 2^12 variables."""

_AIM = 2e-11
"""Solvers aim this far below the request, so that their rounding never ends above it."""

GivenRest = str | float | Sequence[float | None] | None
"""A cap on ``epsilon_given_rest``: "2x" for a multiple of each attribute's own ε, a number of nats,
one number (or None) per protected attribute, "none" for no cap, or None for the method's default:
2x for ``balanced``, no cap for ``lp``."""


EXACT_CAPS = 10
"""Most attributes for which ``balanced`` tries the capped linear program."""

_RAMP_GAP = 0.02
"""Part of ε by which the capped program's law may miss its proof: the ramp would be no nearer."""

DEFAULT_METHOD: Method = "balanced"
DEFAULT_CAP = "2x"
DEFAULT_PAIR_FLOOR = 0.5
"""What ``balanced`` keeps unless told otherwise: why a floor is needed is
docs/proofs/clipped.md, Proposition 5."""


@dataclass(frozen=True)
class Task:
    """What a method is told beside the levels.

    Args:
        n_categories: of the attributes to randomize, shape (k,).
        given_rest: cap on ``epsilon_given_rest``.
        pair_floor: least φ_ij/(φ_i φ_j), so that every table of two attributes can be estimated.
        order: in which the heuristic takes the attributes.
    """

    n_categories: tuple[int, ...]
    given_rest: GivenRest = None
    pair_floor: float | None = None
    order: Literal["given", "descending"] = "given"


@dataclass(frozen=True)
class Found:
    """What a method found.

    Args:
        parts: independent laws, each with the positions of its attributes among those to
            randomize; nearly always one law for all.
        weights: for the lower bound, shape (k,), if the solver has better ones than the levels.
        optimal_epsilon: ε of the record at these levels if nothing else were asked, in nats.
    """

    parts: tuple[tuple[tuple[int, ...], PatternLaw], ...]
    weights: Sequence[float] | None = None
    optimal_epsilon: float | None = None

    @classmethod
    def one(cls, law: PatternLaw, weights: Sequence[float] | None = None) -> "Found":
        """Return one law for all attributes, in their order."""
        return cls(((tuple(range(len(law.n_categories))), law),), weights)


def _aimed(levels: Sequence[float]) -> list[float]:
    return [level - min(_AIM, level * 1e-3) for level in levels]


def _optimal(task: Task, levels: Sequence[float]) -> Found:
    from deniable.solvers.patterns import optimal

    solution = _solved(lambda: optimal.solve(task.n_categories, levels))
    return Found(_laws(solution.parts), solution.weights.tolist())


def _balanced(task: Task, levels: Sequence[float]) -> Found:
    """The capped linear program up to ``EXACT_CAPS`` attributes, the clipped ramp beyond.

    The program's optimum is exact; it takes seconds at ten different attributes and minutes at
    twelve. The ramp is within about 2 % of it unless the floor on pairs binds, which it does for
    few attributes only (docs/proofs/clipped.md); it also stands in where the program's numbers run
    out, at levels of many nats.
    """
    from deniable.solvers.patterns import balanced, optimal

    if len(levels) <= EXACT_CAPS:
        optimum = _solved(lambda: optimal.solve(task.n_categories, levels))
        try:
            exact = _linear_program(task, levels, max_gap=_RAMP_GAP)
        except _OutOfReachError:
            pass
        else:
            return Found(exact.parts, optimum.weights.tolist(), optimum.epsilon)
    caps = resolve_caps(task.given_rest, levels)
    solution = _solved(lambda: balanced.solve(task.n_categories, levels, caps, task.pair_floor))
    if solution.method == "independent" and _has_room(caps, levels):
        raise _OutOfReachError("no capped law was found for these levels")
    return Found(_laws(solution.parts), solution.weights.tolist(), solution.optimum.epsilon)


def _largest_apart(
    solve: Callable[[Task, Sequence[float]], Found], task: Task, levels: Sequence[float]
) -> Found:
    """Solve for all attributes together, or leave out the largest levels until that can be done.

    Levels of many nats beside ordinary ones are beyond the solvers' arithmetic. An attribute at
    such a level reveals nearly everything; it answers independently, at its own ε, and the bound
    that is printed says what that costs.
    """
    order = sorted(range(len(levels)), key=lambda i: levels[i], reverse=True)
    for n_apart in (0, 1, 2, 4, 8, 16, 32, 64, 128):
        apart, rest = sorted(order[:n_apart]), sorted(order[n_apart:])
        if not rest:
            break
        try:
            found = solve(_part(task, rest), [levels[i] for i in rest])
        except (_OutOfReachError, ArithmeticError):
            continue
        if not apart:
            return found
        sizes = [task.n_categories[i] for i in apart]
        alone = ProductLaw.from_levels(sizes, [levels[i] for i in apart])
        parts = tuple((tuple(rest[i] for i in places), law) for places, law in found.parts)
        return Found((*parts, (tuple(apart), alone)))
    return _kronecker(task, levels)


def _part(task: Task, places: Sequence[int]) -> Task:
    caps = task.given_rest
    if caps is not None and not isinstance(caps, str | int | float):
        caps = [caps[i] for i in places]
    return replace(task, n_categories=tuple(task.n_categories[i] for i in places), given_rest=caps)


def _has_room(caps: Sequence[float | None] | None, levels: Sequence[float]) -> bool:
    if caps is None:
        return True
    pairs = zip(caps, levels, strict=True)
    return any(cap is None or cap > 1.05 * level for cap, level in pairs)


class _OutOfReachError(InputError):
    """A request that a solver's arithmetic cannot answer, though some law may."""


def _laws(parts: Sequence[Any]) -> tuple[tuple[tuple[int, ...], PatternLaw], ...]:
    return tuple((part.attributes, part.law) for part in parts)


def _solved(solve: Callable[[], _Solution]) -> _Solution:
    from deniable.solvers.problem import SolverError

    try:
        return solve()
    except SolverError as error:
        raise _OutOfReachError(str(error)) from None


def _kronecker(task: Task, levels: Sequence[float]) -> Found:
    # Its weights are rounded down exactly; there is no rounding to keep clear of.
    return Found.one(ProductLaw.from_levels(task.n_categories, levels))


def _linear_program(task: Task, levels: Sequence[float], max_gap: float | None = None) -> Found:
    from deniable.solvers.patterns import linear

    aimed = _aimed(levels)
    caps = resolve_caps(task.given_rest, levels)
    if caps is not None:
        # As for the levels, so that rounding ends below the cap; never below the level aimed at.
        caps = tuple(
            None if cap is None else max(cap - _AIM, aim) if cap >= level else cap
            for cap, level, aim in zip(caps, levels, aimed, strict=True)
        )
    solution = _solved(
        lambda: linear.solve(
            task.n_categories,
            aimed,
            given_rest_cap=caps,
            pair_floor=task.pair_floor,
            max_gap=linear.MAX_GAP if max_gap is None else max_gap,
        )
    )
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_probability)
    return Found.one(law, list(solution.weights))


def _closed_form(task: Task, levels: Sequence[float]) -> Found:
    from deniable.laws.patterns import other_outputs
    from deniable.solvers.patterns import closed_form, linear

    aimed = _aimed(levels)
    solution = closed_form.solve(task.n_categories, aimed)
    counts = other_outputs(task.n_categories).astype(np.float64)
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_density * counts)
    # The formula gives no dual; the linear program's prices are one.
    return Found.one(law, list(linear.solve(task.n_categories, aimed).weights))


def _heuristic(task: Task, levels: Sequence[float]) -> Found:
    from deniable.solvers.patterns import heuristic

    wanted = np.asarray(_aimed(levels))
    places = (
        np.argsort(-wanted, kind="stable") if task.order == "descending" else np.arange(len(wanted))
    )
    n = np.asarray(task.n_categories)
    solution = heuristic.solve(n[places].tolist(), wanted[places].tolist())
    change_excess = np.empty(len(wanted))
    change_excess[places] = solution.change_excess
    law = SingleChangeMixture.from_excesses(task.n_categories, solution.keep_excess, change_excess)
    return Found.one(law)


METHODS: dict[Method, Callable[[Task, Sequence[float]], Found]] = {
    "balanced": partial(_largest_apart, _balanced),
    "optimal": partial(_largest_apart, _optimal),
    "kronecker": _kronecker,
    "lp": _linear_program,
    "closed-form": _closed_form,
    "heuristic": _heuristic,
}


def resolve_caps(given_rest: GivenRest, levels: Sequence[float]) -> tuple[float | None, ...] | None:
    """Return the cap on ``epsilon_given_rest`` per attribute in nats, or None for no cap.

    Raises:
        InputError: if a cap is not a number above zero, or there are too many or too few.
    """
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        multiple = given_rest.removesuffix("x")
        try:
            factor = float(multiple)
        except ValueError:
            factor = math.nan
        if multiple == given_rest or not factor >= 1:
            raise InputError(
                f"the cap '{given_rest}' on epsilon_given_rest should be a number of nats, or a "
                "multiple of each attribute's own ε such as 2x, at least 1x"
            )
        return tuple(factor * level for level in levels)
    if isinstance(given_rest, int | float):
        return (check_level(given_rest, "cap on epsilon_given_rest"),) * len(levels)
    if len(given_rest) != len(levels):
        raise InputError(
            f"{len(given_rest)} caps on epsilon_given_rest were given for {len(levels)} attributes"
        )
    return tuple(
        None if cap is None else check_level(cap, "cap on epsilon_given_rest") for cap in given_rest
    )


def cap_text(given_rest: GivenRest) -> str | None:
    """Return a cap as it is written in a record; None for no cap."""
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        return given_rest
    if isinstance(given_rest, int | float):
        return f"{given_rest:g}"
    return ",".join("none" if cap is None else f"{cap:g}" for cap in given_rest)
