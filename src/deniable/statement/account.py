"""Designs and their account, computed once, for records, screens and reports.

The saving of a design is the factor of rows that independent randomization (the Kronecker product)
needs for the same errors at the same ε of the record and the same ratios between the attributes'
levels. The variance of an unbiased share is proportional to 1/φ², so it is the ratio of squared
attenuations.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any

from deniable.laws.response import attenuation
from deniable.mechanism.best_guess import BestGuess, best_guess
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import predict_covariance
from deniable.mechanism.privacy import nats_text
from deniable.mechanism.strength import Strength, mechanism_strength
from deniable.notebook import html_table
from deniable.proofs.accuracy import Accuracy

PAIRS_UP_TO = 50
"""Up to this many protected attributes the account includes every pair."""

EXACT_WITHIN = 1e-9
"""A level equals the request if it is at most this far below it and not above, in nats."""


@dataclass(frozen=True)
class Design:
    """A mechanism, the request for it and its proof.

    Args:
        mechanism: carries the accounted levels as its claim.
        method: how the law was found: a name in ``METHODS`` of :mod:`deniable.statement.methods`.
        requested_epsilon: the requested level per attribute in nats, shape (k,); None for unchanged
            columns, where strengths were requested, and in a design read from its record, which
            does not contain the request.
        epsilon_lower_bound: no pattern law at these attributes' levels has a smaller ε for the
            record, in nats; None if no bound is known.
        budget: the requested total in nats, or None if levels were requested.
        weights: the proof of the lower bound, λ per protected attribute, shape (k,), if it has one
            beyond relative entropy; see :mod:`deniable.proofs.certificate`.
        optimal_epsilon: the smallest ε of the record at the same levels without cap and floor, if
            the method has these; not part of the record.
        given_rest: the cap on ``epsilon_given_rest``, as requested; None for none.
        pair_floor: the least φ_ij/(φ_i φ_j); None for none.
        accuracy: proven distance of the law for a total from the least error; None without one.
        notes: sentences about the search for the law; not part of the record.
        together: whether the method may randomize attributes together, so that its designs are
            compared with independent responses.
        released_rows: rows of the release, if the design was read from a release's record.

    Examples:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((2, 3))
        >>> plan = deniable.design(schema, attribute_epsilon=[1, 2], method="closed-form")
        >>> plan.method, plan.epsilon < 3, plan.gap < 1e-6, plan.changed
        ('closed-form', True, True, ())
    """

    mechanism: Mechanism
    method: str
    requested_epsilon: tuple[float | None, ...] = field(compare=False)
    epsilon_lower_bound: float | None
    budget: float | None = None
    weights: tuple[float, ...] | None = None
    optimal_epsilon: float | None = field(default=None, compare=False)
    given_rest: str | None = None
    pair_floor: float | None = None
    accuracy: Accuracy | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    together: bool = field(default=False, compare=False)
    released_rows: int | None = field(default=None, compare=False)

    @cached_property
    def account(self) -> "Account":
        """The account of the design, computed once."""
        return account(self)

    def _repr_html_(self) -> str:
        mechanism = self.mechanism
        rows = [
            [name, str(size), f"{alone:.4f}", f"{'at most ' if bound else ''}{rest:.4f}"]
            for name, size, alone, rest, bound in zip(
                mechanism.schema.names,
                mechanism.schema.n_categories,
                mechanism.attribute_epsilon,
                mechanism.epsilon_given_rest,
                mechanism.given_rest_at_most,
                strict=True,
            )
        ]
        return html_table(
            f"Design by method {self.method}: ε of the whole record "
            + nats_text(f"{self.epsilon:.6g}"),
            ["attribute", "categories", "ε alone", "ε given the rest"],
            rows,
        )

    @property
    def epsilon(self) -> float:
        """ε of the whole record in nats, rounded up."""
        return self.mechanism.epsilon

    @property
    def gap(self) -> float | None:
        """Upper bound on the distance of the record's ε from the smallest possible, in nats."""
        if self.epsilon_lower_bound is None:
            return None
        return self.epsilon - self.epsilon_lower_bound

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the attributes whose level differs from the requested one."""
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
class Saving:
    """Rows that the Kronecker product needs for every row of this design, medians."""

    marginals: float
    pairs: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"marginals": self.marginals, "pairs": self.pairs}


@dataclass(frozen=True)
class Account:
    """Computed properties of a design; see :func:`account`.

    ``strength``: entropies in bits, and λ. ``best_guesses``: per attribute, shape (k,); None where
    there is no prior.
    """

    design: Design
    strength: Strength
    best_guesses: tuple[BestGuess | None, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[tuple[str, str], float], ...] | None:
        """φ of every pair of attributes with a λ each; None beyond 50 attributes.

        With the attenuations of single attributes they suffice to invert any table of two
        attributes without this software.
        """
        schema = self.design.mechanism.schema
        if len(schema.protected) > PAIRS_UP_TO:
            return None
        singles = zip(schema.names, self.strength.attenuation, strict=True)
        invertible = [name for name, phi in singles if phi is not None and name not in schema.keep]
        pairs = []
        for pair in combinations(invertible, 2):
            phi = predict_covariance(self.design.mechanism, *pair).share
            assert phi is not None  # both have a λ
            pairs.append((pair, phi))
        return tuple(pairs)

    @cached_property
    def saving(self) -> Saving | None:
        """Saving against the Kronecker product of the same ε; None for an unbounded ε or a response
        matrix.
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
        """Return the saving as plain values; None for laws that randomize the
        attributes independently or have an unbounded ε, and for a single attribute."""
        design = self.design
        several = len(design.mechanism.schema.protected) > 1
        if not design.together or not several:
            return None
        return {
            "saving": None if self.saving is None else self.saving.to_plain(),
        }

    def pairs_to_plain(self) -> list[dict[str, Any]] | None:
        """Return φ of the pairs as plain values."""
        if self.pairs is None:
            return None
        return [{"attributes": list(pair), "attenuation": phi} for pair, phi in self.pairs]


def account(design: Design) -> Account:
    """Return the account of a design."""
    mechanism = design.mechanism
    return Account(
        design,
        mechanism_strength(mechanism),
        tuple(best_guess(mechanism, i) for i in range(len(mechanism.schema.attributes))),
    )


def asked_shares(mechanism: Mechanism) -> dict[int, float]:
    """Return the share of rows whose form includes an attribute, by its position; empty without
    forms."""
    law = mechanism.forms
    if law is None:
        return {}
    (block,) = (block for block in mechanism.blocks if block.law is law)
    asked = dict.fromkeys(block.attributes, 0.0)
    for share, form in zip(law.probabilities, law.forms, strict=True):
        for place in form.asked:
            asked[block.attributes[place]] += float(share)
        for draw in form.drawn:
            for place in draw.members:
                asked[block.attributes[place]] += float(share) * draw.asked / len(draw.members)
    return asked
