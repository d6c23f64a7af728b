"""Draws from uniform bits."""

import numpy as np

from deniable.randomness import SeededRandomness
from deniable.synthesis.drawing import Choices, code_type, exponentials, uniforms

BITS = SeededRandomness(5)


def test_numbers_have_their_laws() -> None:
    found = uniforms(20_000, BITS)
    assert 0 < found.min() < 1e-3
    assert 0.999 < found.max() < 1
    assert abs(exponentials(20_000, BITS).mean() - 1) < 0.04
    assert code_type([3, 300]) == np.uint16


def test_choices_follow_the_weights_of_their_own_row() -> None:
    weights = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    drawn = Choices(weights).draw(np.repeat([0, 1, 2], 8000), BITS).reshape(3, -1)
    shares = np.stack([np.bincount(row, minlength=3) for row in drawn]) / 8000
    np.testing.assert_allclose(shares, [[0.25, 0.75, 0], [0, 0, 1], [1 / 3] * 3], atol=0.03)
    assert shares[0, 2] == 0
