"""Entropies of laws against the definition: those of the rows of the whole matrix."""

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import (
    PatternLaw,
    PatternTable,
    ProductLaw,
    SingleChangeMixture,
    joint_of_attenuation,
)
from deniable.laws.bistochastic import bistochastic_channel
from deniable.laws.entropy import NotComputedError, entropy_rate, response_entropy
from deniable.laws.response import Response
from laws import brute_force as oracle
from laws import strategies

D = Context(prec=60)
pattern_laws = strategies.sizes().flatmap(strategies.pattern_laws)
shares = st.one_of(st.floats(1e-6, 1 - 1e-6), st.floats(1, 14).map(lambda d: 1 - 10**-d))


def entropy_of(chances: Sequence[Fraction]) -> float:
    """−Σ p log₂ p with sixty digits."""
    return entropy_in_any_order(tuple(sorted(chances)))


@cache
def entropy_in_any_order(chances: tuple[Fraction, ...]) -> float:
    total = Decimal(0)
    for p in chances:
        if p:
            p_ = D.divide(Decimal(p.numerator), Decimal(p.denominator))
            total = D.subtract(total, D.multiply(p_, D.ln(p_)))
    return float(D.divide(total, D.ln(Decimal(2))))


def rate_of(channel: oracle.Channel) -> float:
    """The average of the rows' entropies."""
    return math.fsum(entropy_of(list(row.values())) for row in channel.values()) / len(channel)


@given(pattern_laws)
def test_the_entropy_of_a_record_is_that_of_the_rows_of_the_whole_matrix(law: PatternLaw) -> None:
    channel = oracle.channel_of_law(law)
    expected = rate_of(channel)
    entropy = law.record_entropy()
    assert entropy == pytest.approx(expected, rel=1e-12, abs=1e-300)
    for i, single in enumerate(law.attribute_entropies()):
        assert single == pytest.approx(
            rate_of(oracle.seen_through(channel, [i])), rel=1e-12, abs=1e-300
        )


@st.composite
def product_matrices(draw: st.DrawFn) -> list[NDArray[np.float64]]:
    matrices = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(2, 4))
        matrix = np.full((n, n), draw(st.floats(0.05, 1)) / n)
        for _ in range(draw(st.integers(1, 3))):
            matrix[draw(st.permutations(range(n))), np.arange(n)] += draw(st.floats(0.1, 1))
        matrices.append(matrix / matrix.sum(axis=0))
    return matrices


@given(product_matrices())
def test_entropy_rates_add_over_a_kronecker_product_of_any_bistochastic_matrices(
    matrices: list[NDArray[np.float64]],
) -> None:
    # Theorem 2 against brute force.
    whole = np.ones((1, 1))
    for matrix in matrices:
        whole = np.kron(whole, matrix)
    assert entropy_rate(whole) == pytest.approx(sum(entropy_rate(m) for m in matrices), rel=1e-12)


@given(st.integers(2, 2000), shares)
def test_the_strength_of_a_law_and_of_a_conversion_agree_at_both_ends(
    n: int, attenuation: float
) -> None:
    law = ProductLaw.from_levels([n], [Response.from_attenuation(n, attenuation).epsilon])
    entropy = law.record_entropy()
    expected = Response.from_attenuation(n, attenuation).entropy
    assert entropy == pytest.approx(expected, rel=1e-12, abs=0)
    assert law.attribute_entropies() == [pytest.approx(expected, rel=1e-12, abs=0)]


def test_joint_laws_far_beyond_doubles_have_an_entropy() -> None:
    sizes = (5,) * 1000
    most = 1000 * math.log2(5)
    law = joint_of_attenuation(sizes, 0.25)
    # A quarter of the mass on one record, the rest uniform: H = h(1/4) + (3/4) log₂ N.
    coin = -0.25 * math.log2(0.25) - 0.75 * math.log2(0.75)
    assert law.record_entropy() == pytest.approx(coin + 0.75 * most, rel=1e-14)
    mixture = SingleChangeMixture.from_excesses(sizes, 1.0, np.zeros(1000))
    assert mixture.record_entropy() == pytest.approx(1 + 0.5 * most, rel=1e-13)


def test_a_single_change_mixture_near_certainty_keeps_its_digits() -> None:
    for sizes in ((3, 4), (2,), (5,)):
        law = SingleChangeMixture(sizes, 80, 3, (1 << 80) - 7, (4,) + (0,) * (len(sizes) - 1))
        expected = rate_of(oracle.channel_of_law(law))
        assert law.record_entropy() == pytest.approx(expected, rel=1e-12, abs=0)


class Opaque(PatternLaw):
    """A law of a family that the entropy account has never heard of."""

    family: ClassVar[str] = "opaque"

    def __init__(self, inner: PatternTable) -> None:
        self._inner = inner
        self.n_categories = inner.n_categories

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        return self._inner.eigenvalues(subset)

    def _none(self, *_: Any) -> Any:
        raise NotImplementedError

    record_level = attribute_levels = given_rest_levels = _none
    keep_probabilities = sampler = to_plain = from_plain = _none


def test_an_unknown_pattern_law_is_accounted_from_its_eigenvalues() -> None:
    table = PatternTable((2, 3, 4), 8, (180, 20, 10, 9, 12, 8, 10, 7))
    assert Opaque(table).record_entropy() == pytest.approx(table.record_entropy(), rel=1e-12)


def test_an_unknown_pattern_law_of_many_attributes_says_why_it_has_no_entropy() -> None:
    law = Opaque(PatternTable((2,), 2, (3, 1)))
    law.n_categories = (2,) * 30
    with pytest.raises(NotComputedError, match="for up to 20 attributes, not for 30"):
        law.record_entropy()


def test_lambda_of_a_matrix_is_found_where_it_is_of_that_class() -> None:
    alike = bistochastic_channel(0.35 * np.eye(4) + 0.65 / 4)
    assert alike.attribute_lambdas() == [pytest.approx(0.35, rel=1e-12)]
    cycle = np.roll(np.eye(4), 1, axis=0)
    other = bistochastic_channel(0.35 * np.eye(4) + 0.325 * cycle + 0.325 / 4)
    assert other.attribute_lambdas() == [None]


@given(st.integers(2, 30), st.integers(0, 1000), st.integers(0, 1000))
def test_the_entropy_of_one_response_follows_its_definition(n: int, keep: int, change: int) -> None:
    if keep + change == 0:
        return
    total = keep + change
    row = [Fraction(keep, total)] + [Fraction(change, total * (n - 1))] * (n - 1)
    found = response_entropy(n, keep, change)
    assert found == pytest.approx(entropy_of(row), rel=1e-13, abs=1e-300)


def test_a_response_matrix_that_is_none_has_no_entropy_rate() -> None:
    with pytest.raises(InputError, match="column 2"):
        entropy_rate(np.array([[0.5, 0.5], [0.5, 0.4]]))
    with pytest.raises(InputError, match="negative"):
        entropy_rate(np.array([[1.5, 0.5], [-0.5, 0.5]]))
