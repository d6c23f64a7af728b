"""The record of a release of strata, summed up: never less than holds in the worst stratum."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deniable.design.request import StrengthRequest
from deniable.errors import InputError
from deniable.randomness import SystemRandomness
from deniable.release.curator import Treatment, pram
from deniable.release.release import Options
from deniable.report.codebook import render_codebook
from deniable.report.contents import read_contents
from deniable.report.page import render_report
from deniable.schema import Attribute, Schema

SCHEMA = Schema((Attribute("a", ("x", "y")), Attribute("b", ("1", "2", "3"))), keep=("region",))
ROWS = {
    "a": ["x", "y", "y", "x"] * 5,
    "b": ["1", "2", "3", "1"] * 5,
    "region": ["n", "s"] * 10,
    "income": [1.0, 2.0, 3.0, 4.0] * 5,
}


def record(folder: Path, **how: Any) -> dict[str, Any]:
    request = StrengthRequest(attenuation={"a": 0.5, "b": 0.3})
    treatment = Treatment(SCHEMA, request, by="region", **how)
    options = Options(drop_other_columns=True, command="deniable pram <b>")
    return pram(pa.table(ROWS), treatment, folder / "r", options, SystemRandomness())


@pytest.mark.slow
def test_the_summary_has_the_largest_levels_and_what_all_strata_share(tmp_path: Path) -> None:
    strata = {"s": StrengthRequest(attenuation={"a": 0.5, "b": 0.6})}
    plain = record(tmp_path, strata=strata)
    contents = read_contents(plain)
    parts = [part["mechanism"] for part in plain["expost"]["strata"]["mechanisms"]]
    assert contents.mechanism.epsilon == max(part["epsilon"] for part in parts)
    a, b = contents.mechanism.attributes
    assert b.epsilon == max(part["attributes"][1]["epsilon"] for part in parts)
    assert (a.attenuation, b.attenuation) == (0.5, None)
    assert a.keep_probability == 0.75
    assert b.keep_probability is None
    page = render_report(plain)
    assert "Strata" in page
    assert "deniable.open(&#39;.&#39;)" in page
    assert "<b>" not in page.split("Command")[1]


def test_an_unbounded_stratum_makes_the_summary_unbounded(tmp_path: Path) -> None:
    plain = record(tmp_path, invariant=True)
    contents = read_contents(plain)
    assert contents.mechanism.epsilon is None
    assert all(row.epsilon is None for row in contents.mechanism.attributes)
    assert contents.unbounded() == []  # what holds instead is said for all of them
    assert contents.randomized() == ["a", "b"]
    page = render_report(plain)
    assert "made from the table itself" in page
    assert "ε if the frequencies are known" in page


def test_numbers_are_among_what_neighbours_agree_on(tmp_path: Path) -> None:
    plain = record(tmp_path, numeric={"income": 0.5})
    contents = read_contents(plain)
    assert contents.agreed() == ["region", "income"]
    assert "the same region, income" in render_report(plain)
    row = next(r for r in render_codebook(plain).splitlines() if r.startswith("income"))
    assert "pulled towards the mean" in row


def test_a_record_with_neither_mechanism_nor_strata_is_refused(tmp_path: Path) -> None:
    plain = json.loads(json.dumps(record(tmp_path)))
    plain["expost"]["strata"] = None
    with pytest.raises(InputError, match="neither a mechanism nor strata"):
        read_contents(plain)
    del plain["expost"]
    with pytest.raises(InputError, match="cannot be shown"):
        read_contents(plain)
