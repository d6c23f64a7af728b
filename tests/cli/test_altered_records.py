"""Golden mechanisms with one number moved: refused, or harmless for a reason that is listed."""

import json
import math
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.design.record import mechanism_from_plain
from deniable.design.stored import FORMAT_VERSION
from deniable.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden" / str(FORMAT_VERSION)
MOST = int(os.environ.get("ALTERED", "100"))
"""Numbers of each family that are moved; all that there are, if it has fewer."""

FAMILIES = sorted(path.stem for path in GOLDEN.glob("*.json"))


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number in a record with its place; numbers of laws stand in text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*path, key))
    elif isinstance(value, list):
        for key, item in enumerate(value):
            yield from numbers(item, (*path, key))
    elif (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and "law" in path and path[-1] not in ("family", "gate", "column")
    ):
        yield path, value


def moved(value: Any, how: str) -> Any:
    """The number one unit or one per cent further, written as it was."""
    if isinstance(value, str) and value.startswith("0x"):
        number = float.fromhex(value)
        return (math.nextafter(number, math.inf) if how == "unit" else number * 1.01).hex()
    if isinstance(value, str) and "." in value:
        number = float(value)
        return repr(math.nextafter(number, 2.0) if how == "unit" else number * 1.01)
    if isinstance(value, str):
        number = int(value, 16)
        return f"{number + (1 if how == 'unit' else max(1, number // 100)):x}"
    if isinstance(value, int):
        return value + (1 if how == "unit" else max(1, abs(value) // 100))
    return math.nextafter(value, math.inf) if how == "unit" else value * 1.01


def harmless(path: tuple[Any, ...], how: str, before: Any, after: Any) -> str:
    """Why a moved number that was accepted makes nothing false; empty if there is no reason."""
    if path[0] == "budget":
        return "a looser total still holds"
    if path[0] == "pair_floor":
        return "a floor that the law keeps"
    if path[0] == "schema":
        return "another codebook, which no law contradicts"
    same = before.mechanism, after.mechanism
    levels = [(m.epsilon, *m.attribute_epsilon, *m.epsilon_given_rest) for m in same]
    close = all(
        math.isclose(a, b, rel_tol=2e-12, abs_tol=2e-12) for a, b in zip(*levels, strict=True)
    )
    if path[0] in ("blocks", "certificate") and close:
        return "a law or a proof that gives the same levels to a part in 10^12"
    if how == "unit" and close:
        return "the last place of a number that other machines may round otherwise"
    return ""


def altered(name: str, changes: list[tuple[tuple[Any, ...], str]]) -> Counter[str]:
    """What became of a mechanism with each number moved."""
    text = (GOLDEN / f"{name}.json").read_text()
    before = mechanism_from_plain(json.loads(text))
    found: Counter[str] = Counter()
    for path, how in changes:
        plain = json.loads(text)
        place = plain
        for key in path[:-1]:
            place = place[key]
        value = place[path[-1]]
        if moved(value, how) == value:  # one per cent of 0
            continue
        place[path[-1]] = moved(value, how)
        try:
            after = mechanism_from_plain(plain)
        except InputError:
            found["refused"] += 1
            continue
        after.mechanism.check_samplers()
        reason = harmless(path, how, before, after)
        assert reason, (name, path, how)
        found[reason] += 1
    return found


def all_changes(name: str) -> list[tuple[tuple[Any, ...], str]]:
    plain = json.loads((GOLDEN / f"{name}.json").read_text())
    return [(path, how) for path, _ in numbers(plain) for how in ("unit", "per cent")]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_number_that_is_moved_is_refused_or_harmless(name: str) -> None:
    changes = all_changes(name)
    some = random.Random(name).sample(changes, 3 if name == "blended-votes" else 12)
    assert altered(name, some)["refused"] > 0


@pytest.mark.slow
def test_every_number_of_every_family_moved_is_refused_or_harmless() -> None:
    found: Counter[str] = Counter()
    for name in FAMILIES:
        changes = all_changes(name)
        most = 12 if name == "blended-votes" else MOST
        found += altered(name, random.Random(1).sample(changes, min(most, len(changes))))
    for what, count in found.most_common():
        print(f"{count:6}  {what}")
    assert found["refused"] > 0.6 * found.total(), found
