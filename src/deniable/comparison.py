"""What a design buys: how many more rows independent randomization would need for the same errors.

The Kronecker product is given the same ε for the record and the same ratios between the attributes'
levels. The variance of an unbiased share goes with 1/φ², so the ratio of squared attenuations is
the factor by which the product law would need more rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from deniable.designing import design
from deniable.errors import InputError
from deniable.patterns import attenuation
from deniable.plan import Design
from deniable.release_record import pair_attenuations
from deniable.strength import mechanism_strength

CURVE = ("1.1x", "1.25x", "1.5x", "2x", "3x", "none")
"""Caps on ``epsilon_given_rest`` for which the cost is shown."""

CURVE_UP_TO = 60
"""Attributes up to which the curve is computed: six designs, a second or two each."""


@dataclass(frozen=True)
class Saving:
    """Rows that the Kronecker product would need for every row of this design, medians.

    Args:
        marginals: for shares of single attributes.
        pairs: for tables of two attributes; None beyond 50 attributes, or if there is one only.
    """

    marginals: float
    pairs: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"marginals": self.marginals, "pairs": self.pairs}


def saving(result: Design) -> Saving | None:
    """Return what a design saves against the Kronecker product of the same ε.

    Returns:
        None where the comparison means nothing: an unbounded ε, or a response matrix.
    """
    mechanism = result.mechanism
    schema = mechanism.schema
    singles = mechanism_strength(mechanism).attenuation
    protected = [i for i in schema.protected if singles[i] is not None]
    if len(protected) < len(schema.protected) or not math.isfinite(result.epsilon):
        return None
    total = math.fsum(mechanism.attribute_epsilon[i] for i in protected)
    scale = result.epsilon / total
    independent = {
        schema.names[i]: attenuation(schema.n_categories[i], scale * mechanism.attribute_epsilon[i])
        for i in protected
    }
    marginals = [(float(singles[i] or 0.0) / independent[schema.names[i]]) ** 2 for i in protected]
    pairs = [
        (pair["attenuation"] / math.prod(independent[name] for name in pair["attributes"])) ** 2
        for pair in pair_attenuations(mechanism) or []
    ]
    return Saving(median(marginals), median(pairs) if pairs else None)


def cap_curve(result: Design, caps: Sequence[str] = CURVE) -> list[dict[str, Any]] | None:
    """Return the record's ε at this design's levels under several caps on ``epsilon_given_rest``.

    Returns:
        One entry per cap that can be met, with ``cap`` and ``epsilon``; None if the method has no
        caps or there are more than 60 attributes.
    """
    schema = result.mechanism.schema
    if result.method != "balanced" or len(schema.protected) > CURVE_UP_TO:
        return None
    levels = [result.mechanism.attribute_epsilon[i] for i in schema.protected]
    curve = []
    for cap in caps:
        try:
            point = design(schema, attribute_epsilon=levels, method="balanced", given_rest=cap)
        except InputError:  # this cap cannot be met beside the floor
            continue
        curve.append({"cap": cap, "epsilon": point.epsilon})
    return curve
