"""--matrix and --response: response matrices of some attributes, next to a law for the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.cli import options
from deniable.cli.fields import Typed
from deniable.design.request import DesignRequest
from deniable.errors import InputError


def with_responses(
    schema: Any, request: Typed[DesignRequest]
) -> tuple[Any, dict[str, Any], Typed[DesignRequest]]:
    """Return the schema with the declared responses, the response matrices by attribute, and the
    other options. Attributes that have a matrix together are merged into one in the schema."""
    from deniable.design.matrices import merged_for, response_from_file

    given = dict(request.values)
    files, named = given.pop("matrices", ()), given.pop("responses", ())
    matrices: dict[str, Any] = {}
    for name, file in options.pairs(files, "--matrix", "name=file.json").items():
        schema, name = merged_for(schema, name, Path(file))
        if name in matrices:
            raise InputError(f"--matrix: attribute '{name}' is given twice")
        attribute = schema.attributes[schema.position(name)]
        matrices[name], attribute = response_from_file(Path(file), attribute)
        schema = _with(schema, attribute)
    for name, text in options.pairs(named, "--response", "name=design").items():
        attribute = schema.attributes[schema.position(name)]
        schema = _with(schema, replace(attribute, response=text))
    return schema, matrices, replace(request, values=given)


def _with(schema: Any, attribute: Any) -> Any:
    """Return the schema with another declaration of one attribute."""
    attributes = (attribute if a.name == attribute.name else a for a in schema.attributes)
    return replace(schema, attributes=tuple(attributes))
