"""Lower bounds: exact where they can be computed exactly, and never above any law's level."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs import certificate
from deniable.proofs.complement import rounded
from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns import closed_form, linear
from marked import slow_after


def exact_keep(counts: list[int], levels: list[float]) -> list[Fraction]:
    """p_i to 60 digits, as rational numbers."""
    with localcontext() as context:
        context.prec = 60
        growth = [Fraction(Decimal(level).exp()) for level in levels]
    return [e / (e + a - 1) for e, a in zip(growth, counts, strict=True)]


def exact_ln(value: Fraction) -> float:
    """ln of a rational number, rounded once from 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def exact_weighted(counts: list[int], levels: list[float], weights: list[float]) -> float:
    keep = exact_keep(counts, levels)
    scale = [Fraction(weight) for weight in weights]
    mean = Fraction(0)
    for kept in itertools.product((True, False), repeat=len(counts)):
        chance = math.prod(
            (Fraction(1, a) if y else 1 - Fraction(1, a)) for a, y in zip(counts, kept, strict=True)
        )
        z = sum(w * ((1 if y else 0) - p) for w, y, p in zip(scale, kept, keep, strict=True))
        mean += chance * max(z, Fraction(0))
    lift = sum(w * (p - Fraction(1, a)) for w, p, a in zip(scale, keep, counts, strict=True))
    return exact_ln(1 + lift / mean)


def exact_relative_entropy(counts: list[int], levels: list[float]) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for p, a in zip(exact_keep(counts, levels), counts, strict=True):
            keep = Decimal(p.numerator) / Decimal(p.denominator)
            total += keep * (keep * a).ln() + (1 - keep) * ((1 - keep) * a / (a - 1)).ln()
        return total


def random_instance(generator: np.random.Generator, most: int) -> tuple[list[int], list[float]]:
    k = int(generator.integers(1, most + 1))
    counts = generator.integers(2, int(generator.choice([4, 8, 500])), k)
    spread = generator.integers(3)
    if spread == 0:
        levels = 10.0 ** generator.uniform(-5.0, 0.5, k)
    elif spread == 1:
        levels = generator.uniform(0.2, 3.0, k)
    else:
        levels = generator.uniform(0.2, 14.0, k)
    return counts.tolist(), levels.tolist()


def test_the_weighted_bound_is_exact_to_its_error_margin_and_rounded_down() -> None:
    generator = np.random.default_rng(1)
    for _ in range(150):
        counts, levels = random_instance(generator, 5)
        weights = (generator.uniform(0.0, 1.0, len(counts)) * np.array(levels)).tolist()
        exact = exact_weighted(counts, levels, weights)
        bound = certificate.weighted_bound(counts, levels, weights)
        # At tied patterns z is pure rounding, for which the bound allows with its full margin.
        assert exact * (1 - 1e-11) <= bound <= exact


def test_the_relative_entropy_bound_is_exact_at_tiny_and_large_levels_and_rounded_down() -> None:
    generator = np.random.default_rng(2)
    for scale in (1e-9, 1e-6, 1e-3, 0.5, 1.0, 5.0, 60.0):
        for _ in range(20):
            k = int(generator.integers(1, 8))
            counts = generator.integers(2, 2000, k).tolist()
            levels = (scale * generator.uniform(0.5, 1.0, k)).tolist()
            exact = exact_relative_entropy(counts, levels)
            bound = certificate.relative_entropy_bound(checked_problem(counts, levels))
            assert Decimal(bound) <= exact
            assert bound == pytest.approx(float(exact), rel=2e-12)


def test_no_bound_exceeds_the_closed_form_optimum_of_two_attributes() -> None:
    generator = np.random.default_rng(3)
    for _ in range(200):
        counts = generator.integers(2, 30, 2).tolist()
        levels = generator.uniform(0.05, 5.0, 2).tolist()
        optimum = closed_form.solve(counts, levels).epsilon * (1 + 1e-13)
        assert certificate.best_known_bound(counts, levels) <= optimum
        weights = generator.uniform(0.0, 1.0, 2).tolist()
        assert certificate.weighted_bound(counts, levels, weights) <= optimum


@pytest.mark.slow
def test_no_bound_exceeds_the_linear_program_of_up_to_twelve_attributes() -> None:
    generator = np.random.default_rng(5)
    for _ in range(40):
        k = int(generator.integers(7, 13))
        counts = generator.integers(2, 9, k).tolist()
        levels = (10.0 ** generator.uniform(-2.0, 0.7, k)).tolist()
        optimum = linear.solve(counts, levels).epsilon * (1 + 1e-12)
        weights = generator.uniform(0.0, 1.0, k).tolist()
        for tried in (weights, levels, [min(level, 1.0) for level in levels]):
            assert certificate.weighted_bound(counts, levels, tried) <= optimum
        assert certificate.best_known_bound(counts, levels) <= optimum


