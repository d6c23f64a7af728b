"""What is said of a release of Adult, against the numbers of study ``adult-release``."""

from collections.abc import Sequence

from deniable_studies.adult import schema as adult_schema
from deniable_studies.adult_release import (
    RSFD,
    RSFD_STATED,
    SMP,
    Errors,
    Released,
    mechanism_for,
    population_marginal,
    population_sampling,
)
from deniable_studies.study import Claim, judge

LEVELS = (1.0, 2.0, 4.0, 8.0)
COMPLETE_CASES = 45_222
"""People in both files of whom nothing is missing: what the stated variances are for."""

STATED: dict[str, tuple[float, float, float, float]] = {
    "optimal": (7.5e-4, 1.7e-4, 4.0e-5, 1.2e-5),
    "kronecker": (1.7e-2, 3.8e-3, 7.8e-4, 1.4e-4),
    SMP: (8.9e-4, 1.3e-4, 3.3e-5, 2.7e-5),
}
"""At ``LEVELS``: mean over the attributes of the averaged variance of an unbiased marginal, as this
project's theory states it."""

FARTHEST = 5.0
"""Standard errors by which a mean over releases may differ from what is expected."""

THEORY = "this project's theory of record-level ε"


def at(found: Sequence[Released], method: str, level: float) -> Released:
    """Return a method at a level."""
    (row,) = [r for r in found if r.method == method and r.asked == level]
    return row


def stated_claim() -> Claim:
    """Judge the variances that were stated for Adult."""
    schema = adult_schema()
    computed = {
        method: [
            population_marginal(mechanism_for(method, schema, level), COMPLETE_CASES)
            for level in LEVELS
        ]
        for method in ("optimal", "kronecker")
    }
    computed[SMP] = [
        population_sampling(schema.n_categories, level, COMPLETE_CASES) for level in LEVELS
    ]
    right, twice, farthest, texts = 0, 0, 0.0, []
    for method, stated in STATED.items():
        values = computed[method]
        right += sum(f"{s:.1e}" == f"{v:.1e}" for s, v in zip(stated, values, strict=True))
        twice += sum(f"{s:.1e}" == rounded_twice(v) for s, v in zip(stated, values, strict=True))
        farthest = max(farthest, *(abs(v / s - 1) for s, v in zip(stated, values, strict=True)))
        texts.append(f"{method} " + ", ".join(f"{v:.3g}" for v in values))
    total = sum(map(len, STATED.values()))
    return Claim(
        "Mean over attributes of the averaged variance of an unbiased marginal at total ε = 1, 2, "
        "4, 8, for 45,222 people: "
        + "; ".join(
            f"{method} " + ", ".join(f"{v:.1e}" for v in values)
            for method, values in STATED.items()
        ),
        f"{THEORY}, three ways to ask for a design",
        "all twelve as rounded to two digits; partly: all within 5 %",
        f"{right} of {total} as rounded, the farthest {farthest:.1%} off: " + "; ".join(texts),
        judge(right == total, partly=farthest <= 0.05),
        ""
        if right == total
        else "The stated numbers were rounded twice, first to three digits and then to two: that "
        "gives all twelve."
        if twice == total
        else "The law or the formula is another than when the figures were stated.",
    )


def rounded_twice(value: float) -> str:
    """Return a positive number rounded to three digits, and that, halves up, to two."""
    digits, exponent = f"{value:.2e}".split("e")
    # A nudge turns the half, which no double holds exactly, upwards.
    return f"{float(digits) + 1e-9:.1f}e{exponent}"


def kinds(row: Released) -> list[tuple[str, Errors]]:
    """Return the errors that a method has, with what they are of."""
    both = (("marginals", row.marginals), ("pairs", row.pairs))
    return [(kind, errors) for kind, errors in both if errors is not None]


def agreement_claim(found: Sequence[Released]) -> Claim:
    """Judge whether measured errors are the expected ones."""
    deviations = [
        (errors.deviation, row.method, row.asked, kind)
        for row in found
        for kind, errors in kinds(row)
    ]
    worst = max(deviations, key=lambda d: abs(d[0]))
    far = sum(abs(d[0]) > FARTHEST for d in deviations)
    # Of n standard normal numbers, about 4.6 % lie beyond 2.
    beyond_two = sum(abs(d[0]) > 2 for d in deviations)
    return Claim(
        "The errors of a release are known before it is drawn: for pattern laws the mean squared "
        "error of a table does not depend on the truth",
        "this project's expected errors (theory of estimation)",
        f"every measured mean within {FARTHEST:g} of its standard errors of the expected one; "
        "partly: all but one in ten",
        f"{len(deviations) - far} of {len(deviations)} within; {beyond_two} beyond 2; the farthest "
        f"{worst[0]:+.1f} ({worst[1]}, {worst[3]}, ε = {worst[2]:g})",
        judge(far == 0, partly=far <= len(deviations) / 10),
        "" if far == 0 else "The sampler, the inversion or the formula is wrong there.",
    )


def better_claim(found: Sequence[Released], levels: Sequence[float]) -> Claim:
    """Judge joint against independent randomization."""
    worse = []
    for level in levels:
        for method in ("optimal", "balanced"):
            for kind, errors in kinds(at(found, method, level)):
                for other in ("kronecker", "lambda"):
                    against = dict(kinds(at(found, other, level)))[kind]
                    if errors.expected >= against.expected:
                        worse.append(
                            (kind, method, other, level, errors.expected, against.expected)
                        )
    good = not worse
    return Claim(
        "Attributes randomized together give more accurate shares and tables of two attributes "
        "than independent ones at the same ε",
        "README",
        "smaller expected mean squared error under optimal and balanced than under Kronecker and "
        "λ-randomization at every level, for marginals and pairs; partly: for marginals",
        "at every level"
        if good
        else "; ".join(
            f"{kind} at ε = {level:g}: {method} {mine:.2g}, {other} {theirs:.2g}"
            for kind, method, other, level, mine, theirs in worse
        ),
        judge(good, partly=all(kind == "pairs" for kind, *_ in worse)),
        ""
        if good
        else "The optimum sets no floor on pairs. The mean over pairs is that of the few whose "
        "attenuation is next to 0; the median is in the table. Balanced has the floor.",
    )


def estimable_claim(found: Sequence[Released]) -> Claim:
    """Judge whether every pair can be estimated."""
    refused = sum(len(row.refused) for row in found if row.method == "balanced")
    optimal = sum(len(row.refused) for row in found if row.method == "optimal")
    fakes = [len(row.refused) for row in found if row.method in (RSFD, RSFD_STATED)]
    return Claim(
        "Balanced keeps every table of two attributes estimable",
        "README",
        "no pair is refused at any level",
        f"{refused} pairs refused under balanced, {optimal} under the optimum, {min(fakes)} of 36 "
        "under RS+FD at every level",
        judge(refused == 0),
        "" if refused == 0 else "The floor on pairs is too low for this many people.",
    )
