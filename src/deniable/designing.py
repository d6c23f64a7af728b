"""From wishes to a mechanism: one call, whatever the method.

A wish is either a level per attribute, or a total for the record that is divided among the
attributes. The method turns levels into a law; the law is accounted for from its integers; and what
comes back has been checked against the wish: every level met, never exceeded, and at most 1e-9
below, or else reported as changed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable._checks import check_level, check_levels
from deniable.errors import InputError
from deniable.families import Identity, PatternLaw, PatternTable, ProductLaw, SingleChangeMixture
from deniable.mechanism import Block, Mechanism
from deniable.schema import Schema

Method = Literal["kronecker", "lp", "closed-form", "heuristic"]
METHODS: tuple[Method, ...] = ("kronecker", "lp", "closed-form", "heuristic")

LP_MAX_ATTRIBUTES = 12
"""Largest number of attributes for which the linear program is solved: 2^12 variables."""

EXACT_WITHIN = 1e-9
"""A level is "kept exactly" if it is not above the request and at most this far below, in nats."""

_AIM = 2e-11
"""Solvers aim this far below the request, so that their rounding never ends above it."""

GivenRest = str | float | Sequence[float | None] | None
"""A cap on ``epsilon_given_rest``: "2x" for a multiple of each attribute's own ε, a number of nats,
one number (or None) per protected attribute, or None for no cap."""


@dataclass(frozen=True)
class Design:
    """A mechanism and what is known about it.

    Args:
        mechanism: carries the accounted levels as its claim.
        method: how the law was found.
        requested_epsilon: the level asked for per attribute in nats, shape (k,); None for an
            attribute released as it is.
        epsilon_lower_bound: no pattern law at these attributes' levels has a smaller ε for the
            record, in nats; None if no bound is known.
        budget: the total that was asked for, or None if levels were.
    """

    mechanism: Mechanism
    method: Method
    requested_epsilon: tuple[float | None, ...]
    epsilon_lower_bound: float | None
    budget: float | None = None

    @property
    def epsilon(self) -> float:
        """ε of the whole record in nats, rounded up."""
        return self.mechanism.epsilon

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the attributes whose level is not the requested one."""
        return tuple(
            name
            for name, asked, got in zip(
                self.mechanism.schema.names,
                self.requested_epsilon,
                self.mechanism.attribute_epsilon,
                strict=True,
            )
            if asked is not None and not asked - EXACT_WITHIN <= got <= asked
        )


def default_method(n_attributes: int) -> Method:
    """Return the method used when none is named: the linear program while it can be solved."""
    return "lp" if n_attributes <= LP_MAX_ATTRIBUTES else "kronecker"


def design(
    schema: Schema,
    *,
    epsilon: float | None = None,
    attribute_epsilon: Sequence[float] | None = None,
    method: Method | None = None,
    given_rest: GivenRest = None,
    order: Literal["given", "descending"] = "given",
    allow_changed_levels: bool = False,
) -> Design:
    """Find a mechanism for a schema. Needs no data.

    Args:
        schema: the attributes; levels or ratios written in it are used where the arguments are
            silent.
        epsilon: total for the record in nats, divided so that the attributes' levels have the
            schema's ratios (equal without ratios).
        attribute_epsilon: one level per protected attribute in nats, in the schema's order.
        method: ``"lp"`` (the smallest ε for the levels, up to 12 attributes), ``"kronecker"``
            (independent attributes), ``"closed-form"`` (two attributes) or ``"heuristic"``
            (Algorithm 3); None chooses by :func:`default_method`.
        given_rest: cap on each attribute's ε against someone who knows the rest of the record;
            for ``"lp"`` only.
        order: for the heuristic, the order in which it takes the attributes: as given, or by
            descending level, which changes fewer of them.
        allow_changed_levels: whether a law may be returned that misses requested levels.

    Returns:
        The mechanism with its claim, and the bound that shows how near the optimum it is.

    Raises:
        InputError: if the wish is incomplete, contradictory or out of reach.
    """
    if method is not None and method not in METHODS:
        raise InputError(f"there is no method '{method}'; choose one of {', '.join(METHODS)}")
    n_protected = len(schema.protected)
    chosen = method or default_method(n_protected)
    _check_method(chosen, n_protected, given_rest)
    task = _Task(schema, chosen, given_rest, order)
    if epsilon is None:
        levels = _requested_levels(schema, attribute_epsilon)
        result = task.at(levels)
    else:
        if attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
            raise InputError(
                "a total for the record and a level per attribute were both given, and one decides "
                "the other; give either epsilon or attribute levels"
            )
        result = _within_budget(task, check_level(epsilon, "epsilon"), allow_changed_levels)
    if result.changed and not allow_changed_levels:
        raise InputError(_changed_sentence(result))
    return replace(result, mechanism=replace(result.mechanism, claim=result.mechanism.promise()))


