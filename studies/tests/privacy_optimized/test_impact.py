"""The impact of levels and categories: randomized tables and the judge."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from deniable_studies.privacy_optimized import impact
from deniable_studies.privacy_optimized.impact import Setup
from deniable_studies.study import Setting, Verdict


def test_a_randomized_table_has_the_expected_counts() -> None:
    generator, table = np.random.default_rng(1), np.array([[900, 100], [300, 700]])
    keep = np.exp(1.5) / (np.exp(1.5) + 3)
    expected = table * keep + (2000 - table) * (1 - keep) / 3
    mean = np.mean([impact.randomized(table, 1.5, generator) for _ in range(400)], axis=0)
    assert mean == pytest.approx(expected, abs=6)  # five standard errors of at most 1.1
    assert (impact.randomized(table, 60.0, generator) == table).all()


def test_the_statistic_is_pearsons() -> None:
    table = impact.simulate(np.random.default_rng(2), 3)
    assert table.sum() == 2000
    assert impact.statistic(table) == pytest.approx(chi2_contingency(table, correction=False)[0])


def test_the_ratio_has_to_fall_at_every_step() -> None:
    def setups(*ratios: float) -> list[Setup]:
        return [Setup((1.0, 3.0), 4, 20.0, ratio, 1.0) for ratio in ratios]

    assert impact.judge(setups(0.5, 0.4, 0.3), "levels").verdict is Verdict.REPRODUCED
    assert impact.judge(setups(0.5, 0.6, 0.3), "levels").verdict is Verdict.PARTLY
    assert impact.judge(setups(0.5, 0.4, 0.6), "categories").verdict is Verdict.NOT


@pytest.mark.slow
def test_the_quick_form_has_every_setup() -> None:
    assert len(impact.STUDY.run(Setting(quick=True)).table("setups").rows) == 6
