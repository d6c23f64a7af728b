"""Power of a test of trend, before data are collected.

Genotypes of controls have Hardy–Weinberg proportions, those of cases are tilted by the odds ratio
per allele; the status is released unchanged. With r the share of cases among n people, Δ the
difference of the mean scores, and ℓ a released row's contribution to the mean score, the test of
:mod:`deniable.estimate.trend` has a non-central χ² with noncentrality

    n r (1 − r) Δ²/Var ℓ,

Var ℓ within forms. For k SNPs at level α by Bonferroni it must be (z_{1 − α/2k} + z_power)².

The K associated SNPs, all of noncentrality λ, have the K largest statistics with probability

    ∫ P(|Z + √λ| > t)^K dP(|Z| ≤ t)^(k − K),      Z standard normal,

if the statistics are independent, as those of SNPs without linkage are but for the randomization,
and all SNPs have one share of the allele, so that correlations have one error.

The information on all SNPs together is at most (e^ε − 1)²/(4 e^ε) per person
(Σ_T t_T I_T ≤ E(h − 1)², h the density of the record given its release), a k-th of that for each of
k SNPs.
"""

from dataclasses import asdict, dataclass, replace
from math import ceil, exp, isfinite, log
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

_LARGEST_EPSILON = 64.0
"""Largest ε of the search."""

SENTENCE = (
    "The information on a SNP is at most a k-th of one person's budget under any mechanism: "
    "panels of tens of SNPs in 10⁵ people work, a genome-wide scan under one record budget does "
    "not."
)


@dataclass(frozen=True)
class TrendPlan:
    """A study of genotypes that detects an odds ratio, or the SNPs most associated.

    ``people, snps, epsilon, allele, cases, coding, method, power, level, top``: the arguments of
    :func:`plan_trend`, with the missing one computed, or None if no value is enough; ε is inf
    without privacy.
    """

    people: int | None
    snps: int
    epsilon: float | None
    allele: float
    cases: float
    coding: Coding
    method: str
    power: float
    level: float
    odds_ratio: float | None = None
    worth: float = 0.0
    top: int | None = None

    @property
    def needed(self) -> float:
        """Noncentrality that a SNP needs."""
        quantile = NormalDist().inv_cdf
        if self.top is None:
            return (quantile(1 - self.level / self.snps / 2) + quantile(self.power)) ** 2
        return _for_largest(self.snps, self.top, self.power)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return asdict(self)