def _changed_sentence(result: Design) -> str:
    changed = set(result.changed)
    raised = sum(
        asked is not None and got > asked
        for asked, got in zip(
            result.requested_epsilon, result.mechanism.attribute_epsilon, strict=True
        )
    )
    listed = ", ".join(result.changed[:5]) + (", …" if len(changed) > 5 else "")
    return (
        f"the {result.method} method cannot keep the requested level of {len(changed)} attributes "
        f"({listed}; {raised} of them would be less protected than requested); use method lp or "
        "kronecker, order descending, or allow changed levels"
    )


def _check_method(method: Method, n_attributes: int, given_rest: GivenRest) -> None:
    if method == "lp" and n_attributes > LP_MAX_ATTRIBUTES:
        raise InputError(
            f"method lp solves a program with 2^k variables and stops at {LP_MAX_ATTRIBUTES} "
            f"attributes; the schema protects {n_attributes}: use method kronecker or heuristic"
        )
    if method == "closed-form" and n_attributes != 2:
        raise InputError(
            f"method closed-form is for two attributes, and the schema protects {n_attributes}: "
            "use method lp"
        )
    if given_rest is not None and method != "lp":
        raise InputError(
            "a cap on epsilon_given_rest needs method lp; under kronecker it equals each "
            "attribute's own ε already"
        )


def _requested_levels(
    schema: Schema, attribute_epsilon: Sequence[float] | None
) -> tuple[float, ...]:
    protected = [schema.attributes[i] for i in schema.protected]
    names = [a.name for a in protected]
    if attribute_epsilon is not None:
        return check_levels(attribute_epsilon, names)
    if without := [a.name for a in protected if a.epsilon is None]:
        raise InputError(
            f"no privacy level is given for attribute '{without[0]}'; give a total with epsilon, "
            "one level per attribute, or an epsilon for every attribute in the schema"
        )
    return tuple(float(a.epsilon) for a in protected if a.epsilon is not None)


@dataclass(frozen=True)
class _Task:
    """Everything but the levels."""

    schema: Schema
    method: Method
    given_rest: GivenRest
    order: Literal["given", "descending"]

    @property
    def n_categories(self) -> tuple[int, ...]:
        return tuple(self.schema.n_categories[i] for i in self.schema.protected)

    def at(self, levels: Sequence[float]) -> Design:
        """Return the method's design at these levels of the protected attributes, unchecked."""
        if self.method == "kronecker":  # its weights are rounded down exactly
            aimed = list(levels)
        else:
            aimed = [level - min(_AIM, level * 1e-3) for level in levels]
        law, weights = _SOLVERS[self.method](self, aimed)
        protected = self.schema.protected
        blocks = [Block(protected, law)]
        blocks += [
            Block((i,), Identity((a.n_categories,)))
            for i, a in enumerate(self.schema.attributes)
            if i not in protected
        ]
        mechanism = Mechanism(self.schema, tuple(blocks))
        for i, cap in zip(protected, resolve_caps(self.given_rest, levels) or (), strict=False):
            if cap is not None and mechanism.epsilon_given_rest[i] > cap:
                raise InputError(
                    f"attribute '{self.schema.names[i]}': the cap {cap:g} on epsilon_given_rest "
                    "was missed by a rounding error of the solver; ask for a slightly smaller one"
                )
        asked = dict(zip(protected, levels, strict=True))
        requested = tuple(asked.get(i) for i in range(len(self.schema.attributes)))
        return Design(mechanism, self.method, requested, self._bound(mechanism, weights))

    def _bound(self, mechanism: Mechanism, weights: Sequence[float] | None) -> float:
        # At the levels that the law really has, rounded down: a bound at the requested ones could
        # end a hair above the law's own ε.
        from deniable.solvers import certificate

        levels = [
            math.nextafter(mechanism.attribute_epsilon[i], 0.0) for i in self.schema.protected
        ]
        bound = certificate.best_known_bound(self.n_categories, levels)
        if weights is not None:
            bound = max(bound, certificate.weighted_bound(self.n_categories, levels, weights))
        return bound


_Found = tuple[PatternLaw, Sequence[float] | None]
"""A law, and weights for the lower bound if the solver has better ones than the levels."""


def _kronecker(task: _Task, levels: Sequence[float]) -> _Found:
    return ProductLaw.from_levels(task.n_categories, levels), None


def _linear_program(task: _Task, levels: Sequence[float]) -> _Found:
    from deniable.solvers import linear

    caps = resolve_caps(task.given_rest, levels)
    if caps is not None:
        # As for the levels, so that rounding ends below the cap; never below the level itself.
        caps = tuple(
            None if cap is None else max(cap - _AIM, level) if cap >= level else cap
            for cap, level in zip(caps, levels, strict=True)
        )
    try:
        solution = linear.solve(task.n_categories, levels, given_rest_cap=caps)
    except linear.SolverError as error:
        raise InputError(str(error)) from None
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_probability)
    return law, list(solution.weights)


