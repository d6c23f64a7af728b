"""What is left of a covariance, and getting it back, against dense matrices and repeated draws."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.covariance import Covariance, indicator_covariance
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target, predict_covariance
from deniable.schema import Attribute, Schema
from marked import slow_after
from unit.dense import dense_channel, dense_inverse, random_table
from unit.mechanism.pairs import S, T, every_pair, product, released, truth


def all_tables(n_records: int, cells: int) -> list[tuple[int, ...]]:
    """Every way to spread records over cells."""
    if cells == 1:
        return [(n_records,)]
    return [
        (first, *rest)
        for first in range(n_records + 1)
        for rest in all_tables(n_records - first, cells - 1)
    ]


@pytest.mark.parametrize("n_records", [2, 3, 5])
def test_the_population_estimate_is_unbiased_over_every_possible_table(n_records: int) -> None:
    # All released tables of n records with their multinomial probabilities: exact, no simulation.
    from math import factorial, prod

    mechanism = Mechanism.of(random_table((2, 2), 4))
    pi = np.array([[0.5, 0.1], [0.15, 0.25]])
    theta = released(mechanism, pi).ravel()
    s, t = np.array([0.0, 2.0]), np.array([-1.0, 1.5])
    expected = 0.0
    for counts in all_tables(n_records, 4):
        chance = factorial(n_records) * prod(
            p**c / factorial(c) for p, c in zip(theta, counts, strict=True)
        )
        tabled = Counts.of(mechanism, np.array(counts).reshape(2, 2))
        (found,) = Covariance(("a1", "a2"), scores=(s, t), target="population").answer(tabled)
        expected += chance * found.estimate
    assert expected == pytest.approx(s @ indicator_covariance(pi) @ t, rel=1e-9)


@pytest.mark.parametrize("weighted", slow_after(1, [False, True]))
def test_the_table_estimate_is_unbiased_over_every_possible_release(weighted: bool) -> None:
    mechanism = Mechanism.of(random_table((2, 2), 4))
    matrix = dense_channel(mechanism, ("a1", "a2"))
    records = [0, 3, 1, 0]
    weights = np.array([1.0, 2.0, 0.5, 1.5]) if weighted else np.ones(4)
    s, t = np.array([0.0, 2.0]), np.array([-1.0, 1.5])
    pi = np.bincount(records, weights, minlength=4).reshape(2, 2) / weights.sum()
    expected = 0.0
    for outcome in np.ndindex((4,) * 4):
        chance = float(np.prod([matrix[y, x] for x, y in zip(records, outcome, strict=True)]))
        counts = np.bincount(outcome, weights, minlength=4).reshape(2, 2)
        squares = np.bincount(outcome, weights**2, minlength=4).reshape(2, 2)
        tabled = Counts.of(mechanism, Tabulation(counts, squares if weighted else None, 4))
        (found,) = Covariance(("a1", "a2"), scores=(s, t)).answer(tabled)
        expected += chance * found.estimate
    assert expected == pytest.approx(s @ indicator_covariance(pi) @ t, rel=1e-9)


@every_pair
@pytest.mark.parametrize("target", ["table", "population"])
def test_the_standard_error_is_the_delta_methods_on_the_dense_covariance(
    make: Callable[[], Mechanism], target: Target
) -> None:
    mechanism = make()
    counts = np.random.default_rng(5).multinomial(4000, released(mechanism, truth()).ravel())
    tabled = Counts.of(mechanism, counts.reshape(3, 4))
    (found,) = Covariance(("a1", "a2"), scores=(S, T), target=target).answer(tabled)
    inverse = dense_inverse(mechanism, ("a1", "a2"))
    theta = counts / 4000
    pi = inverse @ theta
    if target == "table":
        covariance = inverse @ np.diag(theta) @ inverse.T - np.diag(pi)
    else:
        covariance = inverse @ np.diag(theta) @ inverse.T - np.outer(pi, pi)
    table = pi.reshape(3, 4)
    # d(Σ π s t − μ_s μ_t)/dπ
    mean_s, mean_t = S @ table.sum(axis=1), T @ table.sum(axis=0)
    gradient = (np.outer(S, T) - mean_t * S[:, None] - mean_s * T[None, :]).ravel()
    expected = np.sqrt(gradient @ covariance @ gradient / 4000)
    assert found.standard_error == pytest.approx(expected, rel=1e-8)
    # At n = 4000 the correction is small: the plug-in is near.
    assert found.estimate == pytest.approx(S @ indicator_covariance(table) @ T, abs=0.2 * expected)
    assert found.released == pytest.approx(S @ indicator_covariance(theta.reshape(3, 4)) @ T)


def test_scores_come_from_the_schema_where_it_has_them() -> None:
    schema = Schema(
        (
            Attribute("hours", bins=(0, 10, 20, 50)),
            Attribute("grade", ("low", "mid", "high", "top"), scores=(1, 2, 3, 4)),
            Attribute("colour", ("red", "blue")),
        )
    )
    law = ProductLaw.from_levels((3, 4, 2), (1.5, 2.0, 1.0))
    mechanism = Mechanism.of(law, schema)
    tabled = Counts.of(mechanism, np.arange(12).reshape(3, 4) + 50)
    (found,) = Covariance(("hours", "grade"), scores=("middle", None)).answer(tabled)
    (given,) = Covariance(
        ("hours", "grade"), scores=(np.array([5.0, 15.0, 35.0]), np.arange(1.0, 5.0))
    ).answer(tabled)
    assert found == replace(given, scores=("middle", "schema"))
    assert "MIDDLES of bins, which are not the means of the values in them and by the scores" in (
        found.caption()
    )
    plain = found.to_plain(0.9)
    assert plain["attributes"] == ["hours", "grade"]
    assert plain["low"] < plain["estimate"] < plain["high"]
    with pytest.raises(InputError, match="'colour' has no scores"):
        Covariance(("hours", "colour"), scores=("middle", None)).answer(
            Counts.of(mechanism, np.ones((3, 2)))
        )[0]


def test_scores_of_the_wrong_number_and_a_single_record_are_refused() -> None:
    mechanism = product()
    one = Counts.of(mechanism, np.eye(3, 4) * np.array([[1], [0], [0]]))
    with pytest.raises(InputError, match="'a1' needs 3 scores"):
        Covariance(("a1", "a2"), scores=(T, T)).answer(one)
    with pytest.raises(InputError, match="single record"):
        Covariance(("a1", "a2"), scores=(S, T), target="population").answer(one)[0]


def test_one_attribute_twice_or_an_unknown_one_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        predict_covariance(product(), "a1", "a1")
    with pytest.raises(InputError, match="'b'"):
        predict_covariance(product(), "a1", "b")
