"""Answers of every kind are printed: none is passed over in silence."""

from typing import Any

import pytest

from deniable.cli.answers import show_answers
from deniable.mechanism.prediction import Target


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
