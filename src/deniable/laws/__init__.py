"""The laws a block of attributes can have, one module each.

A new family is a subclass of :class:`~deniable.laws.law.Law` and one entry in ``FAMILIES``.
"""

from collections.abc import Mapping
from typing import Any

from deniable.errors import InputError
from deniable.laws.designed import DesignedChannel
from deniable.laws.invariant import InvariantChannel
from deniable.laws.joint import JointLaw
from deniable.laws.law import BoundedLaw, Law, PatternLaw, Ratio
from deniable.laws.matrix import Identity, MatrixChannel, ResponseLaw
from deniable.laws.pattern_table import PatternTable
from deniable.laws.product import ProductLaw
from deniable.laws.single_change import SingleChangeMixture
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.mixture import VoteMixture

FAMILIES: dict[str, type[Law]] = {
    law.family: law
    for law in (
        ProductLaw,
        PatternTable,
        SingleChangeMixture,
        JointLaw,
        MatrixChannel,
        DesignedChannel,
        Identity,
        InvariantChannel,
        VoteBlend,
        GatedSum,
        VoteMixture,
    )
}


def law_from_plain(plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> Law:
    """Rebuild a law from its plain values.

    Raises:
        InputError: if the family is unknown or the values do not describe a law.

    >>> law = ProductLaw.from_levels((2, 4), (1.0, 2.0))
    >>> law_from_plain(law.to_plain(), (2, 4)) == law
    True
    """
    family = FAMILIES.get(str(plain.get("family")))
    if family is None:
        raise InputError(
            "the mechanism names a family of laws that this version does not know; "
            "a newer version of deniable may"
        )
    return family.from_plain(plain, n_categories)


__all__ = [
    "FAMILIES",
    "BoundedLaw",
    "DesignedChannel",
    "GatedSum",
    "Identity",
    "InvariantChannel",
    "JointLaw",
    "Law",
    "MatrixChannel",
    "PatternLaw",
    "PatternTable",
    "ProductLaw",
    "Ratio",
    "ResponseLaw",
    "SingleChangeMixture",
    "VoteBlend",
    "VoteMixture",
    "law_from_plain",
]
