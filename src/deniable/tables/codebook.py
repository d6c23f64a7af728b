"""Codebooks: what the values of columns are called, as files of surveys and of archives say it."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from deniable.errors import InputError


@dataclass(frozen=True)
class Entry:
    """What a codebook says of one column.

    Args:
        labels: what each value is called, by the value as text, in the codebook's order.
        missing: the same of values that stand for a missing one.
        missing_ranges: closed ranges of numbers that stand for a missing value.
        question: what people were asked.
        ordered: whether the order of the values means something.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    missing_ranges: tuple[tuple[float, float], ...] = ()
    question: str = ""
    ordered: bool = False

    def is_missing(self, value: str) -> bool:
        """Return whether a value stands for a missing one.

        >>> Entry(missing={"-9": "refused"}, missing_ranges=((90, 99),)).is_missing("97")
        True
        """
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
        """Return what every value is called, also those that stand for a missing one."""
        return {**self.labels, **self.missing}


_YES = {"1", "y", "yes", "true", "x"}

_COLUMNS = ("name", "value", "label")


def number_text(value: float) -> str:
    """Return a number as a value is written: whole ones without a point.

    >>> number_text(3.0), number_text(1.5)
    ('3', '1.5')
    """
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def read_codebook(path: Path) -> dict[str, Entry]:
    """Read a codebook that is kept apart from its table.

    A CSV file has the columns name, value and label, a row for each value of each column; besides,
    if it has them, question (what people were asked) and missing (yes, where the value stands for a
    missing one). A file that begins with ``<`` is a DDI-Codebook 2.5, as archives export it.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read, is neither, or says two things of one value.

    >>> _ = Path("codebook.csv").write_text("name,value,label\\nsex,1,male\\nsex,2,female\\n")
    >>> read_codebook(Path("codebook.csv"))["sex"].labels
    {'1': 'male', '2': 'female'}
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the codebook cannot be read ({error.strerror})") from None
    is_xml = content.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
    found = _of_xml(content, path) if is_xml else _of_csv(content, path)
    if not found:
        raise InputError(f"{path}: the codebook says nothing of any column")
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
    labels: dict[str, dict[str, str]] = {}
    missing: dict[str, dict[str, str]] = {}
    questions: dict[str, str] = {}
    for row in rows:
        cells = {key: (row.get(key) or "").strip() for key in (*_COLUMNS, "question", "missing")}
        name, value = cells["name"], cells["value"]
        if not name:
            if any(cells.values()):
                raise InputError(f"{path}, line {rows.line_num}: no column is named")
            continue
        labels.setdefault(name, {})
        missing.setdefault(name, {})
        if cells["question"]:
            questions.setdefault(name, cells["question"])
        if not value:
            continue  # a row that only has the question
        if value in labels[name] or value in missing[name]:
            raise InputError(
                f"{path}, line {rows.line_num}: value '{value}' of '{name}' is there twice"
            )
        (missing if cells["missing"].lower() in _YES else labels)[name][value] = cells["label"]
    return {n: Entry(labels[n], missing[n], question=questions.get(n, "")) for n in labels}


def _of_xml(content: bytes, path: Path) -> dict[str, Entry]:
    """Read a DDI-Codebook: https://ddialliance.org/Specification/DDI-Codebook/2.5/."""
    root = _parsed(content, path)
    if _tag(root) != "codeBook":
        raise InputError(
            f"{path}: this XML is no DDI-Codebook, whose outermost element is codeBook"
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
    labels: dict[str, str] = {}
    missing: dict[str, str] = {}
    ranges: list[tuple[float, float]] = []
    declared_missing = {
        item.get("VALUE", "")
        for invalid in _children(variable, "invalrng")
        for item in _children(invalid, "item")
    }
    for invalid in _children(variable, "invalrng"):
        for limits in _children(invalid, "range"):
            try:
                ranges.append((float(limits.get("min", "-inf")), float(limits.get("max", "inf"))))
            except ValueError:
                raise InputError(
                    f"{path}: a range of missing values of '{variable.get('name')}' has a limit "
                    "that is no number"
                ) from None
    for category in _children(variable, "catgry"):
        value = _text(category, "catValu")
        if not value:
            continue
        is_missing = category.get("missing", "N") == "Y" or value in declared_missing
        (missing if is_missing else labels)[value] = _text(category, "labl")
    missing |= {value: "" for value in declared_missing if value and value not in missing}
    asked = next((_text(q, "qstnLit") for q in _children(variable, "qstn")), "")
    entry = Entry(
        labels,
        missing,
        tuple(ranges),
        asked or _text(variable, "labl"),
        variable.get("nature") == "ordinal",
    )
    inside = {value: label for value, label in labels.items() if entry.is_missing(value)}
    kept = {value: label for value, label in labels.items() if value not in inside}
    return Entry(kept, {**missing, **inside}, entry.missing_ranges, entry.question, entry.ordered)


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: Element, tag: str) -> list[Element]:
    return [child for child in element if _tag(child) == tag]


def _text(element: Element, tag: str) -> str:
    for child in _children(element, tag):
        return " ".join("".join(child.itertext()).split())
    return ""


def _parsed(content: bytes, path: Path) -> Element:
    """Return the outermost element of an XML file; entities of its own are refused, which could
    read other files or grow without end."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refused(*_: object) -> None:
        raise InputError(f"{path}: the XML declares entities, which are not read; export it anew")

    parser.EntityDeclHandler = refused
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
        return builder.close()
    except (expat.ExpatError, ValueError, AssertionError):
        raise InputError(f"{path}: the codebook is no well-formed XML; it may be damaged") from None
