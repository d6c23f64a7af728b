"""The code of the page: what draws, in a second engine, against Python's sampler byte for byte."""

import json
import re
import time
import unicodedata
import zipfile
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hatchling.builders.wheel import WheelBuilder

from deniable.collect import questionnaire, scripts
from deniable.collect.client import _code, codes_of
from deniable.design.design import design
from deniable.errors import InputError
from deniable.laws import FAMILIES, law_from_plain
from deniable.schema import Attribute, Schema
from unit.collect import vectors

quickjs = pytest.importorskip("quickjs")

GOLDEN = Path(__file__).parents[2] / "golden" / "drawing" / "vectors.json"
MECHANISMS = vectors.mechanisms()
FRESH = int(time.time())  # other vectors in every run; a failure shows their bytes
SEEN = 5  # vectors among which every planted defect meets the branch that it spoils


@cache
def found(name: str, seed: int = FRESH) -> str:
    mechanism = MECHANISMS[name]
    return vectors.request(mechanism, vectors.vectors(mechanism, 80, seed=seed))


def wrong_in_quickjs(request: str, code: str | None = None, megabytes: int = 512) -> list[str]:
    context = quickjs.Context()
    context.set_memory_limit(megabytes << 20)
    context.eval(vectors.script(code))
    return list(json.loads(context.eval("wrongVectors")(request)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_second_engine_draws_what_python_draws_from_the_same_bytes(name: str) -> None:
    assert wrong_in_quickjs(found(name)) == []


@pytest.mark.weekly
@pytest.mark.parametrize("name", MECHANISMS)
def test_so_it_does_for_thousands_of_records(name: str) -> None:
    count, mechanism = -(-vectors.RECORDS // len(MECHANISMS)), MECHANISMS[name]
    context = quickjs.Context()
    context.eval(vectors.script())
    wrong, rows = context.eval("wrongVectors"), 0
    for found in vectors.batches(mechanism, count, FRESH + 1):
        assert wrong(vectors.request(mechanism, found)) == "[]"
        rows += len(found)
    assert rows == count


@pytest.mark.slow
def test_of_many_attributes_what_no_longer_fits_is_built_again() -> None:
    """Of the states of the sum only every so many are kept, here of 40 attributes in 256 KiB."""
    levels = np.random.default_rng(0).uniform(0.05, 0.4, 40).tolist()
    schema = Schema.anonymous([2 + i % 7 for i in range(40)])
    mechanism = design(schema, attribute_epsilon=levels).mechanism
    request = vectors.request(mechanism, vectors.vectors(mechanism, 1, seed=FRESH))
    code = scripts.joined(scripts.DRAWING)
    little = code.replace("const MEMORY = 48 * 1024 * 1024", "const MEMORY = 256 * 1024")
    assert wrong_in_quickjs(request, little, megabytes=3) == []
    with pytest.raises(quickjs.JSException, match="out of memory"):
        wrong_in_quickjs(request, code, megabytes=3)


def test_every_family_that_may_be_collected_with_has_vectors() -> None:
    found = {b.law.family for mechanism in MECHANISMS.values() for b in mechanism.blocks}
    assert found == set(FAMILIES) - {"invariant", "forms"}


@pytest.mark.parametrize("golden", json.loads(GOLDEN.read_text()), ids=lambda g: g["name"])
def test_the_published_vectors_hold_in_python_and_in_the_browser(golden: dict) -> None:
    """Studies that were opened with this version go on drawing as they did."""
    record = golden["record"]
    law = law_from_plain(record["blocks"][0]["law"], tuple(record["sizes"]))
    sampler = law.sampler()
    for vector in golden["vectors"]:
        source = vectors.GivenBits(bytes.fromhex(vector["bytes"]))
        assert vectors.one_row(sampler, vector["codes"], source) == vector["drawn"]
        assert source.at == len(source.content)
    assert wrong_in_quickjs(json.dumps(golden)) == []


def test_numbers_are_rounded_and_drawn_as_in_python() -> None:
    published = json.loads(GOLDEN.with_name("numbers.json").read_text())
    schema = Schema.from_plain(published["schema"])
    (block,) = published["record"]["blocks"]
    law = law_from_plain(block["law"], schema.n_categories)
    for vector in published["vectors"]:
        source = vectors.GivenBits(bytes.fromhex(vector["bytes"]))
        codes = codes_of(schema, vectors.answers_of(schema, vector["answers"]), source)
        assert vectors.one_row(law.sampler(), codes, source) == vector["drawn"]
        assert source.at == len(source.content)
    assert wrong_in_quickjs(json.dumps(published)) == []
    assert wrong_in_quickjs(vectors.of_numbers(60, FRESH)) == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("(value * step) >> bits", "(value * step) >> (bits - 1n)"),
        ("while (whole(value, bits) !== ((value + 1n) * step - 1n) >> bits)", "while (false)"),
        ("whole(value, bits) < units % step", "whole(value, bits) <= units % step"),
        ("clip ? (units < 0n ? 0n : most) : null", "clip ? most : null"),
        ("names.indexOf(attribute)] += code * stride", "names.indexOf(attribute)] += code"),
    ],
)
def test_a_wrong_rounding_of_numbers_is_caught(good: str, bad: str) -> None:
    code = scripts.joined(scripts.DRAWING)
    assert code.count(good) == 1
    assert wrong_in_quickjs(vectors.of_numbers(60, SEEN), code.replace(good, bad))


@pytest.mark.parametrize("outside", ["refuse", "clip"])
def test_a_text_is_as_many_units_as_python_counts(outside: Literal["refuse", "clip"]) -> None:
    column = Attribute("x", range=(-30.5, 200.25), grid=7, outside=outside)
    question = questionnaire.place(column, column)
    context = quickjs.Context()
    context.eval(scripts.joined(("numbers",)))
    units = context.eval(f"text => String(unitsOf(text, {json.dumps(question['grid'])}))")
    digits = [
        "5",
        "50",
        "15",
        "25",
        "250",
        "251",
        "249",
    ]  # after ten decimals, of which eleven count
    texts = [f"{sign}3.{'1' * 10}{more}" for sign in ("", "-") for more in digits]
    for text in [*texts, "-30.5", "200.25", "-30.51", "200.250000000001", "200.2500001", "7", "-0"]:
        try:
            found = str(_code(column, Decimal(text)))
        except InputError:
            found = "null"
        assert units(text) == found
    assert {units(text) for text in ("", "1e3", "seven", "1,5", "NaN", ".5", "5.")} == {"null"}


# What a mistake would look like, and laws whose vectors must notice it.
DEFECTS = {
    "a word is read from its other end": (
        "(BigInt(half(4)) << 32n) | BigInt(half(0))",
        "(BigInt(half(0)) << 32n) | BigInt(half(4))",
        "single change",
    ),
    "a short word is": ("bytes[0] + 256 * bytes[1]", "bytes[1] + 256 * bytes[0]", "scores"),
    "below is taken for below or equal": (
        "values[middle] <= limit",
        "values[middle] < limit",
        "product, few bits",
    ),
    "a choice is settled by its first bits": (
        "decided(smaller, edge, source) :",
        "false :",
        "vote, steep",
    ),
    "a choice is equal or below": (
        "decided(smaller, edge, source) :",
        "true :",
        "vote, dithered, retained",
    ),
    "53 bits of 64 are looked at": (
        "BigInt(half(0))",
        "BigInt((half(0) & 0xfffff800) >>> 0)",
        "vote, steep",
    ),
    "a tie ends at the second word": (
        "if (least === most) return least;",
        "return least;",
        "single change",
    ),
    "a likely choice is not turned round": ("below !== flip", "below", "vote"),
    "the prefix is drawn twice": (
        "bigWord(source) >> bits",
        "bigWord(source)",
        "single change",
    ),
    "the dither is drawn only if it counts": (
        "this.dither[i] > 0 && choose",
        "this.dither[i] > 0 && !changed && choose",
        "ramp",
    ),
    "the score falls by the number of changes": (
        "score -= cost * changes",
        "score -= changes",
        "scores of kinds",
    ),
    "as many are kept as should change": (
        "[BigInt(among - changes), BigInt(changes)]",
        "[BigInt(changes), BigInt(among - changes)]",
        "scores of kinds",
    ),
    "sets of changes are counted once": (
        "ways * BigInt(members.length - n + 1)",
        "ways * 1n",
        "scores of kinds",
    ),
    "what is replaced is drawn only if it is used": (
        "choose(retention[i], 1 - retention[i], source) ? shift : anything",
        "choose(1 - retention[i], retention[i], source) ? anything : shift",
        "blend",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_caught(defect: str) -> None:
    good, bad, name = DEFECTS[defect]
    code = scripts.joined(scripts.DRAWING)
    assert code.count(good) == 1
    assert wrong_in_quickjs(found(name, seed=SEEN), code.replace(good, bad))


FORBIDDEN = re.compile(r"Math\.(?!floor|ceil|min|max|sqrt|abs)\w+|\*\*|Math\[|\bDate\b|performance")


@pytest.mark.parametrize("module", scripts.DRAWING)
def test_what_draws_only_adds_multiplies_and_divides(module: str) -> None:
    code = re.sub(r"//.*|/\*.*?\*/", "", scripts.read(f"{module}.js"), flags=re.DOTALL)
    assert FORBIDDEN.findall(code) == []
    assert FORBIDDEN.search("Math.exp(1)")
    assert FORBIDDEN.search("2 ** x")


@pytest.mark.parametrize("module", scripts.PAGE)
def test_random_bits_have_one_door(module: str) -> None:
    doors = re.findall(r"getRandomValues|randomUUID|Math\.random", scripts.read(f"{module}.js"))
    assert doors == (["getRandomValues", "getRandomValues"] if module == "randomness" else [])


def test_every_module_comes_after_what_it_imports() -> None:
    for place, module in enumerate(scripts.PAGE):
        imported = scripts._IMPORT.findall(scripts.read(f"{module}.js"))
        assert set(imported) <= set(scripts.PAGE[:place]), module
    assert len(imported) > 3


@pytest.mark.slow
def test_the_wheel_has_all_that_pages_and_stores_are_made_of(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    (wheel,) = WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        held = {name: packed.read(name) for name in packed.namelist()}
    source = root / "src" / "deniable"
    rooms = [
        path for room in ("collect", "report", "studio") for path in (source / room).rglob("*")
    ]
    files = [path for path in rooms if path.is_file() and path.suffix not in (".pyc", ".cache")]
    kinds = {".js", ".css", ".json", ".toml", ".py", ".j2", ".txt"}
    assert kinds == {path.suffix for path in files}
    for path in files:
        assert held[str(path.relative_to(root / "src"))] == path.read_bytes()


def typed(expression: str) -> Any:
    context = quickjs.Context()
    context.eval(scripts.joined(("typed",)))
    return context.eval(expression)


def test_a_number_is_read_in_the_digits_of_every_script() -> None:
    letters = map(chr, range(0x10000))
    digits = [letter for letter in letters if unicodedata.decimal(letter, None) is not None]
    assert len(digits) > 300
    for digit in digits:
        read = typed(f"decimalFrom({json.dumps(digit + '0' + digit)}, '.')")
        assert read == f"{unicodedata.digit(digit)}0{unicodedata.digit(digit)}", hex(ord(digit))


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("7.5", ".", 7.5),
        ("7,5", ".", 7.5),
        (" -12 ", ".", -12),
        ("\u221212", ".", -12),  # a minus sign
        ("\u200f\u0667\u066b\u0665\u0660\u0660", ".", 7.5),  # ٧٫٥٠٠ after a mark of direction
        ("1.500", ".", 1.5),
        ("1,500", ",", 1.5),
        ("0,125", ".", 0.125),
        ("1500,125", ".", 1500.125),
        # Fifteen hundred to some, one and a half to others.
        ("1,500", ".", None),
        ("1.500", ",", None),
        ("-12,000", ".", None),
        ("1,500,000", ".", None),
        ("1e3", ".", None),
        ("0x10", ".", None),
        ("7.", ".", None),
        (".5", ".", None),
        ("", ".", None),
        ("Infinity", ".", None),
        ("\U0001d7d7", ".", None),  # a digit of mathematicians, which nobody types
    ],
)
def test_a_number_that_could_be_read_as_two_is_not_read(
    text: str, decimal: str, number: float | None
) -> None:
    read = typed(f"decimalFrom({json.dumps(text)}, {json.dumps(decimal)})")
    assert read == "" if number is None else float(read) == number


def test_a_number_lies_in_the_interval_that_python_says() -> None:
    edges, numbers = [-2.5, 0, 5, 7.5, 24], [-3, -2.5, -0.1, 0, 4.99, 5, 7.5, 23.9, 24, 24.1]
    column = Attribute("a", bins=tuple(edges))
    for number in numbers:
        try:
            code = _code(column, number)
        except InputError:
            code = -1
        assert typed(f"intervalOf({edges}, {number})") == code
    assert typed(f"intervalOf({edges}, NaN)") == -1
