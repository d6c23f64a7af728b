"""From a request to a mechanism, for every method.

A request is a level per attribute, a total for the record to divide among the attributes, or a
strength. The method turns levels into a law; the law is accounted for from its integers, and the
result is checked against the request: every level met, never exceeded, and at most 1e-9 below, or
reported as changed.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from deniable._checks import check_level, check_levels, typed
from deniable.design.budget import within_budget
from deniable.design.level_designs import LevelDesigns
from deniable.design.matrices import (
    declaring,
    laws_given,
    refuse_requests_of,
    requests_without_matrices,
    with_responses,
    without,
)
from deniable.design.methods import FUNCTIONS
from deniable.design.request import (
    Caps,
    DesignRequest,
    Levels,
    Matrices,
    PairFractions,
    PerAttribute,
)
from deniable.design.solving import Task
from deniable.errors import InputError
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.privacy import nats_text
from deniable.numerals import count_text, number_text
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.bound import lacks_proof, lower_bound
from deniable.statement.caps import GivenRest, resolve_caps
from deniable.statement.methods import (
    DEFAULT_METHOD,
    INDEPENDENT_METHOD,
    STRENGTH_METHOD,
    Method,
    check_number,
    method_named,
    methods_taking,
)

FAINT = 0.01
"""Level in nats below which an attribute's column is next to noise."""

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
    return given if isinstance(given, Schema) else Schema.from_toml(given)


@typed
def design(
    schema: Schema | str | Path,
    *,
    epsilon: float | None = None,
    attribute_epsilon: Levels = None,
    method: str | None = None,
    given_rest: Caps = None,
    pair_floor: float | None = None,
    importance: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    pairs: float | None = None,
    max_questions: int | None = None,
    form_column: str | None = None,
    allow_changed_levels: bool = False,
    attenuation: PerAttribute = None,
    strength: PerAttribute = None,
    preserve: PairFractions | None = None,
    matrices: Matrices | None = None,
    response: Mapping[str, str] | None = None,
) -> Design:
    """Return a mechanism for a schema; no data are needed.

    Args:
        schema: the attributes, or the file that declares them; its levels or ratios are the
            defaults. The other arguments are the fields of :class:`deniable.DesignRequest`.

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
    given = {name: one for name, one in locals().items() if name != "schema" and one is not None}
    return design_of(schema_of(schema), DesignRequest(**given))


@_one_thread()
def design_of(schema: Schema, request: DesignRequest) -> Design:
    """Return the design of a request; see :func:`design`."""
    schema = _without_released_numbers(declaring(schema, request.response), request)
    if laws := laws_given(schema, request.matrices):
        requests = requests_without_matrices(request)
        refuse_requests_of(laws, requests)
        rest = without(schema, laws)
        if rest is None and requests:
            raise InputError(
                "every attribute has a response matrix, whose ε follows from it; leave out "
                + ", ".join(f"`{option}`" for option in requests)
            )
        plain = replace(request, matrices={}, response={})
        return with_responses(schema, None if rest is None else design_of(rest, plain), laws)
    epsilon, pairs = request.epsilon, request.pairs
    given_rest, pair_floor = request.given_rest, request.pair_floor
    default = DEFAULT_METHOD if request.is_empty else STRENGTH_METHOD
    alone = schema.attributes[schema.protected[0]] if len(schema.protected) == 1 else None
    unlimited = given_rest is None and pair_floor is None and pairs is None and request.is_empty
    if unlimited and alone is not None and alone.range is not None:
        default = INDEPENDENT_METHOD  # a number alone has its own matrix
    spec = method_named(request.method or default)
    functions = FUNCTIONS[spec.name]
    of_forms = request.max_questions is not None or request.form_column is not None
    if of_forms and functions.forms is None:
        raise InputError(
            f"`max_questions` and `form_column` are for method {methods_taking('forms')}, not "
            f"{spec.name}"
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
        return _by_forms(schema, spec, request)
    if functions.blocks is not None:
        return _by_strength(schema, spec, request)
    if not request.is_empty:
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
        if request.importance or request.at_most:
            raise InputError("importance and at_most divide a total; give epsilon with them")
        result = designs.at(_requested_levels(schema, request.attribute_epsilon))
    else:
        if request.attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
            raise InputError(
                "a total for the record and a level per attribute were both given, and one decides "
                "the other; give either epsilon or attribute levels"
            )
        result = within_budget(
            designs,
            check_level(epsilon, "epsilon"),
            request.importance,
            request.at_most,
            pairs=pairs,
        )
        if result.epsilon < epsilon * (1 - _UNSPENT) and not _all_largest(result, request.at_most):
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
    if result.changed and not request.allow_changed_levels:
        raise InputError(_changed_sentence(result))
    if faint := _faint(result):
        result = replace(result, notes=(*result.notes, faint))
    return replace(result, mechanism=replace(result.mechanism, claim=result.mechanism.promise()))


def _without_released_numbers(schema: Schema, request: DesignRequest) -> Schema:
    """Return the schema, which may be of another design, without the released values of numbers."""
    attributes = tuple(
        replace(a, answers=())
        if a.range is not None and not a.response and a.name not in request.matrices
        else a
        for a in schema.attributes
    )
    return replace(schema, attributes=attributes)


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


def _by_forms(
    schema: Schema,
    method: Method,
    request: DesignRequest,
) -> Design:
    """Return the design of a method with forms."""
    by_level = request.attribute_epsilon is not None or any(a.epsilon for a in schema.attributes)
    if by_level or not request.is_empty:
        raise InputError(
            f"method {method.name} takes no level or strength per attribute: "
            f"{method.instead_of_levels}"
        )
    if request.epsilon is None:
        raise InputError(f"method {method.name} needs a total for the record; give epsilon")
    make = FUNCTIONS[method.name].forms
    assert make is not None
    return make(schema, method.name, check_level(request.epsilon, "epsilon"), request)


def _by_strength(
    schema: Schema,
    method: Method,
    request: DesignRequest,
) -> Design:
    """Return the design of a method that takes strengths."""
    if request.attribute_epsilon is not None or any(a.epsilon for a in schema.attributes):
        raise InputError(
            f"method {method.name} takes no level per attribute; {method.instead_of_levels}"
        )
    if request.given_rest is not None:
        raise InputError(
            f"a cap on epsilon_given_rest needs method {methods_taking('caps')}, not {method.name}"
        )
    make = FUNCTIONS[method.name].blocks
    assert make is not None
    result = make(schema, request, request.epsilon)
    mechanism = Mechanism(schema, result.blocks)
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        method.name,
        (None,) * len(schema.attributes),
        lower_bound(mechanism, None),
        request.epsilon,
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


def _requested_levels(schema: Schema, attribute_epsilon: Levels) -> tuple[float, ...]:
    if isinstance(attribute_epsilon, Mapping):
        attribute_epsilon = _in_order(attribute_epsilon, schema)
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
