"""Response matrices from the weights of extreme rows (`frontier`)."""

import numpy as np
import numpy.typing as npt
from scipy import optimize

from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import Groups, Limits, RowKinds, rows_of

Indices = npt.NDArray[np.intp]

_NEGLIGIBLE = 1e-9
"""Weights below this fraction are the zeros of an interior-point method."""

_DRAWN_ROWS = 10_000
"""Answers drawn for a mechanism in groups. With 5,000 the error was up to 0.5 % further above the
bound at 18 to 41 categories, and a matrix is as much smaller."""


def exact_mechanism(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray | None:
    """A matrix with few outputs that has the K and the cost of the solution; None if a category is
    in none of its rows."""
    if not (weights @ rows).all():
        return None
    total = rows.sum(axis=1)
    i, j = np.triu_indices(limits.n_categories)
    # Column a: the entries of q qᵀ/(1·q), which imply those of q, and the cost.
    conserved = np.vstack([rows[:, i].T * rows[:, j].T / total, np.ones(len(rows))])
    keep = np.flatnonzero(_heavy(rows, weights, 1e-3 * _NEGLIGIBLE))
    keep, weights = _reduce(conserved[:, keep], keep, weights[keep])
    large = _heavy(rows[keep], weights)
    rows, weights = rows[keep[large]], weights[large]
    return _matrix(limits, rows, _repair(limits, rows, weights))


def drawn_mechanism(
    limits: Limits, groups: Groups, kinds: RowKinds, weights: FloatArray
) -> FloatArray | None:
    """Return a matrix for the true shares, of about `_DRAWN_ROWS` rows that name categories of each
    group at random, with weights near those given and Σ w q = p; None if these sums are missed.

    The number of rows of a kind is proportional to its largest part of a group's total. For average
    privacy categories are named in proportion to their shares less the rows that name a whole
    group; with each row another of negligible weight is drawn evenly, so that rare categories are
    named.
    """
    generator = np.random.default_rng(0)  # a search for a matrix, not a randomization of data
    part = (weights[:, None] * kinds.sums / (weights @ kinds.sums)).max(axis=1)
    whole = (weights @ (kinds.sums == np.bincount(groups)))[groups]
    copies = np.where(part > _NEGLIGIBLE, np.ceil(_DRAWN_ROWS * part / part.sum()), 0.0)
    weights = (weights / np.maximum(copies, 1.0)).repeat(copies.astype(np.intp))
    named = _drawn(np.ones_like(limits.prior), groups, kinds.sums, copies, generator)
    if limits.epsilon is None:
        left = np.maximum(limits.prior - whole, _NEGLIGIBLE * limits.prior)
        likely = _drawn(left, groups, kinds.sums, copies, generator)
        named = np.concatenate([likely, named])
        weights = np.concatenate([weights, _NEGLIGIBLE * weights])
    # Rows as bytes, which sort like numbers of at least 0 if the first byte is the highest.
    texts = np.ascontiguousarray(named, dtype=">f8").view(f"V{8 * named.shape[1]}").ravel()
    _, first, place = np.unique(texts, return_index=True, return_inverse=True)
    rows = rows_of(limits, named[first])
    weights = np.asarray(np.bincount(place, weights), dtype=float)
    if not (weights @ rows).all():
        return None
    weights = _with_sums(limits, rows, weights)
    heavy = _heavy(rows, weights)
    rows = rows[heavy]
    weights = _repair(limits, rows, weights[heavy])
    off = np.abs(weights @ rows / limits.prior - 1.0).max()
    over = 0.0 if limits.success is None else float(weights.sum()) - limits.success
    return _matrix(limits, rows, weights) if max(off, over) < 1e-9 else None


def _drawn(
    shares: FloatArray,
    groups: Groups,
    sums: FloatArray,
    copies: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Return v of the given number of copies of each kind, naming categories of a group in
    proportion to their shares as far as possible: systematic samples, from orders that are drawn
    anew after about as many names as the group has categories.

    Source: Madow 1949.
    """
    kind = np.arange(len(copies)).repeat(copies.astype(np.intp))
    copy = np.arange(len(kind)) - (np.cumsum(copies) - copies).astype(np.intp)[kind]
    named = np.zeros((len(kind), len(groups)))
    for group in range(sums.shape[1]):
        members = np.flatnonzero(groups == group)
        size = len(members)
        count = sums[kind, group][:, None]
        lasts = np.rint(size / np.maximum(count[:, 0], 1.0)).astype(np.intp)
        turns = np.unique(kind * len(kind) + copy // lasts, return_inverse=True)[1]
        order = generator.random((turns.max() + 1, size)).argsort(axis=1)[turns]
        table = np.array([_inclusion(shares[members], k) for k in range(size + 1)])
        ends = np.cumsum(table[np.ceil(count).astype(np.intp), order], axis=1)
        ends[:, -1:] = np.ceil(count)
        start = ((copy % lasts + generator.random(len(kind))) / lasts)[:, None]
        hits = np.diff(np.floor(ends - start), prepend=-1.0, axis=1)
        # In rows with a fraction, one of the hits is in part.
        last = (hits * generator.random(hits.shape)).argmax(axis=1)[:, None]
        lacking = np.take_along_axis(hits, last, axis=1) - np.ceil(count) + count
        np.put_along_axis(hits, last, lacking, axis=1)
        named[np.arange(len(kind))[:, None], members[order]] = hits
    return named


def _inclusion(shares: FloatArray, count: int) -> FloatArray:
    """Return probabilities with a given sum, proportional to shares where these are not above 1."""
    wanted = np.zeros(len(shares))
    for _ in range(len(shares)):
        free = wanted < 1.0
        wanted[free] = shares[free] * (count - (~free).sum()) / shares[free].sum()
        if (wanted <= 1.0).all():
            break
        wanted = np.minimum(wanted, 1.0)
    return wanted


def _with_sums(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """The weights w e^{v·q/(1·q)} that have Σ w q = p, nearly: those where
    Σ w (1·q) e^{v·q/(1·q)} − p·v is least, of which that is the gradient."""
    root, mass = np.sqrt(limits.prior), weights * rows.sum(axis=1)
    scaled = rows / rows.sum(axis=1)[:, None] / root

    def moved(v: FloatArray) -> FloatArray:
        return np.asarray(mass * np.exp(np.minimum(scaled @ v, 50.0)))  # below infinity

    def value(v: FloatArray) -> float:
        return float(moved(v).sum() - root @ v)

    def slope(v: FloatArray) -> FloatArray:
        return np.asarray(moved(v) @ scaled - root)

    def curve(v: FloatArray) -> FloatArray:
        return np.asarray((scaled * moved(v)[:, None]).T @ scaled)

    start = np.zeros(len(root))
    found = optimize.minimize(
        value, start, jac=slope, hess=curve, method="trust-exact", tol=_NEGLIGIBLE
    )
    return np.asarray(weights * moved(found.x) / mass)


def _heavy(
    rows: FloatArray, weights: FloatArray, least: float = _NEGLIGIBLE
) -> npt.NDArray[np.bool_]:
    """Whether rows exceed this part of some category's total."""
    part = weights[:, None] * rows / (weights @ rows)
    return np.asarray(part.max(axis=1) > least)


def _matrix(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """M from weighted rows, broad answers last."""
    matrix = rows * weights[:, None] / limits.prior
    order = np.lexsort(rows.T[::-1])[::-1]
    order = order[np.argsort(-rows.sum(axis=1)[order], kind="stable")]
    return np.asarray((matrix / matrix.sum(axis=0))[order[::-1]])


def _reduce(
    conserved: FloatArray, keep: Indices, weights: FloatArray
) -> tuple[Indices, FloatArray]:
    """Carathéodory: set weights to zero, preserving `conserved @ weights`, until few remain."""
    most = len(conserved)
    weights = weights.copy()
    while len(active := np.flatnonzero(weights)) > most:
        # The smallest weights go first; any columns above `most` are dependent on the others.
        some = active[np.argsort(weights[active])][: 2 * most]
        count = len(some) - most
        moves = np.linalg.svd(conserved[:, some])[2][-count:].T
        weights[some] = _walk(weights[some], moves)
    return keep[active], weights[active]


def _walk(weights: FloatArray, moves: FloatArray) -> FloatArray:
    """Move along each column of `moves` until a weight is zero, which it then remains."""
    while moves.shape[1]:
        move = moves[:, 0] if moves[:, 0].max() > 0 else -moves[:, 0]
        falling = move > 1e-12
        ratio = np.divide(weights, move, out=np.full_like(weights, np.inf), where=falling)
        first = int(np.argmin(ratio))
        weights = np.maximum(weights - ratio[first] * move, 0.0)
        weights[first] = 0.0
        # Clear that place in the other moves, with the largest as the pivot: factors up to 1.
        pivot = int(np.argmax(np.abs(moves[first])))
        clear = moves[:, pivot] / moves[first, pivot]
        moves = np.delete(moves, pivot, axis=1)
        moves = moves - clear[:, None] * moves[first]
        moves[first] = 0.0
    return weights


def _repair(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Move the weights a little so that Σ w q = p and the cost hold to rounding."""
    equations, wanted = rows.T / limits.prior[:, None], np.ones(limits.n_categories)
    # Where A does not bind, the cost may already follow from the rows (all of them at δ).
    if limits.success is not None and weights.sum() > limits.success * (1.0 - 1e-2):
        equations = np.vstack([equations, np.ones(len(rows))])
        wanted = np.append(wanted, min(limits.success, weights.sum()))
    for _ in range(5):
        # The nearest solution in the relative change of the weights.
        change = np.linalg.lstsq(equations * weights, wanted - equations @ weights, rcond=None)[0]
        weights = np.maximum(weights * (1.0 + change), 0.0)
    return weights
