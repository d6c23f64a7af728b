"""Whatever happens to a command that writes: the older output or the newer, whole, never between.

The commands run in copies of this process, so that they start at once and can be killed at a
chosen call. They draw from a seed, so that a whole new output is known to the byte.
"""

import contextlib
import errno
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cli.conftest import SCHEMA, TABLE
from deniable.cli import main
from deniable.collect.folder import StudyFolder
from killing import forked, killed, moments
from marked import slow_after
from unit.collect.studies import example_files, example_folder, fill

LEVELS = ["--attribute-epsilon", "1,2,1.5", "--method", "kronecker"]
SEED = ["--insecure-seed", "1"]
FRONTIER = [
    *("frontier", "--distribution", "normal,3", "--delta", "0.9", "--methods", "warner"),
    "--output",
]


@dataclass
class Command:
    """A command that writes, without --force; the output is the last word.

    Args:
        words: what is typed.
    """

    words: list[str]

    @property
    def output(self) -> Path:
        return Path(self.words[-1])


COMMANDS = {
    "design": Command(["design", "--schema", "people.toml", *LEVELS, "--output", "x.json"]),
    "share": Command(
        ["share", "people.csv", "--mechanism", "m.json", "--shuffle", *SEED, "--output", "x"]
    ),
    "share, signed": Command(
        ["share", "people.csv", "--mechanism", "m.json", *SEED, "--sign", "key", "--output", "x"]
    ),
    "share to Parquet": Command(
        ["share", "people.parquet", "--mechanism", "m.json", *SEED, "--output", "x"]
    ),
    "randomize": Command(
        ["randomize", "people.csv", "--mechanism", "m.json", *SEED, "--output", "x.csv"]
    ),
    "randomize to Parquet": Command(
        ["randomize", "people.csv", "--mechanism", "m.json", *SEED, "--output", "x.parquet"]
    ),
    "pram": Command(
        [
            "pram",
            "people.csv",
            "--schema",
            "people.toml",
            "--attenuation",
            "0.5",
            *SEED,
            "--output",
            "x",
        ]
    ),
    "schema init": Command(["schema", "init", "people.csv", "--output", "x.toml"]),
    "ledger export": Command(["ledger", "export", "l", "--output", "x.out"]),
    "estimate": Command(
        ["estimate", "p.parquet", "--mechanism", "m.json", "--of", "sex", "--output", "x.csv"]
    ),
    "collect page": Command(["collect", "page", "study", "--output", "x.html"]),
    "collect export": Command(["collect", "export", "study", "--output", "x"]),
    "collect export, signed": Command(
        ["collect", "export", "study", "--sign", "key", "--output", "x"]
    ),
    "frontier pick": Command(
        ["frontier", "pick", "front", "--privacy", "0.3", "--name", "a", "--output", "x.json"]
    ),
    "frontier": Command([*FRONTIER, "x"]),
    "reproduce": Command(["reproduce", "impact", "--quick", "--output", "x"]),
}
SLOW = {"frontier", "frontier pick", "reproduce"}
"""Seconds long, or read what takes seconds to make."""


def run(words: list[str], folder: Path, *, out: str = os.devnull, said: int = -1) -> int:
    """Run a command in a copy of this process; return its status. What it says goes to an open
    file."""
    os.chdir(folder)
    sys.stderr = open(said if said >= 0 else os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stdout = open(out, "w")  # noqa: SIM115, PTH123
    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stderr.flush()
    return 0


def done(words: list[str], folder: Path) -> None:
    """Run a command to its end, or raise."""
    assert run(words, folder) == 0


def started(
    words: list[str],
    folder: Path,
    before: Callable[[], None] = lambda: None,
    out: str = os.devnull,
) -> tuple[int, int]:
    """Start a command in a copy of this process; return its process id, and where to read what it
    says."""
    read, write = os.pipe()

    def work() -> None:
        before()
        os._exit(run(words, folder, said=write, out=out))

    child = forked(work)
    os.close(write)
    return child, read


def ended(child: int, read: int) -> tuple[int, str]:
    """Return the exit status of a command that was started, and what it said."""
    with os.fdopen(read) as text:
        said = text.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def outcome(
    words: list[str], folder: Path, before: Callable[[], None] = lambda: None
) -> tuple[int, str]:
    """Return the exit status of a command, run in a process of its own, and what it said."""
    return ended(*started(words, folder, before))


def content(path: Path) -> dict[str, bytes] | None:
    """Return the bytes of a file, or of all files of a folder."""
    if not path.exists():
        return None
    if path.is_file():
        return {"": path.read_bytes()}
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def prepared() -> Iterator[Path]:
    """A folder with everything that the commands read; readable by everybody."""
    place = Path(tempfile.mkdtemp(prefix="deniable-"))
    place.chmod(0o777)
    folder = place / "prepared"
    folder.mkdir()
    (folder / "people.csv").write_text(TABLE)
    (folder / "people.toml").write_text(SCHEMA)
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (folder / "key").write_bytes(pem)
    (folder / "key").chmod(0o600)
    for words in (
        ["design", "--schema", "people.toml", *LEVELS, "--output", "m.json"],
        ["randomize", "people.csv", "--mechanism", "m.json", "--output", "p.parquet"],
        ["ledger", "budget", "l", "--epsilon", "9"],
    ):  # fmt: skip
        status, said = outcome(words, folder)
        assert status == 0, said
    # Of one record every export is the same: its rows are in random order.
    fill(example_folder(folder), 1)
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pyarrow.csv.read_csv(
            folder / "people.csv",
            convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True),
        ),
        folder / "people.parquet",
    )
    warm = fresh(folder, "warm")
    for name, command in COMMANDS.items():
        if name not in SLOW:
            run_here(command.words, warm)
            (warm / command.output).rename(warm / f"done-{len(list(warm.iterdir()))}")
    yield folder
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def traced(prepared: Path) -> Path:
    """The same with a frontier in it, and with what only slow commands import imported."""
    run_here([*FRONTIER, "front"], prepared)
    run_here(COMMANDS["reproduce"].words, fresh(prepared, "warm"))
    return prepared


