"""The published JSON Schemas are the structures that files are read with."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("schemas", ROOT / "scripts" / "write_schemas.py")
assert spec is not None
assert spec.loader is not None
schemas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(schemas)
TEXTS: dict[str, str] = schemas.texts()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_published_schema_is_up_to_date(name: str) -> None:
    """If not: python scripts/write_schemas.py"""
    assert (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8") == TEXTS[name]


def test_every_object_of_the_schemas_refuses_fields_that_it_does_not_name() -> None:
    for name in ("mechanism", "release", "frontier-about", "schema", "study", "questionnaire"):
        definitions = json.loads(TEXTS[f"{name}.json"])["$defs"]
        closed = {key: one.get("additionalProperties") for key, one in definitions.items()}
        assert set(closed.values()) <= {False, None}
        assert [key for key in definitions if closed[key] is None] in ([], ["law"])
