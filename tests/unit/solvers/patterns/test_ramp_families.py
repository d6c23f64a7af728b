"""What many ramps deliver at once is what each delivers as it is drawn."""

import math

import numpy as np
import pytest

from deniable.solvers.patterns.ramp_families import RampFamily, Shape

LEVELS = np.array([0.001, 0.3, 1.2, 2.5, 4.0, 20.0])


@pytest.mark.parametrize("counts", [(2, 2, 2, 2, 2, 2), (5, 50, 3, 10_000, 2, 7)])
@pytest.mark.parametrize("times", [1.1, 2.0, 6.0])
def test_columns_are_those_of_the_laws_as_drawn(counts: tuple[int, ...], times: float) -> None:
    slopes = times * LEVELS
    total = float(slopes.sum())
    shapes = [
        *(Shape(part * total, 0.4 * total) for part in (0.0, 0.01, 0.1, 0.5)),
        # An attribute that does not count, and one that counts more than the ramp falls by.
        *(Shape(0.05 * total, 0.2 * total, place, 0.0) for place in range(6)),
        *(Shape(0.02 * total, 0.1 * total, place, 0.9 * slopes[place]) for place in range(6)),
    ]
    family = RampFamily(counts, slopes, 0.9 * total)
    columns = family.columns(shapes)
    above = np.triu_indices(6, 1)
    for shape, column in zip(shapes, columns, strict=True):
        law = family.law(shape)
        most = slopes.copy()
        if shape.place >= 0:
            most[shape.place] = shape.slope
        assert (law.given_rest() <= most + 1e-12).all()
        got = law.moments()
        mass = math.exp(got.log_normalizer - law.height)
        assert column.end == pytest.approx(-law.height, rel=1e-12)
        assert column.total == pytest.approx(mass, rel=1e-9)
        np.testing.assert_allclose(column.changed, mass * got.change, rtol=1e-6, atol=1e-9 * mass)
        pairs = mass * law.bounded_pair_attenuations()[0][above]
        np.testing.assert_allclose(column.pairs, pairs, rtol=1e-6, atol=1e-12 * mass)


def test_a_tilt_that_sums_beyond_the_bottom_would_overflow_under_is_no_trouble() -> None:
    # 0.56 for a unit, 2,048 units: e^1153 does not fit in a double. Warnings are errors here.
    slopes, counts = np.full(24, 8.0), (3,) * 24
    family = RampFamily(counts, slopes, 500.0)
    shape = Shape(0.0, 54.0)
    (column,) = family.columns([shape])
    law = family.law(shape)
    got = law.moments()
    assert column.total == pytest.approx(math.exp(got.log_normalizer - law.height), rel=1e-9)
