"""A wished error is reached, and not by more than it takes."""

import math

import pytest

from deniable.design import sample_size
from deniable.design.expected_accuracy import Shares, expected_accuracy
from deniable.design.sample_size import CLOSE, design_for_error, plan
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
    found = expected_accuracy(made.account).to_plain(rows)["median"]["standard_error"]
    assert error * (1 - CLOSE) - 1e-9 <= found <= error + 1e-9
    assert len(tried) <= 5


def test_impossible_wishes_are_refused() -> None:
    schema = Schema.anonymous((2, 3))
    for words, given in (
        ("between 0 and 1", {"rows": 1000, "error": 2.0}),
        ("at least 1", {"rows": 0, "error": 0.1}),
        ("give two of `rows`, `error` and `epsilon`", {"rows": 1000}),
        ("give two of `rows`, `error` and `epsilon`", {"rows": 1000, "error": 0.1, "epsilon": 1}),
    ):
        with pytest.raises(InputError, match=words):
            plan(schema, **given)
    with pytest.raises(InputError, match=r"nowhere.toml: the schema cannot be read"):
        plan("nowhere.toml", rows=1000, error=0.1)
    with pytest.raises(InputError, match="no total was found"):
        design_for_error(schema, 10, 1e-300, method="kronecker")


def test_of_rows_error_and_epsilon_two_give_the_third() -> None:
    schema = Schema.anonymous((2, 3))
    by_error = plan(schema, rows=5000, error=0.02, method="kronecker")
    epsilon = by_error.design.epsilon
    # The same three numbers, whichever is asked for; the error is met within its 2 %.
    by_epsilon = plan(schema, rows=5000, epsilon=epsilon, method="kronecker")
    error = by_epsilon.to_plain()["worth"]["median"]["standard_error"]
    assert 0.0196 <= error <= 0.02
    by_rows = plan(schema, error=error, epsilon=epsilon, method="kronecker")
    assert 4990 <= by_rows.rows <= 5000
    assert by_rows.to_plain()["epsilon"] == pytest.approx(epsilon)
    assert by_rows.to_plain()["method"] == "kronecker"


def test_rows_do_not_help_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        median = Shares(("a1",), 2, math.inf)

    monkeypatch.setattr(sample_size, "expected_accuracy", lambda _account: Nothing)
    with pytest.raises(InputError, match="leaves nothing of a typical share"):
        plan(Schema.anonymous((2, 3)), error=0.02, epsilon=1, method="kronecker")
