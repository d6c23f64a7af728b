"""Metrics of response matrices against their definitions, brute force and simulation."""

import itertools

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.prior import checked_prior
from deniable.solvers.matrices import response, schemes
from unit.solvers.matrices.priors import SKEWED, error_by_definition, random_mechanism


def test_privacy_is_the_error_rate_of_the_best_of_all_ways_to_guess() -> None:
    generator = np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    for _ in range(20):
        matrix = random_mechanism(generator, 3, 4)
        best = max(
            sum(matrix[y, guess[y]] * prior[guess[y]] for y in range(4))
            for guess in itertools.product(range(3), repeat=4)
        )
        assert response.privacy(matrix, prior) == pytest.approx(1 - best, abs=1e-14)
        assert response.accuracy(matrix, prior) == pytest.approx(best, abs=1e-14)


def test_an_inconsistent_estimate_is_no_better_than_the_bayes_estimate() -> None:
    """Theorem 4: any mixture of guesses per output scores at most as much."""
    generator = np.random.default_rng(3)
    score = generator.normal(size=(4, 4))
    matrix = random_mechanism(generator, 4, 5)
    joint = matrix * SKEWED
    best = float(response.accuracy(matrix, SKEWED, score))
    for _ in range(200):
        mixture = generator.dirichlet(np.full(4, 0.3), size=5)  # Pr[guess | output]
        assert float(np.einsum("yg,gx,yx->", mixture, score, joint)) <= best + 1e-12


def test_a_score_of_one_s_own_has_the_brute_force_accuracy() -> None:
    generator = np.random.default_rng(4)
    score = -np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    matrix = random_mechanism(generator, 4, 4)
    joint = matrix * SKEWED
    by_hand = [
        [sum(score[g, x] * joint[y, x] for x in range(4)) for g in range(4)] for y in range(4)
    ]
    expected = np.max(by_hand, axis=1).sum()
    assert float(response.accuracy(matrix, SKEWED, score)) == pytest.approx(expected)


def test_a_score_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InputError, match="4 x 4"):
        response.accuracy(np.eye(4), SKEWED, np.eye(3))


def test_no_matrix_has_a_worst_posterior_below_the_largest_prior() -> None:
    """Theorem 5, and the matching floor of the average."""
    generator = np.random.default_rng(5)
    matrices = np.stack([random_mechanism(generator, 4, 4) for _ in range(500)])
    assert (response.worst_posterior(matrices, SKEWED) >= 0.4 - 1e-12).all()
    assert (response.privacy(matrices, SKEWED) <= 0.6 + 1e-12).all()
    flat = np.full((4, 4), 0.25)
    assert response.worst_posterior(flat, SKEWED) == pytest.approx(0.4)


def test_an_output_that_never_occurs_has_no_posterior() -> None:
    matrix = np.array([[1.0, 0.5], [0.0, 0.5], [0.0, 0.0]])
    assert response.worst_posterior(matrix, np.array([0.5, 0.5])) == 1.0
    assert np.isfinite(response.record_mse(matrix, np.array([0.5, 0.5])))


@pytest.mark.parametrize("n_outputs", [4, 5, 9])
def test_the_error_is_the_covariance_of_the_estimate_from_multinomial_counts(
    n_outputs: int,
) -> None:
    generator = np.random.default_rng(n_outputs)
    matrix = random_mechanism(generator, 4, n_outputs)
    inverse = response.left_inverse(matrix, SKEWED)
    occurrence = matrix @ SKEWED
    covariance = inverse @ (np.diag(occurrence) - np.outer(occurrence, occurrence)) @ inverse.T
    assert np.allclose(inverse @ matrix, np.eye(4), atol=1e-9)
    expected = np.trace(covariance) / 4
    assert float(response.record_mse(matrix, SKEWED)) == pytest.approx(expected, rel=1e-8)
    by_definition = error_by_definition(matrix, SKEWED) / 4
    assert float(response.record_mse(matrix, SKEWED)) == pytest.approx(by_definition, rel=1e-7)


def test_the_error_agrees_with_simulation_and_theorem_6_as_printed_does_not() -> None:
    generator = np.random.default_rng(6)
    matrix = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.3], [0.1, 0.2, 0.6]])
    prior = np.array([0.5, 0.3, 0.2])
    n_records = 2_000
    inverse = np.linalg.inv(matrix)
    counts = generator.multinomial(n_records, matrix @ prior, size=40_000)
    squares = ((counts / n_records @ inverse.T - prior) ** 2).mean(axis=1)
    error = 5 * squares.std() / len(squares) ** 0.5
    correct = float(response.record_mse(matrix, prior)) / n_records
    assert abs(squares.mean() - correct) < error
    theta = matrix @ prior
    covariance = (np.diag(theta) - np.outer(theta, theta)) / n_records
    own = sum((inverse[k] ** 2 * np.diag(covariance)).sum() for k in range(3))
    others = sum(
        2 * inverse[k, i] * inverse[k, j] * covariance[i, j]
        for k in range(3)
        for i in range(3)
        for j in range(3)
        if i != j
    )
    assert abs(squares.mean() - (own + others) / 3) > error


def test_a_batch_gives_what_one_at_a_time_gives() -> None:
    generator = np.random.default_rng(7)
    for n_outputs in (4, 7):
        batch = np.stack([random_mechanism(generator, 4, n_outputs) for _ in range(6)])
        for measure in (response.privacy, response.worst_posterior, response.record_mse):
            one = [float(measure(matrix, SKEWED)) for matrix in batch]
            assert np.allclose(measure(batch, SKEWED), one, rtol=1e-9)
        for measure_alone in (response.epsilon, response.condition):
            one = [float(measure_alone(matrix)) for matrix in batch]
            assert np.allclose(measure_alone(batch), one, rtol=1e-9)


