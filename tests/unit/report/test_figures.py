"""Plots of a release's page."""

from datetime import date

import numpy as np
import pytest

from deniable.design.design import design
from deniable.mechanism.published import channel_of
from deniable.report.contents import read_contents
from deniable.report.figures import number_pictures
from deniable.report.page import render_report
from deniable.schema import Attribute, Schema
from unit.report.release_records import release_record

PAY = Attribute("pay", range=(0, 200_000), grid=5, unit="EUR", missing="NA", outside="clip")
BORN = Attribute("born", range=(date(1950, 1, 1), date(2010, 1, 1)))
PART = Attribute.merged((Attribute("smokes", ("no", "yes")), Attribute("hours", range=(0, 9))))


def test_a_picture_of_a_number_has_the_chances_of_its_channel() -> None:
    kept = Attribute("kept", range=(0, 1))
    made = design(Schema((PAY, BORN, PART, kept), keep=("kept",)), epsilon=4)
    contents = read_contents(release_record(made))
    pay, born, hours = number_pictures(contents)
    assert [one.column.name for one in (pay, born, hours)] == ["pay", "born", "hours"]
    assert (pay.example, born.example, hours.plot) == ("60000", "1956-01-01", None)
    assert pay.plot is not None
    assert [group.name for group in pay.plot.groups] == list(PAY.categories)
    rounded, released = (
        [group.bars[place].value for group in pay.plot.groups] for place in range(2)
    )
    assert rounded == pytest.approx([0, 80, 20, 0, 0, 0])
    channel = channel_of(made.mechanism, ("pay",)).forward.apply(np.array(rounded))
    assert released == pytest.approx(channel)
    coarse = design(Schema((PAY,)), epsilon=4)
    (pay,) = number_pictures(read_contents(release_record(coarse)))
    assert pay.plot is not None
    released = [group.bars[-1].value for group in pay.plot.groups]
    (matrix,) = (block.law.matrix() for block in coarse.mechanism.blocks)
    assert released == pytest.approx(100 * (0.8 * matrix[:, 1] + 0.2 * matrix[:, 2]))
    page = render_report(release_record(made))
    assert "For example 60000 EUR:" in page
    assert "A number outside is set to the nearer end." in page
    assert "<h2>Numbers</h2>" not in render_report(
        release_record(design(Schema.anonymous((2, 3)), epsilon=2))
    )
