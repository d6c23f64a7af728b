"""What others offer: its level, and its errors when drawn against those in closed form."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from deniable.laws.response import attenuation
from deniable_studies.beyond import baselines
from deniable_studies.beyond.baselines import (
    SHARES,
    best_questions,
    direction_shift,
    hash_size,
    one_pair,
    pair_variance,
    share_variance,
    subset_size,
    told,
)
from deniable_studies.beyond.offers import (
    OFFERS,
    ONE_PAIR,
    draw_offer,
    draw_realistic_fake_data,
)

SIZES, EPSILON, PEOPLE, RELEASES = (2, 3, 5), 1.2, 3000, 60


def test_every_oracle_has_the_level_it_is_asked_for() -> None:
    a, epsilon = 12, 0.7
    p, q = baselines.response(a, epsilon)
    assert p + (a - 1) * q == pytest.approx(1)
    assert p / q == pytest.approx(math.exp(epsilon))
    p, q = baselines.unary(a, epsilon)
    assert p * (1 - q) / (q * (1 - p)) == pytest.approx(math.exp(epsilon))
    g = hash_size(epsilon)
    p, q = baselines.hashing(a, epsilon)
    assert p * (g - 1) / (1 - p) == pytest.approx(math.exp(epsilon))
    assert q == 1 / g
    p, q = baselines.subset(a, epsilon)
    size = subset_size(a, epsilon)
    of_true, of_others = math.comb(a - 1, size - 1), math.comb(a - 1, size)
    assert p / of_true == pytest.approx(math.exp(epsilon) * (1 - p) / of_others)
    assert p + (a - 1) * q == pytest.approx(size)


def test_one_answer_tells_what_a_sum_over_all_answers_says() -> None:
    a, epsilon = 6, 1.0
    assert told("response", a, epsilon) == pytest.approx(attenuation(a, epsilon) ** 2)
    best = 0.0
    for size in range(1, a):
        column = np.where(np.arange(a) < size, math.exp(epsilon), 1.0)
        density = column / column.mean()
        best = max(best, float(((density - 1) ** 2).mean()) / (a - 1))
    assert told("subset", a, epsilon) == pytest.approx(best)
    assert told("better", a, epsilon) == max(
        told("response", a, epsilon), told("unary", a, epsilon)
    )


def test_spl_smp_and_privunit_are_those_of_before() -> None:
    """Figures for Adult's nine attributes and 45,222 people, from the papers' formulas by hand."""
    adult = (7, 16, 7, 14, 6, 5, 2, 41, 2)

    def shares(name: str, epsilon: float) -> float:
        return share_variance(adult, SHARES[name](adult, epsilon)) / 45222

    assert shares("smp-subset", 1.0) == pytest.approx(5.03e-4, rel=2e-3)
    assert shares("m-of-k", 8.0) == pytest.approx(1.65e-5, rel=2e-3)
    assert best_questions(adult, 8.0) > best_questions(adult, 2.0) == 1
    # The limit for many attributes is 5.53e-5.
    own = sum((a - 1) / a**2 for a in adult) / 9 / 45222
    assert shares("privunit", 4.0) - own == pytest.approx(5.53e-5, rel=2e-3)
    t, shift = direction_shift(4.0)
    assert shift == pytest.approx(t)


@pytest.fixture(scope="module")
def people() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.integers(0, a, PEOPLE) for a in SIZES]


def errors(draw: Callable[[np.random.Generator], list[np.ndarray]], people: list[np.ndarray]):
    """Deviations of estimates from this table's shares, shape (releases, cells)."""
    random = np.random.default_rng(2)
    truth = [np.bincount(c, minlength=a) / PEOPLE for c, a in zip(people, SIZES, strict=True)]
    found = []
    for _ in range(RELEASES):
        shares = draw(random)
        found.append(np.concatenate([s - t for s, t in zip(shares, truth, strict=True)]))
    return np.array(found)


def check(off: np.ndarray, expected: float) -> None:
    assert np.abs(off.mean(axis=0)).max() < 4.5 * (off.std(axis=0) / RELEASES**0.5).max()
    ends = np.cumsum(SIZES)[:-1]
    measured = np.mean([part.mean() for part in np.split((off**2).mean(axis=0), ends)])
    assert measured == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("name", OFFERS)
def test_an_offer_errs_as_its_formula_says(name: str, people: list[np.ndarray]) -> None:
    off = errors(lambda random: draw_offer(name, people, SIZES, EPSILON, random)[0], people)
    information = SHARES[name](SIZES, EPSILON)
    # The formula is for a population; this table's people are given.
    own = [1 / (1 / i - 1) for i in information]
    check(off, share_variance(SIZES, own) / PEOPLE)


@pytest.mark.parametrize("name", ONE_PAIR)
def test_tables_of_one_random_pair_err_as_their_formula_says(
    name: str, people: list[np.ndarray]
) -> None:
    random = np.random.default_rng(3)
    squares = []
    for _ in range(RELEASES // 2):
        _, pairs = draw_offer(name, people, SIZES, EPSILON, random)
        off = []
        for (i, j), table in pairs.items():
            truth = np.zeros(table.shape)
            np.add.at(truth, (people[i], people[j]), 1 / PEOPLE)
            off.append(((table - truth) ** 2).mean())
        squares.append(np.mean(off))
    information = one_pair(SIZES, EPSILON, ONE_PAIR[name])
    assert np.mean(squares) == pytest.approx(pair_variance(SIZES, information) / PEOPLE, rel=0.2)


def test_realistic_fake_data_are_unbiased_whatever_the_prior(people: list[np.ndarray]) -> None:
    priors = [np.arange(1, a + 1) / (a * (a + 1) / 2) for a in SIZES]
    off = errors(lambda random: draw_realistic_fake_data(people, priors, EPSILON, random), people)
    k = len(SIZES)
    variances = []
    for a, prior in zip(SIZES, priors, strict=True):
        p, q = baselines.response(a, EPSILON)
        seen = (q + (p - q) / a + (k - 1) * prior) / k
        variances.append(np.mean(k**2 * seen * (1 - seen) / (p - q) ** 2))
    check(off, float(np.mean(variances)) / PEOPLE)