def test_a_singular_matrix_has_an_infinite_error_and_condition_alone_and_in_a_batch() -> None:
    flat = np.full((4, 4), 0.25)
    batch = np.stack([flat, np.eye(4)])
    assert np.isinf(response.record_mse(flat, SKEWED))
    assert np.isinf(response.record_mse(batch, SKEWED)[0])
    assert float(response.record_mse(batch, SKEWED)[1]) == pytest.approx((1 - SKEWED @ SKEWED) / 4)
    assert np.isinf(response.record_mse(np.full((2, 4), 0.5), SKEWED))
    assert np.isinf(response.condition(flat))
    with pytest.raises(InputError, match="singular"):
        response.left_inverse(flat, SKEWED)


def test_the_condition_of_warner_s_matrix_is_the_inverse_of_its_attenuation() -> None:
    matrix = schemes.warner(5, 0.6)
    assert float(response.condition(matrix)) == pytest.approx(1 / ((5 * 0.6 - 1) / 4))


def test_epsilon_is_the_largest_log_ratio_and_infinite_where_a_category_is_excluded() -> None:
    assert float(response.epsilon(schemes.frapp(4, 9.0))) == pytest.approx(np.log(9.0))
    assert np.isinf(response.epsilon(np.eye(3)))
    never = np.vstack([schemes.frapp(3, 2.0), np.zeros(3)])
    assert float(response.epsilon(never)) == pytest.approx(np.log(2.0))


def test_the_left_inverse_is_unbiased_for_any_truth_and_best_at_its_prior() -> None:
    generator = np.random.default_rng(8)
    matrix = random_mechanism(generator, 4, 8)
    mine = response.left_inverse(matrix, SKEWED)
    other = response.left_inverse(matrix, np.full(4, 0.25))
    occurrence = np.diag(matrix @ SKEWED)
    for inverse in (mine, other):
        assert np.allclose(inverse @ matrix, np.eye(4), atol=1e-8)
    assert np.trace(mine @ occurrence @ mine.T) < np.trace(other @ occurrence @ other.T)


def test_blending_meets_the_bound_and_leaves_a_good_matrix_alone() -> None:
    generator = np.random.default_rng(10)
    batch = np.stack([random_mechanism(generator, 4, 4) for _ in range(300)])
    blended = response.blend_to_bound(batch, SKEWED, 0.6)
    assert (response.worst_posterior(blended, SKEWED) <= 0.6 + 1e-12).all()
    assert np.allclose(blended.sum(axis=1), 1.0)
    good = response.worst_posterior(batch, SKEWED) <= 0.6
    assert good.any()
    assert (blended[good] == batch[good]).all()
    # And by as little as possible: the others end exactly at the bound.
    assert np.allclose(response.worst_posterior(blended[~good], SKEWED), 0.6)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5, 0.0], "entry 3 is not above 0"),
        ([0.5, 0.6], "sum to 1.1"),
        ([0.5, float("nan")], "entry 2"),
        ([1.0], "2 categories"),
        ([[0.5, 0.5]], "flat list"),
        (["a", "b"], "flat list of numbers"),
    ],
)
def test_a_prior_that_is_no_distribution_is_refused(prior: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_prior(prior)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(30))
def test_what_sums_to_one_up_to_rounding_stays_as_it_is(seed: int) -> None:
    # [0.7, 0.2, 0.1] sums to 1 − 2⁻⁵³, and changed each time it was divided by that.
    random = np.random.default_rng(seed)
    typed = [0.7, 0.2, 0.1] if seed == 0 else random.dirichlet(np.ones(2 + 7 * seed)).round(8)
    prior = np.array(typed) / np.sum(typed) if seed % 2 else np.array(typed)
    if seed:
        prior[0] += 1.0 - prior.sum()
    once = checked_prior(prior)
    np.testing.assert_array_equal(checked_prior(once), once)
    matrix = response.checked_response(np.stack([once, once[::-1]], axis=1), 2)
    np.testing.assert_array_equal(response.checked_response(matrix, 2), matrix)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.4]], "column 2"),
        ([[1.5, 0.5], [-0.5, 0.5]], "at least 0"),
        ([[1.0], [0.0]], "2 categories"),
        ([[1.0, 0.5], [0.0]], "rows of numbers"),
    ],
)
def test_a_matrix_that_is_no_response_matrix_is_refused(matrix: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        response.checked_response(matrix, 2)  # type: ignore[arg-type]


def test_numbers_near_the_end_of_the_range_are_refused_or_infinite() -> None:
    with pytest.raises(InputError, match="sum to inf"):
        checked_prior([1.7e308, 1.7e308])
    with pytest.raises(InputError, match="column 1 does not sum to 1"):
        response.checked_response([[1.7e308, 0.5], [1.7e308, 0.5]], 2)
    nearly = np.array([[1.0, 5e-324], [5e-324, 1.0]])
    assert response.epsilon(nearly) == np.inf
    alike = np.array([[0.5, 0.5], [0.5, 0.5]]) + 1e-170 * np.eye(2)
    prior = np.array([0.5, 0.5])
    assert response.record_mse(alike, prior) == np.inf
    badly = np.array([[1.0, 1.0], [0.0, 1e-200]])
    assert response.record_mse(badly, prior) == np.inf
