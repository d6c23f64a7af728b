"""What others offer for records of several attributes, in closed form: RS+FD and SMP (Arcolezi and
others 2021), also with subset selection.

*RS+FD* (random sampling plus fake data; Arcolezi, Couchot, Al Bouna and Xiao, 2021, with k-ary
randomized response) draws one attribute uniformly, answers it by k-ary randomized response at a
level ε', and fills the others with uniform values. *SMP* draws one attribute the same way, answers
it at a level ε, says which it was, and reports nothing else.

RS+FD is a pattern law. Its density against uniform records is

    f(S) = (1/k) Σ_i (a_i p_i if i is kept, else a_i p_i e^{−ε'}),  p_i = e^{ε'}/(e^{ε'} + a_i − 1),

so that f(nothing changed)/f(everything changed) = e^{ε'}: its level for a whole record is ε', the
level of the one answer. The authors take ε' = ln(k(e^ε − 1) + 1) for a guarantee of ε
("amplification by sampling"). That is the largest ratio between records that differ in *one*
attribute: max f(S)/f(S∪i) = 1 + (e^{ε'} − 1)/k = e^ε for equal category counts. Sampling amplifies
nothing for records that differ everywhere, because whichever attribute is drawn, it differs.

Whatever the pair of attributes, at least one of the two is uniform, so φ of a pair is 0: no table
of two attributes can be estimated.
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.laws import PatternTable
from deniable.laws.patterns import other_outputs
from deniable.laws.response import attenuation, keep_probability


def amplified_epsilon(n_attributes: int, epsilon: float) -> float:
    """Return ε' = ln(k(e^ε − 1) + 1) in nats, the level that RS+FD answers at by its authors."""
    return epsilon + math.log(n_attributes - (n_attributes - 1) * math.exp(-epsilon))


def fake_data_attenuation(n_attributes: int, n_categories: int, answer_epsilon: float) -> float:
    """Return φ of one attribute under RS+FD: drawn with chance 1/k, uniform otherwise.

    Args:
        n_attributes: k.
        n_categories: of this attribute.
        answer_epsilon: ε', the level of the one answer in nats.
    """
    return attenuation(n_categories, answer_epsilon) / n_attributes


def fake_data_given_rest(n_attributes: int, answer_epsilon: float) -> float:
    """Return ln(1 + (e^{ε'} − 1)/k): what someone who knows the other true values learns of an
    attribute under RS+FD, in nats, where all attributes have equally many categories."""
    k = n_attributes
    return answer_epsilon + math.log1p((k - 1) * math.exp(-answer_epsilon)) - math.log(k)


def fake_data_law(n_categories: Sequence[int], answer_epsilon: float) -> PatternTable:
    """Return RS+FD as a law that can be drawn from and accounted for, up to 20 attributes.

    Args:
        n_categories: of all attributes, shape (k,).
        answer_epsilon: ε', the level of the one answer in nats.
    """
    k = len(n_categories)
    density = np.zeros((2,) * k)
    for i, a in enumerate(n_categories):
        p = keep_probability(a, answer_epsilon)
        factor = np.array([a * p, a * p * math.exp(-answer_epsilon)])
        density += factor.reshape([2 if j == i else 1 for j in range(k)]) / k
    uniform = other_outputs(n_categories).astype(np.float64) / math.prod(n_categories)
    return PatternTable.from_probabilities(n_categories, density * uniform)


def subset_attenuation(n_attributes: int, n_categories: int, epsilon: float) -> float:
    """Return the φ of a pattern law that is worth as much as SMP whose one answer is a set of
    categories, of the best size s (subset selection, Ye and Barg 2018).

    The set holds the true category with probability p = e^ε r/(1 + (e^ε − 1) r), r = s/a, and tells
    (p − r)²/(r (1 − r)(a − 1)) of a share, which is φ² for s = 1.

    Args:
        n_attributes: k.
        n_categories: of this attribute.
        epsilon: of the record, all of it spent on the one answer, in nats.
    """
    a, odds = n_categories, math.expm1(epsilon)
    told = []
    for size in range(1, a):
        r = size / a
        p = (1 + odds) * r / (1 + odds * r)
        told.append((p - r) ** 2 / (r * (1 - r) * (a - 1)))
    return math.sqrt(max(told) / n_attributes)


def sampling_attenuation(n_attributes: int, n_categories: int, epsilon: float) -> float:
    """Return the φ of a pattern law that is worth as much as SMP for the shares of one attribute.

    The attribute is seen in about n/k records, each of variance proportional to 1/φ² with φ that
    of k-ary randomized response; all n records at φ/√k have the same variance. (SMP itself is no
    pattern law: it leaves values out.)

    Args:
        n_attributes: k.
        n_categories: of this attribute.
        epsilon: of the record, all of it spent on the one answer, in nats.
    """
    return attenuation(n_categories, epsilon) / math.sqrt(n_attributes)
