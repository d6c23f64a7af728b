"""Whether a table can have come from its mechanism.

Of rows that a mechanism has released the distribution of every attribute lies, but for chance, in
the image of the simplex under its channel: the shares that inversion gives are not negative. One
row adds c(y) to such a share, and given any true value x the mean of c is 1 or 0. So for t > 0

    Pr[Σ c(y) <= s] <= e^{ts} max_x (E_x e^{−tc})^n

whatever the true rows are (Markov's inequality for e^{−tΣc}; rows are independent given the true
ones). That is looked at for every category of every attribute, and every cell of every pair of
attributes under pattern laws. The p-value is the least of these bounds times their number: never
too small under the mechanism, whatever the truth and however few the rows.

It cannot see a table that *could* have been released: even shares, for instance, pass always.
"""

import math
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError, Notice
from deniable.estimate.source import Release
from deniable.laws.law import PatternLaw
from deniable.laws.matrix import MatrixChannel
from deniable.mechanism.mechanism import Mechanism

Floats = NDArray[np.float64]

REFUSED_BELOW = 1e-6
WARNED_BELOW = 1e-3

MOST_ROWS = 200_000
"""Rows that are looked at, of a table that has more."""

_MOST_PAIRS = 3_000
_WORK = 100_000_000
"""Rows times pairs."""

_LEAST_PHI = 1e-6
_GRID = np.logspace(-6, 4, 121)


@dataclass(frozen=True)
class Origin:
    """How far a table is from all that its mechanism can release.

    Args:
        p_value: that an honest table is as far off, at most.
        where: the attribute or pair that is farthest off.
        rows: how many rows were looked at.
    """

    p_value: float
    where: tuple[str, ...]
    rows: int

    def sentence(self) -> str:
        """Return what that means, in words."""
        return (
            f"the table is not what this mechanism releases: {' and '.join(self.where)} "
            f"{'has' if len(self.where) == 1 else 'have'} shares that no true table leads to "
            f"(p-value {self.p_value:.1e})"
        )


def check_origin(release: Release, *, anyway: bool) -> Origin | None:
    """Return the origin of a release's rows; None where nothing can be told.

    Args:
        release: rows and what is said to have randomized them.
        anyway: go on with a table that cannot have come from there.

    Raises:
        InputError: if the p-value is below 1e-6, unless ``anyway``.
    """
    origin = find_origin(release)
    if origin is not None and origin.p_value < REFUSED_BELOW and not anyway:
        raise InputError(
            f"{origin.sentence()}; give the table and the mechanism that belong together, or "
            "--anyway to go on all the same"
        )
    if origin is not None and origin.p_value < WARNED_BELOW:
        warnings.warn(f"it may be that {origin.sentence()}", Notice, stacklevel=2)
    return origin


def find_origin(release: Release) -> Origin | None:
    """Return the origin of a release's rows, or of what a file counts; None where nothing can be
    told: of rows with forms, of rows that are gone once they are read, and where no column fits.

    Args:
        release: rows and what is said to have randomized them. Of strata the one that is farthest
            off decides, and the p-value is multiplied by their number.
    """
    strata = release.strata
    by_stratum = [set(looked_at(mechanism)) for mechanism in strata.mechanisms.values()]
    names = [name for name in strata.schema.names if all(name in own for own in by_stratum)]
    if not names or not release.can_be_read_again:
        return None
    try:
        rows = release.first_rows(names, MOST_ROWS)
    except InputError:
        return None  # some column holds other values; what is asked for may be there
    origins = [
        origin_of(strata.mechanism_of(stratum), list(part.names), part.codes, part.counts)
        for stratum, part in rows.items()
        if stratum in strata.mechanisms
    ]
    found = [origin for origin in origins if origin is not None]
    if not found:
        return None
    worst = min(found, key=lambda origin: origin.p_value)
    p_value = min(1.0, worst.p_value * len(found))
    return Origin(p_value, worst.where, sum(origin.rows for origin in found))


def looked_at(mechanism: Mechanism) -> list[str]:
    """Return the attributes of which something can be told: those under pattern laws or response
    matrices that are not released as they are."""
    laws = [mechanism.block_of(i)[0].law for i in range(len(mechanism.schema.names))]
    return [
        name
        for name, law in zip(mechanism.schema.names, laws, strict=True)
        if not law.kept_as_it_is and isinstance(law, PatternLaw | MatrixChannel)
    ]


