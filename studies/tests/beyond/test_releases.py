"""Releases again and again: what every method spends, and that a seed draws the same."""

import math

import numpy as np
import pytest

from deniable.schema import Schema
from deniable_studies.beyond.releases import DRAWN, equal_attenuation, mechanism_for, release_again
from deniable_studies.study import Setting

SIZES = (2, 3, 5)


@pytest.mark.parametrize("method", DRAWN)
def test_every_method_keeps_the_total_but_rsfd_as_stated(method: str) -> None:
    mechanism = mechanism_for(method, Schema.anonymous(SIZES), 2.0)
    if method == "rsfd-as-stated":
        assert mechanism.epsilon == pytest.approx(math.log(3 * math.expm1(2) + 1), rel=1e-9)
    else:
        assert mechanism.epsilon <= 2.0 + 1e-12
        assert mechanism.epsilon == pytest.approx(2.0, rel=1e-5)


def test_equal_lambda_spends_the_total_and_not_more() -> None:
    strength = equal_attenuation(SIZES, 2.0)
    total = sum(math.log(1 + a * strength / (1 - strength)) for a in SIZES)
    assert total <= 2.0
    assert total == pytest.approx(2.0, abs=1e-11)


def test_the_same_seed_draws_the_same_releases() -> None:
    schema = Schema.anonymous(SIZES)
    columns = [np.random.default_rng(1).integers(0, a, 500).astype(np.uint8) for a in SIZES]
    first, again, other = (
        release_again(columns, schema, "balanced", 3.0, 3, Setting(seed=seed), [0])
        for seed in (1, 1, 2)
    )
    assert first == again != other
