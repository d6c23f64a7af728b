"""Numbers with a law of their own: exact integers, released values, unbiased inverses."""

import math
from datetime import date

import numpy as np
import pytest

from deniable.design.design import design
from deniable.design.number_matrices import grid_for, number_response
from deniable.design.outlook import matrices_to_plain, outlook_to_plain
from deniable.laws import MatrixChannel, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.report import verdict
from deniable.schema import Attribute, Schema
from deniable.statement.expected_accuracy import expected_accuracy, mean_variance
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain

AGE = Attribute("age", range=(17, 90), missing="NA")
HOURS = Attribute("hours", range=(1, 99))
SEX = Attribute("sex", ("f", "m"))


def made(attribute: Attribute, level: float) -> tuple[Attribute, MatrixChannel]:
    found = number_response(attribute, level)
    assert found is not None
    return found


@pytest.mark.parametrize("attribute", [AGE, HOURS], ids=["missing", "complete"])
@pytest.mark.parametrize("level", [0.3, 3.0])
def test_the_integers_keep_the_level_and_the_mean(attribute: Attribute, level: float) -> None:
    attribute, law = made(attribute, level)
    mechanism = Mechanism(Schema((attribute,)), tuple(Mechanism.of(law).blocks))
    assert level - 1e-9 <= mechanism.epsilon <= level
    assert all(sum(column) == 1 << law.bits for column in zip(*law.weights, strict=True))
    inverse = Channel(mechanism, (attribute.name,)).inverse.apply(np.eye(len(law.weights)))
    matrix = law.matrix()
    n = attribute.n_categories
    assert inverse @ matrix == pytest.approx(np.eye(n), abs=1e-9)
    assert inverse.sum(axis=0) == pytest.approx(np.ones(len(law.weights)), abs=1e-9)
    scores = np.array([score or 0.0 for score in attribute.category_scores() or ()])
    if attribute.missing is None:  # the average of the released values estimates the mean
        assert scores @ inverse == pytest.approx(np.array(attribute.answers, dtype=float), abs=1e-2)
    else:
        assert attribute.answers[-1] == "NA"
        assert matrix[-1, -1] / matrix[-1, 0] == pytest.approx(math.exp(level))


@pytest.mark.parametrize(
    ("attribute", "level"),
    [
        (SEX, 1.0),
        (Attribute("born", range=(date(1950, 1, 1), date(2000, 1, 1))), 1.0),
        (Attribute("x", range=(0, 1), grid=100), 1.0),
        (Attribute("x", range=(0, 1), missing="0"), 1.0),
        (HOURS, 13.0),
        (HOURS, 0.001),
    ],
    ids=["categories", "dates", "many points", "a point is missing", "large", "small"],
)
def test_others_have_no_matrix_for_numbers(attribute: Attribute, level: float) -> None:
    assert number_response(attribute, level) is None


def test_the_grid_grows_with_the_level_unless_declared() -> None:
    assert [grid_for(level) for level in (0.01, 1, 2, 6, 100)] == [9, 11, 15, 53, 65]
    assert made(Attribute("x", range=(0, 1), grid=4), 2.0)[0].n_categories == 4


def test_independent_numbers_have_their_own_matrices() -> None:
    plan = design(Schema((AGE, SEX, HOURS)), epsilon=6, method="kronecker")
    assert plan.epsilon == pytest.approx(6, abs=1e-9)
    assert plan.epsilon <= 6
    assert plan.notes == ()
    laws = [plan.mechanism.block_of(i)[0].law for i in range(3)]
    assert [type(law) for law in laws] == [MatrixChannel, ProductLaw, MatrixChannel]
    assert mechanism_from_plain(mechanism_to_plain(plan)).mechanism == plan.mechanism
    again = design(plan.mechanism.schema, epsilon=6)  # the values of another design are left out
    assert again.mechanism.n_outputs[1:] == (2, again.mechanism.schema.n_categories[2])
    levels = design(Schema((AGE, SEX)), attribute_epsilon=[1, 2], method="kronecker")
    assert levels.changed == ()


def test_a_number_alone_is_designed_for_its_mean() -> None:
    alone = design(Schema((Attribute("x", range=(-1, 1)),)), epsilon=2)
    assert alone.method == "kronecker"
    assert mean_variance(alone.mechanism, "x", "population") <= 1.005 * (0.866 + 1 / 3)
    assert design(Schema((AGE,)), epsilon=2, method="balanced").mechanism.n_outputs == (4,)


def test_a_matrix_for_the_mean_is_not_judged_by_shares_of_points() -> None:
    plan = design(Schema((HOURS,)), epsilon=2)
    assert expected_accuracy(plan.account).shares == ()
    assert matrices_to_plain(plan) == []
    assert outlook_to_plain(plan)["limit"] is None
    assert verdict.lines({"attributes": [], "pairs": None}) == [
        "All attributes are numbers, released for their means."
    ]
