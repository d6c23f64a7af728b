"""Numbers of laws as text: what is one, and what is none."""

from typing import Any

import msgspec
import pytest

from deniable.laws import FAMILIES
from deniable.laws.plain import MOST_BITS, Bits, Count, Decimal, HexDouble, HexInteger


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Bits, [1, MOST_BITS]),
        (HexInteger, ["0", "ff", "f" * (MOST_BITS // 4)]),
        (HexDouble, [value.hex() for value in (0.0, 1.0, 0.1, 5e-324, 1.7e308, -2.5)]),
        (Decimal, ["0.1", "1e-09", "3"]),
        (Count, [0, 2**53 - 1]),
    ],
)
def test_numbers_as_they_are_written_are_read(kind: Any, values: list[Any]) -> None:
    assert [msgspec.convert(value, kind) for value in values] == values


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Bits, [0, -1, MOST_BITS + 1, 10**30, True, 2.0, "3", None]),
        (HexInteger, ["", "-1", "0x1", "F", "1 ", "1\n", "١", "f" * MOST_BITS, 1, None]),
        (HexDouble, ["inf", "nan", "1.0", "0x1p", "0x1.p+99999", "0x1p+0 ", "", 1.0]),
        (Decimal, ["", "nan", "inf", "0x1", " 1", 0.1]),
        (Count, [-1, 2**53, 1.0, "1"]),
    ],
)
def test_anything_else_is_refused(kind: Any, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


def test_the_tag_of_every_familys_record_is_its_name() -> None:
    tags = {name: law.Plain.__struct_config__.tag for name, law in FAMILIES.items()}
    assert tags == {name: name for name in FAMILIES}
