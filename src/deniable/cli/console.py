"""What people see in a terminal: tables, notes and progress. No colour and no bars in pipes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.estimate.covariance import CovarianceEstimate
    from deniable.estimate.independence import IndependenceTest
    from deniable.estimate.ordered import Summary
    from deniable.estimate.shares import Estimate
    from deniable.mechanism.prediction import CovariancePrediction

_PIPE_WIDTH = 120
_SHOWN_ROWS = 40
_SHOWN_CELLS = 200
_QUIET_SECONDS = 2.0
_CLOSE = 1e-4
"""Largest gap in nats above the lower bound at which ε is called the smallest possible."""

ADVERSARIES = (
    "ε alone: against someone who sees that column only.\n"
    "ε given rest: against someone who sees the whole released record and knows all the other "
    "true values. Both in nats.\n"
    "Strength: how uncertain the released value is on average, entropy over its maximum; λ: what "
    "is left of a difference of shares. Neither bounds what is learned of one person: ε does."
)


def stdout() -> "Console":
    """Return the console for results."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def note(text: str) -> None:
    """Print a remark on stderr, beside the result, as plain text."""
    print(text, file=sys.stderr)


class Advance(Protocol):
    """Takes the fraction of the work that is done, from 0 to 1; None if it is not known."""

    def __call__(self, fraction: float | None, /) -> None: ...


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """Show a bar on a terminal while the work runs, if it takes over two seconds."""
    if not sys.stderr.isatty():
        yield lambda _fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=None)
    began = monotonic()
    started = False

    def advance(fraction: float | None) -> None:
        nonlocal started
        if not started and monotonic() - began > _QUIET_SECONDS:
            bar.start()
            started = True
        if fraction is not None:
            bar.update(task, total=1.0, completed=fraction)

    try:
        yield advance
    finally:
        if started:
            bar.stop()


