"""No crafted input ends in a traceback, hangs, or takes a gigabyte (tests/fuzzing.py)."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import fuzzing
from deniable.collect.questionnaire import read_questionnaire
from deniable.design.matrices import response_from_file
from deniable.errors import InputError
from deniable.ledger import Ledger
from deniable.release.signing import read_signer
from deniable.schema import Attribute, Schema

SEED = 0  # the same inputs in every run of the gate; just fuzz takes others


@pytest.mark.parametrize(
    "inputs",
    [pytest.param(2_000, marks=pytest.mark.slow), pytest.param(20_000, marks=pytest.mark.weekly)],
)
def test_thousands_of_crafted_inputs_are_accepted_or_refused(inputs: int) -> None:
    found = fuzzing.fuzz(inputs, SEED, [])
    assert found.defects == [], f"python tests/fuzzing.py --inputs {inputs} --seed {SEED}"
    few = set() if inputs > 10_000 else {"frontier-certificate", "mechanism", "study"}
    for name in {name for name, _ in found.outcomes} - few:
        assert found.outcomes[name, "accepted"] > 0, name


def test_what_a_parser_should_not_do_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(content: bytes, scratch: Path) -> None:
        match content[:1]:
            case b"0":
                raise InputError("refused")
            case b"1":
                raise ValueError("a traceback")
            case b"2":
                while True:
                    pass
            case b"3":
                bytearray(1 << 31)
            case b"4":
                os._exit(3)

    parser = fuzzing.Parser(crash, [])
    monkeypatch.setattr(fuzzing, "SECONDS", 0.1)
    monkeypatch.setattr(fuzzing, "parsers", lambda _: {"it": parser})
    monkeypatch.setattr(fuzzing, "made", lambda *given: b"%d" % (given[3] % 6))
    found = fuzzing.fuzz(6, 1, [], tmp_path)
    assert found.outcomes == {("it", "refused"): 1, ("it", "accepted"): 1}
    said = ["a traceback", "seconds of CPU", "MemoryError", "ended with 3"]
    assert len(found.defects) == 4
    assert all(words in defect for words, defect in zip(said, found.defects, strict=True))
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 3000])
def test_values_too_long_or_too_deep_are_one_sentence(tmp_path: Path, value: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"title = {value}")
    with pytest.raises(InputError, match="too long or too deep"):
        Schema.from_toml(file)
    with pytest.raises(InputError, match="too long or too deep"):
        read_questionnaire(file, Schema.anonymous((2,)), fuzzing.TODAY)


def test_a_ledger_whose_damage_is_no_text_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l")
    ledger.set_budget("p", 1.0)
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content.replace(b"CREATE TABLE secret", b"CREATE TABLO s\xa8cret"))
    with pytest.raises(InputError, match="damaged"):
        ledger.events()


def test_what_was_found_by_a_million_inputs_is_one_sentence(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 3000)
    with pytest.raises(InputError, match="not JSON"):
        response_from_file(deep, Attribute("a", ("x", "y")))
    with pytest.raises(InputError, match="cannot be a ledger"):
        Ledger(tmp_path / ("a" * 2000))
    ledger = Ledger(tmp_path / "l")
    ledger.set_budget("p", 1.0)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("DROP TRIGGER events_stay")
        connection.execute("UPDATE events SET population = x'00ff'")
    connection.close()
    with pytest.raises(InputError, match="event 1 is not the original one"):
        ledger.events()
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    key = tmp_path / "key"
    key.write_bytes(pem.replace(b"K2Vw", b"K2Vv"))  # says that it is of X448
    key.chmod(0o600)
    with pytest.raises(InputError, match="this is not a private key"):
        read_signer(key)


def test_an_input_is_the_same_each_time_and_another_for_another_number() -> None:
    parser = fuzzing.Parser(print, [json.dumps({"a": [1, "b"]}).encode()])
    one = [fuzzing.made("x", parser, 7, number) for number in range(50)]
    assert one == [fuzzing.made("x", parser, 7, number) for number in range(50)]
    assert len(set(one)) > 25
