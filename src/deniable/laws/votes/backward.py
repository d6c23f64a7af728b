"""Expected gates: the mean of the gate over the attributes that are still to be drawn.

With the attributes of a gated sum in some order, let G_k(s) = g(s) e^{−E/2} and

    G_i(s) = (1 − r_i) G_{i+1}(s) + r_i ((1 − θ_i) G_{i+1}(s + n_i) + θ_i G_{i+1}(s + n_i + 1)),

the expected gate under the uniform law μ once the first i attributes have brought the sum to s.
All numbers are positive and lie in [e^{−E/2}, e^{E/2}], so nothing cancels, underflows or has to be
dropped: this serves wherever *every* pattern counts, however improbable (drawing, and the level of
a set of columns), while `sums` serves expectations that need relative precision far out in a tail.

States from which g can only be 1, or only e^E, have one common entry at either end.

The proofs are in docs/proofs/optimal.md, section 6, and docs/proofs/clipped.md, section 5.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray

if TYPE_CHECKING:
    from deniable.laws.votes.gated import GatedSum

EVERY = slice(None)

_PIECE = 1 << 14
"""States worked on at a time: what is needed of them then stays in the second-level cache."""


class Backward:
    """G_0, …, G_k of a gated sum in a given order of its attributes.

    Args:
        law: the gated sum; its retention plays no part here.
        order: positions of all attributes, shape (k,); None for the order they have.
        least: what ln g is at least, in nats: a gate whose bottom is lifted.
    """

    def __init__(
        self, law: "GatedSum", order: Sequence[int] | None = None, least: float = 0.0
    ) -> None:
        self.law, self._least = law, least
        places = np.arange(law.n_attributes) if order is None else np.asarray(order, dtype=np.intp)
        self.n_categories: list[int] = law.counts[places].tolist()
        self.weights: list[int] = law.weights[places].tolist()
        self.dither: list[float] = law.dither[places].tolist()
        most = law.weights[places] + (law.dither[places] > 0)
        self._most = [0, *np.cumsum(most).tolist()]
        self._bottom, self._top = law.rise

    def bounds(self, i: int) -> tuple[int, int]:
        """Return the first and last state that are told apart before attribute i."""
        reach = self._most[-1] - self._most[i]
        high = min(self._most[i], self._top)
        return min(max(0, self._bottom - reach), high), high

    def reached(self, i: int, first: int, low: int, high: int) -> slice:
        """Return the states before attribute i of sums that were from low to high before `first`,
        at least one, counted from the first that is told apart."""
        least, most = self.bounds(i)
        high += self._most[i] - self._most[first]
        begin = min(max(low, least), most) - least
        return slice(begin, max(min(high, most) - least, begin) + 1)

    def last(self) -> FloatArray:
        """Return G_k on its states."""
        low, high = self.bounds(self.law.n_attributes)
        exponent = self.law.gate_exponent(np.arange(low, high + 1))
        table: FloatArray = np.exp(exponent - 0.5 * self.law.height)
        return np.maximum(table, self.bottom) if self._least else table

    @property
    def bottom(self) -> float:
        """What a lifted gate is at least."""
        return math.exp(self._least - 0.5 * self.law.height)

    def parts(
        self,
        i: int,
        back: FloatArray,
        states: slice = EVERY,
        later: int | None = None,
        begins: int = 0,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return G_{i+1} after changing attribute i, and (1 − θ) G_{i+1} and θ G_{i+1} after
        keeping it without and with dither, on some states of i.

        Args:
            i: which attribute.
            back: G_{i+1}, or G_later on its states; the result is the same to the last bit.
            states: one after the other, counted from the first that is told apart before i.
            later: above i.
            begins: the state that `back` starts at; it holds all that these states lead to.
        """
        low, high = self.bounds(i)
        begin, end, _ = states.indices(high - low + 1)
        shifted = low - self.bounds(i + 1)[0]
        n, theta = self.weights[i], self.dither[i]
        if later is not None and later > i + 1:
            low, high = self.bounds(i + 1)
            first = min(max(begin + shifted, 0), high - low)
            last = min(end + shifted + n + 1, high - low + 1)
            reached = slice(first, max(last, first + 1))
            back = self.joined(i + 1, *self.parts(i + 1, back, reached, later, begins))
            begins = first
        shifted -= begins

        def at(gain: int) -> FloatArray:
            return clamped(back, begin + shifted + gain, end + shifted + gain)

        plain = (1.0 - theta) * at(n)
        extra = theta * at(n + 1) if theta > 0 else np.zeros_like(plain)
        return at(0), plain, extra

    def weighed(self, i: int, back: FloatArray, if_kept: float, if_changed: float) -> FloatArray:
        """Return the sum of G_{i+1} after keeping attribute i and after changing it, weighed."""
        stay, plain, extra = self.parts(i, back)
        total: FloatArray = if_kept * (plain + extra) + if_changed * stay
        return total

    def joined(self, i: int, stay: FloatArray, plain: FloatArray, extra: FloatArray) -> FloatArray:
        """Return G_i from its parts."""
        a = self.n_categories[i]
        total: FloatArray = (a - 1) / a * stay + (plain / a + extra / a)
        return total

    def before(
        self, i: int, back: FloatArray, states: slice = EVERY, begins: int = 0
    ) -> FloatArray:
        """Return G_i on some of its states from G_{i+1}; see `parts`."""
        low, high = self.bounds(i)
        first, end, _ = states.indices(high - low + 1)
        result = np.empty(end - first)
        for piece in pieces(slice(first, end)):
            parts = self.parts(i, back, piece, begins=begins)
            result[piece.start - first : piece.stop - first] = self.joined(i, *parts)
        return result

    def after(self, first: int) -> FloatArray:
        """Return G_first on its states."""
        back = self.last()
        for i in range(self.law.n_attributes - 1, first - 1, -1):
            back = self.before(i, back)
        return back


