"""Certificates of the bound as plain values, and back."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np

from deniable.errors import InputError
from deniable.proofs.rows import Certificate, Limits, average_limits, local_limits, verify


class StoredCertificate(msgspec.Struct, forbid_unknown_fields=True):
    """A proof of the bound at one level: the claim, and the numbers that prove it."""

    statement: str
    prior: list[float]
    privacy: float | None
    most_posterior: float | None
    epsilon: float | None
    directions: list[list[float]]
    multipliers: list[float]
    claim: float
    groups: list[Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]] | None = None


def certificate_to_plain(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as plain values; JSON's shortest decimals keep every bit."""
    limits = certificate.limits
    groups = None if certificate.groups is None else certificate.groups.tolist()
    return {
        "statement": "n N MSE is at least the claim for every mechanism within these limits "
        "(docs/proofs/frontier.md, Theorem 5)",
        "prior": limits.prior.tolist(),
        "privacy": None if limits.success is None else 1.0 - limits.success,
        "most_posterior": limits.most_posterior,
        "epsilon": limits.epsilon,
        "claim": certificate.claim,
        "directions": certificate.directions.tolist(),
        "multipliers": certificate.multipliers.tolist(),
        "groups": groups,
    }


def certificate_from_plain(plain: Mapping[str, Any]) -> Certificate:
    """Read a certificate and verify its claim, without a solver."""
    try:
        stored = msgspec.convert(plain, StoredCertificate)
    except msgspec.ValidationError as error:
        raise InputError(f"certificate: it cannot be read ({error})") from None
    if len({len(row) for row in stored.directions}) != 1:
        raise InputError("certificate: its directions are no matrix")
    certificate = Certificate(
        _limits(stored),
        np.array(stored.directions),
        np.array(stored.multipliers),
        stored.claim,
        None if stored.groups is None else np.array(stored.groups, dtype=np.intp),
    )
    verify(certificate)
    return certificate


def _limits(stored: StoredCertificate) -> Limits:
    if (stored.privacy is None) == (stored.epsilon is None):
        raise InputError("certificate: it needs either a privacy or an epsilon")
    if stored.epsilon is not None:
        return local_limits(stored.prior, stored.epsilon)
    assert stored.privacy is not None
    return average_limits(stored.prior, stored.privacy, stored.most_posterior)
