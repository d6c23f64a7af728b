"""Every planted defect is found, and an honest box is not refuted.

How often, is counted in tests/statistical/test_audit.py; here the error is 1e-9.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable
from deniable import Attribute, Schema, design
from deniable.audit import Plan, audit, rows_box
from deniable.audit.audit import Level, _has_repeat
from deniable.laws import Identity, MatrixChannel, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness, SystemRandomness
from unit.laws.test_forms import broad_forms, drawing_forms

ERROR = 1e-9
Codes = list[np.ndarray]
CLAIMED = design(Schema.anonymous((2, 3, 4)), epsilon=3, method="balanced").mechanism


def honest(mechanism: Mechanism) -> Callable[[Sequence[Any]], Codes]:
    return Randomizer(mechanism, SystemRandomness()).randomize


def untouched(codes: Codes) -> Codes:
    """The last attribute is released as it is."""
    return [*honest(CLAIMED)(codes)[:-1], codes[-1]]


def changed_to_any(codes: Codes) -> Codes:
    """A changed value is drawn from all categories, the true one too."""
    released = honest(CLAIMED)(codes)
    again = SystemRandomness().bits(np.uint8, len(codes[2]))
    lies = (released[2] != codes[2]) & (again % 4 == 0)
    return [*released[:2], np.where(lies, codes[2], released[2])]


def swapped(codes: Codes) -> Codes:
    """Two categories of the last attribute are taken for each other."""
    released = honest(CLAIMED)(codes)
    return [*released[:2], np.array([0, 2, 1, 3])[released[2]]]


def kept_more(codes: Codes) -> Codes:
    """One in sixteen rows is released as it is."""
    released = honest(CLAIMED)(codes)
    words = SystemRandomness().bits(np.uint16, len(codes[0]))
    return [np.where(words < 4096, true, out) for true, out in zip(codes, released, strict=True)]


def same_key(codes: Codes) -> Codes:
    """Every run uses the same keystream."""
    return Randomizer(CLAIMED, SeededRandomness(5)).randomize(codes)


def shared_by_two(codes: Codes) -> Codes:
    """Neighbouring rows use the same bits."""
    size = CLAIMED.schema.n_categories
    zeros = honest(CLAIMED)([np.zeros((len(c) + 1) // 2, dtype=np.int64) for c in codes])
    shifts = [np.repeat(column, 2)[: len(codes[0])] for column in zeros]
    return [(c + s) % n for c, s, n in zip(codes, shifts, size, strict=True)]


def together_as_if_alone(codes: Codes) -> Codes:
    """The attributes are randomized independently at their levels: more ε for the record."""
    law = ProductLaw.from_levels(CLAIMED.schema.n_categories, CLAIMED.attribute_epsilon)
    return honest(Mechanism.of(law, CLAIMED.schema))(codes)


DEFECTS = {
    untouched: "was claimed, of a3 alone",
    changed_to_any: "a3 has an attenuation of",
    swapped: "a3",
    kept_more: "attenuation",
    same_key: "random bits were reused",
    shared_by_two: "random bits",
    together_as_if_alone: "together have an attenuation",
}


def test_an_honest_box_is_not_refuted_and_most_of_its_levels_are_shown():
    found = audit(Plan(CLAIMED, 40_000, ERROR), honest(CLAIMED))
    assert found.verdict == "consistent with the claim; an audit cannot prove it"
    assert 0.5 * CLAIMED.epsilon < found.epsilon.at_least <= CLAIMED.epsilon
    plain = found.to_plain()
    assert plain["refuted"] is False
    assert plain["draws"] <= 40_000
    assert [a["name"] for a in plain["attributes"]] == ["a1", "a2", "a3"]
    for attribute in plain["attributes"]:
        assert attribute["attenuation"]["low"] < attribute["attenuation"]["claimed"]
        assert attribute["epsilon_given_rest"]["at_least"] > 0
    assert len(plain["pairs"]) == 3


def test_too_small_a_claim_is_refuted_in_nats():
    stronger, weaker = (
        design(Schema.anonymous((4,)), epsilon=level).mechanism for level in (1.0, 1.2)
    )
    found = audit(Plan(stronger, 60_000, ERROR), honest(weaker))
    assert "nats where 1 was claimed, of a1 alone" in found.verdict
    assert 1.0 < found.attributes[0].epsilon.at_least < 1.2
    assert found.attributes[0].given_rest is None


def test_matrices_with_more_answers_and_columns_kept_are_audited_too():
    matrix = np.array([[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]])
    schema = Schema(Schema.anonymous((2, 3)).attributes, keep=("a2",))
    law = MatrixChannel.from_probabilities(matrix)
    mechanism = Mechanism(schema, (Block((0,), law), Block((1,), Identity((3,)))))
    plan = Plan(mechanism, 20_000, ERROR)
    found = audit(plan, honest(mechanism))
    assert not found.refuted
    assert found.attributes[0].attenuation is None
    assert 0.6 < found.attributes[0].epsilon.at_least < np.log(3)

    def altered(codes: Codes) -> Codes:
        released = honest(mechanism)(codes)
        return [released[0], (released[1] + 1) % 3]

    assert "a2 is altered, and is claimed to be released unchanged" in audit(plan, altered).verdict

    def turned(codes: Codes) -> Codes:
        released = honest(mechanism)(codes)
        return [2 - released[0], released[1]]

    assert "is released as answer" in " ".join(audit(plan, turned).refutations)


FORMS = Mechanism.of(drawing_forms())
EVERYBODY = design(Schema.anonymous((2, 3, 4)), epsilon=3, method="forms").mechanism


SETS = Mechanism.of(broad_forms())


def always_hits(codes: Codes) -> Codes:
    """The sets of the first attribute hold what is true."""
    first, *rest = honest(SETS)(codes)
    holding = 4 + np.argmax(SETS.forms.sets[0].holds()[:, codes[0]], axis=0)
    return [np.where((first >= 4) & (first < 12), holding, first), *rest]


def test_answers_that_name_sets_are_audited_by_what_they_hold():
    plan = Plan(SETS, 40_000, ERROR)
    found = audit(plan, honest(SETS))
    assert found.refutations == ()
    assert 0.15 * SETS.epsilon < found.epsilon.at_least <= SETS.epsilon
    assert audit(plan, always_hits).refutations


@pytest.mark.parametrize("mechanism", [FORMS, EVERYBODY])
def test_published_forms_are_audited_with_the_form_that_is_seen(mechanism):
    found = audit(Plan(mechanism, 40_000, ERROR), honest(mechanism))
    assert found.refutations == ()
    assert 0.35 * mechanism.epsilon < found.epsilon.at_least <= mechanism.epsilon
    k = len(mechanism.schema.names)
    assert len(found.pairs) == k * (k - 1) / 2
    assert all(a.epsilon.at_least > 0 for a in found.attributes)


def answers_truly(codes: Codes) -> Codes:
    """What the last attribute is asked is answered truly."""
    *released, forms = honest(EVERYBODY)(codes)
    return [*released[:2], np.where(released[2] < 4, codes[2], 4), forms]


def chooses_its_form(codes: Codes) -> Codes:
    """One row in two whose first value is 1 has the form that somebody with 0 has drawn."""
    *released, forms = honest(EVERYBODY)(codes)
    first = np.flatnonzero(forms == forms.min())
    rows = np.where(
        (codes[0] == 1) & (np.arange(len(forms)) % 2 == 0), first[0], np.arange(len(forms))
    )
    return [column[rows] for column in (*released, forms)]


def says_more(codes: Codes) -> Codes:
    """In one row of a hundred the second attribute is answered though it was not asked."""
    *released, forms = honest(EVERYBODY)(codes)
    more = (released[1] == 3) & (np.arange(len(forms)) % 100 == 0)
    return [released[0], np.where(more, 0, released[1]), released[2], forms]


def lies_together(codes: Codes) -> Codes:
    """Of those who are asked two things both are as in a row of another, who got the same form."""
    *released, forms = honest(EVERYBODY)(codes)
    other = honest(EVERYBODY)(codes)
    asked = [form.asked for form in EVERYBODY.forms.forms]
    for number, places in enumerate(asked):
        mine, theirs = np.flatnonzero(forms == number), np.flatnonzero(other[-1] == number)
        for place in places[1:]:
            kept = other[place][theirs] == codes[place][theirs]
            take = np.resize(kept, len(mine))
            shift = 1 + np.arange(len(mine)) % (EVERYBODY.schema.n_categories[place] - 1)
            true = codes[place][mine]
            lie = (true + shift) % EVERYBODY.schema.n_categories[place]
            released[place][mine] = np.where(take, true, lie)
    return [*released, forms]


PLANTED = [
    *((CLAIMED, 80_000, box, said) for box, said in DEFECTS.items()),
    (EVERYBODY, 60_000, answers_truly, "was claimed, of a3 alone"),
    (EVERYBODY, 60_000, chooses_its_form, "under form"),
    (EVERYBODY, 60_000, says_more, "is released as 0 under form"),
    (EVERYBODY, 60_000, lies_together, "together have an attenuation of"),
]


@pytest.mark.parametrize(("mechanism", "draws", "box", "said"), PLANTED)
def test_a_planted_defect_is_refuted(mechanism, draws, box, said):
    found = audit(Plan(mechanism, draws, ERROR), box)
    assert found.refuted
    assert found.verdict.startswith("REFUTED: ")
    assert any(said in sentence for sentence in found.refutations), found.refutations


def test_a_level_without_bound_is_never_refuted():
    assert not Level(float("inf"), 3.0).refuted
    assert Level(float("inf"), 3.0).to_plain()["claimed"] is None


@pytest.mark.parametrize("distance", [32, 40, 500])
def test_rows_that_come_again_are_found_wherever_they_are(distance):
    generator = np.random.default_rng(3)
    columns = [generator.integers(0, 4, 1000), generator.integers(0, 3, 1000)]
    assert not _has_repeat(columns, 32)
    for column in columns:
        column[100 + distance : 132 + distance] = column[100:132]
    assert _has_repeat(columns, 32)
    assert not _has_repeat(columns, 33)
    assert not _has_repeat([c[:20] for c in columns], 30)


def test_rows_that_differ_in_one_of_many_columns_do_not_come_again():
    first = np.random.default_rng(4).integers(0, 1000, 1000)
    others = np.zeros(1000, dtype=np.int64)
    others[0] = 3
    assert not _has_repeat([first, *[others] * 40], 30)
    assert _has_repeat([others] * 41, 30)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["balanced", "kronecker"])
def test_numbers_between_points_are_rounded_at_random(method):
    attributes = (
        Attribute("age", range=(0, 90), grid=4, missing="NA"),
        Attribute("born", range=(date(1950, 1, 1), date(1950, 1, 6)), grid=3),
        Attribute("sex", ("f", "m")),
    )
    plan = design(Schema(attributes), epsilon=6, method=method)

    def nearest(rows):
        ages = [x and str(30 * round(float(x) / 30)) for x in rows["age"].to_pylist()]
        return deniable.randomize(rows.set_column(0, "age", pa.array(ages, pa.string())), plan)

    examined = Plan(plan.mechanism, 60_000, ERROR, rounds=True)
    honest_box = rows_box(plan.mechanism, lambda rows: deniable.randomize(rows, plan))
    assert not audit(examined, honest_box).refuted
    found = audit(examined, rows_box(plan.mechanism, nearest))
    assert found.refuted
    assert found.verdict.startswith("REFUTED: age = ")
    assert len(found.refutations) == 1
    assert found.draws <= 60_000
