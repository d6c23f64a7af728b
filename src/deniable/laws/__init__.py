"""The laws a block of attributes can have, one module each.

A new family is a subclass of :class:`~deniable.laws.law.Law` and one entry in ``FAMILIES``.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from deniable.errors import InputError
from deniable.laws.designed import DesignedChannel
from deniable.laws.forms import PublishedForms
from deniable.laws.invariant import InvariantChannel
from deniable.laws.joint import joint_of_attenuation, joint_of_epsilon
from deniable.laws.law import BoundedLaw, Law, PatternLaw, Ratio, checked_arithmetic
from deniable.laws.matrix import Identity, MatrixChannel, ResponseLaw
from deniable.laws.pattern_table import PatternTable
from deniable.laws.product import ProductLaw
from deniable.laws.score import ScoreTable
from deniable.laws.single_change import SingleChangeMixture
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum

FAMILIES: dict[str, type[Law]] = {
    law.family: law
    for law in (
        ProductLaw,
        PatternTable,
        ScoreTable,
        SingleChangeMixture,
        MatrixChannel,
        DesignedChannel,
        Identity,
        InvariantChannel,
        VoteBlend,
        GatedSum,
        PublishedForms,
    )
}


def law_from_plain(plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> Law:
    """Rebuild a law from its plain values.

    >>> law = ProductLaw.from_levels((2, 4), (1.0, 2.0))
    >>> law_from_plain(law.to_plain(), (2, 4)) == law
    True
    """
    name = plain.get("family")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        raise InputError(
            "the mechanism names a family of laws that this version does not know; "
            "a newer version of deniable may"
        )
    try:
        msgspec.convert(plain, family.Plain)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise InputError(f"the mechanism's law of the family '{family.family}': {error}") from None
    with checked_arithmetic():
        return family.from_plain(plain, n_categories)


__all__ = [
    "FAMILIES",
    "BoundedLaw",
    "DesignedChannel",
    "GatedSum",
    "Identity",
    "InvariantChannel",
    "Law",
    "MatrixChannel",
    "PatternLaw",
    "PatternTable",
    "ProductLaw",
    "PublishedForms",
    "Ratio",
    "ResponseLaw",
    "ScoreTable",
    "SingleChangeMixture",
    "VoteBlend",
    "joint_of_attenuation",
    "joint_of_epsilon",
    "law_from_plain",
]
