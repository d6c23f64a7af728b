"""Write the JSON Schemas of the files into docs/schemas: python scripts/write_schemas.py

They are made from the structures that the program reads with, so that nothing can be said in one
place and checked otherwise in the other; tests/test_schemas.py notices if they are not up to date.
"""

import inspect
from pathlib import Path
from typing import Any

import msgspec

from deniable.collect.questionnaire import Questionnaire
from deniable.collect.study import StoredStudy
from deniable.frontier.folder import StoredAbout, StoredRow
from deniable.frontier.proofs import StoredCertificate
from deniable.laws import FAMILIES
from deniable.release.record import StoredRecord
from deniable.schema.declarations import Document
from deniable.statement.stored import StoredMechanism
from deniable.statement.strata import StoredStrata

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

FILES: dict[str, Any] = {
    "mechanism": StoredMechanism,
    "release": StoredRecord,
    "frontier-about": StoredAbout,
    "frontier-rows": list[StoredRow],
    "frontier-certificate": StoredCertificate,
    "schema": Document,
    "study": StoredStudy,
    "questionnaire": Questionnaire,
}
"""By the name of the file that is written, what it describes."""

# Fields that are read in a second step, by a structure of their own.
LATER = {
    ("StoredBlock", "law"): "law",
    ("StoredMechanism", "schema"): "Document",
    ("StoredRecord", "mechanism"): "StoredMechanism",
    ("StoredStratum", "mechanism"): "StoredMechanism",
    ("StoredExPost", "strata"): "StoredStrata",
    ("StoredStudy", "mechanism"): "StoredMechanism",
}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a file, with everything that it refers to."""
    laws = [law.Plain for law in FAMILIES.values()]
    parts = [kind, StoredMechanism, StoredStrata, Document, *laws]
    (whole, *_), definitions = msgspec.json.schema_components(parts, ref_template="#/$defs/{name}")
    definitions["law"] = {"anyOf": [{"$ref": f"#/$defs/{law.__name__}"} for law in laws]}
    for entry in definitions.values():
        if "description" in entry:  # Python 3.13 takes the indentation off, earlier ones do not
            entry["description"] = inspect.cleandoc(entry["description"])
    for (name, field), target in LATER.items():
        if name in definitions:
            entry = definitions[name]["properties"][field]
            optional = "anyOf" in entry
            reference = {"$ref": f"#/$defs/{target}"}
            definitions[name]["properties"][field] = (
                {"anyOf": [reference, {"type": "null"}]} if optional else reference
            )
    return {"$schema": DIALECT, **whole, "$defs": needed(whole, definitions)}


def needed(whole: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions that are referred to, directly or not."""
    found: dict[str, Any] = {}
    waiting = [whole]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in found:
                found[name] = definitions[name]
                waiting.append(definitions[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return dict(sorted(found.items()))


def texts() -> dict[str, str]:
    """Return the schemas as they are published, by the name of their file."""
    return {
        f"{name}.json": msgspec.json.format(msgspec.json.encode(json_schema(kind))).decode() + "\n"
        for name, kind in FILES.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
