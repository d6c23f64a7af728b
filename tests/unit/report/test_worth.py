"""Whether a release is worth anything, and protects anything, is said in sentences."""

from typing import Any

from deniable.report.worth import advice, lines, unprotected, verdict, without_mean
from deniable.schema import Attribute, Schema


def one(share: float, error: float | None, *names: str) -> dict[str, Any]:
    readable = error is not None and 2 * error <= min(0.1, share)
    return {
        "attributes": list(names or ("a",)),
        "share": share,
        "standard_error": error,
        "readable": readable,
    }


def worth(median: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "rows": 1000,
        "attributes": 200,
        "median": median,
        "worst": one(0.1, 0.9, "b"),
        "median_pair": None,
        "worst_pair": None,
        "rows_needed": 39_420,
        **more,
    }


def test_nothing_is_said_where_shares_can_be_read() -> None:
    assert verdict(worth(one(0.2, 0.049)), 4.0) == ""


def test_a_half_width_above_ten_points_or_the_share_is_called_unreadable() -> None:
    for median in (one(0.5, 0.051), one(0.06, 0.031)):
        said = verdict(worth(median), 4.0)
        assert "At ε = 4 with 200 attributes and 1,000 rows nothing can be read" in said
        assert "It takes about 40,000 rows" in said
    assert verdict(worth(one(0.5, 0.11)), None).startswith("With 200 attributes")
    gone = verdict(worth(one(0.5, None), rows_needed=None), 4.0)
    assert "More rows would not help" in gone


def test_pairs_are_told_with_the_worst_and_only_where_they_are_known() -> None:
    assert len(lines(worth(one(0.2, 0.01)))) == 1
    pairs = {"median_pair": one(0.04, 0.03, "a", "b"), "worst_pair": one(0.04, 0.5, "a", "c")}
    single, double = lines(worth(one(0.2, 0.01), **pairs))
    assert "20 %" in single.replace("\u00a0", " ")
    assert "the worst, one of b" in single
    assert "the worst, of a and c" in double
    assert "cannot be read cell by cell" in double


def test_a_row_is_called_unprotected_from_where_the_promise_is_next_to_nothing() -> None:
    assert unprotected(None) == unprotected(10.0) == ""
    assert "22,100 times" in unprotected(10.001)


def test_what_would_tell_more_is_said_with_what_suffices_first():
    told: dict[str, Any] = {"forms_rows": 1.83, "two_points": 4.248, "of": None, "ways": []}
    assert advice(told) == [
        "With `method` forms, 1.8 times fewer rows would give the same errors of shares; its rows "
        "are not complete.",
        "A typical share would be within 2 points (95 %) at about ε = 4.2.",
    ]
    assert advice(told | {"forms_rows": None, "two_points": None}) == []
    fewer = {"kind": "fewer", "left_out": list("abcde"), "epsilon": 2, "standard_error": 0.0712}
    larger = {"kind": "epsilon", "left_out": [], "epsilon": 3.0, "standard_error": 0.096}
    forms = {"kind": "forms", "left_out": [], "epsilon": 2, "standard_error": 0.107}
    ways = [fewer | {"readable": True}, larger | {"readable": True}, forms | {"readable": False}]
    assert advice(told | {"of": "share", "ways": ways}) == [
        "What helps most here, with the standard error of a typical share then: to leave out "
        "a, b, c and 2 more (7.1 points); or ε = 3 (9.6 points); or `method` forms (11 points), "
        "which is not enough."
    ]
    assert (
        "a typical cell of a table of two attributes then: ε = 3 ("
        in advice(told | {"of": "pair", "ways": [larger | {"readable": True}]})[0]
    )


def test_a_person_with_many_rows_is_called_unprotected_at_the_level_of_all_of_them() -> None:
    # Failed before: 7 rows of 4 nats each were not warned of.
    assert unprotected(4.0) == unprotected(4.0, 8.0) == unprotected(None, None) == ""
    warning = unprotected(4.0, 28.0)
    assert warning.startswith("ε = 28 hardly protects a person with all rows")
    assert "fewer rows of each person" in warning
    assert unprotected(11.0, 11.0) == unprotected(11.0)


def test_of_open_intervals_without_scores_it_is_said_that_no_mean_can_be_told() -> None:
    closed = Attribute("hours", bins=(0, 20, 40))
    scored = Attribute("age", bins=(0, 40, float("inf")), scores=(20, 55))
    assert without_mean(Schema((closed, scored))) == ""
    opened = Attribute("income", bins=(0, 100, float("inf")))
    said = without_mean(Schema((closed, opened, scored)))
    assert "No mean of income can be told" in said
    assert without_mean(Schema((closed, opened), keep=("income",))) == ""
