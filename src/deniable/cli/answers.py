"""Terminal output of estimates, tests and models: caption, table, remarks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.cli.console import note, print_json, say, show_table
from deniable.errors import InputError
from deniable.estimate.agreement import FormAgreement
from deniable.estimate.association import LEVEL, POWER
from deniable.estimate.columns import (
    SHOWN,
    CellTable,
    Tabular,
    caption_of,
    caption_of_all,
    sizes_differ,
)
from deniable.estimate.comparing import Difference
from deniable.estimate.correlation import CorrelationEstimate
from deniable.estimate.covariance import CovarianceEstimate
from deniable.estimate.distribution import EstimatedDistribution
from deniable.estimate.honesty import HonestyTest
from deniable.estimate.independence import IndependenceTest
from deniable.estimate.inference import UNCERTAIN_TEXT
from deniable.estimate.leverage import LeverageOfLiars
from deniable.estimate.ordered import Summary
from deniable.estimate.shares import Estimate
from deniable.estimate.source import Release
from deniable.estimate.trend import TrendTests
from deniable.models.model import UNDETERMINED, Model
from deniable.models.query import ModelQuery
from deniable.models.smoothing import Smoothed
from deniable.numerals import number_text, p_text
from deniable.tables.answers import Columns

_IN_ONE_TABLE = (Summary, Difference, CorrelationEstimate)
"""Results with one row each."""


def show_answers(answers: Sequence[Tabular], level: float, said: set[str] | None = None) -> None:
    """Print results under captions: means, quantiles and differences as rows of one table, each
    other result as a table of its own. ``said``: remarks already printed."""
    said = set() if said is None else said
    tables: list[list[Tabular]] = [[a] for a in answers if not isinstance(a, _IN_ONE_TABLE)]
    if single := [a for a in answers if isinstance(a, _IN_ONE_TABLE)]:
        tables.append(list(single))
    for together in tables:
        first = together[0]
        if isinstance(first, CellTable):
            table = first.columns(level)
        else:
            table = Columns.of_rows(
                [{"n": a.n_records} | row for a in together for row in a.table(level)]
            )
        say(caption_of_all(together, level))
        listed, hidden = _listed(table)
        names, columns = _columns(first, level, *table.rows(slice(1)))
        if isinstance(first, Summary) and first.left_out is not None:
            columns["left_out"] = "left out"
        if sizes_differ(together):
            columns["n"] = "rows"
        listed = [row | {"remark": _remark(first, row)} for row in listed]
        if any(row["remark"] for row in listed):
            columns["remark"] = "remark"
        if listed:
            show_table(
                [*names, *columns.values()],
                [
                    [*(str(row[name]) for name in names)]
                    + [_text(key, row.get(key), in_percent=_in_percent(first)) for key in columns]
                    for row in listed
                ],
                text_columns=len(names),
            )
        if hidden:
            others = "more"
            if "p_value" in table.names:
                others = "with larger p-values"
            elif not np.isnan(table.numbers("estimate")).all():
                others = "smaller"
            say(f"… {hidden} {others} (--json or --output has all).")
        for remark in _remarks(first, table):
            if remark not in said:
                say(remark)
            said.add(remark)


def _listed(table: Columns) -> tuple[list[dict[str, Any]], int]:
    """Return the rows to print and the number of others: of many cells the largest certain ones,
    of many tests those with the smallest p-values."""
    if len(table) <= SHOWN or not {"p_value", "estimate"} & set(table.names):
        return table.rows(), 0
    if "p_value" in table.names:
        order = np.argsort(table.numbers("p_value"), kind="stable")
    else:
        certain = np.flatnonzero(~_uncertain(table))
        order = certain[np.argsort(-table.numbers("estimate")[certain], kind="stable")]
    return table.rows(order[:SHOWN]), max(0, len(order) - SHOWN)


def _uncertain(table: Columns) -> NDArray[np.bool_]:
    if "uncertain" not in table.names:
        return np.zeros(len(table), dtype=bool)
    return np.equal(table.numbers("uncertain"), 1)


def _columns(
    answer: Tabular, level: float, row: Mapping[str, Any] = MappingProxyType({})
) -> tuple[list[str], dict[str, str]]:
    """Return the names of a row's labels, and the headers of its numbers by name."""
    interval = {"low": f"{100 * level:g}% from", "high": "to"}
    errors = {"standard_error": "standard error"} | interval
    match answer:
        case Estimate():
            count = {"count": "count"} if "count" in row else {}
            return list(answer.attributes), {"estimate": "share"} | errors | count
        case Difference():
            names = [*dict(answer.group), *(name for name, value in answer.of if value)]
            sides = dict(zip(("first", "second"), answer.values, strict=True))
            ratio = {"ratio": "ratio", "ratio_low": interval["low"], "ratio_high": "to"}
            return names, sides | {"estimate": "difference"} | errors | ratio
        case Summary(scores="edges"):
            ends = {"low": "between", "high": "and"}
            edges = {"least": "all at lower edges", "most": "all at upper edges"}
            return list(dict(answer.group)), ends | edges
        case Summary(scores=None):
            contained = {"estimate": "contained in", "confidence": "probability"}
            return list(dict(answer.group)), {"probability": "quantile"} | contained | interval
        case Summary(statistic="quantile"):
            quantile = {"probability": "quantile", "estimate": "value"}
            return list(dict(answer.group)), quantile | errors
        case Summary():
            return list(dict(answer.group)), {"estimate": answer.statistic} | errors
        case EstimatedDistribution():
            limits = {"lowest": "at least", "highest": "at most"}
            share = {"value": answer.attribute, "estimate": "share up to it"}
            return list(dict(answer.group)), share | errors | limits
        case CorrelationEstimate():
            names = [*dict(answer.group), "first", "second"]
            return names, {"estimate": "correlation"} | errors
        case CovarianceEstimate():
            released = {"released": "in the released rows"}
            return [], {"estimate": "estimate"} | errors | released
        case IndependenceTest():
            test = {"statistic": "χ²", "degrees_of_freedom": "degrees of freedom"}
            if answer.test.denominator is not None:
                test |= {"statistic": "F", "denominator_degrees_of_freedom": "and"}
            v = {"cramers_v_low": interval["low"], "cramers_v_high": "to"}
            return [], test | {"p_value": "p-value", "cramers_v": "Cramér's V"} | v
        case Smoothed():
            unbiased = {"unbiased": "unbiased", "unbiased_standard_error": "its standard error"}
            return list(answer.attributes), {"estimate": "share"} | errors | unbiased
        case TrendTests(top=int()):
            of_top = {"probability_of_top": f"in top {answer.top}"}
            ranked = {"correlation": "correlation", "correlation_error": "error"} | of_top
            adjusted = {key: header for key, header in _P_VALUES.items() if key in row}
            return [*dict(answer.group), "attribute"], ranked | adjusted
        case LeverageOfLiars():
            moves = {"moved": "moved by", "range": "range"}
            if answer.forms:
                moves |= {"moved_chosen": "form chosen", "range_chosen": "range"}
            kept = [*dict(answer.group), *answer.attributes]
            return kept, {"estimate": "share", "standard_error": "standard error"} | moves
    named = [key for key, value in row.items() if isinstance(value, str)]
    numbers = {key: key.replace("_", " ") for key in row if key not in named}
    known = errors | _P_VALUES
    return named, {key: known.get(key, header) for key, header in numbers.items()}


