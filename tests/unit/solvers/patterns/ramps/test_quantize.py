"""Laws as drawn deliver what the ramps do, and no cap is exceeded by what a grid rounds."""

import math

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.pattern_table import PatternTable
from deniable.laws.votes.blend import VoteBlend
from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns.orbits import alike, orbits
from deniable.solvers.patterns.ramps import quantize
from deniable.solvers.patterns.ramps.evaluate import FourierSums, PatternSums, Ramp
from deniable.solvers.patterns.ramps.search import RampSearch
from unit.laws.votes import whole_law as oracle
from unit.solvers.patterns.ramps.enumerated import Enumerated
from unit.solvers.patterns.requests import request

COUNTS = [2, 3, 5, 4, 7]
RAMP = Ramp(np.array([0.61, 0.83, 1.27, 0.0, 2.9]), 1.13, 1.71)


@pytest.mark.parametrize("start", [0.0, 1.13])
@pytest.mark.parametrize("parts", [40, 5000])
def test_a_gated_sum_is_the_ramp_on_a_grid(start: float, parts: int) -> None:
    ramp = RAMP._replace(start=start)
    law = quantize.gated(COUNTS, ramp, (start + ramp.height) / parts)
    density = oracle.density(law)
    exact = Enumerated(np.array(COUNTS)).density(ramp)
    near = 30.0 / parts
    np.testing.assert_allclose(np.log(density / density[0]), np.log(exact), atol=near)
    assert (law.given_rest() <= np.minimum(ramp.slopes, ramp.height) * (1 + 1e-12)).all()


def test_a_ramp_that_is_too_high_for_a_law_is_refused() -> None:
    with pytest.raises(InputError):
        quantize.gated(COUNTS, Ramp(np.full(5, 300.0), 0.0, 1500.0), 1.0)


def test_a_table_states_what_enumeration_says() -> None:
    problem = checked_problem(*request(1, 5))
    ramp = Ramp(1.3 * problem.attribute_epsilon, 0.4, 1.9)
    part = quantize.Tables(orbits(problem)).mixed([ramp], np.ones(1))
    assert isinstance(part.law, PatternTable)
    every = Enumerated(problem.n_categories)
    density, account = every.density(ramp), part.account
    np.testing.assert_allclose(account.attribute_epsilon, every.levels(density), rtol=1e-11)
    np.testing.assert_allclose(account.epsilon_given_rest, every.given_rest(density), rtol=1e-11)
    assert account.epsilon == pytest.approx(math.log(density.max() / density.min()), rel=2e-12)
    weights = np.array(part.law.weights) / 2.0**part.law.bits
    np.testing.assert_allclose(weights, density * every.chance / (density @ every.chance))


@pytest.mark.parametrize(
    ("counts", "levels"),
    [request(1, 7), request(2, 18), request(3, 24), ([4] * 20, [0.6] * 20), ([4] * 9, [0.6] * 9)],
)
def test_a_law_of_one_ramp_meets_every_level_as_it_is_drawn(
    counts: list[int], levels: list[float]
) -> None:
    problem, k = checked_problem(counts, levels), len(counts)
    groups, size, group_of = alike(problem)
    caps = 2.0 * groups.attribute_epsilon
    sums = FourierSums(groups.n_categories, size.astype(float))
    best = RampSearch(sums, groups, caps, 0.35 * math.fsum(levels)).best()
    assert best is not None
    drawn = quantize.Tables(orbits(problem)) if k < 16 else quantize.Sums(counts, group_of)
    part = drawn.single(groups, caps, best)
    assert part is not None
    account = part.account
    assert np.abs(account.attribute_epsilon - levels).max() <= 4e-10
    assert np.abs(account.attribute_epsilon_floor - levels).max() <= 4e-10
    assert (account.epsilon_given_rest <= 2.0 * problem.attribute_epsilon).all()
    assert account.epsilon == pytest.approx(best.ramp.height, abs=5e-3)


def test_mixtures_of_gated_sums_deliver_what_is_said_of_their_parts() -> None:
    ramps = [RAMP, RAMP._replace(start=0.0), Ramp(np.full(5, 0.4), 0.2, 1.5)]
    drawn = quantize.Sums(COUNTS, np.arange(5))
    got = [drawn.delivered(ramp) for ramp in ramps]
    shares = np.array([0.5, 0.2, 0.3])
    part = drawn.mixed(ramps, shares)
    # Where nothing is changed dither may leave a part a little below its end.
    assert isinstance(part.law, VoteBlend)
    density = oracle.density(part.law)
    density *= shares @ np.exp([one.log_end for one in got]) / density[-1]
    every = Enumerated(np.array(COUNTS))
    mass = density * every.chance
    assert sum(shares * [one.total for one in got]) == pytest.approx(mass.sum(), rel=1e-10)
    np.testing.assert_allclose(
        shares @ np.array([one.changed for one in got]), mass @ every.changed, rtol=1e-10
    )
    off = ~np.eye(5, dtype=bool)
    pairs = np.tensordot(shares, [one.pairs for one in got], 1)
    exact = every.pairs(density)
    assert (pairs <= exact + 1e-15)[off].all()
    np.testing.assert_allclose(pairs[off], exact[off], rtol=1e-8, atol=1e-10)


def test_groups_of_alike_attributes_are_mixed_as_one() -> None:
    drawn = quantize.Sums([3, 3, 5], np.array([0, 0, 1]))
    ramp = Ramp(np.array([0.5, 0.9]), 0.3, 1.2)
    got = drawn.delivered(ramp)
    law = drawn.mixed([ramp], np.ones(1)).law
    assert isinstance(law, VoteBlend)
    density = oracle.density(law)
    density *= np.exp(got.log_end) / density[-1]
    pairs = Enumerated(np.array([3, 3, 5])).pairs(density)
    np.testing.assert_allclose(got.pairs, [[pairs[0, 1], pairs[0, 2]], [pairs[2, 0], np.nan]])


def test_mixtures_over_tables_are_sums_of_densities() -> None:
    problem = checked_problem(COUNTS, [0.5] * 5)
    sums = PatternSums(orbits(problem, range(5)))
    tables = quantize.Tables(sums.orbits)
    ramps = [RAMP._replace(start=0.0), RAMP]
    part = tables.mixed(ramps, np.array([0.25, 0.75]))
    density = 0.25 * sums.density(ramps[0]) + 0.75 * sums.density(ramps[1])
    assert part.account.epsilon == pytest.approx(-math.log(float(density.min())), rel=2e-12)
    assert tables.delivered(RAMP).total == pytest.approx(sums.delivered(RAMP).total)
