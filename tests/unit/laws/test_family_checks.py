"""A law that is not one cannot be built, nor read back from an edited record."""

from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import (
    FAMILIES,
    Identity,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    SingleChangeMixture,
    law_from_plain,
)
from deniable.laws.law import UNBOUNDED

PRODUCT = {"family": "product", "bits": 4, "keep_weights": ["c", "a"]}
TABLE = {"family": "pattern-table", "bits": 4, "weights": ["a", "2", "2", "2"]}
MIXTURE = {
    "family": "single-change-mixture",
    "bits": 4,
    "uniform_weight": "8",
    "unchanged_weight": "5",
    "change_weights": ["1", "2"],
}
MATRIX = {"family": "matrix", "bits": 2, "weights": [["3", "1"], ["1", "3"]]}


def test_every_family_is_listed_under_the_name_it_writes() -> None:
    examples = [
        law_from_plain(PRODUCT, (2, 3)),
        law_from_plain(TABLE, (2, 3)),
        law_from_plain(MIXTURE, (2, 3)),
        law_from_plain(MATRIX, (2,)),
        law_from_plain({"family": "identity"}, (2, 3)),
    ]
    assert {type(law) for law in examples} <= set(FAMILIES.values())
    for law in examples:
        assert FAMILIES[law.to_plain()["family"]] is type(law)


@pytest.mark.parametrize("family", ["", "Product", None, 3, "vote"])
def test_an_unknown_family_is_refused(family: object) -> None:
    with pytest.raises(InputError, match="does not know"):
        law_from_plain({"family": family}, (2,))


@pytest.mark.parametrize(
    ("sizes", "weights", "problem"),
    [
        ((2,), (0,), "a keep probability of 0 or 1"),
        ((2,), (16,), "a keep probability of 0 or 1"),
        ((2,), (-1,), "a keep probability of 0 or 1"),
        ((2, 3), (17, 4), "a keep probability of 0 or 1"),
        ((2, 3), (4, 0), "a keep probability of 0 or 1"),
        ((2, 3), (4,), "a keep weight for each"),
        ((2,), (4, 4), "a keep weight for each"),
        ((), (), "a product law needs an attribute"),
    ],
)
def test_a_product_law_with_wrong_weights_is_refused(
    sizes: tuple[int, ...], weights: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        ProductLaw(sizes, 4, weights)


@pytest.mark.parametrize("weight", [1, 15])
def test_a_product_law_accepts_the_extreme_weights_that_are_not_certain(weight: int) -> None:
    assert ProductLaw((2,), 4, (weight,)).keep_probabilities() == [weight / 16]


@pytest.mark.parametrize(
    ("sizes", "weights", "problem"),
    [
        ((2,), (16, 0), "a pattern of probability 0"),
        ((2,), (17, -1), "a pattern of probability 0"),
        ((2,), (8, 7), "must add up to 2"),
        ((2,), (8, 9), "must add up to 2"),
        ((2, 3), (8, 8), "over 2 attributes needs 4 weights"),
        ((2,), (4, 4, 4, 4), "over 1 attributes needs 2 weights"),
        ((2,) * 21, (1,), "at most 20 attributes"),
    ],
)
def test_a_pattern_table_with_wrong_weights_is_refused(
    sizes: tuple[int, ...], weights: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        PatternTable(sizes, 4, weights)


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf])
def test_a_pattern_table_needs_a_positive_finite_probability_everywhere(bad: float) -> None:
    with pytest.raises(InputError, match="every pattern needs a positive probability"):
        PatternTable.from_probabilities((2, 2), np.array([[0.5, 0.2], [0.3, bad]]))


def test_a_probability_that_is_lost_when_they_are_normalised_is_refused() -> None:
    with pytest.raises(InputError, match="probability 0"):
        PatternTable.from_probabilities((2, 2), np.array([[1e308, 1.0], [5e-324, 1.0]]))


