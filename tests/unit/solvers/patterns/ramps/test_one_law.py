"""One law for all: what is promised holds of the law as drawn, of every kind and size."""

import numpy as np
import pytest

from deniable.laws.pattern_table import PatternTable
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns.ramps.one_law import CommonLaw, keep_floor
from marked import slow_after
from unit.solvers.patterns.ramps.enumerated import Enumerated
from unit.solvers.patterns.requests import optimum


def drawn_at_random(k: int, low: float = 0.3, high: float = 3.0) -> Problem:
    random = np.random.default_rng(k)
    counts = np.rint(np.exp(random.uniform(np.log(2), np.log(50), k))).astype(int).tolist()
    return checked_problem(counts, random.uniform(low, high, k).tolist())


@pytest.mark.parametrize(
    ("problem", "times", "floor", "family"),
    slow_after(
        1,
        [
            (checked_problem([5] * 20, [0.5] * 20), 2.0, 0.5, GatedSum),
            (checked_problem([5] * 20, [0.5] * 20), 2.0, 1.0, VoteBlend),
            (drawn_at_random(7), 2.0, 0.5, PatternTable),
            (drawn_at_random(14), 1.25, 0.9, PatternTable),
            (drawn_at_random(17), 2.0, None, GatedSum),
            (drawn_at_random(20, 0.05, 0.5), 2.0, 0.5, VoteBlend),
            (drawn_at_random(24, 1.0, 10.0), 2.0, 0.5, GatedSum),
            (drawn_at_random(40), 2.0, 0.95, GatedSum),
        ],
    ),
)
def test_levels_caps_and_floor_hold_of_the_law_as_drawn(
    problem: Problem, times: float, floor: float | None, family: type
) -> None:
    level = problem.attribute_epsilon
    search = CommonLaw(problem, times * level, floor, optimum(problem) + 0.3)
    best = search.best()
    part = search.law(best)
    assert best is not None
    assert part is not None
    assert isinstance(part.law, family)
    assert part.attributes == tuple(range(len(level)))
    # The law answers for itself: a table by all its integers.
    if isinstance(part.law, PatternTable):
        every = Enumerated(problem.n_categories)
        weights = [weight / 2**part.law.bits for weight in part.law.weights]
        density = np.array(weights) / every.chance
        above = below = every.levels(density)
        given, record = every.given_rest(density), np.log(density.max() / density.min())
    else:
        above, below = part.law.attribute_levels(), part.law.attribute_floors()
        given, record = part.law.given_rest_levels(), part.law.record_level()
    assert (np.array(above) <= level * (1 + 1e-12)).all()
    assert (np.array(below) >= level - 1e-9).all()
    assert (np.array(given) <= times * level * (1 + 1e-12)).all()
    assert part.account.epsilon == pytest.approx(record, abs=1e-9)
    assert keep_floor([part.law], floor)
    assert part.account.epsilon < level.sum()
    if search.keeps_floor(best):
        assert part.account.epsilon == pytest.approx(best.ramp.height, abs=5e-3)


@pytest.mark.slow
def test_beyond_mixtures_a_floor_moves_the_top_up() -> None:
    problem = drawn_at_random(40)
    caps = 2.0 * problem.attribute_epsilon
    free, strict = (CommonLaw(problem, caps, floor, 15.4) for floor in (None, 0.95))
    best = free.best()
    assert best is not None
    assert not strict.keeps_floor(best)
    part = strict.single(best)
    assert part is not None
    assert best.ramp.height < part.account.epsilon < 1.1 * best.ramp.height


@pytest.mark.slow
def test_without_a_ramp_to_start_from_the_product_law_is_improved_on() -> None:
    problem = drawn_at_random(9)
    level = problem.attribute_epsilon
    part = CommonLaw(problem, 2.0 * level, 0.5, optimum(problem)).law(None)
    assert part is not None
    assert part.account.epsilon < 0.8 * level.sum()
