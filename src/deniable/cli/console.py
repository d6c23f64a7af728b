"""Terminal output: tables, notes, progress. Pipes get no colour and no bars."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from deniable.cli.typed import as_typed
from deniable.numerals import count_text, number_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.status import Status

    from deniable.audit import Audit, Plan
    from deniable.audit.audit import Level
    from deniable.ledger import Population
    from deniable.mechanism.prediction import CovariancePrediction

_PIPE_WIDTH = 120
"""Width of a table in characters without a terminal."""

_SHOWN_ROWS = 40
"""Largest number of attributes or strata listed: about a screen."""

_QUIET_SECONDS = 1.0
"""Delay before a progress bar appears."""

_CLOSE = 1e-4
"""Largest gap in nats above the lower bound at which ε is called the smallest possible."""

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, and characters that hide or reorder text or break lines."""

_NOT_ASCII = re.compile("[^\n -~]")

ADVERSARIES = (
    "ε alone: against an observer of that column only.",
    "ε given rest: against an observer of the whole released record with knowledge of all other "
    "true values. Both in nats.",
    "Strength: average entropy of the released value over its maximum; λ: attenuation of a "
    "difference of shares. Neither bounds the information on one person: ε does.",
)


AT_MOST = "≤: an upper bound; the exact level of this law is not known."


def prepare_streams() -> None:
    """Make standard output and error replace characters outside their encoding, and use the null
    device for a closed stream."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            null = Path(os.devnull).open("r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, null)
        elif name != "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def visible(text: str) -> str:
    r"""Return a line with escapes for control characters and for characters that hide text.

    >>> visible("red \x1b[31m and \u202e, line\nfeed")
    'red \\x1b[31m and \\u202e, line\\nfeed'
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def write_data(content: bytes) -> None:
    """Write UTF-8 content to standard output, without conversion."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def stdout() -> "Console":
    """Return the console for results, without markup, so that names with [b] or :x: are intact."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, emoji=False)


def note(text: str) -> None:
    """Print a remark on standard error as plain text."""
    print(visible(as_typed(text)), file=sys.stderr)


def print_json(plain: Any) -> None:
    """Print a result as strict JSON, with escapes for characters outside the encoding."""
    from deniable.statement.record import to_json

    try:
        text = to_json(plain).decode()
    except UnicodeEncodeError:  # a file's name that is no text
        text = json.dumps(msgspec.to_builtins(plain), indent=2) + "\n"
    encoding = sys.stdout.encoding or "utf-8"
    shown = text.encode(encoding, "replace").decode(encoding)
    if shown != text or _HIDDEN.search(text.replace("\n", "")):
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    sys.stdout.write(text)


def answer(plain: Any, *lines: str, as_json: bool) -> None:
    """Print a result as JSON or as lines."""
    if as_json:
        print_json(plain)
    else:
        say(*lines)


class Advance(Protocol):
    """Takes the completed fraction of the work, 0 to 1, or None if unknown."""

    def __call__(self, fraction: float | None, /) -> None: ...


@contextmanager
def _shown(display: "Progress | Status") -> Iterator[None]:
    """Start a display after `_QUIET_SECONDS`, from another thread: the first step may take long,
    and Ctrl-C during the start would leave the cursor hidden."""
    shown = []

    def show() -> None:
        display.start()
        shown.append(True)

    later = Timer(_QUIET_SECONDS, show)
    later.daemon = True
    try:
        later.start()
        yield
    finally:
        later.cancel()
        if later.is_alive():
            later.join()
        if shown:
            display.stop()


