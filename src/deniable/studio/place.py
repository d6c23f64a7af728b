"""The place of a studio: its folder, its cache, and its address, constant for a draft."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from deniable.atomic_files import FileLock, write_file
from deniable.collect.door import new_secret


@dataclass(frozen=True)
class Place:
    """Folder, cache and address of a studio."""

    folder: Path
    cache: Path
    secret: str
    port: int = 0

    @classmethod
    def of(cls, draft: Path) -> "Place":
        """Return the place of a draft, the same as before, so that an open page finds it again."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        name = sha256(str(draft.resolve()).encode()).hexdigest()[:16]
        cache = base / "deniable" / "studio" / name
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = cls(draft.resolve().parent, cache, new_secret())
        with suppress(OSError, ValueError, KeyError, TypeError):
            plain = json.loads((cache / "address.json").read_text(encoding="utf-8"))
            return replace(found, secret=str(plain["secret"]), port=int(plain["port"]))
        return found

    def claim(self) -> FileLock | None:
        """Lock the place for this process; None if another studio has locked it."""
        lock = FileLock(self.cache / "open")
        return lock if lock.claim() else None

    def listening(self, port: int) -> "Place":
        """Return the place with a port, and store its address."""
        content = json.dumps({"secret": self.secret, "port": port}).encode()
        write_file(self.cache / "address.json", content, overwrite=True, private=True)
        return replace(self, port=port)

    @property
    def address(self) -> str:
        """The page's address, which gives access."""
        return f"http://127.0.0.1:{self.port}/enter/{self.secret}"
