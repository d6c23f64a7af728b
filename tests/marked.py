"""Cases of a parametrized test that only some runs take."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_after(quick: int, cases: Iterable[Any], mark: Any = pytest.mark.slow) -> list[Any]:
    """Return the cases, all but the first `quick` marked; a tuple has a value per argument."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [
        pytest.param(*value, marks=mark if number >= quick else ())
        for number, value in enumerate(values)
    ]


def weekly_after(quick: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases, all but the first `quick` only for the weekly run."""
    return slow_after(quick, cases, pytest.mark.weekly)
