"""An audit refutes the honest no oftener than it says, and finds defects as often as it says."""

import math
import os
from pathlib import Path

import pytest
from scipy.stats import binom

from deniable import Schema, design
from deniable.audit import Plan, audit
from deniable.mechanism.mechanism import Mechanism
from deniable.statement.record import read_design
from deniable.statement.stored import FORMAT_VERSION
from marked import slow_after
from statistical.budget import BUDGET
from unit.audit.test_audit import changed_to_any, honest, same_key, swapped, untouched

GOLDEN = Path(__file__).parents[1] / "golden" / str(FORMAT_VERSION)
FAMILIES = sorted(path.stem for path in GOLDEN.glob("*.json"))
TURNS = int(os.environ.get("AUDITS", "2"))
"""Audits of every family; `just audits` makes a thousand in all."""

ERROR = 0.05


def refuted(mechanism: Mechanism, turns: int, draws: int) -> int:
    plan, box = Plan(mechanism, draws, ERROR), honest(mechanism)
    return sum(audit(plan, box).refuted for _ in range(turns))


@pytest.mark.weekly
def test_honest_mechanisms_of_every_family_are_refuted_no_oftener_than_promised():
    share = BUDGET.spend("audits of honest mechanisms")
    found = {
        name: refuted(read_design(GOLDEN / f"{name}.json").mechanism, TURNS, 4000)
        for name in FAMILIES
    }
    count = sum(found.values())
    print(f"{count} of {TURNS * len(FAMILIES)} audits refute at error {ERROR:g}: {found}")
    assert binom.sf(count - 1, TURNS * len(FAMILIES), ERROR) > share


def test_honest_audits_are_refuted_no_oftener_than_promised():
    share = BUDGET.spend("a few audits of an honest mechanism")
    count = refuted(design(Schema.anonymous((2, 3, 4)), epsilon=3).mechanism, 20, 4000)
    assert binom.sf(count - 1, 20, ERROR) > share


@pytest.mark.parametrize(
    ("box", "defect", "draws"),
    slow_after(
        1,
        [(untouched, 0, 2000), (changed_to_any, 1, 1000), (swapped, 2, 6000), (same_key, 4, 6000)],
    ),
)
def test_a_defect_is_found_as_often_as_is_stated(box, defect, draws):
    share = BUDGET.spend(f"audits of {box.__name__}")
    plan = Plan(design(Schema.anonymous((2, 3, 4)), epsilon=3).mechanism, draws, 1e-3)
    stated = plan.power[defect].probability
    assert stated > 0.3
    found = sum(audit(plan, box).refuted for _ in range(12))
    assert binom.cdf(found, 12, min(stated, 1 - 1e-12)) > share


@pytest.mark.slow
def test_a_keep_probability_two_per_cent_high_is_found_as_often_as_is_stated():
    share = BUDGET.spend("audits of a keep probability two per cent high")
    claimed = design(Schema.anonymous((4,)), attribute_epsilon=[1.0]).mechanism
    keep = 1.02 * claimed.keep_probability[0]
    true = design(
        Schema.anonymous((4,)), attribute_epsilon=[math.log(3 * keep / (1 - keep))]
    ).mechanism
    plan = Plan(claimed, 60_000, 1e-3)
    stated = plan.power[3].probability
    assert 0.2 < stated < 0.99
    box = honest(true)
    found = sum(audit(plan, box).refuted for _ in range(100))
    assert binom.cdf(found, 100, stated) > share
