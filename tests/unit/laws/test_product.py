"""A product law needs a keep weight between the extremes for every attribute."""

import pytest

from deniable.laws import ProductLaw
from deniable.mechanism.privacy import attribute_epsilon


@pytest.mark.parametrize("weight", [1, 15])
def test_a_product_law_accepts_the_extreme_weights_that_are_not_certain(weight: int) -> None:
    assert ProductLaw((2,), 4, (weight,)).keep_probabilities() == [weight / 16]


@pytest.mark.parametrize("level", [1e-6, 0.1, 0.7, 1.0, 3.7, 30.0])
def test_a_level_that_was_asked_for_is_never_exceeded_and_missed_by_a_last_place(
    level: float,
) -> None:
    for found in attribute_epsilon(ProductLaw.from_levels((2, 3, 100), (level,) * 3)):
        assert level * (1 - 1e-15) < found <= level
