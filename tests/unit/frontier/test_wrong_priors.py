"""Privacy where the design's prior is not the truth."""

import numpy as np
import pytest

from deniable.frontier.wrong_priors import wrong_priors
from deniable.proofs.rows import average_limits
from deniable.solvers.matrices import frontier, response
from unit.solvers.matrices.priors import NORMAL_TEN


def test_a_design_for_a_normal_prior_is_less_private_if_all_are_equally_likely() -> None:
    point = frontier.solve(average_limits(NORMAL_TEN, 0.5, 0.75))
    table = wrong_priors(point.matrix, np.array(NORMAL_TEN))
    uniform = table[0]
    assert uniform.truth == "all categories equally likely"
    # The figures that the authors of this design were warned of.
    assert uniform.privacy == pytest.approx(0.26, abs=0.06)
    assert uniform.worst_posterior > 0.9
    assert uniform.misled_privacy >= uniform.privacy


def test_the_worst_move_of_people_is_found_by_trying_all() -> None:
    prior = np.array([0.5, 0.3, 0.2])
    matrix = frontier.solve(average_limits(prior, 0.3)).matrix
    for row, share in zip(wrong_priors(matrix, prior)[1:], (0.1, 0.25), strict=True):
        truths = [(1 - share) * prior + share * np.eye(3)[x] for x in range(3)]
        assert row.privacy == pytest.approx(
            min(float(response.privacy(matrix, truth)) for truth in truths)
        )
        assert row.worst_posterior == pytest.approx(
            max(float(response.worst_posterior(matrix, truth)) for truth in truths)
        )
