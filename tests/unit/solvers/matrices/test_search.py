"""The evolutionary search: its operators one by one, every generation of short runs, and the areas
under fronts.
"""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.rows import average_limits, closed_form_bound
from deniable.solvers.matrices import response, schemes, search, spea2
from deniable.solvers.matrices.search import (
    Generation,
    Matrices,
    Options,
    hypervolume,
    outer_hypervolume,
)
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED

SMALL = Options(population_size=20, archive_size=16, optimal_set_size=100, max_generations=60)


def run_of(delta: float | None = None, options: Options = SMALL, seed: int = 1) -> search._Run:
    return search._Run(SKEWED, np.random.default_rng(seed), delta, options)


def assert_feasible(members: Matrices, delta: float | None) -> None:
    matrices = members.matrices
    assert (matrices >= 0).all()
    assert np.allclose(matrices.sum(axis=1), 1.0, atol=1e-12)
    assert np.allclose(members.privacy, response.privacy(matrices, SKEWED), atol=1e-12)
    if delta is not None:
        assert (response.worst_posterior(matrices, SKEWED) <= delta + 1e-12).all()


@pytest.mark.parametrize("delta", [None, 0.6, 0.45])
def test_after_every_generation_all_are_feasible_and_the_archive_holds_the_best(
    delta: float | None,
) -> None:
    states: list[Generation] = []
    result = search.search(
        SKEWED,
        np.random.default_rng(2),
        most_posterior=delta,
        options=SMALL,
        on_generation=states.append,
    )
    assert [state.number for state in states] == list(range(1, 61))
    crowded = 0
    for state in states:
        assert_feasible(state.archive, delta)
        assert_feasible(state.population, delta)
        assert len(state.archive) == 16
        assert len(state.population) == 20
        dominates = spea2.dominance(state.archive.privacy, state.archive.record_mse)
        dominated = dominates.any(axis=0)
        # Either the archive is full of non-dominated matrices, or it has them all and fills up.
        crowded += not dominated.any()
    assert crowded > 30
    assert_feasible(result.front, delta)
    front = result.front
    assert (np.diff(front.privacy) > 0).all()
    assert (np.diff(front.record_mse) > 0).all()
    assert result.n_generations == 60
    assert result.stopped_by == "max_generations"


def test_the_search_stops_when_the_optimal_set_no_longer_changes() -> None:
    options = Options(
        population_size=4,
        archive_size=4,
        optimal_set_size=2,
        crossover_rate=0.0,
        mutation_rate=0.0,
        max_stall=7,
        max_generations=10_000,
    )
    stalls: list[int] = []
    result = search.search(
        SKEWED,
        np.random.default_rng(6),
        options=options,
        on_generation=lambda state: stalls.append(state.stall),
    )
    assert result.stopped_by == "max_stall"
    assert stalls[-1] == 7
    assert result.n_generations == len(stalls) < 100


def test_crossover_exchanges_the_columns_to_the_right_of_one_line() -> None:
    run = run_of()
    parents = np.random.default_rng(7).dirichlet(np.ones(4), size=(20, 4)).transpose(0, 2, 1)
    children = run.crossover(parents)
    assert children.shape == parents.shape
    lines = set()
    for child in children:
        # Every column comes from one of two parents: a run of one, then a run of the other.
        origin = [
            next(i for i, parent in enumerate(parents) if (parent[:, j] == child[:, j]).all())
            for j in range(4)
        ]
        changes = [j for j in range(1, 4) if origin[j] != origin[j - 1]]
        assert len(changes) == 1
        lines.add(changes[0])
    assert lines == {1, 2, 3}
    # All columns of all parents are still there.
    assert np.allclose(np.sort(children.ravel()), np.sort(parents.ravel()))


def test_an_odd_number_of_parents_loses_none() -> None:
    run = run_of(options=Options(population_size=5, crossover_rate=0.0))
    parents = np.random.default_rng(8).dirichlet(np.ones(4), size=(5, 4)).transpose(0, 2, 1)
    children = run.crossover(parents)
    assert sorted(m.tobytes() for m in children) == sorted(m.tobytes() for m in parents)


