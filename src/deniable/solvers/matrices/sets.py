"""Mechanisms beyond the categories whose extreme rows can be listed: rows by search, then weights.

Categories are taken alike in groups first: of a row only how many of each group it names counts,
and K is that of all rows alike. Whether an extreme row helps is told by its excess (`certificate`):
a local search over such counts, adding one, taking one or exchanging two, finds rows of large
excess.
The weights of least error over the rows found so far come from a primal–dual interior-point method
on the weights themselves, whose Hessian is 2 (F G Fᵀ)∘(F X Fᵀ) for features F, G = H⁻¹ and
X = G E Eᵀ G (`frontier`); it has no more rank than K has entries, so that thousands of rows cost
little. `drawn` then names categories at random. What comes out is a mechanism with a known error;
how good it is, the certificate says.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import Limits, shape_of_rows, sum_bound
from deniable.solvers.matrices.groups import spread_out, within
from deniable.solvers.matrices.listed import Listed

Sets = npt.NDArray[np.bool_]
Dual = tuple[FloatArray, FloatArray]

_STARTS = 300
_DIVISIONS = 20
_AT_THE_EDGE = 4000
_LIGHT = 1e-7
_LEAST_NAMED = 20
_RARE, _OWN = 1e-3, 0.1
_MOST_ROWS = 900
_MOST_KEPT = 6000
_MOST_FLIPS = 80
_TO_BOUNDARY = 0.95
_MOST_STEPS = 60
# Weights nearer the least error have multipliers that prove less: they are further from the centre.
_TOLERANCE = 3e-6
_STALL = 2


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows of cost 1 with their weights.

    Attributes:
        limits: what they keep.
        rows: shape (m, n).
        weights: shape (m,).
        directions: Z of the dual solution, shape (n, n).
        multipliers: λ, shape (n,).
        budget: m.
        error: n·N·MSE at the prior.
    """

    limits: Limits
    rows: FloatArray
    weights: FloatArray
    directions: FloatArray
    multipliers: FloatArray
    budget: float
    error: float

    def excess(self, rows: FloatArray) -> FloatArray:
        """‖Zᵀq‖²/(1·q) − λ·q − m."""
        spread = ((rows @ self.directions) ** 2).sum(axis=1) / rows.sum(axis=1)
        return np.asarray(spread - rows @ self.multipliers - self.budget)


def mechanism(
    limits: Limits,
    listed: Listed,
    first: Dual,
    rounds: int,
    close: float,
    least: float = 0.0,
    more: FloatArray | None = None,
) -> tuple[Weighted | None, Dual]:
    """Return rows and weights of small error, and the Z and λ that prove most as far as rows are
    known.

    Args:
        limits: the prior and the required privacy, at equal shares within groups.
        listed: of these limits and groups.
        first: Z and λ, which say which rows to look for first.
        rounds: of searching for rows and weighing them, at most.
        close: stop once the error is so near what the best Z and λ prove, as a fraction of it.
        least: a lower bound on the error; near it, stop as well.
        more: rows to begin with.

    Returns:
        The rows, None if those found make no mechanism within the limits; and Z and λ.
    """
    generator = np.random.default_rng(0)  # a search for a matrix: nobody's data are drawn
    rows = _first(limits, generator)
    some = [] if more is None else [more]
    rows = _joined(listed, rows, *some, _priced(limits, listed, first, rows, generator)[0])
    best: Weighted | None = None
    centre, proven = first, 0.0
    tolerance, stalled = 1e-4, 0
    for step in range(rounds):
        found = weigh(limits, listed, rows, tolerance)
        if found is None:
            break
        stalled += 1
        if best is None or found.error < best.error * (1.0 - 0.3 * close):
            stalled = 0
        if best is None or found.error < best.error:
            best = found
        # Rows are looked for at the newest Z and λ, and halfway from those that prove most so far.
        here = found.directions, found.multipliers
        halfway = (centre[0] + here[0]) / 2.0, (centre[1] + here[1]) / 2.0
        known = rows[np.argsort(-found.weights, kind="stable")]
        new = []
        for dual in [here] if step == 0 else [halfway, here]:
            priced, largest = _priced(limits, listed, dual, known, generator)
            new.append(priced)
            value = _worth(limits, *dual, largest)
            if value > proven:
                stalled = 0 if value > max(least, proven) * (1.0 + close) else stalled
                centre, proven = dual, value
        if best.error <= max(least, proven) * (1.0 + close) or stalled >= _STALL:
            break
        tolerance = max(_TOLERANCE, 0.3 * tolerance)
        excess = found.excess(rows)
        heavy = found.weights > _LIGHT * found.weights.sum()
        kept = heavy | (excess > -0.02 * found.error)
        order = np.lexsort((-excess[kept], ~heavy[kept]))[:_MOST_KEPT]
        rows = _joined(listed, rows[kept][order], *new)
    return best, centre


