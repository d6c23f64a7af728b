"""Further priors and bounds, and the search without Ω: each judge, with a planted defect."""

import numpy as np
import pytest

from deniable.frontier.priors import from_distribution
from deniable.solvers.matrices import response
from deniable.solvers.matrices.search import Matrices
from deniable_studies.optrr import further
from deniable_studies.optrr.fronts import Case, Comparison, Effort
from deniable_studies.optrr.further import Further, Pair
from deniable_studies.study import Verdict


def front(*points: tuple[float, float]) -> Matrices:
    privacy, errors = np.array(points).T
    return Matrices(np.zeros((len(points), 2, 2)), privacy, errors)


def found(name: str, search: Matrices) -> Comparison:
    case = Case(name, from_distribution("uniform,10"), 0.75)
    return Comparison(case, front((0.3, 1.0), (0.5, 2.0), (0.6, 3.0)), search, [])


def test_the_gamma_of_shape_1_is_the_textbook_one_at_any_scale() -> None:
    assert further.gamma_prior(1.0).shares == pytest.approx(from_distribution("gamma,10").shares)
    assert max(further.gamma_prior(0.5).shares) < 0.75


def test_other_shapes_have_to_beat_every_point_and_to_range_farther() -> None:
    good = found("shape 2", front((0.2, 0.5), (0.6, 0.9)))
    narrow = found("shape 5", front((0.31, 0.5), (0.6, 0.9)))
    lost = found("shape 5", front((0.2, 0.5), (0.55, 1.5), (0.6, 3.5)))
    assert further.other_gammas(Further([good], [], {})).verdict is Verdict.REPRODUCED
    assert further.other_gammas(Further([good, narrow], [], {})).verdict is Verdict.NOT
    assert further.other_gammas(Further([good, lost], [], {})).verdict is Verdict.NOT


def test_the_least_privacy_has_to_fall_with_delta_for_both_distributions() -> None:
    falling = [front((least, 0.5), (0.6, 0.9)) for least in (0.4, 0.3)]
    both = [found(f"{name}, δ", f) for name in ("gamma", "uniform") for f in falling]
    assert further.other_deltas(Further(both, [], {})).verdict is Verdict.REPRODUCED
    assert further.other_deltas(Further(both[::-1], [], {})).verdict is Verdict.NOT


def test_omega_is_judged_by_matrices_time_and_errors() -> None:
    good = Pair((100, 40), (1.0, 1.0), 0.9)
    assert further.omega_keeps_more([good]).verdict is Verdict.REPRODUCED
    assert further.omega_keeps_more([Pair((100, 40), (2.0, 1.0), 0.9)]).verdict is Verdict.PARTLY
    assert further.omega_keeps_more([Pair((40, 40), (1.0, 1.0), 0.9)]).verdict is Verdict.NOT
    worse = Pair((100, 40), (1.0, 1.0), 1.1)
    assert further.omega_errs_less([good, good]).verdict is Verdict.REPRODUCED
    assert further.omega_errs_less([good, good, worse]).verdict is Verdict.PARTLY
    assert further.omega_errs_less([good, worse]).verdict is Verdict.NOT
    pair = further.compare_pair(front((0.2, 1.0), (0.4, 2.0)), front((0.3, 4.0)), (1.0, 1.0))
    assert (pair.sizes, pair.ratio) == ((2, 1), 0.5)


def test_without_omega_the_front_is_of_the_archive_and_keeps_delta() -> None:
    prior, effort = np.array([0.5, 0.3, 0.2]), Effort(10, 8, 0, 0)
    alone = further.archive_front(prior, 0.8, effort, np.random.default_rng(1))
    assert 0 < len(alone) <= effort.population
    assert response.worst_posterior(alone.matrices, prior).max() <= 0.8 + 1e-9
    assert (np.diff(alone.record_mse) > 0).all()
