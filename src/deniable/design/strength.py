"""From λ, strengths and covariances to laws: methods ``lambda`` and ``joint``.

Source: Ruiz, "λ-randomization", sections 3 and 5. ``lambda`` gives every attribute its own matrix
λI + (1 − λ)P*, or any other bistochastic matrix; ``joint`` gives one such matrix to the
product of all categories, the plain alternative to every law of several attributes.

Under ``lambda`` each attribute gets its λ in one of three ways: given directly; as the least
randomization of a given strength; or as part of the strongest law that preserves given parts of
covariances (:mod:`deniable.solvers.patterns.preserve`). The law is in integers, rounded to the safe
side: for a λ or a strength, which promise protection, the keep probability is rounded down; for a
covariance, which promises utility, up.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from deniable._checks import check_level
from deniable.design.request import StrengthRequest
from deniable.errors import InputError
from deniable.laws import ProductLaw, ScoreTable, joint_of_attenuation, joint_of_epsilon
from deniable.laws.entropy import response_entropy
from deniable.laws.patterns import n_records
from deniable.laws.response import Response, check_attenuation
from deniable.mechanism.mechanism import Block
from deniable.schema import Schema
from deniable.solvers.patterns import preserve as solver
from deniable.statement.caps import unchanged_blocks

_GUARD_BITS = 64

Rounding = Literal["down", "up"]


@dataclass(frozen=True)
class Randomization:
    """The laws for the requested strengths."""

    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()


def lambda_blocks(
    schema: Schema, request: StrengthRequest, epsilon: float | None = None
) -> Randomization:
    """Return independent responses, one per protected attribute."""
    if epsilon is not None:
        raise InputError(
            "method lambda takes no total; give λ, strengths or covariances to preserve, or use "
            "method kronecker, which is the same law requested by ε"
        )
    if request.is_empty:
        raise InputError(
            "method lambda needs the strength of the randomization; give λ, strengths or "
            "covariances to preserve"
        )
    attenuation, strength = _spread(schema, request)
    _check_names(schema, attenuation, strength, request)
    notes: list[str] = []
    sizes = {schema.names[i]: schema.n_categories[i] for i in schema.protected}
    law, bound = choose(sizes, attenuation, strength, request.preserve)
    if bound is not None:
        free = [n for pair in request.preserve for n in pair]
        chosen = [n for n in dict.fromkeys(free) if n not in attenuation and n not in strength]
        notes.append(_preserving_note(chosen, bound))
    blocks = (Block(schema.protected, law), *unchanged_blocks(schema))
    return Randomization(blocks, tuple(notes))


def _preserving_note(chosen: Sequence[str], bound: float) -> str:
    return (
        f"The λ of {', '.join(chosen) or 'no attribute'} minimise the ε of independent responses "
        "under the covariances to be preserved (a convex program, solved by an interior-point "
        f"method); no other λ that preserve them have it below {math.floor(bound * 1e6) / 1e6:.6f}"
    )


def _spread(schema: Schema, request: StrengthRequest) -> tuple[dict[str, float], dict[str, float]]:
    """Return λ and strengths by name; a common value is for all without their own."""
    common = [w for w in (request.attenuation, request.strength) if isinstance(w, int | float)]
    if len(common) == 2:
        raise InputError(
            "one λ and one strength were both given for all attributes, and one determines the "
            "other; give one of them, or values by name"
        )
    named: list[dict[str, float]] = [
        dict(values) if isinstance(values, Mapping) else {}
        for values in (request.attenuation, request.strength)
    ]
    own = {*named[0], *named[1]}
    own.update(name for pair in request.preserve for name in pair)
    rest = [schema.names[i] for i in schema.protected if schema.names[i] not in own]
    if common and not rest:
        raise InputError(
            f"{common[0]:g} was given for all attributes without their own value, and "
            "every attribute has one; leave it out"
        )
    for value, by_name in zip((request.attenuation, request.strength), named, strict=True):
        if isinstance(value, int | float):
            by_name.update(dict.fromkeys(rest, float(value)))
    return named[0], named[1]


def joint_blocks(
    schema: Schema, request: StrengthRequest, epsilon: float | None = None
) -> Randomization:
    """Return one response on the product of all categories of the protected attributes.

    It has one parameter: ε of the record, λ, or the strength of the record.
    """
    if request.preserve:
        raise InputError(
            "method joint multiplies every covariance by its one λ, and adds to it; give one λ, "
            "one strength or epsilon, or use method lambda"
        )
    given = [w for w in (request.attenuation, request.strength, epsilon) if w is not None]
    if len(given) != 1 or isinstance(given[0], Mapping):
        raise InputError(
            "method joint has one parameter for the whole record: give one of epsilon, λ and "
            "strength, as one number"
        )
    sizes = tuple(schema.n_categories[i] for i in schema.protected)
    if epsilon is not None:
        law = joint_of_epsilon(sizes, check_level(epsilon, "epsilon"))
    elif isinstance(request.attenuation, int | float):
        law = joint_of_attenuation(sizes, check_attenuation(request.attenuation))
    else:
        assert isinstance(request.strength, int | float)
        law = _strong_joint_law(sizes, request.strength)
    return Randomization((Block(schema.protected, law), *unchanged_blocks(schema)))


def _strong_joint_law(sizes: Sequence[int], strength: float) -> ScoreTable:
    level = Response.from_strength(n_records(sizes), strength).epsilon
    most = sum(math.log2(n) for n in sizes)
    step = 2.0**-50
    while True:
        law = joint_of_epsilon(sizes, level)
        if law.record_entropy() / most >= strength:
            return law
        # As in strong_law below: two computations of a strength may differ in the last place.
        level *= 1 - step
        step = min(2 * step, 0.5)


def choose(
    sizes: Mapping[str, int],
    attenuation: Mapping[str, float],
    strength: Mapping[str, float],
    preserve: Mapping[tuple[str, str], float],
) -> tuple[ProductLaw, float | None]:
    """Return the product law that meets one request per attribute.

    Also, for covariances to preserve, a lower bound in nats on the record's ε of all λ that meet
    the request.
    """
    paired = {name for pair in preserve for name in pair}
    laws: dict[str, ProductLaw] = {}
    for name, value in attenuation.items():
        value = check_attenuation(value, f"attribute '{name}': ")
        laws[name] = product_law([sizes[name]], [value], "up" if name in paired else "down")
    for name, value in strength.items():
        try:
            laws[name] = strong_law(sizes[name], value)
        except InputError as error:
            raise InputError(f"attribute '{name}': {error}") from None
    bound = None
    if preserve:
        # As requested where λ was given: the integers are on the safe side of it.
        fixed = {name: float(law.attenuations()[0]) for name, law in laws.items()}
        fixed.update(attenuation)
        solution = _solve(sizes, preserve, fixed)
        bound = solution.lower_bound
        for name, value in zip(sizes, solution.attenuation.tolist(), strict=True):
            if name not in laws:
                laws[name] = product_law([sizes[name]], [value], "up")
    return merged([laws[name] for name in sizes]), bound


def _check_names(
    schema: Schema,
    attenuation: Mapping[str, float],
    strength: Mapping[str, float],
    request: StrengthRequest,
) -> None:
    """Raise if an unprotected or repeated attribute is named, or a protected one is not."""
    preserve = request.preserve
    paired = [name for pair in preserve for name in pair]
    for name in (*attenuation, *strength, *paired):
        if name in schema.keep:
            raise InputError(f"'{name}' is released unchanged, so it has no λ; leave it out")
        schema.position(name)
    if both := sorted(set(attenuation) & set(strength)):
        raise InputError(f"attribute '{both[0]}' has both a λ and a strength; give one of them")
    named = {*attenuation, *strength, *paired}
    for i in schema.protected:
        if (name := schema.names[i]) not in named:
            raise InputError(
                f"'{name}' has no λ and no strength; give one of them"
                + (", or a covariance of it to preserve" if preserve else "")
            )


def _solve(
    sizes: Mapping[str, int],
    preserve: Mapping[tuple[str, str], float],
    fixed: Mapping[str, float],
) -> solver.PreservingSolution:
    """Return the λ of least ε that preserve the covariances; errors name the attributes, which the
    solver has by position only.
    """
    place = {name: i for i, name in enumerate(sizes)}
    fractions: dict[tuple[int, int], float] = {}
    for (first, second), fraction in preserve.items():
        if first == second:
            raise InputError(f"'{first}' is paired with itself; a covariance is of two attributes")
        pair = (min(place[first], place[second]), max(place[first], place[second]))
        if pair in fractions:
            raise InputError(f"the covariance of '{first}' and '{second}' is given twice")
        if not 0 < fraction < 1:
            raise InputError(
                f"the share to preserve of the covariance of '{first}' and '{second}' must lie "
                f"between 0 and 1, not {fraction:g}"
            )
        allowed = fixed.get(first, 1.0) * fixed.get(second, 1.0)
        if allowed < fraction or (allowed == fraction and not (first in fixed and second in fixed)):
            raise InputError(
                f"the given λ or strengths leave at most {allowed:.6g} of the covariance of "
                f"'{first}' and '{second}', not {fraction:g}; lower the fraction or "
                "randomize them less"
            )
        fractions[pair] = fraction
    return solver.solve(list(sizes.values()), fractions, {place[n]: v for n, v in fixed.items()})


def product_law(
    n_categories: Sequence[int], attenuation: Sequence[float], rounding: Rounding = "down"
) -> ProductLaw:
    """Return the product of the matrices λ_i I + (1 − λ_i)P*, shape (k,) (Ruiz, equation (6)).

    The floating-point λ_i are taken as exact; p_i = λ_i + (1 − λ_i)/a_i is rounded to a width at
    which λ_i and 1 − λ_i have all their digits.
    """
    laws = []
    for n, value in zip(n_categories, attenuation, strict=True):
        fraction = Fraction(check_attenuation(value))
        small = min(math.log2(value), math.log2(1 - value))
        bits = 64 * math.ceil((_GUARD_BITS + math.log2(n) - small) / 64)
        keep = (fraction + (1 - fraction) / n) * (1 << bits)
        weight = math.floor(keep) if rounding == "down" else math.ceil(keep)
        laws.append(ProductLaw((int(n),), bits, (weight,)))
    return merged(laws)


def strong_law(n_categories: int, strength: float) -> ProductLaw:
    """Return the least randomization of one attribute whose strength is not below this.

    The strength of the integers, as :mod:`deniable.mechanism.strength` computes it.
    """
    level = Response.from_strength(n_categories, strength).epsilon
    step = 2.0**-50
    while True:
        law = ProductLaw.from_levels([n_categories], [level])
        keep = law.keep_weights[0]
        entropy = response_entropy(n_categories, keep, (1 << law.bits) - keep)
        if entropy / math.log2(n_categories) >= strength:
            return law
        # The two computations of a strength may differ in the last place; next to 1, where the
        # strength hardly depends on the level, more than a last place is needed.
        level *= 1 - step
        step = min(2 * step, 0.5)


def merged(laws: Sequence[ProductLaw]) -> ProductLaw:
    """Return the law of independent product laws together."""
    bits = max(law.bits for law in laws)
    return ProductLaw(
        tuple(n for law in laws for n in law.n_categories),
        bits,
        tuple(weight << (bits - law.bits) for law in laws for weight in law.keep_weights),
    )
