"""Every answer of a gated sum against the enumerated law."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sums import SumLaw
from unit.laws.votes import whole_law as oracle


def test_a_factor_that_kept_and_changed_have_in_common_hardly_moves_small_levels() -> None:
    most = 0.0
    for seed in range(20):
        law = oracle.random_sum(seed)
        exact = law.moments()
        levels = exact.levels(law.counts)
        (tables, steps, reference, log_factor), excess, missing = law._sums
        law.__dict__["_sums"] = (tables, steps, reference, log_factor + 1e-6), excess, missing
        moved = np.abs(law.moments().levels(law.counts) - levels)
        assert np.all(moved <= -np.expm1(-levels) * 1e-6 * (1 + 1e-5) + 1e-14)
        assert np.all(moved <= replace(exact, factor_error=1e-6).levels_error(levels))
        most = max(most, float(moved.max()))
    assert most > 1e-7


@pytest.mark.parametrize("seed", range(20))
def test_no_pass_tells_more_sums_apart_than_are_stated(seed: int) -> None:
    law = oracle.random_sum(seed)
    back, tables = Backward(law), round(law.states_told_apart / (math.sqrt(law.n_attributes) + 8))
    widths = [high - low + 1 for low, high in map(back.bounds, range(law.n_attributes + 1))]
    assert max(widths) <= tables
    forward = SumLaw(law.tilted[1], law.rise[0])
    assert max(len(window.mass) for _, window in forward._backwards()) <= tables


def unclipped() -> GatedSum:
    return GatedSum((3, 4), np.array([5, 7]), np.zeros(2), "ramp", 0.0, 12.0, 2.4, np.ones(2))


def test_a_ramp_that_is_never_clipped_is_the_kronecker_product() -> None:
    law = unclipped()
    q = oracle.pattern_law(law)
    np.testing.assert_allclose(oracle.given_rest([3, 4], q), law.given_rest(), rtol=1e-12)
    np.testing.assert_allclose(law.given_rest(), [1.0, 1.4], rtol=1e-12)
    np.testing.assert_allclose(law.moments().levels(law.counts), [1.0, 1.4], rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_another_height_is_the_law_built_with_that_height(seed: int) -> None:
    law = oracle.random_sum(seed)
    law.moments()
    moved = law.at_height(2.5)
    width = law.width if law.gate == "vote" else law.width * 2.5 / law.height
    arrays = (law.n_categories, law.weights, law.dither)
    fresh = GatedSum(*arrays, law.gate, law.start, width, 2.5, law.retention)
    assert moved == fresh
    got, right = moved.moments(), fresh.moments()
    np.testing.assert_allclose(got.keep, right.keep, rtol=1e-12)
    assert got.relative_error == pytest.approx(right.relative_error, rel=1e-9)


def test_own_responses_that_are_sure_to_leave_the_record_its_level_are_told() -> None:
    k = 400
    weights, dither = np.arange(k) % 3 + 1, np.full(k, 0.25)
    for retained, stays in ((0.999, True), (0.98, True), (0.3, False)):
        law = GatedSum((3,) * k, weights, dither, "vote", 500.0, 20.0, 2.0, np.full(k, retained))
        assert law.extremes_stay() == stays
        level, wrong = law.subset_level(range(k))
        assert (level > 2.0 - 1e-12) == stays
        assert law.record_level() >= min(level, 2.0)
        assert law.record_level() <= 2.0 + law.drawing_slack + wrong + 1e-12


def test_laws_are_equal_if_all_their_numbers_are() -> None:
    assert unclipped() == unclipped()
    assert hash(unclipped()) == hash(unclipped())
    assert unclipped() != unclipped().at_height(2.3)
    assert unclipped() != "a law"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("weights", [-1, 1], "weights >= 0"),
        ("weights", [0, 0], "more than 0"),
        ("weights", [2**28, 1], "at most to 2"),
        ("weights", [2**61, 2**61], "at most to 2"),
        ("weights", [1], "one weight, dither and retention"),
        ("dither", [0.0, 1.0], "dither"),
        ("dither", [0.0, np.nan], "."),
        ("gate", "step", "'vote' or 'ramp'"),
        ("width", 5e-324, "finite width"),
        ("width", 0.7, "exactly a step"),
        ("width", 0.0, "finite width"),
        ("width", np.inf, "finite width"),
        ("start", -1.0, "finite start"),
        ("start", 5e-324, "normal number"),
        ("start", 2.0, "must be reached"),
        ("height", 0.0, "height of a gate"),
        ("height", 1e6, "height of a gate"),
        ("height", np.nan, "height of a gate"),
        ("retention", [0.0, 1.0], "retention"),
        ("retention", [1.0, 1.5], "retention"),
        ("n_categories", (1, 3), "category counts"),
    ],
)
def test_an_impossible_gated_sum_is_refused(field: str, value: Any, sentence: str) -> None:
    numbers: dict[str, Any] = {
        "n_categories": (3, 3),
        "weights": np.array([1, 1]),
        "dither": np.zeros(2),
        "gate": "vote",
        "start": 0.5,
        "width": 1.0,
        "height": 1.0,
        "retention": np.ones(2),
    }
    GatedSum(**numbers)
    GatedSum(**numbers | {"width": 0.5})
    numbers[field] = np.array(value) if isinstance(value, list) else value
    with pytest.raises(InputError, match=sentence):
        GatedSum(**numbers)
