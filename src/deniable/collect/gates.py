"""The tables that a browser needs to draw votes, since its exponential may differ in the last bit.

A gated sum is drawn from G_k, the gate after the last attribute, by additions, multiplications and
divisions alone (:mod:`deniable.laws.votes.backward`), which every engine rounds the same way. So
G_k is computed once, at the opening of a study, and shipped as the bits of its doubles: a few
thousand numbers for a ramp, two or three for a vote. The guarantee of a law drawn from such a table
is computed from the table (docs/proofs/collection.md).
"""

import base64

import numpy as np

from deniable.errors import InputError
from deniable.laws import GatedSum, Law, ScoreTable, VoteBlend
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.sums import UNIT
from deniable.laws.votes.vote_law import LARGEST_NORMAL

MOST_WORDS = 1 << 23
"""Most 64-bit words of the scores of a law in a page: 64 MB, a second on a telephone."""


def _tables(law: Law) -> list[tuple[GatedSum, FloatArray]]:
    """Return each gated sum of a law, in order, with its G_k."""
    votes = law.parts if isinstance(law, VoteBlend) else (law,) if isinstance(law, GatedSum) else ()
    return [(vote, Backward(vote).last()) for vote in votes]


def gates_of(law: Law) -> list[str]:
    """Return the gate vectors of a law: base64 of the doubles of each gated sum's G_k, least
    significant byte first. A law of one score has none; a law too large or with too large a level
    for a page raises InputError.
    """
    if isinstance(law, ScoreTable) and law.words > MOST_WORDS:
        raise InputError(
            "a browser cannot hold the scores of this law; design the mechanism for fewer questions"
            " or with `method` kronecker"
        )
    tables = _tables(law)
    if any(vote.height > LARGEST_NORMAL for vote, _ in tables):
        raise InputError(
            f"a browser cannot draw from a law with ε above {LARGEST_NORMAL:g}; design the"
            " mechanism for fewer questions or smaller levels"
        )
    return [base64.b64encode(table.astype("<f8").tobytes()).decode() for _, table in tables]


def gate_values(text: str) -> FloatArray:
    """Return the doubles of a gate vector."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8")
    except ValueError:
        raise InputError("the study has been altered: a gate table cannot be read") from None


def check_gates(law: Law, gates: list[str]) -> None:
    """Raise unless the tables are those of the law, up to differences of the exponential function.

    The exponent of G_k = e^{ln g − E/2} is off by at most (4 E + 5) u on each machine, the
    exponential by 2 u (docs/proofs/optimal.md, Theorem 10).
    """
    tables = _tables(law)
    if len(gates) != len(tables):
        raise InputError("the study has been altered: a law lacks its gate tables")
    for (vote, ours), text in zip(tables, gates, strict=True):
        theirs = gate_values(text)
        room = 2.02 * (4 * vote.height + 8) * UNIT
        if theirs.shape != ours.shape or not np.all(np.abs(theirs - ours) <= room * ours):
            raise InputError("the study has been altered: a gate table is not that of its law")
