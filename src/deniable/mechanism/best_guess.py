"""Probabilities of guessing an attribute under the design prior of its response matrix.

They apply where ε is unbounded, to one prior, and to the average person or the luckiest guess, not
to every pair of categories. Computed from the law's integers and rounded up.

The proofs are in docs/proofs/accounting.md, Theorem 10.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.laws import DesignedChannel
from deniable.laws.law import Guesses
from deniable.laws.rounding import rounded_up
from deniable.mechanism.mechanism import Mechanism

_NUMBERS = ("before", "success", "worst_posterior")


@dataclass(frozen=True)
class Guess:
    """Success of guesses by an observer who knows the design's prior."""

    before: float
    success: float
    worst_posterior: float

    @classmethod
    def of(cls, guesses: Guesses) -> "Guess":
        """Return a law's exact numbers, rounded up."""
        return Guess(*(rounded_up(Fraction(*ratio)) for ratio in guesses))

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {key: getattr(self, key) for key in _NUMBERS}


@dataclass(frozen=True)
class PartGuess:
    """Success of guesses of one part of a merged attribute.

    A combination is harder to guess than one of its parts, so the numbers of the whole are no bound
    here.
    """

    name: str
    alone: Guess
    given_rest: Guess


@dataclass(frozen=True)
class BestGuess(Guess):
    """Success of guesses of one attribute by an observer who knows the design's prior."""

    parts: tuple[PartGuess, ...] = ()
    prior_source: str | None = None
    prior_steps: int | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, readable by :meth:`from_plain`."""
        plain = super().to_plain()
        stated = {"prior_source": self.prior_source, "prior_steps": self.prior_steps}
        plain |= {key: value for key, value in stated.items() if value is not None}
        if self.parts:
            plain["parts"] = [
                {
                    "name": part.name,
                    **part.alone.to_plain(),
                    "given_rest": part.given_rest.to_plain(),
                }
                for part in self.parts
            ]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "BestGuess":
        """Return the object that :meth:`to_plain` wrote."""
        parts = [
            PartGuess(
                part["name"], Guess(*(part[key] for key in _NUMBERS)), Guess(**part["given_rest"])
            )
            for part in plain.get("parts", ())
        ]
        before, success, worst = (plain[key] for key in _NUMBERS)
        source, steps = plain.get("prior_source"), plain.get("prior_steps")
        return cls(before, success, worst, tuple(parts), source, steps)


def best_guess(mechanism: Mechanism, position: int) -> BestGuess | None:
    """Return the guessing probabilities of an attribute; None if its law has no design prior."""
    law = mechanism.block_of(position)[0].law
    if not isinstance(law, DesignedChannel):
        return None
    attribute = mechanism.schema.attributes[position]
    parts = []
    for part, stride in zip(attribute.parts, attribute.strides, strict=True):
        codes = range(attribute.n_categories)
        own = [code // stride % part.n_categories for code in codes]
        others = [code - stride * mine for code, mine in zip(codes, own, strict=True)]
        alone, given_rest = law.guesses(own), law.guesses(own, others)
        parts.append(PartGuess(part.name, Guess.of(alone), Guess.of(given_rest)))
    whole = Guess.of(law.guesses())
    numbers = whole.before, whole.success, whole.worst_posterior
    return BestGuess(*numbers, tuple(parts), law.prior_source, law.prior_steps)
