"""Starts of a draft: a schema, a mechanism, a table, an existing draft, or names."""

import asyncio
import csv
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.schema import FileFormat, Schema
from deniable.statement.methods import INDEPENDENT_METHOD, METHODS
from deniable.statement.record import read_design
from deniable.studio.draft import ENDING, Draft, Keeper
from deniable.studio.numbers import written
from deniable.studio.place import Place
from deniable.studio.request import from_document
from deniable.studio.working import in_process
from deniable.tables.drafting import draft_with_reasons
from deniable.tables.formats import TABLE_ENDINGS
from deniable.tables.reading import AS_FOUND

OPENED = (".toml", ".json", *TABLE_ENDINGS)
"""How the names of files end that a draft can begin with."""


async def draft_of(path: Path, file_format: FileFormat = AS_FOUND) -> Draft:
    """Return the draft that a file begins; a table's columns are marked as drafted."""
    name = path.name.lower()
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if name.endswith(ENDING):
        return await asyncio.to_thread(Draft.from_toml, path)
    if name.endswith(".toml"):
        Schema.from_toml(path)
        return from_document(tomllib.loads(path.read_text(encoding="utf-8")))
    if name.endswith(".json"):
        return _of_mechanism(path)
    if not name.endswith(TABLE_ENDINGS):
        raise InputError(
            f"{path}: this is no schema or draft (.toml), no mechanism (.json) and no table "
            f"({', '.join(TABLE_ENDINGS)})"
        )
    text, reasons = await in_process(draft_with_reasons, str(path), file_format)
    plain = tomllib.loads(text)
    if not plain.get("attribute"):
        raise InputError(f"{path}: it has no column of categories or numbers")
    return replace(from_document(plain, table=path.name), read=reasons)


def _of_mechanism(path: Path) -> Draft:
    design = read_design(path)
    mechanism, method = design.mechanism, METHODS[design.method]
    if method.by_strength and "total" not in method.takes:
        method = METHODS[INDEPENDENT_METHOD]  # the same law, requested by levels
    draft = from_document(mechanism.schema.to_plain())
    if design.budget is None and "levels" in method.takes:
        # Levels are exact to 1e-9, so that the ninth digit equals the request.
        levels = [float(f"{level:.9g}") for level in mechanism.attribute_epsilon]
        named = {
            f"level.{mechanism.schema.names[i]}": written(levels[i])
            for i in mechanism.schema.protected
        }
        typed = {"kind": "levels", **named}
    else:
        typed = {"epsilon": written(design.budget or design.epsilon)}
    if "caps" in method.takes and (
        cap := re.fullmatch("(none|[\\d.]+(?=[xe]))[xe]?", design.given_rest or "none")
    ):
        typed["cap"] = cap[1]
    if "floor" in method.takes and (design.pair_floor or "pairs" not in method.takes):
        typed["pair_floor"] = written(design.pair_floor or 0)
    if design.accuracy is not None:
        typed["pairs"] = written(design.accuracy.theta)
    return draft.with_controls(method=method.name, **typed)


def names_in(text: str) -> Sequence[str]:
    """Return the names that were pasted."""
    lines = text.strip().splitlines()
    if len(lines) == 1 and (separator := next((s for s in "\t;," if s in text), "")):
        lines = next(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    if not (names := [name for line in lines if (name := line.strip())]):
        raise InputError("paste the names of the columns, one per line or separated by commas")
    return names


def yes_or_no(name: str) -> dict[str, Any]:
    """Return the default declaration of a column of which only the name is known."""
    return {"name": name, "categories": ["no", "yes"], "drafted": True}


def begun(source: Path | None) -> tuple[Keeper, Place]:
    """Return the draft started from a file and saved next to it, and its place."""
    if source is None:
        path = Path(f"draft{ENDING}")
        draft = Draft.from_toml(path) if path.exists() else Draft()
    elif source.name.endswith(ENDING):
        path, draft = source, Draft.from_toml(source)
    else:
        path = source.with_name(source.name.partition(".")[0] + ENDING)
        try:
            draft = asyncio.run(draft_of(source))
        except InputError:
            if not (source.is_file() and source.name.lower().endswith(TABLE_ENDINGS)):
                raise
            draft = Draft(table=source.name)  # the page shows a form for its format
        before = Draft.from_toml(path) if path.exists() else draft
        other = before.schema != draft.schema if draft.attributes else before.table != draft.table
        if other:
            raise InputError(
                f"{path} is another draft, begun before; go on with it (deniable studio {path}), "
                "or move it away"
            )
        draft = before
    return Keeper(path.resolve(), draft), Place.of(path)
