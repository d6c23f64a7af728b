"""Requests for designs."""

import inspect
from dataclasses import fields

import deniable
from deniable.design.request import DesignRequest, StrengthRequest


def test_the_arguments_of_design_are_the_fields_of_a_request() -> None:
    arguments = list(inspect.signature(deniable.design).parameters.values())[1:]
    assert {one.name for one in arguments} == {one.name for one in fields(DesignRequest)}
    # The request has an empty dictionary where the argument is None.
    defaults = {one.name: getattr(DesignRequest(), one.name) or one.default for one in arguments}
    assert defaults == {one.name: one.default for one in arguments}


def test_strengths_of_any_kind_make_a_request_that_is_not_empty() -> None:
    assert StrengthRequest().is_empty
    assert DesignRequest(epsilon=2.0).is_empty
    for given in ({"attenuation": 0.5}, {"strength": 0.5}, {"preserve": {("a", "b"): 0.5}}):
        assert not DesignRequest(**given).is_empty
