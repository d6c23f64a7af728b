"""Expected gates: the mean of the gate over the attributes not drawn yet.

G_i(s), the expected gate under the uniform law μ once the first i attributes have brought the sum
to s, is defined in docs/proofs/optimal.md, section 6. All numbers are positive and lie in
[e^{−E/2}, e^{E/2}], without cancellation, underflow or dropped states: this is for computations in
which *every* pattern counts, `sums` for expectations with relative precision far out in a tail.
States from which g can only be 1, or only e^E, have one common entry at either end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray, IntArray

Both = tuple[FloatArray, FloatArray]
"""The weights of yes and of no, on the states before an attribute."""

Weights = tuple[Both, Both | None]
"""Weights of changing an attribute, and of its dither if it has one and is unchanged."""


class Gate(Protocol):
    """Attributes of a gated sum (:class:`~deniable.laws.votes.gated.GatedSum`) read here."""

    @property
    def n_categories(self) -> tuple[int, ...]: ...

    @property
    def weights(self) -> IntArray: ...

    @property
    def dither(self) -> FloatArray: ...

    @property
    def height(self) -> float: ...

    @property
    def rise(self) -> tuple[int, int]: ...

    def gate_exponent(self, s: IntArray | FloatArray) -> FloatArray: ...


class Backward:
    """G_0, …, G_k of a gated sum in a given order of its attributes.

    ``order``: positions of all attributes, shape (k,); None for the order they have.
    """

    def __init__(self, law: Gate, order: Sequence[int] | None = None) -> None:
        self.law, self.k = law, len(law.weights)
        places = np.arange(self.k) if order is None else np.asarray(order, dtype=np.intp)
        self.n_categories: list[int] = np.array(law.n_categories)[places].tolist()
        self.weights: list[int] = law.weights[places].tolist()
        self.dither: list[float] = law.dither[places].tolist()
        most = law.weights[places] + (law.dither[places] > 0)
        self._most = [0, *np.cumsum(most).tolist()]
        self._bottom, self._top = law.rise

    def bounds(self, i: int) -> tuple[int, int]:
        """Return the first and last distinguished state before attribute i."""
        reach = self._most[-1] - self._most[i]
        high = min(self._most[i], self._top)
        return min(max(0, self._bottom - reach), high), high

    def n_states(self, i: int) -> int:
        """Return the number of distinguished states before attribute i."""
        low, high = self.bounds(i)
        return high - low + 1

    def moves(self, i: int) -> tuple[int, bool]:
        """Return the shift of a state before attribute i if the sum does not change, and whether
        some states are then clamped to the first or last."""
        (low, high), (before, most) = self.bounds(i + 1), self.bounds(i)
        return before - low, before < low or most + self.weights[i] + 1 > high

    def last(self) -> FloatArray:
        """Return G_k on its states."""
        low, high = self.bounds(self.k)
        exponent = self.law.gate_exponent(np.arange(low, high + 1))
        return np.asarray(np.exp(exponent - 0.5 * self.law.height))

    def parts(self, i: int, back: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return G_{i+1} after changing attribute i, and (1 − θ) G_{i+1} and θ G_{i+1} after
        keeping it without and with dither, on the states before i."""
        begin, size = self.moves(i)[0], self.n_states(i)
        n, theta = self.weights[i], self.dither[i]
        stay, plain = (clamped(back, begin + gain, size) for gain in (0, n))
        if theta == 0:
            return stay, plain, np.zeros(size)
        return stay, (1.0 - theta) * plain, theta * clamped(back, begin + n + 1, size)

    def choices(self, i: int, back: FloatArray) -> Weights:
        """Return the weights of attribute i's choices from G_{i+1}."""
        a = self.n_categories[i]
        stay, plain, extra = self.parts(i, back)
        dither = (extra, plain) if self.dither[i] > 0 else None
        return ((a - 1) / a * stay, plain / a + extra / a), dither

    def choices_at(
        self, i: int, s: int, held: Mapping[int, FloatArray]
    ) -> tuple[tuple[float, float], tuple[float, float] | None]:
        """Return :meth:`choices` at one sum, the same to the last bit, from any later tables."""
        a, theta = self.n_categories[i], self.dither[i]
        n = self.weights[i]
        stay, plain = self._at(i + 1, s, held), self._at(i + 1, s + n, held)
        extra = theta * self._at(i + 1, s + n + 1, held) if theta > 0 else 0.0
        plain *= 1.0 - theta
        dither = (extra, plain) if theta > 0 else None
        return ((a - 1) / a * stay, plain / a + extra / a), dither

    def _at(self, i: int, s: int, held: Mapping[int, FloatArray]) -> float:
        """Return G_i(s) from the first held table of it or of a later attribute."""
        low, high = self.bounds(i)
        s = min(max(s, low), high)
        if i in held:
            return held[i].item(s - low)
        change, keep = self.choices_at(i, s, held)[0]
        return change + keep

    def weighed(self, i: int, back: FloatArray, if_kept: float, if_changed: float) -> FloatArray:
        """Return the weighted sum of G_{i+1} after keeping and after changing attribute i."""
        stay, plain, extra = self.parts(i, back)
        return np.asarray(if_kept * (plain + extra) + if_changed * stay)

    def before(self, i: int, back: FloatArray) -> FloatArray:
        """Return G_i on its states from G_{i+1}."""
        change, keep = self.choices(i, back)[0]
        return change + keep

    def after(self, first: int) -> FloatArray:
        """Return G_first on its states."""
        back = self.last()
        for i in range(self.k - 1, first - 1, -1):
            back = self.before(i, back)
        return back


