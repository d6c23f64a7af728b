"""Response matrices for some attributes of a schema, next to a law for the others.

A matrix may have any shape and any zeros, so it is given, by a named design of the schema or by
itself, and not requested by a level; its levels are computed from its integers as for any law. The
other attributes are designed by themselves, since all blocks of a mechanism are independent.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.design.request import DesignRequest
from deniable.errors import InputError
from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from deniable.schema.names import split_names
from deniable.schema.responses import probability
from deniable.statement.account import Design
from deniable.statement.caps import unchanged_blocks
from deniable.statement.methods import method_of_responses
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


def without(schema: Schema, names: Collection[str]) -> Schema | None:
    """Return the schema without some protected attributes; None if no protected one is left."""
    if all(schema.names[i] in names for i in schema.protected):
        return None
    rest = tuple(a for a in schema.attributes if a.name not in names)
    return Schema(rest, schema.title, schema.keep)


def with_responses(
    schema: Schema, design: Design | None, responses: Mapping[str, MatrixChannel]
) -> Design:
    """Return a design of the whole schema."""
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
        method_of_responses(schema) if design is None else design.method,
        tuple(requested.get(name) for name in schema.names),
        None,
        notes=() if design is None else design.notes,
        together=design is not None and design.together,
    )


def declaring(schema: Schema, responses: Mapping[str, str]) -> Schema:
    """Return the schema with the responses of some attributes."""
    for name, response in responses.items():
        place = schema.position(name)
        attributes = list(schema.attributes)
        attributes[place] = replace(attributes[place], response=response)
        schema = replace(schema, attributes=tuple(attributes))
    return schema


def requests_without_matrices(request: DesignRequest) -> dict[str, Any]:
    """Return the fields of a request with a value, without matrices and responses."""
    names = [one.name for one in fields(request) if one.name not in ("matrices", "response")]
    stated = ((name, getattr(request, name)) for name in names)
    return {name: value for name, value in stated if value != getattr(DesignRequest(), name)}


def laws_given(
    schema: Schema, matrices: Mapping[str, MatrixChannel | NDArray[np.float64]]
) -> dict[str, MatrixChannel]:
    """Return the laws of the attributes whose response the schema declares or whose matrix is
    given, ``matrix[y, x]`` = Pr[answer y | category x]."""
    laws = {}
    for attribute in schema.attributes:
        own, name = matrices.get(attribute.name), attribute.name
        if own is None and not attribute.response:
            continue
        _refuse_level(schema, attribute)
        if own is not None and attribute.response:
            raise InputError(f"attribute '{name}' has both a matrix and a response; give one")
        try:
            if own is None:
                law = MatrixChannel.from_fractions(attribute.response_matrix)
            elif isinstance(own, MatrixChannel):
                law = own
            else:
                law = MatrixChannel.from_probabilities(own)
        except InputError as error:
            raise InputError(f"attribute '{name}': {error}") from None
        if law.n_categories != (attribute.n_categories,):
            raise InputError(
                f"attribute '{name}' has {attribute.n_categories} categories, and its matrix is "
                f"for {law.n_categories[0]}"
            )
        laws[name] = law
    for name in matrices:
        schema.position(name)
    return laws


def refuse_requests_of(names: Collection[str], requests: Mapping[str, Any]) -> None:
    """Raise if a request names an attribute that has a response matrix."""
    for option, value in requests.items():
        for entry in value if isinstance(value, Mapping) else ():
            for name in (entry,) if isinstance(entry, str) else entry:
                if name in names:
                    raise InputError(
                        f"'{name}' has a response matrix, whose ε and attenuation follow from it; "
                        f"leave it out of `{option}`"
                    )


def with_matrix_from_file(
    schema: Schema, name: str, path: Path
) -> tuple[Schema, str, MatrixChannel]:
    """Return the schema, the name of the attribute that a file's matrix is for, and the matrix. If
    it combines several attributes these are merged, and texts of answers are added."""
    schema, name = merged_for(schema, name, path)
    place = schema.position(name)
    attributes = list(schema.attributes)
    law, attributes[place] = response_from_file(path, attributes[place])
    return replace(schema, attributes=tuple(attributes)), name, law


def response_from_file(path: Path, attribute: Attribute) -> tuple[MatrixChannel, Attribute]:
    """Return the response matrix in a file, and its attribute with the texts of the answers."""
    try:
        plain = from_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    try:
        if isinstance(plain, dict) and "rows" not in plain:
            return _of_mechanism(plain, attribute)
        if isinstance(plain, dict):
            answers = tuple(msgspec.convert(plain.get("answers", ()), tuple[str, ...]))
            attribute, plain = replace(attribute, answers=answers), plain["rows"]
        return response_of_rows(plain), attribute
    except msgspec.ValidationError:
        raise InputError(f"{path}: answers are a list of texts") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _of_mechanism(plain: dict[str, Any], attribute: Attribute) -> tuple[MatrixChannel, Attribute]:
    mechanism = mechanism_from_plain(plain).mechanism
    blocks = mechanism.blocks
    if len(blocks) != 1 or not isinstance(blocks[0].law, MatrixChannel):
        raise InputError("the mechanism is not one response matrix for one attribute")
    answers = attribute.answers or mechanism.schema.attributes[0].answers
    return blocks[0].law, replace(attribute, answers=answers)


def response_of_rows(plain: Any) -> MatrixChannel:
    """Return the matrix of rows of probabilities, one per true category; texts are fractions."""
    try:
        texts = msgspec.convert(plain, list[list[float | str]])
    except msgspec.ValidationError:
        raise InputError("expected a list of rows of numbers, one per true category") from None
    if len({len(row) for row in texts}) != 1:
        raise InputError("all rows of a response matrix need the same number of entries")
    rows = [[_exact(entry) for entry in row] for row in texts]
    for place, row in enumerate(rows, start=1):
        # In the file a row is Pr[· | x], a column of the matrix here.
        if any(entry < 0 for entry in row) or not _is_one(row):
            across = all(map(_is_one, zip(*rows, strict=True)))
            raise InputError(
                f"row {place} is no distribution: its entries must be probabilities that add up "
                f"to 1, and they add up to {float(sum(row)):.9g}"
                + ("; the columns do, so transpose the matrix" if across else "")
            )
    scaled = ([entry / sum(row) for entry in row] for row in rows)
    return MatrixChannel.from_fractions(list(zip(*scaled, strict=True)))


def _is_one(row: Sequence[Fraction]) -> bool:
    """Whether probabilities written with ten digits add up to 1."""
    return abs(float(sum(row)) - 1) <= 1e-9


def _exact(entry: float | str) -> Fraction:
    """Return the exact value of a decimal or a fraction."""
    if isinstance(entry, str):
        return probability(entry)
    if not -1 <= entry <= 2:
        raise InputError("an entry of the matrix is no probability")
    return Fraction(repr(entry))
