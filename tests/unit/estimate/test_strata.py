"""Estimates over strata: against the same without strata, and against every possible release."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.covariance import Covariance, PairScores, indicator_covariance
from deniable.estimate.inference import Inference
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import Identity, InvariantChannel, ProductLaw
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import Target
from deniable.schema import Attribute, Schema
from unit.dense import MECHANISMS, NAMES, dense_channel, dense_inverse, random_table

targets = pytest.mark.parametrize("target", ["table", "population"])


def split(counts: NDArray[np.float64], parts: int, seed: int) -> list[NDArray[np.float64]]:
    """The same records dealt out to several strata, each with some."""
    random = np.random.default_rng(seed)
    dealt = [np.zeros(counts.shape) for _ in range(parts)]
    for index in np.ndindex(counts.shape):
        shares = random.multinomial(int(counts[index]), np.full(parts, 1 / parts))
        for part, share in zip(dealt, shares, strict=True):
            part[index] = share
    return dealt


@targets
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_strata_with_one_mechanism_give_what_the_whole_table_gives(
    mechanism: Mechanism, target: Target
) -> None:
    names = mechanism.schema.names[:2]
    random = np.random.default_rng(3)
    shape = Channel(mechanism, names).n_outputs
    counts = random.integers(60, 400, size=shape).astype(float)
    whole = Inference(Counts.of(mechanism, counts), names, target)
    parts = [Tabulation.from_counts(part) for part in split(counts, 3, 4)]
    strata = Inference(Counts(tuple((mechanism, part) for part in parts)), names, target)
    assert len(strata.parts) == 3
    np.testing.assert_allclose(strata.values, whole.values, atol=1e-12)
    np.testing.assert_allclose(strata.standard_error, whole.standard_error, rtol=1e-9)
    weights, below = random.normal(size=strata.values.shape), random.random(strata.values.shape)
    assert strata.linear(weights) == pytest.approx(whole.linear(weights), rel=1e-9)
    assert strata.ratio(weights, below) == pytest.approx(whole.ratio(weights, below), rel=1e-9)
    ours, ours_error, ours_few = strata.within(1)
    theirs, theirs_error, theirs_few = whole.within(1)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(ours_error, theirs_error, rtol=1e-8)
    np.testing.assert_array_equal(ours_few, theirs_few)
    assert strata.condition == whole.condition
    functions = random.normal(size=(4, *strata.values.shape))
    np.testing.assert_allclose(strata.covariance(functions), whole.covariance(functions), rtol=1e-7)


MIDDLES: PairScores = ("middle", None)
ORDERED = Schema(
    (
        Attribute("a1", bins=(0.0, 1.0, 2.0, 4.0)),
        Attribute("a2", ("x", "y"), scores=(0.0, 2.0)),
        Attribute("region", ("n", "s")),
    ),
    keep=("region",),
)


def independent(first: float, second: float) -> Mechanism:
    return Mechanism(
        ORDERED,
        (
            Block((0, 1), ProductLaw.from_levels((3, 2), (first, second))),
            Block((2,), Identity((2,))),
        ),
    )


def invariant(counts_1: tuple[int, ...], counts_2: tuple[int, ...]) -> Mechanism:
    def channel(n: int, counts: tuple[int, ...]) -> InvariantChannel:
        return InvariantChannel(bistochastic_channel(0.6 * np.eye(n) + 0.4 / n), counts, 0.8)

    return Mechanism(
        ORDERED,
        (
            Block((0,), channel(3, counts_1)),
            Block((1,), channel(2, counts_2)),
            Block((2,), Identity((2,))),
        ),
    )


def two_strata() -> list[tuple[Mechanism, NDArray[np.float64]]]:
    """Mechanisms that differ, and true tables that differ, with a category that nobody has."""
    first = np.array([[30.0, 10], [5, 40], [0, 0]])
    second = np.array([[10.0, 20], [60, 5], [15, 25]])
    return [
        (
            invariant(tuple(first.sum(axis=1).astype(int)), tuple(first.sum(axis=0).astype(int))),
            first,
        ),
        (independent(2.0, 1.0), second),
    ]


def expected(mechanism: Mechanism, table: NDArray[np.float64]) -> NDArray[np.float64]:
    matrices = Channel(mechanism, ("a1", "a2")).forward
    return matrices.apply(table)


def test_estimates_from_expected_counts_are_the_truth() -> None:
    parts = two_strata()
    counts = Counts(tuple((m, Tabulation(expected(m, t), None, int(t.sum()))) for m, t in parts))
    truth = sum(t for _, t in parts)
    truth = truth / truth.sum()
    for method in ("inversion", "em", "projected"):
        (found,) = Shares(("a1", "a2"), method=method).answer(counts)
        # EM stops where going on would change the likelihood of this few records by nothing.
        np.testing.assert_allclose(found.values, truth, atol=5e-3 if method == "em" else 1e-12)
    (shares,) = Shares(("a1",), by=("a2",)).answer(counts)
    np.testing.assert_allclose(shares.values, truth / truth.sum(axis=0), atol=1e-12)
    (mean,) = Mean(("a1",), scores="middle").answer(counts_of(parts, "a1"))
    assert mean.estimate == pytest.approx(np.array([0.5, 1.5, 3.0]) @ truth.sum(axis=1))
    (median,) = Quantile(("a1",), interpolate=True).answer(counts_of(parts, "a1"))
    share = truth.sum(axis=1)
    assert median.estimate == pytest.approx(1 + (0.5 - share[0]) / share[1])


def counts_of(parts: list[tuple[Mechanism, NDArray[np.float64]]], name: str) -> Counts:
    axis = ("a2", "a1").index(name)
    return Counts(
        tuple((m, Tabulation(expected(m, t).sum(axis=axis), None, int(t.sum()))) for m, t in parts)
    )


def small_strata() -> list[tuple[Mechanism, list[int]]]:
    """Two strata of two records each over a table of 3 × 2, one randomized attribute by attribute
    and one by a joint law."""
    together = Block((0, 1), random_table((3, 2), 4))
    joint = Mechanism(ORDERED, (together, Block((2,), Identity((2,)))))
    return [(independent(1.5, 1.0), [0, 3]), (joint, [5, 0])]


def every_release(
    strata: list[tuple[Mechanism, list[int]]],
) -> list[tuple[float, Counts]]:
    """All released tables of counts and their probabilities, by the definition of each law."""
    per_record = []
    for stratum, (mechanism, records) in enumerate(strata):
        matrix = dense_channel(mechanism, ("a1", "a2"))
        per_record += [(stratum, matrix[:, x]) for x in records]
    chances: Counter[tuple[tuple[int, int], ...]] = Counter()
    for outcome in product(range(6), repeat=len(per_record)):
        chance = float(np.prod([p[y] for (_, p), y in zip(per_record, outcome, strict=True)]))
        released = ((stratum, y) for (stratum, _), y in zip(per_record, outcome, strict=True))
        chances[tuple(sorted(released))] += chance
    found = []
    for cells, chance in chances.items():
        counts = np.zeros((len(strata), 6))
        for cell in cells:
            counts[cell] += 1
        parts = tuple(
            (mechanism, Tabulation.from_counts(part.reshape(3, 2)))
            for (mechanism, _), part in zip(strata, counts, strict=True)
        )
        found.append((chance, Counts(parts)))
    return found


@pytest.mark.slow
def test_values_and_covariance_are_unbiased_over_every_possible_release() -> None:
    strata = small_strata()
    records = [x for _, xs in strata for x in xs]
    truth = np.bincount(records, minlength=6).reshape(3, 2) / len(records)
    s, t = np.array([0.5, 1.5, 3.0]), np.array([0.0, 2.0])
    mean = np.zeros((3, 2))
    covariance = spread = 0.0
    releases = every_release(strata)
    assert sum(chance for chance, _ in releases) == pytest.approx(1)
    weights = np.outer([1.0, -2.0, 0.5], [1.0, 3.0])
    for chance, counts in releases:
        found = Inference(counts, ("a1", "a2"), "table")
        mean += chance * found.values
        spread += chance * float((weights * (found.values - truth)).sum()) ** 2
        covariance += chance * Covariance(("a1", "a2"), scores=MIDDLES).answer(counts)[0].estimate
    np.testing.assert_allclose(mean, truth, atol=1e-10)
    assert covariance == pytest.approx(s @ indicator_covariance(truth) @ t, abs=1e-10)
    # The variance of a linear function, from the dense inverses of both strata.
    exact = 0.0
    for mechanism, xs in strata:
        matrix = dense_channel(mechanism, ("a1", "a2"))
        influence = dense_inverse(mechanism, ("a1", "a2")).T @ weights.ravel()
        for x in xs:
            p = matrix[:, x]
            exact += (p @ influence**2 - (p @ influence) ** 2) / len(records) ** 2
    assert spread == pytest.approx(exact, rel=1e-9)


@targets
def test_the_variances_are_those_of_the_dense_formulas(target: Target) -> None:
    random = np.random.default_rng(8)
    parts = []
    for mechanism, table in two_strata():
        frequencies = expected(mechanism, table).ravel()
        drawn = random.multinomial(3000, frequencies / frequencies.sum())
        # A category that nobody has is never reported.
        parts.append((mechanism, drawn.reshape(3, 2).astype(float)))
    counts = Counts(tuple((m, Tabulation.from_counts(c)) for m, c in parts))
    found = Inference(counts, ("a1", "a2"), target)
    n = sum(c.sum() for _, c in parts)
    second, plain = np.zeros(6), np.zeros(6)
    for mechanism, table in parts:
        channel = Channel(mechanism, ("a1", "a2"))
        inverse = np.array(
            [channel.inverse.apply(row.reshape(3, 2)).ravel() for row in np.eye(6)]
        ).T
        second += inverse**2 @ table.ravel() / n**2
        plain += inverse @ table.ravel() / n
    variance = second - plain / n
    if target == "population":
        variance += (plain - plain**2) / n
    here = plain != 0
    np.testing.assert_allclose(found.variance.ravel()[here], variance[here], rtol=1e-6)
    np.testing.assert_allclose(found.values.ravel(), plain, atol=1e-12)


def test_a_covariance_has_a_prediction_only_if_the_strata_agree_on_it() -> None:
    parts = two_strata()
    counts = Counts(tuple((m, Tabulation(expected(m, t), None, int(t.sum()))) for m, t in parts))
    (found,) = Covariance(("a1", "a2"), scores=MIDDLES).answer(counts)
    assert found.prediction is None
    assert found.to_plain()["share"] is None
    alike = Counts(tuple((parts[1][0], tabulation) for _, tabulation in counts.parts))
    assert Covariance(("a1", "a2"), scores=MIDDLES).answer(alike)[0].prediction is not None


def test_sizes_and_weights_add_up() -> None:
    mechanism = independent(1.0, 1.0)
    weighted = Tabulation(np.full((3, 2), 2.0), np.full((3, 2), 5.0), 9)
    plain = Tabulation.from_counts(np.full((3, 2), 4))
    counts = Counts(((mechanism, weighted), (mechanism, plain)))
    assert counts.n_records == 33
    assert counts.total == 36
    assert sum(counts.fractions) == pytest.approx(1)
    assert counts.square_weight == pytest.approx((30 + 24) / 36**2)
    assert counts.frequencies.sum() == pytest.approx(1)


def test_what_makes_no_sense_is_refused() -> None:
    mechanism = independent(1.0, 1.0)
    with pytest.raises(InputError, match="no records"):
        Counts(())
    counts = Counts(((mechanism, Tabulation.from_counts(np.ones((3, 2)))),))
    with pytest.raises(InputError, match="target"):
        Inference(counts, ("a1", "a2"), "world")  # type: ignore[arg-type]
