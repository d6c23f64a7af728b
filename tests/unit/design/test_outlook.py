"""The best mechanism of one attribute against every mechanism that can be made at random."""

import math

import numpy as np
import pytest

from deniable.design.design import design
from deniable.design.outlook import best_variance, matrices_to_plain
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import expected_variance
from deniable.schema import Attribute, Schema
from deniable.solvers.matrices.schemes import subset_selection
from marked import slow_after


def variance(matrix: np.ndarray) -> float:
    """Mean variance of a share for one row; infinite if the matrix has no inverse."""
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return math.inf
    law = MatrixChannel.from_probabilities(matrix / matrix.sum(axis=0))
    return expected_variance(Mechanism.of(law)).shares or math.inf


@pytest.mark.parametrize(("n", "epsilon"), slow_after(2, [(2, 0.5), (3, 1.0), (6, 0.3), (6, 4.0)]))
def test_the_least_variance_is_that_of_subset_selection_and_no_other_has_less(
    n: int, epsilon: float
) -> None:
    sizes = [subset_selection(n, epsilon, s) for s in range(1, n)]
    best = best_variance(n, epsilon)
    assert best == pytest.approx(min(map(variance, sizes)))
    draws = np.random.default_rng(n)
    for _ in range(200):
        rows = np.exp(epsilon * draws.integers(0, 2, (n + 3, n)))
        weights = np.linalg.lstsq(rows.T, np.ones(n))[0]  # columns that add up to 1
        if (weights >= 0).all():
            assert variance(rows * weights[:, None]) >= best * (1 - 1e-9)


def test_a_matrix_is_compared_only_if_it_has_an_epsilon() -> None:
    schema = Schema(
        (
            Attribute("a", ("no", "yes"), response="triangular:1/4"),
            Attribute("b", ("no", "yes"), response="warner:0.75"),
        )
    )
    first, second = matrices_to_plain(design(schema))
    assert (first["best"], first["times"]) == (None, None)
    assert [second[key] for key in ("shares", "best", "times")] == pytest.approx([1.0] * 3)
