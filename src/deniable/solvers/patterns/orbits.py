"""Patterns up to exchange of identical attributes, the coordinates in which laws are optimised.

An *orbit* is a vector of counts (c_1, …, c_m) of the changed attributes of each group of attributes
with equal categories, levels and caps: twelve identical attributes have 13 orbits instead of 4,096
patterns. The unknown is the excess g = f/f_{all} − 1 ≥ 0, of the scale of e^ε − 1, so that tiny
levels lose no digits. Source: docs/proofs/restricted.md, Theorems 1 and 2.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.proofs.problem import Problem


@dataclass(frozen=True, eq=False)
class Orbits:
    """Orbits of patterns: n in all, of attributes in m groups; build them with `orbits`.

    Orbit 0 changes no attribute, orbit n − 1 changes all.

    Attributes:
        groups: one representative attribute per group; every array of it has shape (m,).
        size: number of attributes of each group, shape (m,).
        group_of: the group of each attribute, shape (k,).
        changed: number of changed attributes of each group in an orbit, shape (n, m).
        chance: μ of an orbit, the sum over its patterns, shape (n,).
    """

    groups: Problem
    size: IntArray
    group_of: IntArray
    changed: IntArray
    chance: FloatArray

    @cached_property
    def edges(self) -> IntArray:
        """Each pair of orbits (c, c + one more changed attribute of a group), every one once, and
        that group; shape (3, number of pairs)."""
        index = np.arange(len(self.changed)).reshape(tuple((self.size + 1).tolist()))
        pairs = []
        for group in range(len(self.size)):
            along = np.moveaxis(index, group, 0)
            near, far = along[:-1].ravel(), along[1:].ravel()
            pairs.append(np.stack([near, far, np.full(near.size, group)]))
        return np.concatenate(pairs, axis=1)

    @cached_property
    def kept_fraction(self) -> FloatArray:
        """Fraction of the group's attributes that are unchanged in an orbit, shape (m, n)."""
        return ((self.size - self.changed) / self.size).T

    @cached_property
    def changed_fraction(self) -> FloatArray:
        """Fraction of the group's attributes that are changed in an orbit, shape (m, n)."""
        return (self.changed / self.size).T

    @cached_property
    def drift(self) -> FloatArray:
        """E[Y_i | orbit] − p_i for an attribute i of each group, shape (m, n)."""
        keep = self.groups.keep_probability[:, None]
        change = self.groups.change_probability[:, None]
        drift: FloatArray = self.kept_fraction * change - self.changed_fraction * keep
        return drift

    @cached_property
    def drift_size(self) -> FloatArray:
        """E|Y_i − p_i| given the orbit, to which the rounding error of `drift` is relative."""
        keep = self.groups.keep_probability[:, None]
        change = self.groups.change_probability[:, None]
        size: FloatArray = self.kept_fraction * change + self.changed_fraction * keep
        return size

    def kept_sum(self, weights: FloatArray) -> FloatArray:
        """Σ of the groups' weights, each times its unchanged fraction in an orbit, shape (n,)."""
        total = np.zeros(1)
        for i in reversed(range(len(weights))):  # the last axis grows long: ten times faster
            n = int(self.size[i])
            total = np.add.outer(weights[i] * np.arange(n, -1, -1) / n, total).ravel()
        return total

    def fates(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Masses where an attribute of each group is unchanged and where it is changed, (m,)."""
        kept, changed = np.empty((2, len(self.size)))
        for i, n in enumerate(self.size.tolist()):
            mass = mass.reshape(n + 1, -1)
            by_count, fraction = mass.sum(axis=1), np.arange(n + 1) / n
            kept[i], changed[i] = by_count @ fraction[::-1], by_count @ fraction
            mass = mass.sum(axis=0)
        return kept, changed

    def pair_attenuation(self, first: int, second: int) -> FloatArray:
        """E[h_i h_j | orbit] for attributes i ≠ j of two groups, perhaps the same; shape (n,).

        h_i is 1 if attribute i is unchanged and −1/(a_i − 1) if it is changed, so that the
        attenuation of a pair is the mean of h_i h_j. Two attributes of one group are drawn without
        replacement.
        """
        if first != second:
            left, right = self._mean_sign(first), self._mean_sign(second)
            return left * right
        n = float(self.size[first])
        c = self.changed[:, first].astype(np.float64)
        lie = 1.0 / (self.groups.n_categories[first] - 1.0)
        both = (n - c) * (n - c - 1.0) - 2.0 * c * (n - c) * lie + c * (c - 1.0) * lie**2
        pairs: FloatArray = both / (n * (n - 1.0))
        return pairs

    def _mean_sign(self, group: int) -> FloatArray:
        """E[h_i | orbit] for an attribute of the group, shape (n,)."""
        lie = 1.0 / (self.groups.n_categories[group] - 1.0)
        sign: FloatArray = self.kept_fraction[group] - self.changed_fraction[group] * lie
        return sign

    def expand(self, density: FloatArray) -> FloatArray:
        """Turn values per orbit, shape (n,), into a table over patterns, shape (2,)*k."""
        table: FloatArray = density[self.of_pattern]
        return table

    @property
    def of_pattern(self) -> IntArray:
        """The orbit of every pattern, shape (2,)*k."""
        shape = tuple(self.size + 1)
        weights = np.cumprod((1, *shape[:0:-1]))[::-1]
        index = np.zeros((), dtype=np.int64)
        for group in self.group_of:
            index = np.add.outer(index, np.array([0, weights[group]]))
        return index


def alike(
    problem: Problem, also: Sequence[Hashable] | None = None
) -> tuple[Problem, IntArray, IntArray]:
    """Group attributes with equal categories and levels, and equal entries of `also` if given.

    ``also``: another property by which attributes differ, such as a cap, shape (k,).

    Returns an attribute of each of the m groups, in the order of their first ones, the number of
    attributes of each, shape (m,), and the group of each attribute, shape (k,).
    """
    keys = list(
        zip(
            problem.n_categories.tolist(),
            problem.attribute_epsilon.tolist(),
            also if also is not None else [None] * problem.n_attributes,
            strict=True,
        )
    )
    order = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    group_of = np.array([order[key] for key in keys], dtype=np.int64)
    counts, levels = (np.array([key[j] for key in order], dtype=np.float64) for j in range(2))
    return Problem(counts, levels), np.bincount(group_of), group_of


def orbits(problem: Problem, also: Sequence[Hashable] | None = None) -> Orbits:
    """Return the orbits of patterns of attributes in groups: see `alike`."""
    groups, size, group_of = alike(problem, also)
    shape = tuple((size + 1).tolist())
    changed = np.indices(shape).reshape(len(size), -1).T
    # Whole numbers as far as possible: dividing by a every time would bias the ratio of two
    # patterns by an ulp per attribute, and both parts may be beyond every double.
    outputs = np.ones(())
    for n, a in zip(size.tolist(), groups.counts.tolist(), strict=True):
        law = [math.comb(n, c) * (a - 1) ** c / a**n for c in range(n + 1)]
        outputs = np.multiply.outer(outputs, law)
    return Orbits(groups, size, group_of, changed, outputs.ravel())
