"""Designs per stratum survive being written, and what was changed by hand is noticed."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.statement.record import read_design, to_json
from deniable.statement.strata import Designs, read_designs, strata_from_plain, strata_to_plain

SCHEMA = Schema(
    (Attribute("sex", ("f", "m")), Attribute("age", ("1", "2", "3"))), "People", ("region",)
)


def made() -> Designs:
    designs = {"n": design(SCHEMA, attenuation=0.5), "s": design(SCHEMA, attenuation=0.8)}
    return Designs(designs, "region", {"n": 10, "s": 20})


def plain() -> Any:
    return json.loads(to_json(strata_to_plain(made())))


def test_strata_give_the_same_designs_back() -> None:
    assert strata_from_plain(plain()) == made()


def test_the_levels_are_those_of_the_least_protected_stratum() -> None:
    strata = made().strata
    weaker = made().designs["s"].mechanism
    assert strata.epsilon == weaker.epsilon
    assert strata.attribute_epsilon == weaker.attribute_epsilon
    assert strata.epsilon_given_rest == weaker.epsilon_given_rest
    assert strata.unprotected == ("region",)
    assert strata.n_outputs == (2, 3)
    assert strata.output_labels == (("f", "m"), ("1", "2", "3"))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["mechanisms"][0]["mechanism"].update(epsilon=0.1),
        lambda p: p["mechanisms"][0].update(stratum="s"),
        lambda p: p["mechanisms"][0].update(rows="many"),
        lambda p: p["mechanisms"][0].pop("mechanism"),
        lambda p: p.update(column="sex"),
        lambda p: p.update(mechanisms=[]),
        lambda p: p.pop("column"),
    ],
)
def test_what_was_changed_by_hand_is_noticed(change: Any) -> None:
    edited = copy.deepcopy(plain())
    change(edited)
    with pytest.raises(InputError) as caught:
        strata_from_plain(edited)
    assert "\n" not in str(caught.value)


def test_strata_of_different_schemas_are_no_release() -> None:
    other = design(Schema(SCHEMA.attributes, "Others", SCHEMA.keep), attenuation=0.5)
    with pytest.raises(InputError, match="different schemas"):
        Designs({"n": made().designs["n"], "s": other}, "region")
    with pytest.raises(InputError, match="a number of rows"):
        Designs({"n": other}, "region", {"s": 4})


def test_a_plan_is_read_from_a_record_with_or_without_strata(tmp_path: Path) -> None:
    record = {"expost": {"numeric": [], "strata": strata_to_plain(made())}}
    (tmp_path / "record.json").write_bytes(to_json(record))
    assert read_designs(tmp_path) == made()
    with pytest.raises(InputError, match=r"record\.json: this release has a mechanism per stratum"):
        read_design(tmp_path)
    record["expost"]["strata"]["column"] = "sex"
    (tmp_path / "record.json").write_bytes(to_json(record))
    with pytest.raises(InputError, match=r"record\.json: "):
        read_designs(tmp_path)
