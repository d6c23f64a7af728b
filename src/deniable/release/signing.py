"""Ed25519 signatures over the digests of all files of a release.

``SHA256SUMS`` has a line per file in sha256sum's format, ``SHA256SUMS.sig`` the 64 bytes of the
signature over it (RFC 8032): sha256sum and openssl can check both.

A signature proves that the holder of the private key made this folder. It does not prove the
holder's identity (the public key must come another way) or the numbers, which ``inspect``
recomputes.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from deniable.errors import InputError
from deniable.tables.files import digest_of

if TYPE_CHECKING:  # slow to import, and most releases are not signed
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
FILES = frozenset({SUMS, SIGNATURE})

_MOST_BYTES = 1 << 16
"""Largest size of a key file, in bytes."""

_MOST_LISTED = 1 << 24
"""Largest size of a list of digests, in bytes."""

_LINE = re.compile(r"([0-9a-f]{64})  ((?:data/)?[A-Za-z0-9_][A-Za-z0-9._-]{0,99})")


@dataclass(frozen=True)
class Signer:
    """A private key, ready to sign a release."""

    key: "Ed25519PrivateKey" = field(repr=False)

    @property
    def public(self) -> str:
        """The public key in hexadecimal, 64 digits."""
        return self.key.public_key().public_bytes_raw().hex()

    def sign(self, folder: Path) -> None:
        """Write the digests of all files in a folder, and their signature."""
        for name in FILES:  # left by a killed run
            (folder / name).unlink(missing_ok=True)
        lines = [f"{digest_of(folder / name)}  {name}\n" for name in sorted(_names(folder))]
        content = "".join(lines).encode()
        (folder / SUMS).write_bytes(content)
        (folder / SIGNATURE).write_bytes(self.key.sign(content))


def given_phrase() -> str | None:
    """Return the key's pass phrase from the environment."""
    return os.environ.get("DENIABLE_SIGN_PASSPHRASE")


def read_signer(path: str | Path, ask: Callable[[], str | None] = given_phrase) -> Signer:
    """Read a private key in PEM (openssl) or OpenSSH format."""
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(path)
    content = _read(path)
    mode = path.stat().st_mode
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"{path}: other users can read or write this private key (permissions "
            f"{stat.S_IMODE(mode):04o}); chmod 600 it, and make a new one if it may have been "
            "copied"
        )
    load = serialization.load_pem_private_key
    if b"BEGIN OPENSSH" in content:
        load = serialization.load_ssh_private_key
    try:
        key = load(content, None)
    except TypeError:  # it has a pass phrase
        phrase = ask()
        if phrase is None:
            raise InputError(
                f"{path}: the key has a pass phrase; set the environment variable "
                "DENIABLE_SIGN_PASSPHRASE, or type it at a terminal"
            ) from None
        try:
            key = load(content, phrase.encode())
        except UnsupportedAlgorithm:
            raise InputError(
                f"{path}: OpenSSH keys with a pass phrase need the package bcrypt; install "
                "it, or make a key with openssl genpkey -algorithm ed25519"
            ) from None
        except (ValueError, TypeError):
            raise InputError(f"{path}: the pass phrase does not open this key") from None
    except (ValueError, UnsupportedAlgorithm, InternalError):
        raise InputError(
            f"{path}: this is not a private key; make one with openssl genpkey -algorithm ed25519"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_ed25519(path)
    return Signer(key)


def check_signature(folder: Path, public: str | Path) -> str:
    """Check that a release was signed with a key and is unchanged since."""
    from cryptography.exceptions import InvalidSignature

    key = _public_key(Path(public))
    for name in (SUMS, SIGNATURE):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: the release is not signed; {name} is missing")
    content, signature = _read(folder / SUMS, _MOST_LISTED), _read(folder / SIGNATURE)
    try:
        key.verify(signature, content)
    except InvalidSignature:
        raise InputError(
            f"{folder}: the signature was not made with the key in {public}, or {SUMS} was altered "
            "later; do not use this release before its maker confirms one of these"
        ) from None
    listed = _listed(content, folder)
    present = _names(folder) - FILES
    for name in sorted(present | listed.keys()):
        if name not in present:
            raise InputError(f"{folder}: {name} was signed and is missing")
        if name not in listed:
            raise InputError(f"{folder}: {name} was added after the signature; remove it")
        if digest_of(folder / name) != listed[name]:
            raise InputError(f"{folder}: {name} was altered after it was signed")
    if "record.json" not in listed:
        raise InputError(f"{folder}: the signed folder is no release; record.json is missing")
    return key.public_bytes_raw().hex()


def _names(folder: Path) -> set[str]:
    """Return the paths of all files in a folder and its subfolders."""
    names: set[str] = set()
    for path, folders, files in os.walk(folder, onerror=_refuse_hidden):
        for name in (*folders, *files):
            mode = (one := Path(path, name)).lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise InputError(f"{one}: a link or a device cannot be signed; remove it")
        if not (folders or files):
            raise InputError(f"{path}: an empty folder cannot be signed; remove it")
        names |= {Path(path, name).relative_to(folder).as_posix() for name in files}
    return names


def is_signed(folder: Path) -> bool:
    """Return whether there is a signature, by any key."""
    return (folder / SIGNATURE).exists()


def _refuse_hidden(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename}: cannot be listed ({error.strerror})")


def _public_key(path: Path) -> "Ed25519PublicKey":
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content = _read(path)
    if b"PRIVATE KEY" in content:
        raise InputError(f"{path}: this is a private key; give its public key")
    load = serialization.load_pem_public_key
    if content.lstrip().startswith(b"ssh-"):
        load = serialization.load_ssh_public_key
    try:
        key = load(content.strip())
    except (ValueError, UnsupportedAlgorithm, InternalError):
        raise InputError(
            f"{path}: this is not a public key; make it with openssl pkey -in KEY -pubout"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise _not_ed25519(path)
    return key


def _not_ed25519(path: Path) -> InputError:
    return InputError(
        f"{path}: releases are signed with Ed25519, and this key has another algorithm; make one "
        "with openssl genpkey -algorithm ed25519"
    )


def _listed(content: bytes, folder: Path) -> dict[str, str]:
    """Return the digests by file name."""
    lines = content.decode("ascii", errors="replace").splitlines()
    matches = [_LINE.fullmatch(line) for line in lines]
    names = [match[2] for match in matches if match is not None]
    if len(names) != len(lines) or len(set(names)) != len(names):
        raise InputError(f"{folder / SUMS}: this is not a list of digests, one file per line")
    return {match[2]: match[1] for match in matches if match is not None}


def _read(path: Path, most: int = _MOST_BYTES) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from None
    if len(content) > most:
        raise InputError(
            f"{path}: the file is larger than {most >> 10} kB, too large for a key or a list"
        )
    return content
