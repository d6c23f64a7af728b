"""Studies: their text and their code belong together; verdicts, reasons and numbers as written."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_text

from deniable_studies.study import Claim, Judged, Setting, Study, Table, Verdict, make_claim
from deniable_studies.text import ClaimText, FigureText, TableText, Text

CLAIM = ClaimText("sums", "1 + 1 = 3", "nobody", "to {limit:g}", "It is {sum}.")
TEXT = Text(
    "made-up",
    "A study",
    "nobody",
    "Is it?",
    1.0,
    choices=("{n:,} draws.", "{nothing}"),
    remarks=(),
    claim=(CLAIM, with_text(CLAIM, id="later", full_only=True)),
    figure={"dot": FigureText("{n} dots.")},
    table={"one": TableText("{n} rows.", ("x",))},
)


def judge(n: int) -> Judged:
    return Judged(f"{n}", n == 3, n == 2, values={"limit": 0.5, "sum": n})


STUDY = Study(
    TEXT,
    lambda _: 2,
    judges={"sums": judge, "later": judge},
    figures={"dot": lambda canvas, _: canvas.subplots()},
    tables={"one": lambda n: [[n]]},
    values=lambda n: {"n": 1000 * n, "nothing": ""},
)


def test_what_is_said_is_filled_with_the_numbers_and_what_is_empty_is_left_out() -> None:
    findings = STUDY.run(Setting())
    assert findings.choices == ["2,000 draws."]
    assert findings.figures[0].caption == "2000 dots."
    assert findings.table("one").caption == "2000 rows."
    assert findings.table("one").column("x") == [2]
    assert findings.claims[0] == Claim(
        "1 + 1 = 3", "nobody", "to 0.5", "2", Verdict.PARTLY, "It is 2."
    )


def test_a_quick_run_leaves_out_what_is_for_full_ones_only() -> None:
    assert len(STUDY.run(Setting(quick=True)).claims) == 1
    assert len(STUDY.run(Setting()).claims) == 2


def test_a_claim_without_a_judge_and_a_judge_without_a_claim_are_refused() -> None:
    with pytest.raises(ValueError, match="made-up: text and code differ in a claim: later"):
        replace(STUDY, judges={"sums": judge})
    with pytest.raises(ValueError, match="in a claim: products"):
        replace(STUDY, judges={**STUDY.judges, "products": judge})
    with pytest.raises(ValueError, match="in a claim: one of them twice"):
        replace(STUDY, text=with_text(TEXT, claim=(*TEXT.claim, CLAIM)))


def test_a_figure_or_a_table_that_nothing_makes_is_refused() -> None:
    with pytest.raises(ValueError, match="in a figure: dot"):
        replace(STUDY, figures={})
    with pytest.raises(ValueError, match="in a table: one"):
        replace(STUDY, tables={})


def test_a_reason_is_given_where_a_claim_does_not_hold_in_full() -> None:
    assert make_claim(CLAIM, judge(3)).why == ""
    assert make_claim(CLAIM, judge(4)).why == "It is 4."
    assert make_claim(with_text(CLAIM, always=True), judge(3)).why == "It is 3."
    several = with_text(CLAIM, why={"low": "Too low.", "high": "Too high."})
    assert make_claim(several, judge(4)._replace(why="high")).why == "Too high."
    with pytest.raises(KeyError):
        make_claim(several, judge(4))
    with pytest.raises(ValueError, match="needs a reason"):
        make_claim(with_text(CLAIM, why=""), judge(4))


def test_a_verdict_is_the_strongest_that_holds() -> None:
    assert Judged("", True, True).verdict is Verdict.REPRODUCED
    assert Judged("", False, True).verdict is Verdict.PARTLY
    assert Judged("", False).verdict is Verdict.NOT


def test_what_was_not_tested_or_cannot_be_told_is_not_reproduced_however_the_rule_falls() -> None:
    assert Judged("", True, tested=False).verdict is Verdict.UNTESTED
    assert Judged("", True, decided=False).verdict is Verdict.UNDECIDED
    assert Judged("", False, decided=False).verdict is Verdict.UNDECIDED
    values = {"limit": 1}
    untested = make_claim(CLAIM, Judged("", True, tested=False, values=values))
    assert "no case" in untested.why
    undecided = make_claim(CLAIM, Judged("", True, decided=False, values=values))
    assert "too few for a decision" in undecided.why


def test_numbers_have_ten_digits_in_files() -> None:
    table = Table("t", "", ["a"], [[1 / 3], [None], [float("nan")], [7], ["x"]])
    assert table.csv_text() == 'a\n0.3333333333\n""\n""\n7\nx\n'
    with pytest.raises(ValueError, match="a row of 2 cells"):
        Table("t", "", ["a"], [[1, 2]])


def test_progress_of_a_part_lies_within_it() -> None:
    seen: list[float | None] = []
    part = Setting(advance=seen.append).part(0.5, 1.0)
    for i in range(2):
        with part.step(i, 2):
            pass
    assert seen == [0.75, 1.0]


def test_streams_of_a_seed_differ() -> None:
    setting = Setting(seed=3)
    assert setting.release_seed(1) != setting.release_seed(2)
    assert setting.generator(1).random() != setting.generator(2).random()
    assert setting.generator(1).random() == Setting(seed=3).generator(1).random()