def test_mutation_changes_one_column_in_the_proportions_of_the_paper() -> None:
    run = run_of(options=Options(mutation_rate=1.0))
    parents = np.random.default_rng(9).dirichlet(np.ones(4), size=(300, 4)).transpose(0, 2, 1)
    children = run.mutate(parents)
    added = taken = 0
    for parent, child in zip(parents, children, strict=True):
        columns = np.flatnonzero(np.abs(child - parent).max(axis=0) > 1e-15)
        assert len(columns) <= 1
        if not len(columns):
            continue
        old, new = parent[:, columns[0]], child[:, columns[0]]
        change = new - old
        up, down = np.flatnonzero(change > 1e-13), np.flatnonzero(change < -1e-13)
        others_of = {}
        if len(up) == 1:
            others_of["added"] = (up[0], old)
        if len(down) == 1:
            others_of["taken"] = (down[0], 1 - old)
        fits = {}
        for kind, (entry, weight) in others_of.items():
            rest = np.delete(np.arange(4), entry)
            ratio = change[rest] / weight[rest]
            fits[kind] = np.ptp(ratio) < 1e-6 * np.abs(ratio).max() + 1e-12
        assert any(fits.values())
        added += fits.get("added", False)
        taken += fits.get("taken", False)
    assert min(added, taken) > 80