@contextmanager
def progress(label: str, rows: int | None = None) -> Iterator[Advance]:
    """Show a progress bar on a terminal after `_QUIET_SECONDS`, with a rate if ``rows`` is
    given."""
    if os.environ.get("DENIABLE_PROGRESS") == "lines":  # for a program that shows it
        with _labelled(label):
            yield _line_by_line(label)
            _print_progress(label, 100)
        return
    if not sys.stderr.isatty():
        yield lambda _fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=None, rate="")
    began = monotonic()
    first: float | None = None  # above 0 for resumed work

    def advance(fraction: float | None) -> None:
        nonlocal first
        if fraction is None:
            bar.tasks[0].total = None  # `update` leaves a total where it gets None
        else:
            first = fraction if first is None else first
            passed = monotonic() - began
            rate = f"{(fraction - first) * rows / passed:,.0f} rows/s" if rows and passed else ""
            bar.update(task, total=1.0, completed=fraction, rate=rate)

    with _shown(bar):
        yield advance


def _line_by_line(label: str) -> Advance:
    """Return a function that prints each new percentage below 100 once, and no number for an
    unknown fraction."""
    printed: int | None = None

    def advance(fraction: float | None) -> None:
        nonlocal printed
        percent = None if fraction is None else min(int(100 * fraction), 99)
        if percent != printed and (percent is None or printed is None or percent > printed):
            printed = percent
            _print_progress(label, percent)

    return advance


@contextmanager
def _labelled(label: str) -> Iterator[None]:
    """Print a line at the start of the work, and one without label and number at the end."""
    _print_progress(label)
    yield
    _print_progress("")


def _print_progress(label: str, percent: int | None = None) -> None:
    print(f"{label}\t{'' if percent is None else percent}", file=sys.stderr, flush=True)


@contextmanager
def working(label: str) -> Iterator[None]:
    """Show work without a measured fraction."""
    if os.environ.get("DENIABLE_PROGRESS") == "lines":
        with _labelled(label):
            yield
        return
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with _shown(Console(stderr=True).status(label)):
        yield


def show_design(
    statements: Mapping[str, Any],
    *,
    of_release: bool = False,
    briefly: bool = False,
    method_known: bool = True,
) -> None:
    """Print a design's statements (see :func:`deniable.statement.record.design_to_plain`) as a
    table."""
    from deniable.release.statements import merged_sentence

    changed = statements["changed_levels"]
    rows = statements["attributes"]
    if not briefly:
        _show_attributes(statements, method_known=method_known)
    if changed:
        say(
            f"CHANGED: not at the requested level: {count_text(len(changed), 'attribute')}, "
            + ", ".join(changed[:10])
            + (", …" if len(changed) > 10 else "")
        )
    # An unchanged column has no row here, or one with keep probability 1.
    randomized = [row["name"] for row in rows if row["keep_probability"] != 1.0]
    if kept := [name for name in statements["unprotected"] if name not in randomized]:
        say("NOT PROTECTED, released unchanged: " + ", ".join(kept))
    if unbounded := [name for name in statements["unprotected"] if name in randomized]:
        say("NO ε-DIFFERENTIAL PRIVACY holds for " + ", ".join(unbounded))
    for row in rows:
        if "parts" in row:
            bounded = row["epsilon"] is not None
            say(merged_sentence(row["name"], row["parts"], bounded=bounded))
    _show_best_guesses(rows, of_release=of_release)


def _show_attributes(statements: Mapping[str, Any], *, method_known: bool) -> None:
    """Print the statements on the record, and a table of the attributes."""
    say(_headline(statements, method_known=method_known))
    changed = statements["changed_levels"]  # only then do the two levels differ
    rows = statements["attributes"]
    parts = {"people asked": "asked", "kept": "keep_probability", "strength": "strength"}
    show_table(
        ["attribute", "categories", "requested ε", "ε alone", "ε given rest", *parts, "λ"],
        [
            [
                row["name"],
                str(row["categories"]),
                _level(row["requested_epsilon"], "none") if changed else "",
                _level(row["epsilon"]),
                _at_most(row) + _level(row["epsilon_given_rest"]),
                *("" if row.get(key) is None else f"{row[key]:.1%}" for key in parts.values()),
                "" if row["attenuation"] is None else number_text(row["attenuation"]),
            ]
            for row in rows
        ],
        most=_SHOWN_ROWS,
        framed=False,
    )
    say(*ADVERSARIES)
    if any(map(_at_most, rows)):
        say(AT_MOST)
    for row in rows:
        if "response" in row:
            say(_response_sentence(row))
    if any(row.get("asked") is not None for row in rows):
        say("An attribute is released only of people whose form includes it.")


