"""Numbers of synthetic rows, drawn around the points that the model draws.

A point z is the number x plus the rounding's error, which has mean 0 given all else: means and
covariances of z with other columns are those of x, and its variance is larger by E r(x), about h²/6
for a distance h of the points (docs/proofs/numbers.md, section 2). With ẑ the least-squares fit of
z to all other columns of a copy, its residual e is uncorrelated with them, and

    x = ẑ + a (e + u),    a² (Var e + Var u) = Var e − h²/6,

with u uniform within half a step of the point (0 at the ends of the range), has the same mean and
covariances and the variance of numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import BitSource
from deniable.schema import Attribute
from deniable.synthesis.drawing import uniforms


def drawn_numbers(
    codes: NDArray[Any], attributes: Sequence[Attribute], bits: BitSource
) -> Iterator[tuple[Attribute, NDArray[np.float64]]]:
    """Yield the attributes with a range and their numbers, NaN for missing values, shape (rows,).

    ``codes``: of all attributes of the copy, shape (attributes, rows).
    """
    for place, attribute in enumerate(attributes):
        if attribute.number_grid is not None:
            yield attribute, _around_points(codes, attributes, place, bits)


def _around_points(
    codes: NDArray[Any], attributes: Sequence[Attribute], place: int, bits: BitSource
) -> NDArray[np.float64]:
    from scipy.sparse import csr_matrix, hstack  # only here: loading it takes a while

    grid = attributes[place].number_grid
    assert grid is not None
    code = codes[place].astype(np.int64)
    chosen = np.flatnonzero(code < grid.n_points)  # the missing category is the last
    code = code[chosen]
    rows, ones = np.arange(len(chosen)), np.ones(len(chosen))
    indicators = [
        csr_matrix((ones, (rows, codes[i][chosen])), (len(chosen), other.n_categories))
        for i, other in enumerate(attributes)
        if i != place
    ]
    design = hstack([csr_matrix(ones[:, None]), *indicators]).tocsr()
    z, step = np.array(grid.points)[code], grid.points[1] - grid.points[0]
    gram = (design.T @ design).toarray()
    fitted = design @ np.linalg.lstsq(gram, design.T @ z, rcond=1e-10)[0]
    inside = (code > 0) & (code < grid.n_points - 1)
    around = z - fitted + inside * step * (uniforms(len(chosen), bits) - 0.5)
    left = max(float(np.var(z - fitted)) - step**2 / 6, 0.0)
    scale = np.sqrt(left / max(float(np.var(around)), 1e-300))
    found = np.full(codes.shape[1], np.nan)
    found[chosen] = np.clip(fitted + scale * around, grid.low, grid.high)
    return found