@typed
def plan_trend(
    *,
    people: int | None = None,
    snps: int,
    epsilon: float | None = None,
    odds_ratio: float | None = None,
    top: int | None = None,
    allele: float = 0.3,
    cases: float = 0.5,
    coding: str = "carrier",
    method: str | None = None,
    power: float | None = None,
    level: float = 0.05,
) -> TrendPlan:
    """Return the people, the ε or the odds ratio of a planned study of genotypes, from the other
    two.

    Every SNP is tested for a trend against a status released unchanged, at a level by Bonferroni;
    or with ``top`` the K associated SNPs have to be the K most associated in the release.

    Args:
        people: number of people; by default the smallest that is enough.
        snps: number of SNPs per person.
        epsilon: for the whole record, in nats; by default the smallest that is enough.
        odds_ratio: per allele; by default the smallest that is found.
        top: K; the other SNPs are not associated.
        allele: share of the allele among controls.
        cases: share of cases among the people.
        coding: ``carrier`` randomizes whether a person carries the allele, ``additive`` the number
            of alleles.
        method: as in :func:`deniable.design.design.design`; by default forms for shares alone, the
            most accurate method of this package.
        power: probability of finding it, or of finding the right K; by default 0.8, of K 0.9.
        level: of a false alarm among all SNPs together.

    Returns:
        The plan with ``.people``, ``.epsilon`` and ``.odds_ratio``; the computed one is None where
        no value is enough.

    Raises:
        InputError: if a number is impossible, not one of the three is missing, or no design is
            found.

    Examples:
        >>> import deniable
        >>> found = deniable.plan_trend(people=100_000, snps=10, epsilon=5, allele=0.3)
        >>> round(found.odds_ratio, 2)
        1.07
        >>> deniable.plan_trend(snps=100, epsilon=10, odds_ratio=1.5, top=5).people
        16118
    """
    for number, name in ((people, "people"), (snps, "SNPs")):
        if number is not None and number < 1:
            raise InputError(f"the number of {name} must be at least 1")
    for value, subject in ((allele, "an allele's share is"), (cases, "the part of cases is")):
        check_between(value, subject)
    if power is None:
        power = 0.8 if top is None else 0.9
    for value, subject in ((power, "the power is"), (level, "the level is")):
        check_between(value, subject)
    if top is not None and not 1 <= top < snps:
        raise InputError(f"top is from 1 to {snps - 1}, fewer than the SNPs")
    if odds_ratio is not None and not 1 < odds_ratio <= _LARGEST:
        raise InputError("the odds ratio must be above 1; exchange the alleles if it is below")
    if [people, epsilon, odds_ratio].count(None) != 1:
        raise InputError("give two of people, ε and odds ratio; the third is computed")
    chosen = one_of(coding, get_args(Coding), "coding")
    schema = Schema.anonymous((2 if chosen == "carrier" else 3,) * snps)
    method = method or ("forms" if snps > 1 else None)

    def at(total: float) -> tuple[TrendPlan, Channel | PublishedChannel]:
        pairs = 0.0 if method == "forms" else None
        made = design(schema, epsilon=total, method=method, pairs=pairs)
        numbers = (people, snps, total, allele, cases, chosen, made.method, power, level)
        plan = TrendPlan(*numbers, odds_ratio, top=top)
        return plan, channel_of(made.mechanism, ("a1",))

    def enough(total: float) -> bool:
        plan, channel = at(total)
        return _noncentrality(channel, plan, log(plan.odds_ratio or 1.0)) >= plan.needed

    if epsilon is None:
        low, high = 0.01, _LARGEST_EPSILON
        while high / low > 1.001 and (high < _LARGEST_EPSILON or enough(high)):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if enough(middle) else (middle, high)
        epsilon = high if high < _LARGEST_EPSILON else None
    plan, channel = at(_LARGEST_EPSILON if epsilon is None else epsilon)
    if odds_ratio is None:
        plan = replace(plan, odds_ratio=_smallest(channel, plan))
    if people is None:
        each = _noncentrality(channel, replace(plan, people=1), log(plan.odds_ratio or 1.0))
        plan = replace(plan, people=ceil(plan.needed / each) if each > 0 else None)
    # A vanishing trend, one person: this channel against unchanged genotypes.
    released = _noncentrality(channel, replace(plan, people=1), 1e-4)
    unchanged = Channel(_unchanged_genotypes(), ("a1",))
    most = _noncentrality(unchanged, replace(plan, people=1, coding="additive"), 1e-4)
    return replace(plan, epsilon=epsilon, worth=(plan.people or 0) * released / most)


def _for_largest(snps: int, top: int, power: float) -> float:
    """Return the noncentrality of the K associated SNPs that makes them the K largest."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    edges = np.linspace(0.0, 10.0, 2001)
    others = np.diff((2 * ndtr(edges) - 1) ** (snps - top))
    middle = (edges[1:] + edges[:-1]) / 2

    def excess(root: float) -> float:
        return float(others @ (ndtr(root - middle) + ndtr(-root - middle)) ** top) - power

    # With 0 all orders are alike, so that the power may be reached without any trend.
    return float(brentq(excess, 0.0, 20.0, xtol=1e-10)) ** 2 if excess(0.0) < 0 else 0.0


def without_privacy(plan: TrendPlan) -> float | None:
    """Return the smallest odds ratio that the same people's unchanged genotypes detect."""
    return _smallest(Channel(_unchanged_genotypes(), ("a1",)), replace(plan, coding="additive"))


def _unchanged_genotypes() -> Mechanism:
    schema = Schema(Schema.anonymous((3, 2)).attributes, keep=("a1",))
    law = ProductLaw.from_levels((2,), (1.0,))  # something has to be protected
    return Mechanism(schema, (Block((0,), Identity((3,))), Block((1,), law)))


def _smallest(channel: Channel | PublishedChannel, plan: TrendPlan) -> float | None:
    from scipy.optimize import brentq

    needed = plan.needed

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
    told = (plan.people or 0) * plan.cases * (1 - plan.cases) * difference**2 / variance
    return told if isfinite(told) else 0.0


def _genotypes(allele: float, log_ratio: float) -> tuple[Floats, Floats]:
    """Return the shares of 0, 1 and 2 alleles among controls and among cases."""
    controls = np.array([(1 - allele) ** 2, 2 * allele * (1 - allele), allele**2])
    tilted = controls * np.exp(log_ratio * np.arange(3))
    return controls, tilted / tilted.sum()
