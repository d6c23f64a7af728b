"""--matrix: response matrices of some attributes, next to a law for the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.cli import options
from deniable.cli.arguments import DesignOptions
from deniable.errors import InputError


def with_matrices(schema: Any, request: DesignOptions) -> tuple[Any, dict[str, Any]]:
    """Return the schema and the response matrices by attribute. Attributes that have a matrix
    together are merged into one in the schema, and texts of answers are added to it."""
    from deniable.design.matrices import merged_for, response_from_file

    matrices: dict[str, Any] = {}
    for name, file in options.pairs(request.matrix, "--matrix", "name=file.json").items():
        schema, name = merged_for(schema, name, Path(file))
        if name in matrices:
            raise InputError(f"--matrix: attribute '{name}' is given twice")
        attribute = schema.attributes[schema.position(name)]
        matrices[name], attribute = response_from_file(Path(file), attribute)
        attributes = (attribute if a.name == name else a for a in schema.attributes)
        schema = replace(schema, attributes=tuple(attributes))
    return schema, matrices
