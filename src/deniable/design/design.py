"""From a request to a mechanism, for every method.

A request is a level per attribute, a total for the record to divide among the attributes, or a
strength. The method turns levels into a law; the law is accounted for from its integers, and the
result is checked against the request: every level met, never exceeded, and at most 1e-9 below, or
reported as changed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from deniable._checks import check_level, check_levels, typed
from deniable.design.budget import within_budget
from deniable.design.form_request import FormRequest
from deniable.design.level_designs import LevelDesigns
from deniable.design.matrices import (
    laws_given,
    refuse_requests_of,
    with_responses,
    without,
)
from deniable.design.methods import FUNCTIONS, Functions
from deniable.design.solving import Task
from deniable.design.strength import PerAttribute, StrengthRequest
from deniable.errors import InputError
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import expected_variance
from deniable.mechanism.privacy import nats_text
from deniable.numerals import count_text, number_text
from deniable.schema import Schema
from deniable.statement.account import CapCost, Design
from deniable.statement.bound import lacks_proof, lower_bound
from deniable.statement.caps import GivenRest, resolve_caps
from deniable.statement.methods import (
    DEFAULT_METHOD,
    STRENGTH_METHOD,
    Method,
    check_number,
    method_named,
    methods_taking,
)

CURVE = ("1.25x", "1.5x", "2x", "3x", "none")
"""Caps on ``epsilon_given_rest`` for which the cost is shown."""

FAINT = 0.01
"""Level in nats below which an attribute's column is next to noise."""

CURVE_UP_TO = 60
"""Attributes up to which the curve is computed: five designs, a second or two each."""

