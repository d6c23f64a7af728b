"""Intervals at rare categories: what counts as marked, and the verdicts."""

import numpy as np
import pytest

from deniable_studies.beyond.rare import GROUPS, LEAST, STUDY, Group, judge, population, read
from deniable_studies.study import Findings, Setting, Verdict


def test_the_population_has_every_share_that_is_asked_for() -> None:
    shares = population()
    assert shares.sum() == pytest.approx(1)
    assert shares.min() == 0
    assert shares.sum(axis=(1, 2))[1:] == pytest.approx([0, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5])


def test_an_infinite_end_is_an_interval_and_any_other_remark_a_mark() -> None:
    assert read({"low": None, "high": -5.0, "remark": "no lower limit"}, -np.inf) == (False, True)
    assert read({"low": None, "high": -5.0, "remark": "no lower limit"}, -4.0) == (False, False)
    assert read({"low": 0.1, "high": 0.2, "remark": "not to be read: rare"}, 0.15) == (True, False)
    assert read({"low": None, "high": None}, 0.1) == (True, False)
    assert read({"low": 0.1, "high": 0.2}, 0.3) == (False, False)


def test_a_group_that_misses_too_often_is_seen() -> None:
    good = Group("balanced", 4.0, "model", 2, 1000, 0.5, 0.95, 0.011)
    bad = Group("balanced", 4.0, "model", 0, 1000, 0.0, 0.8, 0.008)
    assert judge([good], "model").verdict is Verdict.REPRODUCED
    assert judge([bad], "model").verdict is Verdict.NOT
    assert GROUPS[bad.group] in judge([good, bad], "model").found
    assert pytest.approx(0.07) == 1 - LEAST


@pytest.fixture(scope="module")
def findings() -> Findings:
    return STUDY.run(Setting(quick=True))


def test_every_way_is_asked_and_every_figure_drawn(findings: Findings, draw_all) -> None:
    ways = set(findings.table("rare").column("way"))
    assert ways == {"estimate", "smooth", "model", "predict", "combine"}
    assert not any(claim.verdict is Verdict.NOT for claim in findings.claims)
    draw_all(findings)
