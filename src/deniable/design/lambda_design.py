"""Designs that are asked for by strength instead of by ε: methods ``lambda`` and ``joint``.

Source: Ruiz, "λ-randomization", sections 3 and 5. ``lambda`` gives every attribute a matrix
λI + (1 − λ)P* of its own, or any other bistochastic matrix; ``joint`` gives one such matrix to the
product of all categories, which is the plain alternative to every law of several attributes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.design.lambda_protocol import choose
from deniable.errors import InputError
from deniable.laws import Identity, JointLaw, MatrixChannel
from deniable.laws.bistochastic import bistochastic_channel
from deniable.laws.patterns import n_records
from deniable.laws.response import Response, check_attenuation
from deniable.mechanism.mechanism import Block
from deniable.schema import Schema

Wish = float | Mapping[str, float] | None
"""One number for every attribute that has no wish of its own, or numbers by name."""


@dataclass(frozen=True)
class StrengthWishes:
    """How strongly to randomize, in terms other than ε.

    Args:
        attenuation: λ, between 0 and 1.
        strength: the least H(P)/log₂ a (Ruiz, Definition 1), between 0 and 1.
        preserve: the least share of a covariance that is to survive, λ_a λ_b (equation (9)), by
            pair of attributes.
        matrices: bistochastic matrices by attribute, ``matrix[y, x]`` = Pr[output y | input x].

    Example:
        >>> bool(StrengthWishes()), StrengthWishes(attenuation=0.5).attenuation
        (False, 0.5)
    """

    attenuation: Wish = None
    strength: Wish = None
    preserve: Mapping[tuple[str, str], float] = field(default_factory=dict)
    matrices: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether anything is wished for."""
        given = self.attenuation is not None or self.strength is not None
        return given or bool(self.preserve or self.matrices)


@dataclass(frozen=True)
class Randomization:
    """What the wishes come to.

    Args:
        blocks: for all attributes of the schema.
        notes: sentences about how the λ were found.
    """

    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()


def lambda_blocks(schema: Schema, wishes: StrengthWishes) -> Randomization:
    """Return independent responses, one per protected attribute.

    Raises:
        InputError: if an attribute has no wish or two, or a wish is out of range or out of reach.
    """
    attenuation, strength = _spread(schema, wishes)
    blocks = []
    for name, matrix in wishes.matrices.items():
        blocks.append(Block((schema.position(name),), _channel(schema, name, matrix)))
    taken = set(wishes.matrices)
    for pair in wishes.preserve:
        for name in pair:
            if name in taken:
                raise InputError(
                    f"'{name}' is randomized by a matrix of its own, so there is no λ of it to "
                    "choose; leave it out of the covariances to preserve"
                )
    positions = tuple(i for i in schema.protected if schema.names[i] not in taken)
    notes: list[str] = []
    if positions or attenuation or strength or wishes.preserve:
        rest = schema
        if taken and positions:
            attributes = [a for a in schema.attributes if a.name not in taken]
            rest = Schema(tuple(attributes), schema.title, schema.keep)
        choice = choose(rest, attenuation=attenuation, strength=strength, preserve=wishes.preserve)
        blocks.append(Block(positions, choice.law))
        if choice.epsilon_lower_bound is not None:
            free = [n for pair in wishes.preserve for n in pair]
            chosen = [n for n in dict.fromkeys(free) if n not in attenuation and n not in strength]
            notes.append(_preserving_note(chosen, choice.epsilon_lower_bound))
    return Randomization((*blocks, *_kept(schema)), tuple(notes))


def _preserving_note(chosen: Sequence[str], bound: float) -> str:
    return (
        f"The λ of {', '.join(chosen) or 'no attribute'} minimise the ε of independent responses "
        "under the covariances to be preserved (a convex program, solved by an interior-point "
        f"method); no other λ that preserve them have it below {math.floor(bound * 1e6) / 1e6:.6f}"
    )


