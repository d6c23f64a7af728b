"""From levels to a design: law, mechanism and lower bound."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deniable.design.account import Design
from deniable.design.method_spec import MethodSpec
from deniable.design.solving import (
    Solution,
    Task,
    cap_text,
    kept_blocks,
    refuse_missed_caps,
    resolve_caps,
)
from deniable.errors import InputError
from deniable.laws import PatternLaw
from deniable.laws.votes.vote_law import MAX_ALL_PAIRS
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.privacy import nats_text
from deniable.numerals import number_text
from deniable.schema import Schema
from deniable.solvers.problem import MAX_LEVEL


@dataclass(frozen=True)
class LevelDesigns:
    """The designs of a method at any levels."""

    schema: Schema
    method: MethodSpec
    task: Task

    def at(self, levels: Sequence[float]) -> Design:
        """Return the method's design at these levels of the protected attributes, unchecked."""
        return self.with_levels(self.solve(levels), levels)

    def solve(self, levels: Sequence[float]) -> Solution:
        """Return what the method answers for these levels, shape (k,), in nats."""
        for i, level in zip(self.schema.protected, levels, strict=True):
            if level > self.method.largest_level:
                raise InputError(
                    f"attribute '{self.schema.names[i]}': method {self.method.name} takes levels "
                    f"up to {self.method.largest_level:g} nats, not {level:g}, which protects "
                    "nothing; ask for less"
                )
        assert self.method.solve is not None
        return self.method.solve(self.task, levels)

    def with_levels(self, solution: Solution, levels: Sequence[float]) -> Design:
        """Return the design around the laws that solve these levels."""
        protected = self.schema.protected
        design = self.of(solution)
        refuse_missed_caps(design.mechanism, resolve_caps(self.task.given_rest, levels))
        requested = dict(zip(protected, levels, strict=True))
        return replace(
            design,
            requested_epsilon=tuple(requested.get(i) for i in range(len(self.schema.attributes))),
        )

    def of(self, solution: Solution) -> Design:
        """Return the design around a solution's laws, with no levels requested."""
        protected = self.schema.protected
        blocks = [
            Block(tuple(protected[place] for place in places), law)
            for places, law in solution.parts
        ]
        mechanism = Mechanism(self.schema, (*blocks, *kept_blocks(self.schema)))
        bound = lower_bound(mechanism, solution.weights)
        floor, all_pairs = self.task.pair_floor, len(protected) <= MAX_ALL_PAIRS
        unchecked = []
        if floor is not None and not all(law.keeps_pair_floor(floor) for _, law in solution.parts):
            raise InputError(
                f"the floor {floor:g} on pairs was missed by a rounding error of the solver; ask "
                "for a slightly larger one"
            )
        if floor is not None and not all_pairs:
            unchecked = [
                f"Of {len(protected)} attributes not all pairs are looked at: those of extreme and "
                f"middle weights keep the floor {floor:g}, which is not recorded as kept."
            ]
        return Design(
            mechanism,
            self.method.name,
            (None,) * len(self.schema.attributes),
            bound,
            weights=None if solution.weights is None else tuple(map(float, solution.weights)),
            optimal_epsilon=solution.optimal_epsilon,
            given_rest=cap_text(self.task.given_rest),
            pair_floor=self.task.pair_floor if all_pairs else None,
            notes=(*self._notes(solution, mechanism.epsilon, bound), *unchecked),
            together=self.method.together,
            end=solution.end,
        )

    def _notes(self, solution: Solution, epsilon: float, bound: float | None) -> tuple[str, ...]:
        """Name what answers independently although it need not."""
        together = solution.apart is None and len(solution.parts) == 1
        if together or len(self.task.n_categories) == 1:
            return ()
        places, reason = solution.apart or ((), "no single law was found for their levels")
        if not places:
            blocks = len(solution.parts)
            who = f"The attributes answer in {blocks} blocks, independently of each other"
        elif len(places) == len(self.task.n_categories):
            who = "All attributes answer independently of each other"
        else:
            names = [self.schema.names[self.schema.protected[place]] for place in places]
            listed = ", ".join(f"'{name}'" for name in names[:5]) + (", …" if names[5:] else "")
            who = f"{listed} {'answers' if len(names) == 1 else 'answer'} independently of the rest"
        cost = ""
        if bound is not None:
            above = nats_text(number_text(epsilon - bound, 3))
            cost = f"; ε is {above} above what is proved of any law"
        return (f"{who}: {reason}{cost}.",)


_SMALLEST = 1e-5
"""Part of ε by which a law may lie above the smallest: the linear program accepts 10⁻⁶ (`MAX_GAP`),
and rounding to integers comes on top (10⁻¹⁰ in all was the most seen)."""


def lacks_proof(design: Design, method: MethodSpec) -> bool:
    """Whether the method gives the smallest ε for its levels and the design has no proof of it."""
    free = design.given_rest is None and design.pair_floor is None
    gap = design.gap if design.weights is not None else design.epsilon
    return method.smallest and free and gap is not None and gap > _SMALLEST * design.epsilon


def lower_bound(mechanism: Mechanism, weights: Sequence[float] | None) -> float | None:
    """Return a bound that no pattern law with this mechanism's levels is below, in nats.

    It is computed at the levels that the law surely delivers: a bound at the requested ones could
    end a hair above the law's own ε.

    ``weights``: λ per protected attribute, shape (k,), or None for what needs no search.
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
