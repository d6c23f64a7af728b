"""Power of a test of trend, before data are collected.

Genotypes of controls have Hardy–Weinberg proportions, those of cases are tilted by the odds ratio
per allele; the status is released unchanged. With r the share of cases among n people, Δ the
difference of the mean scores, and ℓ a released row's contribution to the mean score, the test of
:mod:`deniable.estimate.trend` has a non-central χ² with noncentrality

    n r (1 − r) Δ²/Var ℓ,

Var ℓ within forms. For k SNPs at level α by Bonferroni it must be (z_{1 − α/2k} + z_power)².

The information on all SNPs together is at most (e^ε − 1)²/(4 e^ε) per person
(Σ_T t_T I_T ≤ E(h − 1)², h the density of the record given its release), a k-th of that for each of
k SNPs.
"""

from dataclasses import asdict, dataclass, replace
from math import exp, isfinite, log
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from deniable._checks import typed
from deniable.design.design import design
from deniable.errors import InputError
from deniable.estimate.inference import check_between, one_of
from deniable.estimate.tabulate import Floats
from deniable.estimate.trend import variance_within
from deniable.laws import Identity, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.schema import Schema

Coding = Literal["carrier", "additive"]
"""Two categories, carrier of the allele or not; or three, the number of alleles."""

_LARGEST = 1e6
"""Largest odds ratio of the search."""

SENTENCE = (
    "The information on a SNP is at most a k-th of one person's budget under any mechanism: "
    "panels of tens of SNPs in 10⁵ people work, a genome-wide scan under one record budget does "
    "not."
)


@dataclass(frozen=True)
class TrendPlan:
    """The smallest odds ratio that a study of genotypes detects.

    ``people, snps, epsilon, allele, cases, coding, method, power, level``: the arguments of
    :func:`plan_trend`; ε is inf without privacy.
    """

    people: int
    snps: int
    epsilon: float
    allele: float
    cases: float
    coding: Coding
    method: str
    power: float
    level: float
    odds_ratio: float | None = None
    worth: float = 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return asdict(self)


@typed
def plan_trend(
    *,
    people: int,
    snps: int,
    epsilon: float,
    allele: float = 0.3,
    cases: float = 0.5,
    coding: str = "carrier",
    method: str | None = None,
    power: float = 0.8,
    level: float = 0.05,
) -> TrendPlan:
    """Return the smallest odds ratio that a planned study of genotypes detects.

    Every SNP is tested for a trend against a status released unchanged, at a level by Bonferroni.

    Args:
        people: number of people.
        snps: number of SNPs per person.
        epsilon: for the whole record, in nats.
        allele: share of the allele among controls.
        cases: share of cases among the people.
        coding: ``carrier`` randomizes whether a person carries the allele, ``additive`` the number
            of alleles.
        method: as in :func:`deniable.design.design.design`; by default forms for shares alone, the
            most accurate method of this package.
        power: probability of finding it.
        level: of a false alarm among all SNPs together.

    Returns:
        The odds ratio per allele, ``.odds_ratio``, or None where none is detected, and the design.

    Raises:
        InputError: if a number is impossible, or no design is found.

    Examples:
        >>> import deniable
        >>> found = deniable.plan_trend(people=100_000, snps=10, epsilon=5, allele=0.3)
        >>> round(found.odds_ratio, 2)
        1.07
    """
    for number, name in ((people, "people"), (snps, "SNPs")):
        if number < 1:
            raise InputError(f"the number of {name} must be at least 1")
    for value, subject in ((allele, "an allele's share is"), (cases, "the part of cases is")):
        check_between(value, subject)
    for value, subject in ((power, "the power is"), (level, "the level is")):
        check_between(value, subject)
    chosen = one_of(coding, get_args(Coding), "coding")
    schema = Schema.anonymous((2 if chosen == "carrier" else 3,) * snps)
    method = method or ("forms" if snps > 1 else None)
    made = design(schema, epsilon=epsilon, method=method, pairs=0.0 if method == "forms" else None)
    plan = TrendPlan(people, snps, epsilon, allele, cases, chosen, made.method, power, level)
    channel = channel_of(made.mechanism, ("a1",))
    # A vanishing trend, one person: this channel against unchanged genotypes.
    released = _noncentrality(channel, replace(plan, people=1), 1e-4)
    unchanged = Channel(_unchanged_genotypes(), ("a1",))
    most = _noncentrality(unchanged, replace(plan, people=1, coding="additive"), 1e-4)
    return replace(plan, odds_ratio=_smallest(channel, plan), worth=people * released / most)


def without_privacy(plan: TrendPlan) -> float | None:
    """Return the smallest odds ratio that the same people's unchanged genotypes detect."""
    return _smallest(Channel(_unchanged_genotypes(), ("a1",)), replace(plan, coding="additive"))


def _unchanged_genotypes() -> Mechanism:
    schema = Schema(Schema.anonymous((3, 2)).attributes, keep=("a1",))
    law = ProductLaw.from_levels((2,), (1.0,))  # something has to be protected
    return Mechanism(schema, (Block((0,), Identity((3,))), Block((1,), law)))


def _smallest(channel: Channel | PublishedChannel, plan: TrendPlan) -> float | None:
    from scipy.optimize import brentq

    quantile = NormalDist().inv_cdf
    needed = (quantile(1 - plan.level / plan.snps / 2) + quantile(plan.power)) ** 2

    def excess(log_ratio: float) -> float:
        return _noncentrality(channel, plan, log_ratio) - needed

    if not excess(log(_LARGEST)) > 0:
        return None
    return exp(brentq(excess, 0.0, log(_LARGEST), xtol=1e-10))


def _noncentrality(channel: Channel | PublishedChannel, plan: TrendPlan, log_ratio: float) -> float:
    controls, cases = _genotypes(plan.allele, log_ratio)
    scores = np.arange(3.0)
    if plan.coding == "carrier":
        scores = np.arange(2.0)
        controls, cases = (np.array([each[0], each[1:].sum()]) for each in (controls, cases))
    everybody = plan.cases * cases + (1 - plan.cases) * controls
    influence = channel.inverse.transposed().apply(scores)
    variance = variance_within(influence, channel.forward.apply(everybody), channel.inverse)
    difference = float(scores @ (cases - controls))
    told = plan.people * plan.cases * (1 - plan.cases) * difference**2 / variance
    return told if isfinite(told) else 0.0


def _genotypes(allele: float, log_ratio: float) -> tuple[Floats, Floats]:
    """Return the shares of 0, 1 and 2 alleles among controls and among cases."""
    controls = np.array([(1 - allele) ** 2, 2 * allele * (1 - allele), allele**2])
    tilted = controls * np.exp(log_ratio * np.arange(3))
    return controls, tilted / tilted.sum()