def _response_sentence(row: Mapping[str, Any]) -> str:
    """Return the response of an attribute, and the statements that its matrix does not have."""
    named = row["response"] != "matrix"
    text = f"{row['name']}: {row['response']}" if named else f"{row['name']}: a matrix of its own"
    if named:
        from deniable.schema.responses import design_of

        text += f" ({design_of(row['response']).source})"
    if row["strength"] is None:
        return f"{text}; it is not bistochastic and has neither a strength nor a λ."
    return text + ("." if row["attenuation"] is not None else "; it has no λ.")


_SAME = 1.005
"""Ratio of variances up to which two mechanisms are equally accurate."""


def show_matrices(matrices: Sequence[Mapping[str, Any]]) -> None:
    """Print the errors under response matrices next to the least at the same ε."""
    for row in matrices:
        text = f"{row['name']}: variance of a share, for one row, {number_text(row['shares'], 3)}"
        if row["best"] is not None:
            text += f"; of the best mechanism with the same ε {number_text(row['best'], 3)}"
            if row["times"] > _SAME:
                text += f", so that the matrix needs {row['times']:.3g} times as many rows"
        say(f"{text}.")


def _show_best_guesses(rows: Sequence[Mapping[str, Any]], *, of_release: bool) -> None:
    from deniable.mechanism.best_guess import BestGuess
    from deniable.release.statements import best_guess_sentence, prior_sentence

    for row in rows:
        if "best_guess" in row:
            guess = BestGuess.from_plain(row["best_guess"])
            if not (of_release and row["epsilon"] is None):
                say(best_guess_sentence(row["name"], guess))
            say(
                ("READ OFF THE DATA: " if guess.prior_steps else "")
                + prior_sentence(row["name"], guess)
            )


def _headline(statements: Mapping[str, Any], *, method_known: bool) -> str:
    from deniable.mechanism.privacy import nats_text

    bound = statements["epsilon_lower_bound"]
    method = f"Method {statements['method']}"
    text = f"{method}: " if method_known else f"{method}, according to the file: "
    if statements["epsilon"] is None:
        text += "no ε-differential privacy for the whole record"
    else:
        text += f"ε of the whole record {nats_text(six_digits(statements['epsilon']))}"
    if bound is not None and statements["gap"] <= _CLOSE:
        text += f", the smallest possible at these levels (gap {number_text(statements['gap'], 2)})"
    elif bound is not None:
        text += f"; no law with these levels is below {six_digits(bound, ROUND_FLOOR)}"
    if (optimal := statements["optimal_epsilon"]) is not None:
        cost = statements["epsilon"] - optimal
        demands = [f"cap {statements['given_rest']}"] if statements["given_rest"] else []
        if statements["pair_floor"]:
            demands.append(f"pair floor {statements['pair_floor']:g}")
        verb = "cost" if len(demands) > 1 else "costs"
        # A difference of two results of a solver can be below 0 in its last digits.
        price = number_text(cost, 3) if cost > _CLOSE else "nothing"
        text += f"; {' and '.join(demands) or 'no demand'} next to the levels {verb} {price}"
    if (accuracy := statements.get("accuracy")) is not None:
        from deniable.report.wording import accuracy_text

        text += f"; {accuracy_text(**accuracy)}"
    if (strength := statements["strength"]) is not None:
        text += f"; strength {strength:.1%}"
    return text


def _at_most(row: Mapping[str, Any]) -> str:
    return "≤ " if row["epsilon_given_rest_at_most"] else ""


def _level(value: float | None, unbounded: str = "unbounded") -> str:
    if value is None:
        return unbounded
    return str(Decimal(value).quantize(Decimal("0.0001"), ROUND_CEILING))


