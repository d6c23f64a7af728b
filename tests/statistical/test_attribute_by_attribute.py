"""All rows' draws of one attribute after the other: what is remembered of a row is the law's state.

A vote of ten attributes of different weights, dither and retention: keep probabilities, pairs, and
how many attributes of a row are kept, against their exact law; and a state that is one too high
after every attribute, whose law is known exactly too and must be seen.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.laws.votes import sampling
from deniable.laws.votes.choices import exactly
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sampling import SumSampler
from deniable.mechanism.mechanism import Mechanism
from laws import brute_force as oracle
from statistical.budget import BUDGET
from statistical.channels import attribute_by_attribute, count_patterns
from statistical.counting import Expectation, expectation

K, ROWS = 10, 150_000
VOTE = GatedSum(
    (3,) * K,
    5 + np.arange(K) % 4,
    np.where(np.arange(K) % 3 == 1, 0.4, 0.0),
    "vote",
    2.4 * K,
    1.0,
    3.0,
    np.ones(K),
)
MECHANISM = Mechanism.of(VOTE)
CHANGED = np.array(list(oracle.patterns(K)), dtype=bool)
Summary = Callable[[NDArray[np.float64]], NDArray[np.float64]]
SUMMARIES: dict[str, Summary] = {
    "keep probabilities": lambda of: np.array([of[~CHANGED[:, i]].sum() for i in range(K)]),
    "pairs": lambda of: np.array(
        [of[CHANGED[:, i] & CHANGED[:, j]].sum() for i, j in combinations(range(K), 2)]
    ),
    "number kept": lambda of: np.bincount(K - CHANGED.sum(axis=1), weights=of, minlength=K + 1),
}


def variance(of: NDArray[np.float64]) -> float:
    kept, share = np.arange(K + 1), SUMMARIES["number kept"](of) / of.sum()
    return float(share @ kept**2 - (share @ kept) ** 2)


def probabilities() -> NDArray[np.float64]:
    return np.array([float(p) for p in oracle.pattern_probabilities(VOTE).values()])


def with_states_one_too_high() -> NDArray[np.float64]:
    """Probabilities of all patterns if the sum is one too high after every attribute."""
    (part,) = SumSampler([VOTE]).parts
    prefixes = [{0: 1.0}]
    for i in range(K):
        n, (low, high) = part.backward.weights[i], part.backward.bounds(i + 1)
        following: list[dict[int, float]] = []
        for sums in prefixes:
            fates: tuple[dict[int, float], dict[int, float]] = ({}, {})
            for s, mass in sums.items():
                weights, dither = part.backward.choices_at(i, s, part.held)
                change = mass * float(exactly(*weights))
                extra = float(exactly(*dither)) if dither else 0.0
                for fate, gain, chance in (
                    (1, 0, change),
                    (0, n, (mass - change) * (1 - extra)),
                    (0, n + 1, (mass - change) * extra),
                ):
                    to = min(max(s + gain + 1, low), high)
                    fates[fate][to] = fates[fate].get(to, 0.0) + chance
            following += fates
        prefixes = following
    return np.array([sum(sums.values()) for sums in prefixes])


@pytest.fixture(scope="module")
def exact() -> NDArray[np.float64]:
    return probabilities()


def expected(exact: NDArray[np.float64], what: str, share: float) -> Expectation:
    return expectation(ROWS, SUMMARIES[what](exact), share)


def test_the_law_is_drawn(exact: NDArray[np.float64]) -> None:
    counts = count_patterns(attribute_by_attribute(MECHANISM), VOTE.n_categories, ROWS)
    for what, summary in SUMMARIES.items():
        share = BUDGET.spend(f"attribute by attribute: {what}")
        assert not expected(exact, what, share).alarms(summary(counts)).size
    # The number kept varies far less than if attributes were independent. (Of so many rows the
    # variance is known to 0.4 %, so that a wrong alarm is out of the question.)
    keep = SUMMARIES["keep probabilities"](exact)
    assert variance(exact) < 0.6 * (keep * (1 - keep)).sum()
    assert variance(counts.astype(float)) == pytest.approx(variance(exact), rel=0.05)


def test_a_state_that_is_one_too_high_is_seen(
    exact: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = with_states_one_too_high()
    built = sampling._Stage.__init__

    def planted(stage: sampling._Stage, *given: Any, **named: Any) -> None:
        built(stage, *given, **named)
        stage._shifts = [shift + 1 for shift in stage._shifts]
        stage._beyond = [True] * len(stage._beyond)

    monkeypatch.setattr(sampling._Stage, "__init__", planted)
    counts = count_patterns(attribute_by_attribute(MECHANISM), VOTE.n_categories, ROWS)
    for what, summary in SUMMARIES.items():
        check = expected(exact, what, 1e-9)
        assert check.miss_probability(summary(wrong)) < BUDGET.spend(f"state off by one: {what}")
        assert check.alarms(summary(counts)).size
