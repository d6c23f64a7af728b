"""A table that the mechanism has made passes; one that it cannot have made is refused."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

import deniable
from deniable import (
    Attribute,
    InputError,
    Schema,
    design,
)
from deniable.errors import Notice
from deniable.estimate.consistency import (
    Origin,
    _bound,
    _truths,
    check_origin,
    find_origin,
    origin_of,
)
from deniable.estimate.counting import Rows
from deniable.estimate.source import Release
from deniable.laws import MatrixChannel, PublishedForms
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from unit.dense import random_table
from unit.laws.test_forms import broad_forms, drawing_forms
from unit.laws.test_forms import channel as channel_of_forms

MECHANISM = design(Schema.anonymous((2, 3, 4)), epsilon=3, method="balanced").mechanism
NAMES = ("a1", "a2", "a3")


def truth(n: int) -> list[np.ndarray]:
    """People of few kinds: the third attribute follows from the second."""
    second = np.arange(n) % 10 // 9
    return [np.zeros(n, dtype=np.int64), second, 2 * second]


def released(mechanism: Mechanism, n: int) -> list[np.ndarray]:
    return Randomizer(mechanism, SystemRandomness()).randomize(truth(n))


def test_a_table_that_was_randomized_passes():
    # Far from uniform: at the edge of what can be released, where the bound is nearest.
    origins = [origin_of(MECHANISM, Rows(NAMES, released(MECHANISM, 3000))) for _ in range(40)]
    assert min(origin.p_value for origin in origins) > 1e-9


def test_a_table_that_was_not_randomized_does_not():
    origin = origin_of(MECHANISM, Rows(NAMES, truth(2000)))
    assert origin is not None
    assert origin.p_value < 1e-6
    assert "shares that no true table leads to" in origin.sentence()


def test_a_pair_can_be_what_gives_it_away():
    alternating = np.arange(4000) % 2
    mechanism = design(Schema.anonymous((2, 2)), epsilon=2, method="kronecker").mechanism
    origin = origin_of(mechanism, Rows(("a1", "a2"), [alternating, alternating]))
    assert origin is not None
    assert (origin.where, origin.p_value < 1e-6) == (("a1", "a2"), True)


def test_another_mechanisms_output_does_not_pass_where_it_changed_less():
    weaker = design(Schema.anonymous((2, 3, 4)), epsilon=6, method="balanced").mechanism
    origin = origin_of(MECHANISM, Rows(NAMES, released(weaker, 3000)))
    assert origin is not None
    assert origin.p_value < 1e-6


@pytest.mark.parametrize("method", ["optimal", "balanced"])
def test_pairs_of_many_attributes_are_looked_at_together(method, monkeypatch):
    n_categories = (2, 3, 2, 4, 2, 2, 3, 2, 2, 2, 3)
    mechanism = design(Schema.anonymous(n_categories), method=method, epsilon=3).mechanism
    random = np.random.default_rng(1)
    codes = [random.integers(0, a, 3000) for a in n_categories]
    codes[7] = codes[4]
    rows = Rows(tuple(f"a{i + 1}" for i in range(len(codes))), codes)
    together = origin_of(mechanism, rows)
    monkeypatch.setattr("deniable.estimate.consistency._FEW", 100)
    apart = origin_of(mechanism, rows)
    assert together.where == apart.where
    assert together.p_value == pytest.approx(apart.p_value, rel=1e-9)
    assert together.p_value < 1e-6


def test_a_share_above_one_gives_a_table_away():
    # No share is far below 0 where they are many.
    mechanism = design(Schema.anonymous((40,)), epsilon=3).mechanism
    rows = [np.zeros(60, dtype=np.int64)]
    assert origin_of(mechanism, Rows(("a1",), rows)).p_value < 1e-6
    honest = Randomizer(mechanism, SystemRandomness()).randomize(rows)
    assert origin_of(mechanism, Rows(("a1",), honest)).p_value > 1e-9
    law = MatrixChannel.from_probabilities(np.full((40, 40), 0.01) + 0.6 * np.eye(40))
    mechanism = Mechanism.of(law)
    assert origin_of(mechanism, Rows(("a1",), rows)).p_value < 1e-6


def test_few_rows_tell_nothing_and_no_rows_are_nothing():
    few = origin_of(MECHANISM, Rows(NAMES, truth(3)))
    assert few is not None
    assert few.p_value == 1.0
    assert origin_of(MECHANISM, Rows(NAMES, truth(0))) is None
    assert origin_of(MECHANISM, Rows((), [])) is None


def test_matrices_are_looked_at_by_their_inverse():
    law = MatrixChannel.from_probabilities(np.array([[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]]))
    mechanism = Mechanism.of(law)
    honest = Randomizer(mechanism, SystemRandomness()).randomize([np.zeros(2000, dtype=np.int64)])
    assert origin_of(mechanism, Rows(("a1",), honest)).p_value > 1e-9
    assert origin_of(mechanism, Rows(("a1",), [np.zeros(2000, dtype=np.int64)])).p_value < 1e-6


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
            assert exact <= np.exp(_bound(float(total) + 1e-9, [(by_output, law, n)])) + 1e-12


def test_what_is_released_of_a_pair_is_told_by_whether_truth_and_release_are_in_a_cell():
    mechanism = Mechanism.of(random_table((3, 4), 6))
    channel, sides = Channel(mechanism, ("a1", "a2")), list(product((0, 1), repeat=2))
    cells = list(product((slice(1), slice(1, None)), repeat=2))  # the first value, or another
    found = _truths(mechanism.blocks[0].law.eigenvalues((0, 1)), (3, 4), (1, 1))
    for row, true in zip(found, sides, strict=True):
        released = channel.forward.apply(np.eye(12)[4 * true[0] + true[1]].reshape(3, 4))
        assert row == pytest.approx([released[cell].sum() for cell in cells])


def test_a_foreign_table_is_refused_or_warned_of():
    schema = Schema((Attribute("smokes", ("no", "yes")),))
    mechanism = design(schema, epsilon=1).mechanism

    def table(no: int) -> Release:
        rows = pa.table({"smokes": ["no"] * no + ["yes"] * (1000 - no)})
        return Release(Strata.one(mechanism), rows)

    with pytest.raises(InputError, match="is not a release of this mechanism"):
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
    with pytest.raises(
        InputError, match=r"is not a release of this mechanism.*or `anyway` to go on"
    ):
        deniable.open(true, plan)
    with pytest.warns(Notice, match="it may be that"):
        assert deniable.open(true, plan, anyway=True).shares("smokes")[0].n_records == 1000


FORMS = design(Schema.anonymous((2, 3, 4, 2)), epsilon=3, method="forms").mechanism


def answered(mechanism: Mechanism, columns: list[np.ndarray], forms: np.ndarray) -> Rows:
    """True values of what the rows' forms ask."""
    asked = [form.asked for form in mechanism.forms.forms]
    codes = [
        np.where([place in asked[form] for form in forms], column, n)
        for place, (column, n) in enumerate(
            zip(columns, mechanism.schema.n_categories, strict=True)
        )
    ]
    return Rows(mechanism.schema.names, codes, None, forms)


