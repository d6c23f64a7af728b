"""Published forms against brute force: every form and every output, in fractions."""

from fractions import Fraction
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws.forms import Form, PublishedForms
from deniable.laws.pattern_table import PatternTable
from deniable.mechanism import privacy
from deniable.randomness import SeededRandomness
from laws import brute_force as oracle
from laws import strategies


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


def channel(law: PublishedForms) -> dict[tuple[int, ...], dict[Answer, Fraction]]:
    """Pr[form and answers | record], from the integers and the sentence that describes the law."""
    whole = {}
    for x in oracle.records(law.n_categories):
        row: dict[Answer, Fraction] = {}
        for c, (share, form) in enumerate(zip(law.shares, law.forms, strict=True)):
            weights = np.array(form.table.weights, dtype=object).reshape((2,) * len(form.asked))
            for y in product(*(range(law.n_categories[i]) for i in form.asked)):
                changed = tuple(int(v != x[i]) for v, i in zip(y, form.asked, strict=True))
                ways = 1
                for i, c_i in zip(form.asked, changed, strict=True):
                    ways *= law.n_categories[i] - 1 if c_i else 1
                answers: list[int | None] = [None] * len(law.n_categories)
                for v, i in zip(y, form.asked, strict=True):
                    answers[i] = v
                row[c, tuple(answers)] = Fraction(
                    int(weights[changed]) * share, (1 << form.table.bits + law.bits) * ways
                )
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
    return max(
        marginal[x][y] / marginal[other][y]
        for x in marginal
        for other in marginal
        if all(x[i] == other[i] for i in known)
        for y in marginal[x]
    )


small = strategies.sizes(3).filter(lambda n: np.prod(n) <= 24).flatmap(form_laws)


@given(small)
@settings(max_examples=8, deadline=None)
def test_levels_are_those_of_the_least_favourable_form(law: PublishedForms) -> None:
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
@settings(max_examples=15, deadline=None)
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


def two_forms() -> PublishedForms:
    pair = np.array([[0.5, 0.2], [0.2, 0.1]])
    tables = [((0, 2), pair), ((1,), np.array([0.7, 0.3]))]
    return PublishedForms.from_probabilities((2, 3, 2), [0.25, 0.75], tables)


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


def test_a_drawn_table_has_the_frequencies_of_the_law() -> None:
    law, n = two_forms(), 40_000
    x = [np.zeros(n, dtype=np.uint8), np.ones(n, dtype=np.uint8), np.ones(n, dtype=np.uint8)]
    drawn = law.sampler().draw(x, SeededRandomness(5))
    for (c, y), p in channel(law)[0, 1, 1].items():
        rows = drawn.form == c
        for i, value in enumerate(y):
            rows &= drawn.codes[i] == (law.n_categories[i] if value is None else value)
        assert abs(rows.mean() - float(p)) < 5 * (float(p) / n) ** 0.5
    assert law.sampler().draws(law)
    other = PublishedForms(law.n_categories, 1, (1, 1), law.forms)
    assert not law.sampler().draws(other)


def test_a_law_is_read_back_and_a_nudged_integer_is_refused() -> None:
    law = two_forms()
    plain = law.to_plain()
    assert PublishedForms.from_plain(plain, law.n_categories) == law
    plain["forms"][0]["weights"][1:] = plain["forms"][0]["weights"][:0:-1]
    plain["forms"][0]["weights"][0] = plain["forms"][0]["weights"][0].replace("8", "9", 1)
    with pytest.raises(InputError):
        PublishedForms.from_plain(plain, law.n_categories)


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


@pytest.mark.parametrize("asked", [(), (1, 0), (0, 3), (0, 0)])
def test_a_form_asks_each_attribute_once_in_order(asked: tuple[int, ...]) -> None:
    table = PatternTable.from_probabilities((2, 2), np.full((2, 2), 0.25))
    with pytest.raises(InputError, match="each once"):
        Form((2, 2), asked, table)


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


def test_a_form_that_asks_what_is_not_there_is_refused() -> None:
    law = two_forms()
    plain = law.to_plain()
    plain["forms"][0]["asked"] = [7]
    with pytest.raises(InputError, match="list the attributes"):
        PublishedForms.from_plain(plain, law.n_categories)
