"""The fields of a mechanism's record, and its reading.

A record contains numbers that follow from its laws and are computed again when it is read; it
contains neither sentences, which are functions of the numbers, nor the request. A field is added to
one structure (a law's, in the law's module), which determines writing, reading and the published
JSON Schema. These structures check types, sizes and depths before anything is built.

When a format changes, its version rises, and only that version is read (tests/golden has a file of
every kind).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from deniable._checks import refuse_database
from deniable.errors import InputError
from deniable.strict_json import Digest, Level, Probability, Software, from_json

FORMAT = "deniable mechanism"
FORMAT_VERSION = 2

MOST_BYTES = 1 << 31
"""Of a record: far more than a mechanism of a million attributes takes."""


class StoredBestGuess(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Success of guesses by an observer who knows the prior of a designed matrix."""

    before: Probability
    success: Probability
    worst_posterior: Probability
    prior_source: str | None = None
    prior_steps: int | None = None
    parts: list[dict[str, Any]] | None = None


class StoredAttribute(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The statements on an attribute: levels in nats, probabilities, λ, strength (0 to 1)."""

    name: str
    categories: Annotated[int, msgspec.Meta(ge=2)]
    epsilon: Level
    epsilon_given_rest: Level
    keep_probability: Probability
    attenuation: float | None
    attenuation_proper: float | None = msgspec.field(name="lambda")
    strength: float | None
    best_guess: StoredBestGuess | None = None
    parts: list[str] | None = None


class StoredBlock(msgspec.Struct, forbid_unknown_fields=True):
    """Attributes that are randomized together, and their law."""

    attributes: list[str]
    law: dict[str, Any]


class StoredCertificate(msgspec.Struct, forbid_unknown_fields=True):
    """The proof of the lower bound: one weight per protected attribute."""

    weights: tuple[Annotated[float, msgspec.Meta(ge=0)], ...]
    digest: Digest


Multiplier = Annotated[float, msgspec.Meta(ge=0)]


class StoredAccuracy(msgspec.Struct, forbid_unknown_fields=True):
    """Lower bound of the errors of other laws, relative to this one's, with its proof.

    ``caps``: kind of attribute, whether the changed output is the likelier, score, multiplier.
    """

    pairs: Annotated[float, msgspec.Meta(ge=0, le=1)]
    at_least: float
    all_patterns: bool
    importance: tuple[Annotated[float, msgspec.Meta(gt=0)], ...]
    at_most: tuple[Annotated[float, msgspec.Meta(gt=0)] | None, ...]
    single: tuple[Multiplier, ...]
    double: tuple[Multiplier, ...]
    levels: tuple[Multiplier, ...]
    caps: tuple[
        tuple[
            Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)],
            bool,
            Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)],
            Multiplier,
        ],
        ...,
    ]


class StoredMechanism(msgspec.Struct, forbid_unknown_fields=True):
    """A mechanism: its laws in integers, and every number that follows from them."""

    format: Literal["deniable mechanism"]
    format_version: Literal[2]
    software: Software
    method: str
    epsilon: Level
    epsilon_lower_bound: Level
    gap: float | None
    given_rest: Annotated[str, msgspec.Meta(max_length=1 << 24)] | None
    pair_floor: Annotated[float, msgspec.Meta(gt=0, le=1)] | None
    budget: Annotated[float, msgspec.Meta(gt=0)] | None
    strength: float | None
    unprotected: list[str]
    attributes: list[StoredAttribute]
    certificate: StoredCertificate | None
    schema: dict[str, Any]
    blocks: list[StoredBlock]
    accuracy: StoredAccuracy | None = None


def fields_of(kind: type[msgspec.Struct], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a structure has fields for, in its order."""
    return {name: stated[name] for name in kind.__struct_encode_fields__ if name in stated}


def check_version(plain: Mapping[str, Any], name: str, version: int) -> None:
    """Raise for a file of another format or version."""
    if plain.get("format") != name:
        raise InputError(f"this is not a {name.removeprefix('deniable ')} written by deniable")
    written = plain.get("format_version")
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise InputError("the file does not state its format_version")
    if written != version:
        from importlib.metadata import version as installed

        raise InputError(
            f"the file has version {written} of the format '{name}', and this is deniable "
            f"{installed('deniable')}, which reads version {version}"
            + (f"; read it with {_writer(plain)}" if written > version else "")
        )


def _writer(plain: Mapping[str, Any]) -> str:
    software = plain.get("software")
    if isinstance(software, str) and re.fullmatch(r"deniable [0-9A-Za-z.+-]{1,40}", software):
        return f"{software} or a later version"
    return "a later version"


_Stored = TypeVar("_Stored", bound=msgspec.Struct)


def decoded(plain: Any, kind: type[_Stored], name: str) -> _Stored:
    """Return plain values as a structure, after checking every type and size."""
    try:
        return msgspec.convert(plain, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise InputError(f"{name} has been altered: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    refuse_database(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: {MOST_BYTES >> 30} GiB and more is no record")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from None
    try:
        return from_json(content, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON object ({error})") from None