def six_digits(value: float, rounding: str = ROUND_CEILING) -> str:
    """Return ε to six significant digits, rounded up unless it is a lower bound."""
    from deniable.numerals import significant

    return significant(value, 6, rounding).replace(",", "")


def show_release(record: Mapping[str, Any], *, briefly: bool = False) -> None:
    """Print a record: mechanism or strata, guarantee, and statements on columns without ε."""
    in_sentence: list[str] = []  # columns in the sentence of the guarantee
    if "mechanism" in record:
        show_design(record["mechanism"], of_release=True, briefly=briefly)
        rows = record["mechanism"]["attributes"]
        in_sentence = [r["name"] for r in rows if "best_guess" in r and r["epsilon"] is None]
    else:
        _show_strata(record["expost"]["strata"])
    say(record["guarantee"]["sentence"])
    if drafted := record["guarantee"].get("drafted"):
        from deniable.release.statements import DRAFTED_STATEMENT

        say(f"DRAFTED: of {', '.join(drafted)}, {DRAFTED_STATEMENT}")
    for one in record["guarantee"]["instead"]:
        if set(one["columns"]) <= set(in_sentence):
            continue
        say(f"{', '.join(one['columns'])}: {one['statement']}")
        if (known := one["if_frequencies_known"]) is not None:
            levels = ", ".join(f"{n} {_level(level)}" for n, level in known["attributes"].items())
            whole = six_digits(known["epsilon"])
            say(f"ε if the frequencies are known: {levels}; whole record {whole}")


def show_standing(record: Mapping[str, Any], population: "Population | None") -> None:
    """Print the sum of ε with earlier releases in the ledger, if there is one."""
    from deniable.mechanism.privacy import nats_text

    if population is None:
        return
    known = record["population"]
    total = _level(known["epsilon"])
    total = total if known["epsilon"] is None else nats_text(total)
    say(f"Release {known['release']} of population '{population.name}', {total} in all.")


def show_check(plain: Mapping[str, Any]) -> None:
    """Print the result of a check (:meth:`deniable.release.checking.Check.to_plain`)."""
    say("Checked only: neither draws nor output were made.")
    if plain.get("rows") is not None:
        say(f"{plain['output']} would have {count_text(plain['rows'], 'row')}.")
    if plain.get("replaces"):
        say(f"It would replace {plain['output']}.")
    for name, label in (
        ("drafted", "Categories or edges from the data"),
        ("dropped", "Columns left out"),
        ("kept", "NOT PROTECTED, released unchanged"),
    ):
        if plain.get(name):
            say(f"{label}: {', '.join(plain[name])}")
    if (ledger := plain["ledger"]) is not None:
        say(f"Ledger {ledger['file']}{', a new one' if ledger['new'] else ''}, before and after:")
        show_ledger([ledger["before"] | {"attributes": []}, ledger["after"] | {"attributes": []}])
    if plain.get("key") is not None:
        say(f"It would be signed with the key {plain['key']}")


def show_power(plan: "Plan") -> None:
    """Print the power of an audit, before a row is drawn."""
    from deniable.mechanism.privacy import nats_text

    say(
        f"{count_text(plan.draws, 'row')}; an honest mechanism is refuted with probability "
        f"below {number_text(plan.error)}."
    )
    show_table(
        ["defect", "found with probability", "hardest in"],
        [[p.defect, f"{p.probability:.4f}", p.attribute] for p in plan.power],
    )
    if plan.several:
        bound, claimed = plan.record_event[1], plan.mechanism.epsilon
        of = "without a bound" if claimed == float("inf") else nats_text(number_text(claimed))
        say(f"Largest lower bound possible on the record's ε, {of}: about {number_text(bound)}.")


