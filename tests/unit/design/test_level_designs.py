"""A plan: laws stand at their attributes, limits are kept, and the bound lies below every law."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.design.level_designs import LevelDesigns
from deniable.design.solving import Solution, Task
from deniable.errors import InputError
from deniable.laws import Identity, MatrixChannel, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.proofs.problem import MAX_LEVEL
from deniable.schema import Attribute, Schema
from deniable.statement.bound import lower_bound
from deniable.statement.methods import METHODS, Method

# A kept attribute stands between the protected ones, so that their places and positions differ.
SCHEMA = Schema(
    tuple(
        Attribute(name, tuple("uvwxyz"[:n]))
        for name, n in (("a", 2), ("kept", 2), ("b", 3), ("c", 4))
    ),
    keep=("kept",),
)
SIZES = (2, 3, 4)


def plan(method: Method = METHODS["kronecker"], task: Task | None = None) -> LevelDesigns:
    return LevelDesigns(SCHEMA, method, task or Task(SIZES))


def test_laws_stand_at_the_protected_attributes_and_the_others_are_released_as_they_are() -> None:
    pair = ProductLaw.from_levels((4, 2), (1.5, 0.5))
    alone = ProductLaw.from_levels((3,), (1.0,))
    made = plan().of(Solution((((2, 0), pair), ((1,), alone))))
    assert [(block.attributes, block.law) for block in made.mechanism.blocks] == [
        ((3, 0), pair),
        ((2,), alone),
        ((1,), Identity((2,))),
    ]
    levels = made.mechanism.attribute_epsilon
    assert [levels[i] for i in (0, 2, 3)] == pytest.approx([0.5, 1.0, 1.5])
    assert made.requested_epsilon == (None,) * 4


def test_levels_are_recorded_where_they_were_requested() -> None:
    made = plan().at([0.5, 1.0, 1.5])
    assert made.requested_epsilon == (0.5, None, 1.0, 1.5)
    assert made.changed == ()
    assert made.method == "kronecker"


def test_a_level_beyond_the_method_is_refused_by_the_attributes_name() -> None:
    limited = replace(METHODS["kronecker"], largest_level=2.0)
    assert plan(limited).at([2.0, 2.0, 2.0]).epsilon == pytest.approx(6.0)
    with pytest.raises(InputError, match="attribute 'b': method kronecker takes levels up to 2"):
        plan(limited).solve([2.0, 2.1, 2.0])


def test_a_law_that_misses_a_cap_is_not_returned() -> None:
    capped = plan(task=Task(SIZES, given_rest=[None, 0.9, None]))
    solution = capped.solve([0.5, 1.0, 1.5])
    assert capped.of(solution).mechanism.epsilon_given_rest[2] > 0.9
    with pytest.raises(InputError, match=r"attribute 'b': the cap 0[.]9"):
        capped.with_levels(solution, [0.5, 1.0, 1.5])


@pytest.mark.parametrize("levels", [[1, 1, 1], [0.1, 0.5, 4], [3, 0.05, 2], [4, 4, 3.5]])
def test_no_law_of_these_levels_is_below_the_bound(levels: list[float]) -> None:
    least = plan(METHODS["lp"]).at(levels)
    for weights in (None, least.weights, np.ones(3).tolist()):
        for method in ("kronecker", "lp"):
            bound = lower_bound(plan(METHODS[method]).at(levels).mechanism, weights)
            assert bound is not None
            assert max(levels) - 1e-9 <= bound <= least.epsilon + 1e-9


def test_better_weights_give_a_better_bound_and_the_best_meet_the_optimum() -> None:
    least = plan(METHODS["lp"]).at([0.5, 1.0, 1.5])
    without = lower_bound(least.mechanism, None)
    best = lower_bound(least.mechanism, least.weights)
    assert without is not None
    assert best is not None
    assert without < best <= least.epsilon < best + 1e-6


def test_nothing_is_bounded_where_the_proofs_do_not_apply() -> None:
    one = Schema.anonymous((2,))
    matrix = MatrixChannel((2,), 3, ((7, 2), (1, 6)))
    assert lower_bound(Mechanism(one, (Block((0,), matrix),)), None) is None
    assert lower_bound(plan().at([1.0, 1.0, 1.01 * MAX_LEVEL]).mechanism, None) is None


def test_a_law_that_misses_the_floor_on_pairs_is_not_returned() -> None:
    solution = plan(METHODS["lp"]).solve([0.5, 1.0, 1.5])
    ratio = min(law.least_pair_ratio() for _, law in solution.parts)
    assert 0.0 < ratio < 1.0
    made = plan(task=Task(SIZES, pair_floor=ratio - 1e-9)).of(solution)
    assert made.pair_floor == ratio - 1e-9
    with pytest.raises(InputError, match="on pairs was missed by a rounding error"):
        plan(task=Task(SIZES, pair_floor=ratio + 1e-9)).of(solution)


@pytest.mark.parametrize(("k", "recorded"), [(65, 0.5), (1000, 0.5), (1001, None)])
def test_a_floor_is_recorded_up_to_a_thousand_attributes_and_named_beyond(
    k: int, recorded: float | None
) -> None:
    law = ProductLaw.from_levels((2,) * k, (0.1,) * k)
    task = Task((2,) * k, pair_floor=0.5)
    wide = LevelDesigns(Schema.anonymous((2,) * k), METHODS["balanced"], task)
    made = wide.of(Solution(((tuple(range(k)), law),)))
    assert made.pair_floor == recorded
    assert any("not all pairs" in note for note in made.notes) == (recorded is None)
