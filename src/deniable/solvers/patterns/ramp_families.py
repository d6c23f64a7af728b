"""What many ramps deliver at once, for attributes that are too many to enumerate.

The ramps of a family lie on one grid of costs, and their slopes differ from the family's in one
attribute at most. Each is evaluated as it would be drawn, a gated sum with dither
(`deniable.laws.votes.gated`), by frequencies. With t how far the sum of what is kept is below its
largest, and F = f e^{−E} as a function of it,

    E_μ[F X] = e^{−E} E_μ[X] + E_ν[e^{βt} (F − e^{−E}) X] L,    ν ∝ e^{−βt} μ,

where L is the tilt's normalizer: F − e^{−E} is 0 from the bottom on, and sums beyond the N states
of the transform are brought below e^{−20} by the tilt β. Attributes are independent under ν, so
that for X = C_i or h_i h_j its transform changes by one factor for each: all ramps of a family and
all pairs are one product of two real matrices.

The numbers are good to parts in 10^7 or so: to choose by. What is drawn is evaluated again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sums import saddle_tilt
from deniable.solvers.patterns.ramp_response import ComplexArray

_STATES, _TRANSFORMED = 800, 2048
"""Units of the grid from where nothing is changed to a family's lowest bottom, and sums told apart,
more than twice as many."""

_DAMPED = 20.0
"""Nats by which sums are damped that lie so many states beyond."""

_BEYOND_BOTTOM = 1.003
"""A slope above this many times what the ramp falls by does what one of this size does."""

_STEP_OF_TILTS = 1.5
"""Times that tilts differ by."""

_LEAST_DITHER = 1e-15
_STEEPEST = 0.97
"""Of a ramp's own slope, the most that a tilt is."""


@dataclass(frozen=True)
class Shape:
    """One ramp of a family: exp(clip(fall_from − Σ_{changed} c_i, −height, 0)).

    Attributes:
        fall_from, height: in nats.
        place: of the attribute whose slope is another; −1 if none is.
        slope: that attribute's, in nats.
    """

    fall_from: float
    height: float = math.inf
    place: int = -1
    slope: float = 0.0


class Column(NamedTuple):
    """What a ramp delivers, scaled to 1 where nothing is changed.

    Attributes:
        end: its logarithm where everything is changed.
        total: E_μ[F].
        changed: E_μ[F C_i], shape (k,).
        pairs: E_μ[F h_i h_j], shape (k (k − 1)/2,), in the order of `numpy.triu_indices`.
    """

    end: float
    total: float
    changed: FloatArray
    pairs: FloatArray


