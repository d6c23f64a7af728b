"""A source of chosen bits, and what they must lead to."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ScriptedBits:
    """Hands out chosen words, one request after the other; complains if they do not fit or last."""

    secure = False

    def __init__(self, *requests: tuple[type, Iterable[int]]) -> None:
        self._requests = [(np.dtype(kind), list(words)) for kind, words in requests]

    def bits(self, dtype: Any, count: int) -> NDArray[Any]:
        kind, words = self._requests.pop(0)
        assert kind == np.dtype(dtype), f"{np.dtype(dtype)} was asked for where {kind} was expected"
        assert len(words) == count, f"{count} words were asked for where {len(words)} were expected"
        return np.array(words, dtype=kind)

    @property
    def used_up(self) -> bool:
        return not self._requests


def outcome_of_interval(weights: Sequence[int], low: Fraction, high: Fraction) -> int | None:
    """The outcome if U lies in [low, high), or None if that does not decide it.

    Outcome j is drawn when c_j <= U·total < c_{j+1}.
    """
    total = sum(weights)
    edge = Fraction(0)
    for outcome, weight in enumerate(weights):
        start, edge = edge, edge + Fraction(weight, total)
        if start <= low and high <= edge and weight:
            return outcome
    return None
