"""Bistochastic matrices as mixtures of permutations.

Source: Ruiz, "λ-randomization", Theorem 3 (Birkhoff and von Neumann) and Corollary 1.

The proofs are in docs/proofs/lambda.md, Theorem 7.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.errors import InputError


@dataclass(frozen=True)
class Decomposition:
    """A mixture of permutations, in integers.

    Attributes:
        total: sum of the weights, and of every row and column of the matrix.
        weights: of the permutations, above 0; shape (J,).
        permutations: ``permutations[j][x]`` is the j-th answer to input x; shape (J, r). The
            identity, if it occurs, comes first, and only once.
    """

    total: int
    weights: tuple[int, ...]
    permutations: tuple[tuple[int, ...], ...]

    @property
    def identity_weight(self) -> int:
        """Weight of "answer with the truth": the smallest diagonal entry (Corollary 1)."""
        first = self.permutations[0]
        return self.weights[0] if first == tuple(range(len(first))) else 0

    def rebuild(self) -> list[list[int]]:
        """Return the matrix, shape (r, r)."""
        n = len(self.permutations[0])
        matrix = [[0] * n for _ in range(n)]
        for weight, permutation in zip(self.weights, self.permutations, strict=True):
            for x, y in enumerate(permutation):
                matrix[y][x] += weight
        return matrix


def decompose(weights: Sequence[Sequence[int]]) -> Decomposition:
    """Write a bistochastic matrix as a mixture of permutations with the largest weight of the
    identity, min_i W_ii, and at most (r − 1)² + 1 permutations in all.

    ``weights``: integers not below 0, ``weights[y][x]`` for output y and input x, all rows and
    columns with the same sum; shape (r, r).

    Source: Ruiz, "λ-randomization", Theorem 3 and Corollary 1.

    >>> mixture = decompose([[6, 1, 1], [1, 6, 1], [1, 1, 6]])
    >>> mixture.weights, mixture.identity_weight
    ((6, 1, 1), 6)
    >>> mixture.permutations
    ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    """
    n = len(weights)
    if n == 0 or any(len(row) != n for row in weights):
        raise InputError("only a square matrix is a mixture of permutations")
    left = [[int(entry) for entry in row] for row in weights]
    if min(map(min, left)) < 0:
        raise InputError("a mixture of permutations has no negative entries")
    total = sum(left[0])
    for name, lines in (("row", left), ("column", list(zip(*left, strict=True)))):
        for place, line in enumerate(lines, start=1):
            if sum(line) != total:
                raise InputError(
                    f"{name} {place} and row 1 of the matrix have different sums; make it "
                    "bistochastic in integers first"
                )
    if total == 0:
        raise InputError("a matrix of zeros is no mixture of permutations")
    terms: list[tuple[int, tuple[int, ...]]] = []
    answers = list(range(n))
    rest = total
    while rest:
        weight = min(left[y][x] for x, y in enumerate(answers))
        if weight:
            terms.append((weight, tuple(answers)))
            rest -= weight
            for x, y in enumerate(answers):
                left[y][x] -= weight
        if rest:
            _repair(answers, left)
    return Decomposition(total, tuple(w for w, _ in terms), tuple(p for _, p in terms))


def _repair(answers: list[int], left: list[list[int]]) -> None:
    """Turn a permutation into one within the support of ``left``, changing as little as needed."""
    n = len(answers)
    input_of = [-1] * n
    unassigned = []
    for x, y in enumerate(answers):
        if left[y][x]:
            input_of[y] = x
        else:
            unassigned.append(x)
    for x in unassigned:
        _augment(x, answers, input_of, left)


def _augment(start: int, answers: list[int], asked_by: list[int], left: list[list[int]]) -> None:
    # Breadth first over alternating paths from an input without an answer to a free answer.
    reached_from: dict[int, int] = {}
    queue = deque([start])
    while True:
        x = queue.popleft()
        room = [row[x] for row in left]
        for y in sorted(range(len(answers)), key=room.__getitem__, reverse=True):
            if not room[y]:
                break
            if y in reached_from:
                continue
            reached_from[y] = x
            if asked_by[y] >= 0:
                queue.append(asked_by[y])
                continue
            while True:
                asker = reached_from[y]
                previous = answers[asker]
                answers[asker], asked_by[y] = y, asker
                if asker == start:
                    return
                y = previous
