"""--matrix: response matrices of some attributes, next to a law for the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.cli import options
from deniable.cli.fields import Typed
from deniable.design.request import DesignRequest
from deniable.errors import InputError


def with_matrices(
    schema: Any, request: Typed[DesignRequest]
) -> tuple[Any, dict[str, Any], Typed[DesignRequest]]:
    """Return the schema, the response matrices by attribute, and the other options. Attributes that
    have a matrix together are merged into one in the schema, and texts of answers are added to
    it."""
    from deniable.design.matrices import with_matrix_from_file

    given = dict(request.values)
    files = given.pop("matrices", ())
    matrices: dict[str, Any] = {}
    for name, file in options.pairs(files, "--matrix", "name=file.json").items():
        schema, name, law = with_matrix_from_file(schema, name, Path(file))
        if name in matrices:
            raise InputError(f"--matrix: attribute '{name}' is given twice")
        matrices[name] = law
    return schema, matrices, replace(request, values=given)
