"""Known shares: the file, and generalized least squares under them."""

from pathlib import Path

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.known import Margins, imposed, margin_members, read_margins
from deniable.estimate.shares import Shares
from deniable.mechanism.strata import Strata
from unit.estimate.releases import SCHEMA as SCHEMA
from unit.estimate.releases import count_rows, mechanism, table


def test_a_file_may_hold_several_margins_as_shares_or_as_counts(tmp_path: Path) -> None:
    path = tmp_path / "census.csv"
    path.write_text("sex,age,count\nf,,30\nm,,10\n,young,4\n,old,4\nf,young,3\nf,old,3\n")
    margins = read_margins(path)
    assert margins.tables[("sex",)] == {("f",): 0.75, ("m",): 0.25}
    assert margins.tables[("age",)] == {("young",): 0.5, ("old",): 0.5}
    assert margins.applied(["sex", "age"]) == ("sex", "age", "sex by age")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sex\nf\n", "the first row names attributes"),
        ("sex,share,count\nf,1,1\n", "the first row names attributes"),
        ("sex,share\nf\n", "data row 1: it has 1 cell, and the first row 2"),
        ("sex,share\nf,x\n", "data row 1, column 'share': it is not a number above 0"),
        ("sex,share\nf,0\n", "it is not a number above 0"),
        ("sex,share\n,1\n", "data row 1: it names no category"),
        ("sex,share\nf,.5\nf,.5\n", "data row 2: this combination is listed twice"),
        ("sex,share\nf,.5\nm,.6\n", "the shares of sex sum to 1.1, not to 1"),
        ("sex,share\n", "there are no shares in it"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "census.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=what):
        read_margins(path)
    with pytest.raises(InputError, match="cannot be read \\(No such file"):
        read_margins(tmp_path / "missing.csv")


def test_margins_that_do_not_fit_the_table_are_refused() -> None:
    categories = {"sex": ("f", "m"), "age": ("young", "old")}
    with pytest.raises(InputError, match="no known margin is of sex, age alone"):
        margin_members(Margins({("town",): {("A",): 1.0}}), categories)
    with pytest.raises(InputError, match="a category of 'sex' is not in this release"):
        margin_members(Margins({("sex",): {("x",): 1.0}}), categories)
    with pytest.raises(InputError, match="the share of m is missing"):
        margin_members(Margins({("sex",): {("f",): 1.0}}), categories)


def test_imposing_is_the_regression_on_what_is_off() -> None:
    # The reference: the conditional normal law of the cells given the sums.
    random = np.random.default_rng(2)
    root = random.normal(size=(6, 6))
    covariance = root @ root.T
    values = random.normal(size=6)
    members = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    shares = np.array([0.4, 0.6])
    found, left = imposed(values, covariance, members, shares)
    np.testing.assert_allclose(members @ found, shares, atol=1e-12)
    np.testing.assert_allclose(members @ left, 0, atol=1e-9)
    # No other unbiased correction has smaller variances: moving along what is known adds some.
    for other in random.normal(size=(5, 6, 2)):
        gain = np.eye(6) - other @ members
        assert np.all(np.diag(gain @ covariance @ gain.T) >= np.diag(left) - 1e-9)


def test_an_estimate_with_known_shares_has_them_and_the_errors_that_remain() -> None:
    names = ["smokes", "age"]
    (counts,) = count_rows(table(), Strata.one(mechanism()), names)
    margins = Margins({("smokes",): {("no",): 0.6, ("yes",): 0.4}})
    (free,) = Shares(tuple(names)).answer(counts)
    (held,) = Shares(tuple(names), known=margins).answer(counts)
    np.testing.assert_allclose(held.values.sum(axis=1), [0.6, 0.4], atol=1e-12)
    assert (held.standard_error <= free.standard_error + 1e-12).all()
    assert held.interval_method == "normal"
    np.testing.assert_allclose(np.diag(held.covariance()), held.standard_error.ravel() ** 2)
    assert held.caption().endswith("known exactly: smokes")
    with pytest.raises(InputError, match="known shares are imposed on the inversion estimate"):
        Shares(tuple(names), known=margins, method="em").answer(counts)
