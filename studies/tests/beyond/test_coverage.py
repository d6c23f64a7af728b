"""Coverage over repeated releases, and the verdicts."""

import numpy as np
import pytest

from deniable_studies.beyond.coverage import (
    EDGES,
    GROUPS,
    LARGE,
    LEVELS,
    N_CATEGORIES,
    SLACK,
    STUDY,
    Case,
    cover,
    population,
)
from deniable_studies.study import Findings, Setting, Verdict


@pytest.fixture(scope="module")
def findings() -> Findings:
    return STUDY.run(Setting(quick=True))


def test_verdicts_are_those_that_were_looked_into(findings: Findings) -> None:
    verdicts = {claim.source: claim.verdict for claim in findings.claims}
    # A quick run allows for more chance than the point in question.
    (large,) = [c for c in findings.claims if "200 true records or more" in c.statement]
    assert large.verdict is Verdict.UNDECIDED
    assert [c.verdict for c in findings.claims if "marked as uncertain" in c.statement] == [
        Verdict.UNTESTED
    ]
    assert verdicts["Estimate.confidence_interval"] is Verdict.REPRODUCED
    assert verdicts["docs/proofs/estimation.md, Theorem 1"] is Verdict.PARTLY


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


@pytest.mark.weekly
@pytest.mark.parametrize("method", ["kronecker", "optimal"])
def test_intervals_of_a_population_hold_in_small_cells_where_plain_ones_do_not(
    method: str,
) -> None:
    found = cover(Case(method, 8.0, 300, "population"), 150, Setting(), 3)
    small = next(g for g in found if g.kind == "joint" and GROUPS[g.group] == "1–2")
    assert small.plain[-1] < 0.95 - 4 * small.standard_error[-1]
    assert 0.94 - 4 * small.standard_error[-1] < small.shipped[-1] < 0.99


def test_the_standard_error_is_not_zero_where_every_interval_holds() -> None:
    for group in cover(Case("optimal", 8.0, 300, "table"), 3, Setting(), 0):
        assert min(group.standard_error) > 0


@pytest.mark.weekly
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
    assert findings.tables[0].csv_text().startswith("method,epsilon_nats,people")


def test_every_figure_can_be_drawn(findings: Findings, draw_all) -> None:
    draw_all(findings)
