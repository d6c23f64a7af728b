"""Category counts and levels: derived numbers to the last digits, and refusals."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.problem import (
    MAX_CATEGORIES,
    MAX_LEVEL,
    caps_given_rest,
    checked_problem,
    optional_limits,
)

COUNTS = [2, 3, 1000, MAX_CATEGORIES]
LEVELS = [1e-300, 1e-12, 0.3, 12.0, MAX_LEVEL]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("a", COUNTS)
def test_every_derived_number_is_right_to_its_last_digits(a: int, level: float) -> None:
    problem = checked_problem([a], [level])
    with localcontext() as context:
        context.prec = 700
        power = Decimal(level).exp()
        keep = power / (power + a - 1)
        exact = {
            "uniform_keep": 1 / Decimal(a),
            "expm1": power - 1,
            "keep_probability": keep,
            "change_probability": 1 - keep,
            "keep_excess": keep - 1 / Decimal(a),
        }
        for name, value in exact.items():
            (found,) = getattr(problem, name).tolist()
            # 8 roundings, and the spacing of the smallest doubles.
            error = Decimal(8 * 2.0**-52) * value + Decimal(2.0**-1073)
            assert abs(Decimal(found) - value) < error, name


def test_it_holds_what_it_was_given() -> None:
    problem = checked_problem([3, 5], [1.0, 0.0])
    assert problem.n_attributes == 2
    assert problem.counts.tolist() == [3, 5]
    assert problem.counts.dtype == np.int64
    assert problem.keep_excess[1] == 0.0


@pytest.mark.parametrize(
    ("counts", "levels", "sentence"),
    [
        ([], [], "at least one attribute"),
        ([3, 3], [1.0], "1 levels were given for 2 attributes"),
        ([3, [3, 3]], [1.0, 1.0], "flat list of numbers"),
        ([[3, 3]], [[1.0, 1.0]], "flat list of numbers"),
        (["three"], [1.0], "flat list of numbers"),
        ([3, 1], [1.0, 1.0], r"n_categories\[1\]: .* from 2 to 2147483648, not 1"),
        ([2.5], [1.0], r"n_categories\[0\]: .* not 2.5"),
        ([MAX_CATEGORIES + 1], [1.0], r"n_categories\[0\]"),
        ([math.nan], [1.0], r"n_categories\[0\]"),
        ([3, 3], [1.0, -0.1], r"attribute_epsilon\[1\]: .* between 0 and 600 nats, not -0.1"),
        ([3], [MAX_LEVEL * 1.001], r"attribute_epsilon\[0\]"),
        ([3], [math.nan], r"attribute_epsilon\[0\]"),
    ],
)
def test_what_is_no_problem_is_refused(counts: list, levels: list, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        checked_problem(counts, levels)


def test_a_limit_that_is_not_given_is_infinite() -> None:
    assert optional_limits(None, 3, "caps").tolist() == [math.inf] * 3
    assert optional_limits([1.5, None], 2, "caps").tolist() == [1.5, math.inf]
    with pytest.raises(InputError, match="caps: 1 were given for 2 attributes"):
        optional_limits([1.5], 2, "caps")


def test_a_cap_may_equal_the_level_but_not_be_below_it() -> None:
    problem = checked_problem([3, 4], [1.0, 0.5])
    assert caps_given_rest(problem, [1.0, None], "caps").tolist() == [1.0, math.inf]
    for cap in (math.nextafter(0.5, 0.0), math.nan):
        with pytest.raises(InputError, match=r"caps\[1\]: a cap of .* raise the cap"):
            caps_given_rest(problem, [None, cap], "caps")
