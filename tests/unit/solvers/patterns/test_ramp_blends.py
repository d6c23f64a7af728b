"""Blends of ramps keep levels, caps and floors as drawn, and cost less than one ramp."""

import itertools

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.solvers.patterns import balanced, ramp_blends
from deniable.solvers.patterns.ramp_blends import blended
from deniable.solvers.patterns.ramp_laws import at_levels
from deniable.solvers.patterns.ramp_mixtures import Mixing
from unit.laws.votes import whole_law as oracle

COUNTS = np.full(6, 5)
FLOOR = 0.9


def spread(seed: int, k: int = 6) -> FloatArray:
    """Levels beside one of which the others' pairs break a floor."""
    random = np.random.default_rng(seed)
    return np.asarray(np.exp(random.uniform(np.log(0.05), np.log(8.0), k)))


def test_the_law_as_drawn_keeps_everything_and_costs_less_than_one_ramp() -> None:
    levels = spread(2)
    caps, aimed, height = 2.0 * levels, levels - 4e-10, float(0.5 * levels.sum())
    part, _ = blended(COUNTS, aimed, caps, height, FLOOR, None)
    assert part is not None
    assert isinstance(part.law, VoteBlend)
    assert {gate.gate for gate in part.law.parts} == {"ramp"}
    assert (part.account.attribute_epsilon <= levels).all()
    assert (part.account.attribute_epsilon_floor >= levels - 1e-9).all()
    assert (part.account.epsilon_given_rest <= caps).all()
    law = oracle.pattern_law(part.law)
    q = law.reshape((2,) * 6)
    kept = np.array([q.take(0, axis=i).sum() for i in range(6)])
    np.testing.assert_allclose(np.log(4.0 * kept / (1.0 - kept)), levels, atol=1e-9)
    single = [oracle.attenuation(COUNTS, law, (i,)) for i in range(6)]
    for i, j in itertools.combinations(range(6), 2):
        assert oracle.attenuation(COUNTS, law, (i, j)) >= FLOOR * single[i] * single[j]
    one = at_levels(COUNTS, aimed, caps, height, FLOOR).best(None)
    assert one is None or part.account.epsilon < one[1].w - 0.05
    # From a file it is the same law.
    assert VoteBlend.from_plain(part.law.to_plain(), part.law.n_categories) == part.law


@pytest.mark.slow
def test_the_default_beyond_tables_is_a_blend_where_the_floor_stands_in_the_way() -> None:
    levels = spread(6, 17).tolist()
    solution = balanced.solve([5] * 17, levels, [2.0 * level for level in levels], 0.5)
    assert solution.method == "ramp"
    assert solution.apart == ()
    assert isinstance(solution.parts[0].law, VoteBlend)
    assert solution.gap < 0.6


def test_where_one_ramp_keeps_the_floor_nothing_is_mixed() -> None:
    levels = np.linspace(0.5, 1.0, 6)
    blend, ramp = blended(COUNTS, levels, 2.0 * levels, 3.0, 0.3, None)
    assert blend is None
    assert ramp is not None


def test_without_a_ramp_steep_ones_are_mixed_and_what_misses_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = spread(2)
    given = COUNTS, levels, 2.0 * levels, float(0.5 * levels.sum()), FLOOR, None
    monkeypatch.setattr(ramp_blends.RampSearch, "best", lambda *_: None)
    blend, ramp = blended(*given)
    assert blend is not None
    assert ramp is None
    with monkeypatch.context() as patch:
        patch.setattr(ramp_blends, "AIM", -1e-6)
        assert blended(*given) == (None, None)
    with monkeypatch.context() as patch:
        patch.setattr(ramp_blends, "keep_floor", lambda *_: False)
        assert blended(*given) == (None, None)
    monkeypatch.setattr(Mixing, "shares", lambda *_: None)
    assert blended(*given) == (None, None)
