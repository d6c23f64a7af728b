"""Codebooks: names of the values of columns, in the formats of surveys and archives."""

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from deniable.errors import InputError
from deniable.schema import BLANKS
from deniable.tables.encode import NUMBER


@dataclass(frozen=True)
class Entry:
    """A codebook's entry for one column."""

    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    missing_ranges: tuple[tuple[float, float], ...] = ()
    question: str = ""
    ordered: bool = False

    def is_missing(self, value: str) -> bool:
        """Return whether a value is a code for a missing value."""
        if value in self.missing:
            return True
        if not self.missing_ranges:
            return False
        try:
            number = float(value)
        except ValueError:
            return False
        return any(low <= number <= high for low, high in self.missing_ranges)

    def names(self) -> dict[str, str]:
        """Return the names of all values, codes for missing values included."""
        return {**self.labels, **self.missing}


_YES, _NO = {"1", "y", "yes", "true", "x"}, {"", "0", "n", "no", "false"}

_COLUMNS, _MORE = ("name", "value", "label"), ("question", "missing")


def number_text(value: float) -> str:
    """Return the text of a number, without a point if it is whole.

    >>> number_text(3.0), number_text(1.5)
    ('3', '1.5')
    """
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def read_codebook(path: Path) -> dict[str, Entry]:
    """Read a codebook from a file of its own.

    A CSV file has the columns name, value and label, one row per value of a column, and optionally
    question (question text) and missing (yes: a code for a missing value). A file that begins with
    ``<`` is read as DDI-Codebook 2.5, the export format of archives.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the codebook cannot be read ({error.strerror})") from None
    is_xml = content.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
    found = _of_xml(content, path) if is_xml else _of_csv(content, path)
    if not found:
        raise InputError(f"{path}: the codebook has no entry for a column")
    return found


def _of_csv(content: bytes, path: Path) -> dict[str, Entry]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: the codebook is not UTF-8 text; save it as UTF-8") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    rows.fieldnames = names = [(name or "").strip().lower() for name in rows.fieldnames or ()]
    if lacking := [name for name in _COLUMNS if name not in names]:
        raise InputError(
            f"{path}: the codebook has no column '{lacking[0]}'; it needs {', '.join(_COLUMNS)}, "
            "and may have question and missing"
        )
    if twice := [name for name in (*_COLUMNS, *_MORE) if names.count(name) > 1]:
        raise InputError(f"{path}: the codebook has two columns '{twice[0]}'; leave one out")
    found: dict[str, _Names] = {}
    questions: dict[str, str] = {}
    for row in rows:
        place = f"{path}, line {rows.line_num}"
        if None in row:
            raise InputError(f"{place}: the row has more fields than the header")
        cells = {key: (row.get(key) or "").strip(BLANKS) for key in (*_COLUMNS, *_MORE)}
        name, value, question = cells["name"], cells["value"], cells["question"]
        if not name:
            if any(cells.values()):
                raise InputError(f"{place}: no column is named")
            continue
        of_column = found.setdefault(name, _Names(name))
        if question and questions.setdefault(name, question) != question:
            raise InputError(f"{place}: '{name}' has a different question in a row above")
        missing = cells["missing"].lower()
        if missing not in _YES | _NO:
            raise InputError(f"{place}: missing is '{cells['missing']}'; it is yes, or empty")
        if value:
            of_column.add(value, cells["label"], place, missing=missing in _YES)
        elif cells["label"] or missing in _YES:
            raise InputError(f"{place}: the row has no value")  # rows with a question only pass
    return {n: Entry(o.labels, o.missing, question=questions.get(n, "")) for n, o in found.items()}


class _Names:
    """The labels of a column's values while a codebook is read."""

    def __init__(self, column: str) -> None:
        self._column = column
        self.labels: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self._spelled: dict[str, str] = {}

    def add(self, value: str, label: str, place: str, *, missing: bool) -> None:
        """Add a value."""
        plain = number_text(float(value)) if re.match(NUMBER, value) else value
        if (other := self._spelled.setdefault(plain, value)) != value or value in self.names:
            spelled = "" if other == value else f", first as '{other}'"
            raise InputError(
                f"{place}: value '{value}' of '{self._column}' is repeated{spelled}; remove one "
                "of the rows"
            )
        named = self.labels if missing else self.names
        if label and label in named.values():
            other = next(one for one, text in named.items() if text == label)
            raise InputError(
                f"{place}: values '{other}' and '{value}' of '{self._column}' have one label, "
                f"'{label}'; give each its own"
            )
        (self.missing if missing else self.labels)[value] = label

    @property
    def names(self) -> dict[str, str]:
        return {**self.labels, **self.missing}


