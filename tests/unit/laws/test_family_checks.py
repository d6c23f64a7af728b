"""A law that is not one cannot be built, nor read back from an edited record."""

from typing import Any

import pytest

from deniable.errors import InputError
from deniable.laws import (
    FAMILIES,
    Identity,
    ProductLaw,
    law_from_plain,
)

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
