"""Birkhoff and von Neumann's decomposition, Corollary 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws.bistochastic import bistochastic_channel
from deniable.solvers.patterns import birkhoff


@st.composite
def mixtures(draw: st.DrawFn) -> list[list[int]]:
    """Integer matrices with equal sums, positive everywhere or with holes."""
    n = draw(st.integers(1, 7))
    matrix = [[draw(st.sampled_from([0, 0, 1]))] * n for _ in range(1)] * n
    matrix = [list(row) for row in matrix]
    for _ in range(draw(st.integers(1, 8))):
        weight = draw(st.integers(1, 1 << 70))
        for x, y in enumerate(draw(st.permutations(range(n)))):
            matrix[y][x] += weight
    return matrix


def check(matrix: list[list[int]]) -> birkhoff.Decomposition:
    n = len(matrix)
    found = birkhoff.decompose(matrix)
    assert found.rebuild() == matrix
    assert min(found.weights) > 0
    assert sum(found.weights) == found.total
    assert all(sorted(p) == list(range(n)) for p in found.permutations)
    assert found.identity_weight == min(matrix[i][i] for i in range(n))
    assert found.permutations.count(tuple(range(n))) == (found.identity_weight > 0)
    assert len(found.weights) <= (n - 1) ** 2 + 1
    return found


@given(mixtures())
def test_a_mixture_of_permutations_is_rebuilt_exactly_with_the_identity_as_heavy_as_can_be(
    matrix: list[list[int]],
) -> None:
    check(matrix)


@pytest.mark.parametrize("seed", range(3))
def test_a_dense_matrix_of_thirty_categories_is_decomposed(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.gamma(1.0, size=(30, 30))
    for _ in range(2000):
        matrix /= matrix.sum(axis=1, keepdims=True)
        matrix /= matrix.sum(axis=0)
    law = bistochastic_channel(matrix)
    found = check([list(row) for row in law.weights])
    assert found.identity_weight / found.total == pytest.approx(matrix.diagonal().min(), rel=1e-12)


def test_lambda_randomization_holds_the_identity_at_its_keep_probability() -> None:
    # Corollary 1 takes the largest weight the identity can have, min P_ii = λ + (1 − λ)/r, not λ.
    law = bistochastic_channel(0.7 * np.eye(4) + 0.3 / 4)
    found = birkhoff.decompose(law.weights)
    assert found.identity_weight / found.total == pytest.approx(0.7 + 0.3 / 4, rel=1e-14)


def test_a_permutation_is_its_own_decomposition() -> None:
    found = birkhoff.decompose([[0, 0, 4], [4, 0, 0], [0, 4, 0]])
    assert found.permutations == ((1, 2, 0),)
    assert found.weights == (4,)
    assert found.identity_weight == 0


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1, 2], [2, 1], [1, 1]], "square"),
        ([], "square"),
        ([[2, 1], [1, 3]], "row 2"),
        ([[2, 1], [2, 1]], "column 1"),
        ([[3, -1], [-1, 3]], "negative"),
        ([[0, 0], [0, 0]], "zeros"),
    ],
)
def test_what_is_no_mixture_of_permutations_is_refused(matrix: list[list[int]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        birkhoff.decompose(matrix)
