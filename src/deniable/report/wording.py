"""Numbers in words. A bound is rounded in the direction that never claims more than holds.

ε is rounded up, and so is everything that follows from it: the factor e^ε, and how sure an observer
can become. Lower bounds are rounded down. Estimates of size (errors, probabilities of keeping) are
rounded to nearest.
"""

import math
import shlex
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from deniable.numerals import significant

NO_LIMIT = "no limit"
CERTAINTY = "certainty"
NEAR_CERTAINTY = "near certainty"

PERCENT = "\N{NO-BREAK SPACE}%"

WEAK_EPSILON = 5.0
"""Above it a promise is called weak: e^5 is a factor of 148."""

VERY_WEAK_EPSILON = 10.0
"""Above it a promise is called close to none: e^10 is a factor of 22,000."""


def epsilon_text(epsilon: float | None) -> str:
    """Return ε in nats, rounded up to three decimals, or to three digits if it is small."""
    return NO_LIMIT if epsilon is None else _three_decimals(epsilon, ROUND_CEILING)


def lower_bound_text(epsilon: float) -> str:
    """Return a lower bound of ε in nats, rounded down."""
    return _three_decimals(epsilon, ROUND_FLOOR)


def _three_decimals(value: float, rounding: str) -> str:
    if 0 < value < 0.1:
        return significant(value, 3, rounding)
    text = f"{Decimal(value).quantize(Decimal('0.001'), rounding):,f}"
    return text.rstrip("0").rstrip(".")


def factor_text(epsilon: float | None) -> str:
    """Return e^ε rounded up: how many times the odds can change."""
    if epsilon is None:
        return NO_LIMIT
    if epsilon < math.log(1e6):
        return significant(math.exp(epsilon), 3, ROUND_CEILING)
    return f"10^{math.ceil(epsilon / math.log(10))}"


def posterior_text(prior: float, epsilon: float | None) -> str:
    """Return the most that a belief of this probability can become, in per cent, rounded up."""
    if epsilon is None:
        return CERTAINTY
    # p' = p e^ε / (1 − p + p e^ε), written so that a large ε does not overflow.
    share = prior / (prior + (1 - prior) * math.exp(-epsilon))
    # Close to certainty, the distance to it gets the digits.
    places = 1 if share < 0.99 else min(4, math.ceil(-math.log10(max(1 - share, 1e-9))) - 1)
    percent = Decimal(100 * share).quantize(Decimal(1).scaleb(-places), ROUND_CEILING)
    if percent >= 100:
        return NEAR_CERTAINTY
    text = f"{percent:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + PERCENT


def rounded_up(share: float) -> str:
    """Return a share that is an upper limit, in per cent, rounded up to one decimal."""
    # Rounding errors in the tenth digit must not give 70.1 %.
    return f"{math.ceil(share * 1000 - 1e-7) / 10:g}{PERCENT}"


def accuracy_text(pairs: float, at_least: float, all_patterns: bool) -> str:
    """Return the proven distance from the least variance, as part of a sentence."""
    laws = "pattern law" if all_patterns else "law of one score with these costs"
    most = significant(max(100 * (1 - at_least), 1e-4), 2, ROUND_CEILING)
    return (
        f"no {laws} with this ε, these caps and positive attenuations has a mean variance (shares "
        f"weighted {1 - pairs:g}, pairs {pairs:g}) lower by more than {most}{PERCENT}"
    )


def percent_text(share: float) -> str:
    """Return a share in per cent, to three digits; never 100 % if it is less."""
    if 0.9995 <= share < 1:
        return f"over 99.9{PERCENT}"
    return significant(100 * share, 3) + PERCENT


def points_text(share: float) -> str:
    """Return a difference of shares in percentage points, to two digits, if it is at most 100."""
    return "> 100" if share > 1 else significant(100 * share, 2, trailing_zeros=True)


def plain_number(value: float) -> str:
    """Return a number to six significant digits, for further calculation."""
    return significant(value, 6).replace(",", "")


def listed(names: list[str], limit: int = 12) -> str:
    """Return names as a list in a sentence, cut after ``limit``."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def fits_command(name: str) -> bool:
    """Whether a column's name can be written in a comma-separated list on a command line."""
    return (
        "," not in name and not name.startswith("-") and name.strip() == name and name.isprintable()
    )


def command(verb: str, option: str, names: list[str]) -> str:
    """Return a command about some columns of the release in the current folder, to be pasted."""
    return f"deniable {verb} . {option} {shlex.quote(','.join(names))}"
