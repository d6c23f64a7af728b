"""Bring the levels of a law, given by its orbits, down to what was asked for.

Source: docs/proofs/restricted.md, section 3.
"""

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.orbits import Orbits

BoolArray = npt.NDArray[np.bool_]

_ROUNDS = 12
"""Steps of the correction at most; each leaves a rounding of the one before."""

_ABOVE = 2e-16
"""A relative excess of e^ε over the request that is not corrected: one rounding."""


def keep_masses(orbits: Orbits, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (1 − p_i) times the mass where i is kept and p_i times that where it is changed.

    Shape (m,) each. They are equal where the level is met; their difference over the second is
    e^{achieved − requested} − 1.
    """
    mass = orbits.chance * (1.0 + excess)
    kept = orbits.groups.change_probability * np.sum(orbits.kept_fraction * mass, axis=1)
    changed = orbits.groups.keep_probability * np.sum(orbits.changed_fraction * mass, axis=1)
    return kept, changed


def met(orbits: Orbits, excess: FloatArray) -> bool:
    """Whether no level is missed by more than 1e-13 nats."""
    kept, changed = keep_masses(orbits, excess)
    return bool((kept >= changed * (1.0 - 1e-13)).all())


def bring_down(orbits: Orbits, excess: FloatArray) -> FloatArray:
    """Bring the keep probabilities that are above their request down to it.

    Each attribute passes through an independent k-ary response: with probability θ it is drawn
    anew from all its categories. That shrinks p_i − 1/a_i by 1 − θ, leaves all other keep
    probabilities alone, raises no ratio of probabilities, keeps a falling law falling, and
    multiplies the attenuation of a pair as it does the product of its attributes' attenuations.

    Args:
        orbits: the problem.
        excess: f/f_{all} − 1 of every orbit, shape (n,).
    """
    shape = tuple((orbits.size + 1).tolist())
    for group, n in enumerate(orbits.size.tolist()):
        a = float(orbits.groups.n_categories[group])
        for _ in range(_ROUNDS):
            kept, changed = keep_masses(orbits, excess)
            if kept[group] - changed[group] <= _ABOVE * changed[group]:
                break
            surplus = (kept[group] - changed[group]) / np.sum(orbits.chance * (1.0 + excess))
            theta = surplus / (orbits.groups.keep_excess[group] + surplus)
            # From c changed attributes of the group, Binomial(c, θ/a) are turned back to the truth
            # and Binomial(n − c, θ(1 − 1/a)) are turned away from it. The small probabilities are
            # kept as they are: 1 − (1 − θ/a) would be off by an ulp of 1.
            back, away = _binomials(n, theta / a), _binomials(n, theta * (1.0 - 1.0 / a))
            mix = np.zeros((n + 1, n + 1))
            for c in range(n + 1):
                mix[c] = np.convolve(back[c, c::-1], away[n - c, : n - c + 1])
            along = np.moveaxis(excess.reshape(shape), group, 0)
            mixed = np.moveaxis(np.tensordot(mix, along, axes=1), 0, group).ravel()
            excess = (mixed - mixed[-1]) / (1.0 + mixed[-1])
    return excess


def _binomials(n: int, p: float) -> FloatArray:
    """Laws of Binomial(c, p), c = 0 .. n, shape (n + 1, n + 1)."""
    laws = np.zeros((n + 1, n + 1))
    laws[0, 0] = 1.0
    for c in range(n):
        laws[c + 1] = laws[c] * (1.0 - p)
        laws[c + 1, 1:] += laws[c, :-1] * p
    return laws
