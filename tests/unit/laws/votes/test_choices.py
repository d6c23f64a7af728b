"""Choices have exactly the probabilities that are stated."""

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.laws.votes.choices import Choice, probabilities
from deniable.laws.votes.gated import LEAST_DITHER
from deniable.laws.votes.vote_law import LARGEST_HEIGHT
from unit.scripted import ScriptedBits

ONE = np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("flipped", [False, True])
def test_ties_are_settled_by_further_bits(flipped: bool) -> None:
    least, rest = np.array([3 * 2.0**-20]), np.array([1 - 3 * 2.0**-20])
    choice = Choice(rest, least, None) if flipped else Choice(least, rest, None)
    prefix = (1 << 16) - 1 if flipped else 0  # where yes is the likelier, 0 is read for 1
    for further, below in ((1, True), (3 * 2**60 - 1, True), (3 * 2**60, False), (2**62, False)):
        bits = ScriptedBits((np.uint16, [prefix]), (np.uint64, [further]))
        assert choice.draw(ONE, bits).tolist() == [below != flipped]
        assert bits.used_up


def test_a_tie_may_take_more_than_one_word() -> None:
    choice = Choice.of_probability(1.5 * 2.0**-100)
    for second, below in ((3 * 2**43 - 1, True), (3 * 2**43, False), (2**45, False)):
        bits = ScriptedBits((np.uint16, [0]), (np.uint64, [0]), (np.uint64, [second]))
        assert choice.draw(ONE, bits).tolist() == [below]
        assert bits.used_up


@pytest.mark.parametrize("probability", [0.5, 0.25, 0.75, 1 / 3, 1 - 1e-16, 1e-300, 0.1])
def test_a_choice_has_exactly_the_stated_probability(probability: float) -> None:
    assert Choice.of_probability(probability).probability(0) == Fraction(probability)


@pytest.mark.parametrize("probability", [0.25, 0.75, 1 / 3, 1 - 1e-16, 1e-300])
def test_both_probabilities_are_the_exact_ones_rounded_once(probability: float) -> None:
    yes, no = probabilities(np.array([probability]), np.array([1.0 - probability]))
    exact = Fraction(probability)
    assert (yes.tolist(), no.tolist()) == ([float(exact)], [float(1 - exact)])


@pytest.mark.parametrize("probability", [0.5, 0.25, 0.75, 1 / 3, 2 / 3, 2.0**-16, 0.99999, 1e-9])
def test_every_prefix_decides_what_it_determines(probability: float) -> None:
    choice = Choice.of_probability(probability)
    states = np.zeros(1 << 16, dtype=np.int64)
    counts = []
    for tail in (0, (1 << 64) - 1):
        bits = ScriptedBits((np.uint16, range(1 << 16)), (np.uint64, [tail]))
        counts.append(int(choice.draw(states, bits).sum()))
    scaled = Fraction(probability) * 2**16
    assert sorted(counts) == [math.floor(scaled), math.ceil(scaled)]


def test_the_least_quotient_that_a_law_can_have_keeps_all_its_digits() -> None:
    half = math.exp(LARGEST_HEIGHT / 2)
    least, most = np.array([LEAST_DITHER / half / 1e6]), np.array([half])
    found = Choice(least, most, None).probability(0)
    exact = Fraction(least.item()) / (Fraction(least.item()) + Fraction(most.item()))
    assert abs(found / exact - 1) <= Fraction(1, 2**52)
