"""Records of other versions and of any content: read, or refused in a sentence."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.errors import InputError
from deniable.statement import stored
from deniable.statement.record import mechanism_from_plain, read_design

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = ["product", "single-change-mixture", "gated-sum-ramp", "designed-matrix"]


def plain_of(name: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(
        (GOLDEN / str(stored.FORMAT_VERSION) / f"{name}.json").read_text()
    )
    return plain


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every object in a document."""
    if isinstance(value, dict):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from objects(item, (*path, key))


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_field_anywhere_is_refused(name: str) -> None:
    plain = plain_of(name)
    mechanism_from_plain(plain)
    for path in objects(plain):
        if "labels" in path:  # any category may have a label
            continue
        changed = json.loads(json.dumps(plain))
        place = changed
        for key in path:
            place = place[key]
        place["approved_by"] = "the privacy officer"
        with pytest.raises(InputError, match=r"unknown field|no category|other than"):
            mechanism_from_plain(changed)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("epsilon",), 10**400),
        (("epsilon",), 1e400),
        (("epsilon",), -1.0),
        (("budget",), 10**400),
        (("strength",), "much"),
        (("pair_floor",), 1e30),
        (("given_rest",), "2xx"),
        (("given_rest",), "x" * 100),
        (("given_rest",), "0.5x"),
        (("given_rest",), "nan"),
        (("method",), "homemade"),
        (("method",), "joint"),
        (("software",), "deniable 9\nVerified"),
        (("attributes", 0, "categories"), 10**30),
        (("attributes", 0, "epsilon"), None),
        (("blocks", 0, "law", "bits"), 10**30),
        (("blocks", 0, "law", "keep_weights", 0), "-1"),
        (("blocks", 0, "law", "keep_weights", 0), "f" * 10**6),
        (("blocks", 0, "attributes"), ["a1", "a1", "a1"]),
        (("schema", "attribute"), []),
        (("format_version",), True),
        (("format_version",), 0),
        (("format_version",), "2"),
    ],
)
def test_what_is_false_or_out_of_range_is_refused(path: tuple[Any, ...], value: Any) -> None:
    plain = plain_of("product")
    place = plain
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError) as refused:
        mechanism_from_plain(plain)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_caps_and_floors_are_believed_only_where_they_are_kept() -> None:
    plain = plain_of("pattern-table")
    assert (plain["given_rest"], plain["pair_floor"]) == ("1.5x", 0.5)
    for key, looser, tighter in (("given_rest", "1.6x", "1.2x"), ("pair_floor", 0.4, 0.9)):
        mechanism_from_plain(plain | {key: looser})
        with pytest.raises(InputError, match="does not keep"):
            mechanism_from_plain(plain | {key: tighter})


def test_a_later_version_is_refused_with_the_version_that_reads_it() -> None:
    later = plain_of("product") | {"format_version": 3, "software": "deniable 1.7.0"}
    with pytest.raises(InputError, match=r"reads version 2; read it with deniable 1\.7\.0 or"):
        mechanism_from_plain(later)
    with pytest.raises(InputError, match=r"version 2; read it with a later version"):
        mechanism_from_plain(later | {"software": "x" * 1000})
    with pytest.raises(InputError, match=r"has version 1 of the format .* reads version 2$"):
        mechanism_from_plain(later | {"format_version": 1})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe{",
        b'{"a": ' * 100_000,
        b"[" * 100_000,
        b'{"epsilon": 1' + b"0" * 100_000 + b"}",
        b'{"format": NaN}',
        b'{"format": "deniable mechanism"',
    ],
)
def test_files_that_hold_no_record_are_refused_in_a_sentence(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "m.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_design(file)
    assert str(refused.value).startswith(f"{file}: ")


def test_names_that_are_no_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for name in ("a" * 10_000, "a\0b", "gone.json"):
        with pytest.raises(InputError, match="cannot be read"):
            stored.read_json(tmp_path / name)
