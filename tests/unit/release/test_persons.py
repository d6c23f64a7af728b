"""How many rows a person may have, and which columns may say whose row it is."""

import pytest

from deniable.errors import InputError, Notice
from deniable.release.persons import columns_of_persons, propose_person, refuse_rows_of_person
from deniable.schema import Attribute, Schema


@pytest.mark.parametrize("rows", [1, 2, 3, 11])
@pytest.mark.parametrize("epsilon", [0.1, 6.0])
def test_rows_of_a_person_are_allowed_up_to_the_total_that_was_named(
    rows: int, epsilon: float
) -> None:
    refuse_rows_of_person(rows, epsilon, "id", rows * epsilon)
    if rows == 1:
        refuse_rows_of_person(rows, epsilon, "id", None)
        return
    with pytest.raises(InputError, match=rf"{rows} rows of ε = {epsilon:g} each.*is per person"):
        refuse_rows_of_person(rows, epsilon, "id", None)
    with pytest.raises(InputError, match="`person_epsilon` allows"):
        refuse_rows_of_person(rows, epsilon, "id", 0.99 * rows * epsilon)


def test_columns_named_as_persons_are_proposed_where_they_repeat() -> None:
    schema = Schema((Attribute("sex", ("f", "m")), Attribute("id", ("a", "b"))))
    assert columns_of_persons(schema, ["sex", "id", "person_id"]) == ["person_id"]
    alone = Schema(schema.attributes, one_row_per_person=True)
    assert columns_of_persons(alone, ["person_id"]) == []
    propose_person([])
    with pytest.warns(Notice, match="'person_id' repeats"):
        propose_person(["person_id"])
