"""Figure 4 of Huang and Du: the numbers behind the verdicts, in the quick form."""

from collections.abc import Sequence

import numpy as np
import pytest

from deniable.frontier.priors import from_distribution
from deniable_studies.optrr import normal
from deniable_studies.optrr.normal import PRINTED, normal_shares
from deniable_studies.study import Findings, Setting, Verdict


@pytest.fixture(scope="module")
def quick() -> Findings:
    return normal.STUDY.run(Setting(quick=True))


def column(findings: Findings, table: str, name: str) -> Sequence[object]:
    return findings.table(table).column(name)


def test_warners_least_privacy_is_as_printed(quick: Findings) -> None:
    ours = column(quick, "least-privacy", "warner")
    assert ours == pytest.approx([0.599, 0.510, 0.385, 0.226], abs=5e-4)
    assert ours == pytest.approx([row[1] for row in PRINTED], abs=0.02)


def test_a_value_that_depends_on_the_cut_is_not_tested() -> None:
    printed = [row[1] for row in PRINTED]
    near, far = normal.Cut(3.0, False, printed), normal.Cut(2.0, True, [0.1] * 4)
    assert normal._warner([near, near]).verdict is Verdict.REPRODUCED
    assert normal._warner([far]).verdict is Verdict.NOT
    claim = normal.STUDY.claim("warner", normal._warner([near, far]))
    assert claim.verdict is Verdict.UNTESTED
    assert "table of cuts" in claim.why


def test_the_search_reaches_below_warner_and_not_below_the_floor(quick: Findings) -> None:
    found = column(quick, "least-privacy", "search")
    for value, warner, (delta, _, _) in zip(
        found, column(quick, "least-privacy", "warner"), PRINTED, strict=True
    ):
        assert isinstance(value, float)
        assert isinstance(warner, float)
        assert 1 - delta - 1e-9 <= value < warner
    assert quick.claims[2].verdict is Verdict.REPRODUCED


def test_square_matrices_at_the_floor_exist(quick: Findings) -> None:
    # The reason given for the search's least privacy rests on them.
    assert column(quick, "least-privacy", "square") == pytest.approx(
        [1 - row[0] for row in PRINTED], abs=1e-4
    )
    assert column(quick, "least-privacy", "square_worst_posterior") == pytest.approx(
        [row[0] for row in PRINTED], abs=1e-4
    )


def test_the_search_is_nearer_to_the_bound_at_every_level(quick: Findings) -> None:
    for warner, found in zip(
        column(quick, "levels", "warner_ratio"), column(quick, "levels", "search_ratio"),
        strict=True,
    ):  # fmt: skip
        if found is not None:
            assert isinstance(found, float)
            assert isinstance(warner, float)
            assert 1 - 1e-9 <= found < warner
    assert quick.claims[-1].verdict is Verdict.REPRODUCED


def test_the_cut_at_three_deviations_is_the_one_that_is_used() -> None:
    assert normal_shares(3.0, tails=False) == pytest.approx(from_distribution("normal,10").shares)
    for tails in (False, True):
        shares = np.array(normal_shares(2.0, tails=tails))
        assert shares.sum() == pytest.approx(1)
        assert shares == pytest.approx(shares[::-1])
    assert normal_shares(2.0, tails=True)[0] > normal_shares(2.0, tails=False)[0]


def test_other_runs_repeat_with_the_seed_and_every_table_can_be_written(
    quick: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = column(quick, "other-runs", "search_least_privacy")
    assert len(set(found)) == len(found) == normal.OTHER_RUNS[True][0]
    monkeypatch.setitem(normal.OTHER_RUNS, True, (1, normal.OTHER_RUNS[True][1]))
    assert normal.other_runs(Setting(quick=True)) == found[:1]
    assert all(table.csv_text() for table in quick.tables)


def test_every_figure_can_be_drawn(quick: Findings, draw_all) -> None:
    draw_all(quick)
