"""The chances by which levels are brought down; that they are is tested with the orbits."""

import itertools
import math
from decimal import Decimal, localcontext

import pytest

from deniable.solvers.patterns.levels import _binomials


@pytest.mark.parametrize("p", [1e-200, 1e-17, 0.3, 0.9999])
def test_binomial_laws_are_right_to_their_last_digits(p: float) -> None:
    laws = _binomials(9, p)
    with localcontext() as context:
        context.prec = 60
        exact_p = Decimal(p)
        for c, j in itertools.product(range(10), repeat=2):
            exact = math.comb(c, j) * exact_p**j * (1 - exact_p) ** (c - j) if j <= c else 0
            assert float(exact) == pytest.approx(laws[c, j], rel=1e-14, abs=1e-300)
