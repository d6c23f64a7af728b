"""What is said of a matrix without ε is rounded up, and said of no other law."""

from fractions import Fraction

import numpy as np

from deniable.best_guess import BestGuess, best_guess, best_guess_sentence
from deniable.families import DesignedChannel, ProductLaw
from deniable.mechanism import Block, Mechanism
from deniable.schema import Schema


def test_the_numbers_are_the_laws_own_rounded_up() -> None:
    law = DesignedChannel.for_prior(
        np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.2], [0.1, 0.1, 0.7]]), (1 / 3, 1 / 3, 1 / 3)
    )
    mechanism = Mechanism(Schema.anonymous((3,)), (Block((0,), law),))
    guess = best_guess(mechanism, 0)
    assert guess is not None
    for stated, exact in (
        (guess.before, law.guess_before()),
        (guess.success, law.guess_after()),
        (guess.worst_posterior, law.worst_posterior()),
    ):
        assert Fraction(stated) >= Fraction(*exact)
        assert Fraction(np.nextafter(stated, 0.0).item()) < Fraction(*exact)


def test_nothing_is_said_of_a_law_without_a_prior() -> None:
    mechanism = Mechanism(
        Schema.anonymous((3,)), (Block((0,), ProductLaw.from_levels((3,), (1.0,))),)
    )
    assert best_guess(mechanism, 0) is None


def test_the_sentence_rounds_up_and_names_the_assumption() -> None:
    sentence = best_guess_sentence("age", BestGuess(0.34221, 0.5, 0.75))
    assert "34.3 %" in sentence
    assert "50 %" in sentence
    assert "75 %" in sentence
    assert "If people are distributed" in sentence
    assert "otherwise" in sentence