_P_VALUES = {
    "p_value": "p-value",
    "p_bonferroni": "Bonferroni",
    "p_benjamini_hochberg": "FDR (BH)",
    "p_holm": "Holm",
    "statistic": "χ²",
}


def _remark(answer: Tabular, row: dict[str, Any]) -> str:
    """Return the remark on a row: unusable, or outside the possible range, as an unbiased estimate
    may be."""
    single = Difference | CovarianceEstimate | CorrelationEstimate
    if isinstance(answer, single) and row["estimate"] is None:
        return "no answer"
    if row.get("uncertain"):
        return "uncertain"
    estimate = row.get("estimate")
    if not isinstance(estimate, float):
        return ""
    if isinstance(answer, Estimate):
        return "above 100 %" if estimate > 1 + 1e-9 else ""
    if isinstance(answer, Summary) and answer.lowest is not None and answer.highest is not None:
        slack = 1e-9 * (answer.highest - answer.lowest)
        inside = answer.lowest - slack <= estimate <= answer.highest + slack
        return "" if inside else "outside the scores"
    return ""


def _in_percent(answer: Tabular) -> bool:
    return isinstance(answer, Estimate | HonestyTest | LeverageOfLiars | Smoothed) or (
        isinstance(answer, Difference) and answer.statistic == "share"
    )


