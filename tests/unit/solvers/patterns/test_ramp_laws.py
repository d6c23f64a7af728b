"""Ramps as the laws that are drawn, at given levels."""

import numpy as np
import pytest

from deniable.laws.pattern_table import PatternTable
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns.ramp_laws import at_levels, keep_floor


@pytest.mark.parametrize(("k", "family"), [(12, PatternTable), (18, GatedSum)])
@pytest.mark.parametrize("floor", [None, 0.9])
def test_the_law_as_drawn_keeps_levels_caps_and_floor(
    k: int, family: type, floor: float | None
) -> None:
    random = np.random.default_rng(0)
    counts, levels = random.integers(2, 9, k), random.uniform(0.3, 1.5, k)
    ramps = at_levels(counts, levels, 2.0 * levels, 6.0, floor)
    found = ramps.best((1.0, 2 / 3), None)
    assert found is not None
    law, fit = found
    assert isinstance(law, family)
    kept = law.keep_probabilities()
    np.testing.assert_allclose(np.log(kept * (counts - 1) / (1 - kept)), levels, atol=1e-9)
    part = ramps.part(law, fit)
    assert (part.account.epsilon_given_rest <= 2.0 * levels).all()
    assert part.account.epsilon == pytest.approx(fit.w, abs=1e-9)
    assert keep_floor([law], floor)
    assert keep_floor([law], 0.9) == (floor is not None)
