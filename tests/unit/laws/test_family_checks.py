"""A law that is not one cannot be built, nor read back from an edited record."""

import math
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import (
    FAMILIES,
    Identity,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    SingleChangeMixture,
    joint_of_attenuation,
    joint_of_epsilon,
    law_from_plain,
)
from deniable.laws.count_table import CountTable

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


@pytest.mark.parametrize("bits", [None, 0, -1, True, 4.0, "4", (1 << 24) + 1])
@pytest.mark.parametrize("plain", [PRODUCT, TABLE, MIXTURE])
def test_an_edited_width_is_refused(plain: dict[str, Any], bits: object) -> None:
    with pytest.raises(InputError, match=r"the family '[a-z-]+': Expected `int`.*\$\.bits"):
        law_from_plain({**plain, "bits": bits}, (2, 3))


@pytest.mark.parametrize(
    ("plain", "key"), [(PRODUCT, "keep_weights"), (TABLE, "weights"), (MIXTURE, "change_weights")]
)
def test_edited_weights_are_refused(plain: dict[str, Any], key: str) -> None:
    right = plain[key]
    for wrong in (right[:-1], [*right, "1"]):
        with pytest.raises(InputError, match=f"{key} should be a list of {len(right)} numbers"):
            law_from_plain({**plain, key: wrong}, (2, 3))
    for value in (None, "".join(right), {}):
        with pytest.raises(InputError, match="Expected `array`"):
            law_from_plain({**plain, key: value}, (2, 3))
    for entry in (None, 3, 1.5, ["1"]):
        with pytest.raises(InputError, match="Expected `str`"):
            law_from_plain({**plain, key: [entry, *right[1:]]}, (2, 3))
    for entry in ("g", "", "0x1", "١", "f" * 70_000):
        with pytest.raises(InputError, match=f"family '{plain['family']}': Expected `str`"):
            law_from_plain({**plain, key: [entry, *right[1:]]}, (2, 3))
    with pytest.raises(InputError):
        law_from_plain({**plain, key: ["-1", *right[1:]]}, (2, 3))
    for one in ("uniform_weight", "unchanged_weight"):
        for entry in (None, 3, "x"):
            with pytest.raises(InputError, match="Expected `str`"):
                law_from_plain({**MIXTURE, one: entry}, (2, 3))
    with pytest.raises(InputError, match="at most 20 attributes"):  # before they are counted
        law_from_plain({**TABLE, "weights": []}, (2,) * 64)


def test_laws_are_equal_if_their_integers_are_and_cannot_be_changed() -> None:
    law = ProductLaw((2,), 4, (12,))
    assert law == ProductLaw((2,), 4, (12,))
    assert law != ProductLaw((2,), 5, (24,))
    with pytest.raises(AttributeError):
        law.bits = 5  # type: ignore[misc]
    assert Identity((2,)) == Identity((2,))


@pytest.mark.parametrize("plain", [PRODUCT, TABLE, MIXTURE, MATRIX, {"family": "identity"}])
def test_a_field_that_no_law_of_the_family_has_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="unknown field `note`"):
        law_from_plain({**plain, "note": "kept twice as often"}, (2, 3))
    for key in plain.keys() - {"family"}:
        with pytest.raises(InputError, match=f"missing required field `{key}`"):
            law_from_plain({k: v for k, v in plain.items() if k != key}, (2, 3))


