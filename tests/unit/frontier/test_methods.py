"""Every method keeps the limits it is given, or says that it cannot."""

from pathlib import Path

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier.methods import METHODS, Trial
from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import Limits, average_limits, local_limits
from deniable.solvers.matrices import frontier, response

PRIOR = [0.4, 0.3, 0.2, 0.1]
LIMITS = [
    average_limits(PRIOR, 0.0),
    average_limits(PRIOR, 0.3),
    average_limits(PRIOR, 0.55),
    average_limits(PRIOR, 0.3, 0.6),
    average_limits(PRIOR, 0.1, 0.45),
    local_limits(PRIOR, 0.1),
    local_limits(PRIOR, 2.0),
]


def matrix_of(name: str, trial: Trial) -> FloatArray:
    find = METHODS[name].matrix
    assert find is not None
    return find(trial)


def trial(limits: Limits) -> Trial:
    return Trial(limits, np.random.default_rng(1), 6)


SINGLE = [name for name, method in METHODS.items() if method.matrix is not None]


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("limits", LIMITS)
def test_a_matrix_keeps_its_limits_and_is_not_below_the_bound(name: str, limits: Limits) -> None:
    if name == "blank" and (limits.success is None or limits.most_posterior is not None):
        with pytest.raises(InputError, match="for certain"):
            matrix_of(name, trial(limits))
        return
    matrix = matrix_of(name, trial(limits))
    assert np.allclose(matrix.sum(axis=0), 1)
    assert (matrix >= 0).all()
    prior = limits.prior
    if limits.success is not None:
        assert response.privacy(matrix, prior) >= 1 - limits.success - 1e-11
    if limits.most_posterior is not None:
        assert response.worst_posterior(matrix, prior) <= limits.most_posterior * (1 + 1e-11)
    if limits.epsilon is not None:
        assert response.epsilon(matrix) <= limits.epsilon
    bound = frontier.solve(limits).certificate.record_mse
    assert response.record_mse(matrix, prior) >= bound


@pytest.mark.parametrize("limits", [average_limits(PRIOR, 0.35), local_limits(PRIOR, 1.3)])
def test_warner_up_and_frapp_are_one_family(limits: Limits) -> None:
    warner = matrix_of("warner", trial(limits))
    for name in ("up", "frapp"):
        assert np.allclose(matrix_of(name, trial(limits)), warner, atol=1e-13)


def test_a_square_search_beyond_its_size_is_refused() -> None:
    with pytest.raises(InputError, match="up to 20"):
        matrix_of("square", trial(average_limits(np.full(21, 1 / 21), 0.3)))


def test_the_manual_lists_every_method() -> None:
    manual = Path(__file__).parents[3] / "docs" / "frontier.md"
    rows = [line for line in manual.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert set(METHODS) <= {name for row in rows for name in row.split("|")[1].split("`")}
