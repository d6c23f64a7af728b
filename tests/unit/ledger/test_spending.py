import math

import pytest

from deniable import Attribute, Schema, design
from deniable.ledger import Spending
from deniable.mechanism.strata import Strata


def test_columns_of_a_merged_attribute_have_its_level_each_and_kept_ones_none():
    first, second = Attribute("smokes", ("no", "yes")), Attribute("sex", ("f", "m"))
    merged = Attribute("both", parts=(first, second))
    schema = Schema((merged, Attribute("age", ("young", "old"))), keep=("region",))
    plan = design(schema, attribute_epsilon=[1, 2], method="kronecker")
    spending = Spending.of(Strata.one(plan.mechanism))
    assert spending.epsilon == plan.epsilon
    level, age = plan.mechanism.attribute_epsilon
    assert dict(spending.alone) == {"smokes": level, "sex": level, "age": age}
    assert spending.given_rest["sex"] == plan.mechanism.epsilon_given_rest[0]
    assert spending.unprotected == ("region",)


def test_rows_of_a_person_add_up_and_no_bound_stays_none():
    spending = Spending(0.1, {"a": 0.1, "b": math.inf}, {"a": 0.2, "b": math.inf})
    three = spending.of_rows(3)
    assert three.epsilon >= 0.1 * 3 or math.isclose(three.epsilon, 0.3)
    assert three.alone["b"] == math.inf
    assert Spending.from_plain(three.to_plain()) == three


def test_what_neither_of_two_exceeds():
    first = Spending(1.0, {"a": 1.0}, {"a": 1.0}, ("x",))
    second = Spending(2.0, {"a": 0.5, "b": 2.0}, {"a": 2.0, "b": 2.0}, ("x", "y"))
    assert first.largest(second) == Spending(
        2.0, {"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 2.0}, ("x", "y")
    )


def test_a_negative_level_is_none():
    with pytest.raises(ValueError, match="not negative"):
        Spending.from_plain({"epsilon": -1, "attributes": {}, "unprotected": []})
