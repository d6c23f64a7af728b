"""What was written is read, and says what it said then (tests/golden)."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

import deniable as package
from deniable.collect.page import page_bytes
from deniable.collect.study import read_study
from deniable.frontier.folder import read as read_frontier
from deniable.laws import FAMILIES
from deniable.release import record as release_record
from deniable.statement.record import FORMAT_VERSION, mechanism_to_plain

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path for path in GOLDEN.glob("*/answers/*.json"))
MECHANISMS = sorted(GOLDEN.glob("*/*.json"))
WRITTEN_NOW = [path for path in MECHANISMS if path.parent.name == str(FORMAT_VERSION)]


def name(path: Path) -> str:
    return f"{path.relative_to(GOLDEN).parts[0]}-{path.stem}"


def differences(now: Any, then: Any, place: str = "") -> list[str]:
    """Where an answer of today lacks something of an earlier one, or has another number.

    Sentences may be worded anew, and a later version may say more.
    """
    if isinstance(then, dict):
        if not isinstance(now, dict):
            return [place]
        return [
            line
            for key, value in then.items()
            for line in (
                differences(now[key], value, f"{place}.{key}") if key in now else [f"{place}.{key}"]
            )
        ]
    if place.endswith(".unchecked"):
        return sorted(set(then) - set(now))
    if ".cells[" in place and place.endswith((".low", ".high")) and isinstance(then, float):
        then = min(max(then, 0.0), 1.0)  # ends are cut to where shares can be since then
    if place.endswith(".uncertain"):  # what was marked stays marked; more may be
        return [place] if then and not now else []
    if isinstance(then, list):
        if not isinstance(now, list) or len(now) != len(then):
            return [place]
        return [
            line
            for i, both in enumerate(zip(now, then, strict=True))
            for line in differences(*both, f"{place}[{i}]")
        ]
    if isinstance(then, float) and isinstance(now, int | float):
        close = math.isclose(now, then, rel_tol=1e-9, abs_tol=1e-12)
        return [] if close else [f"{place}: {now} for {then}"]
    if isinstance(then, str) and isinstance(now, str) and " " in then:
        return []
    return [] if now == then else [f"{place}: {now} for {then}"]


@pytest.mark.parametrize("path", CASES, ids=name)
def test_a_golden_file_is_read_and_gives_the_numbers_it_gave(
    deniable: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parents[1])
    for line, then in json.loads(path.read_text()).items():
        result = deniable(*line.split())
        assert result.status == 0, result.err
        assert differences(result.json, then) == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/frontier")), ids=name)
def test_a_golden_frontier_is_read_and_its_matrices_give_the_numbers_that_it_states(
    path: Path,
) -> None:
    frontier = read_frontier(path)
    assert {row.method for row in frontier.rows} == {"warner", "bound"}
    for row in frontier.rows:
        assert frontier.load(row).shape[1] == 3


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/study/study.json")), ids=name)
def test_a_golden_study_goes_on(path: Path) -> None:
    study = read_study(path)  # with its law, its levels and its gates
    mechanism = study.design.mechanism
    assert study.identity == hashlib.sha256(path.read_bytes()).hexdigest()
    assert study.plain["gates"][0] != []
    codes = [0] * len(mechanism.schema.names)
    assert study.decode(study.encode(codes)) == codes
    assert study.identity in page_bytes(study).decode()


@pytest.mark.parametrize("path", WRITTEN_NOW, ids=name)
def test_a_golden_mechanism_is_written_as_it_was_read(path: Path) -> None:
    then = json.loads(path.read_text())
    now = mechanism_to_plain(package.read_design(path))
    assert differences(now, then) == []
    assert now.keys() == then.keys()
    assert now["blocks"] == then["blocks"]


def families(plain: Any) -> set[str]:
    """Every family of laws that a record names."""
    if isinstance(plain, dict):
        own = {plain["family"]} if "family" in plain else set()
        return own.union(*map(families, plain.values()))
    return set().union(*map(families, plain)) if isinstance(plain, list) else set()


def test_every_family_has_a_golden_file_of_the_format_written_now() -> None:
    assert FORMAT_VERSION == release_record.FORMAT_VERSION
    texts = (GOLDEN / str(FORMAT_VERSION)).rglob("*.json")
    assert set().union(*(families(json.loads(path.read_text())) for path in texts)) == set(FAMILIES)


def test_a_number_that_moved_or_went_missing_is_noticed() -> None:
    then = {"a": [1.0, {"b": 2.0}], "c": "product", "d": "a sentence"}
    assert differences({**then, "d": "another sentence", "e": 1}, then) == []
    assert differences({**then, "a": [1.0, {"b": 2.000001}]}, then) != []
    assert differences({**then, "a": [1.0, {}]}, then) != []
    assert differences({**then, "c": "joint"}, then) != []
