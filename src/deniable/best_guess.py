"""What a response matrix promises if people are distributed as its design assumed.

Where ε is unbounded, this is what holds instead; it is a statement about one prior, and about the
average person or the luckiest guess, not about every pair of categories. Numbers are computed from
the law's integers and rounded up.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from deniable.families import DesignedChannel, Ratio
from deniable.mechanism import Mechanism


@dataclass(frozen=True)
class BestGuess:
    """How well one attribute can be guessed by someone who knows the design's prior.

    Args:
        before: how often the best guess is right without any answer.
        success: how often it is right from the released answer; one minus the privacy of Huang and
            Du, equation (8).
        worst_posterior: how sure of a category the most telling answer can make (equation (9)).
    """

    before: float
    success: float
    worst_posterior: float

    def to_plain(self) -> dict[str, float]:
        """Return plain values."""
        return {
            "before": self.before,
            "success": self.success,
            "worst_posterior": self.worst_posterior,
        }


def best_guess(mechanism: Mechanism, position: int) -> BestGuess | None:
    """Return what holds of an attribute under its design prior; None if its law has none."""
    law = mechanism.block_of(position)[0].law
    if not isinstance(law, DesignedChannel):
        return None
    return BestGuess(*map(_up, (law.guess_before(), law.guess_after(), law.worst_posterior())))


def best_guess_sentence(name: str, guess: BestGuess) -> str:
    """Return it in plain words."""
    return (
        f"If people are distributed as the matrix of '{name}' was designed for, the best guess of "
        f"'{name}' from its released value alone is right for {_percent(guess.success)} of the "
        f"people (without it for {_percent(guess.before)}), and no released value makes anyone "
        f"surer than {_percent(guess.worst_posterior)}. If they are distributed otherwise, or "
        "other columns tell of it, both can be higher."
    )


def _percent(share: float) -> str:
    return f"{math.ceil(share * 1000 - 1e-9) / 10:g} %"


def _up(ratio: Ratio) -> float:
    exact = Fraction(*ratio)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
