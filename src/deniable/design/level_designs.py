"""From levels to a design: law, mechanism and lower bound."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deniable.design.methods import FUNCTIONS
from deniable.design.number_matrices import number_response
from deniable.design.solving import Solution, Task, part_of
from deniable.errors import InputError
from deniable.laws.votes.vote_law import MAX_ALL_PAIRS
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.privacy import nats_text
from deniable.numerals import number_text
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.bound import lower_bound
from deniable.statement.caps import cap_text, refuse_missed_caps, resolve_caps, unchanged_blocks
from deniable.statement.methods import Method


@dataclass(frozen=True)
class LevelDesigns:
    """The designs of a method at any levels."""

    schema: Schema
    method: Method
    task: Task

    def at(self, levels: Sequence[float]) -> Design:
        """Return the method's design at these levels of the protected attributes, unchecked."""
        return self.with_levels(self.solve(levels), levels)

    def solve(self, levels: Sequence[float]) -> Solution:
        """Return the method's solution for these levels, shape (k,), in nats."""
        for i, level in zip(self.schema.protected, levels, strict=True):
            if level > self.method.largest_level:
                raise InputError(
                    f"attribute '{self.schema.names[i]}': method {self.method.name} takes levels "
                    f"up to {self.method.largest_level:g} nats, not {level:g}, which protects "
                    "no value; use a smaller level"
                )
        solve = FUNCTIONS[self.method.name].solve
        assert solve is not None
        if self.method.together:
            return solve(self.task, levels)
        # Each attribute has a law of its own; for a number it is the matrix of least error.
        protected = [self.schema.attributes[i] for i in self.schema.protected]
        made = map(number_response, protected, levels)
        numbers = {place: one for place, one in enumerate(made) if one is not None}
        rest = [place for place in range(len(levels)) if place not in numbers]
        if not rest:
            return Solution((), numbers=numbers)
        solution = solve(part_of(self.task, rest), [levels[place] for place in rest])
        parts = tuple((tuple(rest[i] for i in places), law) for places, law in solution.parts)
        return replace(solution, parts=parts, numbers=numbers)

    def with_levels(self, solution: Solution, levels: Sequence[float]) -> Design:
        """Return the design of a solution for these levels."""
        protected = self.schema.protected
        design = self.of(solution)
        refuse_missed_caps(design.mechanism, resolve_caps(self.task.given_rest, levels))
        requested = dict(zip(protected, levels, strict=True))
        return replace(
            design,
            requested_epsilon=tuple(requested.get(i) for i in range(len(self.schema.attributes))),
        )

    def of_total(self, solution: Solution) -> Design:
        """Return the design around the law that spends a total, with no levels requested."""
        design = self.of(solution)
        levels = [design.mechanism.attribute_epsilon[i] for i in self.schema.protected]
        caps = resolve_caps(self.task.given_rest, levels)
        refuse_missed_caps(design.mechanism, caps)
        if solution.prove is None:
            return design
        proof = solution.prove(design.epsilon, caps or (None,) * len(levels))
        return replace(design, accuracy=proof)

    def of(self, solution: Solution) -> Design:
        """Return the design of a solution's laws, with no levels requested."""
        protected, attributes = self.schema.protected, list(self.schema.attributes)
        blocks = [
            Block(tuple(protected[place] for place in places), law)
            for places, law in solution.parts
        ]
        for place, (attribute, matrix) in solution.numbers.items():
            attributes[protected[place]] = attribute
            blocks.append(Block((protected[place],), matrix))
        schema = replace(self.schema, attributes=tuple(attributes))
        mechanism = Mechanism(schema, (*blocks, *unchanged_blocks(self.schema)))
        bound = lower_bound(mechanism, solution.weights)
        floor, all_pairs = self.task.pair_floor, len(protected) <= MAX_ALL_PAIRS
        unchecked = []
        if floor is not None and not all(law.keeps_pair_floor(floor) for _, law in solution.parts):
            raise InputError(
                f"the floor {floor:g} on pairs was missed by a rounding error of the solver; use "
                "a slightly larger one"
            )
        if floor is not None and not all_pairs:
            unchecked = [
                f"Of {len(protected)} attributes not all pairs are checked: those of extreme and "
                f"middle weights keep the floor {floor:g}, which the record does not state."
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
        )

    def _notes(self, solution: Solution, epsilon: float, bound: float | None) -> tuple[str, ...]:
        """Return a note on the attributes that answer independently although they need not."""
        together = solution.apart is None and len(solution.parts) == 1
        if together or not self.method.together or len(self.task.n_categories) == 1:
            return ()
        places, reason = solution.apart or ((), "no single law was found for their levels")
        if not places:
            blocks = len(solution.parts)
            subject = f"The attributes answer in {blocks} blocks, independently of each other"
        elif len(places) == len(self.task.n_categories):
            subject = "All attributes answer independently of each other"
        else:
            names = [self.schema.names[self.schema.protected[place]] for place in places]
            listed = ", ".join(f"'{name}'" for name in names[:5]) + (", …" if names[5:] else "")
            verb = "answers" if len(names) == 1 else "answer"
            subject = f"{listed} {verb} independently of the rest"
        cost = ""
        if bound is not None:
            above = nats_text(number_text(epsilon - bound, 3))
            cost = f"; ε is {above} above the proven minimum of any law"
        return (f"{subject}: {reason}{cost}.",)
