"""Parts of a merged attribute against the joint table's dense channel: every law, every place."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.covariance import Covariance
from deniable.estimate.inference import Inference
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation, refuse_randomized
from deniable.laws import MatrixChannel, PatternLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import (
    Target,
    cell_variance_range,
    expected_error,
    predict_covariance,
)
from deniable.schema import Attribute, Schema
from marked import slow_after
from unit.dense import dense_channel
from unit.mechanism.merged import (
    MECHANISMS,
    QUESTIONS,
    all_orders,
    counted,
    counts_of,
    dense,
    drawn,
    left_inverse,
    position,
    sums,
    tabulation,
)

every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
both_targets = pytest.mark.parametrize("target", ["table", "population"])


def n_true(mechanism: Mechanism) -> int:
    return int(np.prod(mechanism.schema.n_categories))


@every_mechanism
def test_what_is_expected_to_be_released_gives_the_parts_back_exactly(name: str) -> None:
    mechanism = MECHANISMS[name]
    truth = np.random.default_rng(1).dirichlet(np.ones(n_true(mechanism)))
    for question in [*QUESTIONS, *all_orders()]:
        channel = Channel(mechanism, question)
        seen = counted(mechanism, question, dense(mechanism) @ truth)
        assert seen.shape == channel.n_outputs
        found = channel.inverse.apply(seen)
        expected = (sums(mechanism, question) @ truth).reshape(channel.n_categories)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        if channel.complete:
            np.testing.assert_allclose(channel.forward.apply(expected), seen, atol=1e-13)


@every_mechanism
def test_the_estimate_is_the_estimate_of_the_whole_table_added_up(name: str) -> None:
    mechanism = MECHANISMS[name]
    counts, _ = drawn(mechanism, weighted=False)
    whole = left_inverse(mechanism) @ (counts / counts.sum())
    for question in QUESTIONS:
        (found,) = Shares(question).answer(counts_of(mechanism, question))
        np.testing.assert_allclose(
            found.values.ravel(), sums(mechanism, question) @ whole, atol=1e-10
        )
        labels = [mechanism.schema.variable(each).attribute.categories for each in question]
        assert found.categories == tuple(labels)
        assert found.attributes == question


@every_mechanism
@both_targets
@pytest.mark.parametrize("weighted", slow_after(1, [True, False]))
def test_errors_and_covariances_are_those_of_the_whole_table_added_up(
    name: str, target: Target, weighted: bool
) -> None:
    mechanism = MECHANISMS[name]
    counts, squares = drawn(mechanism, weighted=weighted)
    theta = counts / counts.sum()
    theta_2 = (counts if squares is None else squares) / counts.sum() ** 2
    left = left_inverse(mechanism)
    for question in QUESTIONS:
        add = sums(mechanism, question)
        rows = add @ left
        if target == "table":
            covariance = rows @ np.diag(theta_2) @ rows.T - np.diag(rows @ theta_2)
        else:
            centred = rows - (rows @ theta)[:, None]
            covariance = (centred * theta_2) @ centred.T
        found = Inference(
            counts_of(mechanism, question, weighted=weighted),
            question,
            target,
        )
        low, high = cell_variance_range(found.channel)
        if target == "table":
            per_record = 1 / found.parts[0][1].tabulation.n_effective
            inside = np.clip(
                covariance.diagonal(),
                np.broadcast_to(low * per_record, found.values.shape).ravel(),
                np.broadcast_to(high * per_record, found.values.shape).ravel(),
            )
            np.testing.assert_allclose(found.variance.ravel(), inside, atol=1e-12)
        # A quadratic form that is wrong somewhere is wrong at almost every vector: every cell by
        # itself and twelve random mixtures tell as much as every pair of cells.
        mixtures = np.random.default_rng(5).normal(size=(12, len(rows)))
        weights = np.concatenate([np.eye(len(rows)), mixtures])
        variances = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        clear = variances > 1e-12  # else by noise; then that of the population is taken
        errors = [
            found.linear(w.reshape(found.values.shape)).standard_error for w in weights[clear]
        ]
        np.testing.assert_allclose(errors, np.sqrt(variances[clear]), rtol=1e-6)


@every_mechanism
def test_no_record_adds_more_or_less_variance_than_the_range_says(name: str) -> None:
    mechanism = MECHANISMS[name]
    left = left_inverse(mechanism)
    for question in QUESTIONS:
        channel = Channel(mechanism, question)
        add = sums(mechanism, question)
        # By cell and true record: the mean square of what it adds, less its mean's square.
        variance = (add @ left) ** 2 @ dense(mechanism) - add
        low, high = cell_variance_range(channel)
        shape = channel.n_categories
        np.testing.assert_allclose(
            np.broadcast_to(low, shape).ravel(), np.maximum(variance.min(axis=1), 0), atol=1e-9
        )
        np.testing.assert_allclose(
            np.broadcast_to(high, shape).ravel(), variance.max(axis=1), rtol=1e-9, atol=1e-9
        )
        found = expected_error(channel, 100)
        assert found.worst == pytest.approx((variance.max() / 100) ** 0.5)
        assert found.mean_variance == pytest.approx(max(variance.mean(), 0) / 100, abs=1e-12)


@every_mechanism
@both_targets
@pytest.mark.parametrize(
    ("of", "by"),
    slow_after(2, [(("p",), ("q",)), (("q",), ("p", "a")), (("a",), ("q",)), (("b", "p"), ("q",))]),
)
def test_shares_within_a_part_have_the_delta_method_errors(
    name: str, target: Target, of: tuple[str, ...], by: tuple[str, ...]
) -> None:
    mechanism = MECHANISMS[name]
    counts, _ = drawn(mechanism, weighted=False)
    theta, n = counts / counts.sum(), counts.sum()
    left = left_inverse(mechanism)
    joint, margin = sums(mechanism, (*of, *by)), sums(mechanism, by)
    (found,) = Shares(of, by=by, target=target).answer(counts_of(mechanism, (*of, *by)))
    values, errors = found.values.ravel(), found.standard_error.ravel()
    for cell in range(len(joint)):
        group = margin[int(np.flatnonzero(margin @ joint[cell])[0])]
        share = joint[cell] @ left @ theta / (group @ left @ theta)
        contrast = joint[cell] - share * group
        variance = theta @ (contrast @ left) ** 2 / n
        if target == "table":
            variance -= (left @ theta) @ contrast**2 / n
        assert values[cell] == pytest.approx(share)
        if variance > 1e-12:
            below = group @ left @ theta
            assert errors[cell] == pytest.approx(variance**0.5 / below, rel=1e-6)


@every_mechanism
def test_the_iterative_estimate_of_a_part_is_the_sum_of_the_whole_ones(name: str) -> None:
    mechanism = MECHANISMS[name]
    (whole,) = Shares(("p", "q", "a"), method="em").answer(counts_of(mechanism, ("p", "q", "a")))
    assert whole.values.min() >= 0
    if isinstance(mechanism.block_of(position(mechanism))[0].law, PatternLaw):
        return  # then a part is an attribute of its own
    (part,) = Shares(("a", "q"), method="em").answer(counts_of(mechanism, ("a", "q")))
    np.testing.assert_allclose(part.values, whole.values.sum(axis=0).T, atol=2e-3)
    (projected,) = Shares(("a", "q"), method="projected").answer(counts_of(mechanism, ("a", "q")))
    assert projected.values.sum() == pytest.approx(1)


@every_mechanism
def test_condition_and_attenuation_of_parts_are_norms_of_dense_maps(name: str) -> None:
    mechanism = MECHANISMS[name]
    for question in [("p",), ("q", "p"), ("a", "q")]:
        channel = Channel(mechanism, question)
        axes = np.argwhere(np.ones(channel.attenuation.shape))
        for chosen in axes[1:]:
            asked = [each for each, c in zip(question, chosen, strict=True) if c]
            alone = Channel(mechanism, tuple(asked))
            assert channel.attenuation[tuple(chosen)] == pytest.approx(
                alone.attenuation[(1,) * len(asked)]
            )
    part = Channel(mechanism, ("q",))
    single = dense_channel(mechanism, ("p+q",))
    law = mechanism.block_of(position(mechanism))[0].law
    left = np.linalg.inv(single) if isinstance(law, PatternLaw) else law.left_inverse()  # type: ignore[attr-defined]
    add = np.kron(np.ones((1, 2)), np.eye(3))
    assert part.condition == pytest.approx(np.linalg.norm(add @ left, 2) / 2**0.5, rel=1e-6)


def test_means_quantiles_and_covariances_of_parts_are_those_of_their_table() -> None:
    for name, mechanism in MECHANISMS.items():
        shares = Shares(("q", "p")).answer(counts_of(mechanism, ("q", "p")))[0].values
        (mean,) = Mean(("q",), scores=(0.0, 1.0, 5.0)).answer(counts_of(mechanism, ("q",)))
        assert mean.estimate == pytest.approx(shares.sum(axis=1) @ [0, 1, 5]), name
        by = Mean(("q",), by=("p",), scores=(0.0, 1.0, 5.0)).answer(
            counts_of(mechanism, ("q", "p"))
        )
        for summary, column in zip(by, shares.T, strict=True):
            assert summary.estimate == pytest.approx(column @ [0, 1, 5] / column.sum())
        (found,) = Covariance(("q", "p"), scores=((0.0, 1.0, 5.0), (0.0, 1.0))).answer(
            counts_of(mechanism, ("q", "p"))
        )
        plug_in = shares[:, 1] @ [0, 1, 5] - shares.sum(axis=1) @ [0, 1, 5] * shares[:, 1].sum()
        assert found.estimate == pytest.approx(plug_in, abs=0.02)
        if isinstance(mechanism.block_of(position(mechanism))[0].law, PatternLaw):
            assert predict_covariance(mechanism, "q", "p").share is not None
        else:
            assert found.released is None
            assert found.prediction is None
            with pytest.raises(InputError, match="depends on all of its parts"):
                predict_covariance(mechanism, "q", "a")


def test_the_covariance_of_parts_is_estimated_without_bias() -> None:
    # Its exact mean over all released tables of two records, for one fixed pair of true ones.
    mechanism = MECHANISMS["square at 0"]
    single = dense_channel(mechanism, ("p+q",))
    true = (1, 5)  # p0 q1 and p1 q2
    scores = (np.array([0.0, 1.0]), np.array([0.0, 1.0, 5.0]))
    values = np.array([[scores[0][x // 3], scores[1][x % 3]] for x in true])
    covariance = np.mean(np.prod(values - values.mean(axis=0), axis=1))
    mean = 0.0
    for first in range(6):
        for second in range(6):
            counts = np.zeros((6, 1))
            counts[first, 0] += 1
            counts[second, 0] += 1
            (found,) = Covariance(("p", "q"), scores=scores).answer(Counts.of(mechanism, counts))
            mean += single[first, true[0]] * single[second, true[1]] * found.estimate
    assert mean == pytest.approx(covariance)


@pytest.mark.slow
def test_a_quantile_of_an_ordered_part_can_be_asked_for() -> None:
    size = Attribute("size", ("s", "m", "l"), ordered=True)
    schema = Schema((Attribute("yes+size", parts=(Attribute("yes", ("n", "y")), size)),))
    matrix = 0.4 * np.eye(6) + 0.1
    mechanism = Mechanism.of(MatrixChannel.from_probabilities(matrix), schema)
    counts = np.zeros(Channel(mechanism, ("size",)).n_outputs)
    counts[:] = 1000 * (matrix @ [0.1, 0.1, 0.3, 0.1, 0.2, 0.2]).round(6)
    (median,) = Quantile(("size",)).answer(Counts.of(mechanism, Tabulation(counts, None, 1000)))
    assert median.estimate in ("m", "l")


def test_strata_may_randomize_a_merged_attribute_by_different_laws() -> None:
    square, pattern = MECHANISMS["square at 1"], MECHANISMS["pattern table at 1"]
    laws = {"x": square, "y": pattern}
    kept = {
        stratum: Mechanism(Schema(m.schema.attributes, keep=("region",)), m.blocks)
        for stratum, m in laws.items()
    }
    for question in QUESTIONS:
        parts = [
            (kept["x"], tabulation(square, question)),
            (kept["y"], tabulation(pattern, question, n=2000)),
        ]
        (found,) = Shares(question).answer(Counts(tuple(parts)))
        singles = [Shares(question).answer(Counts.of(of, tabulated))[0] for of, tabulated in parts]
        expected = (2 * singles[0].values + singles[1].values) / 3
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
        errors = np.hypot(2 * singles[0].standard_error, singles[1].standard_error) / 3
        np.testing.assert_allclose(found.standard_error, errors, rtol=1e-9)
    both = Counts(
        (
            (kept["x"], tabulation(square, ("p", "q"))),
            (kept["y"], tabulation(pattern, ("p", "q"), n=2000)),
        )
    )
    (shares,) = Shares(("p",), by=("q",)).answer(both)
    np.testing.assert_allclose(shares.values.sum(axis=0), 1)
    scores = ((0.0, 1.0), (0.0, 1.0, 2.0))
    assert Covariance(("p", "q"), scores=scores).answer(both)[0].released is None
    assert Inference(both, ("p", "q"), "table").values.shape == (2, 3)


def test_wrong_questions_are_refused_in_one_sentence() -> None:
    mechanism = MECHANISMS["square at 0"]
    with pytest.raises(InputError, match=r"part of 'p\+q', which is also named"):
        Channel(mechanism, ("p", "p+q"))
    with pytest.raises(InputError, match="'p' is named twice"):
        Channel(mechanism, ("p", "a", "p"))
    with pytest.raises(InputError, match="depend on all its parts"):
        _ = Channel(mechanism, ("p",)).forward
    with pytest.raises(InputError, match="rows cannot be selected by 'q'"):
        refuse_randomized(mechanism.schema, ["q"])
    with pytest.raises(InputError, match=r"name 'p\+q' instead"):
        mechanism.subset_epsilon(["p"])
