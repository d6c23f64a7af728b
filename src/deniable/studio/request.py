"""From the values of the controls to the request to the library."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from deniable._checks import check_level, check_positive
from deniable.errors import InputError
from deniable.laws.response import check_attenuation
from deniable.proofs.problem import MAX_LEVEL
from deniable.schema import Schema
from deniable.statement.caps import resolve_caps
from deniable.statement.expected_tables import checked_names, checked_shares
from deniable.statement.methods import check_number, method_named
from deniable.studio.draft import Draft, Plain, digest, names_of, usual
from deniable.studio.numbers import decimal_number, plain, whole_number, written

SCALES: dict[str, tuple[float, float]] = {
    "rows": (100, 10_000_000),
    "within": (0.1, 30),
    "epsilon": (0.05, 50),
    "attenuation": (0.01, 1),
    "prior": (0.1, 50),
    "level": (0.01, 20),
    "importance": (0.1, 10),
}
"""Range of the slider of a control, on a logarithmic scale."""

MOST_ATTRIBUTES = 1000
"""Beyond it a design takes minutes, and a page is too long to be read."""

_T = TypeVar("_T")
_Check = Callable[[float, str], float]


@dataclass
class DraftRequest:
    """A request, as far as the controls are valid."""

    schema: dict[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    within: float = 0.0
    prior: float = 0.0
    limit: float = 0.0
    waves: int = 1
    tables: list[list[str]] = field(default_factory=list)
    assume: Any = "uniform"
    target: Literal["table", "population"] = "table"
    responses: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    unchosen: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Cache key of a request."""
        return digest(
            *(self.schema, self.arguments, self.rows, self.within),
            *(self.tables, self.assume, self.target, self.responses),
        )


def typed(controls: Mapping[str, str], name: str) -> str:
    """Return the text of a control."""
    return controls.get(name, usual(name))


def request_of(
    draft: Draft, controls: Mapping[str, str] | None = None, folder: Path = Path()
) -> DraftRequest:
    """Return the request of a draft, or of a compared one; its files lie in ``folder``."""
    controls = draft.controls if controls is None else controls
    request = DraftRequest(dict(draft.schema))

    def put(name: str, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except InputError as error:
            request.problems[name] = str(error)
            return None

    def number(name: str, what: str, checked: _Check) -> float | None:
        text = typed(controls, name)
        return put(name, lambda: checked(decimal_number(text, what), what)) if text else None

    def choose(name: str, sentence: str) -> None:
        if schema and not typed(controls, name):
            request.problems[name] = sentence
            request.unchosen.append(name)

    schema = put("schema", lambda: _made(draft))
    spec = put("method", lambda: method_named(typed(controls, "method")))
    takes = spec.takes if spec else frozenset()
    if schema and spec:
        put("method", lambda: check_number(spec, len(schema.protected)))
    request.rows = (
        put("rows", lambda: _count(typed(controls, "rows"), "rows expected", 10**12)) or 0
    )
    request.within = (
        put("within", lambda: _percent(typed(controls, "within"), "the accepted error")) or 0
    )
    request.prior = (
        put("prior", lambda: _percent(typed(controls, "prior"), "the belief before")) or 0
    )
    if text := typed(controls, "limit"):
        request.limit = put("limit", lambda: _limit(text, request.prior)) or 0
    same = "releases of the same people"
    request.waves = put("waves", lambda: _count(typed(controls, "waves"), same, 1000)) or 0
    if file := typed(controls, "matrix_file"):
        request.responses = {typed(controls, "matrix_of"): str(folder / Path(file).name)}
        if "" in request.responses:
            request.problems["matrix_of"] = "choose the attribute that the matrix is of"
    by_level = typed(controls, "kind") == "levels" and "levels" in takes
    request.schema["attribute"] = attributes = []
    for one in draft.attributes:
        name, more = names_of(one)[0], {}
        if by_level and name not in request.responses:
            more["epsilon"] = number(f"level.{name}", f"ε of '{name}'", _level)
            if name not in draft.kept:
                choose(f"level.{name}", f"ε of '{name}': type its level, in nats")
        elif "importance" in takes:
            what = f"importance of '{name}'"
            more["importance"] = number(f"importance.{name}", what, check_positive)
        attributes.append({**one, **{key: value for key, value in more.items() if value}})

    arguments: dict[str, Any] = {"method": typed(controls, "method")}
    if "strength" in takes and (typed(controls, "attenuation") or "total" not in takes):
        strength = number("attenuation", "λ", lambda value, _: check_attenuation(value))
        arguments["attenuation"] = strength
        choose("attenuation", "λ: type the part of a difference of shares that is left")
    elif not by_level:
        arguments["epsilon"] = number("epsilon", "ε", _level)
        designed = {names_of(one)[0] for one in draft.attributes} - {*draft.kept}
        if not designed or designed - request.responses.keys():
            choose("epsilon", "ε: type the total for the whole record, in nats")
    if "caps" in takes and (cap := typed(controls, "cap")):
        arguments["given_rest"] = put("cap", lambda: _cap(cap, of_record="forms" in takes))
    by_ratio = any(one.get("ratio") for one in attributes)
    if "floor" in takes and ("pairs" not in takes or by_level or by_ratio):
        arguments["pair_floor"] = number("pair_floor", "the floor on pairs", _part)
    elif "pairs" in takes:
        arguments["pairs"] = number("pairs", "how much pairs count", _part)
    if "forms" in takes and (text := typed(controls, "max_questions")):
        arguments["max_questions"] = put(
            "max_questions", lambda: whole_number(text, "most questions")
        )
    request.arguments = {name: value for name, value in arguments.items() if value is not None}

    request.tables = tables_in(typed(controls, "tables"))
    if schema:
        put("tables", lambda: [checked_names(schema, table) for table in request.tables])
    request.assume = typed(controls, "assume")
    request.target = "population" if typed(controls, "target") == "population" else "table"
    if request.assume == "typed":
        given = {name: controls.get(f"shares.{name}", "") for name in draft.columns}
        request.assume = {
            name: shares
            for name, text in given.items()
            if text and (shares := put(f"shares.{name}", partial(_shares, text, name, schema)))
        }
    return request


def taken(name: str, text: str, separators: str) -> str:
    """Return a typed value for the draft: a number in the notation of the library, other text
    unchanged."""
    kind = name.partition(".")[0]
    if kind in _WHOLE or kind in SCALES or kind in _OTHER_NUMBERS:
        return plain(text, separators, whole=kind in _WHOLE)
    return text


_WHOLE = ("rows", "max_questions", "waves")
_OTHER_NUMBERS = ("limit", "cap", "pair_floor", "pairs")


def tables_in(text: str) -> list[list[str]]:
    """Return tables of interest from text: one per line, names separated by tabs."""
    lines = [line.split("\t") for line in text.split("\n") if line]
    return [[re.sub(r"\\(.)", lambda m: _MEANT.get(m[1], m[1]), n) for n in line] for line in lines]


def tables_text(tables: Iterable[Sequence[str]]) -> str:
    """Return tables of interest as text."""
    return "\n".join("\t".join(name.translate(_WRITTEN) for name in table) for table in tables)


_MEANT = {"t": "\t", "n": "\n"}
_WRITTEN = str.maketrans({"\t": r"\t", "\n": r"\n", "\\": r"\\"})


def _count(text: str, what: str, most: int) -> int:
    count = whole_number(text, what)
    if not 1 <= count <= most:
        raise InputError(f"{what}: from 1 to {most}")
    return count


def _limit(text: str, prior: float) -> float:
    limit = _percent(text, "the belief after")
    if limit <= prior:
        raise InputError("the belief after is more than the belief before")
    return limit


def _percent(text: str, what: str) -> float:
    percent = decimal_number(text, what)
    if not 0 < percent < 100:
        raise InputError(f"{what} is more than 0 and less than 100")
    return percent / 100


def _level(value: float, what: str) -> float:
    if check_level(value, what) > MAX_LEVEL:
        raise InputError(f"{what}: at most {MAX_LEVEL:g} nats; more does not protect")
    return value


def _part(value: float, what: str) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"{what}: between 0 and 1, not {value:g}")
    return value