def _of_xml(content: bytes, path: Path) -> dict[str, Entry]:
    """Read a DDI-Codebook: https://ddialliance.org/Specification/DDI-Codebook/2.5/."""
    root = _parsed(content, path)
    if _tag(root) != "codeBook":
        raise InputError(
            f"{path}: this XML is not a DDI-Codebook; its outermost element must be codeBook"
        )
    found: dict[str, Entry] = {}
    for variable in root.iter():
        if _tag(variable) != "var":
            continue
        name = variable.get("name", "")
        if not name:
            raise InputError(f"{path}: a var in the codebook has no name")
        if name in found:
            raise InputError(f"{path}: the codebook has two entries for '{name}'")
        found[name] = _of_variable(variable, path)
    return found


def _of_variable(variable: Element, path: Path) -> Entry:
    place = f"{path}, var '{variable.get('name')}'"
    ranges: list[tuple[float, float]] = []
    items: list[str] = []
    for invalid in _children(variable, "invalrng"):
        items += [item.get("VALUE", "").strip(BLANKS) for item in _children(invalid, "item")]
        for limits in _children(invalid, "range"):
            try:
                ranges.append((float(limits.get("min", "-inf")), float(limits.get("max", "inf"))))
            except ValueError:
                raise InputError(
                    f"{place}: a range of missing values has a limit that is no number"
                ) from None
    declared = Entry(missing=dict.fromkeys(items, ""), missing_ranges=tuple(ranges))
    named = _Names(variable.get("name", ""))
    for category in _children(variable, "catgry"):
        value = _text(category, "catValu", place)
        if not value:
            continue
        marked, in_range = category.get("missing"), declared.is_missing(value)
        if marked not in (None, "Y", "N") or (marked == "N" and in_range):
            raise InputError(
                f"{place}: value '{value}' is missing by invalrng, and missing=\"{marked}\" by its "
                "catgry; correct one of them"
            )
        label = _text(category, "labl", place)
        named.add(value, label, place, missing=marked == "Y" or in_range)
    for value in dict.fromkeys(items):
        if value and value not in named.missing:
            named.add(value, "", place, missing=True)
    questions = [_text(question, "qstnLit", place) for question in _children(variable, "qstn")]
    asked = _only(questions, place, "qstnLit")
    return Entry(
        named.labels,
        named.missing,
        tuple(ranges),
        asked or _text(variable, "labl", place),
        variable.get("nature") == "ordinal",
    )


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: Element, tag: str) -> list[Element]:
    return [child for child in element if _tag(child) == tag]


def _text(element: Element, tag: str, place: str) -> str:
    texts = [" ".join("".join(one.itertext()).split()) for one in _children(element, tag)]
    return _only(texts, place, tag)


def _only(texts: list[str], place: str, tag: str) -> str:
    """Return the text of an element that occurs at most once."""
    several = list(dict.fromkeys(filter(None, texts)))
    if len(several) > 1:
        raise InputError(
            f"{place}: two elements {tag}, '{several[0]}' and '{several[1]}'; remove one of them"
        )
    return several[0] if several else ""


def _parsed(content: bytes, path: Path) -> Element:
    """Return the outermost element of an XML file; refuse entity declarations, which could read
    other files or grow without limit."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refused(*_: object) -> None:
        raise InputError(
            f"{path}: the XML declares entities, which are not read; export it without them"
        )

    parser.EntityDeclHandler = refused
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
        return builder.close()
    except (expat.ExpatError, ValueError, AssertionError):
        raise InputError(f"{path}: the codebook is not well-formed XML; export it again") from None
