"""A new kind of query is one class: here, how much commoner one category is than another."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from deniable.cli import queries
from deniable.estimate.inference import Inference, Value
from deniable.estimate.query import Query, one_or_groups
from deniable.estimate.source import open_release
from deniable.estimate.tabulate import Counts
from deniable.mechanism.strata import Strata
from deniable.opened import OpenedRelease
from unit.estimate.releases import by_town, mechanism, table


@dataclass(frozen=True, kw_only=True)
class Lead(Query[Value]):
    """By how much is the first category more frequent than the last?"""

    def answer(self, counts: Counts) -> list[Value]:
        inference = Inference(counts, self.of)
        weights = np.zeros(inference.values.shape)
        weights[0], weights[-1] = 1.0, -1.0
        return [inference.linear(weights)]

    def to_plain(self, answers: Sequence[Value]) -> dict[str, Any]:
        return one_or_groups([{"lead": lead, "error": error} for lead, error in answers])


def test_a_question_of_ten_lines_is_asked_of_a_release() -> None:
    release = open_release(table(), Strata.one(mechanism()))
    query = Lead(("smokes",))
    (lead,) = query.run(release)
    # k-RR with λ = (e³ − 1)/(e³ + 1) leaves λ times the difference of two categories.
    released = table().column("smokes").to_pylist()
    attenuation = float(np.tanh(1.5))
    seen = (released.count("no") - released.count("yes")) / 400
    assert lead.estimate == pytest.approx(seen / attenuation, rel=1e-9)
    assert query.to_plain([lead]) == {"lead": lead.estimate, "error": lead.standard_error}


def test_its_command_is_made_of_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(queries.QUERIES, "lead", (Lead, "Lead of a category.", "release --of age"))
    taken = inspect.signature(queries._command("lead")).parameters
    assert {"of", "by", "weights", "level", "rows", "output", "as_json"} <= taken.keys()
    assert not {"pairs", "wide", "plot", "where", "answered"} & taken.keys()
    assert OpenedRelease(open_release(table(), by_town())).query(Lead("smokes"))


def test_it_knows_groups_selections_weights_and_strata_without_a_line_more() -> None:
    whole = open_release(table(), by_town())
    groups = Lead(("smokes",), by=("town",), weights="weight", where={"sex": "f"}).run(whole)
    assert len(groups) == 2
    query = Lead(("smokes",), by=("town",))
    assert len(query.to_plain(query.run(whole))["groups"]) == 2
    (together,) = Lead(("smokes",)).run(whole)
    parts = query.run(whole)
    sizes = [table().column("town").to_pylist().count(town) / 400 for town in "ab"]
    expected = sum(size * part.estimate for size, part in zip(sizes, parts, strict=True))
    assert together.estimate == pytest.approx(expected, rel=1e-9)
    errors = [size * part.standard_error for size, part in zip(sizes, parts, strict=True)]
    assert together.standard_error == pytest.approx(float(np.hypot(*errors)), rel=1e-9)
