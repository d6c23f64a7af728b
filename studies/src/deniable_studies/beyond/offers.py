"""Published alternatives, drawn: answers, and estimates of shares and pairs.

The protocols are those of :mod:`deniable_studies.beyond.baselines`, as their papers have them, with
random hashes for hash functions. Estimates are unbiased and not projected. Draws are numpy's: this
is to measure errors, not to release anything.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_studies.beyond.baselines import (
    ORACLES,
    best_questions,
    direction_shift,
    direction_weights,
    hash_size,
    response,
    subset_size,
    told,
)

Columns = Sequence[NDArray[Any]]
Table = NDArray[np.float64]
Pairs = dict[tuple[int, int], Table]

ONE_QUESTION: Mapping[str, str] = {
    "smp": "response",
    "smp-unary": "unary",
    "smp-hashing": "hashing",
    "smp-subset": "subset",
}
"""SMP, by the response to its one question."""

ONE_PAIR: Mapping[str, str] = {"pair-response": "response", "pair-subset": "subset"}

OFFERS = (*ONE_QUESTION, "m-of-k", "privunit", *ONE_PAIR)
"""All methods here."""


def draw_offer(
    name: str,
    columns: Columns,
    n_categories: Sequence[int],
    epsilon: float,
    random: np.random.Generator,
) -> tuple[list[Table], Pairs]:
    """Return one release's estimated shares, and tables of pairs where there are any.

    Args:
        name: one of ``OFFERS``.
        columns: codes per attribute, shape (n,) each.
        n_categories: of the attributes, shape (k,).
        epsilon: of the record, in nats.
        random: generator.
    """
    if name == "privunit":
        return _direction(columns, n_categories, epsilon, random), {}
    if name in ONE_PAIR:
        return _one_pair(columns, n_categories, epsilon, ONE_PAIR[name], random)
    m = best_questions(n_categories, epsilon) if name == "m-of-k" else 1
    oracle = ONE_QUESTION.get(name, "subset")
    places = random.random((len(columns[0]), len(columns))).argsort(axis=1)[:, :m]
    shares = []
    for i, (codes, a) in enumerate(zip(columns, n_categories, strict=True)):
        asked = codes[(places == i).any(axis=1)]
        shares.append(_shares(asked, a, epsilon / m, oracle, random))
    return shares, {}


def draw_realistic_fake_data(
    columns: Columns,
    priors: Sequence[Table],
    epsilon: float,
    random: np.random.Generator,
) -> list[Table]:
    """Return one release's estimated shares under RS+RFD with k-ary response (Arcolezi, Gambs,
    Couchot and Palamidessi 2023): one random attribute is answered, the others are drawn from
    priors.

    Args:
        columns: codes per attribute, shape (n,) each.
        priors: distribution of fake values, per attribute.
        epsilon: of the one answer, and so of the record, in nats.
        random: generator.
    """
    n, k = len(columns[0]), len(columns)
    answered = random.integers(0, k, n)
    shares = []
    for i, (codes, prior) in enumerate(zip(columns, priors, strict=True)):
        own = answered == i
        p, q = response(len(prior), epsilon)
        sent = random.choice(len(prior), n, p=prior)
        sent[own] = _responses(codes[own], len(prior), p, random)
        seen = np.bincount(sent, minlength=len(prior)) / n
        shares.append((k * seen - q - (k - 1) * prior) / (p - q))
    return shares


def _shares(
    codes: NDArray[Any], a: int, epsilon: float, oracle: str, random: np.random.Generator
) -> Table:
    """Return the shares of the categories estimated from one answer of each person."""
    p, q = ORACLES[oracle](a, epsilon)
    supported = _supports(codes.astype(np.intp), a, epsilon, oracle, random)
    return np.asarray((supported / len(codes) - q) / (p - q))


def _supports(
    codes: NDArray[np.intp], a: int, epsilon: float, oracle: str, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return how many answers support each category."""
    n = len(codes)
    p, q = ORACLES[oracle](a, epsilon)
    if oracle == "response":
        return np.bincount(_responses(codes, a, p, random), minlength=a)
    true = np.arange(a) == codes[:, None]
    if oracle == "unary":
        return np.asarray((random.random((n, a)) < np.where(true, p, q)).sum(axis=0))
    if oracle == "hashing":
        g = hash_size(epsilon)
        hashes = random.integers(0, g, (n, a))
        answers = _responses(hashes[np.arange(n), codes], g, p, random)
        return np.asarray((hashes == answers[:, None]).sum(axis=0))
    # A set of s categories: the true one with probability p, the others at random.
    size = subset_size(a, epsilon)
    keys = random.random((n, a))
    keys[true] = np.where(random.random(n) < p, -1.0, 2.0)
    chosen = np.argpartition(keys, size - 1, axis=1)[:, :size]
    return np.bincount(chosen.ravel(), minlength=a)


