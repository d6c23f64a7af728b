"""The outcome's regression: its optimum, its penalty, and what is drawn."""

import numpy as np

from deniable.randomness import SeededRandomness
from deniable.synthesis.outcome import Outcome

SIZES = (3, 2)


def sample(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    codes = np.array([random.integers(3, size=n), random.integers(2, size=n)])
    scores = np.array([-1.0, 0.0, 1.5])[codes[0]] + np.array([0.5, -0.5])[codes[1]]
    return codes, (random.random(n) < 1 / (1 + np.exp(-scores))).astype(int)


def tables(codes: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    found = [np.zeros((size, 2)) for size in SIZES]
    for table, column in zip(found, codes, strict=True):
        np.add.at(table, (column, outcome), 1 / len(outcome))
    return np.concatenate(found)


def shares(fit: Outcome, codes: np.ndarray) -> np.ndarray:
    scores = fit.effects[codes[0]] + fit.effects[3 + codes[1]] + fit.effects[-1] + np.log(fit.base)
    weights = np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


def modelled(fit: Outcome, codes: np.ndarray) -> np.ndarray:
    return np.concatenate(
        [
            [shares(fit, codes)[column == value].sum(axis=0) / codes.shape[1] for value in range(n)]
            for column, n in zip(codes, SIZES, strict=True)
        ]
    )


def test_tables_deviate_by_their_noise() -> None:
    codes, outcome = sample()
    wanted, base = tables(codes, outcome), np.bincount(outcome) / len(outcome)
    for noise in (1e-3, 1e-2):
        variances = np.full(wanted.shape, noise**2)
        fit = Outcome.fitted(codes, SIZES, wanted, variances, base)
        off = wanted - modelled(fit, codes)
        np.testing.assert_allclose(off, fit.penalty * variances * fit.effects[:-1], atol=2e-5)
        assert 0.7 < np.mean(off**2 / variances) < 1.4
        np.testing.assert_allclose(shares(fit, codes).mean(axis=0), base, atol=2e-5)
        again = Outcome.fitted(codes, SIZES, wanted, variances, base, fit)
        assert again.penalty == fit.penalty
        np.testing.assert_allclose(again.effects, fit.effects, atol=1e-2)


def test_no_more_than_noise_is_independence() -> None:
    codes, outcome = sample()
    base = np.bincount(outcome) / len(outcome)
    fit = Outcome.fitted(codes, SIZES, tables(codes, outcome), np.ones((5, 2)), base)
    np.testing.assert_allclose(shares(fit, codes), np.tile(base, (4000, 1)), atol=1e-4)


def test_outcomes_are_drawn_from_it() -> None:
    codes, outcome = sample()
    wanted, base = tables(codes, outcome), np.bincount(outcome) / len(outcome)
    fit = Outcome.fitted(codes, SIZES, wanted, np.full((5, 2), 1e-8), base)
    many = np.tile(codes, 20)
    drawn = tables(many, fit.drawn(many, SeededRandomness(2)))
    np.testing.assert_allclose(drawn, modelled(fit, codes), atol=0.006)
    np.testing.assert_allclose(modelled(fit, codes), wanted, atol=1e-3)