def _channel(schema: Schema, name: str, matrix: NDArray[np.float64]) -> MatrixChannel:
    n = schema.n_categories[schema.position(name)]
    if name in schema.keep:
        raise InputError(f"'{name}' is released as it is, so it has no matrix; leave it out")
    try:
        law = bistochastic_channel(matrix)
    except InputError as error:
        raise InputError(f"attribute '{name}': {error}") from None
    if law.n_categories != (n,):
        raise InputError(
            f"attribute '{name}' has {n} categories, and its matrix has {law.n_categories[0]} rows"
        )
    return law


def _kept(schema: Schema) -> list[Block]:
    return [
        Block((i,), Identity((a.n_categories,)))
        for i, a in enumerate(schema.attributes)
        if i not in schema.protected
    ]


def _spread(schema: Schema, wishes: StrengthWishes) -> tuple[dict[str, float], dict[str, float]]:
    """Return λ and strengths by name: a common value goes to all without a wish of their own."""
    common = [w for w in (wishes.attenuation, wishes.strength) if isinstance(w, int | float)]
    if len(common) == 2:
        raise InputError(
            "one λ and one strength for all attributes were both given, and one decides the other; "
            "give one of them, or values by name"
        )
    named: list[dict[str, float]] = [
        dict(wish) if isinstance(wish, Mapping) else {}
        for wish in (wishes.attenuation, wishes.strength)
    ]
    own = {*named[0], *named[1], *wishes.matrices}
    own.update(name for pair in wishes.preserve for name in pair)
    for name in sorted(own & set(wishes.matrices) & {*named[0], *named[1]}):
        raise InputError(f"attribute '{name}' has both a matrix and a λ or strength; give one")
    rest = [schema.names[i] for i in schema.protected if schema.names[i] not in own]
    if common and not rest:
        raise InputError(
            f"{common[0]:g} was given for all attributes without a wish of their own, and there is "
            "none; leave it out"
        )
    for wish, by_name in zip((wishes.attenuation, wishes.strength), named, strict=True):
        if isinstance(wish, int | float):
            by_name.update(dict.fromkeys(rest, float(wish)))
    return named[0], named[1]


def joint_blocks(
    schema: Schema, wishes: StrengthWishes, epsilon: float | None = None
) -> Randomization:
    """Return one response on the product of all categories of the protected attributes.

    It has one parameter: ε of the record, λ, or the strength of the record.

    Raises:
        InputError: if not exactly one of them is given, or it is out of range or out of reach.
    """
    if wishes.preserve or wishes.matrices:
        raise InputError(
            "method joint multiplies every covariance by its one λ, and adds to it, and has no "
            "matrix per attribute; give one λ, one strength or epsilon, or use method lambda"
        )
    given = [w for w in (wishes.attenuation, wishes.strength, epsilon) if w is not None]
    if len(given) != 1 or isinstance(given[0], Mapping):
        raise InputError(
            "method joint has one parameter for the whole record: give one of epsilon, λ and "
            "strength, as one number"
        )
    sizes = tuple(schema.n_categories[i] for i in schema.protected)
    if epsilon is not None:
        law = JointLaw.from_epsilon(sizes, epsilon)
    elif isinstance(wishes.attenuation, int | float):
        law = JointLaw.from_attenuation(sizes, check_attenuation(wishes.attenuation))
    else:
        assert isinstance(wishes.strength, int | float)
        law = _strong_joint_law(sizes, wishes.strength)
    return Randomization((Block(schema.protected, law), *_kept(schema)))


def _strong_joint_law(sizes: Sequence[int], strength: float) -> JointLaw:
    level = Response.from_strength(n_records(sizes), strength).epsilon
    most = sum(math.log2(n) for n in sizes)
    step = 2.0**-50
    while True:
        law = JointLaw.from_epsilon(sizes, level)
        if law.record_entropy() / most >= strength:
            return law
        # As in strong_law: two ways to compute a strength may differ in the last place.
        level *= 1 - step
        step = min(2 * step, 0.5)
