"""Figures 5(a) and 5(b) of Huang and Du: the numbers behind the verdicts."""

import pytest

from deniable_studies.optrr import distributions
from deniable_studies.study import Findings, Setting, Verdict


@pytest.fixture(scope="module")
def quick() -> Findings:
    return distributions.STUDY.run(Setting(quick=True))


def test_under_gamma_the_search_beats_warner_everywhere_and_ranges_about_twice_as_far(
    quick: Findings,
) -> None:
    verdicts = [claim.verdict for claim in quick.claims[:3]]
    assert verdicts == [Verdict.REPRODUCED] * 3


def test_no_matrix_is_below_the_bound(quick: Findings) -> None:
    assert quick.claims[-1].verdict is Verdict.REPRODUCED


def test_under_a_uniform_prior_warner_begins_at_one_less_delta(quick: Findings) -> None:
    gamma, uniform = quick.table("summary").column("warner_least_privacy")
    # With a uniform prior privacy is 1 − p and the worst posterior is p.
    assert uniform == pytest.approx(0.25, abs=1.1e-3)
    assert gamma > uniform


def test_the_front_of_the_other_study_is_this_one_searched_once(quick: Findings) -> None:
    setting = Setting(quick=True, advance=lambda _: None)
    front = distributions.gamma_front(setting)
    rows = [row for row in quick.table("fronts").rows if row[0] == "gamma" and row[2] == "search"]
    assert [row[3] for row in rows] == front.privacy.tolist()
    assert distributions.gamma_front(Setting(quick=True)) is front


def test_every_figure_can_be_drawn(quick: Findings, draw_all) -> None:
    draw_all(quick)
