"""Lower bound on ε that a mechanism states, and the need for one."""

from collections.abc import Sequence

from deniable.laws import PatternLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.proofs import certificate
from deniable.proofs.problem import MAX_LEVEL
from deniable.statement.account import Design
from deniable.statement.methods import Method


def lower_bound(mechanism: Mechanism, weights: Sequence[float] | None) -> float | None:
    """Return a lower bound on ε of pattern laws with this mechanism's levels, in nats; None if some
    law is no pattern law.

    The levels are rounded down: a bound at the requested ones could exceed the law's own ε.

    ``weights``: λ per protected attribute, shape (k,), or None for bounds that need no search.
    """
    if not all(isinstance(block.law, PatternLaw) for block in mechanism.blocks):
        return None
    protected = mechanism.schema.protected
    n_categories = [mechanism.schema.n_categories[i] for i in protected]
    floors = mechanism.attribute_epsilon_floor
    levels = [floors[i] for i in protected]
    if max(levels) > MAX_LEVEL:
        return None
    bound = certificate.best_known_bound(n_categories, levels)
    if weights is not None:
        bound = max(bound, certificate.weighted_bound(n_categories, levels, weights))
    return bound


_SMALLEST = 1e-5
"""Part of ε by which a law may lie above the smallest: the linear program accepts 10⁻⁶ (`MAX_GAP`),
and rounding to integers comes on top (10⁻¹⁰ in all was the most seen)."""


def lacks_proof(design: Design, method: Method) -> bool:
    """Whether the method gives the smallest ε for its levels and the design has no proof of it."""
    free = design.given_rest is None and design.pair_floor is None
    gap = design.gap if design.weights is not None else design.epsilon
    return method.smallest and free and gap is not None and gap > _SMALLEST * design.epsilon
