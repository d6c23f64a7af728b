"""Multipliers: laws for a total are proved to be near the least error."""

from typing import Any

import pytest

from unit.proofs.test_accuracy import CASES, made


@pytest.mark.parametrize(("shape", "request_"), CASES)
def test_laws_are_proved_to_be_near_the_least_error(
    shape: tuple[int, ...], request_: dict[str, Any]
) -> None:
    found, _, proof = made(shape, request_)
    assert 0.9 < proof.at_least <= 1.0
    if found.given_rest is None:
        assert proof.at_least > 0.999
    assert proof.all_patterns


@pytest.mark.slow
def test_a_thousand_attributes_are_proved() -> None:
    found, _, proof = made((5,) * 1000, {"epsilon": 4.0})
    assert proof.at_least > 0.999
    assert found.accuracy is proof