@pytest.mark.parametrize(
    ("family", "numbers", "problem"),
    [
        (ProductLaw, ((2,), 4, (0,)), "a keep probability of 0 or 1"),
        (ProductLaw, ((2,), 4, (16,)), "a keep probability of 0 or 1"),
        (ProductLaw, ((2,), 4, (-1,)), "a keep probability of 0 or 1"),
        (ProductLaw, ((2, 3), 4, (17, 4)), "a keep probability of 0 or 1"),
        (ProductLaw, ((2, 3), 4, (4, 0)), "a keep probability of 0 or 1"),
        (ProductLaw, ((2, 3), 4, (4,)), "a keep weight for each"),
        (ProductLaw, ((2,), 4, (4, 4)), "a keep weight for each"),
        (ProductLaw, ((), 4, ()), "a product law needs an attribute"),
        (SingleChangeMixture, ((2, 3), 4, 0, 10, (3, 3)), "record needs a weight above 0"),
        (SingleChangeMixture, ((2, 3), 4, -1, 11, (3, 3)), "record needs a weight above 0"),
        (SingleChangeMixture, ((2, 3), 4, 14, -2, (2, 2)), "is negative"),
        (SingleChangeMixture, ((2, 3), 4, 14, 2, (2, -2)), "is negative"),
        (SingleChangeMixture, ((2, 3), 4, 8, 4, (2, 1)), "must add up to 2"),
        (SingleChangeMixture, ((2, 3), 4, 8, 4, (2, 3)), "must add up to 2"),
        (SingleChangeMixture, ((2, 3), 4, 8, 4, (4,)), "a change weight for each"),
        (SingleChangeMixture, ((), 4, 8, 8, ()), "needs at least one attribute"),
        (PatternTable, ((2,), 4, (16, 0)), "a pattern of probability 0"),
        (PatternTable, ((2,), 4, (17, -1)), "a pattern of probability 0"),
        (PatternTable, ((2,), 4, (8, 7)), "must add up to 2"),
        (PatternTable, ((2,), 4, (8, 9)), "must add up to 2"),
        (PatternTable, ((2, 3), 4, (8, 8)), "over 2 attributes needs 4 weights"),
        (PatternTable, ((2,), 4, (4, 4, 4, 4)), "over 1 attributes needs 2 weights"),
        (PatternTable, ((2,) * 21, 4, (1,)), "at most 20 attributes"),
        (CountTable, ((3, 3), (1, 1), (1, 1)), "one density per score"),
        (CountTable, ((3, 2), (1, 1), (1, 1, 1)), "equally many categories"),
        (CountTable, ((3, 3), (1, 1), (0, 1, 2)), "positive densities"),
        (CountTable, ((3, 3), (1, 1), (1, 1, 1)), "add up"),
        (MatrixChannel, ((2, 2), 2, ((3, 1), (1, 3))), "the law of one attribute"),
        (MatrixChannel, ((2,), 2, ((3, 1), (1,))), "every row of the response matrix needs 2"),
        (MatrixChannel, ((2,), 2, ((5, 1), (-1, 3))), "no negative entries"),
        (MatrixChannel, ((2,), 2, ((3, 1), (1, 2))), "column 2 .* does not add up"),
        (MatrixChannel, ((2,), 2, ((4, 1), (1, 3))), "column 1 .* does not add up"),
        (MatrixChannel, ((2,), 2, ((2, 2), (2, 2))), "singular"),
        (MatrixChannel, ((3,), 2, ((3, 1, 2), (1, 3, 2))), "singular"),  # too few answers
        *((joint_of_epsilon, ((2, 2), bad), ".") for bad in (0.0, -1.0, math.inf, math.nan)),
        *((joint_of_attenuation, ((2, 2), bad), ".") for bad in (0.0, 1.0, -0.5, math.nan)),
        (joint_of_epsilon, ((5,) * 100_000, 1.0), "kronecker"),  # before any work
        *(
            (PatternTable.from_probabilities, ((2, 2), np.array([[0.5, 0.2], [0.3, bad]])), "every")
            for bad in (0.0, -0.1, np.nan, np.inf)
        ),
        (
            PatternTable.from_probabilities,  # one is lost when they are normalised
            ((2, 2), np.array([[1e308, 1.0], [5e-324, 1.0]])),
            "probability 0",
        ),
    ],
)
def test_numbers_that_make_no_law_of_a_family_are_refused(
    family: type[Law], numbers: tuple[Any, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        family(*numbers)