class RampFamily:
    """Ramps on one grid.

    Args:
        counts: a_i.
        slopes: c_i in nats, shape (k,).
        bottom: in nats, the most that any of them starts to fall at and falls by, together.
    """

    def __init__(self, counts: tuple[int, ...], slopes: FloatArray, bottom: float) -> None:
        self._counts, self._bottom = counts, bottom
        self._keep = 1.0 / np.array(counts)
        self._unit = bottom / _STATES  # in nats
        self._slopes = slopes

    def _on_grid(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return whole units and dither; no slope is steeper than asked."""
        slopes = np.minimum(slopes, _BEYOND_BOTTOM * self._bottom)
        whole = np.floor(slopes / self._unit)
        # The dither that falls by the rest: ln(1 − θ + θ e^unit) = rest.
        rest = np.maximum(slopes - whole * self._unit, 0.0)
        dither = np.expm1(rest) / math.expm1(self._unit)
        dither = np.where(dither < _LEAST_DITHER, 0.0, np.minimum(dither, 1.0 - 2.0**-50))
        return whole, dither

    def slopes_of(self, shape: Shape) -> FloatArray:
        """Return a ramp's slopes in nats, shape (k,)."""
        slopes = self._slopes
        if shape.place >= 0:
            slopes = slopes.copy()
            slopes[shape.place] = shape.slope
        return slopes

    def _gate(self, shape: Shape, whole: FloatArray, dither: FloatArray) -> tuple[float, float]:
        """Return where the gate starts and ends, in units of the sum of what is kept."""
        top = float((whole + dither).sum()) - shape.fall_from / self._unit
        if shape.fall_from == 0.0:
            top = float(whole.sum() + np.count_nonzero(dither))
        return max(top - shape.height / self._unit, 0.0), top

    def law(self, shape: Shape) -> GatedSum:
        """Return a ramp as it is drawn."""
        whole, dither = self._on_grid(self.slopes_of(shape))
        start, top = self._gate(shape, whole, dither)
        return GatedSum(
            self._counts,
            whole.astype(np.int64),
            dither,
            "ramp",
            start,
            top - start,
            (top - start) * self._unit,
            np.ones(len(whole)),
        )

    def columns(self, shapes: Sequence[Shape]) -> list[Column]:
        """Return what ramps deliver, in their order."""
        tilt_at = {fall: self._tilt(fall) for fall in {shape.fall_from for shape in shapes}}
        tilts = [tilt_at[shape.fall_from] for shape in shapes]
        columns: dict[int, Column] = {}
        for tilt in set(tilts):
            here = [place for place, one in enumerate(tilts) if one == tilt]
            columns |= zip(here, self._under(tilt, [shapes[place] for place in here]), strict=True)
        return [columns[place] for place in range(len(shapes))]

    def _tilt(self, fall_from: float) -> float:
        """Return β for one unit: where sums are about as large as a ramp's plateau is wide, in
        rough steps, so that many ramps share one."""
        cost = np.minimum(self._slopes / self._unit, _BEYOND_BOTTOM * _STATES)
        live = cost > 0.0
        sum_of = float(cost[live].sum())
        mean = sum_of - sum_of * min(max(fall_from / self._unit / sum_of, 1e-3), 1.0 - 1e-3)
        tilt = saddle_tilt(self._keep[live], cost[live], mean)
        least = _DAMPED / _TRANSFORMED
        tilt = min(max(tilt, least), max(_STEEPEST * self._unit, least))
        return least * _STEP_OF_TILTS ** math.floor(math.log(tilt / least, _STEP_OF_TILTS) + 1e-9)

    def _under(self, tilt: float, shapes: list[Shape]) -> list[Column]:
        """Return what ramps deliver, summed under one tilt."""
        turn = 2.0 * math.pi / _TRANSFORMED * np.arange(_TRANSFORMED // 2 + 1)
        step = np.asarray(-tilt - 1j * turn, dtype=np.complex128)
        r = self._keep
        base = _Factors(step, r, *self._on_grid(self._slopes))
        law = base.both.prod(axis=0) * (2.0 / _TRANSFORMED)
        law[[0, -1]] *= 0.5  # the other frequencies count twice: n and −n
        excess, fall = np.zeros((len(shapes), _TRANSFORMED)), np.empty(len(shapes))
        others: dict[int, _Factors] = {}
        t = np.arange(_TRANSFORMED)
        for row, shape in enumerate(shapes):
            whole, dither = self._on_grid(self.slopes_of(shape))
            start, top = self._gate(shape, whole, dither)
            fall[row] = (top - start) * self._unit
            # Beyond the bottom there is none, however large e^βt grows.
            most = float(whole.sum() + np.count_nonzero(dither))
            cost = t[: max(math.ceil(most - start), 0)]
            below = np.clip(most - cost - top, start - top, 0.0) * self._unit
            excess[row, : len(cost)] = np.exp(below + tilt * cost) - np.exp(tilt * cost - fall[row])
            if shape.place >= 0:
                one = slice(shape.place, shape.place + 1)
                others[row] = _Factors(step, r[one], whole[one], dither[one])
        weight = np.asarray(np.conj(np.fft.rfft(excess)) * law, dtype=np.complex128)
        for row, other in others.items():
            weight[row] *= other.both[0] / base.both[shapes[row].place]
        first, second = np.triu_indices(len(r), 1)
        base_level = np.exp(-fall)
        total = base_level + weight.sum(axis=1).real
        changed = np.outer(base_level, 1.0 - r) + _real_product(weight, base.changed)
        pairs = _real_product(weight, base.signed[first] * base.signed[second])
        for row, other in others.items():
            place = shapes[row].place
            here = weight[row]
            changed[row, place] = (
                base_level[row] * (1.0 - r[place]) + (here @ other.changed[0]).real
            )
            both = (base.signed @ (here * other.signed[0])).real
            touched = (first == place) | (second == place)
            pairs[row, touched] = both[(first + second - place)[touched]]
        return [
            Column(-fall[row], total[row], changed[row], pairs[row]) for row in range(len(fall))
        ]


class _Factors:
    """The transform of attributes' shares of t under ν, up to the tilt's normalizer, shapes (m, n).

    Args:
        step: −β − iω, the logarithm of what one unit counts, shape (n,).
        keep: r, shape (m,).
        whole, dither: of the costs, shapes (m,).

    Attributes:
        both: kept or changed.
        changed: the part of C_i, divided by both.
        signed: the part of h_i, divided by both.
    """

    def __init__(
        self, step: ComplexArray, keep: FloatArray, whole: FloatArray, dither: FloatArray
    ) -> None:
        r, unit = keep[:, None], np.exp(step)
        dithered = dither[:, None] > 0.0
        theta = np.where(dithered, dither[:, None], 1.0)
        whole_units = np.exp(whole[:, None] * step)
        lost = np.where(dithered, whole_units * unit, whole_units)
        both = (1.0 - r) * lost + r * (theta + (1.0 - theta) * unit)
        # What is lost less if it is kept; small where the slope is.
        gap = np.where(
            dithered, unit * (1.0 - whole_units) + theta * (1.0 - unit), 1.0 - whole_units
        )
        self.both = both
        self.changed: ComplexArray = np.asarray((1.0 - r) * lost / both, dtype=np.complex128)
        self.signed: ComplexArray = np.asarray(r * gap / both, dtype=np.complex128)


def _real_product(first: ComplexArray, second: ComplexArray) -> FloatArray:
    """Return Re Σ_n first[a, n] second[b, n], (a, b)."""
    left = np.concatenate([first.real, -first.imag], axis=1)
    right = np.concatenate([second.real, second.imag], axis=1)
    return np.asarray(left @ right.T)
