"""Response matrices for some attributes of a schema, next to a law for the others.

A matrix may have any shape and any zeros, so it is given, not requested by a level; its levels are
computed from its integers as for any law. The other attributes are designed by themselves, since
all blocks of a mechanism are independent.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from deniable.errors import InputError
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from deniable.schema.names import split_names
from deniable.statement.account import Design
from deniable.statement.caps import unchanged_blocks
from deniable.statement.methods import MATRIX_METHOD
from deniable.statement.record import mechanism_from_plain
from deniable.strict_json import from_json


def merged_for(schema: Schema, name: str, path: Path) -> tuple[Schema, str]:
    """Return the schema with a matrix's attribute, and that attribute's name.

    If the schema declares several attributes that the matrix combines, they are merged into one, in
    the first one's place.
    """
    if name in schema.names:
        return schema, name
    own = _stored_attribute(path)
    names = split_names(name)
    if own is not None and own.parts:
        stored = [part.name for part in own.parts]
        if name == own.name or sorted(names) == sorted(stored):
            names = stored
    if len(names) < 2:
        schema.position(name)
    parts = [schema.attributes[i] for i in schema.positions(names)]
    for i, part in enumerate(parts):
        _refuse_level(schema, part)
        if own is not None and own.parts and len(own.parts) == len(parts):
            expected = own.parts[i].n_categories
            if part.n_categories != expected:
                raise InputError(
                    f"{path}: the matrix is for {expected} categories of '{part.name}', and it has "
                    f"{part.n_categories}"
                )
    plain = tuple(
        replace(a, ratio=None, importance=None) if a.name in names else a for a in schema.attributes
    )
    return replace(schema, attributes=plain).merging(names), "+".join(names)


def _stored_attribute(path: Path) -> Attribute | None:
    """Return the attribute of a mechanism's file; None if it has none, or several."""
    try:
        plain = from_json(path.read_bytes(), dict[str, Any])
        (attribute,) = Schema.from_plain(plain["schema"]).attributes
    except (OSError, ValueError, KeyError, RecursionError):  # InputError, DecodeError too
        return None  # errors in the file are reported where it is read
    return attribute


def _refuse_level(schema: Schema, attribute: Attribute) -> None:
    name = attribute.name
    if name in schema.keep:
        raise InputError(f"'{name}' is released unchanged, so it has no matrix; leave it out")
    if attribute.epsilon is not None:
        raise InputError(
            f"attribute '{name}' has both a matrix and, in the schema, an epsilon; a matrix "
            "has the level that it has, so leave the epsilon out"
        )


def without(schema: Schema, names: Mapping[str, Any]) -> Schema | None:
    """Return the schema without some protected attributes; None if no protected one is left."""
    for name in names:
        _refuse_level(schema, schema.attributes[schema.position(name)])
    if all(schema.names[i] in names for i in schema.protected):
        return None
    rest = tuple(a for a in schema.attributes if a.name not in names)
    return Schema(rest, schema.title, schema.keep)


def with_responses(
    schema: Schema, design: Design | None, responses: Mapping[str, MatrixChannel]
) -> Design:
    """Return a design of the whole schema."""
    if not responses and design is not None:
        return design
    blocks = [] if design is not None else unchanged_blocks(schema)
    requested: dict[str, float | None] = {}
    if design is not None:
        mine = design.mechanism.schema.names
        requested = dict(zip(mine, design.requested_epsilon, strict=True))
        for block in design.mechanism.blocks:
            places = tuple(schema.position(mine[i]) for i in block.attributes)
            blocks.append(replace(block, attributes=places))
    for name, law in responses.items():
        blocks.append(Block((schema.position(name),), law))
    mechanism = Mechanism(schema, tuple(blocks))
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        MATRIX_METHOD if design is None else design.method,
        tuple(requested.get(name) for name in schema.names),
        None,
        notes=() if design is None else design.notes,
        together=design is not None and design.together,
    )


def response_from_file(path: Path, attribute: Attribute) -> MatrixChannel:
    """Read a response matrix for an attribute."""
    try:
        plain = from_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    try:
        law = _from_mechanism(plain) if isinstance(plain, dict) else _from_rows(plain)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if law.n_categories != (attribute.n_categories,):
        raise InputError(
            f"{path}: the matrix is for {law.n_categories[0]} categories, and '{attribute.name}' "
            f"has {attribute.n_categories}"
        )
    return law


def holds_mechanism(path: Path) -> bool:
    """Return whether a file holds a mechanism rather than rows; False if it cannot be read."""
    try:
        return isinstance(from_json(path.read_bytes()), dict)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _from_mechanism(plain: dict[str, Any]) -> MatrixChannel:
    blocks = mechanism_from_plain(plain).mechanism.blocks
    if len(blocks) != 1 or not isinstance(blocks[0].law, MatrixChannel):
        raise InputError("the mechanism is not one response matrix for one attribute")
    return blocks[0].law


def _from_rows(plain: Any) -> MatrixChannel:
    try:
        rows = msgspec.convert(plain, list[list[float]])
    except msgspec.ValidationError:
        raise InputError("expected a list of rows of numbers, one per true category") from None
    if len({len(row) for row in rows}) != 1:
        raise InputError("all rows of a response matrix need the same number of entries")
    for place, row in enumerate(rows, start=1):
        # In the file a row is Pr[· | x], a column of the matrix here.
        if not all(0 <= entry <= 1 for entry in row) or abs(sum(row) - 1) > 1e-9:
            raise InputError(
                f"row {place} is no distribution: its entries must be probabilities that add up "
                f"to 1, and they add up to {sum(row):.9g}"
            )
    return MatrixChannel.from_probabilities(np.array(rows).T)
