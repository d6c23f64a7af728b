"""What a design buys: how many more rows independent randomization would need for the same errors.

The Kronecker product is given the same ε for the record and the same ratios between the attributes'
levels. The variance of an unbiased share goes with 1/φ², so the ratio of squared attenuations is
the factor by which the product law would need more rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from deniable.design.design import design
from deniable.design.methods import METHODS
from deniable.design.plan import Design
from deniable.errors import InputError
from deniable.laws.response import attenuation
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import predict_covariance
from deniable.mechanism.strength import mechanism_strength

CURVE = ("1.25x", "1.5x", "2x", "3x", "none")
"""Caps on ``epsilon_given_rest`` for which the cost is shown."""

CURVE_UP_TO = 60
"""Attributes up to which the curve is computed: five designs, a second or two each."""


PAIRS_UP_TO = 50
"""Up to this many protected attributes every pair is looked at."""


def pair_attenuations(mechanism: Mechanism) -> list[dict[str, Any]] | None:
    """Return φ of every pair of attributes that have one each, or None beyond 50 attributes.

    With the single attenuations these are what is needed to invert any table of two attributes
    without this software.
    """
    schema = mechanism.schema
    if len(schema.protected) > PAIRS_UP_TO:
        return None
    invertible = [
        name
        for name, single in zip(
            schema.names, mechanism_strength(mechanism).attenuation, strict=True
        )
        if single is not None
    ]
    return [
        {
            "attributes": [a, b],
            "attenuation": predict_covariance(mechanism, a, b).share,
        }
        for a, b in combinations([n for n in invertible if n not in schema.keep], 2)
    ]


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
    if METHODS[result.method].given_rest is None or len(schema.protected) > CURVE_UP_TO:
        return None
    levels = [result.mechanism.attribute_epsilon[i] for i in schema.protected]
    curve = []
    for cap in caps:
        if cap == result.given_rest:
            curve.append({"cap": cap, "epsilon": result.epsilon})
            continue
        try:
            point = design(
                schema,
                attribute_epsilon=levels,
                method=result.method,
                given_rest=cap,
                pair_floor=result.pair_floor or 0.0,
            )
        except InputError:  # this cap cannot be met beside the floor
            continue
        curve.append({"cap": cap, "epsilon": point.epsilon})
    return curve


def comparison_to_plain(result: Design) -> dict[str, Any] | None:
    """Return what a design buys and what its cap costs, as plain values; None for laws that
    randomize the attributes independently or promise nothing, and for one attribute alone."""
    if not METHODS[result.method].together:
        return None
    if len(result.mechanism.schema.protected) < 2:
        return None
    found = saving(result)
    curve = cap_curve(result)
    return {
        "saving": None if found is None else found.to_plain(),
        "curve": curve,
        "chosen_cap": result.given_rest if curve else None,
    }
