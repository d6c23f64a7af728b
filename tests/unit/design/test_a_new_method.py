"""A new method is a function and one row in each of two tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import deniable, people
from deniable.design.methods import FUNCTIONS, Functions
from deniable.design.solving import Solution, Task
from deniable.laws import ProductLaw
from deniable.statement.methods import METHODS, Method

__all__ = ["deniable", "people"]


def half_as_much(task: Task, levels: Sequence[float]) -> Solution:
    """Independent responses at half of every level."""
    return Solution.one(ProductLaw.from_levels(task.n_categories, [level / 2 for level in levels]))


TOY = Method(
    "half",
    "independent responses at half of every level",
    label="half",
    description="half of what was asked for",
)


def test_a_method_in_the_table_is_designed_shared_inspected_and_estimated(
    deniable: Callable[..., Any], people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = ("--schema", "people.toml", "--method", "half", "--attribute-epsilon", "1,2,1")
    # Before it is in the table it is refused, and helps nobody.
    assert "no method 'half'" in deniable("design", *asks).err
    assert "half of every level" not in deniable("design", "--help").out
    monkeypatch.setitem(METHODS, TOY.name, TOY)
    monkeypatch.setitem(FUNCTIONS, TOY.name, Functions(solve=half_as_much))

    for command in ("design", "share"):
        assert "half: independent responses at half of every" in deniable(command, "--help").out
    assert "cannot keep the requested level" in deniable("design", *asks).err
    made = deniable("design", *asks, "--allow-changed-levels", "--json").json
    assert made["method"] == "half"
    assert [row["epsilon"] for row in made["attributes"]] == [0.5, 1.0, 0.5]
    assert made["changed_levels"] == ["sex", "age", "blood"]

    shared = ("share", "people.csv", *asks, "--allow-changed-levels", "--output", "release")
    assert deniable(*shared).status == 0
    assert "half of what was asked for" in (people / "release" / "report.html").read_text()
    assert "Method half" in deniable("inspect", "release").out
    assert deniable("estimate", "release", "--of", "sex").status == 0
