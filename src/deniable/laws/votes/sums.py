"""Expectations of functions of a dithered integer sum, on non-negative numbers only.

    s = Σ_{i unchanged} (n_i + B_i),     B_i = 1 with probability θ_i, independent,

with integers n_i >= 0 and 0 <= θ_i < 1. The B_i ("dither") represent the real weights
λ_i = n_i + θ_i on an integer grid exactly on average. `changed_sum` is the same sum over the
*changed* attributes, up to a ceiling. The law of s is needed under the uniform law μ, far out in
its tail; it is computed under the exponentially tilted law ν, dν/dμ ∝ e^{ρ s}. States that cannot
reach `floor` any more, or are above `ceiling`, are left out without loss when h vanishes there.

Source of the method and its error bounds: docs/proofs/optimal.md, section 7.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray

UNIT = 2.0**-53
"""u, the unit roundoff of double precision: relative error of one rounding."""

COEFFICIENT_ROUNDINGS = 12
"""Roundings in the coefficients of `tilted_sum`: exp within 1 ulp (2 u), 1/a, 1 − r, 1 − θ, two
products, two sums, the quotient.  The arguments of exp are exact: ρ has 24 bits, n under 29."""

LARGEST_WEIGHT = 2**28
"""Of a sum, so that its products with a tilt of 24 bits are exact in 53."""

DROP = 1e-31
"""Default mass under ν below which states are dropped at the ends of the window: of 2^28 states all
together 3e-23, far below one rounding."""

BLOCK = 512
"""States whose products are added up at once for pairs, in an unknown order, which rounds 512 times
at most, as the products of thirty-four attributes do."""

_KEPT = 1 << 20
"""Limit in doubles of a forward pass that is held at every step: 8 MB."""


@dataclass(frozen=True)
class TiltedSum:
    """The steps of s under ν, attribute by attribute."""

    order: IntArray
    weights: IntArray  # n_i, in that order, like everything below
    stay: FloatArray  # s stays
    low: FloatArray  # the attribute counts, s += n_i
    high: FloatArray  # the attribute counts, s += n_i + 1
    tilt: float  # ρ
    log_scale: float  # L
    of_changed: bool = False  # whether s is a sum over changed attributes

    @property
    def n_attributes(self) -> int:
        """k."""
        return len(self.weights)

    @property
    def reach(self) -> IntArray:
        """The largest gain of s from steps i, i+1, … together, (k + 1,)."""
        most = self.weights + (self.high > 0)
        return np.append(np.cumsum(most[::-1])[::-1], 0)


@dataclass(frozen=True)
class SumExpectations:
    """E_ν[h], E_ν[h; i kept], E_ν[h; i changed] for m functions h (first axis)."""

    total: FloatArray  # (m,)
    kept: FloatArray  # (m, k)
    changed: FloatArray  # (m, k)


def relative_error(n_attributes: int, n_states: int) -> float:
    """Return the relative error bound of `careful` expectations, drops apart."""
    roundings = n_attributes * (COEFFICIENT_ROUNDINGS + 3) + math.log2(n_states + 1) + 32
    return math.expm1(1.01 * roundings * UNIT)


def tilted_sum(
    uniform_keep: FloatArray, weights: IntArray, dither: FloatArray, tilt: float
) -> TiltedSum:
    """Build the steps of s under ν, in descending order of n_i (so that hopeless states go early).

    ``tilt``: ρ, in nats per unit of s.
    """
    if tilt != float(np.float32(tilt)) or int(weights.sum()) > LARGEST_WEIGHT:
        raise ValueError("the tilt must have 24 bits and the weights must sum to at most 2^28")
    order = np.argsort(-weights, kind="stable")
    n, theta, r = weights[order], dither[order], uniform_keep[order]
    # Weights relative to e^{ρ n}: ν is the same, and L gains ρ n.  e^{−ρ n} may underflow to a
    # `stay` of zero only when Pr_ν[changed] < 1e-300: refuse, the law would lose its support.
    argument = -tilt * n
    if np.any(argument < -650) or np.any(argument > 650):
        raise ValueError("the tilt is too strong for double precision")
    stay = (1.0 - r) * np.exp(argument)
    low = r * (1.0 - theta)
    high = r * theta * math.exp(tilt)
    scale = stay + low + high
    log_scale = math.fsum(np.log(scale)) + math.fsum(-argument)
    return TiltedSum(order, n, stay / scale, low / scale, high / scale, tilt, log_scale)


def changed_sum(
    uniform_keep: FloatArray, costs: IntArray, dither: FloatArray, tilt: float, ceiling: int
) -> TiltedSum:
    """Build the steps of s = Σ_{i changed} (n_i + B_i) under ν, dν/dμ ∝ e^{−ρ s}, for s <= ceiling.

    In ascending order of n_i, so that the first attributes have few sums. An attribute whose
    change costs more than the ceiling has no step: under ν it is unchanged.

    ``tilt``: ρ >= 0, in nats per unit of s. ``ceiling``: the largest sum needed, at most 2^28.
    """
    if tilt != float(np.float32(tilt)) or ceiling > LARGEST_WEIGHT:
        raise ValueError("the tilt must have 24 bits and the ceiling be at most 2^28")
    order = np.argsort(costs, kind="stable")
    n, theta, r = np.minimum(costs, ceiling + 1)[order], dither[order], uniform_keep[order]
    change = np.where(n > ceiling, 0.0, 1.0 - r)
    reached = np.where(n > ceiling, 0, n)
    if tilt * float(reached.max()) > 650:
        raise ValueError("the tilt is too strong for double precision")
    low = change * (1.0 - theta) * np.exp(-tilt * reached)
    high = change * theta * np.exp(-tilt * (reached + 1))
    scale = r + low + high
    log_scale = math.fsum(np.log(scale))
    return TiltedSum(order, n, r / scale, low / scale, high / scale, -tilt, log_scale, True)


def saddle_tilt(uniform_keep: FloatArray, weights: FloatArray, mean: float) -> float:
    """Return ρ >= 0 with E_ν[s] = mean (the saddle point), by safeguarded Newton steps.

    `weights` are the real weights n_i + θ_i; the dither's noise is ignored: any tilt is valid.
    """
    live = weights > 0
    real, odds = weights[live], np.log(uniform_keep[live]) - np.log1p(-uniform_keep[live])
    if not 0.0 < mean < float(real.sum()):
        raise ValueError("the mean of a tilted sum lies strictly between 0 and the sum of weights")
    low, high, tilt = 0.0, 600.0 / float(real.max()), 0.0
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-(odds + tilt * real)))
        gap = float(real @ p) - mean
        if gap > 0:
            high = tilt
        else:
            low = tilt
        slope = float(real * real @ (p * (1.0 - p)))
        new = tilt - gap / slope if slope > 0 else math.inf
        if not low < new < high:
            new = 0.5 * (low + high)
        done = abs(new - tilt) <= 1e-7 * max(abs(tilt), 1e-3 / float(real.max()))
        tilt = new
        if done:
            break
    # 24 bits: ρ n and ρ (s − t) are then exact products for integers below 2^29.
    return float(np.float32(tilt))


@dataclass
class _Window:
    low: int
    mass: FloatArray

    @property
    def high(self) -> int:
        return self.low + len(self.mass)


class SumLaw:
    """The forward pass under ν, held at every step, or at every √k-th if it is large, for adjoint
    passes."""

    def __init__(
        self,
        steps: TiltedSum,
        floor: int = 0,
        *,
        ceiling: int | None = None,
        careful: bool = False,
        drop: float = DROP,
    ) -> None:
        """Run the forward pass; functions h must vanish outside `floor` … `ceiling`, and states of
        mass up to `drop` may be left out."""
        self.steps, self.drop = steps, drop
        self._careful = careful
        self._end = sys.maxsize if ceiling is None else ceiling + 1
        self._least = floor - steps.reach
        k = steps.n_attributes
        most = k * min(int(steps.reach[0]) + 1, self._end)
        self._stride = 1 if most <= _KEPT else max(1, math.isqrt(k))
        self._checkpoints: list[_Window] = []
        window, self.dropped, self._widest = _Window(0, np.ones(1)), 0.0, 1
        for i in range(k):
            if i % self._stride == 0:
                self._checkpoints.append(window)
            window, lost = self._step(i, window)
            self.dropped += lost
            self._widest = max(self._widest, len(window.mass))
        # Three products for each number, each off by 2^{−1075} where it is below 2^{−1022}.
        self.dropped += 2.0 * k * self._widest * math.ulp(0.0)
        self._final = window

    @property
    def support(self) -> IntArray:
        """The values of s, (n,)."""
        return np.arange(self._final.low, self._final.high, dtype=np.int64)

    @property
    def mass(self) -> FloatArray:
        """ν of each value of `support`, (n,)."""
        return self._final.mass

    def error(self) -> float:
        """Return the relative error bound of every expectation (dropped mass apart)."""
        if not self._careful:
            return math.inf
        return relative_error(self.steps.n_attributes, self._widest)

    def pair_error(self) -> float:
        """Return the error of `pair_expectations` for factors of at most 1, as a part of E_ν[|h|]
        (dropped mass apart).

        Every entry is a sum over paths of products with the roundings of `error`, and at most four
        more in either step with a factor. The states' products are added in blocks, and then the
        blocks. Signs differ, so the sum of magnitudes bounds the error.
        """
        if not self._careful:
            return math.inf
        roundings = self.steps.n_attributes * (COEFFICIENT_ROUNDINGS + 3) + 2 * 4 + 32
        return math.expm1(1.01 * (roundings + BLOCK + self._widest / BLOCK + 1) * UNIT)

    def dot(self, values: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Σ_s values[..., s] mass[s]."""
        return (values * mass).sum(axis=-1) if self._careful else values @ mass

    def _dot_rows(self, rows: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Σ_s rows[:, s] mass[s] by matrix products."""
        if not self._careful:
            return np.asarray(rows @ mass)
        starts = range(0, len(mass), BLOCK)
        blocks = [rows[:, i : i + BLOCK] @ mass[i : i + BLOCK] for i in starts]
        return np.asarray(np.sum(blocks, axis=0))

    def expectations(self, values: FloatArray) -> SumExpectations:
        """Return the expectations of functions of s, and their parts by each attribute's fate."""
        k = self.steps.n_attributes
        back, back_low = np.atleast_2d(values), self._final.low
        m = len(back)
        kept, changed = np.empty((m, k)), np.empty((m, k))
        total = self.dot(back, self._final.mass)
        for i, window in self._backwards():
            stay, up = self._split(i, window, back, back_low)
            at = self.steps.order[i]
            changed[:, at] = self.dot(stay, window.mass)
            kept[:, at] = self.dot(up, window.mass)
            stay += up
            back, back_low = stay, window.low
        if self.steps.of_changed:
            kept, changed = changed, kept
        return SumExpectations(total, kept, changed)

    def pair_expectations(
        self, values: FloatArray, if_kept: FloatArray, if_changed: FloatArray
    ) -> FloatArray:
        """Return M_ij = E_ν[h(s) c_i c_j], c_i = if_kept_i or if_changed_i, (k, k); M_ii squares.

        One backward pass with a row for every attribute already met: O(k² n). With negative factors
        entries are differences (`pair_error`).
        """
        k = self.steps.n_attributes
        if self.steps.of_changed:
            if_kept, if_changed = if_changed, if_kept
        pairs = np.zeros((k, k))
        rows: list[int] = []
        back, back_low = np.atleast_2d(values), self._final.low
        spaces = np.empty((2, k + 1, self._widest))  # the rows now, and after the next step
        for i, window in self._backwards():
            at, n = int(self.steps.order[i]), int(self.steps.weights[i])
            after = spaces[i % 2, : len(back) + 1, : len(window.mass)]
            after[:] = 0.0
            for coefficient, gain, factor in (
                (float(self.steps.stay[i]), 0, if_changed[at]),
                (float(self.steps.low[i]), n, if_kept[at]),
                (float(self.steps.high[i]), n + 1, if_kept[at]),
            ):
                if coefficient > 0:
                    part = _shifted(back, back_low, window.low + gain, len(window.mass))
                    after[:-1] += coefficient * part
                    after[-1] += factor * coefficient * part[0]
                    weighed = coefficient * self._dot_rows(part, window.mass)
                    pairs[at, rows] += factor * weighed[1:]
                    pairs[at, at] += factor**2 * weighed[0]
            pairs[rows, at] = pairs[at, rows]
            back, back_low = after, window.low
            rows.append(at)
        return pairs

    def product_expectation(
        self, values: FloatArray, factors: dict[int, tuple[float, float]]
    ) -> float:
        """Return E_ν[h(s) ∏_{i in factors} (factor of i when unchanged, when changed)]."""
        back, back_low = np.atleast_2d(values), self._final.low
        for i, window in self._backwards():
            stay, up = self._split(i, window, back, back_low)
            kept, changed = factors.get(int(self.steps.order[i]), (1.0, 1.0))
            if self.steps.of_changed:
                kept, changed = changed, kept
            back, back_low = changed * stay + kept * up, window.low
        return float(back[0, 0 - back_low])

    def _backwards(self) -> Iterator[tuple[int, _Window]]:
        """Yield (i, window before step i) from the last step to the first."""
        k, stride = self.steps.n_attributes, self._stride
        for block in range(len(self._checkpoints) - 1, -1, -1):
            first, last = block * stride, min(k, (block + 1) * stride)
            windows = [self._checkpoints[block]]
            for i in range(first, last - 1):
                windows.append(self._step(i, windows[-1])[0])
            for i in range(last - 1, first - 1, -1):
                yield i, windows.pop()

    def _step(self, i: int, window: _Window) -> tuple[_Window, float]:
        """Add attribute i to s; leave out states that cannot end in range or have no mass."""
        steps = self.steps
        n, size = int(steps.weights[i]), len(window.mass)
        stay, low, high = float(steps.stay[i]), float(steps.low[i]), float(steps.high[i])
        first = max(window.low, int(self._least[i + 1]))
        mass = np.empty(max(min(window.high + n + (high > 0), self._end) - first, 1))
        source = window.mass[first - window.low : first - window.low + len(mass)]
        np.multiply(source, stay, out=mass[: len(source)])
        mass[len(source) :] = 0.0
        _add_shifted(mass, first, window, n, low)
        if high > 0:
            _add_shifted(mass, first, window, n + 1, high)
        if i % 4 != 3 or size < 64:
            return _Window(first, mass), 0.0
        live = np.flatnonzero(mass > self.drop)
        if live.size == 0 or (live[0] == 0 and live[-1] == len(mass) - 1):
            return _Window(first, mass), 0.0
        begin, end = int(live[0]), int(live[-1]) + 1
        lost = float(mass[:begin].sum() + mass[end:].sum())
        return _Window(first + begin, mass[begin:end].copy()), lost

    def _split(
        self, i: int, window: _Window, back: FloatArray, back_low: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the adjoint's parts where attribute i does not count and where it does."""
        steps = self.steps
        n, size = int(steps.weights[i]), len(window.mass)
        stay = steps.stay[i] * _shifted(back, back_low, window.low, size)
        up = steps.low[i] * _shifted(back, back_low, window.low + n, size)
        if steps.high[i] > 0:
            up += steps.high[i] * _shifted(back, back_low, window.low + n + 1, size)
        return stay, up


def _add_shifted(mass: FloatArray, first: int, window: _Window, shift: int, factor: float) -> None:
    begin = window.low + shift - first
    skip = max(0, -begin)
    begin = max(begin, 0)
    source = window.mass[skip : skip + max(len(mass) - begin, 0)]
    if len(source):
        mass[begin : begin + len(source)] += factor * source


def _shifted(back: FloatArray, back_low: int, start: int, size: int) -> FloatArray:
    """Return back at states start … start + size − 1; states that were left out are zero."""
    begin, end = start - back_low, start - back_low + size
    if begin >= 0 and end <= back.shape[1]:
        return back[:, begin:end]
    out = np.zeros((len(back), size))
    inside = slice(max(begin, 0), min(end, back.shape[1]))
    if inside.stop > inside.start:
        out[:, inside.start - begin : inside.stop - begin] = back[:, inside]
    return out
