"""Groups of categories with similar shares, and bounds at their true shares.

Extreme rows number about 2^n. With the shares of a group replaced by their mean, only the number of
its categories that a row names matters: groups of 1, 1, 3 and 5 categories have 2·2·4·6 kinds of
rows. A K that is the same for all categories of a group is then no restriction, and its Z and λ
become those of a certificate for the true shares (`at_true_shares`).

The proofs are in docs/proofs/frontier.md, section 5.
"""

from dataclasses import replace

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import MOST_KINDS, Groups, Limits, n_kinds


def of_like_shares(limits: Limits, most: int) -> Groups:
    """Return the group of each category, 0, 1, …, in at most `most` groups, and, unless these are
    only two, at most `MOST_KINDS` kinds of rows.

    In the order of shares, it merges the two neighbouring groups that add least to
    Σ (p − mean)²/(mean (b − mean)), b the budget, per factor of fewer kinds: p/b is the fraction of
    rows that name a category, all of them where privacy is largest.

    >>> from deniable.proofs.rows import average_limits
    >>> limits = average_limits([0.5, 0.1, 0.3, 0.1], 0.2)
    >>> of_like_shares(limits, 4).tolist(), of_like_shares(limits, 3).tolist()
    ([0, 2, 1, 3], [0, 2, 1, 2])
    """
    order = np.argsort(-limits.prior, kind="stable")
    # Of each group: its size, and the sums of shares and of their squares.
    sums = np.stack([limits.prior[order] ** power for power in range(3)])

    def spread(sums: FloatArray) -> FloatArray:
        number, total, squares = sums
        return np.asarray((squares * number / total - total) / (limits.budget - total / number))

    while sums.shape[1] > 2 and (
        sums.shape[1] > most or n_kinds(limits, sums[0].astype(np.intp)) > MOST_KINDS
    ):
        both = sums[:, :-1] + sums[:, 1:]
        more = spread(both) - spread(sums)[:-1] - spread(sums)[1:]
        fewer = (sums[0, :-1] + 1.0) * (sums[0, 1:] + 1.0) / (both[0] + 1.0)
        at = int(np.argmin(more / np.log(fewer)))
        sums = np.concatenate([sums[:, :at], both[:, at : at + 1], sums[:, at + 2 :]], axis=1)
    groups = np.empty(len(order), dtype=np.intp)
    groups[order] = np.arange(sums.shape[1]).repeat(sums[0].astype(np.intp))
    return groups


def alike(limits: Limits, groups: Groups) -> Limits:
    """The same limits at the mean shares of the groups."""
    means = np.bincount(groups, limits.prior) / np.bincount(groups)
    return replace(limits, prior=means[groups])


def at_true_shares(
    limits: Limits, mean: FloatArray, Z: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best Z and λ for the true shares that preserve the excess of each set.

    A row is a∘v, a = p under ε-LDP, else 1. Its excess times (1·q) is vᵀFv with
    F = YYᵀ − (aℓᵀ + ℓaᵀ)/2, Y = a∘Z and ℓ = a∘λ. The best Y and ℓ with this F have Yᵀ(p/a) = 0 and
    the largest tr(ZᵀG) (docs/proofs/frontier.md, Lemma 8).
    """
    p = limits.prior
    before, after = (mean, p) if limits.epsilon is not None else (np.ones_like(p),) * 2
    Y, level = before[:, None] * Z, before * multipliers
    form = Y @ Y.T - (np.outer(before, level) + np.outer(level, before)) / 2.0
    image = form @ (p / after)
    level = -2.0 * image + (image @ (p / after)) * after
    square = form + (np.outer(after, level) + np.outer(level, after)) / 2.0
    values, vectors = np.linalg.eigh(square)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    left, _, right = np.linalg.svd(root.T @ ((np.diag(p) - np.outer(p, p)) / after[:, None]))
    return root @ (left @ right) / after[:, None], level / after
