"""Methods at one ε for the whole record: identical attributes, one point.

A point is (categories a, attributes k, ε of the record); one attenuation φ describes every
marginal, another every pair. Rows needed for equally accurate tables go with 1/φ². Nothing here is
random.
"""

import math
from dataclasses import dataclass
from functools import cache

from deniable.design.design import design
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import expected_variance
from deniable.schema import Schema
from deniable.solvers.patterns.least_variance import least_share_variance
from deniable.statement.account import Design
from deniable_studies.beyond.baselines import (
    RSFD,
    RSFD_STATED,
    SHARES,
    amplified_epsilon,
    fake_data_attenuation,
    fake_data_given_rest,
    one_pair,
)

DESIGNED = ("optimal", "balanced", "kronecker")
SMP, SUBSETS = "smp", "smp-subset"
FORMS, FORMS_SHARES = "forms", "forms-shares"
ONE_PAIR = "pair-subset"
OFFERED = (SMP, SUBSETS, "m-of-k", "privunit", ONE_PAIR)
"""Published alternatives that are no pattern laws."""
ALL = (*DESIGNED, FORMS, FORMS_SHARES, RSFD, RSFD_STATED, *OFFERED)

VANISHED = 1e-9
"""|φ| of a pair below this is rounding."""


@dataclass(frozen=True)
class Budget:
    """A budget: identical attributes under one ε for the record.

    Args:
        n_categories: a, of every attribute.
        n_attributes: k.
        epsilon: the requested ε, in nats.
    """

    n_categories: int
    n_attributes: int
    epsilon: float

    def __str__(self) -> str:
        return f"a = {self.n_categories}, k = {self.n_attributes:,}, ε = {self.epsilon:g}"


@dataclass(frozen=True)
class Point:
    """One method at one budget.

    Args:
        budget: where.
        method: which.
        epsilon: the record's level of the law as it is drawn, in nats.
        attribute_epsilon: of an attribute seen alone, in nats; None where there is no such number.
        marginal: φ of one attribute; for forms and ``OFFERED`` that of an equally accurate law.
        pair: φ of two attributes, with its sign, or as above; None where no pair is ever seen.
        given_rest: the largest ``epsilon_given_rest``, in nats.
        optimal_epsilon: for ``balanced``, the smallest record level at the same attribute levels.
    """

    budget: Budget
    method: str
    epsilon: float
    attribute_epsilon: float | None
    marginal: float
    pair: float | None
    given_rest: float
    optimal_epsilon: float | None = None

    @property
    def cost(self) -> float | None:
        """Cost of cap and accuracy of pairs under ``balanced``: ε above the optimum's at the same
        levels, as a part of it."""
        return None if self.optimal_epsilon is None else self.epsilon / self.optimal_epsilon - 1


@cache
def point(budget: Budget, method: str) -> Point:
    """Return a method of ``ALL`` at a budget; designed once."""
    a, k, epsilon = budget.n_categories, budget.n_attributes, budget.epsilon
    if method in DESIGNED:
        designed = design(Schema.anonymous([a] * k), epsilon=epsilon, method=method)
        return _designed(budget, method, designed)
    if method in (FORMS, FORMS_SHARES):
        return _forms(budget, method)
    if method in OFFERED:
        worth = math.sqrt(SHARES[method]((a,) * k, epsilon)[0])
        both = one_pair((a,) * k, epsilon, "subset")[0, 1] if method == ONE_PAIR else None
        pair = None if both is None else math.sqrt(both)
        return Point(budget, method, epsilon, None, worth, pair, epsilon)
    answer = amplified_epsilon(k, epsilon) if method == RSFD_STATED else epsilon
    phi = fake_data_attenuation(k, a, answer)
    return Point(budget, method, answer, None, phi, 0.0, fake_data_given_rest(k, answer))


def _designed(budget: Budget, method: str, designed: Design) -> Point:
    mechanism = designed.mechanism
    eigenvalues = Channel(mechanism, mechanism.schema.names[:2]).forward.eigenvalues
    return Point(
        budget,
        method,
        mechanism.epsilon,
        max(mechanism.attribute_epsilon),
        float(eigenvalues[1, 0]),
        float(eigenvalues[1, 1]),
        max(mechanism.epsilon_given_rest),
        _least_epsilon(mechanism) if method == "balanced" else None,
    )


def _least_epsilon(mechanism: Mechanism) -> float:
    """Return the smallest record level found at the levels of a mechanism, in nats."""
    levels = list(mechanism.attribute_epsilon)
    return design(mechanism.schema, attribute_epsilon=levels, method="optimal").epsilon


def _forms(budget: Budget, method: str) -> Point:
    """Return published forms, for shares alone or with pairs as far as is the default."""
    a, k = budget.n_categories, budget.n_attributes
    pairs = 0.0 if method == FORMS_SHARES else None
    mechanism = design(
        Schema.anonymous([a] * k), epsilon=budget.epsilon, method=FORMS, pairs=pairs
    ).mechanism
    expected = expected_variance(mechanism)
    assert expected.shares is not None
    # A cell of a pair has variance (2 (a − 1)/I_1 + (a − 1)²/I_2)/a⁴, one of an attribute
    # (a − 1)/(a² I_1).
    both = None if pairs == 0.0 or expected.pairs is None else expected.pairs
    rest = None if both is None else both * a**4 - 2 * a**2 * expected.shares
    return Point(
        budget,
        method,
        mechanism.epsilon,
        max(mechanism.attribute_epsilon),
        math.sqrt((a - 1) / a**2 / expected.shares),
        None if rest is None else (a - 1) / math.sqrt(rest),
        max(mechanism.epsilon_given_rest),
    )


def most_attenuation(budget: Budget) -> float:
    """Return the φ of one attribute that no mechanism of a budget's ε is worth more than."""
    a, k = budget.n_categories, budget.n_attributes
    return math.sqrt((a - 1) / a**2 / least_share_variance((a,) * k, budget.epsilon))


def parts_of_cost(balanced: Point) -> tuple[float, float]:
    """Return the cost of the cap alone and of a floor of 0.5 alone at a balanced law's levels.

    Args:
        balanced: a point of that method.

    Returns:
        Parts of the optimum's ε, as :attr:`Point.cost`.
    """
    budget = balanced.budget
    schema = Schema.anonymous([budget.n_categories] * budget.n_attributes)
    levels = [balanced.attribute_epsilon or 0.0] * budget.n_attributes
    best = balanced.optimal_epsilon or balanced.epsilon
    capped = design(schema, attribute_epsilon=levels, method="balanced", pair_floor=0.0)
    floored = design(schema, attribute_epsilon=levels, method="balanced", given_rest="none")
    return capped.epsilon / best - 1, floored.epsilon / best - 1


def saved(better: float | None, kronecker: float | None) -> float | None:
    """Return how many rows the Kronecker product needs for every row of another law.

    Args:
        better: φ of the other law; None or 0 where it cannot estimate the table at all.
        kronecker: φ of the product.
    """
    if better is None or kronecker is None or abs(better) < VANISHED:
        return None
    return (better / kronecker) ** 2
