"""The channel of published forms, its inverse and its variances, against sums over all outputs."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import MatrixChannel, PublishedForms
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import expected_error, expected_variance, predict_covariance
from deniable.mechanism.published import PublishedChannel, WrongFormError, channel_of
from deniable.schema import Attribute, Schema
from unit.laws.test_forms import Answer, broad_forms, drawing_forms
from unit.laws.test_forms import channel as brute_force

SIZES = (2, 3, 2)


def mechanism(*asked: tuple[int, ...]) -> Mechanism:
    """Forms that ask these attributes, each with a law of its own."""
    random = np.random.default_rng(len(asked))
    tables = []
    for places in asked:
        table = random.dirichlet(np.full(2 ** len(places), 2.0))
        table[0] += 1.0
        tables.append((places, (table / table.sum()).reshape((2,) * len(places))))
    shares = random.dirichlet(np.full(len(asked), 3.0))
    law = PublishedForms.from_probabilities(SIZES, shares.tolist(), tables)
    return Mechanism.of(law)


ONE = mechanism((0, 1), (0,), (1, 2), (0, 2), (2,), (0, 1, 2))
_BROAD = broad_forms()
BROAD = Mechanism.of(_BROAD)


def dense(channel: PublishedChannel) -> tuple[np.ndarray, np.ndarray]:
    """The forward map and the inverse as matrices."""
    cells = math.prod(channel.n_categories)
    forward = [
        channel.forward.apply(np.eye(cells)[x].reshape(channel.n_categories)) for x in range(cells)
    ]
    outputs = channel.n_outputs[0]
    inverse = [channel.inverse.apply(np.eye(outputs)[y]).ravel() for y in range(outputs)]
    return np.array(forward).T, np.array(inverse).T


def by_form(
    channel: PublishedChannel, truth: np.ndarray
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """For each group of forms its fraction of the rows, the law of its answers, what they add."""
    forward, inverse = dense(channel)
    start = 0
    for fraction, shape in zip(channel.rows, channel.shapes, strict=True):
        own = slice(start, start + math.prod(shape))
        yield fraction, forward[own] @ truth.ravel() / fraction, inverse[:, own]
        start = own.stop


@pytest.mark.parametrize("names", [("a1",), ("a2", "a1"), ("a1", "a2", "a3")])
def test_the_inverse_is_unbiased_for_every_truth(names: tuple[str, ...]) -> None:
    for fractions in (None, (0.1, 0.2, 0.3, 0.2, 0.1, 0.1)):
        channel = PublishedChannel(ONE, names)
        if fractions is not None:
            own = tuple(sum(fractions[form] for form, _ in group) for group in channel.groups)
            channel = PublishedChannel(ONE, names, own)
        forward, inverse = dense(channel)
        assert np.allclose(forward.sum(axis=0), 1)
        assert (forward > 0).all()
        assert np.allclose(inverse @ forward, np.eye(len(inverse)))


@pytest.mark.parametrize("of", [ONE, BROAD], ids=["categories", "sets"])
@pytest.mark.parametrize("names", [("a2",), ("a1", "a3")])
def test_variances_at_the_uniform_truth_are_the_exact_ones(
    names: tuple[str, ...], of: Mechanism
) -> None:
    channel = PublishedChannel(of, names)
    forward, inverse = dense(channel)
    cells = len(inverse)
    truth = np.full(cells, 1 / cells)
    # Given the forms' rows: within forms, by brute force over all outputs.
    variance = sum(
        f * (left**2 @ law - (left @ law) ** 2) for f, law, left in by_form(channel, truth)
    )
    expected = expected_error(channel, 1, "population")
    assert expected.mean_variance == pytest.approx(variance.mean())
    released = forward @ truth
    assert np.allclose(channel.inverse.squared().apply(released).ravel(), inverse**2 @ released)
    assert np.allclose(channel.inverse.cubed().apply(released).ravel(), inverse**3 @ released)
    moments = np.zeros(cells)
    for fraction, moment in zip(channel.rows, channel.moments, strict=True):
        moments += fraction * moment.apply(truth.reshape(channel.n_categories)).ravel()
    assert np.allclose(moments, inverse**2 @ released)
    weights = np.random.default_rng(1).random(channel.n_categories)
    assert np.allclose(channel.inverse.transposed().apply(weights), inverse.T @ weights.ravel())
    assert np.allclose(
        channel.forward.transposed().apply(inverse[0]).ravel(), forward.T @ inverse[0]
    )


@pytest.mark.parametrize("names", [("a1",), ("a4", "a1"), ("a1", "a2", "a3")])
def test_forms_that_draw_count_as_one_form_for_each_set_that_is_drawn(
    names: tuple[str, ...],
) -> None:
    check_against_every_output(drawing_forms(), names)


@pytest.mark.parametrize("names", [("a1",), ("a3", "a1"), ("a2", "a1")])
def test_answers_that_name_sets_are_estimated_from_without_bias(names: tuple[str, ...]) -> None:
    check_against_every_output(broad_forms(), names)


def check_against_every_output(law: PublishedForms, names: tuple[str, ...]) -> None:
    k = len(law.n_categories)
    whole = Mechanism.of(law)
    channel = PublishedChannel(whole, names)
    forward, inverse = dense(channel)
    assert np.allclose(inverse @ forward, np.eye(len(inverse)))
    # Every output of the law, put where its row is counted, against the forward map.
    places = [whole.schema.names.index(name) for name in names]
    for x, row in brute_force(law).items():
        outputs = list(row)
        codes = {
            i: np.array([law.n_outputs[i] if y[i] is None else y[i] for _, y in outputs])
            for i in range(k)
        }
        codes[k] = np.array([c for c, _ in outputs])
        (cells,) = channel.released_codes(codes)
        counted = np.bincount(cells, [float(p) for p in row.values()], channel.n_outputs[0])
        cell = np.ravel_multi_index([x[i] for i in places], channel.n_categories)
        assert np.allclose(counted, forward[:, cell])
    told = channel.attenuation.ravel() ** 2
    assert np.allclose(told, law.information(places).ravel())


def test_a_row_with_a_set_for_a_category_or_the_other_way_round_is_refused() -> None:
    channel = PublishedChannel(BROAD, ("a1",))
    # The first and the third form answer a1 by a set of two, the second by a category.
    channel.released_codes({0: np.array([4, 3, 11]), 3: np.array([0, 1, 2])})
    for row, code in ((0, 3), (1, 4), (2, 0)):
        codes = np.array([4, 3, 11])
        codes[row] = code
        with pytest.raises(WrongFormError) as raised:
            channel.released_codes({0: codes, 3: np.array([0, 1, 2])})
        assert (raised.value.row, raised.value.name) == (row, "a1")


def test_a_merged_attribute_is_not_answered_by_sets() -> None:
    parts = (Attribute("b", ("x", "y")), Attribute("c", ("x", "y")))
    schema = Schema((Attribute("ab", parts=parts), *BROAD.schema.attributes[1:]))
    with pytest.raises(InputError, match="need one column"):
        Mechanism(schema, BROAD.blocks)


def test_a_row_with_more_than_its_form_draws_is_refused() -> None:
    law = drawing_forms()
    drawing = Mechanism.of(law)
    channel = PublishedChannel(drawing, ("a4", "a1"))
    # The second form asks a2 and one of a1 and a4; the third a1 and a2.
    good = {0: np.array([0, 2, 0]), 3: np.array([2, 1, 2]), 4: np.array([1, 1, 2])}
    channel.released_codes(good)
    for row, name, change in (
        (1, "a1", {0: np.array([0, 1, 0])}),
        (2, "a1", {0: np.array([0, 2, 2])}),
        (2, "a4", {3: np.array([2, 1, 0])}),
    ):
        with pytest.raises(WrongFormError) as error:
            channel.released_codes(good | change)
        assert (error.value.row, error.value.name) == (row, name)


@pytest.mark.slow
def test_the_worst_error_of_a_share_is_that_of_some_truth() -> None:
    channel = PublishedChannel(ONE, ("a2",))
    worst = 0.0
    for share in np.linspace(0, 1, 201):
        truth = np.array([share, (1 - share) / 2, (1 - share) / 2])
        parts = by_form(channel, truth)
        worst = max(
            worst, sum(f * (own[0] ** 2 @ law - (own[0] @ law) ** 2) for f, law, own in parts)
        )
    assert expected_error(channel, 1, "population").worst ** 2 == pytest.approx(worst, rel=1e-3)


def test_forms_that_do_the_same_are_counted_together() -> None:
    assert len(PublishedChannel(ONE, ("a3",)).groups) == 5  # two of the six do not ask it
    twice = mechanism((0,), (1, 2))
    table = twice.forms.forms[0].table  # type: ignore[union-attr]
    assert len(PublishedChannel(twice, ("a1",)).groups) == 2
    assert table.n_categories == (2,)


def test_rows_are_counted_where_their_form_and_answers_stand() -> None:
    channel = PublishedChannel(ONE, ("a1", "a2"))
    asked = [form.asked for form in channel.law.forms]
    form = np.arange(6)
    codes = {
        0: np.array([1 if 0 in a else 2 for a in asked]),
        1: np.array([2 if 1 in a else 3 for a in asked]),
        3: form,
    }
    (cells,) = channel.released_codes(codes)
    counts = np.bincount(cells, minlength=channel.n_outputs[0]).astype(float)
    pieces = list(channel.forward.pieces(counts))
    for group, piece in zip(channel.groups, pieces, strict=True):
        assert piece.sum() == len(group)
    # All of them answered by the last category of what was asked.
    assert all(piece.ravel()[-1] == piece.sum() for piece in pieces)


def test_a_row_that_answers_what_its_form_does_not_ask_is_refused() -> None:
    channel = PublishedChannel(ONE, ("a1", "a2"))
    form = np.array([0, 1])
    for second in (0, 3):  # form 0 asks both attributes, form 1 the first one only
        codes = {0: np.array([0, 0]), 1: np.array([second, second]), 3: form}
        with pytest.raises(WrongFormError) as error:
            channel.released_codes(codes)
        assert (error.value.row, error.value.name) == ((1, "a2") if second == 0 else (0, "a2"))


def test_what_no_form_asks_together_is_refused_by_name() -> None:
    apart = mechanism((0,), (1,), (2,))
    with pytest.raises(InputError, match="no form includes 'a1', 'a3' together"):
        PublishedChannel(apart, ("a1", "a3")).check(1e6)
    with pytest.raises(InputError, match="no row of this release includes 'a3'"):
        PublishedChannel(mechanism((0,), (0, 1)), ("a3",)).check(1e6)
    with pytest.raises(InputError, match="no form includes both 'a1' and 'a2'"):
        predict_covariance(apart, "a1", "a2")
    assert expected_variance(apart).pairs is None


def test_columns_that_are_not_under_forms_have_the_channel_of_any_law() -> None:
    schema = Schema.anonymous((2, 3, 2, 2))
    law = ONE.forms
    assert law is not None
    warner = MatrixChannel((2,), 2, ((3, 1), (1, 3)))
    both = Mechanism(schema, (Block((0, 1, 2), law), Block((3,), warner)))
    assert isinstance(channel_of(both, ["a4"]), Channel)
    with pytest.raises(InputError, match="only one of 'a1' and 'a4' is under forms"):
        predict_covariance(both, "a1", "a4")
    channel = channel_of(both, ["a4", "a1"])
    assert isinstance(channel, PublishedChannel)
    forward, inverse = dense(channel)
    assert np.allclose(inverse @ forward, np.eye(4))


def test_expected_variances_are_those_of_the_information() -> None:
    law = ONE.forms
    assert law is not None
    expected = expected_variance(ONE)
    singles = [expected_error(channel_of(ONE, [f"a{i}"]), 1, "population") for i in (1, 2, 3)]
    assert expected.shares == pytest.approx(np.mean([each.mean_variance for each in singles]))
    pairs = [("a1", "a2"), ("a1", "a3"), ("a2", "a3")]
    both = [expected_error(channel_of(ONE, pair), 1, "population") for pair in pairs]
    assert expected.pairs == pytest.approx(np.mean([each.mean_variance for each in both]))
    told = law.pair_information()
    for i, j in product(range(3), repeat=2):
        if i != j:
            assert told[i, j] == pytest.approx(law.information((i, j))[1, 1])


def counted(
    channel: PublishedChannel, n: tuple[int, ...], outputs: dict[Answer, Fraction]
) -> np.ndarray:
    """What is expected to be counted of one row, over all its outputs."""
    answers = list(zip(*(y for _, y in outputs), strict=True))
    codes = {i: np.array([a if v is None else v for v in answers[i]]) for i, a in enumerate(n)}
    codes[len(n)] = np.array([form for form, _ in outputs])
    (cells,) = channel.released_codes(codes)
    return np.bincount(cells, [float(p) for p in outputs.values()], channel.n_outputs[0])


@pytest.mark.parametrize("draws", [False, True])
def test_counts_are_regrouped_as_rows_would_be_counted(draws: bool) -> None:
    law = drawing_forms() if draws else ONE.forms
    assert law is not None
    whole = Mechanism.of(law)
    names = whole.schema.names
    fewer = 0
    for wide, narrow in (((1, 0), (0,)), ((2, 1, 0), (1, 0)), ((2, 0, 1), (1,))):
        both = PublishedChannel(whole, tuple(names[i] for i in wide))
        alone = PublishedChannel(whole, tuple(names[i] for i in narrow))
        margin = both.margin(len(narrow))
        fewer += len(alone.groups) < len(both.groups)
        for x, outputs in brute_force(law).items():
            of_both = counted(both, law.n_categories, outputs)
            of_alone = counted(alone, law.n_categories, outputs)
            assert np.allclose(both.regrouped(of_both, alone), of_alone)
            truth = np.zeros(alone.n_categories)
            truth[tuple(x[i] for i in narrow)] = 1.0
            assert np.allclose(both.regrouped(of_both, margin), margin.forward.apply(truth))
    assert fewer  # or nothing was put together


def test_what_is_left_of_a_covariance_is_told_of_the_rows_that_are_asked_both() -> None:
    law = drawing_forms()
    for mechanism, of_law in ((ONE, ONE.forms), (Mechanism.of(law), law)):
        assert of_law is not None
        found = predict_covariance(mechanism, "a1", "a2")
        n = mechanism.schema.n_categories
        asked, left, added = 0.0, [], []
        by_form: dict[int, dict[tuple[int, int, int, int], float]] = {}
        for x, row in brute_force(of_law).items():
            for (c, y), p in row.items():
                if y[0] is None or y[1] is None:
                    continue
                cell = (x[0], x[1], y[0], y[1])
                of_form = by_form.setdefault(c, {})
                of_form[cell] = of_form.get(cell, 0.0) + float(p) * n[0] * n[1] / math.prod(n)
        for cells in by_form.values():
            share = sum(cells.values()) / n[0] / n[1]
            asked += share
            # Indicators of the first category, under independent and under equal true values.
            means = np.zeros((n[0], n[1], 2))
            both = np.zeros((n[0], n[1]))
            for (i, j, y, z), p in cells.items():
                means[i, j] += np.array([y == 0, z == 0]) * p / share
                both[i, j] += (y == 0 and z == 0) * p / share
            main = [
                ((np.arange(n[axis]) == 0) - 1 / n[axis]).reshape([-1, 1] if axis == 0 else [1, -1])
                for axis in (0, 1)
            ]
            joint = main[0] * main[1]
            phi = float((both * joint).sum() / (joint**2).sum())
            singles = [
                float((means[:, :, axis] * main[axis]).sum() / (main[axis] ** 2).sum())
                / n[1 - axis]
                for axis in (0, 1)
            ]
            left.append(phi)
            added.append(phi - singles[0] * singles[1])
        assert found.asked == pytest.approx(asked)
        assert (found.least_share, found.most_share) == pytest.approx(
            (min(map(abs, left)), max(map(abs, left)))
        )
        assert found.spurious == pytest.approx(max(added, key=abs))
        assert "randomized together" in found.warning


@pytest.mark.parametrize("names", [("a1",), ("a2", "a3")])
def test_a_channel_is_made_once_and_counted_rows_change_its_fractions_alone(
    names: tuple[str, ...],
) -> None:
    channel = channel_of(ONE, names)
    assert channel_of(ONE, names) is channel
    assert isinstance(channel, PublishedChannel)
    random = np.random.default_rng(4)
    for _ in range(2):
        counts = random.integers(1, 50, channel.n_outputs).astype(float)
        counted = channel_of(ONE, names, counts)
        assert isinstance(counted, PublishedChannel)
        pieces = np.split(counts, np.cumsum([math.prod(shape) for shape in channel.shapes])[:-1])
        fractions = tuple(piece.sum() / counts.sum() for piece in pieces)
        afresh = PublishedChannel(ONE, names, fractions)
        assert counted.rows == pytest.approx(fractions)
        frequencies = counts / counts.sum()
        np.testing.assert_allclose(
            counted.inverse.apply(frequencies), afresh.inverse.apply(frequencies), atol=1e-14
        )
        np.testing.assert_allclose(counted.attenuation, afresh.attenuation, atol=1e-14)