def run_here(words: list[str], folder: Path) -> None:
    """Run a command in this process, so that its copies need not import anything."""
    terminate = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", io.StringIO())
        patch.setattr(sys, "stdout", io.StringIO())
        patch.chdir(folder)
        main(words)
    signal.signal(signal.SIGTERM, terminate)


def fresh(prepared: Path, name: str) -> Path:
    folder = prepared.parent / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    return folder


def with_older(command: Command, folder: Path) -> dict[str, bytes] | None:
    """Make an older output that differs from the newer one in something."""
    status, said = outcome(command.words, folder)
    assert status == 0, said
    output = folder / command.output
    changed = output / "codebook.csv" if (output / "codebook.csv").exists() else output
    if changed.is_dir():
        changed = sorted(p for p in changed.iterdir() if p.is_file())[0]
    changed.write_bytes(changed.read_bytes() + b"\n")
    return content(output)


def kill_and_look(prepared: Path, command: Command, count: int, *, older: bool) -> None:
    """Kill a command at moments spread over its course; look, run it again, and look again."""
    words = [*command.words[:-2], "--force", *command.words[-2:]] if older else command.words
    folder = fresh(prepared, "whole")
    before = with_older(command, folder) if older else None
    start = fresh(folder, "start")
    total = moments(lambda: done(words, folder), "deniable")
    new = content(folder / command.output)
    assert new is not None
    assert new != before
    died = 0
    for turn in range(count):
        moment = total * turn // count
        folder = fresh(start, "killed")
        names = {p.name for p in folder.iterdir()}
        died += killed(partial(done, words, folder), moment, "deniable")
        assert content(folder / command.output) in (before, new), moment
        left = [p.name for p in folder.iterdir() if p.name not in {*names, str(command.output)}]
        again = [*command.words[:-2], "--force", *command.words[-2:]]
        status, said = outcome(again, folder)
        assert status == 0, said
        assert content(folder / command.output) == new
        now = {p.name for p in folder.iterdir()} - names - {str(command.output)}
        for name in left:
            # A folder that is still empty may belong to a process that has just made it.
            if name in now:
                assert not any((folder / name).iterdir())
            else:
                assert name in said
    assert died >= count - 1


KILLS = int(os.environ.get("KILLS", "3"))  # of each command: just kill
QUICK = [("share", True)]


@pytest.mark.parametrize(
    ("name", "older"),
    [
        pytest.param(name, True, marks=[pytest.mark.slow] * ((name, True) not in QUICK))
        for name in COMMANDS
    ]
    + [pytest.param(name, False, marks=pytest.mark.weekly) for name in COMMANDS],
)
def test_a_killed_command_leaves_the_older_output_or_the_newer(request, no_plot, name, older):
    folder = request.getfixturevalue("traced" if name in SLOW else "prepared")
    kill_and_look(folder, COMMANDS[name], KILLS, older=older)


OPEN = ["collect", "open", "--mechanism", "mechanism.json", "--questionnaire", "q.toml"]
INVITE = ["collect", "invite", "study", "--count", "3", "--output", "x.csv", "--qr", "qr"]


