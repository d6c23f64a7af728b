"""Who made a release: --sign and --signed-by, in every command that makes or inspects one."""

import re
import shutil

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import deniable as library
from deniable.schema import Schema

LEVELS = ["--attribute-epsilon", "1,2,1.5", "--method", "kronecker"]
SHARE = ["share", "people.csv", "--schema", "people.toml", *LEVELS]


@pytest.fixture
def keys(people):
    key = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8
    locked = serialization.BestAvailableEncryption(b"word")
    for name, how in (("key.pem", serialization.NoEncryption()), ("locked.pem", locked)):
        (people / name).write_bytes(key.private_bytes(serialization.Encoding.PEM, form, how))
        (people / name).chmod(0o600)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (people / "key.pub").write_bytes(public)
    return key.public_key().public_bytes_raw().hex()


def test_a_signed_release_is_believed_until_any_file_of_it_changes(deniable, people, keys):
    done = deniable(*SHARE, "--sign", people / "key.pem", "--output", "r", "--json")
    assert done.status == 0, done.err
    assert "--sign key.pem" in done.json["command"]
    assert "Not checked: " in (plain := deniable("inspect", "r").out)
    assert "the signature (--signed-by)" in plain
    seen = deniable("inspect", "r", "--signed-by", "key.pub")
    assert f"Signed, and not altered since, by the key {keys}." in seen.out, seen.err
    assert "--signed-by" not in seen.out
    for source in ("r", "r/record.json"):
        found = deniable("inspect", source, "--signed-by", "key.pub", "--json").json
        assert (found["signed_by"], "signature" in found["unchecked"]) == (keys, False)
    for path in (people / "r" / "report.html", people / "r" / "SHA256SUMS"):
        shutil.copytree("r", "copy", dirs_exist_ok=True)
        (people / "copy" / path.name).write_bytes(path.read_bytes() + b"\n")
        refused = deniable("inspect", "copy", "--signed-by", "key.pub")
        assert (refused.status, refused.err.count("\n")) == (2, 1), path
        assert re.search("altered after it was signed|not made with the key", refused.err)
    again = deniable(*SHARE, "--output", "r", "--force")
    assert again.status == 0, again.err
    unsigned = deniable("inspect", "r", "--signed-by", "key.pub")
    assert "is not signed" in unsigned.err
    assert deniable("inspect", "r", "--json").json["signed_by"] is None


@pytest.mark.slow
def test_a_pass_phrase_comes_from_the_environment(deniable, people, keys, monkeypatch):
    words = [
        "pram",
        "people.csv",
        "--schema",
        "people.toml",
        "--attenuation",
        "0.5",
        "--output",
        "p",
    ]
    refused = deniable(*words, "--sign", "locked.pem")
    assert (refused.status, "DENIABLE_SIGN_PASSPHRASE" in refused.err) == (2, True)
    assert not (people / "p").exists()
    monkeypatch.setenv("DENIABLE_SIGN_PASSPHRASE", "word")
    assert deniable(*words, "--sign", "locked.pem").status == 0
    assert deniable("inspect", "p", "--signed-by", "key.pub").status == 0
    schema = Schema.from_toml(people / "people.toml")
    plan = library.design(schema, attribute_epsilon=[1, 1, 1], method="kronecker")
    library.share("people.csv", plan, "s", library.Publication(sign="locked.pem"))
    assert deniable("inspect", "s", "--signed-by", "key.pub").status == 0
    request = library.StrengthRequest(attenuation=0.5)
    library.pram("people.csv", schema, "q", library.Publication(sign="key.pem"), request=request)
    assert deniable("inspect", "q", "--signed-by", "key.pub").status == 0


def test_at_a_terminal_the_pass_phrase_is_asked_for(people, keys, monkeypatch):
    import getpass
    import sys

    from deniable.cli.arguments import read_key

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "word")
    signer = read_key(library.Publication(sign=people / "locked.pem"))
    assert signer is not None
    assert signer.public == keys


def test_only_a_release_is_signed(deniable, people, keys):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    refused = deniable("inspect", "m.json", "--signed-by", "key.pub")
    assert "only a release is signed" in refused.err
    unusable = deniable(*SHARE, "--sign", "people.csv", "--output", "r")
    assert (unusable.status, unusable.err.count("\n")) == (2, 1)


def test_of_a_signed_release_in_parts_every_part_is_signed(deniable, people, keys):
    (people / "parts").mkdir()
    for name in ("1.csv", "2.csv"):
        shutil.copy("people.csv", people / "parts" / name)
    words = ["share", "parts", *SHARE[2:], "--output", "r"]
    assert deniable(*words, "--only-begin").status == 0
    assert deniable("work", "r").status == 0
    done = deniable("finish", "r", "--sign", people / "key.pem")
    assert done.status == 0, done.err
    check = ["inspect", "r", "--signed-by", "key.pub"]
    assert f"Signed, and not altered since, by the key {keys}." in deniable(*check).out
    part = people / "r" / "data" / "part-00001.csv"
    true = part.read_bytes()
    part.write_bytes(true + b"\n")
    assert "data/part-00001.csv was altered after it was signed" in deniable(*check).err
    part.rename(people / "r" / "data" / "part-00002.csv")
    assert "data/part-00001.csv was signed and is missing" in deniable(*check).err
    part.write_bytes(true)
    assert "data/part-00002.csv was added after the signature" in deniable(*check).err
