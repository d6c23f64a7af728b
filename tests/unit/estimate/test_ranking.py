"""The K largest associations: against the posterior by brute force, and on symmetric cases."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from deniable.estimate.ranking import _prior, in_largest


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_probabilities_are_those_of_the_posterior_on_a_grid(correlation: float) -> None:
    found = np.array([0.30, 0.22])
    covariance = np.array([[1.0, 1.5 * correlation], [1.5 * correlation, 2.25]]) / 100
    spreads, weights = _prior(found, np.diag(covariance))
    axis = np.linspace(-1.5, 1.5, 601)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    density = multivariate_normal(found, covariance).pdf(np.stack([first, second], axis=-1))
    for each in (first, second):
        scaled = each[..., None] / spreads
        density *= (weights / spreads * np.exp(-0.5 * scaled**2)).sum(axis=-1)
    larger = density[np.abs(first) > np.abs(second)].sum() / density.sum()
    chances, all_right = in_largest(found, covariance, 1)
    assert chances == pytest.approx([larger, 1 - larger], abs=0.025)
    assert all_right == chances[0]


def test_all_of_all_are_certain_and_probabilities_sum_to_k() -> None:
    found = np.random.default_rng(1).normal(size=12)
    chances, all_right = in_largest(found, np.eye(12), 12)
    assert chances.tolist() == [1.0] * 12
    assert all_right == 1.0
    chances, all_right = in_largest(found, np.eye(12), 4)
    assert chances.sum() == pytest.approx(4)
    assert all_right <= chances.max()
    again, _ = in_largest(found, np.eye(12), 4)
    assert chances.tolist() == again.tolist()


def test_of_many_estimates_that_are_noise_none_is_likely_and_a_large_one_is() -> None:
    found = np.random.default_rng(2).normal(size=30)
    chances, _ = in_largest(found, np.eye(30), 2)
    assert chances.max() < 0.3
    found[7] = 9.0
    chances, _ = in_largest(found, np.eye(30), 1)
    assert chances[7] > 0.98
