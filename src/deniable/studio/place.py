"""Where a studio is: its folder, its cache, and its address, which stays the same for a draft."""

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
    """Where a studio is."""

    folder: Path
    cache: Path
    secret: str
    port: int = 0

    @classmethod
    def of(cls, draft: Path) -> "Place":
        """Return the place of a draft: as it was, so that a page that is open finds it again."""
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
        """Hold the place, as long as this process runs; None if another studio does."""
        lock = FileLock(self.cache / "open")
        return lock if lock.claim() else None

    def listening(self, port: int) -> "Place":
        """Return the place, listening at a port, and remember it."""
        content = json.dumps({"secret": self.secret, "port": port}).encode()
        write_file(self.cache / "address.json", content, overwrite=True)
        return replace(self, port=port)

    @property
    def address(self) -> str:
        """The page's address, which lets in whoever has it."""
        return f"http://127.0.0.1:{self.port}/enter/{self.secret}"
