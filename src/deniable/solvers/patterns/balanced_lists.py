"""Lists of steps for answers that name sets of categories: every two categories as often together.

A list of s steps among a categories makes a sets, one for each category to start from. Two
categories d places apart are together in N(d) of them, the number of pairs of its steps that differ
by d. Wanted are lists and weights for which Σ_c w_c N_c(d) is the same for every d = 1 … a − 1. The
mean over all lists is; so, by Carathéodory's theorem, are some ⌊a/2⌋ of them, as N(d) = N(a − d).

Fewer are enough if all lists are unions of orbits of a group of factors modulo a: N(d) is then the
same for all d of an orbit. Lists are drawn at random, and weights are found by least squares under
the condition that they are not negative, whose solution has no more lists than conditions. The
largest group for which that succeeds is taken (docs/proofs/forms.md, section 4).
"""

from collections.abc import Iterator, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray

BoolArray = NDArray[np.bool_]

MOST_CATEGORIES = 1000
"""More would take too long, and tables of two such attributes would not fit into memory."""

_CONDITIONS = 256
"""Sets of steps that have to be balanced at most: least squares with 2,580 lists."""


def balanced_lists(
    n_categories: int, breadths: Sequence[int]
) -> tuple[FloatArray, list[tuple[int, ...]]] | None:
    """Find few balanced lists of steps.

    The same arguments give the same lists.

    Weights, which add up to 1, and the lists, each ascending from 0; None if none are found.

    >>> shares, lists = balanced_lists(7, [3])
    >>> shares.tolist(), lists
    ([1.0], [(0, 2, 3)])
    """
    if n_categories > MOST_CATEGORIES:
        return None
    for factors in _groups(n_categories):
        orbits = _orbits(n_categories, factors)
        differences = _orbits(n_categories, [*factors, *(-f for f in factors)])[1:]
        if len(differences) > _CONDITIONS:
            return None
        for breadth in breadths:
            lists = _balanced(n_categories, breadth, orbits, differences)
            if lists is not None:
                return lists
    return None


def _groups(n: int) -> Iterator[list[int]]:
    """Yield the groups of factors that one factor makes, the largest first, at last that of 1."""
    groups = set()
    for factor in range(1, n):
        if gcd(factor, n) == 1:
            powers = [1]
            while (power := powers[-1] * factor % n) != 1:
                powers.append(power)
            groups.add(tuple(sorted(powers)))
    yield from map(list, sorted(groups, key=lambda group: (-len(group), group)))


def _orbits(n: int, factors: Sequence[int]) -> list[list[int]]:
    """Return what the multiples of each step are, that of 0 first."""
    left = dict.fromkeys(range(n))
    orbits = []
    while left:
        step = next(iter(left))
        orbits.append(sorted({step * factor % n for factor in factors}))
        for each in orbits[-1]:
            del left[each]
    return orbits


def _balanced(
    n: int, breadth: int, orbits: list[list[int]], differences: list[list[int]]
) -> tuple[FloatArray, list[tuple[int, ...]]] | None:
    """Return weights and lists of so many steps that are unions of orbits, if any are found."""
    from scipy.optimize import nnls

    generator = np.random.default_rng([16, n, breadth])  # the same arguments give the same lists
    wanted = 10 * (len(differences) + 2)  # lists; drawn four times over if the same come again
    members = np.zeros((len(orbits), n), dtype=bool)
    for row, orbit in zip(members, orbits, strict=True):
        row[orbit] = True
    sizes = members.sum(axis=1)
    drawn: dict[bytes, BoolArray] = {}
    for _ in range(4 * wanted):
        order = generator.permutation(len(orbits))
        total = np.cumsum(sizes[order])
        taken = int(np.searchsorted(total, breadth, side="right"))
        chosen = order[:taken]
        if missing := breadth - (int(total[taken - 1]) if taken else 0):
            fitting = order[taken:][sizes[order[taken:]] == missing]
            if not len(fitting):
                continue
            chosen = np.append(chosen, fitting[0])
        inside: BoolArray = np.logical_or.reduce(members[chosen], axis=0)
        drawn[inside.tobytes()] = np.asarray(inside)
        if len(drawn) == wanted:
            break
    if not drawn:
        return None
    all_inside = np.array(list(drawn.values()))
    together = np.fft.irfft(np.abs(np.fft.rfft(all_inside, axis=1)) ** 2, n, axis=1)
    mean = breadth * (breadth - 1) / (n - 1)
    conditions = np.rint(together[:, [each[0] for each in differences]]).T / mean
    wanted_of_each = np.ones(len(differences))
    weights, error = nnls(conditions, wanted_of_each)
    if error > 1e-9:  # none of these lists are balanced
        return None
    used = np.flatnonzero(weights)
    # Once more without those that are not used, to the last digits.
    shares = np.linalg.lstsq(conditions[:, used], wanted_of_each, rcond=None)[0]
    if shares.min() <= 0:
        return None
    steps = [np.flatnonzero(all_inside[place]) for place in used]
    lists = [tuple((each - each[0]).tolist()) for each in steps]  # so each starts at its first
    return shares / shares.sum(), lists
