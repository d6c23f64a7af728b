"""Table 1 of Ruiz, "λ-randomization": strength under three choices of λ, five categories each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.conversions import Response

N_CATEGORIES = 5

PRINTED: tuple[tuple[tuple[float, float, float], tuple[int, int, int], int], ...] = (
    ((0.9, 0.8, 0.7), (25, 41, 56), 31),
    ((0.3, 0.2, 0.1), (92, 96, 99), 72),
    ((0.6, 0.7, 0.4), (68, 52, 85), 51),
)
"""λ, strength per attribute and joint strength in per cent, as the table has them."""

IN_THE_TEXT = (0.9, 0.5, 0.4)
"""What section 6 gives as the λ of the first scenario; the table has (0.9, 0.8, 0.7)."""


@dataclass(frozen=True)
class Scenario:
    """One row, printed and computed; strengths in per cent.

    Args:
        attenuation: λ, shape (3,).
        printed_attributes, printed_joint: as printed; None where the paper prints none.
        attributes: H(P)/log₂ 5 from equation (6), shape (3,).
        joint: Σ H/Σ log₂ r (Theorem 2): with equal category counts the mean of the three.
    """

    attenuation: tuple[float, ...]
    printed_attributes: tuple[int, ...] | None
    printed_joint: int | None
    attributes: tuple[float, ...]
    joint: float

    @property
    def printed_sum_over_four(self) -> float | None:
        """A quarter of the sum of the printed strengths: what the printed joint column holds."""
        return None if self.printed_attributes is None else sum(self.printed_attributes) / 4


def table_1() -> list[Scenario]:
    """Return the three scenarios of the table, then the first as the text of section 6 has it."""
    rows = [
        Scenario(attenuation, attributes, joint, *_strengths(attenuation))
        for attenuation, attributes, joint in PRINTED
    ]
    return [*rows, Scenario(IN_THE_TEXT, None, None, *_strengths(IN_THE_TEXT))]


def _strengths(attenuation: Sequence[float]) -> tuple[tuple[float, ...], float]:
    responses = [Response.from_attenuation(N_CATEGORIES, value) for value in attenuation]
    entropy = sum(response.entropy for response in responses)
    most = len(responses) * math.log2(N_CATEGORIES)
    return tuple(100 * response.strength for response in responses), 100 * entropy / most
