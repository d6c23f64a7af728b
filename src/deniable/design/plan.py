"""A design, and the plan that turns levels into one: law, mechanism, accounts, lower bound."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deniable.design.methods import Found, MethodSpec, Task, cap_text, resolve_caps
from deniable.errors import InputError
from deniable.laws import Identity, PatternLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema
from deniable.solvers.problem import MAX_LEVEL

if TYPE_CHECKING:
    from deniable.design.account import Account

EXACT_WITHIN = 1e-9
"""A level is "kept exactly" if it is not above the request and at most this far below, in nats."""


@dataclass(frozen=True)
class Design:
    """A mechanism and what is known about it.

    Args:
        mechanism: carries the accounted levels as its claim.
        method: how the law was found: a name in :data:`deniable.design.methods.METHODS`.
        requested_epsilon: the level asked for per attribute in nats, shape (k,); None where none
            was: for an attribute released as it is, and where strengths were asked for.
        epsilon_lower_bound: no pattern law at these attributes' levels has a smaller ε for the
            record, in nats; None if no bound is known.
        budget: the total that was asked for, in nats, or None if levels were.
        weights: the proof of the lower bound, λ per protected attribute, shape (k,), if it has one
            beyond relative entropy; see :mod:`deniable.solvers.patterns.certificate`.
        optimal_epsilon: the smallest ε of the record at the same levels, where the method keeps
            a cap and a floor too: the difference is what these cost.
        given_rest: the cap on ``epsilon_given_rest`` that was kept, as asked for; None for none.
        pair_floor: the least φ_ij/(φ_i φ_j) that was kept; None for none.
        notes: sentences about how the law was found; not part of the record.

    Example:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((2, 3))
        >>> plan = deniable.design(schema, attribute_epsilon=[1, 2], method="closed-form")
        >>> plan.method, plan.epsilon < 3, plan.gap < 1e-6, plan.changed
        ('closed-form', True, True, ())
    """

    mechanism: Mechanism
    method: str
    requested_epsilon: tuple[float | None, ...]
    epsilon_lower_bound: float | None
    budget: float | None = None
    weights: tuple[float, ...] | None = None
    optimal_epsilon: float | None = None
    given_rest: str | None = None
    pair_floor: float | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def account(self) -> "Account":
        """Everything that is stated of the design, computed once."""
        from deniable.design.account import account

        return account(self)

    @property
    def epsilon(self) -> float:
        """ε of the whole record in nats, rounded up."""
        return self.mechanism.epsilon

    @property
    def gap(self) -> float | None:
        """How far ε of the record can be above the smallest possible at most, in nats."""
        if self.epsilon_lower_bound is None:
            return None
        return self.epsilon - self.epsilon_lower_bound

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the attributes whose level is not the requested one."""
        return tuple(
            name
            for name, requested, got in zip(
                self.mechanism.schema.names,
                self.requested_epsilon,
                self.mechanism.attribute_epsilon,
                strict=True,
            )
            if requested is not None and not requested - EXACT_WITHIN <= got <= requested
        )


@dataclass(frozen=True)
class Plan:
    """Everything about a design but the levels.

    Args:
        schema: the attributes.
        method: how to find the law; one that takes levels.
        task: what the method is told beside the levels.
    """

    schema: Schema
    method: MethodSpec
    task: Task

    def at(self, levels: Sequence[float]) -> Design:
        """Return the method's design at these levels of the protected attributes, unchecked.

        Raises:
            InputError: if a level is beyond what the method can do, or a cap cannot be kept.
        """
        return self.with_levels(self.found(levels), levels)

    def found(self, levels: Sequence[float]) -> Found:
        """Return what the method finds at these levels, shape (k,), in nats.

        Raises:
            InputError: if a level is beyond what the method can do.
        """
        for i, level in zip(self.schema.protected, levels, strict=True):
            if level > self.method.largest_level:
                raise InputError(
                    f"attribute '{self.schema.names[i]}': method {self.method.name} takes levels "
                    f"up to {self.method.largest_level:g} nats, not {level:g}, which protects "
                    "nothing; ask for less"
                )
        assert self.method.solve is not None
        return self.method.solve(self.task, levels)

    def with_levels(self, found: Found, levels: Sequence[float]) -> Design:
        """Return the design around laws that were found for these levels.

        Raises:
            InputError: if a cap is not kept.
        """
        protected = self.schema.protected
        design = self.of(found)
        caps = resolve_caps(self.task.given_rest, levels) or [None] * len(protected)
        for i, cap in zip(protected, caps, strict=True):
            if cap is not None and design.mechanism.epsilon_given_rest[i] > cap:
                raise InputError(
                    f"attribute '{self.schema.names[i]}': the cap {cap:g} on epsilon_given_rest "
                    "was missed by a rounding error of the solver; ask for a slightly smaller one"
                )
        requested = dict(zip(protected, levels, strict=True))
        return replace(
            design,
            requested_epsilon=tuple(requested.get(i) for i in range(len(self.schema.attributes))),
        )

    def of(self, found: Found) -> Design:
        """Return the design around laws that were found, with no levels requested."""
        protected = self.schema.protected
        blocks = [
            Block(tuple(protected[place] for place in places), law) for places, law in found.parts
        ]
        blocks += [
            Block((i,), Identity((a.n_categories,)))
            for i, a in enumerate(self.schema.attributes)
            if i not in protected
        ]
        mechanism = Mechanism(self.schema, tuple(blocks))
        return Design(
            mechanism,
            self.method.name,
            (None,) * len(self.schema.attributes),
            lower_bound(mechanism, found.weights),
            weights=None if found.weights is None else tuple(map(float, found.weights)),
            optimal_epsilon=found.optimal_epsilon,
            given_rest=cap_text(self.task.given_rest),
            pair_floor=self.task.pair_floor,
        )


def lower_bound(mechanism: Mechanism, weights: Sequence[float] | None) -> float | None:
    """Return a bound that no pattern law with this mechanism's levels is below, in nats.

    It is computed at the levels that the law surely delivers: a bound at the requested ones could
    end a hair above the law's own ε.

    Args:
        mechanism: its levels are asked.
        weights: λ per protected attribute, shape (k,), or None for what needs no search.

    Returns:
        None if a level is beyond the range of the proofs, or a response matrix is among the laws,
        to which they do not apply.
    """
    if not all(isinstance(block.law, PatternLaw) for block in mechanism.blocks):
        return None
    from deniable.solvers.patterns import certificate

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