_UNSPENT = 1e-4
"""Unspent part of a total above which a note reports it."""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    Solvers compute thousands of small products. With threads they wait longer than they compute,
    and add up in another order, so that a law would depend on the number of processors.
    """
    with threadpool_limits(1):
        yield


def schema_of(given: Schema | str | Path) -> Schema:
    """Return a schema, read from a file if given as one."""
    if not isinstance(given, Schema):
        return Schema.from_toml(given)
    given.refuse_outer_blanks()
    return given


@typed
@_one_thread()
def design(
    schema: Schema | str | Path,
    *,
    epsilon: float | None = None,
    attribute_epsilon: Sequence[float] | Mapping[str, float] | None = None,
    method: str | None = None,
    given_rest: GivenRest = None,
    pair_floor: float | None = None,
    importance: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    allow_changed_levels: bool = False,
    attenuation: PerAttribute = None,
    strength: PerAttribute = None,
    preserve: Mapping[tuple[str, str], float] | None = None,
    matrices: Mapping[str, MatrixChannel | NDArray[np.float64]] | None = None,
    pairs: float | None = None,
    asked: int | None = None,
    form_column: str | None = None,
) -> Design:
    """Return a mechanism for a schema; no data are needed.

    Args:
        schema: the attributes, or the file that declares them; its levels or ratios are the
            defaults of the arguments.
        epsilon: total for the record in nats, divided by the schema's ratios if it has any; else,
            under ``balanced``, so that (1 − pairs) log(variance of shares) + pairs log(variance of
            cells of two attributes) is smallest; under ``optimal``, so that the sum over attributes
            of importance times the averaged variance of a share is; else in equal levels.
        attribute_epsilon: one level per protected attribute in nats, in the schema's order or by
            name.
        method: a name in :data:`deniable.statement.methods.METHODS`; ``"balanced"`` if not given,
            or ``"lambda"`` with strengths.
        given_rest: cap on each attribute's ε given the rest of the record; for
            ``"balanced"`` (by default 2x its own ε), ``"lp"`` and ``"forms"`` (also as a part of
            the record's ε, ``"0.75e"``).
        pair_floor: least φ_ij/(φ_i φ_j) of any two attributes, 0 for none; for ``"balanced"`` at
            given levels or ratios (by default 0.5) and ``"lp"``.
        importance: of single attributes, by name, 1 if not named; adds to the schema's.
        at_most: largest level of single attributes in nats, by name, when a total is divided.
        allow_changed_levels: whether a law may be returned that misses requested levels.
        attenuation, strength, preserve: instead of levels, the strength
            (see :class:`~deniable.design.strength.StrengthRequest`), for ``"lambda"``
            (independent responses; the default if one of these is given) and ``"joint"`` (one
            response on whole records, which needs one of ``epsilon``, ``attenuation`` and
            ``strength``).
        matrices: response matrices of single attributes, by name, ``matrix[y, x]`` = Pr[answer y |
            category x], shape (m, a), with m at least a. The other arguments are for the attributes
            without a matrix and without a ``response`` in the schema.
        pairs: for ``"forms"`` and for ``"balanced"`` at a total, weight of tables of two attributes
            against shares, 0 to 1; 0.2 if not given. At 0 some pairs cannot be estimated.
        asked: for ``"forms"``, largest number of attributes in a form, up to 12; if not given 9,
            but any number of those that are alike.
        form_column: for ``"forms"``, the column of the release with the number of the form;
            ``"form"`` if not given and not taken.

    Returns:
        The mechanism with its claim, and the bound that limits its distance from the optimum.

    Raises:
        InputError: if the request is incomplete, contradictory or impossible.

    Examples:
        >>> from deniable import Schema
        >>> plan = design(Schema.anonymous((2, 3, 4)), epsilon=3)
        >>> plan.method, round(plan.epsilon, 3) <= 3, len(plan.mechanism.attribute_epsilon)
        ('balanced', True, 3)
        >>> weak = design(Schema.anonymous((2, 3)), attenuation=0.5)
        >>> weak.method, [round(level, 3) for level in weak.mechanism.attribute_epsilon]
        ('lambda', [1.099, 1.386])
    """
    schema = schema_of(schema)
    if laws := laws_given(schema, matrices or {}):
        requests: dict[str, Any] = {
            "epsilon": epsilon,
            "attribute_epsilon": attribute_epsilon,
            "method": method,
            "given_rest": given_rest,
            "pair_floor": pair_floor,
            "importance": importance or None,
            "at_most": at_most or None,
            "allow_changed_levels": allow_changed_levels or None,
            "attenuation": attenuation,
            "strength": strength,
            "preserve": preserve or None,
            "pairs": pairs,
            "asked": asked,
            "form_column": form_column,
        }
        requests = {option: value for option, value in requests.items() if value is not None}
        refuse_requests_of(laws, requests)
        rest = without(schema, laws)
        if rest is None and requests:
            raise InputError(
                "every attribute has a response matrix, whose ε follows from it; leave out "
                + ", ".join(f"`{option}`" for option in requests)
            )
        others = None if rest is None else design(rest, **requests)
        return with_responses(schema, others, laws)
    if isinstance(attribute_epsilon, Mapping):
        attribute_epsilon = _in_order(attribute_epsilon, schema)
    request = StrengthRequest(attenuation, strength, preserve or {})
    spec = method_named(method or (STRENGTH_METHOD if request else DEFAULT_METHOD))
    functions = FUNCTIONS[spec.name]
    form_request = FormRequest(
        importance or {}, at_most or {}, pairs, asked, form_column, given_rest
    )
    if form_request and functions.forms is None:
        raise InputError(
            f"asked and form_column are for method {methods_taking('forms')}, not {spec.name}"
        )
    if pairs is not None and "pairs" not in spec.takes:
        raise InputError(
            f"`pairs` is for methods {methods_taking('pairs', joined='and')}, not {spec.name}"
        )
    if functions.forms is not None:
        if pair_floor:
            raise InputError(
                f"a floor on pairs needs method {methods_taking('floor')}, not {spec.name}, which "
                "takes the weight of pairs instead"
            )
        return _by_forms(schema, spec, form_request, epsilon, attribute_epsilon, request)
    if functions.blocks is not None:
        return _by_strength(schema, spec, request, epsilon, attribute_epsilon, given_rest)
    if request:
        raise InputError(
            "λ, strengths and covariances are for methods "
            f"{methods_taking('strength', joined='and')}, not {spec.name}"
        )
    n_categories = tuple(schema.n_categories[i] for i in schema.protected)
    _check_method(spec, len(n_categories), given_rest, pair_floor)
    resolve_caps(given_rest, n_categories)  # raises for an invalid cap
    given_rest = spec.given_rest if given_rest is None else given_rest
    # A total without ratios is divided by the least error, where pairs count by their weight.
    by_error = functions.divide is not None and epsilon is not None
    by_error = by_error and not any(schema.attributes[i].ratio for i in schema.protected)
    if by_error and pair_floor:
        raise InputError(
            f"method {spec.name} takes a floor on pairs for levels or ratios only; for a total "
            "give `pairs`, the weight of tables of two attributes"
        )
    if pairs is not None and not by_error:
        raise InputError(
            f"`pairs` is for a total without ratios under method {spec.name}; for levels give "
            "`pair_floor`"
        )
    if pairs is not None and not 0 <= pairs <= 1:
        raise InputError(f"`pairs` is the weight of pairs, 0 to 1, not {pairs:g}")
    if not by_error:
        pair_floor = spec.pair_floor if pair_floor is None else pair_floor
    designs = LevelDesigns(schema, spec, Task(n_categories, given_rest, pair_floor or None))
    if epsilon is None:
        if importance or at_most:
            raise InputError("importance and at_most divide a total; give epsilon with them")
        result = designs.at(_requested_levels(schema, attribute_epsilon))
    else:
        if attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
            raise InputError(
                "a total for the record and a level per attribute were both given, and one decides "
                "the other; give either epsilon or attribute levels"
            )
        result = within_budget(
            designs,
            check_level(epsilon, "epsilon"),
            importance or {},
            at_most or {},
            allow_changed_levels=allow_changed_levels,
            pairs=pairs,
        )
        if by_error:
            result = replace(result, end=replace(form_request, given_rest=given_rest))
        if result.epsilon < epsilon * (1 - _UNSPENT) and not _all_largest(result, at_most or {}):
            left = (
                f"Of the total of {nats_text(f'{epsilon:g}')} {number_text(result.epsilon, 6)} are "
                f"spent"
            )
            note = f"{left}: no larger levels were found for it."
            result = replace(result, notes=(*result.notes, note))
    if lacks_proof(result, method_named(result.method)):
        raise InputError(
            f"method {result.method} found no law with a proof of the smallest ε: its "
            "arithmetic does not reach levels of many nats next to others; use method optimal"
        )
    if result.changed and not allow_changed_levels:
        raise InputError(_changed_sentence(result))
    if faint := _faint(result):
        result = replace(result, notes=(*result.notes, faint))
    return replace(result, mechanism=replace(result.mechanism, claim=result.mechanism.promise()))


def _faint(result: Design) -> str:
    """Return a sentence on attributes with nearly no information released; empty if there are
    none, or their levels were requested."""
    mechanism = result.mechanism
    wished = [FAINT if level is None else level for level in result.requested_epsilon]
    names = [
        mechanism.schema.names[i]
        for i in mechanism.schema.protected
        if mechanism.attribute_epsilon[i] < FAINT <= wished[i]
    ]
    if not names:
        return ""
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    instead = "a larger total, or fewer attributes"
    if result.method != DEFAULT_METHOD:
        instead = f"method {DEFAULT_METHOD}"
    return f"{listed}: hardly any information is released (below {FAINT:g} nats); use {instead}."


def _all_largest(result: Design, at_most: Mapping[str, float]) -> bool:
    """Whether every level is at its limit."""
    mechanism = result.mechanism
    levels = zip(mechanism.schema.names, mechanism.attribute_epsilon, strict=True)
    return all(level >= at_most.get(name, math.inf) * (1 - _UNSPENT) for name, level in levels)


@_one_thread()
def cap_curve(result: Design, caps: Sequence[str] = CURVE) -> tuple[CapCost, ...] | None:
    """Return the record's ε at this design's levels under several caps on ``epsilon_given_rest``;
    under forms, where the caps are parts of the record's ε, their expected variances.

    Examples:
        >>> from deniable import Schema
        >>> made = design(Schema.anonymous((2, 3, 4)), epsilon=3)
        >>> [point.cap for point in cap_curve(made)]
        ['1.25x', '1.5x', '2x', '3x', 'none']
    """
    schema, functions = result.mechanism.schema, FUNCTIONS.get(result.method, Functions())
    if functions.curve_of_forms is not None:
        return functions.curve_of_forms(result)
    if isinstance(result.end, FormRequest) and len(schema.protected) <= CURVE_UP_TO:
        return _errors_under_caps(result, result.end, caps)
    if functions.cost_of_caps is None or len(schema.protected) > CURVE_UP_TO:
        return None
    levels = [result.mechanism.attribute_epsilon[i] for i in schema.protected]
    n_categories = tuple(schema.n_categories[i] for i in schema.protected)
    task = Task(n_categories, pair_floor=result.pair_floor)
    chosen = (
        caps.index(result.given_rest or "none") if (result.given_rest or "none") in caps else None
    )
    others = [cap for place, cap in enumerate(caps) if place != chosen]
    costs = iter(functions.cost_of_caps(task, levels, others, result.end))
    epsilons = [result.epsilon if place == chosen else next(costs) for place in range(len(caps))]
    # A law under one cap is a law under every looser one.
    curve, least = [], math.inf
    for place, (cap, epsilon) in enumerate(zip(caps, epsilons, strict=True)):
        if epsilon is None:
            continue
        if chosen is not None and place < chosen:
            epsilon = max(epsilon, result.epsilon)
        least = min(least, epsilon)
        curve.append(CapCost(cap, least))
    return tuple(curve)


def _errors_under_caps(
    result: Design, request: FormRequest, caps: Sequence[str]
) -> tuple[CapCost, ...]:
    """Return the errors of the laws of the same total under several caps, and under its own."""
    chosen, curve = result.given_rest or "none", []
    for cap in caps if chosen in caps else (chosen, *caps):
        made = result
        if cap != chosen:
            made = design(
                result.mechanism.schema,
                epsilon=result.budget,
                method=result.method,
                given_rest=cap,
                importance=request.importance,
                at_most=request.at_most,
                pairs=request.pairs,
            )
        expected = expected_variance(made.mechanism)
        curve.append(CapCost(cap, made.epsilon, expected.shares, expected.pairs))
    return tuple(curve)


def _by_forms(
    schema: Schema,
    method: Method,
    form_request: FormRequest,
    epsilon: float | None,
    attribute_epsilon: Sequence[float] | None,
    request: StrengthRequest,
) -> Design:
    """Return the design of a method with forms."""
    if attribute_epsilon is not None or any(a.epsilon for a in schema.attributes) or request:
        raise InputError(
            f"method {method.name} takes no level or strength per attribute: "
            f"{method.instead_of_levels}"
        )
    if epsilon is None:
        raise InputError(f"method {method.name} needs a total for the record; give epsilon")
    make = FUNCTIONS[method.name].forms
    assert make is not None
    return make(schema, method.name, check_level(epsilon, "epsilon"), form_request)


def _by_strength(
    schema: Schema,
    method: Method,
    request: StrengthRequest,
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
    make = FUNCTIONS[method.name].blocks
    assert make is not None
    result = make(schema, request, epsilon)
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
    return (
        f"the {result.method} method cannot keep the requested level of "
        f"{count_text(len(changed), 'attribute')} ({listed}; {raised} of them would be less "
        f"protected than requested); use method "
        f"{DEFAULT_METHOD}, or set `allow_changed_levels`"
    )


def _check_method(
    method: Method, n_attributes: int, given_rest: GivenRest, pair_floor: float | None
) -> None:
    check_number(method, n_attributes)
    restricted = given_rest not in (None, "none") or pair_floor
    if restricted and not method.takes >= {"caps", "floor"}:
        raise InputError(
            "a cap on epsilon_given_rest or a floor on pairs needs method "
            f"{methods_taking('caps', 'floor')}, not {method.name}"
        )
    if pair_floor is not None and not 0 <= pair_floor <= 1:
        raise InputError(f"the floor on pairs lies between 0 and 1, not at {pair_floor:g}")


def _in_order(levels: Mapping[str, float], schema: Schema) -> list[float]:
    """Return levels by name in the order of the protected attributes."""
    names = [schema.names[i] for i in schema.protected]
    for name in levels:
        if name not in names:
            raise InputError(f"attribute_epsilon: there is no protected attribute '{name}'")
    if missing := [name for name in names if name not in levels]:
        raise InputError(f"attribute_epsilon: attribute '{missing[0]}' has no value")
    return [levels[name] for name in names]


def _requested_levels(
    schema: Schema, attribute_epsilon: Sequence[float] | None
) -> tuple[float, ...]:
    protected = [schema.attributes[i] for i in schema.protected]
    names = [a.name for a in protected]
    if attribute_epsilon is not None:
        return check_levels(attribute_epsilon, names)
    if without := [a.name for a in protected if a.epsilon is None]:
        raise InputError(
            f"no privacy level is given for attribute '{without[0]}'; give a total with "
            "`epsilon`, a level per attribute with `attribute_epsilon`, or epsilon for every "
            "attribute in the schema"
        )
    return tuple(float(a.epsilon) for a in protected if a.epsilon is not None)
