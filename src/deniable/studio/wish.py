"""From what stands in the controls to what is asked of the library."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.design.methods import METHODS, method_named
from deniable.errors import InputError
from deniable.studio.draft import DEFAULTS, Draft, Plain, digest, names_of
from deniable.studio.numbers import decimal_number, whole_number

SCALES: dict[str, tuple[float, float]] = {
    "rows": (100, 10_000_000),
    "within": (0.1, 30),
    "epsilon": (0.05, 50),
    "attenuation": (0.01, 1),
    "prior": (0.1, 50),
    "level": (0.01, 20),
    "importance": (0.1, 10),
}
"""Between which numbers the slider beside a control moves, by equal factors."""

MOST_ATTRIBUTES = 1000
"""Beyond it a design takes minutes, and a page is too long to be read."""

_OF_FORMS = ("pairs", "asked")


@dataclass
class Wish:
    """What is asked of the library, as far as it could be understood.

    Args:
        schema: the document of the schema, with the levels and importances that were typed.
        arguments: of :func:`deniable.design.design.design`.
        rows: expected.
        within: the half-width that is accepted, as a fraction of 1.
        tables: of interest, each one to three names.
        assume: what shares are assumed, as :func:`~deniable.design.expected_tables.expected_tables`
            takes it.
        responses: the file of a response matrix, by attribute.
        problems: what is wrong, by control.
    """

    schema: dict[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    within: float = 0.0
    tables: list[list[str]] = field(default_factory=list)
    assume: Any = "uniform"
    responses: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A name for what is asked, that nothing else has."""
        return digest(
            self.schema, self.arguments, self.rows, self.tables, self.assume, self.responses
        )


def typed(wish: Mapping[str, str], name: str) -> str:
    """Return what stands in a control."""
    return wish.get(name, DEFAULTS.get(name, ""))


def understood(draft: Draft, wish: Mapping[str, str] | None = None, folder: Path = Path()) -> Wish:
    """Return what is asked for by a draft, or by another wish for its schema; files that it names
    lie in ``folder``."""
    wish = draft.wish if wish is None else wish
    asked = Wish(dict(draft.schema))

    def put(name: str, read: Any) -> Any:
        try:
            return read()
        except InputError as error:
            asked.problems[name] = str(error)
            return None

    def number(name: str, what: str) -> float | None:
        text = typed(wish, name)
        return put(name, lambda: decimal_number(text, what)) if text else None

    method = typed(wish, "method")
    takes = METHODS[method].takes if method in METHODS else frozenset()
    put("method", lambda: method_named(method))
    asked.rows = put("rows", lambda: _rows(typed(wish, "rows"))) or 0
    asked.within = (number("within", "the accepted error") or 0) / 100
    if not asked.problems.get("within") and not 0 < asked.within < 1:
        asked.problems["within"] = "the accepted error is more than 0 and less than 100 points"
    by_level = typed(wish, "kind") == "levels" and "levels" in takes
    asked.schema["attribute"] = [
        {**one, **_of_attribute(one, wish, put, by_level=by_level)} for one in draft.attributes
    ]
    arguments: dict[str, Any] = {"method": method}
    if "strength" in takes and (typed(wish, "attenuation") or "total" not in takes):
        arguments["attenuation"] = number("attenuation", "λ") or 0.5
    elif not by_level:
        arguments["epsilon"] = number("epsilon", "ε")
        if arguments["epsilon"] is None and "epsilon" not in asked.problems:
            asked.problems["epsilon"] = "ε: type the total for the whole record, in nats"
    if "caps" in takes and (cap := typed(wish, "cap")):
        arguments["given_rest"] = put("cap", lambda: _cap(cap, of_record="forms" in takes))
    if "floor" in takes:
        arguments["pair_floor"] = number("pair_floor", "the floor on pairs")
    if "forms" in takes:
        arguments["pairs"] = number("pairs", "how much pairs count")
        if text := typed(wish, "asked"):
            arguments["asked"] = put("asked", lambda: whole_number(text, "most questions"))
    asked.arguments = {name: value for name, value in arguments.items() if value is not None}
    asked.tables = [line.split("\t") for line in typed(wish, "tables").splitlines()]
    asked.assume = typed(wish, "assume")
    if asked.assume == "typed":
        given = {name: wish.get(f"shares.{name}", "") for name in draft.columns}
        read = {
            name: put(f"shares.{name}", lambda name=name, text=text: _shares(text, name))
            for name, text in given.items()
            if text
        }
        asked.assume = {name: shares for name, shares in read.items() if shares}
    if wish.get("matrix_file"):
        file = folder / Path(wish["matrix_file"]).name
        asked.responses = {wish.get("matrix_of", ""): str(file)}
    put("schema", lambda: _checked(draft))
    return asked


def _rows(text: str) -> int:
    rows = whole_number(text, "rows expected")
    if not 1 <= rows <= 10**12:
        raise InputError("rows expected: from 1 to 1000000000000")
    return rows


def _cap(text: str, *, of_record: bool) -> str:
    """Return a cap as the library takes it: a multiple of an attribute's own ε, or, of forms, a
    part of the record's."""
    if text == "none":
        return text
    return f"{decimal_number(text, 'the cap given the rest'):g}{'e' if of_record else 'x'}"


def _shares(text: str, name: str) -> list[float]:
    """Return shares that were typed in per cent, one after the other."""
    parts = text.replace(";", " ").replace("%", " ").split()
    return [decimal_number(part, f"shares of '{name}'") / 100 for part in parts]


def _of_attribute(one: Plain, wish: Mapping[str, str], put: Any, *, by_level: bool) -> Plain:
    """Return an attribute's level and importance, where they were typed."""
    found = {}
    name = names_of(one)[0]
    for kind, key in (("level", "epsilon"), ("importance", "importance")):
        text = wish.get(f"{kind}.{name}")
        if text and (kind != "level" or by_level):
            found[key] = put(f"{kind}.{name}", lambda t=text: decimal_number(t, name))
    return {key: value for key, value in found.items() if value is not None}


def _checked(draft: Draft) -> None:
    if len(draft.columns) > MOST_ATTRIBUTES:
        raise InputError(
            f"{len(draft.columns):,} attributes are more than this page can show "
            f"({MOST_ATTRIBUTES:,}); use deniable design"
        )
    draft.made()


def from_document(plain: Plain, *, table: str = "") -> Draft:
    """Return the draft that a schema begins: levels and importances in it go to the controls.

    >>> from_document({"attribute": [{"name": "a", "epsilon": 1.5}]}).wish
    {'kind': 'levels', 'level.a': '1.5'}
    """
    wish, attributes = {}, []
    for one in plain.get("attribute", ()):
        name = names_of(one)[0]
        left = dict(one)
        for kind, key in (("level", "epsilon"), ("importance", "importance")):
            if key in left:
                wish[f"{kind}.{name}"] = f"{left.pop(key):g}"
        attributes.append(left)
    if any(key.startswith("level.") for key in wish):
        wish = {"kind": "levels", **wish}
    return Draft({**plain, "attribute": attributes}, wish, table=table)
