"""The one way to read JSON: strict, and refused where an object gives a key twice."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar, overload

import msgspec

_T = TypeVar("_T")


@overload
def from_json(content: bytes | str) -> Any: ...
@overload
def from_json(content: bytes | str, kind: type[_T]) -> _T: ...
@overload
def from_json(content: bytes | str, kind: Any) -> Any: ...
def from_json(content: bytes | str, kind: Any = Any) -> Any:
    """Return the values of a JSON text, as a type that msgspec knows.

    Of a key given twice programs take the first value or the last, so that two of them would read
    two different records.

    >>> from_json('{"a": [1, 2]}', dict[str, list[int]])
    {'a': [1, 2]}
    >>> from_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    msgspec.DecodeError: the key 'a' is given twice
    """
    values = msgspec.json.decode(content, type=kind)
    # Nothing is built: only the keys are looked at.
    json.loads(
        content if isinstance(content, str) else content.decode(),
        object_pairs_hook=_refuse_twice,
        parse_int=str,
        parse_float=str,
    )
    return values


def _refuse_twice(pairs: Sequence[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise msgspec.DecodeError(f"the key {twice!r} is given twice")
