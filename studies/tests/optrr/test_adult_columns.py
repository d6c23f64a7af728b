"""Figure 5(c) of Huang and Du: how columns are cut, and the quick form on the shipped rows."""

import os
from pathlib import Path

import numpy as np
import pytest

from deniable_studies.adult import COLUMNS, read_adult
from deniable_studies.optrr import adult_columns
from deniable_studies.optrr.adult_columns import cases, delta_for, joined
from deniable_studies.study import Findings, Setting, Verdict

ADULT = Path(os.environ.get("ADULT", "adult"))
EXCERPT = Path(__file__).parents[3] / "examples" / "adult.data"


@pytest.fixture(scope="module")
def quick() -> Findings:
    return adult_columns.STUDY.run(Setting(quick=True, adult=EXCERPT))


def test_rare_bins_are_joined_with_the_rarer_neighbour_and_nobody_is_lost() -> None:
    edges = np.array([0.0, 1, 2, 3, 4, 5])
    labels, counts = joined(edges, np.array([500, 2, 300, 190, 8]))
    assert counts.tolist() == [500, 302, 198]
    assert labels == ["0 to 1", "1 to 3", "3 to 5"]
    labels, counts = joined(edges, np.array([1000, 0, 0, 0, 1]))
    assert counts.tolist() == [1000, 1]  # two are left, however rare


def test_delta_is_three_quarters_or_halfway_to_one() -> None:
    assert delta_for(np.array([0.4, 0.6])) == pytest.approx(0.8)
    assert delta_for(np.array([0.3, 0.3, 0.4])) == 0.75


def test_the_quick_form_runs_and_no_matrix_is_below_the_bound(quick: Findings) -> None:
    assert quick.claims[-1].verdict is Verdict.REPRODUCED
    assert quick.claims[2].verdict is not Verdict.NOT  # nearer to the bound at most levels
    assert all(table.csv_text() for table in quick.tables)


def test_the_shipped_rows_have_the_categories_that_occur_in_them() -> None:
    found = {case.name: case for case in cases(read_adult(EXCERPT))}
    assert set(found) == set(COLUMNS)
    assert 20 < len(found["native-country"].prior.shares) < 41
    assert all(min(case.prior.shares) > 0 for case in found.values())


def test_every_column_has_its_categories_and_a_quick_run_says_what_it_left_out(
    quick: Findings,
) -> None:
    table = quick.table("categories")
    shares: dict[object, float] = {}
    for column, _, share in table.rows:
        assert isinstance(share, float)
        shares[column] = shares.get(column, 0.0) + share
    assert set(shares) == set(COLUMNS)
    assert list(shares.values()) == pytest.approx([1.0] * len(COLUMNS))
    left_out = set(COLUMNS) - set(quick.table("summary").column("case"))
    assert all(str(name) in quick.choices[-1] for name in left_out)


@pytest.mark.slow
@pytest.mark.skipif(not ADULT.is_dir(), reason="the variable ADULT names no folder with UCI Adult")
def test_every_column_of_the_real_data_keeps_all_categories_that_occur() -> None:
    found = {case.name: case for case in cases(read_adult(ADULT))}
    sizes = {name: len(case.prior.shares) for name, case in found.items()}
    assert sizes["sex"] == sizes["income"] == 2
    assert (sizes["occupation"], sizes["education"], sizes["native-country"]) == (14, 16, 41)
    for case in found.values():
        assert case.delta > max(case.prior.shares)
    assert found["age"].delta == 0.75
    assert found["capital-gain"].delta == pytest.approx((1 + max(found["capital-gain"].shares)) / 2)


def test_every_figure_can_be_drawn(quick: Findings, draw_all) -> None:
    draw_all(quick)
