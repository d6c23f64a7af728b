"""Published alternatives for records of several attributes, in closed form.

RS+FD and SMP (Arcolezi and others 2021), SMP with every oracle and with several questions, one
random pair of attributes each, and PrivUnit. The worth of an alternative is the information I of
docs/proofs/forms.md: an unbiased cell of an attribute with a categories has, at the uniform truth,
the variance (a − 1)/(a² I) for one row; I of a pattern law is φ².

*RS+FD* (random sampling plus fake data; Arcolezi, Couchot, Al Bouna and Xiao, 2021, with k-ary
randomized response) draws one attribute uniformly, answers it by k-ary randomized response at a
level ε', and fills the others with uniform values. *SMP* draws one attribute the same way, answers
it at a level ε, reports which one, and no other.

RS+FD is a pattern law. Its density against uniform records is

    f(S) = (1/k) Σ_i (a_i p_i if i ∉ S, else a_i p_i e^{−ε'}),  p_i = e^{ε'}/(e^{ε'} + a_i − 1),

so that f(none changed)/f(all changed) = e^{ε'}: its level for a whole record is ε', the
level of the one answer. The authors take ε' = ln(k(e^ε − 1) + 1) for a guarantee of ε
("amplification by sampling"). That is the largest ratio between records that differ in *one*
attribute: max f(S)/f(S∪i) = 1 + (e^{ε'} − 1)/k = e^ε for equal category counts. Sampling amplifies
zero for records that differ everywhere, since every drawn attribute differs.

For every pair of attributes at least one of the two is uniform, so φ of a pair is 0: no table
of two attributes can be estimated.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from deniable.laws import PatternTable
from deniable.laws.patterns import other_outputs
from deniable.laws.response import attenuation, keep_probability

RSFD, RSFD_STATED = "rsfd", "rsfd-as-stated"
"""RS+FD at the level of a whole record, and at the level that its authors state."""


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
    """Return ln(1 + (e^{ε'} − 1)/k): level, given the other true values, of an
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


Oracle = Callable[[int, float], tuple[float, float]]
"""From categories and ε to how likely an answer is to support the true category, and another."""


def response(n_categories: int, epsilon: float) -> tuple[float, float]:
    """k-ary randomized response: the answer supports itself."""
    p = keep_probability(n_categories, epsilon)
    return p, p * math.exp(-epsilon)


def unary(_: int, epsilon: float) -> tuple[float, float]:
    """Optimized unary encoding (Wang, Blocki, Li and Jha 2017)."""
    return 0.5, 1 / (math.exp(epsilon) + 1)


def hashing(_: int, epsilon: float) -> tuple[float, float]:
    """Optimized local hashing (the same): an answer supports all categories with its hash."""
    g = hash_size(epsilon)
    return math.exp(epsilon) / (math.exp(epsilon) + g - 1), 1 / g


def hash_size(epsilon: float) -> int:
    """Return g, how many values the hash of optimized local hashing takes."""
    return round(math.exp(epsilon)) + 1


def subset(n_categories: int, epsilon: float) -> tuple[float, float]:
    """Subset selection (Ye and Barg 2018) with sets of the best size."""
    return _of_size(n_categories, epsilon, subset_size(n_categories, epsilon))


def subset_size(n_categories: int, epsilon: float) -> int:
    """Return how many categories the sets of the best subset selection have."""
    sizes = range(1, n_categories)
    return max(sizes, key=lambda s: _told(n_categories, *_of_size(n_categories, epsilon, s)))


def _of_size(a: int, epsilon: float, size: int) -> tuple[float, float]:
    r = size / a
    p = (1 + math.expm1(epsilon)) * r / (1 + math.expm1(epsilon) * r)
    return p, (size - p) / (a - 1)


ORACLES: Mapping[str, Oracle] = {
    "response": response,
    "unary": unary,
    "hashing": hashing,
    "subset": subset,
}


def _told(a: int, p: float, q: float) -> float:
    # An answer's support of a category has variance s(1 − s), s its mean at the uniform truth.
    support = p / a + q * (1 - 1 / a)
    return (a - 1) / a**2 * (p - q) ** 2 / (support * (1 - support))


def told(oracle: str, n_categories: int, epsilon: float) -> float:
    """Return the information that one answer brings on an attribute.

    Args:
        oracle: one of ``ORACLES``, or ``better``, of k-ary response and unary encoding.
        n_categories: of the attribute.
        epsilon: of the answer, in nats.
    """
    if oracle == "better":
        return max(told(one, n_categories, epsilon) for one in ("response", "unary"))
    return _told(n_categories, *ORACLES[oracle](n_categories, epsilon))


def share_variance(n_categories: Sequence[int], information: Sequence[float]) -> float:
    """Return the mean over attributes of the variance of a cell, uniform truth, one row."""
    both = zip(n_categories, information, strict=True)
    return float(np.mean([(a - 1) / a**2 / value for a, value in both]))


def questions(n_categories: Sequence[int], epsilon: float, m: int, oracle: str) -> list[float]:
    """Return I of every attribute if each person answers m random attributes, each at ε/m.

    With m = 1 that is SMP, with all of them SPL.
    """
    k = len(n_categories)
    return [m / k * told(oracle, a, epsilon / m) for a in n_categories]


def best_questions(n_categories: Sequence[int], epsilon: float, oracle: str = "subset") -> int:
    """Return the number m of questions for which shares have the least variance (sampling m of k,
    Wang and others 2019)."""
    alike = Counter(n_categories)

    def variance(m: int) -> float:
        cells = (n * (a - 1) / a**2 / told(oracle, a, epsilon / m) for a, n in alike.items())
        return sum(cells) / m

    return min(range(1, len(n_categories) + 1), key=variance)


def fake_data(n_categories: Sequence[int], answer_epsilon: float) -> list[float]:
    """Return I of every attribute under RS+FD. RS+RFD (Arcolezi and others 2023) draws its fake
    data from a prior instead; where that is uniform the two are one."""
    k = len(n_categories)
    return [fake_data_attenuation(k, a, answer_epsilon) ** 2 for a in n_categories]


def direction_shift(epsilon: float) -> tuple[float, float]:
    """Return t and m of PrivUnit in many dimensions (Bhowmick and others 2018; with normal vectors
    Asi, Feldman and Talwar 2022).

    A normal vector is drawn with density e^ε times as large where its component along the true
    direction is above t; the mean of that component is then m, largest at t = m.
    """
    odds, normal = math.expm1(epsilon), NormalDist()

    def shift(t: float) -> float:
        return odds * normal.pdf(t) / (1 + odds * normal.cdf(-t))

    low, high = 0.0, 1.0 + math.sqrt(2 * epsilon)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if shift(middle) > middle else (low, middle)
    return low, shift(low)


def direction_weights(n_categories: Sequence[int]) -> NDArray[np.float64]:
    """Return the squared length of every attribute's part of PrivUnit's vector, of length 1, for
    which shares have the least variance."""
    weights = np.array([(a - 1) / a for a in n_categories])
    return np.asarray(weights / weights.sum())


def direction(n_categories: Sequence[int], epsilon: float) -> list[float]:
    """Return I of every attribute under PrivUnit on the concatenated indicators, less their means.

    An answer g has E[g gᵀ] = 1 + m t v vᵀ for the true direction v, so that the mean of answers
    over m has the variance of 1/I = (a_i − 1)/(m² w_i) + 1, of which the first term is the limit
    for many attributes.
    """
    _, shift = direction_shift(epsilon)
    weights = direction_weights(n_categories)
    parts = [float(shift**2 * w / (a - 1)) for w, a in zip(weights, n_categories, strict=True)]
    return [part / (1 + part) for part in parts]


def one_pair(n_categories: Sequence[int], epsilon: float, oracle: str) -> NDArray[np.float64]:
    """Return I of every attribute, on the diagonal, and of every pair, if each person answers for
    the cell of one random pair of attributes (the collection step of CALM, Zhang and others 2018).

    Returns:
        Shape (k, k). The information on a cell is that on each of its interactions.
    """
    n = np.asarray(n_categories)
    cells, place = np.unique(np.multiply.outer(n, n), return_inverse=True)
    each = np.array([told(oracle, int(a), epsilon) for a in cells])[place]
    each = each.reshape(len(n), len(n)) / math.comb(len(n), 2)
    np.fill_diagonal(each, 0.0)
    np.fill_diagonal(each, each.sum(axis=1))
    return each


def pair_variance(n_categories: Sequence[int], information: NDArray[np.float64]) -> float:
    """Return the mean over pairs of the variance of a cell of their table, uniform truth, one row.

    Args:
        n_categories: shape (k,).
        information: as of :func:`one_pair`.
    """
    n = np.asarray(n_categories, dtype=np.float64)
    single = np.diagonal(information)
    i, j = np.triu_indices(len(n), 1)
    cells = (n[i] - 1) / single[i] + (n[j] - 1) / single[j]
    cells += (n[i] - 1) * (n[j] - 1) / information[i, j]
    return float((cells / (n[i] * n[j]) ** 2).mean())


SHARES: Mapping[str, Callable[[Sequence[int], float], list[float]]] = {
    "spl": lambda n, e: questions(n, e, len(n), "response"),
    RSFD: fake_data,
    "smp": lambda n, e: questions(n, e, 1, "response"),
    "smp-unary": lambda n, e: questions(n, e, 1, "unary"),
    "smp-better": lambda n, e: questions(n, e, 1, "better"),
    "smp-hashing": lambda n, e: questions(n, e, 1, "hashing"),
    "smp-subset": lambda n, e: questions(n, e, 1, "subset"),
    "m-of-k": lambda n, e: questions(n, e, best_questions(n, e), "subset"),
    "privunit": direction,
    "pair-response": lambda n, e: list(np.diagonal(one_pair(n, e, "response"))),
    "pair-subset": lambda n, e: list(np.diagonal(one_pair(n, e, "subset"))),
}
"""I of every attribute under published alternatives, from category counts and the record's ε."""
