"""Score intervals against their definition, with variances from the dense channel."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.estimate.inference import Inference, normal_quantile
from deniable.estimate.intervals import ShareVariance, has_score_intervals, share_variance
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import Identity, MatrixChannel, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import Target, cell_variance_range
from marked import slow_after
from unit.dense import MECHANISMS, NAMES, anonymous, dense_channel, dense_inverse
from unit.mechanism import merged

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
both_targets = pytest.mark.parametrize("target", ["table", "population"])
LEVELS = (0.5, 0.8, 0.95, 0.999)

Array = NDArray[np.float64]


def few_records(mechanism: Mechanism, names: tuple[str, ...], n: int, seed: int) -> Counts:
    """A small released table, so that many estimates are near 0 or below."""
    random = np.random.default_rng(seed)
    matrix = dense_channel(mechanism, names)
    truth = random.dirichlet(np.full(matrix.shape[1], 0.4))
    counts = random.multinomial(n, matrix @ truth)
    return Counts.of(mechanism, counts.reshape(Channel(mechanism, names).n_outputs))


def variance_by_definition(
    rows: Array, matrix: Array, made: Inference, cell: int, share: float
) -> float:
    """n V(c) before it is kept from going below what it can be: the second moment that is seen,
    moved along the regression of second moments on estimates, over all records and outputs.

    Args:
        rows: the estimator, cells × released cells.
        matrix: Pr[released | true], released cells × cells.
        made: what was released; nearest to its estimate are the people it is worked out for.
        cell: which.
        share: c.
    """
    people = project_to_simplex(made.values).ravel()
    moved = rows[cell]
    covariance = variance = 0.0
    if made.target == "table":
        # Given who they are: person by person.
        for x, weight in enumerate(people):
            chance = matrix[:, x]
            mean, square = chance @ moved, chance @ moved**2
            covariance += weight * (chance @ ((moved - mean) * (moved**2 - square)))
            variance += weight * (chance @ (moved - mean) ** 2)
    else:
        chance = matrix @ people
        mean, square = chance @ moved, chance @ moved**2
        covariance = chance @ ((moved - mean) * (moved**2 - square))
        variance = chance @ (moved - mean) ** 2
    seen = made.counts.frequencies.ravel()
    second = seen @ moved**2 + covariance / variance * (share - seen @ moved)
    return float(second - (share if made.target == "table" else share**2))


def compare(made: Inference, matrix: Array, rows: Array) -> tuple[int, int]:
    """Compare n V(0) and n V(1) of all cells with the definition, where these are possible; return
    how many were compared, and how many there are."""
    found = share_variance(made)
    least = np.broadcast_to(cell_variance_range(made.channel)[0], made.values.shape).ravel()
    nobody, everybody = (
        np.array(
            [
                variance_by_definition(rows, matrix, made, cell, share)
                for cell in range(made.values.size)
            ]
        )
        for share in (0.0, 1.0)
    )
    compared = 0
    for value, expected in ((found.at_zero, nobody), (found.at_one, everybody)):
        assert (value.ravel() >= least).all()
        possible = np.minimum(nobody, expected) >= least
        np.testing.assert_allclose(
            value.ravel()[possible], expected[possible], rtol=1e-6, atol=1e-10
        )
        compared += int(possible.sum())
    return compared, 2 * made.values.size


@every_mechanism
@both_targets
def test_the_variance_at_a_share_is_that_of_the_dense_channel(
    mechanism: Mechanism, target: Target
) -> None:
    names = mechanism.schema.names
    compared = total = 0
    for chosen in (names, (names[0], names[-1]), (names[-1], names[0])):
        matrix, rows = dense_channel(mechanism, chosen), dense_inverse(mechanism, chosen)
        made = Inference(few_records(mechanism, chosen, 80, 3), chosen, target)
        found, all_cells = compare(made, matrix, rows)
        compared, total = compared + found, total + all_cells
    assert compared > total / 2


@pytest.mark.parametrize("name", slow_after(4, merged.MECHANISMS))
@both_targets
def test_all_parts_of_a_merged_attribute_have_the_variance_of_the_dense_channel(
    name: str, target: Target
) -> None:
    mechanism = merged.MECHANISMS[name]
    dense, left = merged.dense(mechanism), merged.left_inverse(mechanism)
    compared = total = 0
    for question in merged.QUESTIONS:
        made = Inference(merged.counts_of(mechanism, question, n=200), question, target)
        assert has_score_intervals(made) == made.channel.complete
        if made.channel.complete:
            member = merged.sums(mechanism, question)
            # What the other attributes are does not matter: the first true value in each cell.
            seen = np.stack(
                [merged.counted(mechanism, question, u).ravel() for u in np.eye(len(dense))], axis=1
            )
            matrix = seen @ dense[:, member.argmax(axis=1)]
            rows = member @ left @ seen.T / seen.sum(axis=1)
            found, all_cells = compare(made, matrix, rows)
            compared, total = compared + found, total + all_cells
    assert compared > total / 2 > 0


positive = st.floats(0, 5)
SHARES = np.arange(4001) / 4000


def held(at: Array, estimate: float, quantile: float) -> Array:
    """The shares of a grid that do not make an estimate surprising, and the one nearest to it.

    Args:
        at: V at the shares of the grid.
    """
    found = SHARES[(estimate - SHARES) ** 2 < quantile**2 * at * (1 - 1e-9)]
    return np.append(found, np.clip(estimate, 0, 1))


@given(
    inside=positive,
    outside=positive,
    sampling=st.sampled_from([0.0, 1.0]),
    n=st.integers(1, 500),
    estimate=st.floats(-1.5, 2.5),
    level=st.sampled_from(LEVELS),
    step=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
)
def test_the_ends_are_those_of_the_inequalities_solved_on_a_grid(
    inside: float,
    outside: float,
    sampling: float,
    n: int,
    estimate: float,
    level: float,
    step: float,
) -> None:
    variance = ShareVariance(np.array([outside]), np.array([inside]), sampling, n, np.full(1, step))
    at = (inside * SHARES + outside * (1 - SHARES) + sampling * SHARES * (1 - SHARES)) / n
    for share, expected in zip(SHARES[::100], at[::100], strict=True):
        assert variance.at(np.array([share])) == pytest.approx(expected, abs=1e-12)
    # A fifth more misses are allowed where the estimate is moved outwards by part of a step.
    less = NormalDist().inv_cdf(0.5 + level**1.2 / 2)
    moved = step / n * max(0.5, 1 - less * np.sqrt(1.2 * np.log(1 / level)))
    sets = [
        held(at, estimate, normal_quantile(level)),
        held(at, estimate - moved, less),
        held(at, estimate + moved, less),
    ]
    (low,), (high,) = variance.interval(np.array([estimate]), level)
    within = 1.001 / 4000
    assert low == pytest.approx(min(s.min() for s in sets), abs=within)
    assert high == pytest.approx(max(s.max() for s in sets), abs=within)


@every_mechanism
@both_targets
def test_an_interval_is_possible_holds_the_estimate_and_grows_with_the_level(
    mechanism: Mechanism, target: Target
) -> None:
    names = mechanism.schema.names
    for seed in range(20):
        (estimate,) = Shares(names, target=target).answer(few_records(mechanism, names, 60, seed))
        assert estimate.interval_method == "score"
        before = None
        for level in LEVELS:
            low, high = estimate.confidence_interval(level)
            assert low.min() >= 0
            assert high.max() <= 1
            assert np.all(low <= high)
            values = estimate.unbiased
            inside = (values >= 0) & (values <= 1)
            assert np.all((low <= values + 1e-12) & (values <= high + 1e-12) | ~inside)
            if before is not None:
                assert np.all(low <= before[0] + 1e-12)
                assert np.all(high >= before[1] - 1e-12)
            before = low, high


@both_targets
@pytest.mark.parametrize("zeros", [0, 1, 7, 35, 69, 70])
@pytest.mark.parametrize(
    "law",
    [
        ProductLaw.from_levels((2,), (1.5,)),
        MatrixChannel.from_probabilities(np.array([[0.9, 0.05], [0.05, 0.65], [0.05, 0.3]])),
    ],
    ids=["product law", "three answers"],
)
def test_of_two_categories_one_interval_is_the_other_from_the_far_end(
    law: ProductLaw | MatrixChannel, zeros: int, target: Target
) -> None:
    mechanism = Mechanism.of(law)
    counts = np.zeros(mechanism.n_outputs[0])
    counts[:2] = zeros, 70 - zeros
    (estimate,) = Shares(("a1",), target=target).answer(Counts.of(mechanism, counts))
    low, high = estimate.confidence_interval(0.9)
    np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-12)


def test_without_randomization_it_is_wilsons_with_steps_and_for_the_table_a_point() -> None:
    mechanism = anonymous(
        (3, 2),
        Block((0,), Identity((3,))),
        Block((1,), ProductLaw.from_levels((2,), (1.0,))),
        keep=(0,),
    )
    counted = Counts.of(mechanism, np.array([0, 3, 47]))
    (estimate,) = Shares(("a1",), target="population").answer(counted)
    low, high = estimate.confidence_interval(0.95)
    p, n = counted.frequencies, 50

    def wilson(shares: Array, level: float) -> Array:
        z = normal_quantile(level)
        middle = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
        spread = np.maximum(shares * (1 - shares) / n + z**2 / (4 * n**2), 0)
        half = z / (1 + z**2 / n) * np.sqrt(spread)
        return np.clip([middle - half, middle + half], 0, 1)

    # One record is a step: 0.533 of it are added on either side, for 0.95^1.2.
    moved = 0.5328258 / n
    both = [wilson(p, 0.95), wilson(p - moved, 0.95**1.2), wilson(p + moved, 0.95**1.2)]
    np.testing.assert_allclose(low, np.min(both, axis=0)[0], atol=1e-6)
    np.testing.assert_allclose(high, np.max(both, axis=0)[1], atol=1e-6)
    assert np.all(low < wilson(p, 0.95)[0] + (p == 0))
    low, high = Shares(("a1",)).answer(counted)[0].confidence_interval(0.95)
    np.testing.assert_array_equal(low, p)
    np.testing.assert_array_equal(high, p)


def test_beside_a_column_released_as_it_is_every_category_of_that_has_its_own_interval() -> None:
    mechanism = anonymous(
        (3, 2),
        Block((0,), ProductLaw.from_levels((3,), (1.0,))),
        Block((1,), Identity((2,))),
        keep=(1,),
    )
    counts = np.array([[5, 200], [4, 90], [2, 70]])
    low, high = (
        Shares(("a1", "a2")).answer(Counts.of(mechanism, counts))[0].confidence_interval(0.8)
    )
    for value in range(2):
        own = Counts.of(mechanism, counts[:, value])
        ends = Shares(("a1",)).answer(own)[0].confidence_interval(0.8)
        share = own.total / counts.sum()
        for mine, alone in zip((low, high), ends, strict=True):
            inside = alone < 1
            np.testing.assert_allclose(mine[inside, value], share * alone[inside], rtol=1e-9)
    empty = np.array([[0, 200], [0, 90], [0, 70]])
    (estimate,) = Shares(("a1", "a2")).answer(Counts.of(mechanism, empty))
    for end in estimate.confidence_interval(0.95):
        np.testing.assert_allclose(end[:, 0], 0, atol=1e-12)


@both_targets
def test_of_many_records_it_is_the_estimate_and_so_many_standard_errors(target: Target) -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((3, 4), (2.0, 2.0)))
    random = np.random.default_rng(5)
    counts = random.multinomial(4_000_000, random.dirichlet(np.full(12, 5.0))).reshape(3, 4)
    (estimate,) = Shares(("a1", "a2"), target=target).answer(Counts.of(mechanism, counts))
    low, high = estimate.confidence_interval(0.95)
    half = normal_quantile(0.95) * estimate.standard_error
    np.testing.assert_allclose((low + high) / 2, estimate.values, atol=2e-5)
    np.testing.assert_allclose((high - low) / 2, half, rtol=0.01)


def test_a_cell_that_seems_to_hold_everybody_has_an_interval() -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((3,), (1.0,)))
    counts = np.array([50, 0, 0])
    (estimate,) = Shares(("a1",)).answer(Counts.of(mechanism, counts))
    assert estimate.unbiased[0] > 1
    low, high = estimate.confidence_interval(0.95)
    assert low[0] == high[0] == 1
    wide = estimate.confidence_interval(1 - 1e-12)
    assert wide[0][0] < 1
    assert wide[1][1] > 0


def plain_ends(estimate: Estimate, level: float) -> tuple[Array, Array]:
    half = normal_quantile(level) * estimate.standard_error
    # Cut to where shares can be.
    return np.clip(estimate.unbiased - half, 0, 1), np.clip(estimate.unbiased + half, 0, 1)


def test_elsewhere_intervals_are_plain_and_say_so() -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((2, 3), (2.0, 2.0)))
    unweighted = few_records(mechanism, ("a1", "a2"), 90, 2)
    ((_, of_rows),) = unweighted.parts
    weighted = Counts.of(mechanism, Tabulation(2 * of_rows.counts, 5 * of_rows.counts, 90))
    whole = merged.MECHANISMS[
        next(name for name, m in merged.MECHANISMS.items() if not Channel(m, ("p",)).complete)
    ]
    strata = Counts(2 * unweighted.parts)
    cases = {
        "weights": Shares(("a1", "a2")).answer(weighted)[0],
        "subgroups": Shares(("a1",), by=("a2",)).answer(unweighted)[0],
        "one part of a response matrix": Shares(("p",)).answer(merged.counts_of(whole, ("p",)))[0],
        "strata": Shares(("a1", "a2")).answer(strata)[0],
    }
    for name, estimate in cases.items():
        assert estimate.interval_method == "normal", name
        assert estimate.to_plain()["interval_method"] == "normal"
        for mine, expected in zip(
            estimate.confidence_interval(0.8), plain_ends(estimate, 0.8), strict=True
        ):
            np.testing.assert_allclose(mine, expected, err_msg=name)
    (both,) = Shares(("p", "q")).answer(merged.counts_of(whole, ("p", "q")))
    assert both.interval_method == both.to_plain()["interval_method"] == "score"
