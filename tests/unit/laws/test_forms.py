"""Published forms against brute force: every form and every output, in fractions."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws.count_table import CountTable
from deniable.laws.form import Form
from deniable.laws.forms import PublishedForms
from deniable.laws.law import integer_weights
from deniable.laws.pattern_table import PatternTable
from deniable.laws.set_answers import SetAnswers
from deniable.mechanism import privacy
from deniable.randomness import SeededRandomness
from laws import brute_force as oracle
from laws import strategies
from marked import slow_after


def treating_alike(asked: int, drawn: tuple[int, ...], seed: int) -> np.ndarray:
    """Random probabilities of patterns, which of those drawn depend on how many are changed."""
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.full(2 ** (asked + sum(drawn)), 2.0))
    table = table.reshape((2,) * (asked + sum(drawn)))
    start = asked
    for count in drawn:
        orders = list(permutations(range(start, start + count)))
        rest = [*range(start)], [*range(start + count, table.ndim)]
        table = np.mean([table.transpose([*rest[0], *o, *rest[1]]) for o in orders], axis=0)
        start += count
    return table


def drawing_forms() -> PublishedForms:
    """Forms that draw: two of three with two categories, also beside one that is always asked, and
    one of a pair."""
    draws = [[((0, 1, 3), 2)], [((0, 3), 1)], []]
    tables = [
        ((2,), treating_alike(1, (2,), 1)),
        ((1,), treating_alike(1, (1,), 2)),
        ((0, 1), treating_alike(2, (), 3)),
    ]
    return PublishedForms.from_probabilities((2, 2, 3, 2), [0.5, 0.25, 0.25], tables, drawn=draws)


def counting_forms() -> PublishedForms:
    """Forms whose answers are randomized by how many are changed: of two of three attributes, of
    all three, beside one with a table of patterns."""
    densities = [np.array([5.0, 2.0, 1.0]), np.array([1.0, 1.0, 4.0, 3.0])]
    tables = [((), densities[0]), ((0, 1, 3), densities[1]), ((2,), np.array([0.7, 0.3]))]
    draws = [[((0, 1, 3), 2)], [], []]
    return PublishedForms.from_probabilities((3, 3, 2, 3), [0.5, 0.25, 0.25], tables, drawn=draws)


def pairs_of(n: int) -> SetAnswers:
    """Balanced lists of sets of two, of three or four categories."""
    bits, weights = integer_weights(np.array([2.0, 1.0] if n == 4 else [1.0]))
    return SetAnswers(n, 2, bits, weights, ((0, 1), (0, 2))[: len(weights)])


def broad_forms() -> PublishedForms:
    """Forms whose answers name sets: alone, beside a category, of an attribute that is drawn."""
    tables = [
        ((0,), treating_alike(1, (), 4)),
        ((0,), treating_alike(1, (1,), 5)),
        ((0, 1), treating_alike(2, (), 6)),
    ]
    four, three = pairs_of(4), pairs_of(3)
    return PublishedForms.from_probabilities(
        (4, 3, 3),
        [0.5, 0.25, 0.25],
        tables,
        drawn=[[], [((1, 2), 1)], []],
        sets=[{0: four}, {1: three, 2: three}, {0: four, 1: three}],
    )


@st.composite
def form_laws(draw: st.DrawFn, n: tuple[int, ...]) -> PublishedForms:
    forms = []
    for _ in range(draw(st.integers(1, 4))):
        asked = sorted(draw(st.sets(st.sampled_from(range(len(n))), min_size=1)))
        table = draw(strategies.pattern_tables([n[i] for i in asked]))
        forms.append(Form(n, tuple(asked), table))
    bits = draw(st.sampled_from([4, 64]))
    shares = draw(strategies.compositions(len(forms), 1 << bits))
    return PublishedForms(n, bits, tuple(shares), tuple(forms))


Answer = tuple[int, tuple[int | None, ...]]


def answers_to(form: Form, i: int, value: int) -> list[tuple[int, bool, Fraction]]:
    """Answers to an attribute, whether they keep its value, and their chance if so or if not."""
    n, sets = form.n_categories[i], form.sets_of(i)
    if sets is None:
        return [(v, v == value, Fraction(1, 1 if v == value else n - 1)) for v in range(n)]
    found = []
    for answer in range(sets.n_answers):
        holds = value in sets.members(answer)
        among = sets.breadth if holds else n - sets.breadth
        weight = sets.weights[answer // n]
        found.append((n + answer, holds, Fraction(weight, among << sets.bits)))
    return found


def patterns_of(form: Form) -> np.ndarray:
    """The integers of every pattern of changed answers, shape (2,)·m."""
    m = len(form.table.n_categories)
    if isinstance(form.table, CountTable):
        others = form.table.n_categories[0] - 1
        counts = np.indices((2,) * m).sum(axis=0)
        by_count = [w * others**c for c, w in enumerate(form.table.weights)]
        return np.array(by_count, dtype=object)[counts]
    return np.array(form.table.weights, dtype=object).reshape((2,) * m)


@cache
def channel(law: PublishedForms) -> dict[tuple[int, ...], dict[Answer, Fraction]]:
    """Pr[form and answers | record], from the integers and the sentence that describes the law."""
    whole = {}
    for x in oracle.records(law.n_categories):
        row: dict[Answer, Fraction] = {}
        for c, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            weights = patterns_of(form)
            drawn = list(product(*(combinations(d.members, d.asked) for d in form.drawn)))
            for asked in ([*form.asked, *(i for part in one for i in part)] for one in drawn):
                for y in product(*(answers_to(form, i, x[i]) for i in asked)):
                    changed = tuple(not kept for _, kept, _ in y)
                    p = Fraction(int(weights[tuple(map(int, changed))]) * share, len(drawn))
                    answers: list[int | None] = [None] * len(law.n_categories)
                    for (v, _, chance), i in zip(y, asked, strict=True):
                        answers[i] = v
                        p *= chance
                    row[c, tuple(answers)] = p / (1 << form.table.bits + law.bits)
        whole[x] = row
    return whole


def worst_ratio(law: PublishedForms, seen: list[int], known: list[int]) -> Fraction:
    """The largest ratio between records that agree on ``known``, seen through some columns and the
    form."""
    marginal: dict[tuple[int, ...], dict[Answer, Fraction]] = {}
    for x, row in channel(law).items():
        shown: dict[Answer, Fraction] = {}
        for (c, y), p in row.items():
            key = c, tuple(y[i] for i in seen)
            shown[key] = shown.get(key, Fraction(0)) + p
        marginal[x] = shown
    alike: dict[tuple[int, ...], list[dict[Answer, Fraction]]] = {}
    for x, shown in marginal.items():
        alike.setdefault(tuple(x[i] for i in known), []).append(shown)
    return max(
        max(row[y] for row in rows) / min(row[y] for row in rows)
        for rows in alike.values()
        for y in rows[0]
    )


small = strategies.sizes(3).filter(lambda n: np.prod(n) <= 24).flatmap(form_laws)


def check_levels(law: PublishedForms) -> None:
    k = len(law.n_categories)
    everyone = list(range(k))
    assert oracle.is_rounded_up(privacy.record_epsilon(law), worst_ratio(law, everyone, []))
    for subset in oracle.subsets(k):
        if subset:
            true = worst_ratio(law, list(subset), [i for i in everyone if i not in subset])
            # The others do not matter where they are not seen.
            assert oracle.is_rounded_up(privacy.record_epsilon(law, subset), true)
    for i, level in enumerate(privacy.epsilon_given_rest(law)):
        rest = [j for j in everyone if j != i]
        assert oracle.is_rounded_up(level, worst_ratio(law, everyone, rest))


@given(small)
@settings(max_examples=8)
def test_levels_are_those_of_the_least_favourable_form(law: PublishedForms) -> None:
    check_levels(law)


@pytest.mark.parametrize("law", slow_after(2, [drawing_forms(), broad_forms(), counting_forms()]))
def test_levels_are_those_of_the_least_favourable_draw(law: PublishedForms) -> None:
    check_levels(law)


@given(small)
@settings(max_examples=15)
def test_a_form_asks_what_its_eigenvalues_say_and_answers_at_random_else(
    law: PublishedForms,
) -> None:
    k = len(law.n_categories)
    for form in law.forms:
        values = form.eigenvalues(range(k))
        for members in product((0, 1), repeat=k):
            asked = all(i in form.asked for i in range(k) if members[i])
            assert asked or values[members] == 0.0
    told = sum(
        (p * form.eigenvalues(range(k)) ** 2)
        for p, form in zip(law.probabilities, law.forms, strict=True)
    )
    assert np.allclose(law.information(range(k)), told)


@given(small)
def test_to_publish_the_form_never_tells_less_of_anything(law: PublishedForms) -> None:
    everyone = range(len(law.n_categories))
    hidden = sum(
        p * form.eigenvalues(everyone) for p, form in zip(law.probabilities, law.forms, strict=True)
    )
    assert (law.information(everyone) >= hidden**2 * (1 - 1e-12)).all()


@pytest.mark.parametrize("law", [drawing_forms(), counting_forms()], ids=["table", "count"])
def test_what_forms_that_draw_tell_is_the_mean_over_what_is_drawn(law: PublishedForms) -> None:
    whole = law.information(range(4))
    table = law.pair_information()
    for i, j in product(range(4), repeat=2):
        members = tuple(int(a in (i, j)) for a in range(4))
        assert table[i, j] == pytest.approx(whole[members])
    # By the law's own definition: a conditional law for every set that may be drawn.
    told = np.zeros((2,) * 4)
    for share, form in zip(law.probabilities, law.forms, strict=True):
        sets = list(product(*(combinations(d.members, d.asked) for d in form.drawn)))
        for one in sets:
            places = [*form.asked, *(i for part in one for i in part)]
            order = np.argsort(places)
            weights = patterns_of(form).transpose(order)
            weights = (weights / weights.sum()).astype(float)
            tables = [(sorted(places), weights)]
            (fixed,) = PublishedForms.from_probabilities(law.n_categories, [1.0], tables).forms
            told += share / len(sets) * fixed.eigenvalues(range(4)) ** 2
    assert whole == pytest.approx(told)


def test_sets_that_are_not_balanced_or_were_changed_are_refused() -> None:
    law = broad_forms()
    plain = law.to_plain()["sets"][0]
    earlier = [f"{int(steps, 16) << 1:x}" for steps in plain["lists"]]
    for words, change in (
        ("holds? .*more often", {"lists": ["3", "9"]}),
        ("more often", {"lists": plain["lists"][::-1]}),
        ("as many as a set", {"lists": ["3", "7"]}),
        ("less than the number of categories", {"lists": ["3", "11"]}),
        ("digest", {"lists": earlier}),  # as balanced, but others
        ("add up", {"bits": 65}),
        ("twice of one", {"attributes": [0, 0]}),
        ("twice of one", {"attributes": [7]}),
        ("other categories", {"attributes": [0, 1]}),
    ):
        first = law.to_plain()
        first["sets"][0] |= change
        with pytest.raises(InputError, match=words):
            PublishedForms.from_plain(first, law.n_categories)


def test_a_sampler_of_other_sets_is_found_out() -> None:
    law = broad_forms()
    bits, weights = integer_weights(np.array([1.0, 2.0]))
    turned = SetAnswers(4, 2, bits, weights, ((0, 2), (0, 1)))
    forms = [
        replace(form, sets=tuple((i, turned if i == 0 else sets) for i, sets in form.sets))
        for form in law.forms
    ]
    assert not law.sampler().draws(replace(law, forms=tuple(forms)))


def test_forms_name_the_same_sets_of_an_attribute_and_those_drawn_from_are_alike() -> None:
    law = broad_forms()
    bits, weights = integer_weights(np.array([1.0, 2.0]))
    turned = SetAnswers(4, 2, bits, weights, ((0, 2), (0, 1)))
    other = replace(law.forms[0], sets=((0, turned),))
    with pytest.raises(InputError, match="same lists"):
        replace(law, forms=(other, *law.forms[1:]))
    with pytest.raises(InputError, match="does not answer alike"):
        replace(law.forms[1], sets=law.forms[1].sets[:1])


def two_forms() -> PublishedForms:
    pair = np.array([[0.5, 0.2], [0.2, 0.1]])
    tables = [((0, 2), pair), ((1,), np.array([0.7, 0.3]))]
    return PublishedForms.from_probabilities((2, 3, 2), [0.25, 0.75], tables)


def seldom_changed() -> PublishedForms:
    """What is drawn for those rows alone in which it is changed."""
    pair = np.array([[0.92, 0.03], [0.03, 0.02]])
    tables = [((0, 1), pair), ((2,), np.array([0.7, 0.3]))]
    return PublishedForms.from_probabilities((3, 3, 3), [0.5, 0.5], tables)


def test_three_hundred_categories_are_kept_and_changed_as_often_as_is_said() -> None:
    n, n_rows = 300, 30_000
    for keep, share in ((0.99, 0.6), (0.5, 0.6), (0.5, 0.1)):  # each worked out another way
        tables = [((0,), np.array([keep, 1 - keep])), ((1,), np.array([0.7, 0.3]))]
        law = PublishedForms.from_probabilities((n, 2), [share, 1 - share], tables)
        true = np.arange(n_rows, dtype=np.uint16) % n
        released = law.sampler().draw([true, np.zeros(n_rows, np.uint8)], SeededRandomness(4))
        answers = released.codes[0]
        assert np.array_equal(answers == n, released.form == 1)
        kept = (answers == true)[released.form == 0]
        assert abs(kept.mean() - keep) < 5 * (keep * (1 - keep) / len(kept)) ** 0.5
        steps = (answers.astype(int) - true)[(answers != true) & (answers < n)] % n
        assert abs(steps.mean() - n / 2) < 5 * n / (12 * len(steps)) ** 0.5


def test_what_is_not_asked_is_empty_whatever_it_was() -> None:
    law = two_forms()
    one = [np.zeros(500, dtype=np.uint8), np.zeros(500, dtype=np.uint8), np.zeros(500, np.uint8)]
    other = [np.ones(500, dtype=np.uint8), np.full(500, 2, dtype=np.uint8), np.ones(500, np.uint8)]
    first = law.sampler().draw(one, SeededRandomness(3))
    second = law.sampler().draw(other, SeededRandomness(3))
    assert np.array_equal(first.form, second.form)
    for i, n in enumerate(law.n_categories):
        asked = np.isin(first.form, [c for c, form in enumerate(law.forms) if i in form.asked])
        assert np.array_equal(first.codes[i] == n, ~asked)
        assert np.array_equal(second.codes[i] == n, ~asked)


@pytest.mark.parametrize(
    "law",
    [two_forms(), drawing_forms(), broad_forms(), counting_forms(), seldom_changed()],
    ids=["given", "drawn", "broad", "counted", "seldom"],
)
def test_a_drawn_table_has_the_frequencies_of_the_law(law: PublishedForms) -> None:
    n = 40_000
    record = (0, 1, 1, 1)[: len(law.n_categories)]
    x = [np.full(n, value, dtype=np.uint8) for value in record]
    drawn = law.sampler().draw(x, SeededRandomness(5))
    for (c, y), p in channel(law)[record].items():
        rows = drawn.form == c
        for i, value in enumerate(y):
            rows &= drawn.codes[i] == (law.n_outputs[i] if value is None else value)
        assert abs(rows.mean() - float(p)) < 5 * (float(p) / n) ** 0.5
    assert law.sampler().draws(law)
    shares = (1 << law.bits - 1, *law.shares[1:-1], (1 << law.bits - 1) - sum(law.shares[1:-1]))
    if shares != law.shares:
        other = PublishedForms(law.n_categories, law.bits, shares, law.forms)
        assert not law.sampler().draws(other)
    fewer = Form(law.n_categories, (0,), PatternTable(law.n_categories[:1], 2, (3, 1)))
    assert not law.sampler().draws(
        PublishedForms(law.n_categories, law.bits, law.shares, (fewer, *law.forms[1:]))
    )


@pytest.mark.parametrize(
    ("law", "words", "change"),
    [
        (drawing_forms(), "", lambda plain: plain["forms"][0]["drawn"][0].update(members=[0, 1])),
        (counting_forms(), "add up", lambda plain: swap(plain["forms"][0]["weights"])),
        (two_forms(), "", lambda plain: swap(plain["forms"][0]["weights"])),
        (two_forms(), "list the attributes", lambda plain: plain["forms"][0].update(asked=[7])),
        (broad_forms(), "no sets of attribute 0", lambda plain: plain["sets"].pop(0)),
        (broad_forms(), "digest", lambda plain: plain["forms"][0].update(sets=[])),
    ],
)
def test_a_law_is_read_back_and_refused_where_it_was_changed(
    law: PublishedForms, words: str, change: Callable[[dict[str, Any]], object]
) -> None:
    plain = law.to_plain()
    msgspec.convert(plain, PublishedForms.Plain)
    assert PublishedForms.from_plain(plain, law.n_categories) == law
    change(plain)
    with pytest.raises(InputError, match=words or "."):
        PublishedForms.from_plain(plain, law.n_categories)


def swap(weights: list[str]) -> None:
    weights[0], weights[1] = weights[1], weights[0]


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("a share for each", {"shares": (1,)}),
        ("add up", {"shares": (1, 1)}),
        ("other attributes", {"n_categories": (2, 3, 3)}),
    ],
)
def test_shares_and_attributes_must_fit(words: str, change: dict[str, tuple[int, ...]]) -> None:
    law = two_forms()
    values = {"n_categories": law.n_categories, "bits": law.bits, "shares": law.shares} | change
    with pytest.raises(InputError, match=words):
        PublishedForms(**values, forms=law.forms)  # type: ignore[arg-type]


def test_a_form_asks_something() -> None:
    nothing = Form((2, 2), (), PatternTable((), 1, (2,)))
    with pytest.raises(InputError, match="at least one"):
        PublishedForms((2, 2), 0, (1,), (nothing,))


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("Expected `array`", {"forms": None}),
        ("length >= 1", {"column": ""}),
        ("missing required field", {"forms": [{"asked": [0], "share": "1"}]}),
        ("unknown field", {"note": "x"}),
    ],
)
def test_a_record_that_describes_no_forms_is_refused(words: str, change: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert(two_forms().to_plain() | change, PublishedForms.Plain)