def origin_of(
    mechanism: Mechanism,
    names: list[str],
    codes: list[NDArray[Any]],
    weights: Floats | None = None,
) -> Origin | None:
    """Return the origin of some released rows.

    Args:
        mechanism: what is said to have released them.
        names: attributes under pattern laws or response matrices.
        codes: their released codes, one array of shape (n,) each.
        weights: how many rows each stands for, shape (n,); None for one each.

    >>> from deniable import Schema, design
    >>> mechanism = design(Schema.anonymous((2,)), epsilon=1).mechanism
    >>> origin_of(mechanism, ["a1"], [np.zeros(1000, dtype=int)]).p_value < 1e-6
    True
    """
    if not names or not len(codes[0]):
        return None
    n = len(codes[0]) if weights is None else round(weights.sum())
    if not n:
        return None
    found: list[tuple[float, tuple[str, ...]]] = []
    questions = 0
    pattern: list[int] = []
    for place, name in enumerate(names):
        position = mechanism.schema.position(name)
        block, own = mechanism.block_of(position)
        size = block.law.n_categories[own]
        n_outputs = block.law.n_outputs[own]
        counts = np.bincount(codes[place].astype(np.int64), weights, minlength=n_outputs)
        questions += size
        if isinstance(block.law, MatrixChannel):
            found.append((_matrix_bound(block.law, counts), (name,)))
            continue
        assert isinstance(block.law, PatternLaw)
        phi = float(block.law.eigenvalues((own,))[1])
        if abs(phi) < _LEAST_PHI:
            continue
        pattern.append(place)
        keep = (1 + (size - 1) * phi) / size
        change = (1 - keep) / (size - 1)
        scores = np.array([(1 - change) / phi, -change / phi])  # of u, and of all others
        truths = np.array([[keep, 1 - keep], [change, 1 - change]])
        least = float(((counts - n * change) / phi).min())
        found.append((_bound(scores, truths, least, n), (name,)))
    pairs = list(combinations(pattern, 2))[:_MOST_PAIRS]
    rows = min(len(codes[0]), max(10_000, _WORK // max(1, len(pairs))))
    part = None if weights is None else weights[:rows]
    for i, j in pairs:
        both = (codes[i][:rows], codes[j][:rows])
        bound, cells = _pair_bound(mechanism, (names[i], names[j]), both, part)
        questions += cells
        found.append((bound, (names[i], names[j])))
    if not found:
        return None
    least_log, where = min(found)
    return Origin(min(1.0, math.exp(min(0.0, least_log)) * questions), where, n)


def _matrix_bound(law: MatrixChannel, counts: NDArray[Any]) -> float:
    inverse, matrix = law.left_inverse(), law.matrix()
    totals = inverse @ counts
    worst = int(np.argmin(totals))
    return _bound(inverse[worst], matrix.T, float(totals[worst]), int(counts.sum()))


def _pair_bound(
    mechanism: Mechanism,
    names: tuple[str, str],
    codes: tuple[NDArray[Any], NDArray[Any]],
    weights: Floats | None,
) -> tuple[float, int]:
    """Return the log of the bound for the least cell of a pair, and how many cells there are."""
    (block, i), (other, j) = (mechanism.block_of(mechanism.schema.position(name)) for name in names)
    assert isinstance(block.law, PatternLaw)
    assert isinstance(other.law, PatternLaw)
    a, b = block.law.n_categories[i], other.law.n_categories[j]
    if block is other:
        phi = block.law.eigenvalues((i, j))
    else:
        phi = np.multiply.outer(block.law.eigenvalues((i,)), other.law.eigenvalues((j,)))
    if np.abs(phi).min() < _LEAST_PHI:
        return 0.0, 0
    # What a row adds to cell (u, v), by whether its values are u and v: each indicator less its
    # even share is divided by its φ, and their product by that of the pair.
    first, second = np.array([1 - 1 / a, -1 / a]), np.array([1 - 1 / b, -1 / b])
    scores = (
        1 / (a * b)
        + first[:, None] / (b * phi[1, 0])
        + second[None, :] / (a * phi[0, 1])
        + np.outer(first, second) / phi[1, 1]
    )
    cells = codes[0].astype(np.int64) * b + codes[1]
    table = np.bincount(cells, weights, minlength=a * b).reshape(a, b)
    n = round(float(table.sum()))
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    totals = (
        scores[0, 0] * table
        + scores[0, 1] * (rows - table)
        + scores[1, 0] * (columns - table)
        + scores[1, 1] * (n - rows - columns + table)
    )
    if totals.min() >= 0:
        return 0.0, a * b
    (first_kernels, first_axis), (second_kernels, second_axis) = _kernels(a), _kernels(b)
    patterns = first_axis @ phi @ second_axis.T  # probability of keeping and changing, shape (2, 2)
    truths = np.einsum("st,sup,tvq->uvpq", patterns, first_kernels, second_kernels).reshape(4, 4)
    return _bound(scores.ravel(), truths, float(totals.min()), n), a * b


@cache
def _kernels(m: int) -> tuple[Floats, Floats]:
    """Return the kernels of a kept and of a changed value, shape (2, 2, 2), from whether the truth
    is one of m values to whether the released value is; and what mixes them by a pair's axis."""
    changed = [[0.0, 1.0], [1 / (m - 1), 1 - 1 / (m - 1)]]
    return np.array([np.eye(2), changed]), np.linalg.inv(
        np.array([[1.0, 1.0], [1.0, -1 / (m - 1)]])
    )


def _bound(scores: Floats, truths: Floats, total: float, n: int) -> float:
    """Return the log of the bound on Pr[Σ c <= total].

    Args:
        scores: c of every released value, shape (m,).
        truths: their probabilities by true value, shape (a, m).
        total: of the scores.
        n: rows.
    """
    if total >= 0:
        return 0.0
    exponents = -_GRID[:, None] * scores[None, :]
    top = exponents.max(axis=1)
    with np.errstate(divide="ignore"):
        moments = np.log(np.exp(exponents - top[:, None]) @ np.maximum(truths, 0.0).T)
    worst = moments.max(axis=1) + top
    return float(min(0.0, (_GRID * total + n * worst).min()))
