"""Random requests, for the tests of laws at levels and for totals."""

import numpy as np


def request(seed: int, k: int) -> tuple[list[int], list[float]]:
    """Categories from 2 to 8, and levels from 0.3 to 1.5 nats."""
    random = np.random.default_rng(seed)
    return random.integers(2, 9, k).tolist(), random.uniform(0.3, 1.5, k).tolist()
