"""Conversions between λ, ε, strength, keep probability and covariance preservation."""

import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws.response import Response, entropy_shortfall

D = Context(prec=400)
categories = st.one_of(st.integers(2, 12), st.integers(2, 100_000))
levels = st.floats(-300, math.log(600)).map(math.exp).filter(lambda e: e > 1e-130)
ends = st.one_of(
    st.floats(1e-9, 1 - 1e-9),
    st.floats(1, 15).map(lambda d: 10**-d),
    st.floats(1, 15).map(lambda d: 1 - 10**-d),
)
tiny = st.floats(1, 120).map(lambda d: 10**-d)


def exact(a: int, epsilon: float) -> dict[str, float]:
    """Everything from its definition, with 400 digits."""
    odds = D.exp(Decimal(epsilon))
    total = D.add(odds, Decimal(a - 1))
    keep = D.divide(odds, total)
    change = D.divide(Decimal(a - 1), total)
    other = D.divide(Decimal(1), total)
    shrink = D.divide(D.subtract(D.multiply(Decimal(a), keep), Decimal(1)), Decimal(a - 1))
    nats = D.minus(D.add(D.multiply(keep, D.ln(keep)), D.multiply(change, D.ln(other))))
    strength = D.divide(nats, D.ln(Decimal(a)))
    return {
        "keep_probability": float(keep),
        "change_probability": float(change),
        "attenuation": float(shrink),
        "entropy": float(D.divide(nats, D.ln(Decimal(2)))),
        "strength": float(strength),
        "strength_shortfall": float(D.subtract(Decimal(1), strength)),
    }


@given(categories, levels)
def test_every_unit_is_right_to_full_relative_accuracy_at_any_level(a: int, epsilon: float) -> None:
    response = Response(a, epsilon)
    for name, value in exact(a, epsilon).items():
        # e^−ε itself carries a relative rounding error of ε units in the last place.
        tolerance = 2e-14 + 4e-16 * epsilon
        assert getattr(response, name) == pytest.approx(value, rel=tolerance, abs=0), name


@given(categories, st.one_of(ends, tiny))
def test_lambda_goes_to_a_level_and_back(a: int, attenuation: float) -> None:
    response = Response.from_attenuation(a, attenuation)
    assert response.attenuation == pytest.approx(attenuation, rel=1e-14, abs=0)


@given(categories, st.one_of(ends, tiny))
def test_a_strength_goes_to_a_level_and_back_and_is_never_missed(a: int, strength: float) -> None:
    response = Response.from_strength(a, strength)
    assert response.strength == pytest.approx(strength, rel=1e-13, abs=0)
    if strength <= 0.5:
        assert response.strength >= strength
        louder = math.nextafter(response.epsilon, math.inf)
        assert Response(a, louder).strength < strength
    else:
        assert response.strength_shortfall <= 1 - strength


@given(categories, st.one_of(ends, tiny))
def test_what_a_strength_falls_short_of_one_goes_to_a_level_and_back(
    a: int, shortfall: float
) -> None:
    response = Response.from_strength_shortfall(a, shortfall)
    assert response.strength_shortfall == pytest.approx(shortfall, rel=1e-12, abs=0)
    assert response.strength_shortfall <= shortfall


@given(categories, levels)
def test_strength_falls_and_lambda_rises_with_the_level(a: int, epsilon: float) -> None:
    weaker, response = Response(a, min(epsilon * 1.01, 700.0)), Response(a, epsilon)
    assert weaker.strength <= response.strength * (1 + 1e-15)
    assert weaker.strength_shortfall >= response.strength_shortfall * (1 - 1e-15)
    assert weaker.attenuation >= response.attenuation * (1 - 1e-15)
    assert response.strength + response.strength_shortfall == pytest.approx(1, rel=1e-14)


@given(st.integers(2, 50), st.floats(0, 1))
def test_the_shortfall_also_holds_where_the_truth_is_rarer_than_chance(
    a: int, place: float
) -> None:
    keep = place / a
    entropy = -keep * math.log2(keep) if keep else 0.0
    entropy -= (1 - keep) * math.log2((1 - keep) / (a - 1))
    attenuation = (a * keep - 1) / (a - 1)
    shortfall = entropy_shortfall(a, attenuation)
    assert shortfall == pytest.approx(math.log2(a) - entropy, abs=1e-13)


def test_a_worked_example_agrees_with_the_papers_matrix() -> None:
    # Section 3: a binary attribute kept with 0.9 is λ = 0.8.
    response = Response(2, math.log(9))
    assert response.attenuation == pytest.approx(0.8, rel=1e-15)
    assert response.keep_probability == pytest.approx(0.9, rel=1e-15)
    assert response.entropy == pytest.approx(-0.9 * math.log2(0.9) - 0.1 * math.log2(0.1))


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_a_lambda_or_strength_outside_zero_and_one_is_refused_in_one_sentence(bad: float) -> None:
    for build in (
        Response.from_attenuation,
        Response.from_strength,
        Response.from_strength_shortfall,
    ):
        with pytest.raises(InputError) as caught:
            build(4, bad)
        assert "\n" not in str(caught.value)


def test_levels_and_strengths_out_of_reach_are_refused() -> None:
    for level in (0.0, -1.0, 701.0, math.nan):
        with pytest.raises(InputError):
            Response(3, level)
    with pytest.raises(InputError, match="out of reach"):
        Response.from_strength(3, 1e-310)
    with pytest.raises(InputError, match="out of reach"):
        Response.from_strength_shortfall(3, 1e-310)


@pytest.mark.parametrize("bad", [1, 0, True, 2.5])
def test_a_number_of_categories_that_is_none_is_refused(bad: int) -> None:
    with pytest.raises(InputError, match="categories"):
        Response(bad, 1.0)


def test_the_two_branches_of_the_shortfall_meet() -> None:
    for x in (0.25, -0.25):
        below, above = np.nextafter(x, 0), np.nextafter(x, 2 * x)
        for a in (2, 3, 40):
            one, two = (entropy_shortfall(a, v / (a - 1) if x > 0 else v) for v in (below, above))
            assert one == pytest.approx(two, rel=1e-13)
