"""Properties 1 and 2 and equation (9) of λ-randomization, as printed, against the code."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.design.strength import product_law
from deniable.estimate.covariance import indicator_covariance
from deniable.estimate.inference import Inference
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import joint_of_attenuation
from deniable.laws.transforms import apply_eigenvalues
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import predict_covariance
from deniable.schema import Schema

cases = st.lists(st.tuples(st.integers(2, 5), st.floats(0.05, 0.98)), min_size=1, max_size=4)


def uniform(n: int) -> NDArray[np.float64]:
    """P* = uuᵀ/n."""
    return np.full((n, n), 1 / n)


def randomization(n: int, attenuation: float) -> NDArray[np.float64]:
    """Equation (6)."""
    return attenuation * np.eye(n) + (1 - attenuation) * uniform(n)


def property_1(n: int, attenuation: float) -> NDArray[np.float64]:
    """The inverse of one matrix."""
    return (np.eye(n) - uniform(n)) / attenuation + uniform(n)


def property_2(sizes: list[int], attenuation: list[float]) -> NDArray[np.float64]:
    """The inverse of the Kronecker product, summed over the 2^l vectors e as in the paper.

    As printed: Σ_e ∏ (1/λ_i)^(1−e_i) (−(1 − λ_i)/(λ_i n_i))^e_i ⊗ T_i(e_i), T_i(1) = uuᵀ.
    """
    # (1/λ) I − ((1 − λ)/λ) P* is (1/λ)(I − P*) + P*.
    total = np.zeros((int(np.prod(sizes)),) * 2)
    for chosen in product((0, 1), repeat=len(sizes)):
        factor, term = 1.0, np.ones((1, 1))
        for e, n, value in zip(chosen, sizes, attenuation, strict=True):
            factor *= -(1 - value) / (value * n) if e else 1 / value
            term = np.kron(term, np.ones((n, n)) if e else np.eye(n))
        total += factor * term
    return total


def mechanism(sizes: list[int], attenuation: list[float]) -> Mechanism:
    return Mechanism(
        Schema.anonymous(sizes), (Block(tuple(range(len(sizes))), product_law(sizes, attenuation)),)
    )


@given(st.integers(2, 8), st.floats(0.01, 0.99))
def test_property_1_is_the_inverse_and_what_the_channel_divides_by(
    n: int, attenuation: float
) -> None:
    inverse = property_1(n, attenuation)
    np.testing.assert_allclose(inverse @ randomization(n, attenuation), np.eye(n), atol=1e-12)
    channel = Channel(mechanism([n], [attenuation]), ("a1",))
    found = np.stack([channel.inverse.apply(unit) for unit in np.eye(n)], axis=1)
    np.testing.assert_allclose(found, inverse, rtol=1e-12, atol=1e-12 / attenuation)


@pytest.mark.slow
@given(cases)
def test_property_2_is_the_dense_inverse_and_the_interaction_transform(
    case: list[tuple[int, float]],
) -> None:
    sizes, attenuation = [n for n, _ in case], [value for _, value in case]
    channel = Channel(mechanism(sizes, attenuation), [f"a{i + 1}" for i in range(len(sizes))])
    cells = int(np.prod(sizes))
    dense = np.ones((1, 1))
    for n, value in case:
        dense = np.kron(dense, randomization(n, value))
    printed = property_2(sizes, attenuation)
    scale = np.abs(printed).max()
    np.testing.assert_allclose(printed @ dense, np.eye(cells), atol=1e-11 * scale)
    units = np.eye(cells).reshape(cells, *sizes)
    found = np.stack([channel.inverse.apply(unit).ravel() for unit in units], axis=1)
    np.testing.assert_allclose(found, printed, atol=1e-11 * scale)
    by_hand = np.ones(())
    for value in attenuation:
        by_hand = np.multiply.outer(by_hand, [1.0, 1 / value])
    transform = [apply_eigenvalues(unit, by_hand, range(len(sizes))).ravel() for unit in units]
    np.testing.assert_allclose(np.stack(transform, axis=1), printed, atol=1e-11 * scale)


def test_the_papers_example_of_125_cells_is_estimated_from_its_four_groups_of_terms() -> None:
    sizes, attenuation = [5, 5, 5], [0.6, 0.7, 0.4]
    counts = np.random.default_rng(1).multinomial(100, np.full(125, 1 / 125)).reshape(5, 5, 5)
    tabulation = Tabulation.from_counts(counts)
    # Section 6: each factor is I − P* over λ, or P*.
    rest = np.eye(5) - uniform(5)
    inverse = np.zeros((125, 125))
    for chosen in product((False, True), repeat=3):
        term = np.ones((1, 1))
        for deviation, value in zip(chosen, attenuation, strict=True):
            term = np.kron(term, rest / value if deviation else uniform(5))
        inverse += term
    channel = Channel(mechanism(sizes, attenuation), ("a1", "a2", "a3"))
    inference = Inference(Counts.of(channel.mechanism, tabulation), channel.attributes)
    expected = inverse @ (counts.ravel() / 100)
    np.testing.assert_allclose(inference.values.ravel(), expected, atol=1e-13)
    matrix = np.linalg.inv(inverse)
    covariance = inverse @ np.diag(counts.ravel() / 100) @ inverse.T - np.diag(expected)
    single = np.zeros((5, 5, 5))
    single[2, 0, 4] = 1
    row = np.ravel_multi_index((2, 0, 4), (5, 5, 5))
    error = inference.linear(single).standard_error
    assert error**2 == pytest.approx(covariance[row, row] / 100, rel=1e-12)
    assert np.linalg.cond(matrix) == pytest.approx(channel.condition, rel=1e-9)


@pytest.mark.slow
def test_a_joint_table_of_ten_million_cells_is_inverted_without_a_matrix() -> None:
    sizes, attenuation = [10] * 7, [0.3, 0.5, 0.7, 0.9, 0.4, 0.6, 0.8]
    channel = Channel(mechanism(sizes, attenuation), [f"a{i + 1}" for i in range(7)])
    # A truth that is a product of margins: its image is known without any table of that size.
    margins = [np.random.default_rng(i).dirichlet(np.ones(10)) for i in range(7)]
    truth, image = np.ones(()), np.ones(())
    for margin, value in zip(margins, attenuation, strict=True):
        truth = np.multiply.outer(truth, margin)
        image = np.multiply.outer(image, value * margin + (1 - value) / 10)
    found = channel.inverse.apply(image)
    assert found.size == 10**7
    assert np.abs(found - truth).max() <= 1e-12 * truth.max() / np.prod(attenuation)


@given(
    st.integers(2, 5), st.integers(2, 5), st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.data()
)
def test_equation_9_a_covariance_is_multiplied_by_both_lambda(
    a: int, b: int, first: float, second: float, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(0, 9), min_size=a * b, max_size=a * b).filter(any))
    table = np.array(weights, dtype=float).reshape(a, b) / sum(weights)
    after = randomization(a, first) @ table @ randomization(b, second).T
    np.testing.assert_allclose(
        indicator_covariance(after), first * second * indicator_covariance(table), atol=1e-14
    )
    share = predict_covariance(mechanism([a, b], [first, second]), "a1", "a2").share
    assert share == pytest.approx(first * second, rel=1e-12)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.floats(0.05, 0.95))
def test_the_joint_law_is_equation_6_on_the_cartesian_product(
    sizes: list[int], attenuation: float
) -> None:
    law = joint_of_attenuation(sizes, attenuation)
    channel = Channel(
        Mechanism(Schema.anonymous(sizes), (Block(tuple(range(len(sizes))), law),)),
        [f"a{i + 1}" for i in range(len(sizes))],
    )
    cells = int(np.prod(sizes))
    units = np.eye(cells).reshape(cells, *sizes)
    forward = np.stack([channel.forward.apply(unit).ravel() for unit in units], axis=1)
    np.testing.assert_allclose(forward, randomization(cells, attenuation), atol=1e-14)
    inverse = np.stack([channel.inverse.apply(unit).ravel() for unit in units], axis=1)
    np.testing.assert_allclose(inverse, property_1(cells, attenuation), atol=1e-11 / attenuation)