def pieces(states: slice) -> Iterator[slice]:
    """Yield states that are worked on together, one such piece after the other."""
    for begin in range(states.start, states.stop, _PIECE):
        yield slice(begin, min(begin + _PIECE, states.stop))


def clamped(back: FloatArray, begin: int, end: int) -> FloatArray:
    """Return back[begin:end] with indices clamped to the ends of the table."""
    size = len(back)
    left, right = max(0, min(-begin, end - begin)), max(0, min(end - size, end - begin))
    middle = back[max(begin, 0) : max(min(end, size), 0)]
    if left == 0 and right == 0:
        return middle
    return np.concatenate([np.full(left, back[0]), middle, np.full(right, back[-1])])


def normalized(expectations: FloatArray, retention: FloatArray) -> FloatArray:
    """Return φ(T) = ∏_{i∈T} retention_i · E_μ[g ∏_{i∈T} h_i]/E_μ[g] for every T, shape (2,)·m.

    Args:
        expectations: as from :func:`components`.
        retention: of the subset, shape (m,).
    """
    m = expectations.ndim
    expectations = expectations / expectations[(0,) * m]
    for axis in range(m):
        shape = [2 if d == axis else 1 for d in range(m)]
        expectations = expectations * np.reshape([1.0, retention[axis]], shape)
    return np.asarray(expectations)


def components(law: "GatedSum", subset: Sequence[int]) -> FloatArray:
    """Return E_μ[g ∏_{i∈T} h_i] e^{−E/2} for every T ⊆ subset, shape (2,)·m.

    h_i = 1 if i is kept, −1/(a_i − 1) if not (the interaction transform). The attributes outside
    the subset are averaged out once; then each of the subset's turns a value at s into two, with
    i ∉ T and with i ∈ T:

        (1 − r) G(s) + r G'(s)   and   (1 − r)(−1/(a − 1)) G(s) + r G'(s) = r (G'(s) − G(s)),

    G' the value after keeping i. Only partial sums that the remaining ones can reach are followed,
    so the 2^m answers together cost about 2^m m² operations, whatever the weights are. Each is off
    by at most a few (k + m) u *absolutely*, since E_μ[g ∏ |h_i|] <= E_μ[g].

    Args:
        law: the gated sum.
        subset: positions, each once, shape (m,).
    """
    chosen = [int(i) for i in subset]
    inside = set(chosen)
    order = [*chosen, *(i for i in range(law.n_attributes) if i not in inside)]
    return components_from(Backward(law, order), len(chosen))


