"""Input of every solver: category counts, and the level that each attribute must keep.

A pattern law satisfies the level ε_i of attribute i exactly when it leaves the attribute unchanged
with probability p_i = e^{ε_i}/(e^{ε_i} + a_i − 1). p_i, 1 − p_i and p_i − 1/a_i are each computed
from expm1(ε_i), never from one another by subtraction, so that levels from 1e−300 to `MAX_LEVEL`
lose no digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray, IntArray

# e^700 and its products with category counts still fit in a double. A level of 600 nats protects
# no value; a larger one is an error of input.
MAX_LEVEL = 600.0
MAX_CATEGORIES = 1 << 31


class SolverError(RuntimeError):
    """A search ended without a result that passes its own checks.

    The request is valid; the message names another method or setting.
    """


@dataclass(frozen=True, eq=False)
class Problem:
    """Category counts a_i and privacy levels ε_i (nats) of k attributes.

    Build it with `checked_problem`.

    Attributes:
        n_categories: shape (k,), integers held as floats.
        attribute_epsilon: shape (k,), in nats.
    """

    n_categories: FloatArray
    attribute_epsilon: FloatArray

    @property
    def n_attributes(self) -> int:
        """k."""
        return len(self.n_categories)

    @cached_property
    def uniform_keep(self) -> FloatArray:
        """r_i = 1/a_i, the uniform law's keep probability, shape (k,)."""
        return np.asarray(1.0 / self.n_categories, dtype=np.float64)

    @property
    def counts(self) -> IntArray:
        """a_i as integers, shape (k,)."""
        return self.n_categories.astype(np.int64)

    @cached_property
    def expm1(self) -> FloatArray:
        """e^{ε_i} − 1, shape (k,)."""
        return np.expm1(self.attribute_epsilon)

    @cached_property
    def keep_probability(self) -> FloatArray:
        """p_i = e^{ε_i}/(e^{ε_i} + a_i − 1), shape (k,)."""
        return (1.0 + self.expm1) / (self.expm1 + self.n_categories)

    @cached_property
    def change_probability(self) -> FloatArray:
        """1 − p_i, shape (k,)."""
        return (self.n_categories - 1.0) / (self.expm1 + self.n_categories)

    @cached_property
    def keep_excess(self) -> FloatArray:
        """d_i = p_i − 1/a_i, the excess over the uniform law's keep probability, shape (k,)."""
        a = self.n_categories
        return (a - 1.0) * self.expm1 / (a * (self.expm1 + a))


def checked_problem(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> Problem:
    """Check category counts and levels.

    ``n_categories``: a_i, at least 2 each, shape (k,), k ≥ 1. ``attribute_epsilon``: ε_i in nats,
    from 0 to `MAX_LEVEL`, shape (k,).

    >>> checked_problem([3, 5], [1.0, 0.5]).keep_probability.round(4).tolist()
    [0.5761, 0.2919]
    """
    if len(n_categories) == 0:
        raise InputError("n_categories: there must be at least one attribute")
    if len(n_categories) != len(attribute_epsilon):
        raise InputError(
            f"attribute_epsilon: {len(attribute_epsilon)} levels were given for "
            f"{len(n_categories)} attributes; give one per attribute"
        )
    try:
        counts = np.asarray(n_categories, dtype=np.float64)
        levels = np.asarray(attribute_epsilon, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "n_categories and attribute_epsilon: each must be a flat list of numbers"
        ) from None
    if counts.ndim != 1 or levels.ndim != 1:
        raise InputError("n_categories and attribute_epsilon: each must be a flat list of numbers")
    good = (counts >= 2) & (counts <= MAX_CATEGORIES) & (counts == np.floor(counts))
    if not good.all():
        i = int(np.argmin(good))
        raise InputError(
            f"n_categories[{i}]: an attribute needs a whole number of categories from 2 to "
            f"{MAX_CATEGORIES}, not {counts[i]:g}"
        )
    good = (levels >= 0) & (levels <= MAX_LEVEL)
    if not good.all():
        i = int(np.argmin(good))
        raise InputError(
            f"attribute_epsilon[{i}]: a level must lie between 0 and {MAX_LEVEL:g} nats, "
            f"not {levels[i]:g}"
        )
    return Problem(counts, levels)


def optional_limits(
    limits: Sequence[float | None] | None, n_attributes: int, name: str
) -> FloatArray:
    """Return limits on the attributes' levels in nats, inf for no limit, shape (k,)."""
    if limits is None:
        return np.full(n_attributes, np.inf)
    if len(limits) != n_attributes:
        raise InputError(
            f"{name}: {len(limits)} were given for {n_attributes} attributes; give one per "
            "attribute, or None for an attribute without"
        )
    return np.array([np.inf if limit is None else limit for limit in limits], dtype=np.float64)


def caps_given_rest(
    problem: Problem, limits: Sequence[float | None] | None, name: str
) -> FloatArray:
    """Return caps on ε given the rest in nats, inf for no cap, shape (k,)."""
    caps = optional_limits(limits, problem.n_attributes, name)
    good = caps >= problem.attribute_epsilon
    if not good.all():
        i = int(np.argmin(good))
        raise InputError(
            f"{name}[{i}]: a cap of {caps[i]:g} nats is below the attribute's own level of "
            f"{problem.attribute_epsilon[i]:g}, which no law can keep; raise the cap"
        )
    return caps
