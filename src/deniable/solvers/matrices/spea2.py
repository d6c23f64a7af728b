"""Fitness and environmental selection of SPEA2, for two objectives (Zitzler, Laumanns and Thiele).

Objectives are a pair of arrays: privacy, where more is better, and error, where less is better.
Distances are measured with both scaled to the range of the non-dominated points, since errors have
no natural unit.
"""

from heapq import heapify, heappop, heappush
from math import hypot, inf

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray


def dominance(privacy: FloatArray, error: FloatArray) -> npt.NDArray[np.bool_]:
    """d[i, j]: i is no worse than j in both objectives and better in one, shape (m, m).

    Source: Huang and Du, Definition 5.1.
    """
    more, less = privacy[:, None], error[:, None]
    no_worse = (more >= privacy) & (less <= error)
    return np.asarray(no_worse > no_worse.T)


def non_dominated(privacy: FloatArray, error: FloatArray) -> npt.NDArray[np.intp]:
    """Indices of the points that no other dominates, by rising privacy; of equal points the first.

    Points of infinite error are left out.
    """
    order = np.lexsort((error, -privacy))
    values = error[order]
    before = np.concatenate([[inf], np.minimum.accumulate(values)[:-1]])
    return order[values < before][::-1]


def scaled(privacy: FloatArray, error: FloatArray) -> FloatArray:
    """Both objectives as multiples of the range of the non-dominated points, shape (m, 2)."""
    front = non_dominated(privacy, error)
    points = np.stack([privacy, error], axis=1)
    if not len(front):
        return np.zeros_like(points)
    low, high = points[front].min(axis=0), points[front].max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    # Nearly singular matrices have any error: distances are cut at a thousand widths of the front.
    return np.asarray(np.clip((points - low) / width, -1e3, 1e3))


def fitness(privacy: FloatArray, error: FloatArray, neighbour: int = 1) -> FloatArray:
    """Return raw fitness plus density, shape (m,); lower is better, and below 1 if not dominated.

    ``privacy``, ``error``: shape (m,). Source: Huang and Du, section V.B and equation (11).
    """
    # Raw fitness is at most m², a whole number that single precision holds exactly.
    dominates = dominance(privacy, error).astype(np.float32)
    raw = (dominates.sum(axis=1) @ dominates).astype(np.float64)
    points = scaled(privacy, error)
    squares, more = (np.subtract.outer(axis, axis) for axis in points.T)
    squares *= squares
    more *= more
    squares += more
    np.fill_diagonal(squares, inf)
    k = min(neighbour, len(privacy) - 1)
    if k < 1:
        return np.asarray(raw + 0.5)
    near = squares.min(axis=1) if k == 1 else np.partition(squares, k - 1, axis=1)[:, k - 1]
    return np.asarray(raw + 1.0 / (np.sqrt(near) + 2.0))


def select(
    privacy: FloatArray, error: FloatArray, values: FloatArray, size: int
) -> npt.NDArray[np.intp]:
    """Environmental selection: return the indices of the next archive, `size` of them or all.

    Every non-dominated point enters; too few are filled up with the best of the others, too many
    thinned. ``privacy``, ``error``, ``values`` (their `fitness`): shape (m,). Source: Huang and Du,
    section V.C.
    """
    front = np.flatnonzero(values < 1.0)
    if len(front) <= size:
        return np.argsort(values, kind="stable")[:size]
    points = scaled(privacy, error)[front]
    order = np.lexsort((points[:, 1], points[:, 0]))
    # The error falls as the privacy does, so this is the order along the curve.
    return front[order[thin(points[order], size)]]


def thin(points: FloatArray, size: int) -> npt.NDArray[np.intp]:
    """Drop the most crowded of points on a rising curve until `size` are left; return their
    indices.

    Along a monotone curve distances grow in both directions, so the nearest neighbours of a point
    are found by merging its left and right neighbours. Copies share a place; each further copy is
    one more distance of 0. ``points``: shape (m, 2), sorted so that both coordinates rise (weakly).
    """
    new = np.concatenate([[True], (np.diff(points, axis=0) != 0).any(axis=1)])
    starts = np.flatnonzero(new)
    places = _Places(points[starts], np.diff(starts, append=len(points)))
    # Of the crowded places, the one with most copies, then with the nearest neighbour.
    heap = [(-c, d, i) for i, (c, d) in enumerate(zip(places.count, places.near, strict=True))]
    heapify(heap)

    def current(entry: tuple[int, float, int]) -> bool:
        return places.count[entry[2]] == -entry[0] and places.near[entry[2]] == entry[1]

    for _ in range(len(points) - size):
        first = heappop(heap)
        while not current(first):
            first = heappop(heap)
        tied = {first[2]}
        while heap and heap[0][:2] == first[:2]:
            entry = heappop(heap)
            if current(entry):
                tied.add(entry[2])
        dropped = places.most_crowded(list(tied)) if len(tied) > 1 else first[2]
        for i in tied:
            if i != dropped:
                heappush(heap, (first[0], first[1], i))
        for i in places.drop(dropped):
            heappush(heap, (-places.count[i], places.near[i], i))
    kept = [range(start, start + c) for start, c in zip(starts.tolist(), places.count, strict=True)]
    return np.array([i for span in kept for i in span], dtype=np.intp)


class _Places:
    """Distinct points along a monotone curve, as a linked list with the number of copies of each.

    A place without a neighbour on one side has the link −1.
    """

    def __init__(self, points: FloatArray, count: npt.NDArray[np.intp]) -> None:
        self.x, self.y = points[:, 0].tolist(), points[:, 1].tolist()
        m = len(self.x)
        self.count: list[int] = count.tolist()
        self.left, self.right = list(range(-1, m - 1)), [*range(1, m), -1]
        self.near = [self._nearest(i) for i in range(m)]

    def _distance(self, i: int, j: int) -> float:
        return hypot(self.x[i] - self.x[j], self.y[i] - self.y[j]) if j >= 0 else inf

    def _nearest(self, i: int) -> float:
        return min(self._distance(i, self.left[i]), self._distance(i, self.right[i]))

    def drop(self, i: int) -> list[int]:
        """Take one copy away; return the places that have changed and are still there."""
        self.count[i] -= 1
        if self.count[i]:
            return [i]
        before, after = self.left[i], self.right[i]
        if before >= 0:
            self.right[before] = after
        if after >= 0:
            self.left[after] = before
        changed = [j for j in (before, after) if j >= 0]
        for j in changed:
            self.near[j] = self._nearest(j)
        return changed

    def most_crowded(self, tied: list[int]) -> int:
        """Of places with equally many copies, the first with the smallest sorted distances."""
        sides = {i: (self.left[i], self.right[i]) for i in tied}
        while len(tied) > 1:
            steps = {}
            for i in tied:
                a, b = sides[i]
                to_a, to_b = self._distance(i, a), self._distance(i, b)
                step, copies = min(to_a, to_b), 0
                if to_a == step and a >= 0:
                    copies, a = copies + self.count[a], self.left[a]
                if to_b == step and b >= 0:
                    copies, b = copies + self.count[b], self.right[b]
                # At the same distance more copies are more crowded.
                steps[i] = (step, -copies)
                sides[i] = (a, b)
            least = min(steps.values())
            tied = [i for i in tied if steps[i] == least]
            if least[0] == inf:
                break
        return min(tied)
