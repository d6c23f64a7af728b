"""What is said of a matrix without ε is rounded up, and said of no other law."""

from fractions import Fraction

import numpy as np
import pytest

from deniable.laws import DesignedChannel, ProductLaw
from deniable.mechanism.best_guess import BestGuess, best_guess
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema


def test_the_numbers_are_the_laws_own_rounded_up() -> None:
    law = DesignedChannel.for_prior(
        np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.2], [0.1, 0.1, 0.7]]), (1 / 3, 1 / 3, 1 / 3)
    )
    mechanism = Mechanism.of(law)
    guess = best_guess(mechanism, 0)
    assert guess is not None
    for stated, exact in (
        (guess.before, law.guesses().before),
        (guess.success, law.guesses().after),
        (guess.worst_posterior, law.guesses().worst_posterior),
    ):
        assert Fraction(stated) >= Fraction(*exact)
        assert Fraction(np.nextafter(stated, 0.0).item()) < Fraction(*exact)


def test_nothing_is_said_of_a_law_without_a_prior() -> None:
    mechanism = Mechanism.of(ProductLaw.from_levels((3,), (1.0,)))
    assert best_guess(mechanism, 0) is None


PARTS = (
    Attribute("p", ("p0", "p1")),
    Attribute("q", ("q0", "q1", "q2")),
    Attribute("r", ("r0", "r1")),
)


def merged_mechanism(seed: int, n_outputs: int = 14) -> tuple[Mechanism, np.ndarray]:
    """p, q and r as one attribute, and the joint probabilities [answer, p, q, r]."""
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.full(n_outputs, 0.3), size=12).T
    prior = random.dirichlet(np.full(12, 2.0))
    law = DesignedChannel.for_prior(matrix, tuple(prior))
    mechanism = Mechanism.of(law, Schema((Attribute.merged(PARTS),)))
    return mechanism, (law.matrix() * prior).reshape(n_outputs, 2, 3, 2)


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_guessed_as_well_as_someone_who_tries_every_guess(seed: int) -> None:
    mechanism, joint = merged_mechanism(seed)
    guess = best_guess(mechanism, 0)
    assert guess is not None
    for axis, part in enumerate(guess.parts, start=1):
        others = tuple(a for a in (1, 2, 3) if a != axis)
        alone = joint.sum(axis=others)
        assert part.name == PARTS[axis - 1].name
        assert part.alone.before == pytest.approx(alone.sum(axis=0).max())
        assert part.alone.success == pytest.approx(alone.max(axis=1).sum())
        seen = alone[alone.sum(axis=1) > 0]
        assert part.alone.worst_posterior == pytest.approx(
            (seen / seen.sum(axis=1, keepdims=True)).max()
        )
        # Who knows the others makes one guess for each of their values and each answer.
        known = np.moveaxis(joint, axis, -1).reshape(-1, joint.shape[axis])
        assert part.given_rest.before == pytest.approx(joint.sum(axis=0).max(axis=axis - 1).sum())
        assert part.given_rest.success == pytest.approx(known.max(axis=1).sum())
        seen = known[known.sum(axis=1) > 0]
        assert part.given_rest.worst_posterior == pytest.approx(
            (seen / seen.sum(axis=1, keepdims=True)).max()
        )
        # What holds of the combination is no limit for the parts.
        assert part.alone.success >= guess.success
        assert part.given_rest.success >= part.given_rest.before
    assert BestGuess.from_plain(guess.to_plain()) == guess


def test_a_combination_can_be_private_while_one_part_is_given_away() -> None:
    # The answer is p itself: the combination stays uncertain, p is known.
    law = DesignedChannel.for_prior(
        np.kron(np.eye(2), np.array([[0.5, 0.3], [0.3, 0.5], [0.2, 0.2]])), (0.25,) * 4
    )
    parts = (Attribute("p", ("0", "1")), Attribute("q", ("0", "1")))
    mechanism = Mechanism.of(law, Schema((Attribute.merged(parts),)))
    guess = best_guess(mechanism, 0)
    assert guess is not None
    assert guess.success == pytest.approx(0.6)
    assert guess.parts[0].alone.success == 1.0
    assert guess.parts[1].alone.success == pytest.approx(0.6)
