"""Invitations: links, made all or none; the store contains their hashes."""

import os
import re
from pathlib import Path

import numpy as np

from deniable.atomic_files import (
    refuse_existing,
    refuse_foreign_folder,
    replaced_folder,
    write_file,
)
from deniable.collect.collector import today
from deniable.collect.folder import StudyFolder
from deniable.errors import InputError
from deniable.randomness import SystemRandomness

MOST = 1_000_000
"""Most invitations per call."""


def new_tokens(count: int) -> list[str]:
    """Return tokens of invitations, of 128 random bits each."""
    words = SystemRandomness().bits(np.uint64, 2 * count).tolist()
    return [f"{words[2 * i]:016x}{words[2 * i + 1]:016x}" for i in range(count)]


def invite(study: StudyFolder, count: int, url: str, output: Path, qr: Path | None = None) -> None:
    """Write one link per invited person, and add their hashes to the store.

    A link allows an answer, so only the owner can read the file. It is complete on the disk before
    the store is changed; after an interruption in between, the same call finds the links and adds
    them.
    """
    if not 1 <= count <= MOST:
        raise InputError("--count: from 1 to 1,000,000")
    if study.study.open_to_all:
        raise InputError(
            f"{study.path}: the study is open to all and has no invitations; publish its address"
        )
    with study.opened() as store:
        if store.is_closed() or today() > study.study.closes:
            raise InputError(
                f"{study.path}: the study is closed; invitations are no longer possible"
            )
        start = f"{url.rstrip('/')}/#"
        tokens = _left(output, start, count)
        if tokens is None or store.knows(tokens):
            tokens = new_tokens(count)
            for path in (output, *([] if qr is None else [qr])):
                if os.path.lexists(path):
                    raise InputError(
                        f"{path} exists, and its links may be in use; name another file"
                    )
                refuse_existing(path, overwrite=False)
            lines = "".join(f"{start}{token}\n" for token in tokens)
            write_file(output, f"link\n{lines}".encode(), overwrite=False, private=True)
        if qr is not None:
            _write_images(qr, [f"{start}{token}" for token in tokens])
        store.invite(tokens)


def _left(output: Path, start: str, count: int) -> list[str] | None:
    """Return the tokens in the file of an interrupted run; None without one."""
    try:
        lines = output.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    link = re.compile(re.escape(start) + "([0-9a-f]{32})")
    found = [link.fullmatch(line) for line in lines[1:]]
    tokens = [match[1] for match in found if match]
    whole = lines[:1] == ["link"] and len(tokens) == len(found) == count
    return tokens if whole else None


def _write_images(qr: Path, links: list[str]) -> None:
    import segno

    def ours(names: set[str]) -> bool:
        return all(re.fullmatch(r"\d{6,}\.svg", name) for name in names)

    refuse_foreign_folder(qr, "a folder of QR images", ours, overwrite=True)
    with replaced_folder(qr, overwrite=True) as images:
        images.chmod(0o700)
        for number, link in enumerate(links, start=1):
            segno.make(link, error="m").save(str(images / f"{number:06}.svg"), scale=4)