def _worth(limits: Limits, Z: FloatArray, multipliers: FloatArray, excess: float) -> float:
    """What Z and λ prove if no row has a larger excess (`certificate`)."""
    p = limits.prior
    along = Z.T @ p
    bottom = float(multipliers @ p + max(0.0, excess) * limits.budget - along @ along)
    top = float(np.diag(Z) @ p - p @ along)
    return top * top / bottom if bottom > 0.0 else 0.0


def _priced(
    limits: Limits, listed: Listed, dual: Dual, known: FloatArray, generator: np.random.Generator
) -> tuple[FloatArray, float]:
    """Rows of large excess, listed and as far as a search finds them, and the largest."""
    some, excess = listed.largest(*dual, 0.0, 4 * _MOST_ROWS)
    some = _inside(limits, some[_best_and_others(excess, generator)])
    searched, values = _search(limits, listed, *dual, known, generator)
    largest = max(excess.max(initial=-np.inf), values.max())
    return np.concatenate([some, searched]), float(largest)


def _inside(limits: Limits, rows: FloatArray) -> FloatArray:
    """The same rows, moved by rounding so that ε is kept."""
    if limits.epsilon is None:
        return rows
    return _as_rows(limits, _members(limits, rows))


def _members(limits: Limits, rows: FloatArray) -> Sets:
    ratio = rows / limits.prior if limits.epsilon is not None else rows
    return np.asarray(ratio > 0.999 * ratio.max(axis=1, keepdims=True))


def _joined(listed: Listed, *some: FloatArray) -> FloatArray:
    """One row of each kind: in every group the categories named come first."""
    every = np.concatenate(some)
    for members in listed.divided:
        every[:, members] = -np.sort(-every[:, members], axis=1)
    _, first = np.unique(np.round(every, 12), axis=0, return_index=True)
    return np.asarray(every[np.sort(first)])


def _first(limits: Limits, generator: np.random.Generator) -> FloatArray:
    """Rows that some mechanism within the limits is made of, and enough others."""
    n = limits.n_categories
    least = shape_of_rows(limits)[0]
    if limits.epsilon is not None:
        size = max(1, min(n - 1, round(n / (1.0 + np.exp(limits.epsilon)))))
        sets = [np.eye(n, dtype=bool), ~np.eye(n, dtype=bool)]
        for k in {max(1, size - 1), size, min(n - 1, size + 1)}:
            ranks = generator.random((_MOST_ROWS, n)).argsort(axis=1).argsort(axis=1)
            sets.append(ranks < k)
        return _as_rows(limits, np.unique(np.concatenate(sets), axis=0))
    order = np.argsort(-limits.prior)
    above = np.zeros((n, n), dtype=bool)
    for k in range(n):
        above[k, order[: k + 1]] = True
    single = np.eye(n, dtype=bool)
    pairs = [single[[x, y]].any(axis=0) for x in range(n) for y in range(x)]
    chosen = generator.permutation(len(pairs))[:_MOST_ROWS]
    sets = [above, single, np.array(pairs)[chosen]]
    rows = _as_rows(limits, np.unique(_filled(np.concatenate(sets), least, n, generator), axis=0))
    if limits.most_posterior is None:
        return rows
    pieces = [_pieces(limits, generator) for _ in range(_DIVISIONS)]
    return np.concatenate([rows, *pieces, _at_the_edge(limits, generator)])


