"""Everything that is stated of a design, computed once: what records, screens and reports show.

What a design buys is how many more rows independent randomization would need for the same errors.
The Kronecker product is given the same ε for the record and the same ratios between the attributes'
levels. The variance of an unbiased share goes with 1/φ², so the ratio of squared attenuations is
the factor by which the product law would need more rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any

from deniable.design.methods import METHODS
from deniable.design.plan import Design
from deniable.errors import InputError
from deniable.laws.response import attenuation
from deniable.mechanism.best_guess import BestGuess, best_guess
from deniable.mechanism.prediction import predict_covariance
from deniable.mechanism.strength import Strength, mechanism_strength

CURVE = ("1.25x", "1.5x", "2x", "3x", "none")
"""Caps on ``epsilon_given_rest`` for which the cost is shown."""

CURVE_UP_TO = 60
"""Attributes up to which the curve is computed: five designs, a second or two each."""

PAIRS_UP_TO = 50
"""Up to this many protected attributes every pair is looked at."""


@dataclass(frozen=True)
class Saving:
    """Rows that the Kronecker product would need for every row of this design, medians.

    Args:
        marginals: for shares of single attributes.
        pairs: for tables of two attributes; None beyond 50 attributes, or if there is one only.
    """

    marginals: float
    pairs: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"marginals": self.marginals, "pairs": self.pairs}


@dataclass(frozen=True)
class CapCost:
    """The record's ε under one cap on ``epsilon_given_rest``.

    Args:
        cap: as it would be asked for.
        epsilon: of the record, in nats, at the same levels.
    """

    cap: str
    epsilon: float

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"cap": self.cap, "epsilon": self.epsilon}


@dataclass(frozen=True)
class Account:
    """What is stated of a design; see :func:`account`.

    Args:
        design: the mechanism, its levels and how near the optimum it is.
        strength: entropies in bits, and λ.
        best_guesses: per attribute, shape (k,); None where there is no prior.
        curve: what other caps would cost, if that was asked for and the method keeps a cap.
    """

    design: Design
    strength: Strength
    best_guesses: tuple[BestGuess | None, ...]
    curve: tuple[CapCost, ...] | None = None

    @cached_property
    def pairs(self) -> tuple[tuple[tuple[str, str], float], ...] | None:
        """φ of every pair of attributes that have one each; None beyond 50 attributes.

        With the single attenuations these are what is needed to invert any table of two attributes
        without this software.
        """
        schema = self.design.mechanism.schema
        if len(schema.protected) > PAIRS_UP_TO:
            return None
        singles = zip(schema.names, self.strength.attenuation, strict=True)
        invertible = [name for name, phi in singles if phi is not None and name not in schema.keep]
        found = []
        for pair in combinations(invertible, 2):
            phi = predict_covariance(self.design.mechanism, *pair).share
            assert phi is not None  # both have a λ
            found.append((pair, phi))
        return tuple(found)

    @cached_property
    def saving(self) -> Saving | None:
        """What the design saves against the Kronecker product of the same ε.

        None where the comparison means nothing: an unbounded ε, or a response matrix.
        """
        mechanism = self.design.mechanism
        schema, singles = mechanism.schema, self.strength.attenuation
        protected = [i for i in schema.protected if singles[i] is not None]
        if len(protected) < len(schema.protected) or not math.isfinite(mechanism.epsilon):
            return None
        levels = mechanism.attribute_epsilon
        scale = mechanism.epsilon / math.fsum(levels[i] for i in protected)
        independent = {
            schema.names[i]: attenuation(schema.n_categories[i], scale * levels[i])
            for i in protected
        }
        marginals = [
            (float(singles[i] or 0.0) / independent[schema.names[i]]) ** 2 for i in protected
        ]
        pairs = [
            (phi / math.prod(independent[name] for name in pair)) ** 2
            for pair, phi in self.pairs or ()
        ]
        return Saving(median(marginals), median(pairs) if pairs else None)

    def comparison_to_plain(self) -> dict[str, Any] | None:
        """Return what the design buys and what its cap costs, as plain values; None for laws that
        randomize the attributes independently or promise nothing, and for one attribute alone."""
        design = self.design
        several = len(design.mechanism.schema.protected) > 1
        if not METHODS[design.method].together or not several:
            return None
        return {
            "saving": None if self.saving is None else self.saving.to_plain(),
            "curve": None if self.curve is None else [point.to_plain() for point in self.curve],
            "chosen_cap": design.given_rest if self.curve else None,
        }

    def pairs_to_plain(self) -> list[dict[str, Any]] | None:
        """Return φ of the pairs as plain values."""
        if self.pairs is None:
            return None
        return [{"attributes": list(pair), "attenuation": phi} for pair, phi in self.pairs]


def account(design: Design, *, curve: bool = False) -> Account:
    """Return everything that is stated of a design.

    Args:
        design: of any method.
        curve: whether to find out what other caps would cost, too: up to four more designs.

    >>> from deniable import Schema, design
    >>> plan = design(Schema.anonymous((2, 3, 4)), epsilon=3)
    >>> made = account(plan, curve=True)
    >>> [point.cap for point in made.curve], round(made.saving.marginals, 1) > 1
    (['1.25x', '1.5x', '2x', '3x', 'none'], True)
    """
    mechanism = design.mechanism
    return Account(
        design,
        mechanism_strength(mechanism),
        tuple(best_guess(mechanism, i) for i in range(len(mechanism.schema.attributes))),
        cap_curve(design) if curve else None,
    )


def cap_curve(result: Design, caps: Sequence[str] = CURVE) -> tuple[CapCost, ...] | None:
    """Return the record's ε at this design's levels under several caps on ``epsilon_given_rest``.

    Returns:
        One entry per cap that can be met; None if the method keeps no cap unless told to, or there
        are more than 60 attributes.
    """
    from deniable.design.design import design

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
