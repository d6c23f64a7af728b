"""Estimates and tests as a terminal shows them: a caption, a table, and what to know about them."""

from collections.abc import Iterator, Sequence
from typing import Any

from deniable.cli.console import say, show_table
from deniable.estimate.columns import SHOWN, Tabular
from deniable.estimate.comparing import Difference
from deniable.estimate.covariance import CovarianceEstimate
from deniable.estimate.independence import IndependenceTest
from deniable.estimate.inference import UNCERTAIN_TEXT
from deniable.estimate.ordered import Summary
from deniable.estimate.shares import Estimate
from deniable.models.smoothing import Smoothed


def show_answers(answers: Sequence[Tabular], level: float) -> None:
    """Print answers under their captions: means, quantiles and differences, which are a row each,
    in one table; of everything else, whatever it is, a table each."""
    tables: list[list[Tabular]] = [[a] for a in answers if not isinstance(a, Summary | Difference)]
    if single := [a for a in answers if isinstance(a, Summary | Difference)]:
        tables.append(list(single))
    for together in tables:
        first = together[0]
        rows = [row for answer in together for row in answer.table(level)]
        say(first.caption(level))
        listed, hidden = _listed(rows)
        names, columns = _columns(first, level, rows[0] if rows else {})
        if isinstance(first, Estimate | Smoothed | Summary) and any(
            row["uncertain"] for row in listed
        ):
            columns["uncertain"] = "remark"
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
            say(f"… {hidden} smaller ones (--json or --output has all).")
        for remark in _remarks(first, rows):
            say(remark)


def _listed(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the rows to print and how many are left out: of many cells the largest that can be
    used by themselves."""
    if len(rows) <= SHOWN or "estimate" not in rows[0]:
        return rows, 0
    certain = [row for row in rows if not row.get("uncertain")]
    certain.sort(key=lambda row: -(row["estimate"] or 0.0))
    return certain[:SHOWN], max(0, len(certain) - SHOWN)


def _columns(
    answer: Tabular, level: float, row: dict[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """Return which entries of a row name it, and which are its numbers, with a header each."""
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
            return list(dict(answer.group)), contained | interval
        case Summary():
            return list(dict(answer.group)), {"estimate": answer.statistic} | errors
        case CovarianceEstimate():
            released = {"released": "in the released rows"}
            return [], {"estimate": "estimate"} | errors | released
        case IndependenceTest():
            test = {"statistic": "χ²", "degrees_of_freedom": "degrees of freedom"}
            v = {"cramers_v_low": interval["low"], "cramers_v_high": "to"}
            return [], test | {"p_value": "p-value", "cramers_v": "Cramér's V"} | v
        case Smoothed():
            unbiased = {"unbiased": "unbiased", "unbiased_standard_error": "its standard error"}
            return list(answer.attributes), {"estimate": "share"} | errors | unbiased
    return [], {key: key.replace("_", " ") for key in row}


def _in_percent(answer: Tabular) -> bool:
    return isinstance(answer, Estimate | Smoothed) or (
        isinstance(answer, Difference) and answer.statistic == "share"
    )


def _text(key: str, value: Any, *, in_percent: bool) -> str:
    """Return an entry of a row as people read it."""
    if value is None:
        return "-"
    if key == "uncertain":
        return "uncertain" if value else ""
    if isinstance(value, str):
        return value
    if key == "count":
        return f"{value:,.0f}"
    if key == "p_value" and not value:
        return "below 1e-300"
    if in_percent and not key.startswith("ratio"):
        return f"{100 * value:.2f} %"
    return f"{value:.5g}"


def _remarks(answer: Tabular, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what has to be known to read the table."""
    uncertain = sum(bool(row.get("uncertain")) for row in rows)
    match answer:
        case Estimate():
            if len(rows) > SHOWN:
                yield (
                    f"{uncertain} of {len(rows)} cells are uncertain and not listed: not to be "
                    f"used by themselves, {UNCERTAIN_TEXT}."
                )
            elif uncertain:
                yield f"uncertain: not to be used by itself, {UNCERTAIN_TEXT}."
            if not answer.converged:
                yield "EM stopped before it could certify its optimum; treat it as approximate."
        case Difference(statistic="share"):
            yield "Differences are in percentage points. An interval that holds 0 decides nothing."
        case Summary() if uncertain:
            yield (
                "uncertain: not to be used. The subgroup's share is less than two standard errors "
                "above zero, or the interval is as wide as the attribute's whole range."
            )
        case CovarianceEstimate():
            if answer.prediction is not None and answer.prediction.warning:
                yield f"WARNING: {answer.prediction.warning}"
        case IndependenceTest():
            yield from _remarks_on_test(answer)
        case Smoothed():
            yield from answer.remarks()


def _remarks_on_test(test: IndependenceTest) -> Iterator[str]:
    if test.together and (naive := test.released) is not None:
        yield (
            "The two are randomized together: the released table as it stands gives χ² "
            f"{naive.statistic:.5g}, p-value {naive.p_value:.3g}, and may reject independence "
            "where it holds. The test above is corrected for that."
        )
    if test.without_v:
        yield f"No Cramér's V: {test.without_v}."
    elif test.cramers_v is not None and test.cramers_v.square < 0:
        yield (
            f"Less noise, V² is estimated as {test.cramers_v.square:.3g}, below 0; V is shown as 0."
        )
    if test.few_expected:
        yield (
            f"The smallest expected count is {test.test.least_expected:.2g}, below 5: the p-value "
            "is rough."
        )
