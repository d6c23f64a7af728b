"""Combining: the rules by hand, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

import deniable
from deniable.errors import InputError, Notice
from deniable.synthesis.combining import combine_file

RANDOM = np.random.default_rng(3)
VALUES, SQUARES = RANDOM.normal(size=(7, 2)), RANDOM.uniform(0.1, 0.3, (7, 2))


def test_imputed_copies_by_rubins_rule() -> None:
    found = deniable.combine(VALUES, SQUARES, kind="imputed")
    within, between = SQUARES.mean(0), VALUES.var(0, ddof=1)
    total = within + (8 / 7) * between
    np.testing.assert_allclose(found.standard_errors**2, total, rtol=1e-12)
    free = 6 * (1 + within / ((8 / 7) * between)) ** 2
    np.testing.assert_allclose(found.degrees_of_freedom, free, rtol=1e-12)


def test_synthetic_copies_by_raghunathan_reiter_and_rubin() -> None:
    found = deniable.combine(VALUES, SQUARES, kind="synthetic", terms=("a", "b"))
    within, between = SQUARES.mean(0), (8 / 7) * VALUES.var(0, ddof=1)
    np.testing.assert_allclose(
        found.standard_errors**2, np.maximum(between - within, within), rtol=1e-12
    )
    ratio = np.maximum(between / within, 2)
    np.testing.assert_allclose(found.degrees_of_freedom, 6 * (1 - 1 / ratio) ** 2, rtol=1e-12)
    low = deniable.combine(VALUES * 1e-6, SQUARES, kind="synthetic")
    np.testing.assert_allclose(low.standard_errors**2, within, rtol=1e-9)
    assert [row["term"] for row in found.table(0.9)] == ["a", "b"]


def test_what_is_rare_next_to_the_noise_is_marked() -> None:
    # Failed before: shares of empty categories and of one in a thousand were told as if certain.
    noise = np.random.default_rng(4).normal(size=20)
    for share in (np.maximum(0.001 + 0.004 * noise, 0), np.zeros(20)):
        found = deniable.combine(share, share * (1 - share) / 20_000, kind="synthetic")
        assert found.table()[0]["remark"].startswith("not to be read")
        with np.errstate(divide="ignore"):
            error = 1 / (20_000 * np.maximum(share, 1e-6))
        (row,) = deniable.combine(np.log(1 / (20_000 * error)), error, kind="imputed").table()
        assert share.max() == 0 or row["remark"].startswith("not to be read")
    share = 0.05 + 0.004 * noise
    (row,) = deniable.combine(share, share * (1 - share) / 20_000, kind="synthetic").table()
    assert row["remark"] == ""


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(InputError, match="at least 5"):
        deniable.combine(VALUES[:4], SQUARES[:4], kind="imputed")
    with pytest.raises(InputError, match="kind"):
        deniable.combine(VALUES, SQUARES, kind="other")  # type: ignore[arg-type]
    for wrong in (-1.0, np.nan, np.inf, 1e300):
        squares = SQUARES.copy()
        squares[3, 1] = wrong
        what = r"^copy 4, variance 2: the value is not a number between 0 and 1e\+200$"
        with pytest.raises(InputError, match=what):
            deniable.combine(VALUES, squares, kind="imputed")
    with pytest.raises(
        InputError, match="copy 1, estimate 1: the value is not a number between -1e"
    ):
        deniable.combine(VALUES * np.inf, SQUARES, kind="imputed")
    with pytest.raises(InputError, match="one row per copy"):
        deniable.combine(VALUES, SQUARES[:, :1], kind="imputed")
    with pytest.raises(InputError, match="one row per copy"):
        deniable.combine(VALUES[:, 0], 0.04, kind="imputed")
    with pytest.raises(InputError, match="differs from that of estimates"):
        deniable.combine(VALUES, SQUARES, kind="imputed", terms=("a",))
    with pytest.raises(InputError, match="between 0 and 1"):
        deniable.combine(VALUES, SQUARES, kind="imputed").table(1.0)


def test_a_file_of_results(tmp_path: Path) -> None:
    lines = ["copy,term,estimate,std.error"]
    lines += [f"{i},x,{VALUES[i, 0]},{SQUARES[i, 0] ** 0.5}" for i in range(7)]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(lines))
    found = combine_file(path, "imputed", 0.95)
    direct = deniable.combine(VALUES[:, 0], SQUARES[:, 0], kind="imputed")
    np.testing.assert_allclose(found.standard_errors, direct.standard_errors)
    with pytest.raises(InputError, match="set `rows`"):
        combine_file(path, None, 0.95)
    (tmp_path / "about.json").write_text('{"rows": "synthetic", "copies": 8}')
    with pytest.raises(InputError, match="not imputed"):
        combine_file(path, "imputed", 0.95)
    with pytest.raises(InputError, match="analyse all of them"):
        combine_file(path, None, 0.95)
    about = '{"rows": "synthetic", "copies": 7, "model": {"about": "income"}}'
    (tmp_path / "about.json").write_text(about)
    with pytest.warns(Notice, match="for predicting 'income', and intervals .* too narrow"):
        combine_file(path, None, 0.95)
    for text, said in (
        ("copy,term,estimate\n1,x,2\n", "'std_error' is missing"),
        # Failed before: an OverflowError, and an error below 0 was squared.
        (
            "copy,term,estimate,std_error\n1,x,2,1e200\n",
            "data row 1, column 'std_error': the value is not",
        ),
        (
            "copy,term,estimate,std_error\n1,x,2,-1\n",
            "data row 1, column 'std_error': the value is not",
        ),
        (
            "copy,term,estimate,variance\n1,x,2,nan\n",
            "column 'variance': the value is not a number betw",
        ),
        (
            "copy,term,estimate,variance\n1,x,inf,1\n",
            "column 'estimate': the value is not a number betw",
        ),
        ("copy,term,estimate,variance\n1,x,2,y\n", "data row 1, column 'variance'"),
        ("copy,term,estimate,variance\n1,x,2,1\n1,x,2,1\n", "twice"),
        ("copy,term,estimate,variance\n1,x,2,1\n2,y,2,1\n", "copy 1 has no row for 'y'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            combine_file(path, "imputed", 0.95)
    with pytest.raises(InputError, match="cannot be read"):
        combine_file(tmp_path / "none.csv", "imputed", 0.95)
