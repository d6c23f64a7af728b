"""A frontier as a whole: every row against its definition, the bound, and repeatability."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier.folder import _curves
from deniable.frontier.methods import METHODS
from deniable.frontier.priors import Prior, from_distribution
from deniable.frontier.tracing import Frontier, Request, trace
from deniable.proofs.rows import closed_form_bound, verify
from deniable.schema import Attribute
from deniable.solvers.matrices import response
from deniable.solvers.matrices.search import Options

PRIOR = Prior(Attribute("a", tuple("wxyz")), (0.4, 0.3, 0.2, 0.1), "a test")
LEVELS = (0.1, 0.3, 0.5)
SHORT = Options(population_size=20, archive_size=20, max_generations=60)


def small(**changes: object) -> Request:
    given: dict[str, object] = {
        "levels": LEVELS,
        "methods": tuple(METHODS),
        "n_starts": 4,
        "search_options": SHORT,
        "n_records": 1000,
    }
    return Request(PRIOR, **{**given, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Frontier:
    return trace(small())


def test_every_row_says_what_its_matrix_gives(found: Frontier) -> None:
    prior = np.array(PRIOR.shares)
    assert len(found.rows) == len(METHODS) * len(LEVELS)
    for row, matrix in zip(found.rows, found.matrices, strict=True):
        assert matrix is not None
        assert row.privacy == pytest.approx(float(response.privacy(matrix, prior)))
        assert row.mse == pytest.approx(float(response.record_mse(matrix, prior)) / 1000)
        assert row.worst_posterior == pytest.approx(float(response.worst_posterior(matrix, prior)))
        assert row.outputs == len(matrix)
        epsilon, condition = float(response.epsilon(matrix)), float(response.condition(matrix))
        assert row.epsilon == (pytest.approx(epsilon) if np.isfinite(epsilon) else None)
        assert row.condition == (pytest.approx(condition) if np.isfinite(condition) else None)
        assert row.privacy is not None
        assert row.privacy >= row.level - 1e-11


def test_no_row_is_below_the_bound_and_the_attaining_mechanism_is_on_it(found: Frontier) -> None:
    for row in found.rows:
        assert row.mse is not None
        assert row.ratio is not None
        assert row.mse >= row.lower_bound
        assert row.bound == "exact"
        if row.method == "bound":
            assert row.ratio < 1 + 1e-7
    for level, certificate in found.certificates.items():
        assert level in LEVELS
        assert verify(certificate) > 0


def test_errors_rise_with_privacy_for_every_method(found: Frontier) -> None:
    for method in METHODS:
        errors = [row.mse for row in found.rows if row.method == method]
        assert errors == sorted(errors)  # type: ignore[type-var]


def test_same_seed_same_front_and_another_method_changes_no_other(found: Frontier) -> None:
    again = trace(small())
    assert again.rows == found.rows
    alone = trace(small(methods=("search",)))
    assert alone.rows == tuple(row for row in found.rows if row.method == "search")
    other = trace(small(methods=("search",), seed=1))
    assert other.rows != alone.rows


def test_the_search_reports_what_it_covers_of_what_can_be(found: Frontier) -> None:
    assert found.hypervolume_share is not None
    assert 0.3 < found.hypervolume_share < 1
    assert any("hypervolume" in note for note in found.notes)


def test_an_answer_that_tells_for_certain_is_said_and_ruled_out_by_delta(found: Frontier) -> None:
    assert any("for certain" in note for note in found.notes)
    bounded = trace(small(methods=("bound",), most_posterior=0.6))
    assert not any("for certain" in note for note in bounded.notes)
    for row in bounded.rows:
        assert row.worst_posterior is not None
        assert row.worst_posterior <= 0.6 * (1 + 1e-11)


def test_under_ldp_the_levels_are_epsilon(found: Frontier) -> None:
    local = trace(small(levels=(0.5, 2.0), local=True))
    assert {row.method for row in local.rows} == set(METHODS) - {"search", "blank"}
    for row in local.rows:
        assert row.epsilon is not None
        assert row.mse is not None
        assert row.epsilon <= row.level
        assert row.mse >= row.lower_bound
    assert any(note.startswith("search is for average privacy") for note in local.notes)


@pytest.mark.slow
def test_beyond_sixteen_categories_the_bound_is_proven_and_it_is_said_how_near() -> None:
    request = Request(
        from_distribution("normal,17"), (0.3,), methods=("warner", "bound"), n_records=10
    )
    wide = trace(request)
    said = next(note for note in wide.notes if "17" in note)
    assert "proven" in said
    assert float(said.split("at most ")[1].split(" %")[0]) < 0.5
    assert [curve.style.label for curve in _curves(wide)][1] == "mechanism nearest to the bound"
    bounds = {row.level: row for row in wide.rows if row.method == "bound"}
    for limits, level in zip(request.limits(), (0.3,), strict=True):
        row = bounds[level]
        assert verify(wide.certificates[level]) / 17 / 10 >= row.lower_bound
        assert row.lower_bound >= closed_form_bound(limits) / 17 / 10 * (1 - 1e-9)
        assert row.ratio is not None
        assert 1 <= row.ratio < 1.005
        assert row.bound == "proven"


def test_default_levels_cover_what_is_possible() -> None:
    request = Request(PRIOR, most_posterior=0.75)
    assert request.levels is not None
    assert len(request.levels) == 40
    assert request.levels[0] == pytest.approx(0.25)
    assert request.levels[-1] == pytest.approx(0.98 * 0.6)
    assert Request(PRIOR).levels[0] == 0.0  # type: ignore[index]
    assert Request(PRIOR, local=True).levels[-1] == pytest.approx(5.0)  # type: ignore[index]


def test_a_method_that_cannot_reach_a_level_is_left_out_with_a_reason() -> None:
    bounded = trace(small(methods=("blank", "warner"), most_posterior=0.6))
    assert {row.method for row in bounded.rows} == {"warner"}
    assert any("blank is not there at 3 levels" in note for note in bounded.notes)
    with pytest.raises(InputError, match="no method reaches"):
        trace(small(methods=("blank",), most_posterior=0.6))


def test_progress_rises_to_the_end() -> None:
    told: list[float] = []
    trace(small(methods=("warner", "bound")), told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": ()}, "at least one of"),
        ({"methods": ("best",)}, "no method 'best'"),
        ({"n_records": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"levels": ()}, "from 1 to 1000"),
        ({"levels": (0.7,)}, "must be from 0 to"),
        ({"levels": (-0.1,)}, "must be from 0 to"),
        ({"most_posterior": 0.39}, "likeliest category"),
        ({"levels": None, "most_posterior": 0.39}, "likeliest category"),
        ({"local": True, "most_posterior": 0.5}, "bounds it by itself"),
        ({"local": True, "levels": (0.0,)}, "0.001"),
        ({"local": True, "levels": (float("nan"),)}, "0.001"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        small(**changes)
