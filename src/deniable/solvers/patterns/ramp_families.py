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
from deniable.solvers.patterns.ramp_response import ComplexArray, real_product, side_by_side

_STATES, _TRANSFORMED = 800, 2048
"""Units of the grid from where nothing is changed to a family's lowest bottom, and sums told apart,
more than twice as many."""

_FREQUENCIES = np.arange(_TRANSFORMED // 2 + 1)
_TURNS = np.exp((-2j * math.pi / _TRANSFORMED) * np.arange(_TRANSFORMED))
"""Frequencies as whole numbers, and e^{−iω} of all of them: that of a whole multiple is another."""

_ONE_BY_ONE = 0.7
"""Ramps, as a part of the attributes, up to which the pairs of each are one product: beyond, those
of all are, of pairs that are multiplied once."""

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
        slope: that attribute's, in nats; infinite if the ramp is at its bottom where it is changed.
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
        most = _BEYOND_BOTTOM * self._bottom
        slopes, beyond = np.minimum(slopes, most), slopes >= most
        whole = np.floor(slopes / self._unit)
        # The dither that falls by the rest: ln(1 − θ + θ e^unit) = rest.
        rest = np.maximum(slopes - whole * self._unit, 0.0)
        dither = np.expm1(rest) / math.expm1(self._unit)
        none = beyond | (dither < _LEAST_DITHER)
        dither = np.where(none, 0.0, np.minimum(dither, 1.0 - 2.0**-50))
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
        r, size = self._keep, len(self._keep)
        base = _Factors(tilt, r, *self._on_grid(self._slopes))
        law = base.both.prod(axis=0) * (2.0 / _TRANSFORMED)
        law[[0, -1]] *= 0.5  # the other frequencies count twice: n and −n
        whole, dither = self._on_grid(np.array([self.slopes_of(shape) for shape in shapes]))
        gates = [self._gate(*one) for one in zip(shapes, whole, dither, strict=True)]
        start, top = np.array(gates).T[:, :, None]
        fall = (top - start) * self._unit
        # Beyond the bottom there is none, however large e^βt grows.
        most = (whole.sum(axis=1) + np.count_nonzero(dither, axis=1))[:, None]
        t = np.arange(min(max(math.ceil(float((most - start).max())), 0), _TRANSFORMED))
        below = np.clip(most - t - top, start - top, 0.0) * self._unit
        inside, tilted = t < most - start, tilt * t
        excess = np.exp(np.where(inside, below + tilted, -np.inf))
        excess -= np.exp(np.where(inside, tilted - fall, -np.inf))
        transform = np.fft.rfft(excess, _TRANSFORMED)
        weight = np.asarray(np.conj(transform) * law, dtype=np.complex128)
        rows = np.array([row for row, one in enumerate(shapes) if one.place >= 0], dtype=np.int64)
        places = np.array([shapes[row].place for row in rows], dtype=np.int64)
        other = _Factors(tilt, r[places], whole[rows, places], dither[rows, places])
        weight[rows] *= other.both / base.both[places]
        base_level = np.exp(-fall)
        total = base_level[:, 0] + weight.sum(axis=1).real
        changed = base_level * (1.0 - r) + real_product(weight, base.changed)
        here = np.einsum("rn,rn->r", weight[rows], other.changed).real
        changed[rows, places] = base_level[rows, 0] * (1.0 - r[places]) + here
        first, second = np.triu_indices(size, 1)
        if len(shapes) > _ONE_BY_ONE * size:
            signed, weights = base.signed, side_by_side(np.conj(weight))
            pairs = np.concatenate(
                [weights @ side_by_side(one * signed[i + 1 :]).T for i, one in enumerate(signed)],
                axis=1,
            )
        else:
            each = [real_product(base.signed * one, base.signed) for one in weight]
            pairs = np.array([one[first, second] for one in each])
        at = np.zeros((size, size), dtype=np.int64)
        at[first, second] = at[second, first] = np.arange(len(first))
        both = real_product(weight[rows] * other.signed, base.signed)
        for row, place, one in zip(rows.tolist(), places.tolist(), both, strict=True):
            others = np.delete(np.arange(size), place)
            pairs[row, at[place, others]] = one[others]
        return [
            Column(-float(fall[row, 0]), float(total[row]), changed[row], pairs[row])
            for row in range(len(shapes))
        ]


class _Factors:
    """The transform of attributes' shares of t under ν, up to the tilt's normalizer, shapes (m, n).

    Args:
        tilt: β of one unit.
        keep: r, shape (m,).
        whole, dither: of the costs, shapes (m,).

    Attributes:
        both: kept or changed.
        changed: the part of C_i, divided by both.
        signed: the part of h_i, divided by both.
    """

    def __init__(
        self, tilt: float, keep: FloatArray, whole: FloatArray, dither: FloatArray
    ) -> None:
        r, unit = keep[:, None], math.exp(-tilt) * _TURNS[: len(_FREQUENCIES)]
        units = whole.astype(np.int64) + (dither > 0.0)
        lost = _TURNS[np.outer(units, _FREQUENCIES) % _TRANSFORMED]
        lost *= np.exp(-tilt * units)[:, None]
        # What is lost less if it is kept; small where the slope is.
        theta = np.where(dither > 0.0, dither, 1.0)[:, None]
        gap = theta * (1.0 - unit) + (unit - lost)
        gap *= r
        self.both = lost + gap
        shares = 1.0 / self.both
        self.signed: ComplexArray = np.asarray(gap * shares, dtype=np.complex128)
        self.changed: ComplexArray = np.asarray((1.0 - r) * lost * shares, dtype=np.complex128)
