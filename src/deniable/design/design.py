"""From a request to a mechanism: one call, whatever the method.

A request is a level per attribute, or a total for the record that is divided among the attributes,
or says how strongly to randomize. The method turns levels into a law; the law is accounted for from
its integers; and what comes back has been checked against the request: every level met, never
exceeded, and at most 1e-9 below, or else reported as changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable._checks import check_level, check_levels
from deniable.design.account import CapCost, Design
from deniable.design.budget import within_budget
from deniable.design.methods import (
    DEFAULT_METHOD,
    METHODS,
    STRENGTH_METHOD,
    GivenRest,
    MethodSpec,
    Task,
    method_named,
    methods_taking,
)
from deniable.design.plan import Plan, lower_bound
from deniable.design.strength import PerAttribute, StrengthWishes
from deniable.errors import InputError
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Schema

CURVE = ("1.25x", "1.5x", "2x", "3x", "none")
"""Caps on ``epsilon_given_rest`` for which the cost is shown."""

CURVE_UP_TO = 60
"""Attributes up to which the curve is computed: five designs, a second or two each."""


def design(
    schema: Schema,
    *,
    epsilon: float | None = None,
    attribute_epsilon: Sequence[float] | None = None,
    method: str | None = None,
    given_rest: GivenRest = None,
    pair_floor: float | None = None,
    importance: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    order: Literal["given", "descending"] = "given",
    allow_changed_levels: bool = False,
    attenuation: PerAttribute = None,
    strength: PerAttribute = None,
    preserve: Mapping[tuple[str, str], float] | None = None,
    matrices: Mapping[str, NDArray[np.float64]] | None = None,
) -> Design:
    """Find a mechanism for a schema. Needs no data.

    Args:
        schema: the attributes; levels or ratios written in it are used where the arguments are
            silent.
        epsilon: total for the record in nats, divided by the schema's ratios if it has any; else,
            under ``balanced`` and ``optimal``, so that the sum over attributes of importance times
            the averaged variance of an unbiased share is smallest; else in equal levels.
        attribute_epsilon: one level per protected attribute in nats, in the schema's order.
        method: a name in :data:`deniable.design.methods.METHODS`, which says what each is;
            ``"balanced"`` if not given, or ``"lambda"`` where strengths are.
        given_rest: cap on each attribute's ε against someone who knows the rest of the record; for
            ``"balanced"`` (by default 2x its own ε) and ``"lp"``.
        pair_floor: least φ_ij/(φ_i φ_j) of any two attributes, 0 for none; for ``"balanced"`` (by
            default 0.5) and ``"lp"``.
        importance: of single attributes, by name, 1 if not named; adds to the schema's.
        at_most: largest level of single attributes in nats, by name, when a total is divided.
        order: for the heuristic, the order in which it takes the attributes: as given, or by
            descending level, which changes fewer of them.
        allow_changed_levels: whether a law may be returned that misses requested levels.
        attenuation, strength, preserve, matrices: instead of levels, how strongly to randomize
            (see :class:`~deniable.design.strength.StrengthWishes`), for ``"lambda"``
            (independent responses; the default if one of these is given) and ``"joint"`` (one
            response on whole records, which needs one of ``epsilon``, ``attenuation`` and
            ``strength``).

    Returns:
        The mechanism with its claim, and the bound that shows how near the optimum it is.

    Raises:
        InputError: if the request is incomplete, contradictory or out of reach.

    Example:
        >>> from deniable import Schema
        >>> plan = design(Schema.anonymous((2, 3, 4)), epsilon=3)
        >>> plan.method, round(plan.epsilon, 3) <= 3, len(plan.mechanism.attribute_epsilon)
        ('balanced', True, 3)
        >>> weak = design(Schema.anonymous((2, 3)), attenuation=0.5)
        >>> weak.method, [round(level, 3) for level in weak.mechanism.attribute_epsilon]
        ('lambda', [1.099, 1.386])
    """
    wishes = StrengthWishes(attenuation, strength, preserve or {}, matrices or {})
    spec = method_named(method or (STRENGTH_METHOD if wishes else DEFAULT_METHOD))
    if spec.blocks is not None:
        return _by_strength(schema, spec, wishes, epsilon, attribute_epsilon, given_rest)
    if wishes:
        raise InputError(
            "λ, strengths, covariances and matrices are for methods "
            f"{methods_taking('strength', joined='and')}, not {spec.name}"
        )
    n_categories = tuple(schema.n_categories[i] for i in schema.protected)
    _check_method(spec, len(n_categories), given_rest, pair_floor)
    given_rest = spec.given_rest if given_rest is None else given_rest
    pair_floor = spec.pair_floor if pair_floor is None else pair_floor
    plan = Plan(schema, spec, Task(n_categories, given_rest, pair_floor or None, order))
    if epsilon is None:
        if importance or at_most:
            raise InputError(
                "importances and largest levels say how to divide a total; give epsilon with them"
            )
        result = plan.at(_requested_levels(schema, attribute_epsilon))
    else:
        if attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
            raise InputError(
                "a total for the record and a level per attribute were both given, and one decides "
                "the other; give either epsilon or attribute levels"
            )
        result = within_budget(
            plan,
            check_level(epsilon, "epsilon"),
            importance or {},
            at_most or {},
            allow_changed_levels=allow_changed_levels,
        )
    if result.changed and not allow_changed_levels:
        raise InputError(_changed_sentence(result))
    return replace(result, mechanism=replace(result.mechanism, claim=result.mechanism.promise()))


def cap_curve(result: Design, caps: Sequence[str] = CURVE) -> tuple[CapCost, ...] | None:
    """Return the record's ε at this design's levels under several caps on ``epsilon_given_rest``.

    Returns:
        One entry per cap that can be met; None if the method keeps no cap by default, or there
        are more than 60 attributes.

    Example:
        >>> from deniable import Schema
        >>> made = design(Schema.anonymous((2, 3, 4)), epsilon=3)
        >>> [point.cap for point in cap_curve(made)]
        ['1.25x', '1.5x', '2x', '3x', 'none']
    """
    schema = result.mechanism.schema
    if METHODS[result.method].given_rest is None or len(schema.protected) > CURVE_UP_TO:
        return None
    levels = [result.mechanism.attribute_epsilon[i] for i in schema.protected]
    curve = []
    for cap in caps:
        if cap == result.given_rest:
            curve.append(CapCost(cap, result.epsilon))
            continue
        try:
            point = design(
                schema,
                attribute_epsilon=levels,
                method=result.method,
                given_rest=cap,
                pair_floor=result.pair_floor or 0.0,
            )
        except InputError:  # this cap cannot be met beside the floor
            continue
        curve.append(CapCost(cap, point.epsilon))
    return tuple(curve)


def _by_strength(
    schema: Schema,
    method: MethodSpec,
    wishes: StrengthWishes,
    epsilon: float | None,
    attribute_epsilon: Sequence[float] | None,
    given_rest: GivenRest,
) -> Design:
    """Return the design of a method that takes strengths."""
    if attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
        raise InputError(
            f"method {method.name} takes no level per attribute; {method.instead_of_levels}"
        )
    if given_rest is not None:
        raise InputError(
            f"a cap on epsilon_given_rest needs method {methods_taking('caps')}, not {method.name}"
        )
    assert method.blocks is not None
    result = method.blocks(schema, wishes, epsilon)
    mechanism = Mechanism(schema, result.blocks)
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        method.name,
        (None,) * len(schema.attributes),
        lower_bound(mechanism, None),
        epsilon,
        notes=result.notes,
    )


def _changed_sentence(result: Design) -> str:
    changed = set(result.changed)
    raised = sum(
        requested is not None and got > requested
        for requested, got in zip(
            result.requested_epsilon, result.mechanism.attribute_epsilon, strict=True
        )
    )
    listed = ", ".join(result.changed[:5]) + (", …" if len(changed) > 5 else "")
    order = ", order descending" if "order" in METHODS[result.method].takes else ""
    return (
        f"the {result.method} method cannot keep the requested level of {len(changed)} attributes "
        f"({listed}; {raised} of them would be less protected than requested); use method "
        f"{DEFAULT_METHOD}{order}, or allow changed levels"
    )


def _check_method(
    method: MethodSpec, n_attributes: int, given_rest: GivenRest, pair_floor: float | None
) -> None:
    if not method.fewest <= n_attributes <= (method.most or n_attributes):
        numbers = f"up to {method.most}" if method.fewest == 1 else f"exactly {method.most}"
        raise InputError(
            f"method {method.name} is for {numbers} attributes, and the schema protects "
            f"{n_attributes}: use method {methods_taking('importance')}"
        )
    restricted = given_rest not in (None, "none") or pair_floor
    if restricted and not method.takes >= {"caps", "floor"}:
        raise InputError(
            "a cap on epsilon_given_rest or a floor on pairs needs method "
            f"{methods_taking('caps', 'floor')}, not {method.name}"
        )
    if pair_floor is not None and not 0 <= pair_floor <= 1:
        raise InputError(f"the floor on pairs lies between 0 and 1, not at {pair_floor:g}")


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