def _cap(text: str, *, of_record: bool) -> str:
    """Return a cap as the library takes it: a multiple of an attribute's own ε, or, of forms, a
    part of the record's."""
    if text != "none":
        number = decimal_number(text, "the cap given the rest")
        text = f"{written(number)}{'e' if of_record else 'x'}"
    resolve_caps(text, (1.0,), 1.0 if of_record else None)
    return text


def _shares(text: str, name: str, schema: Schema | None) -> list[float]:
    """Return shares that were typed in per cent, one after the other."""
    parts = text.replace(";", " ").replace("%", " ").replace(", ", " ").split()
    shares = [decimal_number(part, f"shares of '{name}'") / 100 for part in parts]
    if schema:
        checked_shares(schema, {name: shares})
    return shares


def _made(draft: Draft) -> Schema:
    if len(draft.columns) > MOST_ATTRIBUTES:
        raise InputError(
            f"{len(draft.columns):,} attributes are more than this page can show "
            f"({MOST_ATTRIBUTES:,}); use deniable design"
        )
    return draft.made()


def from_document(plain: Plain, *, table: str = "") -> Draft:
    """Return the draft that a schema begins: levels and importances in it go to the controls.

    >>> from_document({"attribute": [{"name": "a", "epsilon": 1.5}]}).controls
    {'kind': 'levels', 'level.a': '1.5'}
    """
    plain = msgspec.to_builtins(plain)  # dates are texts
    controls, attributes = {}, []
    for one in plain.get("attribute", ()):
        name = names_of(one)[0]
        left = {key: value for key, value in one.items() if (key, value) != ("missing", "error")}
        for kind, key in (("level", "epsilon"), ("importance", "importance")):
            if key in left:
                controls[f"{kind}.{name}"] = written(left.pop(key))
        attributes.append(left)
    if any(key.startswith("level.") for key in controls):
        controls = {"kind": "levels", **controls}
    return Draft({**plain, "attribute": attributes}, controls, table=table)
