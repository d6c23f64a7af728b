"""Coverage over repeated releases: score intervals against their definition, and the verdicts."""

import numpy as np
import pytest

from deniable.channel import Channel
from deniable.estimation import normal_quantile
from deniable.families import ProductLaw
from deniable.inference import Inference, Target
from deniable.mechanism import Block, Mechanism
from deniable.schema import Schema
from deniable.simplex import project_to_simplex
from deniable.studies.coverage import (
    EDGES,
    GROUPS,
    LARGE,
    LEVELS,
    N_CATEGORIES,
    Case,
    cover,
    population,
    score_interval,
)
from deniable.studies.coverage_study import SLACK, run
from deniable.studies.study import Findings, Setting, Verdict
from deniable.studies.values import csv_text
from deniable.tabulate import Tabulation

SIZES = (3, 4)


@pytest.fixture(scope="module")
def findings() -> Findings:
    return run(Setting(quick=True))


def inference(counts: np.ndarray, target: Target, level: float = 2.0) -> Inference:
    law = ProductLaw.from_levels(SIZES, (level, level))
    mechanism = Mechanism(Schema.anonymous(SIZES), (Block((0, 1), law),))
    return Inference(Channel(mechanism, ("a1", "a2")), Tabulation.from_counts(counts), target)


def dense_channel(made: Inference) -> np.ndarray:
    """The matrix Pr[output | input]."""
    units = np.eye(int(np.prod(SIZES)))
    images = [made.channel.forward.apply(unit.reshape(SIZES)).ravel() for unit in units]
    return np.stack(images, axis=1)


def variances(made: Inference, dense: np.ndarray, cell: int, shares: np.ndarray) -> np.ndarray:
    """Variance of a cell's estimate if it held each of the shares and the others what the nearest
    table says."""
    row = np.linalg.inv(dense)[cell]
    outside = project_to_simplex(made.values).ravel().copy()
    outside[cell] = 0
    truths = np.outer(1 - shares, outside / outside.sum())
    truths[:, cell] = shares
    second = truths @ dense.T @ row**2
    known = shares if made.target == "table" else shares**2
    return np.asarray((second - known) / made.tabulation.total)


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_score_interval_holds_the_shares_that_do_not_make_the_estimate_surprising(
    target: Target, level: float
) -> None:
    random = np.random.default_rng(4)
    made = inference(
        random.multinomial(60, random.dirichlet(np.full(12, 0.7))).reshape(SIZES), target
    )
    low, high = score_interval(made, level)
    z = normal_quantile(level)
    dense, shares = dense_channel(made), np.linspace(0, 1, 1001)
    for cell, estimate in enumerate(made.values.ravel()):
        bound = z**2 * variances(made, dense, cell, shares)
        held = shares[(estimate - shares) ** 2 <= bound]
        if held.size:
            assert low.flat[cell] == pytest.approx(held.min(), abs=0.0011)
            assert high.flat[cell] == pytest.approx(held.max(), abs=0.0011)
        else:
            assert high.flat[cell] - low.flat[cell] <= 0.0011


def test_with_many_records_it_is_the_shipped_interval() -> None:
    random = np.random.default_rng(5)
    counts = random.multinomial(4_000_000, random.dirichlet(np.full(12, 5.0))).reshape(SIZES)
    made = inference(counts, "table")
    low, high = score_interval(made, 0.95)
    half = normal_quantile(0.95) * made.standard_error
    np.testing.assert_allclose((low + high) / 2, made.values, atol=2e-5)
    np.testing.assert_allclose((high - low) / 2, half, rtol=0.01)


def test_verdicts_are_those_that_were_looked_into(findings: Findings) -> None:
    verdicts = {claim.source: claim.verdict for claim in findings.claims}
    assert verdicts["this project's statistical tests"] is Verdict.REPRODUCED
    assert verdicts["Estimate.confidence_interval"] is Verdict.PARTLY
    assert verdicts["this project's theory of estimation"] is Verdict.REPRODUCED


def test_cells_of_every_size_are_looked_at_and_counted_once(findings: Findings) -> None:
    table = findings.tables[0]
    assert len(EDGES) == len(GROUPS) - 1
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert {row["true_records"] for row in rows} == set(GROUPS)
    for kind, cells in (("marginal", 16), ("pair", 79), ("joint", 120)):
        counted: dict[tuple[object, ...], int] = {}
        for row in rows:
            if row["kind"] == kind:
                case = (row["method"], row["people"], row["target"])
                counted[case] = counted.get(case, 0) + int(row["n_cells"])
        assert set(counted.values()) == {cells}


def test_small_cells_cover_too_little_and_score_intervals_mend_it_under_independent_laws() -> None:
    found = cover(Case("kronecker", 8.0, 300, "population"), 150, Setting(), 3)
    small = next(g for g in found if g.kind == "joint" and GROUPS[g.group] == "1–2")
    assert small.shipped[-1] < 0.95 - 4 * small.standard_error[-1]
    assert abs(small.score[-1] - 0.95) < 0.03


def test_large_cells_cover_what_they_say() -> None:
    found = cover(Case("balanced", 8.0, 3000, "table"), 150, Setting(), 4)
    for group in found:
        if group.group == LARGE:
            for level, covered, error in zip(
                LEVELS, group.shipped, group.standard_error, strict=True
            ):
                assert abs(covered - level) <= SLACK + 4 * error


def test_the_population_is_a_distribution_and_the_seed_decides_it() -> None:
    shares = population(Setting())
    assert shares.shape == N_CATEGORIES
    assert shares.sum() == pytest.approx(1)
    assert np.array_equal(shares, population(Setting(quick=True)))
    assert not np.array_equal(shares, population(Setting(seed=1)))


def test_the_same_seed_gives_the_same_counts(findings: Findings) -> None:
    case = Case("lambda", 8.0, 300, "table")
    first, again, other = (cover(case, 10, Setting(seed=s), 0) for s in (1, 1, 2))
    assert str(first) == str(again) != str(other)
    assert csv_text(findings.tables[0]).startswith("method,epsilon_nats,people")
