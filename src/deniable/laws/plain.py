"""The numbers of a law as plain values: integers and doubles as text, so that none is ever rounded.

A structure of every family (``Law.Plain``) defines its record's fields, their types and sizes.
Reading converts a record to it first, which refuses missing, unknown or wrongly typed or sized
fields before a law is built. The published JSON Schemas are made from the same structures.
"""

from typing import Annotated

import msgspec

MOST_BITS = 1 << 18
"""The largest width of weights, in bits: e^ε at 640 nats takes 924 of them, the weight of one
of 2^65536 records (`joint.MAX_RECORD_BITS`) 65,536."""

Bits = Annotated[int, msgspec.Meta(ge=1, le=MOST_BITS)]
"""Width of integer weights: they add up to 2 to this power."""

HexInteger = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[0-9a-f]+$(?!\n)",  # $ alone lets a line feed pass
        max_length=MOST_BITS // 4 + 1,
        description="an integer",
    ),
]
"""An integer, not negative, in hexadecimal digits."""

HexDouble = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^-?0x[01]\.?[0-9a-f]{0,13}p[+-][0-9]{1,4}$(?!\n)",
        max_length=32,
        description="a double, exactly, as C writes it with %a",
    ),
]
"""A floating-point number as ``float.hex`` writes it."""

Decimal = Annotated[str, msgspec.Meta(pattern=r"^[0-9.e+-]+$(?!\n)", max_length=32)]
"""A floating-point number in the shortest decimal digits that read back as the same double."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""A number of items."""


class PlainLaw(msgspec.Struct, forbid_unknown_fields=True, tag_field="family"):
    """The record of a law: its family, and the fields that a subclass adds."""
