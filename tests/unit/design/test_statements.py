"""What is printed of a design is put together in one place, from the library's functions."""

import math

import pytest

from deniable.design.design import design
from deniable.design.statements import design_statements
from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.statement.expected_accuracy import mean_variance
from deniable.statement.expected_tables import expected_tables

SCHEMA = Schema.anonymous((2, 3))


def test_what_is_not_asked_is_not_stated() -> None:
    made = design(SCHEMA, attribute_epsilon=[1, 2])
    stated = design_statements(made)
    assert not {"readable", "tables", "independent_tables", "comparison", "limit"} & set(stated)
    assert stated["observers"][0]["key"] == "anyone"
    with pytest.raises(InputError, match="number of `rows`"):
        design_statements(made, tables=["a1"])


def test_tables_are_compared_with_independent_responses_of_the_same_total() -> None:
    levels = Schema(tuple(
        Attribute(a.name, a.categories, epsilon=1.0 + i) for i, a in enumerate(SCHEMA.attributes)
    ))  # fmt: skip
    made = design(levels)
    stated = design_statements(made, rows=500, tables=["a1,a2"], assume="worst")
    plain = design(SCHEMA, epsilon=made.epsilon, method="kronecker")
    for key, one in (("tables", made), ("independent_tables", plain)):
        assert stated[key] == [t.to_plain() for t in expected_tables(one, ["a1,a2"], 500, "worst")]


def test_without_a_total_there_is_nothing_to_compare_with() -> None:
    from deniable.design.matrices import with_responses
    from deniable.laws import MatrixChannel

    law = MatrixChannel((2,), 2, ((4, 1), (0, 3)))
    made = with_responses(Schema.anonymous((2,)), None, {"a1": law})
    stated = design_statements(made, rows=500, tables=["a1"])
    assert stated["independent_tables"] is None
    assert stated["tables"][0]["standard_error"] > 0


def test_means_of_numbers_have_standard_errors() -> None:
    age = Attribute("age", range=(0, 90), unit="years")
    made = design(Schema((age, Attribute("sex", ("f", "m")))), epsilon=3)
    assert "means" not in design_statements(made)
    (mean,) = design_statements(made, rows=400)["means"]
    error = math.sqrt(mean_variance(made.mechanism, "age") / 400)
    assert mean == {"attribute": "age", "unit": "years", "points": 3, "standard_error": error}
    assert "means" not in design_statements(design(SCHEMA, epsilon=2), rows=400)