def _pieces(limits: Limits, generator: np.random.Generator) -> FloatArray:
    """Extreme rows that the prior is a mixture of, at a cost within the limits, if it is δ at most.

    p/A is in the polytope of the u with 0 ≤ u ≤ 1 and Σ u = 1/A. A vertex 1_S + ψ 1_x is taken off,
    at random but with all x that must be in it, until it is itself one. Of each, extreme rows are
    the corners 1_S, 1_S + φ 1_x and 1_S + 1_x that are allowed.
    """
    assert limits.success is not None
    assert limits.most_posterior is not None
    least, part = shape_of_rows(limits)
    left = limits.prior / min(limits.success, limits.most_posterior)
    total = left.sum()
    whole = int(total * (1.0 + 1e-9))
    rest = max(0.0, total - whole)
    scale = 1.0
    corners: list[FloatArray] = []
    while scale > 1e-9 and len(corners) < 8 * len(left):
        now = left / scale
        order = np.argsort(-np.where(now > 1.0 - 1e-9, 2.0 + now, now ** generator.random()))
        vertex = np.zeros(len(left))
        vertex[order[:whole]], vertex[order[whole : whole + 1]] = 1.0, rest
        allowed = [value for value in (0.0, 1.0) if whole + value >= least]
        for value in [*allowed, *[part] * (part > 0 and whole == least - 1)]:
            corner = (vertex == 1.0).astype(float)
            corner[order[whole : whole + 1]] = value
            corners.append(corner)
        # As far as left − t vertex stays above 0 and below scale − t.
        down = np.divide(left, vertex, out=np.full(len(left), np.inf), where=vertex > 0)
        up = np.divide(
            scale - left, 1.0 - vertex, out=np.full(len(left), np.inf), where=vertex < 1.0
        )
        step = max(1e-6 * scale, min(down.min(), up.min(), scale))
        left, scale = np.maximum(left - step * vertex, 0.0), scale - step
    return np.array(corners)


def _at_the_edge(limits: Limits, generator: np.random.Generator) -> FloatArray:
    """Extreme rows with largest posterior δ, at random, such that their mean is about p/δ.

    Systematic sampling: ⌊1/δ⌋ points at distance 1 on a line of categories in random order, each as
    long as it is to be likely; then one more category for φ.
    """
    assert limits.most_posterior is not None
    whole, part = sum_bound(limits.most_posterior)
    p = limits.prior
    wanted = np.minimum(1.0, p * (whole / (whole + part)) / limits.most_posterior)
    for _ in range(20):
        free = wanted < 1.0
        wanted[free] *= (whole - (~free).sum()) / wanted[free].sum()
        wanted = np.minimum(wanted, 1.0)
    rows = np.zeros((_AT_THE_EDGE, len(p)))
    for row in rows:
        order = generator.permutation(len(p))
        ends = np.cumsum(wanted[order]) * (whole / wanted.sum())
        places = np.searchsorted(ends, generator.random() + np.arange(whole), side="right")
        row[order[np.minimum(places, len(p) - 1)]] = 1.0
        left = np.where(row > 0, 0.0, p)
        if part > 0.0 and left.any():
            row[generator.choice(len(p), p=left / left.sum())] = part
    return np.asarray(rows[rows.sum(axis=1) >= (whole + part) * (1.0 - 1e-9)])


def _filled(sets: Sets, least: int, most: int, generator: np.random.Generator) -> Sets:
    """Add or remove random categories until the sizes are allowed."""
    sets = sets.copy()
    for members in sets:
        while (size := int(members.sum())) < least or size > most:
            members[generator.choice(np.flatnonzero(members == (size > most)))] ^= True
    return sets