def _responses(
    codes: NDArray[Any], a: int, p: float, random: np.random.Generator
) -> NDArray[np.intp]:
    others = (codes.astype(np.intp) + random.integers(1, a, len(codes))) % a
    return np.where(random.random(len(codes)) < p, codes, others).astype(np.intp)


def _direction(
    columns: Columns, n_categories: Sequence[int], epsilon: float, random: np.random.Generator
) -> list[Table]:
    """PrivUnit with normal vectors: the answer's mean is m times the person's own direction."""
    threshold, shift = direction_shift(epsilon)
    weights = direction_weights(n_categories)
    starts = np.concatenate([[0], np.cumsum(n_categories)])
    # Indicators less their means, each attribute's part scaled to the length √w_i.
    lengths = [np.sqrt(w / (1 - 1 / a)) for w, a in zip(weights, n_categories, strict=True)]
    own = np.concatenate(
        [
            length * ((np.arange(a) == codes[:, None]) - 1 / a)
            for length, codes, a in zip(lengths, columns, n_categories, strict=True)
        ],
        axis=1,
    )
    drawn = random.standard_normal(own.shape)
    for start, a in zip(starts, n_categories, strict=False):  # within the space of such vectors
        drawn[:, start : start + a] -= drawn[:, start : start + a].mean(axis=1, keepdims=True)
    above = _above(threshold, epsilon, len(own), random)
    drawn += (above - (drawn * own).sum(axis=1))[:, None] * own
    mean = drawn.mean(axis=0) / shift
    return [
        1 / a + mean[start : start + a] / length
        for start, a, length in zip(starts, n_categories, lengths, strict=False)
    ]


def _above(t: float, epsilon: float, n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw normal numbers whose density is e^ε times as large above t, by rejection."""
    kept = np.empty(0)
    while len(kept) < n:
        tried = random.standard_normal(2 * n)
        allowed = random.random(2 * n) < np.where(tried > t, 1.0, np.exp(-epsilon))
        kept = np.concatenate([kept, tried[allowed]])
    return kept[:n]


def _one_pair(
    columns: Columns,
    n_categories: Sequence[int],
    epsilon: float,
    oracle: str,
    random: np.random.Generator,
) -> tuple[list[Table], Pairs]:
    k = len(columns)
    pairs = list(combinations(range(k), 2))
    which = random.integers(0, len(pairs), len(columns[0]))
    tables: Pairs = {}
    summed = [np.zeros(a) for a in n_categories]
    weights = np.zeros(k)
    for number, (i, j) in enumerate(pairs):
        rows = which == number
        shape = n_categories[i], n_categories[j]
        cells = columns[i][rows].astype(np.intp) * shape[1] + columns[j][rows]
        table = _shares(cells, shape[0] * shape[1], epsilon, oracle, random).reshape(shape)
        tables[i, j] = table
        # The pairs' estimates of an attribute are weighted by their information.
        weight = rows.sum() * told(oracle, shape[0] * shape[1], epsilon)
        for attribute, axis in ((i, 1), (j, 0)):
            summed[attribute] += weight * table.sum(axis=axis)
            weights[attribute] += weight
    shares = [total / weight for total, weight in zip(summed, weights, strict=True)]
    for (i, j), table in tables.items():  # the margins of all pairs instead of its own
        first = (shares[i] - table.sum(axis=1)) / n_categories[j]
        second = (shares[j] - table.sum(axis=0)) / n_categories[i]
        tables[i, j] = table + first[:, None] + second
    return shares, tables
