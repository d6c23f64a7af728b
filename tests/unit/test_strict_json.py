"""JSON is read in one way: strict, and without a key that is given twice."""

import json
import re
from pathlib import Path

import msgspec
import pytest

import deniable
from deniable.strict_json import from_json


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 1}',
        '{"a": 1, "\\u0061": 2}',
        '[{"b": 0}, {"b": {"c": [], "d": 1, "c": []}}]',
        b'{"\xc3\xa9": null, "e": 0, "\xc3\xa9": null}',
    ],
)
def test_a_key_that_is_given_twice_is_refused(text):
    with pytest.raises(msgspec.DecodeError, match="is given twice"):
        from_json(text)


def test_the_same_key_of_two_objects_is_no_other_one():
    text = '[{"a": 1, "b": {"a": 1e3}}, {"a": -0.5, "A": 12345678901234567890}]'
    assert from_json(text.encode()) == json.loads(text)


OWN_WORDS = {
    "tables/buckets",
    "engines/processes",
    "collect/client",
    "studio/making",
    "studio/place",
    "studio/state",
    "tables/sheet_source",
}
"""Modules that read what this program has just written for itself, or an error's sentence."""


def test_there_is_no_other_reader_of_json():
    source = Path(deniable.__file__).parent
    readers = {
        path.relative_to(source).with_suffix("").as_posix()
        for path in source.rglob("*.py")
        if re.search(r"json\.(loads?|decode|Decoder)\b", path.read_text(encoding="utf-8"))
    }
    assert readers == {"strict_json", *OWN_WORDS}