def _text(key: str, value: Any, *, in_percent: bool) -> str:
    """Return the text of a row's entry."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if key in ("count", "n") or (key.endswith("degrees_of_freedom") and value == int(value)):
        return f"{value:,.0f}"
    if key.startswith("p_"):
        return p_text(value)
    if key == "left_out" or (in_percent and not key.startswith(("ratio", "statistic"))):
        above = value > 1 and key.endswith("standard_error")
        return "> 100 %" if above else f"{100 * value:,.2f} %"
    return number_text(value, 5)


def _remarks(answer: Tabular, table: Columns) -> Iterator[str]:
    """Yield explanations of the table's remarks."""
    unanswered = 0
    if isinstance(answer, Difference | CovarianceEstimate | CorrelationEstimate):
        unanswered = int(np.isnan(table.numbers("estimate")).sum())
    uncertain = int(_uncertain(table).sum()) - unanswered
    if unanswered:
        yield ("no answer: the estimated size of a group, the denominator, is not positive.")
    match answer:
        case Estimate():
            if len(table) > SHOWN:
                yield (
                    f"{uncertain} of {len(table)} cells are uncertain and not listed: not to be "
                    f"used by themselves, {UNCERTAIN_TEXT}."
                )
            elif uncertain:
                yield f"uncertain: not to be used by itself, {UNCERTAIN_TEXT}."
            if not answer.converged:
                yield "EM stopped before it could certify its optimum; treat it as approximate."
        case Difference():
            unit = "Differences are in percentage points. " * (answer.statistic == "share")
            if unanswered < len(table):
                yield f"{unit}An interval that contains 0 is inconclusive."
        case EstimatedDistribution() if uncertain:
            yield (
                "uncertain: not to be used. The limits for every distribution are more than 50 "
                "points apart, so that the smoothing decides; a finer grid brings them together."
            )
        case Summary() if uncertain and answer.statistic == "deviation":
            yield (
                "uncertain: not to be used. The subgroup's share is less than two standard errors "
                "above zero, or the interval contains 0: a finer grid makes it shorter."
            )
        case Summary() if uncertain:
            yield (
                "uncertain: not to be used. The subgroup's share is less than two standard errors "
                "above zero, the interval is as wide as the attribute's whole range, or the mean "
                "is more than two standard errors outside it."
            )
        case CorrelationEstimate() if uncertain:
            yield "uncertain: the interval contains 0 and is inconclusive."
        case CovarianceEstimate():
            if uncertain:
                yield "uncertain: the interval contains 0 and is inconclusive."
            if answer.prediction is not None and answer.prediction.warning:
                yield f"WARNING: {answer.prediction.warning}"
        case IndependenceTest():
            yield from _remarks_on_test(answer)
        case FormAgreement() | HonestyTest() | LeverageOfLiars() | Smoothed() | TrendTests():
            yield from answer.remarks()


