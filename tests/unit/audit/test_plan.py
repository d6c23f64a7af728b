import math
from itertools import count

import numpy as np
import pytest

from deniable import Schema, design
from deniable.audit import Plan
from deniable.audit import plan as module
from deniable.audit.plan import Event, log_quotient, total_score
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Mechanism
from deniable.randomness import SeededRandomness
from unit.laws.test_forms import channel, drawing_forms


def mechanism(sizes=(2, 3, 4), epsilon=3.0, method="balanced"):
    return design(Schema.anonymous(sizes), epsilon=epsilon, method=method).mechanism


@pytest.mark.parametrize("draws", [1000, 4999, 200_000])
@pytest.mark.parametrize("sizes", [(2, 3, 4), (5,), (2,) * 12])
def test_no_more_rows_are_drawn_than_asked_for(sizes, draws):
    plan = Plan(mechanism(sizes, method="kronecker"), draws)
    k = len(sizes) if plan.several else 0
    total = plan.n_mixed + (2 if k else 1) * plan.n_fixed + k * plan.n_single
    assert 0.9 * draws <= total <= draws


def test_the_worst_output_of_a_matrix_is_where_its_ratio_is_largest():
    matrix = np.array([[0.5, 0.2, 0.25], [0.3, 0.3, 0.25], [0.2, 0.5, 0.5]])
    law = MatrixChannel.from_probabilities(matrix)
    plan = Plan(Mechanism.of(law))
    (response,) = plan.responses
    y, v, w = response.worst
    assert matrix[y, v] / matrix[y, w] == pytest.approx(2.5)
    assert (plan.record(), plan.record(other=True)) == ([v], [w])
    assert not response.pattern


@pytest.mark.parametrize("method", ["kronecker", "optimal", "balanced"])
def test_the_events_show_most_of_what_is_claimed(method, monkeypatch):
    # What an event shows is told from a sample: another one could say more than is claimed.
    seeds = count()
    monkeypatch.setattr(module, "SystemRandomness", lambda: SeededRandomness(next(seeds)))
    plan = Plan(mechanism((3,) * 6, 3.0, method), 400_000)
    event, shown = plan.record_event
    assert 0.5 * plan.mechanism.epsilon < shown < plan.mechanism.epsilon
    for claimed, (_, level) in zip(
        plan.mechanism.epsilon_given_rest, plan.single_events, strict=True
    ):
        assert 0.5 * claimed < level < claimed
    assert event.low > 0


def test_an_event_counts_records_by_score_and_column():
    scores = [np.array([1.0, -1.0]), np.array([0.5, 0.0])]
    columns = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    assert total_score(scores, columns).tolist() == [1.5, 1.0, -0.5, -1.0]
    assert Event(scores, 0.9).count(columns) == 2
    assert Event(scores, -0.7, 1.0).count(columns) == 2
    assert Event(scores, -9.0, 9.0, 1, np.array([False, True])).count(columns) == 2


def test_a_quotient_of_nothing_shows_nothing():
    assert log_quotient(0, 100, 0, 100, 1e-6) == 0.0
    assert log_quotient(90, 100, 0, 100, 1e-6) < math.log(0.9 / 0.01)


def test_power_grows_with_the_draws_and_names_the_hardest_attribute():
    few, many = (Plan(mechanism(), draws).power for draws in (2_000, 300_000))
    for one, other in zip(few, many, strict=True):
        assert one.defect == other.defect
        assert one.probability <= other.probability
    assert [p.probability for p in many] == pytest.approx([1.0] * 5, abs=1e-3)
    assert few[3].probability < 0.1
    assert few[3].to_plain()["attribute"] in ("a1", "a2", "a3")
    assert "attribute" not in few[-1].to_plain()


def test_an_attribute_with_more_answers_than_categories_has_no_swap_to_look_for():
    matrix = MatrixChannel.from_probabilities(np.array([[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]]))
    plan = Plan(Mechanism.of(matrix))
    assert [p.defect for p in plan.power] == ["a run repeats the random bits of another"]
    assert plan.pairs == ()


def test_a_window_is_long_enough_that_no_honest_run_repeats_one():
    plan = Plan(mechanism((2,), 0.1, "kronecker"), 10_000)
    # One bit a row, nearly: 0.525² + 0.475² is the probability that two rows agree.
    n = 2 * plan.n_fixed
    assert n**2 * 0.50125 ** (plan.window / 2) < plan.share(2)
    assert n**2 * 0.50125 ** (plan.window / 2 - 1) > plan.share(2)


def test_columns_of_many_categories_are_looked_at_without_a_matrix():
    plan = Plan(mechanism((1500, 2), 6.0, "kronecker"), 2000)
    assert plan.responses[0].matrix is None
    assert plan.responses[0].column(3).sum() == pytest.approx(1.0)
    assert plan.n_cells == 4


def test_what_forms_release_is_expected_as_over_all_outputs():
    law = drawing_forms()
    sizes = law.n_categories
    plan = Plan(Mechanism.of(law))
    for x, row in channel(law).items():
        together = dict.fromkeys(plan.pairs, 0.0)
        for place, response in enumerate(plan.responses):
            expected = np.zeros(response.outputs)
            for (form, y), probability in row.items():
                codes = [np.array([n if v is None else v]) for v, n in zip(y, sizes, strict=True)]
                (seen,) = response.seen([*codes, np.array([form])])
                expected[seen] += float(probability)
                assert response.unchanged(np.array([x[place]]), np.array([seen])) == (
                    y[place] == x[place]
                )
            assert np.allclose(response.column(x[place]), expected)
            asked = sum(float(p) for (_, y), p in row.items() if y[place] is not None)
            assert response.included == pytest.approx(asked)
        for (_, y), probability in row.items():
            for i, j in plan.pairs:
                together[i, j] += float(probability) * (y[i] == x[i] and y[j] == x[j])
        claimed = [both for both, _ in plan.both_unchanged]
        assert claimed == pytest.approx(list(together.values()))
    assert plan.responses[0].label(0, ("no", "yes")) == "no under form 1"
    assert plan.responses[0].label(5, ("no", "yes")) == "no answer under form 2"