def test_mutation_of_deterministic_columns_stays_a_response_matrix() -> None:
    run = run_of(options=Options(mutation_rate=1.0, mutation_step=1.0))
    matrices = np.tile(np.eye(4), (500, 1, 1))
    for _ in range(5):
        matrices = run.mutate(matrices)
    assert (matrices >= 0).all()
    assert np.allclose(matrices.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("delta", [0.41, 0.5, 0.75, 0.95])
def test_repair_meets_the_bound_and_leaves_good_matrices_alone(delta: float) -> None:
    run = run_of(delta)
    generator = np.random.default_rng(10)
    matrices = generator.dirichlet(np.full(4, 0.3), size=(500, 4)).transpose(0, 2, 1)
    matrices[:5] = np.eye(4)
    matrices[5:10] = 0.25
    repaired = run.bounded(matrices)
    assert (response.worst_posterior(repaired, SKEWED) <= delta + 1e-12).all()
    assert np.allclose(repaired.sum(axis=1), 1.0, atol=1e-12)
    assert (repaired >= 0).all()
    good = response.worst_posterior(matrices, SKEWED) <= delta
    assert good.any()
    assert (repaired[good] == matrices[good]).all()


def test_repair_cuts_an_entry_to_where_its_posterior_is_the_bound_and_fills_the_room() -> None:
    """Section V.G, on a matrix of which only the first entry is too large."""
    matrix = np.full((4, 4), 0.25)
    matrix[:, 0] = [0.7, 0.1, 0.1, 0.1]
    delta = 0.6
    repaired = run_of(delta).bounded(matrix[None])[0]
    others = matrix @ SKEWED - matrix[:, 0] * SKEWED[0]
    most = delta * others / ((1 - delta) * SKEWED[0])
    room = np.maximum(most - matrix[:, 0], 0.0)
    expected = np.minimum(matrix[:, 0], most)
    expected += room * (1 - expected.sum()) / room.sum()
    assert np.allclose(repaired[:, 0], expected, atol=1e-12)
    assert (repaired[:, 1:] == matrix[:, 1:]).all()
    joint = repaired * SKEWED
    assert joint[0, 0] / joint[0].sum() == pytest.approx(delta, abs=1e-12)


def members_at(levels: list[float], errors: list[float]) -> Matrices:
    m = len(levels)
    matrices = np.arange(m)[:, None, None] * np.ones((m, 4, 4))
    return Matrices(matrices, np.array(levels), np.array(errors))


def test_the_optimal_set_keeps_the_best_of_each_level_and_gives_it_back() -> None:
    run = run_of(options=Options(optimal_set_size=1000))
    members, changed = run.exchange(members_at([0.1523, 0.1527, 0.3], [2.0, 1.0, np.inf]))
    assert changed
    # Both are in slot 152: the worse is replaced by the better.
    assert members.privacy.tolist() == [0.1527, 0.1527, 0.3]
    assert members.record_mse.tolist() == [1.0, 1.0, np.inf]
    assert members.matrices[0, 0, 0] == 1.0
    assert run.optimal.record_mse[152] == 1.0
    assert np.isinf(run.optimal.record_mse[300])
    _, changed = run.exchange(members_at([0.1521], [1.0]))
    assert not changed
    members, changed = run.exchange(members_at([0.1521, 0.9], [0.5, 3.0]))
    assert changed
    assert run.optimal.privacy[152] == 0.1521
    assert run.front().record_mse.tolist() == [0.5, 3.0]
    run.exchange(members_at([1.0, 0.0], [1.0, 1.0]))  # the ends have a place, too
    assert np.isfinite(run.optimal.record_mse[[0, 999]]).all()


def test_the_tournament_prefers_the_fitter() -> None:
    run = run_of(options=Options(population_size=10_000))
    values = np.arange(10.0)
    winners = np.bincount(run._tournament(values), minlength=10)
    # The best wins whenever it is drawn, 1 − 0.9² of the time; the worst only against itself.
    assert winners[0] == pytest.approx(1_900, abs=200)
    assert winners[9] == pytest.approx(100, abs=60)
    assert (np.diff(winners) < 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population_size": 1}, "population_size"),
        ({"archive_size": 0}, "archive_size"),
        ({"optimal_set_size": 0}, "optimal_set_size"),
        ({"max_generations": 0}, "max_generations"),
        ({"neighbour": 0}, "neighbour"),
        ({"max_stall": 0}, "max_stall"),
        ({"mutation_rate": 1.5}, "mutation_rate"),
        ({"crossover_rate": -0.1}, "crossover_rate"),
        ({"mutation_step": 0.0}, "mutation_step"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**options)  # type: ignore[arg-type]


def test_a_bound_below_the_largest_prior_and_a_false_prior_are_refused() -> None:
    with pytest.raises(InputError, match="above max p"):
        search.search(NORMAL_TEN, np.random.default_rng(1), most_posterior=0.22, options=SMALL)
    with pytest.raises(InputError, match="sum to"):
        search.search([0.5, 0.4], np.random.default_rng(1), options=SMALL)


def test_the_area_is_that_of_the_union_of_rectangles() -> None:
    privacy = np.array([0.2, 0.5, 0.4, 0.3])
    error = np.array([1.0, 3.0, 5.0, 2.0])
    grid = (np.arange(200_000) + 0.5) / 200_000
    top = [error[privacy >= level].min(initial=np.inf) for level in grid[::200]]
    expected = np.mean(np.log(10.0 / np.minimum(top, 10.0)))
    assert hypervolume(privacy, error, 10.0) == pytest.approx(expected, abs=2e-3)


def test_dominated_points_and_points_beyond_the_reference_add_nothing() -> None:
    base = hypervolume(np.array([0.3]), np.array([1.0]), 10.0)
    assert base == pytest.approx(0.3 * np.log(10))
    more = hypervolume(np.array([0.3, 0.2, 0.6]), np.array([1.0, 2.0, 11.0]), 10.0)
    assert more == base
    assert hypervolume(np.array([0.3]), np.array([np.inf]), 10.0) == 0.0


def test_no_front_covers_more_than_the_bound_allows_and_a_tight_one_nearly_as_much() -> None:
    prior = np.full(5, 0.2)
    levels = np.linspace(0.0, 0.79, 400)
    bounds = np.array([closed_form_bound(average_limits(prior, v)) / 5 for v in levels])
    outer = outer_hypervolume(levels, bounds, 0.8, 50.0)
    blank = [schemes.blank_answer(5, schemes.blank_answer_at(prior, v)) for v in levels]
    errors = np.array([float(response.record_mse(matrix, prior)) for matrix in blank])
    inner = hypervolume(levels, errors, 50.0)
    assert 0.98 * outer < inner <= outer


def test_references_and_levels_that_make_no_sense_are_refused() -> None:
    one = np.array([0.1])
    with pytest.raises(InputError, match="reference"):
        hypervolume(one, one, 0.0)
    with pytest.raises(InputError, match="from 0"):
        outer_hypervolume(one, one, 0.5, 1.0)
    with pytest.raises(InputError, match="rise strictly"):
        outer_hypervolume(np.zeros(2), np.ones(2), 0.5, 1.0)
