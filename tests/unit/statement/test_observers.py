"""The report and the command line say the same of the four observers."""

import math
from pathlib import Path

import pandas as pd
import pytest

import deniable
from deniable.report.wording import epsilon_text, factor_text, posterior_text
from deniable.schema import Schema
from deniable.statement.observers import observers
from unit.dense import random_matrix


@pytest.mark.slow
def test_a_report_shows_these_numbers(tmp_path: Path) -> None:
    made = deniable.design(Schema.anonymous((2, 3, 5)), epsilon=2)
    frame = pd.DataFrame({"a1": [0, 1], "a2": [2, 0], "a3": [4, 0]}).astype(str)
    deniable.share(frame, made, tmp_path / "r")
    page = (tmp_path / "r" / "report.html").read_text()
    rows = page[page.index("<h2>Observers") :].split("<tr>")[2:6]
    for one, row in zip(observers(made), rows, strict=True):
        assert one.least is not None
        assert epsilon_text(one.least) in row
        assert epsilon_text(one.largest) in row
        assert factor_text(one.largest) in row
        assert posterior_text(0.1, one.largest) in row
        assert one.factor == pytest.approx(math.exp(one.largest or 0))


def test_what_has_no_bound_is_none() -> None:
    from deniable.design.matrices import with_responses
    from deniable.laws import MatrixChannel

    schema = Schema.anonymous((2, 3))
    laws = {"a1": MatrixChannel((2,), 2, ((4, 1), (0, 3))), "a2": random_matrix(3, 3, 1)}
    anyone, alone, rest, some = observers(with_responses(schema, None, laws))
    assert anyone.largest is anyone.factor is alone.largest is rest.largest is some.largest is None
    assert alone.least == some.least
    assert some.to_plain()["at_most"]
