"""Random requests, for the tests of laws at levels and for totals."""

import math

import numpy as np

CAPS, FLOORS = (1.1, 1.25, 1.5, 2.0, 3.0, 6.0, math.inf), (1.0, 0.9, 0.5, None)
"""From the strictest to none."""

TIMES = (1.0, 1.3, 3.0)
"""By how much single caps are loosened."""

MANY = [(7, 16), (17, 30)]
"""Attributes of which no linear program is solved, or none but the smallest: of the first, ramps
are mixed over a table of patterns; of the second, without one."""


def request(seed: int, k: int) -> tuple[list[int], list[float]]:
    """Categories and levels."""
    random = np.random.default_rng(seed)
    return random.integers(2, 9, k).tolist(), random.uniform(0.3, 1.5, k).tolist()


def spread(seed: int) -> tuple[list[int], list[float]]:
    """Levels, or ratios of them, from 0.01 to 8."""
    random = np.random.default_rng(seed)
    k = int(random.integers(7, 17))
    counts = random.integers(2, 13, k).tolist()
    random.integers(4)
    return counts, np.exp(random.uniform(math.log(0.01), math.log(8.0), k)).tolist()
