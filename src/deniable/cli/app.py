"""Start and exit of the program: arguments, notices, error messages, exit status."""

import atexit
import difflib
import gc
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import cleandoc
from itertools import pairwise
from typing import TextIO

from cyclopts import App, CycloptsError, UnusedCliTokensError

from deniable.cli import console, groups
from deniable.cli.arguments import NO_OPTION
from deniable.cli.commands import COMMANDS
from deniable.cli.typed import as_typed
from deniable.errors import InputError, Notice


def _version() -> str:
    from importlib.metadata import version  # slow import, needed here only

    return f"deniable {version('deniable')}"


app = App(
    name="deniable",
    help="Share or collect sensitive records about people, with plausible deniability for each.",
    version=_version,
    help_format="plaintext",
    help_formatter=groups.Drawn(),
    group_commands=groups.HELP,
    suppress_keyboard_interrupt=False,  # handled in `_run`
)
for _group, _places in COMMANDS.items():
    for _place, _help in _places.items():
        app.command(
            f"deniable.cli.{_place}",
            name=_place.partition(":")[2].removesuffix("_app").rstrip("_"),
            group=_group,
            help=cleandoc(_help),
        )

_NEW_OBJECTS = 50_000
"""Allocations between garbage collections; Python's default takes a tenth of a short command's
time."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the process ends with status 0, or 2 after one sentence on stderr."""
    console.prepare_streams()
    signal.signal(signal.SIGTERM, _terminate)
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
    atexit.register(gc.freeze)  # saves the last collection
    _run(sys.argv[1:] if arguments is None else list(arguments))


def _run(words: Sequence[str]) -> None:
    try:
        if {"-h", "--help"} & set(words) and set(_WITH_METHODS) & set(words):
            _list_methods()
        with _notices_on_stderr():
            app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # here, where a failure can still be explained
    except InputError as error:
        _stop(as_typed(str(error)))
    except CycloptsError as error:
        own = _renamed(words) or _one_hyphen(words) or _too_many(error, words)
        sentence = own or _parsed_wrongly(_one_line(str(error)), words)
        _stop(f"{sentence} (deniable --help shows how)")
    except UnicodeEncodeError as error:
        unknown = error.object[error.start : error.end]
        _stop(
            f"a name or an argument holds '{unknown}', which is not text in this system's encoding"
        )
    except BrokenPipeError:
        # As in "deniable … | head". The rest goes to the null device, so that closing is quiet.
        with suppress(OSError, ValueError):
            out = sys.stdout.fileno()
            os.dup2(os.open(os.devnull, os.O_WRONLY), out)
        _stop("standard output was closed by its reader", status=141)
    except OSError as error:
        # Errors of files are InputErrors; this one is of standard output.
        with suppress(OSError):
            sys.stdout.close()
        _stop(f"the output cannot be written: {error.strerror or type(error).__name__}")
    except (KeyboardInterrupt, _Terminated, RuntimeError) as error:
        # Raised while a class is created, it is the cause of a RuntimeError up to Python 3.11.
        end = error.__cause__ if isinstance(error, RuntimeError) else error
        if isinstance(end, KeyboardInterrupt):
            if sys.stderr.isatty():  # the terminal has printed ^C
                print(file=sys.stderr)
            _stop("interrupted; no incomplete output remains", status=130)
        if isinstance(end, _Terminated):
            _stop("terminated; no incomplete output remains", status=end.code)
        raise