def _as_rows(limits: Limits, sets: Sets) -> FloatArray:
    if limits.epsilon is None:
        return sets.astype(float)
    low = np.exp(-limits.epsilon) * (1.0 + 16.0 * np.finfo(float).eps)  # so that ε is kept
    rows = np.where(sets, 1.0, low) * limits.prior
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _search(
    limits: Limits,
    listed: Listed,
    Z: FloatArray,
    multipliers: FloatArray,
    known: FloatArray,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Rows passed by steepest ascents of the excess, those of largest excess first, and what it is.

    Times 1·q the excess is qᵀPq (`most_excess`); the budget's multiplier is the same for every row.
    A row is how many of each group it names, and the group of which it names one in part, or the
    number of groups. Sets change by a category more or less; every row by exchanging one; rows with
    a part by taking that of another, of one outside or of one named, which is exchanged for it.
    """
    n_groups, local = len(listed.count), limits.epsilon is not None
    least, part = shape_of_rows(limits)
    most = limits.n_categories - local
    between, own, each = _of_groups(listed, Z, multipliers)
    low = np.exp(-limits.epsilon) if limits.epsilon is not None else 0.0
    scale = limits.prior[listed.first] if local else np.ones(n_groups)
    base, step = low * scale, (1.0 - low) * scale
    power = 2 if local else 1
    one = np.eye(n_groups, dtype=np.intp)
    unit, rest = np.vstack([one, 0 * one[:1]]), 1.0 - part
    pairs = one - one[:, None]  # entry (g, h): g less, h more
    changes = np.vstack([one, -one, pairs.reshape(-1, n_groups), 0 * one, -one])
    of_part = len(changes) - 2 * n_groups
    apart = np.vstack([own[:, None] + own - 2.0 * between, own])
    on = np.arange(n_groups)
    state = _starts(limits, listed, known, generator)
    seen, values = [], []
    for _ in range(_MOST_FLIPS):
        count, at = state[:, :-1], state[:, -1]
        units, whole = unit[at], (at == n_groups)[:, None]
        sums = listed.count * base + count * step + part * units
        image = sums @ between
        inside, outside = image + each * (base + step), image + each * base
        squares = (listed.count - count) * base**2 + count * (base + step) ** 2 + part**2 * units
        form, total = (sums * image + each * squares).sum(axis=1), sums.sum(axis=1)[:, None]
        now = form / total[:, 0] ** power
        up = form[:, None] + 2.0 * step * outside + step**2 * own
        down = form[:, None] - 2.0 * step * inside + step**2 * own
        joins, leaves = count + units < listed.count, count > 0
        size = count.sum(axis=1)[:, None]
        more = np.where(joins & whole & (size < most), up / (total + step) ** power, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            fewer = down / (total - step) ** power
        fewer = np.where(leaves & whole & (size > least), fewer, -np.inf)
        both = down[:, :, None] + up[:, None, :] - form[:, None, None]
        both -= 2.0 * step[:, None] * step * between
        both /= (total[:, :, None] - step[:, None] + step) ** power
        both = np.where(leaves[:, :, None] & joins[:, None, :], both, -np.inf)
        both[:, on, on] = -np.inf
        moves = [more, fewer, both.reshape(len(count), -1)]
        if part > 0.0:
            here = (units * (image + part * each)).sum(axis=1)[:, None]
            other = form[:, None] + 2.0 * part * (image - here) + part**2 * apart[at]
            swapped = form[:, None] + 2.0 * rest * (here - inside) + rest**2 * apart[at]
            elsewhere = ~whole & (units == 0)
            moves.append(np.where(joins & elsewhere, other / total, -np.inf))
            moves.append(np.where(leaves & elsewhere, swapped / total, -np.inf))
        seen.append(state)
        values.append(now)
        gains = np.concatenate(moves, axis=1)
        rises = gains.max(axis=1) > now + 1e-12 * np.abs(now)
        if not rises.any():
            break
        best, at = gains[rises].argmax(axis=1), at[rises]
        count = count[rises] + changes[best] + unit[at] * (best >= of_part + n_groups)[:, None]
        at = np.where(best < of_part, at, (best - of_part) % n_groups)
        state = np.unique(np.column_stack([count, at]), axis=0)
    every, first = np.unique(np.concatenate(seen), axis=0, return_index=True)
    value = np.concatenate(values)[first]
    kinds = [np.flatnonzero(some) for some in (every[:, -1] == n_groups, every[:, -1] < n_groups)]
    chosen = np.concatenate([some[_best_and_others(value[some], generator)] for some in kinds])
    every, value = every[chosen], value[chosen]
    found = _first_of_groups(listed, every[:, :-1])
    if local:
        return _as_rows(limits, found > 0.0), value
    for number, members in enumerate(listed.divided):
        in_part = np.flatnonzero(every[:, -1] == number)
        found[in_part, members[every[in_part, number]]] = part
    return found, value


def _starts(
    limits: Limits, listed: Listed, known: FloatArray, generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Rows to search from, as `_search` has them: some that are known, and some at random."""
    n, n_groups = limits.n_categories, len(listed.count)
    least, part = shape_of_rows(limits)
    most = n if limits.epsilon is None else n - 1
    member = np.equal.outer(listed.group, np.arange(n_groups)).astype(np.intp)
    coins = generator.random((_STARTS, n)) < generator.random((_STARTS, 1))
    named = np.concatenate([_members(limits, known[:_STARTS]), coins])
    count = _filled(named, least, most, generator) @ member
    state = np.column_stack([count, np.full(len(count), n_groups)])
    if part > 0.0:
        some = known[((known > 0.0) & (known < 1.0)).any(axis=1)][:_STARTS]
        parts = np.where(some < 1.0, some, 0.0).argmax(axis=1)
        # Drawn with and without regard to the shares.
        lean = limits.prior ** generator.random((_STARTS, 1))
        ranks = (np.log(generator.random((_STARTS, n))) / lean).argsort(axis=1)[:, ::-1]
        drawn = np.zeros((_STARTS, n), dtype=bool)
        np.put_along_axis(drawn, ranks[:, : least - 1], True, axis=1)
        count = np.concatenate([some == 1.0, drawn]) @ member
        at = listed.group[np.concatenate([parts, ranks[:, least - 1]])]
        state = np.concatenate([state, np.column_stack([count, at])])
    return np.unique(state, axis=0)


def _of_groups(
    listed: Listed, Z: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P between two categories of each two groups, P(x, x), and by how much that is more than
    between two of the same group."""
    P = Z @ Z.T - (multipliers[:, None] + multipliers) / 2.0
    first, second = listed.first, np.array([members[-1] for members in listed.divided])
    between = P[np.ix_(first, first)]
    own = np.diag(between).copy()
    np.fill_diagonal(between, np.where(first == second, 0.0, P[first, second]))
    return between, own, own - np.diag(between)


def _best_and_others(value: FloatArray, generator: np.random.Generator) -> npt.NDArray[np.intp]:
    """Those of largest value, in order, and as many of the next at random."""
    order = np.argsort(-value, kind="stable")
    half = _MOST_ROWS // 2
    return np.concatenate([order[:half], generator.permutation(order[half : 8 * half])[:half]])


def _first_of_groups(listed: Listed, count: npt.NDArray[np.intp]) -> FloatArray:
    """1 for so many of each group, shape (number of rows, n)."""
    rows = np.zeros((len(count), len(listed.group)))
    for number, members in enumerate(listed.divided):
        rows[:, members] = np.arange(len(members)) < count[:, number][:, None]
    return rows


def drawn(
    limits: Limits, listed: Listed, found: Weighted, number: int
) -> tuple[FloatArray, FloatArray]:
    """About so many rows at the true shares, and weights: those found, categories at random.

    Which categories of a group a row names is drawn, for each of as many copies as it has weight.
    For average privacy those of larger shares are named more often, and all in some twenty rows.
    Under ε-LDP the copies of a row name all of a group in turn, in random orders, and there are no
    more copies than choices.
    """
    generator = np.random.default_rng(0)
    heavy = found.weights > 1e-2 / number * found.weights.sum()
    heavy[np.argmax(found.weights[:, None] * found.rows, axis=0)] = True  # of rare categories
    weights, ratio = found.weights[heavy], found.rows[heavy]
    portion, choices = weights / weights.sum(), np.full(len(ratio), np.inf)
    if limits.epsilon is not None:
        ratio = _members(found.limits, ratio).astype(float)
        choices = _choices(listed, ratio)
    else:
        # More copies of rows that name rare categories, or some would be in hardly any.
        member = np.equal.outer(listed.group, np.arange(len(listed.count)))
        named = (ratio > 0.0) @ member.astype(float)
        lacking = _LEAST_NAMED * listed.count / np.maximum(number * portion @ named, 1e-300)
        portion = portion * np.where(named > 0.0, lacking, 0.0).max(axis=1).clip(1.0)
    copies = _copies(portion, choices, number)
    weights = (weights / copies).repeat(copies)
    kind = np.arange(len(copies)).repeat(copies)
    copy = np.arange(len(kind)) - (np.cumsum(copies) - copies)[kind]
    ratio = ratio[kind]
    for members in listed.divided:
        some, size = ratio[:, members], len(members)
        if limits.epsilon is None:
            # The first with the largest keys: the likelier, the larger, so that sums come out.
            keys = np.log(generator.random(some.shape)) / limits.prior[members]
            ranks = (-keys).argsort(axis=1).argsort(axis=1)
        else:
            turn, at = np.divmod(copy * some.sum(axis=1).astype(np.intp), size)
            order = np.unique(np.column_stack([kind, turn]), axis=0, return_inverse=True)[1]
            orders = generator.random((order.max() + 1, size)).argsort(axis=1)
            ranks = (orders[order] - at[:, None]) % size
        ratio[:, members] = np.take_along_axis(some, ranks, axis=1)
    for x in np.flatnonzero(ratio.max(axis=0) == 0.0):
        # In a copy of a row let it take the place of another of its group.
        group = listed.divided[listed.group[x]]
        row = int(np.argmax(weights * (ratio[:, group].max(axis=1) > 0.0)))
        copy = ratio[row].copy()
        other = group[np.argmax(copy[group])]
        copy[[x, other]] = copy[[other, x]]
        weights[row] /= 2.0
        ratio, weights = np.vstack([ratio, copy]), np.append(weights, weights[row])
    if limits.epsilon is None:
        # Rows of rare categories are few: what they lack to their shares others have to make up.
        rare = np.flatnonzero(limits.prior < _RARE / len(limits.prior))
        ratio = np.vstack([ratio, _with_largest(limits, rare)])
        weights = np.append(weights, _OWN * limits.prior[rare])
    ratio, kind = np.unique(ratio, axis=0, return_inverse=True)
    rows = ratio if limits.epsilon is None else _as_rows(limits, ratio > 0.0)
    return np.asarray(rows), np.asarray(np.bincount(kind, weights), dtype=float)


def _with_largest(limits: Limits, categories: npt.NDArray[np.intp]) -> FloatArray:
    """A set for each category that has no others but the largest, as few as are allowed."""
    largest = np.argsort(-limits.prior, kind="stable")[: shape_of_rows(limits)[0] - 1]
    rows = np.zeros((len(categories), len(limits.prior)))
    rows[:, largest] = 1.0
    rows[np.arange(len(categories)), categories] = 1.0
    return rows


def _choices(listed: Listed, ratio: FloatArray) -> FloatArray:
    """How many sets name as many categories of each group, for each row of 0 and 1."""
    member = np.equal.outer(listed.group, np.arange(len(listed.count))).astype(float)
    with np.errstate(over="ignore"):  # more than can be counted: infinitely many
        return np.asarray(special.binom(listed.count, ratio @ member).prod(axis=1))


def _copies(weights: FloatArray, choices: FloatArray, number: int) -> npt.NDArray[np.intp]:
    """About so many in all, in proportion to the weights as far as there are choices."""
    each = float(number)
    for _ in range(20):
        all_ = choices <= each * weights
        if all_.all():
            break
        each = max(each, (number - choices[all_].sum()) / weights[~all_].sum())
    return np.ceil(np.minimum(each * weights, choices * (1.0 - 1e-9))).astype(np.intp)


def weigh(limits: Limits, listed: Listed, rows: FloatArray, tolerance: float) -> Weighted | None:
    """The weights of least error; None if no mechanism within the limits is made of these rows."""
    try:
        program = _Weights(limits, listed, rows)
    except np.linalg.LinAlgError:
        return None
    best: tuple[float, Weighted] | None = None
    for _ in range(_MOST_STEPS):
        before = program.read()
        try:
            gap = program.step(tolerance)
        except np.linalg.LinAlgError:
            break
        # `gap` and `infeasible` are those of the weights before the step.
        if program.infeasible < 1e-6 and (best is None or gap < best[0]):
            best = gap, before
        elif best is not None and best[0] < 1e-4:
            break  # rounding: from here on it gets worse
        if gap < tolerance and program.infeasible < 1e-9:
            break
    return None if best is None else best[1]


class _Weights:
    """Primal–dual interior-point steps on w ≥ 0 and the rest of the budget, s = A − Σ w ≥ 0."""

    def __init__(self, limits: Limits, listed: Listed, rows: FloatArray) -> None:
        p = limits.prior
        self.limits, self.listed, self.rows = limits, listed, rows
        count = listed.count
        share = p[listed.first]
        self.error, self.turn = within(count, share)
        self.square = self.error @ self.error.T
        member = np.equal.outer(listed.group, np.arange(len(count))).astype(float)
        sums, total = rows @ member, rows.sum(axis=1)
        self.features = (sums / np.sqrt(count)) @ self.turn / np.sqrt(total)[:, None]
        # K of all rows alike is this beside κ = K(x, x) − K(x, x'), n_g − 1 times (`relaxed`).
        several = count > 1
        self.several = np.flatnonzero(several)
        kappa = (rows**2 @ member - sums**2 / count)[:, several] / (count - 1.0)[several]
        self.kappa = np.maximum(kappa, 0.0) / total[:, None]
        self.apart = ((count - 1.0) * share**2)[several]
        w = np.full(len(rows), 1.0 / len(rows))
        portions = sums / total[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(50):  # towards Σ w q = p, by proportions
                w *= np.exp(portions @ np.log(count * share / (sums.T @ w)))
        if not np.isfinite(w).all():
            raise np.linalg.LinAlgError("some category is in no row")
        self.budget = limits.success
        w = np.append(
            w, [] if self.budget is None else max(0.1 * self.budget, self.budget - w.sum())
        )
        self.w = w  # the slack of the budget comes last
        self.sums = (sums / (count * share)).T
        self.right = np.ones(len(count))
        if self.budget is not None:
            self.sums = np.concatenate(
                [np.pad(self.sums, ((0, 0), (0, 1))), np.ones((1, len(w)))], axis=0
            )
            self.right = np.append(self.right, self.budget)
        self._evaluate()
        self.equal = np.append(
            0.5 * self.value * count * share, [] if self.budget is None else 0.5 * self.value
        )
        self.z = np.maximum(self.equal @ self.sums - self.slope, self.value)
        self.infeasible = np.inf

    def _evaluate(self) -> None:
        m = len(self.rows)
        matrix = (self.features * self.w[:m, None]).T @ self.features
        self.inverse = linalg.cho_solve(linalg.cho_factor(matrix), np.eye(len(matrix)))
        self.second = self.inverse @ self.square @ self.inverse
        self.value = float(np.trace(self.square @ self.inverse))
        inner = self.w[:m] @ self.kappa
        if not (inner > 0.0).all():
            raise np.linalg.LinAlgError("two categories are always named together")
        self.inner = inner
        self.value += float((self.apart / inner).sum())
        slope = ((self.features @ self.second) * self.features).sum(axis=1)
        slope += self.kappa @ (self.apart / inner**2)
        self.slope = np.append(slope, np.zeros(len(self.w) - m))

    def step(self, tolerance: float) -> float:
        """Go one step; return how large the complementary products were, over the error."""
        m, w, z = len(self.rows), self.w, self.z
        dual = self.equal @ self.sums - self.slope - z
        primal = self.right - self.sums @ w
        self.infeasible = float(np.abs(primal).max())
        gap = float(w @ z)
        if gap < tolerance * self.value and self.infeasible < 1e-9:
            return gap / self.value
        factor, scale, lifted = self._factor()
        across = (self.sums * (w / z)) @ self.sums.T

        def direction(target: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
            left, below = target / w - z - dual, primal
            move, change = np.zeros(len(w)), np.zeros(len(primal))
            for _ in range(3):  # iterative refinement
                ahead = w / z * left
                right = np.append(ahead[:m] @ lifted, self.sums @ ahead - below)
                solved = scale * linalg.cho_solve(factor, scale * right, check_finite=False)
                curve, change = solved[: lifted.shape[1]], change + solved[lifted.shape[1] :]
                step = left - solved[lifted.shape[1] :] @ self.sums
                step[:m] -= lifted @ curve
                move = move + w / z * step
                left = target / w - z - dual - z / w * move - change @ self.sums
                left[:m] -= lifted @ (move[:m] @ lifted)
                below = primal - self.sums @ move
            move = move + w / z * (np.linalg.lstsq(across, below, rcond=1e-12)[0] @ self.sums)
            return move, change, target / w - z - z / w * move

        dw, _, dz = direction(0.0)
        reach_w, reach_z = _reach(w, dw), _reach(z, dz)
        share = float((w + reach_w * dw) @ (z + reach_z * dz)) / gap
        target = max(min(0.8, max(1e-3, share**2)) * gap, 0.2 * tolerance * self.value) / len(w)
        corrected = target - np.clip(reach_w * reach_z * dw * dz, -target, 3.0 * target)
        dw, change, dz = direction(corrected)
        self.w = w + _TO_BOUNDARY * _reach(w, dw) * dw
        reach_z = _TO_BOUNDARY * _reach(z, dz)
        self.z = z + reach_z * dz
        self.equal = self.equal + reach_z * change
        self._evaluate()
        return gap / self.value

    def _factor(self) -> tuple[tuple[FloatArray, bool], FloatArray, FloatArray]:
        """What one step solves with: a Cholesky factor, its scale, and Φ.

        In coordinates where G is the identity and X diagonal, 2 (F G Fᵀ)∘(F X Fᵀ) is Φ Φᵀ with a
        column for each pair of coordinates. The steps are then solved in as many unknowns as K has
        (Woodbury), however many the rows are: the matrix is Bᵀ W Z⁻¹ B, B = (Φ, sums), plus the
        identity in the places of Φ.
        """
        lower = np.linalg.cholesky(self.inverse)
        values, vectors = np.linalg.eigh(lower.T @ self.square @ lower)
        turned = self.features @ (lower @ vectors)
        i, j = np.triu_indices(turned.shape[1])
        twice = np.where(i == j, 1.0, 2.0) * (values[i] + values[j])
        lifted = turned[:, i] * turned[:, j] * np.sqrt(twice)
        lifted = np.hstack([lifted, self.kappa * np.sqrt(2.0 * self.apart / self.inner**3)])
        m, n_lifted = lifted.shape
        both = np.zeros((len(self.w), n_lifted + len(self.sums)))
        both[:m, :n_lifted], both[:, n_lifted:] = lifted, self.sums.T
        both *= np.sqrt(self.w / self.z)[:, None]
        system = linalg.blas.dsyrk(1.0, both.T, lower=1)
        on = np.arange(n_lifted)
        system[on, on] += 1.0
        scale = 1.0 / np.sqrt(np.diag(system))
        system *= scale[:, None]
        system *= scale
        system[np.diag_indices(len(system))] += 1e-13
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return factor, scale, lifted

    def read(self) -> Weighted:
        listed = self.listed
        inner = np.zeros(len(listed.count))
        inner[self.several] = np.sqrt(self.apart / (listed.count - 1.0)[self.several]) / self.inner
        between = self.turn @ self.inverse @ self.error
        directions = spread_out(between, inner, listed.count, listed.group)
        n_groups = len(listed.count)
        share = self.limits.prior[listed.first]
        multipliers = (self.equal[:n_groups] / (listed.count * share))[listed.group]
        budget = 0.0 if self.budget is None else float(self.equal[n_groups])
        weights = self.w[: len(self.rows)]
        return Weighted(
            self.limits, self.rows, weights, directions, multipliers, budget, self.value
        )


def _reach(value: FloatArray, change: FloatArray) -> float:
    ratio = np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0)
    return float(min(1.0, ratio.min()))
