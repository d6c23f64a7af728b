"""Answers of every kind are printed: none is passed over in silence."""

from typing import Any

import numpy as np
import pytest

from deniable.cli.answers import show_answers
from deniable.estimate.comparing import Comparison
from deniable.estimate.independence import independence
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.schema import Attribute, Schema


class Count:
    """A kind of answer that the command line has never heard of."""

    n_records = 12
    target: Target = "table"

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        return [{"kind": "odd", "least_count": 3, "uncertain": True, "level": level}]

    def caption(self, level: float = 0.95) -> str:
        return f"Counts of 12 rows, {100 * level:g} % intervals"


def test_an_answer_of_an_unknown_kind_is_shown_by_its_caption_and_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_answers([Count()], 0.9)
    shown = capsys.readouterr().out
    assert "Counts of 12 rows, 90 % intervals" in shown
    for text in ("kind", "odd", "least count", "3", "uncertain"):
        assert text in shown


def only(counts: list[list[int]] | list[int], epsilon: float) -> Counts:
    table = np.array(counts)
    law = ProductLaw.from_levels(table.shape, (epsilon,) * table.ndim)
    return Counts.of(Mechanism.of(law), table)


def test_a_share_that_no_table_has_is_marked_and_its_interval_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = only([[9850, 5000], [250, 5000]], 4.0)
    (estimate,) = Shares(("a1",), by=("a2",)).answer(counts)
    assert estimate.values[0, 0] > 1
    assert not estimate.uncertain[0, 0]
    low, high = estimate.confidence_interval(0.95)
    assert low.min() >= 0
    assert high[0, 0] == 1
    show_answers([estimate], 0.95)
    shown = capsys.readouterr().out
    assert shown.count("above 100 %") >= 1
    assert all("uncertain" in line for line in shown.splitlines() if "│ -" in line or " -" in line)


def test_a_negative_count_is_never_shown_without_a_mark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (estimate,) = Shares(("a1", "a2")).answer(only([[900, 50, 1], [60, 700, 0]], 3.0))
    assert estimate.counts is not None
    assert estimate.counts.min() < 0
    show_answers([estimate], 0.95)
    lines = capsys.readouterr().out.splitlines()
    negative = [line for line in lines if " -" in line]
    assert negative
    assert all("uncertain" in line for line in negative)


def test_a_mean_outside_of_its_scores_is_marked_and_its_interval_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (mean,) = Mean(("a1",), scores=(1.0, 2.0, 3.0)).answer(only([60, 58, 9050], 5.0))
    assert isinstance(mean.estimate, float)
    assert mean.estimate > 3
    assert not mean.uncertain
    assert (mean.lowest, mean.highest, mean.high) == (1, 3, 3)
    show_answers([mean], 0.95)
    assert "outside the scores" in capsys.readouterr().out
    # Two thousand rows with one answer: no draw of this law gives that, and so no mean.
    (far,) = Mean(("a1",), scores=(1.0, 2.0, 3.0)).answer(only([0, 0, 20000], 1.0))
    assert far.uncertain
    (inside,) = Mean(("a1",), scores=(1.0, 2.0, 3.0)).answer(only([300, 300, 300], 5.0))
    show_answers([inside], 0.95)
    shown = capsys.readouterr().out
    assert "outside" not in shown
    assert "uncertain" not in shown


def test_a_difference_of_shares_is_marked_where_it_tells_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    compared = Comparison(("a1",), column="a2", values=("0", "1"))
    (one, two) = compared.answer(only([[50, 500], [900, 700]], 6.0))
    assert not one.table()[0]["uncertain"]
    assert not two.table()[0]["uncertain"]
    (weak, _) = compared.answer(only([[50, 55], [80, 70]], 1.5))
    row = weak.table()[0]
    assert row["uncertain"]
    assert -1 <= row["low"] <= row["high"] <= 1
    show_answers([weak], 0.95)
    shown = capsys.readouterr().out
    assert "uncertain" in shown
    assert "An interval that contains 0 is inconclusive." in shown


def test_the_test_says_what_it_could_not_have_seen(capsys: pytest.CaptureFixture[str]) -> None:
    for rows, said in ((300, "detects even V = 1 with less"), (800, "probability is 0.87 (")):
        counts = only([[rows, rows * 3 // 4], [rows * 3 // 4, rows]], 0.5)
        found = independence(counts, ("a1", "a2"))
        assert found.cramers_v is not None
        show_answers([found], 0.95)
        assert said in " ".join(capsys.readouterr().out.split())
        assert found.to_plain()["detectable_v"] == found.cramers_v.detectable


def test_the_largest_of_many_cells_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    counts = np.arange(1, 61) ** 3 + 20_000
    (estimate,) = Shares(("a1",)).answer(only(counts.tolist(), 9.0))
    show_answers([estimate], 0.95)
    shown = capsys.readouterr().out
    order = np.argsort(-estimate.values)[:40]
    assert not estimate.uncertain[order].any()
    places = [shown.index(f"│ {name} ") for name in order]
    assert places == sorted(places)
    hidden = int((~estimate.uncertain).sum()) - 40
    assert f"… {hidden} smaller" in shown


def test_more_than_forty_quantiles_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    # Failed before: categories were sorted as numbers.
    schema = Schema(
        (Attribute("a1", ("0", "1"), ordered=True), Attribute("a2", tuple(map(str, range(50)))))
    )
    law = ProductLaw.from_levels((2, 50), (9.0, 9.0))
    counts = Counts.of(Mechanism.of(law, schema), np.array([[900] * 50, [500] * 50]))
    show_answers(Quantile(("a1",), by=("a2",)).answer(counts), 0.95)
    shown = capsys.readouterr().out
    assert shown.index("│ 0 ") < shown.index("│ 39 ")
    assert "… 10 more (--json or --output has all)" in shown