@contextmanager
def _notices_on_stderr() -> Iterator[None]:
    """Print notices as sentences on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        elsewhere = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, Notice):
                console.note(str(message))
            else:
                elsewhere(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


_WITH_METHODS = ("design", "plan", "share")
"""The commands that take a method."""


def _list_methods() -> None:
    """Append the methods and their defaults to the help of the commands with ``--method``; the
    import is slow."""
    from deniable.statement.methods import DEFAULT_METHOD, METHODS, STRENGTH_METHOD

    lines = [f"Methods (default: {DEFAULT_METHOD}; with strengths: {STRENGTH_METHOD})"]
    for spec in METHODS.values():
        if not spec.offered:
            continue
        line = f"{spec.name}: {spec.help}."
        defaults = []
        if "caps" in spec.takes:
            defaults.append(f"--given-rest {spec.given_rest or 'none'}")
        if "floor" in spec.takes:
            floor = "none" if spec.pair_floor is None else f"{spec.pair_floor:g}"
            defaults.append(f"--pair-floor {floor}")
        if defaults:
            line += f" Defaults: {', '.join(defaults)}."
        lines.append(line)
    for command in _WITH_METHODS:
        app[command].help_epilogue = "\n\n".join(lines)


class _Terminated(SystemExit):
    """SIGTERM as an exception, so that incomplete output is removed."""

    code: int


def _terminate(number: int, _frame: object) -> None:
    raise _Terminated(128 + number)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text.removesuffix("...") + "…" if text.endswith("...") else text.rstrip(".")


_GUESS = re.compile(
    r"(?:(?:command|option)(?: |: )\"?(?P<typed>[\w-]+)\"?)[^?]*?"
    r"(?P<guess> Did you mean \"?(?P<meant>[\w-]+)\"?\?)"
)
_CLOSE = 0.75


def _one_hyphen(words: Sequence[str]) -> str | None:
    """Return the message on an option that lacks a hyphen; None without one."""
    _, apps, rest = app.parse_commands(words)
    arguments = apps[-1].assemble_argument_collection() if apps[-1].default_command else ()
    known = {"--help", "--version", *(name for argument in arguments for name in argument.names)}
    for word in rest:
        option = word.partition("=")[0]
        if len(option) > 2 and f"-{option}" in known:
            return f"{option}: an option of several letters takes two hyphens, -{option}"
    return None


def _renamed(words: Sequence[str]) -> str | None:
    """Return the message on a renamed option; None without one."""
    if any(word.partition("=")[0] == "--lambda" for word in words):
        return "--lambda has another name: write --attenuation, as in Python"
    return None


def _too_many(error: CycloptsError, words: Sequence[str]) -> str | None:
    """Return the message on surplus arguments; None for another error."""
    if not isinstance(error, UnusedCliTokensError):
        return None
    if words[0] == "estimate" and error.command_chain == ("estimate",):
        queries = [name for name in app["estimate"] if not name.startswith("-")]
        meant = difflib.get_close_matches(words[1], queries, 1)
        guess = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(queries)}"
        return f"no such query: {words[1]}; {guess}"
    command, unused = " ".join(error.command_chain or ()), error.unused_tokens or []
    listed = ", ".join(f"'{word}'" for word in unused)
    if len(unused) == 1:
        return f"{command} has no use for {listed}: leave it out, or put its option before it"
    return f"{command} has no use for {listed}: leave them out, or put their options before them"


def _parsed_wrongly(text: str, words: Sequence[str]) -> str:
    """Return the message of the parser, reworded for ``-`` in place of a file.

    >>> text = 'Command "share" parameter --output requires an argument'
    >>> _parsed_wrongly(text, ["share", "t.csv", "--output", "-"])
    '--output takes no - here; name a file or a folder'
    >>> _parsed_wrongly(text, ["share", "t.csv", "--output"]) == text
    True
    """
    without = re.search(r"parameter (-[\w-]+) requires an argument$", text)
    if without and (without[1], "-") in pairwise(words):
        return f"{without[1]} takes no - here; name a file or a folder"
    if NO_OPTION in text:
        return text[text.index(NO_OPTION) :]
    if text == "Unknown option: -":
        return f"{words[0]} takes no - here; name a file or a folder"
    return _without_wild_guess(text)


def _without_wild_guess(text: str) -> str:
    """Return the message of the parser without a suggestion that is too different from the typed
    word.

    >>> _without_wild_guess('Unknown command "frobnicate". Did you mean "frontier"? Available: …')
    'Unknown command "frobnicate". Available: …'
    >>> _without_wild_guess("Unknown option: --seperator. Did you mean --separator?")
    'Unknown option: --seperator. Did you mean --separator?'
    """
    match = _GUESS.search(text)
    if match is None:
        return text
    typed, meant = (match[name].strip("-").lower() for name in ("typed", "meant"))
    begins = len(typed) >= 3 and (meant.startswith(typed) or typed.startswith(meant))
    if begins or difflib.SequenceMatcher(None, typed, meant).ratio() >= _CLOSE:
        return text
    return text.replace(match["guess"], "")


def _stop(sentence: str, status: int = 2) -> None:
    lines = f"deniable: {sentence}".split("\n  ")  # one line for each error
    print("\n  ".join(map(console.visible, lines)), file=sys.stderr)
    sys.exit(status)
