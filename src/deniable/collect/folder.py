"""A study's folder: study.json (public), the store and the steward's secret (private)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from deniable.atomic_files import refuse_existing, replaced_folder
from deniable.collect.store import Store, explained, sqlite_url
from deniable.collect.study import Study, read_study
from deniable.errors import InputError
from deniable.randomness import SystemRandomness


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a study."""

    path: Path

    @classmethod
    def make(cls, path: Path, study: Study, store: str | None = None) -> "StudyFolder":
        """Make the folder, an empty store and the steward's secret, all or none."""
        refuse_existing(path, overwrite=False)
        with replaced_folder(path, overwrite=False) as folder:
            folder.chmod(0o700)
            (folder / "study.json").write_bytes(study.content)
            secret = SystemRandomness().bits(np.uint64, 4)
            _write_private(folder / "steward.secret", "".join(f"{w:016x}" for w in secret.tolist()))
            if store is not None:
                _write_private(folder / "store.url", store)
            Store.make(store or sqlite_url(folder / "store.sqlite"), study).dispose()
        return cls(path)

    @cached_property
    def study(self) -> Study:
        """The study, checked in full."""
        if not (self.path / "study.json").is_file():
            raise InputError(
                f"{self.path}: this is not the folder of a study (collect open makes one)"
            )
        return read_study(self.path / "study.json")

    @property
    def url(self) -> str:
        """The URL of the store."""
        if (self.path / "store.url").is_file():
            return self._private("store.url")
        return sqlite_url(self.path / "store.sqlite")

    @property
    def secret(self) -> str:
        """The secret part of the address of the steward's page."""
        return self._private("steward.secret")

    def _private(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(
                f"{self.path / name} cannot be read ({error.strerror}); collect open made it, and "
                "collect serve --listen public does without the steward's secret"
            ) from None
        except UnicodeDecodeError:
            raise InputError(f"{self.path / name}: this is not text") from None

    def open_store(self) -> Store:
        """Return the store."""
        study = self.study
        given = (self.path / "store.url").is_file()
        if not given and not (self.path / "store.sqlite").is_file():
            raise InputError(f"{self.path}: the store is missing (store.sqlite)")
        return Store(self.url, study)

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Open the store, and close it at the end."""
        with explained(self.url):
            store = self.open_store()
            try:
                yield store
            finally:
                store.dispose()


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(f"{text}\n".encode())