def show_audit(audit: "Audit") -> None:
    """Print the result of an audit."""
    show_table(
        ["attribute", "ε alone", "shown", "ε given rest", "shown", "λ or kept", "found", "to"],
        [
            [
                a.name,
                *_claimed(a.epsilon),
                *(["", ""] if a.given_rest is None else _claimed(a.given_rest)),
                *(
                    ["", "", ""]
                    if (phi := a.attenuation) is None
                    else [number_text(value, 5) for value in (phi.claimed, phi.low, phi.high)]
                ),
            ]
            for a in audit.attributes
        ],
        most=_SHOWN_ROWS,
    )
    claimed, shown = _claimed(audit.epsilon)
    say(
        f"ε of the record: {claimed} claimed, at least {shown} shown; "
        f"{count_text(audit.draws, 'row')}."
    )
    for sentence in audit.refutations[1:]:
        say(f"Also: {sentence}")
    say(audit.verdict[0].upper() + audit.verdict[1:])


def _claimed(level: "Level") -> list[str]:
    shown = "no bound" if level.at_least == float("inf") else f"{level.at_least:.4f}"
    return [_level(None if level.claimed == float("inf") else level.claimed), shown]


def show_ledger(plain: Sequence[Mapping[str, Any]]) -> None:
    """Print the balance of every population (:meth:`deniable.ledger.Balance.to_plain`)."""
    from deniable.ledger.balance import left_digits

    show_table(
        ["population", "releases", "ε of a person in all", "budget", "left"],
        [
            [
                one["population"],
                str(one["releases"]),
                _level(one["epsilon"]),
                "none" if one["budget"] is None else number_text(one["budget"]),
                "" if one["left"] is None else left_digits(one["left"], one["budget"]),
            ]
            for one in plain
        ],
    )
    for one in plain:
        if one["attributes"]:
            say(f"Columns of {one['population']}, each over the releases that contain it:")
            show_table(
                ["column", "ε alone", "ε given rest"],
                [
                    [a["name"], _level(a["epsilon"]), _level(a["epsilon_given_rest"])]
                    for a in one["attributes"]
                ],
            )


def show_readable(
    expected: Mapping[str, Any] | None,
    epsilon: float | None,
    person: Mapping[str, Any] | None = None,
) -> None:
    """Print the verdict on readability, and warnings if no table is readable or none protected.

    ``epsilon``: of the record, in nats; None if unbounded.
    """
    from deniable.report import verdict as words

    if expected is not None:
        loud = "NOTHING CAN BE READ. " * words.nothing_readable(expected["attributes"])
        first, *others = words.lines(expected)
        for line in (loud + first, *others):
            say(line)
    if unprotected := words.unprotected(epsilon, None if person is None else person["epsilon"]):
        say(f"WARNING: {unprotected}")