def _closed_form(task: _Task, levels: Sequence[float]) -> _Found:
    from deniable.patterns import other_outputs
    from deniable.solvers import closed_form, linear

    solution = closed_form.solve(task.n_categories, levels)
    counts = other_outputs(task.n_categories).astype(np.float64)
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_density * counts)
    # The formula gives no dual; the linear program's prices are one.
    return law, list(linear.solve(task.n_categories, levels).weights)


def _heuristic(task: _Task, levels: Sequence[float]) -> _Found:
    from deniable.solvers import heuristic

    wanted = np.asarray(levels)
    places = (
        np.argsort(-wanted, kind="stable") if task.order == "descending" else np.arange(len(wanted))
    )
    n = np.asarray(task.n_categories)
    solution = heuristic.solve(n[places].tolist(), wanted[places].tolist())
    change_excess = np.empty(len(wanted))
    change_excess[places] = solution.change_excess
    law = SingleChangeMixture.from_excesses(task.n_categories, solution.keep_excess, change_excess)
    return law, None


_SOLVERS: dict[Method, Callable[[_Task, Sequence[float]], _Found]] = {
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
    if given_rest is None:
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


def _within_budget(task: _Task, budget: float, allow_changed_levels: bool) -> Design:
    """Return the largest levels in the schema's ratios whose total keeps the budget."""
    protected = [task.schema.attributes[i] for i in task.schema.protected]
    if any(a.importance for a in protected):
        raise InputError(
            "importances divide a budget only under the optimal methods, which this version does "
            "not have; give ratios or levels instead"
        )
    ratios = np.array([a.ratio or 1.0 for a in protected])
    # A law at scale s has max(ε_i) <= ε <= Σ ε_i, so the scale lies between these two.
    low, high = budget / ratios.sum(), budget / ratios.max()

    def at(scale: float) -> Design:
        return task.at((scale * ratios).tolist())

    def fits(candidate: Design) -> bool:
        return candidate.epsilon <= budget and (allow_changed_levels or not candidate.changed)

    if task.method == "kronecker":
        found: Design | None = at(low * (1 - 1e-15))  # the sum of k rounded levels stays below
    elif task.method == "heuristic":
        found = _largest_on_a_grid(at, fits, low, high)
    else:
        found = _largest_monotone(at, budget, low, high)
    if found is None:
        raise InputError(
            f"the {task.method} method keeps no levels in these ratios within ε = {budget:g}; use "
            "method kronecker or lp, or allow changed levels"
        )
    return replace(found, budget=budget)


def _largest_monotone(
    at: Callable[[float], Design], budget: float, low: float, high: float
) -> Design | None:
    """Find where the increasing total reaches the budget, and return the end that keeps it.

    A secant between the ends of the bracket (Illinois rule: the value of an end that stays twice
    is halved), until the total is within 1e-10 of the budget or the bracket has closed.
    """
    best: Design | None = None
    at_low, at_high = at(low), at(high)
    if at_high.epsilon <= budget:
        return at_high
    if at_low.epsilon <= budget:
        best = at_low
    below, above = at_low.epsilon - budget, at_high.epsilon - budget
    stayed = 0
    for _ in range(60):
        if high - low <= 1e-12 * high or (best is not None and best.epsilon >= budget - 1e-10):
            break
        # Aim a little under the root: landing just below it ends the search.
        scale = low + (high - low) * min(max(below / (below - above), 1e-3), 1 - 1e-3)
        candidate = at(scale)
        difference = candidate.epsilon - budget
        if difference <= 0:
            low, below, best = scale, min(difference, -1e-300), candidate
            above = above / 2 if stayed == -1 else above
            stayed = -1
        else:
            high, above = scale, difference
            below = below / 2 if stayed == 1 else below
            stayed = 1
    return best


def _largest_on_a_grid(
    at: Callable[[float], Design],
    fits: Callable[[Design], bool],
    low: float,
    high: float,
) -> Design | None:
    """Search scales from large to small, and refine the first that fits upwards.

    The heuristic's total is not monotone in the scale, so no bisection over the whole range finds
    the largest scale; a fine grid does up to its spacing, and what is returned has been verified.
    """
    # Fallback can push the total above Σ ε_i, so smaller scales than low are tried too.
    grid = np.geomspace(high, low / 4, 400)
    for position, scale in enumerate(grid):
        best = at(float(scale))
        if not fits(best):
            continue
        bottom, top = float(scale), float(grid[max(position - 1, 0)])
        for _ in range(40):
            middle = (bottom + top) / 2
            candidate = at(middle)
            if fits(candidate):
                bottom, best = middle, candidate
            else:
                top = middle
        return best
    return None
