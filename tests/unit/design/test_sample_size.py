"""A wished error is reached, and not by more than it takes."""

import math

import pytest

from deniable.design import sample_size
from deniable.design.account import Design
from deniable.design.design import design
from deniable.design.expected_accuracy import Shares, expected_accuracy
from deniable.design.expected_tables import ExpectedTable, expected_tables
from deniable.design.sample_size import CLOSE, design_for_error, plan, smallest_epsilon
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


@pytest.mark.parametrize("assume", ["uniform", "worst"])
def test_the_smallest_epsilon_meets_the_wish_and_one_per_cent_less_does_not(assume: str) -> None:
    schema, tables = Schema.anonymous((2, 5, 3)), ["a1", "a1,a2", "a2,a3"]
    tried: list[float | None] = []

    def make(epsilon: float) -> Design:
        return design(schema, epsilon=epsilon, method="kronecker")

    found = smallest_epsilon(
        schema, tables, 2000, 0.04, make=make, assume=assume, progress=tried.append
    )

    def widest(epsilon: float) -> float:
        widths = [t.half_width for t in expected_tables(make(epsilon), tables, 2000, assume)]
        return max(width or math.inf for width in widths)

    assert found.deciding.half_width == pytest.approx(widest(found.design.epsilon))
    assert widest(found.design.epsilon) <= 0.04
    assert widest(found.design.epsilon / 1.01) > 0.04
    low, high = 0.1, 50.0  # brute force
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if widest(middle) <= 0.04 else (middle, high)
    assert high <= found.design.epsilon * (1 + 1e-9) <= 1.01 * high
    assert len(tried) <= 8
    plain = found.to_plain()
    assert plain["deciding"] == ["a2", "a3"]
    assert [table["attributes"] for table in plain["tables"]][1] == ["a1", "a2"]


def test_a_step_in_the_errors_is_found_by_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    def stepped(made: float, _tables: object, n_records: int, _assume: str) -> tuple[object, ...]:
        return (ExpectedTable(("a",), 2, n_records, 0.001 if made >= 7 else 0.2, 0),)

    monkeypatch.setattr(sample_size, "expected_tables", stepped)
    found = smallest_epsilon(
        Schema.anonymous((2, 3)),
        ["a"],
        100,
        0.05,
        make=lambda epsilon: epsilon,  # type: ignore[arg-type,return-value]
    )
    assert 7 <= found.design <= 7.07  # type: ignore[operator]


def test_a_table_that_is_never_accurate_is_named() -> None:
    schema = Schema.anonymous((2, 3, 4, 5))

    def capped(epsilon: float) -> Design:
        return design(schema, epsilon=min(epsilon, 2.0), method="kronecker")

    with pytest.raises(InputError, match="the table of a4 a half-width of 1 points: the last"):
        smallest_epsilon(schema, ["a1", "a4"], 100, 0.01, make=capped)
    with pytest.raises(InputError, match="at least one table"):
        smallest_epsilon(schema, [], 100, 0.01)
    with pytest.raises(InputError, match="between 0 and 1"):
        smallest_epsilon(schema, ["a1"], 100, 2.0)
    with pytest.raises(InputError, match="no attribute 'a9'"):
        smallest_epsilon(schema, ["a9"], 100, 0.01)