def show_expected_tables(
    tables: Sequence[Mapping[str, Any]], independent: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Print expected half-widths of tables, and those of independent responses of equal ε."""
    from deniable.readable import RULE
    from deniable.report.verdict import headline, sampling_text

    say(f"{headline(tables)}.")

    def points(table: Mapping[str, Any]) -> str:
        width = table["half_width"]
        if width is None:
            return "no bound"
        return "> 100" if width > 1 else f"{100 * width:.2f}"

    def needed(table: Mapping[str, Any]) -> str:
        rows = table.get("rows_needed", "")
        return "none are enough" if rows is None else f"{rows:,}" if rows else ""

    others = [points(table) for table in independent or ()] or [""] * len(tables)
    show_table(
        ["table", "cells", "half-width", "readable", "independent", "rows needed"],
        [
            [
                *(", ".join(t["attributes"]), str(t["cells"]), points(t), str(t["readable"])),
                *(other, needed(t)),
            ]
            for t, other in zip(tables, others, strict=True)
        ],
        most=_SHOWN_ROWS,
        framed=False,
    )
    say(
        f"Half-width: of an interval of 95 % of a cell, in points, "
        f"{sampling_text(tables[0]['target'])}. {RULE}."
        + (" Independent: the half-width by method kronecker at the same ε." if any(others) else "")
    )


def show_saving(record: Mapping[str, Any]) -> None:
    """Print the rows saved by joint randomization, if the record states them."""
    from deniable.numerals import significant

    saving = (record.get("comparison") or {}).get("saving")
    if saving is None:
        return
    text = (
        "Independent randomization at the same ε would need "
        f"{significant(saving['marginals'], 3)} times as many rows for shares as accurate"
    )
    if saving["pairs"] is not None:
        text += f", {significant(saving['pairs'], 3)} times for tables of two attributes"
    say(text + " (medians).")


def show_means(means: Sequence[Mapping[str, Any]]) -> None:
    """Print the standard errors of the means of numbers."""
    for mean in means:
        error, unit = mean["standard_error"], f" {mean['unit']}".rstrip()
        text = "no value" if error is None else f"{number_text(error, 3)}{unit}"
        say(f"Mean of {mean['attribute']}: standard error {text}, if spread evenly over the range.")


def show_outlook(outlook: Mapping[str, Any]) -> None:
    """Print the expected variances of shares and pairs for one row, and their limit."""
    expected, limit = outlook["expected"], outlook["limit"]
    if expected["shares"] is None:
        return
    pairs = expected["pairs"]
    text = f"Variance of a share, for one row: {number_text(expected['shares'], 3)}" + (
        "" if pairs is None else f"; of a cell of two attributes: {number_text(pairs, 3)}"
    )
    if limit is not None:
        text += (
            f". No mechanism with this ε has less than {number_text(limit['shares'], 3)} for "
            "shares: "
            f"{number_text(limit['times'], 3)} times that is reached"
        )
    say(f"{text}.")


def _show_strata(strata: Mapping[str, Any]) -> None:
    rows = []
    for part in strata["mechanisms"]:
        mechanism = part["mechanism"]
        epsilon = "none" if mechanism["epsilon"] is None else six_digits(mechanism["epsilon"])
        strength = "" if mechanism["strength"] is None else f"{mechanism['strength']:.1%}"
        rows.append([part["stratum"], str(part["rows"]), epsilon, strength])
    headers = [strata["column"], "rows", "ε of the record", "strength"]
    show_table(headers, rows, most=_SHOWN_ROWS, elsewhere="record.json")


def show_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    most: int | None = None,
    elsewhere: str = "--json",
    framed: bool = True,
) -> None:
    """Print a table without its empty columns."""
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=HEAVY_HEAD) if framed else Table(box=SIMPLE_HEAD, pad_edge=False)
    shown = [place for place in range(len(headers)) if not rows or any(r[place] for r in rows)]
    for place in shown:
        if place < text_columns:
            table.add_column(
                visible(headers[place]), overflow="fold", min_width=None if framed else 9
            )
        else:
            table.add_column(
                visible(headers[place]), "", justify="right", overflow="fold", no_wrap=not framed
            )
    for row in rows[:most]:
        table.add_row(*(Text(visible(row[place])) for place in shown))
    if most is not None and len(rows) > most:
        table.add_row(f"… {len(rows) - most} more ({elsewhere} lists all)")
    stdout().print(table)


def say(*lines: str) -> None:
    """Print lines of the result on stdout, as plain text."""
    for line in lines:
        stdout().print(visible(line), highlight=False, soft_wrap=True)


def show_covariance_prediction(prediction: "CovariancePrediction") -> None:
    """Print the attenuation of a covariance, and a warning if the mechanism adds to it."""
    first, second = prediction.attributes
    asked = prediction.asked
    rows = "" if asked is None else f" in the {100 * asked:.2f} % of rows with both"
    if prediction.share is not None:
        say(
            f"Of the covariance of {first} and {second}, {number_text(prediction.share, 6)} is "
            f"left{rows}."
        )
    else:
        say(
            f"Of the covariance of {first} and {second}, between "
            f"{number_text(prediction.least_share, 6)} and "
            f"{number_text(prediction.most_share, 6)} is left{rows}, depending on "
            + ("the associated categories." if asked is None else "the form.")
        )
    if prediction.warning:
        say(
            f"WARNING: {prediction.warning} (Added: {number_text(prediction.spurious, 6)} times "
            "the product of the distances of their means from those of even shares.)"
        )
