"""The curator's mode: invariance exactly, strata, and what the contraction of numbers is not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws import InvariantChannel, MatrixChannel, ProductLaw
from deniable.laws.bistochastic import bistochastic_channel
from deniable.randomness import SeededRandomness
from deniable.release import post_randomization
from deniable.release.post_randomization import contract_to_mean, randomize_strata
from laws import strategies
from unit.laws.test_invariant import exact_matrix


def lambda_matrix(n: int, attenuation: float) -> MatrixChannel:
    return bistochastic_channel(attenuation * np.eye(n) + (1 - attenuation) / n)


@st.composite
def invariant_responses(draw: st.DrawFn) -> InvariantChannel:
    n = draw(st.integers(2, 5))
    columns = [draw(strategies.compositions(n, 1 << 16)) for _ in range(n)]
    try:
        base = MatrixChannel((n,), 16, tuple(zip(*columns, strict=True)))
    except InputError:  # singular
        base = lambda_matrix(n, 0.5)
    counts = draw(st.lists(st.integers(0, 10**6), min_size=n, max_size=n).filter(any))
    return InvariantChannel(base, tuple(counts), draw(st.floats(0, 1).filter(bool)))


@given(invariant_responses())
def test_the_expected_marginal_is_the_originals_exactly(response: InvariantChannel) -> None:
    matrix = exact_matrix(response)
    n = len(response.counts)
    for x in range(n):
        assert sum(matrix[y][x] for y in range(n)) == 1
    for y in range(n):
        expected = sum(matrix[y][x] * response.counts[x] for x in range(n))
        assert expected == response.counts[y]


@given(invariant_responses())
def test_the_matrix_in_floating_point_is_the_exact_one(response: InvariantChannel) -> None:
    exact = np.array([[float(entry) for entry in row] for row in exact_matrix(response)])
    np.testing.assert_allclose(response.matrix(), exact, rtol=1e-12, atol=1e-15)


@given(invariant_responses())
def test_the_exact_matrix_is_the_two_stages_written_out(response: InvariantChannel) -> None:
    n = len(response.counts)
    answer = [[Fraction(w, 1 << response.base.bits) for w in row] for row in response.base.weights]
    seen = [sum(answer[y][x] * response.counts[x] for x in range(n)) for y in range(n)]
    alpha = Fraction(response.alpha)
    for x in range(n):
        for back in range(n):
            two_stages = sum(
                answer[y][x] * answer[y][back] * response.counts[back] / seen[y] for y in range(n)
            )
            stay = (1 - alpha) if x == back else 0
            assert exact_matrix(response)[back][x] == alpha * two_stages + stay


def test_draws_follow_the_matrix_whatever_the_category() -> None:
    base = MatrixChannel((3,), 4, ((8, 2, 1), (4, 12, 5), (4, 2, 10)))
    response = InvariantChannel(base, (50, 10, 140), 0.7)
    sampler, source = response.sampler(), SeededRandomness(5)
    count = 60_000
    for x in range(3):
        (drawn,) = sampler.randomize([np.full(count, x, dtype=np.uint8)], source)
        expected = response.matrix()[:, x]
        observed = np.bincount(drawn, minlength=3) / count
        errors = (observed - expected) / np.sqrt(expected * (1 - expected) / count)
        assert np.abs(errors).max() < 5


def test_the_average_of_many_releases_has_the_originals_marginal_and_one_release_nearly() -> None:
    random = np.random.default_rng(3)
    codes = random.choice(4, size=5000, p=[0.7, 0.2, 0.06, 0.04]).astype(np.uint8)
    response = InvariantChannel.for_codes(lambda_matrix(4, 0.3), codes)
    original = np.bincount(codes, minlength=4)
    sampler, source = response.sampler(), SeededRandomness(8)
    totals = np.zeros(4)
    for _ in range(60):
        (drawn,) = sampler.randomize([codes], source)
        assert (drawn != codes).mean() > 0.1
        totals += np.bincount(drawn, minlength=4)
    matrix = response.matrix()
    spread = np.sqrt((matrix * (1 - matrix)) @ original / 60)
    assert np.abs((totals / 60 - original) / spread).max() < 4
    # Plain PRAM with the same matrix would move them to where no invariant release is.
    moved = lambda_matrix(4, 0.3).matrix() @ original
    assert np.abs((moved - original) / spread).max() > 100


def test_a_category_that_nobody_has_is_never_reported() -> None:
    codes = np.array([0, 0, 1, 1, 1], dtype=np.uint8).repeat(400)
    response = InvariantChannel.for_codes(lambda_matrix(3, 0.2), codes)
    (drawn,) = response.sampler().randomize([codes], SeededRandomness(2))
    assert set(drawn.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("base", "counts", "alpha", "words"),
    [
        (lambda_matrix(3, 0.5), (1, 2), 1.0, "one count per category"),
        (MatrixChannel((2,), 3, ((7, 1), (1, 4), (0, 3))), (1, 2), 1.0, "square"),
        (MatrixChannel((2,), 3, ((8, 1), (0, 7))), (1, 2), 1.0, "above 0 everywhere"),
        (lambda_matrix(2, 0.5), (0, 0), 1.0, "at least one record"),
        (lambda_matrix(2, 0.5), (3, -1), 1.0, "at least one record"),
        (lambda_matrix(2, 0.5), (3, 1), 0.0, "α of invariant PRAM"),
        (lambda_matrix(2, 0.5), (3, 1), 1.5, "α of invariant PRAM"),
    ],
)
def test_an_invariant_response_that_makes_no_sense_is_refused(
    base: MatrixChannel, counts: tuple[int, ...], alpha: float, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        InvariantChannel(base, counts, alpha)


def test_each_stratum_is_randomized_by_its_own_matrix_and_rows_stay_in_place() -> None:
    count = 30_000
    strata = np.arange(count) % 3
    columns = [
        (np.arange(count) // 3 % 2).astype(np.uint8),
        (np.arange(count) % 5).astype(np.uint8),
    ]
    laws = {i: ProductLaw.from_levels((2, 5), (level, 1.0)) for i, level in enumerate((0.1, 1, 4))}
    drawn = randomize_strata(
        columns, strata, {i: law.sampler() for i, law in laws.items()}, SeededRandomness(4)
    )
    assert [d.shape for d in drawn] == [(count,), (count,)]
    for i, law in laws.items():
        kept = (drawn[0] == columns[0])[strata == i].mean()
        expected = law.keep_probabilities()[0]
        assert abs(kept - expected) < 5 * np.sqrt(expected * (1 - expected) * 3 / count)


def test_invariance_holds_within_each_stratum() -> None:
    random = np.random.default_rng(9)
    strata = random.integers(0, 2, size=4000)
    codes = np.where(strata == 0, random.integers(0, 2, 4000), 2).astype(np.uint8)
    plans = {
        i: InvariantChannel.for_codes(lambda_matrix(3, 0.4), codes[strata == i]).sampler()
        for i in (0, 1)
    }
    (drawn,) = randomize_strata([codes], strata, plans, SeededRandomness(1))
    assert set(drawn[strata == 0].tolist()) == {0, 1}
    assert set(drawn[strata == 1].tolist()) == {2}


def test_a_stratum_without_rows_or_without_a_matrix_is_named() -> None:
    sampler = lambda_matrix(2, 0.5).sampler()
    codes, strata = np.zeros(4, dtype=np.uint8), np.array([0, 0, 2, 2])
    with pytest.raises(InputError, match="'south' has no rows"):
        randomize_strata(
            [codes],
            strata,
            {0: sampler, 1: sampler, 2: sampler},
            SeededRandomness(0),
            ("north", "south", "west"),
        )
    with pytest.raises(InputError, match="number 3 occurs in the table but has no matrix"):
        randomize_strata([codes], strata, {0: sampler}, SeededRandomness(0))


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(values, st.floats(0.01, 0.99))
def test_a_contracted_column_is_the_papers_matrix_times_the_values(
    column: list[float], attenuation: float
) -> None:
    x = np.array(column)
    n = len(x)
    matrix = attenuation * np.eye(n) + (1 - attenuation) / n
    scale = max(1.0, float(np.abs(x).max()))
    np.testing.assert_allclose(contract_to_mean(x, attenuation), matrix @ x, atol=1e-12 * scale)


@given(values, values, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_the_mean_stays_and_covariances_shrink_by_both_lambda(
    first: list[float], second: list[float], one: float, two: float
) -> None:
    # Equation (9), exactly, not in expectation.
    n = min(len(first), len(second))
    x, y = np.array(first[:n]), np.array(second[:n])
    x_, y_ = contract_to_mean(x, one), contract_to_mean(y, two)
    scale = max(1.0, float(np.abs(x).max()), float(np.abs(y).max()))
    assert x_.mean() == pytest.approx(x.mean(), abs=1e-12 * scale)
    before, after = (
        np.mean((x - x.mean()) * (y - y.mean())),
        np.mean((x_ - x_.mean()) * (y_ - y_.mean())),
    )
    assert after == pytest.approx(one * two * before, abs=1e-11 * scale**2)


@given(values, st.floats(0.01, 0.99))
def test_whoever_knows_lambda_computes_every_value_back(
    column: list[float], attenuation: float
) -> None:
    # What NUMERICAL_STATEMENT says in words.
    x = np.array(column)
    released = contract_to_mean(x, attenuation)
    recovered = released.mean() + (released - released.mean()) / attenuation
    scale = max(1.0, float(np.abs(x).max()))
    np.testing.assert_allclose(recovered, x, atol=1e-10 * scale)
    assert np.all(np.diff(released[np.argsort(x)]) >= 0)


def test_values_are_pulled_towards_the_mean_of_their_stratum() -> None:
    x, strata = np.array([0.0, 10.0, 100.0, 300.0]), np.array([0, 1, 0, 1])
    np.testing.assert_allclose(contract_to_mean(x, 0.5, strata), [25, 82.5, 75, 227.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_or_infinite_number_is_named_by_its_row_and_not_shown(bad: float) -> None:
    with pytest.raises(InputError, match="row 2 of a numerical attribute"):
        contract_to_mean(np.array([1.0, bad, 3.0]), 0.5)


def test_no_rows_and_a_lambda_that_is_none_are_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        contract_to_mean(np.array([]), 0.5)
    for attenuation in (0.0, 1.0, np.nan):
        with pytest.raises(InputError, match="λ"):
            contract_to_mean(np.array([1.0]), attenuation)


def test_the_statements_say_what_is_not_guaranteed() -> None:
    assert "no differential-privacy guarantee" in post_randomization.NUMERICAL_STATEMENT
    assert "uses the data" in post_randomization.INVARIANT_STATEMENT
    assert "not differentially private" in post_randomization.INVARIANT_STATEMENT
    assert "protected by nothing" in post_randomization.STRATUM_STATEMENT
