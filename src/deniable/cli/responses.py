"""--matrix: response matrices of some attributes, and a law for the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.cli.fields import Typed
from deniable.design.request import DesignRequest
from deniable.errors import InputError


def split_responses(
    schema: Any, request: Typed[DesignRequest]
) -> tuple[Any, dict[str, Any], Typed[DesignRequest]]:
    """Return the schema, the response matrices among ``--matrix``, by attribute, and the other
    options. Attributes that have a matrix together are merged into one in the schema.

    A mechanism made by ``frontier pick`` is a response matrix. So is a list of rows if the others
    have levels or a total, or their method is named and works with them; otherwise, under method
    lambda, it has to be bistochastic and is left among the options.
    """
    from deniable.design.matrices import holds_mechanism, merged_for, response_from_file
    from deniable.statement.methods import method_named

    given = dict(request.values)
    by_level = (
        not method_named(given["method"]).by_strength
        if "method" in given
        else (
            not given.keys().isdisjoint(("epsilon", "attribute_epsilon"))
            or any(attribute.epsilon for attribute in schema.attributes)
        )
    )
    responses: dict[str, Any] = {}
    others = []
    for text in given.pop("matrices", ()):
        name, equals, file = text.partition("=")
        if not equals or not (by_level or holds_mechanism(Path(file))):
            others.append(text)
            continue
        schema, name = merged_for(schema, name, Path(file))
        if name in responses:
            raise InputError(f"--matrix: attribute '{name}' is given twice")
        attribute = schema.attributes[schema.position(name)]
        responses[name] = response_from_file(Path(file), attribute)
    if others:
        given["matrices"] = others
    return schema, responses, replace(request, values=given)
