"""The strongest λ that keep given shares of covariances, against closed forms and grid search."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.solvers.patterns import preserve

shares = st.one_of(st.floats(0.001, 0.999), st.floats(2, 9).map(lambda d: 1 - 10**-d))


def epsilon(sizes: list[int], attenuation: list[float]) -> float:
    """Σ ln(1 + aλ/(1 − λ))."""
    return math.fsum(
        math.log1p(n * value / (1 - value)) for n, value in zip(sizes, attenuation, strict=True)
    )


def check(
    sizes: list[int],
    demands: dict[tuple[int, int], float],
    fixed: dict[int, float] | None = None,
) -> preserve.PreservingSolution:
    found = preserve.solve(sizes, demands, fixed)
    values = [Fraction(float(value)) for value in found.attenuation]
    for (a, b), share in demands.items():
        assert values[a] * values[b] >= Fraction(share)
    assert found.epsilon == pytest.approx(epsilon(sizes, found.attenuation.tolist()), rel=1e-14)
    assert found.lower_bound <= found.epsilon
    # A unit in the last place of λ moves ε by about 2^−53/(1 − λ).
    rounding = len(sizes) * 2.0**-50 / (1 - found.attenuation.max())
    assert found.epsilon - found.lower_bound <= 1e-9 + rounding
    return found


@given(st.integers(2, 60), shares)
def test_a_pair_of_like_attributes_shares_the_loss_evenly(n: int, share: float) -> None:
    found = check([n, n], {(0, 1): share})
    # 1 − λ is the sensitive part near 1.
    assert found.attenuation == pytest.approx(math.sqrt(share), rel=1e-6)
    even = epsilon([n, n], [math.sqrt(share)] * 2)
    assert found.epsilon == pytest.approx(even, abs=1e-9 + 2.0**-48 / (1 - share))


@given(st.lists(st.integers(2, 40), min_size=2, max_size=6), st.data())
def test_the_certificate_closes_on_random_demands(sizes: list[int], data: st.DataObject) -> None:
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    demands = {pair: data.draw(shares) for pair in chosen}
    covered = {i for pair in chosen for i in pair}
    fixed = {i: 0.5 for i in range(len(sizes)) if i not in covered}
    check(sizes, demands, fixed)


@given(st.integers(2, 30), st.integers(2, 30), st.integers(2, 30), shares, shares)
def test_no_point_of_a_fine_grid_beats_the_solution_for_three_attributes(
    a: int, b: int, c: int, first: float, second: float
) -> None:
    sizes = [a, b, c]
    found = check(sizes, {(0, 1): first, (1, 2): second})
    # Given λ_b the other two are as small as they may be.
    for step in np.linspace(0.0005, 0.9995, 400):
        middle = max(first, second) + (1 - max(first, second)) * step
        if first / middle >= 1 or second / middle >= 1 or middle >= 1:
            continue
        other = epsilon(sizes, [first / middle, middle, second / middle])
        rounding = 2.0**-48 / (1 - max(middle, found.attenuation.max()))
        assert other >= found.lower_bound - 1e-9 - rounding
        assert other >= found.epsilon - 1e-9 - rounding


def test_an_attribute_with_more_categories_is_randomized_no_less() -> None:
    found = check([2, 50], {(0, 1): 0.4})
    assert found.attenuation[0] != pytest.approx(found.attenuation[1])
    assert epsilon([2, 50], [math.sqrt(0.4)] * 2) > found.epsilon


def test_a_demand_implied_by_others_changes_nothing() -> None:
    alone = check([3, 4, 5], {(0, 1): 0.5, (1, 2): 0.6})
    values = alone.attenuation
    more = check([3, 4, 5], {(0, 1): 0.5, (1, 2): 0.6, (0, 2): 0.5 * values[0] * values[2]})
    assert more.epsilon == pytest.approx(alone.epsilon, abs=1e-9)


def test_a_fixed_lambda_decides_the_other_one() -> None:
    found = check([3, 4], {(0, 1): 0.4}, {0: 0.8})
    assert found.attenuation[0] == 0.8
    assert found.attenuation[1] == pytest.approx(0.5, rel=1e-10)
    assert preserve.solve([3, 4], {(0, 1): 0.4}, {0: 0.8, 1: 0.6}).attenuation.tolist() == [
        0.8,
        0.6,
    ]


def test_a_chain_of_two_hundred_attributes_is_solved_to_the_same_gap() -> None:
    sizes = [2 + i % 9 for i in range(200)]
    demands = {(i, i + 1): 0.2 + 0.6 * ((i * 37) % 100) / 100 for i in range(199)}
    found = preserve.solve(sizes, demands)
    assert 0 <= found.epsilon - found.lower_bound <= 1e-9


def test_a_demand_that_only_just_binds_does_not_exhaust_the_digits() -> None:
    # At λ = √½ throughout all three demands hold with equality, the middle one for nothing.
    found = check([2] * 4, {(0, 1): 0.5, (0, 2): 0.5, (1, 3): 0.5})
    assert found.epsilon == pytest.approx(epsilon([2] * 4, [math.sqrt(0.5)] * 4), abs=1e-9)


def test_a_share_near_zero_needs_next_to_nothing() -> None:
    found = check([3, 3], {(0, 1): 1e-300})
    assert found.epsilon < 1e-10


@pytest.mark.parametrize(
    ("demands", "fixed", "words"),
    [
        ({}, {}, "at least one pair"),
        ({(0, 0): 0.5}, {1: 0.5}, "paired with itself"),
        ({(0, 5): 0.5}, {1: 0.5}, "does not exist"),
        ({(0, 1): 1.0}, {}, "between 0 and 1"),
        ({(0, 1): 0.0}, {}, "between 0 and 1"),
        ({(0, 1): math.nan}, {}, "between 0 and 1"),
        ({(0, 1): 0.5}, {0: 1.0}, "attribute 1 must lie"),
        ({(0, 1): 0.5}, {0: 0.4}, "already reduce"),
        ({(0, 1): 0.5}, {0: 0.5}, "already reduce"),
        ({(0, 1): 0.5}, {0: 0.6, 1: 0.6}, "already reduce"),
    ],
)
def test_demands_that_make_no_sense_are_refused(
    demands: dict[tuple[int, int], float], fixed: dict[int, float], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        preserve.solve([3, 4], demands, fixed)


def test_an_attribute_that_nothing_is_said_about_is_named() -> None:
    with pytest.raises(InputError, match="attribute 3 is in no pair"):
        preserve.solve([3, 4, 5], {(0, 1): 0.5})


def test_a_share_that_no_lambda_below_one_can_keep_is_refused() -> None:
    with pytest.raises(InputError, match="too near 1"):
        preserve.solve([3, 3], {(0, 1): math.nextafter(1.0, 0.0)})
