"""What a terminal shows while something is worked out."""

import io
import time

import pytest

from deniable.cli import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of stderr. Called in a test, not a fixture: between setting up and the
    test pytest puts its own stderr back."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def until_shown(screen: Terminal, text: str) -> None:
    for _ in range(500):
        if text in screen.getvalue():
            return
        time.sleep(0.01)
    raise AssertionError(f"'{text}' is not shown")


def test_work_that_is_soon_done_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with console.progress("Writing") as advance:
        advance(0.5)
    assert screen.getvalue() == ""


def test_work_that_takes_long_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.0)
    with console.progress("Writing") as advance:
        until_shown(screen, "Writing")  # before the first step is done
        advance(0.5)
        advance(None)
        advance(0.5)


def test_work_without_a_measure_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.0)
    with console.working("Thinking"):
        until_shown(screen, "Thinking")


def test_a_program_that_shows_progress_is_told_line_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DENIABLE_PROGRESS", "lines")
    with console.progress("Writing") as advance:
        for fraction in (None, 0.101, 0.102, 0.5, None, 1.0):
            advance(fraction)
        lines = capsys.readouterr().err.splitlines()
        assert lines == [f"Writing\t{done}" for done in ("", 10, 50, "", 99)], "not done: no 100"
    with console.working("Thinking"):
        assert capsys.readouterr().err.splitlines() == ["Writing\t100", "\t", "Thinking\t"]
    assert capsys.readouterr().err == "\t\n", "no label stands while something else runs"


def test_nothing_is_shown_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.0)
    with console.progress("Writing") as advance, console.working("Thinking"):
        advance(0.5)
        time.sleep(0.05)
    assert screen.getvalue() == ""


def test_a_column_of_which_nothing_is_known_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.show_table(["name", "ε", "remark"], [["a", "1", ""], ["b", "", ""]])
    text = capsys.readouterr().out
    assert "ε" in text
    assert "remark" not in text
    console.show_table(["name", "ε"], [])
    assert "ε" in capsys.readouterr().out


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_table(["income[eur]", ":x:"], [["[b]high", ":smile:"]])
    console.say("[b] and :x:")
    text = capsys.readouterr().out
    for name in ("income[eur]", ":x:", "[b]high", ":smile:", "[b] and :x:"):
        assert name in text
