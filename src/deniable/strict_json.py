"""The only reader of JSON: strict, without repeated keys; and types of numbers in records."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, overload

import msgspec

_T = TypeVar("_T")

Level = Annotated[float, msgspec.Meta(ge=0)] | None
"""In nats; null if unbounded."""

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)] | None
Software = Annotated[str, msgspec.Meta(pattern=r"^deniable [0-9A-Za-z.+-]{1,40}$(?!\n)")]
Rows = Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]


@overload
def from_json(content: bytes | str) -> Any: ...
@overload
def from_json(content: bytes | str, kind: type[_T]) -> _T: ...
@overload
def from_json(content: bytes | str, kind: Any) -> Any: ...
def from_json(content: bytes | str, kind: Any = Any) -> Any:
    """Return the values of a JSON text, as a type known to msgspec.

    Programs take the first or the last value of a repeated key, so two of them could read different
    records.
    """
    values = msgspec.json.decode(content, type=kind)
    text = content if isinstance(content, str) else content.decode()
    if "{" in text:  # builds no values: only the keys are checked
        json.loads(text, object_pairs_hook=_refuse_twice, parse_int=str, parse_float=str)
    return values


def _refuse_twice(pairs: Sequence[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise msgspec.DecodeError(f"the key {twice!r} is given twice")
