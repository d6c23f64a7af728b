"""How the program ends, whatever happens in it."""

import errno
import io
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from deniable.cli import app as module
from deniable.cli.commands import COMMANDS
from deniable.errors import InputError


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int | str | None:
    """The exit status of a run in which this happens."""

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, "app", fails)
    with pytest.raises(SystemExit) as end:
        module.main(["share"])
    return end.value.code


@pytest.mark.parametrize(
    ("words", "loaded"),
    [(["share", "--json"], {"releasing"}), (["ledger", "show"], {"ledger"}), (["--help"], set())],
)
def test_a_command_loads_the_options_of_no_other(words: list[str], loaded: set[str]) -> None:
    program = (
        f"import sys\nfrom deniable.cli.app import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('deniable.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    found = {name.removeprefix("deniable.cli.") for name in done.stdout.splitlines()[-1].split()}
    modules = {one.partition(":")[0] for each in COMMANDS.values() for one in each}
    assert (found & modules) - ({"designing"} if loaded else set()) == loaded


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (InputError("the table is empty"), 2, "deniable: the table is empty\n"),
        (KeyboardInterrupt(), 130, "deniable: interrupted; no incomplete output remains\n"),
        (module._Terminated(143), 143, "deniable: terminated; no incomplete output remains\n"),
    ],
)
def test_a_failure_is_one_sentence_and_a_status(
    error: BaseException,
    status: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ending(monkeypatch, error) == status
    assert capsys.readouterr().err == sentence


def test_in_a_terminal_what_is_said_of_an_interruption_has_its_own_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C may come in the middle of a line, and the terminal writes ^C there."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert ending(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err.startswith("\ndeniable: interrupted;")


@pytest.mark.parametrize("end", [KeyboardInterrupt(), module._Terminated(143)])
def test_an_end_that_meets_a_class_as_it_is_made_is_one_sentence_too(
    end: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Member:
        def __set_name__(self, *_: object) -> None:
            raise end

    def loads(*_: object, **__: object) -> None:
        type("Made", (), {"member": Member()})

    monkeypatch.setattr(module, "app", loads)
    with pytest.raises(SystemExit) as stopped:
        module.main(["share"])
    assert stopped.value.code in (130, 143)
    assert capsys.readouterr().err.endswith("; no incomplete output remains\n")


def test_an_error_of_ours_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(module, "app", fails)
    with pytest.raises(RuntimeError, match="ours"):
        module.main(["share"])


def test_an_output_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert ending(monkeypatch, OSError(errno.ENOSPC, "No space left on device")) == 2
    assert sys.stdout.closed
    assert "cannot be written: No space left on device" in capsys.readouterr().err


def test_a_reader_that_has_gone_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(monkeypatch, BrokenPipeError()) == 141
    assert capsys.readouterr().err == ("deniable: standard output was closed by its reader\n")


def test_a_wrong_option_is_one_line_that_says_how_to_get_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        module.main(["inspect", "--no-such-option"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(deniable --help shows how)")


def test_termination_unwinds_as_an_exception() -> None:
    with pytest.raises(SystemExit) as end:
        module._terminate(signal.SIGTERM, None)
    assert end.value.code == 143


def test_the_module_runs_as_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["deniable", "--version"])
    interrupting = signal.getsignal(signal.SIGINT)
    try:
        runpy.run_module("deniable", run_name="__main__")
    finally:
        signal.signal(signal.SIGINT, interrupting)
    assert capsys.readouterr().out.startswith("deniable ")


@pytest.mark.parametrize(
    ("words", "said", "unsaid"),
    [
        (["estimat"], 'Did you mean "estimate"?', ""),
        (["frobnicate"], 'Unknown command "frobnicate". Available', "Did you mean"),
        (["design", "--eps", "3"], "Did you mean --epsilon?", ""),
        (["design", "--epsilom", "3"], "Did you mean --epsilon?", ""),
        (["design", "--epsilon", "1", "--kjhasd"], "--kjhasd", "Did you mean"),
        (["estimate", "r", "--off", "a"], "Did you mean --of?", ""),
        (["share", "t.csv", "--shema", "s"], "deniable: there is no option --shema (a file", "Inv"),
        (["share", "-", "--output", "-"], "--output takes no - here; name a file", "argument"),
        (["inspect", "-"], "inspect takes no - here; name a file", "Unknown"),
        (["share", "-", "--output"], "--output requires an argument", "takes no"),
        (["pram", "t", "--lambda", "0.5"], "--lambda has another name: write --attenuation", "Did"),
        (["design", "--lambda=0.5"], "--lambda has another name: write --attenuation", "Did"),
        (["share", "t", "-schema", "s"], "-schema: an option of several letters takes two", "./"),
        (["share", "t", "--schema", "s", "-output", "r"], "hyphens, --output", "argument"),
        (["frontier", "pick", "f", "-name=a", "--output", "-"], "-name: an option of", "Unknown"),
        (["ledger", "-help"], "takes two hyphens, --help", "Available"),
        (["share", "t.csv", "-x"], "there is no option -x (a file", "hyphens"),
        (["design", "s.toml"], "design has no use for 's.toml': leave it out, or put its", "oken"),
        (
            ["ledger", "show", "a", "b", "c"],
            "ledger show has no use for 'b', 'c': leave them",
            "oken",
        ),
    ],
)
def test_only_what_is_nearly_what_was_typed_is_proposed(
    words: list[str], said: str, unsaid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        module.main(words)
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not unsaid or unsaid not in line
