"""A table that the mechanism has made passes; one that it cannot have made is refused."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from deniable import (
    Attribute,
    InputError,
    Schema,
    design,
    estimate,
    estimate_covariance,
    estimate_mean,
    estimate_quantile,
    independence_test,
)
from deniable.errors import Notice
from deniable.estimate.foreign import Origin, _bound, check_origin, find_origin, origin_of
from deniable.estimate.source import Release
from deniable.laws import MatrixChannel
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness

MECHANISM = design(Schema.anonymous((2, 3, 4)), epsilon=3, method="balanced").mechanism
NAMES = ["a1", "a2", "a3"]


def truth(n: int) -> list[np.ndarray]:
    """People of few kinds: the third attribute follows from the second."""
    second = np.arange(n) % 10 // 9
    return [np.zeros(n, dtype=np.int64), second, 2 * second]


def released(mechanism: Mechanism, n: int) -> list[np.ndarray]:
    return Randomizer(mechanism, SystemRandomness()).randomize(truth(n))


def test_a_table_that_was_randomized_passes():
    # Far from uniform: at the edge of what can be released, where the bound is nearest.
    origins = [origin_of(MECHANISM, NAMES, released(MECHANISM, 3000)) for _ in range(40)]
    assert min(origin.p_value for origin in origins) > 1e-9


def test_a_table_that_was_not_randomized_does_not():
    origin = origin_of(MECHANISM, NAMES, truth(2000))
    assert origin is not None
    assert origin.p_value < 1e-6
    assert "shares that no true table leads to" in origin.sentence()


def test_a_pair_can_be_what_gives_it_away():
    alternating = np.arange(4000) % 2
    mechanism = design(Schema.anonymous((2, 2)), epsilon=2, method="kronecker").mechanism
    origin = origin_of(mechanism, ["a1", "a2"], [alternating, alternating])
    assert origin is not None
    assert (origin.where, origin.p_value < 1e-6) == (("a1", "a2"), True)


def test_another_mechanisms_output_does_not_pass_where_it_changed_less():
    weaker = design(Schema.anonymous((2, 3, 4)), epsilon=6, method="balanced").mechanism
    origin = origin_of(MECHANISM, NAMES, released(weaker, 3000))
    assert origin is not None
    assert origin.p_value < 1e-6


def test_few_rows_tell_nothing_and_no_rows_are_nothing():
    few = origin_of(MECHANISM, NAMES, truth(3))
    assert few is not None
    assert few.p_value == 1.0
    assert origin_of(MECHANISM, NAMES, truth(0)) is None
    assert origin_of(MECHANISM, [], []) is None


def test_matrices_are_looked_at_by_their_inverse():
    law = MatrixChannel.from_probabilities(np.array([[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]]))
    mechanism = Mechanism(Schema.anonymous((2,)), (Block((0,), law),))
    honest = Randomizer(mechanism, SystemRandomness()).randomize([np.zeros(2000, dtype=np.int64)])
    assert origin_of(mechanism, ["a1"], honest).p_value > 1e-9
    assert origin_of(mechanism, ["a1"], [np.zeros(2000, dtype=np.int64)]).p_value < 1e-6


def test_the_bound_is_above_the_exact_probability_for_every_truth():
    # Four rows of two attributes: all outcomes under all truths, by brute force.
    mechanism = design(Schema.anonymous((2, 2)), epsilon=2, method="balanced").mechanism
    cells = list(product((0, 1), repeat=2))
    law = np.zeros((4, 4))
    channel = Channel(mechanism, ("a1", "a2"))
    for x, cell in enumerate(cells):
        table = np.zeros((2, 2))
        table[cell] = 1.0
        law[x] = channel.forward.apply(table).ravel()
    by_output = channel.inverse.apply(np.eye(4)[0].reshape(2, 2)).ravel()  # of cell (0, 0)
    n = 4
    outcomes = list(product(range(4), repeat=n))
    sums = np.array([sum(by_output[y] for y in outcome) for outcome in outcomes])
    for truths in [(0, 1, 2, 3), (1, 1, 1, 1), (3, 3, 2, 1), (3, 3, 3, 3)]:
        chances = np.array(
            [np.prod([law[x, y] for x, y in zip(truths, o, strict=True)]) for o in outcomes]
        )
        for total in np.unique(np.round(sums, 9)):
            exact = chances[sums <= total + 1e-9].sum()
            assert exact <= np.exp(_bound(by_output, law, float(total) + 1e-9, n)) + 1e-12


def test_a_foreign_table_is_refused_or_warned_of():
    schema = Schema((Attribute("smokes", ("no", "yes")),))
    mechanism = design(schema, epsilon=1).mechanism

    def table(no: int) -> Release:
        rows = pa.table({"smokes": ["no"] * no + ["yes"] * (1000 - no)})
        return Release(Strata.one(mechanism), rows)

    with pytest.raises(InputError, match="is not what this mechanism releases"):
        check_origin(table(1000), anyway=False)
    with pytest.warns(Notice, match="it may be that"):
        assert check_origin(table(1000), anyway=True).p_value < 1e-6
    assert check_origin(table(600), anyway=False).p_value == 1.0
    with pytest.warns(Notice, match="it may be that"):
        check_origin(table(797), anyway=False)
    assert check_origin(Release(Strata.one(mechanism), "-"), anyway=False) is None
    assert check_origin(Release(Strata.one(mechanism), pa.table({"x": [1]})), anyway=False) is None
    odd = pa.table({"smokes": ["no", "perhaps"]})
    assert check_origin(Release(Strata.one(mechanism), odd), anyway=False) is None
    none = pa.table({"smokes": pa.array([], pa.string())})
    assert check_origin(Release(Strata.one(mechanism), none), anyway=False) is None
    assert Origin(0.5, ("a", "b"), 3).sentence().count("have shares") == 1


def test_counts_are_looked_at_like_the_rows_they_count(tmp_path):
    smokes = Attribute("smokes", ("no", "yes"))
    plan = design(Schema((smokes, Attribute("age", ("1", "2", "3")))), epsilon=2)
    strata = Strata.one(plan.mechanism)
    rows = pa.table({"smokes": ["no"] * 900 + ["yes"] * 100, "age": ["1", "2"] * 500})
    of_rows = find_origin(Release(strata, rows))
    file = tmp_path / "counts.csv"
    lines = ["no,1,450", "no,2,450", "yes,1,50", "yes,2,50"]
    file.write_text("\n".join(["smokes,age,count", *lines]))
    of_counts = find_origin(Release(strata, counts=file))
    assert (of_counts, of_counts.p_value < 1e-6) == (of_rows, True)
    # Counts of one attribute have only that to look at.
    file.write_text("smokes,count\nno,900\nyes,100\n")
    alone = find_origin(Release(strata, counts=file))
    assert (alone.where, alone.rows) == (("smokes",), 1000)
    for text in ("smokes,count\nno,0\n", "smokes,n\nno,1\n", "smokes,count\nno,x\n"):
        file.write_text(text)
        assert find_origin(Release(strata, counts=file)) is None


def test_strata_are_looked_at_each_by_its_own_mechanism():
    schema = Schema((Attribute("smokes", ("no", "yes")),), keep=("region",))
    strong, weak = (design(schema, epsilon=e).mechanism for e in (0.5, 3))
    strata = Strata({"north": strong, "south": weak}, "region")

    def origin(north: int, south: int):
        smokes = ["no"] * north + ["yes"] * (1000 - north) + ["no"] * south
        regions = ["north"] * 1000 + ["south"] * 1000
        rows = pa.table({"smokes": smokes + ["yes"] * (1000 - south), "region": regions})
        return find_origin(Release(strata, rows))

    assert origin(600, 950).p_value == 1.0
    assert origin(950, 600).p_value < 1e-6
    assert origin(600, 999).rows == 2000
    other = pa.table({"smokes": ["no"], "region": ["east"]})
    assert find_origin(Release(strata, other)) is None
    assert find_origin(Release(strata, pa.table({"smokes": ["no"]}))) is None


def test_in_python_a_foreign_table_is_refused_too():
    schema = Schema((Attribute("smokes", ("no", "yes")), Attribute("old", ("no", "yes"))))
    plan = design(schema, epsilon=2)
    true = pa.table({"smokes": ["no"] * 1000, "old": ["no", "yes"] * 500})
    for ask in (estimate, estimate_mean, estimate_quantile):
        with pytest.raises(InputError, match=r"or anyway to go on"):
            ask(true, plan, of="smokes")
    for ask in (estimate_covariance, independence_test):
        with pytest.raises(InputError, match="is not what this mechanism releases"):
            ask(true, plan, of=("smokes", "old"))
    with pytest.warns(Notice, match="it may be that"):
        assert estimate(true, plan, of="smokes", anyway=True).n_records == 1000
