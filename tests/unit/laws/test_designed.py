"""A matrix with its prior: what is stored, what is promised, and the estimate it stands for."""

import json
from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import DesignedChannel, MatrixChannel, law_from_plain
from deniable.proofs.rows import average_limits
from deniable.solvers.matrices import frontier, response

PRIOR = (0.5, 0.3, 0.2)
POINT = frontier.solve(average_limits(PRIOR, 0.3, 0.8))


def channel() -> DesignedChannel:
    return DesignedChannel.for_prior(POINT.matrix, PRIOR)


def test_its_numbers_are_those_of_the_matrix_under_the_prior() -> None:
    law = channel()
    prior = np.array(PRIOR)
    assert float(Fraction(*law.guesses().before)) == 0.5
    assert float(Fraction(*law.guesses().after)) == pytest.approx(
        1 - float(response.privacy(POINT.matrix, prior)), abs=1e-15
    )
    assert float(Fraction(*law.guesses().worst_posterior)) == pytest.approx(
        float(response.worst_posterior(POINT.matrix, prior)), abs=1e-15
    )


def test_exact_numbers_on_a_matrix_that_can_be_checked_by_hand() -> None:
    # Answers: truth with probability ½, else blank; p = (¾, ¼).
    law = DesignedChannel((2,), 1, ((1, 0), (0, 1), (1, 1)), (0.75, 0.25))
    assert Fraction(*law.guesses().before) == Fraction(3, 4)
    assert Fraction(*law.guesses().after) == Fraction(3, 8) + Fraction(1, 8) + Fraction(3, 8)
    assert Fraction(*law.guesses().worst_posterior) == 1


def test_the_estimate_is_unbiased_and_best_at_the_prior_not_at_the_uniform_distribution() -> None:
    law = channel()
    inverse = law.left_inverse()
    assert np.allclose(inverse @ law.matrix(), np.eye(3), atol=1e-12)
    assert np.allclose(inverse, response.left_inverse(POINT.matrix, POINT.limits.prior), atol=1e-9)
    plain = MatrixChannel(law.n_categories, law.bits, law.weights).left_inverse()
    occurrence = law.matrix() @ np.array(PRIOR)

    def error(left: np.ndarray) -> float:
        return float(((left**2) @ occurrence).sum())

    assert error(inverse) < error(plain) * (1 - 1e-4)


def test_an_answer_that_never_occurs_gets_no_weight() -> None:
    law = DesignedChannel((2,), 3, ((7, 1), (1, 7), (0, 0)), (0.5, 0.5))
    inverse = law.left_inverse()
    assert np.allclose(inverse @ law.matrix(), np.eye(2))
    assert (inverse[:, 2] == 0).all()


def test_the_prior_survives_json_to_the_last_bit() -> None:
    thirds = (1 / 3, 0.1 + 0.2, 1 - 1 / 3 - (0.1 + 0.2))
    law = DesignedChannel((3,), 2, ((2, 1, 1), (1, 2, 1), (1, 1, 2)), thirds)
    plain = json.loads(json.dumps(law.to_plain()))
    assert plain["prior"][1] == "0.30000000000000004"
    assert law_from_plain(plain, (3,)) == law


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ((0.5, 0.5), "3 categories"),
        ((0.5, 0.5, 0.0), "above 0"),
        ((0.5, 0.3, float("nan")), "above 0"),
        ((0.5, 0.3, 0.1), "add up to 1"),
    ],
)
def test_what_is_no_prior_is_refused(prior: tuple[float, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DesignedChannel((3,), 2, ((2, 1, 1), (1, 2, 1), (1, 1, 2)), prior)


@pytest.mark.parametrize("prior", [None, "0.5", ["0.5", "x", "0.2"]])
def test_a_record_without_a_readable_prior_is_refused(prior: object) -> None:
    with pytest.raises(InputError, match="prior"):
        law_from_plain({**channel().to_plain(), "prior": prior}, (3,))
