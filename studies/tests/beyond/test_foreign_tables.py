"""When a table is told that its mechanism never made, and the verdicts."""

from pathlib import Path

import numpy as np
import pytest

from deniable_studies.beyond.foreign_tables import (
    HONEST,
    RAW,
    STRONGER,
    STUDY,
    SWAPPED,
    Case,
    Numbers,
    adult,
    false_alarms,
    look,
    made_up,
    one_kind,
    passes,
    told_from,
)
from deniable_studies.study import Findings, Setting, Verdict

EXCERPT = Path(__file__).parents[3] / "examples" / "adult.data"


@pytest.fixture(scope="module")
def findings() -> Findings:
    return STUDY.run(Setting(quick=True, adult=EXCERPT))


def case(table: str, p_values: object, rows: int = 10_000, method: str = "optimal") -> Case:
    return Case("made-up", method, 4.0, rows, table, np.array(p_values, dtype=float))


def test_a_quick_run_decides_what_so_few_tables_can(findings: Findings) -> None:
    verdicts = [claim.verdict for claim in findings.claims]
    assert verdicts == [
        Verdict.UNDECIDED,  # twice as many false alarms would not be seen
        Verdict.NOT,  # made-up people need more than 3,000 rows under forms
        Verdict.UNTESTED,
        Verdict.REPRODUCED,
        Verdict.UNTESTED,
    ]
    told = findings.table("told")
    assert {row[0] for row in told.rows} == {"made-up", "Adult"}
    of_honest = [row for row in told.rows if row[4] == HONEST]
    assert all(row[-2:] == [0.0, 0.0] for row in of_honest)


def test_every_figure_can_be_drawn(findings: Findings, draw_all) -> None:
    draw_all(findings)


def test_more_small_p_values_than_are_promised_are_noticed() -> None:
    uniform = np.linspace(0.0005, 1, 1000)
    assert false_alarms([case(HONEST, uniform)] * 4).verdict is Verdict.REPRODUCED
    judged = false_alarms([case(HONEST, uniform)] * 3 + [case(HONEST, uniform / 2)])
    assert judged.verdict is Verdict.NOT
    assert false_alarms([case(HONEST, uniform[::50])]).verdict is Verdict.UNDECIDED


def test_what_is_told_of_too_few_rows_or_too_seldom_is_noticed() -> None:
    told, half = [0.0] * 10, [0.0] * 5 + [1.0] * 5
    raw = STUDY.judges["raw"]

    def verdict(*cases: Case) -> Verdict:
        return raw(Numbers([], cases)).verdict

    assert verdict(case(RAW, told), case(RAW, told, 1000)) is Verdict.REPRODUCED
    assert verdict(case(RAW, told), case(RAW, half, 1000)) is Verdict.PARTLY
    assert verdict(case(RAW, half), case(RAW, told, 1000)) is Verdict.NOT
    assert verdict(case(RAW, told, 300)) is Verdict.UNTESTED
    swapped = STUDY.judges["swapped"]
    found = swapped(Numbers([], [case(SWAPPED, told), case(SWAPPED, half)]))
    assert found.verdict is Verdict.PARTLY
    assert told_from([case(SWAPPED, half)], 1, lambda _: False).verdict is Verdict.NOT
    complete, forms = case(STRONGER, [1.0]), case(STRONGER, told, method="forms")
    assert passes([complete, forms]).verdict is Verdict.REPRODUCED
    assert passes([complete, case(STRONGER, half, method="forms")]).verdict is Verdict.PARTLY
    assert passes([case(STRONGER, half), forms]).verdict is Verdict.NOT


def test_tables_are_what_they_are_said_to_be() -> None:
    setting = Setting(seed=3)
    assert adult(setting) is None
    assert one_kind().draw(5, setting.generator(1))[3].tolist() == [0] * 5
    people = made_up(setting)
    for method, levels in (("kronecker", True), ("forms", False)):
        mechanism = people.mechanism(method, 4.0)
        first, second, *_ = mechanism.attribute_epsilon
        assert (second == pytest.approx(3 * first)) is levels
        tables = dict.fromkeys((HONEST, RAW, SWAPPED), mechanism)
        found = list(look(people, method, 4.0, 10_000, tables, 2, setting))
        assert [c.table for c in found] == [HONEST, RAW, SWAPPED]
        assert found[0].share(1e-3) == 0.0
        again = list(look(people, method, 4.0, 10_000, tables, 2, setting))
        assert [c.p_values.tolist() for c in again] == [c.p_values.tolist() for c in found]
        # The columns of the wrong form are told at once; the values of a row need many rows.
        assert found[2].p_values.max() == 0.0 if method == "forms" else found[1].share(1e-6) == 1.0