@contextmanager
def working(label: str) -> Iterator[None]:
    """Show on a terminal that work goes on of which no measure of progress is known."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(label):
        yield


def show_design(statements: Mapping[str, Any], *, of_release: bool = False) -> None:
    """Print a design's statements (see :func:`deniable.design.record.design_to_plain`) as a table.

    Args:
        statements: what to print.
        of_release: whether a release's guarantee is printed next. It says how well attributes
            without ε can be guessed, so that is left out here.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from deniable.release.statements import merged_sentence

    console = stdout()
    console.print(_headline(statements), markup=False, soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("attribute", overflow="fold", min_width=9)
    changed = bool(statements["changed_levels"])  # only then do the two levels differ
    for header in ("categories", *(["requested ε"] if changed else []), "ε alone", "ε given rest"):
        table.add_column(header, justify="right", no_wrap=True)
    for header in ("kept", "strength", "λ"):
        table.add_column(header, justify="right", no_wrap=True)
    rows = statements["attributes"]
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(
            Text(row["name"]),
            str(row["categories"]),
            *([_level(row["requested_epsilon"], "none")] if changed else []),
            _level(row["epsilon"]),
            _level(row["epsilon_given_rest"]),
            "" if row["keep_probability"] is None else f"{row['keep_probability']:.1%}",
            "" if row["strength"] is None else f"{row['strength']:.1%}",
            "" if row["attenuation"] is None else f"{row['attenuation']:.4g}",
        )
    if len(rows) > _SHOWN_ROWS:
        empty = [""] * (len(table.columns) - 1)
        table.add_row(f"… {len(rows) - _SHOWN_ROWS} more (--json lists all)", *empty)
    console.print(table)
    console.print(ADVERSARIES, markup=False, soft_wrap=True)
    if statements["changed_levels"]:
        changed = statements["changed_levels"]
        console.print(
            f"CHANGED: {len(changed)} attributes do not have the requested level: "
            + ", ".join(changed[:10])
            + (", …" if len(changed) > 10 else ""),
            markup=False,
        )
    # A column that is released as it is has no row here, or one that says it is always kept.
    randomized = [row["name"] for row in rows if row["keep_probability"] != 1.0]
    if kept := [name for name in statements["unprotected"] if name not in randomized]:
        console.print("NOT PROTECTED, released as they are: " + ", ".join(kept), markup=False)
    if unbounded := [name for name in statements["unprotected"] if name in randomized]:
        say("NO ε-DIFFERENTIAL PRIVACY holds for " + ", ".join(unbounded))
    for row in rows:
        if "parts" in row:
            bounded = row["epsilon"] is not None
            say(merged_sentence(row["name"], row["parts"], bounded=bounded))
    _show_best_guesses([row for row in rows if not (of_release and row["epsilon"] is None)])


def _show_best_guesses(rows: Sequence[Mapping[str, Any]]) -> None:
    from deniable.mechanism.best_guess import BestGuess
    from deniable.release.statements import best_guess_sentence

    for row in rows:
        if "best_guess" in row:
            say(best_guess_sentence(row["name"], BestGuess.from_plain(row["best_guess"])))


def _headline(statements: Mapping[str, Any]) -> str:
    bound = statements["epsilon_lower_bound"]
    text = f"Method {statements['method']}: "
    if statements["epsilon"] is None:
        text += "no ε-differential privacy for the whole record"
    else:
        text += f"ε of the whole record {six_digits(statements['epsilon'])} nats"
    if bound is not None and statements["gap"] <= _CLOSE:
        text += f", the smallest possible at these levels (gap {statements['gap']:.1e})"
    elif bound is not None:
        text += f"; no law with these levels is below {six_digits(bound, ROUND_FLOOR)}"
    if (optimal := statements["optimal_epsilon"]) is not None:
        cost = statements["epsilon"] - optimal
        demands = [f"cap {statements['given_rest']}"] if statements["given_rest"] else []
        if statements["pair_floor"]:
            demands.append(f"pair floor {statements['pair_floor']:g}")
        verb = "cost" if len(demands) > 1 else "costs"
        # A difference of two results of a solver can be below 0 in its last digits.
        price = f"{cost:.3g}" if cost > _CLOSE else "nothing"
        text += f"; {' and '.join(demands) or 'nothing'} beside the levels {verb} {price}"
    if (strength := statements["strength"]) is not None:
        text += f"; strength {strength:.1%}"
    return text


def _level(value: float | None, unbounded: str = "unbounded") -> str:
    if value is None:
        return unbounded
    return str(Decimal(value).quantize(Decimal("0.0001"), ROUND_CEILING))


def six_digits(value: float, rounding: str = ROUND_CEILING) -> str:
    """Return ε to six significant digits; rounded up, so that no level is shown below the true one,
    unless it is a lower bound."""
    from deniable.report.wording import significant

    return significant(value, 6, rounding).replace(",", "")


def show_release(record: Mapping[str, Any]) -> None:
    """Print what a release states: its mechanism or its strata's, the guarantee, and what holds
    instead for columns without one."""
    in_sentence: list[str] = []  # columns of which the guarantee's own sentence says what holds
    if "mechanism" in record:
        show_design(record["mechanism"], of_release=True)
        rows = record["mechanism"]["attributes"]
        in_sentence = [r["name"] for r in rows if "best_guess" in r and r["epsilon"] is None]
    else:
        _show_strata(record["expost"]["strata"])
    say(record["guarantee"]["sentence"])
    for one in record["guarantee"]["instead"]:
        if set(one["columns"]) <= set(in_sentence):
            continue
        say(f"{', '.join(one['columns'])}: {one['statement']}")
        if (known := one["if_frequencies_known"]) is not None:
            levels = ", ".join(f"{n} {_level(level)}" for n, level in known["attributes"].items())
            whole = six_digits(known["epsilon"])
            say(f"ε if the frequencies are known: {levels}; whole record {whole}")


def show_saving(record: Mapping[str, Any]) -> None:
    """Print how many rows are saved by randomizing together, if the record says so."""
    saving = (record.get("comparison") or {}).get("saving")
    if saving is None:
        return
    text = (
        "Independent randomization at the same ε would need "
        f"{saving['marginals']:.3g} times as many rows for shares as accurate"
    )
    if saving["pairs"] is not None:
        text += f", {saving['pairs']:.3g} times for tables of two attributes"
    say(text + " (medians).")


def show_curve(record: Mapping[str, Any]) -> None:
    """Print what other caps would cost, if the record says so."""
    for point in (record.get("comparison") or {}).get("curve") or []:
        cap = "no cap" if point["cap"] == "none" else f"a cap of {point['cap']}"
        say(f"ε of the record under {cap}: {six_digits(point['epsilon'])}")


def _show_strata(strata: Mapping[str, Any]) -> None:
    parts = strata["mechanisms"]
    rows = []
    for part in parts[:_SHOWN_ROWS]:
        mechanism = part["mechanism"]
        epsilon = "none" if mechanism["epsilon"] is None else six_digits(mechanism["epsilon"])
        strength = "" if mechanism["strength"] is None else f"{mechanism['strength']:.1%}"
        rows.append([part["stratum"], str(part["rows"]), epsilon, strength])
    show_table([strata["column"], "rows", "ε of the record", "strength"], rows)
    if len(parts) > _SHOWN_ROWS:
        say(f"… {len(parts) - _SHOWN_ROWS} more (record.json lists all)")


def show_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1
) -> None:
    """Print rows of texts; the first ``text_columns`` are left-aligned, the others are numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for position, header in enumerate(headers):
        table.add_column(
            header, justify="left" if position < text_columns else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(Text, row))
    stdout().print(table)


def say(text: str) -> None:
    """Print a line of the result on stdout, as plain text."""
    stdout().print(text, markup=False, highlight=False, soft_wrap=True)


def show_answers(answers: Sequence[Any], level: float) -> None:
    """Print estimates and tests, one table per group, or means and quantiles in one table."""
    from deniable.estimate.covariance import CovarianceEstimate
    from deniable.estimate.independence import IndependenceTest
    from deniable.estimate.ordered import Summary
    from deniable.estimate.shares import Estimate

    for answer in answers:
        if isinstance(answer, Estimate):
            _show_estimate(answer, level)
        if isinstance(answer, CovarianceEstimate):
            _show_covariance(answer, level)
        if isinstance(answer, IndependenceTest):
            _show_independence(answer, level)
    if summaries := [a for a in answers if isinstance(a, Summary)]:
        _show_summaries(summaries, level)


def _show_estimate(estimate: "Estimate", level: float) -> None:
    what = ", ".join(n for n in estimate.attributes if n not in estimate.by)
    text = f"Shares of {what}"
    if estimate.by:
        text += f" within {', '.join(estimate.by)}"
    if estimate.group:
        text += " where " + ", ".join(f"{name} = {value}" for name, value in estimate.group)
    of = "these rows" if estimate.target == "table" else "the population they were drawn from"
    say(
        f"{text}: {estimate.n_records} rows, method {estimate.method}, as shares of {of}; "
        f"condition {estimate.condition:.3g}; {estimate.interval_method} intervals"
    )
    rows = estimate.table(level)
    show_table(
        [*estimate.attributes, "estimate", "standard error", *_interval(level), ""],
        [
            [*(str(row[name]) for name in estimate.attributes)]
            + [_number(row[key]) for key in ("estimate", "standard_error", "low", "high")]
            + ["uncertain" if row["uncertain"] else ""]
            for row in rows[:_SHOWN_CELLS]
        ],
        text_columns=len(estimate.attributes),
    )
    if len(rows) > _SHOWN_CELLS:
        say(f"… {len(rows) - _SHOWN_CELLS} more cells (--json lists all)")
    if any(row["uncertain"] for row in rows):
        say("uncertain: less than two standard errors above zero; not to be used by itself.")
    if not estimate.converged:
        say("EM stopped before it could certify its optimum; treat it as approximate.")


def show_covariance_prediction(prediction: "CovariancePrediction") -> None:
    """Print what a mechanism leaves of a covariance, and a warning if it adds one of its own."""
    first, second = prediction.attributes
    if prediction.share is not None:
        say(f"Of the covariance of {first} and {second}, {prediction.share:.6g} is left.")
    else:
        say(
            f"Of the covariance of {first} and {second}, between {prediction.least_share:.6g} and "
            f"{prediction.most_share:.6g} is left, depending on which categories go together."
        )
    if prediction.warning:
        say(
            f"WARNING: {prediction.warning} (What is added: {prediction.spurious:.6g} times the "
            "product of how far their means are from those of even shares.)"
        )


def _show_covariance(estimate: "CovarianceEstimate", level: float) -> None:
    first, second = estimate.attributes
    where = "".join(f", where {name} = {value}" for name, value in estimate.group)
    of = "these rows" if estimate.target == "table" else "the population they were drawn from"
    low, high = estimate.confidence_interval(level)
    say(f"Covariance of {first} and {second}{where}: {estimate.n_records} rows, of {of}")
    show_table(
        ["estimate", "standard error", *_interval(level), "in the released rows"],
        [
            [
                _number(v)
                for v in (estimate.estimate, estimate.standard_error, low, high, estimate.released)
            ]
        ],
        text_columns=0,
    )
    if estimate.prediction is not None and estimate.prediction.warning:
        say(f"WARNING: {estimate.prediction.warning}")


def _show_independence(result: "IndependenceTest", level: float) -> None:
    first, second = result.attributes
    where = "".join(f", where {name} = {value}" for name, value in result.group)
    plain = result.to_plain(level)
    say(
        f"Independence of {first} and {second}{where}, in the population that these "
        f"{result.n_records} rows were drawn from"
    )
    show_table(
        ["χ²", "degrees of freedom", "p-value", "Cramér's V", *_interval(level)],
        [
            [_number(plain["statistic"]), str(plain["degrees_of_freedom"])]
            + [_number(plain["p_value"]) if plain["p_value"] else "below 1e-300"]
            + [_number(plain[k]) for k in ("cramers_v", "cramers_v_low", "cramers_v_high")]
        ],
        text_columns=0,
    )
    if result.together and (naive := result.released) is not None:
        say(
            "The two are randomized together: the released table as it stands gives χ² "
            f"{naive.statistic:.5g}, p-value {naive.p_value:.3g}, and may reject independence "
            "where it holds. The test above is corrected for that."
        )
    if result.without_v:
        say(f"No Cramér's V: {result.without_v}.")
    elif result.cramers_v is not None and result.cramers_v.square < 0:
        say(
            f"Less noise, V² is estimated as {result.cramers_v.square:.3g}, below 0; V is shown "
            "as 0."
        )
    if result.few_expected:
        say(
            f"The smallest expected count is {result.test.least_expected:.2g}, below 5: the "
            "p-value is rough."
        )


def _show_summaries(summaries: Sequence["Summary"], level: float) -> None:
    groups = [name for name, _ in summaries[0].group]
    show_table(
        [*groups, summaries[0].statistic, "standard error", *_interval(level), ""],
        [
            [*(value for _, value in s.group)]
            + [_number(v) for v in (s.estimate, s.standard_error, s.low, s.high)]
            + ["uncertain" if s.uncertain else ""]
            for s in summaries
        ],
        text_columns=len(groups),
    )
    if any(s.uncertain for s in summaries):
        say(
            "uncertain: not to be used. The subgroup's share is less than two standard errors "
            "above zero, or the interval is as wide as the attribute's whole range."
        )


def _interval(level: float) -> tuple[str, str]:
    return f"{100 * level:g}% from", "to"


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.5g}"
