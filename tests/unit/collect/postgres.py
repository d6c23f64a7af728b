"""A PostgreSQL server of the tests' own: a cluster in a temporary folder, gone afterwards."""

import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import sqlalchemy as sa

REASON = "needs the Debian package postgresql"
INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
INITDB = str(INSTALLED[-1]) if INSTALLED else shutil.which("initdb")


@cache
def user() -> str:
    """Whom the server runs as: nobody if we are root, which it refuses."""
    return getpass.getuser() if os.geteuid() else "nobody"


def program(name: str) -> list[str]:
    """The words that run a program of the server as its user."""
    # Python's own change of the user in a forked child can wait forever for a lock that another
    # thread held.
    become = [] if os.geteuid() else ["setpriv", f"--reuid={user()}"]
    return [*become, str(Path(str(INITDB)).with_name(name))]


class Cluster:
    """A running server.

    Args:
        folder: its data and its socket; there is no port.
        durable: it waits for the disk at every commit.
    """

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.folder, self.durable = folder, durable
        self._databases = 0
        words = [*program("initdb"), "-D", "data", "-U", "owner", "-A", "trust", "--no-sync"]
        subprocess.run(
            [*words, "--locale=C", "-E", "UTF8"], check=True, capture_output=True, cwd=folder
        )
        self.start()

    def start(self) -> None:
        options = ["listen_addresses=", f"unix_socket_directories={self.folder}"]
        options.append(f"fsync={'on' if self.durable else 'off'}")
        words = [*program("postgres"), "-D", "data"]
        for option in options:
            words += ["-c", option]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder)
        ready = [*program("pg_isready"), "-q", "-h", str(self.folder)]
        while subprocess.run(ready, check=False).returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """End every process of it at once."""
        server = self.process.pid
        self.process.send_signal(signal.SIGSTOP)  # it starts no new ones
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        self.process.kill()
        self.process.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        # Who has its memory keeps the next one from starting.
        while any(Path("/proc", child).exists() for child in children):
            time.sleep(0.005)
        (self.folder / "data" / "postmaster.pid").unlink()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def url(self, database: str, role: str = "owner") -> str:
        return f"postgresql+psycopg://{role}@/{database}?host={self.folder}"

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the owner."""
        engine = sa.create_engine(self.url(database), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            result = connection.exec_driver_sql(statement)
            rows = [tuple(row) for row in result] if result.returns_rows else []
        engine.dispose()
        return rows

    def database(self) -> str:
        """Make an empty database, and return its name."""
        self._databases += 1
        name = f"study_{self._databases}"
        self.run(f"CREATE DATABASE {name}")
        return name


@contextmanager
def cluster(*, durable: bool = True) -> Iterator[Cluster]:
    """Start a server; ask first whether ``INITDB`` is there."""
    with tempfile.TemporaryDirectory(prefix="pg-") as place:
        if os.geteuid() == 0:
            os.chown(place, pwd.getpwnam(user()).pw_uid, -1)
        made = Cluster(Path(place), durable=durable)
        try:
            yield made
        finally:
            made.stop()
