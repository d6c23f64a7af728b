"""Signatures: what is signed, by which keys, and what of a folder may change then: nothing."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from deniable.errors import InputError
from deniable.release.signing import Signer, check_signature, is_signed, read_signer

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PEM, SSH = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
PKCS8 = serialization.PrivateFormat.PKCS8


def private(path: Path, key: object = KEY, form: object = PKCS8, phrase: bytes = b"") -> Path:
    locked = serialization.BestAvailableEncryption(phrase) if phrase else None
    how = locked or serialization.NoEncryption()
    path.write_bytes(key.private_bytes(PEM, form, how))  # type: ignore[attr-defined]
    path.chmod(0o600)
    return path


def public(path: Path, key: object = KEY, *, ssh: bool = False) -> Path:
    form = serialization.PublicFormat
    path.write_bytes(
        key.public_key().public_bytes(  # type: ignore[attr-defined]
            serialization.Encoding.OpenSSH if ssh else PEM,
            form.OpenSSH if ssh else form.SubjectPublicKeyInfo,
        )
    )
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    for name in ("record.json", "data.csv", "report.html", "codebook.csv"):
        (folder / name).write_text(f"what is in {name}\n")
    assert not is_signed(folder)
    Signer(KEY).sign(folder)
    return folder


def test_what_is_signed_is_a_list_that_sha256sum_reads(release: Path, tmp_path: Path) -> None:
    content = (release / "SHA256SUMS").read_bytes()
    lines = [line.split("  ") for line in content.decode().splitlines()]
    assert [name for _, name in lines] == ["codebook.csv", "data.csv", "record.json", "report.html"]
    for digest, name in lines:
        assert digest == hashlib.sha256((release / name).read_bytes()).hexdigest()
    KEY.public_key().verify((release / "SHA256SUMS.sig").read_bytes(), content)
    assert is_signed(release)
    raw = KEY.public_key().public_bytes_raw().hex()
    assert check_signature(release, public(tmp_path / "pub")) == raw == Signer(KEY).public
    assert check_signature(release, public(tmp_path / "pub", ssh=True)) == raw
    assert raw not in repr(Signer(KEY))


@pytest.mark.parametrize("name", ["record.json", "data.csv", "report.html", "codebook.csv"])
@pytest.mark.parametrize("how", ["altered", "missing"])
def test_no_file_can_change_or_go(release: Path, tmp_path: Path, name: str, how: str) -> None:
    file = release / name
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(InputError, match=rf"{name} was (altered|signed and is missing)"):
        check_signature(release, public(tmp_path / "pub"))


def test_neither_the_list_nor_the_signature_can_change(release: Path, tmp_path: Path) -> None:
    key = public(tmp_path / "pub")
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        before = (release / name).read_bytes()
        for after in (before[:-1], before + b"\n", b"", bytes([before[0] ^ 1]) + before[1:]):
            (release / name).write_bytes(after)
            with pytest.raises(InputError, match="not made with the key"):
                check_signature(release, key)
        (release / name).unlink()
        with pytest.raises(InputError, match=rf"not signed; {name} is missing"):
            check_signature(release, key)
        (release / name).write_bytes(before)
    assert check_signature(release, key)


def test_nothing_can_be_added_and_another_key_does_not_do(release: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not made with the key in"):
        check_signature(release, public(tmp_path / "pub", OTHER))
    (release / "readme.html").write_text("look here instead")
    with pytest.raises(InputError, match=r"readme\.html was added after"):
        check_signature(release, public(tmp_path / "pub"))


def test_a_signed_list_of_something_else_is_no_release(tmp_path: Path) -> None:
    key = public(tmp_path / "pub")
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear all")
    Signer(KEY).sign(folder)
    with pytest.raises(InputError, match=r"record\.json is missing"):
        check_signature(folder, key)
    for text in (b"nothing", b"0" * 64 + b"  ../../etc/passwd\n", (b"0" * 64 + b"  a\n") * 2):
        (folder / "SHA256SUMS").write_bytes(text)
        (folder / "SHA256SUMS.sig").write_bytes(KEY.sign(text))
        with pytest.raises(InputError, match="not a list of digests"):
            check_signature(folder, key)
    (folder / "SHA256SUMS").write_bytes(b"0" * ((1 << 24) + 1))
    with pytest.raises(InputError, match="larger than 16384 kB"):
        check_signature(folder, key)


@pytest.mark.parametrize("form", [PKCS8, SSH])
def test_keys_in_both_forms_with_and_without_a_pass_phrase(tmp_path: Path, form: object) -> None:
    assert read_signer(private(tmp_path / "k", form=form)).public == Signer(KEY).public
    if form is SSH:
        return  # a pass phrase takes a package that is not ours; see the next test
    locked = private(tmp_path / "l", form=form, phrase=b"open sesame")
    assert read_signer(locked, lambda: "open sesame").public == Signer(KEY).public
    with pytest.raises(InputError, match="pass phrase does not open"):
        read_signer(locked, lambda: "shut")
    with pytest.raises(InputError, match="DENIABLE_SIGN_PASSPHRASE"):
        read_signer(locked)


def test_a_key_that_takes_another_package_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_content: bytes, phrase: bytes | None) -> None:
        raise TypeError if phrase is None else UnsupportedAlgorithm("Need bcrypt module")

    monkeypatch.setattr(serialization, "load_ssh_private_key", load)
    with pytest.raises(InputError, match="need the package bcrypt"):
        read_signer(private(tmp_path / "k", form=SSH), lambda: "word")


def test_keys_that_cannot_be_used_are_one_sentence_each(release: Path, tmp_path: Path) -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(InputError, match="this key has another algorithm"):
        read_signer(private(tmp_path / "k", curve))
    with pytest.raises(InputError, match="this key has another algorithm"):
        check_signature(release, public(tmp_path / "pub", curve))
    with pytest.raises(InputError, match="this is a private key"):
        check_signature(release, private(tmp_path / "k"))
    (tmp_path / "text").write_text("no key at all")
    (tmp_path / "text").chmod(0o600)
    with pytest.raises(InputError, match="this is not a private key"):
        read_signer(tmp_path / "text")
    with pytest.raises(InputError, match="this is not a public key"):
        check_signature(release, tmp_path / "text")
    with pytest.raises(InputError, match="cannot be read"):
        read_signer(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be read"):
        check_signature(release, tmp_path / "none")


@pytest.mark.skipif(os.name != "posix", reason="permissions of other systems are others")
def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = private(tmp_path / "k")
    key.chmod(0o640)
    with pytest.raises(InputError, match=r"permissions 0640.*chmod 600"):
        read_signer(key)


def linked_folder(release: Path) -> None:
    (release.parent / "elsewhere").mkdir()
    (release.parent / "elsewhere" / "data.csv").write_text("another table\n")
    (release / "data").symlink_to(release.parent / "elsewhere", target_is_directory=True)


def linked_file(release: Path) -> None:
    (release / "data.csv").rename(release.parent / "data.csv")
    (release / "data.csv").symlink_to(release.parent / "data.csv")


def broken_link(release: Path) -> None:
    (release / "more.csv").symlink_to("nowhere")


def pipe(release: Path) -> None:
    os.mkfifo(release / "data.sav")


def hidden_file(release: Path) -> None:
    (release / ".data.csv").write_text("another table\n")


def nested_file(release: Path) -> None:
    (release / "data" / "more").mkdir(parents=True)
    (release / "data" / "more" / ".x").write_text("another table\n")


def empty_folder(release: Path) -> None:
    (release / "the name tells it").mkdir()


def file_called_as_the_signature(release: Path) -> None:
    (release / "data").mkdir()
    (release / "data" / "SHA256SUMS").write_text("another table\n")


def linked_signature(release: Path) -> None:
    (release / "SHA256SUMS.sig").rename(release.parent / "sig")
    (release / "SHA256SUMS.sig").symlink_to(release.parent / "sig")


@pytest.mark.parametrize(
    "add",
    [
        linked_folder,
        linked_file,
        broken_link,
        pipe,
        hidden_file,
        nested_file,
        empty_folder,
        file_called_as_the_signature,
        linked_signature,
    ],
    ids=lambda add: add.__name__,
)
def test_nothing_in_a_signed_folder_goes_without_a_signature(
    release: Path, tmp_path: Path, add: Callable[[Path], None]
) -> None:
    # Failed before: a link to a folder counted as a folder, and what is in it was overlooked.
    key = public(tmp_path / "key.pub")
    check_signature(release, key)
    add(release)
    with pytest.raises(InputError, match=r"cannot be signed|was added after the signature"):
        check_signature(release, key)
