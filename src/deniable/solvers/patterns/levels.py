"""Turn the basis of a linear program into a law that is right to its last digits.

A simplex code returns a basis and, within its tolerance, a point. The basis says which rows hold
with equality. Rows between two orbits (g_c = g_{c'}, or f_c = e^γ f_{c'}) tie orbits together into
components on each of which f is known up to one factor; what remains is a small dense system with
one unknown level per component, as many as there are equations. Solving that system again, with
its residual evaluated in the form in which the result is checked, leaves errors of a few units in
the last place where the code left its tolerance of 1e−10. Ties inside components hold exactly.

What a tie is: docs/proofs/restricted.md, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray, IntArray
from deniable.solvers.patterns.orbits import Orbits

BoolArray = npt.NDArray[np.bool_]

_ROUNDS = 12
_ABOVE = 2e-16
"""A relative excess of e^ε over the request that is not corrected: one rounding."""


@dataclass(frozen=True, eq=False)
class Ties:
    """Orbits tied together: g = gain·x + shift with one level x per component.

    Attributes:
        component: the component of each orbit, shape (n,); component 0 contains the orbit where all
            attributes are changed, so that its x is 0.
        gain, shift: shape (n,); inside a component f = 1 + g is proportional to `gain`.
    """

    component: IntArray
    gain: FloatArray
    shift: FloatArray


@dataclass(frozen=True, eq=False)
class Levels:
    """A law, as the solution of the small system.

    Attributes:
        excess: g of every orbit, shape (n,).
        weights: λ, the multipliers of the keep probabilities, one per group, on any scale (m,).
        balance_weights: the multipliers of the further rows, if the small system had any.
    """

    excess: FloatArray
    weights: FloatArray
    balance_weights: FloatArray


def solve_levels(
    orbits: Orbits,
    ties: Ties,
    balances: Sequence[FloatArray] = (),
    exact: BoolArray | None = None,
) -> Levels | None:
    """Solve for the densities at which every group keeps its level; None if they have no solution.

    A keep probability p_i ends above the requested one by about one unit in its last place at most:
    where rounding leaves it above, the target is lowered by as much and the correction repeated.

    Args:
        orbits: the problem, by orbits.
        ties: the components; together they need as many levels as there are equations.
        balances: further rows Σ_c chance_c f_c weight_c = 0, each of shape (n,).
        exact: the groups that have an equation, shape (m,); all by default.
    """
    exact = np.ones(len(orbits.size), dtype=np.bool_) if exact is None else exact
    n_exact = int(exact.sum())
    rows = np.vstack([orbits.drift[exact], *balances]) * orbits.chance
    n_free = int(ties.component.max())
    if n_free != len(rows):
        return None
    inverse = _inverse(rows * ties.gain, ties.component, n_free)
    if inverse is None:
        return None
    level = np.zeros(n_free + 1)
    lowered = np.zeros(n_exact)
    excess = ties.shift
    for round_ in range(_ROUNDS):
        kept, changed = keep_masses(orbits, excess)
        kept, changed = kept[exact], changed[exact]
        above = (kept - changed) / changed
        if round_ and above.max() <= _ABOVE and above.min() > -1e-14:
            break
        # Below the noise of these sums a Newton step does nothing, and only a lower target brings
        # the result under the request.
        settled = np.abs(above) < 1e-13
        lowered += np.where(settled & (above > _ABOVE), above, 0.0)
        residual = kept - changed + lowered * changed
        others = rows[n_exact:] @ (1.0 + excess)
        level[1:] -= inverse @ np.concatenate([residual, others])
        excess = ties.gain * level[ties.component] + ties.shift
        if not np.isfinite(excess).all():
            return None
    # The dual of the small system, whose cost is the excess of the orbit that changes nothing.
    dual = np.zeros(len(rows))
    if ties.component[0] > 0:
        dual = ties.gain[0] * inverse[ties.component[0] - 1]
    weights = np.zeros(len(exact))
    weights[exact] = dual[:n_exact]
    return Levels(excess, weights, dual[n_exact:])


def _inverse(rows: FloatArray, component: IntArray, n_free: int) -> FloatArray | None:
    """Invert the small system, equilibrated; None if it is singular."""
    sums = np.zeros((n_free + 1, len(rows)))
    np.add.at(sums, component, rows.T)
    matrix = sums[1:].T
    row_scale = np.abs(matrix).max(axis=1)
    if not (row_scale > 0.0).all():
        return None
    matrix = matrix / row_scale[:, None]
    column_scale = np.abs(matrix).max(axis=0)
    if not (column_scale > 0.0).all():
        return None
    try:
        inverse = np.linalg.inv(matrix / column_scale)
    except np.linalg.LinAlgError:
        return None
    scaled: FloatArray = inverse / column_scale[:, None] / row_scale
    return scaled


def keep_masses(orbits: Orbits, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (1 − p_i) times the mass where i is kept and p_i times that where it is changed.

    Shape (m,) each. They are equal where the level is met; their difference over the second is
    e^{achieved − requested} − 1.
    """
    mass = orbits.chance * (1.0 + excess)
    kept = orbits.groups.change_probability * np.sum(orbits.kept_fraction * mass, axis=1)
    changed = orbits.groups.keep_probability * np.sum(orbits.changed_fraction * mass, axis=1)
    return kept, changed


def bring_down(orbits: Orbits, excess: FloatArray, group: int) -> FloatArray:
    """Bring the keep probability of a group that ended above its request down to it.

    Each attribute of the group passes through an independent k-ary response: with probability θ it
    is drawn anew from all its categories. That shrinks p_i − 1/a_i by 1 − θ, leaves all other keep
    probabilities alone, raises no ratio of probabilities and keeps a falling law falling.
    """
    n, a = int(orbits.size[group]), float(orbits.groups.n_categories[group])
    shape = tuple((orbits.size + 1).tolist())
    for _ in range(_ROUNDS):
        kept, changed = keep_masses(orbits, excess)
        if kept[group] - changed[group] <= _ABOVE * changed[group]:
            break
        surplus = (kept[group] - changed[group]) / np.sum(orbits.chance * (1.0 + excess))
        theta = surplus / (orbits.groups.keep_excess[group] + surplus)
        # From c changed attributes of the group, Binomial(c, θ/a) are turned back to the truth and
        # Binomial(n − c, θ(1 − 1/a)) are turned away from it. The small probabilities are kept as
        # they are: 1 − (1 − θ/a) would be off by an ulp of 1.
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
