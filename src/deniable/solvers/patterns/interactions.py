"""Interactions in the objective of forms, with attributes that are alike as one class.

Source: docs/proofs/forms.md, Theorem 2.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray, IntArray


class Interactions:
    """The sets T of the objective: single attributes, then pairs; the last has no cost.

    ``n_categories``: of the attributes of each class, shape (k,).
    """

    def __init__(
        self, n_categories: NDArray[np.int64], classes: tuple[tuple[int, ...], ...]
    ) -> None:
        self.k = k = len(classes)
        self.empty = k  # in place of a class, for an empty question
        self.classes = classes
        self.members = np.array([len(members) for members in classes])
        self.n = np.append(n_categories, 2).astype(np.float64)
        pairs = list(combinations(range(k), 2))
        pairs += [(i, i) for i in range(k) if self.members[i] > 1]
        self.pairs = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        rest = (self.n - 1)[:k]
        self.dimension = np.concatenate([rest, rest[self.pairs].prod(axis=1), [1.0]])
        first, second = self.pairs.T
        of_pairs = self.members[first] * (self.members[second] - (first == second))
        of_pairs = of_pairs / np.where(first == second, 2, 1)
        self.size = np.concatenate([self.members, of_pairs, [np.inf]])
        """Number of attributes, or pairs of attributes, that each set represents."""
        self.place = np.full((k + 1, k + 1), len(self.dimension) - 1)
        self.place[first, second] = self.place[second, first] = k + np.arange(len(self.pairs))

    def costs(self, importance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return κ of the mean variance of a cell, of attributes and of pairs of them."""
        k, pairs = self.k, self.pairs
        shares = np.zeros(len(self.dimension))
        counted = importance * self.members
        shares[:k] = counted / counted.sum() * (self.n - 1)[:k] / self.n[:k] ** 2
        of_pairs = np.zeros(len(self.dimension))
        if len(pairs):
            each = importance[pairs].prod(axis=1) * self.size[k:-1]
            each = each / each.sum() / self.n[pairs].prod(axis=1) ** 2
            of_pairs[k:-1] = each * self.dimension[k:-1]
            for side in range(2):
                np.add.at(of_pairs, pairs[:, side], each * (self.n - 1)[pairs[:, side]])
        return shares, of_pairs

    def one_law(self, information: FloatArray) -> FloatArray:
        """Return the reference for the importance of pairs, which makes it comparable at every ε:
        the approximate information of one law for all on pairs.

        It is the product of the information on their attributes where nearly all is unchanged, and
        a ninth of that where little is: such laws have about two thirds of the information on
        shares, and φ_ij half of φ_i φ_j.
        """
        singles = information[: self.k]
        pairs = singles[self.pairs].prod(axis=1)
        return np.concatenate([singles, pairs * 9.0 ** (pairs**0.25 - 1), [1.0]])

    def of(self, asked: IntArray) -> IntArray:
        """Return the numbers of the sets T within attributes of some classes, shape (m,) to shape
        (m + m(m − 1)/2,)."""
        first, second = np.triu_indices(len(asked), 1)
        pairs = self.place[asked[first], asked[second]]
        return np.concatenate([np.where(asked == self.empty, len(self.size) - 1, asked), pairs])