@pytest.mark.parametrize(
    ("sizes", "uniform", "unchanged", "changes", "problem"),
    [
        ((2, 3), 0, 10, (3, 3), "the uniform record needs a weight above 0"),
        ((2, 3), -1, 11, (3, 3), "the uniform record needs a weight above 0"),
        ((2, 3), 14, -2, (2, 2), "is negative"),
        ((2, 3), 14, 2, (2, -2), "is negative"),
        ((2, 3), 8, 4, (2, 1), "must add up to 2"),
        ((2, 3), 8, 4, (2, 3), "must add up to 2"),
        ((2, 3), 8, 4, (4,), "a change weight for each"),
        ((), 8, 8, (), "needs at least one attribute"),
    ],
)
def test_a_single_change_mixture_with_wrong_weights_is_refused(
    sizes: tuple[int, ...], uniform: int, unchanged: int, changes: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        SingleChangeMixture(sizes, 4, uniform, unchanged, changes)


@pytest.mark.parametrize(
    ("sizes", "rows", "problem"),
    [
        ((2, 2), ((3, 1), (1, 3)), "the law of one attribute"),
        ((2,), ((3, 1), (1,)), "every row of the response matrix needs 2 entries"),
        ((2,), ((5, 1), (-1, 3)), "no negative entries"),
        ((2,), ((3, 1), (1, 2)), "column 2 of the response matrix does not add up"),
        ((2,), ((4, 1), (1, 3)), "column 1 of the response matrix does not add up"),
        ((2,), ((2, 2), (2, 2)), "singular"),
        ((3,), ((3, 1, 2), (1, 3, 2)), "singular"),  # fewer answers than categories
    ],
)
def test_a_wrong_response_matrix_is_refused(
    sizes: tuple[int, ...], rows: tuple[tuple[int, ...], ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        MatrixChannel(sizes, 2, rows)


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        ([[0.5, 0.1], [0.4, 0.9]], "column 1 of the response matrix adds up to 0.9, not 1"),
        ([[0.5, 0.1], [0.5, 1.0]], "column 2 of the response matrix adds up to 1.1, not 1"),
        ([[1.1, 0.1], [-0.1, 0.9]], "not negative"),
        ([[np.nan, 0.1], [0.5, 0.9]], "finite"),
        ([0.5, 0.5], "finite"),
        ([[0.5, 0.5], [0.5, 0.5]], "singular"),
    ],
)
def test_probabilities_that_make_no_response_matrix_are_refused(matrix: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        MatrixChannel.from_probabilities(np.array(matrix))


def test_a_response_matrix_keeps_its_entries_and_its_zeros() -> None:
    matrix = np.array([[0.9, 1e-30, 0.0], [0.1, 0.7, 0.2], [0.0, 0.3 - 1e-30, 0.8]])
    law = MatrixChannel.from_probabilities(matrix)
    np.testing.assert_allclose(law.matrix(), matrix, rtol=1e-15)
    assert law.weights[0][2] == law.weights[2][0] == 0
    assert law.attribute_levels() == [UNBOUNDED]


@pytest.mark.parametrize("bits", [None, 0, -1, True, 4.0, "4", (1 << 24) + 1])
@pytest.mark.parametrize("plain", [PRODUCT, TABLE, MIXTURE])
def test_an_edited_width_is_refused(plain: dict[str, Any], bits: object) -> None:
    with pytest.raises(InputError, match="'bits' should be a whole number of bits"):
        law_from_plain({**plain, "bits": bits}, (2, 3))


@pytest.mark.parametrize(
    ("plain", "key"), [(PRODUCT, "keep_weights"), (TABLE, "weights"), (MIXTURE, "change_weights")]
)
def test_edited_weights_are_refused(plain: dict[str, Any], key: str) -> None:
    right = plain[key]
    for wrong in (None, right[:-1], [*right, "1"], "".join(right), {}):
        with pytest.raises(InputError, match=f"{key} should be a list of {len(right)} numbers"):
            law_from_plain({**plain, key: wrong}, (2, 3))
    for entry in (None, 3, 1.5, "g", "", ["1"]):
        with pytest.raises(InputError, match="not hexadecimal"):
            law_from_plain({**plain, key: [entry, *right[1:]]}, (2, 3))
    with pytest.raises(InputError):
        law_from_plain({**plain, key: ["-1", *right[1:]]}, (2, 3))


def test_an_edited_mixture_is_refused() -> None:
    for key in ("uniform_weight", "unchanged_weight"):
        for entry in (None, 3, "x"):
            with pytest.raises(InputError, match="not hexadecimal"):
                law_from_plain({**MIXTURE, key: entry}, (2, 3))


def test_an_edited_response_matrix_is_refused() -> None:
    for rows in (None, [], "31", [["3", "1"], ["1"]], [["3", "1"], "13"]):
        with pytest.raises(InputError):
            law_from_plain({**MATRIX, "weights": rows}, (2,))
    with pytest.raises(InputError, match="for one attribute"):
        law_from_plain(MATRIX, (2, 2))


def test_a_pattern_table_of_too_many_attributes_is_refused_before_it_is_counted() -> None:
    with pytest.raises(InputError, match="at most 20 attributes"):
        law_from_plain({**TABLE, "weights": []}, (2,) * 64)


def test_laws_are_equal_if_their_integers_are_and_cannot_be_changed() -> None:
    law = ProductLaw((2,), 4, (12,))
    assert law == ProductLaw((2,), 4, (12,))
    assert law != ProductLaw((2,), 5, (24,))
    with pytest.raises(AttributeError):
        law.bits = 5  # type: ignore[misc]
    assert Identity((2,)) == Identity((2,))


def test_an_output_that_nothing_leads_to_does_not_spoil_the_inverse() -> None:
    # Failed before: its weight was 0/0.
    law = MatrixChannel((2,), 5, ((32, 0), (0, 32), (0, 0)))
    np.testing.assert_allclose(law.left_inverse() @ law.matrix(), np.eye(2))
