"""Certificates survive JSON, and are verified whenever they are read."""

import functools
import json
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier.proofs import certificate_from_plain, certificate_to_plain
from deniable.proofs.rows import Certificate, average_limits, local_limits
from deniable.solvers.matrices import frontier
from marked import slow_after

# Where the closed form proves less than the certificate does.
KINDS = [
    average_limits([0.625, 0.25, 0.125], 0.36, 0.64),
    local_limits([0.5, 0.3, 0.2], 1.0),
    average_limits(np.geomspace(1, 100, 17) / np.geomspace(1, 100, 17).sum(), 0.72),
]


@functools.cache
def solved(kind: int) -> Certificate:
    return frontier.solve(KINDS[kind]).certificate


def stored(kind: int) -> dict[str, Any]:
    plain = certificate_to_plain(solved(kind))
    decoded: dict[str, Any] = json.loads(json.dumps(plain, allow_nan=False))
    return decoded


@pytest.mark.parametrize("kind", slow_after(2, range(len(KINDS))))
def test_a_certificate_comes_back_as_it_was(kind: int) -> None:
    limits, certificate = KINDS[kind], solved(kind)
    back = certificate_from_plain(stored(kind))
    assert back.claim == certificate.claim
    assert np.array_equal(back.directions, certificate.directions)
    assert np.array_equal(back.limits.prior, limits.prior)
    assert back.limits.epsilon == limits.epsilon
    assert (back.groups is None) == (limits.n_categories == 3)
    assert np.array_equal(back.groups, certificate.groups)


@pytest.mark.parametrize("kind", slow_after(2, range(len(KINDS))))
def test_a_claim_that_is_not_proved_is_refused(kind: int) -> None:
    plain = stored(kind)
    with pytest.raises(InputError, match="proves only"):
        certificate_from_plain({**plain, "claim": plain["claim"] * (1 + 1e-6)})
    nudged = np.array(plain["directions"])
    nudged[0, 1] *= 1.01
    with pytest.raises(InputError, match="proves only"):
        certificate_from_plain({**plain, "directions": nudged.tolist()})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"claim": "high"}, "cannot be read"),
        ({"privacy": None}, "either a privacy or an epsilon"),
        ({"directions": [[1.0, 2.0], [3.0]]}, "no matrix"),
        ({"directions": [[1.0]]}, "3 x 3"),
        ({"groups": [0, 1]}, "the group"),
        ({"groups": [0, 2, 3]}, "the group"),
        ({"groups": [0, 1, -1]}, "cannot be read"),
        ({"groups": [0, 1, 10**30]}, "cannot be read"),
        ({"prior": [0.5, 0.3, 0.3]}, "sum to 1.1"),
    ],
)
def test_what_is_no_certificate_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        certificate_from_plain({**stored(0), **change})
