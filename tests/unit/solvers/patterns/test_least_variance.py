import math

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.solvers.patterns.least_variance import least_share_variance


def told(columns: np.ndarray, n: tuple[int, ...]) -> np.ndarray:
    """I_i of mechanisms that release a random order of the categories, and whether the record, so
    ordered, lies in a column's part; shape (columns, k). By definition: the squared distance of
    attribute i's law given the answer from the uniform one, over a_i − 1."""
    laws = (columns / columns.sum(axis=1, keepdims=True)).reshape(-1, *n)
    information = []
    for i, a in enumerate(n):
        alone = laws.sum(axis=tuple(1 + j for j in range(len(n)) if j != i))
        information.append((a * (alone**2).sum(axis=1) - 1) / (a - 1))
    return np.array(information).T


@pytest.mark.parametrize(
    ("n", "epsilon"),
    [
        ((2, 3), 0.3),
        ((3, 4), 2.0),
        *(
            pytest.param(n, epsilon, marks=pytest.mark.weekly)
            for n in ((5,), (2, 2, 3), (2, 2, 2, 2))
            for epsilon in (0.5, 3.0, 8.0)
        ),
    ],
)
def test_no_private_mechanism_is_better(n: tuple[int, ...], epsilon: float) -> None:
    random = np.random.default_rng(8)
    # Densities between 1 and e^ε, most of them at the ends; thousands of mixtures of a few.
    records = math.prod(n)
    part = random.random((4000, records)) < random.random((4000, 1))
    columns = np.where(part, math.exp(epsilon), 1.0)
    columns[::3] = np.exp(epsilon * random.random((len(columns[::3]), records)))
    information = told(columns, n)
    weights = random.dirichlet(np.full(5, 0.5), 20000)
    mixed = np.einsum("rc,rck->rk", weights, information[random.integers(0, 4000, (20000, 5))])
    kappa = np.array([(a - 1) / a**2 for a in n]) / len(n)
    best = (kappa / np.maximum(mixed, 1e-300)).sum(axis=1).min()
    assert best >= least_share_variance(n, epsilon)


def test_the_bound_is_attained_by_one_binary_question() -> None:
    # Warner's question: φ = tanh(ε/2), I = φ².
    epsilon = 1.5
    bound = least_share_variance((2,), epsilon)
    assert bound <= 0.25 / math.tanh(epsilon / 2) ** 2
    assert bound > 0.8 * 0.25 / math.tanh(epsilon / 2) ** 2


@pytest.mark.weekly
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0, 8.0])
def test_a_larger_total_allows_less(epsilon: float) -> None:
    n = (7, 16, 2)
    assert least_share_variance(n, epsilon) > least_share_variance(n, epsilon * 1.2)


def test_it_never_exceeds_what_rows_without_privacy_have() -> None:
    n = (3, 5)
    assert least_share_variance(n, 300.0) <= np.mean([(a - 1) / a**2 for a in n])


def test_attributes_that_count_more_weigh_more() -> None:
    even = least_share_variance((2, 9), 1.0)
    assert least_share_variance((2, 9), 1.0, [3.0, 1.0]) != pytest.approx(even)
    assert least_share_variance((2, 9), 1.0, [5.0, 5.0]) == pytest.approx(even)


@pytest.mark.weekly
@pytest.mark.parametrize(("epsilon", "least"), [(1, 4.6e-4), (4, 1.9e-5), (8, 6.9e-6)])
def test_it_is_as_near_on_adult_as_was_found_before(epsilon: float, least: float) -> None:
    n = (7, 16, 7, 14, 6, 5, 2, 41, 2)
    assert least < least_share_variance(n, epsilon) / 45222


def test_of_many_alike_it_does_not_depend_on_luck() -> None:
    # The optimum of its dual by a search from 128 starts.
    assert least_share_variance((4,) * 100, 2.0) == pytest.approx(48.842, rel=2e-4)
    assert least_share_variance((5, 5, 5), 2.0) == pytest.approx(1.4984, rel=2e-4)


def test_a_total_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="a total above 0"):
        least_share_variance((2, 3), 0.0)