def components_from(back: Backward, m: int, first: int = 0, state: int = 0) -> FloatArray:
    """Return :func:`components` of m attributes that follow one another in the order.

    Args:
        back: the expected gates.
        m: how many attributes.
        first: place of the first of them in the order.
        state: the sum before it.
    """

    def states_after(i: int, states: IntArray, shift: int) -> IntArray:
        return np.clip(states + shift, *back.bounds(i + 1))

    reached = {first: np.clip(np.array([state]), *back.bounds(first))}
    for i in range(first, first + m):
        shifts = {0, back.weights[i], back.weights[i] + (back.dither[i] > 0)}
        following = [states_after(i, reached[i], shift) for shift in shifts]
        reached[i + 1] = np.unique(np.concatenate(following))
    last = first + m
    values = back.after(last)[reached[last] - back.bounds(last)[0]][None, :]
    for i in range(last - 1, first - 1, -1):
        a, n, theta = back.n_categories[i], back.weights[i], back.dither[i]
        at = [
            values[:, np.searchsorted(reached[i + 1], states_after(i, reached[i], shift))]
            for shift in (0, n, n + (theta > 0))
        ]
        stay, up = at[0], (1.0 - theta) * at[1] + theta * at[2]
        values = np.concatenate([(a - 1) / a * stay + up / a, (up - stay) / a])
    return np.asarray(values[:, 0].reshape((2,) * m))


def end_weights(n_categories: int, retention: float, all_kept: bool) -> tuple[float, float]:
    """Return w of an attribute if it is kept, and if it is changed; see :func:`extremes`.

    Args:
        n_categories: a.
        retention: λ; 0 for an attribute that is averaged out.
        all_kept: whether all are kept at this end, or changed.
    """
    a, blur = n_categories, 1.0 - retention
    if all_kept:
        return (retention + blur / a), blur * ((a - 1) / a)
    return blur / a, (retention + blur * ((a - 1) / a))


def extremes(law: "GatedSum", subset: Sequence[int], retention: FloatArray) -> tuple[float, float]:
    """Return the largest and the smallest f_A e^{−E/2} of the law projected to the columns A.

    f falls when one more attribute is changed, and so does its projection f_A(y_A) = E_μ[f | y_A]:
    given y_A the other attributes are independent of it, so f_A is an average, with the same
    weights for every y_A, of functions that all fall. An attribute's own k-ary response averages f
    over that attribute with a kernel λ·(identity) + (1 − λ)·(uniform), which keeps the order too.
    So the extremes are where all of A is kept and where all of A is changed. There

        f_A = E_μ[f ∏_{i∈A} w_i],   w_i = (λ_i/r_i + 1 − λ_i, 1 − λ_i) on (kept, changed) if all
        kept, and (1 − λ_i, λ_i/(1 − r_i) + 1 − λ_i) if all changed: non-negative numbers only.

    The relative error is that of G, at most (STEP_ROUNDINGS k + 8 E + 16) u on either side.

    Args:
        law: the gated sum; its own retention plays no part.
        subset: positions, each once, at least one.
        retention: λ of every attribute, shape (k,).
    """
    chosen = [int(i) for i in subset]
    inside = set(chosen)
    back = Backward(law, [*chosen, *(i for i in range(law.n_attributes) if i not in inside)])
    after, ends = back.after(len(chosen)), []
    for all_kept in (True, False):
        values = after
        for place in range(len(chosen) - 1, -1, -1):
            kept = float(retention[chosen[place]])
            weights = end_weights(back.n_categories[place], kept, all_kept)
            values = back.weighed(place, values, *weights)
        ends.append(float(values[0]))
    return ends[0], ends[1]