def test_no_bound_exceeds_the_linear_program_and_its_weights_attain_it() -> None:
    generator = np.random.default_rng(4)
    for _ in range(80):
        counts, levels = random_instance(generator, 6)
        solution = linear.solve(counts, levels)
        optimum = solution.epsilon * (1 + 1e-12) + 1e-15
        assert certificate.best_known_bound(counts, levels) <= optimum
        weights = generator.uniform(0.0, 1.0, len(counts)).tolist()
        assert certificate.weighted_bound(counts, levels, weights) <= optimum
        attained = certificate.weighted_bound(counts, levels, solution.weights.tolist())
        assert attained <= optimum
        assert attained == pytest.approx(solution.epsilon, rel=1e-9)


def test_one_attribute_is_bounded_by_its_own_level() -> None:
    for level in (1e-8, 1.0, 30.0):
        bound = certificate.weighted_bound([7], [level], [2.5])
        assert bound <= level
        assert bound == pytest.approx(level, rel=1e-11)
        assert certificate.best_known_bound([7], [level]) == level


def test_the_scale_of_the_weights_does_not_matter_and_nor_do_weights_of_unprotected_levels() -> (
    None
):
    counts, levels, weights = [3, 4, 5], [0.5, 0.0, 2.0], [0.3, 0.9, 0.5]
    bound = certificate.weighted_bound(counts, levels, weights)
    for scale in (1e-300, 3.0, 1e300):
        scaled = [weight * scale for weight in weights]
        assert certificate.weighted_bound(counts, levels, scaled) == pytest.approx(bound, rel=1e-14)
    assert certificate.weighted_bound(counts, levels, [0.3, 0.0, 0.5]) == bound


def test_weights_that_prove_nothing_give_zero() -> None:
    assert certificate.weighted_bound([3, 3], [1.0, 1.0], [0.0, 0.0]) == 0.0
    assert certificate.weighted_bound([3, 3], [0.0, 1.0], [1.0, 0.0]) == 0.0
    assert certificate.best_known_bound([3, 3], [0.0, 0.0]) == 0.0


def test_many_attributes_are_bounded_by_relative_entropy_without_enumeration() -> None:
    counts, levels = [5] * 1000, [0.208] * 1000
    bound = certificate.best_known_bound(counts, levels)
    assert bound == certificate.relative_entropy_bound(checked_problem(counts, levels)) > 0.208


@pytest.mark.parametrize(
    ("n", "weights", "sentence"),
    [
        (2, [1.0], "1 were given for 2 attributes"),
        (2, [1.0, -0.1], r"weights\[1\]"),
        (2, [math.nan, 1.0], r"weights\[0\]"),
        (2, [1.0, math.inf], r"weights\[1\]"),
        (21, [1.0] * 20, "20 were given for 21 attributes"),
    ],
)
def test_bad_weights_are_refused(n: int, weights: list[float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        certificate.weighted_bound([3] * n, [1.0] * n, weights)


@pytest.mark.parametrize("k", slow_after(1, [5, 12]))
def test_the_bound_by_sums_is_the_enumerated_one_of_the_same_whole_numbers(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(12):
        generator = np.random.default_rng(seed)
        counts, levels = generator.integers(2, 9, k).tolist(), generator.uniform(0.2, 1.5, k)
        weights = levels * generator.uniform(0.5, 1.5, k)
        whole = rounded(checked_problem(counts, levels.tolist()), weights)
        exact = certificate.weighted_bound(counts, levels.tolist(), whole.tolist())
        of_real = certificate.weighted_bound(counts, levels.tolist(), weights.tolist())
        with monkeypatch.context() as changed:
            changed.setattr(certificate, "MAX_ENUMERATED", 0)
            by_sums = certificate.weighted_bound(counts, levels.tolist(), weights.tolist())
        assert exact - 1e-9 < by_sums <= exact + 1e-12
        assert by_sums == pytest.approx(of_real, abs=1e-5)


@pytest.mark.slow
def test_the_bound_of_many_attributes_beats_relative_entropy_and_does_not_depend_on_scale() -> None:
    generator = np.random.default_rng(6)
    counts, levels = generator.integers(2, 9, 100).tolist(), generator.uniform(0.2, 1.0, 100)
    bound = certificate.weighted_bound(counts, levels.tolist(), levels.tolist())
    assert bound > certificate.relative_entropy_bound(checked_problem(counts, levels.tolist()))
    for scale in (1e-200, 7.0, 1e200):
        scaled = (levels * scale).tolist()
        other = certificate.weighted_bound(counts, levels.tolist(), scaled)
        assert other == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("level", [1e-6, 0.2, 30.0, 600.0])
def test_the_bound_of_many_attributes_holds_at_extreme_levels(level: float) -> None:
    counts, levels = [2, 1000] * 12, [level] * 24
    bound = certificate.weighted_bound(counts, levels, levels)
    assert 0.0 <= bound <= 24 * level
    mixed = certificate.weighted_bound(counts, [*levels[:-1], 1e-3], [1.0] * 24)
    assert 0.0 <= mixed <= 24 * level
