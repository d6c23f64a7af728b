"""A wished error is reached, and not by more than it takes."""

import pytest

from deniable.design.reach import CLOSE, design_for_error
from deniable.design.worth import worth
from deniable.errors import InputError
from deniable.schema import Schema


@pytest.mark.parametrize(
    ("categories", "rows", "error", "method"),
    [
        ((5, 5, 3), 10_000, 0.02, "kronecker"),
        ((2, 3, 4, 5), 500, 0.05, "optimal"),
        ((5,), 1000, 0.01, None),
        ((2, 3), 10**6, 0.001, "kronecker"),
        ((2, 3), 100, 0.3, "kronecker"),
    ],
)
def test_the_median_share_has_the_wished_error(
    categories: tuple[int, ...], rows: int, error: float, method: str | None
) -> None:
    tried: list[float | None] = []
    made = design_for_error(
        Schema.anonymous(categories), rows, error, method=method, progress=tried.append
    )
    found = worth(made.account).to_plain(rows)["median"]["standard_error"]
    assert error * (1 - CLOSE) - 1e-9 <= found <= error + 1e-9
    assert len(tried) <= 5


def test_impossible_wishes_are_refused() -> None:
    schema = Schema.anonymous((2, 3))
    with pytest.raises(InputError, match="between 0 and 1"):
        design_for_error(schema, 1000, 2.0)
    with pytest.raises(InputError, match="at least 1"):
        design_for_error(schema, 0, 0.1)
    with pytest.raises(InputError, match="no total was found"):
        design_for_error(schema, 10, 1e-300, method="kronecker")
