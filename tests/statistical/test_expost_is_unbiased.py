"""Ex-post releases, drawn again and again: estimates without bias, intervals that cover.

One fixed table is released by invariant PRAM, by matrices per stratum, and by both, with fresh
randomness from the operating system. The mean error of an estimate is held against its own spread
over the releases: an error of ``SLACK`` of one estimate's standard deviation would be let pass, and
a false alarm beyond that has at most the share of the folder's budget that the test has taken (by
the normal distribution of a mean of thousands of bounded terms).
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.design.design import design
from deniable.estimate.covariance import Covariance, indicator_covariance
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.randomness import SystemRandomness
from deniable.release.curator import invariant_design, randomize_strata
from deniable.schema import Attribute, Schema
from statistical.budget import BUDGET
from statistical.coverage import check_coverage

RELEASES = 1500
DEFECT_RELEASES = 400
SLACK = 0.05
SHAPE = (2, 3)
SCHEMA = Schema(
    (
        Attribute("a", ("x", "y"), scores=(0.0, 1.0)),
        Attribute("b", ("1", "2", "3"), scores=(1.0, 2.0, 4.0)),
    )
)
S, T = np.array([0.0, 1.0]), np.array([1.0, 2.0, 4.0])

Codes = list[NDArray[np.uint8]]


def table() -> tuple[Codes, NDArray[np.intp]]:
    """900 rows in two strata that differ, the second without one of the categories."""
    random = np.random.default_rng(6)
    strata = np.repeat([0, 1], [600, 300])
    cells = np.concatenate(
        [
            random.choice(6, size=600, p=[0.35, 0.15, 0.1, 0.05, 0.1, 0.25]),
            random.choice(6, size=300, p=[0.1, 0.5, 0.0, 0.3, 0.1, 0.0]),
        ]
    )
    return [(cells // 3).astype(np.uint8), (cells % 3).astype(np.uint8)], strata


def mechanisms(kind: str, codes: Codes, strata: NDArray[np.intp]) -> list[Mechanism]:
    """The mechanism of either stratum."""
    if kind == "invariant":
        return [invariant_design(design(SCHEMA, attenuation=0.6), codes, 0.9).mechanism] * 2
    made = [design(SCHEMA, attenuation=value) for value in (0.4, 0.75)]
    if kind == "both":
        made = [
            invariant_design(made[i], [column[strata == i] for column in codes]) for i in (0, 1)
        ]
    return [one.mechanism for one in made]


Answer = Callable[[Counts], tuple[NDArray[np.float64], NDArray[np.float64]]]


def answer(found: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every cell, the shares of b within a, and the covariance; then their standard errors."""
    (joint,) = Shares(("a", "b")).answer(found)
    (covariance,) = Covariance(("a", "b")).answer(found)
    return (
        np.append(joint.values.ravel(), covariance.estimate),
        np.append(joint.standard_error.ravel(), covariance.standard_error),
    )


def simulate(
    kind: str, estimate: Answer, releases: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors and standard errors, shape (releases, 7)."""
    codes, strata = table()
    n = len(strata)
    chosen = mechanisms(kind, codes, strata)
    truth = np.bincount(codes[0] * 3 + codes[1], minlength=6).reshape(SHAPE) / n
    true = np.append(truth.ravel(), S @ indicator_covariance(truth) @ T)
    # Rows are randomized independently of each other: copies of the table below each other are as
    # many releases of it.
    copies = [np.tile(column, releases) for column in codes]
    drawn = randomize_strata(copies, np.tile(strata, releases), chosen, SystemRandomness())
    cells = (drawn[0].astype(np.intp) * 3 + drawn[1]).reshape(releases, n)
    errors, stated = [], []
    for released in cells:
        parts = []
        for i in (0, 1):
            counts = np.bincount(released[strata == i], minlength=6).reshape(SHAPE)
            parts.append((chosen[i], Tabulation.from_counts(counts)))
        values, standard_errors = estimate(Counts(tuple(parts)))
        errors.append(values - true)
        stated.append(standard_errors)
    return np.array(errors), np.array(stated)


def biased(errors: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """Which means of the errors cannot be within SLACK standard deviations of 0."""
    releases, cells = errors.shape
    spread = errors.std(axis=0, ddof=1)
    limit = SLACK + norm.isf(share / (2 * cells)) / np.sqrt(releases)
    return np.asarray(np.abs(errors.mean(axis=0)) > limit * spread)


@pytest.mark.weekly
@pytest.mark.parametrize("kind", ["invariant", "strata", "both"])
def test_estimates_have_no_bias_and_their_intervals_cover(kind: str) -> None:
    bias_share = BUDGET.spend(f"ex post: bias, {kind}")
    cover_share = BUDGET.spend(f"ex post: coverage, {kind}")
    errors, stated = simulate(kind, answer, RELEASES)
    assert not biased(errors, bias_share).any(), errors.mean(axis=0) / errors.std(axis=0)
    check_coverage(np.abs(errors) <= norm.isf(0.025) * stated, cover_share)


def pooled(found: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As if all rows had been randomized by the first stratum's mechanism."""
    first = found.parts[0][0]
    return answer(Counts(tuple((first, part) for _, part in found.parts)))


FIRST_STAGE = design(SCHEMA, attenuation=0.6).mechanism


def as_first_stage(found: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As if the second stage of invariant PRAM had not been drawn."""
    return answer(Counts(tuple((FIRST_STAGE, part) for _, part in found.parts)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "defect"), [("strata", pooled), ("invariant", as_first_stage)])
def test_an_estimate_with_the_wrong_matrix_is_caught(kind: str, defect: Answer) -> None:
    share = BUDGET.spend(f"ex post: bias of a defect, {kind}")
    missed = BUDGET.spend(f"ex post: missing a defect, {kind}")
    errors, _ = simulate(kind, defect, DEFECT_RELEASES)
    # Estimates of cells are linear in the counts: their bias is that at the expected counts. It has
    # to clear the limit by what a miss is allowed, in the worst cell.
    codes, strata = table()
    parts = []
    for i, mechanism in enumerate(mechanisms(kind, codes, strata)):
        cells = (codes[0] * 3 + codes[1])[strata == i]
        true = np.bincount(cells, minlength=6).reshape(SHAPE).astype(float)
        expected = Channel(mechanism, ("a", "b")).forward.apply(true)
        parts.append((mechanism, Tabulation(expected, None, len(cells))))
    truth = np.bincount(codes[0] * 3 + codes[1], minlength=6) / len(strata)
    bias = defect(Counts(tuple(parts)))[0][:6] - truth
    spread = errors.std(axis=0, ddof=1)
    limit = SLACK + norm.isf(share / (2 * errors.shape[1])) / np.sqrt(len(errors))
    assert (np.abs(bias) / spread[:6]).max() > limit + norm.isf(missed) / np.sqrt(len(errors))
    assert biased(errors, share).any()
