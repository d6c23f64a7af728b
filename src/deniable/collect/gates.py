"""The tables that a browser needs to draw votes, since its exponential may differ in the last bit.

A gated sum is drawn from G_k, the gate after the last attribute, by additions, multiplications and
divisions alone (:mod:`deniable.laws.votes.backward`), which every engine rounds the same way. So
G_k is computed once, where a study is opened, and shipped as the bits of its doubles: at most a
few thousand numbers for a ramp, twice as many for a lifted one, two or three for a vote. What a law
drawn from such a table promises follows from the table as shipped (docs/proofs/collection.md).
"""

import base64

import numpy as np

from deniable.errors import InputError
from deniable.laws import GatedSum, Law, LiftedRamp, VoteBlend
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.sums import UNIT


def backwards_of(law: Law) -> list[Backward]:
    """Return the recursions that a law is drawn by: of each of its gated sums in its order, or of a
    ramp and of what it is where it is lifted."""
    if isinstance(law, LiftedRamp):
        return [Backward(law.ramp), Backward(law.ramp, least=law.lift)]
    votes = law.parts if isinstance(law, VoteBlend) else (law,) if isinstance(law, GatedSum) else ()
    return [Backward(vote) for vote in votes]


def gates_of(law: Law) -> list[str]:
    """Return the gate vectors of a law: for each of its recursions, base64 of G_k's doubles, least
    significant byte first.

    >>> ones = np.ones(2)
    >>> law = GatedSum((2, 2), np.array([1, 1]), np.zeros(2), "vote", 1, 1, 1.0, ones)
    >>> [gate] = gates_of(law)
    >>> len(gate), gate_values(gate).round(4).tolist()
    (24, [0.6065, 1.6487])
    """
    return [
        base64.b64encode(back.last().astype("<f8").tobytes()).decode() for back in backwards_of(law)
    ]


def gate_values(text: str) -> FloatArray:
    """Return the doubles of a gate vector.

    Raises:
        InputError: if the text is not base64 of doubles.
    """
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8")
    except ValueError:
        raise InputError("the study has been altered: a gate table cannot be read") from None


def check_gates(law: Law, gates: list[str]) -> None:
    """Refuse tables that are not the law's, within what another machine's exponential changes.

    The exponent of G_k = e^{ln g − E/2}, or where a ramp is lifted of e^{max(ln g, b) − E/2}, is
    off by at most (4 E + 5) u here and as much there, the exponential by 2 u each
    (docs/proofs/optimal.md, Theorem 10).

    Raises:
        InputError: if so.
    """
    recursions = backwards_of(law)
    if len(gates) != len(recursions):
        raise InputError("the study has been altered: a law lacks its gate tables")
    for back, text in zip(recursions, gates, strict=True):
        ours, theirs = back.last(), gate_values(text)
        room = 2.02 * (4 * back.law.height + 8) * UNIT
        if theirs.shape != ours.shape or not np.all(np.abs(theirs - ours) <= room * ours):
            raise InputError("the study has been altered: a gate table is not that of its law")