def test_rows_with_forms_are_looked_at_form_by_form():
    columns = [*truth(4000), np.arange(4000) % 10 // 9]
    names = FORMS.schema.names
    *codes, forms = Randomizer(FORMS, SystemRandomness()).randomize(columns)
    honest = origin_of(FORMS, Rows(names, codes, None, forms))
    assert (honest.p_value > 1e-9, honest.rows) == (True, 4000)
    assert origin_of(FORMS, answered(FORMS, columns, forms)).p_value < 1e-6
    weaker = design(FORMS.schema, epsilon=8, method="forms").mechanism
    *other, of_other = Randomizer(weaker, SystemRandomness()).randomize(columns)
    assert origin_of(FORMS, Rows(names, other, None, of_other % 2)).p_value < 1e-6


def test_rows_that_answer_nothing_tell_nothing():
    form = next(form for form in FORMS.forms.forms if len(form.asked) < 4)
    (left_out, *_) = sorted(set(range(4)) - set(form.asked))
    forms = np.full(5, FORMS.forms.forms.index(form))
    not_asked = np.full(5, FORMS.schema.n_categories[left_out])
    rows = Rows((FORMS.schema.names[left_out],), [not_asked], None, forms)
    assert origin_of(FORMS, rows) is None


def test_a_row_that_does_not_answer_what_its_form_asks_gives_a_table_away():
    forms = np.zeros(3, dtype=np.int64)
    asked = FORMS.forms.forms[0].asked
    rows = answered(FORMS, [np.zeros(3, dtype=np.int64)] * 4, forms)
    assert origin_of(FORMS, rows).row is None
    for place, column in enumerate(rows.codes):
        column[1] = 0 if place not in asked else FORMS.schema.n_categories[place]
        found = origin_of(FORMS, rows)
        assert (found.p_value, found.where) == (0.0, (FORMS.schema.names[place],))
        assert found.row == 2
        assert f"data row 2, column '{FORMS.schema.names[place]}'" in found.sentence()
        column[1] = FORMS.schema.n_categories[place] - column[1]


@pytest.mark.slow
def test_under_forms_the_p_value_is_never_too_small():
    # Fourteen rows of one truth: all outcomes, by how many rows have each form and answer.
    asks = [((0,), np.array([0.55, 0.45])), ((0,), np.array([0.7, 0.3]))]
    law = PublishedForms.from_probabilities((2,), [0.75, 0.25], asks)
    mechanism = Mechanism.of(law)
    of_one = channel_of_forms(law)[0,]
    codes, forms = [np.array([y for _, (y,) in of_one])], np.array([form for form, _ in of_one])
    chances = np.array([float(p) for p in of_one.values()])
    found = []
    for drawn in combinations_with_replacement(range(4), 14):
        counts = np.bincount(drawn, minlength=4)
        orders = math.factorial(14) / math.prod(map(math.factorial, counts.tolist()))
        origin = origin_of(mechanism, Rows(("a1",), codes, counts.astype(float), forms))
        found.append((origin.p_value, orders * np.prod(chances**counts)))
    p_values, exact = map(np.array, zip(*found, strict=True))
    assert exact.sum() == pytest.approx(1)
    assert p_values.min() < 0.01
    for level in np.unique(p_values):
        assert exact[p_values <= level].sum() <= level


def test_what_forms_draw_is_told_from_what_was_not_randomized():
    law = drawing_forms()
    mechanism = Mechanism.of(law)
    second = np.arange(6000) % 2
    columns = [second, 1 - second, second, second]
    names = mechanism.schema.names
    *codes, forms = Randomizer(mechanism, SystemRandomness()).randomize(columns)
    assert origin_of(mechanism, Rows(names, codes, None, forms)).p_value > 1e-9
    # The same cells are filled, with what is true.
    true = [np.where(y < n, x, n) for x, y, n in zip(columns, codes, law.n_categories, strict=True)]
    found = origin_of(mechanism, Rows(names, true, None, forms))
    assert (found.p_value < 1e-6, found.row) == (True, None)


def test_sets_that_hold_one_category_too_often_are_told_from_what_is_drawn():
    law = broad_forms()
    mechanism = Mechanism.of(law)
    columns = [np.arange(6000) % n for n in law.n_categories]
    *codes, forms = Randomizer(mechanism, SystemRandomness()).randomize(columns)
    names = mechanism.schema.names
    assert origin_of(mechanism, Rows(names, codes, None, forms)).p_value > 1e-9
    sets = law.sets[0]
    holding = 4 + np.array([y for y in range(sets.n_answers) if 0 in sets.members(y)])
    broad = codes[0] >= 4
    broad &= codes[0] < law.n_outputs[0]
    turned = np.where(broad, holding[np.arange(6000) % len(holding)], codes[0])
    found = origin_of(mechanism, Rows(names, [turned, *codes[1:]], None, forms))
    assert (found.p_value < 1e-6, found.row) == (True, None)
    # And for a pair, whose sets never hold both of certain categories.
    first, second = (law.sets[i].holds() for i in (0, 1))
    both = [(y, z) for y in range(8) for z in range(3) if not (first[y, 1] and second[z, 2])]
    of_pair = forms == 2
    drawn = np.array(both)[np.arange(6000) % len(both)]
    paired = [np.where(of_pair, n + d, c) for n, d, c in zip((4, 3), drawn.T, codes, strict=False)]
    found = origin_of(mechanism, Rows(names, [*paired, codes[2]], None, forms))
    assert found.p_value < 1e-6
    wrong = np.where(broad, 2, codes[0])
    found = origin_of(mechanism, Rows(names, [wrong, *codes[1:]], None, forms))
    assert (found.p_value, found.where) == (0.0, ("a1",))
    assert broad[found.row - 1]


def test_a_table_with_forms_is_looked_at_in_files(tmp_path):
    schema = Schema((Attribute("smokes", ("no", "yes")), Attribute("old", ("no", "yes"))))
    plan = design(schema, epsilon=1, method="forms", pairs=0)
    strata = Strata.one(plan.mechanism)
    numbers = [1 + form.asked[0] for form in plan.mechanism.forms.forms]
    assert sorted(numbers) == [1, 2]
    rows = pa.table(
        {
            "smokes": ["no", None] * 1000,
            "old": [None, "no"] * 1000,
            "form": [numbers.index(1) + 1, numbers.index(2) + 1] * 1000,
        }
    )
    found = find_origin(Release(strata, rows))
    assert (found.p_value < 1e-6, found.rows) == (True, 2000)
    assert find_origin(Release(strata, rows.drop_columns("form"))) is None
    file = tmp_path / "counts.csv"
    (first, second) = rows.column("form").to_pylist()[:2]
    file.write_text(f"smokes,old,form,count\nno,,{first},1000\n,no,{second},1000\n")
    assert find_origin(Release(strata, counts=file)) == found