def kill_everywhere(start: Path, words: list[str], look: Callable[[Path], None]) -> None:
    """Kill a command that draws fresh bits at moments spread over its course; look at each."""
    total = moments(lambda: done(words, fresh(start, "whole")))
    for turn in range(KILLS):
        folder = fresh(start, "killed")
        killed(partial(done, words, folder), total * turn // KILLS)
        look(folder)


@pytest.fixture(scope="module")
def invited(prepared: Path) -> Path:
    """A folder with the files of a study by invitation, and the study."""
    folder = prepared.parent / "invited"
    folder.mkdir()
    _, questionnaire = example_files(folder, respondents='"invited"')
    questionnaire.rename(folder / "q.toml")
    status, said = outcome([*OPEN, "--output", "study"], folder)
    assert status == 0, said
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("store", [[], ["--store", "sqlite:///elsewhere.sqlite"]])
def test_a_killed_open_leaves_a_whole_study_or_none_and_can_be_run_again(invited, store):
    words = [*OPEN, *store, "--output", "x"]

    def look(folder: Path) -> None:
        if not (folder / "x").exists():
            status, said = outcome(words, folder)
            assert status == 0, said
        with contextlib.chdir(folder):
            study = StudyFolder(Path("x"))
            assert len(study.secret) == 64
            with study.opened() as opened:
                assert opened.totals().records == 0

    kill_everywhere(invited, words, look)


@pytest.mark.slow
def test_a_killed_invite_leaves_no_invitation_without_its_link(invited):
    def look(folder: Path) -> None:
        study = StudyFolder(folder / "study")
        with study.opened() as store:
            known = store.totals().invitations
        assert known in (0, 3)
        status, said = outcome(INVITE, folder)
        assert status == (2 if known else 0), said
        tokens = [line[-32:] for line in (folder / "x.csv").read_text().splitlines()[1:]]
        assert len(list((folder / "qr").iterdir())) == len(set(tokens)) == 3
        with study.opened() as store:
            assert store.totals().invitations == 3
            assert all(store.knows([token]) for token in tokens)

    kill_everywhere(invited, INVITE, look)


# --- what the machine does -----------------------------------------------------------------------


@pytest.mark.parametrize("name", slow_after(2, ["share", "randomize", "pram", "schema init"]))
def test_a_full_disk_is_one_sentence_and_the_older_output_stays(prepared, name):
    command = COMMANDS[name]
    folder = fresh(prepared, "full")
    before = with_older(command, folder)
    words = [*command.words[:-2], "--force", *command.words[-2:]]

    def full(size: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    names = sorted(p.name for p in folder.iterdir())
    for size in (0, 40):
        status, said = outcome(words, folder, partial(full, size))
        assert status == 2, said
        assert "the disk is full" in said.splitlines()[-1]
        assert "Traceback" not in said
        assert content(folder / command.output) == before
        assert sorted(p.name for p in folder.iterdir()) == names


def sealed() -> None:
    """Let the system refuse to make anything, as in a folder without permission; root may all."""
    real = os.open

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    def look(path: object, flags: int, *rest: int, **named: int) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            refuse()
        return real(path, flags, *rest, **named)  # type: ignore[arg-type]

    os.mkdir = refuse  # type: ignore[assignment]
    os.open = look  # type: ignore[assignment]


@pytest.mark.parametrize("name", ["design", "share", "randomize", "pram", "schema init"])
def test_a_folder_that_cannot_be_written_is_one_sentence(prepared, name):
    folder = fresh(prepared, "locked")
    status, said = outcome(COMMANDS[name].words, folder, sealed)
    said_by_us = [line for line in said.splitlines() if line.startswith("deniable: ")]
    assert status == 2, said
    assert len(said_by_us) == 1
    assert "cannot be written: system error: Permission denied" in said_by_us[0]
    assert "Traceback" not in said


def test_a_ledger_that_cannot_be_written_stops_the_release(prepared):
    folder = fresh(prepared, "sealed")
    words = [w for w in COMMANDS["share"].words if w not in SEED]
    status, said = outcome([*words[:-2], "--ledger", "new", *words[-2:]], folder, sealed)
    assert status == 2
    assert "new cannot be written: system error: Permission denied" in said
    assert not (folder / "x").exists()


def test_a_reader_that_goes_is_one_sentence(prepared):
    folder = fresh(prepared, "pipe")
    (folder / "people.csv").write_text(TABLE + "f,25,A\n" * 300_000)
    read, write = os.pipe()
    child, said = started(
        ["randomize", "people.csv", "--mechanism", "m.json"],
        folder,
        lambda: os.close(read),
        f"/dev/fd/{write}",
    )
    os.close(write)
    os.read(read, 1000)
    os.close(read)
    assert ended(child, said) == (
        141,
        "deniable: standard output was closed by its reader\n",
    )


@pytest.mark.parametrize("name", slow_after(1, ["share", "randomize", "design"]))
def test_of_several_writers_of_one_output_one_wins_and_the_others_say_one_sentence(prepared, name):
    folder = fresh(prepared, "race")
    words = COMMANDS[name].words
    running = [started(words, folder) for _ in range(4)]
    results = [ended(*one) for one in running]
    assert sorted(status for status, _ in results) == [0, 2, 2, 2]
    for status, said in results:
        assert ("exists already" in said) == (status == 2), said
        assert "Traceback" not in said
    assert content(folder / COMMANDS[name].output) is not None


@pytest.mark.parametrize("name", slow_after(1, ["randomize", "share"]))
def test_of_several_writers_that_replace_an_output_the_last_wins_whole(prepared, name):
    folder = fresh(prepared, "race")
    command = COMMANDS[name]
    with_older(command, folder)
    words = [*command.words[:-2], "--force", *command.words[-2:]]
    running = [started(words, folder) for _ in range(4)]
    assert [ended(*one)[0] for one in running] == [0] * 4
    status, said = outcome(command.words, fresh(prepared, "alone"))
    assert status == 0, said
    assert content(folder / command.output) == content(prepared.parent / "alone" / command.output)
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
