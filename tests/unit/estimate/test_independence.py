"""Tests of independence of attributes of a mechanism: its channel, its rows, what is refused."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

import deniable
from deniable.errors import InputError
from deniable.estimate.chi_square import released_chi_square
from deniable.estimate.independence import IndependenceTest, independence
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import Identity, ProductLaw, joint_of_attenuation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.schema import Attribute, Schema
from marked import slow_after
from unit.dense import MECHANISMS, NAMES, anonymous, random_matrix
from unit.mechanism import merged


def joint() -> Mechanism:
    return anonymous((3, 4, 2), Block((1, 0, 2), joint_of_attenuation((4, 3, 2), 0.5)))


def half_kept() -> Mechanism:
    law = ProductLaw.from_levels((3,), (1.5,))
    return anonymous((3, 4), Block((0,), law), Block((1,), Identity((4,))), keep=(1,))


def expected_counts(mechanism: Mechanism, dependence: float, n: int) -> Counts:
    channel = Channel(mechanism, ("a1", "a2"))
    a, b = channel.n_categories
    table = np.outer(np.arange(1, a + 1), np.arange(b, 0, -1)).astype(float)
    table /= table.sum()
    table[:2, :2] += dependence * np.array([[1, -1], [-1, 1]]) * table[:2, :2].min()
    return Counts.of(mechanism, np.round(n * channel.forward.apply(table)))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_every_kind_of_law_tells_independence_from_dependence(mechanism: Mechanism) -> None:
    # Counts at their expectation: nothing but rounding is left of X² under independence.
    apart = independence(expected_counts(mechanism, 0.0, 10**7), ("a1", "a2"))
    a, b = Channel(mechanism, ("a1", "a2")).n_categories
    assert apart.test.degrees_of_freedom == (a - 1) * (b - 1)
    assert apart.test.statistic < 0.01
    assert apart.p_value > 0.99 or apart.test.degrees_of_freedom == 1
    together = independence(expected_counts(mechanism, 0.5, 10**7), ("a1", "a2"))
    assert together.test.p_value < 1e-6
    strengths = [found.cramers_v for found in (apart, together)]
    assert all(strength is not None for strength in strengths)
    assert strengths[0].value < 0.01 < strengths[1].value  # type: ignore[union-attr]


def test_the_released_table_by_itself_rejects_under_a_joint_law_and_is_reported() -> None:
    found = independence(expected_counts(joint(), 0.0, 50_000), ("a1", "a2"))
    assert found.together
    assert found.released is not None
    assert found.released.p_value < 1e-6
    assert found.test.p_value > 0.5
    assert found.to_plain()["released"]["p_value"] == found.released.p_value


def test_a_kept_attribute_without_rows_in_a_category_loses_that_category() -> None:
    counts = np.array([[90.0, 40, 0, 31], [30, 55, 0, 22], [25, 28, 0, 60]])
    found = independence(Counts.of(half_kept(), counts), ("a1", "a2"))
    reference = chi2_contingency(counts[:, [0, 1, 3]], correction=False)
    assert found.test.degrees_of_freedom == reference.dof
    assert found.test.statistic == pytest.approx(reference.statistic, rel=1e-9)
    assert found.cramers_v is not None
    assert not found.together


def test_a_kept_column_that_is_not_declared_can_be_the_second() -> None:
    law = ProductLaw.from_levels((3,), (1.5,))
    mechanism = Mechanism.of(law)
    declared = half_kept()
    counts = np.array([[90.0, 40, 12, 31], [30, 55, 9, 22], [25, 28, 10, 60]])
    tabulation = Tabulation.from_counts(counts)
    one = independence(Counts.of(declared, tabulation), ("a1", "a2"))
    other = independence(
        Counts.of(mechanism, tabulation), ("a1", "town"), kept_values=("n", "e", "s", "w")
    )
    assert other.test == one.test
    assert other.cramers_v == one.cramers_v


def test_a_category_that_may_not_exist_takes_v_but_not_the_test() -> None:
    counts = np.array([[500.0, 300, 200, 100], [400, 350, 210, 90], [230, 150, 110, 60]])
    mechanism = Mechanism.of(joint_of_attenuation((3, 4), 0.3))
    found = independence(Counts.of(mechanism, counts), ("a1", "a2"))
    assert found.cramers_v is None
    assert "is not clearly above zero" in found.without_v
    assert 0 < found.test.p_value < 1
    assert found.to_plain()["cramers_v"] is None


def test_few_expected_rows_are_said() -> None:
    counts = np.array([[5.0, 2, 2, 1], [1, 3, 2, 1], [2, 1, 1, 3]])
    assert independence(Counts.of(half_kept(), counts), ("a1", "a2")).few_expected
    many = Tabulation.from_counts(100 * counts)
    assert not independence(Counts.of(half_kept(), many), ("a1", "a2")).few_expected


def test_a_matrix_with_more_outputs_tests_with_the_degrees_of_the_categories() -> None:
    mechanism = anonymous(
        (3, 2),
        Block((0,), random_matrix(3, 5, 6)),
        Block((1,), ProductLaw.from_levels((2,), (1.0,))),
    )
    counts = np.random.default_rng(3).integers(40, 90, (5, 2)).astype(float)
    found = independence(Counts.of(mechanism, counts), ("a1", "a2"))
    assert found.test.degrees_of_freedom == 2
    assert found.released is not None
    assert found.released.degrees_of_freedom == 4


PAIRS = [("p", "q"), ("q", "p"), ("p", "a"), ("b", "q"), ("p+q", "a")]


@pytest.mark.parametrize("pair", PAIRS, ids=",".join)
@pytest.mark.parametrize("name", slow_after(5, merged.MECHANISMS))
def test_parts_of_a_merged_attribute_are_tested_by_themselves(
    name: str, pair: tuple[str, str]
) -> None:
    mechanism = merged.MECHANISMS[name]
    n, cells = 10**7, int(np.prod(mechanism.schema.n_categories))

    def tested(truth: NDArray[np.float64]) -> IndependenceTest:
        released = merged.dense(mechanism) @ truth
        counts = merged.counted(mechanism, pair, n * released / released.sum())
        return independence(Counts.of(mechanism, Tabulation(counts, None, n)), pair)

    table = merged.sums(mechanism, pair)
    independent = np.ones(cells) / cells
    assert tested(independent).test.statistic < 1e-3
    tilted = independent * (1 + 0.5 * (table[0] - table[0].mean()))
    found = tested(tilted)
    a, b = (len(mechanism.schema.variables([each])[0].attribute.categories) for each in pair)
    assert found.test.degrees_of_freedom == (a - 1) * (b - 1)
    assert found.test.p_value < 1e-6
    joint = table @ tilted / tilted.sum()
    product = np.outer(joint.reshape(a, b).sum(axis=1), joint.reshape(a, b).sum(axis=0))
    square = float(((joint.reshape(a, b) - product) ** 2 / product).sum() / (min(a, b) - 1))
    assert found.cramers_v is not None
    assert found.cramers_v.square == pytest.approx(square, abs=5 * found.cramers_v.standard_error)


def test_a_part_may_go_with_what_its_other_parts_go_with() -> None:
    # p and a are independent; q is not independent of a. What is released of p+q and a depends on
    # each other, and the test of p and a is not misled by it.
    mechanism = merged.MECHANISMS["more answers at 0"]
    random = np.random.default_rng(8)
    p, a, b = np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.3])
    q = random.dirichlet(np.ones(3), size=(2, 3))  # given p and a
    truth = np.einsum("i,k,l,ikj->ijkl", p, a, b, q).ravel()
    n = 10**6
    released = merged.dense(mechanism) @ truth
    counts = merged.counted(mechanism, ("p", "a"), n * released / released.sum())
    found = independence(Counts.of(mechanism, Tabulation(counts, None, n)), ("p", "a"))
    assert released_chi_square(counts).p_value < 1e-9
    assert found.test.statistic < 1e-3
    assert found.together
    assert found.released is None
    assert found.to_plain()["released"] is None


def test_what_cannot_be_tested_is_refused() -> None:
    counts = np.full((3, 4), 50.0)
    tabulation = Tabulation.from_counts(counts)
    with pytest.raises(InputError, match="name both of them"):
        independence(Counts.of(half_kept(), tabulation), ("a1",))
    with pytest.raises(InputError, match="shape"):
        independence(Counts.of(half_kept(), tabulation), ("a2", "a1"))
    one = np.zeros((3, 4))
    one[1] = 9
    with pytest.raises(InputError, match="all rows have the same released value of 'a1'"):
        independence(Counts.of(half_kept(), one), ("a1", "a2"))
    wide = Mechanism.of(ProductLaw.from_levels((3, 2000), (5.0, 9.0)))
    with pytest.raises(InputError, match="6000 cells"):
        independence(Counts.of(wide, np.full((3, 2000), 50.0)), ("a1", "a2"))
    faint = Mechanism.of(joint_of_attenuation((3, 4), 1e-6))
    with pytest.raises(InputError, match="cannot be estimated"):
        independence(Counts.of(faint, tabulation), ("a1", "a2"))


def test_under_forms_a_kept_column_is_tested_alike_whether_or_not_it_is_declared() -> None:
    random = np.random.default_rng(4)
    law = (
        deniable.design(Schema.anonymous((3, 2)), epsilon=3, method="forms").mechanism.blocks[0].law
    )
    declared = anonymous((3, 2, 4), Block((0, 1), law), Block((2,), Identity((4,))), keep=(2,))
    bare = Mechanism.of(law)
    outputs = PublishedChannel(declared, ("a1", "a3")).n_outputs[0] // 4
    table = random.integers(200, 400, (outputs, 4)).astype(float)
    one = independence(Counts.of(declared, table.ravel()), ("a1", "a3"))
    values = ("n", "e", "s", "w")
    other = independence(Counts.of(bare, table), ("a1", "town"), kept_values=values)
    assert other.test.statistic == pytest.approx(one.test.statistic)
    assert one.cramers_v is not None
    assert other.cramers_v is not None
    assert other.cramers_v.square == pytest.approx(one.cramers_v.square)
    assert other.cramers_v.floor == pytest.approx(one.cramers_v.floor)


@pytest.mark.parametrize("method", ["balanced", "optimal", "forms"])
@pytest.mark.parametrize("dependence", [0.0, 0.03])
def test_among_those_who_answered_only_their_table_counts(method: str, dependence: float) -> None:
    first = Attribute("a", ("p", "q", "NA", "r"), missing="NA")
    second = Attribute("b", ("f", "m", "?"), missing="?")
    schema = Schema((first, second, Attribute("c", ("0", "1"))))
    mechanism = deniable.design(schema, epsilon=6, method=method).mechanism  # type: ignore[arg-type]
    inner = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    inner[:2] += dependence * np.array([[1, -1], [-1, 1]])
    table = np.zeros((4, 3))
    table[np.ix_([0, 1, 3], [0, 1])] = 0.8 * inner
    table[2, 2] = 0.2  # who does not answer the one does not answer the other
    forward = channel_of(mechanism, ("a", "b")).forward
    counts = Counts.of(mechanism, np.round(1e7 * forward.apply(table)))
    test = independence(counts, ("a", "b"), answered=True)
    assert test.test.degrees_of_freedom == 2
    assert (test.p_value > 0.9) == (dependence == 0)
    product = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    assert test.cramers_v is not None
    v_square = ((inner - product) ** 2 / product).sum()
    assert test.cramers_v.square == pytest.approx(v_square, abs=1e-3)
    assert independence(counts, ("a", "b")).p_value < 1e-6