def clamped(back: FloatArray, begin: int, size: int) -> FloatArray:
    """Return `size` entries from `begin` on; those beyond either end repeat the entry there."""
    end = begin + size
    left, right = max(0, min(-begin, size)), max(0, min(end - len(back), size))
    middle = back[max(begin, 0) : max(min(end, len(back)), 0)]
    if left == 0 and right == 0:
        return middle
    return np.concatenate([np.full(left, back[0]), middle, np.full(right, back[-1])])


def normalized(expectations: FloatArray, retention: FloatArray) -> FloatArray:
    """Return φ(T) = ∏_{i∈T} retention_i · E_μ[g ∏_{i∈T} h_i]/E_μ[g] for every T, shape (2,)·m.

    ``retention``: of the subset, shape (m,).
    """
    m = expectations.ndim
    expectations = expectations / expectations[(0,) * m]
    for axis in range(m):
        shape = [2 if d == axis else 1 for d in range(m)]
        expectations = expectations * np.reshape([1.0, retention[axis]], shape)
    return np.asarray(expectations)


def _with_first(law: Gate, subset: Sequence[int]) -> tuple[Backward, int]:
    """Return the expected gates with these attributes before all others, and their number."""
    chosen = [int(i) for i in subset]
    inside = set(chosen)
    rest = (i for i in range(len(law.weights)) if i not in inside)
    return Backward(law, [*chosen, *rest]), len(chosen)


def components(law: Gate, subset: Sequence[int]) -> FloatArray:
    """Return E_μ[g ∏_{i∈T} h_i] e^{−E/2} for every T ⊆ subset, shape (2,)·m.

    h_i = 1 if i is unchanged, −1/(a_i − 1) if not (docs/proofs/interactions.md). The attributes
    outside the subset are averaged out once; then each of the subset's splits a value at s into
    those with i ∉ T and with i ∈ T. About 2^m m² operations for any weights. Each entry is off by
    at most a few (k + m) u *absolutely*.

    ``subset``: positions, each once, shape (m,).
    """
    back, m = _with_first(law, subset)

    def split(i: int, stay: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        a = back.n_categories[i]
        return (a - 1) / a * stay + up / a, (up - stay) / a

    return _split_by_fate(back, m, back.after(m), split)


def densities(
    law: Gate, subset: Sequence[int], kept: NDArray[np.bool_], retention: FloatArray
) -> FloatArray:
    """Return f e^{−E/2} of every output by the subset's attributes, shape (2,)·m, index 0 where
    an attribute is unchanged; the others are fixed by `kept`.

    Own responses included, relative to the uniform law, in positive numbers only; the weights are
    those of :func:`extremes`.

    ``subset``: positions, each once, shape (m,). ``kept``: whether the output leaves an attribute
    unchanged, shape (k,); read outside the subset. ``retention``: λ of every attribute, shape (k,).
    """
    back, m = _with_first(law, subset)
    inside = set(map(int, subset))
    order = [*map(int, subset), *(i for i in range(back.k) if i not in inside)]

    def seen(place: int, stay: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, own = back.n_categories[place], float(retention[order[place]])
        blur = 1.0 - own
        return (
            (own + blur / a) * up + blur * ((a - 1) / a) * stay,
            blur / a * up + (own + blur * ((a - 1) / a)) * stay,
        )

    values = back.last()
    for place in range(back.k - 1, m - 1, -1):
        stay, plain, extra = back.parts(place, values)
        values = seen(place, stay, plain + extra)[0 if kept[order[place]] else 1]
    return _split_by_fate(back, m, values, seen)


def _split_by_fate(
    back: Backward,
    m: int,
    last: FloatArray,
    split: Callable[[int, FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Turn a value at every state after the first m attributes into 2^m at the beginning."""

    def states_after(i: int, states: IntArray, shift: int) -> IntArray:
        return np.clip(states + shift, *back.bounds(i + 1))

    reached = [np.zeros(1, dtype=np.int64)]
    for i in range(m):
        shifts = {0, back.weights[i], back.weights[i] + (back.dither[i] > 0)}
        following = [states_after(i, reached[i], shift) for shift in shifts]
        reached.append(np.unique(np.concatenate(following)))
    values = last[reached[m] - back.bounds(m)[0]][None, :]
    for i in range(m - 1, -1, -1):
        n, theta = back.weights[i], back.dither[i]
        at = [
            values[:, np.searchsorted(reached[i + 1], states_after(i, reached[i], shift))]
            for shift in (0, n, n + (theta > 0))
        ]
        values = np.concatenate(split(i, at[0], (1.0 - theta) * at[1] + theta * at[2]))
    return np.asarray(values[:, 0].reshape((2,) * m))


def extremes(law: Gate, subset: Sequence[int], retention: FloatArray) -> tuple[float, float]:
    """Return the largest and the smallest f_A e^{−E/2} of the law projected to the columns A, with
    the weights of docs/proofs/clipped.md, section 6, each off by at most (STEP_ROUNDINGS k + 8 E +
    16) u.

    ``retention``: λ of every attribute, shape (k,).
    """
    back, m = _with_first(law, subset)
    most = least = back.after(m)
    for place in range(m - 1, -1, -1):
        a, kept = back.n_categories[place], float(retention[int(subset[place])])
        blur = 1.0 - kept
        most = back.weighed(place, most, kept + blur / a, blur * ((a - 1) / a))
        least = back.weighed(place, least, blur / a, kept + blur * ((a - 1) / a))
    return float(most[0]), float(least[0])
