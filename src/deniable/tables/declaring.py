"""Schema declarations from a codebook, instead of drafts."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deniable.errors import InputError
from deniable.tables.codebook import Entry

_SHOWN = 5
"""Largest number of values, and of kinds of contradiction, shown."""

_MOST_UNNAMED = 20
"""Largest number of unlabelled values of a column of numbers that is still declared by its
labels."""


@dataclass(frozen=True)
class Seen:
    """Values in a column of a table."""

    values: Sequence[str] | None
    codes: tuple[str, ...]
    empty: bool
    number: bool

    def unnamed(self, entry: Entry) -> list[str] | None:
        """Return the values without a label in a codebook; None if there are too many."""
        if self.values is None:
            return None
        return [value for value in self.values if value not in entry.labels]


def declared_lines(name: str, entry: Entry, seen: Seen) -> list[str] | None:
    """Return the declaration of a column by its codebook labels; None if it has none, or only some
    numbers among many have one.
    """
    unnamed = seen.unnamed(entry)
    if not entry.labels or unnamed is None or (seen.number and len(unnamed) > _MOST_UNNAMED):
        return None
    lines = []
    if unnamed:
        lines = _comment(
            "rows hold values without a label, which were read off the data: "
            + ", ".join(map(quoted, unnamed))
        )
    categories = _in_order([*entry.labels, *unnamed])
    codes = list(dict.fromkeys([*entry.missing, *seen.codes]))
    missing = codes[0] if len(codes) == 1 else "NA" if codes or seen.empty else ""
    if missing == "NA" and missing in categories:
        missing = "missing"
    if len(categories) + bool(missing) < 2:
        return [f"# column {quoted(name)} has fewer than two values: leave it out"]
    labels = {v: entry.labels[v] for v in categories if entry.labels.get(v, "") not in ("", v)}
    named = [entry.missing[code] for code in codes if entry.missing.get(code)]
    if missing and named and "; ".join(named) != missing:
        labels[missing] = "; ".join(named)
    shared = sorted({label for label in labels.values() if [*labels.values()].count(label) > 1})
    if shared:
        lines += _comment(
            "several values have one label, to which the value is added: "
            + ", ".join(map(quoted, shared))
        )
        labels = {v: f"{text} ({v})" if text in shared else text for v, text in labels.items()}
    lines += ["[[attribute]]", f"name = {quoted(name)}"]
    lines += _array("categories", categories)
    if entry.ordered:
        lines.append("ordered = true")
    if labels:
        lines += inline_table("labels", labels)
    if unnamed:
        lines.append("drafted = true")
    if missing:
        lines.append(f"missing = {quoted(f'category:{missing}')}")
        if further := [code for code in codes if code != missing]:
            lines += _array("missing_codes", further)
    return lines


def with_texts(name: str, lines: Sequence[str], entry: Entry) -> list[str]:
    """Return a declaration with the question text added."""
    named = f"name = {quoted(name)}"
    if not entry.question or entry.question == name:
        return list(lines)
    question = f"question = {quoted(entry.question)}"
    if named in lines:
        place = lines.index(named) + 1
        return [*lines[:place], question, *lines[place:]]
    return [*_comment(entry.question), *lines]


def refuse_contradictions(
    table: str,
    found: Mapping[str, Mapping[str, int] | None],
    codebook: Mapping[str, Entry],
    *,
    show_values: bool,
) -> None:
    """Raise if a table contradicts its separate codebook."""
    wrong = []
    if absent := [name for name in codebook if name not in found]:
        shown = ", ".join(f"'{name}'" for name in absent[:_SHOWN])
        more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        wrong.append(f"the table has no column {shown}{more}")
    for name, entry in codebook.items():
        if name not in found or not entry.labels:
            continue
        rows = found[name]
        if rows is None:
            wrong.append(f"column '{name}' has thousands of values, and the codebook lists a few")
            continue
        values = [value for value in rows if value not in entry.labels]
        if values:
            n_rows = sum(rows[value] for value in values)
            shown = ", ".join(f"'{value}'" for value in values[:_SHOWN])
            more = f" ({shown}{', …' if len(values) > _SHOWN else ''})" if show_values else ""
            wrong.append(
                f"column '{name}': {n_rows:,} {'row holds' if n_rows == 1 else 'rows hold'} "
                f"{len(values):,} {'value' if len(values) == 1 else 'values'} that the codebook "
                f"does not name{more}"
            )
    if wrong:
        hint = "" if show_values else "; `deniable schema init --show-values` shows the values"
        listed = "".join(f"\n  {sentence}" for sentence in wrong)
        raise InputError(
            f"{table} and the codebook contradict each other; correct one of them{hint}:{listed}"
        )


def quoted(text: str) -> str:
    """Return a text in TOML notation."""
    # TOML needs JSON's escapes and one more: DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _in_order(values: Sequence[str]) -> list[str]:
    """Return values sorted as numbers if all are numbers, else unchanged."""
    try:
        return sorted(values, key=float)
    except ValueError:
        return list(values)


def _comment(text: str) -> list[str]:
    plain = " ".join(text.split())
    return ["# " + line for line in textwrap.wrap(plain, 96, break_on_hyphens=False)]


def _array(key: str, values: Sequence[str]) -> list[str]:
    line = f"{key} = [{', '.join(map(quoted, values))}]"
    if len(line) <= 96:
        return [line]
    return [f"{key} = [", *(f"  {quoted(value)}," for value in values), "]"]


def inline_table(key: str, values: Mapping[str, str]) -> list[str]:
    """Return lines with a table of texts in TOML notation."""
    cells = [f"{quoted(value)} = {quoted(label)}" for value, label in values.items()]
    line = f"{key} = {{ {', '.join(cells)} }}"
    if len(line) <= 96:
        return [line]
    # An inline table has one line in TOML 1.0; a separate table would end the attribute.
    return [f"labels.{cell}" for cell in cells]