def _remarks_on_test(test: IndependenceTest) -> Iterator[str]:
    if test.together and (naive := test.released) is not None:
        yield (
            "The two are randomized together: the released table without correction gives χ² "
            f"{number_text(naive.statistic, 5)}, p-value {p_text(naive.p_value)}, and may reject "
            "independence "
            "where it holds. The test above is corrected for that."
        )
    if test.without_v:
        yield f"No Cramér's V: {test.without_v}."
    elif test.cramers_v is not None and test.cramers_v.square < 0:
        yield (
            f"Less noise, V² is estimated as {number_text(test.cramers_v.square, 3)}, below 0; V "
            "is shown as 0."
        )
    if test.cramers_v is not None:
        yield _power_text(test.cramers_v.detectable)
    if test.few_expected:
        yield (
            f"The smallest expected count is {number_text(test.test.least_expected, 2)}, below "
            "5: the p-value "
            "is rough."
        )


def _power_text(detectable: float) -> str:
    if detectable > 1:
        return (
            "With this number of rows and this randomization the test detects even V = 1 with less "
            f"than {100 * POWER:g} % probability: a large p-value is inconclusive."
        )
    return (
        f"The smallest V that the test detects with {100 * POWER:g} % probability is "
        f"{number_text(detectable, 2)} (p-value below {LEVEL:g})."
    )


def drawn(draw: Callable[[], Any], path: Path, *, force: bool) -> bytes:
    """Return a plot as bytes of a file, after a check that the file can be written."""
    from deniable.atomic_files import refuse_existing
    from deniable.report.method_styles import figure_bytes

    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("png", "svg"):
        raise InputError(f"{path}: a plot is a file ending in .png or .svg")
    refuse_existing(path, overwrite=force)
    return figure_bytes(draw(), kind)


def write_plot(path: Path, picture: bytes, *, force: bool) -> None:
    """Write the bytes of :func:`drawn`."""
    from deniable.atomic_files import write_file

    write_file(path, picture, overwrite=force)
    note(f"The plot is in {path}")


def run_model(
    query: ModelQuery,
    release: Release,
    *,
    odds_ratios: bool,
    predict: bool,
    output: Path | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print the models of a release, and write them to files."""
    models, level = query.run(release), query.level
    if plot is not None and len(models) > 1:
        raise InputError("a plot is of one model; select a group of rows with --where")
    picture = b"" if plot is None else drawn(models[0].plot, plot, force=force)
    if predict:
        tables = [each.predict() for each in models]
    else:
        tables = [each.odds_ratios() if odds_ratios else each.table() for each in models]
    if as_json:
        print_json(query.to_plain(models) | models.selection.to_plain())
    else:
        for each, table in zip(models, tables, strict=True):
            _show_model(each, table, level)
    if output is not None:
        rows_of_all = [
            row | {"n": each.n_records, "level": level}
            for each, table in zip(models, tables, strict=True)
            for row in table
        ]
        columns = Columns.of_rows(rows_of_all)
        columns.write(output, caption_of(models[0], level), overwrite=force)
        note(f"The answer is in {output}")
    if plot is not None:
        write_plot(plot, picture, force=force)


def _show_model(model: Model, rows: list[dict[str, Any]], level: float) -> None:
    shown = {"low": f"{100 * level:g}% from", "high": "to", "data_share": "data's share"}
    names = [name for name in rows[0] if name not in dict(model.group)]
    say(caption_of(model, level))
    texts = sum(isinstance(rows[0][name], str) and name != "remark" for name in names)
    show_table(
        [shown.get(name, name.replace("_", " ")) for name in names],
        [[_model_text(name, row[name]) for name in names] for row in rows],
        text_columns=texts,
        most=200,
        framed=False,
    )
    for remark in model.remarks():
        say(remark)


def _model_text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return "cannot say" if value == UNDETERMINED else value
    if name == "data_share":
        return f"{100 * value:.0f} %"
    return p_text(value) if name == "p_value" else number_text(value)
