"""Attributes that answer independently of all others: one k-ary response each.

What a search returns for a single attribute, for one whose cap equals its level, and as a last
resort. It holds no probabilities: `deniable.laws` makes exact ones from the levels.
"""

from dataclasses import dataclass

from deniable.laws.votes.sums import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class IndependentResponses:
    """The Kronecker product of k-ary responses at given levels.

    Args:
        n_categories: a_i, shape (k,).
        attribute_epsilon: ε_i in nats, never exceeded by the law as drawn, and met to within a
            part in 2^56, shape (k,).
    """

    n_categories: IntArray
    attribute_epsilon: FloatArray
